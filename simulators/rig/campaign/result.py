"""What a campaign asks for, and what it found."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, fields

from controller.table.profiles import TableRules
from simulators.faults.script import Step
from simulators.rig.felt import MANAGED_SHOE


@dataclass(frozen=True, slots=True)
class Plan:
    """One table: what is played there, from which seed, for how many shoes, and what goes wrong.

    `table` is the name of its kind, `shoe` the driver of its shoe, `first` the number of its first shoe.
    Without `rules` there is a shoe alone, and a driver that listens to it.
    """

    table: str
    rules: TableRules | None
    shoe: str = MANAGED_SHOE
    seed: str = ""
    shoes: int = 1
    steps: tuple[Step, ...] = ()
    first: int = 1


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
        for name in (each.name for each in fields(self)):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


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
