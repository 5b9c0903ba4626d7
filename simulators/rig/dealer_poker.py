"""The script of `deck-per-round`: three-card poker and its relatives, a fresh deck for each round (R-52)."""

from __future__ import annotations

from collections.abc import Generator
from itertools import groupby

from simulators.models.stack_shoe import StackShoe
from simulators.rig.acts import BETS_S, PREPARE_S, SETTLE_S, TRIES, Acts
from simulators.rig.referee import STUB
from simulators.rig.steps import Count, Pause, Script, Step, Stuck, Tap, Until

COUNTED_IN = 5
"""The dealer counts the stub of each deck in every fifth of its rounds (R-54)."""


class DeckPerRound(Acts):
    """One deck that is shuffled after each round, or two that alternate."""

    def play(self) -> Script:
        names = [batch.id for batch in self.felt.rules.batches]
        played = dict.fromkeys(names, 0)
        yield from self.inspect_devices()
        yield Tap("open")
        for batch in names:
            yield from self.prepare(batch)
        if len(names) > 1:
            yield from self.load_shuffler(names[0])
        for number in range(self.shoes):
            batch = names[number % len(names)]
            yield from self.fresh(batch, stored=names[(number + 1) % len(names)])
            yield from self.cut_deck(batch)
            yield from self.load_shoe(batch)
            yield from self.round()
            played[batch] += 1
            yield from self.end_of_deck(batch, counted=played[batch] % COUNTED_IN == 0)
        yield Tap("close")
        if len(names) > 1:
            yield from self.take_out(names[self.shoes % len(names)])
        yield from self.count_and_close()

    def fresh(self, batch: str, *, stored: str) -> Script:
        """The deck of the next round is shuffled, and in hand."""
        rules = self.felt.rules
        if rules.shuffler is None:
            yield Tap("reshuffle_by_hand", {"batch": batch})
            self.felt.shuffle(batch)
            yield Pause(PREPARE_S)
            return
        if rules.alone:
            yield from self.load_shuffler(batch)
        yield from self.take_out(batch)
        if not rules.alone:
            yield from self.load_shuffler(stored)

    def cut_deck(self, batch: str) -> Script:
        """R-56: ten cards or more onto the cover card, where the deck is cut at all."""
        if self.view.phase != "cut_due":
            return
        position = self.random.randint(10, self.felt.rules.batch_size - 10)
        yield Tap("cut", {"position": position})
        self.felt.cut(batch, position)
        yield Pause(PREPARE_S)

    def round(self) -> Script:
        rules = self.felt.rules
        assert rules.one_deck is not None
        seats = range(1, rules.boxes + 1)
        players = self.players.randint(1, rules.one_deck.most(rules.boxes))
        boxes = sorted(self.players.sample(seats, players))
        yield Pause(BETS_S)
        yield Tap("bets_closed", {"boxes": ",".join(map(str, boxes))})
        self.felt.referee.round_begins()
        order = rules.one_deck.order(boxes, stacked=rules.stacks)
        if rules.stacks:
            for place, stack in groupby(order):
                yield from self.stack(place, len(list(stack)))
        else:
            for place in order:
                yield from self.must_draw(place)
        yield Pause(SETTLE_S)
        yield Tap("round_settled")
        self.felt.pick_up()
        yield Count()

    def stack(self, place: str, count: int) -> Script:
        """R-53: the shoe is asked for a stack, and for what is missing of it when it stopped."""
        shoe, came = self.felt.shoe, 0
        assert isinstance(shoe, StackShoe)
        for _ in range(TRIES):
            yield Tap("dispense")
            yield Until(lambda: not shoe.dispensing, f"the stack of {place}")
            came += self.felt.take_stack(place)
            if came >= count:
                return
        raise Stuck(f"{came} of {count} cards came for {place}")

    def end_of_deck(self, batch: str, *, counted: bool) -> Script:
        """The stub goes to the rack, faces down; in some rounds it is counted (R-54)."""
        stub = yield from self.clear_shoe()
        yield Pause(PREPARE_S)
        said = {"gauge": self.felt.rack.gauge(self.felt.rules.batch_size)}
        yield Tap("collect_rack", {**said, "stub": stub} if counted else said)
        yield Count()
        self.felt.empty_rack(batch)

    def clear_shoe(self) -> Generator[Step, None, int]:
        """How many cards were left."""
        left = len(self.felt.shoe)
        if self.felt.rules.stacks:
            yield from self.stack(STUB, left)
        while not self.felt.shoe.empty:
            yield from self.draw(STUB)
        return left
