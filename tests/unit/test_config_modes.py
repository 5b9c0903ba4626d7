"""Which profile runs which mode, with which games, decks, batches and devices: the rule table of modes."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from controller.config import Config, examine
from controller.table.eligibility import Problem
from controller.table.profiles import Burn
from controller.table.profiles.rules_table import RULES
from tests.unit.test_config_tables import toml

PORTS = {name: f"mem:{name}" for name in ("shoe", "shuffler", "reader")}
DRIVERS = {"shoe": "managed-shoe", "shuffler": "managed-shuffler"}
TABLE = """
[table]
id = "T"
[cards]
cutting_card = "yellow"
"""


def table(backs: str, decks: int, devices: dict[str, str], **sections: Any) -> bytes:
    """A table of these batches and devices, a driver each; `sections` add keys, None takes one out."""
    tree: dict[str, Any] = tomllib.loads(TABLE)
    tree["cards"]["decks_per_batch"] = decks
    tree["cards"]["batch"] = [
        {"id": name, "back": back} for name, back in zip("AB", backs.split(), strict=False)
    ]
    tree["devices"] = {name: {"driver": driver, "port": PORTS[name]} for name, driver in devices.items()}
    for section, keys in sections.items():
        at = tree.setdefault(section, {})
        for key, value in keys.items():
            at.pop(key, None) if value is None else at.update({key: value})
    return "\n".join(f"{section} = {toml(value)}" for section, value in tree.items()).encode()


def built(*args: Any, **sections: Any) -> Config:
    found, listed = examine(table(*args, **sections))
    assert found is not None, [str(problem) for problem in listed]
    return found


def refused(*args: Any, **sections: Any) -> list[Problem]:
    found, listed = examine(table(*args, **sections))
    assert found is None
    return listed


@pytest.mark.rule("R-04")
def test_dealt_from_the_hand() -> None:
    only = {"shuffler": "managed-shuffler"}
    rules = built("red blue", 2, only, table={"mode": "hand-dealt"}).rules
    assert (rules.shoe, rules.shuffler, rules.by_eye, rules.alone) == (None, "shuffler", True, False)
    assert (rules.burn, rules.shoe_senses) == (Burn.EACH_LOAD, frozenset())


@pytest.mark.rule("R-79")
@pytest.mark.parametrize("devices", [{}, {"shoe": "managed-shoe"}, {"shuffler": "managed-shuffler"}, DRIVERS])
def test_casino_nights(devices: dict[str, str]) -> None:
    night = {"profile": "nj-casino-night", "mode": "manual-shoe"}
    rules = built("red", 4, devices, table=night).rules
    assert (rules.shoe, rules.shuffler) == (
        "shoe" if "shoe" in devices else None,
        "shuffler" if "shuffler" in devices else None,
    )
    assert (rules.night, rules.alone, rules.burn) == (True, True, Burn.EACH_ROUND)
    assert (rules.cutting_card, rules.burn_on_dealer_change) == (True, False)
    assert not built("red", 4, devices, table=night, cards={"cutting_card": None}).rules.cutting_card
    assert built("red", 4, devices, table=night, rules={"burn": "each-load"}).rules.burn is Burn.EACH_LOAD


def test_a_manual_shoe_of_a_casino_is_shuffled_by_hand() -> None:
    rules = built("red", 6, {"shoe": "managed-shoe"}, table={"mode": "manual-shoe"}).rules
    assert (rules.shoe, rules.shuffler, rules.alone, rules.burn) == ("shoe", None, True, Burn.EACH_LOAD)
    (problem,) = refused("red", 6, DRIVERS, table={"mode": "manual-shoe"})
    assert problem.clause == "13:69F-2.2(d)"


NO_CARD = {"cutting_card": None}


@pytest.mark.rule("R-11")
def test_a_continuous_shuffler_stands_in_for_shoe_and_shuffler_and_needs_no_cutting_card() -> None:
    machine, mode = {"shoe": "managed-continuous"}, {"mode": "continuous"}
    found = built("red", 6, machine, table=mode, cards=NO_CARD)
    rules = found.rules
    assert (rules.shoe, rules.shuffler, rules.devices) == ("shoe", "shoe", ("shoe",))
    assert (rules.continuous, rules.alone, rules.burn, rules.cutting_card) == (True, True, Burn.NEVER, False)
    assert rules.burn_on_dealer_change is False
    assert [note.partition(":")[0] for note in found.notes] == ["table.mode", "rules.continuous_batches"]
    two = {"table": mode, "cards": NO_CARD, "rules": {"continuous_batches": 2}}
    assert len(built("red blue", 6, machine, **two).rules.batches) == 2
    (problem,) = refused("red Red", 6, machine, **two)
    assert problem.clause == "13:69F-2.2(d)2"
    (problem,) = refused("red", 6, machine, **two)
    assert (problem.text, problem.clause) == ("two batches are needed, 1 given", "13:69F-2.2(d)1")


@pytest.mark.rule("R-04")
def test_whether_one_deck_sets_may_look_alike_is_a_switch_that_is_flagged() -> None:
    only, alike = {"shuffler": "managed-shuffler"}, {"hand_backs_differ": False}
    hand = {"mode": "hand-dealt"}
    (problem,) = refused("red red", 1, only, table=hand)
    assert problem.clause == "13:69F-2.2(d)2"
    found = built("red red", 1, only, table=hand, rules=alike)
    assert [note.partition(":")[0] for note in found.notes] == ["rules.hand_backs_differ"]
    assert built("red blue", 1, only, table=hand).notes == ()
    keys = [problem.key for problem in refused("red red", 2, only, table=hand, rules=alike)]
    assert keys == ["rules.hand_backs_differ", "cards.batch"]


NIGHT = {"profile": "nj-casino-night", "mode": "manual-shoe"}
UNREAD: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("rules.burn", {"mode": "two-batch-shoe"}, {"rules": {"burn": "each-load"}}),
    ("rules.hand_backs_differ", {"mode": "two-batch-shoe"}, {"rules": {"hand_backs_differ": True}}),
    ("rules.continuous_batches", {"mode": "two-batch-shoe"}, {"rules": {"continuous_batches": 1}}),
    ("rules.discretionary", NIGHT, {"rules": {"discretionary": "swap"}}),
    ("rules.discretionary", {"mode": "hand-dealt"}, {"rules": {"discretionary": "same-batch"}}),
    ("rules.burn_after_dry", NIGHT, {"rules": {"burn_after_dry": True}}),
    ("table.burn_on_dealer_change", NIGHT, {"table": {"burn_on_dealer_change": True}}),
    ("table.cutting_card_tolerance", NIGHT, {"table": {"cutting_card_tolerance": 3}}),
    ("rules.cut", {"mode": "continuous"}, {"rules": {"cut": "always"}}),
    ("rules.cut", NIGHT, {"rules": {"cut": "hand-shuffled"}}),
    ("rules.least_cycle_s", NIGHT, {"rules": {"least_cycle_s": 0}}),
    ("table.first_card", {"mode": "continuous"}, {"table": {"first_card": "play-one-round"}}),
    ("table.first_card", NIGHT, {"table": {"first_card": "play-one-round"}, "cards": {"cutting_card": None}}),
]


def test_a_key_that_means_nothing_in_a_mode_is_refused_even_with_its_default() -> None:
    for key, mode, changes in UNREAD:
        sections = {**changes, "table": {**mode, **changes.get("table", {})}}
        found = refused("red", 4, {}, **sections)
        assert [problem.key for problem in found if problem.text.startswith("nothing reads this")] == [key]


@pytest.mark.rule("R-79")
def test_a_burn_once_a_shoe_at_a_casino_night_is_flagged() -> None:
    found = built("red", 2, {}, table=NIGHT, rules={"burn": "each-load"})
    assert [note.partition(":")[0] for note in found.notes] == ["rules.burn"]
    assert built("red", 2, {}, table=NIGHT).notes == ()
    (problem,) = refused("red", 2, {}, table=NIGHT, rules={"burn": "never"})
    assert problem.text == "there is no burn 'never'; known are each-round, each-load"


@pytest.mark.rule("R-79")
def test_no_clause_of_the_casinos_is_cited_at_a_casino_night() -> None:
    found = refused(
        "red blue",
        9,
        {**DRIVERS, "reader": "hole-card-reader"},
        table={**NIGHT, "game": "asia-poker", "boxes": 5, "wagers": ["match-the-dealer", "in-between"]},
        cards={"cutting_card": "red", "edge": "red"},
    )
    found += refused("red", 1, {"shoe": "managed-continuous"}, table=NIGHT)
    assert len(found) > 8
    clauses = {problem.clause for problem in found if problem.clause is not None}
    assert {clause.partition("(")[0] for clause in clauses} == {"13:47-20.22"}


@pytest.mark.rule("R-03")
def test_a_floor_that_counts_both_batches_is_flagged() -> None:
    found = built(
        "red blue", 4, DRIVERS, table={"wagers": ["match-the-dealer"]}, rules={"deck_floor": "total"}
    )
    assert [note.partition(":")[0] for note in found.notes] == ["rules.deck_floor"]


HAND_DEALT: dict[str, Any] = {"table": {"mode": "hand-dealt"}}
SECOND: dict[str, tuple[Any, Any, tuple[str, int, dict[str, str]], dict[str, Any]]] = {
    "table.first_card": ("play-one-round", "reshuffle-now", ("red blue", 6, DRIVERS), {}),
    "table.cutting_card_tolerance": (0, 3, ("red blue", 6, DRIVERS), {}),
    "table.burn_on_dealer_change": (True, False, ("red blue", 6, DRIVERS), {}),
    "rules.cut": ("always", "hand-shuffled", ("red blue", 6, DRIVERS), {}),
    "rules.last_cutter": ("dealer", "supervisor", ("red blue", 6, DRIVERS), {}),
    "rules.deck_floor": ("batch", "total", ("red blue", 6, DRIVERS), {}),
    "rules.discretionary": ("swap", "same-batch", ("red blue", 6, DRIVERS), {}),
    "rules.burn_after_dry": (True, False, ("red blue", 6, DRIVERS), {}),
    "rules.deck_age_h": (None, 24, ("red blue", 6, DRIVERS), {}),
    "rules.burn": ("each-round", "each-load", ("red", 2, {}), {"table": NIGHT}),
    "rules.hand_backs_differ": (True, False, ("red blue", 1, {"shuffler": "managed-shuffler"}), HAND_DEALT),
}
"""Each switch of the rule table with its default, another value, and a table that reads it."""


def test_each_switch_that_is_not_at_its_default_is_a_reading_to_confirm() -> None:
    switches = {rule.switch.key: rule.id for rule in RULES if rule.switch is not None and rule.switch.key}
    assert {*SECOND, "rules.continuous_batches"} == set(switches), "of a continuous shuffler both are told"
    for key, (default, other, cards, sections) in SECOND.items():
        section, _, name = key.partition(".")
        for value, told in ((default, []), (other, [key])):
            changed = {**sections, section: {**sections.get(section, {}), name: value}}
            notes = built(*cards, **changed).notes
            assert [note.partition(":")[0] for note in notes] == told
            assert all(switches[key] in note or "(S5)" in note for note in notes)
