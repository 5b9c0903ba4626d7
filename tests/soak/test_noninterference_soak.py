"""Law 7 over two hundred shoes."""

from __future__ import annotations

import pytest

from tests.support.irregular_shoe import Irregular
from tests.support.twice import played_twice


@pytest.mark.soak
@pytest.mark.rule("R-63")
def test_unseen_cards_change_no_output_of_two_hundred_shoes() -> None:
    for seed in range(1000, 1200):
        decks = (1, 1, 1, 2, 6)[seed % 5]
        if seed % 10 == 1:
            played_twice(decks, seed, kind=Irregular)
        else:
            played_twice(decks, seed, "bee-tek" if decks == 1 and seed % 3 == 0 else "managed-shoe")
