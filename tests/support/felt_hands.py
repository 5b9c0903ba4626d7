"""A core whose round is played hand by hand, with the cards that a test names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from controller.table.blackjack import Ties
from controller.table.inputs import Fact, Refusal
from controller.table.machine import TableMachine
from devices import events as ev
from tests.support.table import Table, table_rules

DECKS = 6


class Played(Table):
    """Between two rounds of a shoe of six decks; `night` is the tie option of a casino night."""

    def __init__(self, night: Ties | None = None, **changes: Any) -> None:
        super().__init__(table_rules(decks=DECKS))
        self.open_to_shoe()
        if night is not None:
            changes |= {"profile": "nj-casino-night", "ties": night}
        self.rules = replace(self.rules, **changes)
        self.machine = TableMachine(self.rules, self.state)

    def cards(self, faces: str) -> None:
        for face in faces.split():
            self.draw(card=face)

    def round(self, faces: str, boxes: str = "1,2") -> None:
        """Bets closed, and the initial deal in its order, the hole card last."""
        self.tap("bets_closed", boxes=boxes)
        self.cards(faces)
        assert self.state.phase.value == "playing"

    def no(self, event: str, **args: Any) -> tuple[str, str | None]:
        """Code and clause of a refusal."""
        refusal: Refusal = self.refused(event, **args)
        return refusal.code, refusal.clause

    @property
    def settled(self) -> dict[str, Any]:
        """What the last round's settlement says."""
        return dict(next(fact for fact in reversed(self.facts) if fact.kind == "settlement").data)

    @property
    def won(self) -> dict[str, str]:
        """Each hand with its outcome and, when it wins, the odds."""
        return {h["hand"]: " ".join(filter(None, (h["outcome"], h["odds"]))) for h in self.settled["hands"]}

    @property
    def places(self) -> list[str]:
        """Where the cards of the round in play lie."""
        assert self.state.round is not None
        return [card.to for card in self.state.round.cards]

    def kinds(self, since: int) -> list[str]:
        facts: list[Fact] = self.facts[since:]
        return [fact.kind for fact in facts]


def with_reader() -> Played:
    """One with a hole-card reader."""
    t = Played(reader="reader")
    t.counts["reader"] = 0
    t.event(ev.LinkUp, "reader", boot=1, identity={"serial": "RD1", "firmware": "1"}, status={})
    return t
