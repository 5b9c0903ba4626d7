"""The simulated continuous shuffler: no card is lost or made, and it says what the protocol page says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from firmware_bridge.link import Done, Refused
from simulators import faults
from simulators.models.cards import Card, Item, Stack, make_batch
from simulators.models.carousel import Carousel
from simulators.models.continuous import ContinuousShuffler
from simulators.models.machine import CannotDo
from simulators.models.selfplay import ContinuousPlay
from simulators.wire.managed_continuous import ManagedContinuous
from tests.support.line import Line
from tests.unit.test_simulators_wire_managed import PACKETS, TOKEN, Host, framed

DRIVER = "managed-continuous"
READ, WRITE = 0, 2


def machine(decks: int = 1, **more: Any) -> tuple[ContinuousShuffler, list[Card]]:
    """A machine that deals, and every card in it."""
    made, cards = ContinuousShuffler(Random(5), decks=decks, **more), make_batch("red", decks)
    made.put_in(Stack(cards))
    made.start(TOKEN)
    made.advance(30.0 * decks)
    assert made.state == "dealing"
    return made, cards


def refused(made: ContinuousShuffler) -> str:
    """Why no card comes out."""
    with pytest.raises(CannotDo) as no:
        made.draw()
    return no.value.why


def kinds(made: ContinuousShuffler) -> list[str]:
    return [happening.kind for happening in made.happenings]


# Cards as things


def test_every_card_comes_out_once_in_an_order_of_its_own() -> None:
    made, cards = machine(decks=2)
    out = [made.draw() for _ in cards]
    assert set(out) == set(cards)
    assert out != cards
    assert (refused(made), made.state, kinds(made)[-1]) == ("state", "empty", "emptied")


def test_cards_that_go_back_are_dealt_again_and_none_is_lost() -> None:
    made, cards = machine()
    resting: list[Item] = []
    seen: Counter[Item] = Counter()
    for _ in range(60):
        drawn = [card for card in (made.draw() for _ in range(6)) if card is not None]
        seen.update(drawn)
        made.put_in(Stack(resting))
        resting = drawn
        assert made.inside == len(made) == 52 - len(resting)
        assert {*made.contents(), *resting} == set(cards)
    assert min(seen[card] for card in cards) >= 1
    assert made.drawn == 360


def test_nothing_comes_out_before_the_first_shuffle_is_done() -> None:
    made = ContinuousShuffler(Random(5))
    made.put_in(Stack(make_batch("red", 1)))
    assert (made.state, refused(made)) == ("loaded", "state")
    made.start(TOKEN)
    made.advance(21.0)
    assert (made.state, refused(made)) == ("shuffling", "state")
    with pytest.raises(CannotDo):
        made.put_in(Stack(make_batch("red", 1, 100)))
    made.advance(22.0)
    assert made.draw() is not None


def test_cards_that_stick_went_in_and_are_not_counted_inside() -> None:
    made, _ = machine()
    made.traps.set("stuck", 1, 2)
    used = [card for card in (made.draw() for _ in range(5)) if card is not None]
    made.put_in(Stack(used))
    told = made.happenings[-1].data
    assert told == {"count": 5, "inside": 50}
    assert (made.inside, len(made)) == (50, 52)
    made.open_lid()
    assert len(made.remove_by_hand()) == 52


def test_cards_counted_twice_are_told_twice() -> None:
    made, _ = machine()
    made.traps.set("counted_twice", 1, 2)
    made.put_in(Stack([card for card in (made.draw() for _ in range(5)) if card is not None]))
    assert made.happenings[-1].data == {"count": 7, "inside": 54}
    assert len(made) == 52


def test_cards_that_the_counter_misses_are_not_told() -> None:
    made, _ = machine()
    made.traps.set("uncounted", 1, 2)
    made.put_in(Stack([card for card in (made.draw() for _ in range(5)) if card is not None]))
    assert made.happenings[-1].data == {"count": 3, "inside": 50}
    assert len(made) == 52


def test_cards_that_find_no_slot_wait_and_come_out_all_the_same() -> None:
    made, cards = machine()
    used = [card for card in (made.draw() for _ in range(52)) if card is not None]
    made.put_in(Stack(used))
    made.start(bytes(16))
    made.advance(100.0)
    made.traps.set("overflow", 1, 20)
    used = [card for card in (made.draw() for _ in range(30)) if card is not None]
    made.put_in(Stack(used))
    assert made.happenings[-1].data == {"count": 30, "inside": 52}
    assert {made.draw() for _ in cards} == set(cards)
    assert made.state == "empty"


def test_a_buffer_of_18_to_27_cards_is_refilled_when_8_are_left() -> None:
    made, _ = machine(decks=5)
    waits = []
    for _ in range(300):
        before, card = len(made._items), made.draw()
        waits.append(before)
        assert card is not None
        made.put_in(Stack([card]))
    assert (min(waits), max(waits) < 18 + 10) == (9, True)


TRAPS = (
    "stuck",
    "counted_twice",
    "uncounted",
    "overflow",
    "double_feed",
    "unseen",
    "sticks",
    "power_cut",
    "missing",
)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_hands_do_each_card_is_in_one_place(seed: int) -> None:
    made, cards = machine()
    random, lying = Random(seed), Stack()
    acts: list[Callable[[], object]] = [
        *[lambda: lying.add([made.draw()])] * 30,
        *[lambda: made.put_in(lying)] * 4,
        lambda: made.traps.set(random.choice(TRAPS), 1),
        lambda: made.power_cut(random.choice([0.0, 1.0])),
        lambda: made.start(random.randbytes(16)),
        lambda: made.advance(made.now + random.choice([1.0, 30.0])),
        lambda: (made.open_lid(), lying.add(made.remove_by_hand(random.randrange(60)).give())),
        made.close_lid,
    ]
    for _ in range(300):
        with suppress(CannotDo):
            random.choice(acts)()
        places = [*made.contents(), *lying.contents(), *made.sleeve.contents()]
        assert (len(places), set(places)) == (52, set(cards))


# The carousel


def test_a_slot_takes_ten_cards_and_the_rest_overflows() -> None:
    carousel, cards = Carousel(Random(1)), make_batch("red", 8)
    carousel.put(cards)
    assert (len(carousel.overflow), set(carousel)) == (416 - 380, set(cards))
    assert len(carousel.push_out()) == 10
    carousel.push_out()
    assert len(carousel.overflow) == 26, "ten of those that waited took the slot that came out"


def test_ripe_slots_come_out_whole_and_otherwise_the_fullest() -> None:
    carousel, cards = Carousel(Random(1)), make_batch("red", 3)
    carousel.put(cards)
    pushed = [carousel.push_out() for _ in range(40)]
    sizes = [len(slot) for slot in pushed]
    unripe = [size for size in sizes if size < 7]
    assert min(sizes[: len(sizes) - len(unripe)]) >= 7
    assert unripe == sorted(unripe, reverse=True)
    assert (sum(sizes), sizes[-1]) == (156, 0)
    assert {card for slot in pushed for card in slot} == set(cards)


def test_overflowing_cards_come_out_of_an_empty_carousel() -> None:
    carousel, cards = Carousel(Random(1)), make_batch("red", 1)
    carousel.overflow += cards[:1]
    assert carousel.push_out() == cards[:1]


def test_gaps_between_two_appearances_of_a_card() -> None:
    """Five decks, 18 cards a round: the mean gap is the pile, and short ones are far rarer than by chance.

    A memoryless machine has .0364 of its gaps up to 18, .1033 up to 36, .1305 above 520. Since only ripe
    slots come out, long gaps are rarer here too than where any slot may.
    """
    made, _ = machine(decks=5)
    dealt, gaps = 0, []
    last: dict[Item, int] = {}
    for _ in range(1500):
        used = [card for card in (made.draw() for _ in range(18)) if card is not None]
        for card in used:
            dealt += 1
            if card in last:
                gaps.append(dealt - last[card])
            last[card] = dealt
        made.put_in(Stack(used))
    few, some, many = (sum(gap <= bound for gap in gaps) / len(gaps) for bound in (18, 36, 520))
    assert sum(gaps) / len(gaps) == pytest.approx(260, abs=5)
    assert (few < 0.006, 0.01 < some < 0.05) == (True, True)
    assert 0.06 < 1 - many < 0.1305


def test_power_loss_voids_a_cycle_and_nothing_else() -> None:
    made, _ = machine()
    made.draw()
    made.power_cut()
    assert (made.state, made.drawn, made.inside, made.cycle, made.boot) == ("dealing", 1, 51, 1, 2)
    made.start(bytes(16))
    made.power_cut()
    assert (made.state, made.inside, made.cycle) == ("loaded", 51, 2)


def test_a_hand_in_the_door_takes_cards_that_are_told() -> None:
    made, cards = machine()
    made.open_lid()
    taken = made.remove_by_hand(10)
    assert (len(taken), made.inside, made.state) == (10, 42, "dealing")
    assert made.happenings[-1].data == {"count": 10, "inside": 42, "token": None}
    made.remove_by_hand()
    assert (made.state, kinds(made)[-2:]) == ("empty", ["let_out", "emptied"])
    assert len(cards) == 52


def test_an_opened_door_voids_a_running_cycle() -> None:
    made = ContinuousShuffler(Random(5))
    made.put_in(Stack(make_batch("red", 1)))
    made.start(TOKEN)
    made.open_lid()
    assert (kinds(made)[-2:], made.state) == (["door", "cycle_aborted"], "loaded")


# The wire


def host() -> tuple[Host, ContinuousShuffler]:
    made = ContinuousShuffler(Random(5))
    made.put_in(Stack(make_batch("red", 1)))
    return Host(ManagedContinuous(made)), made


def test_what_it_says_in_a_life_with_a_round() -> None:
    asker, made = host()
    assert asker.ask(READ, 64, 0)["class"] == "continuous"
    assert asker.ask(READ, 66, 0)["state"] == "loaded"
    assert asker.ask(WRITE, 66, 1, {"token": TOKEN}) == {"cycle": 1}
    asker.now = 30.0
    made.advance(30.0)
    used = [made.draw() for _ in range(3)]
    made.put_in(Stack([card for card in used[:2] if card is not None]))
    told = asker.events()["events"]
    assert [event["k"] for event in told] == ["start", "done", "card", "card", "card", "returned"]
    assert {"count": 2, "inside": 51}.items() <= told[-1].items()
    assert (told[1]["count"], told[1]["backs"]) == (52, {"red": 52})
    assert (
        asker.ask(READ, 66, 0)
        == asker.ask(READ, 67, 0)
        == {
            "state": "dealing",
            "inside": 51,
            "door": False,
            "cycle": 1,
            "token": TOKEN,
            "mode": "shuffle",
            "locked": False,
            "empty": False,
            "drawn": 3,
        }
    )
    assert asker.ask(WRITE, 66, 3, {"token": TOKEN}) == {"err": {"group": 66, "rc": 1}}


def test_the_golden_request_for_its_status_is_answered() -> None:
    asker, _ = host()
    asker.device.receive(framed(PACKETS["continuous status"]), 0.0)
    ((sequence, answer),) = asker.answers()
    assert (sequence, answer["state"], answer["inside"]) == (97, "loaded", 52)


def test_locked_it_lets_no_card_out() -> None:
    asker, made = host()
    made.start(TOKEN)
    made.advance(30.0)
    asker.now = 30.0
    assert asker.ask(WRITE, 67, 1) == {"locked": True}
    with pytest.raises(CannotDo, match="locked"):
        made.draw()
    assert asker.ask(WRITE, 67, 2) == {"locked": False}
    assert made.draw() is not None


# The driver on the simulated machine


def test_driver_and_machine_understand_each_other() -> None:
    made = ContinuousShuffler(Random(5))
    made.put_in(Stack(make_batch("red", 1)))
    line = Line(DRIVER, ManagedContinuous(made)).up()
    line.command("C1", "start", token=TOKEN.hex())
    assert line.end_of("C1") == Done({"cycle": 1})
    line.run(60.0, lambda: "cycle_completed" in line.kinds)
    used = [card for card in (made.draw() for _ in range(4)) if card is not None]
    made.put_in(Stack(used))
    line.run(1.0)
    assert line.kinds == [
        "link_up",
        "cycle_started",
        "cycle_completed",
        *["card_drawn"] * 4,
        "cards_returned",
    ]
    assert [event.card for event in line.of("card_drawn")] == [c.face for c in used if isinstance(c, Card)]
    (returned,) = line.of("cards_returned")
    assert (returned.count, returned.inside) == (4, 52)
    line.command("C2", "lock")
    assert line.end_of("C2") == Done({"locked": True})
    line.command("C3", "start", token=TOKEN.hex())
    assert line.end_of("C3") == Done({"cycle": 1})
    line.command("C4", "report")
    assert isinstance(line.end_of("C4"), Done)
    line.command("C5", "abort")
    assert line.end_of("C5") == Refused("3", "wrong state")


def test_by_itself_it_shuffles_deals_and_takes_cards_back() -> None:
    made = ContinuousShuffler(Random(5))
    made.put_in(Stack(make_batch("red", 1)))
    play = ContinuousPlay(made, Random(6), pace=1.0)
    made.advance(600.0)
    told = Counter(kinds(made))
    assert play.rounds > 20
    assert told["returned"] >= play.rounds - 1
    assert told["cycle_started"] == 1


@pytest.mark.parametrize(
    "text", ["stuck", "stuck:3@2", "counted_twice@1", "misread", "sort_mode", "no_start"]
)
def test_its_faults_can_be_prepared(text: str) -> None:
    faults.apply(ManagedContinuous(ContinuousShuffler(Random(5))), text)


def test_faults_of_other_machines_are_refused() -> None:
    device = ManagedContinuous(ContinuousShuffler(Random(5)))
    with pytest.raises(faults.UnfitFault, match="only a shuffler"):
        faults.apply(device, "leave_inside")
