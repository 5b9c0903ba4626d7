"""A device's serial port: bytes take their time, and at another line rate they are other bytes."""

from __future__ import annotations

from simulators.wire.device import Outbox, earliest

FRAME_BITS = 10
"""8N1: start bit, eight data bits, stop bit."""


class Uart:
    """8N1 at `line_rate` bit/s, both ways at once. Pieces follow each other; one is there with its last byte.

    Not `paced`: all is there at once, for worlds that have no time to lose.
    """

    def __init__(self, line_rate: int, *, paced: bool = True) -> None:
        self.line_rate = line_rate
        self._into, self._out = Outbox(), Outbox()
        self.paced = paced

    @property
    def byte_s(self) -> float:
        """Seconds a byte takes; 0 when it is not paced."""
        return self._out.byte_s

    @property
    def paced(self) -> bool:
        return self._out.byte_s > 0

    @paced.setter
    def paced(self, paced: bool) -> None:
        self._into.byte_s = self._out.byte_s = FRAME_BITS / self.line_rate if paced else 0.0

    def come(self, data: bytes, now: float) -> None:
        """The host begins to send `data`."""
        self._into.put(now, data)

    def heard(self, now: float) -> list[tuple[float, bytes]]:
        """What has come up to `now`, each piece with its time."""
        return self._into.arrivals(now) if self._into.waiting else []

    def say(self, at: float, data: bytes) -> None:
        """Begin to send `data` at `at`, or when what was begun before is through."""
        self._out.put(at, data)

    def said(self, now: float) -> list[bytes]:
        """The pieces that are through and nobody has fetched yet."""
        return self._out.pieces(now)

    def deadline(self) -> float | None:
        into = self._into.deadline()
        return self._out.deadline() if into is None else earliest(into, self._out.deadline())

    def clear(self) -> None:
        """What is under way either way is lost."""
        self._into.clear()
        self._out.clear()


def misheard(data: bytes, sent: int, read: int) -> bytes:
    """What a port set to `read` bit/s makes of bytes sent back to back at `sent` bit/s.

    It waits for a falling edge and looks into the middle of each bit from there; a byte without its stop
    bit is handed on too, as serial drivers do.
    """
    bits = [bit for byte in data for bit in (0, *(byte >> place & 1 for place in range(8)), 1)]
    out, at = bytearray(), 0.0

    def level(time: float) -> int:
        place = int(time * sent)
        return bits[place] if place < len(bits) else 1

    for place, bit in enumerate(bits):
        edge = place / sent
        if bit or (place and not bits[place - 1]) or edge < at or level(edge + 0.5 / read):
            continue
        out.append(sum(level(edge + (1.5 + number) / read) << number for number in range(8)))
        at = edge + 9.5 / read
    return bytes(out)
