"""SMP console framing, the device's side (docs/protocols/managed.md, section 2)."""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64, crc_hqx

RAW_PER_LINE = 93
MAX_LINE = 127
MAX_PACKET = 1024 + 8
_FIRST, _NEXT = b"\x06\x09", b"\x04\x14"


def lines(packet: bytes) -> bytes:
    """A packet as console lines; the check is CRC-16/XMODEM of the packet."""
    raw = (len(packet) + 2).to_bytes(2, "big") + packet + crc_hqx(packet, 0).to_bytes(2, "big")
    out = _FIRST + b2a_base64(raw[:RAW_PER_LINE])
    for start in range(RAW_PER_LINE, len(raw), RAW_PER_LINE):
        out += _NEXT + b2a_base64(raw[start : start + RAW_PER_LINE])
    return out


class ConsoleReader:
    """Finds packets in a byte stream. Memory is bounded; what is no packet is counted in `bad`.

    A start mark is taken anywhere in a line, the last one wins: base64 never contains it, and half a
    frame of a host that died must not swallow the first frame of the next one.
    """

    def __init__(self) -> None:
        self.bad = 0
        self._line = b""
        self._raw: bytearray | None = None

    def feed(self, data: bytes) -> list[bytes]:
        *whole, self._line = (self._line + data).split(b"\n")
        if len(self._line) > MAX_LINE:
            self._line = self._line[-MAX_LINE:]
        return [packet for line in whole if (packet := self._take_line(line))]

    def _take_line(self, line: bytes) -> bytes | None:
        first, further = line.rfind(_FIRST), line.rfind(_NEXT)
        if first < 0 and further < 0:
            return None
        if first > further:
            self.bad += self._raw is not None
            self._raw = bytearray()
        try:
            return self._take_text(line[max(first, further) + 2 :])
        except (Error, ValueError):
            self.bad += 1
            self._raw = None
            return None

    def _take_text(self, text: bytes) -> bytes | None:
        if self._raw is None or len(text) + 3 > MAX_LINE or len(text) % 4:  # Python 3.11 takes a = too many
            raise ValueError
        self._raw += a2b_base64(text, strict_mode=True)
        raw = self._raw
        if len(raw) < 2:
            raise ValueError
        end = 2 + int.from_bytes(raw[:2], "big")
        if end - 4 > MAX_PACKET or len(raw) > end:
            raise ValueError
        if len(raw) < end:
            return None
        packet = bytes(raw[2 : end - 2])
        if crc_hqx(packet, 0) != int.from_bytes(raw[end - 2 :], "big"):
            raise ValueError
        self._raw = None
        return packet
