"""The passive places of a table, and the count of all cards: each in exactly one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from simulators.models.cards import Card, CuttingCard, Item, Stack


class Holder(Protocol):
    """Anything that can hold cards."""

    def contents(self) -> Iterable[Item]: ...


class DiscardRack:
    def __init__(self) -> None:
        self._items: list[Item] = []

    def __len__(self) -> int:
        return sum(1 for item in self._items if isinstance(item, Card))

    def contents(self) -> Iterator[Item]:
        return iter(self._items)

    def put(self, items: Iterable[Item]) -> None:
        self._items.extend(items)

    def gauge(self, cards: int) -> str:
        """The height against the mark for `cards` cards: full, short or over."""
        return "full" if len(self) == cards else "short" if len(self) < cards else "over"

    def take(self) -> Stack:
        """Lift everything out of the rack."""
        items, self._items = self._items, []
        return Stack(items)


class Layout:
    """Who holds what: `box 1`..`box N`, `dealer`, and `aside` (dead cards, the cutting card)."""

    def __init__(self, boxes: int) -> None:
        self.places: dict[str, list[Item]] = {f"box {n}": [] for n in range(1, boxes + 1)}
        self.places |= {"dealer": [], "aside": []}

    def contents(self) -> Iterator[Item]:
        for items in self.places.values():
            yield from items

    def deal(self, item: Item, place: str) -> None:
        self.places[place].append(item)

    def pick_up(self, place: str) -> list[Item]:
        """Pick up a place's cards in the order in which they came."""
        items = self.places[place]
        self.places[place] = []
        return items

    def pick_up_hands(self) -> list[Item]:
        """Pick up all boxes, then the dealer's hand, so that each can be found again in the rack."""
        return [item for place in self.places if place != "aside" for item in self.pick_up(place)]


class CardsAstray(Exception):
    """A card is in two places at once, or in none."""


class World:
    """All places of a table and the batches that were brought to it."""

    def __init__(self, batches: Mapping[str, Sequence[Card]], places: Mapping[str, Holder]) -> None:
        self.places = dict(places)
        self._batch_of = {card: name for name, cards in batches.items() for card in cards}

    def replace(self, batch: str, cards: Sequence[Card]) -> None:
        """The old batch of this name has left the table, and `cards` were brought for it."""
        self._batch_of = {card: name for card, name in self._batch_of.items() if name != batch}
        self._batch_of |= dict.fromkeys(cards, batch)

    def census(self) -> dict[str, dict[str, int]]:
        """Cards by place and batch (`?` for a stranger), empty places left out. Raises CardsAstray."""
        batch_of = self._batch_of
        found: dict[Card, str] = {}
        counts: dict[str, dict[str, int]] = {}
        for place, holder in self.places.items():
            cards = [item for item in holder.contents() if not isinstance(item, CuttingCard)]
            before = len(found)
            found |= dict.fromkeys(cards, place)
            if len(found) < before + len(cards):
                raise CardsAstray(self._twice())
            if cards:
                counts[place] = dict(Counter([batch_of.get(card, "?") for card in cards]))
        if missing := [card.serial for card in self._batch_of if card not in found]:
            raise CardsAstray(f"{len(missing)} cards are nowhere, the first has serial {missing[0]}")
        return counts

    def _twice(self) -> str:
        """Which card is in two places, for people."""
        found: dict[Item, str] = {}
        for place, holder in self.places.items():
            for item in holder.contents():
                if isinstance(item, Card) and item in found:
                    return f"card {item.serial} is in {found[item]} and in {place}"
                found[item] = place
        raise AssertionError("no card is in two places")
