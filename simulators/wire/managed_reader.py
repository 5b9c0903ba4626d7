"""The hole-card reader's firmware (docs/protocols/managed.md, section 4.5): the result, and nothing else."""

from __future__ import annotations

from typing import Any

from simulators.models.machine import Happening
from simulators.models.reader import HoleCardReader
from simulators.wire.managed import ManagedDevice
from simulators.wire.smp import DEVICE, EVENTS, OS, READ, READER, Body


class ManagedReader(ManagedDevice):
    product = "SIM-READER"
    kind = "reader"
    groups = frozenset({OS, DEVICE, EVENTS, READER})

    def __init__(self, reader: HoleCardReader, *, serial: str = "HR0001", **options: Any) -> None:
        super().__init__(reader, serial=serial, **options)
        self.reader = reader
        self._settings: dict[str, Any] = {"recognition": True}
        self._commands[READER, 0, READ] = lambda _: {"result": reader.look()}

    def event_of(self, happening: Happening) -> tuple[str, Body] | None:
        if happening.kind != "looked":
            return None
        return "peek", {"result": happening.data["result"]}

    def settings(self) -> dict[str, Any]:
        return self._settings
