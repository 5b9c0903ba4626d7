"""What goes wrong in shoes and readers: what happens to the cards, and what the machine says of it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from simulators.models.cards import Card, CuttingCard, Item, Stack, make_batch
from simulators.models.machine import CannotDo, Machine
from simulators.models.reader import ERROR, NATURAL, HoleCardReader
from simulators.models.selfplay import SelfPlay, StackHands
from simulators.models.shoe import Shoe
from simulators.models.stack_shoe import StackShoe
from simulators.wire.barcode_hid import BarcodeReader
from simulators.wire.bee_tek import BeeTek
from simulators.wire.managed_shoe import ManagedShoe


def kinds(machine: Machine) -> list[str]:
    return [happening.kind for happening in machine.happenings]


def told(shoe: Shoe) -> list[str | None]:
    """The faces that the reader told."""
    return [happening.data["face"] for happening in shoe.happenings if happening.kind == "drawn"]


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(CannotDo) as no:
        act()
    return no.value.why


# A shoe with the cards AC 2C 3C 4C ...


def shoe_with(trap: str, at: int | None = 2, value: Any = None, *, behind: int | None = None) -> Shoe:
    shoe, pile = Shoe(Random(1)), Stack(make_batch("red", 1))
    if behind is not None:
        pile.insert_cutting_card(CuttingCard(), behind)
    shoe.traps.set(trap, at, value)
    shoe.open_lid()
    shoe.load(pile)
    shoe.close_lid()
    return shoe


def draw(shoe: Shoe, count: int) -> list[Item]:
    return [item for item in (shoe.draw() for _ in range(count)) if item is not None]


def faces(items: list[Item]) -> list[str]:
    return [item.face for item in items if isinstance(item, Card)]


@pytest.mark.parametrize(
    ("trap", "value", "seen", "drawn"),
    [
        ("misread", None, ["AC", None, "3C", "4C"], 4),
        ("wrong_face", None, ["AC", "3C", "3C", "4C"], 4),
        ("wrong_face", "KS", ["AC", "KS", "3C", "4C"], 4),
        ("unseen", None, ["AC", "3C", "4C"], 3),
        ("read_twice", None, ["AC", "2C", "2C", "3C", "4C"], 5),
        ("double_feed", None, ["AC", "2C", "4C"], 3),
        ("overdraw", None, ["AC", "2C", "3C", "4C"], 4),
        ("power_cut", 0.0, ["AC", "3C", "4C"], 2),
    ],
)
def test_what_the_reader_tells_of_four_cards(
    trap: str, value: Any, seen: list[str | None], drawn: int
) -> None:
    shoe = shoe_with(trap, 2, value)
    assert faces(draw(shoe, 4)) == ["AC", "2C", "3C", "4C"], "the cards are right"
    assert (told(shoe), shoe.drawn, len(shoe)) == (seen, drawn, 48)


def test_a_card_that_came_along_lies_in_the_exit_until_the_next_draw() -> None:
    shoe = shoe_with("double_feed", 51)
    draw(shoe, 51)
    assert (len(shoe), shoe.empty, kinds(shoe)[-1]) == (1, False, "drawn")
    assert faces(draw(shoe, 1)) == ["KS"]
    assert (kinds(shoe)[-1], told(shoe)[-1]) == ("emptied", "QS")


def test_what_lies_in_the_exit_can_be_lifted_out_and_is_not_owed_any_more() -> None:
    shoe = shoe_with("overdraw")
    draw(shoe, 2)
    assert told(shoe) == ["AC", "2C", "3C"]
    shoe.open_lid()
    assert faces(list(shoe.remove_by_hand(1).contents())) == ["3C"]
    assert faces(draw(shoe, 1)) == ["4C"]
    assert told(shoe)[-1] == "4C"


def test_a_cutting_card_does_not_come_along() -> None:
    shoe = shoe_with("double_feed", 2, behind=50)
    assert len(faces(draw(shoe, 3))) == 2
    assert kinds(shoe)[2:] == ["drawn", "drawn", "cutting_card"]


def test_a_card_turned_over_is_told_face_up() -> None:
    shoe = shoe_with("face_up")
    draw(shoe, 3)
    assert [h.data["up"] for h in shoe.happenings if h.kind == "drawn"] == [False, True, False]


def test_a_cutting_card_that_the_sensor_misses_comes_all_the_same() -> None:
    shoe = shoe_with("cut_unseen", 1, behind=50)
    assert [isinstance(item, CuttingCard) for item in draw(shoe, 4)] == [False, False, True, False]
    assert "cutting_card" not in kinds(shoe)


def test_a_card_that_sticks_comes_later() -> None:
    shoe = shoe_with("sticks", 2, 4.0)
    draw(shoe, 1)
    assert refused(shoe.draw) == "sticks"
    shoe.advance(3.9)
    assert (refused(shoe.draw), len(shoe)) == ("sticks", 51)
    shoe.advance(4.0)
    assert faces(draw(shoe, 2)) == ["2C", "3C"]


def test_where_every_card_sticks_every_card_comes_all_the_same() -> None:
    shoe = shoe_with("sticks", None)
    for face in ("AC", "2C"):
        assert refused(shoe.draw) == "sticks"
        shoe.advance(shoe.now + 3.0)
        assert faces(draw(shoe, 1)) == [face]


def test_a_hand_under_the_lid_frees_a_card_that_sticks() -> None:
    shoe = shoe_with("sticks", 1)
    assert refused(shoe.draw) == "sticks"
    shoe.open_lid()
    shoe.remove_by_hand(1)
    assert faces(draw(shoe, 1)) == ["2C"]


def test_a_card_pushed_back_in_is_drawn_and_told_again() -> None:
    shoe = shoe_with("misread", 99)
    one, two = draw(shoe, 2)
    assert isinstance(two, Card)
    shoe.push_back(two)
    assert (kinds(shoe)[-1], len(shoe)) == ("reversed", 51)
    assert draw(shoe, 1) == [two]
    assert (told(shoe), shoe.drawn) == (["AC", "2C", "2C"], 3)
    assert one not in shoe.contents()


def test_power_that_goes_while_a_card_leaves_is_told_by_the_boot_counter_alone() -> None:
    shoe = shoe_with("power_cut", 2)
    draw(shoe, 3)
    assert (shoe.powered, told(shoe)) == (False, ["AC"])
    shoe.advance(0.2)
    assert (shoe.boot, shoe.drawn, len(shoe)) == (2, 0, 49)


def test_the_dealer_of_a_simulated_shoe_pulls_again_where_a_card_sticks() -> None:
    shoe = Shoe(Random(1))
    SelfPlay(shoe, Random(2), pace=1.0).change_shoe(Stack(make_batch("red", 1)))
    shoe.traps.set("sticks", 3)
    shoe.advance(6.5)
    assert len(told(shoe)) == 3
    assert [h.at for h in shoe.happenings if h.kind == "drawn"] == [1.0, 2.0, 6.0]


def test_a_stack_waits_for_a_card_that_sticks() -> None:
    shoe = StackShoe(Random(1))
    StackHands(shoe, Random(2), pace=100.0).fill(Stack(make_batch("red", 1)))
    shoe.traps.set("sticks", 2, 1.0)
    assert shoe.dispense(3, 0) == 3
    shoe.advance(5.0)
    assert (shoe.on_tray, shoe.dispensing) == (3, False)
    assert [round(h.at, 1) for h in shoe.happenings if h.kind == "drawn"] == [0.2, 1.4, 1.6]


# A hole-card reader

ACE, KING = Card(1, "A", "S", "red"), Card(2, "K", "S", "red")


@pytest.mark.parametrize("cards", [(None, KING), (ACE, None), (None, None)])
def test_a_reader_with_one_card_or_none_cannot_tell(cards: tuple[Card | None, Card | None]) -> None:
    reader = HoleCardReader()
    assert reader.slide_in(ACE, KING) == NATURAL
    assert reader.slide_in(*cards) == ERROR
    assert reader.happenings[-1].data == {"result": ERROR}
    assert reader.take_out() == cards


def test_a_reader_without_power_sees_nothing() -> None:
    reader = HoleCardReader()
    reader.traps.set("power_cut", 1)
    assert reader.slide_in(ACE, KING) == ERROR
    assert reader.look() == ERROR
    assert kinds(reader) == []
    reader.advance(0.2)
    assert (reader.look(), reader.boot) == (NATURAL, 2)


@pytest.mark.parametrize("made", [ManagedShoe, BeeTek, BarcodeReader])
def test_what_a_wire_has_no_word_for_is_not_told(made: type[ManagedShoe | BeeTek | BarcodeReader]) -> None:
    shoe = Shoe(Random(1))
    device = made(shoe)
    device.transmit(1.0)
    shoe.push_back(ACE)
    assert device.transmit(2.0) == b""


def test_a_card_that_was_slipped_in_stays_a_stranger_when_its_back_changes_once_more() -> None:
    shoe = Shoe(Random(0))
    shoe.open_lid()
    shoe.load(Stack([Card(-7, "8", "S", "green")]))
    shoe.close_lid()
    shoe.traps.set("wrong_back", 1, "black")
    card = shoe.draw()
    assert isinstance(card, Card)
    assert (card.serial, card.back) == (-7, "black")
