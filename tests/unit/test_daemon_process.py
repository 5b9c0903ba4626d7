"""`cutcard run` as a process: readiness without hardware, watchdog, SIGTERM, restart, refusals to start."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from controller.cli.client import ask
from controller.journal import verify

CUTCARD = [sys.executable, "-c", "from controller.cli.app import main; main()"]
TABLE = """
[table]
id = "T1"
[cards]
decks_per_batch = 6
cutting_card = "yellow"
[[cards.batch]]
id = "A"
back = "red"
[[cards.batch]]
id = "B"
back = "blue"
[devices.shoe]
driver = "managed-shoe"
port = "serial:{dir}/shoe"
[devices.shuffler]
driver = "managed-shuffler"
port = "serial:{dir}/shuffler"
[service]
socket = "{dir}/t.sock"
[journal]
path = "{dir}/journal.db"
key = "{dir}/seal.key"
"""


class Systemd:
    """The receiving end of sd_notify."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(str(path))
        self.sock.settimeout(30)
        self.told: list[str] = []

    def wait(self, wanted: str) -> None:
        """Until a message starts so; every message is kept."""
        while True:
            told = self.sock.recv(4096).decode()
            self.told.append(told)
            if told.startswith(wanted):
                return


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.toml"
    path.write_text(TABLE.format(dir=tmp_path))
    return path


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    made = Systemd(tmp_path / "notify")
    yield made
    made.sock.close()


@contextmanager
def daemon(table: Path, systemd: Systemd, *args: str, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [*CUTCARD, "run", str(table), *args],
        env={**os.environ, "NOTIFY_SOCKET": str(systemd.path), **env},
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        systemd.wait("READY=1")
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)
        process.stderr.close()


def stop(process: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> list[dict[str, Any]]:
    process.send_signal(number)
    assert process.stderr is not None
    lines = [json.loads(line) for line in process.stderr.read().splitlines()]
    assert process.wait(30) == 0
    return lines


def opened(at: Path, key: str | None = None) -> int:
    """Open the table, once its devices were inspected; the number of that fact."""
    for device in ("shoe", "shuffler"):
        ask(at, {"do": "inspect", "device": device})
    return int(ask(at, {"do": "open"} | ({} if key is None else {"id": key}))["facts"][0]["fact"])


def test_a_table_without_hardware_is_ready_waits_and_stops_on_sigterm(
    table: Path, systemd: Systemd, tmp_path: Path
) -> None:
    at = tmp_path / "t.sock"
    with daemon(table, systemd) as process:
        systemd.wait("STATUS=waiting for shoe, shuffler")
        status = ask(at, {"get": "status"})["status"]
        while len(status["ports"]) < 2:  # each port tells its state when its thread has tried
            status = ask(at, {"get": "status"})["status"]
        assert status["phase"] == "closed"
        assert {name: port["link"] for name, port in status["ports"].items()} == {
            "shoe": "absent",
            "shuffler": "absent",
        }
        assert status["fact"] >= 3, "the header, the start, the hour"
        fact = opened(at, "k1")
        lines = stop(process)
    systemd.wait("STOPPING=1")
    assert not at.exists()
    events = [line["event"] for line in lines]
    assert events[0] == "fact"
    assert events[-2:] == ["stopping", "stopped"]
    assert all({"table", "boot", "level", "timestamp"} <= line.keys() for line in lines)
    assert {line["boot"] for line in lines} == {status["boot"]}
    assert verify(tmp_path / "journal.db", tmp_path / "seal.key").ok

    with daemon(table, systemd) as process:
        again = ask(at, {"get": "status"})["status"]
        assert (again["phase"], again["fact"]) == ("opening", fact + 1)
        assert again["boot"] != status["boot"]
        assert ask(at, {"do": "open", "id": "k1"})["facts"][0]["fact"] == fact
        stop(process, signal.SIGINT)


def test_kill_9_loses_nothing_that_was_answered(table: Path, systemd: Systemd, tmp_path: Path) -> None:
    at = tmp_path / "t.sock"
    with daemon(table, systemd) as process:
        first = opened(at)
        steps = [{"do": event, "batch": "A"} for event in ("inspect", "verify", "spread")]
        facts = [ask(at, step)["facts"][0]["fact"] for step in steps]
        refused = ask(at, {"do": "burn"})
        process.kill()
    assert facts == [first + 1, first + 2, first + 3]
    with daemon(table, systemd) as process:
        status = ask(at, {"get": "status"})["status"]
        assert status["fact"] == first + 5, "the refusal, and the start"
        assert (status["refused"]["fact"], status["refused"]["code"]) == (first + 4, refused["refused"])
        stop(process)


def test_the_watchdog_is_fed_while_all_threads_live(table: Path, systemd: Systemd) -> None:
    with daemon(table, systemd, WATCHDOG_USEC="400000") as process:
        for _ in range(3):
            systemd.wait("WATCHDOG=1")
        lines = stop(process)
    assert "no sign of life" not in [line["event"] for line in lines]


def test_a_closed_stderr_does_not_stop_the_daemon(table: Path, systemd: Systemd, tmp_path: Path) -> None:
    at = tmp_path / "t.sock"
    with daemon(table, systemd, "--log-level", "debug") as process:
        assert process.stderr is not None
        process.stderr.close()
        opened(at)
        for event in ("inspect", "verify"):
            assert ask(at, {"do": event, "batch": "A"})["ok"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_a_missing_key_is_a_latched_fault(table: Path, systemd: Systemd, tmp_path: Path) -> None:
    at, key = tmp_path / "t.sock", tmp_path / "seal.key"
    with daemon(table, systemd) as process:
        opened(at)
        stop(process)
    kept = key.rename(tmp_path / "elsewhere")
    with daemon(table, systemd) as process:
        (fault,) = ask(at, {"get": "faults"})["faults"]
        assert (fault["code"], fault["blocks"]) == ("key_missing", "now")
        assert ask(at, {"do": "inspect", "batch": "A"})["refused"] == "fault_latched"
        stop(process)
    assert not key.exists(), "no new key is ever made for an old journal"
    with daemon(table, systemd) as process:
        assert ask(at, {"do": "clear", "fault": fault["id"]})["refused"] == "cause_remains"
        stop(process)
    kept.rename(key)
    with daemon(table, systemd) as process:
        assert ask(at, {"get": "faults"})["faults"][0]["id"] == fault["id"], "latched until it is cleared"
        assert ask(at, {"do": "clear", "fault": fault["id"]})["ok"]
        assert ask(at, {"do": "inspect", "batch": "A"})["ok"]
        stop(process)


def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CUTCARD, *map(str, args)], capture_output=True, text=True, timeout=30, check=False
    )


def test_a_second_daemon_is_refused(table: Path, systemd: Systemd) -> None:
    with daemon(table, systemd) as process:
        second = run("run", table)
        assert second.returncode == 3
        assert second.stderr.startswith("cutcard: another daemon holds the journal")
        assert second.stderr.count("\n") == 1
        stop(process)


def test_what_cannot_run_is_told_in_a_line_each(table: Path, tmp_path: Path) -> None:
    good = table.read_text()
    table.write_text(good.replace("decks_per_batch = 6", "decks_per_batch = 0").replace('"blue"', '"red"'))
    bad = run("run", table)
    assert bad.returncode == 2
    clauses = [line.rpartition(" ")[2] for line in bad.stderr.splitlines()]
    assert clauses == ["[13:69F-2.2(a)]", "[13:69F-2.2(d)2]"]
    assert "Traceback" not in bad.stderr

    table.write_text(good.replace(f'"{tmp_path}/journal.db"', f'"{tmp_path}/none/journal.db"'))
    nowhere = run("run", table)
    assert (nowhere.returncode, nowhere.stderr.count("\n")) == (2, 1)
    assert "Traceback" not in nowhere.stderr
