"""Tables at which nobody but the dealer counts, or that have one batch: people's taps, played by the test."""

from __future__ import annotations

from collections import Counter
from typing import Any

import cbor2

from controller.table.checkpoint import checkpoint, restore
from controller.table.draft import Decision
from controller.table.evolve import evolve
from controller.table.inputs import Input, Refusal, Role
from controller.table.phases import Phase
from controller.table.profiles import BatchRules, Burn, TableRules
from controller.table.rules import expected
from controller.table.state import Place, TableState, initial
from devices import events as ev
from tests.support.table import Table, table_rules

SUPERVISOR = frozenset({Role.SUPERVISOR})
ONE = (BatchRules("A", "red"),)


def hand_rules(**changes: Any) -> TableRules:
    """One deck a set, dealt from the hand."""
    return table_rules(**{"mode": "hand-dealt", "shoe": None, "shoe_senses": frozenset(), **changes})


def manual_rules(**changes: Any) -> TableRules:
    """A licensed table without a shuffler: one batch, shuffled by hand, in a shoe that counts."""
    return table_rules(**{"mode": "manual-shoe", "batches": ONE, "shuffler": None, **changes})


def night_rules(**changes: Any) -> TableRules:
    """A casino night: from the hand and shuffled by hand, without a cutting card, unless said otherwise."""
    night = {"profile": "nj-casino-night", "mode": "manual-shoe", "batches": ONE, "burn": Burn.EACH_ROUND}
    none = {"shoe": None, "shoe_senses": frozenset(), "shuffler": None, "cutting_card": False}
    return table_rules(**{**night, **none, **changes})


def night_shoe(**changes: Any) -> TableRules:
    """The same with a shoe that counts."""
    return night_rules(**{"shoe": "shoe", "shoe_senses": frozenset(ev.Sense), **changes})


class Hand(Table):
    """A table of any of these kinds; every state it was in is kept, and holds every card of each batch."""

    def __init__(self, rules: TableRules, state: TableState | None = None) -> None:
        super().__init__(rules, state)
        self.met = [self.state]

    def give(self, given: Input) -> Decision | Refusal:
        found = super().give(given)
        if isinstance(found, Decision):
            self.met.append(self.state)
            for batch in self.state.batches.values():
                assert sum(batch.cards.values()) in (0, self.size), batch
            assert restore(cbor2.loads(cbor2.dumps(checkpoint(self.state)))) == self.state
        return found

    def restart(self) -> None:
        """A crash: the same table from its facts alone, with every device as it was."""
        state = initial(self.rules)
        for fact in self.facts:
            state = evolve(state, fact)
        assert state == self.state
        self.boot("11" * 16)

    @property
    def expected(self) -> list[str]:
        """The events that are called for, without their arguments."""
        return list(dict.fromkeys(line.split()[0] for line in expected(self.rules, self.state)))

    def cards(self, batch: str = "A") -> dict[Place, int]:
        return dict(self.state.batches[batch].cards)

    def links_up(self, shoe_boot: int = 1, shuffler_boot: int = 1, **shuffler: Any) -> None:
        """Only the devices that this table has."""
        if self.rules.shoe is not None:
            drawn = {"drawn": self.state.shoe.count, "empty": self.state.shoe.empty}
            who = {"serial": "SH1", "firmware": "1"}
            self.event(ev.LinkUp, "shoe", boot=shoe_boot, identity=who, status=drawn)
        if self.rules.shuffler is not None:
            status = {"state": "empty", "cycle": self.cycle, "token": self.token, "inside": 0, **shuffler}
            who = {"serial": "SF1", "firmware": "1"}
            self.event(ev.LinkUp, "shuffler", boot=shuffler_boot, identity=who, status=status)

    def load(self, batch: str = "A", offer: str = "3") -> None:
        """Cut, with a cutting card where one is in use, and taken in hand or put into the shoe."""
        rules = self.rules
        if not rules.night:
            self.tap("offer_cut", box=offer)
        self.tap("cut", position=self.size // 2)
        if rules.marked:
            self.tap("insert_cutting_card", position=rules.least_behind_cutting_card)
        self.tap("take_in_hand" if rules.by_eye else "load_shoe", batch=batch)
        self.fill()
        if self.state.phase is Phase.BURN_DUE:
            self.burn()

    def fill(self) -> None:
        """The physical stack: every card of the batch but those outside the shoe."""
        whole = Counter(dict.fromkeys(self.rules.deck, self.rules.decks))
        self.stack = list((whole - Counter(self.state.shoe.drawn)).elements())
        self.random.shuffle(self.stack)

    def burn(self) -> None:
        if self.rules.by_eye:
            self.tap("burn")
        else:
            self.draw()

    def open_by_hand(self, batch: str = "A") -> None:
        """S1 without a shuffler."""
        self.boot()
        self.links_up()
        self.tap("open")
        if not self.rules.night:
            self.prepare(batch)
        self.tap("reshuffle_by_hand", batch=batch)
        self.load(batch)

    def open_by_machine(self) -> None:
        """S1 with a shuffler: one batch, or both."""
        self.boot()
        self.links_up()
        self.tap("open")
        for batch in self.state.batches if not self.rules.night else ():
            self.prepare(batch)
        self.tap("load_shuffler", batch="A")
        self.start()
        self.complete()
        self.take()
        if not self.rules.alone:
            self.tap("load_shuffler", batch="B")
            self.start()
        self.load()

    def told(self, cards: int | None, boxes: str = "1,2", **cut: Any) -> None:
        """A round of which people tell the bets, the burn, and how many cards it took."""
        self.tap("bets_closed", boxes=boxes)
        if self.state.phase is Phase.ROUND_BURN:
            self.tap("burn")
        if cut:
            self.tap("cutting_card_at", **cut)
        self.tap("round_settled", **({} if cards is None else {"cards": cards}))
