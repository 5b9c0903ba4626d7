"""Whole shoes at a table with a continuous shuffler; what goes wrong with the machine latches."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from controller.table.inputs import Role
from controller.table.profiles import TableRules
from simulators import faults
from simulators.models.cards import Card
from simulators.models.continuous import ContinuousShuffler
from simulators.rig.stepped import Stepped
from tests.support.continuous import CONTINUOUS, DEVICE
from tests.support.table import BATCHES

DRIVER = "managed-continuous"


def world_of(seed: object, shoes: int = 1, decks: int = 1, **changes: object) -> Stepped:
    rules = TableRules(table="CS-1", boxes=7, decks=decks, **{**CONTINUOUS, **changes})
    return Stepped(rules, seed, shoes, shoe=DRIVER)


def codes(world: Stepped) -> list[str]:
    return [fault["code"] for fault in world.controller.view("faults")]


def kinds(world: Stepped) -> list[str]:
    return [entry.fact.kind for entry in world.journal.entries()]


def between_rounds(world: Stepped, rounds: int) -> None:
    """So many rounds are over and their cards picked up."""
    world.run(lambda: world.view.rounds == rounds and not list(world.felt.layout.contents()))


@pytest.mark.rule("R-11", "R-60")
@pytest.mark.parametrize(("decks", "shoes"), [(1, 3), (6, 1)])
def test_whole_shoes_go_by_without_a_fault(decks: int, shoes: int) -> None:
    world = world_of("whole", shoes, decks)
    world.run()
    world.felt.referee.check()
    assert world.felt.referee.violations == []
    assert (world.view.phase, world.view.batches) == ("closed", ["A"] * shoes)
    assert world.view.cards >= shoes * decks * 52
    told = kinds(world)
    assert told.count("ready_to_deal") == shoes
    assert told.count("cards_returned") >= world.view.rounds - 2 * shoes
    assert {"cut", "burn", "cut_card", "load_shoe", "fault_latched"}.isdisjoint(told)


@pytest.mark.rule("R-11")
def test_two_batches_alternate_where_the_batch_rule_binds_here_too() -> None:
    world = world_of("two", 3, batches=BATCHES)
    world.run()
    world.felt.referee.check()
    assert (world.felt.referee.violations, world.view.faults_latched) == ([], 0)
    assert (world.view.phase, world.view.batches) == ("closed", ["A", "B", "A"])


@pytest.mark.rule("R-74")
@pytest.mark.parametrize(
    ("fault", "code"), [("stuck@2", "count_drift"), ("counted_twice@2", "returned_twice")]
)
def test_a_count_that_does_not_agree_stops_the_next_round(fault: str, code: str) -> None:
    world = world_of("drift")
    faults.apply(world.hosts[DEVICE].device, fault)
    world.run(lambda: world.view.faults_latched > 0)
    assert codes(world) == [code]
    world.run(lambda: world.view.phase == "between_rounds")
    refused = world.tap("bets_closed", boxes="1")
    assert (refused["refused"], refused["ok"]) == ("fault_latched", False)
    fault_id = next(iter(world.view.faults))
    assert world.tap("clear", fault=fault_id)["refused"] == "cause_remains"
    assert world.tap("idle")["ok"]


@pytest.mark.rule("R-60")
def test_cards_of_the_last_round_put_back_at_once_are_told() -> None:
    world = world_of("hasty")
    between_rounds(world, 1)
    world.felt.give_back()
    world.run(lambda: world.view.faults_latched > 0)
    assert codes(world) == ["returned_early"]
    (fault,) = world.view.faults
    assert world.tap("clear", roles=frozenset({Role.SUPERVISOR}), fault=fault)["ok"]
    world.run()
    assert (world.view.phase, world.felt.referee.violations) == ("closed", [])


def test_after_a_crash_at_any_fact_the_table_deals_on() -> None:
    world = world_of("crash", 2)
    whole = world_of("crash", 2)
    whole.run()
    for point in sorted(Random("points").sample(range(2, whole.journal.last_seq), 10)):
        world.run(lambda point=point: world.view.seq >= point)
        world.crash()
        world.restart()
    world.run()
    assert (world.view.phase, world.felt.referee.violations) == ("closed", [])
    assert (world.view.cards, world.view.rounds) == (whole.view.cards, whole.view.rounds)


def test_power_lost_between_two_rounds_loses_no_card_and_is_told() -> None:
    world = world_of("power")
    between_rounds(world, 2)
    machine = world.felt.shoe
    assert isinstance(machine, ContinuousShuffler)
    inside = machine.inside
    machine.power_cut(2.0)
    world.settle(20)
    assert (machine.inside, codes(world)) == (inside, ["shoe_rebooted"])
    (fault,) = world.view.faults
    assert world.tap("clear", fault=fault)["ok"]
    world.run()
    assert (world.view.phase, world.felt.referee.violations, codes(world)) == ("closed", [], [])


def test_a_hand_in_the_door_is_seen_and_every_card_is_collected() -> None:
    world = world_of("door")
    between_rounds(world, 1)
    machine = world.felt.shoe
    assert isinstance(machine, ContinuousShuffler)
    machine.open_lid()
    world.felt.rack.put(machine.remove_by_hand(3).give())
    machine.close_lid()
    world.settle(2)
    assert codes(world) == ["count_drift"]
    assert world.controller.view("status")["batches"]["A"]["cards"]["rack"] == len(world.felt.rack)
    assert world.tap("close")["ok"]
    while not machine.empty:
        world.felt.draw("stub")
        world.settle(1)
    assert world.tap("collect_rack", gauge="full")["ok"]
    assert world.tap("count_batch", batch="A", cards=52)["ok"]
    assert world.tap("confirm_empty", device=DEVICE)["ok"]
    world.settle(1)
    assert world.tap("close")["ok"]


def inside(world: Stepped) -> list[Card]:
    """The cards in the machine, the next one first."""
    return [item for item in world.felt.shoe.contents() if isinstance(item, Card)]


def told_until(phase: str, swap: Callable[[ContinuousShuffler, list[Card]], None], draws: int) -> list[str]:
    """All that leaves the table from `phase` on while so many more cards are drawn, after a swap inside."""
    world = world_of("unseen")
    world.run(lambda: world.view.rounds >= 3 and world.view.phase == phase)
    machine = world.felt.shoe
    assert isinstance(machine, ContinuousShuffler)
    swap(machine, inside(world))
    before, lines = world.view.cards, world.listen()
    world.run(lambda: world.view.cards == before + draws)
    world.settle(1)
    return lines


@pytest.mark.rule("R-63")
@pytest.mark.parametrize(("phase", "draws"), [("hole_card", 1), ("shoe_end", 30)])
def test_law_7_a_card_that_nobody_may_see_changes_no_output(phase: str, draws: int) -> None:
    def other_cards(machine: ContinuousShuffler, cards: list[Card]) -> None:
        for one, other in zip(cards[: draws // 2 + 1], reversed(cards), strict=False):
            machine.exchange(one, other)

    plain = told_until(phase, lambda machine, cards: None, draws)
    assert len(plain) > 5 * draws
    assert told_until(phase, other_cards, draws) == plain


def test_law_7_a_card_that_everybody_sees_changes_the_output() -> None:
    def other_card(machine: ContinuousShuffler, cards: list[Card]) -> None:
        machine.exchange(cards[0], next(card for card in reversed(cards) if card.rank != cards[0].rank))

    assert told_until("dealing", lambda machine, cards: None, 1) != told_until("dealing", other_card, 1)
