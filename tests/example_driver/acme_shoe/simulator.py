"""A simulated Acme shoe, written from its document and not from its driver."""

from functools import reduce
from operator import xor
from random import Random

from simulators.models.cards import Stack, make_batch
from simulators.models.selfplay import SelfPlay
from simulators.models.shoe import Shoe

LETTERS = {"drawn": "C", "cutting_card": "X", "emptied": "E"}


class SimulatedAcmeShoe:
    """Six decks, dealt by themselves. `first`: where the check byte begins, 0 at the $ or 1 behind it."""

    def __init__(self, seed: object, first: int = 1) -> None:
        self.machine = Shoe(Random(f"{seed}/shoe"))
        SelfPlay(self.machine, Random(f"{seed}/hands")).change_shoe(Stack(make_batch("red", 6)))
        self._first, self._seen, self._number, self._out = first, 0, 0, b""

    def receive(self, data: bytes, now: float) -> None:
        """It never listens."""

    def transmit(self, now: float) -> bytes:
        self.advance(now)
        out, self._out = self._out, b""
        return out

    def advance(self, now: float) -> None:
        self.machine.advance(now)
        for happening in self.machine.happenings[self._seen :]:
            self._seen += 1
            if letter := LETTERS.get(happening.kind):
                self._number = (self._number + 1) % 1000
                face = (happening.data["face"] or "??") if letter == "C" else ""
                text = f"${self._number:03}{letter}{face}"
                self._out += f"{text}*{reduce(xor, text[self._first :].encode()):02X}\r\n".encode()

    def deadline(self) -> float | None:
        return self.machine.deadline()
