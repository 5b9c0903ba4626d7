"""What is known of shuffles, in integers and fractions: an oracle that shares nothing with the simulators.

An order is what comes out, top card first, each card told by its place in what went in (0 = top). Sources:
DFH = Diaconis, Fulman, Holmes, Analysis of casino shelf shuffling machines, Ann. Appl. Probab. 23 (2013);
BD = Bayer, Diaconis, Trailing the dovetail shuffle to its lair, Ann. Appl. Probab. 2 (1992).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import comb, exp, factorial, lgamma, log

Law = dict[int, Fraction]


# What is seen in an order


def valleys(order: Sequence[int]) -> int:
    """Places lower than both neighbours (DFH: with the size of the pile all that a shelf pass leaves)."""
    return sum(a > b < c for a, b, c in zip(order, order[1:], order[2:], strict=False))


def descents(order: Sequence[int]) -> int:
    return sum(a > b for a, b in pairwise(order))


def rising_sequences(order: Sequence[int]) -> int:
    """Runs of cards that follow one another in what went in (BD): one and the descents of the inverse."""
    place = [0] * len(order)
    for at, card in enumerate(order):
        place[card] = at
    return 1 + descents(place)


def colour_changes(order: Sequence[int]) -> int:
    """Changes between cards of the upper and of the lower half of what went in (DFH 5.2)."""
    half = len(order) // 2
    colours = [card < half for card in order]
    return sum(a != b for a, b in pairwise(colours))


def guesses(order: Sequence[int]) -> int:
    """Hits of who sees each card and guesses the next as DFH 5.1 has it.

    The top card at first, then the nearest card left in the direction of the last two, or in the other one.
    """
    count = len(order)
    above, below = list(range(-1, count - 1)), list(range(1, count + 1))
    hits, guess, last, up = 0, 0, -1, True
    for card in order:
        hits += card == guess
        up, last = card > last, card
        before, after = above[card], below[card]
        if before >= 0:
            below[before] = after
        if after < count:
            above[after] = before
        guess = after if (up and after < count) or before < 0 else before
    return hits


# Counts of permutations


@cache
def with_valleys(count: int) -> list[int]:
    """Permutations of `count` cards by valleys (Warren and Seneta, used by DFH)."""
    row = [1]
    for n in range(2, count + 1):
        row = [
            (2 * v + 2) * (row[v] if v < len(row) else 0) + (n - 2 * v) * (row[v - 1] if v else 0)
            for v in range((n + 1) // 2)
        ]
    return row


@cache
def with_descents(count: int) -> list[int]:
    """Permutations of `count` cards by descents: the Eulerian numbers."""
    row = [1]
    for n in range(2, count + 1):
        row = [(d + 1) * (row[d] if d < n - 1 else 0) + (n - d) * (row[d - 1] if d else 0) for d in range(n)]
    return row


# Laws


def shelf_order(count: int, shelves: int, valleys: int) -> Fraction:
    """Probability of one order with so many valleys after one pass (DFH)."""
    ways = sum(
        comb(count + shelves - a - 1, count) * comb(count - 1 - 2 * valleys, a - valleys)
        for a in range(valleys, min(shelves - 1, count - 1 - valleys) + 1)
    )
    return Fraction(4 ** (valleys + 1) * ways, 2 * (2 * shelves) ** count)


def shelf_valleys(count: int, shelves: int) -> Law:
    """Law of the valleys after one pass."""
    return {v: ways * shelf_order(count, shelves, v) for v, ways in enumerate(with_valleys(count))}


def uniform_valleys(count: int) -> Law:
    return {v: Fraction(ways, factorial(count)) for v, ways in enumerate(with_valleys(count))}


def riffle_order(count: int, packets: int, rising: int) -> Fraction:
    """Probability of one order with so many rising sequences after a riffle of `packets` packets (BD)."""
    return Fraction(comb(packets + count - rising, count), packets**count)


def riffle_rising(count: int, packets: int) -> Law:
    """Law of the rising sequences; k passes of two packets are one of 2^k (BD)."""
    return {d + 1: ways * riffle_order(count, packets, d + 1) for d, ways in enumerate(with_descents(count))}


def uniform_rising(count: int) -> Law:
    return {d + 1: Fraction(ways, factorial(count)) for d, ways in enumerate(with_descents(count))}


def uniform_colours(count: int) -> Law:
    """Law of the colour changes of a uniform order of two halves (Wald and Wolfowitz, runs less one)."""
    half, law = count // 2, {}
    for runs in range(2, count + 1):
        ways = 2 * comb(half - 1, (runs + 1) // 2 - 1) * comb(half - 1, runs // 2 - 1)
        law[runs - 1] = Fraction(ways, comb(count, half))
    return law


def top_stays(count: int, shelves: int) -> Fraction:
    """Probability that the top card is still on top after one shelf pass.

    In the upper half of its shelf it comes before all others there, in the lower half behind them.
    """
    lanes = 2 * shelves
    empty_before = (lane + lane % 2 for lane in range(lanes))
    return sum((Fraction(lanes - e, lanes) ** (count - 1) for e in empty_before), Fraction(0)) / lanes


def uniform_guesses(count: int) -> Fraction:
    """Mean hits of any guesser on a uniform order."""
    return sum((Fraction(1, left) for left in range(1, count + 1)), Fraction(0))


def one_shelf_guesses(count: int) -> Fraction:
    """Mean hits after a pass of one shelf (Clay, arXiv:2507.10294)."""
    return Fraction(3 * count, 4)


# Distances from uniform, and moments


def total_variation(law: Law, uniform: Law) -> Fraction:
    """TV: half the sum of all differences of single orders; within a class all orders are alike."""
    return sum((abs(law[k] - uniform[k]) for k in uniform), Fraction(0)) / 2


def separation(law: Law, uniform: Law) -> Fraction:
    return max(1 - law[k] / uniform[k] for k in uniform)


def l_infinity(law: Law, uniform: Law) -> Fraction:
    return max(abs(1 - law[k] / uniform[k]) for k in uniform)


def mean(law: Law) -> float:
    return float(sum(k * p for k, p in law.items()))


def deviation(law: Law) -> float:
    """Standard deviation."""
    middle = sum(k * p for k, p in law.items())
    return float(sum((k - middle) ** 2 * p for k, p in law.items())) ** 0.5


# A test of counts against a law


def chi_square_p(seen: Mapping[int, int], law: Law, fewest: int = 5) -> float:
    """Probability of a worse fit, with neighbours pooled until each class expects `fewest`."""
    total = sum(seen.values())
    pools: list[tuple[int, float]] = []
    got, want = 0, 0.0
    for k in sorted(law):
        got, want = got + seen.get(k, 0), want + float(law[k]) * total
        if want >= fewest:
            pools.append((got, want))
            got, want = 0, 0.0
    pools[-1] = (pools[-1][0] + got, pools[-1][1] + want)
    statistic = sum((got - want) ** 2 / want for got, want in pools)
    return chi_square_tail(statistic, len(pools) - 1)


def chi_square_tail(x: float, freedom: int) -> float:
    """Upper tail of chi-square: the regularised incomplete gamma function, by its series."""
    a, x = freedom / 2, x / 2
    if x <= 0:
        return 1.0
    term = total = 1 / a
    n = 0
    while term > total * 1e-15:
        n += 1
        term *= x / (a + n)
        total += term
    return max(0.0, 1.0 - total * exp(a * log(x) - x - lgamma(a)))
