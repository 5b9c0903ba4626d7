"""Files and directories that one process holds at a time; free again however it ends (flock)."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def take(path: Path, flags: int = os.O_RDONLY, mode: int = 0o666) -> int | None:
    """The descriptor that holds `path` until it is closed; None while another process holds it.

    Raises OSError when it cannot be opened, or its file system has no locks.
    """
    while True:
        held = os.open(path, flags | os.O_CLOEXEC, mode)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(path, held):
                return held
        except BlockingIOError:
            os.close(held)
            return None
        except BaseException:
            os.close(held)
            raise
        os.close(held)  # whoever had it took it away just now


def _is_still(path: Path, held: int) -> bool:
    """Whether `path` is what was opened, and not gone or another one meanwhile."""
    try:
        return os.path.samestat(path.stat(), os.fstat(held))
    except FileNotFoundError:
        return False
