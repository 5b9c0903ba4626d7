"""Every incident of rules.md, section J, on the real daemon with simulated machines on ptys.

In each the table stops where the incident's table went on, before the first wrong hand; where play was right
to go on, it goes on.
"""

from __future__ import annotations

import pytest

from controller.table.patterns import NEW_DECK
from controller.table.phases import TAPS
from simulators import faults
from simulators.rig.referee import BURN
from tests.support.floor import MONEY, Floor, floor


def into_the_shoe_all_the_same(table: Floor, batch: str) -> None:
    """What the incidents' dealers did: the cards go into the shoe without a word, and one is dealt."""
    table.into_the_shoe(batch)
    table.draw("box 1")
    (fault,) = (fault for fault in table.faults if fault["code"] == "stray_card")
    assert fault["blocks"] == "now"


def certificate(table: Floor) -> dict[str, object]:
    """What a vendor's certificate of a pre-shuffled batch says, all of it as it should be."""
    rules = table.felt.rules
    return {
        "maker": "Maker", "model": "M1", "serial": "77", "operator": "0815", "at": "2026-11-29T10:00:00",
        "decks": rules.decks, "cards": rules.batch_size, "result": "ok", "seal": "S-1", "seal_intact": True,
    }  # fmt: skip


@pytest.mark.rule("R-14", "R-36b", "R-22")
def test_inc_1_discards_in_the_shuffler_cycle_never_started_taken_out_and_not_dealt() -> None:
    with floor("INC-1") as table:
        table.open()
        table.end_shoe()
        table.swap(taken="B", loaded="A", start=False)
        assert table.refused("take_from_shuffler") == ("not_shuffled", "13:69F-2.2(d)3")
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
        table.inspect_and_open()
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
        assert table.faults[: len(latched)] == latched, "the shoe may tell of more: it is not empty"
        table.draw("box 1")
        assert table.refused("bets_closed", boxes="1")[0] in ("fault_latched", "unexpected")
        assert table.refused("take_from_shuffler")[0] == "fault_latched"
        assert table.status["rounds"] == 0
        assert not MONEY.findall(table.said)


@pytest.mark.rule("R-48", "R-75")
def test_inc_4_a_pre_shuffled_batch_in_factory_order_is_found_by_the_cards_read() -> None:
    with floor("INC-4") as table:
        table.inspect_and_open()
        table.tap("certificate", batch="A", **certificate(table))
        table.prepare("B")
        table.load_shuffler("B")
        table.start_shuffle()
        table.cut_and_load("A")
        table.draw(BURN)
        table.deal("1,2,3")
        (fault,) = table.faults
        assert (fault["code"], fault["batch"]) == ("order_pattern", "A")
        read = [f for f in table.facts("card_drawn") if f["card"] and f["fact"] < fault["since"]]
        assert len(read) == NEW_DECK, "as soon as the cards read prove it"
        table.settle_round()
        assert table.refused("bets_closed", boxes="1")[0] == "fault_latched"
        assert table.refused("clear", fault=fault["id"])[0] == "cause_remains"
        table.kill_and_start_again()
        assert table.refused("bets_closed", boxes="1")[0] == "fault_latched"


@pytest.mark.rule("R-36b", "R-55")
def test_inc_6_no_table_closes_or_opens_over_sixteen_cards_in_a_shuffler_out_of_service() -> None:
    with floor("INC-6") as table:
        table.open()
        table.proved()
        table.tap("out_of_service", device="shuffler")
        table.lift_out("B", count=36)
        assert table.status["batches"]["B"]["cards"] == {"in_hand": 36, "shuffler": 16}
        table.end_shoe()
        assert table.refused("take_from_shuffler")[0] in ("out_of_service", "fault_latched", "not_shuffled")
        table.tap("close")
        assert table.refused("confirm_empty", device="shuffler")[0] == "shuffler_not_empty"
        assert table.refused("count_batch", batch="B", cards=36)[0] == "batch_not_in_hand"
        assert table.refused("close")[0] == "shuffler_not_empty"
        table.kill_and_start_again()
        assert table.refused("close")[0] == "shuffler_not_empty"
        # the sixteen are found: the batches are whole, every device is empty, and the table closes
        short = table.felt.piles.pop("B")
        table.lift_out("B")
        table.felt.piles["B"].add(short.give())
        for batch in "AB":
            table.tap("count_batch", batch=batch, cards=52)
        for device in ("shoe", "shuffler"):
            table.tap("confirm_empty", device=device)
        table.settle(lambda: not table.live.view.pending)
        table.tap("close")
        assert table.status["phase"] == "closed"
        table.tap("open", mode="manual-shoe")
        assert table.status["batches"]["B"]["cards"] == {"in_hand": 52}
        table.felt.referee.check()
        assert table.felt.referee.violations == []


@pytest.mark.rule("R-76")
def test_inc_7_a_shuffler_in_sort_mode_shuffles_no_batch_for_the_shoe() -> None:
    with floor("INC-7") as table:
        table.inspect_and_open()
        table.prepare("A")
        table.prepare("B")
        table.load_shuffler("A")
        faults.apply(table.felt.shuffler_wire, "sort_mode")
        table.tap("start_shuffle")
        table.settle(lambda: table.live.view.cycle == "none")
        assert table.codes == ["settings_mismatch"]
        assert table.felt.shuffler.cycle == 0, "it never ran"
        assert table.refused("take_from_shuffler")[0] == "fault_latched"
        # set right, and set wrong again behind the controller's back while the cycle runs
        table.felt.shuffler.settings["mode"] = "shuffle"
        table.start_shuffle()
        table.tap("clear", fault=table.faults[0]["id"])
        table.felt.shuffler.settings["mode"] = "sort"
        table.pass_time(60)
        assert table.codes == ["wrong_mode"]
        assert table.refused("take_from_shuffler")[0] == "fault_latched"
        assert table.refused("load_shoe", batch="A")[0] == "unexpected"
        assert table.felt.referee.shoes == []


@pytest.mark.rule("R-13", "R-23")
def test_inc_10_no_shuffle_before_a_player_has_looked_and_no_round_before_the_burn() -> None:
    with floor("INC-10") as table:
        table.inspect_and_open()
        for event in ("inspect", "verify", "spread"):
            table.tap(event, batch="A")
        assert table.refused("wash", batch="A")[0] == "not_in_turn"
        code, clause = table.refused("load_shuffler", batch="A")
        assert (code, str(clause).startswith("13:69F-2.4")) == ("not_prepared", True)
        for event in ("player_inspected", "wash"):
            table.tap(event, batch="A")
        table.felt.wash("A")
        table.prepare("B")
        table.load_shuffler("A")
        table.start_shuffle()
        table.swap(taken="A", loaded="B")
        table.cut_and_load("A")
        # the burn is missed: no bets are taken, and a hand dealt all the same is stopped at its second card
        assert table.refused("bets_closed", boxes="1")[0] == "unexpected"
        assert table.status["expected"][0] == "burn"
        table.draw("box 1")
        assert table.status["batches"]["A"]["cards"] == {"rack": 1, "shoe": 51}, "the first card is the burn"
        table.draw("dealer")
        assert table.codes == ["card_out_of_turn"]
        assert table.refused("bets_closed", boxes="1")[0] == "fault_latched"
        assert table.status["rounds"] == 0


@pytest.mark.rule("R-23")
def test_inc_10_a_new_dealer_burns_a_card_before_the_next_round() -> None:
    with floor("INC-10 change") as table:
        table.open()
        table.tap("dealer_change")
        assert table.refused("bets_closed", boxes="1")[0] == "unexpected"
        table.draw(BURN)
        table.tap("bets_closed", boxes="1")
        assert table.codes == []


@pytest.mark.rule("R-34")
def test_inc_11_the_dealers_card_is_skipped_play_goes_on_nothing_is_shifted_and_it_is_added() -> None:
    with floor("INC-11", decks=2) as table:
        table.open()
        table.tap("bets_closed", boxes="1,4")
        places = ["box 1", "box 4", "box 1", "box 4"]
        drawn = [table.draw(place) for place in places]
        table.tap("dealer_skipped", card="first")
        dealt = table.status["round"]["cards"]
        assert [card["to"] for card in dealt] == places
        assert [card["card"] for card in dealt] == [card.face for card in drawn], "nothing was shifted"
        added = table.draw("dealer")
        assert table.status["phase"] == "hole_card"
        assert table.status["round"]["cards"][4] == {"to": "dealer", "card": added.face}
        table.draw("dealer")
        assert table.status["round"]["cards"][5] == {"to": "hole", "card": None}
        table.settle_round()
        table.deal("1,4")
        table.settle_round()
        assert table.codes == []
        assert table.status["rounds"] == 2
        table.felt.referee.check()
        assert table.felt.referee.violations == []
