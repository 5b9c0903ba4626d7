"""A round that was interrupted, from wherever it stands: it is finished, or a supervisor voids it."""

from __future__ import annotations

from itertools import groupby

from simulators.models.cards import Card
from simulators.rig.acts import SETTLE_S
from simulators.rig.blackjack import dealer_draws, total
from simulators.rig.campaign.remedies import RESHUFFLE, SUPERVISOR, Remedies
from simulators.rig.dealer_poker import DeckPerRound
from simulators.rig.referee import BURN
from simulators.rig.steps import Pause, Script, Tap


class Rounds(Remedies):
    """`round` is the script for whatever of it is still to be done."""

    def round(self) -> Script:
        """Finish the round in play; a supervisor voids what cannot be finished."""
        phase, felt = self.status["phase"], self.felt
        boxes = (self.status["round"] or {}).get("boxes", self.acts.last_boxes)
        places = [f"box {n}" for n in boxes]
        order = [*places, "dealer", *places, "dealer"]
        if self.rules.one_deck is not None:
            order = list(self.rules.one_deck.order(boxes, stacked=self.rules.stacks))
        if self.tried["round"] > 1 or (felt.shoe.empty and phase != "playing" and not self._dry_helps()):
            yield from self.void()
        elif phase in RESHUFFLE:
            yield from self._reshuffle()
        elif phase == "round_burn":
            yield from self.acts.burn()
        elif phase == "side_wagers":
            yield Pause(SETTLE_S)
            yield Tap("side_wagers_settled")
        elif phase in ("dealing", "hole_card") and felt.laid() < len(order):
            yield from self._deal(order)
        elif phase == "playing":
            yield from self._settle()
        else:
            yield from self.void()

    def _dry_helps(self) -> bool:
        """Whether the rack of a shoe that ran out may be shuffled for the round."""
        return not self.rules.continuous and self.rules.one_deck is None

    def _deal(self, order: list[str]) -> Script:
        if not self.rules.stacks:
            yield from self.acts.draw(self._next(order))
            return
        for place, stack in groupby(order[self.felt.laid() :]):
            yield from self.poker.stack(place, len(list(stack)))

    def _next(self, order: list[str]) -> str:
        """Whose card of the deal comes next, by those that lie there."""
        if self.status["phase"] == "hole_card":
            return "dealer"
        lie = {place: len(items) for place, items in self.felt.layout.places.items()}
        for place in order:
            if not lie[place]:
                return place
            lie[place] -= 1
        return "dealer"

    def _settle(self) -> Script:
        own = [item.face for item in self.felt.layout.places["dealer"] if isinstance(item, Card)]
        players = [
            [item.face for item in items if isinstance(item, Card)]
            for place, items in self.felt.layout.places.items()
            if place.startswith("box") and items
        ]
        bust = all(total(hand)[0] > 21 for hand in players)
        if self.rules.one_deck is None and not self.tried["round"]:
            while (
                (self.status["round"]["owed"] or not bust) and dealer_draws(own) and not self.felt.shoe.empty
            ):
                face = yield from self.acts.draw("dealer")
                if face is None:
                    return
                own.append(face)
        hands = self.status["round"]["dealer_hands_in_all"] - self.status["round"]["dealer_hands"]
        for _ in range(1, hands):
            yield Tap("dealer_hand_settled")
        yield Pause(SETTLE_S)
        self.tried["round"] += 1
        yield Tap("round_settled", {"cards": self.felt.laid()} if self.rules.by_eye else {})
        self.tried["round"] = 0
        self.felt.pick_up()

    @property
    def poker(self) -> DeckPerRound:
        assert isinstance(self.acts, DeckPerRound)
        return self.acts

    def void(self) -> Script:
        reasons = [t for t in self.look()["expected"] if t.startswith("void_round") and "|" not in t]
        self.tried["round"] += 1
        yield Tap.of(reasons[0]) if reasons else Tap("void_round", {"reason": "misdeal"}, SUPERVISOR)
        self.tried["round"] = 0
        self.felt.pick_up()

    def _reshuffle(self) -> Script:
        """R-35, from where it was interrupted."""
        batch, acts = self.view.batches[-1], self.acts
        if self.status["phase"] == "reshuffle_cut":
            cards = len(self.felt.piles[batch])
            least = min(10, cards // 2)
            position = acts.players.randint(least, cards - least)
            yield Tap("cut", {"position": position})
            self.felt.cut(batch, position)
        elif self.status["phase"] == "reshuffle_load":
            yield Tap(acts.load_tap, {"batch": batch})
            self.felt.load_shoe(batch, again=True)
        else:
            yield from acts.draw(BURN)
