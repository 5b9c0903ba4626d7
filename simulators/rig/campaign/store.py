"""The journal of a simulated table on a disk, and what a dying process or a power cut leaves of it.

A dead process leaves the files as the system has them. A power cut leaves what was synced, and of what was
written to the WAL later any part: it may end anywhere behind the last acknowledged commit, in zeros or junk.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from struct import Struct, unpack_from

from controller.journal import Journal
from controller.record import Entry, JournalFailed
from controller.table.inputs import Fact
from firmware_bridge.clock import Clock

WAL_HEADER = 32
FRAME_HEADER = 24
_HEADER = Struct(">4I8s8s")
_FRAME = Struct(">II8s8s")
BACKFILLED_AT = 96
"""Where the -shm file says how many frames are in the database already, in the machine's byte order."""
MOST_JUNK = 3 * 4096


class WatchedJournal(Journal):
    """Tells its store of each commit; the store may let it fail, or let the daemon die before or after it."""

    store: DiskStore

    def append(self, facts: Sequence[Fact]) -> list[Entry]:
        self.store.before()
        entries = super().append(facts)
        self.store.committed(entries)
        return entries


class DiskStore:
    """A `Store` in `directory`, which ought to be in memory: every start of the daemon finds copied files.

    `before` and `after` are called at each commit: what they raise comes out of `append`. `acknowledged` is
    the last fact that the daemon knows to be safe, `in_doubt` what was written when it died; `told` collects
    every acknowledged entry until somebody takes them.
    """

    def __init__(self, directory: Path, random: Random) -> None:
        self.directory = directory
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        self.commits = 0
        self.acknowledged: Entry | None = None
        self.in_doubt: list[Entry] = []
        self.told: list[Entry] = []
        self._random = random
        self._lives = 1
        self._journal: WatchedJournal | None = None
        self._home = directory / "life-1"
        self._home.mkdir()

    @property
    def path(self) -> Path:
        return self._home / "journal.db"

    @property
    def key(self) -> Path:
        return self.directory / "seal.key"

    def open(self, clock: Clock, random: Random) -> WatchedJournal:
        """As `Journal.open`, and raises what it does."""
        journal = WatchedJournal.open(self.path, self.key, clock=clock, boot_id=random.randbytes(16))
        assert isinstance(journal, WatchedJournal)
        journal.store = self
        self._journal, self.in_doubt = journal, []
        return journal

    def committed(self, entries: list[Entry]) -> None:
        """The facts are durable; they are acknowledged when this returns."""
        self.commits += 1
        self.in_doubt = entries
        self.after()
        self.in_doubt = []
        if entries:
            self.acknowledged = entries[-1]
            self.told += entries

    def take(self) -> list[Entry]:
        """The entries that were acknowledged since the last call."""
        told, self.told = self.told, []
        return told

    # What happens to the files

    def kill(self) -> None:
        """The process is gone; the system has everything that it wrote."""
        self._move(_read(self._wal))

    def power_cut(self) -> None:
        """The machine is off: of the WAL's unsynced end any part is left."""
        wal, shm = _read(self._wal), _read(self._shm)
        self._move(self._torn(wal, least_left(wal, shm, in_doubt=bool(self.in_doubt))))

    def close(self) -> None:
        """The daemon is at its end; the files stay until `directory` goes."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    @property
    def _wal(self) -> Path:
        return self.path.with_name("journal.db-wal")

    @property
    def _shm(self) -> Path:
        return self.path.with_name("journal.db-shm")

    def _torn(self, wal: bytes, least: int) -> bytes:
        """The WAL up to some byte from `least` on; behind it nothing, zeros or junk."""
        random = self._random
        cut = random.choice((least, len(wal), random.randint(least, len(wal))))
        behind = random.choice((0, 0, random.randint(1, MOST_JUNK)))
        return wal[:cut] + (bytes(behind) if random.random() < 0.5 else random.randbytes(behind))

    def _move(self, wal: bytes) -> None:
        """Copy the files to where the next daemon finds them; the -shm is left behind or not."""
        old, self._lives = self._home, self._lives + 1
        self._home = self.directory / f"life-{self._lives}"
        self._home.mkdir()
        if (old / self.path.name).exists():
            shutil.copyfile(old / self.path.name, self.path)
            self._wal.write_bytes(wal)
        if (old / self._shm.name).exists() and self._random.random() < 0.5:
            shutil.copyfile(old / self._shm.name, self._shm)
        self.close()
        shutil.rmtree(old)


def disk_full() -> None:
    """For `DiskStore.before`: the commit fails, and nothing of it is written."""
    raise JournalFailed("no space left on the simulated disk. None of the facts counts. Free disk space.")


def commits(wal: bytes) -> list[int]:
    """Where each commit of the WAL ends, in bytes; only frames since its restart count, by their salt."""
    if len(wal) < WAL_HEADER:
        return []
    _, _, page, _, salt, _ = _HEADER.unpack_from(wal)
    ends = []
    for at in range(WAL_HEADER, len(wal) - FRAME_HEADER - page + 1, FRAME_HEADER + page):
        _, pages, frame_salt, _ = _FRAME.unpack_from(wal, at)
        if frame_salt != salt:
            break
        if pages:
            ends.append(at + FRAME_HEADER + page)
    return ends


def least_left(wal: bytes, shm: bytes, *, in_doubt: bool) -> int:
    """Bytes of the WAL that were surely synced: the last acknowledged commit, and what was moved already."""
    ends = commits(wal)
    if in_doubt and ends:
        ends.pop()
    if len(wal) < WAL_HEADER or len(shm) < BACKFILLED_AT + 4:
        return max(ends, default=0)
    _, _, page, *_ = _HEADER.unpack_from(wal)
    (moved,) = unpack_from("=I", shm, BACKFILLED_AT)
    return max(0, *ends, WAL_HEADER + moved * (FRAME_HEADER + page) if moved else 0)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
