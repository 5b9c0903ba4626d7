"""The simulated machines as physical truth: shuffle statistics, tokens and cycles, doors, power, places."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from simulators.models.baccarat import Baccarat, Result
from simulators.models.cards import Card, CuttingCard, Stack, make_batch
from simulators.models.machine import CannotDo
from simulators.models.selfplay import SelfPlay
from simulators.models.shoe import Shoe
from simulators.models.shuffler import BatchShuffler
from simulators.models.shuffles import Mechanism, insertion, riffles, shelves
from simulators.models.table import CardsAstray, DiscardRack, Layout, World

TOKEN, OTHER = bytes(range(16)), bytes(16)


def loaded_shuffler(decks: int = 1, **options) -> BatchShuffler:
    shuffler = BatchShuffler(Random(1), **options)
    shuffler.load(Stack(make_batch("red", decks)))
    return shuffler


def kinds(machine) -> list[str]:
    return [happening.kind for happening in machine.happenings]


def test_a_batch_is_new_decks_behind_each_other():
    batch = make_batch("red", 6, first_serial=100)
    assert len(batch) == 312
    assert [card.face for card in batch[:14]] == [*(rank + "C" for rank in "A23456789TJQK"), "AD"]
    assert [card.serial for card in batch] == list(range(100, 412))
    assert set(Counter(card.face for card in batch).values()) == {6}
    assert batch[0] != batch[52]
    assert batch[0].face == batch[52].face


@pytest.mark.parametrize("mechanism", [shelves(10, passes=2), insertion(), riffles(passes=3)])
def test_a_cycle_is_the_order_of_its_mechanism(mechanism: Mechanism):
    """The laws of the mechanisms themselves: tests/properties/test_shuffle_laws.py."""
    shuffler, cards = BatchShuffler(Random(7), mechanism=mechanism), make_batch("red", 1)
    shuffler.load(Stack(cards))
    shuffler.start(TOKEN)
    assert shuffler.deadline() == 22 * mechanism.passes
    shuffler.advance(100)
    shuffler.release(TOKEN)
    random = Random(7)
    for _ in range(mechanism.passes):
        cards = mechanism.one_pass(cards, random)
    assert shuffler.take().give_cards() == cards


def test_a_cycle_takes_22_seconds_a_deck_and_keeps_the_cards():
    shuffler = loaded_shuffler(decks=6, cycle=1056)
    shuffler.advance(10.0)
    assert shuffler.start(TOKEN) == 1057
    assert shuffler.deadline() == pytest.approx(10 + 6 * 22)
    shuffler.advance(141.9)
    assert shuffler.state == "shuffling"
    shuffler.advance(142.0)
    assert shuffler.state == "done"
    report = shuffler.report
    assert report is not None
    assert (report.cycle, report.count, report.mode, report.unread) == (1057, 312, "shuffle", 0)
    assert set(report.composition.values()) == {6}
    assert report.backs == {"red": 312}
    assert shuffler.release(TOKEN) == (312, 0)
    assert shuffler.state == "empty"
    out = shuffler.take().give_cards()
    assert sorted(card.serial for card in out) == list(range(1, 313))
    assert [card.serial for card in out] != list(range(1, 313))


def test_sort_mode_gives_new_deck_order_and_says_so():
    shuffler = BatchShuffler(Random(1))
    cards = make_batch("red", 2)
    Random(3).shuffle(cards)
    shuffler.load(Stack(cards))
    shuffler.settings["mode"] = "sort"
    shuffler.start(TOKEN)
    shuffler.advance(100)
    assert shuffler.report is not None
    assert shuffler.report.mode == "sort"
    shuffler.release(TOKEN)
    assert [card.face for card in shuffler.take().give_cards()] == [c.face for c in make_batch("red", 2)]


def test_tokens_start_once_and_release_once():
    shuffler = loaded_shuffler()
    assert shuffler.start(TOKEN) == 1
    assert shuffler.start(TOKEN) == 1, "the running cycle's token only tells its number"
    with pytest.raises(CannotDo) as no:
        shuffler.start(OTHER)
    assert no.value.why == "busy"
    with pytest.raises(CannotDo) as no:
        shuffler.release(TOKEN)
    assert no.value.why == "state"
    shuffler.advance(22)
    assert shuffler.start(TOKEN) == 1, "and so does that of the batch that waits"
    with pytest.raises(CannotDo) as no:
        shuffler.release(OTHER)
    assert no.value.why == "token"
    shuffler.release(TOKEN)
    for act in (shuffler.start, shuffler.release):
        with pytest.raises(CannotDo) as no:
            act(TOKEN)
        assert no.value.why == "token"
    assert shuffler.cycle == 1
    assert kinds(shuffler) == ["cycle_started", "cycle_completed", "let_out"]


def test_start_needs_cards_and_a_closed_door():
    shuffler = BatchShuffler(Random(1))
    with pytest.raises(CannotDo) as no:
        shuffler.start(TOKEN)
    assert no.value.why == "cards"
    shuffler.load(Stack(make_batch("red", 1)))
    shuffler.open_door()
    with pytest.raises(CannotDo) as no:
        shuffler.start(TOKEN)
    assert no.value.why == "door"
    assert shuffler.cycle == 0


def test_cards_left_inside_are_not_counted_and_meet_the_next_batch():
    shuffler = loaded_shuffler(decks=1)
    shuffler.traps.set("leave_inside", 1, 16)
    shuffler.start(TOKEN)
    shuffler.advance(22)
    assert shuffler.report is not None
    assert shuffler.report.count == 36
    assert sum(shuffler.report.composition.values()) == 36
    assert shuffler.inside == 52
    assert shuffler.release(TOKEN) == (36, 16)
    assert shuffler.state == "loaded"
    assert len(shuffler.take()) == 36
    shuffler.load(Stack(make_batch("blue", 1, first_serial=100)))
    shuffler.start(OTHER)
    shuffler.advance(100)
    assert shuffler.report.backs == {"red": 16, "blue": 52}


def test_a_machine_that_never_starts_answers_all_the_same():
    shuffler = loaded_shuffler()
    shuffler.traps.set("no_start", 1)
    assert shuffler.start(TOKEN) == 1
    shuffler.advance(1000)
    assert (shuffler.cycle, shuffler.state, shuffler.happenings) == (0, "loaded", [])
    assert shuffler.start(TOKEN) == 1
    assert shuffler.cycle == 1


def test_recognition_off_leaves_all_unread():
    shuffler = loaded_shuffler()
    shuffler.settings["recognition"] = False
    shuffler.start(TOKEN)
    shuffler.advance(22)
    assert shuffler.report is not None
    assert (shuffler.report.unread, shuffler.report.count) == (52, 52)
    assert not shuffler.report.composition
    assert not shuffler.report.backs


def test_a_jam_voids_the_cycle_until_the_cards_are_lifted_out():
    shuffler = loaded_shuffler()
    shuffler.traps.set("jam", 1, "carousel")
    shuffler.start(TOKEN)
    shuffler.advance(100)
    assert shuffler.state == "fault"
    assert kinds(shuffler) == ["cycle_started", "jam", "jam", "jam", "cycle_aborted", "fault"]
    assert [h.at for h in shuffler.happenings] == [0.0, 11.0, 13.0, 15.0, 17.0, 17.0]
    with pytest.raises(CannotDo) as no:
        shuffler.start(OTHER)
    assert no.value.why == "jam"
    shuffler.open_door()
    assert len(shuffler.lift_out_by_hand()) == 52
    shuffler.close_door()
    assert shuffler.state == "empty"
    assert shuffler.happenings[-1].data == {"code": "7", "name": "jam", "on": False}


@pytest.mark.parametrize("after", [11.0, 30.0])
def test_power_loss_voids_a_running_cycle_and_a_batch_that_waits(after):
    shuffler = loaded_shuffler()
    shuffler.start(TOKEN)
    shuffler.advance(after)
    shuffler.power_cut(0.5)
    assert not shuffler.powered
    shuffler.advance(after + 0.5)
    assert (shuffler.powered, shuffler.boot, shuffler.cycle) == (True, 2, 1)
    assert (shuffler.state, shuffler.token, shuffler.report) == ("loaded", None, None)
    shuffler.advance(1000)
    assert shuffler.state == "loaded"
    with pytest.raises(CannotDo):
        shuffler.release(TOKEN)
    assert shuffler.start(OTHER) == 2


def test_a_reboot_in_mid_cycle_can_be_prepared():
    shuffler = loaded_shuffler()
    shuffler.traps.set("power_cut", 2, 0.0)
    shuffler.start(TOKEN)
    shuffler.advance(22)
    assert shuffler.state == "done"
    shuffler.start(OTHER)
    shuffler.advance(1000)
    assert (shuffler.boot, shuffler.state, shuffler.cycle) == (2, "loaded", 2)


def test_opening_the_door_in_mid_cycle_aborts_and_hands_can_lift_out_a_part():
    shuffler = loaded_shuffler()
    shuffler.start(TOKEN)
    shuffler.advance(1)
    with pytest.raises(CannotDo):
        shuffler.lift_out_by_hand()
    shuffler.open_door()
    assert shuffler.happenings[-1].data == {"cycle": 1, "cause": "door"}
    assert len(shuffler.lift_out_by_hand(20)) == 20
    assert shuffler.happenings[-1].data == {"count": 20, "inside": 32, "token": None}
    assert shuffler.state == "loaded"


def test_lifting_cards_out_of_a_finished_batch_spends_its_token():
    shuffler = loaded_shuffler()
    shuffler.start(TOKEN)
    shuffler.advance(22)
    shuffler.open_door()
    assert shuffler.state == "done", "a look does no harm"
    shuffler.lift_out_by_hand(1)
    shuffler.close_door()
    assert shuffler.state == "loaded"
    with pytest.raises(CannotDo) as no:
        shuffler.release(TOKEN)
    assert no.value.why == "token"


def test_the_cutting_card_does_not_go_into_the_shuffler():
    stack = Stack(make_batch("red", 1))
    stack.insert_cutting_card(CuttingCard(), behind=13)
    shuffler = BatchShuffler(Random(1))
    with pytest.raises(ValueError, match="cutting card"):
        shuffler.load(stack)
    assert len(stack) == 52


def test_cut_and_cutting_card():
    batch = make_batch("red", 1)
    stack = Stack(batch)
    stack.cut(10)
    yellow = CuttingCard()
    stack.insert_cutting_card(yellow, behind=13)
    items = list(stack.contents())
    assert items[0] is batch[10]
    assert items[-14] is yellow
    assert len(stack) == 52
    assert stack.take_cutting_card() is yellow
    assert list(stack.contents()) == batch[10:] + batch[:10]


def test_a_wash_mixes_but_not_perfectly():
    stack = Stack(make_batch("red", 6, first_serial=0))
    stack.wash(Random(1))
    order = [item.serial for item in stack.contents() if isinstance(item, Card)]
    together = sum(b == a + 1 for a, b in pairwise(order))
    assert sorted(order) == list(range(312))
    assert 100 < together < 250, "clumps stay together; a perfect shuffle leaves about one pair"


def shoe_with(*items, **options) -> Shoe:
    shoe = Shoe(Random(1), **options)
    shoe.open_lid()
    shoe.load(Stack(items))
    shoe.close_lid()
    shoe.happenings.clear()
    return shoe


def test_a_shoe_tells_what_leaves_through_its_exit():
    one, two, yellow = Card(1, "8", "S", "red"), Card(2, "A", "C", "blue"), CuttingCard()
    shoe = shoe_with(one, yellow, two)
    shoe.turn_face_up(2)
    assert [shoe.draw() for _ in range(4)] == [one, yellow, two, None]
    assert [(h.kind, dict(h.data)) for h in shoe.happenings] == [
        ("drawn", {"face": "8S", "back": "red", "up": False}),
        ("cutting_card", {}),
        ("drawn", {"face": "AC", "back": "blue", "up": True}),
        ("emptied", {}),
    ]
    assert shoe.drawn == 2


def test_locked_closed_and_unread():
    shoe = shoe_with(*make_batch("red", 1))
    shoe.traps.set("misread")
    shoe.set_lock(locked=True)
    with pytest.raises(CannotDo) as no:
        shoe.draw()
    assert no.value.why == "locked"
    shoe.set_lock(locked=False)
    with pytest.raises(CannotDo) as no:
        shoe.remove_by_hand()
    assert no.value.why == "lid"
    shoe.draw()
    assert shoe.happenings[-1].data == {"face": None, "back": "red", "up": False}
    shoe.open_lid()
    assert len(shoe.remove_by_hand()) == 51
    assert kinds(shoe) == ["lock", "lock", "drawn", "lid", "emptied"]


def test_a_shoe_without_power_sees_nothing():
    shoe = shoe_with(*make_batch("red", 1))
    shoe.draw()
    shoe.power_cut(1.0)
    shoe.draw()
    shoe.advance(1.0)
    shoe.draw()
    assert kinds(shoe) == ["drawn", "booted", "drawn"]
    assert (shoe.boot, shoe.drawn) == (2, 1)


def test_a_wrong_back_card_comes_out_once_and_the_right_one_is_in_the_sleeve():
    shoe = shoe_with(*make_batch("red", 1))
    shoe.traps.set("wrong_back", 3)
    assert [shoe.draw().back for _ in range(4)] == ["red", "red", "blue", "red"]
    assert [card.serial for card in shoe.sleeve.contents()] == [3]


def test_census_finds_each_card_once_or_complains():
    red, blue = make_batch("red", 1), make_batch("blue", 1, first_serial=100)
    shoe, rack, layout = Shoe(Random(1)), DiscardRack(), Layout(7)
    hands = Stack(red)
    shuffler = BatchShuffler(Random(2))
    world = World(
        {"A": red, "B": blue},
        {"hands": hands, "shoe": shoe, "rack": rack, "layout": layout, "shuffler": shuffler},
    )
    with pytest.raises(CardsAstray, match="52 cards are nowhere"):
        world.census()
    shuffler.load(Stack(blue))
    hands.insert_cutting_card(CuttingCard(), 13)
    shoe.open_lid()
    shoe.load(hands)
    rack.put([shoe.draw()])
    layout.deal(shoe.draw(), "box 1")
    layout.deal(shoe.draw(), "dealer")
    assert world.census() == {
        "shoe": {"A": 49}, "rack": {"A": 1}, "layout": {"A": 2}, "shuffler": {"B": 52},
    }  # fmt: skip
    rack.put(layout.pick_up_hands())
    assert rack.gauge(52) == "short"
    assert [card.serial for card in rack.contents()] == [1, 2, 3]
    rack.put([red[40]])
    with pytest.raises(CardsAstray, match="card 41 is in"):
        world.census()


@pytest.mark.parametrize(
    ("cards", "result", "drawn"),
    [
        ("4 5 5 2", Result("player", player_pair=False, banker_pair=False), 4),
        ("2 K 2 3 8", Result("banker", player_pair=True, banker_pair=False), 5),
        ("T T 6 6 ", Result("tie", player_pair=False, banker_pair=False), 4),
        ("7 2 K 3 A", Result("player", player_pair=False, banker_pair=False), 5),
        ("A 2 A 2 8", Result("banker", player_pair=True, banker_pair=True), 5),
        ("A 3 A 3 6 9", Result("player", player_pair=True, banker_pair=True), 6),
    ],
)
def test_baccarat_draws_by_the_third_card_table(cards, result, drawn):
    game = Baccarat()
    game.take("A")
    game.take("A")
    results = [game.take(rank)[1] for rank in cards.split()[:drawn]]
    assert results == [None] * (drawn - 1) + [result]
    assert game.between_rounds


def test_self_play_goes_on_over_the_end_of_the_shoe():
    shoe = Shoe(Random(1))
    dealer = SelfPlay(shoe, Random(2), pace=1.0)
    batch = make_batch("red", 1)
    dealer.change_shoe(Stack(batch))
    world = World({"A": batch}, {"shoe": shoe, "discards": dealer.discards})
    for minute in range(10):
        shoe.advance(60.0 * minute)
        assert sum(count["A"] for count in world.census().values()) == 52
    assert kinds(shoe).count("new_shoe") > 2
    assert dealer.rounds > 20
