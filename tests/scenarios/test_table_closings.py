"""The ends of play at the table core: idle, discretionary, closing, out of service (S5, S8, S10)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.table.checkpoint import checkpoint, restore
from controller.table.inputs import Hour, Role
from controller.table.profiles import CutPolicy, Discretionary
from controller.table.state import Place, Shuffled
from devices import events as ev
from devices.events import DECK
from firmware_bridge.link import Done
from tests.support.table import Table, table_rules

SUPERVISOR = frozenset({Role.SUPERVISOR})


def dealt(**rules: object) -> Table:
    """Batch A in the shoe, batch B stored, one round played."""
    t = Table(table_rules(**rules))
    t.open_to_shoe()
    t.complete()
    t.play_round("1,4")
    return t


def lift_out(t: Table) -> None:
    """Somebody opens the machine and takes every card out."""
    inside = sum(b.at(Place.SHUFFLER) for b in t.state.batches.values())
    t.event(ev.BatchReleased, "shuffler", count=inside, inside=0, token=None)


def close_up(t: Table, a: int = 52, b: int = 52) -> None:
    """Every batch counted, every device looked into, the table closed by a supervisor."""
    t.tap("count_batch", batch="A", cards=a)
    t.tap("count_batch", batch="B", cards=b)
    for device in ("shoe", "shuffler"):
        if device not in t.state.empty:
            t.tap("confirm_empty", device=device)
    t.tap("close", SUPERVISOR)


def clear(t: Table) -> None:
    """A supervisor clears the one latched fault."""
    (fault,) = (f for f in t.state.faults if f.code in t.codes)
    t.tap("clear", SUPERVISOR, fault=fault.id)


def link_down(t: Table) -> None:
    t.event(ev.LinkDown, "shuffler", reason="pulled")


# --- S8: nobody plays ---


@pytest.mark.rule("R-19", "R-21", "R-17")
def test_s8_an_idle_table_is_spread_and_the_stored_batch_is_dealt_to_the_first_to_arrive():
    t = dealt()
    t.tap("idle")
    assert t.state.phase.value == "shoe_end"
    t.end_shoe()
    assert t.state.phase.value == "idle"
    refusal = t.refused("resume")
    assert (refusal.code, refusal.clause) == ("not_spread", "58 Pa. Code 633a.5(g)")
    assert refusal.expected == ("spread batch=A",)
    t.tap("spread")
    assert t.state.batches["A"].cards == {Place.IN_HAND: 52}
    t.tap("resume")  # the stored batch needs no inspection unless a player asks
    assert t.state.phase.value == "rack_full"
    assert t.refused("load_shuffler", batch="A").code == "shuffler_not_empty"
    t.take()
    assert t.refused("load_shoe", batch="B").code == "unexpected"
    t.tap("load_shuffler", batch="A")
    t.start()
    t.cut_and_load("B", offer="6")
    t.draw()
    assert (t.state.shoe.number, t.state.shoe.last_batch) == (2, "B")


@pytest.mark.rule("R-21")
def test_s8_who_arrives_may_inspect_the_spread_cards():
    t = dealt()
    t.tap("shuffle_now")
    t.end_shoe()
    t.tap("idle")
    t.tap("spread", batch="A")
    t.tap("player_inspected", batch="A")
    t.tap("resume")
    t.swap_to("B")
    assert t.state.phase.value == "between_rounds"


@pytest.mark.rule("R-21", "R-13")
@pytest.mark.parametrize("late", [False, True], ids=["in hand", "at its cut"])
def test_s8_a_player_may_ask_that_the_stored_batch_is_inspected_and_shuffled_again(late: bool) -> None:
    t = rack_full()
    assert t.refused("shuffle_demanded", batch="B").code == "not_certified"
    t.tap("idle")
    t.tap("spread")
    t.tap("resume")
    assert t.refused("shuffle_demanded", batch="B").code == "not_certified"
    t.take()
    if late:
        t.tap("load_shuffler", batch="A")
        t.start()
    t.tap("shuffle_demanded", batch="B")
    assert t.state.batches["B"].proof is None
    if late:
        t.complete()
        t.take()
    assert t.refused("load_shuffler", batch="B").code == "not_prepared"
    for step in ("spread", "player_inspected", "wash"):
        t.tap(step, batch="B")
    t.tap("load_shuffler", batch="B")
    t.start()
    if late:
        assert t.refused("load_shoe", batch="A").code == "unexpected"
    t.complete()
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.cut_and_load("B", offer="2")
    assert (t.state.shoe.batch, t.state.shoe.number) == ("B", 2)


def test_s8_a_round_in_play_is_finished_first_and_says_what_is_expected():
    t = dealt()
    t.deal("2")
    refusal = t.refused("idle")
    assert refusal.code == "unexpected"
    assert "round_settled" in refusal.expected


# --- S5: the licensee ends the shoe ---


@pytest.mark.rule("R-14")
def test_s5_a_discretionary_shuffle_takes_the_batchs_turn():
    t = dealt()
    t.tap("shuffle_now")
    t.end_shoe()
    refusal = t.refused("reshuffle_by_hand", SUPERVISOR, batch="A")
    assert (refusal.code, refusal.clause) == ("not_by_hand", "13:69F-2.2(d)")
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    assert t.refused("offer_cut", box="1").expected == ("offer_cut box=4",)  # farthest to the right
    t.cut_and_load("B")


@pytest.mark.rule("R-14", "R-07", "R-17")
def test_s5_by_the_other_reading_the_same_batch_is_shuffled_by_hand_and_keeps_its_turn():
    t = dealt(discretionary=Discretionary.SAME_BATCH)
    t.tap("shuffle_now")
    t.end_shoe()
    assert "reshuffle_by_hand batch=A" in t.refused("bets_closed", boxes="1").expected
    assert t.refused("reshuffle_by_hand", SUPERVISOR, batch="B").code == "not_by_hand"
    t.tap("reshuffle_by_hand", SUPERVISOR, batch="A")
    assert t.state.phase.value == "cut_due"
    assert t.state.batches["A"].proof.how is Shuffled.HAND
    assert t.refused("offer_cut", box="1").expected == ("offer_cut box=4",)
    t.cut_and_load("A")
    t.draw()
    assert (t.state.shoe.number, t.state.shoe.last_batch) == (1, "A")
    assert t.state.batches["B"].cards == {Place.SHUFFLER: 52}
    t.play_round("1")
    t.event(ev.CutCard)  # between rounds: one more is played, then the batches alternate
    t.play_round("1")
    t.end_shoe()
    assert t.refused("reshuffle_by_hand", SUPERVISOR, batch="A").code == "not_by_hand"
    t.swap_to("B")
    assert (t.state.shoe.number, t.state.shoe.last_batch) == (2, "B")


@pytest.mark.rule("R-07")
def test_s5_a_shoe_that_was_dealt_to_its_cutting_card_is_no_discretionary_one():
    t = dealt(discretionary=Discretionary.SAME_BATCH)
    t.tap("shuffle_now")
    assert t.refused("shuffle_now").code == "unexpected"
    t2 = dealt(discretionary=Discretionary.SAME_BATCH)
    t2.deal("1")
    t2.tap("shuffle_now")
    t2.event(ev.CutCard)
    t2.tap("cutting_card_at", box="1")
    t2.tap("round_settled")
    t2.end_shoe()
    assert t2.refused("reshuffle_by_hand", SUPERVISOR, batch="A").code == "not_by_hand"


# --- S10: closing ---


def opening() -> Table:
    t = Table()
    t.boot()
    t.links_up()
    t.open()
    return t


def first_loaded() -> Table:
    t = opening()
    t.tap("load_shuffler", batch="A")
    return t


def first_shuffling() -> Table:
    t = first_loaded()
    t.start()
    return t


def batch_taken() -> Table:
    t = first_shuffling()
    t.complete()
    t.take()
    return t


def other_loaded() -> Table:
    t = batch_taken()
    t.tap("load_shuffler", batch="B")
    return t


def cut_due() -> Table:
    t = other_loaded()
    t.start()
    return t


def cut_done() -> Table:
    t = cut_due()
    t.tap("offer_cut", box="3")
    t.tap("cut", position=20)
    return t


def cutting_card_in() -> Table:
    t = cut_done()
    t.tap("insert_cutting_card", position=20)
    return t


def rack_full() -> Table:
    t = dealt()
    t.tap("shuffle_now")
    t.end_shoe()
    return t


def idle() -> Table:
    t = rack_full()
    t.tap("idle")
    return t


AT_ONCE = (
    opening, first_loaded, first_shuffling, batch_taken, other_loaded, cut_due, cut_done, cutting_card_in,
    rack_full, idle,
)  # fmt: skip


@pytest.mark.rule("R-36b", "R-45")
@pytest.mark.parametrize("at", AT_ONCE, ids=lambda at: at.__name__)
def test_s10_from_every_phase_without_a_shoe_each_batch_is_counted_and_each_device_seen_empty(
    at: Callable[[], Table],
) -> None:
    t = at()
    assert t.state.phase.value == at.__name__
    t.tap("close")
    assert (t.state.phase.value, t.state.taken) == ("closing", None)
    inside = t.state.batch_at(Place.SHUFFLER)
    if inside is not None:
        assert t.refused("count_batch", batch=inside, cards=52).code == "batch_not_in_hand"
        assert t.refused("confirm_empty", device="shuffler").code == "shuffler_not_empty"
        assert t.refused("close", SUPERVISOR).code == "shuffler_not_empty"
        lift_out(t)
    assert t.codes == []
    close_up(t)
    assert t.state.phase.value == "closed"
    assert all(not b.cards and b.proof is None for b in t.state.batches.values())


@pytest.mark.rule("R-26", "R-45")
@pytest.mark.parametrize("burned", [False, True], ids=["before the burn", "between rounds"])
def test_s10_a_shoe_in_use_is_emptied_to_the_rack_first(burned: bool) -> None:
    t = cutting_card_in()
    t.tap("load_shoe", batch="A")
    t.stack = list(DECK)
    if burned:
        t.draw()
    t.tap("close")
    assert t.state.phase.value == "shoe_end"
    assert t.refused("close").code == "already_ending"
    assert t.refused("collect_rack", gauge="full").code == "shoe_not_empty"
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    t.tap("collect_rack", gauge="full")
    assert t.state.phase.value == "closing"
    t.complete()
    t.take()  # the machine gives the batch out; its shuffle counts for nothing any more
    assert t.state.batches["B"].proof is None
    assert t.codes == []
    close_up(t)


@pytest.mark.parametrize("event", ["close", "idle", "shuffle_now"])
def test_s10_ends_no_round(event: str) -> None:
    t = dealt()
    t.deal("1")
    if event == "shuffle_now":
        t.tap(event)
        assert t.state.phase.value == "playing"
    else:
        assert t.refused(event).code == "unexpected"
    t.tap("round_settled")


@pytest.mark.rule("R-45")
def test_s10_is_refused_until_nothing_is_left_to_do_and_says_what_each_time():
    t = rack_full()
    t.give(Hour(1000, "2030-01-01"))
    t.tap("close")
    t.take()
    why = t.refused("close")
    assert (why.code, why.why) == ("not_allowed", "a supervisor closes the table")
    refusal = t.refused("close", SUPERVISOR)
    assert (refusal.code, refusal.clause) == ("not_counted", "13:69E-1.18(b)")
    assert refusal.expected == ("count_batch batch=A cards=52", "count_batch batch=B cards=52")
    t.tap("count_batch", batch="A", cards=52)
    t.tap("count_batch", batch="B", cards=52)
    refusal = t.refused("close", SUPERVISOR)
    assert refusal.code == "not_confirmed_empty"
    assert refusal.expected == ("confirm_empty device=shoe", "confirm_empty device=shuffler")
    t.tap("confirm_empty", device="shoe")
    t.tap("confirm_empty", device="shuffler")
    assert t.refused("confirm_empty", device="shuffler").code == "already_known"
    t.tap("close", SUPERVISOR)
    logs = [fact.data for fact in t.facts if fact.kind == "deck_log"]
    assert [(log["batch"], log["cards"], log["missing"]) for log in logs] == [("A", 52, []), ("B", 52, [])]
    assert t.state.shoe.last_batch == "A"


@pytest.mark.rule("R-45", "R-42")
def test_s10_the_deck_log_tells_the_hours_on_the_table():
    t = Table()
    t.boot()
    t.links_up()
    t.give(Hour(1000, "2030-01-01"))
    for device in ("shoe", "shuffler"):
        t.tap("inspect", SUPERVISOR, device=device)
    t.tap("open")
    t.give(Hour(1007, "2030-01-01"))
    t.tap("close")
    close_up(t)
    logs = [fact.data for fact in t.facts if fact.kind == "deck_log"]
    assert [(log["batch"], log["received"], log["hours"]) for log in logs] == [("A", 1000, 7), ("B", 1000, 7)]


@pytest.mark.rule("R-55")
def test_s10_a_batch_counted_short_is_unfit_and_its_fault_stays_after_the_closing():
    t = rack_full()
    t.tap("close")
    lift_out(t)
    t.tap("count_batch", batch="A", cards=51)
    assert t.codes == ["wrong_count"]
    assert t.state.batches["A"].unfit == "wrong_count"
    t.tap("count_batch", batch="A", cards=51)
    assert t.codes == ["wrong_count"]
    t.tap("count_batch", batch="B", cards=52)
    for device in ("shoe", "shuffler"):
        t.tap("confirm_empty", device=device)
    closed = t.tap("close", SUPERVISOR)
    assert closed.facts[0].data["removed"] == ["A"]
    assert [(f.data["batch"], f.data["cards"], f.data["unfit"]) for f in closed.facts[1:]] == [
        ("A", 51, "wrong_count"),
        ("B", 52, None),
    ]
    assert t.codes == ["wrong_count"]
    fault = t.state.faults[0]
    assert t.refused("clear", SUPERVISOR, fault=fault.id).code == "cause_remains"


@pytest.mark.rule("R-68")
def test_s10_a_restart_in_the_closing_forgets_nothing_that_was_said():
    t = rack_full()
    t.tap("close")
    lift_out(t)
    t.tap("count_batch", batch="A", cards=52)
    t.tap("confirm_empty", device="shoe")
    link_down(t)
    t.tap("confirm_empty", who="ann", device="shuffler")
    t.state = restore(checkpoint(t.state))
    assert t.state.batches["A"].counted == 52
    assert (t.state.empty, t.state.first_to_look) == (("shoe",), {"shuffler": "ann"})


@pytest.mark.rule("R-36b")
def test_a_device_that_cannot_tell_is_looked_into_by_two_people():
    t = rack_full()
    t.tap("close")
    lift_out(t)
    link_down(t)
    first = t.tap("confirm_empty", who="ann", device="shuffler")
    assert first.facts[0].data["confirmed"] is False
    assert t.refused("confirm_empty", who="ann", device="shuffler").code == "second_person"
    second = t.tap("confirm_empty", SUPERVISOR, who="sue", device="shuffler")
    assert second.facts[0].data["by"] == ["ann", "sue"]
    assert t.state.empty == ("shuffler",)


def test_a_cycle_that_runs_into_the_closing_proves_nothing_that_is_dealt():
    t = cut_due()
    t.tap("close")
    t.complete()
    assert t.state.batches["B"].proof is not None
    t.take()
    assert (t.state.batches["B"].proof, t.codes) == (None, [])
    close_up(t)
    assert t.state.phase.value == "closed"


# --- R-36b: the shuffler goes out of service ---


@pytest.mark.rule("R-36b")
def test_out_of_service_voids_the_shuffle_and_play_goes_on_to_the_end_of_the_shoe():
    t = dealt()
    assert t.refused("out_of_service", SUPERVISOR, device="shoe").code == "bad_argument"
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    assert t.state.batches["B"].proof is None
    assert t.refused("out_of_service", SUPERVISOR, device="shuffler").code == "already_known"
    t.play_round("2")
    t.tap("shuffle_now")
    t.end_shoe()
    for tap, args in [("take_from_shuffler", {}), ("start_shuffle", {})]:
        refusal = t.refused(tap, **args)
        assert (refusal.code, refusal.clause) == ("out_of_service", "La. 42:III-3106")
    assert t.refused("load_shuffler", batch="A").code == "out_of_service"
    lift_out(t)
    assert t.codes == []
    assert t.state.batches["B"].cards == {Place.IN_HAND: 52}


@pytest.mark.rule("R-36b")
def test_out_of_service_while_it_runs_is_no_partial_credit_and_no_foreign_cycle():
    t = first_shuffling()
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    assert t.state.phase.value == "first_loaded"
    t.complete()
    assert t.state.batches["A"].proof is None
    assert t.codes == []
    lift_out(t)
    assert t.state.phase.value == "opening"


@pytest.mark.rule("R-36b", "R-06")
def test_back_in_service_it_shuffles_again_from_the_beginning():
    t = dealt()
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    t.cycle = 77  # it was mended and tried
    t.tap("in_service", SUPERVISOR, device="shuffler")
    assert t.refused("in_service", SUPERVISOR, device="shuffler").code == "already_known"
    t.start()
    t.complete()
    assert t.codes == []
    t.tap("shuffle_now")
    t.end_shoe()
    t.swap_to("B")
    assert t.state.shoe.batch == "B"


@pytest.mark.rule("R-36b", "R-55")
def test_inc6_sixteen_cards_left_in_a_shuffler_taken_out_of_service_are_found_before_any_round():
    t = rack_full()
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    link_down(t)
    t.tap("confirm_empty", device="shuffler", cards=36)
    assert t.codes == ["cards_inside"]
    assert t.state.batches["B"].cards == {Place.IN_HAND: 36, Place.SHUFFLER: 16}
    assert t.state.empty == ()
    t.tap("close")
    assert t.refused("count_batch", batch="B", cards=36).code == "batch_not_in_hand"
    assert t.refused("close", SUPERVISOR).code == "shuffler_not_empty"
    t.tap("confirm_empty", device="shuffler", cards=16)
    t.tap("confirm_empty", SUPERVISOR, who="sue", device="shuffler")
    close_up(t)
    clear(t)
    t.tap("open", mode="manual-shoe")


@pytest.mark.rule("R-36b", "R-55")
def test_inc6_said_to_be_empty_and_counted_short_sends_people_back_to_the_machine():
    t = rack_full()
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    link_down(t)
    t.tap("confirm_empty", device="shuffler", cards=52)
    t.tap("confirm_empty", SUPERVISOR, who="sue", device="shuffler")
    assert (t.codes, t.state.empty) == ([], ("shuffler",))
    t.tap("close")
    t.tap("count_batch", batch="A", cards=52)
    t.tap("count_batch", batch="B", cards=52)
    t.tap("count_batch", batch="B", cards=36)
    assert t.state.batches["B"].counted is None
    assert t.codes == ["cards_inside"]
    assert t.state.empty == ()
    assert t.state.batches["B"].cards == {Place.IN_HAND: 36, Place.SHUFFLER: 16}
    t.tap("confirm_empty", device="shuffler", cards=16)
    t.tap("confirm_empty", SUPERVISOR, who="sue", device="shuffler")
    t.tap("count_batch", batch="B", cards=52)
    assert t.state.batches["B"].unfit is None
    clear(t)
    t.tap("confirm_empty", device="shoe")
    t.tap("close", SUPERVISOR)


@pytest.mark.rule("R-55")
def test_inc6_cards_that_are_nowhere_take_the_batch_off_the_table():
    t = rack_full()
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    link_down(t)
    t.tap("confirm_empty", device="shuffler", cards=36)
    t.tap("confirm_empty", device="shuffler", cards=0)  # the machine was searched once more
    assert t.codes == ["cards_inside", "wrong_count"]
    assert t.state.batches["B"].unfit == "wrong_count"
    t.tap("confirm_empty", SUPERVISOR, who="sue", device="shuffler")
    t.tap("close")
    close_up(t, b=36)


def test_inc6_a_machine_that_answers_is_believed_not_the_people():
    t = rack_full()
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    t.event(ev.BatchReleased, "shuffler", count=36, inside=16, token=None)
    assert t.codes == ["cards_inside"]
    refusal = t.refused("confirm_empty", device="shuffler", cards=16)
    assert (refusal.code, "16 cards" in refusal.why) == ("shuffler_not_empty", True)
    t.event(ev.BatchReleased, "shuffler", count=16, inside=0, token=None)
    t.tap("confirm_empty", device="shuffler")
    assert t.state.empty == ("shuffler",)


# --- without the shuffler ---


def out_and_closed() -> Table:
    t = rack_full()
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    lift_out(t)
    t.tap("close")
    close_up(t)
    return t


@pytest.mark.rule("R-36b", "R-07")
def test_a_manual_opening_waits_for_the_empty_check_and_keeps_the_history():
    t = out_and_closed()
    refusal = t.refused("open")
    assert (refusal.code, refusal.clause) == ("out_of_service", "La. 42:III-3106")
    assert refusal.expected == ("open mode=manual-shoe", "in_service device=shuffler")
    why = "open: mode=hand: this table opens as two-batch-shoe, or without its shuffler as manual-shoe"
    assert t.refused("open", mode="hand").why == why
    t.tap("open", mode="manual-shoe")
    assert (t.state.manual, t.state.shoe.last_batch, t.state.shoe.number) == (True, "A", 1)
    refusal = t.refused("reshuffle_by_hand", SUPERVISOR, batch="A")
    assert refusal.code == "not_prepared"
    t.prepare("A")  # one batch is enough, and the one that was in the last shoe will do
    t.tap("reshuffle_by_hand", SUPERVISOR, batch="A")
    assert t.refused("load_shoe", batch="A").code == "unexpected"
    t.cut_and_load("A", offer="2")
    t.draw()
    t.play_round("2,3")
    assert t.state.batches["A"].at(Place.RACK) > 0
    t.tap("shuffle_now")
    t.end_shoe()
    t.tap("reshuffle_by_hand", SUPERVISOR, batch="A")
    t.cut_and_load("A")
    t.draw()
    assert (t.state.shoe.number, t.state.shoe.last_batch) == (3, "A")
    t.tap("close")
    t.end_shoe()
    close_up(t)
    t.tap("in_service", SUPERVISOR, device="shuffler")
    t.open()
    refusal = t.refused("load_shuffler", batch="A")
    assert (refusal.code, refusal.clause) == ("same_batch_twice", "13:69F-2.2(d)4")
    t.tap("load_shuffler", batch="B")


@pytest.mark.rule("R-08")
def test_a_manual_table_never_has_two_batches_in_the_rack():
    t = out_and_closed()
    t.tap("open", mode="manual-shoe")
    for batch in ("A", "B"):
        t.prepare(batch)
    t.tap("reshuffle_by_hand", SUPERVISOR, batch="B")
    t.cut_and_load("B", offer="1")
    t.draw()
    t.tap("shuffle_now")
    t.end_shoe()
    t.tap("reshuffle_by_hand", SUPERVISOR, batch="A")
    assert t.state.batch_at(Place.RACK) is None
    t.cut_and_load("A", offer="1")
    t.draw()
    assert t.state.batch_at(Place.RACK) == "A"


@pytest.mark.rule("R-36b")
def test_a_manual_table_uses_its_shuffler_only_after_a_new_opening():
    t = out_and_closed()
    t.tap("open", mode="manual-shoe")
    t.prepare("B")
    t.tap("in_service", SUPERVISOR, device="shuffler")
    assert t.refused("load_shuffler", batch="B").code == "opened_without_shuffler"
    t.tap("close")
    close_up(t)
    assert t.refused("open", mode="manual-shoe").code == "shuffler_in_service"
    t.open()
    t.tap("load_shuffler", batch="B")


@pytest.mark.rule("R-36b")
def test_a_manual_opening_is_refused_while_cards_may_be_in_the_machine():
    t = Table()
    t.boot()
    t.links_up(inside=3)
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    refusal = t.refused("open", mode="manual-shoe")
    assert (refusal.code, refusal.expected) == ("not_confirmed_empty", ("confirm_empty device=shuffler",))
    assert t.refused("confirm_empty", device="shuffler").code == "shuffler_not_empty"
    link_down(t)
    t.tap("confirm_empty", device="shuffler")
    assert t.state.shuffler.surplus == 3
    t.tap("confirm_empty", SUPERVISOR, who="sue", device="shuffler")
    assert t.state.shuffler.surplus == 0
    t.tap("open", mode="manual-shoe")


@pytest.mark.rule("R-36b")
def test_a_fault_of_the_machines_last_shuffle_is_mended_by_the_shuffle_by_hand():
    t = dealt()
    t.event(ev.Jam, "shuffler", place="feeder", attempt=1)
    assert t.codes == ["shuffle_void"]
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    t.tap("close")
    t.end_shoe()
    lift_out(t)
    close_up(t)
    assert t.codes == ["shuffle_void"]
    t.tap("open", mode="manual-shoe")
    t.prepare("B")
    t.tap("reshuffle_by_hand", SUPERVISOR, batch="B")
    assert t.refused("offer_cut", box="1").code == "fault_latched"
    clear(t)
    t.cut_and_load("B", offer="1")


# --- the cut ---


@pytest.mark.rule("R-15")
def test_by_the_other_reading_a_machine_shuffled_batch_needs_no_cut_but_a_supervisor_may_order_one():
    t = Table(table_rules(cut=CutPolicy.HAND_SHUFFLED))
    t.boot()
    t.links_up()
    t.open()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.complete()
    t.take()
    t.tap("load_shuffler", batch="B")
    t.start()
    assert t.state.phase.value == "cut_done"
    t.tap("insert_cutting_card", position=13)
    t.tap("load_shoe", batch="A")
    assert t.state.phase.value == "burn_due"
    t.complete()
    t.tap("shuffle_now")
    t.stack = list(DECK)
    t.end_shoe()
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.tap("recut", SUPERVISOR)
    assert t.state.phase.value == "cut_due"
    t.cut_and_load("B", offer="1")


@pytest.mark.rule("R-15")
def test_what_was_shuffled_by_hand_is_cut_by_either_reading():
    t = dealt(cut=CutPolicy.ALWAYS)
    t.rules = table_rules(cut=CutPolicy.HAND_SHUFFLED, discretionary=Discretionary.SAME_BATCH)
    t.tap("shuffle_now")
    t.end_shoe()
    t.tap("reshuffle_by_hand", SUPERVISOR, batch="A")
    assert t.state.phase.value == "cut_due"
    t.cut_and_load("A")


@pytest.mark.rule("R-18")
@pytest.mark.parametrize("last", ["dealer", "supervisor"])
def test_when_nobody_accepts_the_last_one_cuts(last: str) -> None:
    t = Table(table_rules(boxes=2, last_cutter=last))
    t.boot()
    t.links_up()
    t.open()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.complete()
    t.take()
    t.tap("load_shuffler", batch="B")
    t.start()
    assert t.refused("offer_cut", SUPERVISOR, box=last).code == "wrong_cutter"
    t.tap("offer_cut", box="1", refused=True)
    t.tap("offer_cut", box="2", refused=True)
    other = "supervisor" if last == "dealer" else "dealer"
    assert t.refused("offer_cut", SUPERVISOR, box=other).code in ("bad_argument", "wrong_cutter")
    assert t.refused("offer_cut", SUPERVISOR, box=last, refused=True).code == f"{last}_cuts"
    if last == "supervisor":
        assert t.refused("offer_cut", box=last).code == "not_allowed"
    t.tap("offer_cut", SUPERVISOR, box=last)
    t.tap("cut", position=20)
    assert t.facts[-1].data["by"] == last


def test_an_answer_of_the_machine_after_the_closing_starts_no_cycle():
    t = first_loaded()
    t.tap("start_shuffle")
    t.tap("close")
    decks = {"mode": "shuffle", "cards_per_deck": 52, "recognition": True, "decks": 1}
    t.end(Done({"settings": decks, "crc": 1, "crc_ok": True}))
    t.end(Done({"inside": 52, "cycle": 40, "token": None}))
    assert t.effects == []
    assert t.facts[-1].kind == "start_failed"
