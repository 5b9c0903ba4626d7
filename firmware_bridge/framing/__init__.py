"""Sans-IO frame decoders: bytes in, frames and garbage runs out; any split of a stream gives the same."""

from __future__ import annotations

from dataclasses import dataclass

GARBAGE_LIMIT = 64
"""How many bytes of a garbage run are kept (contracts: "Device events")."""

NOISE = "noise"


@dataclass(frozen=True, slots=True)
class Garbage:
    """One run of `count` bytes that form no frame: the first 64 of them and the first specific reason."""

    reason: str
    data: bytes
    count: int


class GarbageRun:
    """Gathers neighbouring rejected bytes into one `Garbage`; bounded."""

    __slots__ = ("_count", "_data", "_reason")

    def __init__(self) -> None:
        self._count = 0
        self._data = bytearray()
        self._reason = NOISE

    def __bool__(self) -> bool:
        return self._count > 0

    def add(self, data: bytes | bytearray, reason: str = NOISE, count: int | None = None) -> None:
        """`data` are the first of `count` bytes, or all of them."""
        if not data:
            return
        if self._reason == NOISE:
            self._reason = reason
        if len(self._data) < GARBAGE_LIMIT:
            self._data += data[: GARBAGE_LIMIT - len(self._data)]
        self._count += len(data) if count is None else count

    def join(self, run: Garbage) -> None:
        """Another run belongs to this one; its reason counts."""
        self._reason = run.reason
        self._data += run.data[: GARBAGE_LIMIT - len(self._data)]
        self._count += run.count

    def take(self) -> list[Garbage]:
        """The run so far as a list of none or one, and start anew."""
        if not self._count:
            return []
        run = Garbage(self._reason, bytes(self._data), self._count)
        self.clear()
        return [run]

    def clear(self) -> None:
        """Start anew."""
        self.__init__()  # type: ignore[misc]  # the same empty state as at the start
