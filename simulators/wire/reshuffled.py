"""The ReShuffled machine's side of its wire (docs/protocols/reshuffled.md), on a model that deals cards."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from simulators.models.dealing_machine import DealingMachine
from simulators.models.machine import CannotDo, Traps
from simulators.wire.device import Silence, copies, earliest, lateness
from simulators.wire.uart import Uart

LINE_RATE = 57600
ANSWER_S = 0.005
"""From the last byte of a request to the first of its answer; the published host waits 1 s."""
TICK_S = 0.001
"""The firmware's timer, which prints `Error` between whatever else is printed."""
BUFFER = 16
LONGEST = 32
TAKEN = 13
"""Bytes of the only frames the firmware takes."""
BUSY, NO_CARDS, NOT_UNDERSTOOD = 1, 2, 3
"""Meanings of our own: the documents leave all error codes open."""
_COMMANDS = {b"IN": "init", b"SH": "shuffle", b"D": "deal", b"A": "deal-each", b"XX": "off"}
_REFUSALS = {"busy": BUSY, "cards": NO_CARDS}


class ReShuffled:
    """With `firmware` as it was published, else as its document says.

    The firmware takes frames of 13 bytes alone, never looks at their check or their letters, prints its own
    check without leading zeros, and complains in words.
    `echo`: an older firmware, which prints each request it got. `paced` False: no byte takes time.

    Traps, counted per request: silent, duplicate_answer, late_answer (value s), chatter (value the text
    before an answer), stray_bytes (value the bytes behind `OK`), text_inside (`Error` in the middle of an
    answer), refuse (value the code).
    """

    commands = tuple(_COMMANDS.values())

    def __init__(
        self,
        machine: DealingMachine,
        *,
        firmware: bool = True,
        crc_includes_hash: bool = False,
        end: bytes = b"\n",
        echo: bool = False,
        paced: bool = True,
    ) -> None:
        self.machine = machine
        self.traps = Traps()
        self.heard: Callable[[str], None] | None = None
        self._silence = Silence(self.traps)
        self.firmware = firmware
        self.crc_includes_hash = crc_includes_hash
        self.end = end
        self.echo = echo
        self.uart = Uart(LINE_RATE, paced=paced)
        self._buffer = bytearray()
        self._error_at = -1.0
        self._boot = machine.boot

    def receive(self, data: bytes, now: float) -> None:
        self.advance(now)
        self.uart.come(data, now)
        self.advance(now)

    def transmit(self, now: float) -> bytes:
        self.advance(now)
        return b"".join(self.uart.said(now))

    def advance(self, now: float) -> None:
        for at, data in self.uart.heard(now):
            self._live(at)
            self._hear(data, at)
        self._live(now)

    def deadline(self) -> float | None:
        return earliest(self.machine.deadline(), self.uart.deadline())

    def _live(self, now: float) -> None:
        self.machine.advance(now)
        if not self.machine.powered or self.machine.boot != self._boot:
            self._boot = self.machine.boot
            self.uart.clear()
            self._buffer.clear()

    # What it hears

    def _hear(self, data: bytes, now: float) -> None:
        for byte in data:
            if not self.machine.powered or self.machine.off:
                return
            self._byte(bytes((byte,)), now)

    def _byte(self, byte: bytes, now: float) -> None:
        if byte == b":":
            if self._buffer:
                self._complain(now)
            self._buffer[:] = byte
        elif not self._buffer or len(self._buffer) >= (BUFFER if self.firmware else LONGEST):
            self._complain(now)
        else:
            self._buffer += byte
            if byte == self.end:
                frame = bytes(self._buffer)
                self._buffer.clear()
                self._judge(frame, now)

    def _judge(self, frame: bytes, now: float) -> None:
        if self.heard is not None:
            word = frame[1:-1].partition(b"#")[0]
            self.heard(_COMMANDS.get(word, _COMMANDS.get(word[:1], "unknown")))
        if self._silence.covers(now):
            return
        if self.echo:
            self.uart.say(now + TICK_S, b"Received a request: " + frame)
        if self.firmware and len(frame) != TAKEN:
            self.uart.say(now + ANSWER_S, b"Fehler: 1\r\n")
            self._complain(now + ANSWER_S)
            return
        words, _, check = frame[1:-1].partition(b"#")
        if not self.firmware and check != self._check(words):
            self._answer(b"E%d" % NOT_UNDERSTOOD, now)
            return
        self._answer(self._act(words), now)

    def _act(self, words: bytes) -> bytes:
        machine, number = self.machine, words[1:]
        if trap := self.traps.sprung("refuse"):
            return b"E%d" % trap.count(BUSY)
        try:
            if words == b"IN":
                machine.initialise()
            elif words == b"SH":
                machine.shuffle()
            elif words == b"XX":
                machine.switch_off()
            elif words[:1] == b"D" and number.isdigit():
                machine.deal(int(number))
            elif words[:1] == b"A" and number.isdigit():
                machine.deal_each(int(number))
            else:
                return b"E%d" % NOT_UNDERSTOOD
        except CannotDo as refusal:
            return b"E%d" % _REFUSALS[refusal.why]
        return b"OK"

    # What it says

    def _answer(self, words: bytes, now: float) -> None:
        at = now + ANSWER_S + lateness(self.traps)
        if trap := self.traps.sprung("stray_bytes"):
            words += trap.value or b"\x01\xfe"
        check = self._check(words)
        frame = b":" + words + b"#" + (check.lstrip(b"0") if self.firmware else check) + self.end
        if trap := self.traps.sprung("chatter"):
            frame = (trap.value or b"Error") + frame
        if self.traps.sprung("text_inside"):
            middle = len(frame) // 2
            frame = frame[:middle] + b"Error" + frame[middle:]
        for _ in range(copies(self.traps)):
            self.uart.say(at, frame)

    def _check(self, words: bytes) -> bytes:
        """Eight hex digits."""
        return b"%08X" % crc32(words + b"#" if self.crc_includes_hash else words)

    def _complain(self, now: float) -> None:
        """What goes wrong within one turn of the timer is told once."""
        if self.firmware and now >= self._error_at + TICK_S:
            self._error_at = now
            self.uart.say(now + TICK_S, b"Error")
