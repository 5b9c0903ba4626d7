"""Dealers who play by themselves, where nobody else deals from a shoe."""

from __future__ import annotations

from random import Random

from simulators.models.baccarat import Baccarat
from simulators.models.cards import RANKS, Card, CuttingCard, Stack
from simulators.models.continuous import ContinuousShuffler
from simulators.models.machine import CannotDo
from simulators.models.shoe import Shoe
from simulators.models.stack_shoe import StackShoe
from simulators.models.table import DiscardRack

PAUSE_CARDS = 4
"""Between two rounds as much time passes as for so many cards."""


class SelfPlay:
    """Draws a card every `pace` s; after the round of the cutting card it washes, cuts and loads again.

    It waits while the shoe is locked or has no power. Attaches itself to `shoe.hands`.
    """

    def __init__(self, shoe: Shoe, random: Random, *, pace: float = 1.5) -> None:
        self.shoe = shoe
        self.rounds = 0
        self.discards = DiscardRack()
        self._random = random
        self._pace = pace
        self._game = Baccarat()
        self._last_round = False
        self._at = shoe.now + pace
        shoe.hands = self

    def deadline(self) -> float:
        return self._at

    def act(self) -> None:
        self._at = self.shoe.now + self._pace
        if self.shoe.locked:
            return
        if self.shoe.empty or (self._last_round and self._game.between_rounds):
            self.change_shoe()
            return
        try:
            item = self.shoe.draw()
        except CannotDo:  # it sticks: pull again later
            return
        if item is None:
            return
        self.discards.put([item])
        if isinstance(item, CuttingCard):
            self._last_round = True
        elif isinstance(item, Card) and item.rank in RANKS:  # a joker has no part in the game
            _, result = self._game.take(item.rank)
            if result is not None:
                self.rounds += 1
                self._at += PAUSE_CARDS * self._pace

    def change_shoe(self, fresh: Stack | None = None) -> None:
        """Gather all cards (and `fresh` ones), wash, cut, put the cutting card in, load."""
        self.shoe.open_lid()
        stack = self.discards.take()
        stack.add(self.shoe.remove_by_hand().give())
        if fresh is not None:
            stack.add(fresh.give())
        cutting_card = stack.take_cutting_card() or CuttingCard()
        cards = len(stack)
        if cards:
            for _ in range(3):
                stack.wash(self._random)
            stack.cut(cards // 4 + int(self._random.random() * (cards // 2)))
            stack.insert_cutting_card(cutting_card, cards // 4)
        self.shoe.load(stack)
        self.shoe.close_lid()
        self.shoe.press_new_shoe()
        self._game = Baccarat()
        self._last_round = False


class ContinuousPlay:
    """Starts the machine at its panel, then draws a card every `pace` s.

    Once a round is dealt the cards of the round before go back. Attaches itself to `machine.hands`.
    """

    DEALT, MOST = 4, 12
    """Cards of the initial deal, and of a whole round."""

    def __init__(self, machine: ContinuousShuffler, random: Random, *, pace: float = 1.5) -> None:
        self.machine = machine
        self.rounds = 0
        self._random = random
        self._pace = pace
        self._lying, self._resting = Stack(), Stack()
        self._length = self.DEALT
        self._at = machine.now + pace
        machine.hands = self

    def deadline(self) -> float:
        return self._at

    def act(self) -> None:
        machine = self.machine
        self._at = machine.now + self._pace
        if machine.locked or machine.lid_open:
            return
        if machine.state == "empty":
            machine.put_in(Stack([*self._lying.give(), *self._resting.give()]))
        if machine.state == "loaded":
            machine.start(self._random.randbytes(16))
        if machine.state == "dealing":
            self._deal()

    def _deal(self) -> None:
        try:
            card = self.machine.draw()
        except CannotDo:  # it sticks: pull again later
            return
        self._lying.add([] if card is None else [card])
        if len(self._lying) == self.DEALT and len(self._resting):
            self.machine.put_in(Stack(self._resting.give()))
        if len(self._lying) >= self._length:
            self.rounds += 1
            self._resting.add(self._lying.give())
            self._length = self.DEALT + int(self._random.random() * (self.MOST - self.DEALT))
            self._at += PAUSE_CARDS * self._pace


class StackHands:
    """Takes each stack from the tray; an empty shoe is filled again after a while with all that came.

    Stacks come when a host asks for them, never by these hands. Attaches itself to `shoe.hands`.
    """

    def __init__(self, shoe: StackShoe, random: Random, *, pace: float = 1.5) -> None:
        self.shoe = shoe
        self._random = random
        self._pace = pace
        self._discards = Stack()
        self._at = shoe.now + pace
        shoe.hands = self

    def deadline(self) -> float:
        return self._at

    def act(self) -> None:
        self._at = self.shoe.now + self._pace
        if self.shoe.dispensing:
            return
        self._discards.add(self.shoe.take().give())
        if self.shoe.empty:
            self.fill(Stack())

    def fill(self, fresh: Stack) -> None:
        """Wash all cards, `fresh` ones too, and put them in."""
        fresh.add(self._discards.give())
        fresh.wash(self._random)
        self.shoe.open_lid()
        self.shoe.load(fresh)
        self.shoe.close_lid()
