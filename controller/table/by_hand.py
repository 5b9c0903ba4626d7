"""A whole batch shuffled by hand: at a table without its shuffler, or the same batch once more (S5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from controller.table import args
from controller.table.args import Judged
from controller.table.changes import move_all, with_batch
from controller.table.faults import FAULTS
from controller.table.inputs import OperatorEvent, Refusal
from controller.table.phases import Phase
from controller.table.profiles import Discretionary, TableRules
from controller.table.state import READY, Batch, Place, Proof, Shuffled, TableState


def judge(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    """Between two shoes: at a table without its shuffler, or the same batch again by a switch (S5)."""
    batch = args.batch(rules, tap.args)
    held = state.batches[batch]
    if held.unfit:
        return Refusal("batch_unfit", f"batch {batch} is out of play: {FAULTS[held.unfit].text}")
    if not state.manual and not same_again(rules, state, batch):
        why = "the shuffler shuffles; by hand only after `shuffle_now`, where the table's switch says so"
        return Refusal("not_by_hand", why, "13:69F-2.2(d)")
    if state.shuffler.letting_out:
        return Refusal("shuffler_busy", "the shuffler is letting the batch out", "13:69F-2.2(d)3")
    if held.at(Place.IN_HAND) + held.at(Place.RACK) != rules.batch_size:
        return Refusal("batch_not_whole", f"not every card of batch {batch} is in hand or in the rack")
    if held.prep not in READY:
        return Refusal("not_prepared", f"batch {batch} is not prepared", "13:69F-2.4")
    return {"batch": batch}


def same_again(rules: TableRules, state: TableState, batch: str) -> bool:
    """Whether the licensee ended this shoe, and may have its batch dealt again (S5)."""
    return (
        rules.discretionary is Discretionary.SAME_BATCH
        and state.phase is Phase.RACK_FULL
        and state.shoe.by_choice
        and batch == state.shoe.last_batch
    )


def shuffled(state: TableState, data: Mapping[str, Any]) -> TableState:
    """The rack is emptied: no card of another batch lies in it when the next shoe begins (R-08)."""
    batch: str = data["batch"]
    for each in state.batches:
        state = move_all(state, each, Place.RACK, Place.IN_HAND)
    state = with_batch(state, batch, proof=Proof("", 0, Shuffled.HAND), cut=False)
    return replace(state, cutter=None, declined=())


def again(state: TableState, held: Batch) -> bool:
    """The batch of the last shoe goes in once more, shuffled by hand: it is the same turn (S5)."""
    by_hand = held.proof is not None and held.proof.how is Shuffled.HAND
    return by_hand and not state.manual and held.id == state.shoe.last_batch
