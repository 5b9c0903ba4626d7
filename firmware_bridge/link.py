"""The life of one command as a pure machine: every command ends Done, Refused, NotSent or Unknown, once.

`step(link, input, now)` gives the next link and what to do. Several commands with different reply keys may
be open at once (a parked read must not block a command); equal keys wait for each other. A reply that no
open command asked for is counted and told, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from firmware_bridge.frozen import replace, value


@value
class Done:
    """The device did it and said so."""

    answer: Mapping[str, Any] = field(default_factory=dict)


@value
class Refused:
    """The device said no: nothing happened. `code` is the device's own, `name` its meaning."""

    code: str
    name: str = ""


@value
class NotSent:
    """No byte left this machine."""

    reason: str


@value
class Unknown:
    """Sent without proof: it may have happened. Never resend what moves a card (law 5)."""

    reason: str


Outcome = Done | Refused | NotSent | Unknown

CLOSED_HERE = "it was closed on our side"
"""Why a handle went that we let go ourselves."""


@value
class Send:
    """Bytes for the wire, whole or not at all."""

    data: bytes


@value
class Complete:
    """The one end of the command `call_id`."""

    call_id: str
    outcome: Outcome


Why = Literal["late", "duplicate", "foreign"]


@dataclass(frozen=True, slots=True)
class Unasked:
    """A reply nobody waits for: `late` after Unknown, `duplicate` after an end, `foreign` otherwise."""

    key: Hashable
    outcome: Done | Refused
    why: Why


@dataclass(frozen=True, slots=True)
class Overdue:
    """An attempt of a `guarded` command had no answer: prove that a repeat is safe and say `Again`."""

    call_id: str


Output = Send | Complete | Unasked | Overdue


@value
class Submit:
    """Start a command. `timeout` (s) is for each of `attempts`; every attempt sends the same bytes.

    More than one attempt is right only where the device answers a repeat from its cache. A restart empties
    the cache: the repeats of a `guarded` command wait for `Again`, all attempts' time at most, then it ends
    Unknown. Where replies carry no number, `hold` (s) keeps the key closed after Unknown, so that a late
    reply is not taken for the answer to the next command.
    """

    call_id: str
    data: bytes
    key: Hashable
    timeout: float
    attempts: int = 1
    hold: float = 0.0
    guarded: bool = False

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.timeout <= 0 or self.hold < 0:
            raise ValueError("a command needs at least one attempt, a timeout above 0 and no negative hold")


@value
class Received:
    """A reply came for whoever waits on `key`."""

    key: Hashable
    outcome: Done | Refused


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The handle died."""

    reason: str


@dataclass(frozen=True, slots=True)
class Again:
    """The answer to `Overdue`: the device is still the one that got the command, so it may be repeated."""

    call_id: str


Input = Submit | Received | Tick | Lost | Again


@dataclass(frozen=True)
class Pending:
    submit: Submit
    left: int
    """Attempts still allowed."""
    due: float
    overdue: bool = False
    """It waits for `Again`."""


@dataclass(frozen=True)
class Ended:
    """A key that was used: a reply after its end is late (held until then) or a duplicate."""

    key: Hashable
    unknown: bool
    held_until: float


@dataclass(frozen=True)
class Link:
    """`window` commands may be open at once, `queue_limit` more may wait."""

    window: int = 4
    queue_limit: int = 16
    memory: int = 16
    pending: tuple[Pending, ...] = ()
    queue: tuple[Submit, ...] = ()
    ended: tuple[Ended, ...] = ()
    late: int = 0
    duplicate: int = 0
    foreign: int = 0

    def deadline(self) -> float | None:
        """When a Tick will have something to do."""
        times = [p.due for p in self.pending]
        if self.queue:
            waiting = {s.key for s in self.queue}
            times += [e.held_until for e in self.ended if e.held_until and e.key in waiting]
        return min(times, default=None)

    @property
    def idle(self) -> bool:
        return not self.pending and not self.queue


def step(link: Link, event: Input, now: float) -> tuple[Link, list[Output]]:
    """One step. Every call first lets pass what `now` has made due, so a late Tick loses nothing."""
    match event:
        case Lost(reason):
            return _lost(link, reason, now)
        case Received(key, outcome):
            link, out = _received(link, key, outcome)
        case Submit():
            link, out = _submit(link, event)
        case Again(call_id):
            link, out = _again(link, call_id, now)
        case Tick():
            out = []
    link, due = _pass_time(link, now)
    link, started = _start(link, now)
    return link, [*out, *due, *started]


def _lost(link: Link, reason: str, now: float) -> tuple[Link, list[Output]]:
    """Keys stay held: a device behind a serial server answers late into the next connection as well."""
    out: list[Output] = [Complete(p.submit.call_id, Unknown(reason)) for p in link.pending]
    out += [Complete(s.call_id, NotSent(reason)) for s in link.queue]
    for p in link.pending:
        link = _remember(link, p.submit, now)
    return replace(link, pending=(), queue=()), out


def _received(link: Link, key: Hashable, outcome: Done | Refused) -> tuple[Link, list[Output]]:
    for p in link.pending:
        if p.submit.key == key:
            rest = tuple([q for q in link.pending if q is not p])
            ended = _with(link, Ended(key, False, 0.0))
            return replace(link, pending=rest, ended=ended), [Complete(p.submit.call_id, outcome)]
    known = next((e for e in link.ended if e.key == key), None)
    if known is None:
        return replace(link, foreign=link.foreign + 1), [Unasked(key, outcome, "foreign")]
    if known.unknown:
        link = _forget(link, key)
        return replace(link, late=link.late + 1), [Unasked(key, outcome, "late")]
    return replace(link, duplicate=link.duplicate + 1), [Unasked(key, outcome, "duplicate")]


def _submit(link: Link, submit: Submit) -> tuple[Link, list[Output]]:
    """A call id that is already open is the same command: it ends once."""
    known = [p.submit.call_id for p in link.pending] + [s.call_id for s in link.queue]
    if submit.call_id in known:
        return link, []
    if len(link.queue) >= link.queue_limit:
        return link, [Complete(submit.call_id, NotSent("too many commands wait for this device"))]
    return replace(link, queue=(*link.queue, submit)), []


def _again(link: Link, call_id: str, now: float) -> tuple[Link, list[Output]]:
    """Nothing when the command is answered by now, or ended."""
    found = next((p for p in link.pending if p.submit.call_id == call_id and p.overdue), None)
    if found is None:
        return link, []
    again = replace(found, left=found.left - 1, due=now + found.submit.timeout, overdue=False)
    pending = tuple(again if p is found else p for p in link.pending)
    return replace(link, pending=pending), [Send(found.submit.data)]


def _pass_time(link: Link, now: float) -> tuple[Link, list[Output]]:
    if [e for e in link.ended if 0 < e.held_until <= now]:
        freed = (replace(e, held_until=0.0) if e.held_until <= now else e for e in link.ended)
        link = replace(link, ended=tuple(freed))
    if not [p for p in link.pending if p.due <= now]:
        return link, []
    out: list[Output] = []
    pending: list[Pending] = []
    for p in link.pending:
        submit = p.submit
        if p.due > now:
            pending.append(p)
        elif p.left > 0 and not submit.guarded:
            out.append(Send(submit.data))
            pending.append(replace(p, left=p.left - 1, due=now + submit.timeout))
        elif p.left > 0 and not p.overdue:
            out.append(Overdue(submit.call_id))
            pending.append(replace(p, due=now + submit.timeout * submit.attempts, overdue=True))
        else:
            tries = "" if submit.attempts == 1 else f" in {submit.attempts} attempts"
            out.append(Complete(submit.call_id, Unknown(f"no answer within {submit.timeout:g} s{tries}")))
            link = _remember(link, submit, now)
    return replace(link, pending=tuple(pending)), out


def _start(link: Link, now: float) -> tuple[Link, list[Output]]:
    """Open what waits, oldest first, as far as keys and window allow."""
    if not link.queue:
        return link, []
    closed = {p.submit.key for p in link.pending} | {e.key for e in link.ended if e.held_until}
    pending, queue, out = list(link.pending), [], []
    for submit in link.queue:
        if len(pending) >= link.window or submit.key in closed:
            queue.append(submit)
        else:
            out.append(Send(submit.data))
            pending.append(Pending(submit, submit.attempts - 1, now + submit.timeout))
        closed.add(submit.key)
    return replace(link, pending=tuple(pending), queue=tuple(queue)), list(out)


def _remember(link: Link, submit: Submit, now: float) -> Link:
    """The key of a command that ended Unknown: closed as long as its submit wants."""
    ended = Ended(submit.key, True, now + submit.hold if submit.hold else 0.0)
    return replace(link, ended=_with(link, ended))


def _forget(link: Link, key: Hashable) -> Link:
    """The key of a command that was answered: open at once."""
    return replace(link, ended=_with(link, Ended(key, False, 0.0)))


def _with(link: Link, ended: Ended) -> tuple[Ended, ...]:
    """The keys that were used, the last one behind."""
    kept = [e for e in link.ended if e.key != ended.key]
    return (*kept, ended)[-link.memory :]
