"""The wake pipe: ends a wait in `poll` from any thread, or every wait. It outlives the handle."""

from __future__ import annotations

import os
import threading


class Waker:
    """Register `fileno()` for reading; call `drain` when it is ready. All else is thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self.closed = False
        self._stopped = False

    def fileno(self) -> int:
        return self._reader

    def wake(self) -> None:
        with self._lock:
            if not self.closed:
                try:
                    os.write(self._writer, b"w")
                except BlockingIOError:
                    return  # the pipe is full of wakes already

    def stop(self) -> None:
        """A wake that no `drain` takes away."""
        with self._lock:
            self._stopped = True
        self.wake()

    def drain(self) -> None:
        with self._lock:
            if self._stopped:
                return
            try:
                while len(os.read(self._reader, 512)) == 512:
                    continue
            except BlockingIOError:
                return

    def close(self) -> None:
        with self._lock:
            if not self.closed:
                self.closed = True
                os.close(self._reader)
                os.close(self._writer)
