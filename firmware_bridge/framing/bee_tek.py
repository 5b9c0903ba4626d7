"""Messages of the USPC Bee-Tek shoe: `[mode]<body>` or `<body>`, plain text without check bytes.

Nothing is consumed beyond a message's own `>`: the separator after it, if any, belongs to nobody.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from firmware_bridge.framing import GARBAGE_LIMIT, NOISE, Garbage, GarbageRun

MODE_LIMIT = 32
BODY_LIMIT = 96
"""Bytes between the brackets; the longest seen in public are 17 and 22."""

LOOSE_TEXT = "text between messages"
CUT = "cut message"
UNFINISHED = "unfinished message"
TOO_LONG = "message too long"

SEPARATORS = b" \r\n"
_START = re.compile(rb"[\[<]")
_STOP = re.compile(rb"[\[\]<>\r\n]")
_NO_TEXT = re.compile(rb"[^\t\r\n\x20-\x7e]|[\[\]<>]")


@dataclass(frozen=True, slots=True)
class Message:
    """`mode` is None where the message has none; neither text is judged here."""

    raw: bytes
    mode: bytes | None
    body: bytes


class Decoder:
    """One direction of a line. What is no message is one run up to the next message or `flush`.

    A run that is printable text alone has the reason LOOSE_TEXT; separators around a run are no part of it.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._run = _Between()

    @property
    def pending(self) -> bool:
        """Whether bytes wait, rejected or unfinished; a driver calls `flush` when the line falls silent."""
        return bool(self._run or self._buffer)

    def feed(self, data: bytes) -> list[Message | Garbage]:
        buffer = self._buffer
        buffer += data
        out: list[Message | Garbage] = []
        at, end = 0, len(buffer)
        while at < end:
            found = _START.search(buffer, at)
            start = found.start() if found else end
            if start > at:
                self._run.add(buffer[at:start])
                at = start
                continue
            parsed = _parse(buffer, at)
            if parsed is None:
                break
            if isinstance(parsed, Message):
                out += self._run.take()
                out.append(parsed)
                at += len(parsed.raw)
            else:
                size, reason = parsed
                self._run.add(buffer[at : at + size], reason)
                at += size
        del buffer[:at]
        return out

    def flush(self) -> list[Message | Garbage]:
        """Silence or the end of input: a message under way is given up. No whole one can stand behind it."""
        if self._buffer:
            self._run.add(self._buffer, UNFINISHED)
            self._buffer.clear()
        return [*self._run.take()]


def _parse(buffer: bytearray, at: int) -> Message | tuple[int, str] | None:
    """The message at `at`; how many bytes are none and why; None when more bytes must tell."""
    mode, body = None, at
    if buffer[at] == ord("["):
        end = _end(buffer, at, MODE_LIMIT)
        if end is None:
            return None
        if end < 0:
            return 1, TOO_LONG
        if buffer[end] != ord("]"):
            return end - at, CUT
        mode, body = bytes(buffer[at + 1 : end]), end + 1
        if body == len(buffer):
            return None
        if buffer[body] != ord("<"):
            return body - at, CUT
    end = _end(buffer, body, BODY_LIMIT)
    if end is None:
        return None
    if end < 0:
        return body + 1 - at, TOO_LONG
    if buffer[end] != ord(">"):
        return end - at, CUT
    return Message(bytes(buffer[at : end + 1]), mode, bytes(buffer[body + 1 : end]))


def _end(buffer: bytearray, opened: int, limit: int) -> int | None:
    """Where the text behind an opening bracket ends: -1 when it is too long, None when that is still open.

    Any bracket or line end ends it: a message never holds one.
    """
    found = _STOP.search(buffer, opened + 1, opened + 2 + limit)
    if found is not None:
        return found.start()
    return -1 if len(buffer) >= opened + 2 + limit else None


class _Between:
    """What lies between two messages, without the separators around it."""

    def __init__(self) -> None:
        self._run = GarbageRun()
        self._text = True
        self._blank = b""  # separators that belong to the run if more of it follows, the first of them
        self._blanks = 0

    def __bool__(self) -> bool:
        return bool(self._run)

    def add(self, data: bytes | bytearray, reason: str = NOISE) -> None:
        """A piece of the stream that is no message."""
        if not self._run:
            data = data.lstrip(SEPARATORS)
        solid = data.rstrip(SEPARATORS)
        if solid:
            self._run.add(self._blank, count=self._blanks)
            self._run.add(solid, reason)
            self._text = self._text and _NO_TEXT.search(solid) is None
            self._blank, self._blanks = b"", 0
        if self._run:
            blank = data[len(solid) :]
            self._blank = (self._blank + blank[:GARBAGE_LIMIT])[:GARBAGE_LIMIT]
            self._blanks += len(blank)

    def take(self) -> list[Garbage]:
        """The run so far as a list of none or one, and start anew."""
        text = self._text
        runs = self._run.take()
        self._text, self._blank, self._blanks = True, b"", 0
        return [replace(run, reason=LOOSE_TEXT) if text else run for run in runs]
