"""A table with real cards beside it: after every step the core's counts are held against where they lie."""

from __future__ import annotations

from collections import Counter
from typing import Any

from controller.table.checkpoint import checkpoint, restore
from controller.table.draft import Decision
from controller.table.inputs import Input, Refusal, Role
from controller.table.phases import Phase
from controller.table.round import FACE_UP
from controller.table.state import Place
from controller.table.view import snapshot
from devices import events as ev
from devices.events import DECK
from tests.support.table import Table

SUPERVISOR = frozenset({Role.SUPERVISOR})


class Felt(Table):
    """The batch in play by the card. `stack` is what lies in the shoe, or in hand while it is shuffled."""

    def __init__(self, **table: Any) -> None:
        super().__init__(**table)
        self.lying: dict[Place, list[str]] = {}

    def give(self, given: Input) -> Decision | Refusal:
        found = super().give(given)
        self.holds()
        return found

    def holds(self) -> None:
        """Every card of both batches is somewhere, and what nobody may see is in no answer."""
        for batch in self.state.batches.values():
            assert sum(batch.cards.values()) in (0, self.size)
        shown = (snapshot(self.rules, self.state)["round"] or {"cards": []})["cards"]
        cards = self.state.round.cards if self.state.round else ()
        assert [c["card"] for c in shown] == [c.card if c.seen else None for c in cards]

    def counted(self) -> None:
        """The same multiset as ever, and as many at each place as the core says."""
        batch = self.state.shoe.batch
        if batch is None:
            return
        held = self.state.batches[batch]
        inside = Place.IN_HAND if held.at(Place.IN_HAND) else Place.SHOE
        assert held.at(inside) == len(self.stack)
        for place, cards in self.lying.items():
            assert held.at(place) == len(cards), place
        everything = Counter(self.stack) + Counter(card for lie in self.lying.values() for card in lie)
        assert everything == Counter(dict.fromkeys(DECK, self.rules.decks))
        drawn = Counter(self.stack) + Counter(self.state.shoe.drawn)
        if inside is Place.SHOE:
            assert drawn == everything, "what is not in the shoe was drawn"

    def cut_and_load(self, batch: str, offer: str | None = None) -> None:
        self.lying = {}
        super().cut_and_load(batch, offer)
        self.lying = {Place.TABLE: [], Place.RACK: [], Place.ASIDE: []}

    def draw(self, **changes: Any) -> str:
        card = super().draw(**changes)
        fact = next(f for f in reversed(self.facts) if f.kind == "card_drawn")
        to = fact.data["to"]
        rack = Place.ASIDE if fact.data.get("aside") else Place.RACK
        self.lying[rack if to in ("burn", "stub", FACE_UP) else Place.TABLE].append(card)
        self.counted()
        return card

    def tap(self, event: str, roles: frozenset[Role] = SUPERVISOR, who: str = "ann", **args: Any) -> Decision:
        found = super().tap(event, roles, who, **args)
        lying = self.lying
        if event in ("round_settled", "void_round"):
            lying[Place.RACK] += lying[Place.TABLE]
            lying[Place.TABLE] = []
        elif event == "drawn_in_error" and args.get("burned"):
            lying[Place.RACK].append(lying[Place.TABLE].pop())
        elif event in ("reshuffle_by_hand", "bart_carter"):
            self.stack += lying[Place.RACK]
            lying[Place.RACK] = []
            self.random.shuffle(self.stack)
        if lying:
            self.counted()
        return found

    def restart(self) -> None:
        """The same table as a checkpoint has it."""
        before = self.state
        self.state = restore(checkpoint(self.state))
        assert self.state == before
        self.boot("22" * 16)
        self.links_up()

    @property
    def places(self) -> list[str]:
        """Where the cards of the round lie, as the core has it."""
        assert self.state.round is not None
        return [card.to for card in self.state.round.cards]

    @property
    def hidden(self) -> list[int]:
        """Which of them, first is 0, the table shows to nobody."""
        assert self.state.round is not None
        return [i for i, card in enumerate(self.state.round.cards) if not card.seen]

    def until_dry(self, left: int) -> None:
        """Play on until `left` cards lie in the shoe, between two rounds."""
        assert self.state.phase is Phase.BETWEEN_ROUNDS
        self.play_round("1", extra=len(self.stack) - left - 4)

    def runs_dry(self) -> None:
        """Draw what is left; the shoe then says that it is empty."""
        while self.stack:
            self.draw()
        self.event(ev.ShoeEmpty)
