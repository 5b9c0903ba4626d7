"""Random walks over a table with a continuous shuffler: whatever is tapped and whatever the machine says."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from controller.table import continuous
from controller.table.checkpoint import checkpoint, restore
from controller.table.inputs import OperatorEvent, Role
from controller.table.phases import TAPS, Phase
from controller.table.rules import accepts, awaited, expected_taps
from controller.table.state import Cycle, Place
from devices import events as ev
from devices.events import DECK
from firmware_bridge.link import Done, NotSent, Unknown
from tests.support.continuous import ContinuousTable
from tests.support.table import SETTINGS

ANYBODY = frozenset(Role)
STEPS = 150
DUE = (Phase.DEALING, Phase.HOLE_CARD, Phase.PLAYING, Phase.SHOE_END)
SELDOM = {"dead_card", "replace_batch", "out_of_service", "close", "void_round"}
MET = {
    *(Phase.CLOSED, Phase.OPENING, Phase.FIRST_LOADED, Phase.FIRST_SHUFFLING, Phase.BETWEEN_ROUNDS),
    *(
        Phase.DEALING,
        Phase.HOLE_CARD,
        Phase.PLAYING,
        Phase.SHOE_END,
        Phase.RACK_FULL,
        Phase.IDLE,
        Phase.CLOSING,
    ),
}
"""Every phase of a continuous table: none in which a batch is cut, burned or in hand."""
BLIND: dict[str, dict[str, Any]] = {
    "load_shuffler": {"batch": "A"},
    "bets_closed": {"boxes": "1,2"},
    "collect_rack": {"gauge": "full"},
    "confirm_empty": {"device": "csm"},
    "void_round": {"reason": "other"},
    "dead_card": {"batch": "A"},
    "replace_batch": {"batch": "A"},
    "out_of_service": {"device": "csm"},
    "in_service": {"device": "csm"},
    "reshuffle_by_hand": {"batch": "A"},
    "count_batch": {"batch": "A", "cards": 52},
}
"""Taps whether they are expected or not, each as it is mostly written."""


class Walk:
    """A table and somebody who does anything; `honest` is how often the machine tells the truth."""

    def __init__(self, seed: object, honest: float) -> None:
        self.table = ContinuousTable()
        self.random, self.honest = Random(f"{seed}"), honest
        self.phases: set[Phase] = set()
        self.latched: set[str] = set()
        self.table.boot()
        self.table.up()

    @property
    def inside(self) -> int:
        held = self.table.state.batches["A"]
        return held.at(Place.SHOE) + held.at(Place.SHUFFLER)

    def step(self) -> None:
        table = self.table
        if table.effects:
            self.answer()
        elif table.state.shuffler.stage is Cycle.RUNNING and self.random.random() < 0.7:
            table.complete(mode="shuffle" if self.random.random() < 0.5 + self.honest else "sort")
        elif self.random.random() < 0.45:
            self.tap()
        else:
            self.happen()
        self.check()

    def answer(self) -> None:
        table = self.table
        if self.random.random() > self.honest:
            table.end(self.random.choice([NotSent("nobody is there"), Unknown("no answer")]))
            return
        match table.effects[0].name:
            case "settings":
                table.end(Done({"settings": {**SETTINGS, "decks": 1}, "crc": 1, "crc_ok": True}))
            case "start":
                table.cycle += 1
                table.token = table.effects[0].args["token"]
                table.end(Done({"cycle": table.cycle}))
                table.event(ev.CycleStarted, cycle=table.cycle, token=table.token)
            case _:
                table.end(Done({"cycle": table.cycle, "token": table.token, "inside": self.inside}))

    def tap(self) -> None:
        taps = list(expected_taps(self.table.rules, self.table.state).values())
        taps = [tap for tap in taps if tap.event not in SELDOM or self.random.random() < 0.1]
        if taps and self.random.random() < 0.85:
            self.table.give(self.random.choice(taps))
            return
        event = self.random.choice(TAPS)
        self.table.give(OperatorEvent(event, BLIND.get(event, {}), who="ann", roles=ANYBODY))

    def happen(self) -> None:
        table, random = self.table, self.random
        rack, true = table.state.batches["A"].at(Place.RACK), random.random() < self.honest
        due = self.inside > 0 and table.state.phase in DUE
        match random.choices(range(8), (60, 14, 1, 1, 1, 1, 1, 1))[0]:
            case 0 if due or not true:
                back = "red" if true or random.random() < 0.5 else "blue"
                for _ in range(min(12, self.inside) if table.state.phase is Phase.SHOE_END else 1):
                    table.event(ev.CardDrawn, card=self.face(), back=back)
                if due and not self.inside:
                    table.event(ev.ShoeEmpty)
            case 1 if rack or not true:
                free = continuous.may_return(table.state)
                count = random.randint(0, free) if true else random.randint(1, rack + 3)
                inside = self.inside + count - (0 if true else random.randint(-1, 1))
                if count:
                    table.event(ev.CardsReturned, count=count, inside=max(0, inside))
            case 2:
                table.event(ev.Door, open=random.random() < 0.5)
            case 3 if not true:
                table.event(ev.GapPossible, missing=1)
            case 4 if not true:
                table.event(ev.BatchReleased, count=random.randint(1, 60), inside=random.randint(0, 9))
            case 5:
                table.event(ev.LinkDown, reason="gone")
                boot = random.choice([1, 1, 2, 3]) if not true else 1
                table.up(boot, inside=self.inside, empty=not self.inside, drawn=table.state.shoe.told)
            case 6 if not true:
                table.event(random.choice([ev.ShoeEmpty, ev.CutCard, ev.Standby]))
            case 7 if not true:
                table.event(ev.Jam, place="chute", attempt=1)

    def face(self) -> str:
        """Of a card that is not known to lie outside."""
        drawn = self.table.state.shoe.drawn
        return self.random.choice([face for face in DECK if not drawn.get(face)] or DECK)

    def check(self) -> None:
        table, state = self.table, self.table.state
        held = state.batches["A"]
        self.phases.add(state.phase)
        self.latched |= set(table.codes)
        assert sum(held.cards.values()) == (0 if state.phase is Phase.CLOSED else 52)
        if state.shoe.batch:
            assert 0 <= continuous.may_return(state) <= held.at(Place.RACK)
            assert not held.at(Place.SHUFFLER)
        assert restore(checkpoint(state)) == state
        event = self.random.choice(TAPS)
        tap = OperatorEvent(event, BLIND.get(event, {}), who="ann", roles=ANYBODY)
        assert table.machine.may(state, tap) is accepts(table.rules, state, tap)
        ways = expected_taps(table.rules, state)
        assert ways or awaited(table.rules, state) or not state.device("csm").up, state.phase


@pytest.mark.rule("R-11", "R-60")
def test_an_honest_machine_latches_nothing_and_every_phase_is_met() -> None:
    walks = walked(1.0, 8)
    assert set().union(*(walk.latched for walk in walks)) <= {"dead_card"}
    assert set().union(*(walk.phases for walk in walks)) == MET


@pytest.mark.parametrize("honest", [0.95, 0.6])
def test_whatever_the_machine_says_no_card_is_lost_and_there_is_a_way_on(honest: float) -> None:
    walks = walked(honest, 6)
    latched = set().union(*(walk.latched for walk in walks))
    assert latched >= {"stray_card"}


def walked(honest: float, walks: int) -> list[Walk]:
    """So many walks, each step checked."""
    made = [Walk(f"{honest}/{seed}", honest) for seed in range(walks)]
    for walk in made:
        for _ in range(STEPS):
            walk.step()
    return made
