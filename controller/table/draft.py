"""A decision, and how it is drafted: facts are applied to a provisional state as they are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controller.table.faults import FAULTS
from controller.table.inputs import Command, Fact
from controller.table.phases import IN_ROUND, TRANSITIONS, Phase
from controller.table.profiles import Burn, CutPolicy, TableRules
from controller.table.round import HOLE
from controller.table.state import Ending, Shuffled, TableState
from firmware_bridge.frozen import value


@value
class Decision:
    """Facts to commit, the state after each of them, and the effects that may follow the commit."""

    facts: tuple[Fact, ...] = ()
    states: tuple[TableState, ...] = ()
    effects: tuple[Command, ...] = ()


@dataclass
class Draft:
    """Collects facts and effects; `source` is the origin every fact of this decision carries.

    `evolve` is given, for the rooms that draft facts also say what those do to the state.
    """

    rules: TableRules
    state: TableState
    source: str
    evolve: Callable[[TableState, Fact], TableState]
    facts: list[Fact] = field(default_factory=list)
    states: list[TableState] = field(default_factory=list)
    effects: list[Command] = field(default_factory=list)

    @property
    def next_seq(self) -> int:
        """The number the next fact will get."""
        return self.state.seq + 1

    def add(self, kind: str, data: Mapping[str, Any], sealed: Mapping[str, Any] | None = None) -> None:
        fact = Fact(kind, self.source, data, sealed or {})
        self.facts.append(fact)
        self.state = self.evolve(self.state, fact)
        self.states.append(self.state)

    def moves(self, trigger: str) -> dict[str, Any]:
        """The `moves` entry of a fact: trigger and next phase, or nothing when the phase stays."""
        dest = destination(self.rules, self.state, trigger)
        return {} if dest is None else {"moves": [trigger, dest.value]}

    def latch(self, code: str, cause: str, *, batch: str | None = None, device: str | None = None) -> None:
        """Latch a fault unless the same one is latched already: the first cause is kept (law 6).

        An alarm whose cause was gone, and that nobody acknowledged, is raised again under its number. What
        puts a batch out of play is told again: only a batch that comes after that is free of it, and one that
        came before becomes unfit as well.
        """
        kind, which = FAULTS[code], (code, batch, device)
        known = next((f for f in self.state.faults if (f.code, f.batch, f.device) == which), None)
        if known is not None and known.gone is None:
            if kind.unfit and batch is not None:
                self.add("fault_again", {"fault": known.id, "cause": cause, "unfit": batch, "code": code})
            return
        self.add(
            "fault_latched",
            {
                "fault": f"F{self.next_seq}" if known is None else known.id,
                "code": code,
                "blocks": kind.blocks.value,
                "cause": cause,
                "batch": batch,
                "device": device,
                "unfit": kind.unfit,
            },
        )

    def gone(self, code: str, *, batch: str | None = None, device: str | None = None) -> None:
        """The cause of an alarm is gone, if it was raised. Only a clear ends a latched fault (law 6)."""
        for alarm in self.state.faults:
            if (alarm.code, alarm.batch, alarm.device, alarm.gone) == (code, batch, device, None):
                self.add("alarm_gone", {"fault": alarm.id, "code": code})

    def command(self, device: str, name: str, args: Mapping[str, Any] | None = None) -> None:
        """Issue a command: the fact is committed before the effect is carried out (law 4)."""
        call_id = f"C{self.next_seq}"
        self.add(
            "command_issued", {"call": call_id, "device": device, "command": name, "args": dict(args or {})}
        )
        self.effects.append(Command(device, call_id, name, dict(args or {})))

    def ask_shuffler(self, name: str, args: Mapping[str, Any] | None = None) -> None:
        """A command to the shuffler of this table."""
        assert self.rules.shuffler is not None
        self.command(self.rules.shuffler, name, args)

    def done(self) -> Decision:
        return Decision(tuple(self.facts), tuple(self.states), tuple(self.effects))


def last_round(rules: TableRules, state: TableState) -> bool:
    """No round follows the one in play (R-26, S5), or none ever does: one deck a round (R-52)."""
    return rules.per_round or state.shoe.closing.value == "this_round"


def hole_card_is_out(rules: TableRules, state: TableState) -> bool:
    """A card drawn before its time was used as the next one, the dealer's second card (R-32).

    Where no device counts, nobody waits for it.
    """
    round_ = state.round
    return rules.by_eye or (round_ is not None and round_.placed >= len(round_.order))


def no_cut(rules: TableRules, state: TableState) -> bool:
    """The batch in hand goes to the shoe without a cut: machine-shuffled, where a switch says so (R-52)."""
    batch = state.batches.get(state.taken or "")
    return (
        rules.cut is CutPolicy.HAND_SHUFFLED
        and batch is not None
        and batch.proof is not None
        and batch.proof.how is Shuffled.MACHINE
    )


def alone_no_cut(rules: TableRules, state: TableState) -> bool:
    """The same for the one batch of this table, which comes out of the shuffler now."""
    return rules.alone and rules.cut is CutPolicy.HAND_SHUFFLED


def _dry_in(phase: Phase) -> Callable[[TableRules, TableState], bool]:
    return lambda rules, state: state.dry_in is phase


GUARDS: dict[str, Callable[[TableRules, TableState], bool]] = {
    "always": lambda rules, state: True,
    "burn_on_dealer_change": lambda rules, state: (
        rules.burn_on_dealer_change and rules.burn is not Burn.NEVER and not rules.night
    ),
    "settle_first": lambda rules, state: rules.settle_first,
    "last_round": last_round,
    "hole_card_is_out": hole_card_is_out,
    "shuffled_in_hand": lambda rules, state: (
        not rules.continuous and state.taken not in (None, state.shoe.last_batch)
    ),
    "continuous": lambda rules, state: rules.continuous,
    "not_its_turn": lambda rules, state: (
        state.shuffler.batch is not None and state.shuffler.batch == state.shoe.last_batch
    ),
    "no_cut": no_cut,
    "alone": lambda rules, state: rules.alone and not rules.continuous,
    "alone_certified": lambda rules, state: rules.alone and not rules.continuous and state.taken is not None,
    "alone_no_cut": alone_no_cut,
    "alone_ready": lambda rules, state: alone_no_cut(rules, state) and not rules.marked,
    "ready": lambda rules, state: no_cut(rules, state) and not rules.marked,
    "no_cutting_card": lambda rules, state: not rules.marked,
    "burns_each_load": lambda rules, state: rules.burn is Burn.EACH_LOAD,
    "burns_each_round": lambda rules, state: rules.burn is Burn.EACH_ROUND,
    "by_eye": lambda rules, state: rules.by_eye,
    "by_eye_settle_first": lambda rules, state: rules.by_eye and rules.settle_first,
    "no_hole_card": lambda rules, state: state.round is not None and HOLE not in state.round.order,
    "burn_after_dry": lambda rules, state: rules.burn_after_dry and not rules.night,
    **{f"dry_in_{phase}": _dry_in(phase) for phase in IN_ROUND},
    "going_idle": lambda rules, state: state.ending is Ending.IDLE,
    "going_to_close": lambda rules, state: state.ending is Ending.CLOSE,
}
"""The predicates that `phases.TRANSITIONS` names; each returns a real bool."""


_LEADS = {
    trigger: tuple(t for t in TRANSITIONS if t.trigger == trigger)
    for trigger in sorted({t.trigger for t in TRANSITIONS})
}


def destination(rules: TableRules, state: TableState, trigger: str) -> Phase | None:
    """The phase that `trigger` leads to from here, or None when it leads nowhere else."""
    for transition in _LEADS.get(trigger, ()):
        if state.phase in transition.sources:
            if GUARDS[transition.guard](rules, state):
                return transition.dest
    return None
