"""Cards as the table sees them: values, and counts of a multiset. No identity beyond rank and suit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from devices.events import DECK

VALUED = frozenset(DECK)
"""The cards that count something at blackjack: a joker is none of them."""


def values(card: str) -> tuple[int, ...]:
    """The values a card may count, 13:69F-2.2(b): an ace 11 or 1."""
    rank = card[0]
    if rank == "A":
        return (11, 1)
    return (10,) if rank in "TJQK" else (int(rank),)


def over_under_value(card: str) -> int:
    """The value of one of a player's first two cards for over/under-13: an ace is one, 2.2(b)3ii."""
    return min(values(card))


def difference(composition: Mapping[str, int], decks: int, deck: Sequence[str] = DECK) -> tuple[int, int]:
    """How many cards are (missing, too many) against `decks` complete decks; unknown cards are too many."""
    missing = sum(max(0, decks - composition.get(card, 0)) for card in deck)
    extra = sum(max(0, n - (decks if card in deck else 0)) for card, n in composition.items())
    return missing, extra


_OF_ONE = {"are": "is", "were": "was", "lie": "lies"}


def count_of(number: int, verb: str = "") -> str:
    """How many cards, in words: `52 cards are`, `1 card is`."""
    words = ("card", _OF_ONE.get(verb, verb)) if number == 1 else ("cards", verb)
    return " ".join(filter(None, (str(number), *words)))
