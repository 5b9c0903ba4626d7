"""S9: the daemon is gone between any two facts; on journal and machines alone it resumes or latches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from controller import config
from controller.service import Commander
from controller.table.inputs import Role
from controller.table.profiles import BatchRules, TableRules
from controller.table.state import TableState
from simulators.rig.stepped import Stepped
from simulators.rig.steps import Stuck
from tests.support.facts import comparable

BATCHES = (BatchRules("A", "red"), BatchRules("B", "blue"))
RULES = TableRules("BJ-07", 7, 1, BATCHES)
SOURCES = ("shoe", "shuffler")


def codes(world: Stepped) -> list[str]:
    return [fault["code"] for fault in world.controller.view("faults")]


def crash_and_restart(world: Stepped) -> None:
    world.crash()
    world.restart()


def remembered(state: TableState) -> dict[str, Any]:
    """What must be the same after a restart: round, batch, cutting card, custody."""
    return {
        "phase": state.phase,
        "round": state.round,
        "rounds": state.rounds,
        "shoe": (
            state.shoe.number,
            state.shoe.batch,
            state.shoe.cut_seen,
            state.shoe.cut_at,
            state.shoe.closing,
        ),
        "last_batch": state.shoe.last_batch,
        "batches": state.batches,
    }


@pytest.mark.rule("R-07", "R-26", "R-68")
def test_after_a_crash_at_any_fact_the_table_is_as_it_was_and_plays_on() -> None:
    reference = Stepped(RULES, "any", 2)
    reference.run()
    random = Random("crashes")
    facts = reference.journal.last_seq
    world = Stepped(RULES, "any", 2)
    points = sorted(random.sample(range(2, facts), 12))
    for point in points:
        world.run(lambda point=point: world.view.seq >= point)
        before, starting = remembered(world.service.state), world.view.cycle == "starting"
        world.crash()
        world.restart()
        assert remembered(world.service.state) == before
        assert codes(world) == (["start_unknown"] if starting else [])
    world.run()
    assert world.view.starts == len(points) + 1
    assert world.felt.referee.violations == []
    assert world.view.batches == ["A", "B"]
    played = ("card_drawn", "cut_card", "cycle_started", "cycle_completed", "batch_released")
    assert only(world, played) == only(reference, played)


@pytest.mark.rule("R-68")
@pytest.mark.parametrize("table", ["hand-dealt-one-deck", "casino-night-shoe", "casino-night-shuffler"])
def test_a_table_of_another_mode_plays_on_after_each_crash(table: str) -> None:
    path = Path(__file__).parents[2] / "deploy" / "tables" / f"{table}.toml"
    rules = replace(config.load(path).rules, decks=1)
    reference = Stepped(rules, "other", 2)
    reference.run()
    world = Stepped(rules, "other", 2)
    points = sorted(Random("crashes").sample(range(2, reference.journal.last_seq), 10))
    for point in points:
        world.run(lambda point=point: world.view.seq >= point)
        before, starting = remembered(world.service.state), world.view.cycle == "starting"
        crash_and_restart(world)
        assert remembered(world.service.state) == before
        assert codes(world) == (["start_unknown"] if starting else [])
    world.run()
    assert world.view.starts == len(points) + 1
    assert world.felt.referee.violations == []
    assert world.felt.referee.cards == reference.felt.referee.cards
    assert world.view.batches == reference.view.batches
    assert told(world) == told(reference)


def told(world: Stepped) -> list[tuple[str, Any]]:
    """What people told of cuts and rounds, each once."""
    kinds = {"cut": "position", "bets_closed": "boxes", "cutting_card_at": "at", "round_settled": "cards"}
    facts = [entry.fact for entry in world.journal.entries()]
    return [(fact.kind, fact.data[kinds[fact.kind]]) for fact in facts if fact.kind in kinds]


def only(world: Stepped, kinds: tuple[str, ...]) -> dict[str, list[tuple[str, Any]]]:
    found = comparable(world.journal.entries(), SOURCES)
    return {source: [fact for fact in facts if fact[0] in kinds] for source, facts in found.items()}


@pytest.mark.rule("R-36b")
def test_device_boot_unchanged_our_token_and_the_next_cycle_keeps_the_shuffle() -> None:
    world = Stepped(RULES, "keep", 1)
    world.run(lambda: world.view.cycle == "running")
    world.crash()
    world.clock.advance(60)  # the cycle completes while no daemon runs
    world.restart()
    world.settle(3)
    assert world.view.cycle == "proved"
    assert codes(world) == []
    world.run()
    assert world.felt.referee.violations == []


@pytest.mark.rule("R-36b", "R-68")
def test_device_restarted_in_mid_cycle_voids_the_shuffle_and_latches() -> None:
    world = Stepped(RULES, "void", 1)
    world.run(lambda: world.view.cycle == "running")
    world.crash()
    world.felt.shuffler_wire.machine.power_cut(1.0)
    world.clock.advance(5)
    world.restart()
    world.settle(5)
    assert codes(world) == ["shuffle_void"]
    assert world.controller.view("status")["batches"]["A"]["shuffled"] is False
    fault = world.controller.view("faults")[0]["id"]
    assert world.tap("clear", frozenset({Role.DEALER}), fault=fault)["refused"] == "not_allowed"
    assert world.tap("clear", frozenset({Role.SUPERVISOR}), fault=fault)["refused"] == "cause_remains"
    crash_and_restart(world)
    world.settle(3)
    assert [f["id"] for f in world.controller.view("faults")] == [fault]
    assert world.tap("start_shuffle")["ok"] is True
    world.settle(60)
    assert world.view.cycle == "proved"
    assert world.tap("take_from_shuffler")["refused"] == "fault_latched"
    assert world.tap("clear", frozenset({Role.SUPERVISOR}), fault=fault)["ok"] is True
    world.run()
    assert world.view.batches == ["A"]
    assert world.felt.referee.violations == []


class PowerCut(BaseException):
    """The machine under the daemon stops here."""


class Cut:
    """A device's command side that fails before it sends the command `name`, once."""

    armed = True

    def __init__(self, port: Commander, name: str) -> None:
        self._port, self._name = port, name

    def command(self, call_id: str, name: str, args: Mapping[str, Any]) -> None:
        if name == self._name and Cut.armed:
            Cut.armed = False
            raise PowerCut
        self._port.command(call_id, name, args)

    def ack(self, n: int) -> None:
        self._port.ack(n)


@pytest.mark.rule("R-36b")
@pytest.mark.parametrize("command", ["settings", "status", "start", "release"])
def test_committed_but_never_sent_the_status_is_read_before_anything_is_done_again(command: str) -> None:
    Cut.armed = True
    world = Stepped(
        RULES, "unsent", 2, devices=lambda ports: {name: Cut(port, command) for name, port in ports.items()}
    )
    with pytest.raises(PowerCut):
        world.run()
    issued = [e.fact.data["command"] for e in world.journal.entries() if e.fact.kind == "command_issued"]
    assert issued[-1] == command
    cycles = world.felt.shuffler.cycle
    world.crash()
    world.restart()
    world.settle(3)
    after = [e.fact for e in world.journal.entries()]
    ends = [f.data["outcome"] for f in after if f.kind == "command_ended" and f.data["command"] == command]
    assert "unknown" in ends
    assert world.felt.shuffler.cycle == cycles
    assert codes(world) == (["start_unknown"] if command == "start" else [])
    world.run()
    assert world.view.batches == ["A", "B"]
    assert world.felt.shuffler.cycle == 3
    assert world.felt.referee.violations == []
    assert codes(world) == []


@pytest.mark.rule("R-26")
def test_the_shoe_restarting_between_two_cards_is_latched_until_its_count_is_explained() -> None:
    world = Stepped(RULES, "shoe boot", 1)
    world.run(lambda: world.view.rounds == 1)
    world.felt.shoe_wire.machine.power_cut()
    world.settle(10)
    assert codes(world) == ["shoe_rebooted"]
    with pytest.raises(Stuck):
        world.run()
    assert world.tap("bets_closed", boxes="1")["refused"] == "fault_latched"


def test_a_card_drawn_while_no_daemon_runs_is_counted_once_afterwards() -> None:
    world = Stepped(RULES, "unseen", 1)
    world.run(lambda: world.view.phase == "dealing" and world.dealer.settled())
    cards = world.view.cards
    world.crash()
    world.dealer.turn(world.clock.now() + 60)
    world.restart()
    world.settle(3)
    assert world.view.cards == cards + 1
    world.run()
    assert world.view.cards == 52
    assert world.felt.referee.violations == []


def test_a_device_that_restarted_is_read_from_its_first_event_also_by_the_next_daemon() -> None:
    world = Stepped(RULES, "numbers", 1)
    world.run(lambda: world.view.cycle == "running")
    world.felt.shoe.open_lid()  # an event before the restart, so that its numbers begin anew
    world.settle(3)
    assert world.service.state.device("shoe").seq == 1
    world.felt.shoe_wire.machine.power_cut()
    world.settle(5)
    assert world.service.state.device("shoe").boot == 2
    assert world.service.state.device("shoe").seq == 0
    crash_and_restart(world)
    world.felt.shoe.close_lid()
    world.settle(3)
    kinds = [e.fact.kind for e in world.journal.entries() if e.fact.source == "shoe"]
    assert kinds.count("lid") == 2
    assert "gap_possible" not in kinds
    world.run()
    assert world.view.cards == 52
    assert codes(world) == []
