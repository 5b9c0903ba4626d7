"""Whole shoes of each mode under a virtual clock: every card is accounted for, and no rule is broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controller import config
from controller.table.profiles import BatchRules, Burn, TableRules
from devices.events import Sense
from simulators.rig.felt import MANAGED_SHOE, Felt
from simulators.rig.stepped import Stepped

TABLES = sorted((Path(__file__).parents[2] / "deploy" / "tables").glob("*.toml"))
ONE = (BatchRules("A", "red"),)
TWO = (*ONE, BatchRules("B", "blue"))
BY_EYE: dict[str, Any] = {"shoe": None, "shoe_senses": frozenset()}
NIGHT: dict[str, Any] = {"profile": "nj-casino-night", "mode": "manual-shoe", "burn": Burn.EACH_ROUND}


def played(seed: object, shoes: int, **changes: Any) -> Stepped:
    rules = TableRules(**{"table": "BJ-07", "boxes": 7, "decks": 1, "batches": ONE, **changes})
    return played_out(Stepped(rules, seed, shoes), shoes)


def played_out(world: Stepped, shoes: int) -> Stepped:
    """A table that played all its shoes and closed, without a violation, a latched fault or a false alarm."""
    world.run()
    assert world.felt.referee.violations == []
    assert {fault["code"] for fault in told(world, "fault_latched")} <= {"shoe_dry"}
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


@pytest.mark.rule("R-04", "R-28")
@pytest.mark.parametrize("decks", [1, 2])
def test_sets_dealt_from_the_hand_alternate_when_the_round_of_the_marker_ends(decks: int) -> None:
    world = played("hand", 4, decks=decks, batches=TWO, mode="hand-dealt", **BY_EYE)
    assert set(world.felt.wires) == {"shuffler"}
    assert world.view.batches == ["A", "B", "A", "B"]
    assert world.felt.referee.cards == 4 * 52 * decks
    assert [fact["batch"] for fact in told(world, "take_in_hand")] == ["A", "B", "A", "B"]
    assert len(told(world, "cutting_card_at")) == 4


@pytest.mark.rule("R-79")
@pytest.mark.parametrize("burn", [Burn.EACH_ROUND, Burn.EACH_LOAD])
@pytest.mark.parametrize("source", [{}, BY_EYE], ids=["shoe", "hand"])
def test_a_casino_night_with_and_without_its_machines(source: dict[str, Any], burn: Burn) -> None:
    shuffler = "shuffler" if burn is Burn.EACH_ROUND else None
    world = played("night", 3, decks=2, shuffler=shuffler, **{**NIGHT, **source, "burn": burn})
    assert world.felt.referee.cards == 3 * 104
    assert len(told(world, "burn")) == (world.view.rounds if burn is Burn.EACH_ROUND else 3)
    assert len(told(world, "batch_proved" if shuffler else "reshuffle_by_hand")) == 3


@pytest.mark.rule("R-79")
@pytest.mark.parametrize("source", [{}, BY_EYE], ids=["shoe", "hand"])
def test_without_a_cutting_card_a_deck_is_dealt_out_and_its_discards_finish_the_round(
    source: dict[str, Any],
) -> None:
    world = played("out", 4, cutting_card=False, shuffler=None, **{**NIGHT, **source})
    loads = told(world, "reshuffle_by_hand")
    assert len(loads) == 4
    assert [fact.get("goes_on", False) for fact in loads].count(True) > 0
    assert Sense.CUT_CARD not in world.rules.shoe_senses or told(world, "cut_card") == []


def test_the_referee_sees_what_is_done_wrong_at_a_casino_night() -> None:
    rules = TableRules("CN-01", 7, 1, ONE, cutting_card=False, shuffler=None, **NIGHT)
    felt = Felt(rules, "referee")
    told = felt.referee.violations
    felt.load_shoe("A")
    felt.referee.round_begins()
    felt.draw("box 1")
    kinds = [text.split(": ")[1] for text in told]
    assert kinds == ["burn missed", "unshuffled", "uncut"]
    felt.pick_up()
    felt.lift_rack("A")
    felt.shuffle("A")
    felt.cut("A", 0)
    felt.load_shoe("A", again=True)
    assert told[-1] == ("shoe 1: discards used again: the rack was loaded although cards were left to deal")


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_a_shoe_of_every_example_table_is_played(table: Path) -> None:
    asked = config.load(table)
    drivers = {device.id: device.spec.name for device in asked.devices}
    shoe = drivers.get(asked.rules.shoe or "", MANAGED_SHOE)
    world = played_out(Stepped(asked.rules, table.stem, 1, shoe=shoe), 1)
    assert told(world, "fault_latched") == []
