"""Ctrl-C, SIGTERM and a closed terminal for the commands that hold a port: a flag, and an end of its wait.

An exception would land anywhere, also between bytes sent and what is known of them.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from controller.signals import told_of_signals


class Ending:
    """`by` is the name of the first signal that came; None while the command shall go on."""

    by: str | None = None


@contextmanager
def ended_by_signals(stop: Callable[[], None]) -> Iterator[Ending]:
    """Signals are kept in the Ending; `stop` (a transport's) ends its waiting. Main thread only."""
    told = Ending()

    def tell(number: signal.Signals) -> None:
        told.by = told.by or number.name
        stop()

    with told_of_signals(tell):
        yield told
