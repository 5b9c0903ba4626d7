"""The simulator's side of the benchmarks, in a process of its own: quiet devices on ptys.

On standard input `d` draws a card from the first shoe; the time just before its bytes left comes back.
"""

from __future__ import annotations

import os
import selectors
import sys
from pathlib import Path
from random import Random

from firmware_bridge.clock import SystemClock
from simulators.hosts.pty_host import PtyHost
from simulators.models.cards import Stack, make_batch
from simulators.models.reader import HoleCardReader
from simulators.models.shoe import Shoe
from simulators.rig import sim
from simulators.wire.device import WireDevice
from simulators.wire.gat import GatDevice
from simulators.wire.managed_reader import ManagedReader
from simulators.wire.managed_shoe import ManagedShoe
from simulators.wire.reshuffled import ReShuffled

DECKS = 40


class PromptHost(PtyHost):
    """A device that takes its time to answer, in a time that leaps over it."""

    ahead = 0.0

    def pump(self, now: float) -> None:
        super().pump(now + self.ahead)
        while (due := self.device.deadline()) is not None:
            self.ahead = max(self.ahead, due - now)
            super().pump(max(due, now + self.ahead))


def quiet(name: str, seed: str) -> WireDevice:
    """A device with cards inside that nothing happens to by itself."""
    if name == "managed-shoe":
        shoe = Shoe(Random(seed))
        shoe.open_lid()
        shoe.load(Stack(make_batch("red", DECKS)))
        shoe.close_lid()
        return ManagedShoe(shoe)
    if name == "hole-card-reader":
        reader = HoleCardReader()
        reader.slide_in(*make_batch("red", 1)[:2])
        return ManagedReader(reader)
    return sim.make(name, seed)


def host(name: str, path: str) -> PtyHost:
    device = quiet(name, f"bench/{path}")
    return (PromptHost if isinstance(device, GatDevice | ReShuffled) else PtyHost)(device, Path(path))


def draw(device: WireDevice) -> None:
    assert isinstance(device, ManagedShoe)
    device.shoe.draw()


def main() -> None:
    """Serve until standard input closes. Arguments: a device's name, and the names of the ptys."""
    hosts = [host(sys.argv[1], path) for path in sys.argv[2:]]
    clock, selector = SystemClock(), selectors.DefaultSelector()
    for one in hosts:
        selector.register(one.fileno(), selectors.EVENT_READ, one)
    selector.register(0, selectors.EVENT_READ)
    print("ready", flush=True)
    try:
        while True:
            now = clock.now()
            times = [t - now for one in hosts if (t := one.deadline()) is not None]
            for key, _ in selector.select(max(0.0, min(times, default=1.0))):
                if key.data is not None:
                    key.data.pump(clock.now())
                    continue
                if not os.read(0, 1):
                    return
                draw(hosts[0].device)
                left = clock.now()
                hosts[0].pump(left)
                print(f"{left:.9f}", flush=True)
            for one in hosts:
                if (due := one.deadline()) is not None and due <= clock.now():
                    one.pump(clock.now())
    finally:
        for one in hosts:
            one.close()
