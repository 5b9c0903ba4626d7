"""Law 8: the flat machine and the rules agree in every phase, and the library's back doors are shut."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from controller.table import machine as machine_module
from controller.table.draft import Decision
from controller.table.evolve import evolve
from controller.table.hands import TAPS as TAPS_OF_HANDS
from controller.table.inputs import Fact, OperatorEvent, Role
from controller.table.machine import Disagreement, TableMachine, mermaid
from controller.table.machine import table as listing
from controller.table.phases import TAPS, TRANSITIONS, Phase, Transition
from controller.table.rules import accepts, decide, expected, expected_taps
from controller.table.state import initial
from devices import events as ev
from tests.support.table import Table, table_rules

ROLES = frozenset({Role.SUPERVISOR})
NEEDS_MORE = {"clear", "side_wagers_settled", "peek", "no_reader"}
NEEDS_MORE |= {"take_in_hand", "dispense", "card_face_up", "count_stub"}
"""Taps that some of these tables have no fault, no wager or no device for."""
MACHINE = {"maker": "Acme", "model": "V1", "serial": "7", "operator": "ann"}
OF_WAGERS = {"cash_wager", "cash_converted", "dealer_hand_settled"}
"""Taps that need a wager of which these tables offer none."""
SEALED = {"at": "2030-01-01", "seal": "S1", "seal_intact": "true"}
CERTIFICATE = {**MACHINE, **SEALED, "decks": 1, "cards": 52, "result": "ok"}
EXAMPLES = {
    "take_in_hand": [{"batch": "A"}, {"batch": "B"}],
    "load_shuffler": [{"batch": "A"}, {"batch": "B"}, {"batch": "C"}],
    "offer_cut": [{"box": "1"}, {"box": "3"}, {"box": "dealer"}, {}],
    "cut": [{"position": 26}, {"position": 9}],
    "insert_cutting_card": [{"position": 13}, {"position": 12}],
    "load_shoe": [{"batch": "A"}, {"batch": "B"}],
    "bets_closed": [{"boxes": "1,2"}, {"boxes": "9"}],
    "cutting_card_at": [{"box": "dealer"}, {"box": "2"}, {}],
    "collect_rack": [{"gauge": "full"}, {"gauge": "tall"}, {"gauge": "short", "shoe_empty": "true"}],
    "clear": [{"fault": "F1"}],
    "open": [{}, {"mode": "manual-shoe"}],
    "reshuffle_by_hand": [{"batch": "A"}, {"batch": "B"}],
    "count_batch": [{"batch": "A", "cards": 52}, {"batch": "B", "cards": 51}, {"batch": "B"}],
    "confirm_empty": [{"device": "shoe"}, {"device": "shuffler", "cards": 52}, {"device": "shuffler"}],
    "out_of_service": [{"device": "shuffler"}, {"device": "shoe"}],
    "in_service": [{"device": "shuffler"}, {}],
    "certificate": [{"batch": "B", **CERTIFICATE}, {"batch": "B", **CERTIFICATE, "cards": 51}],
    "shuffle_demanded": [{"batch": "A"}, {}],
    "dead_card": [{"batch": "A"}, {"batch": "A", "card": "9Z"}],
    "replace_batch": [{"batch": "A"}, {"batch": "B"}],
    "drawn_in_error": [{"exposed": "false"}, {}],
    "dealer_skipped": [{"card": "first"}, {"card": "second"}, {}],
    "box_skipped": [{"box": "1", "cards": 0}, {"box": "1", "cards": 1}, {"box": "1"}],
    "void_round": [{"reason": "misdeal"}, {"reason": "bad luck"}],
}


OF_HANDS = {event: [{"box": "1"}, {"box": "2"}, {"box": "1/2"}, {}] for event in TAPS_OF_HANDS}
"""What of these the cards of these tables allow is left to the tests of hands."""


def one_of_each_phase(settle_first: bool) -> dict[Phase, list]:
    """States met while two shoes are played, at least one for each phase."""
    t = Table(table_rules(settle_first=settle_first))
    met: dict[Phase, list] = {Phase.CLOSED: [t.state]}
    give = t.give

    def watch(given):
        decision = give(given)
        kept = met.setdefault(t.state.phase, [])
        kept[5:] = []
        kept.append(t.state)
        return decision

    t.give = watch  # type: ignore[method-assign]
    t.open_to_shoe()
    t.deal("1,2")
    t.event(ev.CutCard)
    t.tap("cutting_card_at", box="2")
    t.tap("round_settled")
    t.complete()
    t.end_shoe()
    t.swap_to("B")
    t.event(ev.LinkDown, "shoe", reason="unplugged")
    t.event(ev.Door, "shuffler", open=True)
    end_of_the_day(t)
    return met


def end_of_the_day(t: Table) -> None:
    """Nobody plays; the shuffler goes out of service; closed, and opened again without it.

    Then most of a deck is dealt in one round, and the shoe runs dry in the next.
    """
    supervisor = frozenset({Role.SUPERVISOR})
    t.links_up()
    t.tap("idle")
    t.end_shoe()
    t.tap("spread", batch="B")
    t.tap("out_of_service", supervisor, device="shuffler")
    t.tap("close")
    t.event(ev.BatchReleased, "shuffler", count=52, inside=0)
    for batch in "AB":
        t.tap("count_batch", batch=batch, cards=52)
    for device in ("shoe", "shuffler"):
        t.tap("confirm_empty", device=device)
    t.tap("close", supervisor)
    for fault in [f.id for f in t.state.faults if f.code in t.codes]:
        t.tap("clear", supervisor, fault=fault)
    t.tap("open", mode="manual-shoe")
    t.prepare("A")
    t.tap("certificate", batch="B", **CERTIFICATE)
    t.tap("reshuffle_by_hand", supervisor, batch="A")
    t.cut_and_load("A", offer="1")
    t.draw()
    t.play_round("1", extra=42)
    t.tap("bets_closed", boxes="1,2")
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    t.tap("reshuffle_by_hand", supervisor)
    t.tap("cut", position=23)
    t.tap("load_shoe", batch="A")


@pytest.mark.parametrize("senses", [frozenset(ev.Sense), frozenset()], ids=["senses all", "cards alone"])
@pytest.mark.parametrize("settle_first", [False, True])
def test_the_machine_allows_a_tap_exactly_when_the_rules_accept_it(settle_first, senses):
    met = one_of_each_phase(settle_first)
    rules = table_rules(settle_first=settle_first, shoe_senses=senses)
    wanted = set(Phase) - {Phase.ROUND_BURN} - (set() if settle_first else {Phase.SIDE_WAGERS})
    assert set(met) == wanted
    machine = TableMachine(rules, initial(rules))
    accepted = set()
    for phase, states in met.items():
        for state in states:
            for event in TAPS:
                alarms = [{"alarm": fault.id} for fault in state.faults] if event == "acknowledge" else None
                for args in alarms or (EXAMPLES | OF_HANDS).get(event, [{}]):
                    tap = OperatorEvent(event, args, roles=ROLES)
                    by_rules = isinstance(decide(rules, state, tap), Decision)
                    assert machine.may(state, tap) is by_rules, (phase, event, args)
                    if by_rules:
                        accepted.add((phase, event))
    listed = {(s, t.trigger) for t in TRANSITIONS if t.tap for s in t.sources}
    assert accepted <= listed
    assert {event for _, event in accepted} >= {*TAPS} - NEEDS_MORE - {*OF_HANDS} - OF_WAGERS


@pytest.mark.parametrize("settle_first", [False, True])
def test_what_is_expected_is_accepted(settle_first):
    rules = table_rules(settle_first=settle_first)
    for states in one_of_each_phase(settle_first).values():
        for state in states:
            taps = expected_taps(rules, state)
            assert tuple(taps) == expected(rules, state)
            for line, tap in taps.items():
                assert line.split()[0] == tap.event
                assert accepts(rules, state, tap), line


def test_a_move_the_machine_does_not_know_is_a_disagreement():
    rules = table_rules()
    state = initial(rules)
    machine = TableMachine(rules, state)
    forged = Fact("load_shoe", "operator", {"batch": "A", "moves": ["load_shoe", "burn_due"]})
    with pytest.raises(Disagreement):
        machine.follow(state, forged, replace(state, seq=1, phase=Phase.BURN_DUE))
    honest = Fact("open", "operator", {"cards": 52, "backs": {}, "moves": ["open", "opening"]})
    wrong = Fact("open", "operator", {"cards": 52, "backs": {}, "moves": ["open", "between_rounds"]})
    with pytest.raises(Disagreement, match="the machine to opening"):
        machine.follow(state, wrong, evolve(state, wrong))
    machine = TableMachine(rules, state)
    machine.follow(state, honest, evolve(state, honest))
    assert machine.phase is Phase.OPENING


def test_there_are_no_back_doors():
    rules = table_rules()
    machine = TableMachine(rules, initial(rules))
    assert [n for n in dir(machine._model) if n.startswith("to_")] == []
    with pytest.raises(AttributeError):
        machine.phase = Phase.PLAYING  # type: ignore[misc]


@pytest.mark.parametrize(
    "row",
    [
        Transition("open", (Phase.CLOSED,), Phase.OPENING, "misspelt"),
        Transition("open", (Phase.CLOSED,), "nowhere"),  # type: ignore[arg-type]
    ],
)
def test_the_self_check_finds_misspelt_guards_and_destinations(monkeypatch, row):
    monkeypatch.setattr(machine_module, "TRANSITIONS", (row,))
    rules = table_rules()
    with pytest.raises((TypeError, ValueError)):
        TableMachine(rules, initial(rules))


def test_the_printed_machine_has_every_phase_and_transition():
    text = mermaid()
    assert all(phase.value in text for phase in Phase)
    assert text.count("-->") == 1 + sum(len(t.sources) for t in TRANSITIONS if t.dest is not None)
    assert len(listing().splitlines()) == sum(len(t.sources) for t in TRANSITIONS)


def test_only_the_machine_module_uses_transitions():
    for path in Path(machine_module.__file__).parent.glob("*.py"):
        imports = {
            alias.name.split(".")[0]
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in (node.names if isinstance(node, ast.Import) else [ast.alias(node.module or "")])
        }
        assert ("transitions" in imports) == (path.name == "machine.py"), path.name
