"""Every combination of profile, mode, game, decks, batches, wagers and devices, against a second reading.

The values come from the rule table of modes; what is forbidden, and by which clause, is read here once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product

import pytest

from controller.config import examine
from controller.table import modes
from controller.table.eligibility import MOST_BOXES, MOST_DECKS, WAGERS
from controller.table.modes import Asked
from tests.unit.test_config_modes import table

MODES = list(product(modes.PROFILES, modes.NAMES))
DECKS = range(MOST_DECKS + 2)
TWO_AT_MOST = (("red",), ("red", "blue"), ("red", "Red"))
BACKS = ((), *TWO_AT_MOST, ("red", "blue", "green"))
SHOES = ((), ("shoe",), ("continuous",))
SHUFFLERS: tuple[tuple[str, ...], ...] = ((), ("shuffler",))


@dataclass(frozen=True)
class Case:
    profile: str
    mode: str
    game: str = modes.BLACKJACK
    decks: int = 6
    backs: tuple[str, ...] = ("red", "blue")
    devices: tuple[str, ...] = ("shoe", "shuffler")
    wagers: tuple[str, ...] = ()
    cutting_card: bool = True
    boxes: int = 7

    @property
    def night(self) -> bool:
        return self.profile == "nj-casino-night"

    @property
    def played(self) -> str:
        """The mode at a licensed casino; at a casino night there is one."""
        return "night" if self.night else self.mode

    @property
    def shoe(self) -> bool:
        return bool({"shoe", "continuous"} & set(self.devices))

    @property
    def offers(self) -> set[str]:
        """The wagers of licensed blackjack whose rules are judged at all."""
        return set() if self.played in ("night", "deck-per-round") else set(self.wagers)


SECTIONS = {
    "match-the-dealer": "13:69F-2.23(a)",
    "optional-bonus": "13:69F-2.25",
    "twenty-point": "13:69F-2.24",
    "in-between": "13:69F-2.26",
    "seven": "13:69F-2.17(a)3",
    "progressive": "13:69F-2.19",
    "over-under-13": "13:69F-2.17(a)1",
    "same-suit": "13:69F-2.17(a)2",
    "bonus": "13:69F-2.20",
}
OWN = "Cutcard's own limit"
FROM_A_SHOE = ("two-batch-shoe", "manual-shoe")
NIGHT_MODES = {
    "two-batch-shoe": "13:47-20.22(b)2i",
    "hand-dealt": "13:47-20.22(c)1",
    "continuous": "13:47-20.22(g)6",
    "deck-per-round": "13:47-20.22(b)2",
}
FORBIDDEN: list[tuple[str, Callable[[Case], bool]]] = [
    # 13:69F-2.2(a): decks, alike but for two batches; a cutting card.
    ("13:69F-2.2(a)", lambda c: c.played in (*FROM_A_SHOE, "continuous") and c.decks == 0),
    ("13:69F-2.2(a)", lambda c: c.played in ("manual-shoe", "continuous") and len(c.backs) != 1),
    ("13:69F-2.2(a)", lambda c: c.played in (*FROM_A_SHOE, "hand-dealt") and not c.cutting_card),
    ("13:69F-2.2(a)1", lambda c: c.played == "hand-dealt" and c.decks not in (1, 2)),
    ("13:69F-2.2(a)2", lambda c: bool(c.offers & {"twenty-point", "in-between"}) and c.decks == 1),
    ("13:69F-2.2(a)3", lambda c: bool(c.offers & {"seven", "progressive"}) and 1 <= c.decks < 4),
    (
        "13:69F-2.2(a)4",
        lambda c: bool(c.offers & {"match-the-dealer", "optional-bonus"}) and c.decks in (1, 2, 3, 4, 5, 7),
    ),
    (OWN, lambda c: c.played in (*FROM_A_SHOE, "continuous") and c.decks > 8),
    # 2.2(c), 2.6A: from the hand.
    ("13:69F-2.2(c)", lambda c: c.played == "hand-dealt" and "shuffler" not in c.devices),
    ("13:69F-2.2(c)", lambda c: c.played == "hand-dealt" and len(c.backs) != 2),
    ("13:69F-2.6A(b)", lambda c: c.played == "hand-dealt" and c.shoe),
    # 2.2(d): a shuffler goes with two batches, and two batches with a shuffler.
    ("13:69F-2.2(d)", lambda c: c.played == "two-batch-shoe" and "shuffler" not in c.devices),
    ("13:69F-2.2(d)", lambda c: c.played == "manual-shoe" and "shuffler" in c.devices),
    ("13:69F-2.2(d)1", lambda c: c.played == "two-batch-shoe" and len(c.backs) != 2),
    (
        "13:69F-2.2(d)2",
        lambda c: c.played in ("two-batch-shoe", "hand-dealt") and c.backs == ("red", "Red"),
    ),
    ("13:69F-2.6(a)", lambda c: c.played in FROM_A_SHOE and not c.shoe),
    # 2.17, 2.23(g): wagers that exclude each other.
    ("13:69F-2.17(a)", lambda c: len(c.offers & {"over-under-13", "same-suit", "seven"}) > 1),
    (
        "13:69F-2.17(a)",
        lambda c: "progressive" in c.offers and bool(c.offers & {"over-under-13", "same-suit", "seven"}),
    ),
    (
        "13:69F-2.23(g)",
        lambda c: "match-the-dealer" in c.offers and bool(c.offers & {"optional-bonus", "in-between"}),
    ),
    # 2.21: the continuous shuffler.
    ("13:69F-2.21", lambda c: c.played == "continuous" and "continuous" not in c.devices),
    ("13:69F-2.21", lambda c: c.played == "continuous" and ("shuffler" in c.devices or c.cutting_card)),
    ("13:69F-2.21", lambda c: c.played not in ("continuous", "night") and "continuous" in c.devices),
    ("13:47-20.22(g)6", lambda c: c.night and "continuous" in c.devices),
    # 23.2(b): one deck a round.
    ("13:69F-23.2(b)", lambda c: not c.night and (c.mode == "deck-per-round") == (c.game == "blackjack")),
    ("13:69F-23.2(b)", lambda c: c.played == "deck-per-round" and c.decks != 1),
    ("13:69F-20.2", lambda c: c.played == "deck-per-round" and not c.cutting_card),
    ("13:69F-23.2(b)", lambda c: c.played == "deck-per-round" and len(c.backs) not in (1, 2)),
    (
        "13:69F-23.2(b)",
        lambda c: (
            c.played == "deck-per-round"
            and len(c.backs) == 2
            and ("shuffler" not in c.devices or c.backs == ("red", "Red"))
        ),
    ),
    *(
        (section, lambda c, name=name: c.played == "deck-per-round" and name in c.wagers)  # type: ignore[misc]
        for name, section in SECTIONS.items()
    ),
    (OWN, lambda c: not c.night and not 1 <= c.boxes <= 7),
    ("13:69F-31.10", lambda c: c.played == "deck-per-round" and c.game == "asia-poker" and c.boxes == 7),
    # 13:47-20.22: casino nights.
    ("13:47-20.22(b)1", lambda c: c.night and c.boxes != 7),
    ("13:47-20.22(b)2", lambda c: c.night and (c.game != "blackjack" or c.decks not in (1, 2, 3, 4))),
    ("13:47-20.22(b)2i", lambda c: c.night and len(c.backs) != 1),
    ("13:47-20.22(c)", lambda c: c.night and "reader" in c.devices),
    ("13:47-20.22(g)", lambda c: c.night and bool(c.wagers)),
]


def forbidden(case: Case) -> set[str]:
    if case.night and case.mode != "manual-shoe":
        return {NIGHT_MODES[case.mode]}
    return {clause for clause, forbids in FORBIDDEN if forbids(case)}


def judged(case: Case) -> set[str]:
    roles = {"continuous": "shoe"}
    asked = Asked(
        profile=case.profile,
        mode=case.mode,
        game=case.game,
        boxes=case.boxes,
        wagers=case.wagers,
        counts=[case.decks] * len(case.backs) or [case.decks],
        backs=case.backs,
        cutting_card="yellow" if case.cutting_card else None,
        roles=[roles.get(device, device) for device in case.devices],
        shuffles="continuous" in case.devices,
    )
    return {problem.clause or OWN for problem in modes.judge(asked)}


def cases(profile: str, mode: str) -> Iterator[Case]:
    """All that a table of this profile and mode may be made of, and each whole table a little changed."""
    none_or_one = ((), *((name,) for name in WAGERS))
    game = "three-card-poker" if mode == "deck-per-round" else modes.BLACKJACK
    for decks, backs, shoe, shuffler, wagers in product(DECKS, TWO_AT_MOST, SHOES, SHUFFLERS, none_or_one):
        yield Case(profile, mode, game, decks, backs, (*shoe, *shuffler), wagers)
    for backs, shoe, shuffler in product(BACKS, SHOES, SHUFFLERS):
        table = Case(profile, mode, game, 1, backs, (*shoe, *shuffler))
        yield replace(table, cutting_card=False)
        yield replace(table, devices=(*table.devices, "reader"))
        for other, boxes in product(modes.GAMES, range(MOST_BOXES + 2)):
            yield replace(table, game=other, boxes=boxes)
    for pair, decks in product(combinations(WAGERS, 2), DECKS):
        yield Case(profile, mode, decks=decks, wagers=pair)


@pytest.mark.rule("13:47-20.22(b)1", "13:47-20.22(b)2", "13:47-20.22(b)2i", "13:47-20.22(f)")
@pytest.mark.rule("R-01", "R-02", "R-03", "R-04", "R-05", "R-11", "R-39", "R-40", "R-41", "R-52", "R-79")
@pytest.mark.parametrize(("profile", "mode"), MODES)
def test_each_table_is_refused_with_the_clauses_that_forbid_it_and_no_others(profile: str, mode: str) -> None:
    sound = 0
    for case in cases(profile, mode):
        assert judged(case) == forbidden(case), case
        sound += not forbidden(case)
    assert (sound > 0) == (profile == "nj-casino" or mode == "manual-shoe")


DRIVERS = {
    "shoe": ("shoe", "managed-shoe"),
    "continuous": ("shoe", "managed-continuous"),
    "shuffler": ("shuffler", "managed-shuffler"),
    "reader": ("reader", "hole-card-reader"),
}


@pytest.mark.parametrize(("profile", "mode"), MODES)
def test_a_table_toml_is_told_each_of_those_clauses(profile: str, mode: str) -> None:
    """One file for each set of clauses, the first case that has it."""
    one_of_each = {frozenset(forbidden(case)): case for case in reversed([*cases(profile, mode)])}
    singly = {clauses: case for clauses, case in one_of_each.items() if len(clauses) < 2}
    for clauses, case in singly.items():
        found, listed = examine(
            table(
                " ".join(case.backs),
                case.decks,
                dict(DRIVERS[device] for device in case.devices),
                table={
                    "profile": profile,
                    "mode": mode,
                    "game": case.game,
                    "boxes": case.boxes,
                    "wagers": list(case.wagers),
                },
                cards={} if case.cutting_card else {"cutting_card": None},
            )
        )
        assert {problem.clause for problem in listed if problem.clause} == clauses - {OWN}, case
        assert (found is None) == bool(clauses)
