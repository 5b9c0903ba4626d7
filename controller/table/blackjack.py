"""Blackjack as cards alone: what a hand counts, which plays are open to it, what it wins. Pure.

13:69F and casino nights (13:47-20.22) differ in their `Terms`, not in code. A card is a text such as "8S", a
hand its cards in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from controller.table.cards import values

MOST = 21
DEALER_STANDS = 17
"""R-34: a dealer with 17 or more draws no card. A soft 17 counts 17 as well, 2.2(b)3i and 20.22(g)10v(3)."""
INSURANCE = Fraction(2)
"""Insurance is half the wager, paid 2 to 1."""
EVEN = Fraction(1)
CASINO_PAYS = Fraction(3, 2)

Cards = Sequence[str]


class Ties(StrEnum):
    """What becomes of a tie, 13:47-20.22(g)7: options i, ii and iii, of which one is posted at the table."""

    PUSH = "push"
    NATURALS_PUSH = "naturals-push"
    HOUSE_WINS = "house-wins"


class Outcome(StrEnum):
    WIN = "win"
    PUSH = "push"
    LOSE = "lose"
    SURRENDER = "surrender"


class Settled(NamedTuple):
    """How a wager ends, and what it gains for each unit wagered: less than nothing when it loses."""

    outcome: Outcome
    gain: Fraction


LOST = Settled(Outcome.LOSE, Fraction(-1))
PUSHED = Settled(Outcome.PUSH, Fraction(0))
SURRENDERED = Settled(Outcome.SURRENDER, Fraction(-1, 2))


class Why(NamedTuple):
    """Why a play is not open to a hand, and the clause."""

    why: str
    clause: str


@dataclass(frozen=True, slots=True)
class Terms:
    """What a regime pays and permits.

    `natural` are the odds of a natural, `five_card_21` those of 21 in five cards (None: even money, as any
    other hand). `doubles_on` are the totals of two cards that may be doubled, None any but 21.
    """

    natural: Fraction = CASINO_PAYS
    ties: Ties = Ties.PUSH
    five_card_21: Fraction | None = Fraction(2)
    doubles_on: frozenset[int] | None = None
    doubles_split: bool = True
    splits_again: bool = False
    aces_take_one: bool = False
    night: bool = False

    def clause(self, licensed: str, night: str) -> str:
        """The clause of the regime, of two that ask the same or rule otherwise."""
        return night if self.night else licensed


CASINO = Terms()
"""Those of 13:69F. Of 2.8 to 2.12 only the beginnings are at hand: what the rest adds is not among them."""


def casino_night(ties: Ties) -> Terms:
    """A natural pays 3 to 2 where every tie is a push, else 2 to 1, 13:47-20.22(g)9i."""
    return Terms(
        natural=CASINO_PAYS if ties is Ties.PUSH else Fraction(2),
        ties=ties,
        five_card_21=None,
        doubles_on=frozenset({10, 11}),
        doubles_split=False,
        splits_again=True,
        aces_take_one=True,
        night=True,
    )


# --- what a hand counts ---


def totals(cards: Cards) -> tuple[int, ...]:
    """What the cards may count, least first: two totals when there is an ace."""
    least = sum(min(values(card)) for card in cards)
    return (least, least + 10) if any(card[0] == "A" for card in cards) else (least,)


def score(cards: Cards) -> int:
    """The total of a hand: an ace is 11, or one where 11 would go over 21, 13:69F-2.2(b)3i."""
    return max((total for total in totals(cards) if total <= MOST), default=min(totals(cards)))


def is_soft(cards: Cards) -> bool:
    """Whether an ace counts 11."""
    return score(cards) > min(totals(cards))


def is_bust(cards: Cards) -> bool:
    return score(cards) > MOST


def is_natural(cards: Cards) -> bool:
    """An ace and a ten-value as the first two cards; of a hand that was split the caller has to know."""
    return len(cards) == 2 and score(cards) == MOST


def dealer_draws(cards: Cards) -> bool:
    """Whether the dealer's hand takes one more card."""
    return score(cards) < DEALER_STANDS


def dealer_is_done(cards: Cards) -> bool:
    """Whether the dealer's hand is complete, and took no card that it must not take."""
    drawn = range(2, len(cards))
    return not dealer_draws(cards) and all(dealer_draws(cards[:count]) for count in drawn)


# --- which plays are open ---


def no_card(cards: Cards, terms: Terms) -> Why | None:
    """Why the hand may not draw."""
    if score(cards) < MOST:
        return None
    return Why(
        f"a hand of {score(cards)} draws no card", terms.clause("13:69F-2.12(a)1", "13:47-20.22(g)10ii")
    )


def no_double(cards: Cards, terms: Terms, *, split: bool = False) -> Why | None:
    """Why the wager may not be doubled on these cards."""
    clause = terms.clause("13:69F-2.10(a)", "13:47-20.22(g)3")
    if len(cards) != 2:
        return Why("only the first two cards of a hand may be doubled on", clause)
    if split and not terms.doubles_split:
        return Why("a split hand may not be doubled on", "13:47-20.22(g)2")
    if score(cards) == MOST:
        return Why("21 in two cards may not be doubled on", clause)
    if terms.doubles_on is not None and not terms.doubles_on & {*totals(cards)}:
        return Why(f"a double takes a total of 10 or 11, not {score(cards)}", clause)
    return None


def no_split(cards: Cards, terms: Terms, *, split: bool = False) -> Why | None:
    """Why the hand may not be split. Ten-values are a pair of each other in either regime."""
    clause = terms.clause("13:69F-2.11(a)", "13:47-20.22(g)1")
    if len(cards) != 2 or values(cards[0]) != values(cards[1]):
        return Why("only two cards of the same value may be split", clause)
    if split and not terms.splits_again:
        return Why("only the first two cards of a player may be split", clause)
    if split and terms.aces_take_one and cards[0][0] == "A":
        return Why("a split ace takes one card and is over", "13:47-20.22(g)2")
    return None


def no_surrender(cards: Cards, terms: Terms, *, split: bool = False) -> Why | None:
    """Why half the wager may not be surrendered."""
    if terms.night:
        return Why("a player stays, or asks for a card: there is no surrender", "13:47-20.22(g)10i")
    if len(cards) != 2 or split:
        return Why("a hand is surrendered on its first two cards", "13:69F-2.8(a)")
    return None


def takes_one_card(cards: Cards, terms: Terms) -> bool:
    """Whether each half of this pair, once split, takes one card and no more."""
    return terms.aces_take_one and cards[0][0] == "A"


def no_insurance(up: str, terms: Terms) -> Why | None:
    """Why nobody may insure while this is the dealer's up card."""
    if up[0] == "A":
        return None
    return Why(
        "insurance takes an ace as the dealer's up card", terms.clause("13:69F-2.9(a)", "13:47-20.22(g)4")
    )


# --- what a hand wins ---


def settle(
    cards: Cards, dealer: Cards, terms: Terms, *, split: bool = False, surrendered: bool = False
) -> Settled:
    """How the wager on a hand ends. `dealer` may be empty where nothing depends on it: a bust, a surrender.

    A hand that was split holds no natural; nor does it stand against a natural of the dealer.
    """
    if surrendered:
        return SURRENDERED
    if is_bust(cards):
        return LOST
    natural = is_natural(cards) and not split
    if is_natural(dealer):
        return PUSHED if natural and terms.ties is not Ties.HOUSE_WINS else LOST
    if natural:
        return Settled(Outcome.WIN, terms.natural)
    mine, theirs = score(cards), score(dealer)
    if mine == theirs:
        return PUSHED if terms.ties is Ties.PUSH else LOST
    if mine < theirs <= MOST:
        return LOST
    five = mine == MOST and len(cards) == 5
    return Settled(Outcome.WIN, terms.five_card_21 if five and terms.five_card_21 else EVEN)


def settle_insurance(dealer: Cards) -> Settled:
    """How an insurance wager ends: by the dealer's second card alone."""
    return Settled(Outcome.WIN, INSURANCE) if is_natural(dealer[:2]) else LOST


def odds(gain: Fraction) -> str:
    """What is paid for one wager, as layouts print it: 3 to 2."""
    return f"{gain.numerator} to {gain.denominator}"
