"""Signals that end a program, told by a thread of their own, however the main thread waits.

Python runs a handler when its main thread comes to the next instruction: a signal that arrives just before a
wait is seen only after it. What the kernel's side writes (`signal.set_wakeup_fd`) is never late.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WANTED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def told_of_signals(tell: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Ctrl-C, SIGTERM and a closed terminal call `tell` in the thread `signals`. Main thread only."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def listen() -> None:
        while numbers := os.read(reading, 64):
            for number in numbers:
                if number in WANTED:
                    tell(signal.Signals(number))

    thread = threading.Thread(target=listen, name="signals", daemon=True)  # noqa: TID251 - an edge: see above
    thread.start()
    other = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda *_: None) for number in WANTED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(other)
        os.close(writing)
        thread.join()
        os.close(reading)
