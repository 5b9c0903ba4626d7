"""A shuffler for one batch: cards go in, a cycle of its mechanism orders them, the batch comes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from random import Random
from typing import Any

from simulators.models.cards import Card, Item, Stack
from simulators.models.machine import CannotDo, Machine
from simulators.models.shuffles import Mechanism, new_deck_order, shelves
from simulators.models.sleight import other_colour, stranger, tamper

SECONDS_PER_DECK = 22.0
"""A pass takes so long a deck."""
RETRY_S, ATTEMPTS = 2.0, 3
"""A jam is tried again every so many seconds, so many times."""
POWER_OFF_S = 0.2
DOOR_OPEN_S = 5.0
USUAL = shelves()


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


class BatchShuffler(Machine):
    """Holds one batch: load, start, (shuffling), release, take; or open the door and lift the cards out.

    `cycle` is the hard counter: it survives power loss. Everything else about a cycle is lost without power.
    `settings` are kept. `wear` tells how fast it wears out: each cycle since `maintain()` makes the next ones
    slower by this part, and jams and unread cards likelier.

    Traps, counted per cycle: no_start; leave_inside (value cards, 16, stay in the input); stuck (value cards,
    1, fall where no sensor is, until all is lifted out); jam (value place; the cycle is void); recovered_jam
    (freed at attempt value, 2; a card goes into the overflow); power_cut (value s off); freeze (a dip that
    stops the motors and not the firmware: it shuffles for ever); door (open for value s, 5; the cycle is
    void); unreadable (value cards, 1); double_feed (value cards, 1, pass the reader under others); miscount
    (the report's count is too high by value, 1); same_cycle (its number is the last one's); forget_token (of
    the completed batch: nobody can release it). Per release: power_cut_out (value cards are out, half of
    them, when the power goes); miscount_out (value cards, 1, more are told than come out). Per load:
    wrong_back (value colour) and those of `tamper`.
    """

    def __init__(
        self,
        random: Random,
        *,
        mechanism: Mechanism = USUAL,
        decks: int = 6,
        cycle: int = 0,
        wear: float = 0.0,
        now: float = 0.0,
    ) -> None:
        super().__init__(now=now)
        self.mechanism, self.wear = mechanism, wear
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
        self._overflow: list[Card] = []  # inside, they found no way into the mechanism
        self._lost: list[Card] = []  # inside, and no sensor sees them
        self._ready: list[Card] = []  # inside, a completed batch
        self._tray: list[Card] = []
        self._token: bytes | None = None  # of the running cycle, or of the completed batch that waits
        self._spent: set[bytes] = set()
        self._began_at = now
        self._ends_at: float | None = None
        self._breaks: list[tuple[float, Callable[[], None]]] = []
        self._closes_at: float | None = None
        self._used = 0

    @property
    def inside(self) -> int:
        """Cards in the machine, wherever its sensors see them; the output tray is outside."""
        return len(self._cards) + len(self._overflow) + len(self._ready)

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

    @property
    def worn(self) -> float:
        """How much slower it is than after maintenance."""
        return self.wear * self._used

    def fed_at(self, count: int) -> float | None:
        """When so many cards of the running cycle have left the input; None when they never will."""
        if self._ends_at in (None, inf) or not 0 < count <= len(self._cards):
            return None
        return self._began_at + (self._ends_at - self._began_at) * count / len(self._cards)

    def contents(self) -> Iterator[Item]:
        for place in (self._cards, self._overflow, self._lost, self._ready, self._tray):
            yield from place

    # What hands do

    def load(self, stack: Stack) -> None:
        """Put a pile into the input; the pile is empty afterwards."""
        if self.state not in ("empty", "loaded"):
            raise CannotDo("state", f"no room: the machine is {self.state}")
        cards = stack.give_cards()
        if cards and (trap := self.traps.sprung("wrong_back")):
            self.sleeve.add(cards[:1])
            cards[0] = stranger(cards[0], back=trap.value or other_colour(cards[0]))
        pile = Stack(cards)
        tamper(pile, self.traps, self.sleeve, self._random)
        self._cards.extend(pile.give_cards())

    def slip_out(self, count: int) -> Stack:
        """Take so many cards back out of the input; nobody is told."""
        taken, self._cards = self._cards[:count], self._cards[count:]
        return Stack(taken)

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

    def _leave_open(self, seconds: float) -> None:
        self.open_door()
        self._closes_at = self.now + seconds

    def close_door(self) -> None:
        if self.door_open:
            self.door_open, self._closes_at = False, None
            self._happen("door", open=False)
            if self.jammed and not self.inside:
                self.clear_jam()

    def lift_out_by_hand(self, count: int | None = None) -> Stack:
        """Reach in and lift out all cards, lost ones too, or the first `count` of those that are seen.

        A completed batch is none any more.
        """
        if not self.door_open:
            raise CannotDo("door", "the door is closed")
        found = []
        if count is None:
            found, self._lost = self._lost, []
        self._retire()
        self._unpack()
        count = min(self.inside, self.inside if count is None else count)
        taken, self._cards = self._cards[:count], self._cards[count:]
        if count:
            self._happen("let_out", count=count, inside=self.inside, token=None)
        return Stack([*taken, *found])

    def clear_jam(self) -> None:
        if self.jammed:
            self.jammed = False
            self._happen("fault", code="7", name="jam", on=False)

    def maintain(self) -> None:
        """New rollers and clean sensors: it works as when it was new."""
        self._used = 0

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
        self._unpack()
        self._token = token
        self.cycle += self.traps.sprung("same_cycle") is None
        self._plan()
        self._used += 1
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
        if trap := self.traps.sprung("power_cut_out"):
            out = trap.count(len(self._ready) // 2)
            self._tray, self._ready = self._ready[:out], self._ready[out:]
            self.power_cut(POWER_OFF_S)
            return len(self._tray), self.inside
        self._tray, self._ready = self._ready, []
        self._retire()
        told = len(self._tray)
        if trap := self.traps.sprung("miscount_out"):
            told += trap.count()
        self._happen("let_out", count=told, inside=self.inside, token=token)
        return told, self.inside

    # What happens by itself

    def _plan(self) -> None:
        """When the cycle that begins now ends, and what breaks into it half way."""
        duration = SECONDS_PER_DECK * len(self._cards) / 52 * self.mechanism.passes * (1 + self.worn)
        self._began_at, self._ends_at = self.now, self.now + duration
        half = self.now + duration / 2
        if trap := self.traps.sprung("jam"):
            self._plan_jam(half, trap.value or "transport", ATTEMPTS + 1)
        if trap := self.traps.sprung("recovered_jam"):
            self._plan_jam(half, "transport", trap.count(2))
        if self.worn and self._random.random() < self.worn:
            self._plan_jam(half, "transport", 1 + int(self._random.random() * (ATTEMPTS + self.worn)))
        if trap := self.traps.sprung("power_cut"):
            self._breaks.append((half, partial(self.power_cut, trap.seconds(POWER_OFF_S))))
        if self.traps.sprung("freeze"):
            self._breaks.append((half, self.freeze))
        if trap := self.traps.sprung("door"):
            self._breaks.append((half, partial(self._leave_open, trap.seconds(DOOR_OPEN_S))))
        self._breaks.sort(key=lambda planned: planned[0])

    def _plan_jam(self, at: float, place: str, freed: int) -> None:
        """Cards jam and come free at attempt `freed`, if that many are made; the cycle ends later."""
        assert self._ends_at is not None
        attempts = min(freed, ATTEMPTS)
        for attempt in range(1, attempts + 1):
            tried = partial(self._happen, "jam", place=place, attempt=attempt)
            self._breaks.append((at + RETRY_S * (attempt - 1), tried))
        after = self._overflows if freed <= ATTEMPTS else self._give_up
        self._breaks.append((at + RETRY_S * attempts, after))
        self._ends_at += RETRY_S * attempts

    def _next_by_itself(self) -> float | None:
        if self._closes_at is not None:
            return self._closes_at
        if self._ends_at is None:
            return None
        if self._breaks:
            return self._breaks[0][0]
        return None if self._ends_at == inf else self._ends_at

    def _happen_by_itself(self) -> None:
        if self._closes_at is not None:
            self.close_door()
        elif self._breaks:
            _, act = self._breaks.pop(0)
            act()
        else:
            self._complete()

    def jam(self, place: str = "transport", attempts: int = ATTEMPTS) -> None:
        """Cards get stuck; the machine tries `attempts` times and gives up. A running cycle is void."""
        for attempt in range(1, attempts + 1):
            self._happen("jam", place=place, attempt=attempt)
        self._give_up()

    def freeze(self) -> None:
        """The power dips below what the motors need: a running cycle never ends, and all else works."""
        if self._ends_at is not None:
            self._ends_at = inf
            self._breaks.clear()

    def _overflows(self) -> None:
        """The card that jammed goes aside, and comes out with the batch."""
        self._overflow.append(self._cards.pop(len(self._cards) // 2))

    def _give_up(self) -> None:
        if self._ends_at is not None:
            self._void("jam")
        self.jammed = True
        self._happen("fault", code="7", name="jam", on=True)

    def _complete(self) -> None:
        left = 0
        if trap := self.traps.sprung("leave_inside"):
            left = min(trap.count(16), len(self._cards))
        passing, self._cards = self._cards[: len(self._cards) - left], self._cards[len(self._cards) - left :]
        if trap := self.traps.sprung("stuck"):
            lost = min(trap.count(), len(passing))
            self._lost += passing[:lost]
            passing = passing[lost:]
        if self.settings["mode"] == "sort":
            self._ready = new_deck_order(passing)
        else:
            self._ready = self.mechanism.order(passing, self._random)
        for card in self._overflow:
            self._ready.insert(0 if self._random.random() < 0.5 else len(self._ready), card)
        self._overflow = []
        self._ends_at = None
        assert self._token is not None
        self.report = self._read(self._token)
        self._happen("cycle_completed", report=self.report)
        if self.traps.sprung("forget_token"):
            self._retire()

    def _read(self, token: bytes) -> Report:
        hidden, blind, more = (
            trap.count() if (trap := self.traps.sprung(name)) else 0
            for name in ("double_feed", "unreadable", "miscount")
        )
        seen = self._ready[hidden:]
        misread = min(1.0, self.worn / 10)
        faces: Counter[str] = Counter()
        unread = 0
        for place, card in enumerate(seen):
            missed = place < blind or not self.settings["recognition"]
            if missed or (misread and self._random.random() < misread):
                unread += 1
            else:
                faces[card.face] += 1
        backs = Counter(card.back for card in seen if self.settings["recognition"])
        return Report(self.cycle, token, len(seen) + more, self.settings["mode"], faces, backs, unread)

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
        self._unpack()
        self.report = None
        self.jammed = False

    def _unpack(self) -> None:
        """Whatever lies in the machine is in no order that counts."""
        self._cards = self._ready + self._overflow + self._cards
        self._ready, self._overflow = [], []
