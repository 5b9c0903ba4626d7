"""Which tables are open on this machine, so that a monitor masks unseen cards (law 7).

A mark is a name in the kernel's abstract socket space: it needs no directory and no rights, every user sees
it, and it is gone when its process is, however it died. Daemons in another network namespace are not seen.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

_PREFIX = "cutcard/open-table/"
_LISTING = Path("/proc/net/unix")
_ID_LIMIT = 60
"""Bytes of a table's id in its mark; the kernel takes 107 for the whole name."""


@contextmanager
def mark_open(table_id: str) -> Iterator[None]:
    """Hold the mark of one open table; the process id keeps two daemons of one table apart."""
    name = f"{_PREFIX}{os.getpid()}/".encode() + table_id.encode()[:_ID_LIMIT]
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as mark:
        mark.bind(b"\0" + name)
        yield


def any_open() -> bool:
    """Whether a table is open here. True when nobody can tell: hiding too much is the safe side."""
    try:
        listing = _LISTING.read_text(errors="replace")
    except OSError:
        return True
    return f"@{_PREFIX}" in listing
