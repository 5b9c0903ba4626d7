"""The flat `transitions` machine over the phases (law 8), built from the same list the rules use.

It holds no truth: `follow` replays each committed fact's move on the library's machine, whose guards ask
the rules, and raises when the two do not agree. Callbacks do no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from transitions import EventData, Machine, MachineError

from controller.table import rules as judge
from controller.table.draft import GUARDS
from controller.table.inputs import Fact, OperatorEvent
from controller.table.phases import TRANSITIONS, Phase
from controller.table.profiles import TableRules
from controller.table.state import TableState


class Disagreement(Exception):
    """The machine and the rules lead to different phases: latched, never guessed (law 6)."""


class TableMachine:
    """One machine a table. `phase` is read-only; only `follow` and `may` fire triggers."""

    def __init__(self, rules: TableRules, state: TableState) -> None:
        self._rules = rules
        self._machine = Machine(
            model=None,
            states=Phase,
            initial=state.phase,
            transitions=None,
            auto_transitions=False,
            send_event=True,
            ignore_invalid_triggers=False,
            queued=False,
            model_attribute="phase",
        )
        self._model = _Model(rules)
        self._machine.add_model(self._model, initial=state.phase)
        for row in TRANSITIONS:
            self._machine.add_transition(
                row.trigger,
                list(row.sources),
                row.dest if row.dest is not None else "=",
                conditions=["accepted", f"is_{row.guard}"],
            )
        self.check()

    @property
    def phase(self) -> Phase:
        """Where the machine stands."""
        return self._model.phase

    def stand(self, state: TableState) -> None:
        """Stand where the table does."""
        self._machine.set_state(state.phase, self._model)

    def may(self, state: TableState, tap: OperatorEvent) -> bool:
        """Whether the machine would take the tap from `state`: asks every guard, changes nothing."""
        if tap.event not in self._machine.events:
            return False
        self.stand(state)
        self._model.view(state, tap)
        return bool(getattr(self._model, f"may_{tap.event}")())

    def follow(self, before: TableState, fact: Fact, after: TableState) -> None:
        """Make the move of one committed fact. Raises Disagreement when the machine will not go there."""
        move = fact.data.get("moves")
        if move is None:
            dest = before.phase
        else:
            self._model.view(before, None)
            try:
                getattr(self._model, move[0])()
            except (MachineError, AttributeError) as error:
                raise Disagreement(f"fact {after.seq}: {error}") from error
            dest = Phase(move[1])
        if not self._model.phase == dest == after.phase:
            raise Disagreement(
                f"fact {after.seq} leads to {after.phase.value}, the machine to {self._model.phase.value}"
            )

    def check(self) -> None:
        """The start-up self-check: the library accepts misspelt callbacks and destinations, we don't."""
        for name, event in self._machine.events.items():
            for source, rows in event.transitions.items():
                for row in rows:
                    for condition in row.conditions:
                        if not callable(getattr(self._model, str(condition.func), None)):
                            raise TypeError(f"{name} from {source}: no guard {condition.func}")
                    if row.dest is not None and row.dest not in self._machine.states:
                        raise TypeError(f"{name} from {source}: no phase {row.dest}")
        strays = [n for n in dir(self._model) if n.startswith("to_")]
        if strays:
            raise TypeError(f"the machine has back doors: {strays}")


class _Model:
    """What the library moves about; its guards return real bools and ask the rules."""

    phase: Phase

    def __init__(self, rules: TableRules) -> None:
        self._rules = rules
        self._state: TableState | None = None
        self._tap: OperatorEvent | None = None
        for name, guard in GUARDS.items():
            setattr(self, f"is_{name}", partial(self._holds, guard))

    def view(self, state: TableState, tap: OperatorEvent | None) -> None:
        """What the guards judge by; without a tap the fact has happened and only guards of the way count."""
        self._state, self._tap = state, tap

    def accepted(self, _event: EventData) -> bool:
        """Whether the rules accept the tap in view."""
        assert self._state is not None
        return self._tap is None or judge.accepts(self._rules, self._state, self._tap)

    def _holds(self, guard: Callable[[TableRules, TableState], bool], _event: EventData) -> bool:
        assert self._state is not None
        return guard(self._rules, self._state)


def mermaid() -> str:
    """The machine as it runs, as a mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {Phase.CLOSED.value}"]
    for row in TRANSITIONS:
        if row.dest is not None:
            guard = "" if row.guard == "always" else f" [{row.guard}]"
            lines += [
                f"    {source.value} --> {row.dest.value}: {row.trigger}{guard}" for source in row.sources
            ]
    return "\n".join(lines) + "\n"


def rows() -> list[dict[str, Any]]:
    """The machine as it runs, one object a transition; `tap` false is what only a device proves."""
    return [
        {
            "trigger": row.trigger,
            "source": source.value,
            "dest": (source if row.dest is None else row.dest).value,
            "guard": row.guard,
            "tap": row.tap,
        }
        for row in TRANSITIONS
        for source in row.sources
    ]


def table() -> str:
    """The machine as it runs, one line a transition; `(device)` marks what no tap can bring about."""
    lines = []
    for row in TRANSITIONS:
        guard = "" if row.guard == "always" else f" [{row.guard}]"
        proof = "" if row.tap else " (device)"
        for source in row.sources:
            dest = source if row.dest is None else row.dest
            lines.append(f"{source.value:<16} {row.trigger + guard + proof:<42} {dest.value}")
    return "\n".join(lines) + "\n"
