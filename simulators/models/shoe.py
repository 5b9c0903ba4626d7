"""A dealing shoe that reads what leaves through its exit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Protocol

from simulators.models.cards import RANKS, Card, CuttingCard, Item, Stack
from simulators.models.machine import CannotDo, Machine
from simulators.models.sleight import other_colour, stranger, tamper

STICKS_S, POWER_OFF_S = 3.0, 0.2


class Hands(Protocol):
    """Somebody who works at a shoe by himself."""

    def deadline(self) -> float | None: ...

    def act(self) -> None: ...


class Shoe(Machine):
    """Cards leave by `draw`, or by hand through the open lid, which the reader cannot see.

    `drawn` counts cards through the exit since the shoe was last empty.

    Traps, counted per card drawn: misread; wrong_face (told as value, else as the next rank);
    wrong_back (value colour); face_up; unseen (it leaves without a happening); read_twice; double_feed (the
    next card comes along unread and lies in the exit until the next draw); overdraw (it is read, and lies
    there too); sticks (no card comes for value s, 3: CannotDo `sticks`); power_cut (it leaves while the power
    goes, for value s, 0.2). Per cutting card: cut_unseen. Per load: those of `tamper`.
    """

    def __init__(self, random: Random, *, now: float = 0.0) -> None:
        super().__init__(now=now)
        self.locked = False
        self.lid_open = False
        self.drawn = 0
        self.hands: Hands | None = None
        self._random = random
        self._items: deque[Item] = deque()
        self._face_up: set[Card] = set()
        self._passed = 0  # of the first items: they are past the reader and lie in the exit
        self._stuck_until: float | None = None

    @property
    def empty(self) -> bool:
        return not self._items

    def __len__(self) -> int:
        return sum(1 for item in self._items if isinstance(item, Card))

    def contents(self) -> Iterator[Item]:
        return iter(self._items)

    def load(self, stack: Stack) -> None:
        """Lay a pile behind what is inside, cutting card and all; the lid must be open."""
        self._need_lid()
        if not self._items:
            self.drawn = 0
        if self.traps:
            tamper(stack, self.traps, self.sleeve, self._random)
        self._items.extend(stack.give())

    def draw(self) -> Item | None:
        """Pull the next item through the exit; None when nothing is inside. CannotDo `locked` or `sticks`."""
        if self.locked:
            raise CannotDo("locked", "the shoe is locked")
        if not self._items:
            return None
        if self.traps or self._stuck_until is not None:
            self._pull()
        item = self._items[0]
        if self._passed:
            self._items.popleft()
            self._passed -= 1
        elif isinstance(item, CuttingCard):
            self._items.popleft()
            if not self.traps.sprung("cut_unseen"):
                self._happen("cutting_card")
        else:
            item = self._draw_card(item)
        if not self._items:
            self._happen("emptied")
        return item

    def remove_by_hand(self, count: int | None = None) -> Stack:
        """Take all items, or the first `count`, out through the open lid, past the reader."""
        self._need_lid()
        if not self._items:
            return Stack()
        count = len(self._items) if count is None else min(count, len(self._items))
        taken = Stack([self._items.popleft() for _ in range(count)])
        self._passed = max(0, self._passed - count)
        self._stuck_until = None
        if not self._items:
            self._happen("emptied")
        return taken

    def push_back(self, card: Card) -> None:
        """Push a card back in through the exit: it comes next, and is read once more."""
        self._items.insert(self._passed, card)
        self._happen("reversed")

    def turn_face_up(self, index: int) -> None:
        """Turn the card at `index` (0 = next) the wrong way round."""
        card = self._items[index]
        if isinstance(card, Card):
            self._face_up.add(card)

    def swap_in(self, index: int, item: Item) -> Item:
        """Exchange the item at `index` (0 = next) and return the old one."""
        old, self._items[index] = self._items[index], item
        return old

    def open_lid(self) -> None:
        self._set_lid(open_=True)

    def close_lid(self) -> None:
        self._set_lid(open_=False)

    def set_lock(self, locked: bool, by: str = "host") -> None:
        """Lock or unlock; `by` is host or key."""
        if locked != self.locked:
            self.locked = locked
            self._happen("lock", locked=locked, by=by)

    def press_new_shoe(self) -> None:
        """The button that tells the shoe of a new batch, where it has one."""
        self._happen("new_shoe")

    def _next_by_itself(self) -> float | None:
        return None if self.hands is None else self.hands.deadline()

    def _happen_by_itself(self) -> None:
        if self.hands is not None:
            self.hands.act()

    def _pull(self) -> None:
        """Raises CannotDo while the first item sticks."""
        if self._stuck_until is None and (trap := self.traps.sprung("sticks")):
            self._stuck_until = self.now + trap.seconds(STICKS_S)
        if self._stuck_until is not None and self.now < self._stuck_until:
            raise CannotDo("sticks", "a card sticks in the exit")
        self._stuck_until = None

    def _draw_card(self, card: Card) -> Card:
        """The first card leaves, with whatever goes wrong."""
        self._items.popleft()
        traps = self.traps
        if not traps:
            self._see(card)
            return card
        if trap := traps.sprung("wrong_back"):
            self.sleeve.add([card])
            card = stranger(card, back=trap.value or other_colour(card))
        if trap := traps.sprung("power_cut"):
            self.power_cut(trap.seconds(POWER_OFF_S))
        elif not traps.sprung("unseen"):
            self._see(card)
            if traps.sprung("read_twice"):
                self._see(card)
        self._next_comes_along()
        return card

    def _next_comes_along(self) -> None:
        unread, read = self.traps.sprung("double_feed"), self.traps.sprung("overdraw")
        if (unread or read) and self._items and isinstance(card := self._items[0], Card):
            self._passed = 1
            if read:
                self._see(card)

    def _see(self, card: Card) -> None:
        """The card passes the reader."""
        up = card in self._face_up
        self._face_up.discard(card)
        face: str | None = card.face
        if self.traps:
            up |= self.traps.sprung("face_up") is not None
            if trap := self.traps.sprung("wrong_face"):
                face = trap.value or RANKS[RANKS.find(card.rank) + 1 - len(RANKS)] + card.suit
            if self.traps.sprung("misread"):
                face = None
        self.drawn += self.powered
        self._happen("drawn", face=face, back=card.back, up=up)

    def _set_lid(self, *, open_: bool) -> None:
        if open_ != self.lid_open:
            self.lid_open = open_
            self._happen("lid", open=open_)

    def _need_lid(self) -> None:
        if not self.lid_open:
            raise CannotDo("lid", "the lid is closed")

    def _forget(self) -> None:
        self.drawn = 0
