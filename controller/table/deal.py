"""The steps of the initial deal follow the cards that are out, whenever they came out (R-24, R-32)."""

from __future__ import annotations

from controller.table.draft import Draft
from controller.table.phases import Phase
from controller.table.profiles import TableRules


def held_back(rules: TableRules, phase: Phase) -> int:
    """How many cards of the order are left once this step of the deal is done: the hole card (R-24)."""
    return 1 if phase is Phase.DEALING and rules.one_deck is None else 0


def keep(draft: Draft) -> None:
    """Cards that came before they were due, or of which none is due any more, end a step of the deal.

    One that is burned begins the players' step anew. Where no device counts, no step waits for a card.
    """
    if draft.rules.by_eye or draft.state.round is None:
        return
    due = len(draft.state.round.order) - draft.state.round.placed
    if draft.state.phase is Phase.SIDE_WAGERS and due > 1:
        draft.add("deal_goes_on", draft.moves("deal_goes_on"))
    if draft.state.phase is Phase.DEALING and due <= held_back(draft.rules, Phase.DEALING):
        draft.add("dealt", draft.moves("dealt"))
    if draft.state.phase is Phase.HOLE_CARD and due <= 0:
        draft.add("hole_dealt", draft.moves("hole_dealt"))
