"""Whatever hands do, cards are neither made nor lost; whatever is asked, the ring keeps what it holds."""

from __future__ import annotations

import contextlib
from random import Random
from typing import Any

import cbor2
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from simulators.models.cards import Card, CuttingCard, Stack, make_batch
from simulators.models.machine import CannotDo
from simulators.models.shoe import Shoe
from simulators.models.shuffler import BatchShuffler
from simulators.models.shuffles import new_deck_order, shelf_pass
from simulators.models.table import DiscardRack, Layout, World
from simulators.wire import cbor, console
from simulators.wire.angel_eye import AngelEye

texts = st.text("abcXYZ09 é", max_size=30)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | texts | st.binary(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=6,
)


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, inner), default=0)


@given(plain.filter(lambda value: depth(value) <= cbor.MAX_DEPTH))
@settings(max_examples=100)
def test_cbor_agrees_with_the_library(value: Any):
    encoded = cbor.encode(value)
    assert cbor2.loads(encoded) == cbor.decode(encoded) == cbor.decode(cbor2.dumps(value)) == value
    assert len(encoded) == len(cbor2.dumps(value, canonical=True)), "shortest heads"


@given(st.dictionaries(texts, st.none(), max_size=6))
@settings(max_examples=30)
def test_map_keys_are_in_the_order_of_their_bytes(value: dict[str, None]):
    keys = list(cbor2.loads(cbor.encode(value)))
    assert keys == sorted(value, key=cbor.encode)


@given(st.binary(max_size=60))
@settings(max_examples=200)
def test_cbor_of_any_bytes_is_a_value_or_a_clear_error(data: bytes):
    with contextlib.suppress(cbor.CborError):
        cbor.decode(data)


@given(st.binary(min_size=8, max_size=1032), st.data())
@settings(max_examples=60)
def test_console_framing_survives_any_split(packet: bytes, data: st.DataObject):
    wire = console.lines(packet)
    assert max(len(line) + 1 for line in wire.splitlines()) <= 127
    reader, got = console.ConsoleReader(), []
    at = 0
    while at < len(wire):
        step = data.draw(st.integers(1, 40))
        got += reader.feed(wire[at : at + step])
        at += step
    assert got == [packet]
    assert reader.bad == 0


@given(st.binary(max_size=300))
@settings(max_examples=100)
def test_no_bytes_upset_an_angel_eye(noise: bytes):
    device = AngelEye(Shoe(Random(1)))
    device.receive(noise, 0.0)
    device.transmit(10.0)
    assert len(device._command) <= 16
    device.receive(bytes.fromhex("024f504c4b3032033142"), 20.0)
    assert device.transmit(21.0).endswith(b"\x06")


@given(st.integers(1, 3), st.integers(1, 40), st.integers(0, 2**32))
@settings(max_examples=30)
def test_shuffles_and_sorts_keep_the_cards(decks: int, shelves: int, seed: int):
    batch = make_batch("red", decks)
    shuffled = shelf_pass(batch, shelves, Random(seed))
    assert sorted(card.serial for card in shuffled) == [card.serial for card in batch]
    assert [card.face for card in new_deck_order(shuffled)] == [card.face for card in batch]


CARD_TRAPS = ("unseen", "read_twice", "double_feed", "overdraw", "sticks", "power_cut", "cut_unseen")
CYCLE_TRAPS = ("leave_inside", "stuck", "jam", "recovered_jam", "freeze", "power_cut", "unreadable")


class Table(RuleBasedStateMachine):
    """A dealer who does anything that his hands can do, in any order."""

    def __init__(self) -> None:
        super().__init__()
        red, blue = make_batch("red", 1), make_batch("blue", 1, first_serial=100)
        random = Random(1)
        self.hands, self.other = Stack(red), Stack(blue)
        self.shoe, self.shuffler = Shoe(random), BatchShuffler(random)
        self.rack, self.layout = DiscardRack(), Layout(3)
        self.shoe.traps.set("missing", 3)
        self.shuffler.traps.set("missing", 3)
        self.world = World(
            {"A": red, "B": blue},
            {
                "hands": self.hands, "other": self.other, "shoe": self.shoe, "rack": self.rack,
                "layout": self.layout, "shuffler": self.shuffler, "shoe sleeve": self.shoe.sleeve,
                "shuffler sleeve": self.shuffler.sleeve,
            },
        )  # fmt: skip
        self.token = 0
        self.now = 0.0

    def attempt(self, act, *args) -> Any:
        try:
            return act(*args)
        except (CannotDo, ValueError):
            return None

    @rule(place=st.sampled_from(["box 1", "box 2", "dealer"]))
    def push_back(self, place: str) -> None:
        if self.layout.places[place]:
            card = self.layout.places[place].pop()
            assert isinstance(card, Card)
            self.shoe.push_back(card)

    @rule(position=st.integers(0, 60), seed=st.integers(0, 99))
    def wash_and_cut(self, position: int, seed: int) -> None:
        self.hands.wash(Random(seed))
        self.attempt(self.hands.cut, position)
        if self.hands.take_cutting_card() is None:
            self.attempt(self.hands.insert_cutting_card, CuttingCard(), position)

    @rule()
    def swap_hands(self) -> None:
        mine, theirs = self.hands.give(), self.other.give()
        self.hands.add(theirs)
        self.other.add(mine)

    @rule()
    def load_shuffler(self) -> None:
        self.hands.take_cutting_card()
        self.attempt(self.shuffler.load, self.hands)

    @rule(seconds=st.sampled_from([0.0, 1.0, 5.0, 15.0, 30.0, 60.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.shuffler.advance(self.now)
        self.shoe.advance(self.now)

    @rule(trap=st.sampled_from(CYCLE_TRAPS))
    def start(self, trap: str) -> None:
        self.shuffler.traps.clear(trap)
        self.shuffler.traps.set(trap, 1)
        self.token += 1
        self.attempt(self.shuffler.start, self.token.to_bytes(16))

    @rule(power=st.booleans())
    def release(self, power: bool) -> None:
        self.shuffler.traps.clear("power_cut_out")
        if not power:
            self.shuffler.traps.set("power_cut_out", 1)
        if self.shuffler.token is not None:
            self.attempt(self.shuffler.release, self.shuffler.token)
        self.hands.add(self.shuffler.take().give())

    @rule(count=st.integers(0, 60))
    def lift_out(self, count: int) -> None:
        self.shuffler.open_door()
        self.hands.add(self.shuffler.lift_out_by_hand(count).give())
        self.shuffler.close_door()

    @rule(off=st.sampled_from([0.0, 1.0]))
    def power_cut(self, off: float) -> None:
        self.shuffler.power_cut(off)

    @rule()
    def load_shoe(self) -> None:
        self.shoe.open_lid()
        self.shoe.load(self.hands)
        self.shoe.close_lid()

    @rule(place=st.sampled_from(["box 1", "box 2", "dealer"]), trap=st.sampled_from(CARD_TRAPS))
    def deal(self, place: str, trap: str) -> None:
        self.shoe.traps.clear(trap)
        self.shoe.traps.set(trap, 1)
        item = self.attempt(self.shoe.draw)
        if isinstance(item, Card):
            self.layout.deal(item, place)

    @rule()
    def discard(self) -> None:
        self.rack.put(self.layout.pick_up_hands())

    @rule()
    def empty_rack_and_shoe(self) -> None:
        self.hands.add(self.rack.take().give())
        self.shoe.open_lid()
        self.hands.add(self.shoe.remove_by_hand().give())
        self.shoe.close_lid()

    @invariant()
    def every_card_is_in_one_place(self) -> None:
        counts = self.world.census()
        assert sum(count.get("A", 0) for count in counts.values()) == 52
        assert sum(count.get("B", 0) for count in counts.values()) == 52
        assert all("?" not in count for count in counts.values())

    @invariant()
    def the_report_counts_what_waits(self) -> None:
        shuffler = self.shuffler
        if shuffler.state == "done":
            report = shuffler.report
            assert report is not None
            assert report.cycle == shuffler.cycle
            assert report.composition.total() + report.unread == report.count <= shuffler.inside


TestTable = Table.TestCase
TestTable.settings = settings(max_examples=25, stateful_step_count=30)
