"""A dealing shoe that lets cards out in stacks, onto a tray, and only when it is told to."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from simulators.models.cards import Item, Stack
from simulators.models.machine import CannotDo
from simulators.models.shoe import Shoe

CARD_S = 0.2
"""A card leaves every so many seconds."""


class StackShoe(Shoe):
    """Cards leave by `dispense` and lie on the tray until somebody takes them.

    Traps, counted per stack: jam (it stops half way; value the place), extra_card (one more card leaves).
    """

    def __init__(self, random: Random, *, now: float = 0.0) -> None:
        super().__init__(random, now=now)
        self._tray = Stack()
        self._due: float | None = None
        self._left = 0
        self._jam_after: tuple[int, str] | None = None

    @property
    def dispensing(self) -> bool:
        return self._left > 0

    @property
    def on_tray(self) -> int:
        return len(self._tray)

    def contents(self) -> Iterator[Item]:
        yield from super().contents()
        yield from self._tray.contents()

    def draw(self) -> Item | None:
        raise CannotDo("stacks", "its exit lets no single card be drawn")

    def dispense(self, count: int, drawn: int) -> int:
        """Begin to let cards out; how many will come. CannotDo locked, lid, busy, counts or empty."""
        if self.dispensing:
            raise CannotDo("busy", "a stack is coming")
        if self.lid_open:
            raise CannotDo("lid", "the lid is open")
        if self.locked:
            raise CannotDo("locked", "the shoe is locked")
        if drawn != self.drawn:
            raise CannotDo("counts", f"{self.drawn} cards left, not {drawn}")
        if self.empty:
            raise CannotDo("empty", "no card is inside")
        told = min(count, len(self))
        self._left = min(told + (self.traps.sprung("extra_card") is not None), len(self))
        jam = self.traps.sprung("jam")
        self._jam_after = (self._left // 2, jam.value or "exit") if jam else None
        self._due = self.now + CARD_S
        return told

    def take(self) -> Stack:
        """Pick up what lies on the tray."""
        return Stack(self._tray.give())

    def open_lid(self) -> None:
        self._stop()
        super().open_lid()

    def _next_by_itself(self) -> float | None:
        times = [at for at in (super()._next_by_itself(), self._due) if at is not None]
        return min(times, default=None)

    def _happen_by_itself(self) -> None:
        if self._due is None or self._due > self.now:
            super()._happen_by_itself()
            return
        if self._jam_after is not None and self._left <= self._jam_after[0]:
            self._happen("jam", place=self._jam_after[1], attempt=1)
            self._stop()
            return
        locked, self.locked = self.locked, False  # a stack that began is not stopped by the lock
        try:
            item = super().draw()
        except CannotDo:
            self._due = self._stuck_until
            return
        finally:
            self.locked = locked
        self._tray.add([] if item is None else [item])
        self._left = 0 if self.empty else self._left - 1
        self._due = self.now + CARD_S if self._left else None

    def _stop(self) -> None:
        self._left, self._due, self._jam_after = 0, None, None

    def _forget(self) -> None:
        super()._forget()
        self._stop()
