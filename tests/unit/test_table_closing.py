"""Idle, closing and out of service at the table core: what each tap takes, who may, what is expected."""

from __future__ import annotations

from typing import Any

import pytest

from controller.table.inputs import Role
from controller.table.round import cutters
from controller.table.rules import awaited, expected
from controller.table.state import Place
from devices import events as ev
from tests.support.table import Table, table_rules

SUPERVISOR = frozenset({Role.SUPERVISOR})
TECHNICIAN = frozenset({Role.TECHNICIAN})


def closing(**rules: Any) -> Table:
    """Batch A from the rack, batch B proved in the shuffler, the table about to close."""
    t = Table(table_rules(**rules))
    t.open_to_shoe()
    t.complete()
    t.tap("close")
    t.end_shoe()
    return t


def test_what_is_expected_follows_the_closing_step_by_step() -> None:
    t = closing()
    assert awaited(t.rules, t.state) == "batch B to come out of the shuffler"
    assert expected(t.rules, t.state) == (
        "take_from_shuffler",
        "count_batch batch=A cards=52",
        "confirm_empty device=shoe",
    )
    t.take()
    assert awaited(t.rules, t.state) is None
    t.tap("count_batch", batch="A", cards=52)
    t.tap("confirm_empty", device="shoe")
    assert expected(t.rules, t.state) == (
        "count_batch batch=B cards=52",
        "confirm_empty device=shuffler",
    )
    t.tap("count_batch", batch="B", cards=52)
    t.tap("confirm_empty", device="shuffler")
    assert expected(t.rules, t.state) == ("close",)
    t.tap("close", SUPERVISOR)
    assert expected(t.rules, t.state) == ("open",)


def test_ways_to_end_are_told_where_play_usually_ends() -> None:
    t = Table()
    t.open_to_shoe()
    assert {"idle", "close"} <= set(expected(t.rules, t.state))
    t.tap("bets_closed", boxes="1")
    assert not {"idle", "close"} & set(expected(t.rules, t.state))


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("count_batch", {"batch": "A"}, "cards=NUMBER is missing"),
    ("count_batch", {"batch": "A", "cards": -1}, "0 to 104"),
    ("count_batch", {"batch": "A", "cards": 105}, "0 to 104"),
    ("count_batch", {"batch": "C", "cards": 52}, "none of this table's batches"),
    ("confirm_empty", {}, "device=shoe|shuffler is missing"),
    ("confirm_empty", {"device": "reader"}, "none of this table's: shoe, shuffler"),
    ("confirm_empty", {"device": "shoe", "cards": 3}, "out of the shuffler alone"),
    ("out_of_service", {"device": "shoe"}, "only the shuffler"),
    ("in_service", {}, "write device=shuffler: only the shuffler"),
    ("close", {"now": 1}, "does not take 'now'"),
]


@pytest.mark.parametrize(("event", "args", "words"), WRONG)
def test_an_argument_that_makes_no_sense_is_told(event: str, args: dict[str, Any], words: str) -> None:
    refusal = closing().refused(event, SUPERVISOR, **args)
    assert refusal.code == "bad_argument"
    assert words in refusal.why


def test_a_device_is_looked_into_when_the_table_closes_not_before() -> None:
    t = Table()
    t.open_to_shoe()
    for device in ("shoe", "shuffler"):
        assert t.refused("confirm_empty", device=device).code == "unexpected"


@pytest.mark.rule("R-36b")
def test_a_shoe_without_that_sense_and_a_reader_are_looked_into_by_two_people() -> None:
    t = closing(reader="eye")
    t.rules = table_rules(reader="eye", shoe_senses=frozenset({ev.Sense.CUT_CARD}))
    for device in ("shoe", "eye"):
        assert t.tap("confirm_empty", device=device).facts[0].data["confirmed"] is False
        assert t.refused("confirm_empty", device=device).code == "second_person"
        fact = t.tap("confirm_empty", TECHNICIAN, who="tom", device=device).facts[0]
        assert (fact.data["confirmed"], fact.data["by"]) == (True, ["ann", "tom"])
    assert t.state.empty == ("shoe", "eye")
    t.take()
    t.tap("confirm_empty", device="shuffler")
    for batch in "AB":
        t.tap("count_batch", batch=batch, cards=52)
    t.tap("close", SUPERVISOR)


def test_who_has_every_role_needs_no_second_person_but_leaves_the_name() -> None:
    t = closing(reader="eye")
    fact = t.tap("confirm_empty", frozenset(Role), who="root", device="eye").facts[0]
    assert (fact.data["confirmed"], fact.data["by"]) == (True, ["root"])


@pytest.mark.rule("R-55")
def test_more_cards_than_were_put_in_are_a_wrong_count() -> None:
    t = closing()
    t.event(ev.LinkDown, "shuffler", reason="pulled")
    t.tap("confirm_empty", device="shuffler", cards=53)
    assert t.codes == ["wrong_count"]
    assert t.state.batches["B"].cards == {Place.IN_HAND: 52}
    assert t.state.first_to_look == {"shuffler": "ann"}


def test_a_batch_that_is_counted_leaves_the_rack() -> None:
    t = closing()
    assert t.state.batches["A"].cards == {Place.RACK: 52}
    t.tap("count_batch", batch="A", cards=52)
    assert t.state.batches["A"].cards == {Place.IN_HAND: 52}
    assert t.state.batches["A"].counted == 52


@pytest.mark.rule("R-36b")
def test_in_service_again_nothing_said_of_the_empty_machine_holds() -> None:
    t = closing()
    t.take()
    t.tap("out_of_service", TECHNICIAN, device="shuffler")
    t.tap("confirm_empty", device="shuffler")
    assert t.state.empty == ("shuffler",)
    t.tap("in_service", TECHNICIAN, device="shuffler")
    assert (t.state.empty, t.state.shuffler.counter) == ((), None)


@pytest.mark.rule("R-18")
def test_a_supervisor_cuts_at_last_by_the_other_reading() -> None:
    order = cutters(
        new_game=False, boxes=7, appeared_at="box 4", last_boxes=(1, 4, 6), last_cutter="supervisor"
    )
    assert order == ("box 4", "box 6", "box 1", "supervisor")
    assert cutters(new_game=True, boxes=2, appeared_at=None, last_boxes=())[-1] == "dealer"
