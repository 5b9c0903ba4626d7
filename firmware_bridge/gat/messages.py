"""What is said over serial GAT v3.50 (docs/protocols/gat.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from firmware_bridge.framing import gat as wire
from firmware_bridge.framing.gat import Frame, encode

LEVEL = 0xBA
"""The level of requests with a function's name; the documents know 01 (seeded report) and 00 (none) too."""
FUNCTIONS = "Get Special Functions"
COMPONENT = "Component"
NO_SALT = "(none)"

IDLE, REQUESTED, CALCULATING, FINISHED, ERROR = "idle", "requested", "calculating", "finished", "error"
_STATES = (REQUESTED, FINISHED, CALCULATING, ERROR)


class Format(IntEnum):
    """The bits of SR; LARQ asks for one of them."""

    TEXT = 1
    XML = 2


@dataclass(frozen=True, slots=True)
class Status:
    """SR. `results`: there is a report to be read; `formats` may be empty on old devices."""

    version: str
    state: str
    results: bool
    formats: tuple[Format, ...]

    @property
    def running(self) -> bool:
        return self.state in {REQUESTED, CALCULATING}

    @property
    def best(self) -> Format:
        return Format.XML if Format.XML in self.formats else Format.TEXT


@dataclass(frozen=True, slots=True)
class Last:
    """LASR: the level of the last authentication, and seconds since then."""

    level: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Part:
    """LARR: frame `number` of a report."""

    number: int
    data: bytes
    error: bool
    last: bool


@dataclass(frozen=True, slots=True)
class Taken:
    """IACR. `acknowledged` false is a NAK."""

    acknowledged: bool
    started: bool
    level_error: bool


def read(frame: Frame) -> Status | Last | Part | Taken | None:
    """What an answer says; None for a request. Bits without a meaning are ignored."""
    data = frame.data
    match frame.code:
        case wire.SR:
            return _status(data)
        case wire.LASR:
            return Last(data[0], int.from_bytes(data[1:5], "big"))
        case wire.LARR:
            return Part(int.from_bytes(data[1:3], "big"), data[3:], bool(data[0] & 1), bool(data[0] & 2))
        case wire.IACR:
            return Taken(bool(data[0] & 1), bool(data[0] & 2), bool(data[0] & 4))
    return None


def _status(data: bytes) -> Status:
    """The two state bits say `finished` of an idle device too: without results there is nothing finished."""
    flags, results = data[2], bool(data[2] & 2)
    state = _STATES[flags >> 2 & 3]
    if state == FINISHED and flags & 1:
        state = CALCULATING
    elif state == FINISHED and not results:
        state = IDLE
    formats = tuple(f for f in Format if data[3] & f)
    return Status(f"{data[0]:x}.{data[1]:02x}", state, results, formats)


def text_of(report: bytes) -> str:
    """A report as text. Some devices write UTF-16; what is no UTF-8 is taken as Latin-1: nothing is lost."""
    if report.startswith((b"\xff\xfe", b"\xfe\xff")):
        return report.decode("utf-16", "replace")
    if len(report) > 1 and 0 in report[:2]:
        return report.decode("utf-16-be" if report[0] == 0 else "utf-16-le", "replace")
    try:
        return report.decode("utf-8-sig")
    except UnicodeDecodeError:
        return report.decode("latin-1")


def initiate(parameter: str) -> bytes:
    """The request for a calculation; `parameter` with its parts separated by tabs. Raises ValueError."""
    return encode(wire.IACQ, bytes((LEVEL, 0)) + parameter.encode("latin-1"))
