"""Goal 2: exchanges over a pty, by a driver in its owner thread and by bare reads and writes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

from devices.base import Setup
from devices.events import LinkUp
from devices.registry import load
from firmware_bridge import smp
from firmware_bridge.clock import SystemClock
from firmware_bridge.framing import smp_console
from firmware_bridge.link import Complete, Done
from firmware_bridge.port import Port
from firmware_bridge.transports import open_transport
from simulators.rig.bench_rows import NOW, Row, percentile

EXCHANGES = 1000
BUSY = 8
BUSY_EXCHANGES = 150
CHILD = "from simulators.rig.bench_child import main; main()"
STATUS = smp.Message(smp.Op.READ, 67, 7, 0)


@contextmanager
def simulator(
    count: int, device: str = "managed-shoe"
) -> Iterator[tuple[subprocess.Popen[bytes], list[Path]]]:
    """`count` quiet devices on ptys, in a process of their own."""
    with tempfile.TemporaryDirectory(prefix="cutcard-") as home:
        paths = [Path(home) / f"{device}-{n}" for n in range(count)]
        command = [sys.executable, "-P", "-c", CHILD, device, *map(str, paths)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            try:
                child.stdout.readline()
                yield child, paths
            finally:
                child.stdin.close()


def exchanges() -> Iterator[Row]:
    """A status question over a pty: by the driver in its owner thread, and by bare reads and writes."""
    with simulator(1) as (_, (path,)):
        raw = raw_exchanges(path, EXCHANGES)
        ours = driver_exchanges(path, EXCHANGES)
    yield from against_raw("driver exchange over a pty", ours, raw)
    with simulator(BUSY) as (_, paths):
        raw = _together([partial(raw_exchanges, path, 5 * BUSY_EXCHANGES) for path in paths])
        all_up = threading.Barrier(BUSY)
        ours = _together([partial(driver_exchanges, path, BUSY_EXCHANGES, all_up=all_up) for path in paths])
    value, floor = percentile(ours, 0.99), percentile(raw, 0.99)
    limit = max(6.0, 0.010 / floor)
    yield Row(2, f"{BUSY} busy devices, p99 (10 ms or 6x)", value * 1e6, "us", floor * 1e6, round(limit, 2))


def against_raw(name: str, ours: Sequence[float], raw: Sequence[float]) -> Iterator[Row]:
    """The rows of a driver's exchanges, whose floor is the bare exchange."""
    for which, share, limit in (("p50", 0.5, 5.0), ("p99", 0.99, 6.0)):
        value, floor = percentile(ours, share) * 1e6, percentile(raw, share) * 1e6
        yield Row(2, f"{name}, {which}", value, "us", floor, limit)


def line_ended(answer: bytes) -> bool:
    return answer.endswith(b"\n")


def raw_exchanges(
    path: Path,
    count: int,
    question: bytes = smp_console.encode(smp.encode(STATUS)),
    whole: Callable[[bytes], bool] = line_ended,
) -> list[float]:
    """Seconds of each bare exchange: os.write of one question, os.read until its answer is whole."""
    times = []
    port = os.open(path, os.O_RDWR | os.O_NOCTTY)
    try:
        for _ in range(count):
            start = NOW()
            os.write(port, question)
            answer = b""
            while not whole(answer):
                answer += os.read(port, 4096)
            times.append(NOW() - start)
    finally:
        os.close(port)
    return times


class LeapingClock(SystemClock):
    """Time that may leap over what the line is given to rest."""

    ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


def driver_exchanges(
    path: Path,
    count: int,
    name: str = "managed-shoe",
    command: str = "status",
    *,
    rest_s: float = 0.0,
    all_up: threading.Barrier | None = None,
) -> list[float]:
    """The same question through transport, framing, link and driver, stepped in this thread.

    The driver believes that `rest_s` seconds pass before and after each question leaves. Raises RuntimeError
    when a question is not answered at once.
    """
    ends: list[Complete] = []
    up: list[bool] = []

    def deliver(_: str, outputs: Sequence[object]) -> None:
        ends.extend(o for o in outputs if isinstance(o, Complete))
        up.extend(True for o in outputs if isinstance(o, LinkUp))

    clock = LeapingClock()
    driver = load(name).controlled(Setup("bench", Random("bench")))
    port = Port("bench", open_transport(f"serial:{path}"), driver, clock, deliver)
    times = []
    try:
        while not up:
            port.step(1.0)
        if all_up is not None:
            all_up.wait()
        for number in range(count):
            clock.ahead += rest_s
            start = NOW()
            port.command(str(number), command)
            port.step(0)  # the question goes out
            clock.ahead += rest_s
            while len(ends) <= number:
                port.step(1.0)
            times.append(NOW() - start)
            if driver.counters.retries:
                raise RuntimeError(f"{name} had to ask {command!r} again: what was timed is its patience")
    finally:
        port.close()
    if not all(isinstance(end.outcome, Done) for end in ends):
        raise RuntimeError(f"{name} did not answer {command!r}")
    return times


def _together(jobs: Sequence[Callable[[], list[float]]]) -> list[float]:
    found: list[float] = []
    threads = [threading.Thread(target=lambda j=job: found.extend(j())) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


GOALS = (("goal 2, exchanges over a pty", exchanges),)
