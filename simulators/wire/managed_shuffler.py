"""The managed shuffler's firmware (docs/protocols/managed.md, section 4.3) on a batch shuffler."""

from __future__ import annotations

from typing import Any

from simulators.models.machine import CannotDo, Happening
from simulators.models.shuffler import BatchShuffler, Report
from simulators.wire.device import Refused
from simulators.wire.smp import (
    BAD_BODY,
    BUSY,
    DEVICE,
    EVENTS,
    JAM,
    NO_CARDS,
    OPEN,
    OS,
    READ,
    SETTINGS,
    SHUFFLER,
    TOKEN,
    WRITE,
    WRONG_STATE,
    Body,
    ManagedDevice,
)

RC = {"state": WRONG_STATE, "busy": BUSY, "token": TOKEN, "door": OPEN, "jam": JAM, "cards": NO_CARDS}
_KIND = {
    "cycle_started": "start",
    "cycle_completed": "done",
    "cycle_aborted": "abort",
    "let_out": "out",
    "door": "door",
    "jam": "jam",
    "fault": "fault",
}


class ManagedShuffler(ManagedDevice):
    product = "SIM-SHUFFLER"
    kind = "shuffler"
    groups = frozenset({OS, DEVICE, EVENTS, SHUFFLER})

    def __init__(self, shuffler: BatchShuffler, *, serial: str = "SF0001", **options: Any) -> None:
        super().__init__(shuffler, serial=serial, **options)
        self.shuffler = shuffler
        self._commands |= {
            (SHUFFLER, 0, READ): self._status,
            (SHUFFLER, 1, WRITE): self._start_cycle,
            (SHUFFLER, 2, WRITE): self._abort,
            (SHUFFLER, 3, WRITE): self._release,
            (SHUFFLER, 4, READ): self._report,
        }

    def event_of(self, happening: Happening) -> tuple[str, Body] | None:
        kind = _KIND.get(happening.kind)
        if kind is None:
            return None
        if kind == "done":
            return kind, report_keys(happening.data["report"])
        return kind, happening.data

    def settings(self) -> dict[str, Any]:
        return self.shuffler.settings

    def check_settings(self, wanted: Body) -> None:
        check_settings(self.shuffler.state, wanted)

    def _status(self, _: Body) -> Body:
        shuffler = self.shuffler
        return {
            "state": shuffler.state,
            "inside": shuffler.inside,
            "door": shuffler.door_open,
            "cycle": shuffler.cycle,
            "token": shuffler.token,
            "mode": shuffler.settings["mode"],
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

    def _release(self, body: Body) -> Body:
        try:
            count, inside = self.shuffler.release(token_of(body))
        except CannotDo as no:
            raise Refused(RC[no.why]) from no
        return {"count": count, "inside": inside}

    def _report(self, _: Body) -> Body:
        if self.shuffler.report is None:
            raise Refused(WRONG_STATE)
        return report_keys(self.shuffler.report)


def check_settings(state: str, wanted: Body) -> None:
    """What any shuffler takes for its settings. Raises Refused."""
    if state == "shuffling":
        raise Refused(BUSY)
    if wanted.get("mode", "shuffle") not in ("shuffle", "sort"):
        raise Refused(SETTINGS)


def token_of(body: Body) -> bytes:
    """The token of a request. Raises Refused(BAD_BODY)."""
    token = body.get("token")
    if not isinstance(token, bytes) or len(token) != 16:
        raise Refused(BAD_BODY)
    return token


def report_keys(report: Report) -> Body:
    """The CDDL's `report`."""
    return {
        "cycle": report.cycle,
        "token": report.token,
        "count": report.count,
        "mode": report.mode,
        "composition": report.composition,
        "backs": report.backs,
        "unread": report.unread,
    }
