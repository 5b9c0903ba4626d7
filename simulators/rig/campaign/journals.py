"""Where the journals of simulated tables lie: directories that go with whoever made them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from simulators.hosts import locks

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - only directories with names of their own are made there
PREFIX = "cutcard-journals-"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class MachineFailed(Exception):
    """What plays failed, not the table that is played: one line for people."""


@contextmanager
def journals() -> Iterator[Path]:
    """A directory for journals, removed afterwards: in memory where there is such a place.

    What killed processes left there is removed first. Raises MachineFailed when none can be made.
    """
    try:
        memory = os.access(SHARED_MEMORY, os.W_OK | os.X_OK)
        place = SHARED_MEMORY if memory else Path(tempfile.gettempdir())
        sweep(place)
        directory, held = _made(place)
    except OSError as error:
        raise MachineFailed(f"no directory can be made for journals: {error.strerror or error}") from error
    try:
        yield directory
    finally:
        shutil.rmtree(directory)
        if held is not None:
            os.close(held)


def sweep(place: Path) -> None:
    """Remove the directories in `place` whose maker is gone: those that are ours and nobody holds."""
    for left in place.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if left.lstat().st_uid == os.geteuid() and (held := locks.take(left, _DIRECTORY)) is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(held)


def _made(place: Path) -> tuple[Path, int | None]:
    """A new directory, and what holds it; None on a file system without locks, where nothing is swept."""
    while True:
        directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        try:
            held = locks.take(directory, _DIRECTORY)
        except FileNotFoundError:  # swept before it was held
            continue
        except OSError:
            return directory, None
        if held is not None:
            return directory, held
