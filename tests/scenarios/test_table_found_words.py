"""Findings of a newcomer: what a refusal, a fault or an alarm says of what happened and of what to do."""

from __future__ import annotations

import pytest

from tests.support.hands import Hand, manual_rules, night_rules
from tests.support.table import Table


def manual() -> Hand:
    t = Hand(manual_rules())
    t.open_by_hand()
    return t


# --- arguments ---


@pytest.mark.parametrize("event", ["inspect", "verify", "spread", "player_inspected", "wash"])
def test_a_step_that_no_batch_waits_for_is_not_expected_rather_than_not_understood(event: str) -> None:
    table = Table()
    table.open_to_shoe()
    for t in (manual(), table):
        refusal = t.refused(event)
        assert (refusal.code, refusal.clause) == ("unexpected", "13:69F-2.4(b)-(e)")
        assert "no batch waits for it" in refusal.why
        assert refusal.expected


def test_a_box_that_is_named_twice_may_stand_for_another() -> None:
    t = manual()
    refusal = t.refused("bets_closed", boxes="1,5,1")
    assert (refusal.code, refusal.why) == ("bad_argument", "bets_closed: boxes=1,5,1 names box 1 twice")
    t.tap("bets_closed", boxes="5, 1")
    assert t.state.round is not None
    assert t.state.round.boxes == (1, 5)


@pytest.mark.parametrize("digits", ["\u0663\u0660", "2_0", "\u00b2", "2.0", "+20", ""])
def test_numbers_are_written_in_the_digits_of_everybody(digits: str) -> None:
    t = Hand(night_rules())
    t.boot()
    t.tap("open")
    t.tap("reshuffle_by_hand", batch="A")
    assert t.refused("cut", position=digits).why == f"cut: position={digits} is not a whole number"
    shoe = manual()
    assert shoe.refused("bets_closed", boxes=f"1,{digits or 'x'}").code == "bad_argument"
    shoe.deal("1")
    for event in ("cutting_card_at", "hit", "insurance"):
        assert shoe.refused(event, box=digits).code == "bad_argument"
