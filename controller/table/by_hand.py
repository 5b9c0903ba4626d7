"""Shuffled by hand: a whole batch (S5, a table without its shuffler), and cards of the rack that go back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.table import args
from controller.table.args import Judged
from controller.table.cards import count_of
from controller.table.changes import move_all, with_batch, with_shoe
from controller.table.faults import FAULTS
from controller.table.inputs import OperatorEvent, Refusal
from controller.table.phases import Phase
from controller.table.profiles import Discretionary, TableRules
from controller.table.round import BURNED
from controller.table.state import READY, Batch, Place, Proof, Shuffled, TableState
from firmware_bridge.frozen import replace

CHOICE = "13:69F-2.5(a)"
NIGHT_DISCARDS = "13:47-20.22(g)6"


def usual(rules: TableRules, *, in_round: bool) -> bool:
    """Whether the dealer shuffles by hand as a matter of course: at a casino night, or without a shuffler."""
    return rules.night or (rules.shuffler is None and not in_round)


def judge(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    """Between two shoes: where it is usual, without the shuffler, or once more by a switch (S5)."""
    if "cards" in tap.args:
        raise ValueError("cards is told of a rack that is shuffled in a round: leave it out")
    batch = args.batch(rules, tap.args)
    held = state.batches[batch]
    if held.unfit:
        return Refusal("batch_unfit", f"batch {batch} is out of play: {FAULTS[held.unfit].text}", CHOICE)
    if not (state.manual or rules.night or same_again(rules, state, batch)):
        why = "the shuffler shuffles; by hand only after `shuffle_now`, where the table's switch says so"
        return Refusal("not_by_hand", why, "13:69F-2.2(d)")
    if state.shuffler.letting_out:
        return Refusal("shuffler_busy", "the shuffler is letting the batch out", "13:69F-2.2(d)3")
    if held.at(Place.IN_HAND) + held.at(Place.RACK) != rules.batch_size:
        why = f"not every card of batch {batch} is in hand or in the rack"
        return Refusal("batch_not_whole", why, CHOICE)
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


def again(rules: TableRules, state: TableState, held: Batch) -> bool:
    """The batch of the last shoe goes in once more, shuffled by hand: it is the same turn (S5)."""
    by_hand = held.proof is not None and held.proof.how is Shuffled.HAND
    return by_hand and not (state.manual or rules.alone) and held.id == state.shoe.last_batch


def back_in_shoe(state: TableState) -> TableState:
    """Cards of the rack are in the shoe again: only those still outside it count as drawn."""
    drawn, unseen = dict(state.shoe.aside), dict[str, int]()
    for dealt in (*(state.round.cards if state.round else ()), *state.shoe.early):
        if dealt.to != BURNED and not dealt.foreign:
            face = dealt.card or ""
            drawn[face] = drawn.get(face, 0) + 1
            if face and not dealt.seen:
                unseen[face] = unseen.get(face, 0) + 1
    return with_shoe(state, drawn=drawn, unseen=unseen, order="")


# --- about one deck goes back into the shoe (R-10, R-16, R-19) ---


def judge_bart_carter(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    batch, deck = state.batch_in_use, len(rules.deck)
    if rules.by_eye:
        why = "stacks of the rack go back into a shoe, not into a hand"
        return Refusal("not_from_hand", why, "13:69F-2B.1")
    if rules.night:
        return Refusal("shoe_not_empty", "discards rest until every card is dealt", NIGHT_DISCARDS)
    cards, least = batch.at(Place.RACK), deck - deck // 8
    if state.shoe.cut_seen or state.shoe.empty:
        return Refusal("shoe_ends", "the cutting card is out: this shoe ends", "13:69F-2.5(d)")
    if batch.unfit:
        return Refusal("batch_unfit", f"batch {batch.id} is out of play: end the shoe", "13:69F-2.5(d)")
    if state.uncertain:
        return Refusal("not_counted", "nobody can say how many cards lie in the rack: end the shoe")
    if cards < least:
        why = f"{count_of(cards, 'lie')} in the rack, about one deck is wanted: {least} or more"
        return Refusal("rack_too_low", why, "13:69F-2B.1")
    return {"batch": batch.id, "cards": cards}


def bart_carter(state: TableState, data: Mapping[str, Any]) -> TableState:
    told = state.shoe.count + state.shoe.returned
    state = back_in_shoe(move_all(state, data["batch"], Place.RACK, Place.SHOE))
    return with_shoe(state, loading=True, returned=told - state.shoe.count)
