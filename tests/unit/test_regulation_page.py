"""docs/regulation.md, the table of rules, the code, the switches and the tests say the same."""

import re
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path

from controller.config_file import Rules, Table
from controller.service import REFUSED
from controller.table.eligibility import DeckFloor
from controller.table.evolve import _APPLY
from controller.table.faults import FAULTS
from controller.table.phases import TAPS
from controller.table.profiles import Burn, TableRules
from controller.table.profiles.rule import NO_FACT, Rule
from controller.table.profiles.rules_table import CLAUSES, NUMBERED, RULES
from devices.events import DeviceEvent
from tests import regulation

MARKED = regulation.tests()
SWITCHES = {rule.switch.key: rule for rule in RULES if rule.switch is not None and rule.switch.key}

LICENSED = """
    (a) (a)1 (a)2 (a)3 (a)4 (b) (b)1 (b)2 (b)3 (b)3i (b)3ii (c) (d) (d)1 (d)2 (d)3 (d)4 (d)5
"""
MATCH_THE_DEALER = "(a) (a)1 (a)2 (b) (c) (d) (e) (f) (g)"
CASINO_NIGHT = """
    (a) (b) (b)1 (b)2 (b)2i (b)2ii (b)2ii(1) (b)2ii(2) (b)2ii(3) (c) (c)1 (c)2 (d) (d)1 (d)2 (d)3 (d)4 (e) (f)
    (g) (g)1 (g)2 (g)3 (g)4 (g)5 (g)5i (g)5ii (g)6 (g)7 (g)7i (g)7ii (g)7iii (g)8 (g)8i (g)9 (g)9i
    (g)10 (g)10i (g)10i(1) (g)10i(2) (g)10ii (g)10iii (g)10iv (g)10v (g)10v(1) (g)10v(2) (g)10v(3)
    (h) (h)1 (h)2 (h)3
"""
WORDS = ("blackjack", "bust", "double down", "hole card", "insurance betting", "splitting pairs", "stand")
INDEX = """
    2.1 2.10 2.11 2.12 2.13 2.14 2.15(a) 2.15(b) 2.16 2.17 2.18 2.19 2.20 2.21 2.22 2.24 2.25 2.26 2.3 2.4 2.5
    2.6 2.6A 2.7 2.8 2.9 20.1 20.10 20.11 20.12 20.13 20.2 20.3 20.4 20.5 20.6 20.7 20.8 20.9
"""
"""Two paragraphs of the index are 2.2 and 2.23 themselves."""
SUBJECTS = (
    "13:69F automated craps, wagers",
    "13:69F automated craps, inspection",
    "13:69F automated craps, odds",
    "13:69F automated craps, shooter",
    "13:69F automated craps, invalid roll",
    "13:69F-2.27 bet behind",
    "13:69F community-card game, words",
)
SUB_PARAGRAPHS = (
    *(f"13:69F-2.2{part}" for part in LICENSED.split()),
    *(f"13:69F-2.23{part}" for part in MATCH_THE_DEALER.split()),
    *(f"13:47-20.22{part}" for part in CASINO_NIGHT.split()),
    *(f"13:47-20.22(a) {word}" for word in WORDS),
    *(f"13:69F-{part}" for part in INDEX.split()),
    *SUBJECTS,
)
REASONS = ("in part: ", "not built yet: ", "out of scope: ")
SEQUENCES = {*(f"S{number}" for number in range(1, 11)), "S1b", *(f"INC-{number}" for number in range(1, 12))}
"""Sequences of play and incidents, which scenarios name beside rules."""
DESCRIPTION = {
    *("table", "boxes", "decks", "batches", "profile", "mode", "wagers", "settle_first", "least_cycle_s"),
    *(
        "double_shoe",
        "reader",
        "reader_discloses",
        "shoe",
        "shoe_senses",
        "shoe_answers",
        "shoe_locks",
        "match",
        "dealer_hands",
    ),
    *("shuffler", "allowed"),
    *("game", "cutting_card", "stacks", "player_card_down", "ties"),
}
"""What a table is, and figures of its machines: fields of TableRules that are no reading of a clause."""
NO_SWITCHES = {
    "dealer_hands",
    *("id", "profile", "game", "boxes", "mode", "wagers", "ties", "player_card_down"),
    *("least_cycle_s", "day_starts"),
}
"""The same of table.toml's sections [table] and [rules]."""


def test_the_page_is_what_make_regulation_writes() -> None:
    assert regulation.PAGE.read_text() == regulation.page(), "stale: run `make regulation`"


def test_every_sub_paragraph_of_the_texts_has_one_row() -> None:
    assert sorted(rule.id for rule in CLAUSES) == sorted(SUB_PARAGRAPHS)


def test_every_rule_is_numbered_once() -> None:
    names = [rule.id for rule in NUMBERED]
    assert names == sorted(names, key=lambda name: (int(name[2:4]), name))
    assert len(set(names)) == len(names)
    assert {f"R-{number:02}" for number in range(1, 80)} | {"R-36a", "R-36b"} == set(names)


def wrong_with(rule: Rule) -> str | None:
    if rule.left_out and not (rule.left_out.startswith(REASONS) and len(rule.left_out.split()) > 4):
        return "no reason for being left out"
    if not regulation.code_of(rule):
        others = [reason for reason in regulation.left_out_of(rule) if reason.startswith(REASONS[1:])]
        return None if others else "neither code nor a reason"
    if rule.code and rule.left_out.startswith(REASONS[1:]):
        return "built or not: what is built in part says so"
    if not regulation.tests_of(rule, MARKED):
        return "no test carries its marker"
    return None if regulation.journal_of(rule) else "no fact shows it"


def test_every_rule_has_code_and_a_test_or_a_reason() -> None:
    assert {rule.id: why for rule in RULES if (why := wrong_with(rule))} == {}


def test_the_code_of_the_table_exists() -> None:
    for name in {name: None for rule in RULES for name in rule.code}:
        module, _, thing = name.partition(":")
        source = (regulation.HOUSE / regulation.module_path(name)).read_text()
        assert not thing or hasattr(import_module(module), thing), name
        made_here = rf"^(?:def |class ){thing}\b|^{thing}\b[^=\n]*= "
        assert not thing or re.search(made_here, source, re.MULTILINE), f"{name} is only imported there"


def added() -> Iterator[str]:
    """Kinds of facts that the core adds though nothing follows from them."""
    yield "checkpoint"
    for path in (regulation.HOUSE / "controller/table").glob("*.py"):
        yield from re.findall(r'\.add\(\s*"(\w+)"', path.read_text())


def test_the_facts_of_the_table_exist() -> None:
    kinds = {*TAPS, *_APPLY, *DeviceEvent.registry, *added(), REFUSED, *NO_FACT}
    for rule in RULES:
        for kind in rule.journal:
            name, _, code = ("", "", "") if kind in NO_FACT else kind.partition(": ")
            assert (name or kind) in kinds, (rule.id, kind)
            assert not code or code in FAULTS, (rule.id, kind)


def test_rules_name_rules_that_exist_and_carry_no_others() -> None:
    for rule in RULES:
        assert all(not regulation.BY_ID[name].by for name in rule.by), rule.id
        assert bool(rule.clause) == (rule in NUMBERED), rule.id


def test_every_marker_names_a_rule() -> None:
    assert set(MARKED) - set(regulation.BY_ID) - SEQUENCES == set()


def test_a_switch_has_a_row_with_two_readings_and_no_other_row_has_one() -> None:
    defaults = {f.name: f.default for f in fields(TableRules) if f.name not in DESCRIPTION}
    # Judged by `check` alone, before there are TableRules; the burn's default is that of casino nights.
    defaults |= {"deck_floor": DeckFloor.BATCH, "hand_backs_differ": True, "continuous_batches": 1}
    defaults["burn"] = Burn.EACH_ROUND
    keys = [*(f"table.{key}" for key in Table.model_fields), *(f"rules.{key}" for key in Rules.model_fields)]
    assert set(SWITCHES) == {key for key in keys if key.partition(".")[2] not in NO_SWITCHES}
    assert {key.partition(".")[2] for key in SWITCHES} == set(defaults)
    for key, rule in SWITCHES.items():
        assert rule.switch is not None
        first, second = rule.switch.readings
        assert first.startswith(str(defaults[key.partition(".")[2]]).lower()), key
        assert first != second


def cited() -> Iterator[tuple[Path, str]]:
    """Clauses in the core's texts: New Jersey's, and the other places' that its rules were read in."""
    pattern = re.compile(r'"((?:13:\d\d[A-Z]?-|58 Pa|9 NYCRR|COMAR|La\.|SD |WAC )[^"{]*[^".{])"')
    for path in sorted((regulation.HOUSE / "controller/table").glob("*.py")):
        for clause in pattern.findall(path.read_text()):
            yield path, clause


def test_a_clause_that_a_refusal_cites_is_on_the_page() -> None:
    known = [rule.id for rule in CLAUSES]
    known += [part for rule in NUMBERED for part in rule.clause.split("; ")]
    found = list(cited())
    assert len(found) > 40
    for path, clause in found:
        section = clause.partition("(")[0]
        ends = (f"{section}(", f"{section} ", f"{section},")
        assert any(text == section or text.startswith(ends) for text in known), (path, clause)
