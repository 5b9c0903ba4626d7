"""What each simulated device is put through, so that every fault of the menu has its occasion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from struct import pack
from typing import Any
from zlib import crc32

from simulators.faults.script import Step
from simulators.hosts.line import Line
from simulators.models.cards import CuttingCard, Stack, make_batch
from simulators.models.continuous import ContinuousShuffler
from simulators.models.dealing_machine import DealingMachine
from simulators.models.firmware import build, parse
from simulators.models.machine import CannotDo
from simulators.models.reader import HoleCardReader
from simulators.models.shoe import Shoe
from simulators.models.shuffler import BatchShuffler
from simulators.models.stack_shoe import StackShoe
from simulators.models.verifier import Verifier, programs
from simulators.wire import cbor, console
from simulators.wire.angel_eye import AngelEye, bcc
from simulators.wire.barcode_hid import BarcodeReader
from simulators.wire.bee_tek import BeeTek
from simulators.wire.device import WireDevice
from simulators.wire.gat import IACQ, LARQ, LASQ, SQ, GatDevice, frame
from simulators.wire.managed_continuous import ManagedContinuous
from simulators.wire.managed_reader import ManagedReader
from simulators.wire.managed_shoe import ManagedShoe
from simulators.wire.managed_shuffler import ManagedShuffler
from simulators.wire.managed_stack_shoe import ManagedStackShoe
from simulators.wire.reshuffled import ReShuffled

TOKENS = [bytes((number,)) * 16 for number in range(1, 4)]
READ, WRITE = 0, 2


class Bench:
    """One device behind a line, stepped through time. `seen` is all that shows outside."""

    def __init__(self, device: WireDevice, steps: Sequence[Step] = (), seed: object = 0) -> None:
        self.line = Line(device, Random(f"{seed}/line"), steps)
        self.machine: Any = device.machine
        self.now = 0.0
        self.seen: list[Any] = []
        self._sequence = 0

    def run(self, seconds: float = 0.3) -> None:
        end = self.now + seconds
        self._fetch()
        while (due := self.line.deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self._fetch()
        self.now = end
        self._fetch()

    def say(self, data: bytes, seconds: float = 0.3) -> None:
        self.line.receive(data, self.now)
        self.run(seconds)

    def ask(self, op: int, group: int, command: int, body: Any = None, seconds: float = 0.3) -> None:
        """One request of a managed device."""
        self._sequence += 1
        raw = cbor.encode(body or {})
        head = pack("!BBHHBB", 8 | op, 0, len(raw), group, self._sequence, command)
        self.say(console.lines(head + raw), seconds)

    def hands(self, act: Callable[[], Any]) -> Any:
        """What hands get, or that they cannot."""
        self.line.advance(self.now)
        try:
            got = act()
        except CannotDo as no:
            self.seen.append(no.why)
            return None
        self.seen.append(str(got) if not isinstance(got, Stack) else [str(item) for item in got.contents()])
        return got

    @property
    def whole(self) -> list[Any]:
        """All that can be told of it: what came out, what happened inside, where the cards are."""
        machine = self.machine
        inside = [str(item) for item in machine.contents()] if hasattr(machine, "contents") else []
        return [self.seen, machine.happenings, inside]

    def _fetch(self) -> None:
        if said := self.line.transmit(self.now):
            self.seen.append((round(self.now, 6), said))


def _pile(count: int = 20) -> Stack:
    items: list[Any] = list(make_batch("red", 1)[:count])
    items.insert(5, CuttingCard())
    return Stack(items)


def _cards(count: int) -> Stack:
    return Stack(make_batch("red", 1)[:count])


def _load_shoe(bench: Bench) -> None:
    bench.hands(bench.machine.open_lid)
    bench.hands(lambda: bench.machine.load(_pile()))
    bench.hands(bench.machine.close_lid)
    bench.hands(bench.machine.press_new_shoe)
    bench.run(1.0)


def _draw(bench: Bench, times: int = 15) -> None:
    for _ in range(times):
        bench.hands(bench.machine.draw)
        bench.run(2.0)


def _asked(bench: Bench) -> None:
    """What any managed device answers."""
    for op, group, command, body in (
        (READ, 64, 0, None),
        (READ, 64, 1, None),
        (WRITE, 64, 1, {"settings": {"decks": 2}}),
        (READ, 65, 0, {"since": 1, "max": 8}),
        (READ, 0, 0, {"d": "x"}),
        (READ, 0, 6, None),
        (READ, 1, 0, None),
        (READ, 64, 9, None),
    ):
        bench.ask(op, group, command, body)


def uploads(bench: Bench) -> None:
    """A new image, half of it before a restart, bad ones, and a start with it."""
    flash = bench.line.device.flash  # type: ignore[attr-defined]
    flash.erase_s = flash.erase_s or 10.0
    product = bench.line.device.product  # type: ignore[attr-defined]
    image = build("1.1.0", product)
    session = bytes(range(32))
    first = {"off": 0, "data": image[:120], "len": len(image), "sha": session}
    bench.ask(READ, 0, 6)
    bench.ask(WRITE, 1, 1, {"off": 0, "data": bytes(64), "len": 64}, 12.0)
    bench.ask(WRITE, 1, 1, first, 12.0)
    bench.hands(bench.machine.power_cut)
    bench.run(1.0)
    bench.ask(WRITE, 1, 1, first, 12.0)
    for start in range(120, len(image), 120):
        bench.ask(WRITE, 1, 1, {"off": start, "data": image[start : start + 120]})
    bench.ask(READ, 1, 0)
    bench.ask(WRITE, 1, 0, {"hash": parse(image).hash})
    bench.ask(WRITE, 0, 5, None, 2.0)
    for group, command in ((64, 0), (1, 0)):
        bench.ask(READ, group, command, None, 3.0)


def shoe(bench: Bench) -> None:
    _load_shoe(bench)
    _asked(bench)
    _draw(bench)
    bench.ask(READ, 67, 0)
    bench.ask(READ, 65, 0, {"since": 1, "max": 8})
    bench.ask(READ, 65, 0, {"since": 9, "max": 8})
    bench.ask(WRITE, 67, 1)


def stacks(bench: Bench) -> None:
    _load_shoe(bench)
    _asked(bench)
    for _ in range(4):
        bench.ask(WRITE, 67, 3, {"count": 4, "drawn": bench.machine.drawn}, 8.0)
        bench.hands(bench.machine.take)
    bench.ask(READ, 67, 0)
    bench.ask(READ, 65, 0, {"since": 1, "max": 8})


def continuous(bench: Bench) -> None:
    bench.hands(lambda: bench.machine.put_in(_cards(30)))
    _asked(bench)
    bench.ask(WRITE, 66, 1, {"token": TOKENS[0]}, 40.0)
    bench.ask(READ, 66, 4)
    for _ in range(2):
        drawn = []
        for _ in range(4):
            drawn.append(bench.hands(bench.machine.draw))
            bench.run(4.0)
        bench.hands(lambda back=drawn: bench.machine.put_in(Stack([card for card in back if card])))
        bench.run(1.0)
    bench.ask(READ, 66, 0)
    bench.ask(READ, 65, 0, {"since": 1, "max": 8})


def shuffler(bench: Bench) -> None:
    _asked(bench)
    bench.hands(lambda: bench.machine.load(_cards(26)))
    for token in TOKENS[:2]:
        bench.ask(WRITE, 66, 1, {"token": token}, 45.0)
        bench.ask(READ, 66, 4)
        bench.ask(WRITE, 66, 3, {"token": token}, 1.0)
        bench.ask(READ, 66, 0)
        out = bench.hands(bench.machine.take)
        if out is not None and len(out):
            bench.hands(lambda out=out: bench.machine.load(out))
    bench.ask(READ, 65, 0, {"since": 1, "max": 8})


def reader(bench: Bench) -> None:
    _asked(bench)
    for up, hole in ((0, 22), (9, 13), (3, 4)):
        cards = make_batch("red", 1)
        bench.hands(lambda up=cards[up], hole=cards[hole]: bench.machine.slide_in(up, hole))
        bench.ask(READ, 68, 0)
    bench.ask(READ, 65, 0, {"since": 1, "max": 8})


def angel_eye(bench: Bench) -> None:
    _load_shoe(bench)
    for words in (b"OPLK02", b"OPLK01", b"OPGP00", b"OPLK09"):
        command = b"\x02" + words + b"\x03"
        bench.say(command + bcc(command), 1.0)
    _draw(bench)
    bench.run(5.0)


def talker(bench: Bench) -> None:
    _load_shoe(bench)
    _draw(bench)
    bench.run(5.0)


def dealer(bench: Bench) -> None:
    bench.hands(lambda: bench.machine.load(_cards(20)))
    for words in (b"IN", b"SH", b"D2", b"D11", b"A1", b"XX"):
        bench.say(b":" + words + b"#%08X" % crc32(words) + b"\n", 1.0 if words == b"IN" else 22.0)
    bench.hands(bench.machine.take)


def gat(bench: Bench) -> None:
    name = next(iter(bench.machine.components)).encode("latin-1")
    bench.say(frame(SQ))
    for what in (b"Get Special Functions", b"Component\t" + name + b"\t(none)"):
        bench.say(frame(IACQ, b"\xba\x00" + what), 30.0)
        for code, data in ((SQ, b""), (LASQ, b""), (LARQ, b"\x01\x00\x01"), (LARQ, b"\x02\x00\x01")):
            bench.say(frame(code, data))


MAKE: Mapping[str, Callable[[], WireDevice]] = {
    "angel-eye": lambda: AngelEye(Shoe(Random(1))),
    "barcode-hid": lambda: BarcodeReader(Shoe(Random(1))),
    "bee-tek": lambda: BeeTek(Shoe(Random(1))),
    "managed-continuous": lambda: ManagedContinuous(ContinuousShuffler(Random(1), decks=1)),
    "managed-shoe": lambda: ManagedShoe(Shoe(Random(1)), decks=1),
    "managed-shuffler": lambda: ManagedShuffler(BatchShuffler(Random(1), decks=1)),
    "managed-stack-shoe": lambda: ManagedStackShoe(StackShoe(Random(1))),
    "reshuffled": lambda: ReShuffled(DealingMachine(Random(1))),
    "hole-card-reader": lambda: ManagedReader(HoleCardReader()),
    "gat": lambda: GatDevice(Verifier(programs(Random(1)))),
}
DAY: Mapping[str, Callable[[Bench], None]] = {
    "angel-eye": angel_eye,
    "barcode-hid": talker,
    "bee-tek": talker,
    "managed-continuous": continuous,
    "managed-shoe": shoe,
    "managed-shuffler": shuffler,
    "managed-stack-shoe": stacks,
    "reshuffled": dealer,
    "hole-card-reader": reader,
    "gat": gat,
}


def lived(device: str, steps: Sequence[Step] = (), *, day: Callable[[Bench], None] | None = None) -> Bench:
    """A device after its day."""
    bench = Bench(MAKE[device](), steps)
    (day or DAY[device])(bench)
    bench.run(30.0)
    return bench
