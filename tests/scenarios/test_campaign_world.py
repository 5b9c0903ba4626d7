"""Tables of the campaign: whatever befalls daemon, power and disk, they go on and each card counts once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from simulators.faults.script import Step
from simulators.rig.campaign.journals import journals
from simulators.rig.campaign.kinds import KINDS, rules_of
from simulators.rig.campaign.plan import WHOLE, Plan
from simulators.rig.campaign.result import Counters, Outcome
from simulators.rig.campaign.table import Table
from simulators.rig.felt import MANAGED_SHOE

TWO_BATCHES = "two-batch-shoe-1"
DEADLY = sorted(
    name
    for name, device in WHOLE.items()
    if device in ("daemon", "power") and name not in ("clock_jump", "power_dip")
)
SMALL = [name for name, kind in KINDS.items() if kind.decks == 1]


@pytest.fixture
def directory() -> Iterator[Path]:
    with journals() as found:
        yield found


def table(
    directory: Path, *steps: Step, kind: str = TWO_BATCHES, seed: str = "world", shoes: int = 1
) -> Table:
    shoe = KINDS[kind].devices.get("shoe", MANAGED_SHOE)
    home = directory / str(len(list(directory.iterdir())))
    home.mkdir()
    return Table(Plan(kind, rules_of(kind), shoe, seed, shoes, steps), home)


def good(outcome: Outcome) -> Outcome:
    assert outcome.failures == []
    assert outcome.counters == Counters()
    return outcome


@pytest.mark.parametrize("kind", SMALL)
def test_a_table_of_each_kind_plays_a_shoe_without_faults(directory: Path, kind: str) -> None:
    outcome = good(table(directory, kind=kind).play())
    assert (outcome.shoes, outcome.played, outcome.stopped, outcome.restarts) == (1, 1, None, 0)
    assert outcome.rounds > 0
    assert outcome.struck == {}


@pytest.mark.rule("R-07", "R-26", "R-68")
@pytest.mark.parametrize("fault", DEADLY)
def test_the_daemon_is_gone_and_the_table_goes_on(directory: Path, fault: str) -> None:
    steps = [Step(fault, device=WHOLE[fault], card=20), Step(fault, device=WHOLE[fault], card=70)]
    outcome = good(table(directory, *steps, seed=fault, shoes=2).play())
    assert outcome.struck[fault] == 2
    assert outcome.restarts == 2
    assert (outcome.played, outcome.stopped) == (2, None)
    assert outcome.cards == 104


def test_a_crash_comes_at_any_place_of_a_table_also_while_it_starts(directory: Path) -> None:
    steps = [Step("crash_before_commit", device="daemon", chance=0.1)]
    outcome = good(table(directory, *steps, seed="often").play())
    assert outcome.restarts == outcome.struck["crash_before_commit"] > 5
    assert outcome.stopped is None


def test_the_machines_lose_their_power_in_a_round(directory: Path) -> None:
    outcome = good(table(directory, Step("power_dip", "1.5", device="power", card=20)).play())
    assert outcome.struck == {"power_dip": 1}
    assert outcome.restarts == 0
    assert outcome.cards == 52


def test_the_wall_clock_jumps_and_no_card_moves(directory: Path) -> None:
    outcome = good(table(directory, Step("clock_jump", "-7200", device="daemon", time=100)).play())
    assert outcome.struck == {"clock_jump": 1}
    assert outcome.played == 1


def test_a_plan_has_one_outcome(directory: Path) -> None:
    steps = [
        Step("power_cut", device="power", card=30),
        Step("drop", device="shoe", chance=0.02),
        Step("late_answer", "2.5", device="shuffler", command="release"),
    ]
    first, second = (table(directory, *steps, seed="twice").play() for _ in range(2))
    assert first == second
    assert first.struck["power_cut"] == 1


def test_a_power_cut_and_a_bad_line_at_a_table_with_a_reader(directory: Path) -> None:
    steps = [
        Step("power_cut", "3", device="power", card=25),
        Step("flip_bit", device="reader", chance=0.05),
        Step("unplug", "1.5", device="shuffler", time=95),
    ]
    outcome = good(table(directory, *steps, kind="two-batch-shoe-1-reader", seed="reader").play())
    assert outcome.struck["unplug"] == 1
    assert outcome.played == 1


def test_an_error_of_ours_is_told(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = table(directory)

    def fails(_status: object) -> None:
        raise ZeroDivisionError("as if")

    monkeypatch.setattr(broken.world.felt.referee, "check", fails)
    outcome = broken.play()
    assert [failure.what.partition(" ")[0] for failure in outcome.failures] == ["crashed:"]
    assert "ZeroDivisionError" in outcome.failures[0].what


def test_the_service_that_fails_on_an_input_is_a_failure(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = table(directory)
    monkeypatch.setattr(broken, "_restart", lambda _gone: setattr(broken, "_ended", True))
    broken._struck["disk_full"] = 1  # that was another time
    broken.world.service.stopped = "the rules failed on an input"
    outcome = broken.play()
    assert outcome.failures[0].what == "crashed: the rules failed on an input"


def test_a_table_that_nobody_can_help_ends_with_what_is_latched(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = table(directory, Step("silent", device="shoe", card=10))
    monkeypatch.setattr(alone.people, "help", lambda _world: False)
    outcome = good(alone.play())
    assert outcome.stopped == "device_down"
    assert (outcome.shoes, outcome.played) == (1, 0)
