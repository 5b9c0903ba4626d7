"""A shoe that lets cards out in stacks, and only when it is asked to (R-53).

It is asked for a stack by the number of its first card, as the shoe itself counts: none is let out twice,
whatever became of the answer (law 5). A stack ends with its last card, or with what stopped it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

from controller.table import event_facts
from controller.table.args import Apply, Judge, Judged
from controller.table.cards import count_of
from controller.table.changes import with_shoe
from controller.table.draft import Draft
from controller.table.inputs import OperatorEvent, Refusal
from controller.table.phases import Phase
from controller.table.profiles import TableRules
from controller.table.round import STUB
from controller.table.state import Place, TableState
from devices import events as ev
from firmware_bridge.link import Done, NotSent, Outcome, Refused


def next_stack(state: TableState) -> tuple[str, int]:
    """For whom the next stack is, and how many cards are still due to it; after the deal it is the stub."""
    round_, batch = state.round, state.shoe.batch
    if state.phase is not Phase.DEALING or round_ is None:
        return STUB, 0 if batch is None else state.batches[batch].at(Place.SHOE)
    due = round_.order[round_.placed :]
    return due[0], len(list(takewhile(lambda place: place == due[0], due)))


def holds_more(state: TableState) -> bool:
    """Whether every card of the batch is out, and the shoe is not empty."""
    return not state.shoe.empty and not next_stack(state)[1]


def _judge_dispense(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    clause = rules.one_deck.clause if rules.one_deck else None
    if not rules.stacks:
        why = "the dealer draws the cards of this table: its shoe lets out no stacks"
        return Refusal("no_stacks", why, clause)
    if state.silent(rules.shoe):
        return Refusal("device_absent", "the shoe does not answer: check its cable and power", clause)
    if any(pending.device == rules.shoe for pending in state.pending.values()):
        return Refusal("shoe_busy", "the shoe has not answered yet", clause)
    if state.shoe.asked > state.shoe.told:
        left = state.shoe.asked - state.shoe.told
        return Refusal("shoe_busy", f"{count_of(left)} of the last stack still to come", clause)
    if state.uncertain:
        void = ("void_round reason=other",) if state.round else ()
        why = "cards may have come out uncounted: take the rest out by hand"
        return Refusal("not_counted", why, clause, void)
    to, count = next_stack(state)
    if state.shoe.empty:
        return Refusal("shoe_empty", "no card is left in the shoe", clause)
    if holds_more(state):
        return Refusal("shoe_empty", "every card of the batch is out", clause)
    return {"to": to, "count": count, "drawn": state.shoe.told}


def _dispense(state: TableState, data: Mapping[str, Any]) -> TableState:
    return with_shoe(state, asked=data["drawn"] + data["count"])


def _after_dispense(draft: Draft, before: TableState) -> None:
    assert draft.rules.shoe is not None
    tap = draft.facts[0].data
    draft.command(draft.rules.shoe, "dispense", {"count": tap["count"], "drawn": tap["drawn"]})


# --- how it ends ---


def stopped(draft: Draft, why: str) -> None:
    """No more cards of the stack come: what is left of it may be asked for again."""
    if draft.state.shoe.asked > draft.state.shoe.told:
        draft.add("stack_stopped", {"why": why})


def jammed(draft: Draft, event: ev.Jam) -> None:
    """The alarm goes with the next card that comes out."""
    event_facts.record(draft, event)
    if draft.state.shoe.batch is not None:
        draft.latch("shoe_jam", f"cards jammed at {event.place}", batch=draft.state.shoe.batch)
    stopped(draft, "cards jammed")


def command_ended(draft: Draft, name: str, outcome: Outcome) -> None:
    """A stack that nobody can tell of is asked after; its cards would come as events (law 5)."""
    assert draft.rules.shoe is not None
    if name == "dispense" and isinstance(outcome, Refused | NotSent):
        stopped(draft, "the shoe did not begin")
    elif name == "dispense" and not isinstance(outcome, Done):
        draft.command(draft.rules.shoe, "status")
    elif name == "status" and isinstance(outcome, Done):
        reconcile(draft, outcome.answer)


def reconcile(draft: Draft, status: Mapping[str, Any]) -> None:
    """It rests and has counted no card that was not told: the stack does not come, or not the rest of it."""
    if status.get("dispensing") is False and status.get("drawn") == draft.state.shoe.told:
        stopped(draft, "the shoe rests")


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {"dispense": (_judge_dispense, ())}
APPLY: dict[str, Apply] = {
    "dispense": _dispense,
    "stack_stopped": lambda state, data: with_shoe(state, asked=0),
}
FOLLOW: dict[str, Callable[[Draft, TableState], None]] = {"dispense": _after_dispense}
