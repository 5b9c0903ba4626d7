"""A log of facts without its store: numbering, chaining, sealing, checking; and the log in memory.

`MemoryJournal` serves deterministic runs; `controller.journal.Journal` is the same on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import cbor2

from controller.record import (
    CHECKPOINT,
    EPOCH,
    FORMAT,
    GENESIS,
    HEADER,
    ID_BYTES,
    Chain,
    Entry,
    JournalCorrupt,
    JournalUnreadable,
    Row,
    chain_hash,
    encode,
    plain,
)
from controller.seal import KEY_BYTES, KeyMissing, KeyWrong, SealBroken, Sealer, fresh_bytes
from controller.table.inputs import SERVICE, Fact
from firmware_bridge.clock import Clock

CHUNK = 500
"""Facts read in one short transaction."""
BOOT_ID_USED = "this boot id is in the journal already: every start of the daemon needs a new one"


class FactLog(Protocol):
    """What the service and the deterministic world need of a journal."""

    @property
    def journal_id(self) -> bytes: ...

    @property
    def boot_id(self) -> bytes: ...

    @property
    def last_seq(self) -> int: ...

    def append(self, facts: Sequence[Fact]) -> list[Entry]:
        """Commit all facts or none, with one flush; the entries are exactly what a replay will give.

        Raises JournalFailed, KeyMissing (opened without a key), or TypeError for a fact without one encoding.
        """

    def entries(self, since: int = 0) -> Iterator[Entry]:
        """The facts after sequence `since`, oldest first."""

    def replay(self) -> Iterator[Entry]:
        """From the last checkpoint fact on (inclusive), else from the first fact after the header."""

    def close(self) -> None: ...


def new_boot_id() -> bytes:
    """16 random bytes for one start of the daemon."""
    return fresh_bytes(ID_BYTES)


class ChainedLog:
    """What both journals share: numbering, chaining, sealing. Subclasses store and fetch rows."""

    def __init__(self, clock: Clock, boot_id: bytes, journal_id: bytes, sealer: Sealer | None) -> None:
        if len(boot_id) != ID_BYTES:
            raise ValueError(f"a boot id has {ID_BYTES} bytes")
        self._clock = clock
        self._boot = boot_id
        self._id = journal_id
        self._sealer = sealer
        self._seq = 0
        self._hash = GENESIS
        self._attempt = 0

    @property
    def journal_id(self) -> bytes:
        return self._id

    @property
    def boot_id(self) -> bytes:
        return self._boot

    @property
    def last_seq(self) -> int:
        return self._seq

    def append(self, facts: Sequence[Fact]) -> list[Entry]:
        if not facts:
            return []
        rows, entries = self._prepare(facts)
        try:
            self._store(rows)
        except BaseException:
            self._attempt += 1  # these sequences may come again with other facts: never the same nonce
            raise
        self._seq, self._hash = rows[-1].seq, rows[-1].hash
        return entries

    def entries(self, since: int = 0) -> Iterator[Entry]:
        while rows := self._fetch(since, CHUNK):
            for row in rows:
                yield entry_of(row, self._sealer)
            since = rows[-1].seq

    def replay(self) -> Iterator[Entry]:
        return self.entries(max(self._last_checkpoint() - 1, 1))

    def _prepare(self, facts: Sequence[Fact]) -> tuple[list[Row], list[Entry]]:
        mono_ns = round(self._clock.now() * 1e9)
        wall_ms = (self._clock.wall() - EPOCH) // timedelta(milliseconds=1)
        seq, head = self._seq, self._hash
        rows, entries = [], []
        for fact in facts:
            seq += 1
            data, secret = plain(fact.data), plain(fact.sealed)
            hidden, sealed = None, None
            if secret:
                if self._sealer is None:
                    raise KeyMissing(
                        f"a {fact.kind} fact has unseen cards, and the journal was opened without its key"
                    )
                hidden = _join_names(secret)
                sealed = self._sealer.seal(
                    secret, seq=seq, attempt=self._attempt, kind=fact.kind, boot=self._boot
                )
            body = (seq, self._boot, mono_ns, wall_ms, fact.kind, fact.source, encode(data), hidden, sealed)
            head = chain_hash(head, body)
            rows.append(Row(*body, head))
            entries.append(
                Entry(
                    seq=seq,
                    fact=Fact(fact.kind, fact.source, data, secret),
                    mono_ns=mono_ns,
                    wall_ms=wall_ms,
                    boot=self._boot,
                    hash=head,
                    hidden=tuple(sorted(secret)),
                )
            )
        return rows, entries

    def _store(self, rows: list[Row]) -> None:
        raise NotImplementedError

    def _fetch(self, after: int, limit: int) -> list[Row]:
        raise NotImplementedError

    def _last_checkpoint(self) -> int:
        raise NotImplementedError

    def _header(self) -> Fact:
        """The first fact. Its sealed value proves at every opening that the key is this journal's."""
        return Fact(HEADER, SERVICE, {"journal": self._id, "format": FORMAT}, {"check": HEADER})


class MemoryJournal(ChainedLog):
    """The journal of deterministic runs: same numbers, hashes and seals, in the list `rows`."""

    def __init__(
        self,
        clock: Clock,
        *,
        boot_id: bytes | None = None,
        journal_id: bytes | None = None,
        key: bytes | None = None,
        past: MemoryJournal | None = None,
    ) -> None:
        """`past` is the log as a restarted daemon finds it; the boot id must be new."""
        boot = boot_id or new_boot_id()
        if past is None:
            own = journal_id or fresh_bytes(ID_BYTES)
            super().__init__(clock, boot, own, Sealer(key or fresh_bytes(KEY_BYTES), own))
            self.rows: list[Row] = []
            self.append([self._header()])
        else:
            if boot == past.boot_id:
                raise ValueError(BOOT_ID_USED)
            super().__init__(clock, boot, past.journal_id, past._sealer)  # noqa: SLF001 - its own class
            self.rows = past.rows
            self._seq, self._hash = self.rows[-1].seq, self.rows[-1].hash

    def verify(self) -> Verdict:
        return judge(self._fetch, self._sealer)

    def close(self) -> None:
        """Nothing to close."""

    def _store(self, rows: list[Row]) -> None:
        self.rows.extend(rows)

    def _fetch(self, after: int, limit: int) -> list[Row]:
        first = max(after, 0)
        return self.rows[first : first + limit]

    def _last_checkpoint(self) -> int:
        return next((row.seq for row in reversed(self.rows) if row.kind == CHECKPOINT), 0)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check of the whole chain found; `bad_seq` is the first bad fact, or None.

    `entries` facts up to `last_seq` are good; `last_wall_ms` and `last_hash` are those of the last good one.
    """

    entries: int
    last_seq: int
    last_wall_ms: int | None
    last_hash: bytes
    bad_seq: int | None = None
    why: str = ""

    @property
    def ok(self) -> bool:
        return self.bad_seq is None


class Fetch(Protocol):
    def __call__(self, after: int, limit: int, /) -> list[Row]: ...


def judge(fetch: Fetch, sealer: Sealer | None, watch: Callable[[int], None] | None = None) -> Verdict:
    """Check the whole chain, and every seal when there is a sealer."""
    chain, wall_ms, after = Chain(), None, -(2**63)
    try:
        while rows := fetch(after, CHUNK):
            for row in rows:
                chain.follow(row)
                entry_of(row, sealer)
                wall_ms = row.wall_ms
            after = chain.seq
            if watch is not None:
                watch(after)
    except JournalCorrupt as error:
        return Verdict(error.seq - 1, error.seq - 1, wall_ms, chain.hash, error.seq, error.why)
    return Verdict(chain.seq, chain.seq, wall_ms, chain.hash)


def entry_of(row: Row, sealer: Sealer | None) -> Entry:
    """The entry of a stored row. Raises JournalCorrupt when it does not decode or unseal."""
    try:
        data: dict[str, Any] = cbor2.loads(row.data)
        secret: dict[str, Any] = {}
        hidden: tuple[str, ...] = ()
        if row.sealed is not None and row.hidden is not None:
            hidden = tuple(row.hidden.split(","))
            if sealer is not None:
                secret = sealer.open(row.sealed, seq=row.seq, kind=row.kind, boot=row.boot)
    except SealBroken as error:
        raise JournalCorrupt(row.seq, str(error)) from None
    except (cbor2.CBORDecodeError, TypeError, AttributeError, ValueError) as error:
        raise JournalCorrupt(row.seq, f"its data does not decode ({error})") from None
    fact = Fact(row.kind, row.source, data, secret)
    return Entry(row.seq, fact, row.mono_ns, row.wall_ms, row.boot, row.hash, hidden)


def _join_names(secret: dict[str, Any]) -> str:
    for name in secret:
        if not name.isidentifier():
            raise TypeError(f"the name of a sealed value must be an identifier, not {name!r}")
    return ",".join(sorted(secret))


def read_header(rows: list[Row], key: bytes | None, path: Path) -> tuple[bytes, Sealer | None]:
    """The journal's id, and the sealer when the key is given and fits."""
    if not rows:
        raise JournalCorrupt(1, "it holds no facts at all")
    row = rows[0]
    Chain().follow(row)
    data = entry_of(row, None).fact.data
    journal_id, made = data.get("journal"), data.get("format")
    if row.kind != HEADER or not isinstance(journal_id, bytes) or not isinstance(made, int):
        raise JournalCorrupt(1, "it is not the first record of a journal")
    if made > FORMAT:
        raise JournalUnreadable(
            f"{path} was written by a newer Cutcard (format {made}, this one reads {FORMAT})"
        )
    if key is None:
        return journal_id, None
    sealer = Sealer(key, journal_id)
    try:
        sealer.open(row.sealed or b"", seq=1, kind=HEADER, boot=row.boot)
    except SealBroken:
        raise KeyWrong(
            f"the seal key does not belong to the journal {path}. Put the key made together with it back; "
            "the journal itself is whole."
        ) from None
    return journal_id, sealer
