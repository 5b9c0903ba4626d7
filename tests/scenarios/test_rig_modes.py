"""Whole shoes of each mode under a virtual clock: every card is accounted for, and no rule is broken."""

from __future__ import annotations

from typing import Any

import pytest

from controller.table.profiles import BatchRules, TableRules
from simulators.rig.stepped import Stepped

ONE = (BatchRules("A", "red"),)
TWO = (*ONE, BatchRules("B", "blue"))


def played(seed: object, shoes: int, **changes: Any) -> Stepped:
    """A table that played all its shoes and closed, without a violation or a latched fault."""
    rules = TableRules(**{"table": "BJ-07", "boxes": 7, "decks": 1, "batches": ONE, **changes})
    world = Stepped(rules, seed, shoes)
    world.run()
    assert world.felt.referee.violations == []
    assert world.view.faults_latched == 0
    assert world.view.alarms == {}
    assert world.view.phase == "closed"
    assert len(world.view.batches) == shoes
    return world


def told(world: Stepped, kind: str) -> list[Any]:
    return [entry.fact.data for entry in world.journal.entries() if entry.fact.kind == kind]


@pytest.mark.rule("R-14", "R-16", "R-23", "R-26")
def test_one_batch_without_a_shuffler_is_shuffled_by_hand_after_each_shoe() -> None:
    world = played("manual", 3, decks=2, mode="manual-shoe", shuffler=None)
    assert set(world.felt.wires) == {"shoe"}
    assert world.view.batches == ["A", "A", "A"]
    assert world.view.cards == 3 * 104
    assert len(told(world, "reshuffle_by_hand")) == 3
    assert len(told(world, "cut")) == 3


@pytest.mark.rule("R-35")
def test_a_shoe_that_runs_dry_in_a_round_goes_on_with_its_rack() -> None:
    world = played("dry", 4, mode="manual-shoe", shuffler=None, cutting_card=False)
    again = [fact for fact in told(world, "reshuffle_by_hand") if "cards" in fact]
    assert 0 < len(again) <= 4
    assert world.view.cards == 4 * 52 + sum(fact["cards"] for fact in again)
