"""The device's end of a wire: bytes in, bytes out, time as a parameter."""

from __future__ import annotations

import heapq
from math import inf
from typing import Protocol

from simulators.models.machine import Machine, Traps


class WireDevice(Protocol):
    """What a host pumps. All times are seconds of the simulation, never going backwards."""

    @property
    def machine(self) -> Machine: ...

    def receive(self, data: bytes, now: float) -> None:
        """Bytes arrived from the controller."""

    def transmit(self, now: float) -> bytes:
        """All bytes the device has sent up to `now` and nobody has fetched yet."""

    def advance(self, now: float) -> None:
        """Let everything happen that is due up to `now`."""

    def deadline(self) -> float | None:
        """When something next happens by itself; None: only when bytes come or hands act."""


class Silent(Exception):
    """The request gets no answer: the device restarts over it."""


class Refused(Exception):
    """The device says no. `general`: the code is none of the group's own."""

    def __init__(self, rc: int, *, general: bool = False) -> None:
        super().__init__(rc)
        self.rc = rc
        self.general = general


class Outbox:
    """Pieces of output, each with the time at which it leaves.

    `byte_s` s a byte takes: one piece leaves after the other, and is there with its last byte. `waiting` is
    empty when nothing does.
    """

    def __init__(self, byte_s: float = 0.0) -> None:
        self.byte_s = byte_s
        self.waiting: list[tuple[float, int, bytes]] = []
        self._order = 0
        self._free_at = 0.0

    def put(self, at: float, data: bytes) -> None:
        self._order += 1
        heapq.heappush(self.waiting, (at, self._order, data))

    def take(self, now: float) -> bytes:
        return b"".join(self.pieces(now))

    def pieces(self, now: float) -> list[bytes]:
        return [piece for _, piece in self.arrivals(now)] if self.waiting else []

    def arrivals(self, now: float) -> list[tuple[float, bytes]]:
        """As `pieces`, each with its time."""
        out: list[tuple[float, bytes]] = []
        while self.waiting and (at := self._due()) <= now:
            self._free_at = at
            out.append((at, heapq.heappop(self.waiting)[2]))
        return out

    def deadline(self) -> float | None:
        return self._due() if self.waiting else None

    def clear(self) -> None:
        self.waiting.clear()
        self._free_at = 0.0

    def _due(self) -> float:
        at, _, data = self.waiting[0]
        return max(at, self._free_at) + len(data) * self.byte_s if self.byte_s else at


class Silence:
    """The trap `silent`: where it springs nothing is answered any more, for `value` s or until mended."""

    def __init__(self, traps: Traps) -> None:
        self._traps = traps
        self._until: float | None = None

    def covers(self, now: float) -> bool:
        """Count one request at `now`; whether it goes unanswered."""
        if self._until is None and (trap := self._traps.sprung("silent")):
            self._until = now + trap.seconds(inf)
        if self._until is not None and (now >= self._until or "silent" not in self._traps):
            self._until = None
        return self._until is not None


def lateness(traps: Traps) -> float:
    """The trap `late_answer`: an answer comes so many s after its time (value, 3)."""
    trap = traps.sprung("late_answer")
    return 0.0 if trap is None else trap.seconds(3.0)


def copies(traps: Traps) -> int:
    """The trap `duplicate_answer`: how often an answer comes."""
    return 1 if traps.sprung("duplicate_answer") is None else 2


def damaged(message: bytes, traps: Traps) -> bytes:
    """The trap `damage`: every bit of a byte (number value, or the middle one) is changed."""
    if (trap := traps.sprung("damage")) is None:
        return message
    place = trap.count(len(message) // 2) % len(message)
    return message[:place] + bytes((message[place] ^ 0xFF,)) + message[place + 1 :]


def earliest(*times: float | None) -> float | None:
    return min((time for time in times if time is not None), default=None)
