"""One deck in which much goes wrong: cards face up, in error, skipped, a void round, a dry shoe (law 7).

No output may tell burn and hole cards, what came after a card that nobody can place, the cards of a void
round, or the order in which the rack was shuffled by hand.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

from simulators.models.cards import Card, CuttingCard, Stack
from simulators.rig.referee import BURN, STUB
from tests.support.twice import Run, turned


class Irregular(Run):
    """`later` are the unseen cards of the shuffled rack, counted from its first card."""

    later: list[int]
    again: list[str]
    loaded: int | None

    locked = False  # cards are drawn too early here

    def play(self) -> None:
        self.later, self.again, self.loaded = [], [], None
        self.draw(BURN, unseen=True)
        self.face_up_and_drawn_in_error()
        self.dealers_second_card_skipped()
        self.dealers_first_card_skipped()
        self.void()
        self.run_dry()
        while not self.world.felt.shoe.empty:
            self.draw(STUB, unseen=True)

    # Rounds

    def face_up_and_drawn_in_error(self) -> None:
        self.tap("bets_closed", boxes="1,3")
        self.world.felt.shoe.turn_face_up(0)
        self.draw(STUB)
        self.draw("box 1", "box 3", "dealer", "box 1", "box 3")
        self.draw("dealer", unseen=True)  # before the side wagers are settled: a stray card, the hole card
        self.tap("drawn_in_error", exposed=False)
        self.tap("side_wagers_settled")
        self.draw("box 1", "box 3", unseen=True)
        self.refused()
        self.settled()
        (fault,) = self.world.controller.view("faults")
        self.tap("clear", fault=fault["id"])

    def dealers_second_card_skipped(self) -> None:
        self.tap("bets_closed", boxes="2,4")
        self.draw("box 2", "box 4", "dealer", "box 2", "box 4")
        self.tap("side_wagers_settled")
        self.tap("dealer_skipped", card="second")
        self.draw("box 2", "box 4", unseen=True)
        self.settled()

    def dealers_first_card_skipped(self) -> None:
        self.tap("bets_closed", boxes="1,2")
        self.draw("box 1", "box 2", "box 1", "box 2")
        self.tap("dealer_skipped", card="first")
        self.draw("dealer")
        self.tap("side_wagers_settled")
        self.draw("dealer", unseen=True)
        self.draw("box 1")
        self.settled()

    def void(self) -> None:
        self.deal("5")
        self.tap("void_round", reason="misdeal")
        self.world.felt.pick_up()

    def run_dry(self) -> None:
        """The hole card of this round stays on the layout, so that both runs shuffle the same rack."""
        self.deal("6", unseen=False)
        while not self.world.felt.shoe.empty:
            self.draw("box 6")
        self.refused()
        self.tap("reshuffle_by_hand")
        rack = [item for item in self.world.felt.rack.take().contents() if isinstance(item, Card)]
        self.tap("cut", position=len(rack) // 2)
        self.tap("load_shoe", batch="A")
        shoe = self.world.felt.shoe
        shoe.open_lid()
        shoe.load(Stack(self.shuffled(rack)))
        shoe.close_lid()
        self.loaded = self.world.felt.referee.cards
        self.draw(BURN, unseen=True)
        self.draw("box 6", "dealer")
        self.settled()

    def shuffled(self, rack: list[Card]) -> list[Card]:
        """The twin's rack comes in the same order, but for the cards that nobody will see."""
        if not isinstance(self.twin, Irregular):
            Random(f"{self.seed}/by hand").shuffle(rack)
            self.again = [card.face for card in rack]
            return rack
        faces = list(self.twin.again)
        for index, face in zip(
            self.twin.later, turned([faces[index] for index in self.twin.later]), strict=True
        ):
            faces[index] = face
        by_face = {card.face: card for card in rack}
        return [by_face[face] for face in faces]

    # Acts

    def deal(self, number: str, *, unseen: bool = True) -> None:
        self.tap("bets_closed", boxes=number)
        place = f"box {number}"
        self.draw(place, "dealer", place)
        self.tap("side_wagers_settled")
        self.draw("dealer", unseen=unseen)

    def settled(self) -> None:
        self.tap("round_settled")
        self.world.felt.pick_up()

    def draw(self, *places: str, unseen: bool = False) -> None:
        for place in places:
            item = self.world.felt.draw(place)
            self.wait()
            if isinstance(item, CuttingCard):
                if self.world.view.phase == "playing":
                    self.tap("cutting_card_at", box=place.removeprefix("box "))
                self.draw(place, unseen=unseen)
            elif unseen:
                drawn = self.world.felt.referee.cards - 1
                if self.loaded is None:
                    self.unseen.append(drawn)
                else:
                    self.later.append(drawn - self.loaded)

    def tap(self, event: str, **args: Any) -> None:
        answer = self.world.tap(event, **args)
        assert answer["ok"], (event, args, answer)
        self.lines.append(json.dumps(answer))
        self.wait()

    def wait(self) -> None:
        """Until all that the machines saw is journaled."""
        self.world.settle(0.1)
        while not self.world.dealer.settled():
            self.world.settle(0.1)
