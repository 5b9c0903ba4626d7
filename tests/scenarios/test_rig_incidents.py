"""Incidents on simulated machines: what the controller says, and that no unproved card reaches a box."""

from __future__ import annotations

import pytest

from controller.table.inputs import Role
from controller.table.profiles import BatchRules, TableRules
from simulators import faults
from simulators.models.cards import Card
from simulators.rig.stepped import Stepped
from simulators.rig.steps import Stuck

BATCHES = (BatchRules("A", "red"), BatchRules("B", "blue"))
SUPERVISOR = frozenset({Role.SUPERVISOR})
DEALER = frozenset({Role.DEALER})


def world_of(seed: object, shoes: int = 2, decks: int = 1) -> Stepped:
    return Stepped(TableRules("BJ-07", 7, decks, BATCHES), seed, shoes)


def codes(world: Stepped) -> list[str]:
    return [fault["code"] for fault in world.controller.view("faults")]


def at_swap(seed: object) -> Stepped:
    """Batch A collected in the rack, batch B proved in the shuffler; the dealer has not moved on."""
    world = world_of(seed)
    world.run(lambda: world.view.phase == "rack_full" and world.view.cycle == "proved")
    world.settle()
    return world


@pytest.mark.rule("R-14", "R-36b")
@pytest.mark.parametrize("asked", [False, True], ids=["nobody starts it", "the machine does not start"])
def test_inc_1_discards_loaded_cycle_never_started_batch_taken_out_no_shoe_may_start(asked: bool) -> None:
    world = world_of("INC-1", shoes=3)
    world.run(lambda: world.view.phase == "other_loaded" and len(world.view.batches) == 1)
    world.felt.load_shuffler("A")
    if asked:
        faults.apply(world.felt.shuffler_wire, "no_start@1")
        world.tap("start_shuffle")
        world.settle()
    shuffler = world.felt.shuffler
    shuffler.open_door()
    world.felt.piles["A"] = shuffler.lift_out_by_hand()
    shuffler.close_door()
    world.settle()
    assert "taken_without_proof" in codes(world)
    # batch B is at hand, proved, and still no shoe may start: the other batch is stored nowhere
    for event, args in (("offer_cut", {"box": 1}), ("cut", {"position": 26}), ("load_shoe", {"batch": "A"})):
        assert world.tap(event, **args)["ok"] is False
    # the dealer loads the unshuffled cards into the shoe all the same and deals one
    world.felt.load_shoe("A")
    world.felt.draw("box 1")
    world.settle()
    assert codes(world)[-1] == "stray_card"
    assert world.felt.referee.violations
    assert world.tap("bets_closed", boxes="1")["ok"] is False


@pytest.mark.rule("R-36b", "R-55")
def test_inc_6_sixteen_cards_left_inside_the_batch_is_short_and_never_complete() -> None:
    world = world_of("INC-6")
    faults.apply(world.felt.shuffler_wire, "leave_inside:16@1")
    with pytest.raises(Stuck, match="shuffle of batch A"):
        world.run()
    assert codes(world) == ["wrong_count"]
    assert world.controller.view("status")["batches"]["A"]["unfit"] == "wrong_count"
    assert world.tap("start_shuffle")["refused"] == "batch_unfit"
    fault = world.controller.view("faults")[0]["id"]
    assert world.tap("clear", SUPERVISOR, fault=fault)["refused"] == "cause_remains"
    # it leaves the table: what the machine lets out goes nowhere else
    assert world.tap("take_from_shuffler")["ok"] is True
    world.settle()
    assert codes(world) == ["wrong_count", "cards_inside"]
    held = world.controller.view("status")["batches"]["A"]
    assert (held["unfit"], held["cards"]) == ("wrong_count", {"in_hand": 36, "shuffler": 16})
    assert world.controller.view("status")["phase"] == "first_loaded"
    assert world.felt.referee.shoes == []


@pytest.mark.rule("R-76")
def test_inc_7_sort_mode_is_seen_before_the_cycle_starts() -> None:
    world = world_of("INC-7")
    faults.apply(world.felt.shuffler_wire, "sort_mode")
    with pytest.raises(Stuck, match="did not start"):
        world.run()
    assert codes(world) == ["settings_mismatch"]
    assert world.felt.shuffler.cycle == 0
    assert world.tap("load_shoe", batch="A")["ok"] is False


@pytest.mark.rule("R-76")
def test_inc_7_sort_mode_switched_on_behind_the_settings_is_seen_in_the_report() -> None:
    world = world_of("INC-7 late")
    world.run(lambda: world.view.cycle == "running")
    world.felt.shuffler.settings["mode"] = "sort"
    with pytest.raises(Stuck, match="shuffle of batch A"):
        world.run()
    assert codes(world) == ["wrong_mode"]
    assert world.tap("take_from_shuffler")["ok"] is False
    assert world.felt.referee.shoes == []


@pytest.mark.rule("R-07")
@pytest.mark.parametrize("restart", [False, True])
def test_the_same_batch_twice_in_a_row_is_refused_also_across_a_restart(restart: bool) -> None:
    world = at_swap("twice")
    if restart:
        world.crash()
        world.restart()
        world.settle()
    assert world.view.batches == ["A"]
    shuffler = world.felt.shuffler
    # someone lifts B out by hand and wants A in the machine, to be dealt again
    shuffler.open_door()
    world.felt.piles["B"] = shuffler.lift_out_by_hand()
    shuffler.close_door()
    world.settle()
    answer = world.tap("load_shuffler", batch="A")
    assert (answer["refused"], answer["clause"]) == ("same_batch_twice", "13:69F-2.2(d)4")
    assert world.tap("load_shoe", batch="A")["ok"] is False
    assert world.felt.referee.shoes == ["A"]


@pytest.mark.rule("R-05", "R-08")
def test_a_card_of_the_other_back_colour_in_the_shoe_ends_the_batch_with_this_round() -> None:
    world = world_of("shoe colour")
    world.run(lambda: world.view.phase == "between_rounds")
    swap_backs(world, index=2)
    world.run(lambda: world.view.phase == "between_rounds" and world.view.rounds == 1)
    assert codes(world) == ["wrong_back"]
    answer = world.tap("bets_closed", boxes="1")
    assert answer["refused"] == "fault_latched"
    fault = world.controller.view("faults")[0]["id"]
    assert world.tap("clear", DEALER, fault=fault)["refused"] == "not_allowed"
    assert world.tap("clear", SUPERVISOR, fault=fault)["refused"] == "cause_remains"


def swap_backs(world: Stepped, index: int) -> None:
    """A blue card takes the place of the card at `index` of the shoe."""
    blue = next(c for c in world.felt.shuffler.contents() if isinstance(c, Card))
    old = world.felt.shoe.swap_in(index, Card(-1, blue.rank, blue.suit, "blue"))
    world.felt.shoe.sleeve.add([old])


@pytest.mark.rule("R-08", "R-43")
def test_a_card_of_the_other_back_colour_in_the_rack_stops_the_next_swap() -> None:
    world = world_of("rack colour")
    world.run(lambda: world.view.phase == "shoe_end" and world.felt.shoe.empty)
    world.settle()
    answer = world.tap("collect_rack", gauge="over", other_backs=1)
    assert answer["ok"] is True
    assert codes(world) == ["rack_gauge", "rack_wrong_back"]
    world.settle(600)
    assert world.view.cycle == "proved"
    assert world.tap("take_from_shuffler")["refused"] == "fault_latched"


def test_the_referee_sees_what_the_controller_cannot() -> None:
    """The rig's judge must be able to fail: each misdeed on the felt is a violation."""
    world = world_of("referee", decks=2)
    world.run(lambda: world.view.phase == "between_rounds")
    felt, told = world.felt, world.felt.referee.violations
    felt.referee.round_begins()
    felt.draw("box 1")
    felt.pick_up()
    assert told == []
    bring = next(i for i, item in enumerate(felt.shoe.contents()) if item is felt.cutting_card)
    felt.shoe.swap_in(bring, felt.shoe.swap_in(1, felt.cutting_card))
    felt.referee.round_begins()
    felt.draw("box 1")
    felt.draw("box 1")
    felt.pick_up()
    felt.referee.round_begins()
    assert told.pop() == "shoe 1: round after the cutting card: a round began although the shoe had to end"
    felt.shoe.open_lid()
    felt.piles["A"] = felt.shoe.remove_by_hand()
    felt.load_shoe("A")
    felt.draw("box 2")
    assert [text.split(": ")[1] for text in told] == ["burn missed", "repeated batch"]


def test_the_referee_counts_a_card_in_two_places_and_a_card_in_none() -> None:
    world = world_of("astray")
    world.run(lambda: world.view.phase == "between_rounds")
    felt = world.felt
    felt.rack.put([next(iter(felt.shuffler.contents()))])
    felt.referee.check()
    assert "is in shuffler and in rack" in felt.referee.violations[-1]
    felt.rack.take()
    felt.referee.shoe_loaded(felt.shoe.contents())
    felt.referee.check()
    assert "1 cards are nowhere" in felt.referee.violations[-1]


def test_the_referee_compares_every_count_with_the_felt() -> None:
    world = world_of("counts")
    world.run(lambda: len(world.felt.rack) > 1)
    believed = {b.id: {p.value: n for p, n in b.cards.items()} for b in world.service.state.batches.values()}
    world.felt.referee.check(believed)
    assert world.felt.referee.violations == []
    believed["A"]["rack"] -= 1
    world.felt.referee.check(believed)
    assert "custody" in world.felt.referee.violations[0]
