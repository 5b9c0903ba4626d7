"""A table's state as plain data and back, for the checkpoint fact; also of versions before this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Any, cast

from controller.table.faults import Blocks, blocks
from controller.table.phases import Phase
from controller.table.state import (
    Batch,
    Cash,
    Closing,
    Cycle,
    Dealt,
    Device,
    Ending,
    Fault,
    Hand,
    Pending,
    Place,
    Prep,
    Proof,
    Round,
    Shoe,
    Shuffled,
    Shuffler,
    TableState,
)

_FIELDS: dict[type, tuple[str, ...]] = {
    cls: tuple(f.name for f in fields(cls))
    for cls in (Batch, Cash, Dealt, Device, Fault, Hand, Pending, Proof, Round, Shoe, Shuffler, TableState)
}


def checkpoint(state: TableState) -> dict[str, Any]:
    """The whole state as plain data, for the checkpoint fact. Holds no unseen card at a shoe's end."""
    return cast("dict[str, Any]", _plain(state))


def _plain(value: Any) -> Any:
    names = _FIELDS.get(type(value))
    if names is not None:
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, dict):
        return {_plain(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def restore(plain: Mapping[str, Any]) -> TableState:
    """The state that `checkpoint` wrote."""
    round_ = plain["round"]
    return TableState(
        **{
            **{name: plain[name] for name in _FIELDS[TableState] if name in plain},
            "phase": Phase(plain["phase"]),
            "batches": {k: _batch(v) for k, v in plain["batches"].items()},
            "shuffler": Shuffler(**{**plain["shuffler"], "stage": Cycle(plain["shuffler"]["stage"])}),
            "shoe": Shoe(
                **{
                    **plain["shoe"],
                    "closing": Closing(plain["shoe"]["closing"]),
                    "early": tuple(Dealt(**c) for c in plain["shoe"]["early"]),
                }
            ),
            "round": None
            if round_ is None
            else Round(
                **{
                    **round_,
                    "boxes": tuple(round_["boxes"]),
                    "cards": tuple(Dealt(**c) for c in round_["cards"]),
                    "order": tuple(round_.get("order", ())),
                    "hands": tuple(Hand(**h) for h in round_.get("hands", ())),
                    "insured": tuple(round_.get("insured", ())),
                    "match": tuple(round_.get("match", ())),
                    "cash": tuple(Cash(**c) for c in round_.get("cash", ())),
                    "left_out": tuple(round_.get("left_out", ())),
                }
            ),
            "last_boxes": tuple(plain["last_boxes"]),
            "declined": tuple(plain["declined"]),
            "devices": {k: Device(**v) for k, v in plain["devices"].items()},
            "pending": {k: Pending(**v) for k, v in plain["pending"].items()},
            "faults": tuple(_fault(f) for f in plain["faults"]),
            "keys": dict(plain["keys"]),
            "empty": tuple(plain.get("empty", ())),
            "seals": tuple(plain.get("seals", ())),
            "ending": Ending(plain.get("ending", Ending.SWAP)),
            "dry_in": None if plain.get("dry_in") is None else Phase(plain["dry_in"]),
        }
    )


def _fault(plain: Mapping[str, Any]) -> Fault:
    """One that is an alarm now went with its cause: at a shoe's end nothing of the round is left."""
    now, was = blocks(plain["code"], plain["blocks"]), Blocks(plain["blocks"])
    gone = plain.get("gone") if now is was else plain["again"]
    return Fault(**{**plain, "blocks": now, "gone": gone})


def _batch(plain: Mapping[str, Any]) -> Batch:
    """Before preparation was journaled, a table played with what was prepared beside it."""
    proof = plain["proof"]
    return Batch(
        **{
            **plain,
            "cards": {Place(p): n for p, n in plain["cards"].items()},
            "proof": None
            if proof is None
            else Proof(**{**proof, "how": Shuffled(proof.get("how", Shuffled.MACHINE))}),
            "missing": tuple(plain.get("missing", ())),
            "prep": Prep(plain.get("prep", Prep.WASHED)),
            "orders": tuple(plain.get("orders", ())),
        }
    )
