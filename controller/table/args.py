"""How the arguments of a tap are read. Each raises ValueError with a sentence that says what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from itertools import pairwise
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


def number(text: str) -> int:
    """A whole number in the digits 0 to 9. `int` alone would take those of other scripts too."""
    if not re.fullmatch("-?[0-9]+", text):
        raise ValueError(f"{text} is not a whole number")
    return int(text)


def whole(args: Args, name: str) -> int:
    if name not in args:
        raise ValueError(f"{name}=NUMBER is missing")
    try:
        return number(str(args[name]))
    except ValueError:
        raise ValueError(f"{name}={args[name]} is not a whole number") from None


def boxes(rules: TableRules, args: Args, name: str = "boxes") -> tuple[int, ...]:
    """The boxes that are named, lowest first; one that is named twice may stand for another."""
    value = args.get(name, "")
    parts = value if isinstance(value, list) else str(value).split(",")
    try:
        numbers = sorted(number(str(p).strip()) for p in parts if value)
    except ValueError:
        raise ValueError(f"{name}={value} is not a list such as 1,2,5") from None
    if not numbers:
        raise ValueError(f"{name}=1,2,5 is missing: name every box with a wager")
    if numbers[0] < 1 or numbers[-1] > rules.boxes:
        raise ValueError(f"this table has boxes 1 to {rules.boxes}")
    if twice := [n for n, after in pairwise(numbers) if n == after]:
        raise ValueError(f"{name}={value} names box {twice[0]} twice")
    return tuple(numbers)


def seat(rules: TableRules, value: Any) -> str:
    if value == DEALER:
        return DEALER
    text = str(value).removeprefix("box ")
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= rules.boxes:
        raise ValueError(f"{value!r} is neither a box from 1 to {rules.boxes} nor the dealer")
    return box(int(text))


def one_of(args: Args, name: str, known: Sequence[str], which: str = "") -> str:
    """The argument, one of the words `known`; `which` tells whose words they are."""
    if name not in args:
        raise ValueError(f"{name}={'|'.join(known)} is missing")
    if args[name] not in known:
        raise ValueError(f"{name}={args[name]} is none of {which}{', '.join(known)}")
    return str(args[name])


def batch(rules: TableRules, args: Args) -> str:
    return one_of(args, "batch", [b.id for b in rules.batches], "this table's batches: ")


def device(rules: TableRules, args: Args) -> str:
    if not rules.devices:
        raise ValueError("this table has no device: nothing holds cards but people's hands")
    return one_of(args, "device", rules.devices, "this table's: ")


def moment(name: str, text: str) -> str:
    """A date, or a date and time, as it was written."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{name}={text} is no time: write it as 2026-01-31 or 2026-01-31T14:05") from None
    return text


def flag(args: Args, name: str) -> bool:
    value = args.get(name, False)
    if value in (True, "true", "yes", "1"):
        return True
    if value in (False, "false", "no", "0"):
        return False
    raise ValueError(f"{name}={value} is neither true nor false")


def digest(args: Args) -> str:
    """What tells whether a tap under a used id says the same: `cards=9` as text is `cards=9` as a number."""
    said = {name: str(v).lower() if isinstance(v, bool) else str(v) for name, v in args.items()}
    return sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def other_person(tap: OperatorEvent, first: str) -> bool:
    """Whether the second of two people taps: not `first` again, unless the caller holds every role."""
    return tap.who != first or tap.roles >= frozenset(Role)
