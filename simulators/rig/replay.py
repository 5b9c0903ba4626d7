"""`cutcard replay`: the device's side of a capture, played to whoever reads first."""

from __future__ import annotations

import selectors
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from firmware_bridge.capture import Record, read_capture
from firmware_bridge.clock import SystemClock
from simulators.hosts.host import PENDING_LIMIT, Host
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.pty_watch import PtyWatch
from simulators.hosts.tcp_host import TcpHost
from simulators.models.machine import Machine
from simulators.rig.sim import Misused

SLOWEST = 0.001
SETTLE_S = 0.3
"""Programs throw away what they find when they open a serial port: so long nothing is sent."""
STALL_S = 5.0
"""How long a reader may take nothing before the end is not kept back for it."""
LINGER_S = 0.3
"""How long a connection stays after its last byte: closed earlier, it might be reset."""


class Tape:
    """A simulated device that plays records at their times, `speed` times faster (None: at once).

    It sends nothing while `held`, and never more than a host keeps: nothing is dropped, however slow the
    reader is. What it is told it does not hear.
    """

    def __init__(self, records: Iterator[Record], speed: float | None) -> None:
        self.machine = Machine()
        self.held = True
        self._records = (record for record in records if record.inbound)
        self._speed = speed
        self._rest = b""
        self._first: int | None = None
        self._start = self._due = 0.0
        self._next: Record | None = None

    def start(self, now: float) -> None:
        """The first byte leaves now."""
        self._start = self._due = now
        self._turn()

    @property
    def done(self) -> bool:
        return self._next is None and not self._rest

    def receive(self, data: bytes, now: float) -> None:
        """Nobody listens."""

    def transmit(self, now: float) -> bytes:
        while (
            not self.held and self._next is not None and self._due <= now and len(self._rest) < PENDING_LIMIT
        ):
            self._rest += self._next.data
            self._turn()
        if self.held:
            return b""
        out, self._rest = self._rest[:PENDING_LIMIT], self._rest[PENDING_LIMIT:]
        return out

    def advance(self, now: float) -> None:
        """It has no mechanics."""

    def deadline(self) -> float | None:
        if self.held or self.done:
            return None
        return self._start if self._rest else self._due

    def _turn(self) -> None:
        """To the next record; times that go back count as none."""
        record = self._next = next(self._records, None)
        if record is None:
            return
        self._first = record.at if self._first is None else self._first
        if self._speed is not None:
            self._due = max(self._due, self._start + (record.at - self._first) / 1e9 / self._speed)


@contextmanager
def load(
    file: Path, speed: float | None, note: Callable[[str], None]
) -> Iterator[tuple[Tape, dict[str, Any]]]:
    """The tape, and what is on it. The whole file is looked through first; `note` hears what does no harm.

    Raises CaptureError, OSError, and Misused when there is nothing to play.
    """
    with open(file, "rb") as source:  # noqa: PTH123 - errors shall name the file as it was typed
        found = _survey(source, str(file), note)
        source.seek(0)
        yield Tape(read_capture(source, str(file), lambda _: None), speed), found


def _survey(source: BinaryIO, name: str, note: Callable[[str], None]) -> dict[str, Any]:
    played = heard = 0
    first = last = None
    for record in read_capture(source, name, note):
        if record.packets:
            raise Misused(
                f"{name} is of a USB device, and its packets have no place on a pty or TCP port: "
                "read it with `cutcard decode --format pcapng`"
            )
        if record.inbound:
            first, last = record.at if first is None else first, record.at
            played += len(record.data)
        else:
            heard += len(record.data)
    if first is None or last is None:
        raise Misused(f"{name} holds no byte of a device: there is nothing to play")
    return {"bytes": played, "seconds": round(max(0, last - first) / 1e9, 3), "host_bytes_left_out": heard}


def play(tape: Tape, host: Host) -> None:
    """Wait for the first reader, play everything, and stay until it has the last byte."""
    stage = _Stage(host)
    try:
        stage.await_reader()
        tape.start(stage.now())
        while not tape.done or host.writers():
            tape.held = bool(host.writers())
            host.pump(stage.now())
            if not tape.done or host.writers():
                due = None if host.writers() else tape.deadline()
                stage.wait(None if due is None else due - stage.now())
        stage.see_off()
    finally:
        stage.close()


class _Stage:
    """Where it is played, and who is there."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._watch = PtyWatch(host.path) if isinstance(host, PtyHost) else None
        self.now = SystemClock().now

    def await_reader(self) -> None:
        """Until somebody opened the line and has thrown away what was on it."""
        while not self._somebody():
            self.wait(None, watching=True)
            self._host.pump(self.now())
        if self._watch is not None:
            self._stay(SETTLE_S)

    def see_off(self) -> None:
        """Until the line is empty, or its reader has taken nothing for a while."""
        if not isinstance(self._host, PtyHost):
            return self._stay(LINGER_S)
        while self._host.unread and self.wait(STALL_S, watching=True):
            self._somebody()
            self._host.pump(self.now())
        return None

    def wait(self, timeout: float | None, *, watching: bool = False) -> bool:
        """Whether something happened within `timeout` seconds."""
        with selectors.DefaultSelector() as selector:
            writers = set(self._host.writers())
            for number in {*self._host.filenos(), *writers}:
                events = selectors.EVENT_READ | (selectors.EVENT_WRITE if number in writers else 0)
                selector.register(number, events)
            if watching and self._watch is not None:
                selector.register(self._watch, selectors.EVENT_READ)
            return bool(selector.select(None if timeout is None else max(0.0, timeout)))

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()

    def _somebody(self) -> bool:
        if self._watch is not None:
            self._watch.look()
            return self._watch.opened
        return not isinstance(self._host, TcpHost) or self._host.clients > 0

    def _stay(self, seconds: float) -> None:
        end = self.now() + seconds
        while (left := end - self.now()) > 0:
            self._host.pump(self.now())
            self.wait(left)
