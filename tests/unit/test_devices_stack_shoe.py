"""The driver of a managed shoe that dispenses stacks."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from devices.base import Setup
from devices.registry import load
from firmware_bridge.link import Done, NotSent, Refused
from tests.unit.test_devices_managed import Bench, golden_body, golden_wire

DRIVER = "managed-stack-shoe"
STATUS = golden_body("stack shoe status answer")
DISPENSE = (67, 3)


def bench(**more: Any) -> Bench:
    made = Bench(DRIVER, **more)
    made.answers[67, 0] = STATUS
    made.answers[DISPENSE] = golden_body("dispense answer")
    return made


def test_its_session_tells_what_was_drawn_and_whether_it_works() -> None:
    (up,) = bench().up().events
    assert (up.kind, up.identity["class"], up.status) == ("link_up", "stack-shoe", STATUS)


def test_a_stack_is_asked_for_by_its_first_card() -> None:
    made = bench().up()
    made.command("C1", "dispense", count=3, drawn=9)
    assert made.ends["C1"] == Done({"count": 3})
    (asked,) = [m for m in made.requests if (m.group, m.command) == DISPENSE]
    assert dict(asked.body) == golden_body("dispense")
    made.answers[DISPENSE] = golden_body("dispense refused, it counts otherwise")
    made.command("C2", "dispense", count="3", drawn="9")
    assert made.ends["C2"] == Refused("3", "wrong state")


@pytest.mark.parametrize("given", [{"count": 3}, {"count": -1, "drawn": 0}, {"count": True, "drawn": 0}])
def test_a_stack_without_numbers_is_not_asked_for(given: dict[str, Any]) -> None:
    made = bench().up()
    made.command("C1", "dispense", **given)
    assert isinstance(made.ends["C1"], NotSent)


def test_the_golden_events_are_a_card_the_joker_and_a_jam() -> None:
    decoder = load(DRIVER).decoder(Setup("dev", Random(3)))
    events: list[Any] = [*decoder.feed(golden_wire("events answer of a stack shoe"), 0.0)]
    assert [e.kind for e in events] == ["card_drawn", "card_drawn", "jam"]
    assert [e.card for e in events[:2]] == ["8S", "XJ"]
    assert (events[2].place, events[2].attempt) == ("exit", 1)


def test_it_serves_the_games_dealt_in_stacks_and_its_stacks_move_cards() -> None:
    spec = load(DRIVER)
    assert (spec.role, "blackjack" in spec.games, "three-card-poker" in spec.games) == ("shoe", False, True)
    assert [c.name for c in spec.commands if c.moves_cards] == ["dispense"]
