"""What clumsy or dishonest hands do to a pile before it goes into a machine."""

from __future__ import annotations

from random import Random

from simulators.models.cards import Card, Item, Stack
from simulators.models.machine import Traps


def stranger(
    card: Card, *, rank: str | None = None, suit: str | None = None, back: str | None = None
) -> Card:
    """A card that belongs to no batch: like `card` but for what is given."""
    return Card(-abs(card.serial), rank or card.rank, suit or card.suit, back or card.back)


def other_colour(card: Card) -> str:
    return "blue" if card.back != "blue" else "red"


def tamper(pile: Stack, traps: Traps, sleeve: Stack, random: Random) -> None:
    """Spring the traps of a load.

    extra (value strangers, 1, with faces and backs of the pile), duplicate (a card becomes a copy of another
    one), joker (a card becomes a joker), missing (value cards, 1, go up the sleeve).
    """
    if not len(pile):
        return
    items = pile.give()
    if trap := traps.sprung("extra"):
        for _ in range(trap.count()):
            _, card = _any(items, random)
            items.insert(_any(items, random)[0], stranger(card))
    if traps.sprung("duplicate"):
        place, card = _any(items, random)
        others = [item for item in items if isinstance(item, Card) and item.face != card.face]
        if others:
            other = others[int(random.random() * len(others))]
            items[place] = stranger(card, rank=other.rank, suit=other.suit)
            sleeve.add([card])
    if traps.sprung("joker"):
        place, card = _any(items, random)
        items[place] = stranger(card, rank="X", suit="J")
        sleeve.add([card])
    if trap := traps.sprung("missing"):
        for _ in range(trap.count()):
            if any(isinstance(item, Card) for item in items):
                sleeve.add([items.pop(_any(items, random)[0])])
    pile.add(items)


def _any(items: list[Item], random: Random) -> tuple[int, Card]:
    """A random card of those and its place."""
    cards = [(place, item) for place, item in enumerate(items) if isinstance(item, Card)]
    return cards[int(random.random() * len(cards))]
