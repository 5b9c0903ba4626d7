"""What goes wrong in shufflers, and in piles that are put in: where the cards are, what the machine says."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from simulators.models.cards import Card, Stack, make_batch
from simulators.models.machine import CannotDo, Machine
from simulators.models.shoe import Shoe
from simulators.models.shuffler import BatchShuffler
from simulators.models.shuffles import new_deck_order
from simulators.models.table import World

TOKEN = bytes(range(16))


def kinds(machine: Machine) -> list[str]:
    return [happening.kind for happening in machine.happenings]


# What hands put in


@pytest.mark.parametrize(
    ("trap", "value", "cards", "strangers", "sleeve"),
    [
        ("missing", 3, 49, 0, 3),
        ("extra", 2, 54, 2, 0),
        ("duplicate", None, 52, 1, 1),
        ("joker", None, 52, 1, 1),
    ],
)
@pytest.mark.parametrize("made", [Shoe, BatchShuffler])
def test_a_pile_that_is_not_whole(
    made: type[Shoe | BatchShuffler], trap: str, value: Any, cards: int, strangers: int, sleeve: int
) -> None:
    machine, batch = made(Random(1)), make_batch("red", 1)
    machine.traps.set(trap, 1, value)
    if isinstance(machine, Shoe):
        machine.open_lid()
    machine.load(Stack(batch))
    items = [item.face for item in machine.contents() if isinstance(item, Card)]
    assert (len(items), len(machine.sleeve)) == (cards, sleeve)
    assert World({"A": batch}, {"machine": machine, "sleeve": machine.sleeve}).census() == {
        "machine": {"A": cards - strangers} | ({"?": strangers} if strangers else {}),
    } | ({"sleeve": {"A": sleeve}} if sleeve else {})
    copies = Counter(Counter(items).values())
    assert (copies[2], "XJ" in items) == ({"duplicate": 1, "extra": 2}.get(trap, 0), trap == "joker")


def test_a_report_counts_what_is_there_and_not_what_ought_to_be() -> None:
    shuffler = BatchShuffler(Random(1), decks=1)
    shuffler.load(Stack(make_batch("red", 1)))
    shuffler.load(Stack([Card(99, "X", "J", "green")]))
    assert len(shuffler.slip_out(2)) == 2
    shuffler.settings["mode"] = "sort"
    shuffler.start(TOKEN)
    shuffler.advance(60)
    report = shuffler.report
    assert report is not None
    assert (report.count, report.composition["XJ"], report.backs) == (51, 1, {"red": 50, "green": 1})
    assert "AC" not in report.composition
    shuffler.release(TOKEN)
    assert shuffler.take().give_cards()[-1].face == "XJ", "a sorted pile ends with what is in no deck"


def test_sorting_cards_that_are_in_no_deck() -> None:
    cards = [Card(1, "X", "J", "red"), Card(2, "2", "S", "red"), Card(3, "A", "C", "red")]
    assert [card.serial for card in new_deck_order(cards)] == [3, 2, 1]


# A cycle of one deck: 22 s


def cycle(trap: str, value: Any = None, **options: Any) -> BatchShuffler:
    shuffler = BatchShuffler(Random(1), decks=1, **options)
    shuffler.load(Stack(make_batch("red", 1)))
    shuffler.traps.set(trap, 1, value)
    shuffler.start(TOKEN)
    return shuffler


def test_a_jam_that_comes_free_costs_time_and_sends_a_card_through_the_overflow() -> None:
    shuffler = cycle("recovered_jam", 3)
    shuffler.advance(27.9)
    assert shuffler.state == "shuffling"
    assert [(h.at, h.data["attempt"]) for h in shuffler.happenings[1:]] == [(11.0, 1), (13.0, 2), (15.0, 3)]
    shuffler.advance(28.0)
    assert (shuffler.state, kinds(shuffler)[-1]) == ("done", "cycle_completed")
    assert shuffler.report is not None
    assert shuffler.report.count == 52
    assert shuffler.release(TOKEN) == (52, 0)
    out = shuffler.take().give_cards()
    assert 27 in (out[0].serial, out[-1].serial), "the card that jammed comes first or last"


def test_power_cut_at_any_second_finds_every_card_wherever_it_is() -> None:
    for second in range(40):
        shuffler = cycle("recovered_jam")
        shuffler.traps.set("stuck", 1, 2)
        shuffler.traps.set("leave_inside", 1, 3)
        shuffler.advance(min(second, 30))
        if shuffler.state == "done" and second > 33:
            shuffler.traps.set("power_cut_out", 1)
            shuffler.release(TOKEN)
        shuffler.power_cut()
        cards = list(shuffler.contents())
        assert (len(cards), len(set(cards)), shuffler.state) == (52, 52, "loaded"), second
        with pytest.raises(CannotDo, match="no completed batch waits"):
            shuffler.release(TOKEN)


def test_power_lost_in_a_jam_leaves_every_card_inside() -> None:
    shuffler = cycle("recovered_jam", 1)
    shuffler.advance(14.0)
    shuffler.power_cut()
    assert (shuffler.inside, shuffler.state, len(list(shuffler.contents()))) == (52, "loaded", 52)


def test_motors_that_stop_without_a_restart_shuffle_for_ever() -> None:
    shuffler = cycle("freeze")
    shuffler.advance(5000.0)
    assert (shuffler.state, shuffler.deadline(), shuffler.boot) == ("shuffling", None, 1)
    assert shuffler.fed_at(1) is None
    shuffler.abort()
    assert (shuffler.state, shuffler.inside, kinds(shuffler)[-1]) == ("loaded", 52, "cycle_aborted")


@pytest.mark.parametrize(
    ("trap", "value", "count", "composed", "unread", "inside"),
    [
        ("stuck", 3, 49, 49, 0, 49),
        ("double_feed", 2, 50, 50, 0, 52),
        ("miscount", None, 53, 52, 0, 52),
        ("miscount", -4, 48, 52, 0, 52),
        ("unreadable", 5, 52, 47, 5, 52),
        ("leave_inside", 6, 46, 46, 0, 52),
    ],
)
def test_what_the_report_says(
    trap: str, value: Any, count: int, composed: int, unread: int, inside: int
) -> None:
    shuffler = cycle(trap, value)
    shuffler.advance(22.0)
    report = shuffler.report
    assert report is not None
    assert (report.count, sum(report.composition.values()), report.unread) == (count, composed, unread)
    assert (shuffler.inside, len(list(shuffler.contents()))) == (inside, 52)


def test_cards_that_fell_where_no_sensor_is_come_out_when_all_is_lifted_out() -> None:
    shuffler = cycle("stuck", 3)
    shuffler.advance(22.0)
    assert shuffler.release(TOKEN) == (49, 0)
    assert (shuffler.state, len(shuffler.take())) == ("empty", 49)
    shuffler.open_door()
    assert len(shuffler.lift_out_by_hand(5)) == 0, "who lifts out what he sees finds none"
    assert len(shuffler.lift_out_by_hand()) == 3
    assert kinds(shuffler)[-1] == "door", "and the machine knows of none"


@pytest.mark.parametrize(("value", "out"), [(None, 26), (40, 40), (99, 52)])
def test_power_that_goes_while_a_batch_comes_out(value: int | None, out: int) -> None:
    shuffler = cycle("power_cut_out", value)
    shuffler.advance(22.0)
    shuffler.release(TOKEN)
    shuffler.advance(23.0)
    assert (shuffler.boot, shuffler.inside, "let_out" in kinds(shuffler)) == (2, 52 - out, False)
    assert (shuffler.token, shuffler.report, len(shuffler.take())) == (None, None, out)


def test_a_door_that_is_opened_in_mid_cycle_and_closed_again() -> None:
    shuffler = cycle("door", 3)
    shuffler.advance(13.9)
    assert (shuffler.door_open, shuffler.state) == (True, "loaded")
    shuffler.advance(14.0)
    assert (shuffler.door_open, shuffler.happenings[-1].at) == (False, pytest.approx(14.0))
    assert kinds(shuffler)[-3:] == ["door", "cycle_aborted", "door"]
    shuffler.start(bytes(16))
    shuffler.advance(36.0)
    assert kinds(shuffler)[-1] == "cycle_completed"


def test_a_machine_that_says_more_cards_came_out_than_did() -> None:
    shuffler = cycle("miscount_out")
    shuffler.advance(22.0)
    assert shuffler.release(TOKEN) == (53, 0)
    assert (len(shuffler.take()), shuffler.happenings[-1].data["count"]) == (52, 53)


def test_where_the_cards_of_a_cycle_are() -> None:
    shuffler = cycle("miscount")
    assert [shuffler.fed_at(n) for n in (0, 26, 53)] == [None, pytest.approx(11.0), None]
    shuffler.advance(22.0)
    assert shuffler.fed_at(26) is None


def test_a_cycle_that_has_the_number_of_the_last_one() -> None:
    shuffler = cycle("same_cycle")
    assert (shuffler.cycle, shuffler.happenings[-1].data["cycle"]) == (0, 0)
    shuffler.advance(22.0)
    assert shuffler.start(bytes(16)) == 1


def test_a_completed_batch_whose_token_is_forgotten() -> None:
    shuffler = cycle("forget_token")
    shuffler.advance(22.0)
    assert (kinds(shuffler)[-1], shuffler.state, shuffler.inside) == ("cycle_completed", "loaded", 52)
    with pytest.raises(CannotDo, match="used before"):
        shuffler.release(TOKEN)


# Wear


def worn_out(wear: float, cycles: int) -> BatchShuffler:
    shuffler = BatchShuffler(Random(1), decks=1, wear=wear)
    shuffler.load(Stack(make_batch("red", 1)))
    for number in range(cycles):
        shuffler.start(number.to_bytes(16))
        shuffler.advance(shuffler.now + 200)
        if shuffler.jammed:
            shuffler.clear_jam()
    return shuffler


def test_a_worn_machine_is_slower_jams_and_reads_badly() -> None:
    shuffler = worn_out(0.02, 50)
    attempts = [h.data["attempt"] for h in shuffler.happenings if h.kind == "jam"]
    unread = [h.data["report"].unread for h in shuffler.happenings if h.kind == "cycle_completed"]
    assert (shuffler.worn, attempts.count(1) > 10, max(attempts)) == (1.0, True, 3)
    assert kinds(shuffler).count("cycle_aborted") > 0
    assert sum(unread[:10]) < sum(unread[-10:])
    began = shuffler.now
    shuffler.start(TOKEN)
    shuffler.advance(began + 43.9)
    assert shuffler.state == "shuffling"


def test_maintenance_makes_it_new() -> None:
    shuffler = worn_out(0.02, 50)
    shuffler.maintain()
    began = shuffler.now
    shuffler.start(TOKEN)
    assert (shuffler.worn, shuffler.deadline()) == (0.02, pytest.approx(began + 22.0))


def test_a_machine_that_does_not_wear_takes_no_chance_for_it() -> None:
    assert kinds(worn_out(0.0, 30)).count("cycle_completed") == 30
