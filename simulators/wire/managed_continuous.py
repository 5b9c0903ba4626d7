"""The continuous shuffler's firmware (docs/protocols/managed.md, section 4.7)."""

from __future__ import annotations

from typing import Any

from simulators.models.continuous import ContinuousShuffler
from simulators.models.machine import CannotDo, Happening
from simulators.wire.device import Refused
from simulators.wire.managed_shuffler import RC, check_settings, report_keys, token_of
from simulators.wire.smp import (
    DEVICE,
    EVENTS,
    OS,
    READ,
    SHOE,
    SHUFFLER,
    WRITE,
    WRONG_STATE,
    Body,
    ManagedDevice,
)

_KIND = {
    "cycle_started": "start",
    "cycle_aborted": "abort",
    "let_out": "out",
    "door": "door",
    "returned": "returned",
    "emptied": "empty",
}


class ManagedContinuous(ManagedDevice):
    product = "SIM-CONTINUOUS"
    kind = "continuous"
    groups = frozenset({OS, DEVICE, EVENTS, SHUFFLER, SHOE})

    def __init__(self, shuffler: ContinuousShuffler, *, serial: str = "CS0001", **options: Any) -> None:
        super().__init__(shuffler, serial=serial, **options)
        self.shuffler = shuffler
        self._commands |= {
            (SHUFFLER, 0, READ): self._status,
            (SHUFFLER, 1, WRITE): self._start_cycle,
            (SHUFFLER, 2, WRITE): self._abort,
            (SHUFFLER, 4, READ): self._report,
            (SHOE, 0, READ): self._status,
            (SHOE, 1, WRITE): lambda _: self._lock(locked=True),
            (SHOE, 2, WRITE): lambda _: self._lock(locked=False),
        }

    def event_of(self, happening: Happening) -> tuple[str, Body] | None:
        data = happening.data
        match happening.kind:
            case "drawn":
                keys = {"c": data["face"], "b": data["back"]}
                return "card", keys | {"up": True} if data["up"] else keys
            case "cycle_completed":
                return "done", report_keys(data["report"])
            case "lock":
                return "lock", {"locked": data["locked"]}
        kind = _KIND.get(happening.kind)
        return None if kind is None else (kind, data)

    def settings(self) -> dict[str, Any]:
        return self.shuffler.settings

    def check_settings(self, wanted: Body) -> None:
        check_settings(self.shuffler.state, wanted)

    def _status(self, _: Body) -> Body:
        shuffler = self.shuffler
        return {
            "state": shuffler.state,
            "inside": shuffler.inside,
            "door": shuffler.lid_open,
            "cycle": shuffler.cycle,
            "token": shuffler.token,
            "mode": shuffler.settings["mode"],
            "locked": shuffler.locked,
            "empty": shuffler.empty,
            "drawn": shuffler.drawn,
        }

    def _start_cycle(self, body: Body) -> Body:
        try:
            return {"cycle": self.shuffler.start(token_of(body))}
        except CannotDo as no:
            raise Refused(RC[no.why]) from no

    def _abort(self, _: Body) -> Body:
        try:
            self.shuffler.abort()
        except CannotDo as no:
            raise Refused(RC[no.why]) from no
        return {}

    def _report(self, _: Body) -> Body:
        if self.shuffler.report is None:
            raise Refused(WRONG_STATE)
        return report_keys(self.shuffler.report)

    def _lock(self, *, locked: bool) -> Body:
        self.shuffler.set_lock(locked)
        return {"locked": locked}
