"""What a hostile reading found about batches, old journals and refusals, each as the story it was."""

from __future__ import annotations

import json

from controller.table.checkpoint import checkpoint, restore
from controller.table.evolve import evolve
from controller.table.inputs import Fact, Hour, Role
from controller.table.machine import TableMachine
from controller.table.phases import Phase
from controller.table.rules import awaited, expected
from controller.table.state import Place, Prep, initial
from controller.table.view import snapshot
from devices import events as ev
from firmware_bridge.link import Done
from tests.support.table import Table, table_rules

SUPERVISOR = frozenset({Role.SUPERVISOR})


def clear_all(t: Table) -> None:
    for fault in list(t.state.faults):
        t.tap("clear", SUPERVISOR, fault=fault.id)


def let_out(t: Table, token: str | None) -> None:
    t.event(ev.BatchReleased, "shuffler", count=t.size, inside=0, token=token)


# --- a batch goes out of play while it lies in the shuffler ---


def stored_batch_out_of_play() -> Table:
    """Batch A in the shoe, batch B proved in the shuffler with a dead card in it."""
    t = Table()
    t.open_to_shoe()
    t.complete()
    t.tap("dead_card", batch="B", card="8S", reason="missing")
    return t


def test_a_stored_batch_that_is_out_of_play_is_let_out_by_the_machine_and_replaced():
    """Nothing took it out again, and the table could only go idle."""
    t = stored_batch_out_of_play()
    t.tap("shuffle_now")
    t.end_shoe()
    assert "take_from_shuffler" in expected(t.rules, t.state)
    waits = awaited(t.rules, t.state)
    assert waits == "batch B, which is out of play, to come out of the shuffler or by hand"
    t.tap("take_from_shuffler")
    command = t.effects[-1]
    assert (command.name, command.args) == ("release", {"token": t.token})
    t.end(Done({"count": 52, "inside": 0}))
    let_out(t, t.token)
    assert (t.state.phase, t.codes) == (Phase.RACK_FULL, ["dead_card"])
    t.tap("replace_batch", SUPERVISOR, batch="B")
    clear_all(t)
    t.prepare("B")
    t.tap("load_shuffler", batch="B")
    t.start()
    t.complete()
    t.swap_to("B")
    assert (t.state.phase, t.state.shoe.batch) == (Phase.BETWEEN_ROUNDS, "B")


def test_a_batch_that_is_out_of_play_is_lifted_out_without_another_fault():
    t = stored_batch_out_of_play()
    t.tap("shuffle_now")
    t.end_shoe()
    t.event(ev.Door, "shuffler", open=True)
    let_out(t, None)
    t.event(ev.Door, "shuffler", open=False)
    assert t.codes == ["dead_card"]
    assert t.state.batches["B"].at(Place.IN_HAND) == 52


def test_a_dead_card_in_the_stored_batch_does_not_stop_the_rounds_of_the_other():
    t = stored_batch_out_of_play()
    t.play_round()
    assert t.state.rounds == 1
    t.tap("dead_card", batch="A")
    assert t.refused("bets_closed", boxes="1").code == "fault_latched"


def test_a_completed_shuffle_proves_nothing_of_a_batch_that_is_out_of_play():
    t = Table()
    t.open_to_shoe()
    t.tap("dead_card", batch="B", reason="missing")
    t.complete()
    assert t.state.batches["B"].proof is None
    assert t.codes == ["dead_card"]
    t.tap("shuffle_now")
    t.end_shoe()
    t.tap("take_from_shuffler")
    assert t.effects[-1].args == {"token": t.token}


def test_the_first_batch_that_the_machine_finds_wrong_comes_out_again():
    t = Table()
    t.boot()
    t.links_up()
    t.open()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.complete(count=51)
    assert (t.state.phase, t.codes) == (Phase.FIRST_LOADED, ["wrong_count"])
    t.tap("take_from_shuffler")
    t.end(Done({"count": 52, "inside": 0}))
    let_out(t, t.token)
    assert (t.state.phase, t.codes) == (Phase.OPENING, ["wrong_count"])


def test_a_table_with_a_limit_of_age_replaces_both_batches_and_goes_on():
    """With a limit of a day every table came to this: the stored batch was too old to come out."""
    t = Table(table_rules(deck_age_h=24))
    t.give(Hour(100, "d1"))
    for device in ("shoe", "shuffler"):
        t.tap("inspect", SUPERVISOR, device=device)
    t.open_to_shoe()
    t.complete()
    t.give(Hour(124, "d1"))
    assert t.codes == ["deck_too_old", "deck_too_old"]
    t.tap("shuffle_now")
    t.end_shoe()
    t.tap("take_from_shuffler")
    t.end(Done({"count": 52, "inside": 0}))
    let_out(t, t.token)
    for batch in "AB":
        t.tap("replace_batch", SUPERVISOR, batch=batch)
        t.prepare(batch)
    clear_all(t)
    t.tap("load_shuffler", batch="B")
    t.start()
    t.complete()
    t.swap_to("B")
    assert t.state.phase is Phase.BETWEEN_ROUNDS


def test_a_closing_table_takes_out_what_is_out_of_play():
    t = stored_batch_out_of_play()
    t.tap("close")
    t.end_shoe()
    t.tap("take_from_shuffler")
    t.end(Done({"count": 52, "inside": 0}))
    let_out(t, t.token)
    assert t.state.batch_at(Place.SHUFFLER) is None
    assert t.codes == ["dead_card"]


# --- journals from before batches were prepared, and a dry shoe was an alarm ---

OLD_OPEN = Fact(
    "open",
    "operator",
    {
        "cards": 52,
        "backs": {"A": "red", "B": "blue"},
        "who": "ann",
        "moves": ["open", "opening"],
    },
)
OLD_DRY = {"code": "shoe_dry", "blocks": "round", "cause": "no card is left", "batch": "A", "device": None}
TOKEN = "da" * 16
OLD_STATE = json.loads(
    """{
    "seq": 98, "boot": "00000000000000000000000000000000", "booted_at": 1, "phase": "rack_full",
    "batches": {
        "A": {"id": "A", "back": "red", "cards": {"rack": 52}, "proof": null, "cut": false, "unfit": null},
        "B": {"id": "B", "back": "blue", "cards": {"shuffler": 52}, "cut": false, "unfit": null,
              "proof": {"token": "dadadadadadadadadadadadadadadada", "cycle": 42}}
    },
    "shuffler": {"batch": "B", "stage": "proved", "token": "dadadadadadadadadadadadadadadada",
                 "counter": 42, "shuffles": 2, "surplus": 0},
    "shoe": {"batch": null, "last_batch": "A", "number": 1, "first_fact": 0, "drawn": {}, "unseen": {},
             "foreign": 0, "empty": true, "closing": "no", "cut_seen": false, "cut_at": null,
             "unaccounted": null, "early": []},
    "round": null, "rounds": 1, "last_boxes": [1], "cutter": null, "declined": [],
    "devices": {}, "pending": {}, "keys": {},
    "faults": [{"id": "F95", "code": "shoe_dry", "blocks": "round", "cause": "no card is left",
                "since": 95, "again": 95, "batch": "A", "device": null}]
}"""
)


def replayed(*facts: Fact) -> Table:
    rules = table_rules()
    state = initial(rules)
    for fact in facts:
        state = evolve(state, fact)
    t = Table(rules, state)
    t.boot("11" * 16)
    return t


def test_an_old_opening_means_batches_that_were_prepared_beside_the_journal():
    """Every batch came back as just received, so that the first swap was refused for good."""
    t = replayed(OLD_OPEN)
    t.links_up()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.complete()
    t.take()
    t.tap("load_shuffler", batch="B")
    t.start()
    t.cut_and_load("A", offer="3")
    t.draw()
    assert t.state.phase is Phase.BETWEEN_ROUNDS


def test_an_old_fault_that_is_an_alarm_now_stops_nothing():
    """Nobody could clear it: it was no fault any more, and its predicate no predicate."""
    t = replayed(OLD_OPEN, Fact("fault_latched", "shoe", {"fault": "F2", "unfit": False, **OLD_DRY}))
    assert (t.codes, t.alarms) == ([], ["shoe_dry"])


def test_a_table_goes_on_from_an_old_checkpoint():
    t = replayed(Fact("checkpoint", "service", {"state": OLD_STATE}))
    t.cycle, t.token = 42, TOKEN
    t.links_up(inside=52, state="done")
    assert (t.codes, t.alarms) == ([], ["shoe_dry"])
    t.tap("acknowledge", alarm="F95")
    assert t.alarms == []
    t.swap_to("B")
    t.play_round()
    assert (t.state.phase, t.state.shoe.batch) == (Phase.BETWEEN_ROUNDS, "B")
    assert t.state.batches["A"].prep is Prep.WASHED


def test_an_old_dry_shoe_is_over_when_its_rack_is_collected():
    t = Table()
    t.open_to_shoe()
    t.complete()
    t.deal("1")
    old = Fact("fault_latched", "shoe", {"fault": f"F{t.state.seq + 1}", "unfit": False, **OLD_DRY})
    settled = Fact("round_settled", "operator", {"moves": ["round_settled", "between_rounds"]})
    t.state = evolve(evolve(t.state, old), settled)
    t.machine = TableMachine(t.rules, t.state)
    t.tap("shuffle_now")
    t.end_shoe()
    assert [f.gone is not None for f in t.state.faults] == [True]


# --- certificates and the shuffle by hand ---

CERTIFICATE = {
    **dict.fromkeys(("maker", "model", "serial", "operator", "seal"), "M-1"),
    "at": "2026-11-30T08:00",
    "decks": 1,
    "cards": 52,
    "result": "ok",
    "seal_intact": "true",
}


def test_a_seal_is_good_for_one_batch_even_when_that_batch_lost_its_shuffle_or_left():
    """After a demand, or once the first batch was in the shoe, the same certificate was taken again."""
    t = Table()
    t.boot()
    t.links_up()
    t.tap("open")
    t.tap("certificate", batch="A", **CERTIFICATE)
    t.tap("shuffle_demanded", batch="A")
    assert t.refused("certificate", batch="B", **CERTIFICATE).code == "certificate_used"
    t.tap("replace_batch", SUPERVISOR, batch="A")
    assert t.refused("certificate", batch="A", **CERTIFICATE).code == "certificate_used"
    t.state = restore(checkpoint(t.state))
    assert t.refused("certificate", batch="A", **CERTIFICATE).code == "certificate_used"
    t.tap("certificate", batch="A", **{**CERTIFICATE, "seal": "M-2"})


def test_the_cut_goes_to_the_batch_that_was_shuffled_by_hand():
    """Of two shuffled batches in hand the other, on its certificate, was called cut, and could be loaded."""
    t = Table()
    t.boot()
    t.links_up()
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    t.tap("confirm_empty", device="shuffler")
    t.tap("open", mode="manual-shoe")
    t.tap("certificate", batch="A", **CERTIFICATE)
    t.prepare("B")
    t.tap("reshuffle_by_hand", SUPERVISOR, batch="B")
    t.tap("offer_cut", box="1")
    assert t.tap("cut", position=26).facts[0].data["batch"] == "B"
    t.tap("insert_cutting_card", position=20)
    assert t.refused("load_shoe", batch="A").code == "not_cut"
    t.tap("load_shoe", batch="B")
    assert t.state.shoe.batch == "B"


# --- out of play until replaced (R-55) ---


def test_a_second_dead_card_keeps_the_fault_of_the_first():
    """The batch was unfit for another reason already, so the fault could be cleared with its cause there."""
    t = Table(table_rules(deck_age_h=24))
    t.give(Hour(100, "d1"))
    for device in ("shoe", "shuffler"):
        t.tap("inspect", SUPERVISOR, device=device)
    t.tap("open")
    t.tap("dead_card", batch="A", card="8S")
    fault = t.state.faults[0].id
    t.tap("replace_batch", SUPERVISOR, batch="A")
    t.give(Hour(124, "d1"))
    assert t.state.batches["A"].unfit == "deck_too_old"
    t.tap("dead_card", batch="A", card="9S")
    assert t.refused("clear", SUPERVISOR, fault=fault).code == "cause_remains"
    t.tap("replace_batch", SUPERVISOR, batch="A")
    t.tap("clear", SUPERVISOR, fault=fault)


def test_a_batch_that_is_out_of_play_is_not_fit_again_after_a_closing():
    t = Table()
    t.open_to_shoe()
    t.complete()
    t.tap("close")
    t.end_shoe()
    t.take()
    for batch, cards in (("A", 51), ("B", 52)):
        t.tap("count_batch", batch=batch, cards=cards)
    for device in ("shoe", "shuffler"):
        t.tap("confirm_empty", device=device)
    t.tap("close", SUPERVISOR)
    t.tap("open")
    assert t.state.batches["A"].unfit == "wrong_count"
    assert t.refused("clear", SUPERVISOR, fault=t.state.faults[0].id).code == "cause_remains"
    assert "replace_batch batch=A" in expected(t.rules, t.state)
    t.tap("replace_batch", SUPERVISOR, batch="A")
    clear_all(t)
    t.prepare("A")
    assert (t.state.batches["A"].unfit, t.codes) == (None, [])


def test_a_dead_card_is_not_named_while_it_may_lie_hidden():
    """The dealer named the hole card, and the status showed it to everybody (law 7)."""
    t = Table()
    t.open_to_shoe()
    t.complete()
    t.deal("1")
    assert t.state.round is not None
    hole = t.state.round.cards[-1].card
    for _ in range(3):
        t.tap("dead_card", batch="A", card=hole, reason="marked")
    told = [fact for fact in t.facts if fact.kind == "dead_card"]
    assert [fact.sealed for fact in told] == [{"card": hole}] * 3
    told += [fact for fact in t.facts if fact.kind.startswith("fault")]
    assert f"'{hole}'" not in repr([fact.data for fact in told])
    shown = snapshot(t.rules, t.state)
    assert shown["batches"]["A"]["missing"] == []
    assert shown["faults"][0]["cause"] == "a card is marked"
    t.draw()
    t.tap("round_settled")
    t.tap("shuffle_now")
    t.end_shoe()
    assert snapshot(t.rules, t.state)["batches"]["A"]["missing"] == [hole]


# --- clocks and inspections (R-42, R-45) ---


def test_a_clock_that_is_set_back_and_forward_again_makes_no_batch_older():
    """A machine that starts with a stale clock and is then set right aged every batch by the difference."""
    t = Table(table_rules(deck_age_h=24))
    t.give(Hour(100, "d1"))
    t.boot()
    for device in ("shoe", "shuffler"):
        t.tap("inspect", SUPERVISOR, device=device)
    t.tap("open")
    t.give(Hour(70, "d0"))
    t.give(Hour(71, "d0"))
    t.give(Hour(101, "d1"))
    assert t.codes == []
    assert snapshot(t.rules, t.state)["batches"]["A"]["age_h"] == 1
    t.give(Hour(70, "d0"))
    t.give(Hour(125, "d2"))
    assert snapshot(t.rules, t.state)["batches"]["A"]["age_h"] == 25
    t.boot()
    t.give(Hour(165, "d3"))
    assert snapshot(t.rules, t.state)["batches"]["A"]["age_h"] == 65


def test_a_device_found_faulty_before_a_gaming_day_is_known_is_locked_out():
    t = Table()
    t.tap("inspect", SUPERVISOR, device="shoe", result="faulty")
    refusal = t.refused("open")
    assert (refusal.code, refusal.expected) == ("inspection_due", ("inspect device=shoe",))
    t.tap("acknowledge", alarm=t.state.faults[0].id)
    assert t.refused("open").code == "inspection_due"
    t.tap("inspect", SUPERVISOR, device="shoe")
    t.tap("open")


# --- refusals ---


def test_a_refusal_with_nothing_to_tap_says_what_the_table_waits_for():
    t = Table()
    t.open_to_shoe()
    t.complete()
    t.tap("shuffle_now")
    refusal = t.refused("bets_closed", boxes="1")
    waits = "the table waits for the rest of the cards, through the shoe to the rack, faces down"
    assert (refusal.expected, refusal.why.split("; ")[-1]) == ((), waits)
    assert refusal.clause == "13:69F-2.6"


def test_a_batch_that_goes_out_of_play_during_its_cycle_does_not_keep_the_other_out_of_the_shoe():
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
    t.tap("dead_card", batch="B", card="8S", reason="missing")
    t.complete()
    assert (t.state.shuffler.stage.value, t.state.batches["B"].proof) == ("proved", None)
    t.cut_and_load("A", offer="3")
    t.draw()
    assert t.state.phase is Phase.BETWEEN_ROUNDS
    t.tap("shuffle_now")
    t.end_shoe()
    t.tap("take_from_shuffler")
    let_out(t, t.token)
    assert t.refused("load_shoe", batch="B").code == "unexpected"
    assert (t.state.batches["B"].at(Place.IN_HAND), t.state.batches["B"].unfit) == (52, "dead_card")


def test_a_release_that_does_not_count_what_is_left_forgets_no_surplus():
    t = Table()
    t.boot()
    t.links_up(inside=16)
    assert (t.state.shuffler.surplus, t.codes) == (16, ["cards_inside"])
    t.event(ev.BatchReleased, "shuffler", count=3, inside=None, token=None)
    assert t.state.shuffler.surplus == 16
    assert t.refused("clear", SUPERVISOR, fault=t.state.faults[0].id).code == "cause_remains"
