"""Tables of a replay that stay to be looked at: journal, key, table.toml and log of each."""

from __future__ import annotations

import logging
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import structlog

from simulators.rig.campaign.journals import MachineFailed
from simulators.rig.campaign.kinds import text_of
from simulators.rig.campaign.plan import Plan
from simulators.rig.campaign.result import Outcome
from simulators.rig.campaign.table import Table

JOURNAL, KEY = "journal.db", "seal.key"


class Kept(Table):
    """A table that leaves its files in `place`, which it makes. Raises MachineFailed when it cannot."""

    def __init__(self, plan: Plan, directory: Path, place: Path) -> None:
        self._place = place
        self._now: Callable[[], float] = lambda: 0.0
        with _room_in(place):
            place.mkdir()
            (place / "table.toml").write_text(text_of(plan.table) + "\n")
            self._file = (place / "daemon.log").open("w", buffering=1)
        log = structlog.wrap_logger(
            structlog.WriteLogger(self._file),
            processors=[
                structlog.processors.add_log_level, self._timed, structlog.processors.JSONRenderer(),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        )  # fmt: skip
        super().__init__(plan, directory, log.bind())
        self._now = self.world.clock.now

    def play(self) -> Outcome:
        try:
            return super().play()
        finally:
            with _room_in(self._place):
                self._file.close()
                shutil.copy(self.store.path, self._place / JOURNAL)
                shutil.copy(self.store.key, self._place / KEY)

    def _timed(self, _logger: Any, _method: str, line: Any) -> Any:
        """`at`: simulated seconds since the table opened."""
        return {"at": round(self._now(), 3), **line}


@contextmanager
def _room_in(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MachineFailed(f"nothing can be kept in {place}: {error.strerror or error}") from error


def as_text(directory: Path) -> str:
    """What to type to look at the tables that were kept there; a shoe alone has no journal."""
    journals = sorted(directory.glob(f"*/{JOURNAL}"), key=lambda path: int(path.parent.name.split("-")[1]))
    shows = [
        ["cutcard", "journal", "show", str(path), "--key", str(path.with_name(KEY))] for path in journals
    ]
    if not shows:
        return f"{directory} is empty: shoes were played alone, without a table and its journal"
    return "\n".join(["to look at it:", *(f"  {shlex.join(show)}" for show in shows)])
