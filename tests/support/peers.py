"""The far ends that transports are tried against: a real pty, real TCP, memory."""

import contextlib
import os
import pty
import select
import socket
import tty

from firmware_bridge.clock import SystemClock
from firmware_bridge.transports import libusb, mem, open_transport
from tests.support.usb import SimHidPeer, SimUsbPeer

CLOCK = SystemClock()


class PtyPeer:
    def __init__(self):
        self.master, self.spare = pty.openpty()
        tty.setraw(self.spare)
        self.path = os.ttyname(self.spare)
        self.uri = f"serial:{self.path}?baud=4800"

    def send(self, data):
        os.write(self.master, data)

    def receive(self, size):
        out = b""
        while len(out) < size and select.select([self.master], [], [], 2)[0]:
            out += os.read(self.master, size - len(out))
        return out

    def take_no_more(self):
        """Nobody reads: the buffers on the way fill up."""

    def cut(self):
        for fd in (self.master, self.spare):
            if fd >= 0:
                os.close(fd)
        self.master = self.spare = -1

    close = cut


class TcpPeer:
    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"socket:127.0.0.1:{self.listener.getsockname()[1]}"
        self.socket = None

    def accepted(self):
        if self.socket is None:
            self.socket = self.listener.accept()[0]
        return self.socket

    def send(self, data):
        self.accepted().sendall(data)

    def receive(self, size):
        self.accepted().settimeout(2)
        out = b""
        while len(out) < size:
            out += self.socket.recv(size - len(out))
        return out

    def take_no_more(self):
        """As on a pty."""

    def cut(self):
        self.accepted().close()
        self.listener.close()

    def close(self):
        if self.socket:
            self.socket.close()
        self.listener.close()


class MemPeer:
    def __init__(self):
        self.uri = "mem:unit"
        self.to_us, self.to_them, self.dead = b"", b"", False
        mem.plug("unit", self)

    def write(self, data):
        self._check()
        self.to_them += data

    def read(self):
        self._check()
        data, self.to_us = self.to_us, b""
        return data

    def _check(self):
        if self.dead:
            raise ConnectionError("unplugged")

    def send(self, data):
        self.to_us += data

    def receive(self, size):
        data, self.to_them = self.to_them[:size], self.to_them[size:]
        return data

    def cut(self):
        self.dead = True

    def close(self):
        mem.unplug("unit")


class UsbPeer(SimUsbPeer):
    """A bulk device on a simulated bus, which transports find while it lives."""

    def __init__(self):
        super().__init__()
        self._before, libusb.make_backend = libusb.make_backend, self.backend

    def take_no_more(self):
        self.device.accept(1024)

    def close(self):
        libusb.make_backend = self._before
        super().close()


class HidPeer(UsbPeer, SimHidPeer):
    """The same with interrupt reports."""


@contextlib.contextmanager
def deaf_port():
    """The number of a port of 127.0.0.1 where connecting hangs: its listener's queue is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        stack.enter_context(socket.create_connection(listener.getsockname()))
        for _ in range(3):  # the kernel lets one or two more wait than asked for
            extra = stack.enter_context(socket.socket())
            extra.setblocking(False)
            extra.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@contextlib.contextmanager
def using(peer, make=open_transport):
    transport = peer.make(peer.uri, make) if hasattr(peer, "make") else make(peer.uri)
    try:
        yield transport
    finally:
        transport.dispose()
        peer.close()


def read_all(transport, size):
    out, end = b"", CLOCK.now() + 3
    while len(out) < size and CLOCK.now() < end:
        out += transport.read(0.2)
    return out
