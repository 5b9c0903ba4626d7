"""Scenarios of a whole table in YAML: what is played, what goes wrong, and what must come of it.

The language is described in docs/simulators.md, "Scenarios". A scenario is played under a virtual clock, on
the table of the campaign, and judged as a shoe of a campaign is.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import yaml

from controller.config import ConfigInvalid
from controller.table import evolve
from controller.table.faults import FAULTS as CODES
from controller.table.inputs import Role
from controller.table.judges import JUDGES
from controller.table.observe import JUDGED
from controller.table.profiles import TableRules
from devices import events
from simulators.faults import FAULTS, script
from simulators.faults.fault import LONGEST_S
from simulators.faults.script import ScriptError, Step, near
from simulators.rig import tables
from simulators.rig.campaign.plan import WHOLE, unfit
from simulators.rig.campaign.slips import SLIPS
from simulators.rig.felt import Felt

KINDS = frozenset(
    {
        *evolve.KINDS,
        *JUDGES,
        *(event.kind for event in vars(events).values() if hasattr(event, "own_fields")),
        *(f"unjudged_{kind}" for kind in JUDGED),
        "checkpoint", "collected", "deal_goes_on", "dealt", "deck_log", "exposed", "hole_dealt",
        "journal_started", "refused",
    }
) - {""}  # fmt: skip
"""All kinds of facts: what devices report, what is tapped, and what the table and its journal add."""
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


class _Wrong(Exception):
    """Something in the tree at `place` (keys and indexes) is wrong."""

    def __init__(self, what: str, *place: str | int) -> None:
        super().__init__(what)
        self.place = place


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
    except _Wrong as error:
        raise ScenarioError(f"{path.name}:{_line(text, error.place)}: {error}") from None


def _line(text: str, place: Sequence[str | int]) -> int:
    """The line of the innermost key or item of `place` that is there."""
    node = yaml.compose(text, yaml.BaseLoader)
    line = 1
    for step in place:
        if isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == step]
            if not found:
                break
            line, node = found[0][0].start_mark.line + 1, found[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
            line = node.start_mark.line + 1
        else:
            break
    return line


def _scenario(path: Path, tree: Any) -> Scenario:
    keys = _keys(tree, ("about", "table", "seed", "shoes", "helped", "faults", "taps", "expect"))
    rules, shoe = _table(keys.get("table"), path)
    return Scenario(
        path,
        _word(keys.get("about", path.name.partition(".")[0].replace("_", " ")), "about"),
        rules,
        shoe,
        _word(keys.get("seed", "1"), "seed"),
        _shoes(keys.get("shoes", "1")),
        _choice(keys.get("helped", "no"), {"yes": True, "true": True, "no": False, "false": False}, "helped"),
        _faults(keys["faults"], rules, shoe) if "faults" in keys else (),
        tuple(_tap(entry, "taps", n) for n, entry in enumerate(_list(keys.get("taps", []), "taps"))),
        _expected(keys.get("expect", {})),
    )


def _table(wanted: Any, path: Path) -> tuple[TableRules, str]:
    if wanted is not None and not isinstance(wanted, str | dict):
        raise _Wrong("a table is a .toml file, the name of an example, or sections of a table.toml", "table")
    asked = _plain(wanted) if isinstance(wanted, dict) else wanted
    try:
        return tables.rules_of(tables.text_of(asked, path.parent), "the table")
    except (tables.NoSuchTable, ConfigInvalid) as error:
        raise _Wrong(str(error).splitlines()[0], "table") from None


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
        raise _Wrong(str(error)[number.end() if number else 0 :], "faults", *place) from None
    return tuple(_of_a_device(step, n, wires) for n, step in enumerate(steps))


def _of_a_device(step: Step, number: int, wires: Mapping[str, Any]) -> Step:
    """The step with its device, which can have its fault."""
    if (device := _of_the_table(step, number)) is not None:
        return replace(step, device=device)
    device = step.device or _only_able(step, number, wires)
    if device not in wires:
        raise _Wrong(
            f"this table has no {device!r}{near(device, wires)} (it has {', '.join(wires)})",
            "faults", number, "device",
        )  # fmt: skip
    if (why := unfit(step, wires[device])) is not None:
        raise _Wrong(why, "faults", number)
    return replace(step, device=device)


def _of_the_table(step: Step, number: int) -> str | None:
    """Whom a fault befalls that is none of a device; it can come as it is told."""
    if (device := WHOLE.get(step.fault)) is None:
        return None
    if step.device not in (None, device):
        raise _Wrong(f"{step.fault} befalls {device}, not {step.device}", "faults", number, "device")
    if step.fault in SLIPS and not step.waits and (step.nth or step.chance) is not None:
        raise _Wrong("a slip comes after a card, a command or a time, or at once", "faults", number)
    if step.value is not None:
        if step.fault not in LASTING:
            raise _Wrong(f"{step.fault} takes no value", "faults", number, "value")
        _seconds(step.value, "faults", number, "value")
    return device


def _only_able(step: Step, number: int, wires: Mapping[str, Any]) -> str:
    """The one device that can have this fault."""
    able: list[str] = []
    for bare in (Step(step.fault, step.value), Step(step.fault)):
        able = able or [name for name, wire in wires.items() if unfit(bare, wire) is None]
    if len(able) > 1:
        raise _Wrong(f"say whose fault it is, device: {_either(able)}", "faults", number)
    if not able:
        raise _Wrong(f"no device of this table can have the fault {step.fault}", "faults", number)
    return able[0]


def _tap(entry: Any, *place: str | int) -> Tap:
    keys = _keys(entry, ("tap", "card", "fact", "nth", "time", "by", "refused"), *place)
    if "tap" not in keys:
        raise _Wrong("it taps nothing; write tap: EVENT KEY=VALUE", *place)
    event, *pairs = _word(keys["tap"], *place, "tap").split() or [""]
    if event not in JUDGES:
        raise _Wrong(f"there is no event {event!r}{near(event, JUDGES)}", *place, "tap")
    if wrong := next((pair for pair in pairs if "=" not in pair[1:]), None):
        raise _Wrong(f"{wrong!r} is no argument; write KEY=VALUE", *place, "tap")
    moments = [name for name in ("card", "fact", "time") if name in keys]
    if len(moments) != 1:
        raise _Wrong("a tap has one moment: card, fact (the nth of them) or time", *place)
    if "nth" in keys and "fact" not in keys:
        raise _Wrong("nth counts facts of one kind; write fact: too", *place, "nth")
    fact = "card_drawn" if "card" in keys else keys.get("fact")
    nth = moments[0] if "card" in keys else "nth"
    return Tap(
        event,
        dict(pair.split("=", 1) for pair in pairs),
        None if fact is None else _kind(fact, *place, "fact"),
        _number(keys.get(nth, "1"), 1, *place, nth),
        _seconds(keys["time"], *place, "time") if "time" in keys else None,
        _choice(keys["by"], {role.value: role for role in Role}, *place, "by") if "by" in keys else None,
        _word(keys["refused"], *place, "refused") if "refused" in keys else None,
    )


def _expected(tree: Any) -> Expected:
    keys = _keys(tree, [each.name for each in fields(Expected)], "expect")
    made: dict[str, Any] = {}
    for name, value in keys.items():
        place = ("expect", name)
        if name in ("latched", "alarms"):
            made[name] = tuple(_code(c, *place, n) for n, c in enumerate(_list(value, *place)))
        elif name in ("rounds", "cards", "restarts"):
            made[name] = _amount(value, *place)
        elif name == "facts":
            made[name] = tuple(_fact(fact, *place, n) for n, fact in enumerate(_list(value, *place)))
        elif name == "never":
            made[name] = tuple(_kind(kind, *place, n) for n, kind in enumerate(_list(value, *place)))
        elif name == "ends":
            made[name] = _end(value, *place)
    return Expected(**made)


def _end(value: Any, *place: str | int) -> str:
    """PLAYED or a code. Refusals have codes too, which nobody lists: what looks mistyped is wrong."""
    word, known = _word(value, *place), (PLAYED, *CODES)
    if word not in known and (nearest := difflib.get_close_matches(word, known, 1, MISTYPED)):
        raise _Wrong(f"no table ends by {word!r}; did you mean {nearest[0]!r}?", *place)
    return word


def _kind(value: Any, *place: str | int) -> str:
    kind = _word(value, *place)
    if kind not in KINDS:
        raise _Wrong(f"no fact is of the kind {kind!r}{near(kind, sorted(KINDS))}", *place)
    return kind


def _code(value: Any, *place: str | int) -> str:
    code = _word(value, *place)
    if code not in CODES:
        raise _Wrong(f"no fault is called {code!r}{near(code, CODES)}", *place)
    return code


def _fact(value: Any, *place: str | int) -> Mapping[str, str]:
    fact = {"kind": value} if isinstance(value, str) else value
    if not isinstance(fact, dict) or "kind" not in fact:
        raise _Wrong("a fact is its kind, or {kind: KIND, KEY: VALUE}", *place)
    _kind(fact["kind"], *place, "kind")
    return {key: _word(wanted, *place, key) for key, wanted in fact.items()}


def _amount(value: Any, *place: str | int) -> Amount:
    found = re.fullmatch(r"([0-9]{1,9})(\+?)", _word(value, *place))
    if found is None:
        raise _Wrong(f"{place[-1]} is a number, or one with + for at least, not {value!r}", *place)
    return Amount(int(found[1]), bool(found[2]))


def _keys(tree: Any, known: Iterable[str], *place: str | int) -> dict[str, Any]:
    known = list(known)
    if not isinstance(tree, dict):
        raise _Wrong(f"here belongs KEY: VALUE, the keys are {', '.join(known)}", *place)
    for key in tree:
        if key not in known:
            raise _Wrong(
                f"there is no key {key!r}{near(str(key), known)} (there are {', '.join(known)})", *place, key
            )
    return tree


def _list(value: Any, *place: str | int) -> list[Any]:
    if not isinstance(value, list):
        raise _Wrong(f"{place[-1]} is a list: [..., ...], or one item a line behind a -", *place)
    return value


def _word(value: Any, *place: str | int) -> str:
    if not isinstance(value, str) or not value:
        raise _Wrong(f"{place[-1]} is one word or number, not a list, a map or nothing", *place)
    return value


def _number(value: Any, least: int, *place: str | int) -> int:
    word = _word(value, *place)
    if not re.fullmatch(r"[0-9]{1,9}", word) or int(word) < least:
        raise _Wrong(f"{place[-1]} is a whole number from {least} on, not {word!r}", *place)
    return int(word)


def _shoes(value: Any) -> int:
    if (shoes := _number(value, 1, "shoes")) > MOST_SHOES:
        raise _Wrong(f"{MOST_SHOES} shoes are the most, not {shoes}", "shoes")
    return shoes


def _seconds(value: Any, *place: str | int) -> float:
    word = _word(value, *place)
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", word) or float(word) > LONGEST_S:
        raise _Wrong(
            f"{place[-1]} is a number of seconds from 0 to {LONGEST_S:.0f}, a day, not {word[:40]!r}", *place
        )
    return float(word)


def _choice(value: Any, known: Mapping[str, Any], *place: str | int) -> Any:
    word = _word(value, *place)
    if word not in known:
        raise _Wrong(f"{place[-1]} is {_either(known)}, not {word!r}{near(word, known)}", *place)
    return known[word]


def _either(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last
