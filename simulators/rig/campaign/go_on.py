"""A table's day from wherever it stands: what is next by its phase, once something went wrong.

The dealer's own scripts know only a day in which all goes well. This one looks at the status and at the felt
before each act, as whoever takes a table over does, and mends what is latched first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devices.events import Sense
from simulators.models.cards import Card
from simulators.models.stack_shoe import StackShoe
from simulators.rig.acts import PREPARE_S, SETTLE_S
from simulators.rig.campaign.remedies import DEALER, NO_SHOE, RESHUFFLE, ROUND, SUPERVISOR, TECHNICIAN
from simulators.rig.campaign.rounds import Rounds
from simulators.rig.referee import STUB
from simulators.rig.steps import Pause, Script, Stuck, Tap

IDLE = 60
"""Acts without a card dealt, a batch loaded or a round settled before whoever does them gives up."""


class GoOn(Rounds):
    """`play` is a script for the dealer, to the end of the day."""

    def play(self) -> Script:
        yield Pause(SETTLE_S)
        idle, before = 0, (-1, -1, -1)
        while True:
            yield None
            self.look()
            if self.status["phase"] == "closed" and self.over():
                return
            now = (self.view.cards, self.view.rounds, len(self.view.batches))
            idle, before = idle + 1 if now == before else 0, now
            if idle > IDLE:
                raise Stuck(f"no act is of use in phase {self.status['phase']}")
            if not (yield from self.mend()):
                yield from self._by_phase()

    def over(self) -> bool:
        """Whether the day is over with this closing."""
        return self.view.rounds > 0 and (self.last_shoe() or self.rules.shuffler is None)

    def last_shoe(self) -> bool:
        enough: bool = len(self.view.batches) >= self.acts.shoes
        return enough

    def _by_phase(self) -> Script:
        phase = self.status["phase"]
        if phase in (*ROUND, *RESHUFFLE):
            yield from self.round()
            return
        if self.status["shuffler"]["out"] and phase in NO_SHOE:
            yield Tap("close", {}, SUPERVISOR)
            return
        if phase not in ("closing", "closed", "idle") and (yield from self.at_shuffler()):
            return
        act: Callable[[], Script] = getattr(self, f"_{phase}")
        yield from act()

    # Opening and closing

    def _closed(self) -> Script:
        out = self.status["shuffler"]["out"]
        if out and (
            self.rules.hand_dealt or self.rules.mode != "two-batch-shoe" or self.random.random() < 0.5
        ):
            self.felt.shuffler.traps.mend()
            yield Tap("in_service", {"device": self.rules.shuffler}, TECHNICIAN)
        yield Tap("open", {"mode": "manual-shoe"} if self.look()["shuffler"]["out"] else {}, SUPERVISOR)

    def _opening(self) -> Script:
        yield from self._by_hand()

    def _by_hand(self) -> Script:
        """Where no shuffler is, or none is used: a batch is shuffled by hand."""
        if self.rules.shuffler is not None and not self.status["manual"]:
            yield self.anything("the shuffler")
            return
        batch = next(b for b, said in self.status["batches"].items() if not said["unfit"])
        if (yield from self.prepare(batch)):
            return
        self.strip(batch)
        yield Tap("reshuffle_by_hand", {"batch": batch}, SUPERVISOR)
        self.felt.shuffle(batch)
        yield Pause(PREPARE_S)

    def _closing(self) -> Script:
        said, felt = self.status["shuffler"], self.felt
        batch = said["batch"] or self._some_batch()
        if said["cycle"] in ("checking", "starting", "running"):
            yield self.anything("the shuffler")
            return
        if felt.shuffler.inside and not self.rules.continuous:
            yield from self._empty_at_closing(batch)
            return
        if len(felt.shoe):
            felt.empty_shoe(batch)
        felt.give_up_early()
        for item in (*felt.rack.take().contents(), *felt.layout.pick_up_hands()):
            felt.hold([item], batch)
        for text in [text for text in self.status["expected"] if text.startswith("count_batch")]:
            name = Tap.of(text).args["batch"]
            self.strip(name)
            yield Tap("count_batch", {"batch": name, "cards": len(felt.piles[name])})
        for device in self.rules.devices:
            if device not in self.look()["confirmed_empty"]:
                yield Tap("confirm_empty", {"device": device}, DEALER)
            if device not in self.look()["confirmed_empty"]:
                yield Tap("confirm_empty", {"device": device}, SUPERVISOR)
        yield Tap("close", {}, SUPERVISOR)

    def _empty_at_closing(self, batch: str) -> Script:
        out = self.status["shuffler"]["out"]
        if self.felt.shuffler.state == "done" and not out and self.tried["let out"] < 2:
            yield from self.let_out(batch)
            return
        cards = self.felt.shuffler.inside
        up = self.felt.shuffler.powered and self.rules.shuffler in self.view.up
        self.felt.empty_shuffler(batch)
        yield None
        if not up and out:
            yield Tap("confirm_empty", {"device": self.rules.shuffler, "cards": cards}, DEALER)
            yield Tap("confirm_empty", {"device": self.rules.shuffler}, SUPERVISOR)

    # The swap

    def _first_loaded(self) -> Script:
        yield from self._wait()

    def _first_shuffling(self) -> Script:
        batch, cycle = self.status["shuffler"]["batch"], self.status["shuffler"]["cycle"]
        if cycle != "proved":
            yield from self._wait()
            return
        if self.tried["let out"] > 1:
            self.tried["let out"] = 0
            self.felt.empty_shuffler(batch)
            yield None
            return
        self.tried["let out"] += 1
        yield Tap("take_from_shuffler")
        yield None
        if self.take_tray(batch):
            self.tried["let out"] = 0

    def _wait(self) -> Script:
        if self.status["shuffler"]["cycle"] != "none":
            yield self.anything("the shuffler")

    _other_loaded = _first_loaded

    def _batch_taken(self) -> Script:
        yield from ()

    def _rack_full(self) -> Script:
        self._clear_rack()
        if self.last_shoe():
            yield Tap("close", {}, SUPERVISOR)
        elif self.rules.shuffler is None or self.status["manual"]:
            yield from self._by_hand()
        else:
            yield from self._first_shuffling()

    def _clear_rack(self) -> None:
        self.felt.layout.pick_up("aside")
        last = self.status["shoe"]["last_batch"] or self._some_batch()
        self.felt.hold(self.felt.rack.take().contents(), last)

    def _idle(self) -> Script:
        rack = [b for b, said in self.status["batches"].items() if said["cards"].get("rack")]
        if rack:
            self.felt.hold(self.felt.rack.take().contents(), rack[0])
            yield Tap("spread", {"batch": rack[0]})
            yield Pause(PREPARE_S)
        elif self.last_shoe():
            yield Tap("close", {}, SUPERVISOR)
        else:
            yield Tap("resume")

    # The cut and the shoe

    def _cut_due(self) -> Script:
        batch, size = self._taken(), self.rules.batch_size
        offers = [text for text in self.status["expected"] if text.startswith("offer_cut")]
        if offers:
            yield Tap.of(offers[0])
        position = self.acts.players.randint(10, size - 10)
        yield Tap("cut", {"position": position})
        self.strip(batch)
        self.felt.cut(batch, position)
        yield Pause(PREPARE_S)

    def _cut_done(self) -> Script:
        batch = self._taken()
        behind = self.rules.least_behind_cutting_card or self.rules.batch_size // 4
        yield Tap("insert_cutting_card", {"position": behind})
        self.strip(batch)
        self.felt.layout.pick_up("aside")
        self.felt.insert_cutting_card(batch, behind)

    def _cutting_card_in(self) -> Script:
        batch = self._taken()
        yield Tap(self.acts.load_tap, {"batch": batch})
        if self.rules.mode == "hand-dealt":
            self.felt.cover(batch)
        self._last_off_the_rack(batch)
        self.felt.load_shoe(batch)

    def _last_off_the_rack(self, batch: str) -> None:
        """The rack is empty when a shoe begins (R-08)."""
        if self.felt.rack.contents():
            self.felt.hold(self.felt.rack.take().contents(), batch)

    def _taken(self) -> str:
        batch = self.taken()
        if batch is None:
            raise Stuck("no shuffled batch is in hand")
        return batch

    def _burn_due(self) -> Script:
        if self.felt.shoe.empty:
            yield Tap("shuffle_now", {}, SUPERVISOR)
            return
        yield from self.acts.burn()

    def _shoe_end(self) -> Script:
        """S4: the rest to the rack, faces down, and the rack is gauged."""
        felt, batch = self.felt, self.status["shoe"]["batch"]
        if felt.laid():
            felt.pick_up()
        felt.give_up_early()
        if felt.shoe.locked:
            felt.shoe.set_lock(False, by="key")
            yield None
        if self.refused.get("refused") == "shoe_empty":
            self._take_out_the_rest()
            yield None
        if isinstance(felt.shoe, StackShoe):
            felt.take_stack(STUB)
            if not felt.shoe.empty:
                yield from self.poker.stack(STUB, len(felt.shoe))
        while not felt.shoe.empty and getattr(felt.shoe, "dealing", True):
            yield from self.acts.draw(STUB)
        self._take_out_the_rest()
        yield Pause(PREPARE_S)
        said: dict[str, Any] = {"gauge": felt.rack.gauge(self.rules.batch_size)}
        if Sense.BACK not in self.rules.shoe_senses:
            said["other_backs"] = felt.other_backs(batch)
        wanted = (*self.look()["expected"], *self.refused.get("expected", ()))
        if any("shoe_empty=true" in text for text in wanted if text.startswith("collect_rack")):
            said["shoe_empty"] = True
        if self.status["shoe"]["stub_due"] or self.refused.get("refused") == "stub_not_counted":
            said["stub"] = self._stub()
        yield Tap("collect_rack", said)
        felt.hold(felt.rack.take().contents(), batch)
        felt.layout.pick_up("aside")

    def _take_out_the_rest(self) -> None:
        """What does not come out of the shoe is taken out of it, and laid into the rack."""
        shoe = self.felt.shoe
        if len(shoe):
            shoe.open_lid()
            self.felt.rack.put(item for item in shoe.remove_by_hand().give() if isinstance(item, Card))
            shoe.close_lid()

    def _stub(self) -> int:
        """How many cards came out after the last hand."""
        hands = [laid.place for laid in self.felt.referee.drawn_to]
        return next((n for n, place in enumerate(reversed(hands)) if place != STUB), 0)

    def _between_rounds(self) -> Script:
        felt, rules = self.felt, self.rules
        enough = self.view.cards >= rules.batch_size * len(self.view.batches)
        if felt.laid():
            felt.pick_up()
        if rules.continuous and len(felt.referee.shoes) < len(self.view.batches):
            felt.ready_to_deal()
        if rules.hand_dealt and self.status["shuffler"]["out"]:
            yield Tap("close", {}, SUPERVISOR)
        elif rules.continuous and (felt.shoe.empty or enough):
            yield Tap("close" if self.last_shoe() else "idle")
        elif felt.shoe.empty:
            yield Tap("shuffle_now", {}, SUPERVISOR)
        elif rules.night and not rules.cutting_card and self.last_shoe() and len(felt.shoe) < 5 * rules.boxes:
            yield Tap("close")
        else:
            yield from self.acts.round()
