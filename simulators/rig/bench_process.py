"""Goals 5 and 8: the journal against a bare flush, and what the daemon and the commands cost to start."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

from controller.factlog import new_boot_id
from controller.journal import Journal
from controller.record import chain_hash, encode
from controller.seal import Sealer
from controller.table.inputs import Fact
from firmware_bridge.clock import SystemClock
from simulators.rig import demo
from simulators.rig.bench_rows import NOW, Row, percentile, timed

FLUSHES = 400
SEALS = 3000
STARTS = 5

FACT = Fact(
    "card_drawn",
    "shoe",
    {"n": 1234, "seq": 1200, "mono_us": 1234567890, "to": "hole", "batch": "A", "shoe": 3, "round": 17,
     "foreign": False, "seen": False, "back": "red", "in_game": True, "face_up": False},
    {"card": "8S", "raw": bytes(40)},
)  # fmt: skip
"""A typical fact: an unseen card."""


def journal() -> Iterator[Row]:
    """One fact a commit against one bare fdatasync of as many bytes; chain and sealing alone."""
    with tempfile.TemporaryDirectory(prefix="cutcard-") as home:
        path, key = Path(home) / "journal.db", Path(home) / "seal.key"
        opened = Journal.open(path, key, clock=SystemClock(), boot_id=new_boot_id())
        try:
            ours = timed(lambda: opened.append([FACT]), FLUSHES)
        finally:
            opened.close()
        bare = os.open(Path(home) / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            floor = timed(partial(_append, bare), FLUSHES)
        finally:
            os.close(bare)
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        value, least = percentile(ours, share) * 1e6, percentile(floor, share) * 1e6
        yield Row(5, f"one fact committed, {name}", value, "us", least, 5.0)
    yield Row(5, "chain and sealing, for each fact", _chain_and_seal() * 1e6, "us", None, 30.0)


def _append(file: int) -> None:
    os.write(file, bytes(300))
    os.fdatasync(file)


def _chain_and_seal() -> float:
    """Processor time of each fact."""
    random = Random("bench")
    sealer, boot, data = (
        Sealer(random.randbytes(32), random.randbytes(16)),
        random.randbytes(16),
        encode(dict(FACT.data)),
    )
    secret, head = dict(FACT.sealed), bytes(32)
    start = time.thread_time()
    for seq in range(1, SEALS + 1):
        sealed = sealer.seal(secret, seq=seq, attempt=0, kind=FACT.kind, boot=boot)
        head = chain_hash(head, (seq, boot, seq, seq, FACT.kind, FACT.source, data, "card,raw", sealed))
    return (time.thread_time() - start) / SEALS


def processes() -> Iterator[Row]:
    """Wall time of the daemon's start and of two commands, against an interpreter that does nothing."""
    nothing = percentile(timed(lambda: _quiet([sys.executable, "-c", "pass"]), STARTS), 0.5)
    cutcard = [sys.executable, "-P", "-c", "from controller.cli.app import main; main()"]
    help_s = percentile(timed(lambda: _quiet([*cutcard, "--help"]), STARTS), 0.5)
    with demo.set_up() as place, demo.on_ptys(place, "bench", 1) as live:
        start = NOW()
        live.daemon.start()
        while not live.daemon.said_ready():
            select.select([live.daemon.notify_fd], [], [], 5.0)
        listening = NOW() - start
        live.daemon.kill()
        live.start()
        live.run(lambda: live.view.phase == "first_shuffling")
        status_s = percentile(
            timed(lambda: _quiet([*cutcard, "status", "--socket", str(place.control)]), STARTS), 0.5
        )
        rss = _rss_mib(live.daemon.pid)
        live.stop()
    for name, value, limit in (
        ("daemon without panel, start to listening", listening, 1.5),
        ("cutcard --help", help_s, 0.5),
        ("cutcard status", status_s, 0.5),
    ):
        yield Row(8, name, value, "s", nothing, limit, absolute=True)
    yield Row(8, "daemon's resident memory with a table in play", rss, "MiB", None, 80.0)


def _quiet(command: list[str]) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _rss_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


GOALS = (("goal 5, the journal", journal), ("goal 8, processes", processes))
