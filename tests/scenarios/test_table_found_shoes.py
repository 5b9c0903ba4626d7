"""What a hostile review found about shoes, rounds and the reader, each as the story it was."""

import pytest

from controller.table.inputs import Role
from controller.table.phases import Phase
from controller.table.rules import awaited, expected
from controller.table.state import Place
from devices import events as ev
from firmware_bridge.link import Done
from tests.support.table import Table, table_rules

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


# --- irregularities in a round ---


def test_a_players_card_that_is_burned_before_the_side_wagers_is_dealt_before_they_are_settled():
    """The side wagers were settled with a player's second card missing (13:69F-2.23(e))."""
    t = Table(table_rules(settle_first=True))
    t.open_to_shoe()
    t.tap("bets_closed", boxes="1")
    for _ in range(3):
        t.draw()
    t.tap("drawn_in_error", exposed=True, burned=True)
    assert t.state.phase is Phase.DEALING
    assert t.refused("side_wagers_settled").code == "unexpected"
    card = t.draw()
    assert t.state.phase is Phase.SIDE_WAGERS
    assert t.state.round is not None
    assert (t.state.round.cards[-1].to, t.state.round.cards[-1].card) == ("box 1", card)


def test_of_two_cards_out_none_is_shown_for_nobody_knows_which_was_exposed():
    """The second one, which nobody saw, was shown instead of the first (law 7)."""
    t = Table(table_rules(settle_first=True))
    t.open_to_shoe()
    t.tap("bets_closed", boxes="1")
    for _ in range(5):
        t.draw()
    t.tap("drawn_in_error", exposed=True)
    assert t.state.round is not None
    assert [card.seen for card in t.state.round.cards[3:]] == [False, False]
    assert [fact.kind for fact in t.facts if fact.kind == "exposed"] == []


def test_a_round_is_not_settled_without_the_dealers_second_card_that_was_left_out():
    t = in_shoe()
    t.tap("bets_closed", boxes="1,2")
    for _ in range(5):
        t.draw()
    t.tap("dealer_skipped", card="second")
    refusal = t.refused("round_settled")
    assert (refusal.code, refusal.clause) == ("card_missing", "13:69F-2.15(e)")
    assert awaited(t.rules, t.state) == "the dealer's second card"
    refusal = t.refused("box_skipped", box="1", cards=1)
    assert (refusal.code, refusal.expected) == ("dealer_skipped_before", ("void_round reason=misdeal",))
    t.draw()
    t.tap("round_settled")
    assert t.state.phase is Phase.BETWEEN_ROUNDS


def test_a_round_that_lacks_the_dealers_second_card_may_be_void():
    t = in_shoe()
    t.deal("1")
    t.tap("drawn_in_error", exposed=True, burned=True)
    assert t.refused("round_settled").code == "card_missing"
    t.tap("void_round", SUPERVISOR, reason="misdeal")
    assert t.state.phase is Phase.BETWEEN_ROUNDS


# --- the reader ---


def with_reader(**changes: object) -> Table:
    t = Table(table_rules(reader="reader", **changes))
    t.counts["reader"] = 0
    t.open_to_shoe()
    t.event(ev.LinkUp, "reader", boot=1, identity={}, status={})
    t.tap("bets_closed", boxes="1")
    return t


def test_a_round_in_which_the_reader_may_have_shown_a_value_is_void():
    t = with_reader(reader_discloses=True)
    t.draw()
    t.event(ev.HoleCardChecked, "reader", result="natural")
    for _ in range(3):
        t.draw()
    refusal = t.refused("round_settled")
    assert (refusal.code, refusal.expected) == ("reader_misused", ("void_round reason=reader",))
    assert "void_round reason=reader" in expected(t.rules, t.state)
    t.tap("void_round", SUPERVISOR, reason="reader")
    assert t.state.phase is Phase.BETWEEN_ROUNDS


def test_no_round_ends_while_the_reader_looks():
    """Its answer came in the next round, as a misuse."""
    t = with_reader()
    for card in ("8S", "AS", "7S", "KH"):
        t.draw(card=card)
    t.tap("peek")
    assert t.refused("round_settled").code == "reader_busy"
    assert t.refused("void_round", SUPERVISOR, reason="other").code == "reader_busy"
    t.event(ev.HoleCardChecked, "reader", result="not_natural")
    t.end(Done({}))
    t.tap("round_settled")
    assert t.codes == []


# --- cards of another batch in the rack ---


def test_cards_of_another_batch_do_not_go_back_into_the_shoe():
    t = Table(table_rules(decks=2))
    t.open_to_shoe()
    t.complete()
    while t.state.batches["A"].at(Place.RACK) < 46:
        t.play_round("1", extra=0)
    t.deal("1")
    t.draw(back="blue")
    t.tap("round_settled")
    assert t.codes == ["wrong_back"]
    assert t.refused("bart_carter", SUPERVISOR).code == "batch_unfit"


def test_a_rack_shuffled_by_hand_tells_how_many_cards_of_another_batch_are_to_be_taken_out():
    t = in_shoe()
    t.deal("1")
    t.draw(back="blue")
    t.tap("drawn_in_error", exposed=True, burned=True)
    t.draw(back="blue")
    t.event(ev.ShoeEmpty)
    decision = t.tap("reshuffle_by_hand", SUPERVISOR)
    assert (decision.facts[0].data["cards"], decision.facts[0].data["take_out"]) == (1, 1)


# --- an empty shoe at the closing ---


def closing(t: Table) -> Table:
    """Batch B is out and both are counted; the devices remain."""
    t.tap("take_from_shuffler")
    t.end(Done({"count": 52, "inside": 0}))
    t.event(ev.BatchReleased, "shuffler", count=52, inside=0, token=t.token)
    for batch in "AB":
        t.tap("count_batch", batch=batch, cards=52)
    t.tap("confirm_empty", device="shuffler")
    return t


def test_a_card_out_of_a_shoe_that_was_confirmed_empty_has_it_confirmed_anew():
    t = in_shoe()
    t.tap("close")
    t.end_shoe()
    closing(t).tap("confirm_empty", device="shoe")
    assert t.state.empty == ("shuffler", "shoe")
    t.event(ev.CardDrawn, card="8S", back="red")
    assert t.codes == ["stray_card"]
    t.event(ev.ShoeEmpty)
    t.tap("clear", SUPERVISOR, fault=t.state.faults[-1].id)
    refusal = t.refused("close", SUPERVISOR)
    assert (refusal.code, refusal.expected) == ("not_confirmed_empty", ("confirm_empty device=shoe",))
    t.tap("confirm_empty", device="shoe")
    t.tap("close", SUPERVISOR)
    assert t.state.phase is Phase.CLOSED


def test_two_people_look_into_a_shoe_that_never_said_that_it_is_empty():
    """It counted as empty because no batch had been loaded since the start (La. 42:III-3106)."""
    t = Table()
    t.boot()
    back_again(t, drawn=0)
    t.tap("open")
    t.tap("close")
    t.tap("confirm_empty", device="shoe")
    assert t.state.empty == ()
    assert t.refused("confirm_empty", device="shoe").code == "second_person"
    t.tap("confirm_empty", who="bob", device="shoe")
    assert t.state.empty == ("shoe",)


@pytest.mark.parametrize(("said", "confirmed"), [(True, ("shoe",)), (False, ())])
def test_one_person_is_enough_when_the_shoe_itself_says_so_at_its_link(
    said: bool, confirmed: tuple[str, ...]
):
    t = Table()
    t.boot()
    t.links_up()
    t.tap("open")
    t.tap("close")
    back_again(t, drawn=0, empty=said)
    t.tap("confirm_empty", device="shoe")
    assert t.state.empty == confirmed


def test_a_shoe_that_still_holds_cards_after_its_rack_was_gauged_stops_the_table():
    t = Table()
    t.open_to_shoe()
    t.complete()
    t.tap("shuffle_now")
    t.event(ev.LinkDown, "shoe", reason="gone")
    t.tap("collect_rack", gauge="full", shoe_empty=True)
    who = {"serial": "SH1", "firmware": "1"}
    t.event(ev.LinkUp, "shoe", boot=1, identity=who, status={"drawn": 1, "empty": False})
    assert t.codes == ["events_lost", "cards_in_shoe"]
    fault = t.state.faults[-1].id
    assert t.refused("take_from_shuffler").code == "fault_latched"
    assert t.refused("clear", frozenset({Role.SUPERVISOR}), fault=fault).code == "cause_remains"
    t.event(ev.ShoeEmpty)
    t.tap("clear", frozenset({Role.SUPERVISOR}), fault=fault)
    assert t.codes == ["events_lost"]


def test_a_shoe_that_restarted_and_counts_as_this_table_does_is_believed_when_cards_are_left():
    t = Table()
    t.open_to_shoe()
    t.tap("shuffle_now")
    who = {"serial": "SH1", "firmware": "1"}
    t.event(ev.LinkUp, "shoe", boot=2, identity=who, status={"drawn": 1, "empty": False})
    assert (t.codes, t.state.shoe.unaccounted) == (["shoe_rebooted"], 0)
    assert t.refused("collect_rack", gauge="full", shoe_empty=True).code == "bad_argument"
    assert t.state.batches["A"].at(Place.SHOE) == 51


def test_what_one_shoe_lost_does_not_spoil_the_next():
    t = Table()
    t.open_to_shoe()
    t.complete()
    t.tap("shuffle_now")
    t.event(ev.LinkDown, "shoe", reason="gone")
    t.tap("collect_rack", gauge="full", shoe_empty=True)
    who = {"serial": "SH1", "firmware": "1"}
    t.event(ev.LinkUp, "shoe", boot=1, identity=who, status={"drawn": 0, "empty": True})
    t.swap_to("B")
    assert (t.codes, t.state.uncertain) == (["events_lost"], False)
    (fault,) = [f.id for f in t.state.faults if f.code == "events_lost"]
    t.tap("clear", frozenset({Role.SUPERVISOR}), fault=fault)
    t.play_round()
    assert t.codes == []
