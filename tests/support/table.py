"""A table core driven by hand: devices are played by the test, facts are collected in order."""

from __future__ import annotations

from random import Random
from typing import Any

from controller.table.draft import Decision
from controller.table.evolve import evolve
from controller.table.inputs import (
    Booted,
    Command,
    Ended,
    Fact,
    Input,
    Observed,
    OperatorEvent,
    Refusal,
    Role,
)
from controller.table.machine import TableMachine
from controller.table.people import is_alarm
from controller.table.profiles import BatchRules, TableRules
from controller.table.rules import decide
from controller.table.state import TableState, initial
from devices import events as ev
from devices.events import DECK
from firmware_bridge.link import Done, Outcome

BATCHES = (BatchRules("A", "red"), BatchRules("B", "blue"))
SETTINGS = {"mode": "shuffle", "cards_per_deck": 52, "recognition": True}


def table_rules(**changes: Any) -> TableRules:
    return TableRules(**{"table": "BJ-07", "boxes": 7, "decks": 1, "batches": BATCHES, **changes})


STEPS = ("inspect", "verify", "spread", "player_inspected", "wash")
"""How a batch is prepared at the table (R-13)."""
DEALER, SUPERVISOR = frozenset({Role.DEALER}), frozenset({Role.SUPERVISOR})
BY_SUPERVISOR = ("shuffle_now",)
"""What a supervisor taps here unless a test says who; all else the dealer."""


def _usual(event: str) -> frozenset[Role]:
    return SUPERVISOR if event in BY_SUPERVISOR else DEALER


class Table:
    """Feeds inputs through decide and evolve, with the flat machine following every fact."""

    def __init__(self, rules: TableRules | None = None, state: TableState | None = None) -> None:
        self.rules = rules or table_rules()
        self.state = state or initial(self.rules)
        self.machine = TableMachine(self.rules, self.state)
        self.facts: list[Fact] = []
        self.effects: list[Command] = []
        self.counts = {"shoe": 0, "shuffler": 0}
        self.cycle = 40
        self.token: str | None = None
        self.random = Random(1)

    # --- inputs ---

    def give(self, given: Input) -> Decision | Refusal:
        decision = decide(self.rules, self.state, given)
        if isinstance(decision, Decision):
            for fact, after in zip(decision.facts, decision.states, strict=True):
                assert evolve(self.state, fact) == after
                self.machine.follow(self.state, fact, after)
                self.state = after
            self.facts += decision.facts
            self.effects += decision.effects
        return decision

    def tap(
        self, event: str, roles: frozenset[Role] | None = None, who: str = "ann", **args: Any
    ) -> Decision:
        decision = self.give(OperatorEvent(event, args, who=who, roles=roles or _usual(event)))
        assert isinstance(decision, Decision), decision
        if event == "confirm_empty" and decision.effects:
            self.say_empty()
        return decision

    def refused(
        self, event: str, roles: frozenset[Role] | None = None, who: str = "ann", **args: Any
    ) -> Refusal:
        before = self.state
        decision = self.give(OperatorEvent(event, args, who=who, roles=roles or _usual(event)))
        assert isinstance(decision, Refusal), decision
        assert self.state == before
        return decision

    def event(self, kind: type[ev.DeviceEvent], device: str = "shoe", **fields: Any) -> Decision:
        self.counts[device] += 1
        decision = self.give(Observed(kind(device=device, n=self.counts[device], raw=b"raw", **fields)))
        assert isinstance(decision, Decision)
        return decision

    def end(self, outcome: Outcome) -> Command:
        """End the oldest open command."""
        command = self.effects.pop(0)
        self.give(Ended(command.device, command.call_id, outcome))
        return command

    def say_empty(self) -> None:
        """The device that somebody looked into is asked, and holds nothing."""
        asked = self.effects.pop()
        assert asked.name == "status"
        empty = {"inside": 0, "cycle": self.cycle, "token": self.token, "empty": True}
        self.give(Ended(asked.device, asked.call_id, Done(empty)))

    def boot(self, boot: str = "00" * 16) -> None:
        self.effects.clear()
        self.give(Booted(boot))

    # --- what honest devices do ---

    @property
    def size(self) -> int:
        return self.rules.batch_size

    def links_up(self, shoe_boot: int = 1, shuffler_boot: int = 1, **shuffler: Any) -> None:
        self.event(
            ev.LinkUp,
            "shoe",
            boot=shoe_boot,
            identity={"serial": "SH1", "firmware": "1"},
            status={"drawn": self.state.shoe.count, "empty": self.state.shoe.empty},
        )
        status = {"state": "empty", "cycle": self.cycle, "token": self.token, "inside": 0, **shuffler}
        self.event(
            ev.LinkUp,
            "shuffler",
            boot=shuffler_boot,
            identity={"serial": "SF1", "firmware": "1"},
            status=status,
        )

    def start(self) -> None:
        """Tap start_shuffle and answer settings, status and start; the cycle is then seen to start."""
        self.tap("start_shuffle")
        self.answer_start()

    def answer_start(self) -> None:
        decks = self.rules.decks
        assert (
            self.end(Done({"settings": {**SETTINGS, "decks": decks}, "crc": 1, "crc_ok": True})).name
            == "settings"
        )
        assert (
            self.end(Done({"inside": self.size, "cycle": self.cycle, "token": self.token})).name == "status"
        )
        self.cycle += 1
        command = self.end(Done({"cycle": self.cycle}))
        assert command.name == "start"
        self.token = command.args["token"]
        self.event(ev.CycleStarted, "shuffler", cycle=self.cycle, token=self.token)
        seen = {"inside": self.size, "cycle": self.cycle, "token": self.token}
        assert self.end(Done(seen)).name == "status"

    def complete(self, **changes: Any) -> None:
        batch = self.state.shuffler.batch
        assert batch is not None
        report: dict[str, Any] = {
            "cycle": self.cycle,
            "token": self.token,
            "count": self.size,
            "mode": "shuffle",
            "composition": dict.fromkeys(DECK, self.rules.decks),
            "backs": {self.rules.back(batch): self.size},
            **changes,
        }
        self.event(ev.CycleCompleted, "shuffler", **report)

    def take(self) -> None:
        self.tap("take_from_shuffler")
        token = self.effects[-1].args["token"]
        self.end(Done({"count": self.size, "inside": 0}))
        self.event(ev.BatchReleased, "shuffler", count=self.size, inside=0, token=token)

    def cut_and_load(self, batch: str, offer: str | None = None) -> None:
        from controller.table.swap import cut_order

        self.tap("offer_cut", box=offer or cut_order(self.rules, self.state)[0])
        self.tap("cut", position=self.size // 2)
        self.tap("insert_cutting_card", position=self.rules.least_behind_cutting_card)
        self.tap("load_shoe", batch=batch)
        self.stack = [card for card in DECK for _ in range(self.rules.decks)]
        self.random.shuffle(self.stack)

    def draw(self, **changes: Any) -> str:
        card = self.stack.pop()
        batch = self.state.shoe.batch
        back = self.rules.back(batch) if batch else None
        self.event(ev.CardDrawn, "shoe", **{"card": card, "back": back, **changes})
        return card

    # --- whole stretches of play ---

    def open(self) -> None:
        """Open the table, and prepare both batches by the cards on the layout."""
        self.tap("open")
        for batch in self.state.batches:
            self.prepare(batch)

    def prepare(self, batch: str) -> None:
        """Inspected, verified by another person, spread, shown to a player, washed (R-13)."""
        self.tap("inspect", batch=batch)
        self.tap("verify", frozenset({Role.SUPERVISOR}), who="sue", batch=batch)
        for step in ("spread", "player_inspected", "wash"):
            self.tap(step, batch=batch)

    def open_to_shoe(self) -> None:
        """S1: both batches prepared, batch A cut and loaded, batch B shuffling, the burn drawn."""
        self.boot()
        self.links_up()
        self.open()
        self.tap("load_shuffler", batch="A")
        self.start()
        self.complete()
        self.take()
        self.tap("load_shuffler", batch="B")
        self.start()
        self.cut_and_load("A", offer="3")
        self.draw()

    def deal(self, boxes: str = "1,2,5") -> None:
        self.tap("bets_closed", boxes=boxes)
        assert self.state.round is not None
        count = 2 * len(self.state.round.boxes) + 2
        for _ in range(count):
            if self.state.phase.value == "side_wagers":
                self.tap("side_wagers_settled")
            self.draw()

    def play_round(self, boxes: str = "1,2,5", extra: int = 2) -> None:
        self.deal(boxes)
        for _ in range(extra):
            self.draw()
        self.tap("round_settled")

    def end_shoe(self) -> None:
        """Draw the stub to the rack and collect it."""
        while self.stack:
            self.draw()
        self.event(ev.ShoeEmpty)
        self.tap("collect_rack", gauge="full")

    def swap_to(self, batch: str) -> None:
        self.take()
        self.tap("load_shuffler", batch=self.rules.other(batch))
        self.start()
        self.cut_and_load(batch)
        self.draw()

    @property
    def codes(self) -> list[str]:
        """The latched faults."""
        return [fault.code for fault in self.state.faults if not is_alarm(fault)]

    @property
    def alarms(self) -> list[str]:
        return [fault.code for fault in self.state.faults if is_alarm(fault)]
