"""`cutcard sim`: one simulated device on a pty or a TCP port, in real time."""

from __future__ import annotations

import difflib
import selectors
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

from firmware_bridge.clock import SystemClock
from simulators import faults
from simulators.hosts.host import Host
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.tcp_host import TcpHost
from simulators.models.cards import Stack, make_batch
from simulators.models.reader import HoleCardReader, RoundDealer
from simulators.models.selfplay import SelfPlay
from simulators.models.shoe import Shoe
from simulators.models.shuffler import ShelfShuffler
from simulators.wire.angel_eye import AngelEye
from simulators.wire.device import WireDevice
from simulators.wire.managed_reader import ManagedReader
from simulators.wire.managed_shoe import ManagedShoe
from simulators.wire.managed_shuffler import ManagedShuffler

DECKS = {"angel-eye": 8, "managed-shoe": 6, "managed-shuffler": 6}
DEVICES = (*DECKS, "hole-card-reader")
RELOAD_S = 5.0
"""A batch that was let out is put back so long after, since nobody else is there."""
LISTEN = "pty:PATH or tcp:HOST:PORT"


class Misused(ValueError):
    """A mistake on the command line, told with what would be right."""


def make(device: str, seed: object) -> WireDevice:
    """The simulated device with its cards inside. Raises Misused naming the nearest device."""
    if device not in DEVICES:
        raise Misused(
            f"there is no simulated device {device!r}{_near(device, DEVICES)}; there are {_list(DEVICES)}"
        )
    if device == "hole-card-reader":
        reader = HoleCardReader()
        RoundDealer(reader, Random(f"{seed}/hands"))
        return ManagedReader(reader)
    fresh = Stack(make_batch("red", DECKS[device]))
    if device == "managed-shuffler":
        shuffler = ShelfShuffler(Random(f"{seed}/shuffler"), decks=DECKS[device])
        shuffler.load(fresh)
        return ManagedShuffler(shuffler)
    shoe = Shoe(Random(f"{seed}/shoe"))
    SelfPlay(shoe, Random(f"{seed}/hands")).change_shoe(fresh)
    return AngelEye(shoe) if device == "angel-eye" else ManagedShoe(shoe, decks=DECKS[device])


def prepare(device: WireDevice, wanted: Iterable[str]) -> None:
    """Set up faults given as NAME[:VALUE][@N]. Raises Misused naming the nearest fault."""
    for text in wanted:
        name = text.partition("@")[0].partition(":")[0]
        if name not in faults.FAULTS and name.isidentifier():
            near, known = _near(name, faults.FAULTS), _list(faults.FAULTS)
            raise Misused(f"there is no fault {name!r}{near}; there are {known}")
        try:
            faults.apply(device, text)
        except faults.UnfitFault as error:
            raise Misused(f"--fault {text}: {error}") from error


def listen(device: WireDevice, where: str) -> Host:
    """The host at `where`. Raises Misused, or OSError when the place cannot be had."""
    scheme, _, rest = where.partition(":")
    if scheme == "pty" and rest:
        return PtyHost(device, Path(rest))
    address, _, port = rest.rpartition(":")
    if scheme == "tcp" and address and port.isdigit() and int(port) < 65536:
        return TcpHost(device, address.removeprefix("[").removesuffix("]"), int(port))
    raise Misused(f"--listen {where}: write {LISTEN}{_near(scheme, ('pty', 'tcp'))}")


def serve(host: Host, stop: Callable[[], bool] = lambda: False) -> None:
    """Live in real time until `stop` holds, asked after each turn, or for ever."""
    clock = SystemClock()
    start, attendant = clock.now(), Attendant(host.device)
    while not stop():
        now = clock.now() - start
        host.pump(now)
        attendant.act(now)
        times = [t for t in (host.deadline(), attendant.deadline()) if t is not None]
        with selectors.DefaultSelector() as selector:
            writers = set(host.writers())
            for number in {*host.filenos(), *writers}:
                events = selectors.EVENT_READ | (selectors.EVENT_WRITE if number in writers else 0)
                selector.register(number, events)
            selector.select(max(0.0, min(times) - now) if times else None)


class Attendant:
    """Puts a batch that the shuffler let out back into it after a while."""

    def __init__(self, device: WireDevice) -> None:
        machine = device.machine
        self._shuffler = machine if isinstance(machine, ShelfShuffler) else None
        self._at: float | None = None
        self._in_hand = Stack()

    def deadline(self) -> float | None:
        return self._at

    def act(self, now: float) -> None:
        if self._shuffler is None:
            return
        self._in_hand.add(self._shuffler.take().give())
        if not len(self._in_hand):
            return
        if self._at is None:
            self._at = now + RELOAD_S
        elif now >= self._at and self._shuffler.state in ("empty", "loaded"):
            self._shuffler.load(self._in_hand)
            self._at = None


def _near(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), 1, 0.4)
    return f"; did you mean {near[0]!r}?" if near else ""


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
