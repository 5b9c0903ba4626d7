"""Faults of one-deck games, followed hands and side wagers that a review found, each as short as can be."""

from __future__ import annotations

import pytest

from controller.table.inputs import Role
from controller.table.rules import awaited
from devices import events as ev
from firmware_bridge.link import Done
from tests.scenarios.test_table_deck_per_round import ONE, Poker, alone
from tests.support.felt_hands import Played
from tests.unit.test_table_side_wagers import Matching

SUPERVISOR = frozenset({Role.SUPERVISOR})


@pytest.mark.rule("R-53")
@pytest.mark.parametrize("stacks", [True, False])
def test_a_deal_that_came_before_the_bets_were_closed_is_no_deal(*, stacks: bool) -> None:
    """With every card of the deal out, nobody could say for whom the next stack was: the core broke off."""
    poker = alone(stacks=stacks)
    for _ in range(6):
        poker.draw()
    poker.tap("clear", SUPERVISOR, fault=poker.state.faults[-1].id)
    refused = poker.refused("bets_closed", boxes="1")
    assert (refused.code, refused.clause) == ("cards_dealt", "13:69F-20.9" if stacks else "13:69F-20.7")
    assert refused.expected == ("shuffle_now",)
    poker.tap("bets_closed", boxes="1,2")
    poker.tap("void_round", SUPERVISOR, reason="misdeal")
    assert poker.phase == "shoe_end"


@pytest.mark.rule("R-54", "R-56")
def test_the_cover_card_below_a_stub_that_is_counted_before_the_settlement_is_no_extra_card() -> None:
    poker = alone()
    poker.deal("1")
    while poker.stack:
        poker.draw()
    poker.event(ev.CutCard)
    poker.event(ev.ShoeEmpty)
    assert (poker.codes, poker.phase) == ([], "playing")


@pytest.mark.rule("R-33", "13:47-20.22(e)")
def test_a_hand_whose_card_was_burned_may_stand() -> None:
    """Its hit was still open: it could only take another card, and got the next hand's."""
    t = Played()
    t.round("5S 9D 6C 7S 8D TC")
    t.tap("hit", box="1")
    t.cards("4H")
    t.tap("drawn_in_error", exposed=True, burned=True)
    t.tap("stand", box="1")
    t.tap("hit", box="2")
    t.cards("2C")
    assert t.places[-1] == "box 2"
    t.tap("stand", box="2")
    t.tap("drawn_in_error", exposed=True, burned=True)
    t.cards("2H")
    assert t.places[6:] == ["burned", "burned", "dealer"]


@pytest.mark.rule("R-33")
def test_a_doubled_hand_whose_card_was_burned_gets_another() -> None:
    t = Played()
    t.round("5S 9D 6C 6H 8D TC")
    t.tap("double", box="1")
    t.cards("2H")
    t.tap("drawn_in_error", exposed=True, burned=True)
    assert t.no("stand", box="1")[0] == "card_due"
    t.cards("TH")
    assert t.places[6:] == ["burned", "box 1"]


@pytest.mark.rule("R-53", "R-54")
def test_a_deal_of_too_many_cards_is_settled_neither_by_what_people_tell() -> None:
    """Told with the settlement they were taken off the stub that was expected: the deck seemed whole."""
    poker = Poker(batches=ONE, shuffler=None, shoe=None)
    poker.boot()
    poker.open()
    poker.tap("reshuffle_by_hand", SUPERVISOR, batch="A")
    poker.tap("cut", position=26)
    poker.tap("take_in_hand", batch="A")
    poker.tap("bets_closed", boxes="1,2")
    refused = poker.refused("round_settled", cards=12)
    assert (refused.code, refused.expected) == ("misdeal", ("void_round reason=misdeal",))
    assert refused.clause == "13:69F-20.8", "dealt from the hand"
    poker.tap("round_settled", cards=9)
    poker.tap("collect_rack", gauge="full", stub=43)
    assert poker.codes == []


@pytest.mark.rule("R-53")
def test_a_shoe_of_stacks_that_was_not_asked_is_not_waited_for() -> None:
    """The note told the dealer to wait for a card, which comes only when it is asked for."""
    poker = alone(stacks=True)
    poker.tap("bets_closed", boxes="1")
    assert awaited(poker.rules, poker.state) is None
    poker.tap("dispense")
    assert awaited(poker.rules, poker.state) == "the shoe to answer dispense"
    poker.end(Done({"count": 3}))
    assert awaited(poker.rules, poker.state) == "the next card of the initial deal"
    for _ in range(3):
        poker.draw()
    assert awaited(poker.rules, poker.state) is None


@pytest.mark.rule("R-30", "13:69F-2.9")
def test_insurance_is_taken_before_any_hand_draws_also_where_there_is_no_reader() -> None:
    t = Played()
    t.round("5S 9D AC 7S 8D TC")
    t.tap("surrender", box="2")
    t.tap("insurance", box="1")
    t.tap("round_settled")
    t.round("5S 9D AC 7S 8D TC")
    t.tap("hit", box="1")
    t.cards("2H")
    assert t.no("insurance", box="2") == ("too_late", "13:69F-2.9(a)")


@pytest.mark.rule("R-39", "R-53")
def test_one_deck_games_take_no_wager_of_blackjack_and_cite_their_own_clause() -> None:
    """The wagers of `match=` were taken and forgotten; every game cited three-card poker for its stacks."""
    stud = alone(game="mississippi-stud", stacks=True)
    refused = stud.refused("bets_closed", boxes="1", match="1")
    assert (refused.code, refused.clause) == ("not_offered", "13:69F-35.9")
    assert stud.refused("dispense").clause == "13:69F-35.9"


@pytest.mark.rule("R-39", "13:69F-2.23(d)")
def test_a_supervisor_who_may_deal_too_leaves_the_dealers_word_to_the_dealer() -> None:
    """The first of two roles was taken for the word: the dealer at the table could then not confirm."""
    t = Matching()
    t.tap("bets_closed", boxes="1")
    t.tap("cash_wager", SUPERVISOR | {Role.DEALER}, who="sue", box=1, amount=25)
    t.tap("cash_wager", who="dan", box=1, amount=25)
    assert t.state.round is not None
    assert [(c.dealer, c.supervisor) for c in t.state.round.cash] == [("dan", "sue")]


@pytest.mark.rule("R-37", "R-40")
def test_where_match_the_dealer_is_not_offered_its_section_is_not_cited() -> None:
    t = Matching(match=None, wagers=("over-under-13",), reader="reader")
    t.counts["reader"] = 0
    t.event(ev.LinkUp, "reader", boot=1, identity={"serial": "RD1", "firmware": "1"}, status={})
    t.deal_cards("8S AH 2C", boxes="1")
    assert t.refused("peek").clause == "13:69F-2.17(d)"
    t.event(ev.HoleCardChecked, "reader", result="not_natural")
    assert "(13:69F-2.17(d))" in t.state.faults[-1].cause
    t.tap("side_wagers_settled")
    assert t.refused("side_wagers_settled").clause == "13:69F-2.17(d)"
