"""Frames of the ReShuffled machine, both ways: `:` data `#` CRC-32 LF (docs/protocols/reshuffled.md).

Confidence B. A frame ends at the first end byte and starts at whichever colon before it makes the check
right, so that text printed on the same line costs no frame.
"""

from __future__ import annotations

import re
from binascii import crc32
from dataclasses import dataclass

from firmware_bridge.framing import NOISE, Garbage, GarbageRun
from firmware_bridge.framing.smp_console import Text

FRAME_LIMIT = 32
"""Bytes of the longest frame: the published host's buffer."""
LINE_LIMIT, PIECE = 96, 64
"""A line that grows longer is given up piece by piece; what is kept is always longer than a frame."""
ENDS = {"lf": b"\n", "semicolon": b";"}

BAD_CRC = "bad CRC"
SHORT_CRC = "CRC without its leading zeros"
STRAY_BYTES = "stray bytes after the answer"
UNKNOWN_DATA = "unknown data"
TEXT = "text outside a frame"
INCOMPLETE = "incomplete frame"

_REQUEST = re.compile(rb"IN|SH|XX|[DA][0-9]{1,2}")
_ANSWER = re.compile(rb"(OK|E[1-9])(.*)", re.DOTALL)
_TEXT = re.compile(rb"[\t\x20-\x7e]+")
_BROKEN = re.compile(rb":[^#]{1,21}#")
"""What looks like a frame and not like words: `Fehler: 1` has a colon and no `#` behind it."""
_STARTED = re.compile(rb":(?:[A-Z0-9]{0,3}|[^#]{1,21}#[0-9A-F]{0,8})\Z")


@dataclass(frozen=True, slots=True)
class Style:
    """How the wire is read; every field is a point where the public sources differ.

    `strict`: all eight digits of the check, nothing inside a frame that does not belong there, no text.
    """

    strict: bool = False
    crc_includes_hash: bool = False
    end: bytes = ENDS["lf"]


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame with the right check. `data`: requests IN, SH, XX, D1..D99, A1..A99; answers OK, E1..E9.

    `diag` names what a strict reader would not have let pass.
    """

    raw: bytes
    data: str
    request: bool
    diag: tuple[str, ...] = ()


Item = Frame | Text | Garbage


def encode(data: str, style: Style) -> bytes:
    """One frame, ready for the wire; its check always has eight digits."""
    body = data.encode("ascii")
    return b":" + body + b"#%08X" % _crc(body, style) + style.end


class Decoder:
    """One stream, either direction or both (a capture)."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._line = bytearray()
        self._garbage = GarbageRun()

    @property
    def pending(self) -> bool:
        """Whether bytes wait, rejected or unfinished; a driver calls `flush` when the line falls silent."""
        return bool(self._garbage or self._line)

    def feed(self, data: bytes) -> list[Item]:
        line, end = self._line, self._style.end
        line += data
        if end not in data and len(line) <= LINE_LIMIT:
            return []
        out: list[Item] = []
        while (at := line.find(end)) >= 0:
            size = self._shortened(at + 1, out)
            ended = bytes(line[:size])
            del line[:size]
            self._end_line(ended, out)
        self._shortened(len(line), out)
        return out

    def flush(self) -> list[Item]:
        """Silence or the end of input: a line under way is given up."""
        rest, out = bytes(self._line), list[Item]()
        self._line.clear()
        started = _STARTED.search(rest)
        at = started.start() if started else len(rest)
        self._reject(rest[:at], out)
        self._garbage.add(rest[at:], INCOMPLETE)
        return [*out, *self._garbage.take()]

    def _shortened(self, size: int, out: list[Item]) -> int:
        """The size of a line after its beginning, which is no frame whatever follows, was given up."""
        while size > LINE_LIMIT:
            self._reject(bytes(self._line[:PIECE]), out)
            del self._line[:PIECE]
            size -= PIECE
        return size

    def _end_line(self, line: bytes, out: list[Item]) -> None:
        at = line.find(b":", max(0, len(line) - FRAME_LIMIT))
        while at >= 0:
            found = _parse(line[at:], self._style)
            if found is not None:
                self._reject(line[:at], out)
                if isinstance(found, str):
                    self._garbage.add(line[at:], found)
                else:
                    out += [*self._garbage.take(), found]
                return
            at = line.find(b":", at + 1)
        self._reject(line, out)

    def _reject(self, data: bytes, out: list[Item]) -> None:
        """What is no frame, line by line: the machine's own text, or garbage."""
        for line in data.splitlines(keepends=True):
            broken = _BROKEN.search(line)
            at = broken.start() if broken else len(line)
            text = line[:at].rstrip(b"\r\n")
            if not _TEXT.fullmatch(text):
                self._garbage.add(line[:at], NOISE)
            elif self._style.strict:
                self._garbage.add(line[:at], TEXT)
            else:
                out += [*self._garbage.take(), Text(text)]
            self._garbage.add(line[at:], BAD_CRC)


def _parse(data: bytes, style: Style) -> Frame | str | None:
    """The frame that `data` is, why it is refused although its check is right, or None when it is none."""
    body, hash_, check = data[1:-1].rpartition(b"#")
    if not hash_:
        return None
    crc = _crc(body, style)
    short = check != b"%08X" % crc
    if short and check != b"%X" % crc:
        return None
    request = _REQUEST.fullmatch(body) is not None
    if request:
        word, stray = body, b""
    elif found := _ANSWER.fullmatch(body):
        word, stray = found.groups()
    else:
        return UNKNOWN_DATA
    if style.strict and (short or stray):
        return SHORT_CRC if short else STRAY_BYTES
    diag = (*(("short_crc",) if short else ()), *(("stray_bytes",) if stray else ()))
    return Frame(data, word.decode("ascii"), request, diag)


def _crc(body: bytes, style: Style) -> int:
    """CRC-32/ISO-HDLC over the data, and by one source over the `#` behind it too."""
    return crc32(body + b"#" if style.crc_includes_hash else body)
