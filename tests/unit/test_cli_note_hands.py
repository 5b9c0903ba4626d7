"""Hands and settlements as `status` tells them to people."""

import pytest

from controller.table.blackjack import Ties
from controller.table.profiles import MatchTerms
from controller.table.state import Place
from tests.support.continuous import ContinuousTable
from tests.support.felt_hands import Played
from tests.unit.test_cli_note import bench_with, shown


def rows(t: Played, *names: str) -> list[str]:
    return [line for line in shown(bench_with(t)) if line.split()[0] in names]


@pytest.mark.rule("R-30")
def test_each_hand_with_its_total_and_then_what_it_wins():
    t = Played()
    t.round("TS 8D 6C 5S 8H TC")
    t.tap("hit")
    t.cards("4H")
    assert rows(t, "hands") == ["hands       box 1 19, plays; box 2 16, waits"]
    t.tap("stand")
    t.tap("split", box="2")
    t.cards("3S")
    assert rows(t, "round", "hands", "settled") == [
        "round       boxes 1 and 2, 8 cards",
        "hands       box 1 19, stood; box 2/1 11, plays; box 2/2 8, waits",
    ]
    t.tap("double")
    t.cards("9S AS")
    assert rows(t, "hands") == ["hands       box 1 19, stood; box 2/1 20, doubled; box 2/2 soft 19, plays"]
    t.tap("stand")
    t.cards("3D")
    t.tap("round_settled")
    assert rows(t, "hands", "settled") == [
        "settled     round 1, dealer 19: box 2/2 is a push; box 2/1 wins 1 to 1, doubled; box 1 is a push"
    ]


def test_a_card_that_a_hand_called_for_is_waited_for():
    """While the shuffler was busy, and nobody waited for that, the note told of neither."""
    t = Played()
    t.round("5S 8D 6C 5D 8H TC")
    assert rows(t, "waiting") == []
    for tap, box, waits in [("hit", "1", "1"), ("split", "2", "2/1")]:
        t.tap(tap, box=box)
        assert rows(t, "waiting") == [f"waiting     for a card for box {waits}"]
        t.cards("TH")
        t.tap("stand")
    assert rows(t, "waiting") == ["waiting     for a card for box 2/2"]


@pytest.mark.rule("R-60")
def test_used_cards_of_a_continuous_shuffler_and_how_many_of_them_may_go_back():
    t = ContinuousTable(decks=1)
    t.open_to_deal()
    t.play_round(boxes="1,2,5", extra=0)
    used = t.state.batches["A"].at(Place.RACK)
    assert used == 8
    shoe = "shoe        number 1, batch A, 44 cards left, 8 used cards in the rack: "
    assert rows(t, "shoe") == [shoe + "none may go back now"]
    t.tap("bets_closed", boxes="1")
    for _ in range(4):
        t.draw()
    assert rows(t, "shoe") == [shoe.replace("44", "40") + "8 may go back now"]
    t.give_back(8)
    assert rows(t, "shoe") == ["shoe        number 1, batch A, 48 cards left"]


def test_of_several_hands_of_the_dealer_it_is_told_which_one_is_in_play():
    t = Played(dealer_hands=3)
    t.round("TS 8D 6C 5S 8H TC")
    assert rows(t, "round") == ["round       boxes 1 and 2, 6 cards, the dealer's hand 1 of 3"]
    t.tap("dealer_hand_settled")
    assert rows(t, "round") == ["round       boxes 1 and 2, 6 cards, the dealer's hand 2 of 3"]


def test_insurance_naturals_and_a_surrender():
    t = Played()
    t.round("AS 8D AC KS 7H 9C")
    t.tap("insurance", box="1")
    t.tap("surrender", box="2")
    assert rows(t, "hands") == ["hands       box 1 soft 21, over, insured; box 2 15, surrendered"]
    t.tap("round_settled")
    assert rows(t, "settled") == [
        "settled     round 1, dealer 20: box 2 loses half; box 1 wins 3 to 2; insurance of box 1 loses"
    ]
    t.round("TS AC KS KC", boxes="1")
    t.tap("insurance", box="1")
    t.tap("round_settled")
    assert rows(t, "settled") == [
        "settled     round 2, dealer 21 (a natural): box 1 loses; insurance of box 1 wins 2 to 1"
    ]


def test_a_hand_nobody_turned_up_and_a_round_nobody_can_tell():
    t = Played(Ties.PUSH)
    t.round("TS 6C 6H TC", boxes="1")
    t.tap("hit")
    t.cards("TD")
    t.tap("round_settled")
    assert rows(t, "settled") == ["settled     round 1, the dealer's hand unturned: box 1 loses"]
    t.round("TS 6C 6H TC", boxes="1")
    t.tap("hit")
    t.tap("round_settled")
    assert rows(t, "settled") == [
        "settled     round 2: nobody can tell: box 1 was not played to its end",
    ]


@pytest.mark.rule("R-38", "R-40")
def test_the_wagers_on_the_first_cards_each_by_its_name() -> None:
    """Of two wagers on the same boxes nobody could tell which one was meant."""
    t = Played(settle_first=True, match=MatchTerms(4, 11), wagers=("match-the-dealer", "over-under-13"))
    t.tap("bets_closed", boxes="1,2", match="1,2")
    t.cards("8S 9H 8D 8C 4D")
    assert rows(t, "wagers") == [
        "wagers      box 2 lost; box 1 wins 4 to 1 and 4 to 1; over/under-13: box 1 over, box 2 neither"
    ]
