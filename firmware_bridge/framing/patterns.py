"""Frames that a regular expression describes, e.g. lines of text; what lies between them is garbage."""

from __future__ import annotations

import re
from collections.abc import Callable

from firmware_bridge.framing import Garbage, GarbageRun

Match = re.Match[bytes]

WRONG_CHECK = "wrong check bytes"
UNFINISHED = "unfinished frame"


class Decoder:
    """One direction of a line, bounded. `right` judges what the pattern cannot, e.g. check bytes.

    `pattern` matches whole frames of at most `longest` bytes alone, and each ends where it ends whatever
    follows. What begins like a frame and is none loses its first byte: a good frame may begin behind it.
    """

    def __init__(
        self, pattern: re.Pattern[bytes], longest: int, right: Callable[[Match], bool] = lambda _: True
    ) -> None:
        self._pattern = pattern
        self._longest = longest
        self._right = right
        self._buffer = b""
        self._run = GarbageRun()

    @property
    def pending(self) -> bool:
        """Whether bytes wait, rejected or unfinished; a driver calls `flush` when the line falls silent."""
        return bool(self._run or self._buffer)

    def feed(self, data: bytes) -> list[Match | Garbage]:
        buffer, at = self._buffer + data, 0
        out: list[Match | Garbage] = []
        while (frame := self._pattern.search(buffer, at)) is not None:
            self._run.add(buffer[at : frame.start()])
            if len(frame[0]) <= self._longest and self._right(frame):
                out += [*self._run.take(), frame]
                at = frame.end()
            else:
                at = frame.start() + 1
                self._run.add(frame[0][:1], WRONG_CHECK)
        kept = max(at, len(buffer) - self._longest + 1)
        self._run.add(buffer[at:kept])
        self._buffer = buffer[kept:]
        return out

    def flush(self) -> list[Match | Garbage]:
        """Silence or the end of input: a frame under way is given up."""
        self._run.add(self._buffer, UNFINISHED)
        self._buffer = b""
        return [*self._run.take()]
