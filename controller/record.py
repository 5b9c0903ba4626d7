"""A fact as it lies in the journal: deterministic CBOR, the hash chain, and what a reader gets back.

Encoding: RFC 8949 section 4.2.1 (shortest integers, definite lengths, keys in bytewise order). Only text keys
and no floats, so each value has one form. Chain: SHA-256 over the previous hash and the encoded record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import cbor2

from controller.table.inputs import Fact
from firmware_bridge.frozen import value

HEADER = "journal_started"
"""Kind of the first record: its data holds the journal's id and the format number."""
FORMAT = 1
GENESIS = bytes(32)
"""The hash before the first record."""
ID_BYTES = 16
CHECKPOINT = "checkpoint"
"""Kind of the fact with the whole state, from which a replay starts."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class JournalError(Exception):
    """Base of everything that can be wrong with a journal. The text is for people."""


class JournalFailed(JournalError):
    """Nothing of this append was adopted (disk full, I/O error): latch a fault, act on none of its facts."""


class JournalBusy(JournalError):
    """Another daemon holds this journal."""


class JournalUnreadable(JournalError):
    """There is no journal at this path, or it may not be opened."""


class JournalCorrupt(JournalError):
    """The chain is broken at fact `seq`; nothing is repaired."""

    def __init__(self, seq: int, why: str) -> None:
        super().__init__(
            f"journal damaged at fact {seq}: {why}. Facts before {seq} are good. Keep the files as they are, "
            "run `cutcard journal verify` on a copy, and restore from a backup or start a new journal."
        )
        self.seq = seq
        self.why = why


class Row(NamedTuple):
    """One record as stored. `data` is CBOR; `hidden` the names of the sealed values, comma-separated."""

    seq: int
    boot: bytes
    mono_ns: int
    wall_ms: int
    kind: str
    source: str
    data: bytes
    hidden: str | None
    sealed: bytes | None
    hash: bytes


@value
class Entry:
    """A fact with its place in the journal.

    `mono_ns` is monotonic within one `boot` (the daemon's boot id, 16 bytes); `wall_ms` is a UTC label.
    `hidden` names the sealed values; `fact.sealed` holds them only when the journal was opened with its key.
    """

    seq: int
    fact: Fact
    mono_ns: int
    wall_ms: int
    boot: bytes
    hash: bytes
    hidden: tuple[str, ...] = ()

    @property
    def is_sealed(self) -> bool:
        """Whether there are sealed values that were not opened."""
        return bool(self.hidden) and not self.fact.sealed


_AS_IT_IS = frozenset({str, int, bool, bytes, type(None)})


def plain(value: Any) -> Any:
    """The value in the one form that can be journaled: tuples as lists, any mapping as dict in key order.

    Raises TypeError for a float, a key that is not text, or anything else without one encoding.
    """
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if kind is dict or isinstance(value, Mapping):
        for key in value:
            if type(key) is not str:
                raise TypeError(f"a fact has a key that is a {type(key).__name__}, not plain text")
        return {
            key: item if type(item := value[key]) in _AS_IT_IS else plain(item) for key in _in_order(value)
        }
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(
        f"a fact holds a {kind.__name__}; only None, bool, int, str, bytes, list and dict can be journaled"
    )


def _in_order(keys: Iterable[str]) -> list[str]:
    """Keys as their encodings order bytewise: the length comes first, and UTF-8 keeps the order of text."""
    by_text = sorted(keys)
    if "".join(by_text).isascii():
        return sorted(by_text, key=len)
    return sorted(by_text, key=lambda key: len(key.encode()))


def encode(value: Any) -> bytes:
    """Deterministic CBOR of a value that went through `plain`, which has put the keys in order already."""
    return cbor2.dumps(value)


def chain_hash(previous: bytes, row: tuple[Any, ...]) -> bytes:
    """The hash of a record, given its columns without the hash."""
    return hashlib.sha256(previous + cbor2.dumps(row)).digest()


class Chain:
    """Follows the chain row by row; stands at (`seq`, `hash`)."""

    def __init__(self, seq: int = 0, hash: bytes = GENESIS) -> None:  # noqa: A002 - the record's own word
        self.seq = seq
        self.hash = hash

    def follow(self, row: Row) -> None:
        """Raises JournalCorrupt with the first bad sequence: a gap or a changed record."""
        expected = self.seq + 1
        if row.seq != expected:
            raise JournalCorrupt(expected, f"the fact is missing; fact {row.seq} stands in its place")
        try:
            right = chain_hash(self.hash, row[:-1])
        except ValueError:  # text that is no UTF-8
            right = b""
        if right != row.hash:
            raise JournalCorrupt(row.seq, "its hash does not fit: it was changed after it was written")
        self.seq, self.hash = row.seq, row.hash
