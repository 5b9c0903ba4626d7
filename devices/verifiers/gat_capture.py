"""What goes over a GAT line as events, from either direction: for captures, and for the live driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from devices.base import Counters, DriverOutput, Maker, Setup
from devices.events import (
    AuthenticationReported,
    AuthenticationState,
    CommandDone,
    CommandRefused,
    CommandSeen,
    DeviceEvent,
    FrameRejected,
    LastAuthentication,
)
from firmware_bridge.framing import Garbage
from firmware_bridge.framing.gat import IACQ, LARQ, Decoder, Frame
from firmware_bridge.gat import messages, queries

SILENCE_S = 0.5
"""Seconds without a byte after which a begun frame is given up: clean-up, never the end of a frame."""
REPORT_LIMIT: Final = queries.FRAMES * 248
"""Bytes of one report that are kept."""


class Story:
    """Frames of either direction as events. What is said again and again is told when it changes."""

    def __init__(self, event: Maker, counters: Counters) -> None:
        self._event = event
        self._counters = counters
        self._state: messages.Status | None = None
        self._format = ""
        self._report = b""
        self._parts = 0
        self._whole = True

    def hear(self, frame: Frame) -> None:
        """A frame that is told otherwise."""
        self._counters.frames += 1
        message = messages.read(frame)
        if isinstance(message, messages.Status):
            self._state = message

    def tell(self, frame: Frame, now: float) -> list[DeviceEvent]:
        self._counters.frames += 1
        match messages.read(frame):
            case messages.Status() as status:
                return self._status(status, frame, now)
            case messages.Last(level, seconds):
                return [
                    self._event(LastAuthentication, now, raw=frame.raw, level=f"{level:02X}", seconds=seconds)
                ]
            case messages.Part() as part:
                return self._part(part, now)
            case messages.Taken(acknowledged, _, level_error):
                return [
                    self._taken(
                        frame,
                        now,
                        queries.LEVEL_ERROR if level_error else "" if acknowledged else queries.NAK,
                    )
                ]
        if frame.code == LARQ:
            self._format = {1: "text", 2: "xml"}.get(frame.data[0], "")
        if frame.code == IACQ:
            words = messages.text_of(frame.data[2:]).split("\t")
            return [self._event(CommandSeen, now, raw=frame.raw, command=words[0], args=tuple(words[1:]))]
        return []

    def garbage(self, item: Garbage, now: float) -> DeviceEvent:
        return self._event(FrameRejected, now, raw=item.data, reason=item.reason, bytes=item.count)

    def _taken(self, frame: Frame, now: float, code: str) -> DeviceEvent:
        if not code:
            return self._event(CommandDone, now, raw=frame.raw)
        name = "unknown level" if code == queries.LEVEL_ERROR else "not acknowledged"
        return self._event(CommandRefused, now, raw=frame.raw, code=code, name=name)

    def _status(self, status: messages.Status, frame: Frame, now: float) -> list[DeviceEvent]:
        before, self._state = self._state, status
        if status == before:
            self._counters.repeats += 1
            return []
        return [
            self._event(AuthenticationState, now, raw=frame.raw, state=status.state, results=status.results)
        ]

    def _part(self, part: messages.Part, now: float) -> list[DeviceEvent]:
        """Frame 1 begins a report; the last one tells it, with a mark when one is missing."""
        if part.error:
            return []
        if part.number == 1:
            self._report, self._parts, self._whole = part.data, 1, True
        elif part.number == self._parts:
            self._counters.repeats += 1
        else:
            self._whole &= part.number == self._parts + 1 and len(self._report) < REPORT_LIMIT
            self._report, self._parts = (self._report + part.data)[:REPORT_LIMIT], part.number
        if not part.last or not self._parts:
            return []
        report, frames, self._report, self._parts = self._report, self._parts, b"", 0
        diag = () if self._whole else ("frame_missing",)
        kind = self._format or ("xml" if report.lstrip()[:1] == b"<" else "text")
        text = messages.text_of(report)
        return [self._event(AuthenticationReported, now, format=kind, frames=frames, report=text, diag=diag)]


class GatDecoder:
    """The pure decoder of a capture or dump; requests and answers may be told apart or not."""

    def __init__(self, setup: Setup) -> None:
        self.device = setup.device
        self.counters = Counters()
        self._story = Story(Maker(setup), self.counters)
        self._lines = Decoder(), Decoder()
        self._settle_at: float | None = None

    def start(self, now: float) -> Sequence[DriverOutput]:
        del now
        return []

    def feed(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        return self._feed(self._lines[0], data, now)

    def feed_host(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        return self._feed(self._lines[1], data, now)

    def tick(self, now: float) -> Sequence[DriverOutput]:
        if self._settle_at is None or now < self._settle_at:
            return []
        return self._flush(now)

    def lost(self, reason: str, now: float) -> Sequence[DriverOutput]:
        del reason
        return self._flush(now)

    def ack(self, n: int, now: float) -> Sequence[DriverOutput]:
        del n, now
        return []

    def deadline(self) -> float | None:
        return self._settle_at

    def _feed(self, line: Decoder, data: bytes, now: float) -> list[DriverOutput]:
        out = self._flush(now) if self._settle_at is not None and now >= self._settle_at else []
        out += self._tell(line.feed(data), now)
        self._settle_at = now + SILENCE_S if any(one.pending for one in self._lines) else None
        return out

    def _flush(self, now: float) -> list[DriverOutput]:
        self._settle_at = None
        return [told for line in self._lines for told in self._tell(line.flush(), now)]

    def _tell(self, items: Sequence[Frame | Garbage], now: float) -> list[DriverOutput]:
        out: list[DriverOutput] = []
        for item in items:
            if isinstance(item, Garbage):
                out.append(self._story.garbage(item, now))
            else:
                out += self._story.tell(item, now)
        return out
