"""Mode manual-shoe of a licensed table: one batch, no shuffler, a shoe that counts (2.2(a), 2.5, 2.6)."""

from __future__ import annotations

import pytest

from controller.table.phases import Phase
from controller.table.state import Place, Prep, Shuffled
from devices import events as ev
from tests.support.hands import SUPERVISOR, Hand, manual_rules

PAPER = {"maker": "Acme", "model": "V1", "serial": "7", "operator": "ann", "at": "2030-01-01", "seal": "S1"}
PAPER |= {"seal_intact": "true", "decks": 1, "cards": 52, "result": "ok"}


def opened(**changes: object) -> Hand:
    t = Hand(manual_rules(**changes))
    t.open_by_hand()
    return t


def ended(t: Hand, seat: str = "2") -> None:
    """The cutting card comes out in a round; its cards and the rest of the shoe are collected."""
    t.deal("1,2")
    t.event(ev.CutCard)
    t.tap("cutting_card_at", box=seat)
    t.tap("round_settled")
    t.end_shoe()


@pytest.mark.rule("R-14", "13:69F-2.2(d)")
def test_one_batch_is_dealt_shoe_after_shoe_shuffled_by_the_dealer_each_time() -> None:
    t = opened()
    for number in (1, 2, 3):
        assert (t.state.shoe.number, t.state.shoe.batch) == (number, "A")
        ended(t)
        assert t.state.phase is Phase.RACK_FULL
        assert t.refused("load_shoe", batch="A").code == "unexpected"
        t.tap("reshuffle_by_hand", batch="A")
        assert t.refused("load_shoe", batch="A").code == "unexpected"
        t.load(offer="2")
    assert (t.codes, t.alarms) == ([], [])


@pytest.mark.rule("R-15", "R-16", "R-17", "R-23")
def test_it_is_cut_and_marked_and_a_card_is_burned_as_always() -> None:
    t = opened()
    ended(t)
    t.tap("reshuffle_by_hand", batch="A")
    assert t.refused("cut", position=26).code == "nobody_cuts"
    assert t.refused("offer_cut", box="1").expected == ("offer_cut box=2",)
    t.tap("offer_cut", box="2")
    assert t.refused("cut", position=9).code == "cut_too_near_the_end"
    t.tap("cut", position=10)
    assert t.refused("insert_cutting_card", position=12).code == "cutting_card_misplaced"
    t.tap("insert_cutting_card", position=13)
    assert t.refused("take_in_hand", batch="A").code == "not_from_hand"
    t.tap("load_shoe", batch="A")
    assert t.state.phase is Phase.BURN_DUE


@pytest.mark.rule("R-13")
def test_no_card_is_shuffled_before_the_batch_is_prepared() -> None:
    t = Hand(manual_rules())
    t.boot()
    t.links_up()
    t.tap("open")
    assert t.refused("reshuffle_by_hand", batch="A").code == "not_prepared"
    t.prepare("A")
    t.tap("reshuffle_by_hand", batch="A")
    proof = t.state.batches["A"].proof
    assert proof is not None
    assert proof.how is Shuffled.HAND


@pytest.mark.rule("R-36b")
@pytest.mark.parametrize("event", ["load_shuffler", "out_of_service", "in_service", "confirm_empty"])
def test_there_is_no_shuffler_to_use_or_to_take_out_of_service(event: str) -> None:
    t = Hand(manual_rules())
    t.boot()
    t.links_up()
    t.tap("open")
    given = {"batch": "A"} if event == "load_shuffler" else {"device": "shuffler"}
    refusal = t.refused(event, SUPERVISOR, **given)
    assert refusal.code == ("no_such_device" if event == "load_shuffler" else "bad_argument")
    assert not {"load_shuffler", "out_of_service", "start_shuffle"} & {*t.expected}


@pytest.mark.rule("R-36b")
def test_out_of_service_without_a_device_is_no_tap_where_there_is_no_shuffler() -> None:
    t = opened()
    assert t.refused("out_of_service", SUPERVISOR).why == "out_of_service: this table has no shuffler"


@pytest.mark.rule("R-48", "S1b")
def test_s1b_a_certified_batch_goes_straight_to_its_cut() -> None:
    t = Hand(manual_rules())
    t.boot()
    t.links_up()
    t.tap("open")
    t.tap("certificate", batch="A", **PAPER)
    assert (t.state.phase, t.state.batches["A"].prep) == (Phase.CUT_DUE, Prep.CERTIFIED)
    t.load()
    assert (t.state.phase, t.state.shoe.number) == (Phase.BETWEEN_ROUNDS, 1)


@pytest.mark.rule("R-49")
def test_a_patron_may_have_it_shuffled_before_it_is_dealt() -> None:
    t = Hand(manual_rules())
    t.boot()
    t.links_up()
    t.tap("open")
    t.tap("certificate", batch="A", **PAPER)
    t.tap("shuffle_demanded", batch="A")
    assert (t.state.phase, t.expected[0]) == (Phase.RACK_FULL, "reshuffle_by_hand")
    t.tap("reshuffle_by_hand", batch="A")
    t.load()
    assert t.state.phase is Phase.BETWEEN_ROUNDS


@pytest.mark.rule("R-35")
def test_r35_a_supervisor_has_the_rack_shuffled_when_the_shoe_runs_out_in_a_round() -> None:
    t = opened()
    t.play_round("1", extra=40)
    t.tap("bets_closed", boxes="1,2")
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    assert t.alarms == ["shoe_dry"]
    assert t.refused("reshuffle_by_hand").code == "not_allowed"
    t.tap("reshuffle_by_hand", SUPERVISOR)
    t.tap("cut", position=20)
    t.tap("load_shoe", batch="A")
    t.fill()
    for _ in range(2):
        t.draw()
    t.tap("round_settled")
    assert t.state.phase is Phase.SHOE_END


@pytest.mark.rule("R-10", "R-19")
def test_about_a_deck_of_the_rack_goes_back_into_the_shoe() -> None:
    t = opened(decks=4)
    t.play_round("1", extra=44)
    t.tap("bart_carter", SUPERVISOR)
    assert t.cards() == {Place.SHOE: 208}


@pytest.mark.rule("R-14", "S5")
def test_the_licensee_ends_a_shoe_and_the_farthest_right_cuts() -> None:
    t = opened()
    t.play_round("1,5")
    t.tap("shuffle_now", SUPERVISOR)
    t.end_shoe()
    t.tap("reshuffle_by_hand", batch="A")
    assert t.refused("offer_cut", box="1").expected == ("offer_cut box=5",)


@pytest.mark.rule("S8", "R-19")
def test_an_idle_table_is_spread_and_shuffled_by_hand_for_whoever_comes() -> None:
    t = opened()
    t.tap("idle")
    t.end_shoe()
    assert t.refused("resume").code == "not_spread"
    t.tap("spread", batch="A")
    t.tap("resume")
    t.tap("reshuffle_by_hand", batch="A")
    t.load(offer="6")
    assert t.state.phase is Phase.BETWEEN_ROUNDS


@pytest.mark.rule("S10")
def test_s10_it_closes_with_the_batch_counted_and_the_shoe_empty_and_opens_again() -> None:
    t = opened()
    t.tap("close")
    t.end_shoe()
    t.tap("count_batch", batch="A", cards=52)
    t.tap("confirm_empty", device="shoe")
    t.tap("close", SUPERVISOR)
    assert t.state.phase is Phase.CLOSED
    t.tap("open")
    t.prepare("A")
    t.tap("reshuffle_by_hand", batch="A")
    t.load()
    assert (t.state.shoe.batch, t.state.shoe.number, t.codes) == ("A", 2, [])


@pytest.mark.rule("R-46", "R-55")
def test_a_batch_out_of_play_is_replaced_and_the_new_one_prepared() -> None:
    t = opened()
    t.tap("dead_card", batch="A", reason="marked")
    t.tap("shuffle_now", SUPERVISOR)
    t.end_shoe()
    assert t.refused("reshuffle_by_hand", batch="A").code == "batch_unfit"
    t.tap("replace_batch", SUPERVISOR, batch="A")
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    assert t.refused("reshuffle_by_hand", batch="A").code == "not_prepared"
    t.prepare("A")
    t.tap("reshuffle_by_hand", batch="A")
    t.load(offer="1")
    assert t.state.phase is Phase.BETWEEN_ROUNDS
