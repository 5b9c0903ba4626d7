"""Following the event ring of one device: reading never consumes, and what was told is never told again."""

from __future__ import annotations

from typing import Any

from devices.base import Counters, Maker, OptionError, Setup
from devices.events import (
    DeviceEvent,
    GapPossible,
    Warning,  # noqa: A004 - the contract's event kind is `warning`
)
from devices.managed.dialect import EVENT_WITHHELD, Dialect, translated
from devices.managed.fields import Body, Malformed
from devices.managed.messages import Ring, check_ring

PLAY_POLL, IDLE_POLL = 0.02, 0.5
"""Seconds between reads of the ring of a device that cannot wait."""
IDLE_WAIT = 500
"""Milliseconds a read of the ring is parked when nothing happens at the table."""
PLAY = 30.0
"""Seconds after an event or a command for which the device counts as in play."""
WITHHELD = 3
"""Answers in a row without the event that is there, after which it counts as lost."""
BOOTS = 8
"""How many earlier boots' event numbers are remembered."""
OPTIONS = {"wait_ms": "milliseconds a read of the event ring may be parked in play, 0..1000 (default 200)"}
WENT_BACK = "event numbers went back without a restart: restart the device"


class RingReader:
    """Where we stand in the ring, what an answer brings, and when (s) to ask again.

    `boot` is the start of the device whose numbers these are, None before the first session ever.
    """

    def __init__(self, setup: Setup, dialect: Dialect, event: Maker, counters: Counters) -> None:
        resume = setup.resume
        self.boot = resume.boot
        self._counters = counters
        self._dialect = dialect
        self._event = event
        self._since = 1 if resume.seq is None else resume.seq + 1
        self._earlier: dict[int, int] = {}  # `_since` of boots before this one
        self._went_back = False  # told once a start of the device
        self._wait_ms = _wait_option(setup)
        self.ready(0.0)

    def ready(self, now: float) -> None:
        """A session stands: what must not outlive the last one, and the first read at once."""
        self.due = now
        self.parked = 0.0
        """How long the last read asked for may wait (s)."""
        self._waits = self._wait_ms > 0
        self._withheld = 0
        self.in_play(now)

    @property
    def last(self) -> int:
        """The number before the first event that will be told: a restart resumes there."""
        return self._since - 1

    def begin_at_end(self, ring: Ring) -> None:
        """The first session ever: what is older is not this table's history."""
        self.boot, self._since = ring.boot, ring.next

    def met(self, boot: int) -> None:
        """The device says which start of its own this is; each has numbers of its own."""
        if self.boot is None or boot == self.boot:
            return
        self._went_back = False
        self._earlier[self.boot] = self._since
        self.boot, self._since = boot, self._earlier.pop(boot, 1)
        while len(self._earlier) > BOOTS:
            del self._earlier[next(iter(self._earlier))]

    def in_play(self, now: float) -> None:
        self._play_until = now + PLAY

    def request(self, now: float) -> dict[str, Any]:
        """The body of the next read."""
        self.parked = 0.0
        if not self._waits:
            return {"since": self._since}
        wait = self._wait_ms if now < self._play_until else max(self._wait_ms, IDLE_WAIT)
        self.parked = wait / 1000
        return {"since": self._since, "wait": wait}

    def check(self, body: Body) -> dict[str, Any]:
        ring = check_ring(body)
        if ring.boot == self.boot and ring.next < self._since:
            raise Malformed(WENT_BACK)  # what was told is never told again
        return {"ring": ring}

    def read(self, ring: Ring, now: float, asked_at: float) -> list[DeviceEvent]:
        """The events of an answer of this boot, with what is missing between them."""
        out: list[DeviceEvent] = []
        entries = [entry for entry in ring.entries if entry.n >= self._since]
        self._counters.repeats += len(ring.entries) - len(entries)
        if not entries and ring.oldest <= self._since < ring.next:
            return self._not_handed_out(now)
        self._withheld = 0
        if not entries:
            out += self._gap_before(ring.oldest, now)
            self._since = max(self._since, ring.oldest)
        for entry in entries:
            out += self._gap_before(entry.n, now)
            out += translated(self._dialect, entry, self._event, now)
            self._since = entry.n + 1
        if out:
            self.in_play(now)
            self.due = now
        elif self._waits and now - asked_at >= self.parked / 2:
            self.due = now
        else:
            self._waits = False
            self.due = now + (PLAY_POLL if now < self._play_until else IDLE_POLL)
        return out

    def forgot(self, now: float) -> list[DeviceEvent]:
        """It forgot its numbers: what it tells once they are past ours is not all that happened."""
        if self._went_back:
            return []
        self._went_back = True
        return [self._event(GapPossible, now, missing=None)]

    def _gap_before(self, n: int, now: float) -> list[DeviceEvent]:
        missing = n - self._since
        return [self._event(GapPossible, now, missing=missing)] if missing > 0 else []

    def _not_handed_out(self, now: float) -> list[DeviceEvent]:
        """There is an event and the device does not tell it: ask again, then count it as lost and go on."""
        self._withheld += 1
        self.due = now + IDLE_POLL
        if self._withheld < WITHHELD:
            return []
        self._withheld = 0
        lost = self._since
        self._since += 1
        return [
            self._event(GapPossible, now, missing=1),
            self._event(Warning, now, seq=lost, code=EVENT_WITHHELD),
        ]


def _wait_option(setup: Setup) -> int:
    value = setup.options.get("wait_ms", 200)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1000:
        raise OptionError(f"wait_ms is a number from 0 to 1000, not {value!r}")
    return value
