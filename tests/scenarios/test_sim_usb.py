"""`cutcard sim DEVICE --listen usb:DIRECTORY`: a simulated USB device for programs of its users."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from simulators.hosts import umockdev_host
from tests.support.umockdev import Client, needs_umockdev

CUTCARD = [sys.executable, "-c", "from controller.cli.app import main; main()"]


@pytest.fixture
def closing():
    """Programs to close whatever happens."""
    kept = []
    yield lambda program: kept.append(program) or program
    for program in kept:
        program.close()


@pytest.fixture
def directory():
    home = Path(tempfile.mkdtemp(prefix="sim"))
    yield home / "d"
    assert list(home.iterdir()) == [], "the simulator left files behind"
    shutil.rmtree(home)


class Sim:
    def __init__(self, device, directory):
        self.process = subprocess.Popen(
            [*CUTCARD, "sim", device, "--listen", f"usb:{directory}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said = json.loads(self.process.stdout.readline())

    def close(self):
        self.process.kill()
        self.process.communicate()

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def ended(self):
        """What it said on stderr, and its exit code."""
        _, errors = self.process.communicate(timeout=20)
        return errors, self.process.returncode


def cutcard(*arguments, env=()):
    return subprocess.run(
        [*CUTCARD, *arguments],
        env={**os.environ, **dict(env)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@needs_umockdev
def test_a_shoe_and_a_shuffler_in_one_directory_are_used_and_pulled_out(directory, closing):
    shoe = closing(Sim("managed-shoe", directory))
    assert shoe.said == {
        "listening": f"usb:{directory}",
        "device": "managed-shoe",
        "port": "usb:1209:0002:SH0001",
        "env": {"UMOCKDEV_DIR": str(directory), "LD_PRELOAD": umockdev_host.PRELOAD},
    }
    shuffler = closing(Sim("managed-shuffler", directory))
    assert shuffler.said["port"] == "usb:1209:0001:SF0001"
    env = shoe.said["env"]
    sent = cutcard("send", shuffler.said["port"], "--driver", "managed-shuffler", "status", "--json", env=env)
    assert sent.returncode == 0, sent.stderr
    assert json.loads(sent.stdout)["answer"]["inside"] == 312
    client = closing(Client(env, "system"))
    assert client.get("usb.all") == [["1209:0001", 1], ["1209:0002", 1]]
    client.find()
    client.get("usb.claim", 0)
    assert client.get("usb.configuration") == 1
    client.start("usb.read", 0x81, 64, 10_000)
    for sim in (shuffler, shoe):
        sim.terminate()
    # A pulled plug is either of the two, as the transfer or the next call meets it; both are a lost link.
    assert client.result()["errno"] in {errno.ENODEV, errno.EIO}
    client.get("usb.dispose")
    assert [sim.ended() for sim in (shuffler, shoe)] == [("", 0)] * 2
    assert client.get("usb.all") == []


def test_a_device_without_usb_is_refused_with_a_sentence(directory):
    refused = cutcard("sim", "angel-eye", "--listen", f"usb:{directory}")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert (
        "only the managed devices and barcode-hid have USB; write pty:PATH or tcp:HOST:PORT" in refused.stderr
    )
    assert refused.stderr.count("\n") == 1


@needs_umockdev
def test_a_directory_with_a_name_too_long_is_refused_with_the_limit(directory):
    refused = cutcard("sim", "managed-shoe", "--listen", f"usb:{directory}{'x' * 90}")
    assert refused.returncode == 2
    assert "bytes long and may be" in refused.stderr
