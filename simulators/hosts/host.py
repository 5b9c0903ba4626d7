"""What all hosts have in common: a device, output that nobody may be able to take, and one pump."""

from __future__ import annotations

from typing import Protocol

from simulators.wire.device import WireDevice

PENDING_LIMIT = 4096
"""Bytes kept for a reader that does not read; a UART drops what comes after that."""

READ_SIZE = 4096
READS_PER_PUMP = 16
"""A host that is flooded must still come back to its loop."""


class Pumped(Protocol):
    """What a loop needs of whatever it keeps going. Not thread-safe; one loop owns it.

    The loop selects on `filenos()` for reading and on `writers()` for writing, both asked anew after each
    pump, waits no longer than `deadline()`, and calls `pump(now)`.
    """

    def filenos(self) -> list[int]: ...

    def writers(self) -> list[int]: ...

    def deadline(self) -> float | None: ...

    def pump(self, now: float) -> None:
        """Bring bytes in, let time pass, bring bytes out; never blocks."""


class Host(Pumped, Protocol):
    """One simulated device at one place."""

    device: WireDevice

    @property
    def uri(self) -> str:
        """The transport URI under which a controller finds the device."""

    def close(self) -> None:
        """Free every handle; safe to call twice."""


class Pending:
    """Output waiting for a reader, bounded; `dropped` counts bytes that found no room."""

    def __init__(self, limit: int = PENDING_LIMIT) -> None:
        self.dropped = 0
        self._limit = limit
        self._data = bytearray()

    def __len__(self) -> int:
        return len(self._data)

    def add(self, data: bytes) -> None:
        if not data:
            return
        room = max(0, self._limit - len(self._data))
        self._data += data[:room]
        self.dropped += max(0, len(data) - room)

    def peek(self) -> bytes:
        return bytes(self._data)

    def gone(self, count: int) -> None:
        del self._data[:count]

    def take(self) -> bytes:
        if not self._data:
            return b""
        data = bytes(self._data)
        self._data.clear()
        return data

    def clear(self) -> None:
        self.dropped += len(self._data)
        self._data.clear()
