"""Openings at the table core (S1, S1b): prepared or certified batches, demands, dead cards, the day's end.

Before every input the state is written as a checkpoint and read back: a restart at any point changes nothing.
"""

from __future__ import annotations

from typing import Any

import pytest

from controller.table.checkpoint import checkpoint, restore
from controller.table.draft import Decision
from controller.table.inputs import Hour, Input, Refusal, Role
from controller.table.profiles import BatchRules
from controller.table.state import Place
from devices import events as ev
from tests.support.table import Table, table_rules

SUPERVISOR = frozenset({Role.SUPERVISOR})
TUESDAY, WEDNESDAY = "2026-01-06", "2026-01-07"


class Restarting(Table):
    """Every input finds the state as a restart does."""

    def give(self, given: Input) -> Decision | Refusal:
        again = restore(checkpoint(self.state))
        assert again == self.state
        self.state = again
        return super().give(given)

    @property
    def phase(self) -> str:
        return self.state.phase.value


def opened(last: str | None = None) -> Restarting:
    """A table open, nothing prepared; `last` is the batch of the last shoe before its last closing."""
    t = Restarting()
    t.boot()
    t.links_up()
    if last is not None:
        t.open()
        first = t.rules.other(last)
        shuffled(t, first)
        t.tap("load_shuffler", batch=last)
        t.start()
        play(t, first)
        swap(t)
        close(t)
    t.tap("open")
    assert t.state.shoe.last_batch == last
    return t


def shuffled(t: Table, batch: str) -> None:
    """A full cycle on the batch, and out with it."""
    t.tap("load_shuffler", batch=batch)
    t.start()
    t.complete()
    t.take()


def play(t: Table, batch: str) -> None:
    """The batch is cut by whoever comes first, loaded, burned, and the other one's cycle completes."""
    t.cut_and_load(batch)
    t.draw()
    if t.state.shuffler.stage.value == "running":
        t.complete()
    t.play_round("1,4")


def swap(t: Table) -> None:
    t.tap("shuffle_now")
    t.end_shoe()
    batch = t.state.shuffler.batch
    assert batch is not None
    t.swap_to(batch)
    t.complete()
    t.play_round("2")


def close(t: Table) -> None:
    t.tap("close")
    t.end_shoe()
    t.take()
    for batch in "AB":
        t.tap("count_batch", batch=batch, cards=t.size)
    for device in ("shoe", "shuffler"):
        t.tap("confirm_empty", device=device)
    t.tap("close", SUPERVISOR)
    assert t.state.phase.value == "closed"


def certify(t: Table, batch: str) -> None:
    t.tap(
        "certificate", batch=batch, maker="Acme", model="V2", serial="77", operator="kim", at="2026-01-06",
        decks=1, cards=52, result="ok", seal=f"S-{batch}", seal_intact=True,
    )  # fmt: skip


# --- S1 ---


@pytest.mark.rule("R-12", "R-13", "R-42", "R-17", "R-23")
def test_s1_from_the_inspections_of_the_day_to_the_first_bets():
    t = Restarting()
    t.boot()
    t.links_up()
    t.give(Hour(490_000, TUESDAY))
    assert t.refused("open").code == "inspection_due"
    for device in ("shoe", "shuffler"):
        t.tap("inspect", SUPERVISOR, who="sue", device=device)
    t.tap("open")
    t.prepare("A")
    t.tap("load_shuffler", batch="A")
    t.prepare("B")  # while the machine shuffles the other batch
    t.start()
    t.complete()
    t.take()
    t.tap("load_shuffler", batch="B")
    t.start()
    t.cut_and_load("A", offer="5")
    assert t.refused("bets_closed", boxes="5").code == "unexpected"
    t.draw()
    t.play_round("5")
    assert t.state.faults == ()
    assert (t.state.shoe.batch, t.state.batches["B"].cards) == ("A", {Place.SHUFFLER: 52})


@pytest.mark.rule("R-13")
def test_inc10_no_cards_are_shuffled_that_no_player_inspected():
    t = opened()
    for step in ("inspect", "verify", "spread"):
        t.tap(step, SUPERVISOR, who=step, batch="A")
    refusal = t.refused("wash", batch="A")
    assert (refusal.code, refusal.expected) == ("not_in_turn", ("player_inspected batch=A",))
    refusal = t.refused("load_shuffler", batch="A")
    assert (refusal.code, refusal.clause) == ("not_prepared", "13:69F-2.4(b)-(e)")
    assert refusal.expected == ("player_inspected batch=A",)
    assert t.phase == "opening"


@pytest.mark.rule("R-07")
@pytest.mark.parametrize("last", ["A", "B"])
def test_the_batches_alternate_across_a_closing(last: str):
    t = opened(last)
    t.prepare("A")
    t.prepare("B")
    refusal = t.refused("load_shuffler", batch=last)
    assert (refusal.code, refusal.clause) == ("same_batch_twice", "13:69F-2.2(d)4")
    first = t.rules.other(last)
    shuffled(t, first)
    t.tap("load_shuffler", batch=last)
    t.start()
    play(t, first)
    assert t.state.shoe.number == 3


# --- S1b ---


@pytest.mark.rule("R-12", "R-48")
@pytest.mark.parametrize("last", [None, "A", "B"])
@pytest.mark.parametrize("certified", ["A", "B", "AB"])
@pytest.mark.parametrize("stored", ["A", "B"])
def test_s1b_a_certified_batch_goes_to_its_cut_while_the_other_is_stored(certified, stored, last):
    """Alternation begins with whichever is first in the shoe; whose turn it is not, is stored."""
    t = opened(last)
    for batch in "AB":
        certify(t, batch) if batch in certified else t.prepare(batch)
    first = t.rules.other(stored)
    if (stored in certified and first not in certified) or (first == last and certified == "AB"):
        assert t.refused("load_shuffler", batch=stored).code == "batch_is_shuffled"
        return
    if first == last:
        t.tap("load_shuffler", batch=stored)
        assert t.phase == "first_loaded", "it is shuffled first, for it is its turn"
        return
    t.tap("load_shuffler", batch=stored)
    assert t.phase == "other_loaded"
    assert t.state.batches[stored].proof is None, "what is loaded gives up its certificate"
    t.start()
    assert t.phase == "cut_due"
    assert t.refused("insert_cutting_card", position=13).code == "unexpected"
    play(t, first)
    assert t.state.shoe.batch == first
    swap(t)
    assert (t.state.shoe.batch, t.state.faults) == (stored, ())


@pytest.mark.rule("R-07", "R-48")
def test_s1b_a_certified_batch_that_was_in_the_last_shoe_is_stored_although_it_is_shuffled():
    t = opened(last="A")
    certify(t, "A")
    t.prepare("B")
    assert t.refused("load_shuffler", batch="A").code == "batch_is_shuffled"
    shuffled(t, "B")
    assert t.phase == "batch_taken"
    t.tap("load_shuffler", batch="A")
    t.start()
    play(t, "B")
    assert (t.state.shoe.batch, t.state.faults) == ("B", ())


# --- R-49 ---


def at_cut(last: str | None = None) -> Restarting:
    """Batch A came certified and is to be cut, batch B is being shuffled."""
    t = opened(last)
    certify(t, "A")
    t.prepare("B")
    t.tap("load_shuffler", batch="B")
    t.start()
    assert t.phase == "cut_due"
    return t


CUTTING: list[tuple[str, dict[str, Any]]] = [
    ("offer_cut", {"box": "3"}),
    ("cut", {"position": 26}),
    ("insert_cutting_card", {"position": 13}),
]


@pytest.mark.rule("R-49")
@pytest.mark.parametrize("taps", [0, 1, 2, 3])
def test_a_patron_demands_a_shuffle_and_the_other_batch_is_dealt_first(taps: int):
    t = at_cut()
    for event, args in CUTTING[:taps]:
        t.tap(event, **args)
    t.tap("shuffle_demanded")
    assert t.phase == "rack_full"
    assert t.refused("take_from_shuffler").code == "not_shuffled"
    t.complete()
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    play(t, "B")
    swap(t)
    assert (t.state.shoe.batch, t.state.shoe.number, t.state.faults) == ("A", 2, ())


@pytest.mark.rule("R-07", "R-49")
def test_a_demand_where_the_other_batch_was_dealt_last_shuffles_this_one_first():
    t = at_cut(last="B")
    t.tap("shuffle_demanded")
    t.complete()
    t.take()
    assert t.phase == "opening"
    assert t.refused("load_shuffler", batch="B").code == "batch_is_shuffled"
    shuffled(t, "A")
    t.tap("load_shuffler", batch="B")
    t.start()
    play(t, "A")
    assert (t.state.shoe.batch, t.state.faults) == ("A", ())


@pytest.mark.rule("R-49")
def test_a_demand_before_the_other_batchs_cycle_began():
    t = opened()
    certify(t, "A")
    t.prepare("B")
    t.tap("load_shuffler", batch="B")
    t.tap("shuffle_demanded")
    assert t.phase == "first_loaded"
    t.start()
    t.complete()
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    play(t, "B")
    assert t.state.faults == ()


@pytest.mark.rule("R-49")
def test_a_demand_with_the_batch_in_the_shoe_ends_the_shoe():
    t = at_cut()
    t.cut_and_load("A", offer="3")
    refusal = t.refused("shuffle_demanded", batch="A")
    assert (refusal.code, refusal.expected) == ("batch_in_use", ("shuffle_now",))
    t.tap("shuffle_now")
    t.complete()
    t.end_shoe()
    t.swap_to("B")
    assert t.refused("shuffle_demanded", batch="A").code == "not_certified"


# --- the day's end ---


@pytest.mark.rule("R-42")
def test_the_day_ends_in_mid_round_the_round_is_finished_and_nothing_else_begins():
    t = Restarting()
    t.open_to_shoe()
    t.give(Hour(490_000, TUESDAY))
    for device in ("shoe", "shuffler"):
        t.tap("inspect", SUPERVISOR, device=device)
    t.complete()
    t.deal("1,4")
    t.give(Hour(490_001, WEDNESDAY))
    t.draw()
    t.tap("round_settled")
    assert t.refused("bets_closed", boxes="1").expected == ("inspect device=shoe",)
    t.boot("33" * 16)
    t.links_up(state="done", inside=52)
    assert t.refused("bets_closed", boxes="1").code == "inspection_due"
    t.tap("inspect", SUPERVISOR, device="shoe")
    t.play_round("1")
    t.tap("shuffle_now")
    t.end_shoe()
    assert t.refused("take_from_shuffler").expected == ("inspect device=shuffler",)
    t.tap("inspect", SUPERVISOR, device="shuffler")
    t.swap_to("B")
    assert t.codes == []


# --- dead cards, age ---


@pytest.mark.rule("R-46", "R-55")
def test_a_dead_card_in_play_ends_the_shoe_and_the_batch_comes_back_replaced():
    t = Restarting()
    t.open_to_shoe()
    t.complete()
    t.deal("1,4")
    t.tap("dead_card", batch="A", card="8S")
    t.draw()
    t.tap("round_settled")
    assert t.refused("bets_closed", boxes="1").code == "fault_latched"
    t.tap("shuffle_now")
    t.end_shoe()
    assert t.refused("load_shuffler", batch="A").code == "shuffler_not_empty"
    t.take()
    assert t.refused("load_shuffler", batch="A").code == "batch_unfit"
    t.tap("replace_batch", SUPERVISOR, batch="A")
    t.prepare("A")
    t.tap("load_shuffler", batch="A")
    t.start()
    t.cut_and_load("B")
    t.draw()
    fault = t.state.faults[0]
    assert t.refused("clear", fault=fault.id).code == "not_allowed"
    t.tap("clear", SUPERVISOR, fault=fault.id)
    t.complete()
    t.play_round("1")
    swap(t)
    assert (t.state.shoe.batch, t.state.batches["A"].unfit, t.state.faults) == ("A", None, ())


@pytest.mark.rule("R-07", "R-46")
@pytest.mark.parametrize("taps", [0, 1, 2, 3])
def test_a_dead_card_found_at_the_cut_never_lets_the_last_batch_go_twice(taps: int):
    t = Restarting()
    t.open_to_shoe()
    t.complete()
    t.play_round("1,3")
    t.tap("shuffle_now")
    t.end_shoe()
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    for event, args in CUTTING[:taps]:
        t.tap(event, **args)
    t.tap("dead_card", batch="B", reason="extra")
    assert t.phase == "rack_full"
    fault = t.state.faults[0]
    t.tap("replace_batch", SUPERVISOR, batch="B")
    t.tap("clear", SUPERVISOR, fault=fault.id)
    t.complete()
    t.take()
    assert t.phase == "opening"
    t.prepare("B")
    shuffled(t, "B")
    t.tap("load_shuffler", batch="A")
    t.start()
    play(t, "B")
    assert (t.state.shoe.batch, t.state.shoe.number, t.state.faults) == ("B", 2, ())


@pytest.mark.rule("R-46", "R-48")
def test_a_batch_replaced_in_mid_shoe_and_certified_goes_straight_to_its_cut():
    t = Restarting()
    t.open_to_shoe()
    t.event(ev.Jam, "shuffler", place="exit")
    t.event(ev.BatchReleased, "shuffler", count=52, inside=0, token=None)
    t.tap("dead_card", batch="B", reason="damaged")
    t.tap("replace_batch", SUPERVISOR, batch="B")
    certify(t, "B")
    dead = next(f for f in t.state.faults if f.code == "dead_card")
    t.tap("clear", SUPERVISOR, fault=dead.id)
    t.play_round("1")
    t.tap("shuffle_now")
    t.end_shoe()
    t.tap("load_shuffler", batch="A")
    assert t.phase == "other_loaded"
    t.start()
    t.complete()
    for fault in t.state.faults:
        t.tap("clear", SUPERVISOR, fault=fault.id)
    play(t, "B")
    assert (t.state.shoe.batch, t.state.faults) == ("B", ())


@pytest.mark.rule("R-45")
def test_a_batch_that_gets_too_old_at_its_cut_is_not_dealt():
    t = Restarting(table_rules(deck_age_h=24))
    t.boot()
    t.links_up()
    t.open()
    t.give(Hour(1000, TUESDAY))
    for device in ("shoe", "shuffler"):
        t.tap("inspect", SUPERVISOR, device=device)
    shuffled(t, "A")
    t.tap("replace_batch", SUPERVISOR, batch="B")
    t.give(Hour(1005, TUESDAY))
    t.tap("replace_batch", SUPERVISOR, batch="B")
    t.prepare("B")
    t.tap("load_shuffler", batch="B")
    t.start()
    assert t.phase == "cut_due"
    t.give(Hour(1024, TUESDAY))
    assert (t.phase, t.codes) == ("rack_full", ["deck_too_old"])
    assert t.state.batches["A"].unfit == "deck_too_old"
    fault = next(f for f in t.state.faults if f.code == "deck_too_old")
    t.tap("replace_batch", SUPERVISOR, batch="A")
    t.tap("clear", SUPERVISOR, fault=fault.id)
    t.prepare("A")
    t.complete()
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    play(t, "B")
    assert t.state.shoe.batch == "B"


# --- R-51 ---


@pytest.mark.rule("R-51")
@pytest.mark.parametrize("double_shoe", [True, False])
def test_the_journal_tells_which_sides_cutting_card_went_in(double_shoe: bool):
    sides = (BatchRules("A", "red", "yellow"), BatchRules("B", "blue", "green"))
    t = Restarting(table_rules(double_shoe=double_shoe, batches=sides))
    t.boot()
    t.links_up()
    t.open()
    shuffled(t, "A")
    t.tap("load_shuffler", batch="B")
    t.start()
    play(t, "A")
    swap(t)
    inserted = [fact.data for fact in t.facts if fact.kind == "insert_cutting_card"]
    told = [(data.get("batch"), data.get("cutting_card")) for data in inserted]
    assert told == ([("A", "yellow"), ("B", "green")] if double_shoe else [(None, None)] * 2)
