"""Orders: what one pass of a mechanism makes of a pile. Pure; the first card is the top one.

Every pass takes its chance from the Random it is given, and neither makes nor loses a card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import TypeVar

from simulators.models.cards import RANKS, SUITS, Card

T = TypeVar("T")

_NEW_DECK_PLACE = {rank + suit: place for place, (suit, rank) in enumerate(product(SUITS, RANKS))}


def shelf_pass(cards: Sequence[T], shelves: int, random: Random, top: float = 0.5) -> list[T]:
    """Dealt from the bottom, each to a random shelf: above what lies there with probability `top`, or below.

    The shelves are stacked. With `top` one half the order has at most `shelves` - 1 valleys.
    """
    above: list[list[T]] = [[] for _ in range(shelves)]
    below: list[list[T]] = [[] for _ in range(shelves)]
    bottom = 1.0 - top
    for card in reversed(cards):
        drawn = random.random() * shelves
        shelf = int(drawn)
        (above if drawn - shelf >= bottom else below)[shelf].append(card)
    out: list[T] = []
    for upper, lower in zip(above, below, strict=True):
        out.extend(reversed(upper))
        out.extend(lower)
    return out


def insertion_pass(cards: Sequence[T], random: Random) -> list[T]:
    """One card after the other goes into any gap of the pile so far, each gap equally likely: uniform."""
    pile: list[T] = []
    for card in cards:
        pile.insert(int(random.random() * (len(pile) + 1)), card)
    return pile


def riffle_pass(cards: Sequence[T], random: Random) -> list[T]:
    """Cut into two packets and riffle them together, as Gilbert, Shannon and Reeds have it.

    Of each card of the result a fair coin tells the packet: at most 2^k rising sequences come of k passes.
    """
    coins = random.getrandbits(len(cards))
    cut = len(cards) - coins.bit_count()
    left, right = iter(cards[:cut]), iter(cards[cut:])
    return [next(right if coins >> place & 1 else left) for place in range(len(cards))]


def new_deck_order(cards: Sequence[Card]) -> list[Card]:
    """Deck behind deck, each from the ace of the first suit to the king of the last, then anything else."""
    copies: Counter[str] = Counter()
    keyed = []
    for card in cards:
        place = _NEW_DECK_PLACE.get(card.face, len(_NEW_DECK_PLACE))
        keyed.append((copies[card.face], place, card.serial, card))
        copies[card.face] += 1
    return [entry[-1] for entry in sorted(keyed, key=lambda entry: entry[:3])]


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What is inside a batch shuffler: how one pass orders the cards, and how many passes a cycle has."""

    one_pass: Callable[[Sequence[Card], Random], list[Card]]
    passes: int = 1

    def order(self, cards: Sequence[Card], random: Random) -> list[Card]:
        """A whole cycle."""
        ordered = list(cards)
        for _ in range(self.passes):
            ordered = self.one_pass(ordered, random)
        return ordered


def shelves(number: int = 38, *, passes: int = 1) -> Mechanism:
    """Random shelf, above or below at random: the usual batch shuffler."""
    return Mechanism(lambda cards, random: shelf_pass(cards, number, random), passes)


def insertion(*, passes: int = 1) -> Mechanism:
    """A carousel that opens at a random gap for each card."""
    return Mechanism(insertion_pass, passes)


def riffles(*, passes: int = 7) -> Mechanism:
    """A unit that cuts and riffles."""
    return Mechanism(riffle_pass, passes)
