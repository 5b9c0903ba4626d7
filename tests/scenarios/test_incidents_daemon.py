"""Every incident of rules.md, section J, on the real daemon with simulated machines on ptys.

In each the table stops where the incident's table went on, before the first wrong hand; where play was right
to go on, it goes on.
"""

from __future__ import annotations

import pytest

from controller.table.phases import TAPS
from simulators import faults
from tests.support.floor import MONEY, Floor, floor

def into_the_shoe_all_the_same(table: Floor, batch: str) -> None:
    """What the incidents' dealers did: the cards go into the shoe without a word, and one is dealt."""
    table.into_the_shoe(batch)
    table.draw("box 1")
    (fault,) = (fault for fault in table.faults if fault["code"] == "stray_card")
    assert fault["blocks"] == "now"


@pytest.mark.rule("R-14", "R-36b", "R-22")
def test_inc_1_discards_in_the_shuffler_cycle_never_started_taken_out_and_not_dealt() -> None:
    with floor("INC-1") as table:
        table.open()
        table.end_shoe()
        table.swap(taken="B", loaded="A", start=False)
        assert table.refused("take_from_shuffler")[0] == "unexpected"
        assert table.refused("load_shoe", batch="B") == ("unexpected", "13:69F-2.5(d)")
        table.lift_out("A")
        assert table.codes == ["taken_without_proof"]
        for batch in "AB":
            assert table.refused("load_shoe", batch=batch)[0] == "unexpected"
        assert table.refused("offer_cut", box=1)[0] == "unexpected"
        into_the_shoe_all_the_same(table, "A")
        assert table.status["rounds"] == 0
        assert "start_shuffle" not in table.status["expected"]
        assert table.refused("clear", fault=table.faults[0]["id"])[0] == "cause_remains"


@pytest.mark.rule("R-14", "R-22")
def test_inc_2_unshuffled_cards_stop_the_table_before_its_first_round_and_no_payment_is_proposed() -> None:
    with floor("INC-2") as table:
        table.tap("open")
        table.prepare("A")
        table.prepare("B")
        for event, args in (("cut", {"position": 26}), ("load_shoe", {"batch": "A"})):
            assert table.refused(event, **args)[0] == "unexpected"
        into_the_shoe_all_the_same(table, "A")
        assert table.codes == ["stray_card"]
        assert table.refused("bets_closed", boxes="1")[0] in ("fault_latched", "unexpected")
        assert table.refused("load_shuffler", batch="B")[0] == "fault_latched"
        assert table.status["rounds"] == 0
        assert not MONEY.findall(table.said)
        assert not MONEY.findall(" ".join(TAPS))


@pytest.mark.rule("R-14", "R-07", "R-68")
def test_inc_3_the_batch_just_played_is_not_dealt_again_unshuffled_and_a_restart_forgets_nothing() -> None:
    with floor("INC-3") as table:
        table.open()
        table.end_shoe()
        table.proved()
        assert table.refused("load_shoe", batch="A")[0] == "unexpected"
        assert table.refused("load_shuffler", batch="A")[0] == "shuffler_not_empty"
        into_the_shoe_all_the_same(table, "A")
        latched = table.faults
        table.kill_and_start_again()
        assert table.faults == latched
        table.draw("box 1")
        assert table.refused("bets_closed", boxes="1")[0] in ("fault_latched", "unexpected")
        assert table.refused("take_from_shuffler")[0] == "fault_latched"
        assert table.status["rounds"] == 0
        assert not MONEY.findall(table.said)


@pytest.mark.rule("R-76")
def test_inc_7_a_shuffler_in_sort_mode_shuffles_no_batch_for_the_shoe() -> None:
    with floor("INC-7") as table:
        table.tap("open")
        table.prepare("A")
        table.prepare("B")
        table.load_shuffler("A")
        faults.apply(table.felt.shuffler_wire, "sort_mode")
        table.tap("start_shuffle")
        table.settle(lambda: table.live.view.cycle == "none")
        assert table.codes == ["settings_mismatch"]
        assert table.felt.shuffler.cycle == 0, "it never ran"
        assert table.refused("take_from_shuffler")[0] == "unexpected"
        # set right, and set wrong again behind the controller's back while the cycle runs
        table.felt.shuffler.settings["mode"] = "shuffle"
        table.start_shuffle()
        table.tap("clear", fault=table.faults[0]["id"])
        table.felt.shuffler.settings["mode"] = "sort"
        table.pass_time(60)
        assert table.codes == ["wrong_mode"]
        assert table.refused("take_from_shuffler")[0] in ("not_shuffled", "unexpected")
        assert table.refused("load_shoe", batch="A")[0] == "unexpected"
        assert table.felt.referee.shoes == []
