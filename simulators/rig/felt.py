"""The physical table: all cards, the machines, and what hands can do with them. No belief, only things."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from controller.table.profiles import CutPolicy, FirstCardPolicy, TableRules
from devices.events import JOKER
from simulators.models.cards import Card, CuttingCard, Item, Stack, make_batch
from simulators.models.continuous import ContinuousShuffler
from simulators.models.reader import NATURAL, HoleCardReader
from simulators.models.shoe import Shoe
from simulators.models.shuffler import BatchShuffler
from simulators.models.stack_shoe import StackShoe
from simulators.models.table import DiscardRack, Holder, Layout, World
from simulators.rig.referee import ASIDE, BURN, FACE_UP, STUB, Referee
from simulators.wire.bee_tek import BeeTek
from simulators.wire.managed_continuous import ManagedContinuous
from simulators.wire.managed_reader import ManagedReader
from simulators.wire.managed_shoe import ManagedShoe
from simulators.wire.managed_shuffler import ManagedShuffler
from simulators.wire.managed_stack_shoe import ManagedStackShoe

MANAGED_SHOE, BEE_TEK = "managed-shoe", "bee-tek"
CONTINUOUS = "managed-continuous"
STACK_SHOE = "managed-stack-shoe"
SHUFFLER, READER = "managed-shuffler", "hole-card-reader"
SHOES = (MANAGED_SHOE, BEE_TEK, CONTINUOUS, STACK_SHOE)
"""Drivers of the shoes that can lie on this table; the other two devices have one each."""

ShoeWire = ManagedShoe | BeeTek | ManagedContinuous


def _wire_of(shoe: Shoe, driver: str, decks: int) -> ShoeWire:
    """The device's side for the driver that the table names."""
    if isinstance(shoe, ContinuousShuffler):
        return ManagedContinuous(shoe)
    if isinstance(shoe, StackShoe):
        return ManagedStackShoe(shoe)
    return BeeTek(shoe, paced=False) if driver == BEE_TEK else ManagedShoe(shoe, decks=decks)


class _Piles:
    """What lies in somebody's hands, by batch."""

    def __init__(self) -> None:
        self.by_batch: dict[str, Stack] = {}

    def contents(self) -> list[Item]:
        return [item for pile in self.by_batch.values() for item in pile.contents()]


class Felt:
    """The batches, shoe, shuffler, rack and hands; each component draws from its own seeded Random.

    `wires` are the devices that the table has. A shoe without one is a plain shoe, or the dealer's hand: what
    comes out of it nobody but the dealer knows. Acts happen at the machines' own time: advance them before.
    """

    def __init__(
        self, rules: TableRules, seed: object, now: float = 0.0, *, shoe: str = MANAGED_SHOE
    ) -> None:
        self.rules = rules
        self.shoe = Shoe(Random(f"{seed}/shoe"), now=now)
        if rules.continuous:
            self.shoe = ContinuousShuffler(Random(f"{seed}/shoe"), decks=rules.decks, now=now)
        if shoe == STACK_SHOE:
            self.shoe = StackShoe(Random(f"{seed}/shoe"), now=now)
        self.shuffler = BatchShuffler(Random(f"{seed}/shuffler"), decks=rules.decks, now=now)
        self.shuffler.settings["cards_per_deck"] = len(rules.deck)
        self.shoe_wire = _wire_of(self.shoe, shoe, rules.decks)
        self.shuffler_wire = ManagedShuffler(self.shuffler)
        self.reader = HoleCardReader(now=now)
        wired: dict[str | None, ShoeWire | ManagedShuffler | ManagedReader] = {
            rules.shuffler: self.shuffler_wire,
            rules.reader: ManagedReader(self.reader),
            rules.shoe: self.shoe_wire,
        }
        self.wires = {name: wired[name] for name in rules.devices}
        self.rack = DiscardRack()
        self.layout = Layout(rules.boxes)
        if rules.one_deck is not None:
            spots = rules.one_deck.order(range(1, rules.boxes + 1), stacked=True)
            self.layout.places |= {place: [] for place in spots}
        self._hands = Random(f"{seed}/hands")
        self._piles = _Piles()
        self.cutting_card = CuttingCard()
        self.cover_card = CuttingCard()
        batches: dict[str, list[Card]] = {}
        for index, batch in enumerate(rules.batches):
            first = 1 + index * rules.batch_size
            batches[batch.id] = make_batch(batch.back, rules.decks, first, joker=JOKER in rules.deck)
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
        self.face_up = False
        self.early: list[Card] = []
        self._world = World(batches, places)
        self._brought = 1 + len(rules.batches) * rules.batch_size
        self.referee = Referee(
            self._world,
            self.batch_of,
            plays_first_card=rules.first_card is FirstCardPolicy.PLAY_ONE_ROUND,
            alternates=not rules.alone,
            cuts=rules.cut is CutPolicy.ALWAYS and not rules.continuous,
            goes_on=rules.night,
            burn=rules.burn,
        )
        self.referee.moment = lambda: len(self.shoe.happenings)

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

    def shuffle(self, batch: str) -> None:
        """Shuffle the batch in hand by hand."""
        cards = self.piles[batch].give_cards()
        self._hands.shuffle(cards)
        self.referee.shuffled(cards)
        self.piles[batch].add(cards)

    def load_shuffler(self, batch: str) -> None:
        machine = self.shoe if isinstance(self.shoe, ContinuousShuffler) else self.shuffler
        machine.load(self.piles.pop(batch))

    def ready_to_deal(self) -> None:
        """The first shuffle in a continuous shuffler is done: what lies in it is dealt."""
        assert isinstance(self.shoe, ContinuousShuffler)
        report = self.shoe.report
        self.referee.released(self.shoe.contents(), report.mode if report else "")
        self.referee.shoe_loaded(self.shoe.contents())

    def give_back(self) -> None:
        """The whole rack goes back into the continuous shuffler."""
        used = self.rack.take()
        self.referee.released(used.contents(), "shuffle")
        self.shoe.load(used)

    def take_tray(self, batch: str) -> Stack:
        """Take the batch that the shuffler let out."""
        stack = self.shuffler.take()
        self.referee.released(stack.contents(), self._mode_of_tray())
        self.piles[batch] = stack
        return stack

    def _mode_of_tray(self) -> str:
        """What the completed cycle did with the cards that were let out last, whatever the machine forgot."""
        happened = self.shuffler.happenings
        token = next((h.data["token"] for h in reversed(happened) if h.kind == "let_out"), None)
        reports = (h.data["report"] for h in reversed(happened) if h.kind == "cycle_completed")
        return next((str(report.mode) for report in reports if report.token == token), "")

    def cut(self, batch: str, position: int) -> None:
        self.piles[batch].cut(position)
        self.referee.cut(self.piles[batch].contents())

    def insert_cutting_card(self, batch: str, behind: int) -> None:
        self.piles[batch].insert_cutting_card(self.cutting_card, behind)

    def cover(self, batch: str) -> None:
        """Hide the bottom card: the other cutting card of a hand-dealt table (R-28)."""
        self.piles[batch].insert_cutting_card(self.cover_card, 0)

    def load_shoe(self, batch: str, *, again: bool = False) -> None:
        """Put the batch into the shoe, or take it in hand; `again` when only its rack was shuffled (R-35)."""
        stack = self.piles.pop(batch)
        self.referee.shoe_loaded(stack.contents(), again=again)
        self.shoe.open_lid()
        self.shoe.load(stack)
        self.shoe.close_lid()

    def draw(self, place: str) -> Item | None:
        """Pull one item out of the shoe: to a box or the dealer, to the rack, the cutting card aside.

        A card that comes face up goes to the rack (R-31): `face_up` tells.
        """
        before = len(self.shoe.happenings)
        item = self.shoe.draw()
        told_apart = place != STUB and not (place == BURN and isinstance(self.shoe_wire, BeeTek))
        self.face_up = told_apart and any(
            happening.kind == "drawn" and happening.data["up"]
            for happening in self.shoe.happenings[before : before + 1]
        )
        return None if item is None else self._lay(item, FACE_UP if self.face_up else place)

    def draw_early(self) -> Item | None:
        """Pull a card that nobody is due: it lies before the dealer until somebody is (R-32)."""
        item = self.shoe.draw()
        if isinstance(item, Card):
            self.layout.deal(item, "aside")
            self.early.append(item)
        return item if item is None or isinstance(item, Card) else self._lay(item, "aside")

    def use_early(self, place: str) -> Card:
        """The card drawn too early is the next one."""
        card = self.early.pop(0)
        self.layout.places["aside"].remove(card)
        self._lay(card, place)
        return card

    def give_up_early(self) -> None:
        """Cards that were drawn too early, and that nobody is dealt any more, go to the rack."""
        for card in self.early:
            self.layout.places["aside"].remove(card)
        self.rack.put(self.early)
        self.early = []

    def burn_last(self, place: str) -> None:
        """The last card of a hand goes to the rack."""
        self.rack.put([self.layout.places[place].pop()])

    def take_stack(self, place: str) -> int:
        """What lies on the tray of a shoe that dispenses stacks goes to its place; how many cards."""
        assert isinstance(self.shoe, StackShoe)
        return len([self._lay(item, place) for item in self.shoe.take().give()])

    def _lay(self, item: Item, place: str) -> Item:
        self.referee.drawn(item, place)
        if isinstance(item, CuttingCard):
            self.layout.deal(item, "aside")
        elif place in ASIDE:
            self.rack.put([item])
        else:
            self.layout.deal(item, place)
        return item

    def laid(self) -> int:
        """How many cards lie before the players and the dealer."""
        hands = (items for place, items in self.layout.places.items() if place != "aside")
        return sum(isinstance(item, Card) for items in hands for item in items)

    def look(self) -> bool:
        """Slide the dealer's first two cards into the reader, and back; whether its lamp tells a natural."""
        up, hole = (item for item in self.layout.places["dealer"][:2] if isinstance(item, Card))
        self.referee.looked(up)
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

    def lift_rack(self, batch: str) -> None:
        """Everything in the rack, which is the batch's, comes into the hands."""
        stack = self.rack.take()
        self.referee.rack_taken(stack.contents())
        self.piles[batch] = stack

    def empty_rack(self, batch: str) -> None:
        """Lift the whole batch out of the rack into the hands; the cutting card is at hand again."""
        self.lift_rack(batch)
        self.layout.pick_up("aside")

    # When something went wrong

    def hold(self, items: Iterable[Item], batch: str) -> None:
        """Take cards in hand, each to its batch; what belongs to none stays with `batch`. No cutting card."""
        for item in items:
            if isinstance(item, Card):
                self.piles.setdefault(self.batch_of.get(item, batch), Stack()).add([item])

    def empty_shuffler(self, batch: str) -> None:
        """Open the shuffler, lift every card out, from its tray too, and close it: no jam is left."""
        self.hold(self.shuffler.take().contents(), batch)
        self.shuffler.open_door()
        self.hold(self.shuffler.lift_out_by_hand().contents(), batch)
        self.shuffler.close_door()

    def empty_shoe(self, batch: str) -> None:
        """Open the shoe, take every card out and close it."""
        self.shoe.open_lid()
        self.hold(self.shoe.remove_by_hand().contents(), batch)
        self.shoe.close_lid()

    def replace(self, batch: str) -> None:
        """The batch's cards in hand and in the rack leave the table, and a new batch is brought."""
        rules = self.rules
        joker = JOKER in rules.deck
        fresh = make_batch(rules.back(batch), rules.decks, self._brought, joker=joker)
        self._brought += len(fresh)
        if any(self.batch_of.get(item) == batch for item in self.rack.contents() if isinstance(item, Card)):
            self.rack.take()
        for machine in (self.shoe, self.shuffler):
            kept = [card for card in machine.sleeve.give_cards() if self.batch_of.get(card) != batch]
            machine.sleeve.add(kept)
        for card in [card for card, name in self.batch_of.items() if name == batch]:
            del self.batch_of[card]
        self.batch_of |= dict.fromkeys(fresh, batch)
        self._world.replace(batch, fresh)
        self.piles[batch] = Stack(fresh)
