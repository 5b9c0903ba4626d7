"""A scenario is staged: played on a table of the campaign, and what came of it is held against what must."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from controller.render import entry_json
from firmware_bridge.link import CLOSED_HERE
from simulators.faults.script import near
from simulators.rig.campaign.journals import journals
from simulators.rig.campaign.people import People
from simulators.rig.campaign.plan import Plan
from simulators.rig.campaign.result import Outcome
from simulators.rig.campaign.table import Table
from simulators.rig.scenario import PLAYED, Expected, Scenario, Tap

LAST_FACTS = 5
"""How many of the last facts a report shows."""
HIDDEN = frozenset(
    ("fact", "kind", "at", "mono_ns", "mono_us", "boot_id", "key", "args_digest", "n", "seq", "raw", "who")
)
"""What a report leaves out of a fact."""


class Alone(People):
    """Nobody is called: what stops the table stops it."""

    def help(self, world: Any) -> bool:
        del world
        return False


class Stage(Table):
    """The table of a scenario: taps come at their moments, and everything that is told is kept."""

    def __init__(self, scenario: Scenario, directory: Path) -> None:
        self.facts: list[Mapping[str, Any]] = []
        self.wrong: list[str] = []
        self.waiting = list(scenario.taps)
        self._kinds: Counter[str] = Counter()
        plan = Plan("scenario", scenario.rules, scenario.shoe, scenario.seed, scenario.shoes, scenario.faults)
        super().__init__(plan, directory)
        if not scenario.helped:
            self.people = Alone(Random(f"{scenario.seed}/people"))
        self._judged, self.world.hear = self.world.hear, self._told

    def _told(self, what: str, line: Mapping[str, Any]) -> None:
        """A line leaves the table; facts that a crash kept from being told stand before it in the journal."""
        self._judged(what, line)
        if what != "follow":
            return
        known = self.facts[-1]["fact"] if self.facts else 0
        if line["fact"] > known + 1:
            between = (entry_json(entry, masked=True) for entry in self.world.journal.entries(known))
            for fact in between:
                if fact["fact"] < line["fact"]:
                    self._take(fact)
        self._take(line)

    def _take(self, fact: Mapping[str, Any]) -> None:
        self.facts.append(fact)
        self._kinds[fact["kind"]] += 1

    def _between(self) -> None:
        super()._between()
        for tap in [tap for tap in self.waiting if self._is_due(tap)]:
            self._tap(tap)  # when the daemon dies over it, it is tapped again
            self.waiting.remove(tap)

    def _is_due(self, tap: Tap) -> bool:
        if tap.time is not None:
            return self.world.clock.now() >= tap.time
        return self._kinds[tap.fact or ""] >= tap.nth

    def _tap(self, tap: Tap) -> None:
        answer = self.world.tap(tap.event, None if tap.by is None else frozenset({tap.by}), **tap.args)
        found = "accepted" if answer["ok"] else f"refused: {answer['refused']} ({answer['why']})"
        if answer.get("refused") != tap.refused:
            wanted = "to be accepted" if tap.refused is None else f"refused: {tap.refused}"
            self.wrong.append(f"tap {tap}: expected {wanted}, was {found}")


def play(scenario: Scenario) -> list[str]:
    """What came otherwise than expected, for people; nothing when all is well."""
    with journals() as directory:
        stage = Stage(scenario, directory)
        outcome = stage.play()
    wrong = [*stage.wrong, *_differences(scenario, outcome, stage)]
    return [*wrong, "", *_came_of_it(scenario, outcome, stage)] if wrong else []


def _differences(scenario: Scenario, outcome: Outcome, stage: Stage) -> Iterator[str]:
    expect = scenario.expect
    latched = [fact for fact in stage.facts if fact["kind"] == "fault_latched"]
    codes = [fact["code"] for fact in latched if fact["blocks"] != "nothing"]
    if codes != list(expect.latched):
        yield f"latched: expected {_list(expect.latched)}, found {_list(codes)}"
    ends = outcome.stopped or PLAYED
    if ends != expect.ends:
        yield f"ends: expected {expect.ends}, found {ends}"
    alarms = [fact["code"] for fact in latched if fact["blocks"] == "nothing"]
    if expect.alarms is not None and alarms != list(expect.alarms):
        yield f"alarms: expected {_list(expect.alarms)}, found {_list(alarms)}"
    for name, found in (("rounds", outcome.rounds), ("cards", outcome.cards), ("restarts", outcome.restarts)):
        amount = getattr(expect, name)
        if amount is not None and not amount.holds(found):
            yield f"{name}: expected {amount}, found {found}"
    yield from _missing(expect, stage.facts)
    for failure in outcome.failures:
        yield f"the referee: {failure.what}"
    for step in scenario.faults:
        if not outcome.struck[step.fault]:
            yield f"the fault {step} never struck: its moment did not come"
    for tap in stage.waiting:
        moment = f"{tap.time:g} s" if tap.time is not None else f"{tap.fact} number {tap.nth}"
        yield f"tap {tap}: never tapped, {moment} did not come"


def _missing(expect: Expected, facts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Facts that did not come in their order, and those that had to stay away."""
    kinds = sorted({fact["kind"] for fact in facts})
    rest = iter(facts)
    for number, wanted in enumerate(expect.facts, 1):
        if not any(_is(fact, wanted) for fact in rest):
            never = not any(_is(fact, wanted) for fact in facts)
            nearest = near(wanted["kind"], kinds) if wanted["kind"] not in kinds else _odd_key(wanted, facts)
            where = "never came" if never else "did not come after those before it"
            yield f"facts: number {number}, {_words(wanted)}, {where}{nearest}"
            break
    for kind in expect.never:
        if kind in kinds:
            yield f"never: {kind} came"


def _odd_key(wanted: Mapping[str, str], facts: Sequence[Mapping[str, Any]]) -> str:
    """The key that no fact of this kind has, as the end of a sentence."""
    keys = {key for fact in facts if fact["kind"] == wanted["kind"] for key in fact}
    odd = next((key for key in wanted if key not in keys), None)
    return "" if odd is None else f"; none has the key {odd!r}{near(odd, sorted(keys))}"


def _is(fact: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    return all(key in fact and _text(fact[key]) == value for key, value in wanted.items())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _words(wanted: Mapping[str, str]) -> str:
    return " ".join([wanted["kind"], *(f"{key}={value}" for key, value in wanted.items() if key != "kind")])


def _list(words: Sequence[str]) -> str:
    return f"[{', '.join(words)}]"


def _came_of_it(scenario: Scenario, outcome: Outcome, stage: Stage) -> Iterator[str]:
    """What happened, in short."""
    struck = ", ".join(f"{name} {count}" for name, count in sorted(outcome.struck.items())) or "nothing"
    yield (
        f"seed {scenario.seed}: rounds {outcome.rounds}, cards {outcome.cards}, restarts {outcome.restarts}, "
        f"{outcome.simulated_s:.0f} s at the table; what struck: {struck}"
    )
    facts = [fact for fact in stage.facts if fact.get("reason") != CLOSED_HERE]
    yield f"its last facts, of {len(facts)}:"
    for fact in facts[-LAST_FACTS:]:
        data = (f"{key}={_text(value)}" for key, value in fact.items() if key not in HIDDEN)
        yield f"  {fact['fact']} {fact['kind']} {' '.join(data)}"[:160].rstrip()
