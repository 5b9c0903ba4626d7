"""Faults of the core in its other modes that exploration and walks found, each as short as it can be told."""

from __future__ import annotations

import pytest

from controller.table.phases import Phase
from controller.table.rules import awaited
from controller.table.state import Place
from devices import events as ev
from firmware_bridge.link import Done
from tests.scenarios.test_table_deck_per_round import alone
from tests.support.continuous import ContinuousTable
from tests.support.hands import SUPERVISOR, Hand, night_shoe
from tests.support.table import BATCHES, Table, table_rules


@pytest.mark.rule("R-02", "R-56")
def test_a_cutting_card_where_none_is_in_use_is_latched_and_hinders_no_settlement() -> None:
    """It was asked where it had come out, and no tap could tell it."""
    poker = alone()
    poker.deal("1")
    poker.event(ev.CutCard)
    poker.finish(stub=46)
    assert (poker.codes, poker.phase) == (["extra_cutting_card"], "rack_full")
    t = Hand(night_shoe())
    t.open_by_hand()
    t.tap("bets_closed", boxes="1")
    for _ in range(6):
        t.draw()
    t.event(ev.CutCard)
    t.tap("round_settled")
    assert t.codes == ["extra_cutting_card"]
    assert "bets_closed" not in t.expected
    t.tap("shuffle_now", SUPERVISOR)


@pytest.mark.rule("R-56")
def test_the_cover_card_comes_out_below_the_stub() -> None:
    poker = alone()
    poker.deal("1")
    poker.tap("round_settled")
    while poker.stack:
        poker.draw()
    poker.event(ev.CutCard)
    poker.event(ev.ShoeEmpty)
    poker.tap("collect_rack", gauge="full")
    assert poker.codes == []


@pytest.mark.rule("R-08", "R-11")
def test_the_batch_of_the_rack_is_out_of_it_when_the_other_one_is_dealt_from_a_continuous_shuffler() -> None:
    """Cards of both lay in the rack after the first round."""
    table = ContinuousTable(batches=BATCHES)
    table.open_to_deal()
    table.tap("idle")
    while table.stack:
        table.draw()
    table.event(ev.ShoeEmpty)
    table.tap("collect_rack", gauge="full")
    table.tap("spread", batch="A")
    table.tap("resume")
    table.load("B")
    table.play_round()
    assert table.state.batches["A"].cards == {Place.IN_HAND: 52}
    assert table.state.batches["B"].at(Place.RACK)


@pytest.mark.rule("R-53")
def test_a_shoe_of_stacks_that_is_dealt_out_is_waited_for_until_it_says_that_it_is_empty() -> None:
    """Nothing was expected and nothing awaited."""
    poker = alone(stacks=True)
    poker.deal("1")
    poker.tap("round_settled")
    poker.tap("dispense")
    poker.end(Done({}))
    while poker.stack:
        poker.draw()
    assert awaited(poker.rules, poker.state) is not None
    poker.event(ev.ShoeEmpty)
    assert "collect_rack gauge=full|short|over" in poker.expected


# Cards that came out before the bets were closed


def early(table: Table, count: int) -> Table:
    """Cards are drawn between two rounds; a supervisor lets them be used as the next ones (R-32)."""
    for _ in range(count):
        table.draw()
    table.tap("clear", SUPERVISOR, fault=table.state.faults[-1].id)
    table.tap("bets_closed", boxes="1")
    return table


def shoe(**changes: object) -> Table:
    table = Table(table_rules(**changes))
    table.open_to_shoe()
    table.effects.clear()
    return table


def machine() -> ContinuousTable:
    table = ContinuousTable()
    table.open_to_deal()
    return table


@pytest.mark.rule("R-32", "R-37", "13:69F-2.23(e)")
def test_side_wagers_are_settled_before_a_further_card_though_the_deal_came_early() -> None:
    """The hole card was demanded with the wagers unsettled, and the shoe was not locked."""
    t = early(shoe(settle_first=True, shoe_locks=True), 3)
    assert t.state.phase is Phase.SIDE_WAGERS
    assert [command.name for command in t.effects] == ["lock"]
    t.tap("side_wagers_settled")
    assert t.state.phase is Phase.HOLE_CARD


@pytest.mark.rule("R-32")
def test_a_hole_card_that_came_early_too_is_not_dealt_again() -> None:
    t = early(shoe(settle_first=True), 4)
    t.tap("side_wagers_settled")
    t.tap("round_settled")
    assert t.state.phase is Phase.BETWEEN_ROUNDS


@pytest.mark.rule("R-32")
@pytest.mark.parametrize(
    ("count", "phase"), [(2, "dealing"), (3, "hole_card"), (4, "playing"), (5, "playing")]
)
@pytest.mark.parametrize("table", [shoe, machine], ids=lambda kind: kind.__name__)
def test_a_round_goes_on_from_the_cards_that_came_early(table, count: int, phase: str) -> None:
    t = early(table(), count)
    assert t.state.phase.value == phase
    assert [(card.to, card.seen) for card in t.state.round.cards] == [("stray", False)] * count
    while t.state.phase is not Phase.PLAYING:
        t.draw()
    t.tap("round_settled")
    assert t.state.phase is Phase.BETWEEN_ROUNDS


@pytest.mark.rule("R-32", "R-79")
@pytest.mark.parametrize(("count", "phase"), [(2, "dealing"), (3, "hole_card"), (4, "playing")])
def test_at_a_casino_night_it_goes_on_from_them_after_the_burn(count: int, phase: str) -> None:
    t = Hand(night_shoe())
    t.open_by_hand()
    early(t, count)
    assert t.state.phase is Phase.ROUND_BURN
    t.draw()
    assert t.state.phase.value == phase


@pytest.mark.rule("R-32", "R-53")
def test_a_deal_without_a_hole_card_waits_for_each_of_its_cards() -> None:
    poker = early(alone(), 5)
    assert poker.state.phase is Phase.DEALING
    poker.draw()
    assert poker.state.phase is Phase.PLAYING


# Its lid is open while cards are put into the shoe


def lid(table: Table) -> list[str]:
    """The lid is opened and closed; the alarms that were raised, gone or not."""
    table.event(ev.Lid, open=True)
    table.event(ev.Lid, open=False)
    return [fault.code for fault in table.state.faults]


@pytest.mark.parametrize("begins", ["lid closed", "card"])
def test_a_lid_that_is_open_while_a_batch_is_loaded_is_no_alarm_where_no_burn_follows(begins: str) -> None:
    """The cards go in after the tap, and the next phase is that of play at once."""
    t = Hand(night_shoe())
    t.open_by_hand()
    if begins == "lid closed":
        assert lid(t) == []
    else:
        t.tap("bets_closed", boxes="1")
        t.draw()
    assert lid(t) == ["shoe_opened"]


@pytest.mark.rule("R-79")
def test_nor_is_it_when_the_discards_go_back_in_the_middle_of_a_round() -> None:
    t = Hand(night_shoe())
    t.open_by_hand()
    t.tap("bets_closed", boxes="1")
    t.stack = t.stack[:4]
    for _ in range(4):
        t.draw()
    t.event(ev.ShoeEmpty)
    t.tap("reshuffle_by_hand", batch="A")
    t.tap("cut", position=1)
    t.tap("load_shoe", batch="A")
    assert t.state.phase is Phase.HOLE_CARD
    assert lid(t) == []
    assert lid(t) == ["shoe_opened"]


@pytest.mark.rule("R-10")
def test_nor_when_stacks_of_the_rack_go_back_between_two_rounds() -> None:
    t = shoe(decks=2)
    for _ in range(6):
        t.play_round()
    t.tap("bart_carter")
    assert lid(t) == []
    assert lid(t) == ["shoe_opened"]


# Cards that lie in the shoe though no batch was put into it


def strayed(t: Table) -> Table:
    """A card comes out of the shoe before any batch was loaded."""
    t.boot()
    t.links_up()
    t.open()
    t.event(ev.CardDrawn, card="8S", back="red")
    assert t.codes == ["stray_card"]
    return t


@pytest.mark.rule("R-22")
def test_the_cause_of_a_stray_card_is_gone_when_the_shoe_says_that_it_is_empty() -> None:
    """It was cleared with all other cards still in the shoe."""
    t = strayed(Table())
    fault = t.state.faults[0].id
    assert t.refused("clear", SUPERVISOR, fault=fault).code == "cause_remains"
    assert awaited(t.rules, t.state) == "the shoe to say that it is empty"
    t.event(ev.ShoeEmpty)
    t.tap("clear", SUPERVISOR, fault=fault)
    assert t.codes == []


@pytest.mark.rule("R-22")
def test_of_a_shoe_that_never_tells_people_see_that_no_card_is_left() -> None:
    t = strayed(Table(table_rules(shoe_senses=frozenset({ev.Sense.BACK}))))
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    assert t.codes == []


@pytest.mark.rule("R-22", "R-60")
def test_of_a_continuous_shuffler_nobody_asks_that_it_is_empty_of_the_batch_inside() -> None:
    t = ContinuousTable()
    t.boot()
    t.up()
    t.open()
    t.tap("load_shuffler", batch="A")
    t.event(ev.CardDrawn, card="8S", back="red")
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    assert t.codes == []
