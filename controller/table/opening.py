"""Batches and devices before use: inspected, certified, washed, too old, replaced (R-12, R-13, R-42)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from controller.table import args
from controller.table.args import Apply, Args, Judge, Judged
from controller.table.changes import move_all, with_batch
from controller.table.faults import FAULTS
from controller.table.inputs import OperatorEvent, Refusal, Role
from controller.table.phases import PREPARING, Phase
from controller.table.profiles import TableRules
from controller.table.state import READY, Batch, Place, Prep, TableState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.table.draft import Draft

STEPS: dict[str, tuple[Prep, Prep]] = {
    "inspect": (Prep.RECEIVED, Prep.INSPECTED),
    "verify": (Prep.INSPECTED, Prep.VERIFIED),
    "spread": (Prep.VERIFIED, Prep.SPREAD),
    "player_inspected": (Prep.SPREAD, Prep.PLAYER_INSPECTED),
    "wash": (Prep.PLAYER_INSPECTED, Prep.WASHED),
}
"""What each step of the inspection at the table needs and leads to (R-13), each batch apart."""
IN_TURN = "13:69F-2.4"
EVERY_ROLE = frozenset(Role)


def open_table(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    return {"cards": rules.batch_size, "backs": {b.id: b.back for b in rules.batches}}


# --- inspected at the table (R-13) ---


def _step(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    batch = _meant(rules, state, tap.event, tap.args)
    held, (needs, _) = state.batches[batch], STEPS[tap.event]
    if state.phase is Phase.IDLE and held.prep in READY and tap.event in ("spread", "player_inspected"):
        return _idle_step(rules, held, tap.event)
    if held.unfit:
        return Refusal("batch_unfit", f"batch {batch} is out of play: {FAULTS[held.unfit].text}")
    if held.at(Place.IN_HAND) != rules.batch_size:
        why = f"only {held.at(Place.IN_HAND)} of {rules.batch_size} cards of batch {batch} are in hand"
        return Refusal("batch_not_in_hand", why, IN_TURN)
    if held.prep is not needs:
        return Refusal("not_in_turn", f"batch {batch} is {_words(held.prep)}", IN_TURN, due(batch, held.prep))
    if tap.event == "verify":
        if tap.who == held.inspected_by and not tap.roles >= EVERY_ROLE:
            return Refusal("same_person", f"{tap.who} inspected batch {batch}: another person verifies it")
        return {"batch": batch, "inspected_by": held.inspected_by}
    return {"batch": batch}


def _idle_step(rules: TableRules, held: Batch, event: str) -> Judged:
    """Nobody plays: the cards of the rack lie spread until somebody comes (S8, R-21)."""
    place = Place.RACK if event == "spread" else Place.IN_HAND
    if held.at(place) != rules.batch_size:
        where = "in the rack" if event == "spread" else "spread"
        return Refusal("batch_not_in_hand", f"batch {held.id} is not {where}", "58 Pa. Code 633a.5(g)")
    return {"batch": held.id, "idle": True}


def _meant(rules: TableRules, state: TableState, event: str, given: Args) -> str:
    """The batch named, or the one that waits for this step."""
    if "batch" in given:
        return args.batch(rules, given)
    waits = [b.id for b in state.batches.values() if b.cards and b.prep is STEPS[event][0]]
    if state.phase is Phase.IDLE and not waits:
        waits = [b.id for b in state.batches.values() if not b.at(Place.SHUFFLER)]
    if len(waits) != 1:
        raise ValueError(f"batch={'|'.join(waits) or 'NAME'} is missing")
    return waits[0]


def _words(prep: Prep) -> str:
    return prep.value.replace("_", " ")


def due(batch: str, prep: Prep) -> tuple[str, ...]:
    """The next step of a batch that is not ready yet."""
    return tuple(f"{event} batch={batch}" for event, (needs, _) in STEPS.items() if needs is prep)


def not_prepared(held: Batch) -> Refusal | None:
    """Why a batch may not be shuffled yet: it was neither prepared at the table nor certified (R-12)."""
    if held.prep in READY:
        return None
    steps = "it must be inspected, verified, spread, shown to a player and washed"
    why = f"batch {held.id} is {_words(held.prep)}: {steps}"
    return Refusal("not_prepared", why, IN_TURN, due(held.id, held.prep))


def _inspect(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if state.phase not in PREPARING:
        why = f"a batch is not inspected now: the table is in phase {state.phase.value}"
        return Refusal("unexpected", why, IN_TURN)
    return _step(rules, state, tap)


def _stepped(state: TableState, data: Mapping[str, Any], prep: Prep) -> TableState:
    return state if "idle" in data else with_batch(state, data["batch"], prep=prep)


def _inspected(state: TableState, data: Mapping[str, Any]) -> TableState:
    return with_batch(state, data["batch"], prep=Prep.INSPECTED, inspected_by=data["who"])


def _spread(state: TableState, data: Mapping[str, Any]) -> TableState:
    if "idle" in data:
        return move_all(state, data["batch"], Place.RACK, Place.IN_HAND)
    return with_batch(state, data["batch"], prep=Prep.SPREAD)


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {
    "open": (open_table, ()),
    "inspect": (_inspect, ("batch",)),
    "verify": (_step, ("batch",)),
    "spread": (_step, ("batch",)),
    "player_inspected": (_step, ("batch",)),
    "wash": (_step, ("batch",)),
}
APPLY: dict[str, Apply] = {
    "inspect": _inspected,
    "verify": lambda state, data: _stepped(state, data, Prep.VERIFIED),
    "spread": _spread,
    "player_inspected": lambda state, data: _stepped(state, data, Prep.PLAYER_INSPECTED),
    "wash": lambda state, data: _stepped(state, data, Prep.WASHED),
}
FOLLOW: dict[str, Callable[[Draft, TableState], None]] = {}


def examples(rules: TableRules, state: TableState, event: str) -> list[tuple[str, Args]]:
    """The arguments with which this module's events may be called for now."""
    return [(f"batch={b.id}", {"batch": b.id}) for b in rules.batches]
