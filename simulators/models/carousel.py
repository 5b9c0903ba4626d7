"""The slots of a continuous shuffler: cards go into random ones, and whole slots come out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from random import Random

from simulators.models.cards import Card, Item

SLOTS, ROOM, RIPE = 38, 10, 7
"""A slot holds `ROOM` cards; one with `RIPE` of them or more may be pushed out."""


class Carousel:
    """A card that finds no slot with room waits in the overflow, and tries again before a slot comes out."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._slots: list[list[Card]] = [[] for _ in range(SLOTS)]
        self.overflow: list[Card] = []

    def __iter__(self) -> Iterator[Card]:
        for slot in self._slots:
            yield from slot
        yield from self.overflow

    def put(self, cards: Iterable[Card]) -> None:
        """Each goes into any slot that has room, above or below what lies there."""
        for card in cards:
            lane = int(self._random.random() * 2 * SLOTS)
            slot = self._slots[lane >> 1]
            if len(slot) >= ROOM:
                free = [slot for slot in self._slots if len(slot) < ROOM]
                if not free:
                    self.overflow.append(card)
                    continue
                slot = free[int(self._random.random() * len(free))]
            slot.insert(len(slot) if lane & 1 else 0, card)

    def push_out(self) -> list[Card]:
        """The cards of any ripe slot, or of one of the fullest; none when all are empty."""
        waiting, self.overflow = self.overflow, []
        self.put(waiting)
        least = min(RIPE, max(map(len, self._slots)))
        ripe = [slot for slot in self._slots if len(slot) >= least]
        slot = ripe[int(self._random.random() * len(ripe))]
        pushed = slot[:]
        slot.clear()
        return pushed

    def clear(self) -> None:
        for pile in (*self._slots, self.overflow):
            pile.clear()

    def exchange(self, swapped: Mapping[Item, Card]) -> None:
        """Cards change places with others."""
        for pile in (*self._slots, self.overflow):
            pile[:] = [swapped.get(card, card) for card in pile]
