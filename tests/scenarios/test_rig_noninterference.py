"""Law 7: cards nobody may see yet change no byte of any output until they are exposed.

Each shoe is played twice. The second time the unseen cards (burn, hole cards, stub) lie in another order and
the dealer plays what he played; log, status, follow stream, answers and refusals, what is printed and what is
sent to the machines must not differ.
"""

from __future__ import annotations

import pytest

from tests.support.irregular_shoe import Irregular
from tests.support.twice import Night, Run, played_twice


@pytest.mark.rule("R-63")
@pytest.mark.parametrize(
    ("decks", "seeds", "shoe"),
    [
        (1, range(12), "managed-shoe"),
        (2, range(12, 15), "managed-shoe"),
        (6, range(15, 16), "managed-shoe"),
        (1, range(16, 20), "bee-tek"),
    ],
)
def test_unseen_cards_change_no_output(decks: int, seeds: range, shoe: str) -> None:
    for seed in seeds:
        first = played_twice(decks, seed, shoe)
        assert len(first.unseen) > decks * 10


@pytest.mark.rule("R-63", "R-31", "R-32", "R-34", "R-35")
def test_unseen_cards_change_no_output_of_a_shoe_in_which_everything_goes_wrong() -> None:
    for seed in range(20, 23):
        first = played_twice(1, seed, kind=Irregular)
        kinds = {entry.fact.kind for entry in first.world.journal.entries()}
        assert kinds >= {"drawn_in_error", "dealer_skipped", "void_round", "reshuffle_by_hand"}
        assert len(first.unseen) >= 8 <= len(first.later)


@pytest.mark.rule("R-63", "R-79")
@pytest.mark.parametrize(("decks", "seed"), [(1, 30), (2, 31)])
def test_a_players_card_that_lies_face_down_changes_no_output(decks: int, seed: int) -> None:
    first = played_twice(decks, seed, kind=Night)
    deals = first.world.view.rounds * 2
    assert len(first.unseen) > deals


def test_the_outputs_do_show_what_may_be_seen() -> None:
    """The check can fail: a seen card swapped for another one changes the outputs."""
    first = Run(1, 3)
    second = Run(1, 3, unseen=[1, 3])
    assert first.lines != second.lines
