"""A continuous shuffler: dealt from where it was shuffled, cards back after a round, counts compared."""

from __future__ import annotations

import pytest

from controller.table.draft import Decision
from controller.table.inputs import OperatorEvent, Role
from controller.table.phases import Phase
from controller.table.rules import expected
from controller.table.state import Place
from controller.table.view import snapshot
from devices import events as ev
from firmware_bridge.link import Done, Unknown
from tests.support.continuous import DEVICE, ContinuousTable
from tests.support.table import BATCHES

SUPERVISOR = frozenset({Role.SUPERVISOR})


@pytest.fixture
def table() -> ContinuousTable:
    made = ContinuousTable()
    made.open_to_deal()
    return made


def cards(table: ContinuousTable, batch: str = "A") -> dict[str, int]:
    return {place.value: n for place, n in table.state.batches[batch].cards.items()}


def may_return(table: ContinuousTable) -> int:
    told: int = snapshot(table.rules, table.state)["shoe"]["may_return"]
    return told


# The way of the batch


@pytest.mark.rule("R-11")
def test_the_proved_batch_is_dealt_from_where_it_lies_without_cut_cutting_card_or_burn(
    table: ContinuousTable,
) -> None:
    kinds = [fact.kind for fact in table.facts]
    assert kinds[-3:] == ["cycle_completed", "batch_proved", "ready_to_deal"]
    assert table.state.phase is Phase.BETWEEN_ROUNDS
    assert cards(table) == {"shoe": 52}
    assert (table.state.shoe.batch, table.state.shoe.number, table.state.shoe.empty) == ("A", 1, False)
    assert {"offer_cut", "cut", "insert_cutting_card", "load_shoe", "burn"}.isdisjoint(kinds)
    assert not table.codes


@pytest.mark.rule("R-11")
@pytest.mark.parametrize(
    "event",
    [
        *("shuffle_now", "bart_carter", "reshuffle_by_hand", "take_from_shuffler", "shuffle_demanded"),
        *("offer_cut", "cut", "recut", "insert_cutting_card", "load_shoe", "burn", "cutting_card_at"),
    ],
)
def test_what_the_machine_stands_for_is_refused_in_its_words(table: ContinuousTable, event: str) -> None:
    refused = table.refused(event)
    assert (refused.code, refused.clause) == ("continuous", "13:69F-2.21")
    assert event not in {shown.split()[0] for shown in expected(table.rules, table.state)}


def test_another_dealer_burns_no_card(table: ContinuousTable) -> None:
    table.tap("dealer_change")
    assert table.state.phase is Phase.BETWEEN_ROUNDS


def test_a_batch_is_not_dealt_without_its_proof() -> None:
    table = ContinuousTable()
    table.boot()
    table.up()
    table.open()
    table.tap("load_shuffler", batch="A")
    table.start()
    table.complete(mode="sort")
    assert table.codes == ["wrong_mode"]
    assert (table.state.phase, cards(table)) == (Phase.FIRST_LOADED, {"shuffler": 52})
    table.start()
    table.complete()
    assert table.state.phase is Phase.BETWEEN_ROUNDS
    refused = table.refused("bets_closed", boxes="1")
    assert refused.code == "fault_latched"
    table.tap("clear", SUPERVISOR, fault=table.state.faults[0].id)
    table.tap("bets_closed", boxes="1")


def test_a_card_that_comes_out_before_the_proof_stops_the_table() -> None:
    table = ContinuousTable()
    table.boot()
    table.up()
    table.open()
    table.tap("load_shuffler", batch="A")
    table.event(ev.CardDrawn, card="8S", back="red")
    assert table.codes == ["stray_card"]


def test_a_certified_batch_is_shuffled_all_the_same() -> None:
    table = ContinuousTable()
    table.boot()
    table.up()
    table.tap("open")
    said = {"maker": "Acme", "model": "V1", "serial": "7", "operator": "ann", "at": "2030-01-01"}
    sealed = {"decks": 1, "cards": 52, "result": "ok", "seal": "S1", "seal_intact": "true"}
    table.tap("certificate", SUPERVISOR, batch="A", **said, **sealed)
    table.load()
    assert (table.state.phase, cards(table)) == (Phase.BETWEEN_ROUNDS, {"shoe": 52})


# Cards that come back


@pytest.mark.rule("R-60")
def test_used_cards_go_back_once_the_next_round_is_dealt(table: ContinuousTable) -> None:
    table.play_round("1,2", extra=1)
    assert (cards(table), may_return(table)) == ({"shoe": 45, "rack": 7}, 0)
    table.deal("3")
    assert may_return(table) == 7
    table.give_back(7)
    assert cards(table) == {"shoe": 48, "table": 4}
    assert (table.state.shoe.count, table.state.shoe.returned, table.state.shoe.told) == (4, 7, 11)
    table.settle()
    assert (table.codes, table.alarms) == ([], [])


@pytest.mark.rule("R-60")
def test_cards_of_the_last_round_that_go_back_before_the_next_one_is_dealt_are_told(
    table: ContinuousTable,
) -> None:
    table.play_round("1", extra=0)
    table.give_back(4)
    (fault,) = table.state.faults
    assert (fault.code, fault.batch, fault.device) == ("returned_early", "A", DEVICE)
    assert fault.cause == "4 used cards went back and 0 were free to go"
    assert cards(table) == {"shoe": 52}
    assert table.refused("bets_closed", boxes="1").code == "fault_latched"
    technician = OperatorEvent("clear", {"fault": fault.id}, roles=frozenset({Role.TECHNICIAN}))
    assert not isinstance(table.give(technician), Decision)
    table.tap("clear", SUPERVISOR, fault=fault.id)
    table.play_round()
    assert not table.codes


@pytest.mark.rule("R-60")
def test_in_the_deal_only_the_cards_of_the_round_before_the_last_may_go_back(table: ContinuousTable) -> None:
    table.play_round("1", extra=0)
    table.deal("1")
    table.settle()
    table.give_back(3)  # of the first round: the second one was dealt
    assert not table.codes
    table.tap("bets_closed", boxes="1")
    table.give_back(1)
    assert (not table.codes, cards(table)) == (True, {"shoe": 48, "rack": 4})
    table.draw()
    table.give_back(1)
    assert table.codes == ["returned_early"]


def test_a_round_that_was_void_before_it_was_dealt_frees_no_card(table: ContinuousTable) -> None:
    table.play_round("1", extra=0)
    table.tap("bets_closed", boxes="1")
    table.draw()
    table.tap("void_round", SUPERVISOR, reason="misdeal")
    table.give_back(1)
    assert table.codes == ["returned_early"]


def test_a_burned_card_rests_as_long_as_the_others_of_its_round(table: ContinuousTable) -> None:
    table.deal("1")
    table.draw()
    table.tap("drawn_in_error", exposed=True, burned=True)
    assert cards(table) == {"shoe": 47, "table": 4, "rack": 1}
    table.event(ev.CardsReturned, count=1, inside=48)
    assert table.codes == ["returned_early"]


def test_more_cards_than_lay_in_the_rack_were_returned_twice(table: ContinuousTable) -> None:
    table.play_round("1", extra=0)
    table.deal("1")
    table.give_back(4, told=8, inside=56)
    (fault,) = table.state.faults
    assert (fault.code, fault.cause) == (
        "returned_twice",
        "8 cards went into the machine and 4 lay in the rack",
    )
    assert cards(table) == {"shoe": 48, "table": 4}
    table.settle()
    assert table.refused("bets_closed", boxes="1").code == "fault_latched"
    assert table.refused("clear", SUPERVISOR, fault=fault.id).code == "cause_remains"


@pytest.mark.rule("R-74")
@pytest.mark.parametrize("inside", [46, 49])
def test_what_the_machine_counts_inside_is_compared_at_each_return(
    table: ContinuousTable, inside: int
) -> None:
    table.play_round("1", extra=0)
    table.deal("1")
    table.give_back(4, inside=inside)
    (fault,) = table.state.faults
    assert fault.code == "count_drift"
    assert fault.cause == f"the machine counts {inside} cards inside, this table 48"


def test_a_lost_event_explains_a_count_that_does_not_agree(table: ContinuousTable) -> None:
    table.play_round("1", extra=0)
    table.deal("1")
    table.event(ev.GapPossible, missing=1)
    table.give_back(4, told=5, inside=48)
    assert table.codes == ["events_lost"]


def test_cards_put_in_beside_the_batch_before_it_is_shuffled_are_cards_inside() -> None:
    table = ContinuousTable()
    table.boot()
    table.up()
    table.open()
    table.tap("load_shuffler", batch="A")
    table.event(ev.CardsReturned, count=2, inside=54)
    assert (table.codes, table.state.shuffler.surplus) == (["cards_inside"], 2)


# Faces


def test_a_card_that_may_have_gone_back_is_no_copy_too_many(table: ContinuousTable) -> None:
    table.stack.remove("AS")
    table.stack.append("AS")
    table.play_round("1", extra=0)
    table.deal("1")
    table.give_back(4)
    table.stack.remove("AS")
    table.stack.append("AS")
    table.draw()
    table.settle()
    assert not table.codes


def test_of_a_rack_that_went_back_in_part_no_face_is_known(table: ContinuousTable) -> None:
    table.play_round("1,2", extra=1)
    table.deal("3")
    table.give_back(2)
    assert table.state.shoe.drawn[""] == 5
    assert sum(table.state.shoe.drawn.values()) == 9
    table.give_back(5)
    assert "" not in table.state.shoe.drawn
    assert not table.codes


def test_a_copy_too_many_while_the_first_surely_lies_on_the_table(table: ContinuousTable) -> None:
    table.play_round("1", extra=0)
    table.deal("1")
    table.give_back(4)
    table.stack.append(table.lying[0])
    table.draw()
    assert table.codes == ["too_many_copies"]


# Ends


def test_the_table_closes_once_every_card_was_dealt_out(table: ContinuousTable) -> None:
    for _ in range(3):
        table.play_round()
    table.tap("close")
    assert table.state.phase is Phase.SHOE_END
    assert table.refused("confirm_empty", device=DEVICE).code in ("shuffler_not_empty", "unexpected")
    table.end_shoe()
    assert (table.state.phase, cards(table)) == (Phase.CLOSING, {"rack": 52})
    table.tap("count_batch", batch="A", cards=52)
    table.tap("confirm_empty", device=DEVICE)
    table.tap("close", SUPERVISOR)
    assert (table.state.phase, table.codes) == (Phase.CLOSED, [])


def test_after_an_idle_time_the_batch_is_shuffled_anew(table: ContinuousTable) -> None:
    table.play_round()
    table.tap("idle")
    table.end_shoe()
    assert table.state.phase is Phase.IDLE
    table.used = []
    table.tap("spread", batch="A")
    table.tap("resume")
    table.load()
    assert (table.state.phase, table.state.shoe.number) == (Phase.BETWEEN_ROUNDS, 2)
    table.play_round()
    assert not table.codes


def test_a_machine_that_ran_empty_in_a_round_ends_the_shoe(table: ContinuousTable) -> None:
    for _ in range(5):
        table.deal("1,2,3")
        table.settle()
    table.deal("1,2,3,4")
    while table.stack:
        table.draw()
    table.event(ev.ShoeEmpty)
    assert table.alarms == ["shoe_dry"]
    ways = [shown.split()[0] for shown in expected(table.rules, table.state)]
    assert ways == ["round_settled", "void_round", "acknowledge"]
    table.settle()
    assert table.state.phase is Phase.SHOE_END
    table.tap("collect_rack", gauge="full")
    table.used = []
    table.load()
    assert (table.state.phase, table.codes) == (Phase.BETWEEN_ROUNDS, [])


def test_nothing_is_loaded_into_a_machine_that_deals(table: ContinuousTable) -> None:
    refused = table.refused("load_shuffler", batch="A")
    assert refused.code == "shuffler_not_empty"
    assert refused.why == "batch A is dealt from it: deal it out first (`idle` or `close`)"
    assert table.refused("start_shuffle").code == "shuffler_empty"


@pytest.mark.rule("R-11")
def test_where_the_batch_rule_binds_here_too_the_batches_alternate() -> None:
    table = ContinuousTable(batches=BATCHES)
    table.open_to_deal()
    table.play_round()
    table.tap("idle")
    table.end_shoe()
    table.used = []
    table.tap("spread", batch="A")
    table.tap("resume")
    assert table.refused("load_shuffler", batch="A").code == "same_batch_twice"
    table.load("B")
    assert (table.state.shoe.batch, cards(table, "B")) == ("B", {"shoe": 52})


def test_cards_that_never_came_out_keep_the_next_batch_out() -> None:
    table = ContinuousTable(batches=BATCHES)
    table.open_to_deal()
    table.deal("1")
    while len(table.stack) > 2:
        table.draw()
    table.event(ev.ShoeEmpty)
    table.settle()
    table.tap("collect_rack", gauge="short")
    assert set(table.codes) == {"cards_missing", "rack_gauge"}
    refused = table.refused("load_shuffler", batch="B")
    assert (refused.code, refused.expected) == ("shoe_not_empty", ("replace_batch batch=A",))
    table.tap("replace_batch", SUPERVISOR, batch="A")
    table.used, table.stack = [], []
    table.load("B")
    assert table.state.phase is Phase.BETWEEN_ROUNDS


# What goes wrong with the machine


def test_cards_taken_out_through_the_door_end_the_shoe(table: ContinuousTable) -> None:
    table.event(ev.Door, open=True)
    assert table.alarms == ["shoe_opened"]
    table.event(ev.BatchReleased, count=5, inside=47)
    table.event(ev.Door, open=False)
    assert (table.codes, cards(table)) == (["count_drift"], {"shoe": 47, "rack": 5})
    assert table.refused("bets_closed", boxes="1").code == "fault_latched"
    table.stack = table.stack[5:]
    table.tap("idle")
    table.end_shoe()
    assert cards(table) == {"rack": 52}
    (drift,) = (fault for fault in table.state.faults if fault.code == "count_drift")
    table.tap("clear", SUPERVISOR, fault=drift.id)


def test_a_restart_that_lost_nothing_is_cleared_and_play_goes_on(table: ContinuousTable) -> None:
    table.play_round()
    table.deal("1")
    table.event(ev.LinkDown, reason="gone")
    table.up(boot=2)
    (fault,) = (f for f in table.state.faults if f.code not in table.alarms)
    assert (fault.code, table.state.shoe.unaccounted) == ("shoe_rebooted", 0)
    table.tap("clear", SUPERVISOR, fault=fault.id)
    table.settle()
    table.play_round()
    assert not table.codes


@pytest.mark.parametrize(
    ("status", "code"), [({"inside": 40}, "count_drift"), ({"cycle": 42}, "foreign_cycle")]
)
def test_a_restart_that_lost_something_is_not(
    table: ContinuousTable, status: dict[str, int], code: str
) -> None:
    table.play_round()
    table.up(boot=2, **status)
    assert table.codes == ["shoe_rebooted", code]
    assert table.refused("bets_closed", boxes="1").code == "fault_latched"


def test_with_the_same_start_its_events_tell_what_its_status_runs_ahead_of(table: ContinuousTable) -> None:
    table.play_round()
    table.up(inside=3, drawn=60)
    assert not table.codes


def test_a_cycle_that_somebody_else_started_blocks_the_next_round(table: ContinuousTable) -> None:
    table.event(ev.CycleStarted, cycle=table.cycle + 1, token="ff" * 16)
    assert table.codes == ["foreign_cycle"]
    assert table.refused("bets_closed", boxes="1").code == "fault_latched"
    assert table.refused("clear", SUPERVISOR, fault=table.state.faults[0].id).code == "cause_remains"


def test_a_machine_out_of_service_begins_no_round_and_has_no_substitute(table: ContinuousTable) -> None:
    table.tap("out_of_service", SUPERVISOR, device=DEVICE)
    assert table.refused("bets_closed", boxes="1").code == "out_of_service"
    assert table.refused("confirm_empty", SUPERVISOR, device=DEVICE).code == "shuffler_not_empty"
    table.tap("in_service", SUPERVISOR, device=DEVICE)
    table.play_round()
    closed = ContinuousTable()
    closed.boot()
    closed.up()
    why = "open: mode=manual-shoe: this table opens as continuous"
    assert closed.refused("open", mode="manual-shoe").why == why


def test_a_report_after_the_table_went_on_to_close_deals_nothing() -> None:
    table = ContinuousTable()
    table.boot()
    table.up()
    table.open()
    table.tap("load_shuffler", batch="A")
    table.start()
    table.tap("close")
    table.complete()
    assert (table.state.phase, cards(table)) == (Phase.CLOSING, {Place.SHUFFLER.value: 52})
    table.event(ev.Door, open=True)
    table.event(ev.BatchReleased, count=52, inside=0)
    assert cards(table) == {"in_hand": 52}


def test_a_jam_while_it_deals_voids_no_shuffle(table: ContinuousTable) -> None:
    table.play_round()
    before = table.state
    table.event(ev.Jam, place="exit", attempt=1)
    assert (table.state.batches, table.state.phase) == (before.batches, Phase.BETWEEN_ROUNDS)
    assert (table.codes, table.effects) == ([], [])


# Side wagers and the reader


@pytest.mark.rule("R-37")
def test_it_is_locked_until_the_side_wagers_are_settled() -> None:
    table = ContinuousTable(settle_first=True, shoe_locks=True)
    table.open_to_deal()
    table.tap("bets_closed", boxes="1")
    for _ in range(3):
        table.draw()
    assert table.state.phase is Phase.SIDE_WAGERS
    assert table.end(Done({"locked": True})).name == "lock"
    table.tap("side_wagers_settled")
    assert table.end(Done({"locked": False})).name == "unlock"
    table.draw()
    table.settle()
    assert (table.codes, table.alarms) == ([], [])


def test_what_it_says_of_itself_while_it_deals_is_no_surplus() -> None:
    table = ContinuousTable(settle_first=True, shoe_locks=True)
    table.open_to_deal()
    table.tap("bets_closed", boxes="1")
    for _ in range(3):
        table.draw()
    table.end(Unknown("no answer"))
    status = {"state": "dealing", "inside": 49, "cycle": table.cycle, "drawn": 3, "locked": True}
    assert table.end(Done(status)).name == "status"
    assert (table.codes, table.state.shuffler.surplus) == ([], 0)
    assert cards(table) == {"shoe": 49, "table": 3}
