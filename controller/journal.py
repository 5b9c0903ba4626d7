"""The journal: facts in SQLite (WAL, synchronous=FULL), one commit a batch, hash-chained, cards sealed.

`Journal` is the daemon's one writer, used by the thread that opened it. `JournalReader` and `verify` read
any journal, live or copied, in short transactions and leave its files alone. An empty `PATH-lock` beside the
journal carries the single-writer lock; the kernel frees it on a crash.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from controller.factlog import (
    BOOT_ID_USED,
    CHUNK,
    ChainedLog,
    MemoryJournal,
    Verdict,
    entry_of,
    judge,
    new_boot_id,
    read_header,
)
from controller.record import (
    CHECKPOINT,
    FORMAT,
    GENESIS,
    Chain,
    Entry,
    JournalBusy,
    JournalCorrupt,
    JournalError,
    JournalFailed,
    JournalUnreadable,
    Row,
)
from controller.seal import KeyMissing, create_key, load_key, sync_directory
from firmware_bridge.clock import Clock

APPLICATION_ID = 0x43555443
WAL_PAGES = 1000
"""Pages after which a commit also moves the WAL into the journal file; the WAL stays near 4 MiB (I-64)."""
BUSY_MS = 2000

CREATE = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
    """CREATE TABLE fact (
    seq INTEGER PRIMARY KEY, boot BLOB NOT NULL, mono_ns INTEGER NOT NULL, wall_ms INTEGER NOT NULL,
    kind TEXT NOT NULL, source TEXT NOT NULL, data BLOB NOT NULL, hidden TEXT, sealed BLOB, hash BLOB NOT NULL
)""",
)
PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    f"PRAGMA busy_timeout = {BUSY_MS}",
    f"PRAGMA wal_autocheckpoint = {WAL_PAGES}",
    f"PRAGMA journal_size_limit = {WAL_PAGES * 4096}",
)
READ_BACK = (("PRAGMA journal_mode", "wal"), ("PRAGMA synchronous", 2))
WHOSE = "PRAGMA application_id"
BEGIN = "BEGIN IMMEDIATE"
INSERT = "INSERT INTO fact VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
LAST = "SELECT seq, hash FROM fact ORDER BY seq DESC LIMIT 1"
LAST_CHECKPOINT = f"SELECT seq FROM fact WHERE kind = '{CHECKPOINT}' ORDER BY seq DESC LIMIT 1"  # noqa: S608 - constant
AFTER = "SELECT * FROM fact WHERE seq > ? ORDER BY seq LIMIT ?"
TRUNCATE = "PRAGMA wal_checkpoint(TRUNCATE)"
LOCK = ("PRAGMA journal_mode = OFF", "BEGIN EXCLUSIVE")


class Journal(ChainedLog):
    """The daemon's journal file. Open it with `Journal.open`, in the thread that uses it."""

    def __init__(
        self, path: Path, connections: ExitStack, clock: Clock, boot_id: bytes, key: bytes | None
    ) -> None:
        """Use `open`. `connections` holds the lock and is closed with the journal."""
        self._path = path
        self._connections = connections
        self._db = _connect(path)
        connections.callback(self._db.close)
        self._broken = ""
        journal_id, sealer = read_header(_rows(self._db, 0, 1), key, path)
        super().__init__(clock, boot_id, journal_id, sealer)

    @classmethod
    def open(
        cls, path: Path, key_path: Path | None, *, clock: Clock, boot_id: bytes | None = None
    ) -> Journal:
        """Open the journal, or create it with its key, and check the chain from the last checkpoint on.

        Without a key path an existing journal opens too: sealed values stay sealed, and a fact that has any
        is refused with KeyMissing. `boot_id` must be new at every start (default: random). Raises
        JournalBusy, JournalUnreadable, JournalFailed, JournalCorrupt, KeyMissing, KeyUnusable, KeyWrong.
        """
        path = path.resolve()
        boot = boot_id or new_boot_id()
        with ExitStack() as connections:
            connections.callback(_take_lock(path).close)
            key: bytes | None
            fresh = not path.exists()
            if fresh:
                if key_path is None:
                    raise KeyMissing(f"a new journal at {path} needs a key file: set [journal] key")
                key = create_key(key_path)
                _create(path, key, clock, boot)
            else:
                key = None if key_path is None else load_key(key_path)
            self = cls(path, connections, clock, boot, key)
            if boot in self._check() and not fresh:
                raise ValueError(BOOT_ID_USED)
            self._connections = connections.pop_all()
            return self
        raise AssertionError("unreachable: nothing above swallows an error")

    def _check(self) -> set[bytes]:
        """Follow the chain from the last checkpoint to the end; returns the boot ids met."""
        try:
            first = max(self._last_checkpoint() - 1, 1)
        except JournalError:
            first = 1  # the way there is damaged: the chain tells where
        before = self._fetch(first - 1, 1)[0]
        if before.seq != first:
            raise JournalCorrupt(first, f"the fact is missing; fact {before.seq} stands in its place")
        chain, boots = Chain(before.seq, before.hash), {before.boot}
        while rows := self._fetch(chain.seq, CHUNK):
            for row in rows:
                chain.follow(row)
                boots.add(row.boot)
        self._seq, self._hash = chain.seq, chain.hash
        return boots

    def close(self) -> None:
        """Move the WAL into the file and free the lock. Safe to call twice."""
        with suppress(sqlite3.Error):  # facts are safe in the WAL as well; ProgrammingError: closed before
            self._db.execute(TRUNCATE).fetchall()
        self._connections.close()

    def _store(self, rows: list[Row]) -> None:
        if self._broken:
            raise JournalFailed(self._broken)
        try:
            self._db.execute(BEGIN)
            self._db.executemany(INSERT, rows)
            self._db.execute(COMMIT)
        except BaseException as error:
            self._after_failure()
            if isinstance(error, sqlite3.Error):
                raise JournalFailed(
                    f"{len(rows)} facts could not be written to {self._path}: {error}. None of them counts. "
                    "Free disk space or mend the disk."
                ) from error
            raise

    def _after_failure(self) -> None:
        """Roll back; go on later only when the file's last fact is still the one we know."""
        try:
            with suppress(sqlite3.OperationalError):  # no transaction was open
                self._db.execute(ROLLBACK)
            same = self._db.execute(LAST).fetchone() == (self._seq, self._hash)
        except sqlite3.Error:
            same = False
        if not same:
            self._broken = (
                f"the journal {self._path} does not end where the last commit left it. Restart the daemon: "
                "it reads the journal again and goes on from there."
            )

    def _fetch(self, after: int, limit: int) -> list[Row]:
        return _rows(self._db, after, limit)

    def _last_checkpoint(self) -> int:
        try:
            row: tuple[int] | None = self._db.execute(LAST_CHECKPOINT).fetchone()
        except sqlite3.Error as error:
            raise _translated(error, self._seq + 1) from error
        return row[0] if row else 0


class JournalReader:
    """Reads a journal that a daemon may be writing. Opens the file anew for each short transaction.

    Beside a live journal only SQLite's own -shm is touched. A journal at rest is read without any lock or
    file; one with a -wal but no -shm (a copy) is read from a private copy. Without a key path sealed values
    stay sealed. Raises JournalUnreadable, JournalCorrupt, KeyMissing, KeyUnusable, KeyWrong.
    """

    def __init__(self, path: Path, key_path: Path | None = None) -> None:
        self.path = path.resolve()
        self._wal = self.path.with_name(self.path.name + "-wal")
        self._shm = self.path.with_name(self.path.name + "-shm")
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        key = None if key_path is None else load_key(key_path)
        if not self.path.is_file():
            raise JournalUnreadable(f"there is no journal at {path}; name the file of [journal] path")
        try:
            self.journal_id, self._sealer = read_header(self._fetch(0, 1), key, self.path)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> JournalReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def entries(self, since: int = 0) -> Iterator[Entry]:
        """The facts after sequence `since`, oldest first, as far as they are committed."""
        while rows := self._fetch(since, CHUNK):
            for row in rows:
                yield entry_of(row, self._sealer)
            since = rows[-1].seq

    def verify(self, watch: Callable[[int], None] | None = None) -> Verdict:
        """Check the chain, and every seal when there is a key; `watch` gets the last good fact of a chunk."""
        return judge(self._fetch, self._sealer, watch)

    def _fetch(self, after: int, limit: int) -> list[Row]:
        for _ in range(10):  # only a daemon that starts or stops just now takes a second turn
            before = self._signature()
            if self._copy is None and _size(self._wal) > 0 and not self._shm.exists():
                self._copy = self._private_copy()
                if self._signature() != before:
                    self.close()
                    continue
            at, mode = self.path, "immutable=1"
            if self._copy is not None:
                at, mode = Path(self._copy.name) / self.path.name, "mode=rw"
            elif self._shm.exists() and self._wal.exists():
                mode = "mode=ro"
            try:
                with closing(_reader(at, mode)) as db:
                    rows = _rows(db, after, limit)
            except JournalError:
                if self._signature() == before:
                    raise
                continue
            if mode != "immutable=1" or self._signature() == before:
                return rows
        raise JournalUnreadable(f"{self.path} keeps changing hands; try again when the daemon has settled")

    def _signature(self) -> tuple[object, ...]:
        """Differs when somebody began or ended writing without us sharing a lock."""
        try:
            state = self.path.stat()
        except OSError as error:
            raise JournalUnreadable(f"the journal {self.path} is gone: {error.strerror}") from error
        return (state.st_ino, state.st_size, state.st_mtime_ns, self._shm.exists(), self._wal.exists())

    def _private_copy(self) -> tempfile.TemporaryDirectory[str]:
        directory = tempfile.TemporaryDirectory(prefix="cutcard-journal-")
        try:
            for file in (self.path, self._wal):
                shutil.copyfile(file, Path(directory.name) / file.name)
        except BaseException as error:
            directory.cleanup()
            if isinstance(error, OSError):
                raise JournalUnreadable(f"{self.path} cannot be copied for reading: {error}") from error
            raise
        return directory


def verify(path: Path, key_path: Path | None = None, watch: Callable[[int], None] | None = None) -> Verdict:
    """The verdict on a journal file, live or copied. Damage is a verdict, not an error."""
    try:
        with JournalReader(path, key_path) as reader:
            return reader.verify(watch)
    except JournalCorrupt as error:
        return Verdict(error.seq - 1, error.seq - 1, None, GENESIS, error.seq, error.why)


def _rows(db: sqlite3.Connection, after: int, limit: int) -> list[Row]:
    """Up to `limit` rows, fewer when a damaged one follows; the next call then raises."""
    rows: list[Row] = []
    try:
        for columns in db.execute(AFTER, (after, limit)):
            rows.append(Row._make(columns))  # noqa: PERF401 - what came before an error is kept
    except sqlite3.DatabaseError as error:
        if not rows:
            raise _translated(error, after + 1) from error
    return rows


def _translated(error: sqlite3.Error, seq: int) -> JournalError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return JournalCorrupt(max(seq, 1), f"the file itself is damaged ({error})")
    if code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}:
        return JournalUnreadable(
            f"the journal may not be opened ({error}): reading needs read permission for the file and, while "
            "a daemon runs, for its -wal and -shm; or read a copy of all three"
        )
    if "no such table" in str(error):
        return JournalUnreadable("this is no Cutcard journal: it has no table of facts")
    return JournalUnreadable(f"the journal cannot be read: {error}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")


def _reader(path: Path, mode: str) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(
            f"{path.as_uri()}?{mode}", uri=True, isolation_level=None, timeout=BUSY_MS / 1000
        )
    except sqlite3.Error as error:
        raise _translated(error, 1) from error
    db.text_factory = _text
    return db


def _connect(path: Path, *, fresh: bool = False) -> sqlite3.Connection:
    """The writer's connection, with every pragma set and the durable ones read back (I-63)."""
    db = _reader(path, "mode=rw")
    try:
        if not fresh and db.execute(WHOSE).fetchone()[0] != APPLICATION_ID:
            raise JournalUnreadable(f"{path} is no Cutcard journal: name another file with [journal] path")
        for statement in PRAGMAS:
            db.execute(statement).fetchall()
        for statement, wanted in READ_BACK:
            found = db.execute(statement).fetchone()[0]
            if found != wanted:
                raise JournalFailed(
                    f"SQLite answers {found!r} to {statement}, not {wanted!r}: facts on {path} would not "
                    "survive a power cut. Put the journal on a local disk (no network file system)."
                )
    except sqlite3.Error as error:
        db.close()
        raise _translated(error, 1) from error
    except BaseException:
        db.close()
        raise
    return db


def _take_lock(path: Path) -> sqlite3.Connection:
    """An exclusive SQLite lock on an empty file beside the journal, held as long as the connection."""
    lock_path = path.with_name(path.name + "-lock")
    try:
        lock = sqlite3.connect(lock_path, isolation_level=None, timeout=0)
    except sqlite3.Error as error:
        raise JournalUnreadable(
            f"nothing can be written in {path.parent} ({error}): create the directory or mend its rights"
        ) from error
    try:
        for statement in LOCK:
            lock.execute(statement).fetchall()
    except sqlite3.Error as error:
        lock.close()
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
            raise JournalBusy(
                f"another daemon holds the journal {path}. One table has one daemon: stop the other one, or "
                "give this table its own [journal] path."
            ) from None
        raise JournalUnreadable(f"the lock {lock_path} cannot be taken: {error}") from error
    return lock


def _create(path: Path, key: bytes, clock: Clock, boot: bytes) -> None:
    """A journal with its header, whole on disk before its name appears; the caller holds the lock."""
    draft = path.with_name(path.name + ".new")
    for leftover in ("", "-wal", "-shm"):
        draft.with_name(draft.name + leftover).unlink(missing_ok=True)
    seed = MemoryJournal(clock, boot_id=boot, key=key)
    try:
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640))
        with closing(_connect(draft, fresh=True)) as db:
            db.execute(BEGIN)
            for statement in CREATE:
                db.execute(statement)
            db.executemany(INSERT, seed.rows)
            db.execute(COMMIT)
            db.execute(TRUNCATE).fetchall()
        draft.rename(path)
        sync_directory(path.parent)
    except (OSError, sqlite3.Error) as error:
        raise JournalFailed(f"the journal {path} cannot be created: {error}") from error
