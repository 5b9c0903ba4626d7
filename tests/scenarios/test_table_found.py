"""Faults of the core that the exhaustive exploration found, each as the story it was."""

from controller.table.phases import Phase
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
    assert t.refused("take_from_shuffler").code == "fault_latched"
    t.tap("load_shuffler", batch="B")
    t.tap("start_shuffle")
    assert t.effects[0].name == "settings"
    t.end(Done({"settings": {}, "crc_ok": True}))
    assert t.state.phase is Phase.RACK_FULL
