"""The shortest script that still fails: delta debugging."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest

from simulators.rig.campaign.shrink import MOST_TRIES, shortest


def needs(*wanted: int) -> Callable[[tuple[int, ...]], bool]:
    return lambda steps: set(wanted) <= set(steps)


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        (range(1), ()),
        (range(1), (0,)),
        (range(8), ()),
        (range(8), (3,)),
        (range(8), (0, 7)),
        (range(9), (2, 3, 8)),
        (range(5), (0, 1, 2, 3, 4)),
    ],
)
def test_what_is_left_is_what_was_needed(steps: range, wanted: tuple[int, ...]) -> None:
    assert shortest(steps, needs(*wanted)) == wanted


def test_any_two_of_many_are_found_in_few_tries() -> None:
    random = Random(7)
    for _ in range(50):
        wanted = sorted(random.sample(range(18), 2))
        tried: list[tuple[int, ...]] = []

        def fails(
            steps: tuple[int, ...], wanted: list[int] = wanted, tried: list[tuple[int, ...]] = tried
        ) -> bool:
            tried.append(steps)
            return set(wanted) <= set(steps)

        assert shortest(range(18), fails) == tuple(wanted)
        assert len(tried) <= 45
        assert tried[0] == ()


def test_no_single_step_of_what_is_left_can_go() -> None:
    def fails(steps: tuple[int, ...]) -> bool:
        """Needs two neighbours, whichever."""
        return any(a + 1 == b for a, b in pairwise(steps))

    left = shortest(range(10), fails)
    assert len(left) == 2
    assert fails(left)


def test_it_ends_with_what_it_has_when_the_tries_run_out() -> None:
    tried = []

    def fails(steps: tuple[int, ...]) -> bool:
        tried.append(steps)
        return len(steps) >= 60

    left = shortest(range(100), fails)
    assert len(tried) == MOST_TRIES
    assert 60 <= len(left) < 100
