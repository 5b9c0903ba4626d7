"""Frames of serial GAT v3.50 (docs/protocols/gat.md): code, length of the whole frame, data, CRC-16/MODBUS.

There is no start mark. A frame begins where a code and a length that fits it stand; its check bytes, high
byte first, decide. Silence never ends a frame: it only tells that a begun one will not be finished.
"""

from __future__ import annotations

from dataclasses import dataclass

from fastcrc import crc16

from firmware_bridge.framing import NOISE, Garbage, GarbageRun

SQ, LASQ, LARQ, IACQ = 0x01, 0x02, 0x03, 0x04
SR, LASR, LARR, IACR = 0x81, 0x82, 0x83, 0x84
OVERHEAD = 4
"""Code, length and two check bytes."""
LENGTHS = {
    SQ: (4, 4), LASQ: (4, 4), LARQ: (7, 7), IACQ: (5, 255), SR: (8, 8), LASR: (9, 9), LARR: (7, 255),
    IACR: (5, 5),
}  # fmt: skip
"""Shortest and longest whole frame by code, bytes."""

BAD_LENGTH = "bad length"
BAD_CRC = "bad CRC"
INCOMPLETE = "incomplete frame"


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame with right check bytes; `raw` is all of it."""

    raw: bytes
    code: int
    data: bytes


def encode(code: int, data: bytes = b"") -> bytes:
    """Raises ValueError when that is no frame."""
    shortest, longest = LENGTHS.get(code, (0, 0))
    size = OVERHEAD + len(data)
    if not shortest <= size <= longest:
        raise ValueError(f"a GAT frame {code:02X} has {shortest}..{longest} bytes, not {size}")
    body = bytes((code, size)) + data
    return body + crc16.modbus(body).to_bytes(2, "big")


class Decoder:
    """One stream, either direction or both. Neighbouring rejected bytes form one run.

    A false start waits for bytes that never come: a driver calls `flush` when the line falls silent, and
    what stands behind the false start is read then.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._garbage = GarbageRun()

    @property
    def pending(self) -> bool:
        """Whether bytes wait, rejected or unfinished."""
        return bool(self._garbage or self._buffer)

    def feed(self, data: bytes) -> list[Frame | Garbage]:
        self._buffer += data
        return self._scan()

    def flush(self) -> list[Frame | Garbage]:
        """Silence or the end of input: what is under way is given up, a frame may stand behind its start."""
        out: list[Frame | Garbage] = []
        while self._buffer:
            self._garbage.add(self._buffer[:1], INCOMPLETE)
            del self._buffer[:1]
            out += self._scan()
        return [*out, *self._garbage.take()]

    def _scan(self) -> list[Frame | Garbage]:
        buffer = self._buffer
        out: list[Frame | Garbage] = []
        at, end = 0, len(buffer)
        while at < end:
            parsed = _parse(buffer, at)
            if parsed is None:
                break
            if isinstance(parsed, str):
                self._garbage.add(buffer[at : at + 1], parsed)
                at += 1
                continue
            out += self._garbage.take()
            out.append(parsed)
            at += len(parsed.raw)
        del buffer[:at]
        return out


def _parse(buffer: bytearray, at: int) -> Frame | str | None:
    """The frame that starts at `at`, the reason why none does, or None when more bytes must tell."""
    code = buffer[at]
    if code not in LENGTHS:
        return NOISE
    if at + 1 >= len(buffer):
        return None
    size = buffer[at + 1]
    shortest, longest = LENGTHS[code]
    if not shortest <= size <= longest:
        return BAD_LENGTH
    if at + size > len(buffer):
        return None
    raw = bytes(buffer[at : at + size])
    if crc16.modbus(raw[:-2]) != int.from_bytes(raw[-2:], "big"):
        return BAD_CRC
    return Frame(raw, code, raw[2:-2])
