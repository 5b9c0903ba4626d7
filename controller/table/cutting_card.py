"""What follows when the cutting card comes out (R-26, R-27), whoever says so: the shoe or the dealer."""

from __future__ import annotations

from typing import Any

from controller.table.draft import destination
from controller.table.phases import Phase
from controller.table.profiles import FirstCardPolicy, TableRules
from controller.table.state import Closing, TableState


def came_out(rules: TableRules, state: TableState, at: str | None) -> dict[str, Any]:
    """The data of the fact: it never stops a round that has begun, and decides which round is the last."""
    unseen = rules.by_eye and state.phase is not Phase.ROUND_BURN
    started = state.round is not None and (bool(state.round.cards) or unseen)
    if not started and rules.first_card is FirstCardPolicy.RESHUFFLE_NOW:
        return {**_ends(rules, state, "cutting_card_first"), "at": None, "first": True}
    ending = state.shoe.closing is Closing.THIS_ROUND
    last = ending or state.round is not None
    closing = Closing.THIS_ROUND if last else Closing.ONE_MORE_ROUND
    return {"at": at, "closing": closing.value, "first": not started}


def told_late(rules: TableRules, state: TableState, at: str) -> dict[str, Any]:
    """It came out in the round that is settled already: no other may follow."""
    return {**_ends(rules, state, "cutting_card_late"), "at": at, "first": False}


def _ends(rules: TableRules, state: TableState, trigger: str) -> dict[str, Any]:
    dest = destination(rules, state, trigger)
    moves = {} if dest is None else {"moves": [trigger, dest.value]}
    return {"closing": Closing.THIS_ROUND.value, **moves}
