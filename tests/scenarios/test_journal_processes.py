"""The journal between processes: kill -9 of the writer, readers of other users, a follower."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from controller.journal import Journal, JournalReader, verify
from controller.record import JournalBusy, JournalUnreadable
from controller.table.inputs import Fact
from firmware_bridge.clock import VirtualClock

WRITER = """
import sys
from itertools import cycle
from pathlib import Path
from controller.journal import Journal
from controller.table.inputs import Fact
from firmware_bridge.clock import SystemClock
folder = Path(sys.argv[1])
journal = Journal.open(folder / "j.db", folder / "k", clock=SystemClock())
print(journal.last_seq, flush=True)
n = journal.last_seq
for size in cycle((1, 2, 5)):
    facts = [Fact("card_drawn", "shoe", {"n": n + i, "of": size}, {"card": "8S"}) for i in range(size)]
    n = journal.append(facts)[-1].seq
    print(n, flush=True)
    if len(sys.argv) > 2:
        sys.stdin.readline()
"""
NOBODY = 65534


@contextmanager
def writer(folder: Path, *, paced: bool = False) -> Iterator[subprocess.Popen[str]]:
    """A daemon's journal in a process of its own; killed at the end."""
    command = [sys.executable, "-c", WRITER, str(folder), *(["paced"] if paced else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_killed_writers_lose_no_acknowledged_fact(tmp_path: Path) -> None:
    random, acknowledged = Random(3), 1
    for _ in range(4):
        with writer(tmp_path) as process:
            assert process.stdout is not None
            started = int(process.stdout.readline())
            assert started >= acknowledged
            for _ in range(random.randrange(1, 200)):
                acknowledged = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            acknowledged = max([acknowledged, *map(int, process.stdout.read().split())])
        verdict = verify(tmp_path / "j.db", tmp_path / "k")
        assert verdict.ok
        assert verdict.last_seq >= acknowledged
    with JournalReader(tmp_path / "j.db", tmp_path / "k") as reader:
        facts = [entry.fact for entry in reader.entries(1)]
    at = 0
    while at < len(facts):  # no append is half there
        size = facts[at].data["of"]
        assert [fact.data["of"] for fact in facts[at : at + size]] == [size] * size
        at += size


def test_the_lock_of_another_process_holds_and_dies_with_it(tmp_path: Path) -> None:
    with writer(tmp_path, paced=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(JournalBusy):
            Journal.open(tmp_path / "j.db", tmp_path / "k", clock=VirtualClock())
        with JournalReader(tmp_path / "j.db") as reader:
            assert next(reader.entries()).fact.kind == "journal_started"
    Journal.open(tmp_path / "j.db", tmp_path / "k", clock=VirtualClock()).close()


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that every user reaches."""
    folder = Path(tempfile.mkdtemp(prefix="cutcard-test-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def as_nobody(path: Path) -> str:
    """What a user without any right to write sees: the last sequence, or the error's name."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read_end)
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            try:
                found = str(verify(path).last_seq)
            except JournalUnreadable:
                found = "JournalUnreadable"
            os.write(write_end, found.encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as answer:
        text = answer.read().decode()
    os.waitpid(child, 0)
    return text


def test_users_without_write_permission_read_too(public: Path) -> None:
    with writer(public, paced=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        last = process.stdout.readline().strip()
        for path in public.glob("j.db*"):
            path.chmod(0o444)
        public.chmod(0o555)
        assert as_nobody(public / "j.db") == last, "live"
    assert as_nobody(public / "j.db") == last, "after a crash"
    public.chmod(0o755)
    (public / "j.db-shm").unlink()
    public.chmod(0o555)
    assert as_nobody(public / "j.db") == last, "from a copy without -shm"
    public.chmod(0o755)
    Journal.open(public / "j.db", public / "k", clock=VirtualClock()).close()
    public.chmod(0o555)
    assert as_nobody(public / "j.db") == last, "at rest"
    (public / "j.db").chmod(0o000)
    if os.geteuid() == 0:
        assert as_nobody(public / "j.db") == "JournalUnreadable"


def test_tail_follows_a_live_journal(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "j.db", tmp_path / "k", clock=VirtualClock())
    journal.append([Fact("card_drawn", "shoe", {"n": 1}, {"card": "8S"})])
    command = "from controller.cli.app import main; main()"
    arguments = ["journal", "tail", "-f", "-n", "1", "--json", "--key", str(tmp_path / "k")]
    with subprocess.Popen(
        [sys.executable, "-c", command, *arguments, str(tmp_path / "j.db")], stdout=subprocess.PIPE, text=True
    ) as tail:
        try:
            assert tail.stdout is not None
            first = json.loads(tail.stdout.readline())
            assert (first["fact"], first["card"]) == (2, None)
            journal.append([Fact("exposed", "shoe", {"seqs": [2, 4]})])
            journal.append([Fact("card_drawn", "shoe", {"n": 2}, {"card": "TH"})])
            assert json.loads(tail.stdout.readline())["seqs"] == [2, 4]
            assert json.loads(tail.stdout.readline())["card"] == "TH"
            tail.send_signal(signal.SIGINT)
            assert tail.wait(20) == 0
            assert tail.stdout.read() == ""
        finally:
            tail.kill()
    journal.close()
