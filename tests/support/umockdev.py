"""Simulated USB devices under the real libusb: a child program sees them through umockdev's preload."""

import errno
import functools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from firmware_bridge import errors
from firmware_bridge.transports import open_receiver, open_transport
from simulators.hosts import umockdev_host
from simulators.hosts.served import Served
from simulators.hosts.umockdev_host import UmockdevHost, environment
from simulators.hosts.usb_bus import UsbBus
from simulators.hosts.usb_device import UsbDevice
from simulators.hosts.usbdevfs import CAPABILITIES
from tests.support.usb import SimUsbPeer

ROOT = Path(__file__).parents[2]
PATIENCE_S = 30

needs_umockdev = pytest.mark.skipif(bool(umockdev_host.missing()), reason=str(umockdev_host.missing()))


PROBE = """
import fcntl, json, os, struct
file = os.open("/dev/bus/usb/001/002", os.O_RDWR)
data = bytearray(4)
fcntl.ioctl(file, 0x8004551a, data)
try:
    fcntl.ioctl(file, 0x5599, bytearray(8))
except OSError as error:
    number = error.errno
print(json.dumps([struct.unpack("=I", data)[0], number, os.listdir("/sys/bus/usb/devices")]))
"""
EXPECTED = [CAPABILITIES, errno.ENOTTY, ["1-1"]]


@functools.cache
def protocol_trouble():
    """None, or what a program says when the preload does not speak the protocol that we serve."""
    with Bed(UsbDevice()) as bed:
        done = subprocess.run(
            [sys.executable, "-c", PROBE],
            env={**os.environ, **bed.environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    if done.returncode == 0 and json.loads(done.stdout) == EXPECTED:
        return None
    return f"umockdev's protocol changed: {(done.stdout + done.stderr).strip()[-500:]}"


class Gone(AssertionError):
    """The child ended."""


class Bed:
    """Devices in a directory of their own, served by a thread; `client()` starts a program that sees them."""

    def __init__(self, *devices, bus=None):
        self.home = tempfile.mkdtemp(prefix="bed")
        self.bus = bus or UsbBus(*devices)
        self.host = UmockdevHost(f"{self.home}/d", self.bus)
        self.environment = environment(f"{self.home}/d")
        self._clients = []
        self._served = Served(self.host)
        self._served.__enter__()

    def client(self, library="system"):
        """A program that sees the devices; skips the test when the preload speaks otherwise than we do."""
        if trouble := protocol_trouble():
            pytest.skip(trouble)
        client = Client(self.environment, library)
        self._clients.append(client)
        return client

    @staticmethod
    def now():
        return time.monotonic()

    @staticmethod
    def until(condition):
        """Wait for what other threads and programs do."""
        pause, end = threading.Event(), time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, "it did not happen"
            pause.wait(0.005)

    def end_host(self):
        """As a simulator that is ended: its devices are gone, and then its files."""
        served, self._served = self._served, None
        if served is not None:
            served.__exit__(None, None, None)
            self.host.close()

    def close(self):
        """Ends the programs and takes everything away; fails when a file is left."""
        for client in self._clients:
            client.close()
        self.end_host()
        left = sorted(Path(self.home).rglob("*"))
        shutil.rmtree(self.home)
        assert not left, f"left behind: {left}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Client:
    """tests/support/usb_child.py under the preload."""

    def __init__(self, variables, library):
        self.library = library
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.usb_child", library],
            cwd=ROOT,
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.result()

    def start(self, name, *arguments):
        """Begin without waiting."""
        self.process.stdin.write(json.dumps([name, *arguments]) + "\n")
        self.process.stdin.flush()

    def result(self):
        """What came of the oldest thing begun: a dict as usb_child.py says."""
        if not select.select([self.process.stdout], [], [], PATIENCE_S)[0]:
            self.process.kill()
        line = self.process.stdout.readline()
        if not line:
            self.process.kill()
            raise Gone(self.process.communicate()[1][-2000:])
        return json.loads(line)

    def ask(self, name, *arguments):
        self.start(name, *arguments)
        return self.result()

    def get(self, name, *arguments):
        """The value; AssertionError when it failed."""
        answer = self.ask(name, *arguments)
        assert "value" in answer, answer
        return answer["value"]

    def find(self, vid=0x1209):
        """Bus and address as they are now; None when it is not there.

        The wheel's libusb listens to the kernel's netlink, which the preload cannot imitate: it needs a new
        context to see a change. Debian's listens to udev.
        """
        if self.library == "package":
            self.get("usb.renew")
        return self.get("usb.find", vid)

    @property
    def handles(self):
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()


class RemoteReceiver:
    """A receiver of the product in a child program, called from here; `wake` as there is from any thread."""

    maker = "open_receiver"

    def __init__(self, client, uri):
        self.uri = uri
        self._client = client
        self._call("make", uri, self.maker)

    def open(self):
        self._call("open")

    def read(self, timeout):
        return bytes.fromhex(self._call("read", timeout))

    def wake(self):
        self._client.start("wire.wake")

    def close(self):
        self._call("close")

    def dispose(self):
        self._call("dispose")

    def describe(self):
        return self._call("describe")

    def _call(self, name, *arguments):
        answer = self._client.ask(f"wire.{name}", *arguments)
        if "error" in answer:
            raise getattr(errors, answer["error"], AssertionError)(answer["text"])
        return answer["value"]


class RemoteTransport(RemoteReceiver):
    """The command form."""

    maker = "open_transport"

    def write(self, data, timeout=0.5):
        self._call("write", data.hex(), timeout)


class UmockdevPeer(SimUsbPeer):
    """As SimUsbPeer, under the real libusb; what `make(uri)` gives lives in a child program."""

    flood = 200_000

    def __init__(self, device=None, library="system"):
        super().__init__(device)
        self.bed = Bed(bus=self.bus)
        self.client = self.bed.client(library)

    def make(self, uri, like=open_transport):
        """As the product's `open_transport`, or `like` its `open_receiver`."""
        return (RemoteReceiver if like is open_receiver else RemoteTransport)(self.client, uri)

    def take_no_more(self):
        self.device.accept(1024)

    def close(self):
        self.bed.close()
        super().close()
