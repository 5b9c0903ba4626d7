"""The host's side of a managed device: session, event ring, commands (docs/protocols/managed.md).

A session is echo with a nonce, identity, settings, status, then LinkUp; events follow. Reading never
consumes: the driver asks from the last event it told, and only after that one was acknowledged (journaled).
A device that answers none of an exchange's attempts is gone: LinkDown, and a new session after a back-off.
Numbers belong to one device: of another one (by serial number) LinkUp is told and no event is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any

from devices.base import Counters, DriverOutput, Setup
from devices.events import LinkDown, LinkUp, Rebooted
from devices.managed.dialect import CommandDef, Dialect
from devices.managed.fields import Body, Malformed, text
from devices.managed.messages import (
    ECHO,
    IDENTITY,
    READ_EVENTS,
    SETTINGS,
    Ring,
    check_identity,
    check_ring,
    check_settings,
    error_name,
)
from devices.managed.packets import framing, noise, rejected
from devices.managed.ring import IDLE_POLL, WENT_BACK, RingReader
from firmware_bridge import link, smp
from firmware_bridge.framing import smp_console
from firmware_bridge.frozen import value
from firmware_bridge.link import Complete, Done, NotSent, Refused, Send, Unknown

TIMEOUT = 0.5
"""Seconds for each attempt of an exchange, beyond what a parked read may take."""
ATTEMPTS = 3
"""Reads are never cached and writes are answered from the device's cache: a repeat is safe for both."""
BACKOFF = (0.5, 8.0)
"""Seconds from a failed session to the next: first and longest."""
SILENCE = 0.5
"""Seconds without a byte after which rejected bytes are told."""
RESTARTED = "the device restarted"
"""Reason of a LinkDown whose next session begins at once."""
RESTARTING = "the device restarts again and again before it tells one event: check its power supply"
SWAPPED = "another device answers"


class Phase(Enum):
    """Where a session stands."""

    CLOSED = auto()
    SESSION = auto()
    READY = auto()
    RESTING = auto()
    """A session failed; the handle is open and the next session begins at `_begin_at`."""


@value
class Exchange:
    """One question: `call` is its name here, `what` group and command, `parked` how long it may wait (s).

    `guarded`: never repeated before it is proved that the device has not restarted.
    """

    call: str
    op: smp.Op
    what: tuple[int, int]
    body: Body
    check: Callable[[Body], Any]
    parked: float = 0.0
    guarded: bool = False


@value
class _Asked:
    """An open exchange: how its answer is checked, and when it was first sent (s)."""

    key: tuple[int, int, int, int]
    check: Callable[[Body], Any]
    at: float


_ASKS = (Phase.SESSION, Phase.READY)
_ANSWERS = (smp.Op.READ_ANSWER, smp.Op.WRITE_ANSWER)
_STEPS = ("echo", "identity", "settings", "ring", "status")
_POLL = "poll"


class Managed:
    """The read-only form: it asks, and the one write it sends is the echo of the session."""

    echoes = 1
    """A session's echoes. One only: each takes a place in the device's answer cache from another host."""

    def __init__(self, setup: Setup, dialect: Dialect) -> None:
        self.device = setup.device
        self.counters = Counters()
        self._dialect = dialect
        self._random = setup.random
        self._event = dialect.maker(setup)
        self._acked = setup.resume.n
        self._ring = RingReader(setup, dialect, self._event, self.counters)
        self._serial = setup.resume.serial
        self._foreign = False  # the device of this session is not the one whose events we know
        self._proven = True  # an answer fitted its session since the last restart
        self._phase = Phase.CLOSED
        self._told_down = False
        self._backoff = BACKOFF[0]
        self._begin_at = 0.0
        self._framing = framing(setup)
        self._decoder = self._framing.decoder()
        self._settle_at: float | None = None
        self._sequence = self._random.randrange(256)
        self._open_session()

    def start(self, now: float) -> Sequence[DriverOutput]:
        self._decoder = self._framing.decoder()
        return self._begin(now)

    def feed(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        if self._phase is Phase.CLOSED:
            return []
        out: list[DriverOutput] = []
        self._babble = True
        for item in self._decoder.feed(data):
            if isinstance(item, smp_console.Packet):
                self._babble = False
                out += self._packet(item.data, now)
            else:
                out += noise([item], self._event, now)
        self._settle_at = now + SILENCE if self._decoder.garbage_pending else None
        return [*out, *self._pump(now)]

    def tick(self, now: float) -> Sequence[DriverOutput]:
        out: list[DriverOutput] = []
        if self._settle_at is not None and now >= self._settle_at:
            self._settle_at = None
            out += noise(self._decoder.settle(), self._event, now)
        if self._phase is Phase.RESTING and now >= self._begin_at:
            return [*out, *self._begin(now)]
        return [*out, *self._step(link.Tick(), now), *self._pump(now)]

    def lost(self, reason: str, now: float) -> Sequence[DriverOutput]:
        self._settle_at = None
        return [*noise(self._decoder.flush(), self._event, now), *self._drop(reason, now)]

    def ack(self, n: int, now: float) -> Sequence[DriverOutput]:
        self._acked = max(self._acked, n)
        return self._pump(now)

    def deadline(self) -> float | None:
        times = [self._link.deadline(), self._settle_at]
        if self._phase is Phase.RESTING:
            times.append(self._begin_at)
        if self._may_poll():
            times.append(self._ring.due)
        return min([t for t in times if t is not None], default=None)

    # The session

    def _begin(self, now: float) -> list[DriverOutput]:
        self._open_session()
        self._phase = Phase.SESSION
        return self._ask_echo(now)

    def _open_session(self) -> None:
        """What must not outlive a session. A random first sequence and nonce shut out old answers.

        Sessions of one host follow on: what the last one asked has no number of the next one's requests.
        """
        self._link = link.Link()
        self._asked: dict[str, _Asked] = {}
        self._sequence = (self._sequence + self._random.randrange(1, 64)) % 256
        self._nonce = f"{self._random.getrandbits(64):016x}"
        self._echoed = 0
        self._session: dict[str, dict[str, Any]] = {}
        self._wrong: str | None = None  # what the last answer broke
        self._babble = False  # something came that was no packet

    def _ask_echo(self, now: float) -> list[DriverOutput]:
        def check(body: Body) -> dict[str, Any]:
            if text(body, "r") != self._nonce:
                raise Malformed("echo of another nonce")
            return {}

        return self._ask(Exchange("echo", smp.Op.WRITE, ECHO, {"d": self._nonce}, check), now)

    def _advance(self, step: str, outcome: link.Outcome, now: float) -> list[DriverOutput]:
        """One step of the session ended: the next one, or LinkUp."""
        match outcome:
            case Done(answer):
                self._session[step] = dict(answer)
            case Refused(_, name) if step == "settings":
                self._session[step] = {"settings": {}, "crc_ok": None}
            case Refused(_, name):
                return self._fail(f"the device refused its {step} ({name})", now)
            case _:
                return self._fail(self._silent(outcome), now)
        if step == "echo":
            self._echoed += 1
            if self._echoed < self.echoes:
                return self._ask_echo(now)
            return self._ask(Exchange("identity", smp.Op.READ, IDENTITY, {}, check_identity), now)
        if step == "identity":
            found = self._session["identity"]
            if found["class"] != self._dialect.device_class:
                self._backoff = BACKOFF[1]
                return self._fail(
                    f"wrong device: expected a {self._dialect.device_class}, found the {found['class']} "
                    f"{found['product']} {found['serial']}; connect the right one or correct the port",
                    now,
                )
            self._foreign = self._serial not in {None, found["serial"]}
            return self._ask(Exchange("settings", smp.Op.READ, SETTINGS, {}, check_settings), now)
        if step == "settings" and self._ring.boot is None and not self._foreign:
            # Before the status: what happens between the two is in both, never in neither.
            body: dict[str, Any] = {"since": 1, "max": 1}
            return self._ask(Exchange("ring", smp.Op.READ, READ_EVENTS, body, _check_ring), now)
        if step in {"settings", "ring"} and self._dialect.status is not None:
            return self._ask(exchange("status", self._dialect.status, {}), now)
        return self._up(now)

    def _up(self, now: float) -> list[DriverOutput]:
        """Ready. A first session ever begins at the ring's end: what is older is not this table's history.

        The number before the first event that will be told goes with LinkUp, so that a restart resumes there.
        """
        identity, settings = self._session["identity"], self._session["settings"]
        boot, before = identity["boot"], self._ring.boot
        if not self._foreign:
            if before is None:
                ring: Ring = self._session["ring"]["ring"]
                if ring.boot != boot:
                    return self._restart(RESTARTED, now)
                self._ring.begin_at_end(ring)
            self._ring.met(boot)
            self._serial = identity["serial"]
        self._phase, self._told_down = Phase.READY, False
        self._ring.ready(now)
        out: list[DriverOutput] = [
            self._event(
                LinkUp,
                now,
                seq=None if self._foreign else self._ring.last,
                boot=boot,
                identity=identity,
                status=self._session.get("status", {}),
                settings=settings["settings"],
                crc_ok=settings["crc_ok"],
            )
        ]
        if not self._foreign and before not in {None, boot}:
            out.append(self._event(Rebooted, now, boot=boot))
        return out

    def _restart(self, reason: str, now: float) -> list[DriverOutput]:
        """Who answers is not whom the session is with: a new one at once, not twice without a proven one."""
        if not self._proven:
            return self._fail(RESTARTING if reason == RESTARTED else reason, now)
        self._proven = False
        return [*self._drop(reason, now), *self._begin(now)]

    def _prove(self) -> None:
        """An answer fits the session."""
        self._proven, self._backoff = True, BACKOFF[0]

    def _drop(self, reason: str, now: float) -> list[DriverOutput]:
        """End the session: what was open is Unknown, and the link is told down once."""
        self._phase = Phase.CLOSED
        out = self._step(link.Lost(reason), now)
        if not self._told_down:
            self._told_down = reason != RESTARTED  # what comes of the next session is news
            out.append(self._event(LinkDown, now, reason=reason))
        return out

    def _fail(self, reason: str, now: float) -> list[DriverOutput]:
        if self._phase not in _ASKS:
            return []
        out = self._drop(reason, now)
        self._phase = Phase.RESTING
        self._begin_at = now + self._backoff
        self._backoff = min(2 * self._backoff, BACKOFF[1])
        return out

    # Exchanges

    def _ask(self, exchange: Exchange, now: float) -> list[DriverOutput]:
        group, command = exchange.what
        message = smp.Message(exchange.op, group, self._sequence, command, exchange.body)
        self._sequence = (self._sequence + 1) % 256
        self._asked[exchange.call] = _Asked(message.key, exchange.check, now)
        data = self._framing.encode(smp.encode(message))
        timeout = TIMEOUT + exchange.parked
        submit = link.Submit(exchange.call, data, message.key, timeout, ATTEMPTS, guarded=exchange.guarded)
        return self._step(submit, now)

    def _packet(self, packet: bytes, now: float) -> list[DriverOutput]:
        message = smp.decode(packet)
        if isinstance(message, smp.Malformed):
            return [rejected(packet, message.reason, self._event, now)]
        self.counters.frames += 1
        key = message.key
        asked = next((a for a in self._asked.values() if a.key == key), None)
        if message.op not in _ANSWERS or asked is None:
            self.counters.unasked += 1
            return []
        failure = smp.failure(message)
        try:
            if failure is None:
                outcome: Done | Refused = Done(asked.check(message.body))
            elif failure.rc < 0:
                raise Malformed("error without a code")
            else:
                outcome = Refused(str(failure.rc), error_name(failure.group, failure.rc))
        except Malformed as wrong:
            # No answer: the exchange goes on to its next attempt when its time is up.
            self._wrong = str(wrong)
            return [rejected(packet, f"malformed answer: {wrong}", self._event, now)]
        self._wrong = None
        return self._step(link.Received(key, outcome), now)

    def _step(self, event: link.Input, now: float) -> list[DriverOutput]:
        self._link, outputs = link.step(self._link, event, now)
        out: list[DriverOutput] = []
        for output in sorted(outputs, key=_is_answered):
            match output:
                case Send():
                    self.counters.retries += isinstance(event, link.Tick | link.Again)
                    out.append(output)
                case link.Overdue():
                    out += self._overdue(now)
                case Complete(call, outcome):
                    out += self._ended(call, outcome, now)
                case _:
                    self.counters.unasked += 1
        return out

    def _overdue(self, now: float) -> list[DriverOutput]:
        """A guarded exchange had no answer; the read-only form has none."""
        raise NotImplementedError

    def _ended(self, call: str, outcome: link.Outcome, now: float) -> list[DriverOutput]:
        asked = self._asked.pop(call)
        if self._phase not in _ASKS:
            return []
        if call in _STEPS:
            return self._advance(call, outcome, now)
        match outcome:
            case Done(answer) if self._foreign:
                return self._watched(answer["serial"], now)
            case Done(answer):
                return self._told(answer["ring"], now, asked.at)
            case Refused(_, name):
                return self._fail(f"the device refused to tell its events ({name})", now)
            case _:
                forgot = self._ring.forgot(now) if self._wrong == WENT_BACK else []
                return [*forgot, *self._fail(self._silent(outcome), now)]

    def _silent(self, outcome: link.Outcome) -> str:
        if self._wrong is not None:
            return f"the device's answers make no sense: {self._wrong}"
        reason = outcome.reason if isinstance(outcome, Unknown | NotSent) else ""
        if self._babble:
            return (
                f"bytes come, and none of them is of the managed protocol ({reason}): check the driver's "
                "name and the line rate (baud)"
            )
        return f"the device is silent ({reason}): check its power, its cable, its port and its driver's name"

    # Events

    def _may_poll(self) -> bool:
        return self._phase is Phase.READY and _POLL not in self._asked and self._acked >= self._event.n

    def _pump(self, now: float) -> list[DriverOutput]:
        """Ask for events when it is time: never before the last event told was acknowledged."""
        if not self._may_poll() or now < self._ring.due:
            return []
        if self._foreign:
            return self._ask(Exchange(_POLL, smp.Op.READ, IDENTITY, {}, check_identity), now)
        body = self._ring.request(now)
        read = Exchange(_POLL, smp.Op.READ, READ_EVENTS, body, self._ring.check, self._ring.parked)
        return self._ask(read, now)

    def _watched(self, serial: str, now: float) -> list[DriverOutput]:
        """Another device than ours still answers, or somebody else does."""
        if serial != self._session["identity"]["serial"]:
            return self._restart(SWAPPED, now)
        self._prove()
        self._ring.due = now + IDLE_POLL
        return []

    def _told(self, ring: Ring, now: float, asked_at: float) -> list[DriverOutput]:
        if ring.boot != self._ring.boot:
            return self._restart(RESTARTED, now)
        self._prove()
        return [*self._ring.read(ring, now, asked_at)]


def exchange(call: str, wanted: CommandDef, body: Body) -> Exchange:
    return Exchange(call, wanted.op, (wanted.group, wanted.command), body, wanted.check)


def _check_ring(body: Body) -> dict[str, Any]:
    return {"ring": check_ring(body)}


def _is_answered(output: link.Output) -> bool:
    """What was given up comes first: an answer may begin a session, which knows no exchange of this one."""
    return not (isinstance(output, Complete) and isinstance(output.outcome, Unknown | NotSent))
