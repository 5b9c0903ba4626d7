"""Tables at which nobody but the dealer counts, or that have one batch: people's taps, played by the test."""

from __future__ import annotations

from typing import Any

from controller.table.inputs import Role
from controller.table.phases import Phase
from controller.table.profiles import BatchRules, Burn, TableRules
from controller.table.state import Place
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
    """`left` is what really lies in the dealer's hand, for the test that deals with its own eyes."""

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
        self.stack = [card for card in self.rules.deck for _ in range(self.rules.decks)]
        self.random.shuffle(self.stack)
        for _ in range(self.size - self.state.batches[self.state.shoe.batch or "A"].at(Place.SHOE)):
            self.stack.pop()

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
