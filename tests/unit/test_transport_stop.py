"""A stop ends what a transport does and all that it begins, whenever it comes; a wake ends one wait."""

import os
import select
import signal
import threading

import pytest
from typer.testing import CliRunner

from controller.cli.app import app
from devices.base import Counters
from firmware_bridge import errors
from firmware_bridge.capture import Recorder, recorded
from firmware_bridge.clock import SystemClock
from firmware_bridge.port import Port, stop_all
from firmware_bridge.transports import open_transport
from firmware_bridge.transports import socket as socket_module
from firmware_bridge.transports.socket import SocketReceiver
from firmware_bridge.transports.waker import Waker
from tests.support.peers import CLOCK, HidPeer, PtyPeer, TcpPeer, UsbPeer, deaf_port, using

AT_ONCE_S = 4.0
"""Also on a busy machine; far below what connecting may take here."""


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(socket_module, "CONNECT_S", 12.0)


class Silent:
    """A driver that wants nothing."""

    def __init__(self):
        self.counters = Counters()

    def start(self, now):
        return []

    def lost(self, reason, now):
        return []

    def deadline(self):
        return None


def port_on(transport):
    return Port("shoe", transport, Silent(), SystemClock(), lambda name, outputs: None)


def took(act):
    start = CLOCK.now()
    act()
    return CLOCK.now() - start


def is_woken(waker):
    return bool(select.select([waker], [], [], 0)[0])


def test_a_waker_forgets_a_wake_that_was_seen_and_never_a_stop():
    waker = Waker()
    waker.wake()
    waker.drain()
    assert not is_woken(waker)
    waker.stop()
    for _ in range(2):
        waker.drain()
        assert is_woken(waker)
    waker.close()
    waker.stop()


@pytest.mark.parametrize("kind", [PtyPeer, TcpPeer, UsbPeer, HidPeer])
@pytest.mark.parametrize("taped", [False, True], ids=["", "recorded"])
def test_a_stop_ends_this_read_and_every_later_one(kind, taped, tmp_path):
    with using(kind()) as wire:
        transport = wire
        if taped:
            transport = recorded(wire, Recorder(tmp_path / "tape", wire, SystemClock(), told=print))
        transport.open()
        stopper = threading.Timer(0.05, transport.stop)
        stopper.start()
        assert took(lambda: transport.read(12)) < AT_ONCE_S
        stopper.join()
        transport.close()
        transport.open()
        assert took(lambda: [transport.read(12) for _ in range(3)]) < AT_ONCE_S
        transport.dispose()


def test_a_stop_before_connecting_ends_it_and_a_wake_of_before_does_not():
    with deaf_port() as number:
        transport = open_transport(f"socket:127.0.0.1:{number}")
        transport.stop()

        def opening():
            with pytest.raises(errors.Absent, match="broken off on our side"):
                transport.open()

        assert took(opening) < AT_ONCE_S
        transport.dispose()


def test_a_port_that_is_about_to_connect_stops_at_once():
    """The stop comes when the owner thread has begun to open, and before it looks at the wake pipe."""
    with deaf_port() as number:
        transport = open_transport(f"socket:127.0.0.1:{number}")
        begun, told = threading.Event(), threading.Event()
        real = transport.open

        def late():
            begun.set()
            assert told.wait(5)
            real()

        transport.open = late
        port = port_on(transport)
        port.start()
        assert begun.wait(5)
        port.stop_soon()
        told.set()
        assert took(port.stop) < AT_ONCE_S


class Slow:
    """Takes its time to let go, as a line that is full does."""

    uri, stopped = "slow:", None

    def __init__(self):
        self.open = self.close = self.wake = lambda: None
        self.stopped = threading.Event()
        self.all_told = threading.Event()

    def read(self, timeout):
        assert self.stopped.wait(5)
        return b""

    def stop(self):
        self.stopped.set()

    def dispose(self):
        assert self.all_told.wait(5), "another port was told only after this one had ended"

    def describe(self):
        return "slow"


def test_all_ports_are_told_before_one_is_waited_for():
    wires = [Slow() for _ in range(3)]
    wires[2].stop = lambda: ([wire.all_told.set() for wire in wires], wires[2].stopped.set())
    ports = [port_on(wire) for wire in wires]
    for port in ports:
        port.start()
    stop_all(ports)
    assert all(port._thread is None for port in ports)


@pytest.mark.parametrize(
    "command",
    [
        ("monitor", "--driver", "angel-eye"),
        ("send", "--driver", "managed-shoe", "status"),
        ("gat",),
        ("firmware", "list"),
    ],
    ids=lambda command: command[0],
)
def test_a_command_that_is_about_to_connect_ends_at_once_by_a_signal(monkeypatch, command):
    told = threading.Event()

    def telling(name):
        real = getattr(SocketReceiver, name)
        monkeypatch.setattr(SocketReceiver, name, lambda self: (real(self), told.set()))

    def connect(self):
        os.kill(os.getpid(), signal.SIGTERM)
        assert told.wait(5)
        return real(self)

    real = SocketReceiver._connect
    telling("wake")
    telling("stop")
    monkeypatch.setattr(SocketReceiver, "_connect", connect)
    name, *more = command
    with deaf_port() as number:
        uri = f"socket:127.0.0.1:{number}"
        words = [name, *more, uri] if name == "firmware" else [name, uri, *more]
        assert took(lambda: CliRunner().invoke(app, words)) < AT_ONCE_S
    assert told.is_set()
