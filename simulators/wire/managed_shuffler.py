"""The managed shuffler's firmware (docs/protocols/managed.md, section 4.3) on a batch shuffler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from simulators.models.continuous import ContinuousShuffler
from simulators.models.machine import CannotDo, Happening
from simulators.models.shuffler import BatchShuffler, Report
from simulators.wire.device import Refused
from simulators.wire.managed import ManagedDevice
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
)

_RC = {"state": WRONG_STATE, "busy": BUSY, "token": TOKEN, "door": OPEN, "jam": JAM, "cards": NO_CARDS}
_KIND = {
    "cycle_started": "start",
    "cycle_completed": "done",
    "cycle_aborted": "abort",
    "let_out": "out",
    "door": "door",
    "jam": "jam",
    "fault": "fault",
}


P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", BatchShuffler, ContinuousShuffler)


class Cycles(ManagedDevice, Generic[S]):
    """What every managed shuffler has of group 66: all but the release of a batch."""

    def __init__(self, shuffler: S, **options: Any) -> None:
        super().__init__(shuffler, **options)
        self.shuffler: S = shuffler
        self._commands |= {
            (SHUFFLER, 0, READ): lambda _: self.status(),
            (SHUFFLER, 1, WRITE): lambda body: {"cycle": tried(self.shuffler.start, token_of(body))},
            (SHUFFLER, 2, WRITE): self._abort,
            (SHUFFLER, 4, READ): self._report,
        }

    def settings(self) -> dict[str, Any]:
        return self.shuffler.settings

    def check_settings(self, wanted: Body) -> None:
        if self.shuffler.state == "shuffling":
            raise Refused(BUSY)
        if wanted.get("mode", "shuffle") not in ("shuffle", "sort"):
            raise Refused(SETTINGS)

    def status(self) -> dict[str, Any]:
        shuffler = self.shuffler
        return {
            "state": shuffler.state,
            "inside": shuffler.inside,
            "cycle": shuffler.cycle,
            "token": shuffler.token,
            "mode": shuffler.settings["mode"],
        }

    def _abort(self, _: Body) -> Body:
        tried(self.shuffler.abort)
        return {}

    def _report(self, _: Body) -> Body:
        if self.shuffler.report is None:
            raise Refused(WRONG_STATE)
        return report_keys(self.shuffler.report)


class ManagedShuffler(Cycles[BatchShuffler]):
    product = "SIM-SHUFFLER"
    kind = "shuffler"
    groups = frozenset({OS, DEVICE, EVENTS, SHUFFLER})

    def __init__(self, shuffler: BatchShuffler, *, serial: str = "SF0001", **options: Any) -> None:
        super().__init__(shuffler, serial=serial, **options)
        self._commands[SHUFFLER, 3, WRITE] = self._release

    def event_of(self, happening: Happening) -> tuple[str, Body] | None:
        kind = _KIND.get(happening.kind)
        if kind is None:
            return None
        if kind == "done":
            return kind, report_keys(happening.data["report"])
        return kind, happening.data

    def status(self) -> dict[str, Any]:
        return {**super().status(), "door": self.shuffler.door_open}

    def _release(self, body: Body) -> Body:
        count, inside = tried(self.shuffler.release, token_of(body))
        return {"count": count, "inside": inside}


def tried(act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the machine says to it. Raises Refused with the code for what it cannot do."""
    try:
        return act(*args, **kwargs)
    except CannotDo as no:
        raise Refused(_RC[no.why]) from no


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
