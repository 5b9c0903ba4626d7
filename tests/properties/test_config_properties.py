"""Properties of `examine`: it accepts what a second reading of the rules accepts, and never breaks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.config import examine

WAGERS = [
    "match-the-dealer",
    "optional-bonus",
    "twenty-point",
    "in-between",
    "seven",
    "progressive",
    "over-under-13",
    "same-suit",
    "bonus",
]
COLOURS = ["red", "blue", "green", "white"]


def table(
    decks: tuple[int, int], backs: tuple[str, str], cutting: str, edge: str, wagers: list[str], floor: str
) -> bytes:
    return f"""
[table]
id = "T"
wagers = {wagers!r}
[rules]
deck_floor = "{floor}"
[cards]
cutting_card = "{cutting}"
edge = "{edge}"
[[cards.batch]]
id = "A"
back = "{backs[0]}"
decks = {decks[0]}
[[cards.batch]]
id = "B"
back = "{backs[1]}"
decks = {decks[1]}
[devices.s]
driver = "managed-shoe"
port = "mem:a"
[devices.f]
driver = "managed-shuffler"
port = "mem:b"
""".encode()


def allowed(
    decks: tuple[int, int], backs: tuple[str, str], cutting: str, edge: str, wagers: list[str], floor: str
) -> bool:
    """The rules once more, as one expression a rule, written apart from the checks."""
    n, w = decks[0] * (2 if floor == "total" else 1), set(wagers)
    return (
        decks[0] == decks[1]
        and 1 <= decks[0] <= 8
        and backs[0] != backs[1]
        and cutting not in {*backs, edge}
        and not (w & {"match-the-dealer", "optional-bonus"} and n not in (6, 8))
        and not (w & {"seven", "progressive"} and n < 4)
        and not (w & {"twenty-point", "in-between"} and n < 2)
        and not ("match-the-dealer" in w and w & {"optional-bonus", "in-between"})
        and len(w & {"over-under-13", "same-suit", "seven"}) + ("progressive" in w) <= 1
    )


colour = st.sampled_from(COLOURS)
decks = st.one_of(st.sampled_from([(6, 6), (8, 8)]), st.tuples(st.integers(-1, 9), st.integers(-1, 9)))
wagers = st.lists(st.sampled_from(WAGERS), unique=True, max_size=3)


@pytest.mark.rule("R-01", "R-02", "R-03", "R-05", "R-39", "R-40")
@settings(max_examples=150)
@given(decks, st.tuples(colour, colour), colour, colour, wagers, st.sampled_from(["batch", "total"]))
def test_exactly_the_tables_that_the_rules_allow_are_accepted(
    counts: tuple[int, int], backs: tuple[str, str], cutting: str, edge: str, offered: list[str], floor: str
) -> None:
    found, problems = examine(table(counts, backs, cutting, edge, offered, floor))
    assert (found is not None) == allowed(counts, backs, cutting, edge, offered, floor), problems
    assert (found is None) == bool(problems)


names = st.sampled_from(["table", "cards", "batch", "devices", "id", "back", "port", "driver", "x"])
junk = st.recursive(
    st.one_of(st.booleans(), st.integers(-9, 9), st.text("ab", max_size=3)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


@settings(max_examples=100)
@given(st.dictionaries(names, junk, max_size=4))
def test_any_file_ends_in_problems_and_never_in_an_error(tree: dict[str, Any]) -> None:
    found, problems = examine("\n".join(f"{k} = {toml(v)}" for k, v in tree.items()).encode())
    assert found is None
    assert problems
    assert all("\n" not in str(problem) for problem in problems)


@settings(max_examples=100)
@given(st.binary(max_size=60))
def test_any_bytes_end_in_problems(data: bytes) -> None:
    assert examine(data)[1]
