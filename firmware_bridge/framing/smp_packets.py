"""SMP packets as USB transfers (docs/protocols/managed.md, section 3): no marks, no check bytes.

One packet a transfer is the rule. A device that splits a packet, or forgets the zero-length packet so that
two arrive as one, is understood all the same: the header tells the length.
"""

from __future__ import annotations

from firmware_bridge.framing import Garbage, GarbageRun
from firmware_bridge.framing.smp_console import PACKET_LIMIT, UNFINISHED, Packet

HEADER = 8
BAD_HEADER = "bad header"


def encode(packet: bytes) -> bytes:
    """The packet itself, if it may be one."""
    if not HEADER <= len(packet) <= PACKET_LIMIT:
        raise ValueError(f"an SMP packet has {HEADER}..{PACKET_LIMIT} bytes, not {len(packet)}")
    return packet


class Decoder:
    """One direction. Each `feed` is one transfer; a new one that is whole ends an older unfinished packet."""

    def __init__(self) -> None:
        self._part = b""
        self._garbage = GarbageRun()

    @property
    def garbage_pending(self) -> bool:
        """Whether rejected bytes wait to be told; a driver calls `settle` when the line falls silent."""
        return bool(self._garbage)

    def feed(self, data: bytes) -> list[Packet | Garbage]:
        out: list[Packet | Garbage] = []
        if self._part and _size(data) == len(data):
            self._abandon()
        rest = self._part + data
        at = 0
        while len(rest) - at >= HEADER:
            size = _size(rest[at : at + HEADER])
            if size is None:
                self._garbage.add(rest[at:], BAD_HEADER)
                at = len(rest)
            elif size > len(rest) - at:
                break
            else:
                out += self._garbage.take()
                out.append(Packet(rest[at : at + size]))
                at += size
        self._part = rest[at:]
        return out

    def settle(self) -> list[Garbage]:
        """The rejected bytes so far as one run; a packet under way is kept."""
        return self._garbage.take()

    def flush(self) -> list[Packet | Garbage]:
        """End of input: a packet under way is garbage."""
        self._abandon()
        return [*self._garbage.take()]

    def _abandon(self) -> None:
        self._garbage.add(self._part, UNFINISHED)
        self._part = b""


def _size(data: bytes) -> int | None:
    """How many bytes the packet at the start of `data` has; None when that is no header."""
    if len(data) < HEADER or data[0] & 7 > 3 or data[0] >> 3 & 3 > 1:
        return None
    size = HEADER + int.from_bytes(data[2:4], "big")
    return size if size <= PACKET_LIMIT else None
