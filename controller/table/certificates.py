"""Certificates of pre-shuffled batches, and the shuffle that a patron may demand of one (R-47 to R-49)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from controller.table import args, opening
from controller.table.args import Apply, Args, Judge, Judged
from controller.table.changes import with_batch
from controller.table.draft import Draft
from controller.table.inputs import OperatorEvent, Refusal
from controller.table.profiles import TableRules
from controller.table.state import SEALS_KEPT, Batch, Place, Prep, Proof, Shuffled, TableState
from firmware_bridge.frozen import replace

CERTIFIED = "13:69E-1.18A(b)4"
DEMANDED = "13:69E-1.18A"
TEXT_LENGTH = 80
HOUR_S = 3600


def _certificate(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    batch = args.batch(rules, tap.args)
    held = state.batches[batch]
    said = {name: _text(tap.args, name) for name in ("maker", "model", "serial", "operator", "at", "seal")}
    args.moment("at", said["at"])
    numbers = {name: args.whole(tap.args, name) for name in ("decks", "cards")}
    result, intact = _text(tap.args, "result"), args.flag(tap.args, "seal_intact")
    refused = opening.not_at_hand(rules, held)
    if refused is not None:
        return refused
    if held.prep is not Prep.RECEIVED:
        why = f"batch {batch} is {opening.words(held.prep)}: it is prepared in one way or the other"
        return Refusal("not_in_turn", why, opening.IN_TURN, opening.due(held))
    wanted = {"decks": rules.decks, "cards": rules.batch_size}
    wrong = [f"{name} {numbers[name]} instead of {n}" for name, n in wanted.items() if numbers[name] != n]
    wrong += [] if result == "ok" else [f"result {result}"]
    wrong += [] if intact else ["the seal is broken"]
    wrong += [f"at {said['at']} lies ahead of the clock here"] if _ahead(state, said["at"]) else []
    if wrong:
        return Refusal("certificate_wrong", "; ".join(wrong), CERTIFIED, opening.due(held))
    token = " ".join(" ".join(said[name] for name in ("maker", "serial", "seal")).casefold().split())
    if token in state.seals:
        return Refusal("certificate_used", "a batch came under this seal before", CERTIFIED)
    return {"batch": batch, **said, **numbers, "result": result, "seal_intact": intact, "token": token}


def _ahead(state: TableState, at: str) -> bool:
    """Whether that time is after the hour it is now; without a zone it is this table's. Unknown: no."""
    when = datetime.fromisoformat(at)
    if not state.local:
        return False
    if when.tzinfo is not None:
        return when.timestamp() >= (state.hour + 1) * HOUR_S
    return when >= datetime.fromisoformat(state.local) + timedelta(hours=1)


def _text(given: Args, name: str) -> str:
    text = str(given.get(name, "")).strip()
    if not (text.isprintable() and 0 < len(text) <= TEXT_LENGTH):
        raise ValueError(f"{name}= is missing, or no text of 1 to {TEXT_LENGTH} characters")
    return text


def _certified(state: TableState, data: Mapping[str, Any]) -> TableState:
    proof = Proof(data["token"], 0, Shuffled.CERTIFICATE)
    state = replace(state, seals=(*state.seals, data["token"])[-SEALS_KEPT:])
    return with_batch(state, data["batch"], prep=Prep.CERTIFIED, proof=proof, cut=False)


def _demanded(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    """Any patron may have a pre-shuffled batch shuffled before it is dealt (R-49).

    Whoever comes to an idle table may have the batch that lay in the machine inspected and shuffled (R-21).
    """
    certified = [b for b in state.batches.values() if b.proof and b.proof.how is Shuffled.CERTIFICATE]
    meant = certified or list(state.batches.values())
    if "batch" not in tap.args and len(meant) != 1:
        raise ValueError(f"batch={'|'.join(b.id for b in meant)} is missing")
    batch = args.batch(rules, tap.args) if "batch" in tap.args else meant[0].id
    held = state.batches[batch]
    if state.shoe.batch == batch and held.prep is Prep.CERTIFIED:
        why = f"batch {batch} is in the shoe: end the shoe"
        return Refusal("batch_in_use", why, DEMANDED, ("shuffle_now",))
    if held not in certified and not rules.night and _lay_stored(state, held):
        return {"batch": batch, "inspect": True}
    if held not in certified:
        return Refusal("not_certified", f"batch {batch} is not used on a certificate alone", DEMANDED)
    return {"batch": batch}


def _lay_stored(state: TableState, held: Batch) -> bool:
    """Whether the batch was taken out of the machine for the first player since the table was idle."""
    nobody_since = bool(state.shoe.number) and not state.last_boxes
    return nobody_since and held.proof is not None and bool(held.at(Place.IN_HAND))


def _demand(state: TableState, data: Mapping[str, Any]) -> TableState:
    return with_batch(state, data["batch"], prep=Prep.VERIFIED) if data.get("inspect") else state


def _after_demand(draft: Draft, before: TableState) -> None:
    opening.give_up(draft, before, draft.facts[0].data["batch"], "a patron demanded a shuffle")


def examples(rules: TableRules) -> list[tuple[str, Args]]:
    """How a certificate is written."""
    numbers = {"decks": rules.decks, "cards": rules.batch_size, "result": "ok", "seal_intact": "true"}
    blanks = dict.fromkeys(("maker", "model", "serial", "operator", "at", "seal"), "...")
    shown = " ".join(f"{name}={value}" for name, value in {**blanks, **numbers}.items())
    said: Args = {**blanks, "at": "2000-01-01", **numbers}
    return [(f"batch={b.id} {shown}", {"batch": b.id, **said}) for b in rules.batches]


CERTIFICATE = (
    *("batch", "maker", "model", "serial", "operator", "at"),
    *("decks", "cards", "result", "seal", "seal_intact"),
)
JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {
    "certificate": (_certificate, CERTIFICATE),
    "shuffle_demanded": (_demanded, ("batch",)),
}
APPLY: dict[str, Apply] = {
    "certificate": _certified,
    "shuffle_demanded": _demand,
}
FOLLOW: dict[str, Callable[[Draft, TableState], None]] = {
    "shuffle_demanded": _after_demand,
}
