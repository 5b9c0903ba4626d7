"""Signals end the commands of the rig as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from controller.signals import told_of_signals

STRIKE = signal.SIGUSR1
"""What ends the main thread's wait: a signal of its own."""
STRIKE_S = 0.05
"""How often a thread that did not see a signal is struck again, seconds."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end this process as Ctrl-C does, so that everything is cleaned up.

    KeyboardInterrupt is raised once. A signal that comes just before a wait does not end it, so the thread
    that is told of signals strikes again until the main thread has seen one.
    """
    main, seen, pause = threading.get_ident(), False, threading.Event()

    def end(*_: object) -> None:
        nonlocal seen
        if not seen:
            seen = True
            raise KeyboardInterrupt

    def strike(_: signal.Signals) -> None:
        while not seen:
            signal.pthread_kill(main, STRIKE)
            pause.wait(STRIKE_S)

    before = signal.signal(STRIKE, end)
    try:
        with told_of_signals(strike):
            try:
                yield
            finally:
                seen = True
    finally:
        signal.signal(STRIKE, before)
