"""A firmware job and a simulated device in memory under a virtual clock, on a wire that tests may bend."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from firmware_bridge import smp
from firmware_bridge.clock import VirtualClock
from firmware_bridge.firmware import image, jobs
from firmware_bridge.firmware.host import Ended, FirmwareHost, JobMaker, Progress, Told
from firmware_bridge.firmware.upload import upload
from firmware_bridge.framing import smp_console
from firmware_bridge.link import Outcome
from firmware_bridge.port import Crashed, Port
from firmware_bridge.transports.mem import MemTransport
from simulators.hosts.memory_host import MemoryHost
from simulators.models.firmware import build
from simulators.models.shoe import Shoe
from simulators.wire.framings import CONSOLE, PACKETS
from simulators.wire.managed_shoe import ManagedShoe
from tests.support.line import Wire, packets_of

OLD, NEW = build("1.0.0", "SIM-SHOE"), build("1.2.0", "SIM-SHOE", b"new" * 700)
IMAGE = image.read(NEW)
JOBS: dict[str, JobMaker] = {
    "identify": jobs.identify,
    "list": jobs.list_images,
    "confirm": jobs.confirm,
    "reset": jobs.reset,
    "upload": partial(upload, image=IMAGE),
}
UPLOADS = (1, 1)


def shoe(**options: Any) -> ManagedShoe:
    return ManagedShoe(Shoe(Random("cards")), **options)


def told(frame: bytes, *, packets: bool = False) -> smp.Message:
    """What a frame on the wire says."""
    if not packets:
        (found,) = smp_console.Decoder().feed(frame)
        assert isinstance(found, smp_console.Packet)
        frame = found.data
    message = smp.decode(frame)
    assert isinstance(message, smp.Message)
    return message


def transfers(data: bytes) -> list[bytes]:
    """The packets of a piece of USB's wire."""
    found = []
    while data:
        size = 8 + int.from_bytes(data[2:4], "big")
        found.append(data[:size])
        data = data[size:]
    return found


class World:
    """One device; `do` is one call of the command. `log` has all that the jobs said."""

    def __init__(self, *, packets: bool = False, **options: Any) -> None:
        self.packets = packets
        self.clock = VirtualClock()
        self.device = shoe(framing=PACKETS if packets else CONSOLE, **options)
        self.host = MemoryHost(self.device)
        self.wire = Wire(self.host.endpoint, self.clock, transfers if packets else packets_of)
        self.log: list[Any] = []
        self._ends: list[Outcome] = []
        self._crashes: list[Crashed] = []
        self._jobs = 0
        self._hands: list[tuple[float, Callable[[], None]]] = []

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Hands do something after so long."""
        self._hands.append((self.clock.now() + seconds, act))

    def unplug(self, seconds: float, *, power: bool = False) -> None:
        """The cable is out for so long; a device that lives from it (`power`) restarts."""
        self.host.unplug()
        self.wire.clear()
        if power:
            self.device.machine.power_cut(seconds)
        self.later(seconds, self.host.replug)

    def do(self, job: str | JobMaker, within: float = 4000.0) -> Outcome:
        self._jobs += 1
        made = JOBS[job] if isinstance(job, str) else job
        driver = FirmwareHost(made, Random(f"host {self._jobs}"), packets=self.packets, writes=True)
        port = Port("dev", MemTransport(self.wire, "mem:dev"), driver, self.clock, self._take)  # type: ignore[arg-type]
        self._ends.clear()
        try:
            self._run(port, within)
        finally:
            port.close()
        (end,) = self._ends
        return end

    def _take(self, _: str, outputs: Any) -> None:
        self.log += outputs
        self._ends += [o.outcome for o in outputs if isinstance(o, Ended)]
        self._crashes += [o for o in outputs if isinstance(o, Crashed)]

    def _run(self, port: Port, within: float) -> None:
        end = self.clock.now() + within
        while not self._ends:
            for hand in [h for h in self._hands if h[0] <= self.clock.now()]:
                self._hands.remove(hand)
                hand[1]()
            self.wire.land()
            self.host.pump(self.clock.now())
            if port.step(0):
                continue
            hands = min((at for at, _ in self._hands), default=None)
            times = (port.deadline(), self.host.deadline(), self.wire.deadline(), hands)
            due = min(t for t in times if t is not None)
            assert not self._crashes, self._crashes[:1]
            assert due <= end, self.log[-9:]
            self.clock.advance(max(due - self.clock.now(), 1e-6))

    @property
    def told(self) -> list[str]:
        return [o.text for o in self.log if isinstance(o, Told)]

    @property
    def progress(self) -> list[int]:
        return [o.done for o in self.log if isinstance(o, Progress)]

    @property
    def uploads(self) -> list[smp.Message]:
        """The packets of uploads that were written to the wire."""
        sent = [told(frame, packets=self.packets) for frame in self.wire.sent]
        return [m for m in sent if (m.group, m.command) == UPLOADS]
