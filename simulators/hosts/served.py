"""One loop for hosts and whatever else is pumped, and a thread for it where a program has none."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Protocol, Self

from simulators.hosts.host import Pumped
from simulators.wire.device import earliest


class Readable(Protocol):
    """What can be waited for beside hosts."""

    def fileno(self) -> int: ...


def wait(hosts: Iterable[Pumped], seconds: float | None, *handles: int | Readable) -> bool:
    """Until a host has something to do, or one of `handles` is readable; False when the time was over."""
    waits = select.poll()
    for handle in handles:
        waits.register(handle, select.POLLIN)
    for host in hosts:
        writers = set(host.writers())
        for number in {*host.filenos(), *writers}:
            waits.register(number, select.POLLIN | (select.POLLOUT if number in writers else 0))
    return bool(waits.poll(None if seconds is None else max(0.0, seconds) * 1000))


def due(hosts: Iterable[Pumped]) -> float | None:
    """When the first of them next does something by itself."""
    return earliest(*(host.deadline() for host in hosts))


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
            at = due(self._hosts)
            wait(self._hosts, None if at is None else at - now, self._wake)
