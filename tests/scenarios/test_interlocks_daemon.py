"""Wagers that hold the machines back, in both orders: a real daemon, a simulated shoe and reader (R-37)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from simulators.models.cards import Card
from simulators.models.machine import CannotDo
from tests.support.floor import Floor, floor

READER = """
[devices.reader]
driver = "hole-card-reader"
port = "serial:/dev/full"
"""
SETTLED_FIRST = ("reader_not_due", "13:69F-2.23(e)")
INITIAL_DEAL = ("reader_not_due", "13:69F-2.7(a)")


@contextmanager
def offered(seed: str) -> Iterator[Floor]:
    """A table of six decks that offers match-the-dealer, with a reader, the burn card drawn."""
    with floor(seed, decks=6, more=READER, wagers="match-the-dealer") as table:
        table.open()
        yield table


def next_cards(table: Floor, *faces: str) -> None:
    """Put these cards next to the exit of the shoe, each in exchange for one that lies there."""
    shoe = table.felt.shoe
    for index, face in enumerate(faces):
        inside = list(shoe.contents())
        where = next(
            n for n, item in enumerate(inside) if n >= index and isinstance(item, Card) and item.face == face
        )
        shoe.swap_in(where, shoe.swap_in(index, inside[where]))


def deal_to_side_wagers(table: Floor, *faces: str) -> None:
    """Box 1 alone, up to the player's second card; the table has then locked the shoe."""
    next_cards(table, *faces)
    table.tap("bets_closed", boxes="1", match="1")
    for place in ("box 1", "dealer", "box 1"):
        table.draw(place)
    table.settle(lambda: table.felt.shoe.locked)


@pytest.mark.rule("R-25", "R-36a", "R-37")
def test_neither_card_nor_reader_before_the_side_wagers_are_settled_and_both_after() -> None:
    with offered("interlocks") as table:
        assert table.refused("side_wagers_settled")[0] == "unexpected"
        assert table.refused("cash_wager", box=1, amount=5)[0] == "unexpected"
        deal_to_side_wagers(table, "8S", "AH", "8D", "KC")
        assert table.refused("cash_wager", box=1, amount=5)[0] == "unexpected"
        assert table.status["side_wagers"] == {"match": [{"box": 1, "outcome": "lost"}]}
        for place in ("dealer", "box 1"):
            with pytest.raises(CannotDo, match="locked"):
                table.draw(place)
        assert table.refused("peek") == SETTLED_FIRST
        assert table.refused("round_settled")[0] == "unexpected"
        table.kill_and_start_again()
        assert table.felt.shoe.locked
        assert table.status["shoe"]["locked"] is True
        assert table.refused("peek") == SETTLED_FIRST

        table.tap("side_wagers_settled")
        assert table.facts("side_wagers_settled")[0]["match"] == [{"box": 1, "outcome": "lost"}]
        table.settle(lambda: not table.felt.shoe.locked)
        assert table.refused("side_wagers_settled")[0] == "unexpected"
        assert table.refused("peek") == INITIAL_DEAL
        table.draw("dealer")
        assert table.felt.look(), "an ace and a king"
        table.settle()
        assert (table.codes, table.status["alarms"]) == ([], [])
        assert table.refused("peek") == INITIAL_DEAL, "once a round"
        table.settle_round()

        # the other order: the card is put into the reader while the wagers lie there
        deal_to_side_wagers(table, "8S", "AH", "9D", "KC")
        table.felt.reader.slide_in(Card(1, "A", "H", "red"), Card(2, "K", "C", "red"))
        table.settle()
        table.felt.reader.take_out()
        (fault,) = table.faults
        assert (fault["code"], fault["blocks"]) == ("reader_misuse", "round")
        assert fault["cause"].startswith("the side wagers are not settled (13:69F-2.23(e))")
        assert table.facts("hole_card_checked")[-1]["result"] is None
        table.tap("side_wagers_settled")
        table.settle(lambda: not table.felt.shoe.locked)
        table.draw("dealer")
        table.settle_round()
        assert table.refused("bets_closed", boxes="1")[0] == "fault_latched"
        table.tap("clear", fault=fault["id"])

        # a shoe that a key unlocks too early is locked again; the card that got out is told
        deal_to_side_wagers(table, "8S", "9H", "8D", "KC")
        table.felt.shoe.set_lock(locked=False, by="key")
        table.felt.draw("dealer")
        table.settle(lambda: table.felt.shoe.locked)
        assert table.codes == ["card_out_of_turn"]
        table.tap("side_wagers_settled")
        table.settle(lambda: not table.felt.shoe.locked)
        table.settle_round()


@pytest.mark.rule("R-37", "R-70")
def test_a_shoe_that_was_unplugged_locked_is_unlocked_when_it_answers_again() -> None:
    with offered("unplugged") as table:
        deal_to_side_wagers(table, "8S", "9H", "8D", "KC")
        table.live.unplug("shoe")
        table.live.stand_by(lambda: "shoe" not in table.live.view.up)
        assert table.ask("side_wagers_settled")["ok"]
        assert table.felt.shoe.locked
        table.live.replug("shoe")
        table.settle(lambda: not table.felt.shoe.locked)
        table.draw("dealer")
        table.settle_round()
        assert table.codes == []
