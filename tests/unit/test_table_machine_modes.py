"""Law 8 at tables where nobody but the dealer counts, with one batch, and at casino nights."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.table.inputs import OperatorEvent, Role
from controller.table.machine import TableMachine
from controller.table.phases import IN_ROUND, TAPS, TRANSITIONS, Phase
from controller.table.profiles import CardDown
from controller.table.rules import accepts, expected, expected_taps
from controller.table.state import TableState, initial
from devices import events as ev
from tests.support.hands import SUPERVISOR, Hand, hand_rules, manual_rules, night_rules, night_shoe
from tests.unit.test_table_machine import EXAMPLES as LICENSED

ROLES = frozenset({Role.SUPERVISOR})
EXAMPLES = {
    **LICENSED,
    "reshuffle_by_hand": [{"batch": "A"}, {"cards": 20}, {}],
    "round_settled": [{}, {"cards": 9}],
    "cut": [{"position": 1}, {"position": 26}],
}
KEPT = 2
"""States of each phase that are tried."""


def end_by_hand(t: Hand) -> None:
    """Nobody plays, somebody comes, the table closes."""
    t.tap("idle")
    collect(t)
    if not t.rules.night:
        t.tap("spread", batch=t.state.shoe.last_batch)
    t.tap("resume")
    t.tap("close")


def collect(t: Hand) -> None:
    if t.rules.by_eye:
        t.tap("collect_rack", gauge="full")
    else:
        t.end_shoe()


def hand() -> Hand:
    t = Hand(hand_rules(settle_first=True))
    t.open_by_machine()
    t.tap("bets_closed", boxes="1,2")
    t.tap("side_wagers_settled")
    t.tap("cutting_card_at", box="2")
    t.tap("reshuffle_by_hand", SUPERVISOR, cards=30)
    t.tap("cut", position=15)
    t.tap("take_in_hand", batch="A")
    t.tap("burn")
    t.tap("round_settled")
    t.complete()
    collect(t)
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.load("B", offer="2")
    t.complete()
    end_by_hand(t)
    return t


def manual() -> Hand:
    t = Hand(manual_rules())
    t.open_by_hand()
    t.play_round("1", extra=44)
    t.tap("bets_closed", boxes="1,2")
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    t.tap("reshuffle_by_hand", SUPERVISOR)
    t.tap("cut", position=12)
    t.tap("load_shoe", batch="A")
    t.fill()
    for _ in range(8):
        t.draw()
    t.tap("round_settled")
    collect(t)
    t.tap("reshuffle_by_hand", batch="A")
    t.load(offer="2")
    end_by_hand(t)
    return t


def night() -> Hand:
    t = Hand(night_rules())
    t.open_by_hand()
    t.told(8)
    t.tap("bets_closed", boxes="1,2")
    t.tap("burn")
    t.tap("reshuffle_by_hand", cards=30)
    t.tap("cut", position=15)
    t.tap("take_in_hand", batch="A")
    t.tap("round_settled")
    end_by_hand(t)
    return t


def night_with_machines() -> Hand:
    t = Hand(night_shoe(shuffler="shuffler", cutting_card=True, player_card_down=CardDown.FIRST))
    t.open_by_machine()
    for boxes in ("1", "1,2"):
        t.tap("bets_closed", boxes=boxes)
        while t.state.phase is not Phase.PLAYING:
            t.draw()
        if boxes == "1":
            t.tap("round_settled")
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    t.tap("reshuffle_by_hand")
    t.tap("cut", position=1)
    t.tap("load_shoe", batch="A")
    t.fill()
    t.event(ev.CutCard)
    t.tap("cutting_card_at", box="2")
    t.tap("round_settled")
    collect(t)
    t.tap("load_shuffler", batch="A")
    t.start()
    t.complete()
    t.take()
    t.load()
    t.tap("bets_closed", boxes="1")
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    t.tap("round_settled")
    end_by_hand(t)
    return t


PLAYED: dict[str, Callable[[], Hand]] = {
    "hand": hand,
    "manual": manual,
    "night": night,
    "night with machines": night_with_machines,
}


def few(t: Hand) -> list[TableState]:
    """Some states of each phase, with cards in the shoe and without."""
    by_phase: dict[tuple[Phase, bool], list[TableState]] = {}
    for state in t.met:
        by_phase.setdefault((state.phase, state.shoe.empty), []).append(state)
    return [state for states in by_phase.values() for state in states[-KEPT:]]


@pytest.mark.parametrize("play", PLAYED.values(), ids=PLAYED)
def test_the_machine_allows_a_tap_exactly_when_the_rules_accept_it(play: Callable[[], Hand]) -> None:
    t = play()
    machine = TableMachine(t.rules, initial(t.rules))
    listed = {(s, row.trigger) for row in TRANSITIONS if row.tap for s in row.sources}
    accepted = set()
    for state in few(t):
        for event in TAPS:
            for args in EXAMPLES.get(event, [{}]):
                tap = OperatorEvent(event, args, roles=ROLES)
                by_rules = accepts(t.rules, state, tap)
                assert machine.may(state, tap) is by_rules, (state.phase, event, args)
                if by_rules:
                    accepted.add((state.phase, event))
    assert accepted <= listed
    assert {event for phase, event in accepted if phase in IN_ROUND} >= {"round_settled", "reshuffle_by_hand"}


@pytest.mark.parametrize("play", PLAYED.values(), ids=PLAYED)
def test_what_is_expected_is_accepted(play: Callable[[], Hand]) -> None:
    t = play()
    for state in few(t):
        taps = expected_taps(t.rules, state)
        assert tuple(taps) == expected(t.rules, state)
        assert all(accepts(t.rules, state, tap) for tap in taps.values())
