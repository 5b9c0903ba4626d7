"""`cutcard sim`: one simulated device on a pty, a TCP port or a simulated USB bus, in real time."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from pathlib import Path
from random import Random
from typing import Any, cast

from controller.signals import WANTED
from devices.registry import DriverError, fetch, index
from firmware_bridge.clock import SystemClock
from simulators import faults
from simulators.faults import script
from simulators.faults.script import Step, near
from simulators.hosts import served
from simulators.hosts.host import Host
from simulators.hosts.line import Line
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.tcp_host import TcpHost
from simulators.hosts.umockdev_host import PathTooLongError, UmockdevHost, environment, missing
from simulators.hosts.usb_host import PacketDevice, UsbHost
from simulators.models.cards import Stack, make_batch
from simulators.models.continuous import ContinuousShuffler
from simulators.models.dealing_machine import DealingMachine
from simulators.models.reader import HoleCardReader, RoundDealer
from simulators.models.selfplay import ContinuousPlay, SelfPlay, StackHands
from simulators.models.shoe import Shoe
from simulators.models.shuffler import SECONDS_PER_DECK, BatchShuffler
from simulators.models.stack_shoe import StackShoe
from simulators.models.verifier import Verifier, programs
from simulators.rig.signals import STRIKE
from simulators.wire.angel_eye import AngelEye
from simulators.wire.barcode_hid import BarcodeReader
from simulators.wire.bee_tek import BeeTek
from simulators.wire.device import WireDevice, earliest
from simulators.wire.framings import CONSOLE, PACKETS
from simulators.wire.gat import GatDevice
from simulators.wire.managed import ManagedDevice
from simulators.wire.managed_continuous import ManagedContinuous
from simulators.wire.managed_reader import ManagedReader
from simulators.wire.managed_shoe import ManagedShoe
from simulators.wire.managed_shuffler import ManagedShuffler
from simulators.wire.managed_stack_shoe import ManagedStackShoe
from simulators.wire.reshuffled import ReShuffled

DECKS = {
    "angel-eye": 8,
    "barcode-hid": 8,
    "bee-tek": 8,
    "managed-continuous": 6,
    "managed-shoe": 6,
    "managed-shuffler": 6,
    "managed-stack-shoe": 1,
    "reshuffled": 1,
}
DEVICES = (*DECKS, "hole-card-reader", "gat")
GROUP = "cutcard.simulators"
"""Entry points of others: each makes a WireDevice from a seed, with its cards inside."""
RELOAD_S = 5.0
"""A batch that was let out is put back so long after, since nobody else is there."""
LISTEN = "pty:PATH, tcp:HOST:PORT or usb:DIRECTORY"

ENDING = (*WANTED, STRIKE)
"""Whatever may break into the main thread."""


class Misused(ValueError):
    """A mistake on the command line, told with what would be right."""


def make(device: str, seed: object, *, usb: bool = False, plays: bool = True) -> WireDevice:
    """The simulated device with its cards inside; without `plays` nobody deals from it by himself.

    Raises Misused naming the nearest device.
    """
    made, load = build(device, seed, usb=usb, plays=plays)
    load()
    return made


def build(
    device: str, seed: object, *, usb: bool = False, plays: bool = True
) -> tuple[WireDevice, Callable[[], None]]:
    """As `make`, still empty, and what puts its cards inside: faults laid before strike at this load."""
    made, hands = _made(device, seed, usb=usb)

    def load() -> None:
        hands()
        machine = made.machine
        if not plays and isinstance(machine, Shoe):
            machine.hands = None
        if not plays and isinstance(machine, HoleCardReader):
            machine.player = None

    return made, load


def _made(device: str, seed: object, *, usb: bool) -> tuple[WireDevice, Callable[[], object]]:
    """The empty device, and the hands that load it."""
    as_built: dict[str, Any] = {"framing": PACKETS if usb else CONSOLE, "paced": True}
    if device not in DEVICES:
        return _make_theirs(device, seed), lambda: None
    if device == "gat":
        return GatDevice(Verifier(programs(Random(f"{seed}/programs")))), lambda: None
    if device == "hole-card-reader":
        reader = HoleCardReader()
        RoundDealer(reader, Random(f"{seed}/hands"))
        return ManagedReader(reader, **as_built), lambda: None
    fresh = Stack(make_batch("red", DECKS[device]))
    if device == "managed-shuffler":
        shuffler = BatchShuffler(Random(f"{seed}/shuffler"), decks=DECKS[device])
        return ManagedShuffler(shuffler, **as_built), lambda: shuffler.load(fresh)
    if device == "managed-continuous":
        before = -SECONDS_PER_DECK * DECKS[device]  # its first shuffle is over when it listens
        continuous = ContinuousShuffler(Random(f"{seed}/shuffler"), decks=DECKS[device], now=before)
        player = ContinuousPlay(continuous, Random(f"{seed}/hands"), pace=1.0)

        def fill() -> None:
            continuous.put_in(fresh)
            player.act()

        return ManagedContinuous(continuous, **as_built), fill
    if device == "managed-stack-shoe":
        stacks = StackShoe(Random(f"{seed}/shoe"))
        filler = StackHands(stacks, Random(f"{seed}/hands"))
        return ManagedStackShoe(stacks, **as_built), lambda: filler.fill(fresh)
    if device == "reshuffled":
        dealer = DealingMachine(Random(f"{seed}/dealer"))
        return ReShuffled(dealer), lambda: dealer.load(fresh)
    shoe = Shoe(Random(f"{seed}/shoe"))
    play = SelfPlay(shoe, Random(f"{seed}/hands"))
    wires: dict[str, Callable[[Shoe], WireDevice]] = {
        "barcode-hid": BarcodeReader,
        "bee-tek": BeeTek,
        "angel-eye": AngelEye,
        "managed-shoe": lambda shoe: ManagedShoe(shoe, decks=DECKS[device], **as_built),
    }

    def change_shoe() -> None:
        play.change_shoe(fresh)
        if device != "managed-shoe":
            shoe.happenings.clear()  # these have no memory: they tell nothing from before they were there

    return wires[device](shoe), change_shoe


def _make_theirs(device: str, seed: object) -> WireDevice:
    """A simulated device that another package brings. Raises Misused."""
    theirs = index(entry_points(group=GROUP))
    if device not in theirs:
        known = (*DEVICES, *theirs)
        raise Misused(
            f"there is no simulated device {device!r}{near(device, known)} (there are {', '.join(known)})"
        )
    try:
        made: WireDevice = fetch(theirs[device], "simulated device")(seed)
    except DriverError as error:
        raise Misused(str(error)) from error
    return made


def prepare(device: WireDevice, wanted: Iterable[str]) -> None:
    """Set up faults given as NAME[:VALUE][@N]. Raises Misused naming the nearest fault."""
    for text in wanted:
        try:
            of_a_device(script.from_text(text))
            faults.apply(device, text)
        except faults.UnfitFault as error:
            raise Misused(f"--fault {text[: script.LONGEST_NAME]}: {error}") from error


def of_a_device(step: Step) -> Step:
    """The same. Raises UnfitFault for what befalls a whole table and no device of it."""
    if step.fault not in faults.FAULTS:
        from simulators.rig.campaign.plan import WHOLE

        if step.fault in WHOLE:
            raise faults.UnfitFault(f"{step.fault} strikes at whole tables alone: in a scenario or campaign")
    return step


def steps_in(text: str) -> tuple[Step, ...]:
    """The steps of a script for one device. Raises ScriptError, and UnfitFault as `of_a_device`."""
    from simulators.rig.campaign.plan import WHOLE

    return tuple(map(of_a_device, script.read(text, (*faults.FAULTS, *WHOLE))))


def script_in(file: Path) -> str:
    """The text of a script, or as much of it as is too much. Raises Misused."""
    if file == Path():
        raise Misused("--script is empty; name a file")
    try:
        with file.open("rb") as source:
            return source.read(script.LARGEST + 1).decode()
    except OSError as error:
        raise Misused(f"--script {file}: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise Misused(f"--script {file}: it is no text in UTF-8") from None


def follow(line: Line, file: Path, device: str) -> None:
    """Give the line the steps of a script. Raises Misused naming the step."""
    try:
        steps = steps_in(script_in(file))
    except (script.ScriptError, faults.UnfitFault) as error:
        raise Misused(f"--script {file}: {error}") from error
    for number, step in enumerate(steps, 1):
        if step.device not in (None, device):
            raise Misused(f"--script {file}: step {number}: {step.device!r} is not here, only {device}")
        try:
            line.add(step)
        except faults.UnfitFault as error:
            raise Misused(f"--script {file}: step {number}: {error}") from error


def listen(device: WireDevice, where: str) -> Host:
    """The host at `where`. Raises Misused, or OSError when the place cannot be had."""
    try:
        return _listen(device, where)
    except faults.UnfitFault as error:
        raise Misused(f"--listen {where}: {error}") from error


def _listen(device: WireDevice, where: str) -> Host:
    scheme, _, rest = where.partition(":")
    if scheme == "pty" and rest:
        return PtyHost(device, Path(rest))
    if scheme == "usb" and rest:
        bare = device.device if isinstance(device, Line) else device
        if not isinstance(bare, ManagedDevice | BarcodeReader):
            raise Misused(
                f"--listen {where}: only the managed devices and barcode-hid have USB; write pty:PATH or "
                "tcp:HOST:PORT"
            )
        try:
            return UsbPlace(cast("PacketDevice", device), Path(rest))
        except PathTooLongError as error:
            raise Misused(f"--listen {where}: {error}") from error
    address, _, port = rest.rpartition(":")
    if scheme == "tcp" and address and port.isdigit() and int(port) < 65536:
        return TcpHost(device, address.removeprefix("[").removesuffix("]"), int(port))
    if scheme == "tcp" and address and port.isdigit():
        raise Misused(f"--listen {where}: a port is a number of 0..65535 (0 takes a free one), not {port}")
    lack = {
        "pty": "a path, pty:PATH",
        "tcp": "an address and a port, tcp:HOST:PORT",
        "usb": "a directory, usb:DIRECTORY",
    }
    if scheme in lack:
        raise Misused(f"--listen {where}: {scheme}: wants {lack[scheme]}")
    raise Misused(f"--listen {where}: write {LISTEN}{near(scheme, lack)}")


def serve(
    host: Host, stop: Callable[[], bool] = lambda: False, watch: Callable[[float], object] = lambda _: None
) -> None:
    """Live in real time until `stop` holds, asked after each turn, or for ever; `watch` is told the time."""
    clock = SystemClock()
    start, parts = clock.now(), (host, Attendant(host.device))
    while not stop():
        now = clock.now() - start
        for part in parts:
            part.pump(now)
        watch(now)
        at = served.due(parts)
        served.wait(parts, None if at is None else at - now)


class UsbPlace:
    """A device with USB on a simulated bus, for programs that are started with `environment`.

    OSError when umockdev is missing or the directory cannot be had.
    """

    def __init__(self, device: PacketDevice, directory: Path) -> None:
        if (lack := missing()) is not None:
            raise FileNotFoundError(errno.ENOENT, lack)
        self.device: WireDevice = device
        self.environment = environment(directory)
        self._usb = UsbHost(device)
        try:
            self._bus = UmockdevHost(directory, self._usb.bus)
        except BaseException:
            self._usb.close()
            raise

    @property
    def uri(self) -> str:
        return self._usb.uri

    def filenos(self) -> list[int]:
        return self._usb.filenos() + self._bus.filenos()

    def writers(self) -> list[int]:
        return []

    def deadline(self) -> float | None:
        return earliest(self._usb.deadline(), self._bus.deadline())

    def pump(self, now: float) -> None:
        """Unbroken by signals: a program must not be left in the middle of a call."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        try:
            self._bus.pump(now)
            self._usb.pump(now)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def close(self) -> None:
        self._bus.close()
        self._usb.close()


class Strikes:
    """Says of each fault on a line when it first strikes, and at the end how often each did."""

    def __init__(self, line: Line, say: Callable[[str], object]) -> None:
        self._line, self._say = line, say
        self._told: set[str] = set()

    def look(self, now: float) -> None:
        if len(self._told) == len(self._line.wanted):
            return
        for name in sorted(self._line.struck.keys() - self._told):
            self._told.add(name)
            self._say(f"{now:.1f} s: {name} struck")

    def sum_up(self) -> None:
        struck = self._line.struck
        if counts := [f"{name} {struck[name] or 'never'}" for name in self._line.wanted]:
            self._say(f"struck: {', '.join(counts)}")


class Attendant:
    """Puts what a shuffler or dealing machine let out back into it after a while."""

    def __init__(self, device: WireDevice) -> None:
        machine = device.machine
        self._machine = machine if isinstance(machine, BatchShuffler | DealingMachine) else None
        self._at: float | None = None
        self._in_hand = Stack()

    def filenos(self) -> list[int]:
        return []

    def writers(self) -> list[int]:
        return []

    def deadline(self) -> float | None:
        return self._at

    def pump(self, now: float) -> None:
        if self._machine is None:
            return
        self._in_hand.add(self._machine.take().give())
        if not len(self._in_hand):
            return
        if self._at is None:
            self._at = now + RELOAD_S
        elif now >= self._at and self._machine.state in ("empty", "loaded"):
            self._machine.load(self._in_hand)
            self._at = None
