"""Facts for people and programs: the JSON form, and which sealed cards may be shown by now (law 7)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any

from controller.record import EPOCH, Entry

EXPOSED = "exposed"
"""Fact kind: data `seqs` lists the facts whose cards lie open on the table now."""
COLLECTED = "collected"
"""Fact kind: the shoe cycle that began with fact `from` is over; its cards are no secret any more."""
ENVELOPE = ("fact", "kind", "source", "at", "mono_ns", "boot_id")
_FREE = {name: f"{name}_" for name in ENVELOPE}


class Visible:
    """The facts whose sealed values may be shown: `seq in visible`. Feed facts in order with `note`."""

    def __init__(self) -> None:
        self._exposed: set[int] = set()
        self._starts: list[int] = []
        self._reach: list[int] = []

    def note(self, entry: Entry) -> None:
        """Take in one more fact; only `exposed` and `collected` change anything."""
        fact = entry.fact
        if fact.kind == EXPOSED:
            self._exposed.update(fact.data["seqs"])
        elif fact.kind == COLLECTED:
            start = fact.data["from"]
            while self._starts and self._starts[-1] >= start:
                self._starts.pop()
                self._reach.pop()
            self._starts.append(start)
            self._reach.append(entry.seq)
            self._exposed = {seq for seq in self._exposed if not start <= seq <= entry.seq}

    def __contains__(self, seq: object) -> bool:
        if not isinstance(seq, int):
            return False
        at = bisect_right(self._starts, seq) - 1
        return seq in self._exposed or (at >= 0 and seq <= self._reach[at])


def visible(entries: Iterable[Entry]) -> Visible:
    """One pass over all facts up to now."""
    found = Visible()
    for entry in entries:
        found.note(entry)
    return found


@lru_cache(maxsize=64)  # the facts of one commit have one time
def utc(wall_ms: int) -> str:
    """ISO 8601 with milliseconds and Z."""
    return (EPOCH + timedelta(milliseconds=wall_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def entry_json(entry: Entry, masked: bool) -> dict[str, Any]:
    """The entry as a JSON object: envelope, open values, sealed values (null when masked or not opened).

    `boot_id` is the daemon's, since `boot` is a device's boot counter in several facts. A value whose name is
    taken by the envelope gets an underscore. Bytes are hex.
    """
    fact = entry.fact
    out: dict[str, Any] = {
        "fact": entry.seq,
        "kind": fact.kind,
        "source": fact.source,
        "at": utc(entry.wall_ms),
        "mono_ns": entry.mono_ns,
        "boot_id": entry.boot.hex(),
    }
    for name, value in fact.data.items():
        out[_FREE.get(name, name)] = value if type(value) in _AS_IT_IS else _jsonable(value)
    for name in entry.hidden:
        out[_FREE.get(name, name)] = None if masked or entry.is_sealed else _jsonable(fact.sealed.get(name))
    return out


_AS_IT_IS = frozenset({str, int, bool, type(None)})


def _jsonable(value: Any) -> Any:
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if kind is bytes:
        return value.hex()
    if kind is list or kind is tuple:
        return [_jsonable(item) for item in value]
    if kind is dict or isinstance(value, Mapping):
        return {name: _jsonable(item) for name, item in value.items()}
    return value
