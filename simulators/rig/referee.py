"""The rig's own judge: it knows where every physical card is and never asks the controller what to think."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from controller.table.profiles import Burn
from simulators.models.cards import Card, CuttingCard, Item
from simulators.models.table import CardsAstray, Holder, World

BURN = "burn"
STUB = "stub"
FACE_UP = "face up"
ASIDE = (BURN, STUB, FACE_UP)
"""Places of the felt that are no hands: burn card, rest of a shoe and a card face up in it go to the rack."""


@dataclass(frozen=True, slots=True)
class Laid:
    """A card that left the shoe: the `nth` of its hand in this round.

    At that `moment` so many things had happened to the shoe.
    """

    card: Card
    place: str
    nth: int
    moment: int

    @property
    def down(self) -> bool:
        """Whether it lies face down: burned, of the stub, or the dealer's second."""
        return self.place in (BURN, STUB) or (self.place == "dealer" and self.nth == 2)


class Referee:
    """Counts what must never happen. `violations` are sentences, one a shoe and kind, oldest first.

    `alternates`: no batch may be in two shoes in a row. `cuts`: each is cut. `goes_on`: the rack that was
    shuffled in a round is dealt to its end, where elsewhere it finishes that round alone (R-35, casino nights
    apart). A kind that is `excused` when it comes is no violation. `drawn_to` is where each card went;
    `counts` is how often the controller's belief was compared.
    """

    def __init__(
        self,
        world: World,
        batch_of: Mapping[Card, str],
        *,
        plays_first_card: bool,
        alternates: bool = True,
        cuts: bool = True,
        goes_on: bool = False,
        burn: Burn = Burn.EACH_LOAD,
    ) -> None:
        self.violations: list[str] = []
        self.shoes: list[str] = []
        self.cards = 0
        self.counts = 0
        self.drawn_to: list[Laid] = []
        self.moment: Callable[[], int] = lambda: 0
        self.excused: Callable[[str], bool] = lambda _kind: False
        self._world = world
        self._batch_of = batch_of
        self._plays_first_card, self._alternates, self._burn = plays_first_card, alternates, burn
        self._cuts, self._goes_on = cuts, goes_on
        self._told: set[tuple[int, str]] = set()
        self._shuffled: set[Card] = set()
        self._cut: set[Item] = set()
        self._burned = True
        self._in_round = False
        self._dealt = 0
        self._closing = ""
        self._hands: Counter[str] = Counter()
        self._looked = False

    def violation(self, kind: str, detail: str) -> None:
        if self.excused(kind):
            return
        key = (len(self.shoes), kind)
        if key not in self._told:
            self._told.add(key)
            self.violations.append(f"shoe {len(self.shoes)}: {kind}: {detail}")

    # What hands do

    def released(self, items: Iterable[Item], mode: str) -> None:
        """A completed cycle's cards were taken from the tray."""
        if mode == "shuffle":
            self._shuffled.update(item for item in items if isinstance(item, Card))

    def shuffled(self, cards: Iterable[Card]) -> None:
        """These were shuffled by hand."""
        self._shuffled.update(cards)

    def cut(self, items: Iterable[Item]) -> None:
        self._cut.update(items)

    def shoe_loaded(self, items: Iterable[Item], *, again: bool = False) -> None:
        """A batch was put into the shoe; `again` when it is the rack of the one whose round is in play."""
        names = self._names(items)
        if len(names) != 1:
            self.violation("mixed batches", f"{' and '.join(names) or 'nothing'} loaded into the shoe")
        if again:
            if any(self._world.places["shoe"].contents()):
                self.violation("discards used again", "the rack was loaded although cards were left to deal")
            self._closing = self._closing if self._goes_on else "this"
            if names != self.shoes[-1:]:
                self.violation(
                    "mixed batches", f"{' and '.join(names)} loaded in a round of {self.shoes[-1]}"
                )
            return
        if self._in_round and self._dealt:
            self.violation("swapped in a round", f"{' and '.join(names)} loaded before the round was over")
        self.shoes.append(names[0] if names else "?")
        self._burned, self._closing = self._burn is not Burn.EACH_LOAD, ""

    def rack_taken(self, items: Iterable[Item]) -> None:
        names = self._names(items)
        if len(names) > 1:
            self.violation("mixed batches", f"{' and '.join(names)} in the discard rack")

    def round_begins(self) -> None:
        if self._closing in ("this", "now"):
            self.violation("round after the cutting card", "a round began although the shoe had to end")
        if self._closing == "one more":
            self._closing = "this"
        self._in_round, self._dealt, self._looked = True, 0, False
        self._hands.clear()
        if self._burn is Burn.EACH_ROUND:
            self._burned = False

    def round_over(self) -> None:
        self._in_round = False

    def looked(self, up: Card) -> None:
        """The dealer's cards were slid into the hole-card reader."""
        if self._looked or not self._in_round or up.rank not in "ATJQK":
            self.violation("reader", "it was used again, out of a round, or without an ace or ten")
        self._looked = True

    def drawn(self, item: Item, place: str) -> None:
        """`item` left the shoe and went to `place`."""
        if isinstance(item, CuttingCard):
            self._cutting_card()
            return
        self.cards += 1
        self._hands[place] += 1
        self.drawn_to.append(Laid(item, place, self._hands[place], self.moment()))
        if not self._burned and place not in (BURN, FACE_UP):
            self.violation("burn missed", f"the first card went to {place}")
        self._burned |= place != FACE_UP
        if place not in ASIDE:
            self._to_a_hand(item, place)
        self._shuffled.discard(item)
        self._cut.discard(item)

    def _to_a_hand(self, card: Card, place: str) -> None:
        self._dealt += 1
        if card not in self._shuffled:
            self.violation("unshuffled", f"a card without a completed shuffle reached {place}")
        if self._cuts and card not in self._cut:
            self.violation("uncut", f"a card that nobody cut reached {place}")
        if self._alternates and len(self.shoes) > 1 and self.shoes[-1] == self.shoes[-2]:
            self.violation("repeated batch", f"batch {self.shoes[-1]} is dealt twice in a row")
        if self._batch_of.get(card, "?") != self.shoes[-1]:
            self.violation("mixed batches", f"a card of another batch reached {place}")
        if self._closing == "now" and place.startswith("box"):
            self.violation("round after the cutting card", f"a card reached {place}")

    def _cutting_card(self) -> None:
        if self._in_round and self._dealt:
            self._closing = "this"
        elif not self._plays_first_card:
            self._closing = "now"
        else:
            self._closing = "this" if self._in_round else "one more"

    def _names(self, items: Iterable[Item]) -> list[str]:
        return sorted({self._batch_of.get(item, "?") for item in items if isinstance(item, Card)})

    # Counts

    @property
    def places(self) -> Mapping[str, Holder]:
        """Everything that can hold cards here."""
        return self._world.places

    def check(self, custody: Mapping[str, Mapping[str, int]] | None = None) -> None:
        """Count all cards; with `custody` (batch -> place -> cards) compare the controller's belief."""
        self.counts += custody is not None
        try:
            census = self._world.census()
        except CardsAstray as error:
            self.violation("cards lost", str(error))
            return
        for place in ("shoe", "rack", "shuffler"):
            if len(census.get(place, {})) > 1:
                self.violation("mixed batches", f"{census[place]} in the {place}")
        if custody is None:
            return
        found: dict[str, dict[str, int]] = {}
        for place, counts in census.items():
            for batch, count in counts.items():
                found.setdefault(batch, {})[place] = count
        believed = {batch: {p: n for p, n in places.items() if n} for batch, places in custody.items()}
        if believed != found:
            self.violation("custody", f"the controller believes {believed}, the cards are {found}")


def custody_of(status: Mapping[str, Any]) -> dict[str, Mapping[str, int]]:
    """The controller's counts, from its `status` answer."""
    return {name: batch["cards"] for name, batch in status["batches"].items()}
