"""A row of the benchmark: what was measured, its floor of the same run, and whether the goal holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from firmware_bridge.clock import SystemClock

NOW = SystemClock().now


@dataclass(frozen=True, slots=True)
class Row:
    """One line: what was measured, the floor of the same run, and whether the goal holds.

    `limit` bounds the ratio (or the value, where there is no floor to compare with): from above, or from
    below when `at_least`.
    """

    goal: int
    name: str
    value: float
    unit: str
    floor: float | None
    limit: float
    at_least: bool = False
    absolute: bool = False

    @property
    def ratio(self) -> float | None:
        return None if not self.floor else self.value / self.floor

    @property
    def ok(self) -> bool:
        judged = self.value if self.absolute or self.ratio is None else self.ratio
        return judged >= self.limit if self.at_least else judged <= self.limit

    @property
    def goal_text(self) -> str:
        unit = f" {self.unit}" if self.absolute or self.ratio is None else "x"
        return f"{'>=' if self.at_least else '<='} {self.limit:g}{unit}"

    def as_json(self) -> dict[str, Any]:
        plain = asdict(self)
        for name in ("limit", "at_least", "absolute"):
            del plain[name]
        ratio = None if self.ratio is None else round(self.ratio, 3)
        return {
            **plain,
            "value": round(self.value, 3),
            "ratio": ratio,
            "limit": self.goal_text,
            "ok": self.ok,
        }


def percentile(times: Sequence[float], share: float) -> float:
    """The value below which `share` of the times lie."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def timed(act: Callable[[], object], times: int) -> list[float]:
    """Seconds that each of `times` calls took."""
    found = []
    for _ in range(times):
        start = NOW()
        act()
        found.append(NOW() - start)
    return found
