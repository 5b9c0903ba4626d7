"""The continuous shuffler's firmware (docs/protocols/managed.md, section 4.7)."""

from __future__ import annotations

from typing import Any

from simulators.models.continuous import ContinuousShuffler
from simulators.models.machine import Happening
from simulators.wire.managed_shoe import card_event, locking
from simulators.wire.managed_shuffler import Cycles, report_keys
from simulators.wire.smp import DEVICE, EVENTS, OS, READ, SHOE, SHUFFLER, Body

_KIND = {
    "cycle_started": "start",
    "cycle_aborted": "abort",
    "let_out": "out",
    "door": "door",
    "returned": "returned",
    "emptied": "empty",
}


class ManagedContinuous(Cycles[ContinuousShuffler]):
    product = "SIM-CONTINUOUS"
    kind = "continuous"
    groups = frozenset({OS, DEVICE, EVENTS, SHUFFLER, SHOE})

    def __init__(self, shuffler: ContinuousShuffler, *, serial: str = "CS0001", **options: Any) -> None:
        super().__init__(shuffler, serial=serial, **options)
        self._commands |= {(SHOE, 0, READ): lambda _: self.status(), **locking(shuffler)}

    def event_of(self, happening: Happening) -> tuple[str, Body] | None:
        data = happening.data
        match happening.kind:
            case "drawn":
                return card_event(data)
            case "cycle_completed":
                return "done", report_keys(data["report"])
            case "lock":
                return "lock", {"locked": data["locked"]}
        kind = _KIND.get(happening.kind)
        return None if kind is None else (kind, data)

    def status(self) -> dict[str, Any]:
        shuffler = self.shuffler
        return {
            **super().status(),
            "door": shuffler.lid_open,
            "locked": shuffler.locked,
            "empty": shuffler.empty,
            "drawn": shuffler.drawn,
        }
