"""Whole rounds of the one-deck games; what goes wrong with a shoe that dispenses stacks."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from controller.table.profiles import BatchRules, Burn, CutPolicy, TableRules
from devices.registry import load
from simulators import faults
from simulators.models.cards import Card
from simulators.models.stack_shoe import StackShoe
from simulators.rig.stepped import Stepped
from simulators.wire.managed_stack_shoe import ManagedStackShoe

ONE = (BatchRules("A", "red"),)
TWO = (*ONE, BatchRules("B", "blue"))
STACKS = "managed-stack-shoe"
BY_EYE: dict[str, Any] = {"shoe": None, "shoe_senses": frozenset()}


def world_of(seed: object, decks: int = 2, driver: str = STACKS, **changes: Any) -> Stepped:
    given: dict[str, Any] = {
        "table": "TC-1",
        "boxes": 6,
        "decks": 1,
        "batches": ONE,
        "shuffler": None,
        "mode": "deck-per-round",
        "game": "three-card-poker",
        "burn": Burn.NEVER,
        "stacks": driver == STACKS,
        "shoe_senses": load(driver).senses,
        **changes,
    }
    return Stepped(TableRules(**given), seed, decks, shoe=driver)


def wire(world: Stepped) -> ManagedStackShoe:
    device = world.hosts["shoe"].device
    assert isinstance(device, ManagedStackShoe)
    return device


def codes(world: Stepped) -> list[str]:
    return [fault["code"] for fault in world.controller.view("faults")]


def told(world: Stepped, kind: str) -> list[Any]:
    return [entry.fact.data for entry in world.journal.entries() if entry.fact.kind == kind]


def well(world: Stepped) -> None:
    """Played to its end, every card accounted for, nothing latched, no alarm left and none for its lid."""
    world.run()
    world.felt.referee.check()
    assert (world.felt.referee.violations, codes(world), world.view.alarms) == ([], [], {})
    assert "shoe_opened" not in [fault["code"] for fault in told(world, "fault_latched")]
    assert world.view.phase == "closed"


@pytest.mark.rule("R-52", "R-53", "R-54", "R-56")
@pytest.mark.parametrize(
    ("game", "driver", "decks", "changes"),
    [
        ("three-card-poker", STACKS, 3, {"batches": TWO, "shuffler": "shuffler"}),
        ("three-card-poker", "managed-shoe", 2, {}),
        ("mississippi-stud", STACKS, 2, {"shuffler": "shuffler", "cut": CutPolicy.HAND_SHUFFLED}),
        ("mississippi-stud", "managed-shoe", 6, {**BY_EYE, "batches": TWO, "shuffler": "shuffler"}),
        ("asia-poker", STACKS, 5, {}),
        ("asia-poker", "managed-shoe", 3, {"shuffler": "shuffler", "batches": TWO}),
    ],
)
def test_decks_go_by_without_a_fault(game: str, driver: str, decks: int, changes: dict[str, Any]) -> None:
    world = world_of(game, decks, driver, game=game, **changes)
    well(world)
    alternate = "batches" in changes
    assert "".join(world.view.batches) == ("ABABAB" if alternate else "AAAAAA")[:decks]
    assert (world.view.rounds, world.felt.referee.cards) == (decks, decks * world.rules.batch_size)
    cuts = 0 if "cut" in changes else decks
    assert (len(told(world, "cut")), len(told(world, "offer_cut"))) == (cuts, 0)
    counted = [fact["stub"] for fact in told(world, "collect_rack") if "stub" in fact]
    assert counted == ([4] if decks == 5 else [])


@pytest.mark.rule("R-53")
def test_every_stack_is_asked_for_by_its_first_card() -> None:
    world = world_of("asked", 2)
    well(world)
    asked = [
        fact["args"]
        for fact in (entry.fact.data for entry in world.journal.entries())
        if fact.get("command") == "dispense" and "args" in fact
    ]
    boxes = [len(fact["boxes"]) for fact in told(world, "bets_closed")]
    assert len(asked) == sum(boxes) + 2 * len(boxes)
    for index, players in enumerate(boxes):
        stacks = asked[sum(boxes[:index]) + 2 * index :][: players + 2]
        assert [s["drawn"] for s in stacks] == [3 * n for n in range(players + 2)]
        assert sum(s["count"] for s in stacks) == 52


@pytest.mark.parametrize("fault", ["jam@2", "jam:belt@3", "late_answer@30", "duplicate_answer", "misread@7"])
def test_what_a_shoe_gets_over(fault: str) -> None:
    world = world_of(fault)
    faults.apply(wire(world), fault)
    well(world)
    assert world.felt.referee.cards == 2 * 52


def test_a_jam_is_an_alarm_until_the_next_card_comes() -> None:
    world = world_of("jam")
    faults.apply(wire(world), "jam@2")
    world.run(lambda: bool(world.view.alarms))
    assert list(world.view.alarms.values()) == ["shoe_jam"]
    well(world)


@pytest.mark.rule("S9")
def test_a_stack_whose_answer_is_lost_comes_once() -> None:
    """Silent for longer than three tries: the outcome is unknown, the cards tell."""
    world = world_of("silent")
    device = wire(world)
    world.run(lambda: world.view.phase == "dealing")
    device.traps.set("silent", 1, 3.0)
    well(world)
    assert world.felt.referee.cards == 2 * 52


@pytest.mark.rule("R-53", "R-55")
def test_a_card_too_many_in_a_stack_makes_the_round_void() -> None:
    world = world_of("extra")
    faults.apply(wire(world), "extra_card@2")
    world.run(lambda: world.view.faults_latched > 0)
    world.settle(5)
    assert codes(world) == ["card_out_of_turn"]
    assert world.tap("void_round", reason="misdeal")["ok"]
    world.felt.take_stack("box 1")
    world.felt.pick_up()
    (fault,) = world.view.faults
    assert world.tap("clear", fault=fault)["ok"]
    assert world.tap("dispense")["ok"]
    world.settle(60)
    stub = world.felt.take_stack("stub")
    assert world.tap("collect_rack", gauge="full", stub=stub)["ok"]
    assert (codes(world), len(world.felt.rack)) == ([], 52)


def test_after_a_crash_at_any_fact_the_deal_goes_on() -> None:
    world, whole = world_of("crash"), world_of("crash")
    whole.run()
    for point in sorted(Random("points").sample(range(2, whole.journal.last_seq), 8)):
        world.run(lambda point=point: world.view.seq >= point)
        world.crash()
        world.restart()
    well(world)
    assert (world.view.cards, world.view.rounds) == (whole.view.cards, whole.view.rounds)


def test_power_lost_in_a_deal_voids_the_round_and_the_stub_is_taken_out_by_hand() -> None:
    world = world_of("power")
    world.run(lambda: world.view.phase == "dealing" and world.view.cards == 3)
    shoe = world.felt.shoe
    assert isinstance(shoe, StackShoe)
    shoe.power_cut(2.0)
    world.settle(20)
    assert codes(world) == ["shoe_rebooted"]
    assert world.tap("void_round", reason="other")["ok"]
    world.felt.take_stack("box 1")
    world.felt.pick_up()
    shoe.open_lid()
    world.felt.rack.put(shoe.remove_by_hand().give())
    shoe.close_lid()
    world.settle(5)
    assert world.tap("collect_rack", gauge="full")["ok"]
    assert codes(world) == ["shoe_rebooted"]
    (fault,) = world.view.faults
    assert world.tap("clear", fault=fault)["ok"]


# --- law 7 ---


def told_from(phase: str, draws: int, swap: Callable[[list[Card]], None]) -> list[str]:
    """All that leaves the table from `phase` on while so many more cards come, after a swap in the shoe."""
    world = world_of("unseen", 1, "managed-shoe")
    world.run(lambda: world.view.phase == phase)
    shoe = world.felt.shoe
    cards = [item for item in shoe.contents() if isinstance(item, Card)]
    swap(cards)
    for index, card in enumerate(cards):
        shoe.swap_in(index, card)
    before, lines = world.view.cards, world.listen()
    world.run(lambda: world.view.cards == before + draws)
    world.settle(1)
    return lines


@pytest.mark.rule("R-63")
@pytest.mark.parametrize(("phase", "draws"), [("dealing", 6), ("playing", 0), ("shoe_end", 20)])
def test_law_7_no_card_of_the_deal_or_the_stub_changes_an_output(phase: str, draws: int) -> None:
    assert told_from(phase, draws, list.reverse) == told_from(phase, draws, lambda cards: None)


@pytest.mark.rule("R-63")
def test_law_7_hands_are_told_when_the_deck_is_collected() -> None:
    world = world_of("settled", 1, "managed-shoe")
    world.run(lambda: world.view.phase == "playing")
    cards = world.controller.view("status")["round"]["cards"]
    assert len(cards) >= 6
    assert {card["card"] for card in cards} == {None}
    lines = world.listen()
    world.run(lambda: world.view.rounds == 1)
    assert not any('"kind": "exposed"' in line for line in lines)
    world.run()
    assert any('"kind": "collected"' in line for line in lines)
