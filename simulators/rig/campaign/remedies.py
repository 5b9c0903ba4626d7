"""What a supervisor or a technician does about what is latched: by hands and by taps, as the texts say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from random import Random
from typing import Any

from controller.table.profiles import TableRules
from simulators.models.cards import Stack
from simulators.models.continuous import ContinuousShuffler
from simulators.rig.acts import PREPARATION, PREPARE_S, Acts
from simulators.rig.felt import Felt
from simulators.rig.stepped import Stepped
from simulators.rig.steps import Pause, Script, Step, Tap, Until
from simulators.rig.view import View

Status = Mapping[str, Any]
Did = Generator[Step, None, bool]
"""A script that tells whether it did anything."""

SUPERVISOR, TECHNICIAN, DEALER = "supervisor", "technician", "dealer"
_PREPARED = {"received": 0, "inspected": 1, "verified": 2, "spread": 3, "player_inspected": 4}
"""How many steps of the preparation are done."""
ROUND = ("round_burn", "dealing", "side_wagers", "hole_card", "playing")
RESHUFFLE = ("reshuffle_cut", "reshuffle_load", "reshuffle_burn")
NO_SHOE = (
    *("opening", "first_loaded", "first_shuffling", "batch_taken", "other_loaded"),
    *("cut_due", "cut_done", "cutting_card_in", "rack_full"),
)
LOADS = ("opening", "batch_taken", "cut_due", "cut_done", "cutting_card_in", "burn_due", "between_rounds")
"""Phases, beside the end of a shoe, in which a batch goes into the shuffler."""
BROKEN_DOWN = 5
"""So many failures of one kind, and the shuffler goes out of service."""
OUT_AT_ONCE = 0.15
"""How often a shuffler that voided its cycle goes out of service at once."""


class Remedies:
    """`tried` counts, by fault code or act, how often it was of no use so far; `refused` was the last tap."""

    def __init__(self, world: Stepped, random: Random, tried: Counter[str], seen: set[str]) -> None:
        self._world = world
        self.felt: Felt = world.felt
        self.view: View = world.view
        self.acts: Acts = world.dealer.acts
        self.rules: TableRules = self.felt.rules
        self.random, self.tried, self._seen = random, tried, seen
        self.status: Status = {}
        self.refused = world.dealer.refused or {}

    def look(self) -> Status:
        """The status of the moment; `status` is the last one that was looked at."""
        self.status = self._world.controller.view("status")
        return self.status

    def anything(self, what: str) -> Until:
        """Wait until anything more is journaled."""
        before = self.view.seq
        return Until(lambda: self.view.seq != before, what)

    # What is latched

    def mend(self) -> Did:
        """Do the next thing that a latched fault calls for."""
        phase = self.status["phase"]
        if self._stray():
            yield from self.empty_shoe()
            return True
        for fault in self.status["faults"]:
            if fault["id"] not in self._seen:
                self._seen.add(fault["id"])
                self.tried[fault["code"]] += 1
                yield from self.technician(fault["code"])
            if fault["cause_gone"]:
                by = SUPERVISOR if self.random.random() < 0.7 else fault["cleared_by"][-1]
                yield Tap("clear", {"fault": fault["id"]}, by)
                return True
        for fault in self.status["faults"]:
            if fault["code"] == "reader_failed":
                return (yield from self.reader())
            if fault["code"] == "cards_inside" and phase not in (*ROUND, *RESHUFFLE):
                whose = fault["batch"] or self._some_batch()
                self.felt.empty_shoe(whose) if self.rules.continuous else self.felt.empty_shuffler(whose)
                yield None
                return True
        if phase in (*ROUND, *RESHUFFLE, "closed"):
            return False
        for batch, held in self.status["batches"].items():
            if held["unfit"] and (yield from self.unfit(batch)):
                return True
        if self._round_blocked() and phase in ("burn_due", "between_rounds"):
            yield from self.end_shoe()
            return True
        return False

    def _stray(self) -> bool:
        """Whether cards lie in a shoe, or before it, that was not loaded."""
        shoe = self.felt.shoe
        if (
            self.status["shoe"]["batch"] is not None
            or self.rules.continuous
            or self.status["phase"] == "closing"
        ):
            return False
        return not shoe.empty or self.felt.laid() > 0

    def _some_batch(self) -> str:
        return self.rules.batches[0].id

    def _round_blocked(self) -> bool:
        playing = self.status["shoe"]["batch"]
        return any(
            fault["blocks"] == "round" and (not fault["unfit"] or fault["batch"] in (None, playing))
            for fault in self.status["faults"]
        )

    def technician(self, code: str) -> Script:
        """At the second time that something fails the machines are mended, not only tried again."""
        shoe = self.felt.shoe
        for machine in (self.felt.shuffler, *((shoe,) if isinstance(shoe, ContinuousShuffler) else ())):
            machine.settings.update(mode="shuffle", recognition=True)
            machine.settings.update(decks=self.rules.decks, cards_per_deck=len(self.rules.deck))
        if code == "shuffle_void" and self.random.random() < OUT_AT_ONCE:
            self.tried[code] = BROKEN_DOWN + 1
        if self.tried[code] > 1:
            self.felt.shuffler.maintain()
            for machine in (self.felt.shuffler, self.felt.shoe, self.felt.reader):
                machine.traps.mend()
        yield from ()

    def reader(self) -> Did:
        """Either it works again and is inspected, or the table deals without it."""
        if self.tried["reader_failed"] < 2 and self.random.random() < 0.5:
            yield Tap("inspect", {"device": self.rules.reader}, SUPERVISOR)
        else:
            yield Tap("no_reader", {}, SUPERVISOR)
        return True

    # Batches

    def unfit(self, batch: str) -> Did:
        """R-55: out of shoe and shuffler, off the table, and another one in its place."""
        held = self.status["batches"][batch]
        phase = self.status["phase"]
        if phase in ("closing", "closed"):
            return False
        if self.status["shoe"]["batch"] == batch:
            if phase not in ("burn_due", "between_rounds"):
                return False
            if not self._round_blocked() and self.random.random() < 0.5:
                return False
            yield from self.end_shoe()
            return True
        if held["cards"].get("shuffler"):
            return False  # the shuffler is seen to by its own turn
        self.strip(batch)
        if self.felt.rack and not self.status["shoe"]["batch"]:
            self.felt.hold(self.felt.rack.take().contents(), batch)
        yield Tap("replace_batch", {"batch": batch}, SUPERVISOR)
        self.felt.replace(batch)
        return True

    def end_shoe(self) -> Script:
        if self.rules.continuous:
            yield Tap("idle" if self.random.random() < 0.5 else "close", {}, SUPERVISOR)
        else:
            yield Tap("shuffle_now", {}, SUPERVISOR)

    def prepare(self, batch: str) -> Did:
        """What is still missing of the preparation of a new batch (R-13)."""
        done = _PREPARED.get(self.status["batches"][batch]["prep"])
        if done is None:
            return False
        for event in PREPARATION[done:]:
            who = {"inspect": DEALER, "verify": SUPERVISOR}.get(event, "")
            yield Tap(event, {"batch": batch}, who)
            yield Pause(PREPARE_S)
        self.felt.wash(batch)
        return True

    def strip(self, batch: str) -> None:
        """The batch is in hand, whatever was in its pile; its cutting cards lie aside."""
        pile = self.felt.piles.setdefault(batch, Stack())
        while pile.take_cutting_card() is not None:
            pass

    def empty_shoe(self) -> Script:
        """Every card out of the shoe, and what was dealt from it off the layout."""
        strays = [f["batch"] for f in self.status["faults"] if f["batch"]]
        batch = strays[0] if strays else self._some_batch()
        self.felt.hold(self.felt.layout.pick_up_hands(), batch)
        self.felt.empty_shoe(batch)
        yield None

    # The shuffler

    def at_shuffler(self) -> Did:
        """The next act at the shuffler, if one is due: load, start, let out, lift out."""
        said = self.status["shuffler"]
        if self.rules.continuous:
            return (yield from self._at_continuous())
        if self.rules.shuffler is None or said["out"] or self.status["manual"]:
            return False
        batch, cycle = said["batch"], said["cycle"]
        if cycle == "proved":
            self.tried["start"] = 0
        if cycle in ("checking", "starting"):
            yield self.anything("the cycle to start")
            return True
        if batch is None:
            return (yield from self.store())
        if self._worn_out() and self.status["phase"] != "closing":
            yield Tap("out_of_service", {"device": self.rules.shuffler}, TECHNICIAN)
            return True
        held = self.status["batches"][batch]
        if held["unfit"] and cycle != "running":
            yield from self.let_out(batch)
            return True
        if held["unfit"] or cycle != "none":
            return False
        if held["cards"].get("shuffler") != self.rules.batch_size or self.felt.shuffler.jammed:
            self.felt.empty_shuffler(batch)
            yield None
            return True
        self.felt.shuffler.close_door()
        self.tried["start"] += 1
        yield Tap("start_shuffle")
        yield Until(lambda: self.view.cycle in ("running", "proved", "none"), "the cycle to start")
        if self.tried["start"] > 1:
            yield from self.technician("start")
        return True

    def _at_continuous(self) -> Did:
        """A machine that deals too: load it, see to its first shuffle, or take the cards out again."""
        phase, batch = self.status["phase"], self.status["shuffler"]["batch"]
        if phase in ("opening", "rack_full") and batch is None:
            return (yield from self.store())
        if phase != "first_loaded" or self.status["shuffler"]["cycle"] != "none":
            return False
        held = self.status["batches"][batch]
        if held["unfit"] or held["cards"].get("shuffler") != self.rules.batch_size or self.tried["start"] > 2:
            self.tried["start"] = 0
            self.felt.empty_shoe(batch)
            yield None
            return True
        self.tried["start"] += 1
        self.felt.shoe.close_lid()
        yield Tap("start_shuffle")
        yield Until(lambda: self.view.cycle in ("running", "proved", "none"), "the cycle to start")
        yield from self.technician("start")
        return True

    def _worn_out(self) -> bool:
        """Whether nobody believes any more that the shuffler will work."""
        codes = ("shuffle_void", "start", "settings_mismatch", "foreign_cycle", "wrong_mode")
        if any(self.tried[code] > BROKEN_DOWN for code in codes):
            self.tried.update({code: -self.tried[code] for code in codes})
            return True
        return False

    def let_out(self, batch: str) -> Script:
        """A batch comes out: the machine lets it out where it can, else by hand."""
        can = self.felt.shuffler.state == "done" and self.tried["let out"] < 2
        if can and self.status["phase"] in ("first_loaded", "other_loaded", "rack_full", "closing"):
            self.tried["let out"] += 1
            yield Tap("take_from_shuffler")
            yield None
            self.take_tray(batch)
        else:
            self.tried["let out"] = 0
            self.felt.empty_shuffler(batch)
            yield None

    def take_tray(self, batch: str) -> bool:
        """What was let out, in hand; False when nothing was."""
        before = self.felt.piles.pop(batch, Stack())
        stack = self.felt.take_tray(batch)
        came = bool(len(stack))
        stack.add(before.give())
        return came

    def store(self) -> Did:
        """Load the batch whose turn it is into the empty shuffler."""
        batch = self.due()
        if batch is None or self.status["batches"][batch]["unfit"]:
            return False
        if (yield from self.prepare(batch)):
            return True
        if self.rules.continuous and len(self.felt.shoe):
            self.felt.empty_shoe(batch)
            yield None
        elif self.felt.shuffler.inside:
            self.felt.empty_shuffler(batch)
            yield None
        self.strip(batch)
        if len(self.felt.piles[batch]) < self.rules.batch_size and len(self.felt.rack):
            self.felt.hold(self.felt.rack.take().contents(), batch)
        yield Tap("load_shuffler", {"batch": batch})
        self.felt.load_shuffler(batch)
        return True

    def due(self) -> str | None:
        """Which batch goes into the shuffler now."""
        names, last = [batch.id for batch in self.rules.batches], self.status["shoe"]["last_batch"]
        if self.status["phase"] not in (*LOADS, "rack_full"):
            return None
        if len(names) == 1:
            return names[0] if self.status["phase"] in ("opening", "rack_full") else None
        in_use = self.status["shoe"]["batch"] or self.taken()
        if in_use is not None:
            return names[1 - names.index(in_use)]
        return next(name for name in names if name != last)

    def taken(self) -> str | None:
        """The shuffled batch in hand, whose turn it is."""
        held = [
            b
            for b, said in self.status["batches"].items()
            if said["shuffled"] and said["cards"].get("in_hand")
        ]
        by_hand = [b for b in held if self.status["batches"][b]["shuffled_by"] == "hand"]
        held = by_hand or held
        return next((b for b in held if b != self.status["shoe"]["last_batch"]), held[0] if held else None)
