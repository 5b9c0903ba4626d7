"""Driver of serial GAT (docs/protocols/gat.md): a device's word on its own programs, never a proof.

A session asks for status and last authentication, then for the status each second; states are told when they
change. A command runs to its end before the next question: a calculation takes up to 20 minutes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from enum import Enum, auto
from typing import Any, Final

from devices.base import CommandSpec, Counters, DriverOutput, DriverSpec, Maker, Setup
from devices.events import (
    LinkDown,
    LinkUp,
    Warning,  # noqa: A004 - the contract's event kind is `warning`
)
from devices.verifiers.gat_capture import SILENCE_S, GatDecoder, Story
from firmware_bridge.framing import Garbage
from firmware_bridge.framing.gat import Decoder, Frame
from firmware_bridge.gat import messages, queries
from firmware_bridge.gat.talk import Talk
from firmware_bridge.link import Complete, Done, NotSent, Outcome, Send, Unknown

POLL_S = 1.0
BACKOFF_S = (0.5, 8.0)
ANOTHER_MASTER = "another_master"
"""Code of the warning that answers to somebody else's requests are on the line."""
NAME_LIMIT = 160
_SALT = re.compile(r"(0[xX])?([0-9a-fA-F]{2}){1,32}")
_SESSION: Final = "session"


class Phase(Enum):
    CLOSED = auto()
    SESSION = auto()
    READY = auto()
    RESTING = auto()
    """The device did not answer; the next session begins at `_begin_at`."""


class Gat:
    """The read-only form: it asks for status and for what the device has, and starts nothing."""

    def __init__(self, setup: Setup) -> None:
        self.device = setup.device
        self.counters = Counters()
        self._event = Maker(setup)
        self._story = Story(self._event, self.counters)
        self._talk = Talk()
        self._decoder = Decoder()
        self._phase = Phase.CLOSED
        self._told_down = self._told_foreign = False
        self._backoff = BACKOFF_S[0]
        self._begin_at = self._poll_at = 0.0
        self._settle_at: float | None = None

    def start(self, now: float) -> Sequence[DriverOutput]:
        self._decoder = Decoder()
        return self._begin(now)

    def feed(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        if self._phase is Phase.CLOSED:
            return []
        out = self._items(self._decoder.feed(data), now)
        self._settle_at = now + SILENCE_S if self._decoder.pending else None
        return [*out, *self._idle(now)]

    def tick(self, now: float) -> Sequence[DriverOutput]:
        out: list[DriverOutput] = []
        if self._settle_at is not None and now >= self._settle_at:
            self._settle_at = None
            out += self._items(self._decoder.flush(), now)
        if self._phase is Phase.RESTING and now >= self._begin_at:
            return [*out, *self._begin(now)]
        return [*out, *self._act(self._talk.tick(now), now), *self._idle(now)]

    def lost(self, reason: str, now: float) -> Sequence[DriverOutput]:
        self._settle_at = None
        out = [self._story.garbage(g, now) for g in self._decoder.flush() if isinstance(g, Garbage)]
        return [*out, *self._drop(reason, now)]

    def ack(self, n: int, now: float) -> Sequence[DriverOutput]:
        """Nothing to do: a device keeps no events."""
        del n, now
        return []

    def deadline(self) -> float | None:
        times = [self._settle_at, self._talk.deadline()]
        if self._phase is Phase.RESTING:
            times.append(self._begin_at)
        if self._phase is Phase.READY and not self._talk.busy:
            times.append(self._poll_at)
        return min((t for t in times if t is not None), default=None)

    def _begin(self, now: float) -> list[DriverOutput]:
        self._phase = Phase.SESSION
        self._told_foreign = False
        return self._act(self._talk.begin(_SESSION, queries.ask_both(), now), now)

    def _items(self, items: Sequence[Frame | Garbage], now: float) -> list[DriverOutput]:
        out: list[DriverOutput] = []
        for item in items:
            if isinstance(item, Garbage):
                out.append(self._story.garbage(item, now))
                continue
            if self._phase is Phase.READY:
                out += self._story.tell(item, now)
            else:
                self._story.hear(item)  # LinkUp tells what a session found
            out += self._act(self._talk.received(item, now), now)
        if self._talk.foreign and not self._told_foreign:
            self._told_foreign = True
            out.append(self._event(Warning, now, code=ANOTHER_MASTER))
        self.counters.unasked = self._talk.foreign
        return out

    def _act(self, outputs: Sequence[Send | Complete], now: float) -> list[DriverOutput]:
        out: list[DriverOutput] = []
        for output in outputs:
            if isinstance(output, Send):
                out.append(output)
            elif output.call_id == _SESSION:
                out += self._session(output.outcome, now)
            else:
                out += self._ended(output.call_id, output.outcome, now)
        self.counters.retries = self._talk.retries
        return out

    def _session(self, outcome: Outcome, now: float) -> list[DriverOutput]:
        """The first questions, and each poll after them, are answered or not."""
        if not isinstance(outcome, Done):
            why = outcome.reason if isinstance(outcome, Unknown | NotSent) else ""
            text = f"no right answer came ({why}): check the device's power, cable, port and line rate (baud)"
            out = self._drop(text, now)
            self._phase, self._begin_at = Phase.RESTING, now + self._backoff
            self._backoff = min(2 * self._backoff, BACKOFF_S[1])
            return out
        self._poll_at, self._backoff = now + POLL_S, BACKOFF_S[0]
        if self._phase is Phase.READY:
            return []
        self._phase, self._told_down = Phase.READY, False
        status, last = outcome.answer["status"], outcome.answer["last"]
        told = {**_plain_status(status), **(_plain_last(last) if last else {})}
        return [
            self._event(LinkUp, now, identity={"protocol": "GAT", "version": status.version}, status=told)
        ]

    def _idle(self, now: float) -> list[DriverOutput]:
        if self._phase is not Phase.READY or self._talk.busy or now < self._poll_at:
            return []
        return self._act(self._talk.begin(_SESSION, queries.ask_status(), now), now)

    def _ended(self, call_id: str, outcome: Outcome, now: float) -> list[DriverOutput]:
        """A command ended; the read-only form has none."""
        raise NotImplementedError

    def _drop(self, reason: str, now: float) -> list[DriverOutput]:
        self._phase = Phase.CLOSED
        ends = [end for end in self._talk.lost(reason) if end.call_id != _SESSION]
        out: list[DriverOutput] = [
            end for ended in ends for end in self._ended(ended.call_id, ended.outcome, now)
        ]
        if not self._told_down:
            self._told_down = True
            out.append(self._event(LinkDown, now, reason=reason))
        return out


class GatControlled(Gat):
    """The command form: one command at a time, in order."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._waiting: deque[tuple[str, str, queries.Query]] = deque()
        self._running: tuple[str, str, int] | None = None  # call id, name, foreign answers before

    def command(self, call_id: str, name: str, args: Mapping[str, Any], now: float) -> Sequence[DriverOutput]:
        if any(
            call_id == known for known, *_ in (*self._waiting, *([self._running] if self._running else []))
        ):
            return []  # the same command again: it ends once
        try:
            query = query_of(name, args)
        except ValueError as wrong:
            return [Complete(call_id, NotSent(str(wrong)))]
        if self._phase is not Phase.READY:
            return [Complete(call_id, NotSent("there is no session with the device"))]
        self._waiting.append((call_id, name, query))
        return self._idle(now)

    def _idle(self, now: float) -> list[DriverOutput]:
        if self._phase is not Phase.READY or self._talk.busy or not self._waiting:
            return super()._idle(now)
        call_id, name, query = self._waiting.popleft()
        self._running = (call_id, name, self._talk.foreign)
        return self._act(self._talk.begin(call_id, query, now), now)

    def _ended(self, call_id: str, outcome: Outcome, now: float) -> list[DriverOutput]:
        assert self._running is not None
        _, name, foreign = self._running
        self._running, self._poll_at = None, now + POLL_S
        if isinstance(outcome, Done):
            outcome = Done(_plain(name, outcome.answer, self._talk.foreign - foreign))
        return [Complete(call_id, outcome)]

    def _drop(self, reason: str, now: float) -> list[DriverOutput]:
        waiting, self._waiting = self._waiting, deque()
        return [*(Complete(c, NotSent(reason)) for c, *_ in waiting), *super()._drop(reason, now)]


def _plain_status(status: messages.Status) -> dict[str, Any]:
    return {**asdict(status), "formats": [f.name.lower() for f in status.formats]}


def _plain_last(last: messages.Last) -> dict[str, Any]:
    return {"level": f"{last.level:02X}", "seconds": last.seconds}


def _plain(name: str, answer: Mapping[str, Any], foreign: int) -> dict[str, Any]:
    """What a query found, for people and JSON; `foreign` answers came meanwhile."""
    if name == "status":
        return _plain_status(answer["message"])
    if name == "last":
        return _plain_last(answer["message"])
    return {**answer, "report": messages.text_of(answer["report"]), "foreign": foreign}


COMMANDS = (
    CommandSpec("status", "state of its calculation and its protocol version", reads=True),
    CommandSpec("last", "when it last calculated", reads=True),
    CommandSpec("results", "its last report", reads=True),
    CommandSpec("functions", "have it list its functions and components"),
    CommandSpec("component", "have it hash NAME with SALT (hex, or none)", args=("name", "salt")),
)
_READS: dict[str, Callable[[], queries.Query]] = {
    "status": queries.ask_status, "last": queries.ask_last, "results": queries.fetch,
}  # fmt: skip


def query_of(name: str, args: Mapping[str, Any]) -> queries.Query:
    """The query behind a command. Raises ValueError with a text for people."""
    known = next((c for c in COMMANDS if c.name == name), None)
    if known is None:
        raise ValueError(f"GAT has no command {name!r}: it knows {', '.join(c.name for c in COMMANDS)}")
    if set(args) != set(known.args):
        raise ValueError(f"{name} takes {', '.join(known.args) or 'no arguments'}")
    if name in _READS:
        return _READS[name]()
    if name == "functions":
        return queries.calculate(messages.FUNCTIONS)
    return queries.calculate(component(str(args["name"]), str(args["salt"])))


def component(name: str, salt: str) -> str:
    """The parameter that asks for one component's hash. Raises ValueError with a text for people."""
    if not (1 <= len(name) <= NAME_LIMIT and name.isprintable() and max(name) <= "\xff"):
        raise ValueError(f"a component's name has 1..{NAME_LIMIT} printable Latin-1 characters")
    if salt != "none" and not _SALT.fullmatch(salt):
        raise ValueError(f"a salt is up to 32 bytes in hex, or none, not {salt!r}")
    return "\t".join((messages.COMPONENT, name, messages.NO_SALT if salt == "none" else salt))


SPEC = DriverSpec(
    name="gat",
    role="verifier",
    games=frozenset(),
    baud=9600,
    polled=True,
    commands=COMMANDS,
    reader=Gat,
    controlled=GatControlled,
    decoder=GatDecoder,
    check=query_of,
)
