"""Which tables the rules allow at all: R-01..R-05, R-39, R-40 as pure functions over plain values.

A value that is None is unknown (it was missing or misspelt and is reported elsewhere); the checks that need
it are then left out, so that one mistake does not hide or invent another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

MOST_DECKS = 8
"""Our own limit, decks a batch: the largest shoe and shuffler in use."""
MOST_BOXES = 7
"""Boxes on a blackjack layout."""
DOUBLE_SHOE = "58 Pa. Code 633a.3(c)"

BATCH_CLAUSES = {"batches": "13:69F-2.2(d)1", "backs": "13:69F-2.2(d)2"}
ANY_DECKS = frozenset(range(1, 2 * MOST_DECKS + 1))
"""What one batch or both together may have."""


class DeckFloor(StrEnum):
    """Which decks a wager's floor counts (R-03): those of each batch, or of both in total."""

    BATCH = "batch"
    TOTAL = "total"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong: `key` is its place in table.toml, `clause` the rule broken (None: our own limit)."""

    text: str
    clause: str | None = None
    key: str = ""

    def __str__(self) -> str:
        where = f"{self.key}: " if self.key else ""
        return f"{where}{self.text}" + (f" [{self.clause}]" if self.clause else "")


@dataclass(frozen=True, slots=True)
class Wager:
    """A wager: the deck counts it may be offered with (`DeckFloor`), and the clause for that.

    `section` is where the texts have it. `settled_first` wagers
    are settled before the dealer's second card (2.17(d), 2.23(e)).
    """

    section: str
    decks: frozenset[int] = ANY_DECKS
    says: str = ""
    clause: str = ""
    settled_first: bool = False


_TWO = Wager("13:69F-2.24", ANY_DECKS - {1}, "at least 2 decks", "13:69F-2.2(a)2")
_FOUR = Wager("13:69F-2.19", ANY_DECKS - {1, 2, 3}, "at least 4 decks", "13:69F-2.2(a)3")
_SIX_OR_EIGHT = Wager("13:69F-2.25", frozenset({6, 8}), "exactly 6 or 8 decks", "13:69F-2.2(a)4")

WAGERS: Mapping[str, Wager] = {
    "match-the-dealer": replace(_SIX_OR_EIGHT, section="13:69F-2.23(a)", settled_first=True),
    "optional-bonus": _SIX_OR_EIGHT,
    "twenty-point": _TWO,
    "in-between": replace(_TWO, section="13:69F-2.26"),
    "seven": replace(_FOUR, section="13:69F-2.17(a)3", settled_first=True),
    "progressive": _FOUR,
    "over-under-13": Wager("13:69F-2.17(a)1", settled_first=True),
    "same-suit": Wager("13:69F-2.17(a)2", settled_first=True),
    "bonus": Wager("13:69F-2.20"),
}
MATCH_ODDS: Mapping[int, tuple[int, int]] = {6: (4, 11), 8: (3, 14)}
"""The least odds to one of a card that matches the dealer's first, of another suit and of the same, by the
number of decks: 13:69F-2.23(f)."""
ONE_OF = ("over-under-13", "same-suit", "seven")
"""The additional wagers of 2.17(a): one of them, and none beside the progressive (R-40)."""


def floors(
    counts: Sequence[int | None], wagers: Sequence[str], floor: DeckFloor | None = DeckFloor.BATCH
) -> list[Problem]:
    """R-03: `counts` are the decks of each batch, any order; equal counts are judged once."""
    sound = sorted(count for count in counts if count is not None and 1 <= count <= MOST_DECKS)
    if floor is DeckFloor.TOTAL:
        judged, each = [sum(sound)] if len(sound) == 2 else [], "in both batches together"
    else:
        judged, each = sound if floor is DeckFloor.BATCH else [], "a batch"
    found = []
    for count in judged:
        for name in wagers:
            wager = WAGERS.get(name)
            if wager is not None and count not in wager.decks:
                text = f"{name} needs {wager.says} {each}, this table has {count}"
                found.append(Problem(text, wager.clause, "table.wagers"))
    return list(dict.fromkeys(found))


def exclusions(wagers: Sequence[str]) -> list[Problem]:
    """R-39, R-40: wagers that may not be offered together."""
    offered = set(wagers)
    found = [
        Problem(
            f"match-the-dealer may not be offered together with {other}", "13:69F-2.23(g)", "table.wagers"
        )
        for other in ("optional-bonus", "in-between")
        if {"match-the-dealer", other} <= offered
    ]
    small = [name for name in ONE_OF if name in offered]
    if "progressive" in offered:
        found += [
            Problem(f"{name} may not be offered where the progressive is", "13:69F-2.17(a)", "table.wagers")
            for name in small
        ]
    if len(small) > 1:
        text = f"only one of {', '.join(ONE_OF)} may be offered, not {' and '.join(small)}"
        found.append(Problem(text, "13:69F-2.17(a)", "table.wagers"))
    return found


def batches(
    backs: Sequence[str | None],
    counts: Sequence[int | None],
    numbers: Sequence[int] = (2,),
    clauses: Mapping[str, str] = BATCH_CLAUSES,
) -> list[Problem]:
    """R-05: as many batches as `numbers` allows, equal decks, different backs."""
    clause = clauses["batches"]
    if len(backs) not in numbers:
        wanted = " or ".join(("one batch is", "two batches are")[n - 1] for n in numbers)
        return [Problem(f"{wanted} needed, {len(backs)} given", clause, "cards.batch")]
    found = []
    known = [count for count in counts if count is not None]
    if len(set(known)) > 1:
        each = " and ".join(str(count) for count in known)
        text = f"the batches must have an equal number of decks, they have {each}"
        found.append(Problem(text, clause, "cards.batch"))
    colours = [_colour(back) for back in backs if back is not None]
    if "backs" in clauses and len(set(colours)) < len(colours):
        text = f"the batches must have backs of different colours, both are {colours[0]}"
        found.append(Problem(text, clauses["backs"], "cards.batch"))
    return found


def cutting_cards(
    common: str | None,
    own: Sequence[str | None],
    backs: Sequence[str | None],
    edge: str | None,
    *,
    double_shoe: bool,
    clause: str | None,
) -> list[Problem]:
    """R-02, R-51: `common` is in use with every batch; a double shoe has one a side, each batch its `own`.

    Whether `common` may be missing is judged elsewhere; `clause` is what its colour goes by.
    """
    here, why = clause, "one cutting card is in use: cards.cutting_card names it"
    if double_shoe:
        here, why = DOUBLE_SHOE, "a double shoe has one a side: each batch names its own instead"
    places = [("cards.cutting_card", common, not double_shoe)]
    places += [(f"cards.batch[{n}].cutting_card", colour, double_shoe) for n, colour in enumerate(own, 1)]
    found = []
    for key, colour, wanted in places:
        if colour is None and wanted and double_shoe:
            found.append(Problem("is missing: the colour of the cutting card", here, key))
        elif colour is not None and not wanted:
            found.append(Problem(why, here, key))
        elif colour is not None:
            found += [Problem(text, clause, key) for text in _alike(colour, backs, edge)]
    return found


def _alike(colour: str, backs: Sequence[str | None], edge: str | None) -> Iterator[str]:
    """What a cutting card of this colour could be taken for."""
    worn = dict.fromkeys(_colour(back) for back in backs if back is not None)
    if _colour(colour) in worn:
        yield f"the cutting card is {colour} like the backs of a batch: take another colour"
    if edge is not None and _colour(colour) == _colour(edge):
        yield f"the cutting card is {colour} like the edges of the cards: take another"


def _colour(name: str) -> str:
    return " ".join(name.casefold().split())
