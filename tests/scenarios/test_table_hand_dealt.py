"""Dealt from the hand: one deck or two a set, and a shuffler that stores the other set (S6)."""

from __future__ import annotations

import pytest

from controller.table.phases import Phase
from controller.table.rules import awaited
from controller.table.state import Closing, Place
from controller.table.view import snapshot
from devices import events as ev
from tests.support.hands import SUPERVISOR, Hand, hand_rules


def opened(**changes: object) -> Hand:
    t = Hand(hand_rules(**changes))
    t.open_by_machine()
    return t


def marked(t: Hand) -> None:
    """The marker comes out in a round, which is the last one of this set."""
    t.told(None, box="dealer")
    assert t.state.phase is Phase.SHOE_END


def swap(t: Hand, to: str) -> None:
    """The set of the rack goes into the shuffler, the stored one is cut and taken in hand."""
    t.complete()
    t.tap("collect_rack", gauge="full", other_backs=0)
    t.take()
    t.tap("load_shuffler", batch=t.rules.other(to))
    t.start()
    t.load(to, offer="2")


# --- the devices it needs (R-04) ---


@pytest.mark.rule("R-04", "13:69F-2.2(c)")
def test_a_table_dealt_from_the_hand_does_not_open_without_its_shuffler() -> None:
    t = Hand(hand_rules())
    t.boot()
    refusal = t.refused("open")
    assert (refusal.code, refusal.clause) == ("device_absent", "13:69F-2.2(c)")
    t.links_up()
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    t.tap("confirm_empty", SUPERVISOR, device="shuffler")
    for args in ({}, {"mode": "manual-shoe"}):
        refusal = t.refused("open", **args)
        assert (refusal.code, refusal.expected) == ("device_absent", ("in_service device=shuffler",))
    t.tap("in_service", SUPERVISOR, device="shuffler")
    assert t.refused("open", mode="foo").why == "open: mode=foo: this table opens as hand-dealt"
    t.tap("open")


@pytest.mark.rule("R-04", "S6")
@pytest.mark.parametrize("lost", ["link", "service"])
def test_no_round_begins_while_the_shuffler_is_lost_and_one_in_play_is_finished(lost: str) -> None:
    t = opened()
    t.tap("bets_closed", boxes="1,2")
    if lost == "link":
        t.event(ev.LinkDown, "shuffler", reason="unplugged")
    else:
        t.tap("out_of_service", SUPERVISOR, device="shuffler")
    t.tap("round_settled")
    refusal = t.refused("bets_closed", boxes="1,2")
    assert (refusal.code, refusal.clause) == ("device_absent", "13:69F-2.2(c)")
    assert "bets_closed" not in t.expected


@pytest.mark.rule("R-28", "13:69F-2.6A")
def test_the_set_comes_out_of_the_shuffler_into_the_hand_and_never_into_a_shoe() -> None:
    t = Hand(hand_rules())
    t.boot()
    t.links_up()
    t.tap("open")
    t.prepare("A")
    t.prepare("B")
    t.tap("load_shuffler", batch="A")
    t.start()
    t.complete()
    t.take()
    t.tap("load_shuffler", batch="B")
    t.start()
    t.tap("offer_cut", box="3")
    t.tap("cut", position=10)
    t.tap("insert_cutting_card", position=13)
    refusal = t.refused("load_shoe", batch="A")
    assert (refusal.code, refusal.clause, refusal.expected) == (
        "no_shoe",
        "13:69F-2.6A(b)",
        ("take_in_hand batch=A",),
    )
    assert t.refused("take_in_hand", batch="B").code == "batch_not_in_hand"
    t.tap("take_in_hand", batch="A")
    assert (t.state.phase, t.state.shoe.batch, t.expected[0]) == (Phase.BURN_DUE, "A", "burn")
    assert awaited(t.rules, t.state) == "the shuffler to complete its cycle on batch B"


@pytest.mark.rule("R-02", "13:69F-2.2(a)")
def test_two_cutting_cards_go_in_one_as_the_marker_and_one_below_the_last_card() -> None:
    t = opened()
    (inserted,) = (f for f in t.facts if f.kind == "insert_cutting_card")
    assert (inserted.data["position"], inserted.data["cutting_cards"]) == (13, 2)


@pytest.mark.rule("R-22")
def test_a_shoe_that_counts_takes_nothing_from_the_hand() -> None:
    t = Hand(hand_rules(mode="two-batch-shoe", shoe="shoe", shoe_senses=frozenset(ev.Sense)))
    t.open_by_machine()
    t.tap("shuffle_now")
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    t.complete()
    t.tap("collect_rack", gauge="full")
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.tap("offer_cut", box="1")
    t.tap("cut", position=26)
    t.tap("insert_cutting_card", position=13)
    assert t.refused("take_in_hand", batch="B").code == "not_from_hand"


# --- S6 ---


@pytest.mark.rule("R-04", "R-07", "S6")
@pytest.mark.parametrize("decks", [1, 2])
def test_s6_the_sets_alternate_when_the_round_of_the_marker_ends(decks: int) -> None:
    t = opened(decks=decks)
    order = []
    for _ in range(4):
        order.append(t.state.shoe.batch)
        t.told(11)
        marked(t)
        swap(t, "B" if order[-1] == "A" else "A")
    assert order == ["A", "B", "A", "B"]
    assert (t.state.shoe.number, t.codes, t.alarms) == (5, [], [])


@pytest.mark.rule("R-07")
def test_the_same_set_is_not_taken_in_hand_twice() -> None:
    t = opened()
    marked(t)
    t.complete()
    t.tap("collect_rack", gauge="full")
    refusal = t.refused("load_shuffler", batch="A")
    assert refusal.code == "shuffler_not_empty"
    assert t.refused("reshuffle_by_hand", SUPERVISOR, batch="A").code == "not_by_hand"
    t.take()
    assert t.refused("load_shuffler", batch="B").code == "batch_is_shuffled"


@pytest.mark.rule("R-06")
def test_a_set_is_taken_in_hand_only_while_the_other_one_is_shuffled_and_stored() -> None:
    t = opened()
    marked(t)
    t.complete()
    t.tap("collect_rack", gauge="full")
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.tap("offer_cut", box="2")
    t.tap("cut", position=26)
    t.tap("insert_cutting_card", position=13)
    t.event(ev.Jam, "shuffler", place="exit")
    refusal = t.refused("take_in_hand", batch="B")
    assert (refusal.code, refusal.clause) == ("other_batch_not_stored", "13:69F-2.2(c)")


# --- a round ---


@pytest.mark.rule("R-28")
def test_two_taps_a_round_are_enough_and_nobody_knows_how_many_cards_are_left() -> None:
    t = opened()
    t.told(None)
    assert (t.state.phase, t.state.shoe.untold) == (Phase.BETWEEN_ROUNDS, True)
    assert snapshot(t.rules, t.state)["shoe"]["left"] is None
    t.told(9)
    assert t.state.shoe.untold


@pytest.mark.rule("R-28")
def test_told_cards_go_from_the_hand_to_the_rack() -> None:
    t = opened()
    assert t.cards() == {Place.SHOE: 51, Place.RACK: 1}
    t.told(11)
    assert t.cards() == {Place.SHOE: 40, Place.RACK: 12}
    assert snapshot(t.rules, t.state)["shoe"]["left"] == 40
    t.tap("bets_closed", boxes="1")
    assert "4 to 40" in t.refused("round_settled", cards=41).why
    assert "cards=x" in t.refused("round_settled", cards="x").why
    t.tap("round_settled", cards=40)
    assert t.cards() == {Place.RACK: 52}


@pytest.mark.rule("R-28")
def test_a_shoe_that_counts_lets_nobody_tell_the_cards_of_a_round() -> None:
    t = Hand(hand_rules(mode="two-batch-shoe", shoe="shoe", shoe_senses=frozenset(ev.Sense)))
    t.open_by_machine()
    t.deal("1")
    assert t.refused("round_settled", cards=4).code == "bad_argument"
    t.tap("round_settled")


@pytest.mark.rule("R-23")
def test_a_card_is_burned_by_tap_after_each_load_and_by_each_new_dealer() -> None:
    t = opened()
    t.tap("dealer_change")
    assert t.refused("bets_closed", boxes="1").code == "unexpected"
    t.tap("burn")
    assert (t.state.phase, t.cards()) == (Phase.BETWEEN_ROUNDS, {Place.SHOE: 50, Place.RACK: 2})


@pytest.mark.rule("R-26", "R-27")
def test_the_marker_before_the_first_card_of_a_round_lets_one_more_round_be_played() -> None:
    t = opened()
    t.tap("cutting_card_at")
    assert t.state.shoe.closing is Closing.ONE_MORE_ROUND
    t.told(None, boxes="2,5")
    assert (t.state.phase, t.state.shoe.cut_at) == (Phase.SHOE_END, "box 2")


@pytest.mark.rule("R-26", "R-17")
def test_the_marker_told_after_the_round_ends_the_set_at_once() -> None:
    t = opened()
    t.told(None, boxes="2,5")
    t.tap("cutting_card_at", box="5")
    assert (t.state.phase, t.state.shoe.cut_at) == (Phase.SHOE_END, "box 5")


@pytest.mark.rule("R-26")
def test_the_marker_in_a_round_never_stops_it() -> None:
    t = opened()
    t.tap("bets_closed", boxes="1")
    t.tap("cutting_card_at", box="1")
    assert (t.state.phase, t.state.shoe.closing) == (Phase.PLAYING, Closing.THIS_ROUND)
    t.tap("round_settled")
    assert t.state.phase is Phase.SHOE_END
    assert t.refused("bets_closed", boxes="1").code == "unexpected"


@pytest.mark.rule("R-14", "S5")
def test_the_licensee_may_end_a_set_between_rounds() -> None:
    t = opened()
    t.tap("shuffle_now", SUPERVISOR)
    assert t.state.phase is Phase.SHOE_END


@pytest.mark.rule("R-10")
def test_nothing_goes_back_from_the_rack_into_the_hand() -> None:
    t = opened(decks=2)
    t.told(60)
    assert t.refused("bart_carter", SUPERVISOR).code == "not_from_hand"


# --- irregularities, as far as nobody counts ---


@pytest.mark.rule("R-32", "R-33", "R-34", "R-36")
def test_what_went_wrong_is_noted_and_the_round_is_settled() -> None:
    t = opened()
    t.tap("bets_closed", boxes="1,2")
    t.tap("drawn_in_error", exposed=False)
    t.tap("drawn_in_error", exposed=True, burned=True)
    assert t.cards() == {Place.SHOE: 50, Place.RACK: 2}
    t.tap("dealer_skipped", card="second")
    t.tap("box_skipped", box=2, cards=0)
    t.tap("round_settled", cards=6)
    assert t.cards() == {Place.SHOE: 44, Place.RACK: 8}


@pytest.mark.rule("R-36a")
def test_a_void_round_leaves_the_cards_untold() -> None:
    t = opened()
    t.tap("bets_closed", boxes="1,2")
    t.tap("void_round", SUPERVISOR, reason="misdeal")
    assert (t.state.phase, t.state.shoe.untold, t.codes) == (Phase.BETWEEN_ROUNDS, True, [])


@pytest.mark.rule("R-37")
def test_side_wagers_are_settled_before_the_round_is() -> None:
    t = opened(settle_first=True)
    t.tap("bets_closed", boxes="1")
    assert t.state.phase is Phase.SIDE_WAGERS
    assert t.refused("round_settled").code == "unexpected"
    t.tap("side_wagers_settled")
    t.tap("round_settled")


@pytest.mark.rule("R-35")
@pytest.mark.parametrize("burn", [True, False])
def test_r35_a_hand_that_runs_out_is_refilled_from_the_rack_and_ends_with_the_round(burn: bool) -> None:
    t = opened(burn_after_dry=burn)
    t.told(12)
    t.told(None)
    t.tap("bets_closed", boxes="1,2")
    assert t.refused("reshuffle_by_hand", cards=20).code == "not_allowed"
    assert t.refused("reshuffle_by_hand", SUPERVISOR).why == "reshuffle_by_hand: cards=NUMBER is missing"
    assert "1 to 52" in t.refused("reshuffle_by_hand", SUPERVISOR, cards=53).why
    t.tap("reshuffle_by_hand", SUPERVISOR, cards=37)
    assert t.cards() == {Place.IN_HAND: 37, Place.TABLE: 15}
    assert "10..27" in t.refused("cut", position=9).expected[0]
    t.tap("cut", position=12)
    assert t.refused("load_shoe", batch="A").code == "no_shoe"
    t.tap("take_in_hand", batch="A")
    if burn:
        assert t.state.phase is Phase.RESHUFFLE_BURN
        t.tap("burn")
    left = 36 if burn else 37
    assert (t.state.phase, t.state.shoe.untold) == (Phase.PLAYING, False)
    assert t.cards()[Place.SHOE] == left
    assert f"15 to {15 + left}" in t.refused("round_settled", cards=14).why
    t.tap("round_settled", cards=18)
    assert t.state.phase is Phase.SHOE_END
    assert t.cards() == {Place.SHOE: left - 3, Place.RACK: 52 - left + 3}
    t.tap("collect_rack", gauge="full")
    assert (t.codes, t.state.batches["B"].proof) == ([], None)


# --- the end of a set ---


@pytest.mark.rule("R-43", "R-55")
def test_a_gauge_that_is_not_full_takes_the_set_out_of_play() -> None:
    t = opened()
    marked(t)
    t.complete()
    t.tap("collect_rack", gauge="short")
    assert t.codes == ["rack_gauge"]
    assert t.state.batches["A"].unfit == "rack_gauge"
    t.tap("replace_batch", SUPERVISOR, batch="A")
    assert t.cards() == {Place.IN_HAND: 52}


@pytest.mark.rule("S8", "R-19", "R-21")
def test_nobody_plays_and_the_first_to_arrive_cuts() -> None:
    t = opened()
    t.told(None)
    t.tap("idle")
    t.complete()
    t.tap("collect_rack", gauge="full")
    assert t.state.phase is Phase.IDLE
    t.tap("spread", batch="A")
    t.tap("resume")
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.load("B", offer="7")
    assert (t.state.phase, t.state.shoe.batch) == (Phase.BETWEEN_ROUNDS, "B")


@pytest.mark.rule("S10")
def test_the_table_closes_with_every_card_counted_and_the_shuffler_empty() -> None:
    t = opened()
    t.told(9)
    t.tap("close")
    t.complete()
    t.tap("collect_rack", gauge="full")
    t.take()
    for batch in "AB":
        t.tap("count_batch", batch=batch, cards=52)
    t.tap("confirm_empty", device="shuffler")
    t.tap("close", SUPERVISOR)
    assert (t.state.phase, t.codes) == (Phase.CLOSED, [])


@pytest.mark.rule("S9", "R-69")
def test_s9_a_crash_in_a_round_resumes_the_same_round() -> None:
    t = opened()
    t.told(9)
    t.tap("bets_closed", boxes="1,2")
    t.restart()
    assert (t.state.phase, t.state.rounds) == (Phase.PLAYING, 2)
    t.tap("round_settled", cards=8)
    assert t.cards() == {Place.SHOE: 34, Place.RACK: 18}
