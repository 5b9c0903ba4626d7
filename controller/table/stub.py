"""What is left of the deck after a round, and how often it is counted (R-54, R-55)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from controller.table import args
from controller.table.args import Args
from controller.table.changes import move, with_batch
from controller.table.inputs import Refusal
from controller.table.profiles import TableRules
from controller.table.state import Batch, Place, TableState

if TYPE_CHECKING:
    from controller.table.draft import Draft

STUB = "13:69F-35.9(e)"
ROUNDS = 5
"""The stub is counted at least once in so many rounds."""


def misdeal(rules: TableRules) -> Refusal | None:
    """A hand of a one-deck game with too few cards or too many makes the round void."""
    if rules.one_deck is None:
        return None
    why = f"in {rules.game} no card is dealt later: a supervisor voids the round"
    return Refusal("misdeal", why, rules.one_deck.clause, ("void_round reason=misdeal",))


def expected(state: TableState) -> int:
    """Cards that must be left of the deck: those in the shoe, and those that came out after the deal."""
    assert state.shoe.batch is not None
    return state.batches[state.shoe.batch].at(Place.SHOE) + state.shoe.stub


def due(state: TableState, batch: Batch) -> bool:
    """Whether this round is the fifth since the cards of the deck were counted."""
    return bool(state.last_boxes) and batch.uncounted + 1 >= ROUNDS


def judge(rules: TableRules, state: TableState, given: Args, *, unsure: bool) -> dict[str, Any] | Refusal:
    """What the dealer counted, if the stub was counted; `unsure` when cards may have come out unseen.

    A stub that did not come through a shoe that counts is counted by hand. Where nobody knows how many cards
    were dealt, its number proves nothing.
    """
    if not rules.per_round:
        if "stub" in given:
            raise ValueError("only a deck that lasts one round leaves a stub: leave stub out")
        return {}
    batch = state.shoe.batch
    assert batch is not None
    played = {"played": bool(state.last_boxes)}
    if "stub" in given:
        counted = args.whole(given, "stub")
        if not 0 <= counted <= 2 * rules.batch_size:
            raise ValueError(f"stub is a number of cards, 0 to {2 * rules.batch_size}")
        unknown = state.shoe.untold if rules.by_eye else unsure
        return {**played, "stub": counted, "wanted": None if unknown else expected(state)}
    lifted = bool(state.batches[batch].at(Place.SHOE)) and not rules.by_eye and not unsure
    if lifted or due(state, state.batches[batch]):
        why = "it did not come out through the shoe" if lifted else f"it was not in {ROUNDS - 1} rounds"
        again = f"collect_rack gauge={given.get('gauge', 'full')} stub=N"
        return Refusal("stub_not_counted", f"count the cards that are left: {why}", STUB, (again,))
    return played


def counted(rules: TableRules, state: TableState, taps: list[tuple[str, Args]]) -> list[tuple[str, Args]]:
    """The same taps with a count of the stub, where there is one."""
    if not rules.per_round:
        return []
    return [(f"{shown} stub=N", {**given, "stub": expected(state)}) for shown, given in taps]


def collected(state: TableState, data: Mapping[str, Any]) -> TableState:
    """Counted cards lie in the rack; how many rounds the deck was not counted in goes on."""
    batch = state.batches[data["batch"]]
    proved = data.get("wanted") is not None
    uncounted = 0 if proved else batch.uncounted + data.get("played", False)
    lifted = max(0, data.get("stub", 0) - state.shoe.stub)
    state = move(state, batch.id, min(lifted, batch.at(Place.SHOE)), Place.SHOE, Place.RACK)
    return with_batch(state, batch.id, uncounted=uncounted)


def after_collect(draft: Draft, tap: Mapping[str, Any]) -> None:
    """A wrong number takes the deck off the table: no shuffle mends it (R-55)."""
    if "stub" in tap and tap["wanted"] not in (None, tap["stub"]):
        cause = f"{tap['stub']} cards were left after the deal, not {tap['wanted']}"
        draft.latch("wrong_stub", cause, batch=tap["batch"])
