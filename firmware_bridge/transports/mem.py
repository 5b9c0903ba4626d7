"""`mem:` bytes handed to an object of the same process; for deterministic runs under one thread.

`read` never blocks, so the stepping thread decides when time passes.
"""

from __future__ import annotations

from typing import Protocol, Self

from firmware_bridge.errors import Absent, LinkLost
from firmware_bridge.transports.errors import translated


class Endpoint(Protocol):
    """The other side. An OSError from either method means that it is unplugged."""

    def write(self, data: bytes, /) -> None:
        """Take bytes from us."""

    def read(self) -> bytes:
        """All bytes that came since the last call."""


_plugged: dict[str, Endpoint] = {}


def plug(name: str, endpoint: Endpoint) -> None:
    """Make `endpoint` reachable as `mem:NAME` in this process."""
    _plugged[name] = endpoint


def unplug(name: str) -> None:
    _plugged.pop(name, None)


class MemReceiver:
    """Either bound to an endpoint, or to the one that is plugged in under `name` at each open."""

    def __init__(self, endpoint: Endpoint | None, uri: str = "mem:", name: str = "") -> None:
        self._uri = uri
        self._name = name
        self._fixed = endpoint
        self._open: Endpoint | None = None
        self._living = translated(uri)

    @classmethod
    def plugged(cls, uri: str, name: str) -> Self:
        return cls(None, uri, name)

    @property
    def uri(self) -> str:
        return self._uri

    def describe(self) -> str:
        return f"simulated line {self._uri}"

    def open(self) -> None:
        endpoint = self._fixed or _plugged.get(self._name)
        if endpoint is None:
            raise Absent(f"{self._uri} is not there: nothing is plugged in under that name")
        with translated(self._uri, opening=True):
            endpoint.read()
        self._open = endpoint

    def read(self, timeout: float) -> bytes:  # noqa: ARG002 - the protocol's argument; this form never waits
        with self._living:
            return self._endpoint().read()

    def wake(self) -> None:
        """Nothing sleeps here."""

    def stop(self) -> None:
        """Nor waits."""

    def close(self) -> None:
        self._open = None

    def dispose(self) -> None:
        self.close()

    def _endpoint(self) -> Endpoint:
        if self._open is None:
            raise LinkLost(f"{self._uri} is not open")
        return self._open


class MemTransport(MemReceiver):
    """The command form."""

    def write(self, data: bytes, timeout: float = 0.5) -> None:  # noqa: ARG002 - as above
        with self._living:
            self._endpoint().write(data)
