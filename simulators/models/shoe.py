"""A dealing shoe that reads what leaves through its exit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Protocol

from simulators.models.cards import Card, CuttingCard, Item, Stack
from simulators.models.machine import CannotDo, Machine


class Hands(Protocol):
    """Somebody who works at a shoe by himself."""

    def deadline(self) -> float | None: ...

    def act(self) -> None: ...


class Shoe(Machine):
    """Cards leave by `draw`, or by hand through the open lid, which the reader cannot see.

    `misread` is the probability that a face is not read. Traps, counted per card drawn: misread,
    wrong_back (value colour). `drawn` counts cards through the exit since the shoe was last empty.
    """

    def __init__(
        self, random: Random, *, misread: float = 0.0, locked: bool = False, now: float = 0.0, boot: int = 1
    ) -> None:
        super().__init__(now=now, boot=boot)
        self.misread = misread
        self.locked = locked
        self.lid_open = False
        self.drawn = 0
        self.hands: Hands | None = None
        self._random = random
        self._items: deque[Item] = deque()
        self._face_up: set[Card] = set()

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
        self._items.extend(stack.give())

    def draw(self) -> Item | None:
        """Pull the next item through the exit; None when nothing is inside. CannotDo `locked`."""
        if self.locked:
            raise CannotDo("locked", "the shoe is locked")
        if not self._items:
            return None
        item = self._items.popleft()
        if isinstance(item, CuttingCard):
            self._happen("cutting_card")
        else:
            item = self._through_the_reader(item)
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
        if not self._items:
            self._happen("emptied")
        return taken

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

    def _through_the_reader(self, card: Card) -> Card:
        if trap := self.traps.sprung("wrong_back"):
            colour = trap.value or ("blue" if card.back != "blue" else "red")
            self.sleeve.add([card])
            card = Card(-card.serial, card.rank, card.suit, colour)
        up = card in self._face_up
        self._face_up.discard(card)
        unread = self.traps.sprung("misread") is not None or (
            self.misread > 0 and self._random.random() < self.misread
        )
        self.drawn += self.powered
        self._happen("drawn", face=None if unread else card.face, back=card.back, up=up)
        return card

    def _set_lid(self, *, open_: bool) -> None:
        if open_ != self.lid_open:
            self.lid_open = open_
            self._happen("lid", open=open_)

    def _need_lid(self) -> None:
        if not self.lid_open:
            raise CannotDo("lid", "the lid is closed")

    def _forget(self) -> None:
        self.drawn = 0
