"""Goals 1 and 2 of the drivers for other people's devices: whole drivers, from bytes to events."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

from devices.base import Driver, Setup
from devices.managed.messages import READER
from devices.registry import load
from devices.shufflers.reshuffled import SOONEST
from firmware_bridge import smp
from firmware_bridge.framing import boot_keyboard, gat, reshuffled, smp_console
from firmware_bridge.gat import messages
from firmware_bridge.gat.talk import REST_S
from simulators.rig import sim
from simulators.rig.bench_exchanges import against_raw, driver_exchanges, line_ended, raw_exchanges, simulator
from simulators.rig.bench_rows import Row
from simulators.wire.barcode_hid import down
from simulators.wire.device import WireDevice

ROUNDS = 4
EXCHANGES = 200
"""In each round: bare ones and the driver's take turns, for the pace of a machine changes."""
STREAM = 8_000
"""Bytes, at least: so few that one of many tries is hardly interrupted."""
TRIES = 15
JUNK = 1 << 16
BITS_A_BYTE = 10
REPORT_FRAMES = 4
SR_BYTES = gat.LENGTHS[gat.SR][0]
PEEK = smp.Message(smp.Op.READ, READER, 0, 0)

# --- goal 1: decoders ---


@dataclass(frozen=True, slots=True)
class Fed:
    """A driver and what it is fed: `piece` bytes a call; `begun` again and again is no whole message."""

    name: str
    stream: Callable[[], bytes]
    begun: bytes
    piece: int = 1

    def decoder(self) -> Driver:
        return load(self.name).decoder(Setup("bench", Random("bench"), packets=self.piece > 1))


def decoders() -> Iterator[Row]:
    """The least piece a call, against the wire's own rate; then what a driver keeps of junk."""
    for fed in FED:
        stream = fed.stream()
        rate = len(stream) / min(seconds(fed, stream) for _ in range(TRIES))
        call = "1 byte" if fed.piece == 1 else "1 report"
        floor = load(fed.name).baud / BITS_A_BYTE
        yield Row(1, f"{fed.name} driver, {call} a call", rate, "B/s", floor, 50, at_least=True)
        junk = Random("noise").randbytes(JUNK), fed.begun * (JUNK // len(fed.begun))
        kept = max(grown(fed, one) for one in junk)
        yield Row(1, f"{fed.name} driver, memory in 128 KiB of junk", kept / 1024, "KiB", None, 16)


def seconds(fed: Fed, stream: bytes) -> float:
    """Processor time that one driver takes for the whole stream; it waits for nothing."""
    driver, size = fed.decoder(), fed.piece
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    start = time.thread_time()
    for piece in pieces:
        driver.feed(piece, 0.0)
    return time.thread_time() - start


def grown(fed: Fed, junk: bytes) -> int:
    """Bytes that a driver still holds after `junk` without one whole message."""
    driver, size = fed.decoder(), fed.piece if fed.piece > 1 else 4096
    tracemalloc.start()
    try:
        for at in range(0, len(junk), size):
            driver.feed(junk[at : at + size], 0.0)
        gc.collect()  # the interpreter keeps small freed objects at hand
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def played(name: str) -> bytes:
    """What a simulated device sends while it plays rounds by itself."""
    device, stream, now = sim.make(name, "bench"), b"", 0.0
    while len(stream) < STREAM:
        now = max(now + 0.01, device.deadline() or 0.0)
        stream += device.transmit(now)
    return stream


def answered(device: WireDevice, requests: Iterable[bytes]) -> bytes:
    """The answers of a simulated device that has all the time it wants, over and over."""
    answers, now = b"", 0.0
    for request in requests:
        device.receive(request, now)
        while (due := device.deadline()) is not None:
            now = max(now, due)
            answers += device.transmit(now)
    return answers * (STREAM // len(answers) + 1)


def gat_answers() -> bytes:
    """Status, last authentication, a calculation asked for, and the frames of its report."""
    requests = [
        gat.encode(gat.SQ),
        gat.encode(gat.LASQ),
        gat.encode(gat.IACQ, bytes((messages.LEVEL, 0)) + messages.FUNCTIONS.encode()),
        *(gat.encode(gat.LARQ, bytes((messages.Format.XML, 0, n))) for n in range(1, REPORT_FRAMES + 1)),
    ]
    return answered(sim.make("gat", "bench"), requests)


def reshuffled_answers() -> bytes:
    return answered(sim.make("reshuffled", "bench"), [INIT])


INIT = reshuffled.encode("IN", reshuffled.Style())
DIGIT = down(0x1E) + down()
"""One key down and up again; no code ends with it."""
FED = (
    Fed("bee-tek", partial(played, "bee-tek"), b"[" + b"A" * 63),
    Fed("reshuffled", reshuffled_answers, b":" + b"A" * 63),
    Fed("gat", gat_answers, bytes((gat.LARR, 255))),
    Fed("barcode-hid", partial(played, "barcode-hid"), DIGIT, piece=boot_keyboard.SIZE),
)

# --- goal 2: exchanges ---


@dataclass(frozen=True, slots=True)
class Asked:
    """A driver's question: its command, its bytes, when the answer is whole, and how long the line rests."""

    name: str
    command: str
    question: bytes
    whole: Callable[[bytes], bool] = line_ended
    rest_s: float = 0.0


ASKED = (
    Asked("reshuffled", "init", INIT, rest_s=SOONEST),
    Asked("gat", "status", gat.encode(gat.SQ), lambda answer: len(answer) >= SR_BYTES, REST_S),
    Asked("hole-card-reader", "peek", smp_console.encode(smp.encode(PEEK))),
)


def exchanges() -> Iterator[Row]:
    """One question over a pty: by the driver in its owner thread, and by bare reads and writes.

    The simulators answer at once, and the rests that a driver keeps pass in its own time alone.
    """
    for asked in ASKED:
        with simulator(1, asked.name) as (_, (path,)):
            raw: list[float] = []
            ours: list[float] = []
            for _ in range(ROUNDS):
                raw += raw_exchanges(path, EXCHANGES, asked.question, asked.whole)
                ours += driver_exchanges(path, EXCHANGES, asked.name, asked.command, rest_s=asked.rest_s)
        yield from against_raw(f"{asked.name} exchange over a pty", ours, raw)


GOALS = (
    ("goal 1, decoders of other people's devices", decoders),
    ("goal 2, exchanges with other people's devices", exchanges),
)
