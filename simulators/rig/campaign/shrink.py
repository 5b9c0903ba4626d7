"""The shortest script that still makes a table fail the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")

MOST_TRIES = 40
"""Tables that are played again for one failure at most: what is left then is short enough."""


class Enough(Exception):
    """No more tries are left."""


def shortest(steps: Sequence[T], fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Few of `steps` for which `fails` still holds, in their order: delta debugging.

    No single one of what is left can be taken out, unless the tries ran out first. `fails(steps)` is known.
    """
    left, tries = tuple(steps), MOST_TRIES

    def still(fewer: tuple[T, ...]) -> bool:
        nonlocal tries
        if not tries:
            raise Enough
        tries -= 1
        return fails(fewer)

    try:
        if still(()):
            return ()
        parts = 2
        while len(left) > 1:
            fewer = next((rest for rest in _without_each(left, parts) if still(rest)), None)
            if fewer is not None:
                left, parts = fewer, max(parts - 1, 2)
            elif parts < len(left):
                parts = min(2 * parts, len(left))
            else:
                break
    except Enough:
        pass
    return left


def _without_each(steps: tuple[T, ...], parts: int) -> list[tuple[T, ...]]:
    """`steps` without its first, second ... of `parts` parts."""
    edges = [len(steps) * index // parts for index in range(parts + 1)]
    return [steps[:start] + steps[end:] for start, end in pairwise(edges)]
