"""Batches before use: inspected at the table; dead cards, new batches (R-12, R-13, R-46)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controller.table import args, out_of_service
from controller.table.args import Apply, Args, Judge, Judged
from controller.table.changes import move_all, with_batch
from controller.table.draft import Draft
from controller.table.faults import FAULTS
from controller.table.inputs import OperatorEvent, Refusal
from controller.table.phases import RESHUFFLING, Phase
from controller.table.profiles import TableRules
from controller.table.state import (
    READY,
    Batch,
    Place,
    Prep,
    Shoe,
    TableState,
)
from firmware_bridge.frozen import replace

STEPS: dict[str, tuple[Prep, Prep]] = {
    "inspect": (Prep.RECEIVED, Prep.INSPECTED),
    "verify": (Prep.INSPECTED, Prep.VERIFIED),
    "spread": (Prep.VERIFIED, Prep.SPREAD),
    "player_inspected": (Prep.SPREAD, Prep.PLAYER_INSPECTED),
    "wash": (Prep.PLAYER_INSPECTED, Prep.WASHED),
}
"""What each step of the inspection at the table needs and leads to (R-13), each batch apart."""
IN_TURN = "13:69F-2.4(b)-(e)"
UNSUITABLE = "9 NYCRR 5322.15(c)"
OFF_THE_TABLE = "COMAR 36.05.03.27 C"
IDLE_TABLE = "58 Pa. Code 633a.5(g)"
REASONS = ("damaged", "marked", "missing", "extra")
"""What may be wrong with a dead card."""


def open_table(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    mode = out_of_service.judge_mode(rules, state, tap)
    if isinstance(mode, Refusal):
        return mode
    backs = {b.id: b.back for b in rules.batches}
    return {
        "played": rules.played,
        "cards": rules.batch_size,
        "backs": backs,
        **_as_it_came(rules),
        **mode,
    }


def _as_it_came(rules: TableRules) -> dict[str, str]:
    """No preparation is asked for at casino nights: 13:47-20.22 has none."""
    return {"prep": Prep.AS_IT_CAME.value} if rules.night else {}


def _open(state: TableState, data: Mapping[str, Any]) -> TableState:
    """Fresh batches; which one was in the last shoe (R-07), and which is unfit (R-55), outlives it."""
    batches = {
        batch: _still_unfit(_fresh(state, Batch(batch, back), data), state.batches.get(batch, Batch(batch)))
        for batch, back in data["backs"].items()
    }
    if "manual" not in data:  # from before preparation was journaled
        batches = {batch: replace(held, prep=Prep.WASHED) for batch, held in batches.items()}
    last = state.shoe
    shoe = Shoe(last_batch=last.last_batch, number=last.number, told_empty=last.told_empty)
    return replace(
        state,
        batches=batches,
        shoe=shoe,
        last_boxes=(),
        played=data.get("played", ""),
        manual=data.get("manual", False),
        empty=tuple(data.get("empty", ())),
        first_to_look={},
    )


def _fresh(state: TableState, batch: Batch, data: Mapping[str, Any]) -> Batch:
    received, prep = state.hour if state.day else None, Prep(data.get("prep", Prep.RECEIVED))
    cards = {Place.IN_HAND: data["cards"]}
    return Batch(batch.id, batch.back, cards, prep=prep, received=received, replaced=state.seq)


def _still_unfit(batch: Batch, was: Batch) -> Batch:
    """A closing makes no batch fit: `replace_batch` tells that another one lies here."""
    if was.unfit is None:
        return batch
    return replace(
        batch, unfit=was.unfit, unfit_since=was.unfit_since, missing=was.missing, replaced=was.replaced
    )


# --- inspected at the table (R-13) ---


def step(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    batch = _meant(rules, state, tap.event, tap.args)
    if batch is None:
        return Refusal("unexpected", f"{tap.event} is not expected now: no batch waits for it", IN_TURN)
    held, (needs, _) = state.batches[batch], STEPS[tap.event]
    if state.phase is Phase.IDLE and held.prep in READY and tap.event in ("spread", "player_inspected"):
        return _idle_step(rules, held, tap.event)
    refused = not_at_hand(rules, held)
    if refused is not None:
        return refused
    if held.prep is not needs:
        return Refusal("not_in_turn", f"batch {batch} is {words(held.prep)}", IN_TURN, due(held))
    if tap.event != "verify":
        return {"batch": batch}
    if not args.other_person(tap, held.inspected_by):
        return Refusal(
            "same_person", f"{tap.who} inspected batch {batch}: another person verifies it", IN_TURN
        )
    return {"batch": batch, "inspected_by": held.inspected_by}


def not_at_hand(rules: TableRules, held: Batch) -> Refusal | None:
    """Why nobody can look through the batch now."""
    if held.unfit:
        return Refusal("batch_unfit", f"batch {held.id} is out of play: {FAULTS[held.unfit].text}", IN_TURN)
    if held.at(Place.IN_HAND) != rules.batch_size:
        why = f"only {held.at(Place.IN_HAND)} of {rules.batch_size} cards of batch {held.id} are in hand"
        return Refusal("batch_not_in_hand", why, IN_TURN)
    return None


def _idle_step(rules: TableRules, held: Batch, event: str) -> Judged:
    """Nobody plays: the cards of the rack lie spread until somebody comes (S8, R-21)."""
    place, lies = (Place.RACK, "in the rack") if event == "spread" else (Place.IN_HAND, "spread")
    if held.at(place) != rules.batch_size:
        return Refusal("batch_not_in_hand", f"batch {held.id} does not lie {lies}", IDLE_TABLE)
    return {"batch": held.id, "idle": True}


def _meant(rules: TableRules, state: TableState, event: str, given: Args) -> str | None:
    """The batch named, or the one that waits for this step, if any does."""
    if "batch" in given:
        return args.batch(rules, given)
    waits = [b.id for b in state.batches.values() if b.cards and b.prep is STEPS[event][0]]
    if state.phase is Phase.IDLE and not waits:
        waits = [b.id for b in state.batches.values() if not b.at(Place.SHUFFLER)]
    if len(waits) > 1:
        raise ValueError(f"batch={'|'.join(waits)} is missing")
    return waits[0] if waits else None


def words(prep: Prep) -> str:
    return prep.value.replace("_", " ")


def due(held: Batch) -> tuple[str, ...]:
    """The next step of a batch that is not ready yet."""
    return tuple(f"{event} batch={held.id}" for event, (needs, _) in STEPS.items() if needs is held.prep)


def not_prepared(held: Batch) -> Refusal | None:
    """Why a batch may not be shuffled yet: it was neither prepared at the table nor certified (R-12)."""
    if held.prep in READY:
        return None
    steps = "it must be inspected, verified, spread, shown to a player and washed"
    return Refusal("not_prepared", f"batch {held.id} is {words(held.prep)}: {steps}", IN_TURN, due(held))


def inspected(state: TableState, data: Mapping[str, Any]) -> TableState:
    return with_batch(state, data["batch"], prep=Prep.INSPECTED, inspected_by=data["who"])


def _stepped(prep: Prep) -> Apply:
    def apply(state: TableState, data: Mapping[str, Any]) -> TableState:
        return state if "idle" in data else with_batch(state, data["batch"], prep=prep)

    return apply


def _spread(state: TableState, data: Mapping[str, Any]) -> TableState:
    if "idle" in data:
        return move_all(state, data["batch"], Place.RACK, Place.IN_HAND)
    return with_batch(state, data["batch"], prep=Prep.SPREAD)


# --- a proof that is worth nothing any more ---


def give_up(draft: Draft, before: TableState, batch: str, why: str) -> None:
    """A shuffled batch in hand may no longer be used as it is; if it was to be cut, the swap starts anew."""
    held = before.batches[batch]
    if held.proof is None or not held.at(Place.IN_HAND) or before.phase in RESHUFFLING:
        return
    moves = draft.moves("proof_lost") if before.taken == batch else {}
    draft.add("proof_given_up", {"batch": batch, "why": why, **moves})


def _given_up(state: TableState, data: Mapping[str, Any]) -> TableState:
    state = with_batch(state, data["batch"], proof=None, cut=False)
    return replace(state, cutter=None, declined=()) if "moves" in data else state


# --- dead cards and new batches (R-46, R-55) ---


def _dead_card(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    batch = args.batch(rules, tap.args)
    reason = args.one_of({"reason": "damaged", **tap.args}, "reason", REASONS)
    card = tap.args.get("card")
    if card is not None and card not in rules.deck:
        raise ValueError(f"card={card} is no card of this deck: write it as 8S or TD")
    if not state.batches[batch].cards:
        return Refusal("no_batch", "the table is closed: no batch is here", UNSUITABLE)
    said = {"batch": batch, "reason": reason, "most": rules.decks}
    if card is None or state.shoe.batch != batch:
        return {**said, "card": None if card is None else str(card)}
    return {**said, "sealed": {"card": str(card)}}


def _card_is_dead(state: TableState, data: Mapping[str, Any]) -> TableState:
    held, card = state.batches[data["batch"]], data["card"]
    if card is None or held.missing.count(card) >= data.get("most", 1):
        return state
    return with_batch(state, held.id, missing=(*held.missing, card))


def _after_dead_card(draft: Draft, before: TableState) -> None:
    """No text names a card of the batch in the shoe: the dealer may have named a hidden one (law 7)."""
    fact = draft.facts[0].data
    give_up(draft, before, fact["batch"], "a card of it is dead")
    cause = f"{fact.get('card') or 'a card'} is {fact['reason']}"
    draft.latch("dead_card", cause, batch=fact["batch"])


def _replace(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    batch = args.batch(rules, tap.args)
    held = state.batches[batch]
    if not held.cards:
        return Refusal("no_batch", "the table is closed: no batch is here", OFF_THE_TABLE)
    inside = [place.value for place in (Place.TABLE, Place.SHUFFLER) if held.at(place)]
    inside += [Place.SHOE.value] if state.shoe.batch == batch else []
    if inside:
        where = " and ".join(inside)
        return Refusal("batch_in_use", f"take all cards of batch {batch} out first: {where}", OFF_THE_TABLE)
    return {"batch": batch, "cards": rules.batch_size, "was": held.unfit, **_as_it_came(rules)}


def _replaced(state: TableState, data: Mapping[str, Any]) -> TableState:
    batch = _fresh(state, state.batches[data["batch"]], data)
    return replace(state, batches={**state.batches, batch.id: batch})


def _after_replace(draft: Draft, before: TableState) -> None:
    batch = draft.facts[0].data["batch"]
    give_up(draft, before, batch, "another batch took its place")
    draft.gone("deck_over_a_day", batch=batch)


BATCH = ("batch",)
JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {
    "open": (open_table, ("mode",)),
    "verify": (step, BATCH),
    "spread": (step, BATCH),
    "player_inspected": (step, BATCH),
    "wash": (step, BATCH),
    "dead_card": (_dead_card, ("batch", "card", "reason")),
    "replace_batch": (_replace, BATCH),
}
APPLY: dict[str, Apply] = {
    "open": _open,
    "verify": _stepped(Prep.VERIFIED),
    "spread": _spread,
    "player_inspected": _stepped(Prep.PLAYER_INSPECTED),
    "wash": _stepped(Prep.WASHED),
    "proof_given_up": _given_up,
    "dead_card": _card_is_dead,
    "replace_batch": _replaced,
}
FOLLOW: dict[str, Callable[[Draft, TableState], None]] = {
    "dead_card": _after_dead_card,
    "replace_batch": _after_replace,
}


def examples(rules: TableRules, state: TableState, event: str) -> list[tuple[str, Args]]:
    """The arguments with which this module's events are called for now."""
    ids = [b.id for b in rules.batches]
    if event == "replace_batch":
        ids = [batch for batch in ids if state.batches[batch].unfit]
    return [(f"batch={batch}", {"batch": batch}) for batch in ids]
