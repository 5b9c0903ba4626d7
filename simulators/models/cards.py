"""Cards as things: each has an identity, and a pile of them is in one place at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random

RANKS = "A23456789TJQK"
SUITS = "CDHS"


@dataclass(frozen=True, slots=True, eq=False)
class Card:
    """One physical card; two cards with the same face are still two cards (`serial` is unique)."""

    serial: int
    rank: str
    suit: str
    back: str

    @property
    def face(self) -> str:
        """Rank and suit, e.g. `8S`."""
        return self.rank + self.suit


@dataclass(frozen=True, slots=True, eq=False)
class CuttingCard:
    """An opaque card of one colour; never counted as a card."""

    colour: str = "yellow"


Item = Card | CuttingCard


def make_batch(back: str, decks: int, first_serial: int = 1, *, joker: bool = False) -> list[Card]:
    """Fresh decks, one behind the other, each in new-deck order (suit by suit, ace to king, a joker)."""
    faces = [(rank, suit) for suit in SUITS for rank in RANKS] + [("X", "J")] * joker
    return [
        Card(first_serial + number, rank, suit, back) for number, (rank, suit) in enumerate(faces * decks)
    ]


class Stack:
    """A pile in somebody's hands. The front is the end that is dealt first.

    Whoever takes a pile's cards empties it: cards move, they are never copied.
    """

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._items = list(items)

    def __len__(self) -> int:
        """Cards only; a cutting card does not count."""
        return sum(1 for item in self._items if isinstance(item, Card))

    def contents(self) -> Iterator[Item]:
        return iter(self._items)

    def give(self) -> list[Item]:
        """Hand over everything; the pile is empty afterwards."""
        items, self._items = self._items, []
        return items

    def give_cards(self) -> list[Card]:
        """Hand over a pile that must hold cards alone. ValueError while the cutting card is in it."""
        cards = [item for item in self._items if isinstance(item, Card)]
        if len(cards) != len(self._items):
            raise ValueError("a cutting card is in the pile; take it out first")
        self._items = []
        return cards

    def add(self, items: Iterable[Item]) -> None:
        """Put items behind the pile."""
        self._items.extend(items)

    def lift(self, count: int) -> Stack:
        """Take the first `count` items off the front."""
        lifted, self._items = self._items[:count], self._items[count:]
        return Stack(lifted)

    def wash(self, random: Random) -> None:
        """Mix by hand on the felt: clumps of one to four cards drift about half the pile; not uniform."""
        spread = max(1.0, len(self._items) / 2)
        clumps: list[tuple[float, int, list[Item]]] = []
        start = 0
        while start < len(self._items):
            size = 1 + int(random.random() * 4)
            drift = (random.random() - 0.5) * 2 * spread
            clumps.append((start + drift, start, self._items[start : start + size]))
            start += size
        clumps.sort(key=lambda clump: clump[:2])
        self._items = [item for _, _, clump in clumps for item in clump]

    def cut(self, position: int) -> None:
        """Lift `position` cards off the front and put them to the back."""
        if not 0 <= position <= len(self._items):
            raise ValueError(f"cannot lift {position} of {len(self._items)} cards")
        self._items = self._items[position:] + self._items[:position]

    def insert_cutting_card(self, card: CuttingCard, behind: int) -> None:
        """Put the cutting card in so that `behind` cards lie behind it."""
        if not 0 <= behind <= len(self._items):
            raise ValueError(f"cannot leave {behind} of {len(self._items)} cards behind the cutting card")
        self._items.insert(len(self._items) - behind, card)

    def take_cutting_card(self) -> CuttingCard | None:
        for index, item in enumerate(self._items):
            if isinstance(item, CuttingCard):
                del self._items[index]
                return item
        return None
