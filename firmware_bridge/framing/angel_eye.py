"""Frames of the Angel Eye II-EX: shoe to host telegrams, host to shoe commands, ACK and NAK.

Confidence A for the layout: ENQ seq code data ETX BCC, STX class type number ETX BCC. The end of a frame is
found by its format, because a data byte with bit 7 clear may equal ETX or ENQ.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from firmware_bridge.framing import NOISE, Garbage, GarbageRun

STX, ETX, ENQ, ACK, NAK = 0x02, 0x03, 0x05, 0x06, 0x15

DATA_LENGTH = {"S": 0, "P": 0, "C": 0, "D": 2, "d": 2, "R": 2, "G": 1, "E": 1, "e": 1, "L": 1, "M": 6}
"""Data bytes by code; other codes carry 0..6 and end at their first ETX."""

MAX_DATA = 6
COMMAND_LENGTH = 10

BAD_BCC = "bad BCC"
LOWER_BCC = "lower-case BCC"
MISSING_ETX = "missing ETX"
ENQ_INSIDE = "ENQ inside a frame"
BAD_COMMAND = "bad command format"
NAK_ALONE = "NAK without a code"
INCOMPLETE = "incomplete frame"

_ETX_PLACE = 7
_COMMAND_FORMAT = {
    **dict.fromkeys((3, 4), bytes(range(ord("A"), ord("Z") + 1))),
    **dict.fromkeys((5, 6), b"0123456789"),
    _ETX_PLACE: bytes((ETX,)),
}
"""Which bytes a command has at the places behind its class `OP`."""

_FRAME_START = re.compile(rb"[\x02\x05]")
_ANY_START = re.compile(rb"[\x02\x05\x06\x15]")


@dataclass(frozen=True, slots=True)
class Telegram:
    """An ENQ frame. `seq` and `code` are one character each; the payload is not judged here."""

    raw: bytes
    seq: str
    code: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """An STX frame from the shoe (the answer to a read), laid out like a telegram."""

    raw: bytes
    seq: str
    code: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Command:
    """A host command: `type` LK, EC or GP, `number` 0..99; both BCC ranges are accepted and told apart."""

    raw: bytes
    type: str
    number: int
    bcc_includes_stx: bool


@dataclass(frozen=True, slots=True)
class Ack:
    raw: bytes = b"\x06"


@dataclass(frozen=True, slots=True)
class Nak:
    """A refusal: `code` as the shoe sent it (02 BCC, 21 busy, ...)."""

    raw: bytes
    code: int


_ACK = Ack()
Frame = Telegram | Answer | Command | Ack | Nak


def bcc(data: bytes | bytearray) -> bytes:
    """XOR-8 as two upper-case hex characters."""
    check = 0
    for byte in data:
        check ^= byte
    return b"%02X" % check


def encode_command(type: str, number: int, bcc_includes_stx: bool) -> bytes:  # noqa: A002 - the document's word
    """A host command of class OP; `number` 0..99."""
    if not re.fullmatch("[A-Z]{2}", type):
        raise ValueError(f"a command type is two capital letters, not {type!r}")
    if not 0 <= number <= 99:
        raise ValueError(f"a command number is 0..99, not {number}")
    body = b"\x02OP%s%02d\x03" % (type.encode("ascii"), number)
    return body + bcc(body if bcc_includes_stx else body[1:])


class Decoder:
    """One stream, either direction or both (a capture).

    Neighbouring rejected bytes form one run, reported when a frame follows or at `flush`.
    Inside such a run 06 and 15 are noise unless `awaiting_answer`; outside they are always told. The
    decoder sets it when it sees a host command and clears it at an ACK or NAK; a driver sets it when it
    sends a command and clears it when it gives up.
    """

    def __init__(self) -> None:
        self.awaiting_answer = False
        self._buffer = bytearray()
        self._garbage = GarbageRun()

    @property
    def pending(self) -> bool:
        """Whether bytes wait, rejected or unfinished; a driver calls `flush` when the line falls silent."""
        return bool(self._garbage or self._buffer)

    @property
    def nak_open(self) -> bool:
        """Whether a NAK waits for its code."""
        return self._buffer[:1] == b"\x15"

    def feed(self, data: bytes) -> list[Frame | Garbage]:
        if self._garbage and not (self._buffer or self.awaiting_answer or _FRAME_START.search(data)):
            self._garbage.add(data)  # noise amid noise, the usual case in a long dump of it
            return []
        self._buffer += data
        return self._scan()

    def flush(self) -> list[Frame | Garbage]:
        """Silence or the end of input: what is under way is given up, a frame may stand behind its start."""
        out: list[Frame | Garbage] = []
        while self._buffer:
            self._garbage.add(self._buffer[:1], NAK_ALONE if self.nak_open else INCOMPLETE)
            del self._buffer[:1]
            out += self._scan()
        return [*out, *self._garbage.take()]

    def _scan(self) -> list[Frame | Garbage]:
        buffer = self._buffer
        out: list[Frame | Garbage] = []
        at, end = 0, len(buffer)
        while at < end:
            pattern = _FRAME_START if self._garbage and not self.awaiting_answer else _ANY_START
            found = pattern.search(buffer, at)
            start = found.start() if found else end
            if start > at:
                self._garbage.add(buffer[at:start])
                at = start
                continue
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
            if isinstance(parsed, Command):
                self.awaiting_answer = True
            elif isinstance(parsed, Ack | Nak):
                self.awaiting_answer = False
        del buffer[:at]
        return out


def _parse(buffer: bytearray, at: int) -> Frame | str | None:
    """The frame that starts at `at`, the reason why none does, or None when more bytes must tell."""
    first = buffer[at]
    if first == ACK:
        return _ACK
    if first == NAK:
        return _nak(buffer, at)
    if first == STX:
        head = bytes(buffer[at + 1 : at + 3])
        if head == b"OP":
            return _command(buffer, at)
        if head in (b"", b"O"):
            return None
    return _telegram(buffer, at)


def _nak(buffer: bytearray, at: int) -> Nak | str | None:
    if at + 1 >= len(buffer):
        return None
    code = buffer[at + 1]
    return NAK_ALONE if code == ENQ else Nak(bytes(buffer[at : at + 2]), code)


def _telegram(buffer: bytearray, at: int) -> Telegram | Answer | str | None:
    size = len(buffer) - at
    if size < 2:
        return None
    if not 0x21 <= buffer[at + 1] <= 0x7E:
        return ENQ_INSIDE if buffer[at + 1] == ENQ else NOISE
    if size < 3:
        return None
    code = chr(buffer[at + 2])
    if not (code.isascii() and code.isalpha()):
        return ENQ_INSIDE if code == "\x05" else NOISE
    length = DATA_LENGTH.get(code)
    if length is None:
        limit = at + 3 + MAX_DATA + 1
        etx = buffer.find(ETX, at + 3, limit)
        enq = buffer.find(ENQ, at + 3, limit if etx < 0 else etx)
        if enq >= 0:
            return ENQ_INSIDE
        if etx < 0:
            return MISSING_ETX if len(buffer) >= limit else None
    else:
        etx = at + 3 + length
        if code == "M" and ENQ in buffer[at + 3 : etx]:
            return ENQ_INSIDE  # its data are text
        if len(buffer) <= etx:
            return None
        if buffer[etx] != ETX:
            return ENQ_INSIDE if ENQ in buffer[at + 3 : etx + 1] else MISSING_ETX
    if len(buffer) < etx + 3:
        return _early(buffer, etx)
    wrong = _check(bytes(buffer[etx + 1 : etx + 3]), bcc(buffer[at + 1 : etx + 1]))
    if wrong is not None:
        return wrong
    kind = Telegram if buffer[at] == ENQ else Answer
    return kind(bytes(buffer[at : etx + 3]), chr(buffer[at + 1]), code, bytes(buffer[at + 3 : etx]))


def _command(buffer: bytearray, at: int) -> Command | str | None:
    """Judged from left to right: the first offending byte gives the reason, however the bytes came."""
    frame = bytes(buffer[at : at + COMMAND_LENGTH])
    for place, byte in enumerate(frame):
        if byte == ENQ:
            return ENQ_INSIDE
        if place in _COMMAND_FORMAT and byte not in _COMMAND_FORMAT[place]:
            return MISSING_ETX if place == _ETX_PLACE else BAD_COMMAND
    if len(frame) < COMMAND_LENGTH:
        return None
    inside, outside, text = bcc(frame[:8]), bcc(frame[1:8]), frame[8:]
    if text not in (inside, outside):
        return LOWER_BCC if text.upper() in (inside, outside) else BAD_BCC
    return Command(frame, frame[3:5].decode("ascii"), int(frame[5:7]), text == inside)


def _early(buffer: bytearray, etx: int) -> str | None:
    """A new ENQ where check bytes belong ends the frame at once."""
    return ENQ_INSIDE if buffer[etx + 1 : etx + 2] == b"\x05" else None


def _check(text: bytes, right: bytes) -> str | None:
    if text == right:
        return None
    if text.upper() == right:
        return LOWER_BCC
    return ENQ_INSIDE if ENQ in text else BAD_BCC
