"""What people tell of a deal that no device counts: in its time, once, and only what can be (R-28, R-36)."""

from __future__ import annotations

from typing import Any

import pytest

from controller.table.phases import Phase
from controller.table.profiles import Burn
from controller.table.rules import expected
from tests.support.hands import Hand, manual_rules
from tests.support.table import Table

FROM_HAND: dict[str, Any] = {"shoe": None, "shoe_senses": frozenset(), "profile": "nj-casino-night"}


def dealt(boxes: str = "1,2,3", **changes: Any) -> Hand:
    t = Hand(manual_rules(**FROM_HAND, burn=Burn.EACH_ROUND, cutting_card=False, **changes))
    t.open_by_hand()
    t.tap("bets_closed", boxes=boxes)
    return t


LEFT_OUT = [
    ("dealer_skipped", {"card": "first"}),
    ("dealer_skipped", {"card": "second"}),
    ("box_skipped", {"box": 3, "cards": 0}),
    ("box_skipped", {"box": 3, "cards": 1}),
]


@pytest.mark.rule("R-34", "R-36")
@pytest.mark.parametrize(("event", "args"), [*LEFT_OUT, ("drawn_in_error", {"exposed": False})])
def test_before_the_rounds_burn_no_card_was_dealt_to_anybody(event: str, args: dict[str, Any]) -> None:
    t = dealt()
    assert t.state.phase is Phase.ROUND_BURN
    refusal = t.refused(event, **args)
    assert refusal.code in ("not_skipped", "no_card_drawn")
    assert "burn" in refusal.expected
    assert refusal.clause is not None
    t.tap("burn")
    t.tap(event, **args)


@pytest.mark.rule("R-34", "R-36")
@pytest.mark.parametrize(("event", "args"), LEFT_OUT)
def test_what_was_left_out_is_told_once(event: str, args: dict[str, Any]) -> None:
    t = dealt()
    t.tap("burn")
    t.tap(event, **args)
    again = {**args, "cards": 1 - args["cards"]} if "cards" in args else args
    for said in (args, again):
        assert t.refused(event, **said).code == "told_already"


@pytest.mark.rule("R-34", "R-36")
@pytest.mark.parametrize(("event", "args"), [LEFT_OUT[0], LEFT_OUT[3]])
def test_a_shoe_that_counts_is_told_once_too(event: str, args: dict[str, Any]) -> None:
    t = Table()
    t.open_to_shoe()
    t.tap("bets_closed", boxes="1,2,3")
    t.tap(event, **args)
    assert t.refused(event, **args).code == "told_already"


@pytest.mark.rule("R-36")
def test_the_last_box_that_is_left_cannot_be_left_out_too() -> None:
    t = dealt("2,3")
    t.tap("burn")
    t.tap("box_skipped", box=2, cards=0)
    assert t.refused("box_skipped", box=3, cards=0).code == "only_box"


@pytest.mark.rule("R-28")
def test_a_round_takes_two_cards_for_the_dealer_and_each_box_that_was_dealt_in() -> None:
    t = dealt("1,2,3,4,5,6,7")
    t.tap("burn")
    refusal = t.refused("round_settled", cards=15)
    assert (refusal.code, refusal.clause) == ("bad_argument", "13:47-20.22")
    assert "16 to 51" in refusal.why
    t.tap("box_skipped", box=4, cards=0)
    assert "14 to 51" in t.refused("round_settled", cards=13).why
    t.tap("round_settled", cards=14)


@pytest.mark.rule("R-28", "R-35")
def test_fewer_cards_left_than_the_deal_takes_are_no_count_of_it() -> None:
    t = dealt("1,2,3,4,5,6,7")
    t.tap("burn")
    t.tap("round_settled", cards=40)
    t.tap("bets_closed", boxes="1,2,3,4,5,6,7")
    t.tap("burn")
    refusal = t.refused("round_settled", cards=10)
    assert "took 16 cards or more, and 10 are known to be left" in refusal.why
    t.tap("round_settled")


@pytest.mark.rule("R-23")
def test_a_burn_is_told_once_before_its_card() -> None:
    t = Table()
    t.open_to_shoe()
    t.play_round()
    t.tap("dealer_change")
    t.tap("burn")
    assert "burn" not in expected(t.rules, t.state)
    assert t.refused("burn").code == "already_known"
    t.draw()
    assert t.state.phase is Phase.BETWEEN_ROUNDS
    t.tap("dealer_change")
    t.tap("burn")


@pytest.mark.parametrize("boxes", ["1,,2", "1,2,", ",1", ["1", ""]])
def test_a_gap_in_a_list_of_boxes_is_no_list(boxes: Any) -> None:
    t = Table()
    t.open_to_shoe()
    refusal = t.refused("bets_closed", boxes=boxes)
    assert (refusal.code, "is not a list such as 1,2,5" in refusal.why) == ("bad_argument", True)
    assert "is missing" in t.refused("bets_closed", boxes="").why


@pytest.mark.rule("R-16")
def test_no_more_cards_lie_behind_the_cutting_card_than_there_are() -> None:
    t = Table()
    t.boot()
    t.links_up()
    t.open()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.complete()
    t.take()
    t.tap("load_shuffler", batch="B")
    t.start()
    t.tap("offer_cut", box="3")
    t.tap("cut", position=20)
    why = "13 to 51 of 52 cards lie behind the cutting card, not 52"
    assert why in t.refused("insert_cutting_card", position=52).why
    t.tap("insert_cutting_card", position=51)
