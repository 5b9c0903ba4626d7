"""What was found at one table (`Outcome`), and at all of a campaign (`Summary`, for people and as JSON).

Nothing in a summary depends on wall time, on the number of workers or on the version of Python.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from simulators.rig.campaign.plan import LAYER_OF


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that must never happen, found in shoe number `shoe`."""

    shoe: int
    what: str


@dataclass
class Counters:
    """How often each of the things that must never happen did."""

    invariant_violations: int = 0
    cards_lost: int = 0
    cards_counted_twice: int = 0
    journal_gaps: int = 0
    unseen_cards_leaked: int = 0

    def add(self, other: Counters) -> None:
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in COUNTED)


COUNTED = tuple(each.name for each in fields(Counters))


@dataclass
class Outcome:
    """What became of a table.

    `shoes` were begun and `played` dealt to their end. `struck` counts the faults that really happened;
    `stopped` is the code of the fault or refusal that rightly ended the table early, None when it closed.
    """

    shoes: int = 0
    played: int = 0
    rounds: int = 0
    cards: int = 0
    events: int = 0
    struck: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    stopped: str | None = None
    failures: list[Failure] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    simulated_s: float = 0.0


@dataclass(slots=True)
class Found:
    """What went wrong in `shoe`, at the table that was opened with shoe `opened`.

    `replay` shows it again; `scripted` does with the shortest `script` as its file, at this `table`.
    """

    shoe: int
    opened: int
    what: str
    replay: str
    table: str = ""
    script: str = ""
    scripted: str = ""


@dataclass(slots=True)
class Summary:
    """Sums over the tables of some shoes. `shoes` were begun, `played` dealt to their end."""

    shoes: int = 0
    played: int = 0
    tables: int = 0
    rounds: int = 0
    cards: int = 0
    events: int = 0
    simulated_s: float = 0.0
    restarts: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    stopped: Counter[str] = field(default_factory=Counter)
    counters: Counters = field(default_factory=Counters)
    failures: list[Found] = field(default_factory=list)

    def add(self, other: Summary) -> None:
        for name in ("shoes", "played", "tables", "rounds", "cards", "events", "simulated_s", "restarts"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("faults", "stopped"):
            getattr(self, name).update(getattr(other, name))
        self.counters.add(other.counters)
        self.failures += other.failures

    def plain(self) -> dict[str, Any]:
        """What JSON can carry through a pipe; `of` makes it whole again."""
        named = {each.name: getattr(self, each.name) for each in fields(self)}
        failures = [asdict(found) for found in self.failures]
        return named | {"counters": asdict(self.counters), "failures": failures}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Summary:
        made = cls(**plain)
        made.faults, made.stopped = Counter(made.faults), Counter(made.stopped)
        made.counters = Counters(**plain["counters"])
        made.failures = [Found(**found) for found in plain["failures"]]
        return made

    @property
    def clean(self) -> bool:
        return not self.failures and not self.counters

    def never_struck(self, asked: Sequence[str] | None) -> list[str]:
        """The faults and layers of those asked for by name of which none struck."""
        struck = {*self.faults, *(LAYER_OF[name] for name in self.faults if name in LAYER_OF)}
        return [name for name in asked or () if name not in struck]

    def as_json(self, seed: str, asked: Sequence[str] | None = None) -> dict[str, Any]:
        """The object of `campaign --json`; `asked`: the faults that were named."""
        return {
            "shoes": self.shoes,
            "seed": seed,
            "rounds": self.rounds,
            "cards": self.cards,
            "faults_injected": dict(sorted(self.faults.items())),
            "restarts": self.restarts,
            **asdict(self.counters),
            "failures": [_failure(seed, found) for found in self.failures],
            "played": self.played,
            "tables": self.tables,
            "stopped": dict(sorted(self.stopped.items())),
            "kinds": len(self.faults),
            "never_struck": self.never_struck(asked),
            "simulated_s": round(self.simulated_s, 1),
            "events": self.events,
        }

    def as_text(self, seed: str, wall_s: float, asked: Sequence[str] | None = None) -> str:
        """The summary for people; `wall_s` is what it took here, `asked` the faults that were named."""
        hours, struck = self.simulated_s / 3600, self.faults.total()
        tables = f"{self.tables} table{'s' * (self.tables != 1)}"
        rows = [
            ("shoes", f"{self.shoes} begun, {self.played} dealt to their end, at {tables}"),
            ("seed", seed),
            ("rounds", f"{self.rounds}, with {self.cards} cards"),
            ("faults", f"{struck} struck, of {len(self.faults)} kinds" if struck else "none"),
            *(("never struck", ", ".join(never)) for never in [self.never_struck(asked)] if never),
            ("restarts", f"{self.restarts} of the daemon"),
            ("stopped", _counts(self.stopped) or "no table before its time"),
            *((name.replace("_", " "), str(count)) for name, count in asdict(self.counters).items()),
            ("failures", str(len(self.failures))),
            ("time", f"{hours:.1f} h at the tables, {wall_s:.1f} s here"),
        ]
        wide = max(len(name) for name, _ in rows)
        text = "\n".join(f"{name:<{wide}}  {value}" for name, value in rows)
        return "\n\n".join([text, *map(_told, self.failures)])


def replay_command(seed: str, shoe: int, *options: str) -> str:
    """What to type to play a shoe again."""
    return shlex.join(["cutcard", "campaign", "--replay", f"{seed}:{shoe}", *options])


def _failure(seed: str, found: Found) -> dict[str, Any]:
    told = {"seed": seed, "shoe": found.shoe, "what": found.what, "replay": found.replay}
    more = {"table": found.table, "script": found.script, "scripted": found.scripted}
    return told | {name: value for name, value in more.items() if value}


def _told(found: Found) -> str:
    lines = [f"shoe {found.shoe}: {found.what}", f"  again: {found.replay}"]
    if found.table:
        least = "the least that does it" if "- " in found.script else "it comes without any fault"
        lines.append(f"  {least}, at the table {found.table}; saved as a file: {found.scripted}")
    lines += [f"    {line}" for line in found.script.splitlines()]
    return "\n".join(lines)


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
