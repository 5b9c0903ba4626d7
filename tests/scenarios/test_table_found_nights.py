"""Findings of a review: casino nights, one batch alone, dealt from the hand, a continuous shuffler."""

from __future__ import annotations

from typing import Any

import pytest

from controller.table.inputs import Hour
from controller.table.phases import Phase
from controller.table.profiles import CardDown
from controller.table.rules import expected
from controller.table.state import Place
from controller.table.view import alarms
from devices import events as ev
from tests.scenarios.test_table_casino_night import NIGHT, begin, dealt, opened, runs_out
from tests.support.continuous import ContinuousTable
from tests.support.hands import SUPERVISOR, Hand, hand_rules, manual_rules, night_rules, night_shoe
from tests.support.table import DEALER
from tests.unit.test_table_opening import certificate

# --- casino nights ---


@pytest.mark.rule(f"{NIGHT}(g)6", "R-63")
def test_law_7_the_card_that_takes_a_burned_ones_place_lies_face_down_as_that_did() -> None:
    t = opened(night_shoe(player_card_down=CardDown.SECOND))
    begin(t, "1,2")
    while t.state.phase is not Phase.HOLE_CARD:
        t.draw()
    t.tap("drawn_in_error", exposed=True, burned=True)
    t.draw()
    assert t.state.round is not None
    assert [(c.to, c.seen) for c in t.state.round.cards[-2:]] == [("burned", False), ("box 2", False)]
    assert "card" in t.facts[-1].sealed
    assert "card" not in t.facts[-1].data


@pytest.mark.rule(f"{NIGHT}(g)6", "R-14")
@pytest.mark.parametrize("told", [50, None])
def test_the_dealer_shuffles_a_deck_that_was_dealt_out(told: int | None) -> None:
    t = opened(night_rules())
    t.told(6)
    assert t.refused("shuffle_now", DEALER).code == "not_allowed"
    t.told(told - 6 if told else None)
    t.tap("shuffle_now", DEALER)
    assert t.state.phase is Phase.SHOE_END


@pytest.mark.rule(f"{NIGHT}(g)6", "R-14")
def test_the_dealer_shuffles_a_shoe_that_was_dealt_out_once_its_round_is_settled() -> None:
    t = opened(night_shoe())
    dealt(t)
    runs_out(t)
    assert t.refused("shuffle_now", DEALER).code == "not_allowed"
    t.tap("round_settled")
    t.tap("shuffle_now", DEALER)
    assert t.state.phase is Phase.SHOE_END


@pytest.mark.rule("R-14")
def test_elsewhere_a_supervisor_ends_a_shoe() -> None:
    t = Hand(manual_rules())
    t.open_by_hand()
    refusal = t.refused("shuffle_now", DEALER)
    assert (refusal.code, refusal.clause) == ("not_allowed", "13:69F-2.5(a)")


def played_out(rules: Any) -> Hand:
    """In its second round a shoe runs out; its three boxes have two cards each, and more came to them."""
    t = opened(rules)
    dealt(t)
    for _ in range(30):
        t.draw()
    t.tap("round_settled")
    begin(t, "1,2,3")
    return t


@pytest.mark.rule(f"{NIGHT}(g)10ii", f"{NIGHT}(g)9", "R-35")
def test_hands_that_are_over_are_shuffled_with_the_discards_where_they_lie() -> None:
    t = played_out(night_shoe())
    runs_out(t)
    assert t.cards() == {Place.RACK: 38, Place.TABLE: 14}
    assert "reshuffle_by_hand cards=38..52" in expected(t.rules, t.state)
    assert t.refused("reshuffle_by_hand", cards=37).code == "bad_argument"
    assert t.refused("reshuffle_by_hand", cards=53).code == "bad_argument"
    t.tap("reshuffle_by_hand", cards=41)
    t.tap("cut", position=20)
    t.tap("load_shoe", batch="A")
    assert t.cards() == {Place.SHOE: 41, Place.TABLE: 11}
    assert t.state.round is not None
    burned_hand = [card.card for card in t.state.round.cards if card.to == "box 1"]
    t.stack = [card for card in burned_hand if card is not None]
    t.draw()
    t.draw()
    t.tap("round_settled")
    assert (t.codes, t.cards()) == ([], {Place.SHOE: 39, Place.RACK: 13})


@pytest.mark.rule("R-35")
def test_in_a_casino_the_shoe_counts_the_rack_that_is_shuffled() -> None:
    t = Hand(manual_rules())
    t.open_by_hand()
    t.deal("1,2")
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    refusal = t.refused("reshuffle_by_hand", frozenset(DEALER), cards=2)
    assert refusal.code == "not_allowed"


@pytest.mark.rule(f"{NIGHT}(g)6", "R-74")
def test_a_card_that_never_came_is_looked_for_after_the_round() -> None:
    t = played_out(night_shoe())
    while len(t.stack) > 1:
        t.draw()
    t.event(ev.ShoeEmpty)
    t.tap("reshuffle_by_hand")
    t.tap("cut", position=20)
    t.tap("load_shoe", batch="A")
    t.tap("round_settled")
    assert t.state.phase is Phase.SHOE_END
    for _ in range(36):
        t.stack.append("2S")
        t.draw(card=None)
    t.event(ev.ShoeEmpty)
    t.tap("collect_rack", gauge="full")
    assert t.codes == ["cards_missing"]


@pytest.mark.rule(f"{NIGHT}(g)6", "R-55")
def test_a_batch_that_is_out_of_play_is_not_dealt_on_after_the_round_it_finishes() -> None:
    t = played_out(night_shoe(deck_age_h=2))
    t.give(Hour(10, "2026-11-30"))
    t.give(Hour(15, "2026-11-30"))
    assert t.codes == ["deck_too_old"]
    runs_out(t)
    t.tap("reshuffle_by_hand")
    t.tap("cut", position=1)
    t.tap("load_shoe", batch="A")
    t.fill()
    t.draw()
    t.tap("round_settled")
    assert t.state.phase is Phase.SHOE_END


@pytest.mark.rule(f"{NIGHT}(g)6", "R-55")
def test_a_batch_that_is_out_of_play_is_no_reason_to_deal_it_out() -> None:
    t = opened(night_shoe(deck_age_h=2))
    t.give(Hour(10, "2026-11-30"))
    t.give(Hour(15, "2026-11-30"))
    t.tap("shuffle_now")
    assert t.state.phase is Phase.SHOE_END


@pytest.mark.rule(f"{NIGHT}(g)6")
def test_a_deck_of_which_cards_are_left_is_not_said_to_be_shuffled_before_the_burn() -> None:
    t = opened(night_rules())
    t.tap("bets_closed", boxes="1")
    assert t.expected == ["burn"]
    t.tap("burn")
    assert t.expected == ["round_settled", "reshuffle_by_hand"]


@pytest.mark.rule(f"{NIGHT}(g)10iv", f"{NIGHT}(g)6", "R-63")
def test_law_7_all_hands_bust_with_a_card_face_down_and_the_hole_card_is_shown_to_nobody() -> None:
    t = opened(night_shoe(player_card_down=CardDown.SECOND))
    begin(t, "1")
    t.stack = ["QH", "8S", "KS", "9S", "TS"]
    while t.state.phase is not Phase.PLAYING:
        t.draw()
    t.tap("hit")
    t.draw()
    t.tap("stand")
    assert t.state.round is not None
    (face_down,) = (card.seq for card in t.state.round.cards if not card.seen and card.to == "box 1")
    t.tap("round_settled")
    (shown,) = (fact for fact in t.facts if fact.kind == "exposed")
    assert shown.data["seqs"] == [face_down]
    assert t.state.settlement is not None
    assert t.state.settlement["dealer"] is None


@pytest.mark.rule(f"{NIGHT}(g)10iv", "R-63")
def test_law_7_where_no_hand_is_followed_the_dealer_says_that_the_hole_card_was_not_turned() -> None:
    t = opened(night_shoe())
    dealt(t)
    t.tap("round_settled", unplayed=True)
    assert not any(fact.kind == "exposed" for fact in t.facts)
    dealt(t)
    t.tap("stand")
    assert t.refused("round_settled", unplayed=True).code == "bad_argument"
    by_hand = opened(night_rules())
    begin(by_hand)
    assert by_hand.refused("round_settled", unplayed=True).code == "bad_argument"


@pytest.mark.rule(f"{NIGHT}(e)", "R-33")
@pytest.mark.parametrize("rules", [night_rules(), night_shoe()], ids=["hand", "shoe"])
def test_a_refused_card_goes_to_no_other_player(rules: Any) -> None:
    t = opened(rules)
    if rules.by_eye:
        begin(t)
    else:
        dealt(t)
        t.draw()
    refusal = t.refused("drawn_in_error", exposed=True)
    assert (refusal.code, refusal.clause) == ("card_is_dead", f"{NIGHT}(e)")
    t.tap("drawn_in_error", exposed=True, burned=True)


@pytest.mark.rule(f"{NIGHT}(c)2", "R-36b")
def test_a_shuffler_that_does_not_answer_is_no_end_of_the_night() -> None:
    t = Hand(night_rules(shuffler="shuffler"))
    t.boot()
    t.tap("open")
    t.tap("load_shuffler", batch="A")
    assert t.refused("start_shuffle").expected == ("out_of_service device=shuffler",)
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    t.tap("confirm_empty", device="shuffler", cards=52)
    t.tap("reshuffle_by_hand", batch="A")
    t.load()
    assert t.state.phase is Phase.BETWEEN_ROUNDS


@pytest.mark.rule(f"{NIGHT}(c)2", "R-36b")
def test_a_cycle_of_the_empty_machine_does_not_hold_up_the_batch_in_hand() -> None:
    t = Hand(night_rules(shuffler="shuffler"))
    t.boot()
    t.links_up()
    t.tap("open")
    t.tap("load_shuffler", batch="A")
    t.start()
    t.complete()
    t.take()
    t.event(ev.CycleStarted, "shuffler", cycle=t.cycle + 1, token=None)
    assert t.codes == ["foreign_cycle"]
    assert t.refused("offer_cut", box="3").code == "fault_latched"
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    t.load()
    assert t.state.phase is Phase.BETWEEN_ROUNDS


@pytest.mark.rule(f"{NIGHT}(c)2", "R-36b")
def test_a_cycle_of_the_empty_machine_stays_latched_once_the_batch_lies_in_it() -> None:
    t = Hand(night_rules(shuffler="shuffler"))
    t.boot()
    t.links_up()
    t.tap("open")
    t.cycle += 1
    t.event(ev.CycleStarted, "shuffler", cycle=t.cycle, token=None)
    t.tap("load_shuffler", batch="A")
    fault = t.state.faults[0]
    assert fault.code == "foreign_cycle"
    assert t.refused("clear", SUPERVISOR, fault=fault.id).code == "cause_remains"
    t.start()
    t.complete()
    t.tap("clear", SUPERVISOR, fault=fault.id)
    assert t.codes == []


# --- one batch, and dealt from the hand ---


@pytest.mark.rule("R-12", "R-48", "S8")
def test_of_one_batch_that_came_certified_to_an_idle_table_the_cut_is_next() -> None:
    t = Hand(manual_rules())
    t.open_by_hand()
    t.play_round()
    t.tap("idle")
    t.end_shoe()
    t.tap("spread")
    t.tap("replace_batch", SUPERVISOR, batch="A")
    t.tap("certificate", **certificate("A"))
    t.tap("resume")
    assert t.state.phase is Phase.CUT_DUE
    t.load()
    assert t.state.phase is Phase.BETWEEN_ROUNDS


@pytest.mark.rule("R-04", "R-22")
def test_no_round_begins_with_a_set_of_which_every_card_is_dealt() -> None:
    t = Hand(hand_rules())
    t.open_by_machine()
    t.told(51)
    refusal = t.refused("bets_closed", boxes="1")
    assert (refusal.code, refusal.expected) == ("shoe_empty", ("shuffle_now",))


@pytest.mark.rule("R-04", "R-07")
def test_that_sets_alternate_is_said_of_hand_dealt_tables_in_a_clause_of_their_own() -> None:
    t = Hand(hand_rules())
    t.open_by_machine()
    t.told(9, box="1")
    t.tap("collect_rack", gauge="full")
    refusal = t.refused("load_shuffler", batch="A")
    assert refusal.clause == "13:69F-2.2(c)"
    t.complete()
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.load("B", offer="1")
    assert t.state.shoe.batch == "B"


# --- a continuous shuffler ---


@pytest.mark.rule("R-11")
def test_what_mends_a_fault_is_said_in_taps_that_a_continuous_table_takes() -> None:
    t = ContinuousTable()
    t.open_to_deal()
    t.deal("1")
    t.draw(back="blue")
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    found = alarms(t.rules, t.state)
    assert [alarm["code"] for alarm in found] == ["wrong_back", "shoe_dry"]
    assert "`idle` or `close`" in found[0]["remedy"]
    assert "`void_round`" in found[-1]["remedy"]
    for word in ("shuffle_now", "reshuffle_by_hand"):
        assert all(word not in alarm["remedy"] for alarm in found)
