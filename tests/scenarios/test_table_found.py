"""Faults of the core that explorations and random walks found, each as the story it was."""

import pytest

from controller.table.inputs import Role
from controller.table.phases import Phase
from controller.table.state import Place
from devices import events as ev
from firmware_bridge.link import Done
from tests.support.table import Table


def test_a_copy_of_the_unseen_burn_card_is_not_told_before_the_shoe_is_collected():
    """One more copy than the batch holds may only be concluded from cards that everyone has seen (law 7)."""
    t = Table()
    t.open_to_shoe()
    burned = next(iter(t.state.shoe.drawn))
    t.tap("bets_closed", boxes="1")
    t.stack[-1] = burned
    t.draw()
    assert t.codes == []
    for _ in range(3):
        t.draw()
    t.tap("round_settled")
    assert t.codes == []
    t.complete()
    t.tap("shuffle_now")
    t.end_shoe()
    assert t.codes == ["too_many_copies"]
    assert t.state.batches["A"].unfit == "too_many_copies"


def test_a_copy_of_the_hole_card_is_told_when_the_hole_card_is_seen():
    t = Table()
    t.open_to_shoe()
    t.deal("1")
    assert t.state.round is not None
    hole = t.state.round.cards[-1].card
    t.stack[-1] = hole
    t.draw()
    assert t.codes == []
    t.tap("round_settled")
    assert t.codes == ["too_many_copies"]


def test_a_shuffled_batch_that_slides_out_before_its_turn_must_be_shuffled_again():
    """With both batches shuffled and in hand no tap led on, and the cut went to the wrong one (2.2(d)3)."""
    t = Table()
    t.open_to_shoe()
    t.complete()
    t.tap("shuffle_now")
    t.end_shoe()
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.complete()
    t.event(ev.BatchReleased, "shuffler", count=52, inside=0, token=t.token)
    assert t.codes == ["taken_without_proof"]
    assert t.state.batches["A"].proof is None
    assert t.state.taken == "B"
    t.tap("load_shuffler", batch="A")
    t.start()
    t.cut_and_load("B")
    t.draw()
    assert t.state.phase is Phase.BETWEEN_ROUNDS


def test_a_shuffled_batch_that_slides_out_in_play_is_loaded_again_for_the_next_swap():
    t = Table()
    t.open_to_shoe()
    t.complete()
    t.event(ev.BatchReleased, "shuffler", count=52, inside=0, token=t.token)
    t.tap("shuffle_now")
    t.end_shoe()
    assert t.refused("take_from_shuffler").code == "not_shuffled"
    t.tap("load_shuffler", batch="B")
    t.tap("start_shuffle")
    assert t.effects[0].name == "settings"
    t.end(Done({"settings": {}, "crc_ok": True}))
    assert t.state.phase is Phase.RACK_FULL


SUPERVISOR = frozenset({Role.SUPERVISOR})


def short_shoe():
    """The shoe is empty and eleven cards of batch A never came out of it."""
    t = Table()
    t.open_to_shoe()
    t.complete()
    t.tap("shuffle_now")
    for _ in range(40):
        t.draw()
    t.event(ev.ShoeEmpty)
    t.tap("collect_rack", gauge="full")
    assert t.codes == ["cards_missing"]
    assert t.state.batches["A"].at(Place.SHOE) == 11
    return t


def test_a_batch_whose_cards_never_came_out_of_the_shoe_can_be_replaced():
    """It stayed "in use" for ever, so that nothing but a new journal opened the table again (R-55)."""
    t = short_shoe()
    t.tap("replace_batch", SUPERVISOR, batch="A")
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    t.prepare("A")
    t.swap_to("B")
    assert t.state.phase is Phase.BETWEEN_ROUNDS


def test_a_table_closes_short_of_cards_that_never_came_out_of_the_shoe():
    """Nobody could count what was called "in a device", so the table could not be closed (S10)."""
    t = short_shoe()
    t.tap("close")
    t.tap("take_from_shuffler")
    t.end(Done({"count": 52, "inside": 0}))
    t.event(ev.BatchReleased, "shuffler", count=52, inside=0, token=t.token)
    t.tap("count_batch", batch="A", cards=41)
    t.tap("count_batch", batch="B", cards=52)
    for device in ("shoe", "shuffler"):
        t.tap("confirm_empty", device=device)
    t.tap("close", SUPERVISOR)
    assert t.state.phase is Phase.CLOSED
    assert t.codes == ["cards_missing", "wrong_count"]


def test_no_batch_goes_into_a_shoe_that_may_hold_cards_of_the_other():
    """Without a shuffler the other batch went in on top of them (R-08)."""
    t = Table()
    t.boot()
    t.links_up()
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    t.tap("confirm_empty", SUPERVISOR, device="shuffler")
    t.tap("open", SUPERVISOR, mode="manual-shoe")
    for batch in "AB":
        t.prepare(batch)
    t.tap("reshuffle_by_hand", SUPERVISOR, batch="A")
    t.cut_and_load("A", offer="1")
    t.draw()
    t.tap("shuffle_now")
    for _ in range(40):
        t.draw()
    t.event(ev.ShoeEmpty)
    t.tap("collect_rack", gauge="full")
    t.tap("reshuffle_by_hand", SUPERVISOR, batch="B")
    t.tap("offer_cut", box="1")
    t.tap("cut", position=26)
    t.tap("insert_cutting_card", position=13)
    refusal = t.refused("load_shoe", batch="B")
    assert refusal.code == "shoe_not_empty"
    assert refusal.expected == ("replace_batch batch=A",)
    t.tap("replace_batch", SUPERVISOR, batch="A")
    t.tap("load_shoe", batch="B")
    assert t.state.shoe.batch == "B"


@pytest.mark.rule("R-68")
def test_what_a_supervisor_has_to_decide_is_cleared_by_no_technician():
    t = Table()
    t.open_to_shoe()
    t.draw()
    (fault,) = [f for f in t.state.faults if f.code == "card_out_of_turn"]
    refusal = t.refused("clear", frozenset({Role.TECHNICIAN}), fault=fault.id)
    assert (refusal.code, refusal.why) == (
        "not_allowed",
        "card_out_of_turn is cleared by a supervisor, never by a dealer",
    )
    t.tap("clear", frozenset({Role.SUPERVISOR}), fault=fault.id)
    assert t.codes == []


def test_a_lid_that_is_opened_in_play_is_an_alarm_and_no_such_when_cards_are_loaded():
    t = Table()
    t.open_to_shoe()
    t.event(ev.Lid, open=True)
    assert [(f.code, f.batch, f.gone) for f in t.state.faults] == [("shoe_opened", "A", None)]
    t.event(ev.Lid, open=False)
    assert [(f.code, f.gone) for f in t.state.faults] == [("shoe_opened", t.state.seq)]
    t.tap("acknowledge", alarm=t.state.faults[0].id)
    assert t.state.faults == ()
    t.tap("shuffle_now")
    t.event(ev.Lid, open=True)
    assert t.state.faults == ()
