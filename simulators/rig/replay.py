"""`cutcard replay`: the device's side of a capture, played to whoever reads first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from firmware_bridge.capture import Record, read_capture
from firmware_bridge.clock import SystemClock
from simulators.hosts import served
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
WAIT_LIMIT_S = 3600.0
"""The longest wait at once: the kernel takes none of a month, and a capture may have one of years."""
LINGER_S = 0.3
"""How long a line stays after its last byte: closed earlier, a connection might be reset."""


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
        self._rest = bytearray()
        self._first: int | None = None
        self._start = self._due = 0.0
        self._next: Record | None = None

    def start(self, now: float) -> None:
        """The first byte leaves now."""
        self.held = False
        self._start = self._due = now
        self._turn()

    @property
    def done(self) -> bool:
        return self._next is None and not self._rest

    def receive(self, data: bytes, now: float) -> None:
        """Nobody listens."""

    def transmit(self, now: float) -> bytes:
        if self.held:
            return b""
        while self._next is not None and self._due <= now and len(self._rest) < PENDING_LIMIT:
            self._rest += self._next.data
            self._turn()
        out = bytes(self._rest[:PENDING_LIMIT])
        del self._rest[:PENDING_LIMIT]
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


class Stage:
    """Where a tape is played; whoever comes from now on is seen, so make it before telling anybody."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._watch = PtyWatch(host.path) if isinstance(host, PtyHost) else None
        self._now = SystemClock().now

    def play(self, tape: Tape) -> None:
        """Wait for the first reader, play everything, and stay until it has the last byte."""
        self._await_reader()
        tape.start(self._now())
        while not tape.done or self._host.writers():
            self._host.pump(self._now())
            tape.held = bool(self._host.writers())
            due = tape.deadline()
            if due is not None or tape.held:
                self._wait(None if due is None else due - self._now())
        self._see_off()

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()

    def _await_reader(self) -> None:
        """Until somebody opened the line and has thrown away what was on it."""
        while not self._somebody():
            self._wait(None, watching=True)
            self._host.pump(self._now())
        if self._watch is not None:
            self._stay(SETTLE_S)

    def _see_off(self) -> None:
        """Until the reader has taken all, or takes nothing more."""
        if self._watch is None or not isinstance(self._host, PtyHost):
            return self._stay(LINGER_S)
        # An empty line fills once more while the kernel holds bytes that had found no room in it.
        while served.wait([], STALL_S if self._host.unread else LINGER_S, self._watch):
            self._watch.look()
        return None

    def _wait(self, timeout: float | None, *, watching: bool = False) -> bool:
        """Whether something happened within `timeout` seconds."""
        handles = [self._watch] if watching and self._watch is not None else []
        return served.wait([self._host], None if timeout is None else min(timeout, WAIT_LIMIT_S), *handles)

    def _somebody(self) -> bool:
        if self._watch is not None:
            self._watch.look()
            return self._watch.opened
        return not isinstance(self._host, TcpHost) or self._host.clients > 0

    def _stay(self, seconds: float) -> None:
        end = self._now() + seconds
        while (left := end - self._now()) > 0:
            self._host.pump(self._now())
            self._wait(left)
