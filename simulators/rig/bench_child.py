"""The simulator's side of the benchmarks, in a process of its own: quiet managed shoes on ptys.

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
from simulators.models.shoe import Shoe
from simulators.wire.managed_shoe import ManagedShoe

DECKS = 40


def main() -> None:
    """Serve until standard input closes. Arguments: the names of the ptys."""
    shoes = [Shoe(Random(f"bench/{path}")) for path in sys.argv[1:]]
    hosts = [PtyHost(ManagedShoe(shoe), Path(path)) for shoe, path in zip(shoes, sys.argv[1:], strict=True)]
    clock, selector = SystemClock(), selectors.DefaultSelector()
    for shoe in shoes:
        shoe.open_lid()
        shoe.load(Stack(make_batch("red", DECKS)))
        shoe.close_lid()
    for host in hosts:
        selector.register(host.fileno(), selectors.EVENT_READ, host)
    selector.register(0, selectors.EVENT_READ)
    print("ready", flush=True)
    try:
        while True:
            now = clock.now()
            times = [t - now for host in hosts if (t := host.deadline()) is not None]
            for key, _ in selector.select(max(0.0, min(times, default=1.0))):
                if key.data is not None:
                    key.data.pump(clock.now())
                    continue
                if not os.read(0, 1):
                    return
                shoes[0].draw()
                left = clock.now()
                hosts[0].pump(left)
                print(f"{left:.9f}", flush=True)
            for host in hosts:
                if (due := host.deadline()) is not None and due <= clock.now():
                    host.pump(clock.now())
    finally:
        for host in hosts:
            host.close()
