"""Scenarios of a whole table in YAML: what is played, what goes wrong, and what must come of it.

The language is described in docs/simulators.md, "Scenarios". A scenario is played under a virtual clock, on
the table of the campaign, and judged as a shoe of a campaign is.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from controller.config import ConfigInvalid
from controller.table.faults import FAULTS as CODES
from controller.table.inputs import Role
from controller.table.judges import JUDGES
from controller.table.profiles import TableRules
from simulators.faults import FAULTS, script
from simulators.faults.fault import either
from simulators.faults.script import ScriptError, Step, near, quoted
from simulators.rig import tables
from simulators.rig.campaign.plan import WHOLE, unfit
from simulators.rig.campaign.slips import SLIPS
from simulators.rig.fact_kinds import FACT_KINDS
from simulators.rig.felt import Felt
from simulators.rig.yaml_words import Wrong, choice, items_of, keys_of, line_of, number, seconds, word

LASTING = frozenset({"power_cut", "power_dip", "clock_jump"})
"""Faults of a whole table that take seconds for a value."""
MISTYPED = 0.85
"""How alike two words are of which one is meant for the other."""
MOST_SHOES = 1000
PLAYED = "played"
"""How a table ends that nothing stops."""


class ScenarioError(ValueError):
    """A scenario cannot be read: one line for people: where, what, and what would be right."""


@dataclass(frozen=True, slots=True)
class Tap:
    """What somebody taps at a moment: after the `nth` fact of a kind, or at a time (s from the start)."""

    event: str
    args: Mapping[str, str]
    fact: str | None = None
    nth: int = 1
    time: float | None = None
    by: Role | None = None
    refused: str | None = None

    def __str__(self) -> str:
        return " ".join([self.event, *(f"{name}={value}" for name, value in self.args.items())])


@dataclass(frozen=True, slots=True)
class Amount:
    """Exactly `least`, or with `more` at least so many."""

    least: int
    more: bool

    def holds(self, found: int) -> bool:
        return found >= self.least if self.more else found == self.least

    def __str__(self) -> str:
        return f"{self.least}+" if self.more else str(self.least)


@dataclass(frozen=True, slots=True)
class Expected:
    """What must come of it. `latched` and `ends` always hold; a None is not looked at."""

    latched: tuple[str, ...] = ()
    ends: str = PLAYED
    alarms: tuple[str, ...] | None = None
    rounds: Amount | None = None
    cards: Amount | None = None
    restarts: Amount | None = None
    facts: tuple[Mapping[str, str], ...] = ()
    never: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """One file. `shoe` is the driver of the table's shoe; with `helped` a supervisor mends what stops it."""

    path: Path
    about: str
    rules: TableRules
    shoe: str
    seed: str = "1"
    shoes: int = 1
    helped: bool = False
    faults: tuple[Step, ...] = ()
    taps: tuple[Tap, ...] = ()
    expect: Expected = field(default_factory=Expected)


# Reading


def load(path: Path) -> Scenario:
    """Read a scenario. Raises ScenarioError."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path.name}: cannot be read: {error}") from None
    try:
        return _scenario(path, script.tree(text))
    except ScriptError as error:
        line = re.match(r"line ([0-9]+): ", str(error))
        where = f":{line[1]}" if line else ""
        raise ScenarioError(f"{path.name}{where}: {str(error)[line.end() if line else 0 :]}") from None
    except Wrong as error:
        raise ScenarioError(f"{path.name}:{line_of(text, error.place)}: {error}") from None


def _scenario(path: Path, tree: Any) -> Scenario:
    keys = keys_of(tree, ("about", "table", "seed", "shoes", "helped", "faults", "taps", "expect"))
    rules, shoe = _table(keys.get("table"), path)
    return Scenario(
        path,
        word(keys.get("about", path.name.partition(".")[0].replace("_", " ")), "about"),
        rules,
        shoe,
        word(keys.get("seed", "1"), "seed"),
        _shoes(keys.get("shoes", "1")),
        choice(keys.get("helped", "no"), {"yes": True, "true": True, "no": False, "false": False}, "helped"),
        _faults(keys["faults"], rules, shoe) if "faults" in keys else (),
        tuple(_tap(entry, "taps", n) for n, entry in enumerate(items_of(keys.get("taps", []), "taps"))),
        _expected(keys.get("expect", {})),
    )


def _table(wanted: Any, path: Path) -> tuple[TableRules, str]:
    if wanted is not None and not isinstance(wanted, str | dict):
        raise Wrong("a table is a .toml file, the name of an example, or sections of a table.toml", "table")
    asked = _plain(wanted) if isinstance(wanted, dict) else wanted
    try:
        return tables.rules_of(tables.text_of(asked, path.parent), "the table")
    except (tables.NoSuchTable, ConfigInvalid) as error:
        raise Wrong(str(error).splitlines()[0], "table") from None


def _plain(value: Any) -> Any:
    """Words of the file as TOML has them: numbers, true and false."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if re.fullmatch(r"-?[0-9]{1,18}", value):
        return int(value)
    if re.fullmatch(r"-?[0-9]+\.[0-9]+", value):
        return float(value)
    return {"true": True, "false": False}.get(value, value)


def _faults(wanted: Any, rules: TableRules, shoe: str) -> tuple[Step, ...]:
    wires = Felt(rules, "", shoe=shoe).wires
    known = (*FAULTS, *WHOLE)
    if wanted == []:
        return ()
    try:
        steps = script.steps(wanted, known)
    except ScriptError as error:
        number = re.match(r"step ([0-9]+)(?: \([^)]*\))?: ", str(error))
        place = (int(number[1]) - 1,) if number else ()
        raise Wrong(str(error)[number.end() if number else 0 :], "faults", *place) from None
    return tuple(_of_a_device(step, n, wires) for n, step in enumerate(steps))


def _of_a_device(step: Step, number: int, wires: Mapping[str, Any]) -> Step:
    """The step with its device, which can have its fault."""
    if (device := _of_the_table(step, number)) is not None:
        return replace(step, device=device)
    device = step.device or _only_able(step, number, wires)
    if device not in wires:
        raise Wrong(
            f"this table has no {quoted(device)}{near(device, wires)} (it has {', '.join(wires)})",
            "faults", number, "device",
        )  # fmt: skip
    if (why := unfit(step, wires[device])) is not None:
        raise Wrong(why, "faults", number)
    return replace(step, device=device)


def _of_the_table(step: Step, number: int) -> str | None:
    """Whom a fault befalls that is none of a device; it can come as it is told."""
    if (device := WHOLE.get(step.fault)) is None:
        return None
    if step.device not in (None, device):
        raise Wrong(f"{step.fault} befalls {device}, not {step.device}", "faults", number, "device")
    if step.fault in SLIPS and not step.waits and (step.nth or step.chance) is not None:
        raise Wrong("a slip comes after a card, a command or a time, or at once", "faults", number)
    if step.value is not None:
        if step.fault not in LASTING:
            raise Wrong(f"{step.fault} takes no value", "faults", number, "value")
        seconds(step.value, "faults", number, "value")
    return device


def _only_able(step: Step, number: int, wires: Mapping[str, Any]) -> str:
    """The one device that can have this fault."""
    able: list[str] = []
    for bare in (Step(step.fault, step.value), Step(step.fault)):
        able = able or [name for name, wire in wires.items() if unfit(bare, wire) is None]
    if len(able) > 1:
        raise Wrong(f"say whose fault it is, device: {either(able)}", "faults", number)
    if not able:
        raise Wrong(f"no device of this table can have the fault {step.fault}", "faults", number)
    return able[0]


def _tap(entry: Any, *place: str | int) -> Tap:
    keys = keys_of(entry, ("tap", "card", "fact", "nth", "time", "by", "refused"), *place)
    if "tap" not in keys:
        raise Wrong("it taps nothing; write tap: EVENT KEY=VALUE", *place)
    event, *pairs = word(keys["tap"], *place, "tap").split() or [""]
    if event not in JUDGES:
        raise Wrong(f"there is no event {quoted(event)}{near(event, JUDGES)}", *place, "tap")
    if wrong := next((pair for pair in pairs if "=" not in pair[1:]), None):
        raise Wrong(f"{quoted(wrong)} is no argument; write KEY=VALUE", *place, "tap")
    moments = [name for name in ("card", "fact", "time") if name in keys]
    if len(moments) != 1:
        raise Wrong("a tap has one moment: card, fact (the nth of them) or time", *place)
    if "nth" in keys and "fact" not in keys:
        raise Wrong("nth counts facts of one kind; write fact: too", *place, "nth")
    fact = "card_drawn" if "card" in keys else keys.get("fact")
    nth = moments[0] if "card" in keys else "nth"
    return Tap(
        event,
        dict(pair.split("=", 1) for pair in pairs),
        None if fact is None else _kind(fact, *place, "fact"),
        number(keys.get(nth, "1"), 1, *place, nth),
        seconds(keys["time"], *place, "time") if "time" in keys else None,
        choice(keys["by"], {role.value: role for role in Role}, *place, "by") if "by" in keys else None,
        word(keys["refused"], *place, "refused") if "refused" in keys else None,
    )


def _expected(tree: Any) -> Expected:
    keys = keys_of(tree, [each.name for each in fields(Expected)], "expect")
    made: dict[str, Any] = {}
    for name, value in keys.items():
        place = ("expect", name)
        if name in ("latched", "alarms"):
            made[name] = tuple(_code(c, *place, n) for n, c in enumerate(items_of(value, *place)))
        elif name in ("rounds", "cards", "restarts"):
            made[name] = _amount(value, *place)
        elif name == "facts":
            made[name] = tuple(_fact(fact, *place, n) for n, fact in enumerate(items_of(value, *place)))
        elif name == "never":
            made[name] = tuple(_kind(kind, *place, n) for n, kind in enumerate(items_of(value, *place)))
        elif name == "ends":
            made[name] = _end(value, *place)
    return Expected(**made)


def _end(value: Any, *place: str | int) -> str:
    """PLAYED or a code. Refusals have codes too, which nobody lists: what looks mistyped is wrong."""
    end, known = word(value, *place), (PLAYED, *CODES)
    if end not in known and (nearest := difflib.get_close_matches(end, known, 1, MISTYPED)):
        raise Wrong(f"no table ends by {quoted(end)}; did you mean {nearest[0]!r}?", *place)
    return end


def _kind(value: Any, *place: str | int) -> str:
    kind = word(value, *place)
    if kind not in FACT_KINDS:
        raise Wrong(f"no fact is of the kind {quoted(kind)}{near(kind, sorted(FACT_KINDS))}", *place)
    return kind


def _code(value: Any, *place: str | int) -> str:
    code = word(value, *place)
    if code not in CODES:
        raise Wrong(f"no fault is called {quoted(code)}{near(code, CODES)}", *place)
    return code


def _fact(value: Any, *place: str | int) -> Mapping[str, str]:
    fact = {"kind": value} if isinstance(value, str) else value
    if not isinstance(fact, dict) or "kind" not in fact:
        raise Wrong("a fact is its kind, or {kind: KIND, KEY: VALUE}", *place)
    _kind(fact["kind"], *place, "kind")
    return {key: word(wanted, *place, key) for key, wanted in fact.items()}


def _amount(value: Any, *place: str | int) -> Amount:
    found = re.fullmatch(r"([0-9]{1,9})(\+?)", word(value, *place))
    if found is None:
        raise Wrong(f"{place[-1]} is a number, or one with + for at least, not {quoted(value)}", *place)
    return Amount(int(found[1]), bool(found[2]))


def _shoes(value: Any) -> int:
    if (shoes := number(value, 1, "shoes")) > MOST_SHOES:
        raise Wrong(f"{MOST_SHOES} shoes are the most, not {shoes}", "shoes")
    return shoes
