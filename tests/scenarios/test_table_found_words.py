"""Findings of a newcomer: what a refusal, a fault or an alarm says of what happened and of what to do."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from controller.hours import hour_at
from controller.table.cards import count_of
from controller.table.faults import FAULTS, remedy
from controller.table.inputs import Hour, Role
from controller.table.profiles import MatchTerms
from controller.table.view import alarms
from devices import events as ev
from tests.scenarios.test_table_deck_per_round import alone
from tests.support.continuous import ContinuousTable
from tests.support.hands import SUPERVISOR, Hand, manual_rules, night_rules
from tests.support.table import Table, table_rules
from tests.unit.test_service_commits import Bench, tap
from tests.unit.test_table_opening import certificate
from tests.unit.test_table_reader import WithReader


def manual() -> Hand:
    t = Hand(manual_rules())
    t.open_by_hand()
    return t


# --- clauses ---


@pytest.mark.rule("R-37", "R-40", "13:69F-2.23(e)")
@pytest.mark.parametrize(
    "event", ["hit", "stand", "double", "split", "surrender", "insurance", "round_settled"]
)
def test_until_the_side_wagers_are_settled_it_is_their_clause_that_forbids(event: str) -> None:
    for wagers, clause in (("match-the-dealer", "13:69F-2.23(e)"), ("over-under-13", "13:69F-2.17(d)")):
        t = Table(table_rules(settle_first=True, wagers=(wagers,)))
        t.open_to_shoe()
        t.tap("bets_closed", boxes="1")
        for _ in range(3):
            t.draw()
        refusal = t.refused(event)
        assert (refusal.code, refusal.clause) == ("unexpected", clause)
        assert refusal.why == f"{event} comes after the side wagers are settled"
        assert "side_wagers_settled" in refusal.expected


@pytest.mark.rule("R-53")
@pytest.mark.parametrize("event", ["hit", "stand", "double", "split", "surrender", "insurance", "peek"])
def test_a_step_that_a_one_deck_game_does_not_have_is_refused_by_its_deal(event: str) -> None:
    poker = alone()
    for _ in range(2):
        assert poker.refused(event).clause == "13:69F-20.7"
        if poker.state.round is None:
            poker.deal("1")


@pytest.mark.rule("R-14", "R-35")
def test_a_shuffle_by_hand_between_two_shoes_is_the_licensees_and_none_of_a_dry_shoe() -> None:
    t = manual()
    assert t.refused("reshuffle_by_hand", SUPERVISOR, batch="A").clause == "13:69F-2.5(a)"
    assert t.refused("reshuffle_by_hand", batch="A").clause == "13:69F-2.5(a)"
    t.tap("bets_closed", boxes="1")
    assert t.refused("reshuffle_by_hand", SUPERVISOR, batch="A").clause == "13:69F-2.15(f)"


@pytest.mark.rule("R-42", "R-39")
def test_a_wrong_argument_is_refused_by_the_clause_it_belongs_to() -> None:
    t = Table(table_rules(settle_first=True, wagers=("match-the-dealer",), match=MatchTerms(4, 11)))
    t.open_to_shoe()
    for said in ({"device": "foo"}, {"device": "shoe", "result": "bad"}, {"result": "faulty"}):
        refusal = t.refused("inspect", SUPERVISOR, **said)
        assert (refusal.code, refusal.clause) == ("bad_argument", "13:69E-1.10")
    refusal = t.refused("bets_closed", boxes="1", match="9")
    assert (refusal.code, refusal.clause) == ("bad_argument", "13:69F-2.23(c)")
    assert t.refused("bets_closed", boxes="9").clause == "13:69F-2.6"


@pytest.mark.parametrize(
    ("word", "meant"),
    [("settled", "round_settled"), ("void", "void_round"), ("take", "take_in_hand"), ("hitt", "hit")],
)
def test_the_tap_that_is_meant_is_one_that_the_word_is_a_part_of_or_is_spelt_alike(
    word: str, meant: str
) -> None:
    bench = Bench()
    bench.service.start("00")
    (reply,) = bench.give(tap(word))
    assert reply.refusal is not None
    assert reply.refusal.why == f"there is no operator event {word!r}; did you mean {meant}?"
    (reply,) = bench.give(tap("frobnicate"))
    assert reply.refusal is not None
    assert reply.refusal.why == "there is no operator event 'frobnicate'"


# --- the one-deck games ---


@pytest.mark.rule("R-31")
def test_a_round_is_void_for_cards_found_face_up_only_where_one_was() -> None:
    poker = alone()
    poker.deal("1")
    refusal = poker.refused("void_round", SUPERVISOR, reason="face_up")
    assert (refusal.code, refusal.clause) == ("no_card_face_up", "13:69F-20.12")
    poker.tap("void_round", SUPERVISOR, reason="misdeal")
    poker = alone()
    poker.tap("bets_closed", boxes="1")
    poker.draw(face_up=True)
    poker.tap("void_round", SUPERVISOR, reason="face_up")


@pytest.mark.rule("R-32", "R-53")
def test_nobody_draws_in_error_where_the_shoe_lets_out_whole_stacks() -> None:
    poker = alone(stacks=True)
    poker.deal("1")
    for burned in (False, True):
        refusal = poker.refused("drawn_in_error", exposed=True, burned=burned)
        assert (refusal.code, refusal.clause) == ("deals_in_stacks", "13:69F-20.12")


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


def test_a_shuffle_is_demanded_of_the_one_batch_there_is() -> None:
    t = manual()
    refusal = t.refused("shuffle_demanded")
    assert (refusal.code, refusal.why) == ("not_certified", "batch A is not used on a certificate alone")


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


def test_where_nothing_is_expected_a_wrong_argument_is_told_with_what_is_awaited() -> None:
    t = manual()
    t.tap("shuffle_now")
    refusal = t.refused("collect_rack")
    assert (refusal.code, refusal.expected) == ("bad_argument", ())
    waits = "the table waits for the rest of the cards, through the shoe to the rack, faces down"
    assert refusal.why == f"collect_rack: gauge=full|short|over is missing; {waits}"


# --- faults ---


def gauged_short(t: Table) -> dict[str, Any]:
    """The rack of the last shoe is not full: what the fault says."""
    t.tap("collect_rack", gauge="short")
    (found,) = alarms(t.rules, t.state)
    assert (found["code"], found["blocks"]) == ("rack_gauge", "swap")
    return found


def test_where_one_batch_is_dealt_again_and_again_nothing_is_said_to_be_swapped() -> None:
    shoe = manual()
    shoe.tap("shuffle_now")
    while shoe.stack:
        shoe.draw()
    shoe.event(ev.ShoeEmpty)
    night = Hand(night_rules())
    night.boot()
    night.tap("open")
    night.tap("reshuffle_by_hand", batch="A")
    night.load()
    night.told(51)
    night.tap("shuffle_now")
    for t in (shoe, night):
        found = gauged_short(t)
        assert found["stops"] == "no new shoe or deck begins until this is cleared"
        assert "`shuffle_now`" in found["remedy"]


def test_at_a_continuous_table_it_stops_the_rounds_of_the_batch() -> None:
    t = ContinuousTable()
    t.open_to_deal()
    t.tap("idle")
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    found = gauged_short(t)
    assert found["stops"] == "no new round begins with batch A until it is replaced"
    assert "`idle` or `close`" in found["remedy"]
    assert "shuffle_now" not in found["remedy"]


def test_with_two_batches_the_swap_waits() -> None:
    t = Table()
    t.open_to_shoe()
    t.tap("shuffle_now")
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    assert gauged_short(t)["stops"] == "the batches are not swapped until this is cleared"


def test_a_deck_of_one_round_that_runs_out_is_reshuffled_by_nobody() -> None:
    poker = alone()
    assert "reshuffle_by_hand" not in remedy(poker.rules, "shoe_dry")
    assert "`void_round reason=misdeal`" in remedy(poker.rules, "shoe_dry")
    assert "reshuffle_by_hand" in remedy(Table().rules, "shoe_dry")


# --- one card ---


def test_one_card_is_no_plural() -> None:
    assert [count_of(n, "are") for n in (0, 1, 2)] == ["0 cards are", "1 card is", "2 cards are"]
    t = Hand(night_rules())
    t.boot()
    t.tap("open")
    t.tap("reshuffle_by_hand", batch="A")
    assert "fewer than 1 card on one side" in t.refused("cut", position=0).why
    csm = ContinuousTable()
    csm.open_to_deal()
    csm.event(ev.BatchReleased, count=1, inside=csm.size - 1)
    assert csm.state.faults[-1].cause == "1 card was taken out of it by hand"


# --- devices ---


def test_a_reader_that_failed_after_its_inspection_is_due_for_its_failure() -> None:
    t = WithReader()
    t.give(Hour(400, "2026-12-01"))
    for device in t.rules.devices:
        t.tap("inspect", SUPERVISOR, device=device)
    t.deal_with("AS")
    t.event(ev.FaultRaised, "reader", code="7", name="lamp")
    t.give(Hour(401, "2026-12-01"))
    due = [f.cause for f in t.state.faults if f.code == "inspection_due" and f.gone is None]
    assert due == ["it failed: it reports a fault"]
    why = t.refused("peek").why
    assert why.endswith("inspected by a supervisor on 2026-12-01; the reader failed: it reports a fault")
    assert "not inspected" not in FAULTS["inspection_due"].text


def test_a_device_that_was_found_faulty_is_not_said_to_wait_for_the_days_inspection_alone() -> None:
    t = manual()
    t.tap("inspect", SUPERVISOR, device="shoe", result="faulty")
    assert "the shoe was found faulty" in t.refused("bets_closed", boxes="1").why


def test_whose_right_an_inspection_is() -> None:
    bench = Bench()
    reply = bench.give(tap("inspect", roles=[Role.TECHNICIAN], device="shoe"))[0]
    assert reply.refusal is not None
    assert reply.refusal.why == (
        "inspect is the right of dealer or supervisor; a device is inspected by a supervisor alone"
    )


def test_a_table_without_devices_says_so() -> None:
    t = Hand(night_rules())
    t.boot()
    for event in ("inspect", "confirm_empty"):
        why = "this table has no device: nothing holds cards but people's hands"
        assert t.refused(event, SUPERVISOR, device="shoe").why == f"{event}: {why}"
    assert manual().refused("inspect", SUPERVISOR, device="x").why == (
        "inspect: device=x is none of this table's: shoe"
    )


# --- certificates ---


@pytest.mark.parametrize(
    ("at", "ahead"),
    [
        ("2026-11-30", False),
        ("2026-11-30T14:59", False),
        ("2026-11-30T19:59Z", False),
        ("2026-11-30T23:00+05:00", False),
        ("2026-11-30T15:00", True),
        ("2026-11-30T20:00+00:00", True),
        ("2026-12-01", True),
        ("2999-01-01", True),
    ],
)
def test_no_batch_was_shuffled_in_the_future(at: str, *, ahead: bool) -> None:
    """It is two in the afternoon in New Jersey, seven by the clock of the world."""
    t = Table()
    t.tap("open")
    hour = int(datetime(2026, 11, 30, 19, tzinfo=UTC).timestamp()) // 3600
    t.give(Hour(hour, "2026-11-30", "2026-11-30T14:00"))
    for device in t.rules.devices:
        t.tap("inspect", SUPERVISOR, device=device)
    if not ahead:
        t.tap("certificate", **certificate("A", at=at))
        return
    refusal = t.refused("certificate", **certificate("A", at=at))
    assert refusal.code == "certificate_wrong"
    assert refusal.why == f"at {at} lies ahead of the clock here"


def test_an_hour_tells_what_the_clock_of_the_wall_showed_as_it_began() -> None:
    began = datetime(2026, 11, 30, 19, tzinfo=UTC)
    assert hour_at(began + timedelta(minutes=59), time(6)).local == f"{began.astimezone():%Y-%m-%dT%H:%M}"


def test_where_no_hour_is_known_no_certificate_is_ahead() -> None:
    t = Table()
    t.tap("open")
    t.tap("certificate", **certificate("A", at="2999-01-01"))


def test_the_age_of_a_certified_batch_counts_from_its_receipt() -> None:
    t = Table(table_rules(deck_age_h=24))
    t.give(Hour(1000, "2026-11-30"))
    t.tap("inspect", SUPERVISOR, device="shoe")
    t.tap("inspect", SUPERVISOR, device="shuffler")
    t.tap("open")
    t.tap("certificate", **certificate("A", at="2020-01-01"))
    t.give(Hour(1023, "2026-11-30"))
    assert "deck_too_old" not in t.codes
    t.give(Hour(1024, "2026-11-30"))
    assert "deck_too_old" in t.codes
