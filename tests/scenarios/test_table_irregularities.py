"""S7: what goes wrong with cards in a round, and play goes on (R-31 to R-36, INC-11)."""

from __future__ import annotations

import pytest

from controller.table.inputs import Trouble
from controller.table.phases import Phase
from controller.table.rules import awaited, expected
from controller.table.state import Closing, Place
from devices import events as ev
from tests.support.custody import SUPERVISOR, Felt
from tests.support.table import table_rules


def one_deck(**changes) -> Felt:
    t = Felt(rules=table_rules(**changes))
    t.open_to_shoe()
    return t


# --- the shoe runs out in the middle of a round ---

DRY = {Phase.DEALING: 4, Phase.SIDE_WAGERS: 7, Phase.HOLE_CARD: 7, Phase.PLAYING: 9}
"""How many cards are left at the close of bets on boxes 1, 2, 5: eight are dealt."""


def dry_in(phase: Phase, **changes) -> Felt:
    t = one_deck(settle_first=phase is Phase.SIDE_WAGERS, **changes)
    t.until_dry(DRY[phase])
    t.tap("bets_closed", boxes="1,2,5")
    t.runs_dry()
    assert t.state.phase is phase
    return t


def next_taps(t: Felt) -> list[str]:
    """What is expected, but for the alarm that everybody may acknowledge."""
    return [line for line in expected(t.rules, t.state) if not line.startswith("acknowledge")]


@pytest.mark.rule("R-35")
@pytest.mark.parametrize("burns", [True, False])
@pytest.mark.parametrize("phase", DRY)
def test_r35_the_rack_is_shuffled_by_hand_and_the_same_round_goes_on(phase: Phase, burns: bool) -> None:
    t = dry_in(phase, burn_after_dry=burns)
    before, on_layout = t.state, DRY[phase]
    stored = before.batches["B"]
    assert t.alarms == ["shoe_dry"]
    assert "reshuffle_by_hand batch=A" in expected(t.rules, t.state)
    assert t.refused("shuffle_now").code == "already_ending"

    t.tap("reshuffle_by_hand")
    t.restart()
    assert t.state.batches["A"].cards == {Place.TABLE: on_layout, Place.IN_HAND: 52 - on_layout}
    least = min(10, (52 - on_layout) // 2)
    assert next_taps(t) == [f"cut position={least}..{52 - on_layout - least}"]
    assert t.refused("cut", position=least - 1).code == "cut_too_near_the_end"
    t.tap("cut", position=least)
    t.restart()
    assert next_taps(t) == ["load_shoe batch=A"]
    assert t.refused("load_shoe", batch="B").code == "other_batch"
    assert t.refused("bets_closed", boxes="1").code == "unexpected"
    t.tap("load_shoe", batch="A")
    t.restart()
    assert t.state.phase is (Phase.RESHUFFLE_BURN if burns else phase)
    if burns:
        t.draw()
    assert (t.state.phase, t.state.dry_in) == (phase, None)
    assert t.state.batches["A"].at(Place.RACK) == burns

    assert t.state.round == before.round, "the cards on the layout stay where they are"
    assert t.state.batches["B"] == stored, "the other batch stays in the shuffler"
    assert (t.state.shoe.number, t.state.shoe.last_batch) == (before.shoe.number, "A")
    if phase is Phase.SIDE_WAGERS:
        t.tap("side_wagers_settled")
    while t.state.phase is not Phase.PLAYING:
        t.draw()
    assert t.places[:8] == ["box 1", "box 2", "box 5", "dealer", "box 1", "box 2", "box 5", "hole"]
    assert t.hidden == [7]
    t.draw()
    t.tap("round_settled")
    assert t.state.phase is Phase.SHOE_END, "no other round follows (R-26)"
    t.complete()
    t.end_shoe()
    assert t.state.batches["A"].cards == {Place.RACK: 52}
    assert [f.code for f in t.state.faults if f.gone is None] == []
    t.swap_to("B")
    assert (t.state.shoe.batch, t.state.shoe.number) == ("B", 2)


@pytest.mark.rule("R-35")
@pytest.mark.parametrize("phase", DRY)
def test_r35_a_dry_shoe_waits_for_people_and_not_for_a_card(phase: Phase) -> None:
    t = dry_in(phase)
    t.complete()
    assert awaited(t.rules, t.state) is None
    ends = ("round_settled",) if phase is Phase.PLAYING else ()
    shown = [line for line in expected(t.rules, t.state) if line.split()[0] in ("round_settled", "burn")]
    assert tuple(shown) == ends


@pytest.mark.rule("R-35")
def test_r35_a_round_that_needs_no_card_is_settled_and_the_alarm_is_gone() -> None:
    t = dry_in(Phase.PLAYING)
    assert t.refused("clear", SUPERVISOR, fault=t.state.faults[0].id).code == "not_latched"
    t.tap("round_settled")
    assert t.state.phase is Phase.SHOE_END
    assert t.state.faults[0].gone is not None


@pytest.mark.rule("R-35")
def test_r35_the_alarm_is_gone_once_cards_are_in_the_shoe_again_and_comes_back_with_its_cause() -> None:
    t = dry_in(Phase.PLAYING)
    t.tap("reshuffle_by_hand")
    t.tap("cut", position=20)
    assert t.state.faults[0].gone is None
    t.tap("load_shoe", batch="A")
    assert t.state.faults[0].gone is not None
    t.runs_dry()
    (alarm,) = t.state.faults
    assert (alarm.code, alarm.gone) == ("shoe_dry", None)
    t.tap("reshuffle_by_hand")
    assert t.state.batches["A"].cards == {Place.TABLE: 51, Place.IN_HAND: 1}


@pytest.mark.rule("R-35")
def test_r35_with_nothing_in_the_rack_the_supervisor_voids_the_round() -> None:
    t = dry_in(Phase.PLAYING, burn_after_dry=False)
    t.tap("reshuffle_by_hand")
    t.tap("cut", position=20)
    t.tap("load_shoe", batch="A")
    t.runs_dry()
    refusal = t.refused("reshuffle_by_hand", SUPERVISOR)
    assert (refusal.code, refusal.clause) == ("rack_empty", "13:69F-2.15(f)")
    assert any(line.startswith("void_round") for line in refusal.expected)
    t.tap("void_round", reason="shoe_dry")
    assert (t.state.phase, t.state.round) == (Phase.SHOE_END, None)
    assert t.state.batches["A"].cards == {Place.RACK: 52}


@pytest.mark.rule("R-35")
def test_r35_before_the_shoe_is_empty_nobody_shuffles() -> None:
    t = one_deck()
    t.deal("1")
    assert t.refused("reshuffle_by_hand", SUPERVISOR).code == "shoe_not_empty"
    assert not any(line.startswith("reshuffle_by_hand") for line in expected(t.rules, t.state))


@pytest.mark.rule("R-35")
def test_r35_a_fault_of_the_shuffler_does_not_stop_the_round() -> None:
    t = dry_in(Phase.PLAYING)
    t.give(Trouble("settings_mismatch", "the shuffler is set to sort", "shuffler"))
    assert t.codes == ["settings_mismatch"]
    t.tap("reshuffle_by_hand")
    t.tap("cut", position=20)
    t.tap("load_shoe", batch="A")
    assert t.state.phase is Phase.RESHUFFLE_BURN


@pytest.mark.rule("R-35", "R-55")
@pytest.mark.parametrize("steps", [1, 2])
def test_r35_a_dead_card_found_while_the_rack_is_shuffled_strands_no_round(steps: int) -> None:
    t = dry_in(Phase.PLAYING)
    ways = [("reshuffle_by_hand", {}), ("cut", {"position": 20}), ("load_shoe", {"batch": "A"})]
    for event, args in ways[:steps]:
        t.tap(event, **args)
    t.tap("dead_card", batch="A")
    assert t.refused("replace_batch", SUPERVISOR, batch="A").code != "unexpected"
    for event, args in ways[steps:]:
        t.tap(event, **args)
    t.draw()
    t.tap("round_settled")
    assert (t.state.phase, t.state.batches["A"].unfit) == (Phase.SHOE_END, "dead_card")


@pytest.mark.rule("R-35", "R-69")
def test_r35_the_shoe_counts_from_nothing_again_and_is_believed() -> None:
    t = dry_in(Phase.PLAYING)
    t.tap("reshuffle_by_hand")
    t.tap("cut", position=20)
    t.tap("load_shoe", batch="A")
    t.draw()
    t.draw()
    for drawn, boot, unaccounted in ((2, 1, None), (2, 2, 0), (4, 3, 2)):
        identity = {"serial": "SH1", "firmware": "1"}
        t.event(ev.LinkUp, "shoe", boot=boot, identity=identity, status={"drawn": drawn})
        assert ("shoe_rebooted" in t.codes) is (boot > 1)
        assert t.state.shoe.unaccounted == unaccounted


@pytest.mark.rule("R-35")
def test_r35_a_card_may_come_twice_out_of_a_shoe_that_was_shuffled_in_between_but_not_while_it_lies() -> None:
    t = dry_in(Phase.PLAYING)
    t.tap("reshuffle_by_hand")
    t.tap("cut", position=20)
    t.tap("load_shoe", batch="A")
    while len(t.stack) > 1:
        t.draw()
    assert t.codes == []
    t.event(ev.CardDrawn, card=t.lying[Place.TABLE][0], back="red")
    assert "too_many_copies" in t.codes


@pytest.mark.rule("R-26", "R-35")
def test_r35_the_cutting_card_of_a_shoe_that_senses_none_may_still_be_told() -> None:
    t = dry_in(Phase.PLAYING, shoe_senses=frozenset())
    t.tap("cutting_card_at", box="2")
    t.tap("reshuffle_by_hand")
    t.tap("cut", position=20)
    t.tap("load_shoe", batch="A")
    assert (t.state.shoe.closing, t.state.shoe.cut_at) == (Closing.THIS_ROUND, "box 2")


# --- INC-11, R-34: the dealer left out a card ---


@pytest.mark.rule("R-34")
@pytest.mark.parametrize("told_after", [3, 4, 5, 6])
def test_inc11_the_dealer_was_skipped_nothing_is_shifted_and_play_goes_on(told_after: int) -> None:
    t = one_deck()
    t.tap("bets_closed", boxes="1,2,5")
    lie = [t.draw() for _ in range(told_after)]
    t.tap("dealer_skipped", card="first")
    lie += [t.draw() for _ in range(8 - told_after)]
    assert t.places == ["box 1", "box 2", "box 5", "box 1", "box 2", "box 5", "dealer", "hole"]
    assert t.hidden == [7]
    assert [card.card for card in t.state.round.cards] == lie
    assert t.state.phase is Phase.PLAYING
    assert t.codes == []
    t.draw()
    t.tap("round_settled")
    assert t.state.phase is Phase.BETWEEN_ROUNDS


@pytest.mark.rule("R-34")
def test_r34_told_late_either_of_the_dealers_cards_may_be_the_hidden_one() -> None:
    t = one_deck()
    t.tap("bets_closed", boxes="1,2,5")
    for _ in range(7):
        t.draw()
    t.tap("dealer_skipped", card="first")
    assert t.hidden == [6], "the card that the dealer laid down before the telling may be the hole card"
    t.draw()
    assert t.places[6:] == ["hole", "hole"]
    assert t.hidden == [6, 7]
    late = [card.seq for card in t.state.round.cards[6:]]
    t.draw()
    t.tap("round_settled")
    assert t.facts[-1].data == {"seqs": late}


@pytest.mark.rule("R-34")
def test_r34_the_dealers_second_card_comes_late_and_is_shown_to_nobody_before_the_end() -> None:
    t = one_deck()
    t.deal("1,2,5")
    t.tap("dealer_skipped", card="second")
    t.restart()
    assert t.places[7] == "play"
    assert t.hidden == [7], "told before or after the card came: nobody knows, so it stays hidden"
    t.draw()
    t.draw()
    assert t.hidden == [7, 8, 9]
    t.tap("round_settled")
    assert t.facts[-1].kind == "exposed"
    assert t.state.shoe.unseen == {t.lying[Place.RACK][0]: 1}, "the burn card alone was seen by nobody"


# --- a box left out ---


@pytest.mark.rule("R-36")
def test_r36_a_box_without_a_card_is_dead_and_the_others_are_dealt_on() -> None:
    t = one_deck()
    t.tap("bets_closed", boxes="1,2,5")
    t.draw()
    t.draw()
    t.tap("box_skipped", box=2, cards=0)
    assert t.places == ["box 1", "box 5"]
    while t.state.phase is not Phase.PLAYING:
        t.draw()
    assert t.places == ["box 1", "box 5", "dealer", "box 1", "box 5", "hole"]
    assert t.hidden == [5]


@pytest.mark.rule("R-36")
def test_r36_a_box_with_one_card_gets_its_second_after_all_others() -> None:
    t = one_deck()
    t.tap("bets_closed", boxes="1,2,5")
    for _ in range(4):
        t.draw()
    t.tap("box_skipped", box=1, cards=1)
    t.restart()
    while t.state.phase is not Phase.PLAYING:
        t.draw()
    assert t.places == ["box 1", "box 2", "box 5", "dealer", "box 2", "box 5", "box 1", "hole"]
    assert t.hidden == [7]
