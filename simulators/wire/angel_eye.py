"""The Angel Eye II-EX shoe's side of its wire (docs/protocols/angel-eye-ii-ex.md), on a model shoe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from simulators.models.baccarat import Baccarat, Result
from simulators.models.machine import Happening, Traps
from simulators.models.shoe import Shoe
from simulators.wire.device import Outbox, Silence, earliest

STX, ETX, ENQ, ACK, NAK = 0x02, 0x03, 0x05, 0x06, 0x15
NAK_BCC, NAK_NO_ETX, NAK_FORMAT, NAK_COMMAND, NAK_TYPE, NAK_BUSY = 0x02, 0x03, 0x11, 0x13, 0x14, 0x21

SEQUENCES: Mapping[str, str] = {
    "digits19": "123456789",
    "digits09": "0123456789",
    "hex": "0123456789ABCDEF",
    "free": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
}
"""The alphabets that are seen in public; each telegram takes the next character."""

COPIES = (0.0, 0.05, 0.1)
ANSWER_S = 0.02
MAX_COMMAND = 16

_SUIT = {"D": 1, "C": 2, "S": 3, "H": 4}
_RANK = {rank: number for number, rank in enumerate("A23456789TJQK", 1)}
_TARGET = {"player": 0, "banker": 1, "burn": 2, "first_card": 4, "burn_count": 5}
_WINNER = {"player": 1, "tie": 2, "banker": 4}


def bcc(data: bytes) -> bytes:
    """XOR-8 of `data` as two upper-case hex digits."""
    check = 0
    for byte in data:
        check ^= byte
    return b"%02X" % check


def telegram(sequence: str, code: str, data: bytes = b"") -> bytes:
    """One unsolicited telegram; the check starts behind ENQ."""
    inner = sequence.encode() + code.encode() + data + bytes((ETX,))
    return bytes((ENQ,)) + inner + bcc(inner)


def card_byte(face: str) -> int:
    return 0x80 | _SUIT[face[1]] << 4 | _RANK[face[0]]


def result_byte(result: Result) -> int:
    return 0x80 | _WINNER[result.winner] << 4 | result.banker_pair << 1 | result.player_pair


@dataclass(frozen=True, slots=True)
class Step:
    """After `wait` s a telegram of `code` and `data` is sent; with code "" the bare bytes, once."""

    wait: float
    code: str
    data: bytes = b""


def parse_script(text: str) -> list[Step]:
    """A script, one step a line: `WAIT CODE [HEX]` (a telegram) or `WAIT raw HEX`; `#` starts a comment.

    ValueError names the line.
    """
    steps = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        try:
            wait, code, data = float(words[0]), words[1], bytes.fromhex("".join(words[2:]))
        except (IndexError, ValueError):
            raise ValueError(f"script line {number}: want WAIT CODE [HEX], got {line.strip()!r}") from None
        if code != "raw" and (len(code) != 1 or code not in "SPCDdRGEeLM"):
            raise ValueError(f"script line {number}: no such telegram code {code!r}")
        steps.append(Step(wait, "" if code == "raw" else code, data))
    return steps


class AngelEye:
    """Reports every card that leaves `shoe`; with a `script` it sends that and greets nobody.

    `spacing` s lie between two telegrams at least (0: their copies may mix). `bcc_includes_stx` is the range
    that commands are checked over. `s_advances` False: the telegram after `S` carries the same sequence.
    `nak_gap` s lie between NAK and its code. Traps: per command silent, duplicate_answer, late_answer
    (value s, default 3); per telegram chatter (a stray byte run before it).
    """

    def __init__(
        self,
        shoe: Shoe,
        *,
        sequence: str = "digits19",
        bcc_includes_stx: bool = True,
        s_advances: bool = True,
        spacing: float = 0.15,
        nak_gap: float = 0.0,
        script: Iterable[Step] = (),
    ) -> None:
        self.shoe = shoe
        self.traps = Traps()
        self._silence = Silence(self.traps)
        self.bcc_includes_stx = bcc_includes_stx
        self.busy = False
        self.error: int | None = None
        """The error whose mode the shoe is in: cards are reported as drawn outside a game."""
        self._alphabet = SEQUENCES[sequence]
        self._s_advances = s_advances
        self._spacing = spacing
        self._nak_gap = nak_gap
        self._script = list(script)
        self._step_at = shoe.now + self._script[0].wait if self._script else None
        self._seen = len(shoe.happenings)
        self._out = Outbox()
        self._start(shoe.now, greet=not self._script)

    @property
    def machine(self) -> Shoe:
        return self.shoe

    # The wire

    def receive(self, data: bytes, now: float) -> None:
        self.advance(now)
        if not self.shoe.powered:
            return
        for byte in data:
            if byte == STX:
                self._command = bytearray((STX,))
            elif self._command:
                self._command.append(byte)
                self._try_command(now)

    def transmit(self, now: float) -> bytes:
        self.advance(now)
        return self._out.take(now)

    def advance(self, now: float) -> None:
        while self._step_at is not None and self._step_at <= now:
            step = self._script.pop(0)
            if step.code:
                self._send(step.code, step.data, self._step_at)
            else:
                self._out.put(self._step_at, step.data)
            self._step_at = self._step_at + self._script[0].wait if self._script else None
        self.shoe.advance(now)
        self._collect()
        if not self.shoe.powered:
            self._out.clear()

    def deadline(self) -> float | None:
        return earliest(self.shoe.deadline(), self._out.deadline(), self._step_at)

    # Back doors

    def raise_error(self, code: int) -> None:
        """The shoe goes into error mode with `code` 1..7."""
        self.error = code
        self._send("E", bytes((0xC0 | code,)), self.shoe.now)

    def cancel_error(self) -> None:
        """What the button on the shoe, or `EC`, does."""
        if self.error is not None:
            self._send("e", bytes((0x80 | self.error,)), self.shoe.now)
            self.error = None

    def change_preset(self, address: int, value: int) -> None:
        self._send("M", b"%02d%04d" % (address, value), self.shoe.now)

    def reboot(self, off_s: float = 0.0) -> None:
        self.shoe.power_cut(off_s)

    # Telegrams

    def _start(self, now: float, *, greet: bool) -> None:
        self._command = bytearray()
        self._game = Baccarat()
        self._place = self._alphabet.index("1")
        self._free_at = now
        self.error = None
        if greet:
            self._send("S", b"", now)
            self._send("P", b"", now)

    def _send(self, code: str, data: bytes, now: float) -> None:
        frame = telegram(self._alphabet[self._place], code, data)
        if code != "S" or self._s_advances:
            self._place = (self._place + 1) % len(self._alphabet)
        at = max(now, self._free_at)
        self._free_at = at + self._spacing
        if trap := self.traps.sprung("chatter"):
            self._out.put(at, trap.value or b"\x00\xff\x06")
        for delay in COPIES:
            self._out.put(at + delay, frame)

    def _collect(self) -> None:
        happenings = self.shoe.happenings
        while self._seen < len(happenings):
            self._seen += 1
            self._notice(happenings[self._seen - 1])

    def _notice(self, happening: Happening) -> None:
        data, at = happening.data, happening.at
        match happening.kind:
            case "booted":
                self._out.clear()
                self._start(at, greet=True)
            case "new_shoe":
                self._start(max(at, self._free_at), greet=True)
            case "cutting_card":
                self._send("C", b"", at)
            case "lock" if data["by"] == "key":
                self._send("L", bytes((0x80 | data["locked"],)), at)
            case "drawn" if data["face"] is None:
                self.error = 1
                self._send("E", bytes((0xC1,)), at)
            case "drawn" if self.error is not None:
                self._send("d", bytes((0x90 | self.error, card_byte(data["face"]))), at)
            case "drawn":
                face = data["face"]
                seat, result = self._game.take(face[0])
                first = 0x80 | _TARGET[seat.place] << 4 | seat.index
                self._send("D", bytes((first, card_byte(face))), at)
                if result is not None:
                    self._send("G", bytes((result_byte(result),)), at)

    # Commands

    def _try_command(self, now: float) -> None:
        """Answer once ETX and two more bytes, or too many bytes, are there."""
        command = bytes(self._command)
        end = command.find(ETX)
        if end < 0:
            if len(command) >= MAX_COMMAND:
                self._finish(NAK_NO_ETX, now)
        elif len(command) == end + 3:
            self._free_at = max(self._free_at, now + 2 * ANSWER_S)
            self._finish(self._judge(command, end), now)

    def _judge(self, command: bytes, end: int) -> int | None:
        """Carry a whole command out; the NAK code when it is refused."""
        if bcc(command[0 if self.bcc_includes_stx else 1 : end + 1]) != command[end + 1 :]:
            return NAK_BCC
        if end != 7:
            return NAK_FORMAT
        kind, sort, value = command[1:3], command[3:5], command[5:7]
        if kind != b"OP":
            return NAK_COMMAND
        if sort not in (b"LK", b"EC", b"GP"):
            return NAK_TYPE
        if not value.isdigit() or (sort == b"LK" and value not in (b"01", b"02")):
            return NAK_FORMAT
        if self.busy:
            return NAK_BUSY
        if sort == b"LK":
            self.shoe.set_lock(value == b"02")
        elif sort == b"EC" and self.error == int(value):
            self.cancel_error()
        return None

    def _finish(self, nak: int | None, now: float) -> None:
        self._command.clear()
        if self._silence.covers(now):
            return
        at = now + ANSWER_S
        if trap := self.traps.sprung("late_answer"):
            at += 3.0 if trap.value is None else float(trap.value)
        for _ in range(2 if self.traps.sprung("duplicate_answer") else 1):
            if nak is None:
                self._out.put(at, bytes((ACK,)))
            elif self._nak_gap:
                self._out.put(at, bytes((NAK,)))
                self._out.put(at + self._nak_gap, bytes((nak,)))
            else:
                self._out.put(at, bytes((NAK, nak)))
