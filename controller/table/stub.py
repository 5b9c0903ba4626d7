"""What is left of the deck after a round, and how often it is counted (R-54, R-55)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controller.table import args
from controller.table.args import Apply, Args, Judge, Judged
from controller.table.cards import count_of
from controller.table.changes import move, with_batch, with_shoe
from controller.table.draft import Draft
from controller.table.inputs import OperatorEvent, Refusal
from controller.table.profiles import TableRules
from controller.table.state import Batch, Place, TableState

STUB = "13:69F-35.9(e)"
ROUNDS = 5
"""The stub is counted at least once in so many rounds."""


def misdeal(rules: TableRules) -> Refusal | None:
    """A hand of a one-deck game with too few cards or too many makes the round void."""
    if rules.one_deck is None:
        return None
    why = f"in {rules.game} no card is dealt later: a supervisor voids the round"
    return Refusal("misdeal", why, rules.deal_clause, ("void_round reason=misdeal",))


def expected(rules: TableRules, state: TableState) -> int:
    """Cards that must be left of the deck: those in the shoe, and those that came out after the deal.

    In a round dealt from the hand the whole deal is still in its custody.
    """
    left = state.batch_in_use.at(Place.SHOE) + state.shoe.stub
    return left - len(state.round.order) if rules.by_eye and state.round else left


def due(state: TableState, batch: Batch) -> bool:
    """Whether this round is the fifth since the cards of the deck were counted."""
    return bool(state.last_boxes) and batch.uncounted + 1 >= ROUNDS


def due_now(state: TableState) -> bool:
    """Whether the stub of the round in play, or just played, must be counted and was not yet."""
    batch = state.batches.get(state.shoe.batch or "")
    return batch is not None and state.shoe.counted is None and due(state, batch)


def judge(rules: TableRules, state: TableState, given: Args, *, unsure: bool) -> dict[str, Any] | Refusal:
    """What the dealer counted, if the stub was counted; `unsure` when cards may have come out unseen.

    A stub that did not come through a shoe that counts is counted by hand. Where nobody knows how many cards
    were dealt, its number proves nothing.
    """
    if not rules.per_round:
        if "stub" in given:
            raise ValueError("only a deck that lasts one round leaves a stub: leave stub out")
        return {}
    batch = state.batch_in_use
    played = {"played": bool(state.last_boxes)}
    counted = _number(rules, given, "stub") if "stub" in given else state.shoe.counted
    if counted is not None:
        unknown = state.shoe.untold if rules.by_eye else unsure
        return {**played, "stub": counted, "wanted": None if unknown else expected(rules, state)}
    lifted = bool(batch.at(Place.SHOE)) and not rules.by_eye and not unsure
    if lifted or due(state, batch):
        why = "it did not come out through the shoe" if lifted else f"it was not in {ROUNDS - 1} rounds"
        again = f"collect_rack gauge={given.get('gauge', 'full')} stub=N"
        return Refusal("stub_not_counted", f"count the cards that are left: {why}", STUB, (again,))
    return played


def counted(rules: TableRules, state: TableState, taps: list[tuple[str, Args]]) -> list[tuple[str, Args]]:
    """The same taps with a count of the stub, where there is one."""
    if not rules.per_round:
        return []
    return [(f"{shown} stub=N", {**given, "stub": expected(rules, state)}) for shown, given in taps]


def _number(rules: TableRules, given: Args, name: str) -> int:
    cards = args.whole(given, name)
    if not 0 <= cards <= 2 * rules.batch_size:
        raise ValueError(f"{name} is a number of cards, 0 to {2 * rules.batch_size}")
    return cards


# --- counted before the settlement: a wrong number voids the hands ---


def _judge_count(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if not rules.per_round:
        return Refusal("no_stub", "only a deck that lasts one round leaves a stub", STUB)
    if not (rules.by_eye or state.shoe.empty):
        return Refusal("shoe_not_empty", "take the rest of the cards out of the shoe first", STUB)
    cards = _number(rules, tap.args, "cards")
    unknown = state.uncertain or state.silent(rules.shoe)
    wanted = None if unknown else expected(rules, state)
    return {"batch": state.shoe.batch, "cards": cards, "wanted": wanted}


def _count(state: TableState, data: Mapping[str, Any]) -> TableState:
    wrong = data["wanted"] not in (None, data["cards"])
    return with_shoe(state, counted=data["cards"], stub_wrong=wrong)


def _after_count(draft: Draft, before: TableState) -> None:
    tap = draft.facts[0].data
    _judge_stub(draft, tap["batch"], tap["cards"], tap["wanted"])


def hands_void(state: TableState) -> Refusal | None:
    """Why the round cannot be settled: with a wrong stub a hand is wrong, or the deck."""
    if not state.shoe.stub_wrong:
        return None
    why = "a wrong number of cards is left: the hands are void"
    return Refusal("wrong_stub", why, STUB, ("void_round reason=misdeal",))


def collected(state: TableState, data: Mapping[str, Any]) -> TableState:
    """Counted cards lie in the rack; how many rounds the deck was not counted in goes on."""
    batch = state.batches[data["batch"]]
    proved = data.get("wanted") is not None
    uncounted = 0 if proved else batch.uncounted + data.get("played", False)
    lifted = max(0, data.get("stub", 0) - state.shoe.stub)
    state = move(state, batch.id, min(lifted, batch.at(Place.SHOE)), Place.SHOE, Place.RACK)
    return with_batch(state, batch.id, uncounted=uncounted)


def after_collect(draft: Draft, tap: Mapping[str, Any]) -> None:
    """What was counted is judged once the cards are collected, if not before."""
    if "stub" in tap:
        _judge_stub(draft, tap["batch"], tap["stub"], tap["wanted"])


def _judge_stub(draft: Draft, batch: str, counted: int, wanted: int | None) -> None:
    """A wrong number takes the deck off the table: no shuffle mends it (R-55)."""
    if wanted not in (None, counted):
        cause = f"{count_of(counted, 'were')} left after the deal, not {wanted}"
        draft.latch("wrong_stub", cause, batch=batch)


def examples(rules: TableRules, state: TableState) -> list[tuple[str, Args]]:
    """Told once, and while a deck lasts one round."""
    if not rules.per_round or state.shoe.counted is not None:
        return []
    return [("cards=N", {"cards": expected(rules, state)})]


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {"count_stub": (_judge_count, ("cards",))}
APPLY: dict[str, Apply] = {"count_stub": _count}
FOLLOW: dict[str, Callable[[Draft, TableState], None]] = {"count_stub": _after_count}
