"""The script of two batches, from the shoe or the hand: one is dealt, the other shuffled (S4, S6)."""

from __future__ import annotations

from simulators.rig.acts import PREPARE_S
from simulators.rig.blackjack import Blackjack
from simulators.rig.steps import Pause, Script, Tap


class TwoBatches(Blackjack):
    """S1 to S4 and S10: the batches alternate."""

    def play(self) -> Script:
        rules = self.felt.rules
        first, second = (batch.id for batch in rules.batches)
        yield from self.open(first, second)
        batch = first
        for number in range(1, self.shoes + 1):
            yield from self.cut_batch(batch)
            yield from self.load_shoe(batch)
            yield from self.rounds()
            yield from self.end_of_shoe(batch)
            if number < self.shoes:
                other = second if batch == first else first
                yield from self.swap(taken=other, loaded=batch)
                batch = other
        yield from self.close(second if batch == first else first)

    def open(self, first: str, second: str) -> Script:
        """S1: the devices inspected; each batch prepared and washed; then A shuffled, B after it."""
        yield from self.inspect_devices()
        yield Tap("open")
        for batch in (first, second):
            yield from self.prepare(batch)
        yield from self.load_shuffler(first)
        yield from self.swap(taken=first, loaded=second)

    def swap(self, *, taken: str, loaded: str) -> Script:
        """S4: take the shuffled batch out, put the other in and see its cycle start."""
        yield from self.take_out(taken)
        yield from self.load_shuffler(loaded)
        yield Pause(PREPARE_S)

    def close(self, stored: str) -> Script:
        """S10: the batch in the shuffler is taken out before all is counted."""
        yield Tap("close")
        yield from self.take_out(stored)
        yield from self.count_and_close()
