"""Reading and writing one kernel handle: poll on the handle and on a wake pipe that outlives it."""

from __future__ import annotations

import os
import select
import time

from firmware_bridge.errors import Absent, LinkLost
from firmware_bridge.transports.errors import translated
from firmware_bridge.transports.waker import Waker

CHUNK = 16384
MAX_WAIT = 3600.0
"""Seconds; a longer wait is cut, and the caller waits again."""


class WireReceiver:
    """Base of the receive-only forms. A scheme gives `_open_handle`, `_close_handle` and `describe`."""

    check = "the device, its cable and its power"
    """What people should look at after a loss."""
    unfit: str
    """What people should do about a port that exists and cannot be used."""

    def __init__(self, uri: str, name: str) -> None:
        self._uri = uri
        self._name = name
        self._fd = -1
        self._poll = select.poll()
        self._living = translated(name, self.check)
        self._waker = Waker()
        self._poll.register(self._waker, select.POLLIN)

    @property
    def uri(self) -> str:
        return self._uri

    def describe(self) -> str:
        return self._name

    def open(self) -> None:
        if self._waker.closed:
            raise Absent(f"{self._name} was disposed of and cannot be opened again")
        self.close()
        try:
            with translated(self._name, self.check, opening=True, unfit=self.unfit):
                fd = self._open_handle()
                self._poll.register(fd, select.POLLIN)
        except BaseException:
            self._close_handle()
            raise
        self._fd = fd

    def read(self, timeout: float) -> bytes:
        if self._fd < 0:
            raise LinkLost(f"{self._name} is not open")
        with self._living:
            ready = self._poll.poll(max(0.0, min(timeout, MAX_WAIT)) * 1000)
            data = None
            for fd, _ in ready:
                if fd == self._fd:
                    data = self._receive()
                else:
                    self._waker.drain()
        if data == b"":
            raise LinkLost(self._end_of_input())
        return data or b""

    def wake(self) -> None:
        self._waker.wake()

    def stop(self) -> None:
        self._waker.stop()

    def close(self) -> None:
        if self._fd >= 0:
            self._poll.unregister(self._fd)
            self._fd = -1
        self._close_handle()

    def dispose(self) -> None:
        self.close()
        self._waker.close()

    def _open_handle(self) -> int:
        raise NotImplementedError

    def _close_handle(self) -> None:
        raise NotImplementedError

    def _end_of_input(self) -> str:
        """What an end of input means here, for people."""
        raise NotImplementedError

    def _receive(self) -> bytes | None:
        """What the handle holds; None when another reader was faster, b"" at the end of input."""
        try:
            return os.read(self._fd, CHUNK)
        except BlockingIOError:
            return None


class Writing(WireReceiver):
    """Adds the command form to a receiver."""

    def write(self, data: bytes, timeout: float = 0.5) -> None:
        if self._fd < 0:
            raise LinkLost(f"{self._name} is not open")
        with self._living:
            sent = self._push(data)
            if sent < len(data):
                self._push_rest(memoryview(data), sent, timeout)

    def _push(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0

    def _push_rest(self, data: memoryview, sent: int, timeout: float) -> None:
        writable = select.poll()
        writable.register(self._fd, select.POLLOUT)
        end = time.monotonic() + timeout
        while sent < len(data):
            left = end - time.monotonic()
            if left <= 0 or not writable.poll(left * 1000):
                raise LinkLost(
                    f"{self._name} took only {sent} of {len(data)} bytes in {timeout:g} s: the rest is not "
                    "sent, and its state must be asked before anything is repeated"
                )
            sent += self._push(data[sent:])
