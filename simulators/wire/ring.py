"""The ring of numbered events of a managed device (docs/protocols/managed.md, section 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulators.wire import cbor

ROOM = 1024 - 64
"""Bytes of events in one answer."""


class Ring:
    """The last `size` events, encoded; `next` is the number of the one to come, `first` that of the first."""

    def __init__(self, size: int, first: int = 1) -> None:
        self.next = self._first = first
        self.size = size
        self._events: dict[int, bytes] = {}

    def add(self, keys: Mapping[str, Any]) -> None:
        self._events[self.next] = cbor.encode({**keys, "n": self.next})
        self._events.pop(self.next - self.size, None)
        self.next += 1

    def run_over(self) -> None:
        """Forget all events, as when others came on top of them; their numbers stay used."""
        self._events.clear()
        self._first = self.next

    def read(self, since: int, most: int) -> dict[str, Any]:
        """What is asked for, as far as it is held and fits into one answer."""
        oldest = max(self._first, self.next - self.size)
        first = max(since, oldest)
        chosen: list[bytes] = []
        room = ROOM
        for number in range(first, min(self.next, first + most)):
            room -= len(self._events[number])
            if room < 0:
                break
            chosen.append(self._events[number])
        return {"oldest": oldest, "next": self.next, "events": cbor.array(chosen)}
