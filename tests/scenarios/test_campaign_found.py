"""What the campaign found, each as the story it was."""

from __future__ import annotations

import pytest

from controller.table.phases import Phase
from tests.support.table import Table, table_rules


@pytest.mark.rule("R-44")
def test_a_joker_out_of_a_blackjack_shoe_is_a_card_too_many_and_counts_nothing() -> None:
    t = Table(table_rules(wagers=("over-under-13",)))
    t.open_to_shoe()
    t.complete()
    t.tap("bets_closed", boxes="1,2")
    t.stack[-1] = "XJ"
    t.draw()
    assert t.codes == ["too_many_copies"]
    assert t.state.faults[0].cause == "a card that no deck of this game holds"
    while t.state.phase is Phase.DEALING:
        t.draw()
    assert t.state.batches["A"].unfit == "too_many_copies"
    assert t.state.phase in (Phase.SIDE_WAGERS, Phase.HOLE_CARD)
