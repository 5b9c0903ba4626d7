"""A store on disk: what dead processes and power cuts leave of a journal; nothing acknowledged is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from controller.journal import Journal, verify
from controller.record import JournalFailed
from controller.table.inputs import Fact
from firmware_bridge.clock import VirtualClock
from simulators.rig.campaign.journals import journals
from simulators.rig.campaign.store import (
    FRAME_HEADER,
    WAL_HEADER,
    DiskStore,
    commits,
    disk_full,
    least_left,
)

FRAME = FRAME_HEADER + 4096


class Died(BaseException):
    """The daemon is gone."""


def facts(*numbers: int) -> list[Fact]:
    return [Fact("card_drawn", "shoe", {"number": n}, {"card": "8S"}) for n in numbers]


def numbers(journal: Journal) -> list[int]:
    return [entry.fact.data["number"] for entry in journal.entries(1)]


def wal(store: DiskStore) -> bytes:
    return store.path.with_name("journal.db-wal").read_bytes()


def shm(store: DiskStore) -> bytes:
    return store.path.with_name("journal.db-shm").read_bytes()


@pytest.fixture
def directory() -> Iterator[Path]:
    with journals() as found:
        yield found


@pytest.fixture
def store(directory: Path) -> Iterator[DiskStore]:
    store = DiskStore(directory, Random("store"))
    yield store
    store.close()


def opened(store: DiskStore, boot: int) -> Journal:
    return store.open(VirtualClock(), Random(f"boot {boot}"))


def dies() -> None:
    raise Died


def test_a_dead_process_leaves_everything_that_it_wrote(store: DiskStore) -> None:
    journal = opened(store, 1)
    journal.append(facts(1, 2))
    store.after = dies
    with pytest.raises(Died):
        journal.append(facts(3))
    store.kill()
    assert [entry.fact.data["number"] for entry in store.in_doubt] == [3]
    assert numbers(opened(store, 2)) == [1, 2, 3]


def test_after_a_power_cut_acknowledged_facts_are_there_and_others_wholly_or_not_at_all(
    store: DiskStore,
) -> None:
    """The log is moved into the file every few commits, so that it is begun anew again and again."""
    random, wanted, kept, count = Random("sizes"), [], set(), 0
    for boot in range(20):
        journal = opened(store, boot)
        journal._db.execute("PRAGMA wal_autocheckpoint = 6").fetchall()
        for _ in range(random.randint(0, 9)):
            new = range(count, count := count + random.randint(1, 4))
            journal.append(facts(*new))
            wanted += new
        store.after = dies if boot % 2 else lambda: None
        new = range(count, count := count + 3)
        if boot % 2:
            with pytest.raises(Died):
                journal.append(facts(*new))
        store.power_cut()
        store.after = lambda: None
        found = numbers(opened(store, 1000 + boot))
        assert found in (wanted, [*wanted, *new])
        kept.add(len(found) - len(wanted))
        wanted = found
        assert verify(store.path, store.key).ok
        store.kill()
    assert kept == {0, 3}


def test_the_end_of_the_last_acknowledged_commit_is_found_in_the_log(store: DiskStore) -> None:
    journal = opened(store, 1)
    assert commits(wal(store)) == []
    journal.append(facts(1))
    journal.append(facts(2))
    ends = commits(wal(store))
    assert len(ends) == 2
    assert ends[-1] == len(wal(store))
    assert least_left(wal(store), shm(store), in_doubt=False) == ends[1]
    assert least_left(wal(store), shm(store), in_doubt=True) == ends[0]


def test_what_was_moved_into_the_file_stays_in_the_log_and_a_new_log_hides_the_old_one(
    store: DiskStore,
) -> None:
    journal = opened(store, 1)
    for number in range(5):
        journal.append(facts(number))
    journal._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    size = len(wal(store))
    assert least_left(wal(store), shm(store), in_doubt=True) == size
    journal.append(facts(5))
    assert len(wal(store)) == size
    assert commits(wal(store)) == [WAL_HEADER + FRAME]
    assert least_left(wal(store), shm(store), in_doubt=True) == 0
    assert least_left(wal(store), b"", in_doubt=False) == WAL_HEADER + FRAME


def test_a_full_disk_writes_nothing_and_the_journal_goes_on_when_there_is_room(store: DiskStore) -> None:
    journal = opened(store, 1)
    store.before = disk_full
    with pytest.raises(JournalFailed, match="no space left"):
        journal.append(facts(1))
    store.before = lambda: None
    journal.append(facts(2))
    assert numbers(journal) == [2]
    assert store.commits == 1


def test_entries_are_told_once_they_are_acknowledged(store: DiskStore) -> None:
    journal = opened(store, 1)
    journal.append(facts(1))
    store.after = dies
    with pytest.raises(Died):
        journal.append(facts(2))
    assert [entry.fact.data["number"] for entry in store.take()] == [1]
    assert store.take() == []
    assert store.acknowledged is not None
    assert store.acknowledged.fact.data == {"number": 1}


def test_the_files_of_the_last_life_alone_are_left(directory: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    store = DiskStore(directory, Random(1))
    for boot in range(4):
        opened(store, boot).append(facts(boot))
        store.kill() if boot % 2 else store.power_cut()
    store.close()
    assert {path.name for path in directory.iterdir()} == {"life-5", "seal.key"}
    assert len(list(Path("/proc/self/fd").iterdir())) == before
