"""The simulated shoe that dispenses stacks: no card is lost or made, and it says what the page says."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from firmware_bridge.link import Done, Refused
from simulators import faults
from simulators.models.cards import Card, Stack, make_batch
from simulators.models.machine import CannotDo
from simulators.models.selfplay import StackHands
from simulators.models.stack_shoe import StackShoe
from simulators.wire.managed_stack_shoe import ManagedStackShoe
from tests.support.line import Line
from tests.unit.test_simulators_wire_managed import PACKETS, Host, framed

READ, WRITE = 0, 2


def shoe() -> tuple[StackShoe, list[Card]]:
    made, cards = StackShoe(Random(5)), make_batch("red", 1)
    made.open_lid()
    made.load(Stack(cards))
    made.close_lid()
    return made, cards


def why(made: StackShoe, count: int = 3, drawn: int = 0) -> str:
    with pytest.raises(CannotDo) as no:
        made.dispense(count, drawn)
    return no.value.why


def kinds(made: StackShoe) -> list[str]:
    return [happening.kind for happening in made.happenings]


def test_a_stack_lies_on_the_tray_and_no_card_comes_otherwise() -> None:
    made, cards = shoe()
    assert made.dispense(3, 0) == 3
    made.advance(0.3)
    assert (made.on_tray, made.drawn, made.dispensing, why(made)) == (1, 1, True, "busy")
    made.advance(5.0)
    assert (made.on_tray, made.drawn, made.dispensing) == (3, 3, False)
    assert set(made.contents()) == set(cards)
    assert list(made.take().contents()) == cards[:3]
    with pytest.raises(CannotDo):
        made.draw()


def test_a_stack_is_named_by_its_first_card() -> None:
    made, _ = shoe()
    assert why(made, drawn=1) == "counts"
    made.dispense(3, 0)
    made.advance(5.0)
    assert why(made, drawn=0) == "counts"
    assert made.dispense(60, 3) == 49
    made.advance(60.0)
    assert (kinds(made)[-1], made.on_tray, why(made, drawn=52)) == ("emptied", 52, "empty")


def test_what_stops_a_stack_and_what_does_not() -> None:
    made, _ = shoe()
    made.set_lock(locked=True)
    assert why(made) == "locked"
    made.set_lock(locked=False)
    made.dispense(3, 0)
    made.set_lock(locked=True)
    made.advance(5.0)
    assert made.on_tray == 3
    made.set_lock(locked=False)
    made.dispense(3, 3)
    made.advance(5.2)
    made.open_lid()
    made.advance(10.0)
    assert (made.on_tray, made.dispensing, why(made, drawn=4)) == (4, False, "lid")
    made.close_lid()
    made.dispense(2, 4)
    made.power_cut()
    made.advance(20.0)
    assert (made.on_tray, made.drawn, made.dispensing) == (4, 0, False)


def test_a_jam_and_a_card_too_many() -> None:
    made, cards = shoe()
    device = ManagedStackShoe(made)
    faults.apply(device, "jam:belt@1")
    faults.apply(device, "extra_card@2")
    made.dispense(4, 0)
    made.advance(5.0)
    assert (made.on_tray, kinds(made)[-1], made.happenings[-1].data["place"]) == (2, "jam", "belt")
    assert made.dispense(2, 2) == 2
    made.advance(10.0)
    assert made.on_tray == 5
    assert set(made.contents()) == set(cards)


def test_its_hands_clear_the_tray_and_fill_it_again() -> None:
    made = StackShoe(Random(5))
    StackHands(made, Random(6)).fill(Stack(make_batch("red", 1)))
    made.dispense(52, 0)
    made.advance(30.0)
    assert (made.on_tray, len(made), made.drawn) == (0, 52, 0)
    made.advance(60.0)
    assert (made.on_tray, made.drawn) == (0, 0)


# The wire


def host() -> tuple[Host, StackShoe]:
    made, _ = shoe()
    return Host(ManagedStackShoe(made)), made


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({"count": 3, "drawn": 0}, {"count": 3}),
        ({"count": 0, "drawn": 0}, {"err": {"group": 67, "rc": 2}}),
        ({"count": 3}, {"err": {"group": 67, "rc": 2}}),
        ({"count": 3, "drawn": 9}, {"err": {"group": 67, "rc": 3}}),
    ],
)
def test_how_it_answers(body: dict[str, Any], answer: dict[str, Any]) -> None:
    asker, _ = host()
    assert asker.ask(WRITE, 67, 3, body) == answer


def test_the_golden_request_counts_otherwise_here() -> None:
    asker, _ = host()
    asker.device.receive(framed(PACKETS["dispense"]), 0.0)
    assert asker.answers() == [(113, {"err": {"group": 67, "rc": 3}})]


def test_its_refusals_and_its_status() -> None:
    asker, made = host()
    assert asker.ask(READ, 64, 0)["class"] == "stack-shoe"
    made.open_lid()
    assert asker.ask(WRITE, 67, 3, {"count": 1, "drawn": 0}) == {"err": {"group": 67, "rc": 6}}
    made.close_lid()
    asker.ask(WRITE, 67, 3, {"count": 2, "drawn": 0})
    assert asker.ask(WRITE, 67, 3, {"count": 1, "drawn": 0}) == {"err": {"group": 67, "rc": 4}}
    assert asker.ask(READ, 67, 0)["dispensing"] is True
    asker.now = 5.0
    assert asker.ask(READ, 67, 0) == {
        "locked": False, "lid": False, "empty": False, "drawn": 2, "dispensing": False,
    }  # fmt: skip
    made.open_lid()
    made.remove_by_hand()
    made.close_lid()
    assert asker.ask(WRITE, 67, 3, {"count": 1, "drawn": 2}) == {"err": {"group": 67, "rc": 9}}


# The driver on the simulated machine


def test_driver_and_machine_understand_each_other() -> None:
    made, cards = shoe()
    line = Line("managed-stack-shoe", ManagedStackShoe(made)).up()
    faults.apply(line.device, "jam@2")
    line.command("C1", "dispense", count=3, drawn=0)
    assert line.end_of("C1") == Done({"count": 3})
    line.run(2.0, lambda: line.kinds.count("card_drawn") == 3)
    line.command("C2", "dispense", count=3, drawn=0)
    assert line.end_of("C2") == Refused("3", "wrong state")
    line.command("C3", "dispense", count=2, drawn=3)
    assert line.end_of("C3") == Done({"count": 2})
    line.run(2.0, lambda: "jam" in line.kinds)
    assert [event.card for event in line.of("card_drawn")] == [card.face for card in cards[:4]]
    assert line.kinds[-1] == "jam"
