"""Driver of the USPC Bee-Tek shoe: a plain stream of cards, alarms and warnings; it takes no command.

No check bytes, no numbers, no position: see "What damage can do" on its protocol page. Confidence B; nothing
was checked on real hardware.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from devices.base import DriverOutput, DriverSpec, Setup, choice
from devices.events import (
    RANKS,
    SUITS,
    CardDrawn,
    Chatter,
    DeviceEvent,
    FaultRaised,
    FrameRejected,
    GapPossible,
    Warning,  # noqa: A004 - the contract's event kind is `warning`
)
from devices.talker import TakesNoCommand, Talker
from firmware_bridge.framing import Garbage
from firmware_bridge.framing.bee_tek import LOOSE_TEXT, Decoder, Message

SILENCE = 0.25
"""Seconds without a byte after which a message under way is given up. A card takes 30 ms; two cards are
further apart than this, so the end of one never completes the beginning of another."""
PARTNER = 1.0
"""Seconds within which the alarm "card not read" and the card it is about belong together."""

IN_GAME = {b"Game": True, b"Manual Burn Cards": False}
"""The modes in which cards come, and whether the shoe thinks that they belong to a game."""
ALARM_MODES = (*IN_GAME, b"GameAlarm")
UNREAD = ("E3", b"Card Not Read")
NO_MESSAGE = "unknown message"

_SENT = {**{rank: rank for rank in RANKS}, "10": "T"}
_RANK_FIRST = {(sent + suit).encode(): rank + suit for sent, rank in _SENT.items() for suit in SUITS}
_SUIT_FIRST = {(suit + sent).encode(): rank + suit for sent, rank in _SENT.items() for suit in SUITS}
ORDERS: Mapping[str, Mapping[bytes, str]] = {
    "both": {**_RANK_FIRST, **_SUIT_FIRST},
    "rank_first": _RANK_FIRST,
    "suit_first": _SUIT_FIRST,
}
"""What a card's text may be. No rank is also a suit, so that reading both orders is never ambiguous."""
ECHOES = ("same", "any", "none")
E3_READINGS = ("alarm", "card")
OPTIONS = {
    "card_order": f"order of rank and suit: {', '.join(ORDERS)} (default both)",
    "echo": "loose characters behind a card in game mode that are skipped: same (the card's own, default), "
    "any (up to two), none",
    "e3_reading": "alarm E3: alarm (default: the card itself is told by <Game>) or card (it is the card)",
}

_ALARM = re.compile(rb"(E[0-9]{1,3}) (.*)", re.DOTALL)
"""Its code is told openly: another letter could be a suit, and the code a card."""
_OTHER = re.compile(rb"W0x[^:]{0,4}|Alarm[^:]*", re.DOTALL)
"""What is no card for certain, though it is no right message either."""
_WARNING = re.compile(rb"W0x([0-9A-Fa-f]{1,4})")


class BeeTek(Talker[Message]):
    """The receive-only form. It has no numbers: what was missed while nobody listened is not known."""

    def __init__(self, setup: Setup, *, live: bool = True) -> None:
        super().__init__(setup, Decoder(), SILENCE, live=live)
        self._cards = ORDERS[choice(setup, "card_order", tuple(ORDERS))]
        self._echoes = choice(setup, "echo", ECHOES)
        self._e3_is_card = choice(setup, "e3_reading", E3_READINGS) == "card"
        self._echo: bytes | None = None  # the text of the card before, while its echo may follow
        self._alarm_until: float | None = None  # an alarm E3 whose card was not told yet
        self._unread_until: float | None = None  # an unread card whose alarm E3 was not told yet

    def tick(self, now: float) -> Sequence[DriverOutput]:
        due = self._alarm_until is not None and now >= self._alarm_until
        return [*super().tick(now), *(self._alarm_alone(now) if due else ())]

    def lost(self, reason: str, now: float) -> Sequence[DriverOutput]:
        out = [*self._alarm_alone(now), *super().lost(reason, now)]
        self._echo = self._unread_until = None
        return out

    def deadline(self) -> float | None:
        return min((t for t in (super().deadline(), self._alarm_until) if t is not None), default=None)

    def told(self, frame: Message, now: float) -> list[DeviceEvent]:
        self._echo = None
        word, colon, text = frame.body.partition(b":")
        if word == b"Card" and colon:
            return self._card(frame, text, now)
        if frame.body == b"Game" and frame.mode in IN_GAME:
            return self._unread(frame, now)
        if word == b"Alarm" and colon:
            return self._alarm(frame, text, now)
        if warning := _WARNING.fullmatch(frame.body):
            return [self.event(Warning, now, raw=frame.raw, code=f"W0x{int(warning[1], 16):02X}")]
        self.counters.frames -= 1
        return self._rejected(frame, now)

    def rejected(self, run: Garbage, now: float) -> list[DeviceEvent]:
        """Loose bytes: the echo of a card, or what may be all that is left of one."""
        echo, self._echo = self._echo, None
        if run.reason != LOOSE_TEXT:
            return self._lost_there(FrameRejected, now, raw=run.data, reason=run.reason, bytes=run.count)
        if echo is not None and (run.data == echo or (self._echoes == "any" and run.count <= 2)):
            self.counters.repeats += 1
            return []
        return self._lost_there(Chatter, now, raw=run.data, text=run.data.decode("ascii"))

    def _rejected(self, message: Message, now: float) -> list[DeviceEvent]:
        """A message that nobody knows may have been a card, unless it is like something else to its end.

        A line that was cut joins the beginning of one message to the end of another.
        """
        fields = {"raw": message.raw, "reason": NO_MESSAGE, "bytes": len(message.raw)}
        other = _OTHER.fullmatch(message.body)
        if other and not (self._e3_is_card and other[0].startswith(b"Alarm")):
            return [self.event(FrameRejected, now, **fields)]
        return self._lost_there(FrameRejected, now, **fields)

    def _lost_there(self, kind: type[DeviceEvent], now: float, **fields: Any) -> list[DeviceEvent]:
        return [self.event(kind, now, **fields), self.event(GapPossible, now)]

    def _card(self, message: Message, text: bytes, now: float) -> list[DeviceEvent]:
        """A card came out for certain; what it was is believed only of a message without a flaw."""
        out = self._alarm_alone(now)
        self._unread_until = None
        card, diag = self._cards.get(text), _mode_diag(message, tuple(IN_GAME))
        if card is None:
            diag = (*diag, "bad_card")
        elif diag:
            card = None
        elif text in _SUIT_FIRST:
            diag = ("suit_first",)
        if message.mode == b"Game" and self._echoes != "none":
            self._echo = text
        return [*out, self._drawn(message, card, diag, now)]

    def _unread(self, message: Message, now: float) -> list[DeviceEvent]:
        told, self._alarm_until = self._alarm_until is not None, None
        self._unread_until = None if told else now + PARTNER
        return [self._drawn(message, None, (), now)]

    def _drawn(self, message: Message, card: str | None, diag: tuple[str, ...], now: float) -> DeviceEvent:
        in_game = IN_GAME.get(message.mode or b"", True)
        return self.event(CardDrawn, now, raw=message.raw, card=card, in_game=in_game, diag=diag)

    def _alarm(self, message: Message, text: bytes, now: float) -> list[DeviceEvent]:
        """The device's own words are told as chatter, which is masked while a card may not be seen."""
        diag, found = _mode_diag(message, ALARM_MODES), _ALARM.fullmatch(text)
        code, words = ("?", text) if found is None else (found[1].decode("ascii"), found[2])
        unread = code == UNREAD[0] or words == UNREAD[1]
        out = self._alarm_alone(now) if unread else []
        name = "card_not_read" if unread else "unknown"
        out.append(self.event(FaultRaised, now, raw=message.raw, code=code, name=name, diag=diag))
        if not unread:
            said = text.decode("ascii", "backslashreplace")
            out.append(self.event(Chatter, now, raw=message.raw, text=said))
            return [*out, self.event(GapPossible, now)] if self._e3_is_card else out
        if self._e3_is_card:
            return [*out, self._drawn(message, None, ("alarm",), now)]
        told = self._unread_until is not None and now < self._unread_until
        self._unread_until, self._alarm_until = None, None if told else now + PARTNER
        return out

    def _alarm_alone(self, now: float) -> list[DeviceEvent]:
        """No unread card belongs to the alarm before: the shoe may have told that card in no other way."""
        alone, self._alarm_until = self._alarm_until is not None, None
        return [self.event(GapPossible, now)] if alone else []


class BeeTekControlled(TakesNoCommand, BeeTek):
    """The command form of a shoe that takes none."""


def _mode_diag(message: Message, known: tuple[bytes, ...]) -> tuple[str, ...]:
    if message.mode is None:
        return ("no_mode",)
    return () if message.mode in known else ("unknown_mode",)


SPEC = DriverSpec(
    name="bee-tek",
    role="shoe",
    games=frozenset({"baccarat", "blackjack"}),
    baud=9600,
    polled=False,
    commands=(),
    reader=BeeTek,
    controlled=BeeTekControlled,
    decoder=partial(BeeTek, live=False),
    options=OPTIONS,
)
