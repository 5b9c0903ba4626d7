"""Who is told that a device is empty asks the device first, where it can tell (S10, INC-6)."""

from __future__ import annotations

from typing import Any

import pytest

from controller.table.inputs import Role
from controller.table.rules import awaited
from devices import events as ev
from firmware_bridge.link import Done, Unknown
from tests.support.continuous import DEVICE, ContinuousTable
from tests.support.table import Table, table_rules

SUPERVISOR = frozenset({Role.SUPERVISOR})
SILENCE = Unknown("no answer")


class Asked(Table):
    """Closing, with every batch in hand and counted; what a device answers is the test's."""

    def __init__(self, **rules: Any) -> None:
        super().__init__(table_rules(**rules))
        self.open_to_shoe()
        self.complete()
        self.tap("close")
        self.end_shoe()
        self.take()
        for batch in "AB":
            self.tap("count_batch", batch=batch, cards=52)

    def say_empty(self) -> None:
        pass

    def looks(self, device: str, who: str = "ann", **answer: Any) -> dict[str, Any]:
        """Somebody says that it is empty; then the device answers, or does not."""
        fact = self.tap("confirm_empty", who=who, device=device).facts[0]
        self.end(Done(answer) if answer else SILENCE)
        return dict(fact.data)


@pytest.mark.rule("S10", "INC-6")
def test_a_shuffler_with_cards_inside_is_not_empty_whatever_was_tapped() -> None:
    t = Asked()
    t.tap("confirm_empty", device="shoe")
    assert t.looks("shuffler", inside=52)["confirmed"] is False
    assert (t.codes, t.state.shuffler.surplus, t.state.empty) == (["cards_inside"], 52, ("shoe",))
    assert "52 cards" in t.state.faults[-1].cause
    assert t.refused("confirm_empty", who="sue", device="shuffler").code == "shuffler_not_empty"
    assert t.refused("close", SUPERVISOR).code == "shuffler_not_empty"
    t.event(ev.BatchReleased, "shuffler", count=52, inside=0, token=None)
    t.looks("shuffler", inside=0)
    t.tap("close", SUPERVISOR)


@pytest.mark.rule("S10", "INC-6")
def test_nothing_closes_before_the_device_has_answered() -> None:
    t = Asked()
    t.tap("confirm_empty", device="shoe")
    t.tap("confirm_empty", device="shuffler")
    assert awaited(t.rules, t.state) == "the shuffler to answer status"
    assert t.refused("close", SUPERVISOR).code == "not_answered"
    assert t.refused("confirm_empty", who="sue", device="shuffler").code == "not_answered"
    t.end(Done({"inside": 0}))
    assert t.state.empty == ("shoe", "shuffler")
    t.tap("close", SUPERVISOR)


@pytest.mark.rule("S10")
def test_a_device_that_does_not_answer_is_looked_into_by_two_people() -> None:
    t = Asked()
    t.looks("shuffler")
    assert t.state.first_to_look == {"shuffler": "ann"}
    t.looks("shuffler")
    assert t.state.first_to_look == {"shuffler": "ann"}
    found = t.looks("shuffler", "sue")
    assert (found["confirmed"], found["by"], t.state.empty) == (True, ["ann", "sue"], ("shuffler",))


@pytest.mark.rule("S10")
def test_two_people_are_not_believed_either_when_it_answers_after_all() -> None:
    t = Asked()
    t.looks("shuffler")
    t.looks("shuffler", "sue", inside=3)
    assert (t.state.empty, t.state.shuffler.surplus, t.codes) == ((), 3, ["cards_inside"])


@pytest.mark.rule("S10")
def test_a_shoe_that_can_tell_is_asked_until_it_says_that_it_is_empty() -> None:
    """What it said after its last card is old news: cards may have been put in since."""
    t = Asked(shoe_answers=True)
    assert t.state.shoe.told_empty
    t.looks("shoe", empty=False)
    assert (t.state.empty, t.state.first_to_look, t.codes) == ((), {}, [])
    assert awaited(t.rules, t.state) == "the shoe to say that it is empty"
    t.looks("shoe", "sue", empty=False)
    assert t.state.empty == ()
    t.looks("shoe", empty=True)
    assert (t.state.empty, awaited(t.rules, t.state)) == (("shoe",), None)


@pytest.mark.rule("INC-6", "R-36b")
def test_a_shuffler_out_of_service_is_asked_too_before_the_table_opens_without_it() -> None:
    t = Asked()
    t.looks("shuffler", inside=0)
    t.tap("confirm_empty", device="shoe")
    t.tap("close", SUPERVISOR)
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    t.tap("confirm_empty", device="shuffler")
    assert t.refused("open", mode="manual-shoe").code == "not_answered"
    t.end(Done({"inside": 1}))
    assert t.refused("open", mode="manual-shoe").code == "not_confirmed_empty"
    assert t.codes == ["cards_inside"]


class AskedContinuous(ContinuousTable):
    def say_empty(self) -> None:
        pass


@pytest.mark.rule("S10", "R-11")
@pytest.mark.parametrize("inside", [0, 4])
def test_a_continuous_shuffler_is_asked_too(inside: int) -> None:
    t = AskedContinuous(shoe_answers=True)
    t.open_to_deal()
    t.tap("close")
    t.end_shoe()
    t.tap("count_batch", batch="A", cards=t.size)
    t.tap("confirm_empty", device=DEVICE)
    t.end(Done({"inside": inside, "empty": not inside, "cycle": t.cycle}))
    assert t.state.empty == (() if inside else (DEVICE,))
    assert t.codes == (["cards_inside"] if inside else [])
