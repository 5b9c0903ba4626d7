"""The physical table: all cards, both machines, and what hands can do with them. No belief, only things."""

from __future__ import annotations

from random import Random

from controller.table.profiles import FirstCardPolicy, TableRules
from simulators.models.cards import Card, CuttingCard, Item, Stack, make_batch
from simulators.models.reader import NATURAL, HoleCardReader
from simulators.models.shoe import Shoe
from simulators.models.shuffler import ShelfShuffler
from simulators.models.table import DiscardRack, Holder, Layout, World
from simulators.rig.referee import BURN, STUB, Referee
from simulators.wire.bee_tek import BeeTek
from simulators.wire.managed_reader import ManagedReader
from simulators.wire.managed_shoe import ManagedShoe
from simulators.wire.managed_shuffler import ManagedShuffler

MANAGED_SHOE, BEE_TEK = "managed-shoe", "bee-tek"
SHOES = (MANAGED_SHOE, BEE_TEK)
"""Drivers of the shoes that can lie on this table."""


class _Piles:
    """What lies in somebody's hands, by batch."""

    def __init__(self) -> None:
        self.by_batch: dict[str, Stack] = {}

    def contents(self) -> list[Item]:
        return [item for pile in self.by_batch.values() for item in pile.contents()]


class Felt:
    """Both batches, shoe, shuffler, rack and hands; each component draws from its own seeded Random.

    Acts happen at the machines' own time: advance the wires before.
    """

    def __init__(
        self, rules: TableRules, seed: object, now: float = 0.0, *, shoe: str = MANAGED_SHOE
    ) -> None:
        self.rules = rules
        self.shoe = Shoe(Random(f"{seed}/shoe"), now=now)
        self.shuffler = ShelfShuffler(Random(f"{seed}/shuffler"), decks=rules.decks, now=now)
        self.shoe_wire = BeeTek(self.shoe) if shoe == BEE_TEK else ManagedShoe(self.shoe, decks=rules.decks)
        self.shuffler_wire = ManagedShuffler(self.shuffler)
        self.reader = HoleCardReader(now=now)
        assert rules.shoe is not None
        assert rules.shuffler is not None
        self.wires: dict[str, ManagedShoe | ManagedShuffler | ManagedReader | BeeTek] = {
            rules.shoe: self.shoe_wire,
            rules.shuffler: self.shuffler_wire,
        }
        if rules.reader is not None:
            self.wires[rules.reader] = ManagedReader(self.reader)
        self.rack = DiscardRack()
        self.layout = Layout(rules.boxes)
        self._hands = Random(f"{seed}/hands")
        self._piles = _Piles()
        self.cutting_card = CuttingCard()
        batches: dict[str, list[Card]] = {}
        for index, batch in enumerate(rules.batches):
            batches[batch.id] = make_batch(batch.back, rules.decks, 1 + index * rules.batch_size)
            self.piles[batch.id] = Stack(batches[batch.id])
        places: dict[str, Holder] = {
            "in_hand": self._piles,
            "shuffler": self.shuffler,
            "shoe": self.shoe,
            "table": self.layout,
            "rack": self.rack,
            "shoe sleeve": self.shoe.sleeve,
            "shuffler sleeve": self.shuffler.sleeve,
        }
        self.batch_of = {card: name for name, cards in batches.items() for card in cards}
        self.referee = Referee(
            World(batches, places),
            self.batch_of,
            plays_first_card=rules.first_card is FirstCardPolicy.PLAY_ONE_ROUND,
        )

    @property
    def piles(self) -> dict[str, Stack]:
        """The batches in hand."""
        return self._piles.by_batch

    def newest(self) -> dict[str, tuple[int | None, int]]:
        """For each device its boot counter and the number of its newest event; None and cards without one."""
        return {
            name: (None if isinstance(wire, BeeTek) else wire.machine.boot, wire.newest)
            for name, wire in self.wires.items()
        }

    # Hands

    def wash(self, batch: str) -> None:
        self.piles[batch].wash(self._hands)

    def load_shuffler(self, batch: str) -> None:
        self.shuffler.load(self.piles.pop(batch))

    def take_tray(self, batch: str) -> Stack:
        """Take the batch that the shuffler let out."""
        stack = self.shuffler.take()
        report = self.shuffler.report
        self.referee.released(stack.contents(), report.mode if report else "")
        self.piles[batch] = stack
        return stack

    def cut(self, batch: str, position: int) -> None:
        self.piles[batch].cut(position)

    def insert_cutting_card(self, batch: str, behind: int) -> None:
        self.piles[batch].insert_cutting_card(self.cutting_card, behind)

    def load_shoe(self, batch: str) -> None:
        stack = self.piles.pop(batch)
        self.referee.shoe_loaded(stack.contents())
        self.shoe.open_lid()
        self.shoe.load(stack)
        self.shoe.close_lid()

    def draw(self, place: str) -> Item | None:
        """Pull one item out of the shoe: to a box or the dealer, to the rack, the cutting card aside."""
        item = self.shoe.draw()
        if item is None:
            return None
        self.referee.drawn(item, place)
        if isinstance(item, CuttingCard):
            self.layout.deal(item, "aside")
        elif place in (BURN, STUB):
            self.rack.put([item])
        else:
            self.layout.deal(item, place)
        return item

    def look(self) -> bool:
        """Slide the dealer's first two cards into the reader, and back; whether its lamp tells a natural."""
        up, hole = (item for item in self.layout.places["dealer"][:2] if isinstance(item, Card))
        result = self.reader.slide_in(up, hole)
        self.reader.take_out()
        return result == NATURAL

    def pick_up(self) -> None:
        """All hands of the round go to the rack."""
        self.rack.put(self.layout.pick_up_hands())
        self.referee.round_over()

    def other_backs(self, batch: str) -> int:
        """Cards in the rack whose back is not the batch's: what a look at it shows."""
        cards = (item for item in self.rack.contents() if isinstance(item, Card))
        return sum(card.back != self.rules.back(batch) for card in cards)

    def empty_rack(self, batch: str) -> None:
        """Lift the whole batch out of the rack into the hands; the cutting card is at hand again."""
        stack = self.rack.take()
        self.referee.rack_taken(stack.contents())
        self.piles[batch] = stack
        self.layout.pick_up("aside")
