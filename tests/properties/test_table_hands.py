"""Rounds played hand by hand in any order of taps and cards, right and wrong."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.table import hands
from controller.table.blackjack import Ties, score
from controller.table.draft import Decision
from controller.table.inputs import OperatorEvent, Refusal, Role
from controller.table.machine import TableMachine
from controller.table.view import snapshot
from devices.events import DECK
from tests.support.felt_hands import Played

CARD = st.sampled_from(DECK)
BOX = st.sampled_from([None, "1", "2", "1/1", "1/2", "2/1", "3"])
STEP = st.one_of(CARD, st.tuples(st.sampled_from(hands.TAPS), BOX))
"""A card that comes out of the shoe, or a tap."""
PAIRS = st.lists(CARD, min_size=6, max_size=6) | CARD.map(lambda c: [c, "9D", "6C", c, "8D", "TC"])
NIGHTS = (None, *Ties)


@cache
def between_rounds(night: Ties | None) -> Played:
    return Played(night)


def table(night: Ties | None) -> Played:
    base = between_rounds(night)
    t = copy(base)
    t.facts, t.counts, t.stack = [], dict(base.counts), list(base.stack)
    t.machine = TableMachine(t.rules, t.state)
    return t


def outcome(t: Played, step: Any) -> Any:
    """What everybody can see of a step."""
    since = len(t.facts)
    if isinstance(step, str):
        t.draw(card=step)
        return [(f.kind, f.data) for f in t.facts[since:]], snapshot(t.rules, t.state)
    event, box = step
    args = {} if box is None else {"box": box}
    found = t.give(OperatorEvent(event, args, "ann", frozenset({Role.DEALER})))
    said = found if isinstance(found, Refusal) else [(f.kind, f.data) for f in found.facts]
    return said, snapshot(t.rules, t.state)


@pytest.mark.rule("R-30")
@settings(max_examples=50)
@given(st.sampled_from(NIGHTS), PAIRS, CARD, st.lists(STEP, max_size=14))
def test_any_taps_and_cards_of_a_round(night, deal, other_hole, steps):
    t, twin = table(night), table(night)
    t.round(" ".join(deal))
    twin.round(" ".join([*deal[:5], other_hole]))
    for step in steps:
        assert outcome(t, step) == outcome(twin, step), "law 7: the hole card is another one"
        holds(t)
    followed = bool(t.state.round and t.state.round.hands)
    assert isinstance(t.give(OperatorEvent("round_settled", {}, "ann")), Decision)
    assert (t.state.settlement is not None) is followed
    if followed and "why" not in t.settled:
        settles(t)


def holds(t: Played) -> None:
    """Each hand has the cards that it called for, and no other; whose turn it is goes from the right."""
    round_ = t.state.round
    assert round_ is not None
    lost, over = hands.lost_track(t.state), [hands.is_over(round_, hand) for hand in hands.of(round_)]
    for hand in round_.hands:
        assert len(hands.held(round_, hand)) <= hand.wants
    if not lost:
        behind = hands.of(round_)[over.index(False) + 1 :] if False in over else ()
        ends = ("", hands.SURRENDERED, hands.ONE_CARD)
        assert all(hand.wants == 2 and hand.end in ends for hand in behind), "none behind the turn plays"
        assert not [card for card in round_.cards[6:] if card.to == "dealer"] or all(over)
    assert len({hand.place for hand in round_.hands}) == len(round_.hands)


def settles(t: Played) -> None:
    told = t.settled
    for hand in told["hands"]:
        assert (hand["odds"] is None) is (hand["outcome"] != "win")
        if hand["total"] > 21:
            assert hand["outcome"] == "lose"
    if told["dealer"] is None:
        assert all(hand["total"] > 21 for hand in told["hands"])
    else:
        assert told["dealer"]["total"] <= score(["TS", "6S", "TD"])
