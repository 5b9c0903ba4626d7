"""The other modes at full size, over random orders of taps, device events, faults and crashes."""

from functools import cache

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from controller.table.phases import IN_ROUND, RESHUFFLING, Phase
from controller.table.profiles import CardDown
from tests.properties.test_table_play import AnyOrder, in_phase, play
from tests.support.continuous import CONTINUOUS
from tests.support.full_size import FullSize
from tests.support.hands import hand_rules, night_rules, night_shoe
from tests.support.table import table_rules

STARTS = ("closed", "open", "shoe", "shoe", "shoe", "round", "rack_full")


@cache
def started(kind: type["AnyMode"], start: str) -> FullSize:
    """A table from which a run goes on."""
    t = FullSize(kind.table)
    t.restart()
    t.links()
    for device in t.rules.devices:
        t.tap("inspect", device=device)
    if start == "closed":
        return t
    t.tap("open")
    for batch in t.rules.batches:
        t.prepare(batch.id)
    if start == "open":
        return t
    if not t.rules.alone:
        t.shuffle("A")
    t.swap()
    assert t.state.phase is Phase.BETWEEN_ROUNDS
    if start == "round":
        t.tap("bets_closed", boxes="1,2")
        t.cards(4)
    if start == "rack_full":
        t.round("1,2")
        assert t.tap("shuffle_now") or t.tap("close") or t.state.phase is Phase.SHOE_END
        t.end_of_shoe()
        assert t.state.phase in (Phase.RACK_FULL, Phase.CLOSING)
    return t


class AnyMode(AnyOrder):
    """As the table with two batches, and what people tell where nobody counts."""

    table = night_shoe(decks=2, shuffler="shuffler", player_card_down=CardDown.SECOND, cutting_card=True)

    @initialize(start=st.sampled_from(STARTS))
    def begin(self, start):
        self.t = started(type(self), start).again()

    @in_phase(*IN_ROUND)
    @rule(event=st.sampled_from(["round_settled", "reshuffle_by_hand"]), cards=st.integers(0, 104))
    def a_number_is_told(self, event, cards):
        self.t.tap(event, cards=cards)

    @in_phase(Phase.OPENING, Phase.RACK_FULL)
    @rule()
    def the_batch_is_shuffled_by_hand(self):
        if self.t.tap("reshuffle_by_hand", batch="A"):
            self.t.cut_and_load()

    @in_phase(*RESHUFFLING)
    @rule()
    def the_rack_goes_on(self):
        self.t.tap("cut", position=1)
        self.t.load(self.t.state.shoe.batch)
        self.t.burn()

    @in_phase(Phase.BETWEEN_ROUNDS, Phase.PLAYING)
    @rule(name=st.sampled_from(["used cards back", "one used card back", "used cards back too early"]))
    def used_cards_go_back(self, name):
        moves = {move.name: move for move in self.t.may(1)}
        if name in moves:
            self.t.make(moves[name])


class NightByHand(AnyMode):
    table = night_rules(decks=1)


class HandDealt(AnyMode):
    table = hand_rules(decks=2, settle_first=True, reader="reader")


class Continuous(AnyMode):
    table = table_rules(**{**CONTINUOUS, "decks": 2, "reader": "reader"})


class PerRound(AnyMode):
    table = table_rules(mode="deck-per-round", game="three-card-poker", burn="never")


class InStacks(AnyMode):
    table = table_rules(mode="deck-per-round", game="asia-poker", burn="never", stacks=True, boxes=6)


MODES = {
    "a night, shoe and shuffler": (AnyMode, 15),
    "a night from the hand": (NightByHand, 15),
    "dealt from the hand": (HandDealt, 15),
    "a continuous shuffler": (Continuous, 15),
    "one deck a round": (PerRound, 15),
    "one deck a round in stacks": (InStacks, 15),
}


@pytest.mark.parametrize("name", MODES)
def test_any_order(name):
    play(*MODES[name], derandomize=True)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", MODES)
def test_any_order_for_long(name):
    machine, examples = MODES[name]
    play(machine, 60 * examples, steps=80)
