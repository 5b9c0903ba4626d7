"""One deck a round: three-card poker and its relatives, played by hand on the core (R-52 to R-56)."""

from __future__ import annotations

from typing import Any

import pytest

from controller.table.inputs import OperatorEvent, Refusal, Role
from controller.table.machine import TableMachine
from controller.table.phases import TAPS
from controller.table.profiles import BatchRules, Burn, CutPolicy, TableRules
from controller.table.rules import accepts, awaited, expected, expected_taps
from controller.table.state import Place, TableState
from controller.table.view import snapshot
from devices import events as ev
from devices.events import JOKER
from firmware_bridge.link import Done, NotSent, Refused, Unknown
from tests.support.table import Table, table_rules
from tests.unit.test_table_machine import EXAMPLES

SUPERVISOR = frozenset({Role.SUPERVISOR})
ONE = (BatchRules("A", "red"),)


class Poker(Table):
    """A table of one deck a round."""

    def __init__(self, game: str = "three-card-poker", **changes: Any) -> None:
        rules = {"mode": "deck-per-round", "game": game, "burn": Burn.NEVER, **changes}
        super().__init__(table_rules(**rules))

    def refused(self, *args: Any, **said: Any) -> Refusal:
        """No clause of blackjack is cited at the table of another game."""
        refusal = super().refused(*args, **said)
        assert refusal.clause is None or not refusal.clause.startswith("13:69F-2.")
        return refusal

    def fresh(self) -> None:
        self.stack = list(self.rules.deck)
        self.random.shuffle(self.stack)

    def opened(self) -> None:
        self.boot()
        self.links_up()
        self.open()

    def shuffle(self, batch: str) -> None:
        self.tap("load_shuffler", batch=batch)
        self.start()

    def to_shoe(self, batch: str) -> None:
        self.tap("cut", position=26)
        self.tap("load_shoe", batch=batch)
        self.fresh()

    def first_shoe(self) -> None:
        """Both decks are prepared; A is cut and in the shoe, B in the shuffler."""
        self.opened()
        self.shuffle("A")
        self.complete(composition=dict.fromkeys(self.rules.deck, 1))
        self.take()
        self.shuffle("B")
        self.to_shoe("A")

    def next_shoe(self, batch: str) -> None:
        self.complete(composition=dict.fromkeys(self.rules.deck, 1))
        self.take()
        self.shuffle(self.rules.other(batch) or batch)
        self.to_shoe(batch)

    def by_hand(self) -> None:
        """The one deck, shuffled by hand."""
        self.tap("reshuffle_by_hand", SUPERVISOR, batch="A")
        self.to_shoe("A")

    def deal(self, boxes: str = "1,2,5") -> None:
        self.tap("bets_closed", boxes=boxes)
        while self.phase == "dealing":
            if self.rules.stacks and self.state.shoe.told >= self.state.shoe.asked:
                self.tap("dispense")
                self.end(Done({"count": 0}))
            self.draw()

    def finish(self, **said: Any) -> None:
        """Settled, the stub through the shoe, collected."""
        self.tap("round_settled")
        while self.stack:
            self.draw()
        self.event(ev.ShoeEmpty)
        self.tap("collect_rack", gauge="full", **said)

    @property
    def phase(self) -> str:
        return self.state.phase.value

    @property
    def expected(self) -> tuple[str, ...]:
        return expected(self.rules, self.state)

    def hands(self) -> dict[str, int]:
        assert self.state.round is not None
        places = [card.to for card in self.state.round.cards]
        return {place: places.count(place) for place in places}


def alone(**changes: Any) -> Poker:
    """One deck, shuffled by hand, in the shoe."""
    poker = Poker(batches=ONE, shuffler=None, **changes)
    poker.boot()
    poker.event(ev.LinkUp, "shoe", boot=1, identity={"serial": "SH1", "firmware": "1"}, status={})
    poker.open()
    poker.by_hand()
    return poker


# --- decks alternate round by round (R-52) ---


@pytest.mark.rule("R-52")
def test_two_decks_alternate_every_other_round_and_one_lies_in_the_rack():
    poker, used = Poker(), []
    poker.first_shoe()
    for batch in "BABA":
        used.append(poker.state.shoe.batch)
        poker.deal()
        poker.finish()
        assert poker.phase == "rack_full"
        rack = [b.id for b in poker.state.batches.values() if b.at(Place.RACK)]
        assert rack == [used[-1]]
        poker.next_shoe(batch)
    assert used == ["A", "B", "A", "B"]
    assert poker.state.rounds == 4
    assert poker.codes == []


@pytest.mark.rule("R-52")
def test_the_deck_of_the_last_round_is_not_dealt_again():
    poker = Poker()
    poker.first_shoe()
    poker.deal()
    poker.finish()
    assert poker.refused("load_shuffler", batch="A").code == "shuffler_not_empty"
    poker.complete()
    poker.take()
    assert poker.refused("load_shuffler", batch="B").code == "batch_is_shuffled"


@pytest.mark.rule("R-52", "R-56")
def test_machine_shuffled_cards_need_no_cut_by_the_second_reading_and_no_cutting_card():
    poker = Poker(cut=CutPolicy.HAND_SHUFFLED)
    poker.opened()
    poker.shuffle("A")
    poker.complete()
    poker.take()
    poker.shuffle("B")
    assert poker.phase == "cutting_card_in"
    poker.tap("load_shoe", batch="A")
    assert poker.phase == "between_rounds"
    one = Poker(cut=CutPolicy.HAND_SHUFFLED, batches=ONE)
    one.opened()
    one.shuffle("A")
    one.complete()
    one.take()
    assert one.phase == "cutting_card_in"
    one.tap("load_shoe", batch="A")
    assert one.phase == "between_rounds"


@pytest.mark.rule("R-52", "R-56")
def test_hand_shuffled_cards_are_cut_by_either_reading():
    poker = Poker(batches=ONE, shuffler=None, cut=CutPolicy.HAND_SHUFFLED)
    poker.boot()
    poker.event(ev.LinkUp, "shoe", boot=1, identity={"serial": "SH1", "firmware": "1"}, status={})
    poker.open()
    poker.tap("reshuffle_by_hand", SUPERVISOR, batch="A")
    assert poker.phase == "cut_due"
    assert poker.refused("load_shoe", batch="A").code == "unexpected"


@pytest.mark.rule("R-56")
def test_the_dealer_cuts_ten_cards_or_more_onto_the_cover_card_and_offers_it_to_nobody():
    poker = Poker()
    poker.opened()
    poker.shuffle("A")
    poker.complete()
    poker.take()
    poker.shuffle("B")
    assert poker.refused("offer_cut", box="1").code == "dealer_cuts"
    for position in (9, 43):
        refused = poker.refused("cut", position=position)
        assert (refused.code, refused.clause) == ("cut_too_near_the_end", "13:69F-14.5(a)-(b)")
    poker.tap("cut", position=10)
    assert (poker.phase, poker.facts[-1].data["by"]) == ("cutting_card_in", "dealer")
    poker.tap("load_shoe", batch="A")
    assert poker.refused("burn").code == "unexpected"
    poker.tap("dealer_change")
    assert poker.phase == "between_rounds"
    poker.fresh()
    poker.tap("bets_closed", boxes="1")
    assert poker.refused("cutting_card_at", box="dealer").code == "no_cutting_card"


# --- the deal (R-53) ---


@pytest.mark.rule("R-53", "13:69F-20.7", "13:69F-20.9")
@pytest.mark.parametrize(
    ("game", "boxes", "hands", "left"),
    [
        ("three-card-poker", "1,2,5", {"box 1": 3, "box 2": 3, "box 5": 3, "dealer": 3}, 40),
        ("mississippi-stud", "3,4", {"box 3": 2, "box 4": 2, "community": 3}, 45),
        ("asia-poker", "1", {f"stack {n}": 7 for n in range(1, 8)}, 4),
    ],
)
def test_positions_community_and_stub_are_the_deck(game, boxes, hands, left):
    for stacks in (False, True):
        poker = alone(game=game, stacks=stacks)
        poker.deal(boxes)
        assert poker.hands() == hands
        assert poker.phase == "playing"
        poker.tap("round_settled")
        assert poker.phase == "shoe_end"
        assert poker.state.batches["A"].cards == {"shoe": left, "rack": len(poker.rules.deck) - left}
        while poker.stack:
            poker.draw()
        poker.event(ev.ShoeEmpty)
        poker.tap("collect_rack", gauge="full", stub=left)
        assert poker.codes == []


@pytest.mark.rule("R-52", "R-54", "13:69F-20.8")
def test_from_the_hand_the_dealer_tells_what_no_shoe_counts():
    poker = Poker(batches=ONE, shoe=None, shuffler=None, shoe_senses=frozenset())
    poker.boot()
    poker.open()
    poker.tap("reshuffle_by_hand", SUPERVISOR, batch="A")
    poker.tap("cut", position=26)
    poker.tap("take_in_hand", batch="A")
    poker.tap("bets_closed", boxes="1,2")
    poker.tap("round_settled")
    assert poker.state.batches["A"].cards == {"shoe": 43, "rack": 9}
    poker.tap("collect_rack", gauge="full", stub=43)
    assert (poker.phase, poker.state.batches["A"].cards, poker.codes) == ("rack_full", {"rack": 52}, [])


def by_hand() -> Poker:
    """One deck, shuffled by hand, in the dealer's hand."""
    poker = Poker(batches=ONE, shoe=None, shuffler=None, shoe_senses=frozenset())
    poker.boot()
    poker.open()
    next_deck(poker)
    return poker


def next_deck(poker: Poker) -> None:
    poker.tap("reshuffle_by_hand", SUPERVISOR, batch="A")
    poker.tap("cut", position=26)
    poker.tap("take_in_hand", batch="A")


@pytest.mark.rule("R-31")
def test_from_the_hand_the_dealer_tells_cards_found_face_up_and_a_second_one_voids_all_hands():
    poker = by_hand()
    poker.tap("bets_closed", boxes="1,2")
    poker.tap("card_face_up")
    assert poker.state.batches["A"].cards == {"shoe": 51, "rack": 1}
    poker.tap("round_settled")
    assert poker.state.batches["A"].cards == {"shoe": 42, "rack": 10}
    poker.tap("collect_rack", gauge="full", stub=42)
    next_deck(poker)
    poker.tap("bets_closed", boxes="1,2")
    for _ in range(2):
        poker.tap("card_face_up")
    assert poker.refused("round_settled").code == "all_hands_void"
    poker.tap("void_round", SUPERVISOR, reason="face_up")
    poker.tap("collect_rack", gauge="full", stub=41)
    assert (poker.codes, poker.state.batches["A"].cards) == ([], {"rack": 52})


def test_a_shoe_that_counts_tells_a_card_found_face_up_by_itself():
    poker = alone()
    poker.tap("bets_closed", boxes="1,2")
    refused = poker.refused("card_face_up")
    assert (refused.code, refused.clause) == ("already_known", "13:69F-20.12")


@pytest.mark.rule("R-54")
def test_a_stub_counted_after_a_round_of_unknown_length_proves_nothing():
    poker = by_hand()
    for number in range(1, 7):
        poker.tap("bets_closed", boxes="1,2")
        poker.tap("void_round", SUPERVISOR, reason="misdeal")
        poker.tap("collect_rack", gauge="full", stub=50)
        assert poker.state.batches["A"].uncounted == number
        next_deck(poker)
    poker.tap("bets_closed", boxes="1,2")
    poker.tap("round_settled")
    assert poker.refused("collect_rack", gauge="full").code == "stub_not_counted"
    poker.tap("collect_rack", gauge="full", stub=42)
    assert poker.codes == ["wrong_stub"]


def test_asia_poker_has_the_joker_and_six_players():
    poker = alone(game="asia-poker")
    assert (poker.size, poker.rules.deck[-1]) == (53, JOKER)
    assert len(set(poker.rules.deck)) == 53
    refused = poker.refused("bets_closed", boxes="1,2,3,4,5,6,7")
    assert (refused.code, refused.clause) == ("too_many_boxes", "13:69F-31.10")


@pytest.mark.rule("R-53")
def test_no_card_of_a_hand_is_seen_before_the_deck_is_collected():
    poker = alone()
    poker.deal()
    assert poker.state.round is not None
    assert [card.seen for card in poker.state.round.cards] == [False] * 12
    dealt = [fact for fact in poker.facts if fact.kind == "card_drawn"]
    assert all("card" not in fact.data and "card" in fact.sealed for fact in dealt)
    poker.tap("round_settled")
    assert not any(fact.kind == "exposed" for fact in poker.facts), "who folded never turned up a card"


def test_the_order_of_the_deal_is_in_the_fact_that_begins_it():
    by_card, by_stack = alone(), alone(stacks=True)
    for poker in (by_card, by_stack):
        poker.tap("bets_closed", boxes="1,2")
    assert by_card.facts[-1].data["order"] == ["box 1", "box 2", "dealer"] * 3
    assert by_stack.facts[-1].data["order"] == ["box 1"] * 3 + ["box 2"] * 3 + ["dealer"] * 3


# --- what goes wrong with cards (R-31) ---


@pytest.mark.rule("R-31")
def test_one_card_face_up_is_left_out_and_a_second_one_voids_all_hands():
    poker = alone()
    poker.tap("bets_closed", boxes="1,2")
    poker.draw()
    poker.draw(face_up=True)
    assert poker.hands() == {"box 1": 1}
    assert poker.state.batches["A"].cards == {"shoe": 50, "table": 1, "rack": 1}
    while poker.phase == "dealing":
        poker.draw()
    assert not any(e.startswith("void_round") for e in poker.expected)
    poker2 = alone()
    poker2.tap("bets_closed", boxes="1,2")
    for _ in range(2):
        poker2.draw(face_up=True)
    while poker2.phase == "dealing":
        poker2.draw()
    refused = poker2.refused("round_settled")
    assert (refused.code, refused.clause) == ("all_hands_void", "13:69F-20.12")
    assert refused.expected == ("void_round reason=face_up",)
    poker2.tap("void_round", SUPERVISOR, reason="face_up")
    assert poker2.phase == "shoe_end"
    assert not any(fact.kind == "exposed" for fact in poker2.facts)
    while poker2.stack:
        poker2.draw()
    poker2.event(ev.ShoeEmpty)
    poker2.tap("collect_rack", gauge="full", stub=41)
    assert poker2.codes == []


@pytest.mark.rule("R-31")
def test_a_card_face_up_in_a_stack_is_made_up_for_by_the_next():
    poker = alone(stacks=True)
    poker.tap("bets_closed", boxes="1,2")
    poker.tap("dispense")
    poker.end(Done({"count": 3}))
    for up in (False, True, False):
        poker.draw(face_up=up)
    poker.tap("dispense")
    assert poker.effects[-1].args == {"count": 1, "drawn": 3}
    poker.end(Done({"count": 1}))
    poker.draw()
    assert poker.hands() == {"box 1": 3}
    assert poker.codes == []


def test_a_stub_card_face_up_after_the_deal_voids_nothing():
    poker = alone()
    poker.deal("1")
    for _ in range(3):
        poker.draw(face_up=True)
    poker.finish(stub=46)
    assert poker.codes == []


def test_no_card_is_dealt_later_and_no_shuffle_mends_a_round():
    poker = alone()
    poker.tap("bets_closed", boxes="1,2")
    poker.draw()
    for event, said in (("dealer_skipped", {"card": "first"}), ("box_skipped", {"box": 1, "cards": 0})):
        refused = poker.refused(event, **said)
        assert (refused.code, refused.expected) == ("misdeal", ("void_round reason=misdeal",))
    assert poker.refused("reshuffle_by_hand", SUPERVISOR, batch="A").code == "misdeal"
    assert poker.refused("shuffle_now", SUPERVISOR).code == "already_ending"
    while poker.phase == "dealing":
        poker.draw()
    assert poker.refused("drawn_in_error", exposed=True, burned=True).code == "misdeal"


def test_a_shoe_that_runs_out_in_the_deal_makes_the_round_void():
    poker = alone()
    poker.tap("bets_closed", boxes="1")
    for _ in range(4):
        poker.draw()
    poker.event(ev.ShoeEmpty)
    assert poker.alarms == ["shoe_dry"]
    assert "void_round reason=misdeal|reader|shoe_dry|wrong_card|other" in poker.expected
    poker.tap("void_round", SUPERVISOR, reason="shoe_dry")
    assert poker.refused("collect_rack", gauge="short").code == "stub_not_counted"
    poker.tap("collect_rack", gauge="short", stub=0)
    assert poker.codes == ["rack_gauge", "wrong_stub"]


def test_a_card_that_comes_before_the_bets_are_closed_is_the_first_of_the_deal():
    poker = alone()
    poker.draw()
    assert poker.codes == ["card_out_of_turn"]
    poker.tap("clear", SUPERVISOR, fault=poker.state.faults[0].id)
    poker.tap("bets_closed", boxes="1,2")
    assert poker.hands() == {"stray": 1}
    while poker.phase == "dealing":
        poker.draw()
    assert sum(poker.hands().values()) == 9


# --- the stub (R-54, R-55) ---


@pytest.mark.rule("R-54")
def test_a_stub_that_no_machine_counts_is_counted_in_every_fifth_round():
    poker = alone()
    for number in range(1, 11):
        poker.deal("1,2")
        poker.tap("round_settled")
        while poker.stack:
            poker.draw()
        poker.event(ev.ShoeEmpty)
        assert ("collect_rack gauge=full|short|over" in poker.expected) is (number % 5 != 0)
        assert snapshot(poker.rules, poker.state)["shoe"]["stub_due"] is (number % 5 == 0)
        if number % 5 == 0:
            refused = poker.refused("collect_rack", gauge="full")
            assert (refused.code, refused.clause) == ("stub_not_counted", "13:69F-35.9(e)")
            poker.tap("collect_rack", gauge="full", stub=43)
        else:
            poker.tap("collect_rack", gauge="full")
        poker.by_hand()
    assert poker.codes == []


@pytest.mark.rule("R-54")
def test_a_count_by_the_shuffler_of_this_deck_stands_for_the_stubs():
    poker = Poker(batches=ONE)
    poker.opened()
    poker.shuffle("A")
    for _ in range(7):
        poker.complete()
        poker.take()
        poker.to_shoe("A")
        poker.deal("1")
        poker.finish()
        assert poker.state.batches["A"].uncounted == 1
        poker.shuffle("A")
    assert poker.codes == []


@pytest.mark.rule("R-54")
def test_the_count_of_one_deck_says_nothing_of_the_other():
    poker = Poker()
    poker.first_shoe()
    poker.deal()
    poker.finish()
    assert poker.state.batches["A"].uncounted == 1
    poker.next_shoe("B")
    assert {b.id: b.uncounted for b in poker.state.batches.values()} == {"A": 1, "B": 0}


def test_a_deck_that_was_not_played_counts_no_round():
    poker = alone()
    for _ in range(6):
        poker.tap("shuffle_now", SUPERVISOR)
        while poker.stack:
            poker.draw()
        poker.event(ev.ShoeEmpty)
        poker.tap("collect_rack", gauge="full")
        poker.by_hand()
    assert poker.state.batches["A"].uncounted == 0


@pytest.mark.rule("R-54", "R-55")
def test_a_wrong_stub_takes_the_deck_off_the_table_and_no_shuffle_mends_it():
    poker = alone()
    poker.deal("1,2")
    poker.finish(stub=42)
    assert poker.codes == ["wrong_stub"]
    assert poker.refused("reshuffle_by_hand", SUPERVISOR, batch="A").code == "batch_unfit"
    fault = poker.state.faults[0].id
    assert poker.refused("clear", SUPERVISOR, fault=fault).code == "cause_remains"
    poker.tap("replace_batch", SUPERVISOR, batch="A")
    poker.tap("clear", SUPERVISOR, fault=fault)
    poker.prepare("A")
    poker.by_hand()
    assert poker.codes == []


@pytest.mark.rule("R-54", "R-55")
def test_a_stub_counted_wrong_before_the_settlement_makes_the_hands_void():
    poker = alone()
    poker.deal("1,2")
    assert poker.refused("count_stub", cards=43).code == "shoe_not_empty"
    while len(poker.stack) > 10:
        poker.draw()
    poker.event(ev.Lid, open=True)
    poker.event(ev.ShoeEmpty)
    assert "count_stub cards=N" in poker.expected
    poker.tap("count_stub", cards=42)
    assert poker.codes == ["wrong_stub"]
    refused = poker.refused("round_settled")
    assert (refused.code, refused.clause) == ("wrong_stub", "13:69F-35.9(e)")
    assert refused.expected == ("void_round reason=misdeal",)
    assert "void_round reason=misdeal" in poker.expected
    poker.tap("void_round", SUPERVISOR, reason="misdeal")
    poker.tap("collect_rack", gauge="full")
    assert poker.codes == ["wrong_stub"]


@pytest.mark.rule("R-54")
@pytest.mark.parametrize("source", [alone, by_hand])
def test_a_stub_counted_right_before_the_settlement_is_not_counted_again(source):
    poker = source()
    poker.tap("bets_closed", boxes="1,2")
    while poker.phase == "dealing":
        poker.draw()
    if poker.rules.shoe:
        poker.event(ev.ShoeEmpty)
    poker.tap("count_stub", cards=43)
    assert not any(text.startswith("count_stub") for text in poker.expected)
    poker.tap("round_settled")
    poker.tap("collect_rack", gauge="full")
    batch = poker.state.batches["A"]
    assert (batch.cards, batch.uncounted, poker.codes) == ({"rack": 52}, 0, [])


@pytest.mark.rule("R-54")
def test_a_stub_lifted_out_by_hand_is_counted():
    poker = alone()
    poker.deal("1,2")
    poker.tap("round_settled")
    poker.event(ev.Lid, open=True)
    poker.event(ev.ShoeEmpty)
    refused = poker.refused("collect_rack", gauge="full")
    assert (refused.code, refused.expected) == ("stub_not_counted", ("collect_rack gauge=full stub=N",))
    assert poker.refused("collect_rack", gauge="full", stub="x").code == "bad_argument"
    poker.tap("collect_rack", gauge="full", stub=43)
    assert poker.state.batches["A"].cards == {"rack": 52}
    assert poker.codes == []


def test_part_of_the_stub_through_the_shoe_and_part_by_hand():
    poker = alone()
    poker.deal("1,2")
    for _ in range(10):
        poker.draw()
    poker.tap("round_settled")
    poker.event(ev.ShoeEmpty)
    poker.tap("collect_rack", gauge="full", stub=43)
    assert poker.state.batches["A"].cards == {"rack": 52}
    assert poker.codes == []


def test_a_shoe_that_lasts_many_rounds_has_no_stub():
    t = Table()
    t.open_to_shoe()
    t.tap("shuffle_now", SUPERVISOR)
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    assert t.refused("collect_rack", gauge="full", stub=10).code == "bad_argument"


# --- stacks (R-53) ---


@pytest.fixture
def stacks() -> Poker:
    return alone(stacks=True)


@pytest.mark.rule("R-53")
def test_no_stack_comes_before_no_more_bets(stacks):
    refused = stacks.refused("dispense")
    assert (refused.code, refused.clause) == ("unexpected", "13:69F-20.9")
    stacks.tap("bets_closed", boxes="1,2")
    stacks.tap("dispense")
    command = stacks.effects.pop()
    assert (command.device, command.name, command.args) == ("shoe", "dispense", {"count": 3, "drawn": 0})


@pytest.mark.rule("R-53")
def test_one_stack_a_position_then_the_stub_and_the_next_only_when_the_last_is_whole(stacks):
    stacks.tap("bets_closed", boxes="1,2")
    asked = []
    while stacks.stack:
        stacks.tap("dispense")
        assert stacks.refused("dispense").code == "shoe_busy"
        command = stacks.end(Done({"count": 3}))
        asked.append((command.args["count"], command.args["drawn"]))
        assert stacks.refused("dispense").code == "shoe_busy"
        for _ in range(command.args["count"]):
            stacks.draw()
        if stacks.phase == "playing":
            stacks.tap("round_settled")
    assert stacks.refused("dispense").why == (
        "every card of the batch is out; "
        "the table waits for the shoe to be opened, and what it still holds to be laid in the rack"
    )
    stacks.event(ev.ShoeEmpty)
    assert awaited(stacks.rules, stacks.state) is None
    assert asked == [(3, 0), (3, 3), (3, 6), (43, 9)]
    assert stacks.refused("dispense").code == "shoe_empty"
    stacks.tap("collect_rack", gauge="full", stub=43)
    assert stacks.codes == []


@pytest.mark.rule("R-53")
def test_a_card_that_nobody_asked_for_is_a_supervisors_to_decide(stacks):
    stacks.tap("bets_closed", boxes="1,2")
    stacks.tap("dispense")
    stacks.end(Done({"count": 3}))
    for _ in range(3):
        stacks.draw()
    assert stacks.codes == []
    stacks.draw()
    assert stacks.codes == ["card_out_of_turn"]
    stacks.tap("void_round", SUPERVISOR, reason="misdeal")
    stacks.tap("dispense")
    assert stacks.effects[-1].args == {"count": 48, "drawn": 4}
    stacks.end(Done({"count": 48}))
    stacks.tap("clear", SUPERVISOR, fault=stacks.state.faults[0].id)
    while stacks.stack:
        stacks.draw()
    stacks.event(ev.ShoeEmpty)
    stacks.tap("collect_rack", gauge="full", stub=48)
    assert stacks.codes == []


def test_a_shoe_without_stacks_is_not_asked_for_one():
    poker = alone()
    poker.tap("bets_closed", boxes="1,2")
    assert poker.refused("dispense").code == "no_stacks"
    assert "dispense" not in poker.expected


@pytest.mark.parametrize("end", [NotSent("no session"), Refused("7", "jam")])
def test_a_stack_that_did_not_begin_is_asked_for_again(stacks, end):
    stacks.tap("bets_closed", boxes="1,2")
    stacks.tap("dispense")
    stacks.end(end)
    assert "dispense" in stacks.expected
    stacks.tap("dispense")
    assert stacks.effects[-1].args == {"count": 3, "drawn": 0}


@pytest.mark.rule("S9")
def test_a_stack_without_an_answer_is_asked_after_and_never_let_out_twice(stacks):
    stacks.tap("bets_closed", boxes="1,2")
    stacks.tap("dispense")
    stacks.end(Unknown("no answer"))
    assert stacks.effects[-1].name == "status"
    stacks.end(Done({"drawn": 3, "dispensing": False}))
    assert stacks.refused("dispense").code == "shoe_busy"
    for _ in range(3):
        stacks.draw()
    stacks.tap("dispense")
    assert stacks.effects[-1].args == {"count": 3, "drawn": 3}
    stacks.end(Unknown("no answer"))
    stacks.end(Done({"drawn": 3, "dispensing": False}))
    stacks.tap("dispense")
    assert stacks.effects[-1].args == {"count": 3, "drawn": 3}


def test_a_daemon_that_starts_again_asks_after_the_stack(stacks):
    stacks.tap("bets_closed", boxes="1,2")
    stacks.tap("dispense")
    stacks.boot("11" * 16)
    assert stacks.refused("dispense").code == "device_absent"
    same = {"boot": 1, "identity": {"serial": "SH1", "firmware": "1"}}
    stacks.event(ev.LinkUp, "shoe", **same, status={"drawn": 0, "empty": False, "dispensing": False})
    assert stacks.state.shoe.asked == 0
    stacks.end(NotSent("no session"))
    stacks.tap("dispense")
    assert stacks.effects[-1].args == {"count": 3, "drawn": 0}


def test_a_jam_stops_the_stack_and_the_rest_of_it_is_asked_for(stacks):
    stacks.tap("bets_closed", boxes="1,2")
    stacks.tap("dispense")
    stacks.end(Done({"count": 3}))
    stacks.draw()
    stacks.event(ev.Jam, place="exit")
    assert stacks.alarms == ["shoe_jam"]
    stacks.tap("dispense")
    assert stacks.effects[-1].args == {"count": 2, "drawn": 1}
    stacks.end(Done({"count": 2}))
    stacks.draw()
    assert stacks.state.faults[0].gone is not None


def test_an_open_lid_and_an_empty_shoe_stop_the_stack(stacks):
    stacks.tap("bets_closed", boxes="1,2")
    stacks.tap("dispense")
    stacks.end(Done({"count": 3}))
    stacks.event(ev.Lid, open=True)
    assert stacks.state.shoe.asked == 0
    stacks.event(ev.Lid, open=False)
    stacks.tap("dispense")
    stacks.end(Done({"count": 3}))
    stacks.event(ev.ShoeEmpty)
    assert stacks.refused("dispense").code == "shoe_empty"


def test_a_shoe_that_started_again_lets_out_no_stack_until_the_cards_are_counted(stacks):
    stacks.tap("bets_closed", boxes="1,2")
    stacks.tap("dispense")
    stacks.end(Done({"count": 3}))
    stacks.draw()
    same = {"boot": 2, "identity": {"serial": "SH1", "firmware": "1"}}
    stacks.event(ev.LinkUp, "shoe", **same, status={"drawn": 0, "empty": False, "dispensing": False})
    assert stacks.codes == ["shoe_rebooted"]
    refused = stacks.refused("dispense")
    assert (refused.code, refused.expected) == ("not_counted", ("void_round reason=other",))
    stacks.tap("void_round", SUPERVISOR, reason="other")
    stacks.tap("collect_rack", gauge="full", shoe_empty=True)
    assert stacks.codes == ["shoe_rebooted"]


# --- nobody plays, and the end ---


def clear_shoe(poker: Poker) -> None:
    while poker.stack:
        poker.draw()
    poker.event(ev.ShoeEmpty)
    poker.tap("collect_rack", gauge="full")


@pytest.mark.rule("S8", "R-52")
def test_an_idle_table_spreads_its_deck_and_goes_on_with_the_other():
    poker = Poker()
    poker.first_shoe()
    poker.tap("idle")
    clear_shoe(poker)
    assert poker.phase == "idle"
    poker.tap("spread", batch="A")
    poker.tap("resume")
    poker.complete()
    poker.take()
    poker.shuffle("A")
    poker.to_shoe("B")
    poker.deal("1")
    poker.finish()
    assert (poker.codes, poker.state.batches["A"].uncounted) == ([], 0)


@pytest.mark.rule("S10")
def test_a_table_closes_after_a_round_and_counts_both_decks():
    poker = Poker()
    poker.first_shoe()
    poker.deal("1")
    poker.tap("round_settled")
    poker.tap("close")
    clear_shoe(poker)
    assert poker.phase == "closing"
    poker.complete()
    poker.take()
    for batch in "AB":
        poker.tap("count_batch", batch=batch, cards=52)
    for device in ("shoe", "shuffler"):
        poker.tap("confirm_empty", SUPERVISOR, device=device)
    poker.tap("close", SUPERVISOR)
    assert (poker.phase, poker.codes) == ("closed", [])


@pytest.mark.rule("INC-6", "R-56")
def test_without_its_shuffler_the_decks_are_shuffled_by_hand():
    poker = Poker(cut=CutPolicy.HAND_SHUFFLED)
    poker.boot()
    poker.links_up()
    poker.tap("out_of_service", SUPERVISOR, device="shuffler")
    poker.tap("confirm_empty", SUPERVISOR, device="shuffler")
    poker.tap("open", mode="manual-shoe")
    for batch in "AB":
        poker.prepare(batch)
    for batch in "AB":
        poker.tap("reshuffle_by_hand", SUPERVISOR, batch=batch)
        assert poker.phase == "cut_due"
        poker.to_shoe(batch)
        poker.deal("1,2")
        poker.finish()
    assert poker.codes == []


# --- law 8 ---


def every_state() -> list[tuple[TableRules, TableState]]:
    """States of a few tables on their way through a round."""
    met: list[tuple[TableRules, TableState]] = []
    for poker in (alone(stacks=True), by_hand()):
        states = [poker.state]
        poker.tap("bets_closed", boxes="1,2")
        states.append(poker.state)
        while poker.phase == "dealing":
            poker.tap("dispense")
            poker.end(Done({"count": 3}))
            for _ in range(3):
                poker.draw()
            states.append(poker.state)
        poker.tap("round_settled")
        states.append(poker.state)
        met += [(poker.rules, state) for state in states]
    both = Poker()
    both.first_shoe()
    both.deal()
    both.finish()
    return [*met, (both.rules, both.state)]


def test_the_machine_allows_a_tap_exactly_when_the_rules_accept_it():
    seen = set()
    examples: dict[str, list[dict[str, Any]]] = {
        **EXAMPLES,
        "collect_rack": [{"gauge": "full"}, {"gauge": "full", "stub": 43}],
        "void_round": [{"reason": "face_up"}, {"reason": "misdeal"}],
    }
    for rules, state in every_state():
        machine = TableMachine(rules, state)
        for event in TAPS:
            for args in examples.get(event, [{}]):
                tap = OperatorEvent(event, args, roles=frozenset(Role))
                by_rules = accepts(rules, state, tap)
                assert machine.may(state, tap) is by_rules, (state.phase, event, args)
                seen |= {event} if by_rules else set()
        taps = expected_taps(rules, state)
        assert all(accepts(rules, state, tap) for tap in taps.values())
    assert seen >= {"bets_closed", "dispense", "card_face_up", "round_settled", "collect_rack", "void_round"}
