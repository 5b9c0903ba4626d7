"""Whole queries as generators: each yields Ask or Pause, gets a Reply each time, and returns its outcome."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from dataclasses import dataclass

from firmware_bridge.framing.gat import IACR, LARQ, LARR, LASQ, LASR, SQ, SR, encode
from firmware_bridge.gat.messages import ERROR, FINISHED, IDLE, Format, Part, Status, Taken, initiate
from firmware_bridge.link import Done, NotSent, Outcome, Refused, Unknown

ATTEMPTS = 3
"""Of a question: a device is silent when the check bytes were wrong, its and ours."""
POLL_S = 1.0
CALCULATION_S = 20 * 60.0
MUTE_S = 30.0
"""A device that calculates may be silent so long."""
STALE_S = 2.0
"""Results that were there before ours are older than the request by more than this."""
IDLE_POLLS = 3
"""A device that has begun may say idle so often before it is taken to have lost the request."""
PICKUP_S = 60.0
"""One that took a request and is idle may let it lie so long."""
FRAMES = 4096
"""Of one report, each of at most 248 bytes: one that never ends is given up."""

VERSION = "version"
LEVEL_ERROR = "level"
NAK = "nak"
NOT_SUPPORTED = frozenset({VERSION, LEVEL_ERROR, NAK})
"""Codes of refusals that say nothing of the device's programs, neither good nor bad (Refused.code)."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request until its answer: its code, with the frame's number for LARR. Every attempt is the same."""

    data: bytes
    key: Hashable
    attempts: int = ATTEMPTS


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """How an Ask ended (None after a Pause), and when."""

    outcome: Outcome | None
    now: float


Query = Generator[Ask | Pause, Reply, Outcome]


def ask_status() -> Query:
    """Done with `message`, a Status."""
    return (yield Ask(encode(SQ), SR)).outcome or NotSent("")


def ask_last() -> Query:
    """Done with `message`, a Last."""
    return (yield Ask(encode(LASQ), LASR)).outcome or NotSent("")


def ask_both() -> Query:
    """Done with `status`, and `last` or None where it is not told: who is there."""
    status = yield from ask_status()
    if not isinstance(status, Done):
        return status
    last = yield from ask_last()
    told = last.answer["message"] if isinstance(last, Done) else None
    return Done({"status": status.answer["message"], "last": told})


def fetch(wanted: Format | None = None) -> Query:
    """Done with `format`, `frames` and `report` (bytes): the device's last report, frame by frame."""
    if wanted is None:
        status = yield from ask_status()
        if not isinstance(status, Done):
            return status
        wanted = status.answer["message"].best
    report = b""
    for number in range(1, FRAMES + 1):
        request = encode(LARQ, bytes((wanted,)) + number.to_bytes(2, "big"))
        outcome = (yield Ask(request, (LARR, number))).outcome
        if not isinstance(outcome, Done):
            why = outcome.reason if isinstance(outcome, Unknown | NotSent) else ""
            return Unknown(f"frame {number} of the report did not come ({why})")
        part: Part = outcome.answer["message"]
        if part.error:
            return Refused("report", f"the device has no frame {number} of a report")
        report += part.data
        if part.last:
            return Done({"format": wanted.name.lower(), "frames": number, "report": report})
    return Refused("report", f"the report does not end within {FRAMES} frames")


def calculate(parameter: str) -> Query:
    """A calculation from the request to its report: as `fetch`, and `age` (s, None when it is not told)."""
    before = yield from ask_status()
    if not isinstance(before, Done):
        return before
    status: Status = before.answer["message"]
    if status.running:
        return NotSent("the device is busy with a calculation that somebody else asked for: wait for its end")
    if status.version.startswith(("0.", "1.", "2.")):
        return Refused(VERSION, f"the device speaks GAT {status.version}, which has no such function")
    began = yield from _started(parameter)
    if not isinstance(began, Done):
        return began
    return (yield from _finished(began.answer["at"], began=began.answer["started"]))


def _started(parameter: str) -> Query:
    """Done with `started`, and `at`, a time not after the request was taken.

    The request moves nothing, so it is sent again; a NAK then may mean: busy with the first.
    """
    request = initiate(parameter)
    at = (yield Pause(0.0)).now
    outcome: Outcome | None = None
    for attempt in range(ATTEMPTS):
        outcome = (yield Ask(request, IACR, attempts=1)).outcome
        if isinstance(outcome, Done):
            taken: Taken = outcome.answer["message"]
            if taken.level_error:
                return Refused(LEVEL_ERROR, "the device does not know this level of authentication")
            if not taken.acknowledged and attempt:
                return Unknown(
                    "the request was not answered, and its repeat refused: ask for the last report later"
                )
            if not taken.acknowledged:
                return Refused(NAK, "the device does not take this request")
            return Done({"at": at, "started": taken.started})
        status = yield from ask_status()
        if isinstance(status, Done) and status.answer["message"].running:
            return Done({"at": at, "started": True})
    return outcome or NotSent("")


def _finished(at: float, *, began: bool) -> Query:
    """Poll until the calculation that was asked for at `at` is over, then fetch its report."""
    heard, idle = at, 0
    while True:
        now = (yield Pause(POLL_S)).now
        if now - at > CALCULATION_S:
            return Unknown(f"the calculation did not end within {CALCULATION_S / 60:.0f} minutes")
        reply = yield Ask(encode(SQ), SR)
        if not isinstance(reply.outcome, Done):
            if reply.now - heard > MUTE_S:
                return Unknown(f"the device was silent for {MUTE_S:.0f} s in mid-calculation")
            continue
        heard = reply.now
        status: Status = reply.outcome.answer["message"]
        if status.state == ERROR:
            return Refused(ERROR, "the device's calculation ended in an error")
        began |= status.running
        idle = idle + 1 if status.state == IDLE else 0
        if idle >= IDLE_POLLS and (began or reply.now - at > PICKUP_S):
            return Refused(IDLE, "the device is idle and has no report: it lost the request, or restarted")
        if status.state != FINISHED:
            continue
        reply = yield Ask(encode(LASQ), LASR)
        last = reply.outcome.answer["message"] if isinstance(reply.outcome, Done) else None
        if last is not None and last.seconds > reply.now - at + STALE_S:
            continue  # the report of an earlier calculation: ours has not begun yet
        fetched = yield from fetch(status.best)
        if not isinstance(fetched, Done):
            return fetched
        return Done({**fetched.answer, "age": None if last is None else last.seconds})
