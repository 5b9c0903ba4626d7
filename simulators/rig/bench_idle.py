"""Goal 3: what a daemon costs while nothing happens: a process of its own and the kernel's counters."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from controller import config, daemon
from controller.config import Config, DeviceConfig
from devices.managed.ring import PLAY
from devices.registry import load
from simulators.rig import child
from simulators.rig.bench_exchanges import simulator
from simulators.rig.bench_rows import NOW, Row
from simulators.rig.demo import TABLE
from simulators.rig.stepped import quiet_log

LISTENING = 8
MANAGED = 3
WATCHED_S = 10.0
READY_S = 20.0
CHILD = child.code("simulators.rig.bench_idle", "main", child.ENDED)


@dataclass(frozen=True, slots=True)
class Spent:
    """Processor time (s) and voluntary context switches of all `threads` of a process, at time `at`."""

    at: float
    cpu: float
    switches: int
    threads: int

    @classmethod
    def of(cls, pid: int) -> Spent:
        proc = Path(f"/proc/{pid}")
        fields = (proc / "stat").read_text().rpartition(")")[2].split()
        cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        tasks = [(task / "status").read_text() for task in (proc / "task").iterdir()]
        switches = sum(int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0]) for text in tasks)
        return cls(NOW(), cpu, switches, len(tasks))


def idle() -> Iterator[Row]:
    """Eight silent ports that are only listened to, then three managed devices of an idle table.

    The two daemons run side by side: neither has anything to do.
    """
    with (
        simulator(MANAGED) as (_, lines),
        _daemon("managed-shoe", lines) as table,
        _silent_lines(LISTENING) as paths,
        _daemon("angel-eye", paths) as listener,
    ):
        calm = NOW() + PLAY  # until then a device just found counts as in play
        cpu, wakes = _watched(listener, LISTENING)
        name = f"idle daemon, {LISTENING} listen-only ports"
        yield Row(3, f"{name}, CPU", cpu, "%", None, 0.5)
        yield Row(3, f"{name}, wake-ups", wakes, "/s", None, 20.0)
        time.sleep(max(0.0, calm - NOW()))
        cpu, _ = _watched(table, MANAGED)
    yield Row(3, f"idle daemon, {MANAGED} managed devices, CPU", cpu, "%", None, 1.0)


def _watched(pid: int, ports: int) -> tuple[float, float]:
    """Percent of one processor and wake-ups a second. Raises when a port has no owner thread."""
    time.sleep(1.0)
    before = Spent.of(pid)
    time.sleep(WATCHED_S)
    after = Spent.of(pid)
    if min(before.threads, after.threads) < ports + 2:
        raise RuntimeError(f"{after.threads} threads cannot own {ports} ports")
    seconds = after.at - before.at
    return 100 * (after.cpu - before.cpu) / seconds, (after.switches - before.switches) / seconds


@contextmanager
def _silent_lines(count: int) -> Iterator[list[Path]]:
    pairs = [os.openpty() for _ in range(count)]
    try:
        yield [Path(os.ttyname(slave)) for _, slave in pairs]
    finally:
        for pair in pairs:
            for number in pair:
                os.close(number)


@contextmanager
def _daemon(driver: str, paths: Sequence[Path]) -> Iterator[int]:
    """The pid of a daemon with all its devices connected."""
    with (
        tempfile.TemporaryDirectory(prefix="cutcard-") as home,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify,
    ):
        notify.bind(f"{home}/notify")
        command = [sys.executable, "-P", "-c", CHILD, home, driver, *map(str, paths)]
        environ = {**os.environ, "NOTIFY_SOCKET": f"{home}/notify"}
        with subprocess.Popen(command, env=environ) as running:
            try:
                _await(notify, b"STATUS=all devices connected")
                yield running.pid
            finally:
                running.send_signal(signal.SIGTERM)


def _await(notify: socket.socket, words: bytes) -> None:
    until = NOW() + READY_S
    while select.select([notify], [], [], max(0.0, until - NOW()))[0]:
        if words in notify.recv(4096):
            return
    raise TimeoutError(f"the daemon did not say {words!r} within {READY_S:g} s")


def main() -> None:
    """The daemon. Arguments: a directory, a driver, and the serial ports that speak it."""
    home, driver, *paths = sys.argv[1:]
    asked, _ = config.examine(TABLE.encode())
    assert asked is not None
    options: Mapping[str, str] = {}
    devices = tuple(
        DeviceConfig(f"device-{number}", load(driver), f"serial:{path}", options)
        for number, path in enumerate(paths)
    )
    where = Path(home)
    table = Config(asked.rules, devices, where / "s", where / "journal.db", where / "seal.key")
    sys.exit(daemon.serve(table, quiet_log(), os.environ))


GOALS = (("goal 3, an idle daemon (takes a minute)", idle),)
