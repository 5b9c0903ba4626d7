"""The host's side of a managed device: session, event ring, commands (docs/protocols/managed.md).

A session is echo with a nonce, identity, settings, status, then LinkUp; events follow. Reading never
consumes: the driver asks from the last event it told, and only after that one was acknowledged (journaled).
A device that answers none of an exchange's attempts is gone: LinkDown, and a new session after a back-off.
Numbers belong to one device: of another one (by serial number) LinkUp is told and no event is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from devices.base import Counters, DriverOutput, OptionError, Setup
from devices.events import (
    DeviceEvent,
    GapPossible,
    LinkDown,
    LinkUp,
    Rebooted,
    Warning,  # noqa: A004 - the contract's event kind is `warning`
)
from devices.managed_messages import (
    ECHO,
    EVENT_WITHHELD,
    IDENTITY,
    READ_EVENTS,
    SETTINGS,
    Body,
    CommandDef,
    Dialect,
    Malformed,
    Ring,
    check_identity,
    check_ring,
    check_settings,
    error_name,
    framing,
    noise,
    rejected,
    text,
    translated,
)
from firmware_bridge import link, smp
from firmware_bridge.framing import Garbage, smp_console
from firmware_bridge.link import Complete, Done, NotSent, Refused, Send, Unknown

TIMEOUT = 0.5
"""Seconds for each attempt of an exchange, beyond what a parked read may take."""
ATTEMPTS = 3
"""Reads are never cached and writes are answered from the device's cache: a repeat is safe for both."""
PLAY_POLL, IDLE_POLL = 0.02, 0.5
"""Seconds between reads of the ring of a device that cannot wait."""
IDLE_WAIT = 500
"""Milliseconds a read of the ring is parked when nothing happens at the table."""
PLAY = 30.0
"""Seconds after an event or a command for which the device counts as in play."""
BACKOFF = (0.5, 8.0)
"""Seconds from a failed session to the next: first and longest."""
SILENCE = 0.5
"""Seconds without a byte after which rejected bytes are told."""
RESTARTED = "the device restarted"
"""Reason of a LinkDown whose next session begins at once."""
RESTARTING = "the device restarts again and again before it tells one event: check its power supply"
SWAPPED = "another device answers"
WENT_BACK = "event numbers went back without a restart: restart the device"
BOOTS = 8
"""How many earlier boots' event numbers are remembered."""
OPTIONS = {"wait_ms": "milliseconds a read of the event ring may be parked in play, 0..1000 (default 200)"}


class Phase(Enum):
    """Where a session stands."""

    CLOSED = auto()
    SESSION = auto()
    READY = auto()
    RESTING = auto()
    """A session failed; the handle is open and the next session begins at `_begin_at`."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """An open exchange: how its answer is checked, and when it was first sent (s)."""

    key: tuple[int, int, int, int]
    check: Callable[[Body], Any]
    at: float


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
        self._wait_ms = _wait_option(setup)
        self._event = dialect.maker(setup)
        self._acked = setup.resume.n
        self._boot = setup.resume.boot
        self._since = 1 if setup.resume.seq is None else setup.resume.seq + 1
        self._serial = setup.resume.serial
        self._foreign = False  # the device of this session is not the one whose events we know
        self._went_back = False  # told once a start of the device
        self._earlier: dict[int, int] = {}  # `_since` of boots before this one
        self._proven = True  # an answer fitted its session since the last restart
        self._phase = Phase.CLOSED
        self._told_down = False
        self._backoff = BACKOFF[0]
        self._begin_at = 0.0
        self._framing = framing(setup)
        self._decoder = self._framing.decoder()
        self._settle_at: float | None = None
        self._play_until = 0.0
        self._sequence = self._random.randrange(256)
        self._open_session(0.0)

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
                out += self._noise([item], now)
        self._settle_at = now + SILENCE if self._decoder.garbage_pending else None
        return [*out, *self._pump(now)]

    def tick(self, now: float) -> Sequence[DriverOutput]:
        out: list[DriverOutput] = []
        if self._settle_at is not None and now >= self._settle_at:
            self._settle_at = None
            out += self._noise(self._decoder.settle(), now)
        if self._phase is Phase.RESTING and now >= self._begin_at:
            return [*out, *self._begin(now)]
        return [*out, *self._step(link.Tick(), now), *self._pump(now)]

    def lost(self, reason: str, now: float) -> Sequence[DriverOutput]:
        self._settle_at = None
        return [*self._noise(self._decoder.flush(), now), *self._drop(reason, now)]

    def ack(self, n: int, now: float) -> Sequence[DriverOutput]:
        self._acked = max(self._acked, n)
        return self._pump(now)

    def deadline(self) -> float | None:
        times = [self._link.deadline(), self._settle_at]
        if self._phase is Phase.RESTING:
            times.append(self._begin_at)
        if self._may_poll():
            times.append(self._poll_at)
        return min([t for t in times if t is not None], default=None)

    # The session

    def _begin(self, now: float) -> list[DriverOutput]:
        self._open_session(now)
        self._phase = Phase.SESSION
        return self._ask_echo(now)

    def _open_session(self, now: float) -> None:
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
        self._withheld = 0  # answers in a row without the event that is there
        self._waits = self._wait_ms > 0
        self._parked_s = 0.0
        self._poll_at = now

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
        if step == "settings" and self._boot is None and not self._foreign:
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
        boot = identity["boot"]
        before = self._boot
        if self._foreign:
            boot = before
        elif before is None:
            ring: Ring = self._session["ring"]["ring"]
            if ring.boot != boot:
                return self._restart(RESTARTED, now)
            self._since = ring.next
        elif before != boot:
            self._went_back = False
            self._earlier[before] = self._since
            self._since = self._earlier.pop(boot, 1)
            while len(self._earlier) > BOOTS:
                del self._earlier[next(iter(self._earlier))]
        self._phase, self._told_down = Phase.READY, False
        self._poll_at, self._play_until = now, now + PLAY
        out: list[DriverOutput] = [
            self._event(
                LinkUp,
                now,
                seq=None if self._foreign else self._since - 1,
                boot=identity["boot"],
                identity=identity,
                status=self._session.get("status", {}),
                settings=settings["settings"],
                crc_ok=settings["crc_ok"],
            )
        ]
        if self._foreign:
            return out
        if before not in {None, boot}:
            out.append(self._event(Rebooted, now, boot=boot))
        self._boot, self._serial = boot, identity["serial"]
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
        if self._phase not in {Phase.SESSION, Phase.READY}:
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
            return [self._rejected(packet, message.reason, now)]
        self.counters.frames += 1
        asked = next((a for a in self._asked.values() if a.key == message.key), None)
        if message.op not in {smp.Op.READ_ANSWER, smp.Op.WRITE_ANSWER} or asked is None:
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
            return [self._rejected(packet, f"malformed answer: {wrong}", now)]
        self._wrong = None
        return self._step(link.Received(message.key, outcome), now)

    def _step(self, event: link.Input, now: float) -> list[DriverOutput]:
        self._link, outputs = link.step(self._link, event, now)
        out: list[DriverOutput] = []
        for output in outputs:
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
        if self._phase not in {Phase.SESSION, Phase.READY}:
            return []
        if call in _STEPS:
            return self._advance(call, outcome, now)
        match outcome:
            case Done(answer) if self._foreign:
                return self._watched(answer["serial"], now)
            case Done(answer):
                return self._ring(answer["ring"], now, asked.at)
            case Refused(_, name):
                return self._fail(f"the device refused to tell its events ({name})", now)
            case _:
                return [*self._forgot(now), *self._fail(self._silent(outcome), now)]

    def _forgot(self, now: float) -> list[DriverOutput]:
        """It forgot its numbers: what it tells once they are past ours is not all that happened."""
        if self._wrong != WENT_BACK or self._went_back:
            return []
        self._went_back = True
        return [self._event(GapPossible, now, missing=None)]

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
        if not self._may_poll() or now < self._poll_at:
            return []
        if self._foreign:
            return self._ask(Exchange(_POLL, smp.Op.READ, IDENTITY, {}, check_identity), now)
        body: dict[str, Any] = {"since": self._since}
        self._parked_s = 0.0
        if self._waits:
            body["wait"] = self._wait_ms if now < self._play_until else max(self._wait_ms, IDLE_WAIT)
            self._parked_s = body["wait"] / 1000
        return self._ask(
            Exchange(_POLL, smp.Op.READ, READ_EVENTS, body, self._check_poll, self._parked_s), now
        )

    def _check_poll(self, body: Body) -> dict[str, Any]:
        ring = check_ring(body)
        if ring.boot == self._boot and ring.next < self._since:
            raise Malformed(WENT_BACK)  # what was told is never told again
        return {"ring": ring}

    def _watched(self, serial: str, now: float) -> list[DriverOutput]:
        """Another device than ours still answers, or somebody else does."""
        if serial != self._session["identity"]["serial"]:
            return self._restart(SWAPPED, now)
        self._prove()
        self._poll_at = now + IDLE_POLL
        return []

    def _ring(self, ring: Ring, now: float, asked_at: float) -> list[DriverOutput]:
        if ring.boot != self._boot:
            return self._restart(RESTARTED, now)
        self._prove()
        out: list[DriverOutput] = []
        entries = [entry for entry in ring.entries if entry.n >= self._since]
        self.counters.repeats += len(ring.entries) - len(entries)
        if not entries and ring.oldest <= self._since < ring.next:
            return self._not_handed_out(now)
        self._withheld = 0
        first = entries[0].n if entries else ring.oldest
        if first > self._since:
            out.append(self._event(GapPossible, now, missing=first - self._since))
            self._since = first
        for entry in entries:
            if entry.n > self._since:
                out.append(self._event(GapPossible, now, missing=entry.n - self._since))
            out += translated(self._dialect, entry, self._event, now)
            self._since = entry.n + 1
        if out:
            self._play_until = now + PLAY
            self._poll_at = now
        elif self._waits and now - asked_at >= self._parked_s / 2:
            self._poll_at = now
        else:
            self._waits = False
            self._poll_at = now + (PLAY_POLL if now < self._play_until else IDLE_POLL)
        return out

    def _not_handed_out(self, now: float) -> list[DriverOutput]:
        """There is an event and the device does not tell it: ask again, then count it as lost and go on."""
        self._withheld += 1
        self._poll_at = now + IDLE_POLL
        if self._withheld < ATTEMPTS:
            return []
        self._withheld = 0
        lost = self._since
        self._since += 1
        return [
            self._event(GapPossible, now, missing=1),
            self._event(Warning, now, seq=lost, code=EVENT_WITHHELD),
        ]

    def _noise(self, items: Iterable[smp_console.Frame | Garbage], now: float) -> list[DriverOutput]:
        return [*noise(items, self._event, now)]

    def _rejected(self, packet: bytes, reason: str, now: float) -> DeviceEvent:
        return rejected(packet, reason, self._event, now)


def exchange(call: str, wanted: CommandDef, body: Body) -> Exchange:
    return Exchange(call, wanted.op, (wanted.group, wanted.command), body, wanted.check)


def _check_ring(body: Body) -> dict[str, Any]:
    return {"ring": check_ring(body)}


def _wait_option(setup: Setup) -> int:
    value = setup.options.get("wait_ms", 200)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1000:
        raise OptionError(f"wait_ms is a number from 0 to 1000, not {value!r}")
    return value
