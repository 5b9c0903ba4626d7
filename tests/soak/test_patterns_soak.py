"""Thousands of fairly shuffled shoes, none of which is called a pattern."""

from __future__ import annotations

from random import Random

import pytest

from tests.unit.test_table_patterns import dealt, first_alarm, shuffled


@pytest.mark.soak
@pytest.mark.parametrize(("decks", "shoes"), [(1, 8000), (2, 4000), (6, 1200), (8, 1000)])
def test_fair_shoes_raise_no_alarm(decks: int, shoes: int) -> None:
    random, earlier = Random(f"soak {decks}"), ("", "")
    for _ in range(shoes):
        cards = dealt(shuffled(decks, random), random.randint(1, 7), random)
        assert first_alarm(cards, earlier) == (None, None)
        earlier = (earlier[1], "".join(cards))
