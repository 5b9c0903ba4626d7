"""Faults of the mechanics."""

from __future__ import annotations

from typing import Any

from simulators.faults.fault import (
    act,
    machine,
    number,
    one_or_none,
    put,
    seconds,
    seconds_or,
    setting,
    trap,
    whole,
    words,
)
from simulators.models.cards import RANKS, SUITS
from simulators.models.continuous import ContinuousShuffler
from simulators.models.dealing_machine import DealingMachine
from simulators.models.machine import Machine
from simulators.models.reader import HoleCardReader
from simulators.models.shoe import Shoe
from simulators.models.shuffler import BatchShuffler
from simulators.models.stack_shoe import StackShoe
from simulators.models.verifier import Verifier

_SHOE = machine(Shoe)
_SHUFFLER = machine(BatchShuffler)
_CONTINUOUS = machine(ContinuousShuffler)
_LOADED = machine(Shoe, BatchShuffler)
_SORTS = machine(BatchShuffler, ContinuousShuffler)
_FACES = tuple(rank + suit for rank in RANKS for suit in SUITS)


def _sort(bearer: Any, _: None) -> None:
    bearer.settings["mode"] = "sort"


def _no_recognition(bearer: Any, _: None) -> None:
    bearer.settings["recognition"] = False


def _reboot(bearer: Machine, off_s: float) -> None:
    bearer.power_cut(off_s)


SHOES = {
    "misread": trap(
        "a card's face is not read; a hole-card reader takes it for VALUE",
        "card or look",
        machine(Shoe, HoleCardReader),
        one_or_none(*RANKS),
        valued=machine(HoleCardReader),
    ),
    "wrong_face": trap(
        "a card is read as VALUE (e.g. 8S; the next rank)", "card", _SHOE, one_or_none(*_FACES), hides=True
    ),
    "wrong_back_card": trap(
        "a card has a back of colour VALUE", "card or load", _LOADED, words, at="wrong_back", hides=True
    ),
    "face_up": trap("a card lies face up", "card", _SHOE),
    "unseen": trap("a card leaves and nobody is told", "card", _SHOE, hides=True),
    "read_twice": trap("a card is read twice", "card", _SHOE, hides=True),
    "double_feed": trap(
        "a card comes along unread under another; in a shuffler VALUE (1) cards",
        "card or cycle",
        _LOADED,
        whole(None),
        hides=True,
        valued=_SHUFFLER,
    ),
    "overdraw": trap("the next card is read too, and lies in the exit", "card", _SHOE, hides=True),
    "sticks": trap("no card comes out for VALUE (3) s", "card", _SHOE, seconds),
    "power_cut_at_card": trap(
        "a card leaves, or is looked at, while the power goes for VALUE (0.2) s",
        "card or look",
        machine(Shoe, HoleCardReader),
        seconds,
        at="power_cut",
        hides=True,
    ),
    "cut_unseen": trap(
        "the cutting card passes unseen", "cutting card", machine(Shoe, but=ContinuousShuffler)
    ),
    "extra_card": trap("one card more leaves than was asked for", "stack", machine(StackShoe)),
}
"""What happens at an exit."""

LOADS = {
    "missing": trap("VALUE (1) cards are not in the pile", "load", _LOADED, whole(1), hides=True),
    "extra": trap("VALUE (1) strange cards are in the pile", "load", _LOADED, whole(1), hides=True),
    "duplicate_card": trap(
        "a card of the pile is a copy of another", "load", _LOADED, at="duplicate", hides=True
    ),
    "joker": trap("a card of the pile is a joker", "load", _LOADED, hides=True),
}
"""What is wrong with a pile that goes in."""

CYCLES = {
    "leave_inside": trap("VALUE (16) cards never leave the input", "cycle", _SHUFFLER, whole(16), hides=True),
    "stuck": trap(
        "VALUE (1) cards stick where no sensor is", "cycle or return", _SORTS, whole(1), hides=True
    ),
    "sort_mode": setting("the machine sorts instead of shuffling", _SORTS, _sort),
    "no_recognition": setting("the machine reads no cards", _SORTS, _no_recognition),
    "wear": setting(
        "each cycle wears it out by VALUE (0.05) more", _SHUFFLER, put(wear=...), number(0.05, 0.001, 10)
    ),
    "no_start": trap(
        "start is answered, but no cycle ever starts",
        "start",
        machine(BatchShuffler, ContinuousShuffler, DealingMachine),
    ),
    "jam": trap(
        "cards jam at place VALUE in mid-cycle",
        "cycle or stack",
        machine(BatchShuffler, DealingMachine, StackShoe),
        words,
    ),
    "recovered_jam": trap("a jam comes free at try VALUE (2)", "cycle", _SHUFFLER, whole(2)),
    "reboot_mid_cycle": trap(
        "power is lost for VALUE (0.2) s in mid-cycle", "cycle", _SHUFFLER, seconds, at="power_cut"
    ),
    "freeze": trap("a dip stops the motors and not the firmware", "cycle", _SHUFFLER),
    "door": trap(
        "the door is opened in mid-cycle, and closed after VALUE (5) s", "cycle", _SHUFFLER, seconds
    ),
    "unreadable": trap("VALUE (1) cards are not read", "cycle", _SHUFFLER, whole(1)),
    "miscount": trap(
        "its report counts VALUE (1) cards more than there are; -1: fewer", "cycle", _SHUFFLER, whole(1, -999)
    ),
    "same_cycle": trap("a cycle has the number of the one before", "start", _SHUFFLER),
    "forget_token": trap("the token of a completed batch is forgotten", "cycle", _SHUFFLER),
    "power_cut_out": trap(
        "the power goes when VALUE (half) of the batch is out", "release", _SHUFFLER, whole(None), hides=True
    ),
    "miscount_out": trap(
        "VALUE (1) cards more are told than come out", "release", _SHUFFLER, whole(1), hides=True
    ),
    "counted_twice": trap(
        "VALUE (1) of the cards that go back are counted twice", "return", _CONTINUOUS, whole(1), hides=True
    ),
    "uncounted": trap(
        "VALUE (1) of the cards that go back are not counted", "return", _CONTINUOUS, whole(1), hides=True
    ),
    "no_slot": trap(
        "VALUE (1) of the cards that go back find no slot yet", "return", _CONTINUOUS, whole(1), at="overflow"
    ),
}
"""What happens inside."""

OTHERS = {
    "reboot": act("the power is gone for VALUE (0.2) s", machine(Machine), _reboot, seconds_or(0.2)),
    "error": trap("it ends in an error", "look or calculation", machine(HoleCardReader, Verifier)),
    "slow_calculation": trap(
        "it takes VALUE s (just under 20 min)", "calculation", machine(Verifier), seconds, at="slow"
    ),
}

MACHINES = SHOES | LOADS | CYCLES | OTHERS
