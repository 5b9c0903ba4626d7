"""A table whose shoe only tells its cards: cutting card, end and backs come by the dealer's taps."""

from __future__ import annotations

from typing import Any

import pytest

from controller.table.draft import Decision
from controller.table.phases import Phase
from controller.table.profiles import FirstCardPolicy
from controller.table.rules import expected
from controller.table.state import Closing, Place
from controller.table.swap import cut_order
from controller.table.view import snapshot
from devices import events as ev
from devices.events import Sense
from tests.support.table import Table, table_rules

NOTHING: frozenset[Sense] = frozenset()


class Blind(Table):
    """Its shoe has no identity, no boot counter and no status, and sees no backs."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(table_rules(shoe_senses=NOTHING, **changes))

    def event(self, kind: type[ev.DeviceEvent], device: str = "shoe", **fields: Any) -> Decision:
        if kind is ev.LinkUp and device == "shoe":
            fields = {}
        assert device != "shoe" or kind not in (ev.CutCard, ev.ShoeEmpty), "this shoe tells no such thing"
        return super().event(kind, device, **fields)

    def draw(self, **changes: Any) -> str:
        return super().draw(**{"back": None, **changes})

    def stub(self) -> None:
        while self.stack:
            self.draw()

    def data(self, kind: str) -> list[dict[str, Any]]:
        return [dict(f.data) for f in self.facts if f.kind == kind]


def in_phase(phase: Phase, **changes: Any) -> Blind:
    """Batch A in the shoe, two rounds played on boxes 1, 2, 5 and the third gone as far as `phase`."""
    t = Blind(**changes)
    t.open_to_shoe()
    t.play_round()
    t.play_round()
    if phase is Phase.BETWEEN_ROUNDS:
        return t
    t.tap("bets_closed", boxes="2,5")
    while t.state.phase is not phase:
        t.draw()
    return t


def test_two_shoes_on_the_dealers_taps_without_a_fault_or_a_command_to_the_shoe() -> None:
    t = Blind()
    t.open_to_shoe()
    t.complete()
    for batch, other in (("A", "B"), ("B", "A")):
        t.play_round()
        t.deal("2,5")
        t.tap("cutting_card_at", box="5")
        t.tap("round_settled")
        assert t.state.phase is Phase.SHOE_END
        t.stub()
        t.tap("collect_rack", gauge="full")
        assert t.state.batches[batch].cards == {Place.RACK: 52}
        t.swap_to(other)
        t.complete()
    assert t.codes == []
    assert [d["by_count"] for d in t.data("shoe_empty")] == [True, True]
    assert {d["device"] for d in t.data("command_issued")} == {"shuffler"}
    assert all(d["foreign"] is False for d in t.data("card_drawn"))


# --- the cutting card ---


@pytest.mark.rule("R-26")
@pytest.mark.parametrize("phase", [Phase.DEALING, Phase.HOLE_CARD, Phase.PLAYING])
@pytest.mark.parametrize("seat", ["2", "dealer"])
def test_in_a_round_the_tap_makes_it_the_last_one(phase: Phase, seat: str) -> None:
    t = in_phase(phase)
    if phase is Phase.DEALING:
        t.draw()
    t.tap("cutting_card_at", box=seat)
    at = "dealer" if seat == "dealer" else "box 2"
    (fact,) = t.data("cutting_card_at")
    assert (fact["at"], fact["closing"], fact["first"]) == (at, "this_round", False)
    assert (t.state.shoe.cut_seen, t.state.shoe.cut_at) == (True, at)
    while t.state.phase is not Phase.PLAYING:
        t.draw()
    t.tap("round_settled")
    assert t.state.phase is Phase.SHOE_END
    assert t.refused("bets_closed", boxes="1").code == "unexpected"
    assert cut_order(t.rules, t.state)[0] == ("box 5" if seat == "dealer" else "box 2"), "R-17"


@pytest.mark.rule("R-26")
def test_without_the_tap_nobody_knows_and_the_game_goes_on() -> None:
    t = in_phase(Phase.PLAYING)
    t.tap("round_settled")
    assert t.state.phase is Phase.BETWEEN_ROUNDS
    assert t.state.shoe.closing is Closing.NO


@pytest.mark.rule("R-27")
def test_as_the_first_card_of_a_round_that_round_is_the_last() -> None:
    t = in_phase(Phase.DEALING)
    t.tap("cutting_card_at", box="2")
    assert t.data("cutting_card_at")[0]["first"] is True
    assert t.state.shoe.closing is Closing.THIS_ROUND
    assert t.state.phase is Phase.DEALING


@pytest.mark.rule("R-27")
@pytest.mark.parametrize("phase", [Phase.DEALING, Phase.BETWEEN_ROUNDS])
def test_as_the_first_card_it_ends_the_shoe_where_that_is_the_policy(phase: Phase) -> None:
    t = in_phase(phase, first_card=FirstCardPolicy.RESHUFFLE_NOW)
    t.tap("cutting_card_at", **({"box": "2"} if phase is Phase.DEALING else {}))
    assert t.state.phase is Phase.SHOE_END
    assert (t.state.round, t.state.rounds) == (None, 2)
    assert t.state.shoe.cut_at is None


@pytest.mark.rule("R-27")
def test_before_a_round_one_more_is_played() -> None:
    t = in_phase(Phase.BETWEEN_ROUNDS)
    t.tap("cutting_card_at")
    assert t.state.shoe.closing is Closing.ONE_MORE_ROUND
    assert t.refused("cutting_card_at").code == "already_known"
    t.deal("4,5")
    assert t.state.shoe.cut_at == "box 4", "its first card would have gone there"
    assert t.refused("cutting_card_at", box="5").code == "already_known"
    t.tap("round_settled")
    assert t.state.phase is Phase.SHOE_END


@pytest.mark.rule("R-26")
@pytest.mark.parametrize("dealer_change", [False, True])
def test_told_only_after_the_round_was_settled_it_ends_the_shoe_at_once(dealer_change: bool) -> None:
    t = in_phase(Phase.BETWEEN_ROUNDS)
    if dealer_change:
        t.tap("dealer_change")
    t.tap("cutting_card_at", box="5")
    assert t.state.phase is Phase.SHOE_END
    assert t.state.shoe.cut_at == "box 5"
    t.stub()
    t.tap("collect_rack", gauge="full")
    assert t.codes == []


def test_at_the_burn_of_a_fresh_shoe_no_round_was_played_that_could_end() -> None:
    t = Blind()
    t.open_to_shoe()
    t.complete()
    t.tap("shuffle_now")
    t.stub()
    t.tap("collect_rack", gauge="full")
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.cut_and_load("B")
    assert t.state.phase is Phase.BURN_DUE
    assert t.refused("cutting_card_at", box="3").code == "no_wager_there"
    t.tap("cutting_card_at", box="dealer")
    assert t.state.shoe.closing is Closing.ONE_MORE_ROUND
    assert t.state.phase is Phase.BURN_DUE


def test_the_tap_is_judged_as_any_other() -> None:
    t = in_phase(Phase.PLAYING)
    assert t.refused("cutting_card_at").code == "bad_argument"
    assert t.refused("cutting_card_at", box="1").code == "no_wager_there"
    assert t.refused("cutting_card_at", box="9").code == "bad_argument"
    t.tap("cutting_card_at", box="2")
    assert t.refused("cutting_card_at", box="2").code == "already_known"
    t.tap("round_settled")
    assert t.refused("cutting_card_at", box="2").code == "unexpected"


def test_a_shoe_that_senses_the_card_is_asked_nothing_more() -> None:
    t = Table(table_rules())
    t.open_to_shoe()
    t.play_round()
    assert t.refused("cutting_card_at", box="1").code == "unexpected"
    t.deal()
    assert t.refused("cutting_card_at", box="1").code == "no_cutting_card"


# --- the end of the shoe ---


@pytest.mark.rule("R-26")
def test_with_cards_left_the_rack_is_collected_only_on_the_dealers_word_that_the_shoe_is_empty() -> None:
    t = in_phase(Phase.BETWEEN_ROUNDS)
    t.tap("shuffle_now")
    t.stack.pop()
    t.stub()
    refusal = t.refused("collect_rack", gauge="short")
    assert refusal.code == "shoe_not_empty"
    assert "1 did not come" in refusal.why
    assert refusal.expected == ("collect_rack gauge=short shoe_empty=true",)
    t.tap("collect_rack", gauge="short", shoe_empty=True)
    assert t.codes == ["cards_missing", "rack_gauge"]
    assert t.state.batches["A"].unfit == "cards_missing"


def test_a_shoe_that_senses_its_end_takes_nobodys_word_for_it() -> None:
    t = Table(table_rules())
    t.open_to_shoe()
    t.tap("shuffle_now")
    refusal = t.refused("collect_rack", gauge="short", shoe_empty="true")
    assert refusal.code == "bad_argument"
    assert "tells by itself" in refusal.why


@pytest.mark.rule("R-35")
def test_a_shoe_that_runs_dry_in_a_round_latches_by_the_count() -> None:
    t = in_phase(Phase.PLAYING)
    t.stub()
    assert t.alarms == ["shoe_dry"]
    t.tap("round_settled")
    assert t.state.phase is Phase.SHOE_END


@pytest.mark.rule("R-22", "R-74")
def test_a_card_too_many_is_noticed_after_the_count_was_full() -> None:
    t = in_phase(Phase.BETWEEN_ROUNDS)
    t.tap("shuffle_now")
    t.stack.append("8S")
    t.stub()
    assert "too_many_cards" in t.codes
    t.tap("collect_rack", gauge="over")


# --- nothing is counted twice, nothing guessed ---


def test_cards_that_may_be_lost_end_the_shoe_and_the_gauge_decides() -> None:
    t = in_phase(Phase.DEALING)
    t.draw()
    t.stack.pop()
    t.event(ev.FrameRejected, reason="noise", bytes=3)
    t.event(ev.GapPossible)
    assert t.codes == ["events_lost"]
    t.draw()
    assert t.state.round is not None
    assert [c.seen for c in t.state.round.cards] == [True, False], "nobody knows which card lies where"
    t.tap("round_settled")
    assert t.refused("bets_closed", boxes="1").code == "fault_latched"
    t.tap("shuffle_now")
    t.stub()
    assert t.refused("collect_rack", gauge="full").code == "shoe_not_empty"
    t.tap("collect_rack", gauge="full", shoe_empty="true")
    assert t.data("collect_rack")[0]["by_gauge"] == 1
    assert t.state.batches["A"].cards == {Place.RACK: 52}
    assert t.codes == ["events_lost"]


def test_a_shoe_back_on_its_line_brings_no_identity_and_no_counter() -> None:
    t = in_phase(Phase.BETWEEN_ROUNDS)
    t.event(ev.LinkDown, reason="unplugged")
    assert t.refused("bets_closed", boxes="1").code == "device_absent"
    t.event(ev.LinkUp)
    t.event(ev.GapPossible)
    assert t.codes == ["events_lost"]
    assert t.state.device("shoe").up
    assert t.state.device("shoe").known


def test_before_a_shoe_is_loaded_a_gap_is_no_fault() -> None:
    t = Blind()
    t.boot()
    t.links_up()
    t.event(ev.GapPossible)
    assert t.codes == []


@pytest.mark.rule("R-22")
def test_field_18_an_unread_card_lies_where_it_was_dealt_and_moves_no_other() -> None:
    t = in_phase(Phase.DEALING)
    t.draw()
    t.draw(card=None)
    t.draw()
    t.draw()
    assert t.state.round is not None
    dealt = [(c.to, c.card is None) for c in t.state.round.cards]
    assert dealt == [("box 2", False), ("box 5", True), ("dealer", False), ("box 2", False)]
    assert t.state.shoe.drawn[""] == 1
    assert t.codes == []


def test_a_card_from_a_shoe_that_holds_no_batch_belongs_to_nobody() -> None:
    t = Blind()
    t.boot()
    t.links_up()
    t.open()
    t.event(ev.CardDrawn, card="8S", back=None)
    assert t.codes == ["stray_card"]
    assert t.state.faults[0].cause == "a card of an unknown batch left the shoe in phase opening"
    assert {sum(b.cards.values()) for b in t.state.batches.values()} == {52}


def test_the_table_says_what_it_asks_the_dealer_for() -> None:
    t = in_phase(Phase.BETWEEN_ROUNDS)
    assert snapshot(t.rules, t.state)["shoe"]["senses"] == []
    asked = expected(t.rules, t.state)
    assert {"cutting_card_at box=N|dealer", "cutting_card_at"} <= set(asked)
    t.tap("shuffle_now")
    t.stub()
    assert expected(t.rules, t.state)[0] == "collect_rack gauge=full|short|over other_backs=0"
    other = Table(table_rules())
    assert snapshot(other.rules, other.state)["shoe"]["senses"] == ["back", "cut_card", "empty"]
