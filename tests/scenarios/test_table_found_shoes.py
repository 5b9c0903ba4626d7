"""What a hostile review found about shoes, rounds and the reader, each as the story it was."""

import pytest

from controller.table.inputs import Role
from controller.table.phases import Phase
from controller.table.rules import expected
from controller.table.state import Place
from devices import events as ev
from tests.support.table import Table

SUPERVISOR = frozenset({Role.SUPERVISOR})
SHOE = {"serial": "SH1", "firmware": "1"}


def in_shoe() -> Table:
    """Batch A is in the shoe, B stored."""
    t = Table()
    t.open_to_shoe()
    t.complete()
    return t


def back_again(t: Table, boot: int = 1, **status: object) -> None:
    t.event(ev.LinkUp, boot=boot, identity=SHOE, status=status)


# --- the shoe's word that it is empty is lost ---


def lost_at_the_end() -> Table:
    """The last three cards of the stub and the word that the shoe is empty came out unseen."""
    t = in_shoe()
    t.tap("shuffle_now")
    while len(t.stack) > 3:
        t.draw()
    t.event(ev.GapPossible, missing=4)
    return t


def test_a_lost_word_that_the_shoe_is_empty_is_said_by_people_and_the_gauge_decides():
    t = lost_at_the_end()
    refusal = t.refused("collect_rack", gauge="full")
    assert (refusal.code, refusal.expected) == (
        "shoe_not_empty",
        ("collect_rack gauge=full shoe_empty=true",),
    )
    t.tap("collect_rack", gauge="full", shoe_empty=True)
    assert t.state.phase is Phase.RACK_FULL
    assert t.state.batches["A"].cards == {Place.RACK: 52}
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    t.swap_to("B")
    assert t.codes == []


def test_a_shoe_that_says_empty_when_its_link_is_back_is_empty():
    t = lost_at_the_end()
    t.event(ev.LinkDown, reason="unplugged")
    back_again(t, drawn=52, empty=True)
    assert t.state.shoe.empty
    t.tap("collect_rack", gauge="full")
    assert t.state.phase is Phase.RACK_FULL


@pytest.mark.parametrize("drawn", [30, None])
def test_an_empty_status_that_does_not_fit_the_count_ends_nothing(drawn: int | None):
    t = in_shoe()
    t.tap("shuffle_now")
    t.draw()
    t.event(ev.LinkDown, reason="unplugged")
    back_again(t, drawn=drawn, empty=True)
    assert not t.state.shoe.empty
    assert t.refused("collect_rack", gauge="full", shoe_empty=True).code == "bad_argument"


# --- a shoe that dies ---


def test_a_round_over_a_dead_shoe_is_void_and_the_rack_gauged():
    t = in_shoe()
    t.deal("1")
    t.event(ev.LinkDown, reason="gone")
    refusal = t.refused("round_settled")
    assert (refusal.code, refusal.expected) == ("device_absent", ("void_round reason=other",))
    assert "void_round reason=misdeal|reader|shoe_dry|wrong_card|other" in expected(t.rules, t.state)
    t.tap("void_round", SUPERVISOR, reason="other")
    assert t.codes == ["events_lost"]
    t.tap("shuffle_now", SUPERVISOR)
    assert "collect_rack gauge=full|short|over shoe_empty=true" in expected(t.rules, t.state)
    t.tap("collect_rack", gauge="full", shoe_empty=True)
    assert t.state.phase is Phase.RACK_FULL
    assert t.state.batches["A"].cards == {Place.RACK: 52}


def test_a_shoe_that_dies_at_its_end_is_taken_as_empty_only_with_a_latched_fault():
    t = in_shoe()
    t.tap("shuffle_now")
    t.event(ev.LinkDown, reason="gone")
    t.tap("collect_rack", gauge="full", shoe_empty=True)
    assert t.state.phase is Phase.RACK_FULL
    assert [(f.code, f.cause) for f in t.state.faults if f.code == "events_lost"] == [
        ("events_lost", "51 cards came out of a shoe that does not answer")
    ]


def test_a_dead_shoe_and_a_short_rack_take_the_batch_out_of_play():
    t = in_shoe()
    t.tap("shuffle_now")
    t.event(ev.LinkDown, reason="gone")
    t.tap("collect_rack", gauge="short", shoe_empty=True)
    assert t.codes == ["cards_missing", "rack_gauge"]
    assert t.state.batches["A"].unfit == "cards_missing"


@pytest.mark.parametrize("cut", [False, True])
def test_a_shoe_that_dies_while_its_rack_is_shuffled_by_hand_leaves_the_round_void(cut: bool):
    t = in_shoe()
    t.play_round("1")
    t.deal("1")
    t.event(ev.ShoeEmpty)
    t.tap("reshuffle_by_hand", SUPERVISOR)
    if cut:
        t.tap("cut", position=3)
    t.event(ev.LinkDown, reason="gone")
    t.tap("void_round", SUPERVISOR, reason="shoe_dry")
    assert t.state.phase is Phase.SHOE_END
    assert t.state.batches["A"].proof is None
    assert t.state.batches["A"].cards == {Place.RACK: 11, Place.SHOE: 41}
    t.tap("collect_rack", gauge="full")
    assert t.state.phase is Phase.RACK_FULL
