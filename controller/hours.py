"""The hour and the gaming day of a wall time: the core has no clock, so the edge tells it."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

from controller.table.inputs import Hour


def hour_at(wall: datetime, day_starts: time) -> Hour:
    """The gaming day is named by the date on which it began, in this machine's time zone."""
    local = wall.astimezone() - timedelta(hours=day_starts.hour, minutes=day_starts.minute)
    hour = int(wall.timestamp()) // 3600
    began = datetime.fromtimestamp(hour * 3600, UTC).astimezone()
    return Hour(hour, local.date().isoformat(), f"{began:%Y-%m-%dT%H:%M}")


def until_next_minute(wall: datetime) -> float:
    """Seconds. Hours and gaming days begin with a minute, and a clock that was set is noticed by the next."""
    return 60.0 - wall.second - wall.microsecond / 1e6
