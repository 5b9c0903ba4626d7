"""The script of `manual-shoe`: one batch, shuffled after each shoe, by hand or by a shuffler."""

from __future__ import annotations

from simulators.rig.acts import PREPARE_S
from simulators.rig.blackjack import Blackjack
from simulators.rig.steps import Pause, Script, Tap


class OneBatch(Blackjack):
    """A licensed table without a shuffler, and every casino night."""

    def play(self) -> Script:
        (batch,) = (batch.id for batch in self.felt.rules.batches)
        yield from self.inspect_devices()
        yield Tap("open")
        if not self.felt.rules.night:
            yield from self.prepare(batch)
        while len(self.view.batches) < self.shoes:
            yield from self.shuffle_batch(batch)
            yield from self.cut_batch(batch)
            yield from self.load_shoe(batch)
            yield from self.rounds()
            yield from self.end_of_shoe(batch)
        if self.view.phase != "closing":
            yield Tap("close")
        yield from self.count_and_close()

    def shuffle_batch(self, batch: str) -> Script:
        if self.felt.rules.shuffler is not None:
            yield from self.load_shuffler(batch)
            yield from self.take_out(batch)
            return
        yield Tap("reshuffle_by_hand", {"batch": batch})
        self.felt.shuffle(batch)
        yield Pause(PREPARE_S)
