"""Faults of the mechanics."""

from __future__ import annotations

from simulators.faults.fault import (
    machine,
    one_or_none,
    seconds,
    setting,
    trap,
    whole,
    words,
)
from simulators.models.cards import RANKS
from simulators.models.continuous import ContinuousShuffler
from simulators.models.dealing_machine import DealingMachine
from simulators.models.reader import HoleCardReader
from simulators.models.shoe import Shoe
from simulators.models.shuffler import ShelfShuffler
from simulators.models.stack_shoe import StackShoe
from simulators.models.verifier import Verifier

_SHUFFLER = machine(ShelfShuffler)
_CONTINUOUS = machine(ContinuousShuffler)


def _sort(bearer: ShelfShuffler | ContinuousShuffler, _: None) -> None:
    bearer.settings["mode"] = "sort"


MACHINES = {
    "leave_inside": trap("VALUE (16) cards never leave the input", "cycle", _SHUFFLER, whole(16), hides=True),
    "sort_mode": setting(
        "the machine sorts instead of shuffling", machine(ShelfShuffler, ContinuousShuffler), _sort
    ),
    "no_start": trap(
        "start is answered, but no cycle ever starts",
        "start",
        machine(ShelfShuffler, ContinuousShuffler, DealingMachine),
    ),
    "jam": trap(
        "cards jam at place VALUE in mid-cycle",
        "cycle or stack",
        machine(ShelfShuffler, DealingMachine, StackShoe),
        words,
    ),
    "extra_card": trap("one card more leaves than was asked for", "stack", machine(StackShoe)),
    "reboot_mid_cycle": trap(
        "power is lost for VALUE (0.2) s in mid-cycle", "cycle", _SHUFFLER, seconds, at="power_cut"
    ),
    "wrong_back_card": trap(
        "a card has a back of colour VALUE",
        "card or load",
        machine(Shoe, ShelfShuffler),
        words,
        at="wrong_back",
        hides=True,
    ),
    "stuck": trap(
        "VALUE (1) of the cards that go back stick on their way", "return", _CONTINUOUS, whole(1), hides=True
    ),
    "counted_twice": trap(
        "VALUE (1) of the cards that go back are counted twice", "return", _CONTINUOUS, whole(1)
    ),
    "misread": trap(
        "a card's face is not read; a hole-card reader takes it for VALUE",
        "card or look",
        machine(Shoe, HoleCardReader),
        one_or_none(*RANKS),
        valued=machine(HoleCardReader),
    ),
    "error": trap("it ends in an error", "look or calculation", machine(HoleCardReader, Verifier)),
    "slow_calculation": trap(
        "it takes VALUE s (just under 20 min)", "calculation", machine(Verifier), seconds, at="slow"
    ),
}
