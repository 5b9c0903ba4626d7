"""Scripts of faults: one step a line, what strikes and when.

    faults:
      - {fault: misread, card: 17}
      - {fault: late_answer, value: 3.1, command: start}

Scalars stay the words that were written: 010 is no octal, `no` is no False. Anchors are refused, so that a
file cannot grow when it is read.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import yaml

from simulators.faults.fault import LONGEST_S, UnfitFault

LARGEST = 256 * 1024
"""Characters of a script; far more than anybody writes."""
DEEPEST = 20
LONGEST_NAME = 60
"""Characters of a wrong name that a message shows."""
LISTED = "see cutcard sim --list-faults"
TRIGGERS = ("card", "command", "chance", "time")
ANY = "any"


class ScriptError(ValueError):
    """A script cannot be used: one line for people."""


@dataclass(frozen=True, slots=True)
class Step:
    """One fault and its moment. Raises ScriptError when it can never be.

    Without a trigger it is there from the start, at each of its occasions. `nth`: its own n-th occasion, or
    with `command` the n-th time it comes. `card`: the n-th card that the device gives out (a shuffler:
    feeds); `time`: s after the start; `chance`: how likely at each occasion.
    """

    fault: str
    value: str | None = None
    device: str | None = None
    card: int | None = None
    command: str | None = None
    nth: int | None = None
    chance: float | None = None
    time: float | None = None

    def __post_init__(self) -> None:
        given = [name for name in TRIGGERS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ScriptError(f"{' and '.join(given)} are two moments; one step has one")
        if self.nth is not None and given not in ([], ["command"]):
            raise ScriptError(f"nth counts the fault's own occasions or commands, so not with {given[0]}")
        for name in ("fault", "value", "device", "command"):
            if getattr(self, name) == "":
                raise ScriptError(f"{name} is empty")
        for name in ("card", "nth"):
            if (number := getattr(self, name)) is not None and number < 1:
                raise ScriptError(f"{name} counts from 1, not {number}")
        if self.chance is not None and not 0 < self.chance <= 1:
            raise ScriptError(f"chance is above 0 and at most 1, not {self.chance:g}")
        if self.time is not None and not 0 <= self.time < math.inf:
            raise ScriptError(f"time is in seconds from the start, 0 or more, not {self.time:g}")
        if self.time is not None and self.time > LONGEST_S:
            raise ScriptError(f"time is at most a day, {LONGEST_S:.0f} s, not {self.time:g}")

    @property
    def waits(self) -> bool:
        """Whether it strikes only when its card, command or time comes."""
        return self.card is not None or self.command is not None or self.time is not None

    def __str__(self) -> str:
        """As a line of a script."""
        (line,) = _lines([self])
        return line.removeprefix("- ")


_KEYS = {field.name: field.type for field in fields(Step)}
_TEXT = re.compile(r"(?P<name>[a-z_]+)(:(?P<value>[^@]+))?(@(?P<nth>[1-9][0-9]{0,8}))?")


def from_text(text: str) -> Step:
    """The step of `NAME[:VALUE][@N]`. Raises UnfitFault."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise UnfitFault(f"{quoted(text)} is no fault; write NAME[:VALUE][@N], N from 1")
    return Step(match["name"], match["value"], nth=int(match["nth"]) if match["nth"] else None)


# Reading and writing


class _Loader(yaml.BaseLoader):
    """YAML of plain words: no anchors, no tags, no key twice."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise ScriptError(f"line {event.start_mark.line + 1}: anchors (& and *) are not allowed")
        if getattr(event, "tag", None) not in (None, "!"):
            raise ScriptError(f"line {event.start_mark.line + 1}: tags (!) are not allowed")
        if self.depth == DEEPEST:
            raise ScriptError(f"line {event.start_mark.line + 1}: it is nested too deep")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        for key, count in keys.items():
            if count > 1:
                raise ScriptError(f"line {node.start_mark.line + 1}: {key} stands there {count} times")
        return super().construct_mapping(node, deep)


def tree(text: str) -> Any:
    """What a YAML text says, in dicts, lists and words. Raises ScriptError with the line."""
    if len(text) > LARGEST:
        raise ScriptError(f"it has too many characters; {LARGEST} are allowed")
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a loader of plain words
    except ScriptError:
        raise
    except (yaml.YAMLError, ValueError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}: "
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ScriptError(f"{where}it is no YAML: {what}") from None


def read(text: str, known: Iterable[str]) -> tuple[Step, ...]:
    """The steps of a script, `faults:` and its list. `known`: the names that may stand there."""
    found = tree(text)
    if not isinstance(found, dict) or "faults" not in found:
        raise ScriptError("it begins with `faults:` and has one step a line: - {fault: misread, card: 17}")
    if others := [str(key) for key in found if key != "faults"]:
        raise ScriptError(f"beside `faults` stands {quoted(others[0])}{near(others[0], ['faults'])}")
    return steps(found["faults"], known)


def steps(found: Any, known: Iterable[str]) -> tuple[Step, ...]:
    """The steps of a list that `tree` gave. Raises ScriptError naming the step."""
    if not isinstance(found, list) or not found:
        raise ScriptError("`faults` has no step; write one a line: - {fault: misread, card: 17}")
    read_steps = []
    for number, entry in enumerate(found, 1):
        name = entry.get("fault") if isinstance(entry, dict) else None
        try:
            read_steps.append(_step(entry, tuple(known)))
        except ScriptError as error:
            told = f" ({name})" if isinstance(name, str) and name in known else ""
            raise ScriptError(f"step {number}{told}: {error}") from None
    return tuple(read_steps)


def _step(entry: Any, known: Sequence[str]) -> Step:
    if not isinstance(entry, dict):
        raise ScriptError(f"{entry!r} is no step; write {{fault: NAME, ...}}"[:200])
    for key in entry:
        if key not in _KEYS:
            raise ScriptError(
                f"there is no key {quoted(key)}{near(str(key), _KEYS)} (there are {', '.join(_KEYS)})"
            )
    values = {key: _scalar(key, value) for key, value in entry.items()}
    if "fault" not in values:
        raise ScriptError("it names no fault")
    if values["fault"] not in known:
        raise ScriptError(
            f"there is no fault {quoted(values['fault'])}{near(values['fault'], known)} ({LISTED})"
        )
    return Step(**values)


def _scalar(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        raise ScriptError(f"{key} is one word or number, not a list or map")
    wanted, kind = str(_KEYS[key]).split(" ")[0], {"int": "a whole number", "float": "a number"}
    if wanted not in kind:
        return value
    plain = re.fullmatch(
        r"[+-]?[0-9]{1,18}" if wanted == "int" else r"[+-]?[0-9.]+(e[+-]?[0-9]{1,3})?", value
    )
    try:
        return (int if wanted == "int" else float)(value if plain else "no")
    except ValueError:
        raise ScriptError(f"{key} is {kind[wanted]}, not {value!r}"[:200]) from None


def dump(chosen: Iterable[Step]) -> str:
    """The script of these steps; `read` gives them back."""
    return "".join(["faults:\n", *(f"  {line}\n" for line in _lines(chosen))])


def _lines(chosen: Iterable[Step]) -> list[str]:
    entries = [{key: v for key, v in asdict(step).items() if v is not None} for step in chosen]
    return [
        "- " + yaml.safe_dump(entry, default_flow_style=True, sort_keys=False, width=math.inf).strip()
        for entry in entries
    ]


def quoted(word: object) -> str:
    """What somebody wrote, in quotes, cut where it is longer than any name."""
    text = repr(word)
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}..."


def near(word: str, known: Iterable[str]) -> str:
    """The nearest right word, as the end of a sentence; empty when none is near."""
    found = difflib.get_close_matches(word[:LONGEST_NAME], list(known), 1, 0.5)
    return f"; did you mean {found[0]!r}?" if found else ""


# When it strikes


class Director:
    """Keeps the steps that wait for their moment, and gives each to `strike` when it comes.

    Tell it each card, each command and the time; `cards` and `commands` count what it was told.
    """

    def __init__(self, strike: Callable[[Step], object]) -> None:
        self.cards = 0
        self.commands: Counter[str] = Counter()
        self._strike = strike
        self._waiting: list[Step] = []

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self._waiting)

    def add(self, step: Step) -> None:
        self._waiting.append(step)

    def deadline(self) -> float | None:
        """The first time that a step waits for."""
        return min((step.time for step in self._waiting if step.time is not None), default=None)

    def advance(self, now: float) -> None:
        if due := [step for step in self._waiting if step.time is not None and step.time <= now]:
            self.go(*sorted(due, key=lambda step: step.time or 0.0))

    def card(self) -> None:
        """One more card has left."""
        self.cards += 1
        self.go(*[step for step in self._waiting if step.card == self.cards])

    def command(self, name: str) -> None:
        """This command was received."""
        for told in (name, ANY):
            self.commands[told] += 1
            count = self.commands[told]
            self.go(*[s for s in self._waiting if s.command == told and (s.nth or 1) == count])

    def waiting(self, trigger: str) -> list[Step]:
        """The steps that wait for a card, command or time."""
        return [step for step in self._waiting if getattr(step, trigger) is not None]

    def go(self, *due: Step) -> None:
        """Their moment has come."""
        for step in due:
            self._waiting.remove(step)
        for step in due:
            self._strike(step)
