"""How the arguments of a tap are read. Each raises ValueError with a sentence that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controller.table.inputs import OperatorEvent, Refusal, Role
from controller.table.profiles import TableRules
from controller.table.round import DEALER, box
from controller.table.state import TableState

Args = Mapping[str, Any]
Judged = dict[str, Any] | Refusal
"""The data of a tap's fact, or why the tap is refused."""
Judge = Callable[[TableRules, TableState, OperatorEvent], Judged]
Apply = Callable[[TableState, Mapping[str, Any]], TableState]
"""What a fact with these data does to the state."""


def whole(args: Args, name: str) -> int:
    if name not in args:
        raise ValueError(f"{name}=NUMBER is missing")
    value = args[name]
    try:
        if isinstance(value, bool):
            raise TypeError
        return int(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value} is not a whole number") from None


def boxes(rules: TableRules, args: Args) -> tuple[int, ...]:
    value = args.get("boxes", "")
    parts = value if isinstance(value, list) else str(value).split(",")
    try:
        numbers = sorted({int(p) for p in parts if str(p).strip()})
    except (TypeError, ValueError):
        raise ValueError(f"boxes={value} is not a list such as 1,2,5") from None
    if not numbers:
        raise ValueError("boxes=1,2,5 is missing: name every box with a wager")
    if numbers[0] < 1 or numbers[-1] > rules.boxes:
        raise ValueError(f"this table has boxes 1 to {rules.boxes}")
    return tuple(numbers)


def seat(rules: TableRules, value: Any) -> str:
    if value == DEALER:
        return DEALER
    text = str(value).removeprefix("box ")
    if not text.isdigit() or not 1 <= int(text) <= rules.boxes:
        raise ValueError(f"{value!r} is neither a box from 1 to {rules.boxes} nor the dealer")
    return box(int(text))


def batch(rules: TableRules, args: Args) -> str:
    ids = [b.id for b in rules.batches]
    batch = args.get("batch")
    if batch not in ids:
        raise ValueError(f"batch={batch} is none of this table's batches: {', '.join(ids)}")
    return str(batch)


def flag(args: Args, name: str) -> bool:
    value = args.get(name, False)
    if value in (True, "true", "yes", "1"):
        return True
    if value in (False, "false", "no", "0"):
        return False
    raise ValueError(f"{name}={value} is neither true nor false")


def other_person(tap: OperatorEvent, first: str) -> bool:
    """Whether the second of two people taps: not `first` again, unless the caller holds every role."""
    return tap.who != first or tap.roles >= frozenset(Role)
