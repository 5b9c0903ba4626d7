"""Multiple action (R-29, 13:69F-2.18): one hand of a player against two or three of the dealer's.

All of them begin with the dealer's first card. The round is over when each was played; no swap comes before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.table.args import Apply, Judge, Judged
from controller.table.inputs import OperatorEvent, Refusal
from controller.table.phases import Phase
from controller.table.profiles import TableRules
from controller.table.state import TableState
from firmware_bridge.frozen import replace

CLAUSE = "13:69F-2.18(a)"


def left(rules: TableRules, state: TableState) -> int:
    """How many hands of the dealer are still to be played before the last one, which ends with the round."""
    return 0 if state.round is None else rules.dealer_hands - 1 - state.round.dealer_hands


def hinders_the_end(rules: TableRules, state: TableState) -> Refusal | None:
    """Why a round cannot be settled yet: a hand of the dealer is missing."""
    count = left(rules, state)
    if state.phase is not Phase.PLAYING or count <= 0:
        return None
    why = f"{count} of the dealer's {rules.dealer_hands} hands must be settled before the last one"
    return Refusal("dealer_hands_left", why, CLAUSE, ("dealer_hand_settled",))


def _judge(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if rules.dealer_hands == 1:
        return Refusal("not_offered", "the dealer plays one hand at this table", CLAUSE)
    if left(rules, state) <= 0:
        why = f"the last of the dealer's {rules.dealer_hands} hands is settled with the round"
        return Refusal("last_hand", why, CLAUSE, ("round_settled",))
    assert state.round is not None
    return {"hand": state.round.dealer_hands + 1, "of": rules.dealer_hands}


def _apply(state: TableState, data: Mapping[str, Any]) -> TableState:
    assert state.round is not None
    return replace(state, round=replace(state.round, dealer_hands=data["hand"]))


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {"dealer_hand_settled": (_judge, ())}
APPLY: dict[str, Apply] = {"dealer_hand_settled": _apply}
