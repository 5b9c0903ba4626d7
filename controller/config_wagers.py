"""The `[wagers.NAME]` sections of a table.toml: what is posted of a wager."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence

from controller.config_file import Wager
from controller.table.eligibility import MATCH_ODDS, DeckFloor, Problem
from controller.table.profiles import MatchTerms
from controller.table.side_wagers import MATCH

FLOOR, LIMITS = "13:69F-2.23(f)", "13:69F-2.23(c)"


def match(
    sections: Mapping[str, Wager], offered: Sequence[str], counts: Sequence[int | None], floor: str
) -> tuple[MatchTerms | None, list[Problem]]:
    """The terms of match-the-dealer where it is offered: at least the table's odds, and those without a word.

    Its deck counts are judged elsewhere; one that has no odds leaves them out here.
    """
    problems = list(_sections(sections, offered))
    known = [count for count in counts if count is not None]
    decks = sum(known) if floor == DeckFloor.TOTAL else known[0] if known else 0
    least = MATCH_ODDS.get(decks)
    if MATCH not in offered or least is None:
        return None, problems
    asked = sections.get(MATCH, Wager())
    problems += _terms(asked, decks, least)
    other_suit, same_suit = (
        own if own is not None else odds
        for own, odds in zip((asked.other_suit, asked.same_suit), least, strict=True)
    )
    return MatchTerms(other_suit, same_suit, asked.minimum, asked.maximum), problems


def _sections(sections: Mapping[str, Wager], offered: Sequence[str]) -> Iterator[Problem]:
    for name in sections:
        key = f"wagers.{name}"
        if name != MATCH:
            near = difflib.get_close_matches(name, [MATCH], n=1, cutoff=0.55)
            hint = f"did you mean {MATCH}?" if near else f"terms are read of {MATCH} alone"
            yield Problem(f"nothing reads this; {hint}", key=key)
        elif name not in offered:
            yield Problem("this table does not offer the wager: name it in table.wagers", key=key)


def _terms(asked: Wager, decks: int, least: tuple[int, int]) -> Iterator[Problem]:
    key = f"wagers.{MATCH}"
    suits = ("other_suit", "another suit"), ("same_suit", "the same suit")
    for (name, suit), odds, floor in zip(suits, (asked.other_suit, asked.same_suit), least, strict=True):
        if odds is not None and odds < floor:
            text = f"a matching card of {suit} pays no less than {floor} to 1 with {decks} decks, not {odds}"
            yield Problem(text, FLOOR, f"{key}.{name}")
    for name, limit in (("minimum", asked.minimum), ("maximum", asked.maximum)):
        if limit is not None and limit < 1:
            yield Problem(f"{limit} is no wager: 1 at least", LIMITS, f"{key}.{name}")
    if asked.minimum is not None and asked.maximum is not None and asked.maximum < asked.minimum:
        text = f"{asked.maximum} is less than the minimum of {asked.minimum}"
        yield Problem(text, LIMITS, f"{key}.maximum")
