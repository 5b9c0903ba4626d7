"""When the facts that explain the present happened: the core knows their numbers, the journal their times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controller.factlog import FactLog
from controller.record import Entry
from controller.table.state import TableState

Times = Mapping[int, int]
"""The wall time of a fact (ms of UTC, a label) by its number."""


def explained(state: TableState) -> set[int]:
    """The facts since which something is wrong, or was and nobody saw it."""
    numbers = {fault.since for fault in state.faults}
    numbers |= {fault.gone for fault in state.faults if fault.gone is not None}
    if state.shuffler.not_started_since is not None:
        numbers.add(state.shuffler.not_started_since)
    return numbers | {b.unfit_since for b in state.batches.values() if b.unfit_since is not None}


def looked_up(journal: FactLog, state: TableState) -> Times:
    """From the journal, at start."""
    return {seq: next(iter(journal.entries(seq - 1))).wall_ms for seq in sorted(explained(state))}


def kept(known: Times, before: TableState, after: TableState, entries: Iterable[Entry]) -> Times:
    """After a commit; those of the state before are kept, since somebody may just look at it."""
    wanted = explained(before) | explained(after)
    if not wanted:
        return {}
    times = {seq: ms for seq, ms in known.items() if seq in wanted}
    return times | {entry.seq: entry.wall_ms for entry in entries if entry.seq in wanted}
