"""A hole-card reader: it looks at the dealer's two cards and tells whether they make a natural."""

from __future__ import annotations

from random import Random

from simulators.models.cards import Card, Stack, make_batch
from simulators.models.machine import Machine

_TENS = frozenset("TJQK")
POWER_OFF_S = 0.2
NATURAL, NOT_NATURAL, ERROR = "natural", "not natural", "error"


class HoleCardReader(Machine):
    """The up card lies beside it, the hole card is slid in: then it looks by itself, and whenever asked to.

    Traps, counted per look: error (it cannot read), misread (it takes the hole card for another rank: value,
    else ace for anything but an ace, which it takes for a nine), power_cut (for value s, 0.2:
    it sees nothing).
    """

    def __init__(self, *, now: float = 0.0) -> None:
        super().__init__(now=now)
        self.up: Card | None = None
        self.hole: Card | None = None
        self.player: RoundDealer | None = None

    def slide_in(self, up: Card | None, hole: Card | None) -> str:
        """Put the cards in place, instead of any before; what the reader sees."""
        self.up, self.hole = up, hole
        return self.look()

    def take_out(self) -> tuple[Card | None, Card | None]:
        cards, self.up, self.hole = (self.up, self.hole), None, None
        return cards

    def look(self) -> str:
        """One look: natural, not natural or error."""
        if trap := self.traps.sprung("power_cut"):
            self.power_cut(trap.seconds(POWER_OFF_S))
            return ERROR
        result = self._see()
        self._happen("looked", result=result)
        return result

    def _see(self) -> str:
        broken, wrong = self.traps.sprung("error"), self.traps.sprung("misread")
        if not self.powered or self.up is None or self.hole is None or broken is not None:
            return ERROR
        rank = self.hole.rank
        if wrong is not None:
            rank = wrong.value or ("9" if rank == "A" else "A")
        pair = self.up.rank, rank
        ace_and_ten = "A" in pair and any(r in _TENS for r in pair)
        return NATURAL if ace_and_ten else NOT_NATURAL

    def _next_by_itself(self) -> float | None:
        return None if self.player is None else self.player.deadline()

    def _happen_by_itself(self) -> None:
        if self.player is not None:
            self.player.act()


class RoundDealer:
    """Slides in a new pair every `pace` s, where nobody else does; a check is due with an ace or ten up.

    Attaches itself to `reader.player`.
    """

    def __init__(self, reader: HoleCardReader, random: Random, *, pace: float = 6.0) -> None:
        self.reader = reader
        self._random = random
        self._pace = pace
        self._deck = Stack()
        self._at = reader.now
        reader.player = self

    def deadline(self) -> float:
        return self._at

    def act(self) -> None:
        self._at = self.reader.now + self._pace
        up = self._draw()
        while up.rank != "A" and up.rank not in _TENS:
            up = self._draw()
        self.reader.slide_in(up, self._draw())

    def _draw(self) -> Card:
        if not len(self._deck):
            cards = make_batch("red", 1)
            self._random.shuffle(cards)
            self._deck.add(cards)
        (card,) = self._deck.lift(1).give_cards()
        return card
