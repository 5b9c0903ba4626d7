"""The session of a device that talks by itself: all of its driver but the frames and what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from devices.base import Counters, DriverOutput, Maker, Setup
from devices.events import FrameRejected, GapPossible, LinkDown, LinkUp
from firmware_bridge.framing import Garbage
from firmware_bridge.link import Complete, NotSent

F = TypeVar("F")
F_co = TypeVar("F_co", covariant=True)


class Frames(Protocol[F_co]):
    """A sans-IO decoder: any split of a stream gives the same items."""

    @property
    def pending(self) -> bool:
        """Whether bytes wait, for more of them or for `flush`."""

    def feed(self, data: bytes) -> Sequence[F_co | Garbage]:
        """The frames, each after what was rejected before it."""

    def flush(self) -> Sequence[F_co | Garbage]:
        """What is under way is given up."""


class Line:
    """The line to a device that cannot say what it told before: up, down, and what may have been missed.

    A session that is not the first begins with GapPossible, unless the device's `numbered` frames show what
    was lost. `live` false is a capture: it has no line to report.
    """

    def __init__(self, setup: Setup, event: Maker, *, live: bool, numbered: bool = False) -> None:
        self.up: bool | None = None
        """None before the first session."""
        self._event = event
        self._live = live
        self._numbered = numbered
        self._interrupted = setup.resume.n > 0

    def opened(self, now: float) -> list[DriverOutput]:
        if not self._live:
            return []
        gap = self._interrupted and not self._numbered
        self.up = self._interrupted = True
        return [self._event(LinkUp, now), *([self._event(GapPossible, now)] if gap else [])]

    def lost(self, reason: str, now: float) -> list[DriverOutput]:
        """Told once."""
        if not self._live or self.up is False:
            return []
        self.up = False
        return [self._event(LinkDown, now, reason=reason)]


class Talker(Generic[F]):
    """The read-only form but for `told`. `live` false is the decoder of a capture: it has no link to report.

    What is under way is given up `silence` s after the last byte. `numbered`: see `Line`.
    """

    def __init__(
        self, setup: Setup, frames: Frames[F], silence: float, *, live: bool = True, numbered: bool = False
    ) -> None:
        self.device = setup.device
        self.counters = Counters()
        self.event = Maker(setup)
        self._frames = frames
        self._silence = silence
        self._line = Line(setup, self.event, live=live, numbered=numbered)
        self._silent_at: float | None = None

    def told(self, frame: F, now: float) -> Iterable[DriverOutput]:
        """What a right frame means."""
        raise NotImplementedError

    def rejected(self, run: Garbage, now: float) -> Iterable[DriverOutput]:
        """What bytes without a frame mean."""
        yield self.event(FrameRejected, now, raw=run.data, reason=run.reason, bytes=run.count)

    def start(self, now: float) -> Sequence[DriverOutput]:
        return self._line.opened(now)

    def feed(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        out = [*self.tick(now), *self._items(self._frames.feed(data), now)]
        self._silent_at = now + self._silence if self._frames.pending else None
        return out

    def tick(self, now: float) -> Sequence[DriverOutput]:
        due = self._silent_at is not None and now >= self._silent_at
        return self._give_up(now) if due else []

    def lost(self, reason: str, now: float) -> Sequence[DriverOutput]:
        return [*self._give_up(now), *self._line.lost(reason, now)]

    def ack(self, n: int, now: float) -> Sequence[DriverOutput]:
        """Nothing to do: the device keeps no events, so none can be asked for again."""
        del n, now
        return []

    def deadline(self) -> float | None:
        return self._silent_at

    def _give_up(self, now: float) -> list[DriverOutput]:
        self._silent_at = None
        return self._items(self._frames.flush(), now)

    def _items(self, items: Iterable[F | Garbage], now: float) -> list[DriverOutput]:
        out: list[DriverOutput] = []
        for item in items:
            if isinstance(item, Garbage):
                out += self.rejected(item, now)
            else:
                self.counters.frames += 1
                out += self.told(item, now)
        return out


class TakesNoCommand:
    """What makes the command form of a device that takes none: class X(TakesNoCommand, MyReader)."""

    def command(self, call_id: str, name: str, args: Mapping[str, Any], now: float) -> Sequence[DriverOutput]:
        del name, args, now
        return [Complete(call_id, NotSent("this device takes no commands"))]
