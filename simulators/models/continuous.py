"""A continuous shuffler: cards lie in random slots, come out through a buffer, and go back in at any time."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from random import Random
from typing import Any

from simulators.models.cards import Card, Item, Stack
from simulators.models.carousel import Carousel
from simulators.models.machine import CannotDo
from simulators.models.shoe import Shoe
from simulators.models.shuffler import SECONDS_PER_DECK, Report
from simulators.models.shuffles import new_deck_order
from simulators.models.sleight import tamper

REFILL, TARGET = 8, 18
"""When so few cards lie in the output buffer, slots are pushed out into it until so many do."""


class ContinuousShuffler(Shoe):
    """A shoe whose cards are put in (`put_in`), shuffled once (`start`), then dealt and given back.

    `inside` is what its sensors counted, not what lies in it. `drawn`, `cycle` and the count survive power
    loss, a running cycle does not. Traps, beside the shoe's: no_start; counted per pile that is given back:
    stuck (value cards, 1: they went in and reach no slot), counted_twice and uncounted (value cards, 1),
    overflow (value cards, 1: they find no slot yet).
    """

    def __init__(self, random: Random, *, decks: int = 6, now: float = 0.0) -> None:
        super().__init__(random, now=now)
        self.cycle = 0
        self.settings: dict[str, Any] = {
            "decks": decks,
            "cards_per_deck": 52,
            "mode": "shuffle",
            "recognition": True,
        }
        self.report: Report | None = None
        self.dealing = False
        self._intake: list[Card] = []
        self._carousel = Carousel(random)
        self._stuck: list[Card] = []
        self._miscounted = 0
        self._token: bytes | None = None
        self._spent: set[bytes] = set()
        self._ends_at: float | None = None

    @property
    def inside(self) -> int:
        """Cards in the machine as it counted them."""
        return len(self) - len(self._stuck) + self._miscounted

    @property
    def empty(self) -> bool:
        return not self.inside

    @property
    def token(self) -> bytes | None:
        """The token of the running cycle or of the last one that completed."""
        return self._token

    @property
    def state(self) -> str:
        """One of empty, loaded, shuffling, dealing."""
        if self._ends_at is not None:
            return "shuffling"
        if self.dealing:
            return "dealing"
        return "loaded" if self.inside else "empty"

    def __len__(self) -> int:
        return sum(1 for _ in self.contents())

    def contents(self) -> Iterator[Item]:
        """Every card inside; while it deals the first one comes out next."""
        yield from self._items
        yield from self._carousel
        yield from self._intake
        yield from self._stuck

    # What hands do

    def load(self, stack: Stack) -> None:
        """As `put_in`: the intake has no lid."""
        self.put_in(stack)

    def put_in(self, stack: Stack) -> None:
        """Cards into the intake: a load for the next `start`, or used cards that go back while it deals."""
        if self._ends_at is not None:
            raise CannotDo("busy", "a cycle is running")
        if self.traps:
            tamper(stack, self.traps, self.sleeve, self._random)
        cards = stack.give_cards()
        if not self.dealing:
            self._intake += cards
            return
        count = len(cards)
        if trap := self.traps.sprung("stuck"):
            caught = min(trap.count(), len(cards))
            self._stuck += cards[:caught]
            cards = cards[caught:]
        miscounted = 0
        if trap := self.traps.sprung("counted_twice"):
            miscounted += trap.count()
        if trap := self.traps.sprung("uncounted"):
            miscounted -= min(trap.count(), count)
        count += miscounted
        self._miscounted += miscounted
        if trap := self.traps.sprung("overflow"):
            waiting = min(trap.count(), len(cards))
            self._carousel.overflow += cards[:waiting]
            cards = cards[waiting:]
        self._carousel.put(cards)
        if count:
            self._happen("returned", count=count, inside=self.inside)

    def draw(self) -> Item | None:
        """Pull the next card through the exit; None when none is left. CannotDo `locked` or `state`."""
        if not self.dealing:
            raise CannotDo("state", f"no card comes out: the machine is {self.state}")
        self._fill()
        item = super().draw()
        self._fill()
        self.dealing = bool(self._items)
        return item

    def exchange(self, one: Card, other: Card) -> None:
        """Two cards inside change places."""
        swapped: dict[Item, Card] = {one: other, other: one}
        self._items = deque([swapped.get(item, item) for item in self._items])
        self._carousel.exchange(swapped)

    def remove_by_hand(self, count: int | None = None) -> Stack:
        """Reach in through the open door: every card, stuck ones too, or `count` of those that are seen."""
        self._need_lid()
        cards = [item for item in self.contents() if isinstance(item, Card)]
        seen = len(cards) - len(self._stuck)
        count = len(cards) if count is None else min(count, seen)
        taken, left = cards[:count], cards[count:seen]
        if count > seen:
            self._stuck = []
        self._clear()
        self._intake = left
        if self.dealing:
            self._intake = []
            self._carousel.put(left)
        if taken:
            self._miscounted = 0
            self._happen("let_out", count=count, inside=self.inside, token=None)
        if self.dealing and not left:
            self.dealing = False
            self._happen("emptied")
        return Stack(taken)

    def _set_lid(self, *, open_: bool) -> None:
        if open_ != self.lid_open:
            self.lid_open = open_
            self._happen("door", open=open_)
            if open_ and self._ends_at is not None:
                self._void("door")

    # What the panel or the host asks for

    def start(self, token: bytes) -> int:
        """Begin a cycle over all cards inside; the token of the running or last one only tells its number."""
        if token == self._token:
            return self.cycle
        if token in self._spent:
            raise CannotDo("token", "this token was used before")
        if self.lid_open:
            raise CannotDo("door", "the door is open")
        if self._ends_at is not None:
            raise CannotDo("busy", "a cycle is running")
        if not self.inside:
            raise CannotDo("cards", "no cards inside")
        if self.traps.sprung("no_start"):
            return self.cycle + 1
        self._retire()
        seen = [item for item in self.contents() if isinstance(item, Card) and item not in self._stuck]
        self._clear()
        self._intake, self._miscounted, self.dealing = seen, 0, False
        self._token = token
        self.cycle += 1
        self._ends_at = self.now + SECONDS_PER_DECK * len(seen) / 52
        self._happen("cycle_started", cycle=self.cycle, token=token)
        return self.cycle

    def abort(self) -> None:
        if self._ends_at is None:
            raise CannotDo("state", "no cycle is running")
        self._void("host")

    # What happens by itself

    def _next_by_itself(self) -> float | None:
        return super()._next_by_itself() if self._ends_at is None else self._ends_at

    def _happen_by_itself(self) -> None:
        if self._ends_at is None:
            super()._happen_by_itself()
            return
        assert self._token is not None
        cards, self._intake, self._ends_at = self._intake, [], None
        self.report = self._read(self._token, cards)
        if self.settings["mode"] == "sort":
            self._items = deque[Item](new_deck_order(cards))
        else:
            self._carousel.put(cards)
        self._fill()
        self.dealing, self.drawn = True, 0
        self._happen("cycle_completed", report=self.report)

    def _read(self, token: bytes, cards: list[Card]) -> Report:
        known = cards if self.settings["recognition"] else []
        faces, backs = Counter(card.face for card in known), Counter(card.back for card in known)
        unread = len(cards) - len(known)
        return Report(self.cycle, token, len(cards), self.settings["mode"], faces, backs, unread)

    def _fill(self) -> None:
        """The output buffer is filled up when it runs low."""
        if len(self._items) > REFILL:
            return
        while len(self._items) < TARGET and (pushed := self._carousel.push_out()):
            self._items.extend(pushed)

    def _clear(self) -> None:
        self._items.clear()
        self._passed, self._stuck_until = 0, None
        self._intake = []
        self._carousel.clear()

    def _void(self, cause: str) -> None:
        self._retire()
        self._happen("cycle_aborted", cycle=self.cycle, cause=cause)

    def _retire(self) -> None:
        """The token of a cycle that is over, or void, is not used again; the cards stay where they are."""
        if self._token is not None:
            self._spent.add(self._token)
        self._ends_at = None
        if not self.dealing:
            self._token = None

    def _forget(self) -> None:
        if self._ends_at is not None:
            self._retire()
        self.report = None
