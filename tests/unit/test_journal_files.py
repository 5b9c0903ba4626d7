"""The journal as files: one writer, bounded WAL, failures adopted nowhere, readers welcome."""

from __future__ import annotations

import resource
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from controller import journal as module
from controller.journal import Journal, JournalReader, verify
from controller.record import JournalBusy, JournalCorrupt, JournalFailed, JournalUnreadable
from controller.seal import KeyUnusable, create_key
from controller.table.inputs import Fact
from firmware_bridge.clock import VirtualClock

DRAWN = Fact("card_drawn", "shoe", {"n": 1}, {"card": "8S", "raw": bytes(20)})


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal.open(tmp_path / "j.db", tmp_path / "k", clock=VirtualClock())
    yield opened
    opened.close()


def again(folder: Path) -> Journal:
    return Journal.open(folder / "j.db", folder / "k", clock=VirtualClock())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_two_daemons_cannot_share_a_journal(journal: Journal, tmp_path: Path) -> None:
    (tmp_path / "alias.db").symlink_to(tmp_path / "j.db")
    with pytest.raises(JournalBusy, match="stop the other one"):
        again(tmp_path)
    with pytest.raises(JournalBusy):
        Journal.open(tmp_path / "alias.db", tmp_path / "k", clock=VirtualClock())
    assert journal.append([DRAWN])[0].seq == 2
    journal.close()
    second = again(tmp_path)
    assert second.last_seq == 2
    second.close()


def test_closing_twice_is_fine_and_leaves_one_whole_file(journal: Journal, tmp_path: Path) -> None:
    journal.append([DRAWN])
    journal.close()
    journal.close()
    assert names(tmp_path) == ["j.db", "j.db-lock", "k"]
    shutil.copy(tmp_path / "j.db", tmp_path / "copy.db")
    assert verify(tmp_path / "copy.db", tmp_path / "k").last_seq == 2


def test_a_failed_opening_frees_the_lock(tmp_path: Path) -> None:
    again(tmp_path).close()
    (tmp_path / "k").chmod(0o644)
    for _ in range(2):
        with pytest.raises(KeyUnusable, match="chmod"):
            again(tmp_path)
    (tmp_path / "k").chmod(0o600)
    again(tmp_path).close()


def test_durability_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again(tmp_path).close()
    for weak in ("PRAGMA synchronous = NORMAL", "PRAGMA synchronous = OFF"):
        monkeypatch.setattr(module, "PRAGMAS", (*module.PRAGMAS, weak))
        with pytest.raises(JournalFailed, match="power cut"):
            again(tmp_path)
    monkeypatch.setattr(module, "PRAGMAS", ("PRAGMA journal_mode = DELETE",))
    with pytest.raises(JournalFailed, match="'delete'"):
        again(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not a database at all, just text, for long enough\n" * 100])
def test_what_is_no_journal_is_never_made_into_one(tmp_path: Path, content: bytes) -> None:
    create_key(tmp_path / "k")
    (tmp_path / "j.db").write_bytes(content)
    with pytest.raises((JournalCorrupt, JournalUnreadable)):
        again(tmp_path)
    assert (tmp_path / "j.db").read_bytes() == content
    assert names(tmp_path) == ["j.db", "j.db-lock", "k"]


def test_another_database_is_told_apart(tmp_path: Path) -> None:
    create_key(tmp_path / "k")
    with closing(sqlite3.connect(tmp_path / "j.db")) as db:
        db.execute("CREATE TABLE other (x)")
    before = (tmp_path / "j.db").read_bytes()
    with pytest.raises(JournalUnreadable, match="no Cutcard journal"):
        again(tmp_path)
    with pytest.raises(JournalUnreadable, match="no Cutcard journal"):
        JournalReader(tmp_path / "j.db")
    assert (tmp_path / "j.db").read_bytes() == before


def test_the_fact_before_the_checkpoint_may_not_be_missing(journal: Journal, tmp_path: Path) -> None:
    journal.append([DRAWN, DRAWN, Fact("checkpoint", "service"), DRAWN])
    journal.close()
    with closing(sqlite3.connect(tmp_path / "j.db")) as db, db:
        db.execute("DELETE FROM fact WHERE seq = 3")
    with pytest.raises(JournalCorrupt) as caught:
        again(tmp_path)
    assert caught.value.seq == 3


def test_a_journal_of_a_newer_format_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("controller.factlog.FORMAT", 2)
        again(tmp_path).close()
    with pytest.raises(JournalUnreadable, match="newer"):
        again(tmp_path)


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(JournalUnreadable, match="create the directory"):
        Journal.open(tmp_path / "no" / "j.db", tmp_path / "k", clock=VirtualClock())
    assert names(tmp_path) == []


def test_a_damaged_page_is_reported_with_the_first_lost_fact(journal: Journal, tmp_path: Path) -> None:
    journal.append([Fact("filler", "service", {"text": "x" * 300, "n": n}) for n in range(200)])
    journal.close()
    size = (tmp_path / "j.db").stat().st_size
    with (tmp_path / "j.db").open("r+b") as file:
        file.seek(size // 2 // 4096 * 4096)
        file.write(b"\xff" * 4096)
    verdict = verify(tmp_path / "j.db")
    assert verdict.bad_seq is not None
    assert 2 < verdict.bad_seq < 200
    assert verdict.entries == verdict.bad_seq - 1
    with pytest.raises(JournalCorrupt) as caught:
        again(tmp_path)
    assert caught.value.seq == verdict.bad_seq


def test_a_full_disk_loses_the_append_and_nothing_else(journal: Journal, tmp_path: Path) -> None:
    journal.append([DRAWN])
    (pages,) = journal._db.execute("PRAGMA page_count").fetchone()
    journal._db.execute(f"PRAGMA max_page_count = {pages + 2}").fetchall()
    big = Fact("big", "service", {"text": "x" * 9000})
    with pytest.raises(JournalFailed, match="None of them counts"):
        journal.append([DRAWN, big, big])
    assert journal.last_seq == 2
    assert verify(tmp_path / "j.db").last_seq == 2
    assert journal.append([DRAWN])[0].seq == 3
    journal._db.execute("PRAGMA max_page_count = 1000000").fetchall()
    assert [entry.seq for entry in journal.append([big, big])] == [4, 5]
    journal.close()
    assert verify(tmp_path / "j.db", tmp_path / "k").last_seq == 5


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """The kernel refuses to let a file of this process grow over `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def wal_bytes(directory: Path) -> int:
    return (directory / "j.db-wal").stat().st_size


def test_a_write_error_in_the_middle_of_a_commit(journal: Journal, tmp_path: Path) -> None:
    journal.append([DRAWN])
    with files_end_at(wal_bytes(tmp_path) + 6000), pytest.raises(JournalFailed):
        journal.append([Fact("big", "service", {"text": "x" * 30_000}), DRAWN])
    assert (journal.last_seq, verify(tmp_path / "j.db").last_seq) == (2, 2)
    assert journal.append([DRAWN])[0].seq == 3
    journal.close()
    assert verify(tmp_path / "j.db", tmp_path / "k").last_seq == 3


def test_a_journal_that_moved_under_us_takes_nothing_more(journal: Journal, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "j.db")) as db, db:
        db.execute("INSERT INTO fact SELECT 2, boot, 0, 0, 'x', 'x', data, NULL, NULL, hash FROM fact")
    with pytest.raises(JournalFailed):
        journal.append([DRAWN])
    with pytest.raises(JournalFailed, match="Restart the daemon"):
        journal.append([DRAWN])
    journal.close()
    with pytest.raises(JournalCorrupt, match="fact 2"):
        again(tmp_path)


def test_an_interrupt_between_commit_and_adoption_needs_a_restart(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = journal._db

    class Interrupted:
        def execute(self, statement: str, *args: object) -> object:
            done = real.execute(statement, *args)
            if statement == module.COMMIT:
                raise KeyboardInterrupt
            return done

        executemany = real.executemany

    with monkeypatch.context() as patch:
        patch.setattr(journal, "_db", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            journal.append([DRAWN])
    with pytest.raises(JournalFailed, match="Restart the daemon"):
        journal.append([DRAWN])
    journal.close()
    reopened = again(tmp_path)
    assert reopened.last_seq == 2
    reopened.close()


def test_the_wal_stays_bounded_even_after_a_reader_pinned_it(journal: Journal, tmp_path: Path) -> None:
    limit = (module.WAL_PAGES + 40) * 4120
    filler = [Fact("filler", "service", {"text": "x" * 3500})] * 10

    def write(count: int) -> int:
        largest = 0
        for _ in range(count):
            journal.append(filler)
            largest = max(largest, wal_bytes(tmp_path))
        return largest

    assert write(150) <= limit
    with closing(sqlite3.connect(f"file:{tmp_path}/j.db?mode=ro", uri=True)) as reader:
        cursor = reader.execute("SELECT * FROM fact")
        cursor.fetchone()
        assert write(150) > limit
        cursor.close()
    write(5)
    assert wal_bytes(tmp_path) <= limit


def test_a_live_journal_is_read_in_step_with_its_writer(journal: Journal, tmp_path: Path) -> None:
    with JournalReader(tmp_path / "j.db", tmp_path / "k") as reader:
        assert reader.journal_id == journal.journal_id
        for seq in range(2, 12):
            written = journal.append([DRAWN])
            assert list(reader.entries(seq - 1)) == written
        many = journal.append([DRAWN] * 1200)
        assert list(reader.entries(11)) == many
        assert reader.verify().last_seq == 1211
        journal.close()
        assert reader.verify().last_seq == 1211
        reopened = again(tmp_path)
        reopened.append([DRAWN])
        assert [entry.seq for entry in reader.entries(1211)] == [1212]
        reopened.close()
    assert names(tmp_path) == ["j.db", "j.db-lock", "k"]


def test_a_reader_creates_no_file_and_changes_none(journal: Journal, tmp_path: Path) -> None:
    journal.append([DRAWN] * 3)
    cases = {"crashed": ("", "-wal", "-shm"), "without_shm": ("", "-wal"), "alone": ("",)}
    last = {"crashed": 4, "without_shm": 4, "alone": 1}
    for case, parts in cases.items():
        folder = tmp_path / case
        folder.mkdir()
        for part in parts:
            shutil.copy(tmp_path / f"j.db{part}", folder / f"j.db{part}")
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        verdict = verify(folder / "j.db", tmp_path / "k")
        assert (verdict.ok, verdict.last_seq) == (True, last[case])
        after = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert after.keys() == before.keys()
        assert all(after[name] == before[name] for name in after if not name.endswith("-shm"))


def test_a_crashed_journal_is_continued(journal: Journal, tmp_path: Path) -> None:
    journal.append([DRAWN] * 3)
    folder = tmp_path / "crashed"
    folder.mkdir()
    for part in ("j.db", "j.db-wal", "j.db-shm", "k"):
        shutil.copy(tmp_path / part, folder / part)
    reopened = again(folder)
    assert reopened.append([DRAWN])[0].seq == 5
    reopened.close()
    assert verify(folder / "j.db", folder / "k").last_seq == 5


def test_a_wal_cut_anywhere_leaves_a_whole_beginning(journal: Journal, tmp_path: Path) -> None:
    """Every byte of the first frames, then every 251st: never an error, never half an append (I-67)."""
    ends = [1]
    for size in (1, 2, 1, 3, 1):
        ends.append(journal.append([DRAWN] * size)[-1].seq)
    base, wal = (tmp_path / "j.db").read_bytes(), (tmp_path / "j.db-wal").read_bytes()
    cut_here = tmp_path / "cut"
    cut_here.mkdir()
    (cut_here / "j.db").write_bytes(base)
    shutil.copy(tmp_path / "k", cut_here / "k")
    edge = 32 + 24 + 4096
    offsets = sorted({*range(60), *range(edge - 5, edge + 30), *range(0, len(wal), 251), len(wal)})
    found = []
    for offset in offsets:
        (cut_here / "j.db-wal").write_bytes(wal[:offset])
        verdict = verify(cut_here / "j.db")
        assert verdict.ok
        found.append(verdict.last_seq)
    assert found == sorted(found)
    assert sorted(set(found)) == ends
    (cut_here / "j.db-wal").write_bytes(wal[: len(wal) // 2])
    reopened = again(cut_here)
    assert reopened.last_seq in ends
    assert reopened.append([DRAWN])[0].seq == reopened.last_seq
    reopened.close()
    assert verify(cut_here / "j.db", cut_here / "k").ok


def test_a_daemon_that_starts_while_a_resting_journal_is_read(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read without locks, so a change underneath must be noticed and the chunk read again."""
    journal.append([DRAWN])
    journal.close()
    real, times = module._rows, []
    with JournalReader(tmp_path / "j.db") as reader:

        def interfering(db: sqlite3.Connection, after: int, limit: int) -> list[module.Row]:
            rows = real(db, after, limit)
            times.append(after)
            if len(times) == 1:
                with monkeypatch.context() as patch:
                    patch.setattr(module, "_rows", real)
                    other = again(tmp_path)
                    other.append([DRAWN])
                    other.close()
            return rows

        monkeypatch.setattr(module, "_rows", interfering)
        assert [entry.seq for entry in reader.entries(1)] == [2, 3]
    assert times == [1, 1, 3]


def test_a_daemon_that_starts_while_a_private_copy_is_made(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append([DRAWN])
    folder = tmp_path / "without_shm"
    folder.mkdir()
    for part in ("j.db", "j.db-wal", "k"):
        shutil.copy(tmp_path / part, folder / part)
    real, started = shutil.copyfile, []

    def interfering(source: Path, target: Path) -> None:
        real(source, target)
        if not started:
            started.append(again(folder))
            started[0].append([DRAWN])

    monkeypatch.setattr(module.shutil, "copyfile", interfering)
    with JournalReader(folder / "j.db") as reader:
        assert [entry.seq for entry in reader.entries()] == [1, 2, 3]
        started[0].append([DRAWN])
        assert reader.verify().last_seq == 4
    started[0].close()
