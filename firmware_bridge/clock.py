"""Time as a parameter: monotonic seconds for every interval, wall time only as a label."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Monotonic seconds since an arbitrary start."""

    def wall(self) -> datetime:
        """UTC wall time, a label only: it may jump."""


class SystemClock:
    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> datetime:
        return datetime.now(UTC)


class VirtualClock:
    """A clock that moves only when told; for deterministic runs."""

    def __init__(self, start: float = 0.0, epoch: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._epoch = epoch

    def now(self) -> float:
        return self._now

    def wall(self) -> datetime:
        return self._epoch + timedelta(seconds=self._now)

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("a clock does not run backwards")
        self._now += seconds

    def set_wall(self, seconds: float) -> None:
        """The wall clock is set on by so many seconds, or back; no interval changes."""
        self._epoch += timedelta(seconds=seconds)
