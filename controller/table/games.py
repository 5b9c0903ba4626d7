"""The one-deck games: how many cards go where, and what must be left of the deck (R-53)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.table.round import COMMUNITY, DEALER, box
from devices.events import DECK, JOKER


@dataclass(frozen=True, slots=True)
class Game:
    """`hand` cards a position, the players' and, with `dealer`, the dealer's own; `community` cards to all.

    `stacks`: that many hands are dealt whoever plays, 0 where each player with a wager gets one. `clause`
    is where the texts speak of its automated dealing shoe, `manual` and `in_hand` where of the other ways of
    dealing, as far as they are known.
    """

    hand: int
    clause: str
    dealer: bool = True
    community: int = 0
    stacks: int = 0
    deck: tuple[str, ...] = DECK
    manual: str = ""
    in_hand: str = ""

    def order(self, boxes: Sequence[int], *, stacked: bool) -> tuple[str, ...]:
        """Where the cards go: card by card around the table, or (`stacked`) hand by hand."""
        if self.stacks:
            places = tuple(f"stack {n}" for n in range(1, self.stacks + 1))
        else:
            places = (*(box(n) for n in sorted(boxes)), *((DEALER,) if self.dealer else ()))
        hands = [place for place in places for _ in range(self.hand)] if stacked else [*places] * self.hand
        return (*hands, *(COMMUNITY,) * self.community)

    def most(self, boxes: int) -> int:
        """How many of `boxes` boxes may have a wager in one round."""
        return min(boxes, self.stacks - self.dealer) if self.stacks else boxes


GAMES: Mapping[str, Game] = {
    "three-card-poker": Game(3, "13:69F-20.9", manual="13:69F-20.7", in_hand="13:69F-20.8"),
    "mississippi-stud": Game(2, "13:69F-35.9", dealer=False, community=3),
    "asia-poker": Game(7, "13:69F-31.10", stacks=7, deck=(*DECK, JOKER), manual="13:69F-31.8"),
}
"""Seven stacks of seven leave exactly four cards: asia poker has the joker in its deck."""
