"""Which profile runs which mode, with which games, decks, batches and devices: the rule table of modes."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from controller.config import Config, examine
from controller.table.eligibility import Problem
from controller.table.profiles import Burn
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


@pytest.mark.rule("R-11")
def test_a_continuous_shuffler_stands_in_for_shoe_and_shuffler_and_needs_no_cutting_card() -> None:
    found = refused("red", 6, DRIVERS, table={"mode": "continuous"})
    assert [(problem.key, problem.clause) for problem in found] == [
        ("cards.cutting_card", "13:69F-2.21"),
        ("devices", "13:69F-2.21"),
        ("devices", "13:69F-2.21"),
    ]
    two = {"table": {"mode": "continuous"}, "rules": {"continuous_batches": 2}}
    assert "two batches are needed, 1 given" in [problem.text for problem in refused("red", 6, {}, **two)]
