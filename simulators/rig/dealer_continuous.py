"""The script of `continuous`: a machine shuffles and deals, and takes used cards back a round later."""

from __future__ import annotations

from simulators.rig.acts import PREPARE_S
from simulators.rig.blackjack import Blackjack
from simulators.rig.steps import Count, Pause, Script, Tap, Until


class Continuous(Blackjack):
    """A shoe is what lies between two loads: it ends, for an idle hour, when a whole batch was dealt."""

    def play(self) -> Script:
        batches = [batch.id for batch in self.felt.rules.batches]
        yield from self.inspect_devices()
        yield Tap("open")
        for batch in batches:
            yield from self.prepare(batch)
        for number in range(1, self.shoes + 1):
            batch = batches[(number - 1) % len(batches)]
            yield from self.load(batch)
            until = self.view.cards + self.felt.rules.batch_size
            while self.view.phase == "between_rounds" and self.view.cards < until:
                yield from self.round()
            yield Tap("idle" if number < self.shoes else "close")
            yield from self.end_of_shoe(batch)
            if number < self.shoes:
                yield Tap("spread", {"batch": batch})
                yield Pause(PREPARE_S)
                yield Tap("resume")
        yield from self.count_and_close()

    def load(self, batch: str) -> Script:
        """The first shuffle of the cards inside; from then on they are dealt."""
        yield from self.load_shuffler(batch)
        yield Until(lambda: self.view.phase == "between_rounds", f"the first shuffle of batch {batch}")
        self.felt.ready_to_deal()
        yield Count()

    def dealt(self) -> Script:
        """R-60: what rested in the rack for a round goes back."""
        if len(self.felt.rack):
            self.felt.give_back()
            yield None
