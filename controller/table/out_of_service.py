"""A shuffler goes out of service and comes back, and a table opens without it (R-36b, INC-6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controller.table import closing
from controller.table.args import Apply, Args, Judge, Judged
from controller.table.cards import count_of
from controller.table.changes import with_shuffler
from controller.table.closing import OUT_OF_USE
from controller.table.draft import Draft
from controller.table.inputs import OperatorEvent, Refusal
from controller.table.profiles import TableRules
from controller.table.state import Cycle, Place, TableState

MANUAL = "manual-shoe"


def unusable(rules: TableRules, state: TableState) -> Refusal | None:
    """Why the shuffler may not be used, if it may not."""
    if rules.shuffler is None:
        return Refusal("no_such_device", "this table has no shuffler: its cards are shuffled by hand")
    if state.shuffler.out:
        return Refusal("out_of_service", "the shuffler is out of service", OUT_OF_USE)
    if state.manual:
        why = "this table was opened without its shuffler: close it and open it again to use the machine"
        return Refusal("opened_without_shuffler", why, OUT_OF_USE)
    return None


def _judge_out(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    _shuffler(rules, tap)
    if state.shuffler.out:
        return Refusal("already_known", "the shuffler is out of service", OUT_OF_USE)
    return {"device": rules.shuffler, "batch": state.shuffler.batch}


def _judge_in(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    _shuffler(rules, tap)
    if not state.shuffler.out:
        return Refusal("already_known", "the shuffler is in service", OUT_OF_USE)
    inside = state.shuffler.batch and state.batches[state.shuffler.batch].at(Place.SHUFFLER)
    if inside not in (None, rules.batch_size):
        why = f"{count_of(inside or 0, 'are')} in the shuffler: take them out first"
        return Refusal("shuffler_not_empty", why, OUT_OF_USE)
    return {"device": rules.shuffler}


def _shuffler(rules: TableRules, tap: OperatorEvent) -> None:
    if rules.shuffler is None:
        raise ValueError("this table has no shuffler")
    if tap.args.get("device") != rules.shuffler:
        raise ValueError(f"write device={rules.shuffler}: only the {rules.shuffler} goes out of service")


def _out(state: TableState, data: Mapping[str, Any]) -> TableState:
    return closing.not_confirmed(with_shuffler(state, out=True), data["device"])


def _in(state: TableState, data: Mapping[str, Any]) -> TableState:
    """Its cycle counter is taken over anew: it may have been mended and tried."""
    return closing.not_confirmed(with_shuffler(state, out=False, counter=None), data["device"])


def _after_out(draft: Draft, before: TableState) -> None:
    """No partial credit: the batch inside is unshuffled again."""
    batch = before.shuffler.batch
    if batch is not None and before.shuffler.stage is not Cycle.NONE:
        cause = "the shuffler went out of service"
        draft.add("batch_voided", {"batch": batch, "cause": cause, **draft.moves("cycle_void")})


# --- without the shuffler ---


def judge_mode(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    """How the table opens: with its shuffler, or without one that is out of service and empty (INC-6)."""
    mode = tap.args.get("mode", rules.mode)
    if rules.hand_dealt and mode in (rules.mode, MANUAL):
        if refused := _no_hand_without_shuffler(rules, state, mode):
            return refused
    elif mode not in (rules.mode, *_without(rules)):
        or_without = "".join(f", or without its shuffler as {other}" for other in _without(rules))
        raise ValueError(f"mode={mode}: this table opens as {rules.mode}{or_without}")
    if mode == rules.mode and rules.shuffler is None:
        return {"manual": True, "empty": []}
    if mode == rules.mode and not state.shuffler.out:
        return {"manual": False, "empty": []}
    if mode == rules.mode != MANUAL:
        ways = (*(f"open mode={other}" for other in _without(rules)), f"in_service device={rules.shuffler}")
        return Refusal("out_of_service", "the shuffler is out of service", OUT_OF_USE, ways)
    if not state.shuffler.out:
        why = f"{MANUAL} is for a table whose shuffler is out of service"
        return Refusal("shuffler_in_service", why, "13:69F-2.2(d)3", ("open",))
    shuffler = rules.shuffler
    if silence := closing.not_answered(state, rules.devices):
        return silence
    if shuffler is None or shuffler not in state.empty or state.shuffler.surplus:
        look = (f"confirm_empty {closing.look(rules, state, shuffler)[0]}",) if shuffler else ()
        return Refusal("not_confirmed_empty", "see that no card is left in the shuffler", OUT_OF_USE, look)
    return {"manual": True, "empty": [shuffler]}


def _without(rules: TableRules) -> tuple[str, ...]:
    """The other mode in which this table may open, without its shuffler."""
    bound = rules.shuffler is None or rules.hand_dealt or rules.continuous or rules.mode == MANUAL
    return () if bound else (MANUAL,)


def _no_hand_without_shuffler(rules: TableRules, state: TableState, mode: str) -> Refusal | None:
    """Nothing is dealt from the hand unless its shuffler works (R-04)."""
    if mode == rules.mode and not state.shuffler.out and not state.silent(rules.shuffler):
        return None
    why = "cards are dealt from the hand only with a shuffler that works"
    again = (f"in_service device={rules.shuffler}",) if state.shuffler.out else ()
    return Refusal("device_absent", why, "13:69F-2.2(c)", again)


def examples(rules: TableRules, state: TableState, event: str) -> list[tuple[str, Args]]:
    """How a tap that is called for is written."""
    device: list[tuple[str, Args]] = [(f"device={rules.shuffler}", {"device": rules.shuffler})]
    match event:
        case "open":
            return [("", {}), *((f"mode={other}", {"mode": other}) for other in _without(rules))]
        case "out_of_service" if rules.night and state.shuffler.batch and state.silent(rules.shuffler):
            return device
        case "in_service" if state.shuffler.out:
            return device
        case _:
            return []


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {
    "out_of_service": (_judge_out, ("device",)),
    "in_service": (_judge_in, ("device",)),
}
APPLY: dict[str, Apply] = {
    "out_of_service": _out,
    "in_service": _in,
}
FOLLOW: dict[str, Callable[[Draft, TableState], None]] = {
    "out_of_service": _after_out,
}
