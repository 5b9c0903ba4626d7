"""A device gone and back at an open table: the link returns by itself, the state of the game never does."""

from __future__ import annotations

import pytest

from controller.table.phases import IN_ROUND, Phase
from controller.table.profiles import BatchRules, TableRules
from simulators import faults
from simulators.rig.stepped import Stepped
from simulators.rig.steps import Stuck

RULES = TableRules("BJ-07", 7, 1, (BatchRules("A", "red"), BatchRules("B", "blue")))


def codes(world: Stepped) -> list[str]:
    return [fault["code"] for fault in world.controller.view("faults")]


def ends(world: Stepped, command: str) -> list[str]:
    facts = (entry.fact for entry in world.journal.entries(0))
    return [f.data["outcome"] for f in facts if f.kind == "command_ended" and f.data["command"] == command]


def noticed(world: Stepped, kind: str) -> int:
    """How often the shuffler itself did something."""
    return sum(h.kind == kind for h in world.felt.shuffler.happenings)


def gone_and_back(world: Stepped, device: str, *, restarts: bool) -> None:
    host = world.hosts[device]
    host.unplug()
    if restarts:
        world.felt.wires[device].machine.power_cut(0.2)
    world.settle(0.3)
    host.replug()
    world.settle(10)
    assert device in world.view.up


@pytest.mark.rule("R-36b", "R-68")
@pytest.mark.parametrize("acted", [True, False], ids=["after it acted", "before it got there"])
@pytest.mark.parametrize("restarts", [True, False], ids=["restarted", "only unplugged"])
@pytest.mark.parametrize("command", ["settings", "status", "start", "release"])
def test_i38_a_shuffler_gone_for_300_ms_during_each_command(
    command: str, restarts: bool, acted: bool
) -> None:
    world = Stepped(RULES, f"i38/{command}", 1)
    world.run(lambda: command in world.view.pending.values())
    world.step(dealer=False)
    if acted:
        world.hosts["shuffler"].pump(world.clock.now())
    gone_and_back(world, "shuffler", restarts=restarts)
    assert ends(world, command)[-1] == "unknown"
    assert noticed(world, "cycle_started") == (command == "release" or (command == "start" and acted))
    assert noticed(world, "let_out") == (command == "release" and acted)
    world.settle(3 if command in {"settings", "status"} else 30)
    view = (world.view.phase, world.view.cycle)
    if command in {"settings", "status"}:  # nothing had begun; the dealer asks again
        assert (*view, codes(world)) == ("first_loaded", "none", [])
    elif command == "start" and not acted and not restarts:
        assert (*view, codes(world)) == ("first_loaded", "none", ["start_unknown"])
    elif command == "start" and not restarts:  # its numbered events and its token tell that it ran
        assert (*view, codes(world)) == ("first_shuffling", "proved", ["start_unknown"])
    elif command == "start":
        assert (*view, codes(world)) == ("first_loaded", "none", ["start_unknown", "shuffle_void"])
    elif not restarts:  # it still waits, or its event told that it came out
        assert (*view, codes(world)) == (
            ("batch_taken", "none", []) if acted else ("first_shuffling", "proved", [])
        )
    else:
        assert view == (("opening", "none") if acted else ("first_loaded", "none"))
        assert codes(world) == ["shuffle_void", *["taken_without_proof"] * acted]
    assert noticed(world, "cycle_started") <= 1
    assert noticed(world, "let_out") <= 1
    assert world.felt.referee.violations == []


@pytest.mark.rule("R-68")
@pytest.mark.parametrize("restarts", [True, False], ids=["restarted", "only unplugged"])
def test_i38_a_shoe_gone_for_300_ms_in_mid_round(restarts: bool) -> None:
    world = Stepped(RULES, "i38/shoe", 1)
    world.run(lambda: world.view.phase == "dealing" and world.view.cards >= 5)
    told, drawn = world.view.cards, world.felt.shoe.drawn
    gone_and_back(world, "shoe", restarts=restarts)
    assert codes(world) == (["shoe_rebooted"] if restarts else [])
    assert Phase(world.view.phase) in IN_ROUND, "a fault is no phase: the round is still there"
    assert world.view.cards == (told if restarts else drawn)
    if restarts:
        with pytest.raises(Stuck):
            world.run()
        assert world.view.phase != "closed"
        assert "shoe_rebooted" in codes(world)
    else:
        world.run()
        assert world.felt.referee.violations == []


@pytest.mark.rule("R-36b")
def test_field_27_a_shuffler_that_vanishes_in_the_middle_of_a_long_cycle_is_unknown_and_not_failed() -> None:
    """A watchdog restarts it: five seconds of silence, then it enumerates again."""
    world = Stepped(RULES, "field 27", 1)
    world.run(lambda: world.view.cycle == "running")
    host = world.hosts["shuffler"]
    world.settle(3)
    host.unplug()
    world.felt.shuffler_wire.machine.power_cut(4.0)
    world.settle(3)
    assert "shuffler" not in world.view.up
    assert (world.view.cycle, codes(world)) == ("running", []), "gone is no proof of failure"
    world.settle(2)
    host.replug()
    world.settle(10)
    assert "shuffler" in world.view.up
    assert (world.view.cycle, codes(world)) == ("none", ["shuffle_void"]), "another boot is"
    assert noticed(world, "cycle_started") == 1


@pytest.mark.rule("R-36b")
def test_field_28_an_accepted_start_is_not_a_shuffle_until_the_machine_says_done() -> None:
    world = Stepped(RULES, "field 28", 1)
    world.run(lambda: "start" in world.view.pending.values())
    world.settle(1)
    assert ends(world, "start") == ["done"]
    assert world.view.cycle == "running"
    assert world.controller.view("status")["batches"]["A"]["shuffled"] is False
    world.settle(30)
    assert world.view.cycle == "proved"
    assert noticed(world, "cycle_completed") == 1


@pytest.mark.rule("R-36b")
def test_field_28_a_start_that_is_only_queued_is_found_by_its_status() -> None:
    world = Stepped(RULES, "field 28 queued", 1)
    faults.apply(world.felt.shuffler_wire, "no_start")
    with pytest.raises(Stuck, match="did not start"):
        world.run()
    assert ends(world, "start")[0] == "done"
    assert noticed(world, "cycle_started") == 0
    assert world.view.cycle == "none"
    assert world.controller.view("status")["batches"]["A"]["shuffled"] is False
