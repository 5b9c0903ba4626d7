"""Batches and devices before use: the boundaries of each step, refusals and facts."""

from typing import Any

import pytest

from controller.table.inputs import Hour, Refusal, Role
from controller.table.rules import expected
from controller.table.state import Place, Prep, Shuffled
from controller.table.view import snapshot
from devices import events as ev
from tests.support.table import STEPS, Table, table_rules

SUPERVISOR = frozenset({Role.SUPERVISOR})
EVERYBODY = frozenset(Role)
DAY = "2026-01-02"


def opened(**rules: Any) -> Table:
    t = Table(table_rules(**rules))
    t.boot()
    t.links_up()
    t.tap("open")
    return t


def certificate(batch: str, **changes: Any) -> dict[str, Any]:
    said = {"maker": "Acme", "model": "V2", "serial": "77", "operator": "kim 4711", "at": "2026-01-02T03:04"}
    numbers = {"decks": 1, "cards": 52, "result": "ok", "seal": f"S-{batch}", "seal_intact": "true"}
    return {"batch": batch, **said, **numbers, **changes}


def prep(t: Table, batch: str = "A") -> Prep:
    return t.state.batches[batch].prep


# --- inspected at the table ---


@pytest.mark.rule("R-13")
def test_each_step_needs_the_one_before_it_in_each_batch_apart():
    t = opened()
    for done, step in enumerate(STEPS):
        for other in STEPS:
            if other != step:
                refusal = t.refused(other, EVERYBODY, batch="A")
                assert (refusal.code, refusal.expected) == ("not_in_turn", (f"{step} batch=A",))
        assert t.refused("load_shuffler", batch="A").expected == (f"{step} batch=A",)
        t.tap(step, SUPERVISOR, who="sue" if step == "verify" else "ann", batch="A")
        assert prep(t).value == ["inspected", "verified", "spread", "player_inspected", "washed"][done]
        assert prep(t, "B") is Prep.RECEIVED
    refusal = t.refused("wash", batch="A")
    assert (refusal.code, refusal.clause) == ("not_in_turn", "13:69F-2.4(b)-(e)")
    assert refusal.expected[0] == "inspect batch=B"
    assert "load_shuffler batch=A" in refusal.expected
    t.tap("load_shuffler", batch="A")


@pytest.mark.rule("R-13")
def test_the_one_who_inspected_does_not_verify_unless_he_is_everybody():
    t = opened()
    t.tap("inspect", batch="A")
    refusal = t.refused("verify", SUPERVISOR, batch="A")
    assert (refusal.code, refusal.why) == (
        "same_person",
        "ann inspected batch A: another person verifies it",
    )
    fact = t.tap("verify", SUPERVISOR, who="sue", batch="A").facts[0]
    assert (fact.data["inspected_by"], fact.data["who"]) == ("ann", "sue")
    alone = opened()
    alone.tap("inspect", batch="A")
    alone.tap("verify", EVERYBODY, batch="A")


@pytest.mark.rule("R-13")
def test_without_a_name_the_one_batch_that_waits_for_the_step_is_meant():
    t = opened()
    refusal = t.refused("inspect")
    assert (refusal.code, refusal.why) == ("bad_argument", "inspect: batch=A|B is missing")
    t.tap("inspect", batch="B")
    t.tap("inspect")
    assert prep(t) is Prep.INSPECTED
    assert t.refused("spread").why == "spread is not expected now: no batch waits for it"


def test_a_batch_is_prepared_only_while_all_its_cards_are_in_hand():
    t = Table()
    t.open_to_shoe()
    assert t.refused("inspect", batch="B").code == "batch_not_in_hand"
    t.tap("bets_closed", boxes="1")
    assert t.refused("inspect", batch="B").code == "unexpected"
    assert t.refused("wash", batch="B").code == "unexpected"


@pytest.mark.rule("R-19", "R-21")
def test_at_an_idle_table_a_player_may_look_again_and_the_batch_stays_ready():
    t = Table()
    t.open_to_shoe()
    t.tap("idle")
    t.end_shoe()
    assert t.refused("player_inspected").code == "batch_not_in_hand"
    t.tap("spread")
    assert t.refused("spread").clause == "58 Pa. Code 633a.5(g)"
    for _ in range(2):
        t.tap("player_inspected")
    assert (prep(t), t.state.batches["A"].cards) == (Prep.WASHED, {Place.IN_HAND: 52})


# --- certificates ---


@pytest.mark.rule("R-48")
def test_a_certificate_stands_for_the_shuffle_and_its_fact_names_all_that_is_on_it():
    t = opened()
    fact = t.tap("certificate", **certificate("A")).facts[0]
    wanted = {**certificate("A"), "seal_intact": True}
    assert {name: fact.data[name] for name in wanted} == wanted
    batch = t.state.batches["A"]
    assert batch.prep is Prep.CERTIFIED
    assert batch.proof is not None
    assert batch.proof.how is Shuffled.CERTIFICATE
    assert t.refused("load_shuffler", batch="A").code == "batch_is_shuffled"


@pytest.mark.rule("R-48")
@pytest.mark.parametrize(
    ("wrong", "code", "why"),
    [
        ({"decks": 6}, "certificate_wrong", "decks 6 instead of 1"),
        ({"cards": 51}, "certificate_wrong", "cards 51 instead of 52"),
        ({"result": "short"}, "certificate_wrong", "result short"),
        ({"seal_intact": "false"}, "certificate_wrong", "the seal is broken"),
        ({"seal": " "}, "bad_argument", "certificate: seal= is missing"),
        (
            {"at": "yesterday"},
            "bad_argument",
            "certificate: at=yesterday is no time: write it as 2026-01-31 or 2026-01-31T14:05",
        ),
        ({"cards": "all"}, "bad_argument", "cards=all is not a whole number"),
    ],
)
def test_a_certificate_that_is_wrong_is_refused(wrong, code, why):
    t = opened()
    refusal = t.refused("certificate", **certificate("A", **wrong))
    assert refusal.code == code
    assert why in refusal.why
    assert prep(t) is Prep.RECEIVED


@pytest.mark.rule("R-48")
@pytest.mark.parametrize("name", ["maker", "model", "serial", "operator", "at", "seal", "result", "decks"])
def test_a_certificate_leaves_nothing_out(name):
    said = {k: v for k, v in certificate("A").items() if k != name}
    assert opened().refused("certificate", **said).code == "bad_argument"


@pytest.mark.rule("R-12")
def test_a_batch_is_prepared_in_one_way_or_the_other():
    t = opened()
    t.tap("inspect", batch="A")
    assert t.refused("certificate", **certificate("A")).code == "not_in_turn"
    t.tap("certificate", **certificate("B"))
    assert t.refused("inspect", batch="B").code == "not_in_turn"
    assert t.refused("certificate", **certificate("B")).code == "not_in_turn"


@pytest.mark.rule("R-48")
def test_one_seal_is_good_for_one_batch():
    t = opened()
    t.tap("certificate", **certificate("A"))
    refusal = t.refused("certificate", **certificate("B", seal="S-A"))
    assert (refusal.code, refusal.clause) == ("certificate_used", "13:69E-1.18A(b)4")


@pytest.mark.rule("R-49")
def test_a_demand_takes_the_certificate_away_and_needs_one():
    t = opened()
    assert t.refused("shuffle_demanded", batch="A").code == "not_certified"
    assert t.refused("shuffle_demanded").code == "bad_argument"
    t.tap("certificate", **certificate("A"))
    decision = t.tap("shuffle_demanded")
    assert [fact.kind for fact in decision.facts] == ["shuffle_demanded", "proof_given_up"]
    assert t.state.batches["A"].proof is None
    assert t.refused("shuffle_demanded", batch="A").code == "not_certified"
    t.tap("load_shuffler", batch="A")
    assert t.state.phase.value == "first_loaded"


# --- dead cards, new batches ---


@pytest.mark.rule("R-46")
def test_a_dead_card_takes_the_batch_out_with_its_name_and_since_when():
    t = opened()
    t.prepare("A")
    decision = t.tap("dead_card", batch="A", card="8S", reason="marked")
    assert [fact.kind for fact in decision.facts] == ["dead_card", "fault_latched"]
    batch = snapshot(t.rules, t.state)["batches"]["A"]
    assert (batch["unfit"], batch["missing"], batch["unfit_since"]) == ("dead_card", ["8S"], t.state.seq)
    assert t.state.faults[0].cause == "8S is marked"
    assert t.refused("load_shuffler", batch="A").code == "batch_unfit"
    assert t.refused("inspect", batch="A").code == "batch_unfit"
    assert t.refused("certificate", **certificate("A")).code == "batch_unfit"
    assert "replace_batch batch=A" in expected(t.rules, t.state)
    assert "replace_batch batch=B" not in expected(t.rules, t.state)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"batch": "A", "card": "1S"}, "card=1S is no card"),
        ({"batch": "A", "reason": "ugly"}, "reason=ugly is none of"),
        ({"card": "8S"}, "batch=A|B is missing"),
        ({"batch": "C"}, "batch=C is none of this table's batches: A, B"),
    ],
)
def test_a_dead_card_is_said_in_words_of_the_table(said, why):
    refusal = opened().refused("dead_card", **said)
    assert refusal.code == "bad_argument"
    assert why in refusal.why


@pytest.mark.rule("R-55")
def test_only_a_new_batch_makes_the_cause_go_and_it_is_prepared_anew():
    t = opened()
    t.prepare("A")
    t.tap("dead_card", batch="A")
    fault = t.state.faults[0].id
    assert t.refused("clear", SUPERVISOR, fault=fault).code == "cause_remains"
    t.tap("replace_batch", SUPERVISOR, batch="A")
    batch = t.state.batches["A"]
    assert (batch.unfit, batch.missing, batch.prep, batch.cards) == (
        None, (), Prep.RECEIVED, {Place.IN_HAND: 52}
    )  # fmt: skip
    t.tap("clear", SUPERVISOR, fault=fault)
    assert t.refused("load_shuffler", batch="A").code == "not_prepared"


@pytest.mark.rule("R-55")
def test_the_same_fault_in_the_new_batch_counts_although_the_old_one_is_still_latched():
    t = opened()
    t.tap("dead_card", batch="A")
    t.tap("replace_batch", SUPERVISOR, batch="A")
    t.tap("dead_card", batch="A", card="4C")
    assert t.codes == ["dead_card"]
    assert (t.state.batches["A"].unfit, t.state.batches["A"].missing) == ("dead_card", ("4C",))
    assert t.refused("clear", SUPERVISOR, fault=t.state.faults[0].id).code == "cause_remains"


def test_a_batch_is_replaced_only_with_all_its_cards_out_of_the_devices():
    t = Table()
    assert t.refused("replace_batch", SUPERVISOR, batch="A").code == "no_batch"
    assert t.refused("dead_card", batch="A").code == "no_batch"
    t.open_to_shoe()
    for batch, where in (("A", "shoe"), ("B", "shuffler")):
        refusal = t.refused("replace_batch", SUPERVISOR, batch=batch)
        assert refusal.code == "batch_in_use"
        assert where in refusal.why
    t.complete()
    t.tap("shuffle_now")
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    assert t.refused("replace_batch", SUPERVISOR, batch="A").code == "batch_in_use", (
        "the rack is not seen yet"
    )
    t.tap("collect_rack", gauge="full")
    t.tap("replace_batch", SUPERVISOR, batch="A")
    assert t.state.batches["A"].cards == {Place.IN_HAND: 52}


# --- devices, once a day ---


def told(t: Table, hour: int = 490_000, day: str = DAY) -> Table:
    t.give(Hour(hour, day))
    return t


@pytest.mark.rule("R-42")
def test_no_table_opens_before_a_supervisor_inspected_every_device():
    t = told(Table(table_rules(reader="reader")))
    refusal = t.refused("open")
    assert (refusal.code, refusal.clause) == ("inspection_due", "13:69E-1.10")
    devices = ["shoe", "shuffler", "reader"]
    assert refusal.expected == tuple(f"inspect device={device}" for device in devices)
    assert t.refused("inspect", device="shoe").code == "not_allowed"
    for device in devices:
        assert t.refused("open").expected[0] == f"inspect device={device}"
        t.tap("inspect", SUPERVISOR, who="sue", device=device)
    assert t.state.faults == ()
    t.tap("open")
    assert snapshot(t.rules, t.state)["inspected"] == dict.fromkeys(devices, DAY)


@pytest.mark.rule("R-42")
def test_a_device_found_faulty_stays_locked_out():
    t = told(Table())
    for device in ("shoe", "shuffler"):
        t.tap("inspect", SUPERVISOR, device=device)
    t.tap("inspect", SUPERVISOR, device="shoe", result="faulty")
    alarm = t.state.faults[0]
    assert (alarm.code, alarm.device, alarm.gone) == ("inspection_due", "shoe", None)
    assert t.refused("open").expected == ("inspect device=shoe",)
    t.tap("inspect", SUPERVISOR, device="shoe")
    assert t.state.faults[0].gone is not None
    t.tap("open")


@pytest.mark.parametrize(
    "said", [{"device": "door"}, {"device": "shoe", "batch": "A"}, {"device": "shoe", "result": "fine"},
             {"batch": "A", "result": "ok"}],
)  # fmt: skip
def test_an_inspection_names_one_thing(said):
    assert opened().refused("inspect", SUPERVISOR, **said).code == "bad_argument"


@pytest.mark.rule("R-42")
def test_the_next_day_locks_each_device_and_lets_a_round_in_play_finish():
    t = Table(table_rules(reader="reader"))
    t.open_to_shoe()
    told(t)
    for device in ("shoe", "shuffler", "reader"):
        t.tap("inspect", SUPERVISOR, device=device)
    t.complete()
    t.deal("1,2")
    told(t, 490_001, "2026-01-03")
    due = {f.device for f in t.state.faults if f.code == "inspection_due"}
    assert due == {"shoe", "shuffler", "reader"}
    t.draw()
    t.tap("round_settled")
    refusal = t.refused("bets_closed", boxes="1")
    assert (refusal.code, refusal.expected) == (
        "inspection_due", ("inspect device=shoe", "inspect device=reader"),
    )  # fmt: skip
    for device in ("shoe", "reader"):
        t.tap("inspect", SUPERVISOR, device=device)
    t.play_round("1")
    t.tap("shuffle_now")
    t.end_shoe()
    assert t.refused("take_from_shuffler").expected == ("inspect device=shuffler",)
    t.tap("inspect", SUPERVISOR, device="shuffler")
    assert all(f.gone for f in t.state.faults)
    t.take()


# --- time ---


@pytest.mark.rule("R-45")
def test_more_than_a_day_at_the_table_is_an_alarm_and_replacing_ends_it():
    t = opened()
    told(t, 1000)
    told(t, 1024)
    assert over_a_day(t) == []
    told(t, 1025)
    assert over_a_day(t) == ["A", "B"]
    assert snapshot(t.rules, t.state)["batches"]["A"]["age_h"] == 25
    t.tap("replace_batch", SUPERVISOR, batch="A")
    assert over_a_day(t) == ["B"]


def over_a_day(t: Table) -> list[str | None]:
    return [f.batch for f in t.state.faults if f.code == "deck_over_a_day" and f.gone is None]


@pytest.mark.rule("R-45")
def test_a_batch_at_its_age_limit_leaves_the_table():
    t = opened(deck_age_h=4)
    told(t, 1000)
    t.give(Hour(1003, DAY))
    assert "deck_too_old" not in t.codes
    t.give(Hour(1004, DAY))
    assert [f.batch for f in t.state.faults if f.code == "deck_too_old"] == ["A", "B"]
    assert t.refused("inspect", batch="A").code == "batch_unfit"
    t.tap("replace_batch", SUPERVISOR, batch="A")
    assert (t.state.batches["A"].received, t.state.batches["A"].unfit) == (1004, None)
    assert t.state.batches["B"].unfit == "deck_too_old"


@pytest.mark.rule("R-45")
def test_a_clock_that_goes_back_makes_no_batch_younger():
    t = opened()
    told(t, 1000)
    t.give(Hour(1010, DAY))
    t.give(Hour(500, "2025-12-01"))
    ages = [b["age_h"] for b in snapshot(t.rules, t.state)["batches"].values()]
    assert ages == [10, 10]
    t.give(Hour(503, "2025-12-01"))
    assert snapshot(t.rules, t.state)["batches"]["A"]["age_h"] == 13


def test_the_same_hour_is_told_once():
    t = opened()
    told(t, 1000)
    before = t.state.seq
    decision = t.give(Hour(1000, DAY))
    assert not isinstance(decision, Refusal)
    assert (decision.facts, t.state.seq) == ((), before)
