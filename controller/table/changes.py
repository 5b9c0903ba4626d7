"""Small changes of a state that several facts share. Pure; they judge nothing."""

from __future__ import annotations

from typing import Any

from controller.table.state import Place, TableState
from firmware_bridge.frozen import replace


def with_device(state: TableState, device: str, **changes: Any) -> TableState:
    return replace(state, devices={**state.devices, device: replace(state.device(device), **changes)})


def with_batch(state: TableState, batch: str, **changes: Any) -> TableState:
    return replace(state, batches={**state.batches, batch: replace(state.batches[batch], **changes)})


def with_shuffler(state: TableState, **changes: Any) -> TableState:
    return replace(state, shuffler=replace(state.shuffler, **changes))


def with_shoe(state: TableState, **changes: Any) -> TableState:
    return replace(state, shoe=replace(state.shoe, **changes))


def move(state: TableState, batch: str, count: int, source: Place, dest: Place) -> TableState:
    """`count` cards of the batch go from one place to another."""
    moved = state.batches[batch].move(count, source, dest)
    return replace(state, batches={**state.batches, batch: moved})


def move_all(state: TableState, batch: str, source: Place, dest: Place) -> TableState:
    """Every card of the batch that is at `source` goes to `dest`."""
    return move(state, batch, state.batches[batch].at(source), source, dest)


def table_to_rack(state: TableState) -> TableState:
    """The cards of the round are picked up."""
    batch = state.shoe.batch
    return state if batch is None else move_all(state, batch, Place.TABLE, Place.RACK)
