"""A continuous shuffler: one device shuffles, deals, and takes used cards back (R-11, R-60).

Its batch is in play from the proof of its first shuffle until its cards are dealt out: nothing is cut, and no
card marks an end. Used cards rest in the rack until the next round is dealt, so that a late dispute can be
looked into. Which of them went back nobody tells: a face counts as outside only while it surely is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.table import by_hand, event_facts
from controller.table.args import Apply
from controller.table.cards import count_of
from controller.table.changes import move, move_all, with_batch, with_shoe, with_shuffler
from controller.table.draft import Draft
from controller.table.inputs import Refusal
from controller.table.phases import IN_ROUND, Phase
from controller.table.profiles import TableRules
from controller.table.state import Cycle, Fault, Place, Shoe, TableState
from devices import events as ev
from firmware_bridge.frozen import replace

INSTEAD = "13:69F-2.21"
REPLACED = {
    "shuffle_now": "the machine shuffles all the time; to end the shoe say `idle` or `close`",
    "bart_carter": "used cards go back into the machine once the next round is dealt",
    "reshuffle_by_hand": "the machine shuffles; when it runs out in a round, settle or void the round",
    **dict.fromkeys(
        ("offer_cut", "cut", "recut"), "nothing is cut here: the machine deals the batch from where it lies"
    ),
    **dict.fromkeys(("insert_cutting_card", "cutting_card_at"), "no cutting card lies in the machine"),
    "load_shoe": "the machine is the shoe: it deals the batch that was loaded into it (`load_shuffler`)",
    "burn": "no card is burned: the machine shuffles all the time",
    "take_from_shuffler": "no batch comes out of a continuous shuffler: open it and take the cards out",
    "shuffle_demanded": "the machine shuffles every batch before it is dealt",
}
"""Taps of the procedures in whose place the machine stands, and what there is instead."""


def dealing(rules: TableRules, state: TableState) -> bool:
    """Whether a batch is dealt from the continuous shuffler of this table now."""
    return rules.continuous and state.shoe.batch is not None


def replaced(rules: TableRules, event: str) -> Refusal | None:
    """Why a tap has no place at a table with a continuous shuffler."""
    if rules.continuous and event in REPLACED:
        return Refusal("continuous", REPLACED[event], INSTEAD)
    return None


def deals(rules: TableRules, state: TableState) -> Refusal | None:
    """Why nobody may find the machine empty: a batch is dealt from it."""
    if not dealing(rules, state):
        return None
    why = f"batch {state.shoe.batch} is dealt from it: deal it out first (`idle` or `close`)"
    return Refusal("shuffler_not_empty", why, INSTEAD)


def in_use(rules: TableRules, state: TableState) -> Refusal | None:
    """Why nothing is loaded into the machine: it is dealt from, or cards never came out of it."""
    if not rules.continuous or deals(rules, state):
        return deals(rules, state)
    for batch in state.batches.values():
        if left := batch.at(Place.SHOE):
            why = f"{count_of(left)} of batch {batch.id} never came out of it: replace that batch first"
            return Refusal("shoe_not_empty", why, INSTEAD, (f"replace_batch batch={batch.id}",))
    return None


def out_of_service(rules: TableRules, state: TableState) -> Refusal | None:
    """Why no round begins: the machine that deals is out of service."""
    if not rules.continuous or not state.shuffler.out:
        return None
    again = (f"in_service device={rules.shuffler}", "close")
    return Refusal("out_of_service", "the continuous shuffler is out of service", INSTEAD, again)


def began_since(rules: TableRules, state: TableState, fault: Fault) -> bool:
    """Whether the batch was shuffled whole and is dealt since the fault: what hindered that is mended."""
    here = dealing(rules, state) and fault.batch in (None, state.shoe.batch)
    return here and state.shoe.first_fact > fault.again


# --- which used cards may go back (R-60) ---


def used(rules: TableRules, state: TableState) -> dict[str, int]:
    """At the beginning of a round: how many cards of earlier ones lie in the rack."""
    batch = state.shoe.batch
    if not rules.continuous or batch is None:
        return {}
    return {"used": state.batches[batch].at(Place.RACK)}


def may_return(state: TableState) -> int:
    """How many cards of the rack may go back: those of rounds before the last one that was dealt."""
    if state.phase is Phase.PLAYING:
        return state.shoe.used
    return state.shoe.free if state.phase in (Phase.BETWEEN_ROUNDS, *IN_ROUND) else 0


def round_over(state: TableState) -> TableState:
    """A round that was dealt is over: cards of earlier ones stay free to go back, its own are not yet."""
    return with_shoe(state, free=state.shoe.used) if state.phase is Phase.PLAYING else state


# --- what the machine tells ---


def ready(draft: Draft, batch: str) -> None:
    """The first shuffle is proved: the batch is dealt from where it lies."""
    if moves := draft.moves("ready_to_deal"):
        draft.add("ready_to_deal", {"batch": batch, **moves})


def handle(draft: Draft, event: ev.DeviceEvent) -> bool:
    """What a continuous shuffler alone tells; False leaves it to the judges of shuffler and shoe."""
    match event:
        case ev.CardsReturned():
            _returned(draft, event)
        case ev.BatchReleased() if dealing(draft.rules, draft.state):
            _lifted(draft, event)
        case _:
            return False
    return True


def _returned(draft: Draft, event: ev.CardsReturned) -> None:
    state, batch = draft.state, draft.state.shoe.batch
    if batch is None:
        _strangers(draft, event)
        return
    held, count = state.batches[batch], event.count
    rack, free = held.at(Place.RACK), may_return(state)
    event_facts.record(draft, event, {"batch": batch, "moved": min(count, rack)})
    if held.at(Place.SHOE) + min(count, rack):
        draft.gone("shoe_dry", batch=batch)
    if state.uncertain:
        return  # nobody can say how many lay where
    if count > rack:
        cause = f"{count_of(count)} went into the machine and {rack} lay in the rack"
        draft.latch("returned_twice", cause, batch=batch, device=event.device)
    elif count > free:
        cause = f"{count} used cards went back and {free} were free to go"
        draft.latch("returned_early", cause, batch=batch, device=event.device)
    known_wrong = any(f.code == "returned_twice" and f.batch == batch for f in draft.state.faults)
    if not known_wrong:
        _judge_inside(draft, event.device, event.inside, held.at(Place.SHOE) + count)


def _strangers(draft: Draft, event: ev.CardsReturned) -> None:
    """Cards were put in beside those that this table loaded."""
    event_facts.record(draft, event, {"batch": None, "moved": 0})
    batch = draft.state.shuffler.batch
    held = draft.state.batches[batch].at(Place.SHUFFLER) if batch else 0
    if event.inside > held:
        draft.add("surplus_seen", {"surplus": event.inside - held})
        cause = f"the machine holds {count_of(event.inside)}, {held} are known of"
        draft.latch("cards_inside", cause, batch=batch)


def _judge_inside(draft: Draft, device: str, inside: int, known: int) -> None:
    if inside != known:
        cause = f"the machine counts {count_of(inside)} inside, this table {known}"
        draft.latch("count_drift", cause, batch=draft.state.shoe.batch, device=device)


def _lifted(draft: Draft, event: ev.BatchReleased) -> None:
    """Cards in play were taken out through the door: they are laid into the rack, and the shoe ends."""
    state, batch = draft.state, draft.state.shoe.batch
    assert batch is not None
    event_facts.record(draft, event, unjudged=True)
    moved = min(event.count or 0, state.batches[batch].at(Place.SHOE))
    draft.add("lifted_from_shoe", {"batch": batch, "moved": moved})
    cause = f"{count_of(event.count or 0, 'were')} taken out of it by hand"
    draft.latch("count_drift", cause, batch=batch, device=event.device)


def reconcile(draft: Draft, event: ev.LinkUp, was_boot: int | None) -> None:
    """After a start of the machine its status is all there is; without one its events will tell the rest."""
    state, batch = draft.state, draft.state.shoe.batch
    if batch is None or event.boot == was_boot:
        return
    inside, cycle = event.status.get("inside"), event.status.get("cycle")
    if isinstance(inside, int):
        _judge_inside(draft, event.device, inside, state.batches[batch].at(Place.SHOE))
    if state.shuffler.counter is not None and cycle != state.shuffler.counter:
        cause = f"the cycle counter is {cycle}, not {state.shuffler.counter}"
        draft.latch("foreign_cycle", cause, device=event.device)


# --- facts ---


def _ready(state: TableState, data: Mapping[str, Any]) -> TableState:
    """The rack is empty when the first round begins: no card of another batch lies in it (R-08)."""
    batch: str = data["batch"]
    for each in state.batches:
        state = move_all(state, each, Place.RACK, Place.IN_HAND)
    state = move_all(state, batch, Place.SHUFFLER, Place.SHOE)
    state = with_batch(state, batch, proof=None, cut=False)
    state = with_shuffler(state, batch=None, stage=Cycle.NONE)
    number = state.shoe.number + 1
    shoe = Shoe(batch=batch, last_batch=batch, number=number, first_fact=state.seq, empty=False)
    return replace(state, shoe=shoe, cutter=None, declined=(), last_boxes=())


def _cards_returned(state: TableState, data: Mapping[str, Any]) -> TableState:
    """Of the rack's faces none is known any more unless it is empty; what lies on the table is outside."""
    batch, moved = data["batch"], data["moved"]
    if not moved:
        return state
    state = move(state, batch, moved, Place.RACK, Place.SHOE)
    shoe, held = state.shoe, state.batches[batch]
    state = by_hand.back_in_shoe(state)
    drawn, lying = dict(state.shoe.drawn), max(0, shoe.count - moved - state.shoe.count)
    if lying:
        drawn[""] = drawn.get("", 0) + lying
    return with_shoe(
        state,
        drawn=drawn,
        order=shoe.order[-2 * sum(held.cards.values()) :],
        returned=shoe.count + shoe.returned - sum(drawn.values()),
        empty=False,
        told_empty=False,
        used=max(0, shoe.used - moved),
        free=max(0, shoe.free - moved),
    )


APPLY: dict[str, Apply] = {
    "ready_to_deal": _ready,
    "cards_returned": _cards_returned,
    "lifted_from_shoe": lambda state, data: move(state, data["batch"], data["moved"], Place.SHOE, Place.RACK),
}
