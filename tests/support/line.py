"""One real driver and one simulated device in memory under a virtual clock, on a wire that tests may bend."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

from devices.base import Resume, Setup
from devices.events import DeviceEvent
from devices.registry import load
from firmware_bridge import smp
from firmware_bridge.clock import VirtualClock
from firmware_bridge.framing import smp_console
from firmware_bridge.link import Complete, Outcome
from firmware_bridge.port import Port
from firmware_bridge.transports.mem import MemTransport
from simulators.hosts.memory_host import Endpoint, MemoryHost
from simulators.models.cards import Stack, make_batch
from simulators.models.shoe import Shoe
from simulators.models.shuffler import BatchShuffler
from simulators.wire.angel_eye import SEQUENCES, AngelEye
from simulators.wire.device import WireDevice
from simulators.wire.managed_shoe import ManagedShoe
from simulators.wire.managed_shuffler import ManagedShuffler

Pieces = Iterable[tuple[float, bytes]]
"""What becomes of one frame: each piece with the seconds until it arrives."""
Meddle = Callable[[bytes], Pieces]

TOKEN = bytes(range(16))
ALPHABETS = tuple(SEQUENCES)
_PACKET = re.compile(rb"(\x06\x09[A-Za-z0-9+/=]*\n(?:\x04\x14[A-Za-z0-9+/=]*\n)*)")


def untouched(frame: bytes) -> Pieces:
    return [(0.0, frame)]


def packets_of(data: bytes) -> list[bytes]:
    """The console packets of a piece of wire, each with all its lines, and the text between them."""
    return [piece for piece in _PACKET.split(data) if piece]


def telegrams_of(data: bytes) -> list[bytes]:
    """The telegrams of a simulated Angel Eye, whose data bytes have their top bit set."""
    return [piece for piece in re.split(rb"(?=\x05)", data) if piece]


def message_of(frame: bytes) -> smp.Message:
    """What one console packet says."""
    (packet,) = smp_console.Decoder().feed(frame)
    assert isinstance(packet, smp_console.Packet)
    message = smp.decode(packet.data)
    assert isinstance(message, smp.Message)
    return message


class Wire:
    """Stands between transport and host. Each frame goes through `up` (to us) or `down` (to the device)."""

    def __init__(self, end: Endpoint, clock: VirtualClock, cut: Callable[[bytes], Sequence[bytes]]) -> None:
        self.up: Meddle = untouched
        self.down: Meddle = untouched
        self.sent: list[bytes] = []
        self._end, self._clock, self._cut = end, clock, cut
        self._flying: list[tuple[float, int, bool, bytes]] = []
        self._arrived = b""
        self._order = 0

    def write(self, data: bytes) -> None:
        self.sent.append(data)
        self._end.write(b"")  # unplugged is told at once
        self._launch(self.down(data), up=False)
        self.land()

    def read(self) -> bytes:
        for frame in self._cut(self._end.read()):
            self._launch(self.up(frame), up=True)
        self.land()
        arrived, self._arrived = self._arrived, b""
        return arrived

    def deadline(self) -> float | None:
        return self._flying[0][0] if self._flying else None

    def clear(self) -> None:
        """What is under way is lost."""
        self._flying.clear()
        self._arrived = b""

    def _launch(self, pieces: Pieces, *, up: bool) -> None:
        for delay, data in pieces:
            self._order += 1
            heapq.heappush(self._flying, (self._clock.now() + delay, self._order, up, data))

    def land(self) -> None:
        """Bring in what is due; at a device that is unplugged nothing arrives."""
        while self._flying and self._flying[0][0] <= self._clock.now():
            _, _, up, data = heapq.heappop(self._flying)
            if up:
                self._arrived += data
            elif self._end.plugged:
                self._end.write(data)


class Line:
    """Steps driver and device together. What the port hands on is in `log`, its time in `times`."""

    def __init__(
        self,
        driver: str,
        device: WireDevice,
        *,
        seed: object = 0,
        resume: Resume = Resume(),  # noqa: B008 - a frozen value
        form: str = "controlled",
        cut: Callable[[bytes], Sequence[bytes]] = packets_of,
        **options: Any,
    ) -> None:
        self.clock = VirtualClock()
        self.device = device
        self.host = MemoryHost(device)
        self.wire = Wire(self.host.endpoint, self.clock, cut)
        self.log: list[Any] = []
        self.times: list[float] = []
        self.acks = True
        self._name, self._form, self._options, self._seed = driver, form, options, seed
        self.starts = 0
        self.start(resume)

    def start(self, resume: Resume) -> None:
        """A new host program with the journal's knowledge; of the one before nothing is left."""
        self.starts += 1
        setup = Setup("dev", Random(f"{self._seed}/driver/{self.starts}"), resume, self._options)
        self.driver: Any = getattr(load(self._name), self._form)(setup)
        self.port = Port("dev", MemTransport(self.wire, "mem:"), self.driver, self.clock, self._deliver)

    def _deliver(self, _: str, outputs: Sequence[object]) -> None:
        self.log += outputs
        self.times += [self.clock.now()] * len(outputs)
        numbers = [o.n for o in outputs if isinstance(o, DeviceEvent)]
        if numbers and self.acks:
            self.port.ack(numbers[-1])

    # What hands do

    def unplug(self) -> None:
        """The cable is out: what is on the wire is lost."""
        self.host.unplug()
        self.wire.clear()

    def replug(self) -> None:
        self.host.replug()

    def command(self, call: str, name: str, **args: Any) -> None:
        self.port.command(call, name, args)

    # Time

    def run(self, seconds: float = 0.0, until: Callable[[], bool] = lambda: False) -> None:
        """Let `seconds` pass, or fewer when `until` holds before."""
        end = self.clock.now() + seconds
        while not until():
            self.wire.land()
            self.host.pump(self.clock.now())
            if self.port.step(0):
                continue
            times = (self.port.deadline(), self.host.deadline(), self.wire.deadline())
            due = min(t for t in times if t is not None)
            if due > end:
                break
            self.clock.advance(max(due - self.clock.now(), 0.0))
        else:
            return
        self.clock.advance(end - self.clock.now())
        self.host.pump(self.clock.now())  # what hands do next happens now

    def up(self) -> Line:
        """Until the session stands."""
        self.run(5.0, lambda: self.kinds.count("link_up") > 0)
        assert "link_up" in self.kinds, self.log
        self.run()
        return self

    def end_of(self, call: str, within: float = 60.0) -> Outcome:
        """How the command `call` ends, and that it ends within so many seconds, once."""
        self.run(within, lambda: call in self.ends)
        return self.ends[call]

    # What came of it

    @property
    def events(self) -> list[Any]:
        return [o for o in self.log if isinstance(o, DeviceEvent)]

    @property
    def kinds(self) -> list[str]:
        return [e.kind for e in self.events]

    def of(self, kind: str) -> list[Any]:
        return [e for e in self.events if e.kind == kind]

    @property
    def ends(self) -> dict[str, Outcome]:
        ends = [o for o in self.log if isinstance(o, Complete)]
        assert len({e.call_id for e in ends}) == len(ends), "a command ended twice"
        return {e.call_id: e.outcome for e in ends}

    def asked(self, group: int, command: int) -> list[bytes]:
        """The requests of one kind that a managed driver wrote."""
        return [
            frame for frame in self.wire.sent
            if (message_of(frame).group, message_of(frame).command) == (group, command)
        ]  # fmt: skip


def shuffler_line(*, state: str = "loaded", decks: int = 1, **more: Any) -> tuple[Line, BatchShuffler]:
    """A shuffler with one deck: `loaded`, or `done` with its cycle of TOKEN completed."""
    machine = BatchShuffler(Random("shuffler"), decks=decks)
    machine.load(Stack(make_batch("red", decks)))
    line = Line("managed-shuffler", ManagedShuffler(machine), **more).up()
    if state == "done":
        machine.start(TOKEN)
        line.run(60.0, lambda: "cycle_completed" in line.kinds)
        line.run()
    return line, machine


def shoe_line(*, decks: int = 1, **more: Any) -> tuple[Line, Shoe]:
    """A managed shoe with its decks inside."""
    machine = Shoe(Random("shoe"))
    machine.open_lid()
    machine.load(Stack(make_batch("red", decks)))
    machine.close_lid()
    return Line("managed-shoe", ManagedShoe(machine, decks=decks), **more).up(), machine


def angel_eye_line(*, decks: int = 1, form: str = "controlled", **more: Any) -> tuple[Line, Shoe]:
    """An Angel Eye whose cards the test draws; `sim_*` are the simulator's options, the rest the driver's."""
    machine = Shoe(Random("shoe"))
    machine.open_lid()
    machine.load(Stack(make_batch("red", decks)))
    machine.close_lid()
    names = ("sequence", "bcc_includes_stx", "s_advances", "spacing", "nak_gap", "script")
    device = AngelEye(machine, **{name: more.pop(f"sim_{name}") for name in names if f"sim_{name}" in more})
    return Line("angel-eye", device, form=form, cut=telegrams_of, **more).up(), machine


def drawn(machine: Shoe) -> list[str | None]:
    """The faces of the cards that physically left the shoe, in order; None where its reader saw none."""
    return [h.data["face"] for h in machine.happenings if h.kind == "drawn"]
