"""Hosts with a thread of their own, for programs that have no loop: tests, mostly."""

from __future__ import annotations

import os
import select
import threading
import time
from types import TracebackType
from typing import Protocol, Self


class Pumped(Protocol):
    """What the loop needs of a host."""

    def filenos(self) -> list[int]: ...

    def writers(self) -> list[int]: ...

    def deadline(self) -> float | None: ...

    def pump(self, now: float) -> None: ...


class Served:
    """Pumps `hosts` in real time from `with` until its end. The hosts stay the caller's to close.

    What the pumping raised comes out at the end.
    """

    def __init__(self, *hosts: Pumped) -> None:
        self._hosts = hosts
        self._wake = os.eventfd(0, os.EFD_CLOEXEC)
        self._ended = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="simulated devices")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended = True
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        os.close(self._wake)
        if self._error is not None and value is None:
            raise self._error

    @property
    def alive(self) -> bool:
        """False from the moment when the pumping raised, or the block ended."""
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException as error:  # noqa: BLE001 - it is raised where the test ends
            self._error = error

    def _serve(self) -> None:
        start = time.monotonic()
        while not self._ended:
            now = time.monotonic() - start
            for host in self._hosts:
                host.pump(now)
            times = [at for host in self._hosts if (at := host.deadline()) is not None]
            waits = select.poll()
            waits.register(self._wake, select.POLLIN)
            for host in self._hosts:
                writers = set(host.writers())
                for number in {*host.filenos(), *writers}:
                    waits.register(number, select.POLLIN | (select.POLLOUT if number in writers else 0))
            waits.poll(max(0.0, min(times) - now) * 1000 if times else None)
