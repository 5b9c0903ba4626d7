"""Orders that no shuffle gives, found on the cards that everybody saw (R-75, INC-2, INC-3, INC-4, INC-7).

An order is a text of two letters a card, "--" for each that not everybody saw at once: what it was is never
looked at (law 7), it only keeps its place. Five tests, each on the stretch that ends with the newest card:

- a new deck: 6 cards of a suit, each as many ranks up (or down) as it lies behind the one before;
- sorted, copies together: 8 cards of a suit whose ranks never turn and never leave one out;
- sorted by rank: 13 cards of any suit whose ranks never turn and never leave one out;
- a repeat: 7 cards as in the same shoe before, or in one of the last two shoes of the batch, or reversed;
- the rack again: of 48 seen cards 41 lay within 12 places of where such a repeat has them. That is how
  discards come that were picked up hand by hand and not shuffled. It is asked every 32 seen cards.

How often a fair order of whole, seen decks is called a pattern, at most, alarms a shoe (`ends` places where a
stretch may end, two directions; 52 faces, so a card is the one looked for with about 1/52):

    a new deck      2 * ends / 52**5          sorted, suit    2 * ends / 26**7
    sorted, rank    2 * ends / 6.5**12        a repeat        2 * ends * (2 * size + size / 2) / 52**7
    the rack again  4 * (shifts of one order along the other) * (ends / 32) * P(41 or more of 48), where the
                    chance of one card is that of a copy among 25 places: 0.43 to 0.39 for 2 to 8 decks

decks    1         2         6         8
in all   3e-7      3e-6      3e-6      5e-6     one false alarm in some 200 000 shoes of eight decks

An unseen card between two seen ones lets a sorted order move one rank further; it changes the sum by less
than half.
"""

from __future__ import annotations

from collections.abc import Sequence

from devices.events import DECK, RANKS

UNSEEN = "--"
NEW_DECK, SORTED_SUIT, SORTED_RANK, REPEAT = 6, 8, 13, 7
"""Cards that must agree."""
RACK, RACK_NEAR, RACK_EVERY = 48, 12, 32
"""Cards that are compared with the rack, how near is near, and every how many seen cards that is done."""
ORDERS_KEPT = 2
"""Shoes of a batch that the next one is compared with."""
_GAP = 4
"""A run ends where this many cards in a row went unseen."""
_REACH = 2 * 32
"""How far back a repeat is compared, letters."""
_RANK = {rank: number for number, rank in enumerate(RANKS)}
_FACES = frozenset(DECK)
_AROUND = (1 << 2 * RACK_NEAR + 1) - 1


def grown(order: str, seen: str | None) -> str:
    """The order with one more card; None is one that not everybody saw."""
    return order + (seen if seen in _FACES else UNSEEN)


def found(order: str, earlier: Sequence[str] = ()) -> str | None:
    """What is wrong with the order at its newest card, in words that name no card."""
    if len(order) < 2 * NEW_DECK or order[-2:] == UNSEEN:
        return None
    for direction in (1, -1) if _near(order) else ():
        if _run(order, direction, suit=True, exact=True) >= NEW_DECK:
            return f"{NEW_DECK} cards came in the order of a new deck"
        if _run(order, direction, suit=True, exact=False) >= SORTED_SUIT:
            return f"{SORTED_SUIT} cards came sorted by suit and rank"
        if _run(order, direction, suit=False, exact=False) >= SORTED_RANK:
            return f"{SORTED_RANK} cards came sorted by rank"
    pair = order[-4:]
    if _repeats(order, order[:-2], pair, itself=True):
        return f"{REPEAT} cards came in an order that this shoe had before"
    if any(_repeats(order, old, pair) for old in earlier):
        return f"{REPEAT} cards came in the order of an earlier shoe of the batch"
    seen = len(order) // 2 - order.count(UNSEEN)
    if seen >= RACK and seen % RACK_EVERY == 0 and any(_rack_again(order, old) for old in earlier):
        return f"{RACK} cards came that lay together in the rack after an earlier shoe of the batch"
    return None


def _near(order: str) -> bool:
    """Whether the newest card may belong to a run at all: most cards do not, and this is asked for each."""
    before = order[-4:-2]
    return before == UNSEEN or abs(_RANK[order[-2]] - _RANK[before[0]]) <= 1


def _run(order: str, direction: int, *, suit: bool, exact: bool) -> int:
    """How many seen cards up to the newest move in one direction, by at most (or exactly) their distance."""
    last, count, distance = order[-2:], 1, 1
    for at in range(len(order) - 4, -1, -2):
        card = order[at : at + 2]
        if card == UNSEEN:
            distance += 1
            if distance > _GAP:
                break
            continue
        moved = direction * (_RANK[last[0]] - _RANK[card[0]])
        if (suit and card[1] != last[1]) or not (moved == distance if exact else 0 <= moved <= distance):
            break
        last, count, distance = card, count + 1, 1
    return count


def _repeats(order: str, old: str, pair: str, *, itself: bool = False) -> bool:
    """Whether the newest cards lie in `old` in the same order, or in the reverse one."""
    if pair[:2] == UNSEEN:
        return False
    at = old.find(pair)
    while at >= 0:
        if at % 2 == 0 and _agree(order, old, at + 2, -2):
            return True
        at = old.find(pair, at + 1)
    turned = pair[2:] + pair[:2]
    at = old.find(turned)
    while at >= 0:
        if at % 2 == 0 and _agree(order, old, at, 2, itself=itself):
            return True
        at = old.find(turned, at + 1)
    return False


def _agree(order: str, old: str, at: int, step: int, *, itself: bool = False) -> bool:
    """Whether enough seen cards agree, back from the newest one and in `old` from `at` on by `step`."""
    count, newest = 0, len(order) - 2
    for mine in range(newest, max(-1, newest - _REACH), -2):
        if not 0 <= at < len(old) or (itself and at >= mine):
            return False  # of a palindrome only one half counts
        card, other = order[mine : mine + 2], old[at : at + 2]
        if UNSEEN not in (card, other):
            if card != other:
                return False
            count += 1
            if count == REPEAT:
                return True
        at += step
    return False


def _rack_again(order: str, old: str) -> bool:
    """Whether `old`, moved along `order`, has almost all of the newest seen cards near to their places.

    All shifts at once, one bit each: `near` says at which of them a face lies near to place 0, and the three
    bits of `ones`, `twos` and `fours` count the misses, of which an eighth one ends a shift.
    """
    near: dict[str, int] = {}
    for place, card in _seen(old):
        near[card] = near.get(card, 0) | _AROUND << place
    places, newest = len(order) // 2, _seen(order)[-RACK:]
    for forward in (True, False):
        left = (1 << places + len(old) // 2 + 2 * RACK_NEAR) - 1
        ones = twos = fours = 0
        for place, card in newest:
            missed = left & ~(near.get(card, 0) << (places - place if forward else place))
            ones, carry = ones ^ missed, ones & missed
            twos, carry = twos ^ carry, twos & carry
            fours, carry = fours ^ carry, fours & carry
            left &= ~carry
        if left:
            return True
    return False


def _seen(order: str) -> list[tuple[int, str]]:
    """Place and face of each seen card."""
    cards = (order[at : at + 2] for at in range(0, len(order), 2))
    return [(place, card) for place, card in enumerate(cards) if card != UNSEEN]
