"""Random walks over tables of one deck a round: whatever is tapped and whatever shoe and shuffler say."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from controller.table.checkpoint import checkpoint, restore
from controller.table.inputs import OperatorEvent, Role
from controller.table.phases import TAPS, Phase
from controller.table.rules import accepts, awaited, expected_taps
from controller.table.state import Cycle, Place
from devices import events as ev
from firmware_bridge.link import Done, NotSent, Refused, Unknown
from tests.scenarios.test_table_deck_per_round import ONE, Poker
from tests.support.table import SETTINGS

ANYBODY = frozenset(Role)
STEPS = 150
DUE = (Phase.DEALING, Phase.PLAYING, Phase.SHOE_END)
SELDOM = {"dead_card", "replace_batch", "out_of_service", "close", "void_round", "idle", "shuffle_now"}
TABLES: dict[str, dict[str, Any]] = {
    "stacks": {"stacks": True},
    "stacks by hand": {"stacks": True, "batches": ONE, "shuffler": None},
    "shoe": {"game": "mississippi-stud"},
    "hand": {"batches": ONE, "shoe": None, "shoe_senses": frozenset()},
}
BLIND: dict[str, dict[str, Any]] = {
    "load_shuffler": {"batch": "A"},
    "load_shoe": {"batch": "A"},
    "take_in_hand": {"batch": "A"},
    "cut": {"position": 26},
    "bets_closed": {"boxes": "1,2"},
    "count_stub": {"cards": 43},
    "collect_rack": {"gauge": "full", "stub": 43},
    "confirm_empty": {"device": "shoe"},
    "void_round": {"reason": "misdeal"},
    "dead_card": {"batch": "A"},
    "replace_batch": {"batch": "A"},
    "out_of_service": {"device": "shuffler"},
    "in_service": {"device": "shuffler"},
    "reshuffle_by_hand": {"batch": "A"},
    "count_batch": {"batch": "A", "cards": 52},
    "drawn_in_error": {"exposed": True, "burned": True},
}
"""Taps whether they are expected or not, each as it is mostly written."""


class Walk:
    """A table and somebody who does anything; `honest` is how often the machines tell the truth."""

    def __init__(self, seed: object, honest: float, **rules: Any) -> None:
        self.table = Poker(**rules)
        self.random, self.honest = Random(f"{seed}"), honest
        self.phases: set[Phase] = set()
        self.latched: set[str] = set()
        self.coming = 0
        self.table.boot()
        self.up("shoe")
        self.up("shuffler")

    def up(self, device: str, boot: int = 1) -> None:
        table, state = self.table, self.table.state
        if device not in table.rules.devices:
            return
        status: dict[str, Any] = {"drawn": state.shoe.told, "empty": not self.inside, "dispensing": False}
        if device == "shuffler":
            held = state.batches[state.shuffler.batch].at(Place.SHUFFLER) if state.shuffler.batch else 0
            done = "done" if state.shuffler.stage is Cycle.PROVED else "empty"
            status = {"state": done, "cycle": table.cycle, "token": table.token, "inside": held}
        who = {"serial": device, "firmware": "1"}
        table.event(ev.LinkUp, device, boot=boot, identity=who, status=status)

    @property
    def true(self) -> bool:
        return self.random.random() < self.honest

    @property
    def inside(self) -> int:
        batch = self.table.state.shoe.batch
        return self.table.state.batches[batch].at(Place.SHOE) if batch else 0

    def step(self) -> None:
        table = self.table
        if table.effects:
            self.answer()
        elif self.coming:
            self.draw()
        elif table.state.shuffler.stage is Cycle.RUNNING and self.random.random() < 0.5:
            table.complete(mode="shuffle" if self.true else "sort")
        elif self.random.random() < 0.6:
            self.tap()
        else:
            self.happen()
        self.check()

    def answer(self) -> None:
        table, command = self.table, self.table.effects[0]
        lost = self.random.choice([NotSent("nobody is there"), Unknown("no answer"), Refused("3", "state")])
        if command.name == "dispense":
            count = min(int(command.args["count"]), self.inside)
            told = self.true
            table.end(Done({"count": count}) if told else lost)
            self.coming = count if told or isinstance(lost, Unknown) else 0
            return
        if not self.true:
            table.end(lost)
            return
        match command.name:
            case "settings":
                table.end(Done({"settings": {**SETTINGS, "decks": 1}, "crc": 1, "crc_ok": True}))
            case "start":
                table.cycle += 1
                table.token = command.args["token"]
                table.end(Done({"cycle": table.cycle}))
                table.event(ev.CycleStarted, "shuffler", cycle=table.cycle, token=table.token)
            case "release":
                table.end(Done({"count": 52, "inside": 0}))
                token = command.args["token"]
                table.event(ev.BatchReleased, "shuffler", count=52, inside=0, token=token)
            case _ if command.device == "shoe":
                drawn = table.state.shoe.told
                table.end(Done({"drawn": drawn, "dispensing": self.coming > 0}))
            case _:
                batch = table.state.shuffler.batch
                held = table.state.batches[batch].at(Place.SHUFFLER) if batch else 0
                table.end(Done({"cycle": table.cycle, "token": table.token, "inside": held}))

    def draw(self, **odd: Any) -> None:
        """One card; the last one tells that the shoe is empty."""
        state, held = self.table.state, self.inside
        back = self.table.rules.back(state.shoe.batch) if state.shoe.batch else "red"
        drawn = state.shoe.drawn
        face = self.random.choice([card for card in self.table.rules.deck if not drawn.get(card)] or ["8S"])
        self.table.event(ev.CardDrawn, "shoe", **{"card": face, "back": back, **odd})
        self.coming = max(0, self.coming - 1)
        if held == 1:
            self.table.event(ev.ShoeEmpty, "shoe")
            self.coming = 0

    def tap(self) -> None:
        taps = list(expected_taps(self.table.rules, self.table.state).values())
        taps = [tap for tap in taps if tap.event not in SELDOM or self.random.random() < 0.1]
        if taps and self.random.random() < 0.9:
            self.table.give(self.random.choice(taps))
            return
        event = self.random.choice(TAPS)
        self.table.give(OperatorEvent(event, BLIND.get(event, {}), who="ann", roles=ANYBODY))

    def happen(self) -> None:
        table, random, rules = self.table, self.random, self.table.rules
        if rules.shoe is None:
            return
        due = table.state.phase in DUE and self.inside > 0 and not rules.stacks
        match random.choices(range(7), (60, 2, 2, 2, 1, 1, 1))[0]:
            case 0 if due or not self.true:
                for _ in range(min(12, self.inside) if table.state.phase is Phase.SHOE_END else 1):
                    self.draw()
            case 1 if not self.true:
                self.draw(back=random.choice(["red", "blue"]), face_up=random.random() < 0.5)
            case 2:
                opened = random.random() < 0.5
                table.event(ev.Lid, "shoe", open=opened)
                self.coming = 0 if opened else self.coming
            case 3 if rules.stacks:
                table.event(ev.Jam, "shoe", place="exit", attempt=1)
                self.coming = 0
            case 4:
                device = random.choice(rules.devices)
                table.event(ev.LinkDown, device, reason="gone")
                self.up(device, boot=1 if self.true else random.choice([1, 2, 3]))
            case 5 if not self.true:
                table.event(random.choice([ev.ShoeEmpty, ev.CutCard, ev.Standby]), "shoe")
            case 6 if not self.true:
                table.event(ev.GapPossible, random.choice(rules.devices), missing=1)

    def check(self) -> None:
        table, state = self.table, self.table.state
        self.phases.add(state.phase)
        self.latched |= set(table.codes)
        for batch in state.batches.values():
            assert sum(batch.cards.values()) == (52 if batch.cards else 0)
            assert batch.uncounted < 5 or state.shoe.untold or state.faults
        assert restore(checkpoint(state)) == state
        event = self.random.choice(TAPS)
        tap = OperatorEvent(event, BLIND.get(event, {}), who="ann", roles=ANYBODY)
        assert table.machine.may(state, tap) is accepts(table.rules, state, tap)
        down = [d for d in table.rules.devices if not state.device(d).up]
        assert expected_taps(table.rules, state) or awaited(table.rules, state) or down, state.phase


def walked(table: str, honest: float, walks: int) -> list[Walk]:
    """So many walks, each step checked."""
    made = [Walk(f"{table}/{honest}/{seed}", honest, **TABLES[table]) for seed in range(walks)]
    for walk in made:
        for _ in range(STEPS):
            walk.step()
    return made


@pytest.mark.rule("R-52", "R-53", "R-54")
@pytest.mark.parametrize("table", TABLES)
def test_honest_machines_latch_nothing(table: str) -> None:
    walks = walked(table, 1.0, 3)
    assert set().union(*(walk.latched for walk in walks)) <= {"dead_card", "wrong_stub", "rack_gauge"}
    phases = set().union(*(walk.phases for walk in walks))
    assert phases >= {Phase.BETWEEN_ROUNDS, Phase.PLAYING, Phase.SHOE_END, Phase.RACK_FULL}


@pytest.mark.parametrize("table", [name for name in TABLES if name != "hand"])
def test_whatever_machines_say_no_card_is_lost_and_there_is_a_way_on(table: str) -> None:
    walks = [*walked(table, 0.95, 2), *walked(table, 0.6, 2)]
    assert set().union(*(walk.latched for walk in walks)) >= {"stray_card"}
