"""The Angel Eye II-EX shoe's side of its wire (docs/protocols/angel-eye-ii-ex.md), on a model shoe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from simulators.models.baccarat import Baccarat, Result
from simulators.models.machine import Happening, Trap, Traps
from simulators.models.shoe import Shoe
from simulators.wire.device import Silence, copies, damaged, earliest, lateness
from simulators.wire.uart import Uart

STX, ETX, ENQ, ACK, NAK = 0x02, 0x03, 0x05, 0x06, 0x15
LINE_RATE = 4800
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
"""From the last byte of a command to the first of its answer; the documents allow 3 s."""
NAK_GAP_S = 0.12
"""How far a NAK and its code may lie apart."""
REBOOT_S = 0.2
UNREAD, OVERDRAW = 1, 2
"""Error codes."""
STARTS = ("alone", "twice", "cut")
"""`S` without a cutting card before it, twice in a row, or behind `C`."""
MAX_COMMAND = 16

_SUIT = {"D": 1, "C": 2, "S": 3, "H": 4}
_RANK = {rank: number for number, rank in enumerate("A23456789TJQK", 1)}
_COMMANDS = {b"LK": "lock", b"EC": "clear-fault", b"GP": "confirm"}
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


def _name(command: bytes) -> str:
    """The command as `cutcard send` names it."""
    return "unlock" if command[3:7] == b"LK01" else _COMMANDS.get(command[3:5], "unknown")


class AngelEye:
    """Reports every card that leaves `shoe`; with a `script` it sends that and greets nobody.

    `spacing` s lie between two telegrams at least (0: their copies may mix). `bcc_includes_stx` is the range
    that commands are checked over. `s_advances` False: the telegram after `S` carries the same sequence.
    `nak_gap` s lie between NAK and its code. `paced` False: no byte takes time.

    Traps per command: silent, duplicate_answer, late_answer (value s, default 3), nak (value code).
    Per telegram: chatter (a stray byte run before it), drop_copy (value which ones), top_bit_clear (of those
    with such data). Per copy: damage (its byte number value, the middle one when None, has every bit
    changed), lost_etx. Per card: reboot (value s off, once it was told), start_again (value of STARTS,
    before it). Per round: early_card (value s until the button is pressed; None: until a host cancels).
    """

    commands = ("lock", "unlock", "clear-fault", "confirm")

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
        paced: bool = True,
    ) -> None:
        self.shoe = shoe
        self.traps = Traps()
        self.heard: Callable[[str], None] | None = None
        self._silence = Silence(self.traps)
        self.bcc_includes_stx = bcc_includes_stx
        self.busy = False
        self.error: int | None = None
        """The error whose mode the shoe is in: cards are reported as drawn outside a game."""
        self._alphabet = SEQUENCES[sequence]
        self._s_advances = s_advances
        self._spacing = spacing
        self.nak_gap = nak_gap
        self._script = list(script)
        self._step_at = shoe.now + self._script[0].wait if self._script else None
        self._seen = len(shoe.happenings)
        self.uart = Uart(LINE_RATE, paced=paced)
        self._overdraws: Trap | None = None  # the next card comes too early
        self._held: str | None = None  # the face of an overdrawn card, until the error is cancelled
        self._acts: list[tuple[float, Callable[[], None]]] = []
        self._start(shoe.now, greet=not self._script)

    @property
    def machine(self) -> Shoe:
        return self.shoe

    # The wire

    def receive(self, data: bytes, now: float) -> None:
        self.uart.come(data, now)
        self.advance(now)

    def transmit(self, now: float) -> bytes:
        self.advance(now)
        return b"".join(self.uart.said(now))

    def advance(self, now: float) -> None:
        for at, data in self.uart.heard(now):
            self._move(at)
            self._hear(data, at)
        self._move(now)

    def deadline(self) -> float | None:
        act_at = self._acts[0][0] if self._acts else None
        return earliest(self.shoe.deadline(), self.uart.deadline(), self._step_at, act_at)

    def _move(self, now: float) -> None:
        while self._step_at is not None and self._step_at <= now:
            step = self._script.pop(0)
            if step.code:
                self._send(step.code, step.data, self._step_at)
            else:
                self.uart.say(self._step_at, step.data)
            self._step_at = self._step_at + self._script[0].wait if self._script else None
        while self._acts and self._acts[0][0] <= now:
            at, act = self._acts.pop(0)
            self._live(at)
            act()
        self._live(now)

    def _live(self, now: float) -> None:
        self.shoe.advance(now)
        self._collect()
        if not self.shoe.powered:
            self.uart.clear()

    def _hear(self, data: bytes, now: float) -> None:
        if not self.shoe.powered:
            return
        for byte in data:
            if byte == STX:
                self._command = bytearray((STX,))
            elif self._command:
                self._command.append(byte)
                self._try_command(now)

    # Back doors

    def cancel_error(self) -> None:
        """What the button on the shoe, or `EC`, does. A card drawn too early is the next round's now."""
        if self.error is not None:
            self._send("e", bytes((0x80 | self.error,)), self.shoe.now)
            self.error = None
        if self._held is not None:
            face, self._held = self._held, None
            self._send("R", self._seated(face)[0], self.shoe.now)

    def change_preset(self, address: int, value: int) -> None:
        self._send("M", b"%02d%04d" % (address, value), self.shoe.now)

    def set_up(self, *, sequence: str | None = None, s_advances: bool | None = None) -> None:
        """Another alphabet, another habit after `S`; the session begins anew with it."""
        if sequence is not None:
            self._alphabet = SEQUENCES[sequence]
        if s_advances is not None:
            self._s_advances = s_advances
        self.uart.clear()
        self._start(self.shoe.now, greet=self._step_at is None)

    # Telegrams

    def _start(self, now: float, *, greet: bool) -> None:
        self._command = bytearray()
        self._game = Baccarat()
        self._place = self._alphabet.index("1")
        self._free_at = now
        self.error = None
        self._held = None
        self._overdraws = None
        if greet:
            self._send("S", b"", now)
            self._send("P", b"", now)

    def _send(self, code: str, data: bytes, now: float) -> float:
        """Queue a telegram; when its first copy begins."""
        if data and code != "M" and self.traps.sprung("top_bit_clear"):
            data = bytes(byte & 0x7F for byte in data)
        frame = telegram(self._alphabet[self._place], code, data)
        if code != "S" or self._s_advances:
            self._place = (self._place + 1) % len(self._alphabet)
        at = max(now, self._free_at)
        self._free_at = at + self._spacing
        if trap := self.traps.sprung("chatter"):
            self.uart.say(at, trap.value or b"\x00\xff\x06")
        dropped = trap.value or "1" if (trap := self.traps.sprung("drop_copy")) else ""
        for number, delay in enumerate(COPIES, 1):
            if str(number) not in dropped:
                self.uart.say(at + delay, self._spoilt(frame))
        return at

    def _spoilt(self, frame: bytes) -> bytes:
        frame = damaged(frame, self.traps)
        if self.traps.sprung("lost_etx"):
            frame = frame[:-3] + frame[-2:]
        return frame

    def _collect(self) -> None:
        happenings = self.shoe.happenings
        while self._seen < len(happenings):
            self._seen += 1
            self._notice(happenings[self._seen - 1])

    def _notice(self, happening: Happening) -> None:
        data, at = happening.data, happening.at
        match happening.kind:
            case "booted":
                self.uart.clear()
                self._acts.clear()
                self._start(at, greet=True)
            case "new_shoe":
                self._start(max(at, self._free_at), greet=True)
            case "cutting_card":
                self._send("C", b"", at)
            case "lock" if data["by"] == "key":
                self._send("L", bytes((0x80 | data["locked"],)), at)
            case "drawn":
                face = data["face"]
                self._drawn(None if face is None or face[0] not in _RANK else face, at)  # a joker has no code

    def _drawn(self, face: str | None, at: float) -> None:
        if trap := self.traps.sprung("start_again"):
            if trap.value in ("twice", "cut"):
                self._send("S" if trap.value == "twice" else "C", b"", at)
            self._start(max(at, self._free_at), greet=True)
        begun = self._tell(face, at)
        if trap := self.traps.sprung("reboot"):
            off_s = trap.seconds(REBOOT_S)
            self._do(begun + COPIES[-1] + 0.05, lambda: self.shoe.power_cut(off_s))

    def _tell(self, face: str | None, at: float) -> float:
        if face is None:
            self.error = UNREAD
            return self._send("E", bytes((0xC0 | UNREAD,)), at)
        if self._overdraws:
            if self._overdraws.value is not None:
                self._do(at + float(self._overdraws.value), self.cancel_error)
            self._overdraws, self._held, self.error = None, face, OVERDRAW
            self._send("E", bytes((0xC0 | OVERDRAW,)), at)
        if self.error is not None:
            return self._send("d", bytes((0x90 | self.error, card_byte(face))), at)
        told, result = self._seated(face)
        begun = self._send("D", told, at)
        if result is not None:
            self._send("G", bytes((result_byte(result),)), at)
            self._overdraws = self.traps.sprung("early_card")
        return begun

    def _seated(self, face: str) -> tuple[bytes, Result | None]:
        """The next card of the game: its two data bytes, and the result when it ends a round."""
        seat, result = self._game.take(face[0])
        return bytes((0x80 | _TARGET[seat.place] << 4 | seat.index, card_byte(face))), result

    def _do(self, at: float, act: Callable[[], None]) -> None:
        self._acts.append((at, act))
        self._acts.sort(key=lambda due: due[0])

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
            if self.heard is not None:
                self.heard(_name(command))
            trap = self.traps.sprung("nak")
            nak = self._judge(command, end) if trap is None else int(trap.value or "21", 16)
            self._finish(nak, now)

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
        at = now + ANSWER_S + lateness(self.traps)
        for _ in range(copies(self.traps)):
            if nak is None:
                self.uart.say(at, bytes((ACK,)))
            elif self.nak_gap:
                self.uart.say(at, bytes((NAK,)))
                self.uart.say(at + self.nak_gap, bytes((nak,)))
            else:
                self.uart.say(at, bytes((NAK, nak)))
