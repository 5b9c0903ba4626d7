"""What stands in a YAML tree, read as what it must be; each mistake has its place and what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from simulators.faults.fault import LONGEST_S, either
from simulators.faults.script import near, quoted


class Wrong(Exception):
    """Something in the tree at `place` (keys and indexes) is wrong."""

    def __init__(self, what: str, *place: str | int) -> None:
        super().__init__(what)
        self.place = place


def line_of(text: str, place: Sequence[str | int]) -> int:
    """The line of the innermost key or item of `place` that is there."""
    node = yaml.compose(text, yaml.BaseLoader)
    line = 1
    for step in place:
        if isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == step]
            if not found:
                break
            line, node = found[0][0].start_mark.line + 1, found[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
            line = node.start_mark.line + 1
        else:
            break
    return line


def keys_of(tree: Any, known: Iterable[str], *place: str | int) -> dict[str, Any]:
    known = list(known)
    if not isinstance(tree, dict):
        raise Wrong(f"here belongs KEY: VALUE, the keys are {', '.join(known)}", *place)
    for key in tree:
        if key not in known:
            raise Wrong(
                f"there is no key {quoted(key)}{near(str(key), known)} (there are {', '.join(known)})",
                *place,
                key,
            )
    return tree


def items_of(value: Any, *place: str | int) -> list[Any]:
    if not isinstance(value, list):
        raise Wrong(f"{place[-1]} is a list: [..., ...], or one item a line behind a -", *place)
    return value


def word(value: Any, *place: str | int) -> str:
    if not isinstance(value, str) or not value:
        raise Wrong(f"{place[-1]} is one word or number, not a list, a map or nothing", *place)
    return value


def number(value: Any, least: int, *place: str | int) -> int:
    text = word(value, *place)
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < least:
        raise Wrong(f"{place[-1]} is a whole number from {least} on, not {quoted(text)}", *place)
    return int(text)


def seconds(value: Any, *place: str | int) -> float:
    text = word(value, *place)
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) or float(text) > LONGEST_S:
        raise Wrong(
            f"{place[-1]} is a number of seconds from 0 to {LONGEST_S:.0f}, a day, not {text[:40]!r}", *place
        )
    return float(text)


def choice(value: Any, known: Mapping[str, Any], *place: str | int) -> Any:
    text = word(value, *place)
    if text not in known:
        raise Wrong(f"{place[-1]} is {either(known)}, not {quoted(text)}{near(text, known)}", *place)
    return known[text]
