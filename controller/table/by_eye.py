"""What people tell where no device counts: cards dealt from the hand, or out of a plain shoe (R-28, R-79).

Custody follows what is told. Cards lie in the dealer's hand until the burn, the settlement (`cards=N`), a
shuffle of the rack or the gauge says where they are; a round settled without a number leaves them `untold`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.table import args
from controller.table.args import Apply, Args, Judge, Judged
from controller.table.changes import move, move_all, with_shoe
from controller.table.inputs import OperatorEvent, Refusal
from controller.table.phases import Phase
from controller.table.profiles import TableRules
from controller.table.round import DEALER, HOLE
from controller.table.state import Place, TableState
from firmware_bridge.frozen import replace

Data = Mapping[str, Any]


# --- a card is burned ---


def _judge_burn(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    """A shoe that counts tells the burned card by itself: the tap before it changes nothing."""
    if rules.by_eye:
        return {"batch": state.batch_in_use.id, "moved": min(1, state.batch_in_use.at(Place.SHOE))}
    if state.phase is Phase.RESHUFFLE_BURN:
        return Refusal("unexpected", "the shoe itself tells the card that is burned: draw it")
    if state.burning:
        return Refusal("already_known", "the burn was told: draw the card")
    return {}


def _burned(state: TableState, data: Data) -> TableState:
    if "moved" not in data:
        return replace(state, burning=True)
    return replace(move(state, data["batch"], data["moved"], Place.SHOE, Place.RACK), dry_in=None)


# --- a round ---


def round_cards(rules: TableRules, state: TableState, given: Args) -> dict[str, Any]:
    """What a settlement tells of the cards on the layout; `taken` are those that came from the hand."""
    if not rules.by_eye:
        if "cards" in given:
            raise ValueError("the shoe counts the cards of a round: leave cards out")
        return {}
    laid, round_ = state.batch_in_use.at(Place.TABLE), state.round
    most = laid + state.batch_in_use.at(Place.SHOE)
    if "cards" not in given and rules.one_deck is not None and round_ is not None:
        return {"cards": len(round_.order), "taken": min(len(round_.order), most) - laid}  # nobody plays on
    if "cards" not in given:
        return {"cards": None, "taken": 0}
    cards, least = args.whole(given, "cards"), laid or _least(state)
    if most < least:
        why = f"this round took {least} cards or more, and {most} are known to be left"
        raise ValueError(f"{why}: leave cards out, or shuffle the rack first (`reshuffle_by_hand`)")
    if not least <= cards <= most:
        raise ValueError(f"cards is how many cards this round took, {least} to {most}")
    return {"cards": cards, "taken": cards - laid}


def _least(state: TableState) -> int:
    """Two cards for the dealer and each box that was dealt in; a card that was left out comes later."""
    assert state.round is not None
    return 2 * len({*state.round.order} - {DEALER, HOLE}) + 2


def settled(state: TableState, data: Data) -> TableState:
    """The cards of the round come from the hand, as far as somebody told how many."""
    if "taken" not in data:
        return state
    state = move(state, state.batch_in_use.id, data["taken"], Place.SHOE, Place.TABLE)
    return with_shoe(state, untold=True) if data["cards"] is None else state


def void(rules: TableRules, state: TableState) -> dict[str, Any]:
    """Nobody tells how many cards a void round took."""
    dealt = rules.by_eye and state.phase in (Phase.SIDE_WAGERS, Phase.PLAYING)
    return {"cards": None, "taken": 0} if dealt else {}


def none_left(state: TableState) -> bool:
    """Whether every card is told of."""
    return not (state.shoe.untold or state.batch_in_use.at(Place.SHOE))


def all_out(state: TableState) -> bool:
    """Whether no card is left to deal, as far as it is known; what nobody counted, the dealer sees."""
    return state.shoe.empty or state.shoe.untold or none_left(state)


# --- what goes wrong (R-32 to R-36) ---


def drawn_in_error(state: TableState, *, exposed: bool, burned: bool) -> dict[str, Any]:
    """Which card it was nobody knows: only one that is burned changes its place."""
    held = state.batch_in_use
    taken = min(1, held.at(Place.SHOE)) if burned else 0
    return {"batch": held.id, "exposed": exposed, "burned": burned, "shown": False, "taken": taken}


def drawn(state: TableState, data: Data) -> TableState:
    return move(state, data["batch"], data["taken"], Place.SHOE, Place.RACK)


def _judge_face_up(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if not rules.by_eye and not rules.shoe_senses:
        why = "the shoe told this card like any other: nobody uses it, so it is burned"
        again = ("drawn_in_error exposed=true burned=true",)
        return Refusal("told_as_drawn", why, "13:69F-2.15(a)", again)
    if not rules.by_eye:
        return Refusal("already_known", "the shoe itself tells a card that lies face up in it")
    return {"batch": state.batch_in_use.id, "moved": min(1, state.batch_in_use.at(Place.SHOE))}


def _face_up(state: TableState, data: Data) -> TableState:
    """It is not used (R-31)."""
    state = move(state, data["batch"], data["moved"], Place.SHOE, Place.RACK)
    return with_shoe(state, face_up=state.shoe.face_up + 1)


# --- it runs out in a round (R-35) ---


def judge_reshuffle(state: TableState, given: Args) -> dict[str, Any]:
    """The rack is counted as it is shuffled: all other cards lie on the layout."""
    held = state.batch_in_use
    most = sum(held.cards.values()) - held.at(Place.TABLE)
    cards = args.whole(given, "cards")
    if not 1 <= cards <= most:
        raise ValueError(f"cards is how many cards of the rack were shuffled, 1 to {most}")
    return {"batch": held.id, "cards": cards, "take_out": 0, "laid": most - cards + held.at(Place.TABLE)}


def reshuffled(state: TableState, data: Data) -> TableState:
    """Every card is known again: shuffled and in hand, or on the layout."""
    for place in (Place.SHOE, Place.TABLE):
        state = move_all(state, data["batch"], place, Place.IN_HAND)
    state = move(state, data["batch"], data["laid"], Place.IN_HAND, Place.TABLE)
    return with_shoe(state, untold=False)


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {
    "burn": (_judge_burn, ()),
    "card_face_up": (_judge_face_up, ()),
}
APPLY: dict[str, Apply] = {"burn": _burned, "card_face_up": _face_up}
