"""No stack before no more bets, in both orders: a real daemon, a simulated shoe of stacks on a pty (R-53)."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from simulators.hosts.tcp_host import TcpHost
from simulators.models.cards import Stack, make_batch
from simulators.models.machine import CannotDo
from simulators.models.stack_shoe import StackShoe
from simulators.rig.demo import on_ptys, set_up
from simulators.wire.managed_stack_shoe import ManagedStackShoe
from tests.scenarios.test_send import Send, send
from tests.support.desk import served
from tests.support.floor import Floor

TABLE = Path(__file__).parents[2] / "deploy" / "tables" / "three-card-poker.toml"
BLOCKED = ("unexpected", "13:69F-20.9")
assert send, "a fixture"


@pytest.mark.rule("R-53", "R-54")
def test_no_stack_comes_before_no_more_bets_and_none_twice() -> None:
    with set_up(TABLE.read_text()) as place, on_ptys(place, "stacks", 1) as live:
        table, shoe = Floor(place, live), live.felt.shoe
        assert isinstance(shoe, StackShoe)
        table.inspect_and_open()
        for batch in "AB":
            table.prepare(batch)
        table.load_shuffler("A")
        table.start_shuffle()
        table.swap(taken="A", loaded="B")
        assert table.refused("offer_cut", box=1) == ("dealer_cuts", "13:69F-14.5(a)-(b)")
        table.tap("cut", position=26)
        table.felt.cut("A", 26)
        assert table.refused("dispense") == BLOCKED
        table.tap("load_shoe", batch="A")
        table.into_the_shoe("A")
        assert table.refused("dispense") == BLOCKED
        with pytest.raises(CannotDo):
            shoe.draw()

        table.tap("bets_closed", boxes="1")
        for place_, count in (("box 1", 3), ("dealer", 3)):
            table.tap("dispense")
            assert table.ask("dispense")["refused"] == "shoe_busy"
            if place_ == "dealer":
                table.kill_and_start_again()
            table.pass_time(5.0)
            assert table.felt.take_stack(place_) == count
        assert table.refused("bets_closed", boxes="2")[0] == "unexpected"
        table.settle_round()
        assert table.refused("bets_closed", boxes="2")[0] == "unexpected"

        table.tap("dispense")
        table.pass_time(30.0)
        assert table.felt.take_stack("stub") == 46
        table.tap("collect_rack", gauge="full", stub=46)
        assert (table.codes, table.status["phase"]) == ([], "rack_full")


def test_a_stack_by_hand_from_the_command_line(send: Send) -> None:
    shoe = StackShoe(Random(1))
    shoe.open_lid()
    shoe.load(Stack(make_batch("red", 1)))
    shoe.close_lid()
    with served(TcpHost(ManagedStackShoe(shoe))) as host:
        done = send(host.uri, "managed-stack-shoe", "dispense", "3", "0", "--json")
        again = send(host.uri, "managed-stack-shoe", "dispense", "3", "0")
        wrong = send(host.uri, "managed-stack-shoe", "dispense", "three", "0")
    assert (done.code, done.json["answer"]) == (0, {"count": 3})
    assert (again.code, wrong.code) == (4, 2)
