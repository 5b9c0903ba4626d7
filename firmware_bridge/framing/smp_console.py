"""SMP console framing on a serial line (docs/protocols/managed.md, section 2).

A packet travels as base64 lines, `06 09` first and `04 14` after it; other lines are text of the device.
"""

from __future__ import annotations

import binascii
import re

from firmware_bridge.framing import NOISE, Garbage, GarbageRun
from firmware_bridge.frozen import value

FIRST, NEXT = b"\x06\x09", b"\x04\x14"
PACKET_LIMIT = 8 + 1024
"""Header and body, bytes."""
LINE_LIMIT = 128
"""Marker and base64, bytes; one more than the longest line, for a carriage return."""
TEXT_LIMIT = 256
"""Longer text comes in pieces of this many bytes."""
RAW_PER_LINE = 93

BAD_BASE64 = "bad base64"
BAD_LENGTH = "bad length"
BAD_CRC = "bad CRC"
NO_START = "continuation without a start"
UNFINISHED = "unfinished packet"
TOO_LONG = "line too long"

_END = re.compile(rb"\n|\x06\x09|\x04\x14")
_UNPRINTABLE = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")


@value
class Packet:
    """A whole SMP packet whose CRC is right."""

    data: bytes


@value
class Text:
    """A line the device printed between frames, without its line end."""

    data: bytes


Frame = Packet | Text


def encode(packet: bytes) -> bytes:
    """All lines of one packet, ready for the wire."""
    if not 8 <= len(packet) <= PACKET_LIMIT:
        raise ValueError(f"an SMP packet has 8..{PACKET_LIMIT} bytes, not {len(packet)}")
    whole = (len(packet) + 2).to_bytes(2, "big") + packet + binascii.crc_hqx(packet, 0).to_bytes(2, "big")
    pieces = [whole[at : at + RAW_PER_LINE] for at in range(0, len(whole), RAW_PER_LINE)]
    return b"".join(
        (NEXT if number else FIRST) + binascii.b2a_base64(piece) for number, piece in enumerate(pieces)
    )


class Decoder:
    """One direction of a line. A marker inside other bytes starts a frame line, so a lost line end heals."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._scanned = 0
        self._spoilt = False  # the rest of a line that was cut off as too long
        self._packet = bytearray()
        self._lines = GarbageRun()  # the lines of `_packet` as they came, should it turn out to be none
        self._garbage = GarbageRun()

    @property
    def garbage_pending(self) -> bool:
        """Whether rejected bytes wait to be told; a driver calls `settle` when the line falls silent."""
        return bool(self._garbage)

    def feed(self, data: bytes) -> list[Frame | Garbage]:
        line = self._line
        line += data
        if data.isalnum() and len(line) <= LINE_LIMIT:
            return []  # the usual drip of base64: it neither ends nor overfills a line
        out: list[Frame | Garbage] = []
        while self._line:
            head = 2 if self._line.startswith((FIRST, NEXT)) else 0
            limit = LINE_LIMIT if head else TEXT_LIMIT
            found = _END.search(self._line, max(head, self._scanned), limit + 2)  # never all that came
            end = found.start() if found else len(self._line)
            if end > limit:
                self._end_line(self._cut(limit), out, whole=False)
            elif found is None:
                self._scanned = max(0, len(self._line) - 1)
                break
            elif self._line[end] == 0x0A:
                self._end_line(self._cut(end + 1), out, whole=True)
                self._spoilt = False
            else:
                self._end_line(self._cut(end), out, whole=False)
                self._spoilt = False
        return out

    def settle(self) -> list[Garbage]:
        """The rejected bytes so far as one run; a packet under way is kept."""
        return self._garbage.take()

    def flush(self) -> list[Frame | Garbage]:
        """End of input: an open text line is told, a packet under way is garbage."""
        out: list[Frame | Garbage] = []
        if self._line:
            self._end_line(self._cut(len(self._line)), out, whole=False)
        self._abandon()
        self._spoilt = False
        return [*out, *self._garbage.take()]

    def _cut(self, size: int) -> bytes:
        line = bytes(self._line[:size])
        del self._line[:size]
        self._scanned = 0
        return line

    def _end_line(self, line: bytes, out: list[Frame | Garbage], *, whole: bool) -> None:
        """Judge one line; `whole` when it ended with its line feed."""
        if line.startswith(FIRST):
            self._abandon()
        if line.startswith((FIRST, NEXT)):
            if whole:
                self._piece(line, out)
            else:
                self._spoilt = len(line) >= LINE_LIMIT
                self._reject(line, TOO_LONG if self._spoilt else UNFINISHED)
        elif self._spoilt or _UNPRINTABLE.search(line):
            self._garbage.add(line, NOISE)
        elif text := line.rstrip(b"\r\n"):
            out += self._garbage.take()
            out.append(Text(text))

    def _piece(self, line: bytes, out: list[Frame | Garbage]) -> None:
        text = line[2:].rstrip(b"\r\n")
        try:
            if len(text) % 4 or text.endswith(b"==="):  # Python before 3.13 takes too much padding
                raise binascii.Error
            raw = binascii.a2b_base64(text, strict_mode=True)
        except binascii.Error:
            return self._reject(line, BAD_BASE64)
        if line.startswith(NEXT) and not self._packet:
            return self._reject(line, NO_START)
        self._packet += raw
        self._lines.add(line)
        have, need = len(self._packet) - 2, int.from_bytes(self._packet[:2], "big")
        if have < 0 or not 10 <= need <= PACKET_LIMIT + 2 or have > need:
            return self._reject(b"", BAD_LENGTH)
        if have < need:
            return None
        packet = bytes(self._packet[2:-2])
        if binascii.crc_hqx(packet, 0) != int.from_bytes(self._packet[-2:], "big"):
            return self._reject(b"", BAD_CRC)
        out += self._garbage.take()
        out.append(Packet(packet))
        self._packet.clear()
        self._lines.clear()
        return None

    def _reject(self, line: bytes, reason: str) -> None:
        """The packet under way and `line` are garbage for one reason."""
        self._packet.clear()
        self._lines.add(line)
        for run in self._lines.take():
            self._garbage.add(run.data, reason, run.count)

    def _abandon(self) -> None:
        if self._lines:
            self._reject(b"", UNFINISHED)
