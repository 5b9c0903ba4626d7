"""A shoe played hand by hand with physical cards: what the table tells of each hand is what lies there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from controller.table.profiles import BatchRules, TableRules
from simulators.rig import dealer
from simulators.rig.blackjack import player_draws, total
from simulators.rig.dealer_two_batch import TwoBatches
from simulators.rig.stepped import Stepped
from simulators.rig.steps import Script, Tap

BATCHES = (BatchRules("A", "red"), BatchRules("B", "blue"))


class HandByHand(TwoBatches):
    """Taps every choice before its card. Who has 10 or 11 doubles."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.hands: dict[str, list[str]] = {}
        self.doubled: set[str] = set()
        self.ended: list[dict[str, str] | None] = []

    def player(self, place: str, hand: list[str], up: str) -> Script:
        self.hands[place] = hand
        if total(hand)[0] in (10, 11):
            yield Tap("double", {"box": place.removeprefix("box ")})
            hand.append((yield from self.must_draw(place)))
            self.doubled.add(place)
            return
        while total(hand)[0] < 21 and player_draws(hand, up):
            yield Tap("hit", {"box": place.removeprefix("box ")})
            hand.append((yield from self.must_draw(place)))
        if total(hand)[0] < 21:
            yield Tap("stand")

    def own_hand(self, hand: list[str], *, all_bust: bool) -> Script:
        yield from super().own_hand(hand, all_bust=all_bust)
        if not all(map(natural_, self.hands.values())):  # then there is nothing to tap
            self.ended.append(self.by_the_cards(hand))
        self.hands, self.doubled = {}, set()

    def by_the_cards(self, mine: list[str]) -> dict[str, str] | None:
        """How each hand ends, read anew from the texts; None where they were not at hand."""
        natural = natural_(mine)
        out = {}
        for place, hand in self.hands.items():
            points, theirs = total(hand)[0], total(mine)[0]
            if natural and (place in self.doubled or (len(hand) == 5 and points == 21)):
                return None
            if points > 21:
                out[place] = "lose"
            elif natural_(hand):
                out[place] = "push" if natural else "win 3 to 2"
            elif natural or points < theirs <= 21:
                out[place] = "lose"
            elif points == theirs:
                out[place] = "push"
            else:
                out[place] = "win 2 to 1" if points == 21 and len(hand) == 5 else "win 1 to 1"
        return out


def natural_(hand: list[str]) -> bool:
    return len(hand) == 2 and total(hand)[0] == 21


def told(data: Mapping[str, Any]) -> dict[str, str] | None:
    if "why" in data:
        return None
    return {h["hand"]: " ".join(filter(None, (h["outcome"], h["odds"]))) for h in data["hands"]}


@pytest.mark.rule("R-30", "13:69F-2.3", "13:69F-2.12")
def test_each_round_is_settled_as_its_cards_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dealer.SCRIPTS, "two-batch-shoe", HandByHand)
    world = Stepped(TableRules("BJ-07", 7, 6, BATCHES), "hands", 1)
    world.run(lambda: world.view.phase == "shoe_end")
    acts = world.dealer.acts
    assert isinstance(acts, HandByHand)
    found = [told(e.fact.data) for e in world.journal.entries() if e.fact.kind == "settlement"]
    assert found == acts.ended
    ends = Counter(end for round_ in found if round_ for end in round_.values())
    assert {*ends} >= {"win 1 to 1", "lose", "push"}
    assert len(found) > 10
