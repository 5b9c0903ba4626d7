"""The driver of a managed continuous shuffler: shuffler and shoe in one, and cards that come back."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from devices.base import Setup
from devices.events import to_json
from devices.registry import load
from firmware_bridge.link import Done, NotSent
from tests.unit.test_devices_managed import START, TOKEN, Bench, golden_body, golden_wire

DRIVER = "managed-continuous"
STATUS = golden_body("continuous status answer")


def bench(**more: Any) -> Bench:
    made = Bench(DRIVER, **more)
    made.answers[66, 0] = STATUS
    return made


def test_its_session_begins_with_what_is_inside_and_what_was_drawn() -> None:
    (up,) = bench().up().events
    assert (up.kind, up.identity["class"]) == ("link_up", "continuous")
    assert up.status == {**STATUS, "token": TOKEN.hex()}


def test_the_golden_events_are_a_cycle_a_card_and_cards_that_went_back() -> None:
    decoder = load(DRIVER).decoder(Setup("dev", Random(3)))
    events: list[Any] = [*decoder.feed(golden_wire("events answer of a continuous shuffler"), 0.0)]
    assert [e.kind for e in events] == ["cycle_started", "card_drawn", "cards_returned"]
    assert (events[2].count, events[2].inside, events[2].seq) == (22, 290, 9)
    assert {"count": 22, "inside": 290}.items() <= to_json(events[2], at=None, masked=True).items()


@pytest.mark.parametrize(
    ("keys", "kind", "fields"),
    [
        ({"k": "returned", "count": 3, "inside": 49}, "cards_returned", {"count": 3, "inside": 49}),
        ({"k": "empty"}, "shoe_empty", {}),
        ({"k": "lock", "locked": True}, "lock_changed", {"locked": True}),
        ({"k": "door", "open": True}, "door", {"open": True}),
        ({"k": "out", "count": 3, "inside": 9, "token": None}, "batch_released", {"count": 3, "inside": 9}),
        ({"k": "abort", "cycle": 5, "cause": "door"}, "cycle_aborted", {"cycle": 5}),
        ({"k": "fault", "code": 7, "name": "jam", "on": True}, "fault_raised", {"code": "7"}),
        ({"k": "cut"}, "warning", {"code": "unknown_event"}),
        ({"k": "lid", "open": True}, "warning", {"code": "unknown_event"}),
    ],
)
def test_each_kind_of_event(keys: dict[str, Any], kind: str, fields: dict[str, Any]) -> None:
    made = bench().up()
    made.happen(keys.pop("k"), **keys)
    made.run(1.0)
    told = made.events[-1]
    assert told.kind == kind
    assert {name: getattr(told, name) for name in fields} == fields


def test_a_broken_count_of_cards_that_came_back_is_a_gap() -> None:
    made = bench().up()
    made.happen("returned", count=3)
    made.run(1.0)
    assert [e.kind for e in made.events[-2:]] == ["gap_possible", "warning"]
    assert made.events[-1].diag == ("inside is no number",)


def test_its_commands_are_those_of_both_without_a_release() -> None:
    spec = load(DRIVER)
    assert spec.role == "shoe"
    assert [c.name for c in spec.commands if c.reads] == ["status", "settings", "report"]
    assert [c.name for c in spec.commands if not c.reads] == ["start", "abort", "lock", "unlock"]
    made = bench().up()
    made.command("C1", "start", token=TOKEN.hex())
    assert made.ends["C1"] == Done({"cycle": 1057})
    assert START in [(request.group, request.command) for request in made.requests]
    made.command("C2", "release", token=TOKEN.hex())
    assert isinstance(made.ends["C2"], NotSent)
    assert "has no command 'release'" in made.ends["C2"].reason
