"""A small machine that shuffles one pile of cards and deals from its top."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from random import Random

from simulators.models.cards import Card, Item, Stack
from simulators.models.machine import CannotDo, Machine
from simulators.models.shuffles import shelf_pass

SHUFFLE_S = 20.0
CARD_S = 0.8
PLAYERS = 4
SHELVES = 8


class DealingMachine(Machine):
    """Cards go in by `load`, are dealt to "out" or to "player 1" .. "player 4", and lie there until taken.

    Work takes time and nobody is told of its end. Traps, counted per piece of work: no_start (it never
    begins), jam (it stops half way).
    """

    def __init__(self, random: Random, *, now: float = 0.0) -> None:
        super().__init__(now=now)
        self.off = False
        self._random = random
        self._cards: list[Card] = []
        self._piles: dict[str, list[Card]] = {}
        self._todo: deque[str] = deque()  # "shuffle", or where the next card goes
        self._due: float | None = None
        self._jam_after: int | None = None

    @property
    def inside(self) -> int:
        return len(self._cards)

    @property
    def busy(self) -> bool:
        return bool(self._todo)

    @property
    def state(self) -> str:
        """One of empty, loaded, working."""
        if self.busy:
            return "working"
        return "loaded" if self.inside else "empty"

    def contents(self) -> Iterator[Item]:
        """Every card in or at the machine."""
        yield from self._cards
        for pile in self._piles.values():
            yield from pile

    def dealt(self, place: str = "out") -> int:
        """How many cards lie there."""
        return len(self._piles.get(place, ()))

    # What hands do

    def load(self, stack: Stack) -> None:
        """Put a pile in; the pile is empty afterwards."""
        if self.busy:
            raise CannotDo("busy", "the machine works")
        self._cards += stack.give_cards()

    def take(self) -> Stack:
        """Take all dealt cards."""
        cards = [card for pile in self._piles.values() for card in pile]
        self._piles.clear()
        return Stack(cards)

    # What the host asks for

    def initialise(self) -> None:
        self._begin([])
        self._happen("initialised")

    def shuffle(self) -> None:
        self._begin(["shuffle"])

    def deal(self, count: int) -> None:
        self._begin(["out"] * count)

    def deal_each(self, count: int) -> None:
        """`count` cards to each player, one round after the other."""
        self._begin([f"player {number}" for number in range(1, PLAYERS + 1)] * count)

    def switch_off(self) -> None:
        """It stops at once and hears nothing until its power is cut and comes back."""
        self._todo.clear()
        self._due = None
        self._happen("off")
        self.off = True

    def _begin(self, work: list[str]) -> None:
        if self.busy:
            raise CannotDo("busy", "the machine works")
        if len(work) > self.inside and work != ["shuffle"]:
            raise CannotDo("cards", f"{len(work)} cards are asked for and {self.inside} are inside")
        if not work or self.traps.sprung("no_start"):
            return
        self._jam_after = len(work) // 2 if self.traps.sprung("jam") else None
        self._todo.extend(work)
        self._next()

    # What happens by itself

    def _next_by_itself(self) -> float | None:
        return self._due

    def _happen_by_itself(self) -> None:
        place = self._todo.popleft()
        if place == "shuffle":
            self._cards = shelf_pass(self._cards, SHELVES, self._random)
            self._happen("shuffled", count=self.inside)
        else:
            card = self._cards.pop(0)
            self._piles.setdefault(place, []).append(card)
            self._happen("dealt", face=card.face, to=place)
        if self._jam_after is not None and len(self._todo) <= self._jam_after:
            self._todo.clear()
            self._happen("jam")
        self._next()

    def _next(self) -> None:
        wait = SHUFFLE_S if self._todo and self._todo[0] == "shuffle" else CARD_S
        self._due = self.now + wait if self._todo else None

    def _forget(self) -> None:
        self._todo.clear()
        self._due = None
        self.off = False
