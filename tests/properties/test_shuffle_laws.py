"""The mechanisms of the simulated shufflers against what is proven of them.

Small piles are enumerated: every chance that a pass can take, exactly. Whole decks are counted, with fixed
seeds and four standard errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import permutations, product
from math import erfc, exp, factorial, prod, sqrt
from random import Random
from statistics import fmean

import pytest

from simulators.models.shuffles import insertion_pass, riffle_pass, shelf_pass
from tests.support import shuffle_laws as laws

DECK = range(52)
UNIFORM, RISING = laws.uniform_valleys(52), laws.uniform_rising(52)


class Chances(Random):
    """Takes each chance as it is told to."""

    def __init__(self, chances: Iterable[float] = (), coins: int = 0) -> None:
        super().__init__(0)
        self._chances, self._coins = iter(chances), coins

    def random(self) -> float:
        return next(self._chances)

    def getrandbits(self, _: int, /) -> int:
        return self._coins


def many(one: Callable[[Random], Sequence[int]], count: int, seed: str) -> list[Sequence[int]]:
    random = Random(seed)
    return [one(random) for _ in range(count)]


@pytest.fixture(scope="module")
def ten_shelves() -> list[Sequence[int]]:
    return many(lambda random: shelf_pass(DECK, 10, random), 20_000, "ten shelves")


@pytest.fixture(scope="module")
def uniform() -> list[Sequence[int]]:
    return many(lambda random: insertion_pass(DECK, random), 6_000, "uniform")


# The laws, and what was printed of them


@pytest.mark.parametrize(
    ("shelves", "printed"),
    [
        (10, "1.000 1.000"),
        (15, "0.943 1.000"),
        (20, "0.720 1.000"),
        (25, "0.544 1.000 45118"),
        (30, "0.391 1.000 3961"),
        (35, "0.299 0.996 716"),
        (50, "0.159 0.910 39"),
        (100, "0.041 0.431 1.9"),
        (150, "0.018 0.219 0.615"),
        (200, "0.010 0.130 0.313"),
        (250, "0.007 0.085 0.192"),
        (300, "0.005 0.060 0.130"),
    ],
)
def test_distances_of_a_shelf_pass_are_the_printed_ones(shelves: int, printed: str) -> None:
    """Table 1 of Diaconis, Fulman and Holmes, which prints no l-infinity for the first three."""
    law = laws.shelf_valleys(52, shelves)
    assert sum(law.values()) == 1
    distances = (laws.total_variation, laws.separation, laws.l_infinity)
    figures = [float(distance(law, UNIFORM)) for distance in distances]
    for figure, text in zip(figures, printed.split(), strict=False):
        digits = len(text.partition(".")[2])
        assert f"{figure:.{digits}f}" == text
    assert max(v for v, p in law.items() if p) == min(shelves - 1, 25)


def test_distances_of_riffles_are_those_of_bayer_and_diaconis() -> None:
    riffled = [laws.riffle_rising(52, 2**k) for k in range(1, 13)]
    assert [sum(law.values()) for law in riffled] == [1] * 12
    assert [f"{float(laws.total_variation(law, RISING)):.4f}" for law in riffled] == [
        *["1.0000"] * 4, "0.9237", "0.6135", "0.3341", "0.1672", "0.0854", "0.0429", "0.0215", "0.0108",
    ]  # fmt: skip
    assert [f"{laws.mean(law):.3f}" for law in riffled[:8]] == [
        "2.000", "4.000", "7.949", "14.099", "19.605", "22.948", "24.710", "25.603",
    ]  # fmt: skip


def test_moments_and_tails_of_the_laws() -> None:
    shelf = laws.shelf_valleys(52, 10)
    assert (f"{laws.mean(shelf):.4f}", f"{laws.deviation(shelf):.3f}") == ("8.6308", "0.554")
    assert {v: f"{float(shelf[v]):.5f}" for v in range(5, 11)} == {
        5: "0.00001", 6: "0.00111", 7: "0.03383", 8: "0.29812", 9: "0.66693", 10: "0.00000",
    }  # fmt: skip
    assert (f"{laws.mean(UNIFORM):.4f}", f"{laws.deviation(UNIFORM):.4f}") == ("16.6667", "1.5348")
    colours = laws.uniform_colours(52)
    assert (sum(colours.values()), laws.mean(colours)) == (1, 26.0)
    assert f"{laws.deviation(colours):.4f}" == "3.5700"
    assert f"{float(laws.uniform_guesses(52)):.3f}" == "4.538"
    two_decks = laws.shelf_valleys(104, 200)
    assert f"{float(laws.total_variation(two_decks, laws.uniform_valleys(104))):.4f}" == "0.0569"


def test_the_tail_of_chi_square() -> None:
    for x in (0.1, 1.0, 4.0, 20.0):
        assert laws.chi_square_tail(x, 2) == pytest.approx(exp(-x / 2))
        assert laws.chi_square_tail(x, 1) == pytest.approx(erfc(sqrt(x / 2)))
    assert laws.chi_square_p({0: 900, 1: 1100}, {0: Fraction(1, 2), 1: Fraction(1, 2)}) < 1e-4


# Small piles: every chance there is


@pytest.mark.parametrize(("count", "shelves"), [(4, 2), (5, 2), (4, 3)])
def test_a_shelf_pass_takes_each_order_with_its_proven_probability(count: int, shelves: int) -> None:
    lanes = range(2 * shelves)
    found: Counter[tuple[int, ...]] = Counter()
    for taken in product(lanes, repeat=count):
        chances = Chances((lane + 0.5) / len(lanes) for lane in taken)
        found[tuple(shelf_pass(range(count), shelves, chances))] += 1
    for order in permutations(range(count)):
        expected = laws.shelf_order(count, shelves, laws.valleys(order))
        assert Fraction(found[order], len(lanes) ** count) == expected
    stays = Fraction(sum(n for order, n in found.items() if not order[0]), len(lanes) ** count)
    assert stays == laws.top_stays(count, shelves)


@pytest.mark.parametrize("passes", [1, 2])
def test_riffles_take_each_order_with_its_proven_probability(passes: int) -> None:
    found: Counter[tuple[int, ...]] = Counter()
    for coins in product(range(2**4), repeat=passes):
        order: list[int] = list(range(4))
        for coin in coins:
            order = riffle_pass(order, Chances(coins=coin))
        found[tuple(order)] += 1
    for taken in permutations(range(4)):
        expected = laws.riffle_order(4, 2**passes, laws.rising_sequences(taken))
        assert Fraction(found[taken], 16**passes) == expected


@pytest.mark.parametrize("count", [1, 4, 5])
def test_the_carousel_takes_every_order_once(count: int) -> None:
    gaps = [range(n + 1) for n in range(count)]
    orders = {
        tuple(insertion_pass(range(count), Chances((gap + 0.5) / (n + 1) for n, gap in enumerate(taken))))
        for taken in product(*gaps)
    }
    assert len(orders) == factorial(count) == prod(map(len, gaps))


# Whole decks, counted


def test_valleys_of_a_pass_of_ten_shelves(ten_shelves: list[Sequence[int]]) -> None:
    seen = Counter(map(laws.valleys, ten_shelves))
    assert max(seen) == 9
    assert laws.chi_square_p(seen, laws.shelf_valleys(52, 10)) > 1e-4
    assert fmean(map(laws.descents, ten_shelves)) == pytest.approx(25.5, abs=0.06), "as often above as below"


def test_two_passes_of_ten_shelves_are_one_of_two_hundred() -> None:
    twice = many(lambda random: shelf_pass(shelf_pass(DECK, 10, random), 10, random), 6_000, "two passes")
    seen = Counter(map(laws.valleys, twice))
    assert laws.chi_square_p(seen, laws.shelf_valleys(52, 200)) > 1e-4


def test_who_guesses_the_next_card_hits_as_often_as_published(
    ten_shelves: list[Sequence[int]], uniform: list[Sequence[int]]
) -> None:
    one = many(lambda random: shelf_pass(DECK, 1, random), 1_000, "one shelf")
    assert fmean(map(laws.guesses, one)) == pytest.approx(
        float(laws.one_shelf_guesses(52)), abs=4 * sqrt(3.25 / len(one))
    )
    assert fmean(map(laws.guesses, ten_shelves)) == pytest.approx(9.29, abs=0.06)
    assert fmean(map(laws.guesses, uniform)) == pytest.approx(
        float(laws.uniform_guesses(52)), abs=4 * sqrt(2.912 / len(uniform))
    )


def test_colours_change_as_published(ten_shelves: list[Sequence[int]], uniform: list[Sequence[int]]) -> None:
    assert fmean(map(laws.colour_changes, ten_shelves)) == pytest.approx(17.20, abs=0.06)
    seen = Counter(map(laws.colour_changes, uniform))
    assert laws.chi_square_p(seen, laws.uniform_colours(52)) > 1e-4


def test_the_top_card_stays_as_often_as_proven(ten_shelves: list[Sequence[int]]) -> None:
    chance = float(laws.top_stays(52, 10))
    assert f"{chance:.4f}" == "0.0505"
    stays = fmean(order[0] == 0 for order in ten_shelves)
    assert stays == pytest.approx(chance, abs=4 * sqrt(chance * (1 - chance) / len(ten_shelves)))


def test_a_carousel_is_uniform_for_every_measure(uniform: list[Sequence[int]]) -> None:
    assert laws.chi_square_p(Counter(map(laws.valleys, uniform)), UNIFORM) > 1e-4
    assert laws.chi_square_p(Counter(map(laws.rising_sequences, uniform)), RISING) > 1e-4
    assert fmean(map(laws.descents, uniform)) == pytest.approx(25.5, abs=4 * sqrt(53 / 12 / len(uniform)))


@pytest.mark.parametrize(("passes", "mean", "count"), [(3, "7.949", 2_000), (7, "24.710", 1_500)])
def test_riffles_make_rising_sequences_as_proven(passes: int, mean: str, count: int) -> None:
    def riffle(random: Random) -> list[int]:
        order = list(DECK)
        for _ in range(passes):
            order = riffle_pass(order, random)
        return order

    law = laws.riffle_rising(52, 2**passes)
    assert f"{laws.mean(law):.3f}" == mean
    seen = Counter(map(laws.rising_sequences, many(riffle, count, f"{passes} riffles")))
    assert max(seen) <= 2**passes
    assert laws.chi_square_p(seen, law) > 1e-4


def test_a_biased_machine_makes_fewer_descents() -> None:
    """With six of ten cards laid above the rest of their shelf: 22.18 (25.5 without bias)."""
    biased = many(lambda random: shelf_pass(DECK, 10, random, 0.6), 3_000, "biased")
    assert fmean(map(laws.descents, biased)) == pytest.approx(22.18, abs=4 * 2.1 / sqrt(len(biased)))
