"""A blackjack table with a hole-card reader: whole shoes, each misuse, a failure (R-25, R-36a, R-37)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from controller.table.profiles import BatchRules, TableRules
from simulators import faults
from simulators.models.cards import Card
from simulators.rig.stepped import Stepped
from tests.support.demo import journal_facts
from tests.support.floor import Floor, floor

BATCHES = (BatchRules("A", "red"), BatchRules("B", "blue"))
READER = '[devices.reader]\ndriver = "hole-card-reader"\nport = "serial:/dev/full"\n'


def world(seed: object, shoes: int, **changes: Any) -> Stepped:
    return Stepped(TableRules("BJ-07", 7, 6, BATCHES, reader="reader", **changes), seed, shoes)


def facts(played: Stepped, *kinds: str) -> list[Any]:
    return [e.fact for e in played.journal.entries() if e.fact.kind in kinds]


# --- whole shoes ---


@pytest.mark.rule("R-25", "R-37")
@pytest.mark.parametrize("settle_first", [False, True])
def test_in_whole_shoes_it_looks_once_in_each_round_with_an_ace_or_ten_up(settle_first: bool) -> None:
    played = world("looks", 1, settle_first=settle_first)
    played.run()
    assert played.felt.referee.violations == []
    assert played.view.faults_latched == 0
    looks, ups = [], []
    for fact in facts(played, "bets_closed", "card_drawn", "hole_card_checked", "round_settled"):
        match fact.kind:
            case "bets_closed":
                looks.append(0)
            case "card_drawn" if fact.data["to"] == "dealer":
                ups.append(fact.whole["card"][0])
            case "hole_card_checked":
                looks[-1] += 1
                assert fact.data["allowed"]
    assert looks == [int(up in "ATJQK") for up in ups]
    results = Counter(f.data["result"] for f in facts(played, "hole_card_checked"))
    assert results["natural"] > 0
    assert results["not_natural"] > results["natural"]
    truth = [h.data["result"].replace(" ", "_") for h in played.felt.reader.happenings]
    assert [f.data["result"] for f in facts(played, "hole_card_checked")] == truth
    played.close()


@pytest.mark.rule("R-36a", "R-69")
def test_after_a_restart_in_mid_round_it_is_known_that_the_reader_was_used() -> None:
    played = world("restart", 1)
    played.run(lambda: bool(played.service.state.round and played.service.state.round.peeks))
    played.crash()
    played.restart()
    played.settle(2.0)
    assert played.tap("peek")["refused"] == "reader_not_due"
    played.felt.look()
    played.settle(2.0)
    assert [f["code"] for f in played.controller.view("faults") if f["blocks"] != "nothing"] == [
        "reader_misuse"
    ]
    played.close()


# --- the daemon as its own process, three machines on ptys ---


def opened(table: Floor) -> None:
    table.tap("inspect", device="reader")
    table.open()


def bring(table: Floor, ranks: str, index: int) -> None:
    """A card of one of these ranks comes to lie so far from the front of the shoe."""
    shoe = table.felt.shoe
    cards = list(shoe.contents())
    at = next(
        i for i, item in enumerate(cards) if i >= index and isinstance(item, Card) and item.rank in ranks
    )
    shoe.swap_in(at, shoe.swap_in(index, cards[at]))


def deal(table: Floor, up: str, hole: str) -> None:
    """A round on box 1 with such cards for the dealer."""
    bring(table, up, 1)
    bring(table, hole, 3)
    table.deal("1")


def look(table: Floor) -> None:
    table.felt.look()
    table.settle()


def lay_in(table: Floor) -> None:
    """The hole card lies in a reader that waits to be asked."""
    table.felt.reader.up, table.felt.reader.hole = table.felt.layout.places["dealer"][:2]  # type: ignore[assignment]


@pytest.mark.rule("R-25")
def test_the_tap_asks_the_machine_and_the_answer_is_journaled() -> None:
    with floor("peek", more=READER) as table:
        opened(table)
        deal(table, "A", "TJQK")
        assert "peek" in table.status["expected"]
        lay_in(table)
        table.tap("peek")
        assert table.codes == []
        assert table.refused("peek") == ("reader_not_due", "13:69F-2.7(a)")
        (checked,) = (f for f in journal_facts(table.place).values() if f["kind"] == "hole_card_checked")
        assert (checked["result"], checked["allowed"], checked["source"]) == ("natural", True, "reader")
        table.settle_round()


@pytest.mark.rule("R-25", "R-69")
def test_a_dealer_who_forgets_the_reader_is_stopped_at_the_settlement_or_told_of_a_card_drawn_too_early() -> (
    None
):
    with floor("forgets", more=READER) as table:
        opened(table)
        deal(table, "A", "2345")
        assert table.refused("round_settled") == ("reader_first", "13:69F-2.7(a)")
        assert table.status["reader"]["procedure"].startswith("the hole card goes into it (`peek`)")
        look(table)
        table.draw("box 1")
        table.settle_round()
        assert table.codes == []
        deal(table, "TJQK", "2345")
        table.draw("box 1")
        table.kill_and_start_again()
        table.settle(lambda: table.live.view.starts == 2 and len(table.live.view.up) == 3)
        (fault,) = table.faults
        assert (fault["code"], fault["device"], fault["blocks"]) == ("reader_skipped", "reader", "round")
        table.settle_round()
        assert table.refused("bets_closed", boxes="1")[0] == "fault_latched"
        table.tap("clear", fault=fault["id"])
        deal(table, "9", "2345")
        table.settle_round()


@pytest.mark.parametrize("discloses", [True, False])
@pytest.mark.rule("R-36a")
def test_a_look_under_a_seven_is_told_and_what_a_player_may_have_seen_voids_the_round(
    discloses: bool,
) -> None:
    more = READER + "discloses = true\n" if discloses else READER
    with floor("seven", more=more) as table:
        opened(table)
        deal(table, "7", "TJQK")
        assert table.refused("peek") == ("reader_not_due", "13:69F-2.7(a)")
        look(table)
        (fault,) = table.faults
        assert (fault["code"], fault["device"], fault["blocks"]) == ("reader_misuse", "reader", "round")
        assert ("void_round" in fault["cause"]) is discloses
        table.kill_and_start_again()
        table.settle(lambda: table.live.view.starts == 2 and len(table.live.view.up) == 3)
        assert table.codes == ["reader_misuse"]
        if discloses:
            table.tap("void_round", reason="reader")
            table.felt.pick_up()
        else:
            table.settle_round()
        assert table.refused("bets_closed", boxes="1")[0] == "fault_latched"
        table.tap("clear", fault=fault["id"])
        deal(table, "9", "2345")
        assert table.codes == []


@pytest.mark.rule("R-36a")
def test_a_reader_that_fails_lets_the_round_end_and_play_goes_on_without_it() -> None:
    with floor("fails", more=READER) as table:
        faults.apply(table.felt.wires["reader"], "error@1")
        opened(table)
        deal(table, "TJQK", "2345")
        look(table)
        assert table.codes == ["reader_failed"]
        assert "no_reader" in table.status["expected"]
        table.settle_round()
        assert table.refused("bets_closed", boxes="1")[0] == "fault_latched"
        table.tap("no_reader")
        table.tap("clear", fault=table.faults[0]["id"])
        deal(table, "A", "2345")
        assert table.refused("peek")[0] == "reader_not_due"
        table.settle_round()
        table.tap("inspect", device="reader")
        deal(table, "TJQK", "2345")
        look(table)
        assert table.codes == []


@pytest.mark.rule("R-36a")
def test_a_reader_that_is_unplugged_is_replaced_by_a_procedure_not_by_a_guess() -> None:
    with floor("unplugged", more=READER) as table:
        opened(table)
        deal(table, "A", "2345")
        table.live.unplug("reader")
        table.live.stand_by(lambda: not table.status["devices"]["reader"]["up"])
        assert table.ask("peek")["refused"] == "device_absent"
        answer = table.ask("no_reader")
        assert answer["ok"], answer
        assert table.ask("peek")["refused"] == "reader_not_due"
        assert table.ask("round_settled")["ok"]
