"""All simulated devices at once on ptys, each read by its real driver: nothing grows, no error uncaused.

CUTCARD_SOAK_SECONDS changes how long, 600 s.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from itertools import count
from pathlib import Path
from random import Random

import pytest

from devices.base import Resume, Setup
from devices.registry import load
from firmware_bridge.clock import SystemClock
from firmware_bridge.link import Complete
from firmware_bridge.port import Crashed, Opened, Port, Unavailable
from firmware_bridge.transports import open_receiver, open_transport
from simulators.faults.script import from_text
from simulators.rig.plugged import Plugged, plugged
from simulators.rig.sim import DEVICES

SECONDS = float(os.environ.get("CUTCARD_SOAK_SECONDS", "600"))
WARM_UP = 0.25
"""The share of the time before anything is measured."""
GROWTH = 4 << 20
"""Bytes of memory that the devices' own histories may take meanwhile: they keep all that happened."""
ON_A_PTY = [name for name in DEVICES if name != "barcode-hid"]
FAULTS = {
    "*": ["flip_bit", "drop", "duplicate", "chunk", "junk_before", "unplug:0.5", "merge"],
    "angel-eye": ["misread"],
    "bee-tek": ["misread", "line_cut", "alarm"],
    "managed-shoe": ["late_answer:1", "duplicate_answer", "silent:1", "misread"],
    "managed-shuffler": ["late_answer:1", "chatter"],
    "hole-card-reader": ["error", "chatter"],
    "gat": ["bad_crc", "wrong_frame"],
    "reshuffled": ["stray_bytes", "duplicate_answer"],
}
CHANCE = 0.004
"""How likely each fault is at each occasion."""
ASKED = {
    "managed-shoe": "status",
    "managed-shuffler": "status",
    "managed-continuous": "status",
    "managed-stack-shoe": "status",
    "hole-card-reader": "peek",
    "gat": "status",
    "reshuffled": "init",
}
ASKED_EVERY_S = 5
"""What a driver is asked to send, where it takes commands, and how often."""
ERRORS = ("alignment_required", "conflict", "frame_rejected", "gap_possible", "jam", "link_down", "rebooted")
"""What a driver tells only when something went wrong."""


class Watched:
    """One device and the port that reads it; everything that its driver told is counted."""

    def __init__(self, name: str, device: Plugged) -> None:
        self.name, self.device = name, device
        self.told: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self._calls = count(1)
        spec, clock = load(name), SystemClock()
        setup = Setup(name, Random(name), Resume())
        if name in ASKED:
            wire, driver = open_transport(device.uri, spec.baud), spec.controlled(setup)
        elif spec.polled:
            wire, driver = open_transport(device.uri, spec.baud), spec.reader(setup)
        else:
            wire, driver = open_receiver(device.uri, spec.baud), spec.reader(setup)
        self.port = Port(name, wire, driver, clock, self._take)

    def ask(self) -> None:
        if self.name in ASKED:
            self.port.command(str(next(self._calls)), ASKED[self.name])

    def _take(self, _: str, outputs: Sequence[object]) -> None:
        for output in outputs:
            match output:
                case Complete():
                    self.answers[type(output.outcome).__name__] += 1
                case Opened():
                    self.told["opened"] += 1
                case Unavailable() | Crashed():
                    self.told[f"{output}"] += 1
                case _:
                    self.told[output.kind] += 1
                    self.port.ack(output.n)

    @property
    def errors(self) -> dict[str, int]:
        """What was told of anything wrong."""
        return {what: n for what, n in self.told.items() if what in ERRORS or "(" in what}


@contextmanager
def watched(name: str, faults: Sequence[str]) -> Iterator[Watched]:
    steps = [replace(from_text(fault), chance=CHANCE) for fault in faults]
    with plugged(name, seed=f"soak/{name}", faults=steps, plays=True) as device:
        made = Watched(name, device)
        made.port.start()
        try:
            yield made
        finally:
            made.port.stop()


@dataclass(frozen=True)
class Look:
    """What the process holds at a moment."""

    descriptors: int
    threads: int
    resident: int

    def __str__(self) -> str:
        return f"{self.descriptors} descriptors, {self.threads} threads, {self.resident / 2**20:.1f} MiB"

    @classmethod
    def now(cls) -> Look:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        held = len(list(Path("/proc/self/fd").iterdir()))
        return cls(held, threading.active_count(), pages * os.sysconf("SC_PAGE_SIZE"))


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 120)
def test_all_devices_at_once_stay_as_they_are(record_property: Callable[[str, object], None]) -> None:
    pause, looks = threading.Event(), []
    with ExitStack() as stack:
        well = [stack.enter_context(watched(name, [])) for name in ON_A_PTY]
        ill = [stack.enter_context(watched(name, FAULTS["*"] + FAULTS.get(name, []))) for name in ON_A_PTY]
        for second in range(int(SECONDS)):
            pause.wait(1.0)
            looks.append(Look.now())
            for each in well + ill:
                if second % ASKED_EVERY_S == 0:
                    each.ask()
        struck = {each.name: each.device.struck for each in ill}
        uncaused = {each.name: each.errors for each in well if each.errors}
        uncaused |= {each.name: each.errors for each in ill if each.errors and not struck[each.name]}
        crashed = [what for each in ill for what in each.errors if what.startswith("Crashed")]
    first, last = quarters(looks)
    told = sum((each.told for each in well + ill), Counter[str]())
    faults = sum(struck.values(), Counter[str]())
    record_property(
        "explored",
        f"{SECONDS:.0f} s, {len(well + ill)} devices: {told['card_drawn']} cards, {told.total()} outputs, "
        f"{faults.total()} faults of {len(faults)} kinds; after the warm-up {first}, at the end {last}",
    )
    assert uncaused == {}
    assert crashed == []
    assert {name for each in well for name in each.answers} == {"Done"}
    assert [each.name for each in well + ill if each.told["opened"] < 1 or each.told.total() < 3] == []
    assert faults
    assert (last.descriptors, last.threads) == (first.descriptors, first.threads)
    assert last.resident - first.resident < GROWTH


def quarters(looks: Sequence[Look]) -> tuple[Look, Look]:
    """The most that was held in the first quarter after the warm-up, and in the last one."""
    rest = looks[int(len(looks) * WARM_UP) :]
    part = len(rest) // 4
    first, last = (
        Look(*(max(getattr(look, f.name) for look in some) for f in fields(Look)))
        for some in (rest[:part], rest[-part:])
    )
    return first, last
