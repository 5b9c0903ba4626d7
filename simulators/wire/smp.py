"""SMP's packets as a device has them (docs/protocols/managed.md, section 1): requests, answers, codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any

from simulators.wire.device import Refused
from simulators.wire.images import IMAGE, in_version_0

OS, DEVICE, EVENTS, SHUFFLER, SHOE, READER = 0, 64, 65, 66, 67, 68
READ, WRITE = 0, 2
UNKNOWN, BAD_BODY, WRONG_STATE, BUSY, TOKEN, OPEN, JAM, SETTINGS, NO_CARDS = range(1, 10)
NOT_SUPPORTED = 8
INVALID = 3
"""Group 0 codes are MCUmgr's: 3 invalid value, 8 not supported."""
MAX_BODY = 1024
WRITES_KEPT = 4
REQUESTS_KEPT = 128

_HEADER = Struct("!BBHHBB")

Body = Mapping[str, Any]


@dataclass(slots=True)
class Request:
    """One packet of a host, with its body as it came."""

    version: int
    op: int
    group: int
    sequence: int
    command: int
    body: bytes

    @classmethod
    def of(cls, packet: bytes) -> Request | None:
        """None when it is no request of version 0 or 1."""
        if len(packet) < _HEADER.size:
            return None
        first, _, length, group, sequence, command = _HEADER.unpack_from(packet)
        version, op, body = first >> 3 & 3, first & 7, packet[_HEADER.size :]
        if version > 1 or op not in (READ, WRITE) or length != len(body) or length > MAX_BODY:
            return None
        return cls(version, op, group, sequence, command, body)

    @property
    def key(self) -> tuple[int, int, int]:
        return self.group, self.command, self.op

    @property
    def again(self) -> tuple[int, int, int, bytes]:
        """What the same write has in common when it is sent once more."""
        return self.group, self.command, self.sequence, self.body

    def answered(self, body: bytes) -> bytes:
        """The packet that answers it."""
        first = self.version << 3 | (self.op + 1)
        return _HEADER.pack(first, 0, len(body), self.group, self.sequence, self.command) + body

    def refused(self, why: Refused, *, old_errors: bool) -> Body:
        """In the form of version 0 there are general codes alone; MCUmgr tells those so in either version."""
        if why.general or self.group == OS:
            return {"rc": why.rc}
        if old_errors or not self.version:
            return {"rc": in_version_0(why.rc) if self.group == IMAGE else why.rc}
        return {"err": {"group": self.group, "rc": why.rc}}


class Written:
    """The answers to the last writes: the same write again, soon after, moves nothing and is answered so."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int, int, bytes], tuple[int, bytes]] = {}

    def answer(self, request: Request, number: int) -> bytes | None:
        """To the request that is the `number`-th of all."""
        kept = self._kept.get(request.again)
        if kept is not None and number - kept[0] > REQUESTS_KEPT:
            del self._kept[request.again]
            return None
        return None if kept is None else kept[1]

    def keep(self, request: Request, number: int, packet: bytes) -> None:
        self._kept[request.again] = (number, packet)
        if len(self._kept) > WRITES_KEPT:
            del self._kept[next(iter(self._kept))]


def number(body: Body, key: str, default: int | None = None) -> int:
    """An unsigned integer of a body. Raises Refused(BAD_BODY) when it is missing or no such number."""
    value = body.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Refused(BAD_BODY)
    return value


def check_common(wanted: Body) -> None:
    """What settings of any device must be, where given. Raises Refused(SETTINGS)."""
    if not isinstance(wanted.get("recognition", True), bool):
        raise Refused(SETTINGS)
    for key, top in (("decks", 12), ("cards_per_deck", 78)):
        if key in wanted:
            value = wanted[key]
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= top:
                raise Refused(SETTINGS)
