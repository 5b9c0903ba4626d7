"""The Bee-Tek shoe's side of its wire (docs/protocols/bee-tek.md), on a model shoe. It only talks."""

from __future__ import annotations

from collections.abc import Mapping

from simulators.models.machine import Happening, Traps
from simulators.models.shoe import Shoe
from simulators.wire.device import damaged, earliest
from simulators.wire.uart import Uart

SEPARATORS: Mapping[str, tuple[bytes, bytes]] = {
    "space": (b" ", b" "),
    "double": (b"  ", b"  "),
    "crlf": (b"", b"\r\n"),
    "none": (b"", b""),
}
"""What stands before the first message, and behind each one."""
MODES: Mapping[str, bytes] = {"game": b"[Game]", "burn": b"[Manual Burn Cards]"}
UNREAD = ("game", "alarm", "both")
"""How a card is told that was not read: `<Game>`, the alarm E3, or the alarm and then `<Game>`."""
NOT_READ = "E3 Card Not Read"
LINE_RATE = 9600
CUT_S = 0.3


def message(mode: bytes, body: str) -> bytes:
    """One message without separators; `mode` with its brackets, or empty."""
    return mode + b"<" + body.encode("ascii") + b">"


class BeeTek:
    """Tells every card that leaves `shoe`; it senses neither cutting card nor back, lock, lid or end.

    `separator`, `mode` and `unread` are words of the tables above. `echo`: in game mode a card's characters
    come once more behind it. `ten`: a ten is sent as 10. `suit_first`: the suit comes before the rank.
    `paced` False: a message leaves whole and at once, else byte by byte.

    Traps, per card: alarm (value its text) and warning (value its hex) come before it. Per message: chatter
    (text before it, value), damage (its byte number value, the middle one when None, has every bit changed),
    line_cut (half of it leaves, then nothing arrives for value s, default 0.3).
    """

    def __init__(
        self,
        shoe: Shoe,
        *,
        separator: str = "space",
        mode: str = "game",
        unread: str = "game",
        echo: bool = False,
        ten: bool = False,
        suit_first: bool = False,
        paced: bool = True,
    ) -> None:
        self.shoe = shoe
        self.traps = Traps()
        self.separator = separator
        self.mode = mode
        self.unread = unread
        self.echo = echo
        self.ten = ten
        self.suit_first = suit_first
        self._told = 0
        self._started = False
        self._seen = len(shoe.happenings)
        self._free_at = shoe.now
        self._cut = (0.0, 0.0)
        self.uart = Uart(LINE_RATE, paced=paced)

    @property
    def machine(self) -> Shoe:
        return self.shoe

    @property
    def newest(self) -> int:
        """How many cards left the shoe, read or not: what a host that lost nothing has counted."""
        waiting = self.shoe.happenings[self._seen :]
        return self._told + sum(happening.kind == "drawn" for happening in waiting)

    # The wire

    def receive(self, data: bytes, now: float) -> None:
        """Nobody has seen this shoe listen."""
        del data
        self.advance(now)

    def transmit(self, now: float) -> bytes:
        self.advance(now)
        return b"".join(self.uart.said(now))

    def advance(self, now: float) -> None:
        self.shoe.advance(now)
        happenings = self.shoe.happenings
        while self._seen < len(happenings):
            self._seen += 1
            self._notice(happenings[self._seen - 1], now)
        if not self.shoe.powered:
            self.uart.clear()

    def deadline(self) -> float | None:
        return earliest(self.shoe.deadline(), self.uart.deadline())

    # Back doors

    def cut_line(self, start: float, seconds: float = CUT_S) -> None:
        """What leaves from `start` on arrives nowhere for so long; what left before has arrived."""
        self._cut = (start, start + seconds)

    def alarm(self, text: str, now: float) -> None:
        self._send(message(b"[GameAlarm]", f"Alarm:{text}"), now)

    def warn(self, code: str, now: float) -> None:
        self._send(message(b"", f"W0x{code}"), now)

    # Messages

    def _notice(self, happening: Happening, now: float) -> None:
        if happening.kind != "drawn":
            return
        if trap := self.traps.sprung("alarm"):
            self.alarm(trap.value or NOT_READ, now)
        if trap := self.traps.sprung("warning"):
            self.warn(trap.value or "01", now)
        self._told += 1
        face = happening.data["face"]
        if face is None:
            self._not_read(now)
            return
        rank = "10" if self.ten and face[0] == "T" else face[0]
        text = face[1] + rank if self.suit_first else rank + face[1]
        echo = text.encode("ascii") if self.echo and self.mode == "game" else b""
        self._send(message(MODES[self.mode], f"Card:{text}"), now, echo)

    def _not_read(self, now: float) -> None:
        if self.unread != "game":
            self.alarm(NOT_READ, now)
        if self.unread != "alarm":
            self._send(message(MODES[self.mode], "Game"), now)

    def _send(self, text: bytes, now: float, behind: bytes = b"") -> None:
        first, after = SEPARATORS[self.separator]
        at = max(now, self._free_at)
        before = b"" if self._started else first
        self._started = True
        if trap := self.traps.sprung("chatter"):
            before += (trap.value or "Bee-Tek 1.0").encode("ascii") + b"\r\n"
        text = damaged(text, self.traps)
        data = before + text + behind + after
        byte_s = self.uart.byte_s
        trap = self.traps.sprung("line_cut")
        half = len(before) + len(text) // 2
        if trap is not None:
            self.cut_line(at + (half + 0.5) * byte_s, trap.seconds(CUT_S))
        if byte_s:
            for number, byte in enumerate(data):
                self._put(at + number * byte_s, bytes((byte,)))
        elif trap is not None:
            self.uart.say(at, data[:half])
        else:
            self._put(at, data)
        self._free_at = at + len(data) * byte_s

    def _put(self, at: float, data: bytes) -> None:
        start, end = self._cut
        if not start <= at + self.uart.byte_s < end:
            self.uart.say(at, data)
