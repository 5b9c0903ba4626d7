"""The power goes at any moment: every acknowledged fact is there, none is half there (I-63).

The real `Journal` runs on apsw over a file system that remembers what was synced and what was only written.
At every sync the power is cut in thought: the disk then holds what was synced, and none, all or some of the
later writes, the last one torn.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from controller import journal as module
from controller.journal import Journal, JournalReader
from controller.seal import load_key
from controller.table.inputs import Fact
from firmware_bridge.clock import VirtualClock


@dataclass
class File:
    """`synced` survives; of `later`, (offset, bytes) or a new length, anything may."""

    synced: bytes = b""
    later: list[tuple[int, bytes] | int] = field(default_factory=list)

    def after(self, later: list[tuple[int, bytes] | int]) -> bytes:
        content = bytearray(self.synced)
        for change in later:
            if isinstance(change, int):
                del content[change:]
                continue
            offset, data = change
            content.extend(bytes(max(0, offset - len(content))))
            content[offset : offset + len(data)] = data
        return bytes(content)


@dataclass
class Cut:
    """The disk at one moment, and the last fact acknowledged by then."""

    files: dict[str, File]
    acknowledged: int

    def images(self, random: Random) -> Iterator[dict[str, bytes]]:
        yield {name: file.after([]) for name, file in self.files.items()}
        yield {name: file.after(file.later) for name, file in self.files.items()}
        for _ in range(2):
            yield {name: file.after(torn(file.later, random)) for name, file in self.files.items()}


def torn(later: list[tuple[int, bytes] | int], random: Random) -> list[tuple[int, bytes] | int]:
    kept = [change for change in later if random.random() < 0.6]
    if kept and not isinstance(kept[-1], int):
        offset, data = kept[-1]
        kept[-1] = (offset, data[: random.randrange(len(data) + 1) // 512 * 512])
    return kept


class PowerCut(apsw.VFS):
    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.cuts: list[Cut] = []
        self.syncs: list[str] = []
        self.acknowledged = 1
        super().__init__("powercut", "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return PowerCutFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.files.pop(filename, None)
        super().xDelete(filename, syncdir)

    def cut(self) -> None:
        frozen = {name: File(file.synced, list(file.later)) for name, file in self.files.items()}
        self.cuts.append(Cut(frozen, self.acknowledged))


class PowerCutFile(apsw.VFSFile):
    def __init__(self, disk: PowerCut, name: Any, flags: list[int]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self.disk = disk
        self.name = path
        content = Path(path).read_bytes() if Path(path).exists() else b""
        self.file = disk.files.setdefault(path, File(content))
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self.file.later.append((offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self.file.later.append(newsize)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self.disk.cut()
        super().xSync(flags)
        self.file.synced, self.file.later = self.file.after(self.file.later), []
        self.disk.syncs.append(self.name)
        self.disk.cut()


class OverApsw:
    """As much of sqlite3.Connection as the journal uses."""

    def __init__(self, database: str, **_: Any) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
        self._db = apsw.Connection(database, flags=flags, vfs="powercut")
        self.execute, self.executemany, self.close = self._db.execute, self._db.executemany, self._db.close


@pytest.fixture
def disk() -> Iterator[PowerCut]:
    vfs = PowerCut()
    yield vfs
    vfs.unregister()


def facts(batch: int, size: int) -> list[Fact]:
    return [
        Fact("card_drawn", "shoe", {"batch": batch, "n": n, "text": "x" * 500}, {"card": "8S"})
        for n in range(size)
    ]


def run(folder: Path, disk: PowerCut, monkeypatch: pytest.MonkeyPatch, batches: int) -> list[int]:
    """Write batches of one to four facts through the power-cut disk; returns where commits end."""
    Journal.open(folder / "j.db", folder / "k", clock=VirtualClock()).close()
    ends = [1]
    with monkeypatch.context() as patch:
        lock = module._take_lock(folder / "other")
        patch.setattr(module, "_take_lock", lambda _path: lock)
        patch.setattr(module.sqlite3, "connect", OverApsw)
        journal = Journal.open(folder / "j.db", folder / "k", clock=VirtualClock())
        journal._db.execute("PRAGMA wal_autocheckpoint = 10").fetchall()
        for batch, size in zip(range(batches), itertools.cycle((1, 3, 1, 4)), strict=False):
            ends.append(journal.append(facts(batch, size))[-1].seq)
            disk.acknowledged = journal.last_seq
            disk.cut()
        journal.close()
        disk.cut()
    return ends


def survivors(folder: Path, image: dict[str, bytes], key: Path) -> list[Fact]:
    folder.mkdir()
    for name, content in image.items():
        (folder / Path(name).name).write_bytes(content)
    with JournalReader(folder / "j.db", key) as reader:
        assert reader.verify().ok
        return [entry.fact for entry in reader.entries(1)]


def test_every_acknowledged_fact_survives_whole(
    tmp_path: Path, disk: PowerCut, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = run(tmp_path, disk, monkeypatch, batches=24)
    written = [
        fact
        for batch, size in zip(range(24), itertools.cycle((1, 3, 1, 4)), strict=False)
        for fact in facts(batch, size)
    ]
    assert sum(name.endswith("j.db") for name in disk.syncs) >= 3, "no checkpoint was cut"
    random = Random(7)
    known: dict[tuple[bytes, ...], list[Fact]] = {}
    for cut in disk.cuts:
        for image in cut.images(random):
            content = tuple(image[name] for name in sorted(image))
            if content not in known:
                known[content] = survivors(tmp_path / f"cut{len(known)}", image, tmp_path / "k")
            found = known[content]
            assert found == written[: len(found)]
            assert len(found) + 1 in ends
            assert len(found) + 1 >= cut.acknowledged
    assert len(known) > 60


def test_a_commit_is_one_flush_whatever_its_size(
    tmp_path: Path, disk: PowerCut, monkeypatch: pytest.MonkeyPatch
) -> None:
    Journal.open(tmp_path / "j.db", tmp_path / "k", clock=VirtualClock()).close()
    with monkeypatch.context() as patch:
        lock = module._take_lock(tmp_path / "other")
        patch.setattr(module, "_take_lock", lambda _path: lock)
        patch.setattr(module.sqlite3, "connect", OverApsw)
        journal = Journal.open(tmp_path / "j.db", tmp_path / "k", clock=VirtualClock())
        journal.append(facts(0, 1))
        for size in (1, 10, 50):
            before = len(disk.syncs)
            journal.append(facts(1, size))
            assert len(disk.syncs) - before == 1
        journal.close()


def test_this_disk_shows_what_less_than_full_would_lose(
    tmp_path: Path, disk: PowerCut, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check can fail: with synchronous=NORMAL acknowledged facts are gone."""
    monkeypatch.setattr(module, "PRAGMAS", (*module.PRAGMAS, "PRAGMA synchronous = NORMAL"))
    monkeypatch.setattr(module, "READ_BACK", ())
    run(tmp_path, disk, monkeypatch, batches=6)
    lost = [
        cut.acknowledged - 1 - len(survivors(tmp_path / f"cut{number}", image, tmp_path / "k"))
        for number, cut in enumerate(disk.cuts)
        for image in [next(cut.images(Random(0)))]
    ]
    assert max(lost) > 0


def test_a_restart_after_the_cut_goes_on(
    tmp_path: Path, disk: PowerCut, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, disk, monkeypatch, batches=4)
    key = tmp_path / "k"
    assert load_key(key)
    for number, cut in enumerate(disk.cuts):
        folder = tmp_path / f"cut{number}"
        before = len(survivors(folder, next(cut.images(Random(0))), key))
        with closing(Journal.open(folder / "j.db", key, clock=VirtualClock())) as journal:
            assert journal.append(facts(99, 2))[-1].seq == before + 3
        with JournalReader(folder / "j.db", key) as reader:
            assert reader.verify().last_seq == before + 3
