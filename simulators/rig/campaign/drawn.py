"""Cards that left a table's shoe against the facts about them: each is one, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.record import Entry
from simulators.rig.campaign.excuses import ADMITS_LOSS, GAPS, LOOK_AHEAD
from simulators.rig.referee import Laid
from simulators.rig.stepped import Stepped

Told = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Compared:
    """Cards without a fact, facts without a card, and each `open_` fact about a card that lies face down.

    `admitted`: the controller says itself that it may have missed cards.
    """

    lost: int
    twice: int
    open_: list[tuple[int, Laid]]
    admitted: bool


class Drawn:
    """Take every fact in order; `compare` when all that left the shoe is told."""

    def __init__(self, world: Stepped) -> None:
        self._world = world
        self._facts: list[tuple[int, Told, bool]] = []
        self._cards: list[tuple[int, Told]] = []
        self._happenings = self._places = 0
        self._admits = False
        self._uncertain: set[str] = set()

    def take(self, entry: Entry) -> None:
        fact = entry.fact
        if fact.source == self._world.rules.shoe and fact.kind == "card_drawn":
            self._facts.append((entry.seq, fact.whole, fact.data.get("card") is not None))
        elif fact.source == self._world.rules.shoe and fact.kind in GAPS:
            self._admits = True
        elif fact.kind == "fault_latched" and fact.data["code"] in ADMITS_LOSS:
            self._uncertain.add(fact.data["fault"])
        elif fact.kind == "clear":
            self._uncertain.discard(fact.data["fault"])
        self._admits |= bool(self._uncertain)

    def compare(self, *, final: bool) -> Compared:
        """What was taken since the last time; cards of a shoe that went for good are not waited for."""
        self._see()
        lost, twice, open_ = 0, 0, list[tuple[int, Laid]]()
        for seq, told, is_open in self._facts:
            ahead = self._cards[:LOOK_AHEAD]
            skip = next((n for n, (_, card) in enumerate(ahead) if _same(card, told)), None)
            if skip is None:
                twice += 1
                continue
            lost += skip
            at, card = self._cards[skip]
            del self._cards[: skip + 1]
            laid = self._laid(at, card["face"])
            if is_open and laid is not None and laid.down and not card["up"]:
                open_.append((seq, laid))
        self._facts.clear()
        if self._cards and not (final and self._world.rules.shoe not in self._world.view.up):
            lost += len(self._cards)
            self._cards.clear()
        admitted, self._admits = self._admits, bool(self._uncertain)
        return Compared(lost, twice, open_, admitted)

    def _see(self) -> None:
        """Note the cards that left since the last time."""
        happenings = self._world.felt.shoe.happenings
        for at in range(self._happenings, len(happenings)):
            if happenings[at].kind == "drawn":
                self._cards.append((at, happenings[at].data))
        self._happenings = len(happenings)

    def _laid(self, at: int, face: str | None) -> Laid | None:
        """Where hands laid the card that the shoe saw as its happening `at`, if they took it."""
        drawn_to, first = self._world.felt.referee.drawn_to, self._places
        while first < len(drawn_to) and drawn_to[first].moment <= at:
            first += 1
        self._places = first
        for index in range(first, min(first + LOOK_AHEAD, len(drawn_to))):
            if face in (None, drawn_to[index].card.face):
                self._places = index + 1
                return drawn_to[index]
        return None


def _same(card: Told, told: Told) -> bool:
    """Whether a fact tells this card; a back that the device does not see is no difference."""
    return card["face"] == told.get("card") and told.get("back") in (None, card["back"])
