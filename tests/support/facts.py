"""Two runs of one seed compared: what must be equal in their facts, source by source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from controller.record import Entry

DIFFERS = frozenset(
    {"mono_us", "day", "received", "boot_id", "token", "seq", "n", "raw", "call", "fault", "who"}
)
"""Times, boot ids, tokens, wire numbers, numbers made from fact numbers, and who ran the daemon."""
POINTERS = frozenset({"seqs", "from"})
"""Numbers of other facts: they depend on how the sources interleave, what they point at does not."""


def comparable(entries: Iterable[Entry], sources: Iterable[str]) -> dict[str, list[tuple[str, Any]]]:
    """For each source its facts in order, unsealed, without what may differ between two runs."""
    found: dict[str, list[tuple[str, Any]]] = {source: [] for source in sources}
    places: dict[int, str] = {}
    counts: dict[str, int] = {}
    for entry in entries:
        fact = entry.fact
        if fact.kind == "command_ended" and fact.data["command"] == "status":
            continue  # before or after an event that is under way at the same time: chance
        counts[fact.source] = counts.get(fact.source, 0) + 1
        places[entry.seq] = f"{fact.source} {counts[fact.source]}"
        if fact.source in found:
            found[fact.source].append((fact.kind, _plain(fact.whole, places)))
    return found


def _plain(value: Any, places: Mapping[int, str]) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _pointed(item, places) if name in POINTERS else _plain(item, places)
            for name, item in value.items()
            if name not in DIFFERS
        }
    if isinstance(value, list):
        return [_plain(item, places) for item in value]
    return value


def _pointed(value: Any, places: Mapping[int, str]) -> Any:
    return [places[number] for number in value] if isinstance(value, list) else places.get(value, value)
