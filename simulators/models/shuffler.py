"""A shelf shuffler for one batch: random shelf, above or below at random, shelves stacked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

from simulators.models.cards import RANKS, SUITS, Card, Item, Stack
from simulators.models.machine import CannotDo, Machine

SECONDS_PER_DECK = 22.0
_NEW_DECK_PLACE = {rank + suit: place for place, (suit, rank) in enumerate(product(SUITS, RANKS))}


@dataclass(frozen=True, slots=True)
class Report:
    """What the machine saw of a completed cycle; counts, never an order."""

    cycle: int
    token: bytes
    count: int
    mode: str
    composition: Mapping[str, int]
    backs: Mapping[str, int]
    unread: int


def shelf_pass(cards: Sequence[Card], shelves: int, random: Random) -> list[Card]:
    """One pass (first card = top): dealt from the bottom, each to a random shelf, above or below."""
    above: list[list[Card]] = [[] for _ in range(shelves)]
    below: list[list[Card]] = [[] for _ in range(shelves)]
    for card in reversed(cards):
        lane = int(random.random() * 2 * shelves)
        (above if lane & 1 else below)[lane >> 1].append(card)
    out: list[Card] = []
    for upper, lower in zip(above, below, strict=True):
        out.extend(reversed(upper))
        out.extend(lower)
    return out


def new_deck_order(cards: Sequence[Card]) -> list[Card]:
    """Deck behind deck, each from the ace of the first suit to the king of the last."""
    copies: Counter[str] = Counter()
    keyed = []
    for card in cards:
        keyed.append((copies[card.face], _NEW_DECK_PLACE[card.face], card.serial, card))
        copies[card.face] += 1
    return [entry[-1] for entry in sorted(keyed, key=lambda entry: entry[:3])]


class ShelfShuffler(Machine):
    """Holds one batch: load, start, (shuffling), release, take; or open the door and lift the cards out.

    `cycle` is the hard counter: it survives power loss. Everything else about a cycle is lost without power.
    `settings` are kept. Traps: leave_inside (value cards), no_start, jam, power_cut (value s off),
    wrong_back (value colour) at each load.
    """

    def __init__(
        self,
        random: Random,
        *,
        shelves: int = 38,
        passes: int = 1,
        decks: int = 6,
        cycle: int = 0,
        misread: float = 0.0,
        now: float = 0.0,
        boot: int = 1,
    ) -> None:
        super().__init__(now=now, boot=boot)
        self.shelves, self.passes, self.misread = shelves, passes, misread
        self.cycle = cycle
        self.settings: dict[str, Any] = {
            "decks": decks,
            "cards_per_deck": 52,
            "mode": "shuffle",
            "recognition": True,
        }
        self.door_open = False
        self.jammed = False
        self.report: Report | None = None
        self._random = random
        self._cards: list[Card] = []  # inside, in no completed order
        self._ready: list[Card] = []  # inside, a completed batch
        self._tray: list[Card] = []
        self._token: bytes | None = None  # of the running cycle, or of the completed batch that waits
        self._spent: set[bytes] = set()
        self._ends_at: float | None = None
        self._breaks: list[tuple[float, str, Any]] = []

    @property
    def inside(self) -> int:
        """Cards in the machine, wherever they are; the output tray is outside."""
        return len(self._cards) + len(self._ready)

    @property
    def token(self) -> bytes | None:
        """The token of the running cycle or of the completed batch that waits."""
        return self._token

    @property
    def state(self) -> str:
        """One of empty, loaded, shuffling, done, fault."""
        if self.jammed:
            return "fault"
        if self._ends_at is not None:
            return "shuffling"
        if self._token is not None:
            return "done"
        return "loaded" if self.inside else "empty"

    def contents(self) -> Iterator[Item]:
        yield from self._cards
        yield from self._ready
        yield from self._tray

    # What hands do

    def load(self, stack: Stack) -> None:
        """Put a pile into the input; the pile is empty afterwards."""
        if self.state not in ("empty", "loaded"):
            raise CannotDo("state", f"no room: the machine is {self.state}")
        cards = stack.give_cards()
        if cards and (trap := self.traps.sprung("wrong_back")):
            old = cards[0]
            colour = trap.value or ("blue" if old.back != "blue" else "red")
            cards[0] = Card(-old.serial, old.rank, old.suit, colour)
            self.sleeve.add([old])
        self._cards.extend(cards)

    def take(self) -> Stack:
        """Take what was let out into the tray."""
        tray, self._tray = self._tray, []
        return Stack(tray)

    def open_door(self) -> None:
        if not self.door_open:
            self.door_open = True
            self._happen("door", open=True)
            if self._ends_at is not None:
                self._void("door")

    def close_door(self) -> None:
        if self.door_open:
            self.door_open = False
            self._happen("door", open=False)
            if self.jammed and not self.inside:
                self.clear_jam()

    def lift_out_by_hand(self, count: int | None = None) -> Stack:
        """Reach in and lift out all cards, or the first `count`; a completed batch is none any more."""
        if not self.door_open:
            raise CannotDo("door", "the door is closed")
        cards = self._ready + self._cards
        count = len(cards) if count is None else min(count, len(cards))
        self._ready, self._cards = [], cards[count:]
        self._retire()
        if count:
            self._happen("let_out", count=count, inside=self.inside, token=None)
        return Stack(cards[:count])

    def clear_jam(self) -> None:
        if self.jammed:
            self.jammed = False
            self._happen("fault", code="7", name="jam", on=False)

    # What the panel or the host asks for

    def start(self, token: bytes) -> int:
        """Begin a cycle and return its number; a known running or waiting token only tells its number."""
        if token == self._token:
            return self.cycle
        if token in self._spent:
            raise CannotDo("token", "this token was used before")
        if self.door_open:
            raise CannotDo("door", "the door is open")
        if self.jammed:
            raise CannotDo("jam", "cards are jammed")
        if self._ends_at is not None:
            raise CannotDo("busy", "a cycle is running")
        if not self.inside:
            raise CannotDo("cards", "no cards inside")
        if self.traps.sprung("no_start"):
            return self.cycle + 1
        self._retire()
        self._cards, self._ready = self._ready + self._cards, []
        self._token = token
        self.cycle += 1
        duration = SECONDS_PER_DECK * len(self._cards) / 52 * self.passes
        self._ends_at = self.now + duration
        for name in ("jam", "power_cut"):
            if trap := self.traps.sprung(name):
                self._breaks.append((self.now + duration / 2, name, trap.value))
        self._happen("cycle_started", cycle=self.cycle, token=token)
        return self.cycle

    def abort(self) -> None:
        if self._ends_at is None:
            raise CannotDo("state", "no cycle is running")
        self._void("host")

    def release(self, token: bytes) -> tuple[int, int]:
        """Let the completed batch out into the tray; cards out, cards still inside."""
        if token in self._spent:
            raise CannotDo("token", "this token was used before")
        if self.state != "done":
            raise CannotDo("state", f"no completed batch waits: the machine is {self.state}")
        if token != self._token:
            raise CannotDo("token", "this is not the token of the batch that waits")
        if self.door_open:
            raise CannotDo("door", "the door is open")
        if self._tray:
            raise CannotDo("state", "the tray is not empty")
        self._tray, self._ready = self._ready, []
        self._retire()
        self._happen("let_out", count=len(self._tray), inside=self.inside, token=token)
        return len(self._tray), self.inside

    # What happens by itself

    def _next_by_itself(self) -> float | None:
        if self._ends_at is None:
            return None
        return min([self._ends_at, *(at for at, _, _ in self._breaks)])

    def _happen_by_itself(self) -> None:
        if self._breaks:
            _, name, value = self._breaks.pop(0)
            if name == "jam":
                self.jam(value or "transport")
            else:
                self.power_cut(0.2 if value is None else value)
        else:
            self._complete()

    def jam(self, place: str = "transport", attempts: int = 3) -> None:
        """Cards get stuck; the machine tries `attempts` times and gives up. A running cycle is void."""
        for attempt in range(1, attempts + 1):
            self._happen("jam", place=place, attempt=attempt)
        if self._ends_at is not None:
            self._void("jam")
        self.jammed = True
        self._happen("fault", code="7", name="jam", on=True)

    def _complete(self) -> None:
        left = 0
        if trap := self.traps.sprung("leave_inside"):
            left = min(int(trap.value or 16), len(self._cards))
        passing, self._cards = self._cards[: len(self._cards) - left], self._cards[len(self._cards) - left :]
        if self.settings["mode"] == "sort":
            self._ready = new_deck_order(passing)
        else:
            for _ in range(self.passes):
                passing = shelf_pass(passing, self.shelves, self._random)
            self._ready = passing
        self._ends_at = None
        assert self._token is not None
        self.report = self._read(self._token)
        self._happen("cycle_completed", report=self.report)

    def _read(self, token: bytes) -> Report:
        faces: Counter[str] = Counter()
        backs: Counter[str] = Counter()
        unread = 0
        for card in self._ready:
            if not self.settings["recognition"] or (self.misread and self._random.random() < self.misread):
                unread += 1
            else:
                faces[card.face] += 1
            if self.settings["recognition"]:
                backs[card.back] += 1
        return Report(self.cycle, token, len(self._ready), self.settings["mode"], faces, backs, unread)

    def _void(self, cause: str) -> None:
        self._retire()
        self._happen("cycle_aborted", cycle=self.cycle, cause=cause)

    def _retire(self) -> None:
        """The token, if any, can never be used again."""
        if self._token is not None:
            self._spent.add(self._token)
        self._token = None
        self._ends_at = None
        self._breaks.clear()

    def _forget(self) -> None:
        self._retire()
        self._spent.clear()
        self._cards, self._ready = self._ready + self._cards, []
        self.report = None
        self.jammed = False
