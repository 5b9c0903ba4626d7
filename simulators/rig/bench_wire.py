"""Goals 1 and 4: decoders, and the full path from bytes to a committed fact."""

from __future__ import annotations

import queue
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

from controller.daemon import Controller, WatchedPort
from controller.factlog import new_boot_id
from controller.journal import Journal
from controller.notify import Notifier
from controller.record import Entry
from controller.service import Service
from controller.table.phases import Phase
from controller.table.profiles import BatchRules, TableRules
from controller.table.state import Batch, Place, Shoe, TableState, initial
from devices.base import Setup
from devices.registry import load
from firmware_bridge import smp
from firmware_bridge.clock import SystemClock
from firmware_bridge.framing import angel_eye, smp_console, smp_packets
from firmware_bridge.transports import open_transport
from simulators.rig import sim
from simulators.rig.bench_exchanges import EXCHANGES, raw_exchanges, simulator
from simulators.rig.bench_rows import NOW, Row, percentile
from simulators.rig.stepped import quiet_log

CARDS = 400
BITS_A_BYTE = 10
STREAM = 40_000
NOISE = 1 << 20
TRANSFERS = 5000
TRIES = 7
"""The best of them counts: it was hardly interrupted."""
FULL_SPEED = 19 * 64 * 1000
"""Bytes a second of USB full-speed bulk at its best: 19 packets of 64 bytes a millisecond."""

# --- goal 1: decoders ---


def decoders() -> Iterator[Row]:
    """One byte at a time, against the wire's own rate; then linearity and memory."""
    for name, decoder, stream in (
        ("angel-eye", angel_eye.Decoder, angel_eye_stream()),
        ("managed", smp_console.Decoder, packets(64, STREAM)),
    ):
        baud = load("angel-eye" if name == "angel-eye" else "managed-shoe").baud
        rate = len(stream) / min(_fed(decoder, stream) for _ in range(TRIES))
        yield Row(1, f"{name} decoder, 1 byte a call", rate, "B/s", baud / BITS_A_BYTE, 50, at_least=True)
        grown = _grown(decoder)
        yield Row(1, f"{name} decoder, memory in 1 MiB of noise", grown / 1024, "KiB", None, 64)
    short, long = (
        min(_fed(smp_console.Decoder, packets(size, STREAM)) for _ in range(TRIES))
        / (STREAM // len(packets(size, 1)))
        for size in (50, 200)
    )
    yield Row(1, "managed decoder, frame of 200 B against 50 B", long * 1e6, "us", short * 1e6, 4)
    yield from usb_decoders()


def usb_decoders() -> Iterator[Row]:
    """One whole transfer a call: packets of 64 bytes with header and body, then events through the driver."""
    one = smp.encode(smp.Message(smp.Op.READ_ANSWER, 65, 7, 0, {"t": "x" * (64 - smp.HEADER - 5)}))
    rate = TRANSFERS * len(one) / min(_read(one) for _ in range(TRIES))
    yield Row(1, "managed packets over USB, one transfer a call", rate, "B/s", None, 2e6, at_least=True)
    rings = [_ring(number) for number in range(1, 8 * TRANSFERS // 10, 8)]
    rate = sum(map(len, rings)) / min(_told(rings) for _ in range(TRIES))
    yield Row(1, "managed driver over USB, 8 events a transfer", rate, "B/s", FULL_SPEED, 1, at_least=True)


def _read(packet: bytes) -> float:
    """Processor time, as of all decoders: they wait for nothing."""
    decoder = smp_packets.Decoder()
    start = time.thread_time()
    for _ in range(TRANSFERS):
        for item in decoder.feed(packet):
            smp.decode(item.data)
    return time.thread_time() - start


def _ring(first: int) -> bytes:
    """The answer to a read of the ring: eight cards from number `first` on."""
    keys = {"t": 1000 * first, "k": "card", "c": "8S", "b": "red"}
    events = [{"n": number, **keys} for number in range(first, first + 8)]
    body = {"boot": 7, "oldest": 1, "next": first + 8, "events": events}
    return smp.encode(smp.Message(smp.Op.READ_ANSWER, 65, first % 256, 0, body))


def _told(rings: Sequence[bytes]) -> float:
    driver = load("managed-shoe").decoder(Setup("shoe", Random("bench"), packets=True))
    start = time.thread_time()
    for ring in rings:
        driver.feed(ring, 0.0)
    return time.thread_time() - start


def _fed(decoder: Callable[[], angel_eye.Decoder | smp_console.Decoder], stream: bytes) -> float:
    pieces, fresh = [bytes((byte,)) for byte in stream], decoder()
    start = time.thread_time()
    for piece in pieces:
        fresh.feed(piece)
    return time.thread_time() - start


def _grown(decoder: Callable[[], angel_eye.Decoder | smp_console.Decoder]) -> int:
    """Bytes that a decoder still holds after noise without one whole frame."""
    noise, fresh = Random("noise").randbytes(NOISE), decoder()
    tracemalloc.start()
    try:
        for at in range(0, NOISE, 4096):
            fresh.feed(noise[at : at + 4096])
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def packets(size: int, length: int) -> bytes:
    """About `length` bytes of wire: whole packets of `size` bytes."""
    filler = "x" * (size - smp.HEADER - 4)
    one = smp_console.encode(smp.encode(smp.Message(smp.Op.READ_ANSWER, 65, 7, 0, {"t": filler})))
    return one * max(1, length // len(one))


@cache
def angel_eye_stream() -> bytes:
    """Real telegrams: what a simulated shoe sends while it plays rounds by itself."""
    shoe, stream, now = sim.make("angel-eye", "bench"), b"", 0.0
    while len(stream) < STREAM:
        now = max(now + 0.01, shoe.deadline() or 0.0)
        stream += shoe.transmit(now)
    return stream


# --- goal 4: the full path ---

FULL_COMMIT = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode = WAL").fetchall()
db.execute("PRAGMA synchronous = FULL")
db.execute("CREATE TABLE fact (seq INTEGER PRIMARY KEY, data BLOB)")
for pause in (0, 0.002):
    for number in range(int(sys.argv[2])):
        time.sleep(pause)
        start, cpu = time.monotonic(), time.thread_time()
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO fact VALUES (NULL, ?)", (bytes(300),))
        db.execute("COMMIT")
        print(time.thread_time() - cpu if pause else time.monotonic() - start)
"""
"""The floor of a commit, in a process of its own: nothing here but one row of 300 bytes, durably.

Seconds of each commit back to back, then CPU seconds of each at the pace at which cards come.
"""


def full_path() -> Iterator[Row]:
    """From the moment the device's bytes leave until the commit of their fact has returned."""
    with simulator(1) as (child, (path,)), tempfile.TemporaryDirectory(prefix="cutcard-") as home:
        before = time.process_time()
        raw = raw_exchanges(path, EXCHANGES)
        exchange_cpu = (time.process_time() - before) / EXCHANGES
        command = [sys.executable, "-c", FULL_COMMIT, str(Path(home) / "floor.db"), str(CARDS)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        figures = [float(line) for line in said.split()]
        commits, commit_cpu = figures[:CARDS], sum(figures[CARDS:]) / CARDS
        ours, cpu = _card_to_commit(child, path, Path(home))
    for name, share, limit in (("p50", 0.5, 3.0), ("p99", 0.99, 5.0)):
        floor = (percentile(raw, share) + percentile(commits, share)) * 1e6
        yield Row(
            4,
            f"card on the wire to commit returned, {name}",
            percentile(ours, share) * 1e6,
            "us",
            floor,
            limit,
        )
    floor = (exchange_cpu + commit_cpu) * 1e6
    yield Row(4, "CPU for each event (floor: raw exchange and bare commit)", cpu * 1e6, "us", floor, 4.0)


def _card_to_commit(child: subprocess.Popen[bytes], path: Path, home: Path) -> tuple[list[float], float]:
    """Seconds from each card to its commit, and CPU seconds of this process for each card."""
    rules = TableRules("BENCH", 7, 40, (BatchRules("A", "red"), BatchRules("B", "blue")))
    clock, log = SystemClock(), quiet_log()
    committed: queue.SimpleQueue[float] = queue.SimpleQueue()
    times: list[float] = []
    assert child.stdin is not None
    assert child.stdout is not None

    def publish(entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.fact.kind in ("link_up", "card_drawn"):
                committed.put(NOW())

    with ExitStack() as stack:
        journal = Journal.open(home / "journal.db", home / "seal.key", clock=clock, boot_id=new_boot_id())
        stack.callback(journal.close)
        service = Service(rules, journal, {}, log=log)
        service.state = _shoe_in_use(service)
        controller = Controller(service, clock, Notifier({}), log)
        driver = load("managed-shoe").controlled(Setup("shoe", Random("bench")))
        port = WatchedPort("shoe", open_transport(f"serial:{path}"), driver, clock, controller.deliver)
        controller.ports["shoe"] = port
        service.devices = controller.ports
        service.publish = publish
        service.start(new_boot_id().hex())
        port.start()
        stack.callback(port.stop)
        before = 0.0

        def draw_cards() -> None:
            nonlocal before
            committed.get(timeout=10)
            before = time.process_time()
            for _ in range(CARDS):
                child.stdin.write(b"d")  # type: ignore[union-attr]
                child.stdin.flush()  # type: ignore[union-attr]
                end = committed.get(timeout=10)
                times.append(end - float(child.stdout.readline()))  # type: ignore[union-attr]
            controller.stop()

        hand = threading.Thread(target=draw_cards)
        hand.start()
        controller.run()
        hand.join()
        return times, (time.process_time() - before) / CARDS


def _shoe_in_use(service: Service) -> TableState:
    """A table whose batch A is in the shoe and whose cards go to the rack, each sealed in the journal."""
    size = service.rules.batch_size
    batches = {"A": Batch("A", "red", {Place.SHOE: size}), "B": Batch("B", "blue", {Place.SHUFFLER: size})}
    shoe = Shoe(batch="A", last_batch="A", number=1, empty=False)
    start = initial(service.rules, seq=service.journal.last_seq)
    return replace(start, phase=Phase.SHOE_END, batches=batches, shoe=shoe)


GOALS = (
    ("goal 1, decoders", decoders),
    ("goal 4, the full path", full_path),
)
