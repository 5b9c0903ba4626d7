"""`cutcard bench`: each goal of docs/performance.md as a ratio to a floor measured in the same run.

Machines differ by a factor of two from minute to minute, so only ratios are judged where a floor exists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simulators.rig import (
    bench_campaign,
    bench_drivers,
    bench_exchanges,
    bench_idle,
    bench_process,
    bench_wire,
)
from simulators.rig.bench_rows import Row

GOALS = (
    *bench_wire.GOALS,
    *bench_exchanges.GOALS,
    *bench_drivers.GOALS,
    *bench_idle.GOALS,
    *bench_process.GOALS,
    *bench_campaign.GOALS,
)


def run(tell: Callable[[str], None]) -> list[Row]:
    """All rows, goal by goal; `tell` hears what is being measured."""
    rows: list[Row] = []
    for name, measure in GOALS:
        tell(f"measuring {name} ...")
        rows += measure()
    return sorted(rows, key=lambda row: row.goal)


def as_text(rows: Sequence[Row]) -> str:
    """The table for people."""
    head = ("goal", "what", "value", "floor", "ratio", "limit", "")
    body = [
        (
            str(row.goal),
            row.name,
            f"{row.value:.4g} {row.unit}",
            "" if row.floor is None else f"{row.floor:.4g}",
            "" if row.ratio is None else f"{row.ratio:.2f}",
            row.goal_text,
            "ok" if row.ok else "MISSED",
        )
        for row in rows
    ]
    widths = [max(len(line[i]) for line in (head, *body)) for i in range(len(head))]
    lines = ["  ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)) for line in (head, *body)]
    return "\n".join(line.rstrip() for line in lines)
