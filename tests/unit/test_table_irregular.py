"""Cards found face up, drawn in error, left out; void rounds and the Bart Carter shuffle, one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.table import hands
from controller.table.draft import Decision
from controller.table.inputs import OperatorEvent
from controller.table.phases import Phase
from controller.table.rules import decide, expected
from controller.table.state import Place
from controller.table.view import snapshot
from devices import events as ev
from tests.support.custody import SUPERVISOR, Felt
from tests.support.table import table_rules


def table(**changes) -> Felt:
    t = Felt(rules=table_rules(**changes))
    t.open_to_shoe()
    return t


def dealt(count: int, boxes: str = "1,2,5", **changes) -> Felt:
    """A round in which `count` cards have come out."""
    t = table(**changes)
    t.tap("bets_closed", boxes=boxes)
    for _ in range(count):
        t.draw()
    return t


# --- a card found face up ---


@pytest.mark.rule("R-31")
@pytest.mark.parametrize("before", range(10))
def test_a_card_found_face_up_is_not_used_and_takes_nobodys_place(before: int) -> None:
    plain, t = dealt(before), dealt(before)
    phase = t.state.phase
    card = t.draw(face_up=True)
    assert (t.facts[-1].data["to"], t.facts[-1].data["card"]) == ("face_up", card)
    assert (t.state.phase, t.codes) == (phase, [])
    assert t.state.batches["A"].at(Place.RACK) == 2
    t.draw()
    plain.draw()
    assert t.places == plain.places
    assert t.hidden == plain.hidden


@pytest.mark.rule("R-31", "R-23")
def test_a_card_found_face_up_is_no_burn_card() -> None:
    t = table()
    t.tap("dealer_change")
    t.draw(face_up=True)
    assert t.state.phase is Phase.BURN_DUE
    t.draw()
    assert t.state.phase is Phase.BETWEEN_ROUNDS
    t.draw(face_up=True)
    assert (t.codes, t.state.shoe.early) == ([], ())


@pytest.mark.rule("R-31", "R-51")
def test_a_double_shoe_keeps_it_aside_until_the_cards_are_collected() -> None:
    t = dealt(9, double_shoe=True)
    t.draw(face_up=True)
    assert t.state.batches["A"].at(Place.ASIDE) == 1
    t.runs_dry()
    t.tap("reshuffle_by_hand")
    t.tap("cut", position=1)
    t.restart()
    t.tap("load_shoe", batch="A")
    t.draw()
    assert t.state.batches["A"].at(Place.ASIDE) == 1
    t.tap("round_settled")
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    t.tap("collect_rack", gauge="full")
    assert t.state.batches["A"].cards == {Place.RACK: 52}
    assert t.codes == []


# --- a card drawn in error ---


@pytest.mark.rule("R-32")
def test_drawn_in_error_and_not_exposed_it_is_the_next_card() -> None:
    t = dealt(9)
    before = t.state
    t.tap("drawn_in_error", exposed=False)
    assert replace(t.state, seq=before.seq) == before


@pytest.mark.rule("R-33")
def test_a_card_drawn_while_none_was_due_is_shown_once_it_lies_face_up() -> None:
    t = dealt(7, settle_first=True)
    card = t.draw()
    assert (t.places[7], t.hidden) == ("stray", [7])
    unseen = dict(t.state.shoe.unseen)
    t.tap("drawn_in_error", exposed=True)
    assert t.facts[-1].kind == "exposed"
    assert t.facts[-1].data == {"seqs": [t.state.round.cards[7].seq]}
    assert t.hidden == []
    assert {face: n for face, n in unseen.items() if face != card} == t.state.shoe.unseen
    t.tap("side_wagers_settled")
    t.tap("round_settled")
    assert [f.kind for f in t.facts[-1:]] == ["round_settled"], "nothing is left to show"


@pytest.mark.rule("R-33")
@pytest.mark.parametrize("burned", [True, False])
def test_no_tap_shows_the_hole_card(burned: bool) -> None:
    t = dealt(8)
    t.tap("drawn_in_error", exposed=True, burned=burned)
    assert t.hidden == [7]
    assert t.facts[-1].kind == "drawn_in_error"
    assert [c["card"] for c in snapshot(t.rules, t.state)["round"]["cards"]][7] is None


@pytest.mark.rule("R-33", "R-34")
def test_a_card_that_nobody_can_use_is_burned() -> None:
    t = dealt(9)
    t.draw()
    t.tap("drawn_in_error", exposed=True, burned=True)
    assert t.places[9] == "burned"
    assert t.state.batches["A"].at(Place.RACK) == 2
    assert t.refused("drawn_in_error", exposed=True).code == "burned_already"
    t.draw()
    assert (t.places[10], t.hidden) == ("play", [7])
    t.tap("round_settled")
    assert t.state.batches["A"].cards == {Place.RACK: 12, Place.SHOE: 40}


@pytest.mark.rule("R-33")
@pytest.mark.parametrize("count", range(1, 9))
def test_a_burned_card_leaves_its_place_to_the_next_one(count: int) -> None:
    t = dealt(count)
    place = t.places[-1]
    t.tap("drawn_in_error", exposed=False, burned=True)
    t.draw()
    if count == 8:
        assert t.hidden == [7, 8], "the hole card comes late: it is hidden among the others"
    else:
        assert t.places[count] == place
        while t.state.phase is not Phase.PLAYING:
            t.draw()
        assert t.places.count("hole") == 1
        assert t.hidden == [t.places.index("hole")]
        t.draw()
        assert t.places[-1] == "play"


@pytest.mark.rule("R-33")
def test_a_burned_hidden_card_is_turned_up_at_no_settlement() -> None:
    t = dealt(8)
    card = t.lying[Place.TABLE][7]
    t.tap("drawn_in_error", exposed=False, burned=True)
    burned = t.state.round.cards[7].seq
    t.draw()
    t.tap("round_settled")
    shown = [seq for f in t.facts if f.kind == "exposed" for seq in f.data["seqs"]]
    assert burned not in shown
    assert t.state.shoe.unseen[card] == 1


def test_drawn_in_error_says_whether_it_was_exposed() -> None:
    t = dealt(0)
    assert t.refused("drawn_in_error").code == "bad_argument"
    assert t.refused("drawn_in_error", exposed=True).code == "no_card_drawn"


# --- who was left out ---


@pytest.mark.rule("R-34")
def test_what_was_left_out_is_told_once() -> None:
    t = dealt(8)
    assert t.refused("dealer_skipped").code == "bad_argument"
    t.tap("dealer_skipped", card="second")
    refusal = t.refused("dealer_skipped", card="second")
    assert (refusal.code, refusal.clause) == ("told_already", "13:69F-2.15(e)")
    t = dealt(7)
    t.tap("dealer_skipped", card="first")
    assert t.refused("dealer_skipped", card="first").code == "told_already"


@pytest.mark.rule("R-34")
@pytest.mark.parametrize("count", [3, 7])
def test_before_it_is_due_the_dealers_second_card_is_not_left_out(count: int) -> None:
    t = dealt(count, settle_first=True)
    assert t.refused("dealer_skipped", card="second").code == "not_skipped"


@pytest.mark.rule("R-34")
def test_a_dealers_second_card_known_to_be_late_is_not_awaited() -> None:
    t = dealt(7)
    t.tap("dealer_skipped", card="second")
    assert t.state.phase is Phase.PLAYING
    t.draw()
    assert (t.places[7:], t.hidden) == (["play"], [7])


@pytest.mark.rule("R-36")
@pytest.mark.parametrize("count", range(9))
def test_a_dead_box_leaves_the_deal_and_the_phase_follows(count: int) -> None:
    t = dealt(count)
    t.tap("box_skipped", box=2, cards=0)
    order = ["box 1", "box 5", "dealer", "box 1", "box 5", "hole"]
    assert t.places == [*order[:count], *["play"] * (count - 6)]
    phases = {5: Phase.HOLE_CARD, 6: Phase.PLAYING, 7: Phase.PLAYING, 8: Phase.PLAYING}
    assert t.state.phase is phases.get(count, Phase.DEALING)
    assert t.hidden == ([5] if 6 <= count < 8 else [5, 7] if count == 8 else [])


@pytest.mark.rule("R-36")
@pytest.mark.parametrize("count", [7, 8])
def test_a_second_card_told_late_may_be_the_hole_card(count: int) -> None:
    t = dealt(count)
    t.tap("box_skipped", box=1, cards=1)
    while t.state.phase is not Phase.PLAYING:
        t.draw()
    assert t.places == ["box 1", "box 2", "box 5", "dealer", "box 2", "box 5", "hole", "hole"]
    assert t.hidden == [6, 7]
    assert t.refused("box_skipped", box=1, cards=1).code == "told_already"


@pytest.mark.rule("R-36")
def test_a_box_that_was_skipped_is_one_with_a_wager_and_not_the_only_one() -> None:
    t = dealt(1, boxes="3")
    assert t.refused("box_skipped", box=1, cards=0).code == "no_wager_there"
    assert t.refused("box_skipped", box=3, cards=2).code == "bad_argument"
    assert t.refused("box_skipped", cards=0).code == "bad_argument"
    assert t.refused("box_skipped", box=3, cards=0).code == "only_box"


TOLD = [
    ("dealer_skipped", {"card": "first"}),
    ("dealer_skipped", {"card": "second"}),
    ("box_skipped", {"box": 1, "cards": 0}),
    ("box_skipped", {"box": 5, "cards": 1}),
    ("drawn_in_error", {"exposed": True}),
    ("drawn_in_error", {"exposed": True, "burned": True}),
]


@pytest.mark.parametrize(("event", "args"), TOLD)
@pytest.mark.parametrize("count", [7, 8, 9, 10])
def test_what_is_told_shows_no_card_and_tells_nothing_about_a_hidden_one(
    event: str, args: dict, count: int
) -> None:
    """Law 7: the same table with another hidden card says the same."""
    t = dealt(count)
    hidden = {i: t.state.round.cards[i].card for i in t.hidden}
    cards = [replace(c, card=t.stack[0]) if i in hidden else c for i, c in enumerate(t.state.round.cards)]
    swapped = {t.stack[0]: 1} if hidden else {}
    unseen = {f: n for f, n in t.state.shoe.unseen.items() if f not in hidden.values()} | swapped
    twin = replace(
        t.state,
        round=replace(t.state.round, cards=tuple(cards)),
        shoe=replace(t.state.shoe, unseen=unseen),
    )
    tap = OperatorEvent(event, args, who="ann", roles=SUPERVISOR)
    found, other = decide(t.rules, t.state, tap), decide(t.rules, twin, tap)
    if isinstance(found, Decision):
        assert isinstance(other, Decision)
        assert found.facts == other.facts
        assert snapshot(t.rules, found.states[-1]) == snapshot(t.rules, other.states[-1])
        after = found.states[-1].round
        assert after is not None
        assert all(not after.cards[i].seen for i in hidden)
    else:
        assert found == other


def test_the_unseen_ones_are_counted_right_after_a_card_was_hidden() -> None:
    t = dealt(7)
    burn = t.lying[Place.RACK][0]
    shown = t.lying[Place.TABLE][6]
    t.tap("dealer_skipped", card="first")
    assert t.state.shoe.unseen == {burn: 1, shown: 1}
    t.draw()
    t.tap("round_settled")
    assert t.state.shoe.unseen == {burn: 1}


@pytest.mark.rule("R-22")
def test_a_foreign_hidden_card_with_the_face_of_the_burn_card_leaves_the_burn_unseen() -> None:
    t = table()
    burn = t.lying[Place.RACK][0]
    t.tap("bets_closed", boxes="1")
    for _ in range(3):
        t.draw()
    t.event(ev.CardDrawn, card=burn, back="blue")
    assert t.places[-1] == "hole"
    t.tap("round_settled")
    assert t.state.shoe.unseen == {burn: 1}
    assert t.state.shoe.copies(burn) == 0
    assert t.codes == ["wrong_back"]


# --- a void round ---


@pytest.mark.rule("R-36a")
@pytest.mark.parametrize("count", [0, 3, 7, 8, 10])
def test_a_void_round_goes_to_the_rack_unturned(count: int) -> None:
    t = dealt(count)
    rounds, unseen = t.state.rounds, dict(t.state.shoe.unseen)
    assert t.refused("void_round").code == "bad_argument"
    assert t.refused("void_round", reason="the 8S").code == "bad_argument"
    t.tap("void_round", reason="misdeal")
    assert t.facts[-1].kind == "void_round"
    assert (t.state.phase, t.state.round, t.state.rounds) == (Phase.BETWEEN_ROUNDS, None, rounds)
    assert t.state.batches["A"].cards == {Place.RACK: count + 1, Place.SHOE: 51 - count}
    assert t.state.shoe.unseen == unseen
    t.play_round("1")


@pytest.mark.rule("R-17")
def test_a_void_round_with_the_cutting_card_ends_the_shoe_and_its_place_is_told_first() -> None:
    t = dealt(4)
    t.event(ev.CutCard)
    t.state = replace(t.state, shoe=replace(t.state.shoe, cut_at=None))
    assert t.refused("void_round", reason="misdeal").code == "where_was_the_cutting_card"
    t.tap("cutting_card_at", box="2")
    t.tap("void_round", reason="misdeal")
    assert t.state.phase is Phase.SHOE_END


def test_a_round_that_is_void_under_a_dead_shoe_ends_the_shoe() -> None:
    t = dealt(4)
    t.event(ev.LinkDown, reason="unplugged")
    t.tap("void_round", reason="misdeal")
    assert t.codes == ["events_lost"]
    assert t.refused("bets_closed", boxes="1").code == "fault_latched"


# --- about one deck goes back into the shoe ---


@pytest.mark.rule("R-10", "R-16", "R-19")
def test_the_rack_goes_back_into_the_shoe_and_the_count_goes_on() -> None:
    t = table(decks=2)
    while len(t.lying[Place.RACK]) < 45:
        t.play_round("1", extra=0)
    refusal = t.refused("bart_carter")
    assert (refusal.code, refusal.clause) == ("rack_too_low", "13:69F-2B.1")
    t.play_round("1", extra=2)
    rack, number = len(t.lying[Place.RACK]), t.state.shoe.number
    assert rack >= 46
    drawn = t.state.shoe.count
    t.tap("bart_carter")
    assert t.state.batches["A"].cards == {Place.SHOE: 104}
    assert (t.state.phase, t.state.shoe.number) == (Phase.BETWEEN_ROUNDS, number)
    assert (t.state.shoe.count, t.state.shoe.returned, t.state.shoe.order) == (0, drawn, "")
    t.restart()
    t.event(ev.LinkUp, boot=2, identity={"serial": "SH1", "firmware": "1"}, status={"drawn": drawn})
    assert t.state.shoe.unaccounted == 0
    t.tap("clear", fault=t.state.faults[0].id)
    for _ in range(8):
        t.play_round("1,2,3", extra=3)
    assert "too_many_copies" not in t.codes


@pytest.mark.rule("R-16")
def test_after_the_cutting_card_it_is_too_late_for_that() -> None:
    t = table(decks=2)
    t.play_round("1", extra=50)
    t.event(ev.CutCard)
    assert t.refused("bart_carter").code == "shoe_ends"


def test_what_goes_wrong_is_not_asked_for() -> None:
    t = dealt(8)
    shown = [line for line in expected(t.rules, t.state) if line.split()[0] not in hands.TAPS]
    assert shown == ["round_settled", "shuffle_now"]
