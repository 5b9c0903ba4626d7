"""The host's side of firmware management: a session with any SMP device, a job that outlives its restarts.

Pure: `firmware_bridge.port` pumps it like a driver. A job is a generator that asks, is answered, and says
when it needs the device back; it ends Done, Refused, NotSent or Unknown as every command does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from random import Random
from typing import Any

from firmware_bridge import link, smp
from firmware_bridge.firmware.messages import (
    DEFAULT_BUFFER,
    ECHO,
    IDENTITY,
    PARAMETERS,
    Nonsense,
    buffer_size,
    meaning,
)
from firmware_bridge.framing import Garbage, smp_console, smp_packets
from firmware_bridge.link import Complete, Done, NotSent, Outcome, Refused, Send, Unknown

TIMEOUT = 0.5
ATTEMPTS = 3
"""Of reads and of echo: a device answers those at once or is busy starting."""
BACKOFF = (0.5, 2.0)
"""Seconds from a greeting without an answer to the next one: first and longest."""
CACHED = 4
"""Answers of writes that a managed device keeps."""
CONSOLE_FRAME = 4
"""On a console line the length and the check of a packet share the device's buffer with it."""


@dataclass(frozen=True, slots=True)
class Session:
    """Who answers. `identity` is None for a device without our group 64; `room` is for a packet, bytes."""

    identity: Mapping[str, Any] | None
    room: int

    @property
    def serial(self) -> Any:
        return None if self.identity is None else self.identity.get("serial")

    @property
    def bootloader(self) -> bool:
        """Whether it says that its bootloader answers."""
        return self.identity is not None and self.identity.get("bootloader") is True


@dataclass(frozen=True, slots=True)
class Greeted:
    """A session stands."""

    session: Session


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` bytes are in the device."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Told:
    """What became of the job so far, as a sentence for people."""

    text: str


@dataclass(frozen=True, slots=True)
class Printed:
    """A line the device printed beside its frames, or bytes that were none; for people only."""

    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The one end of the job."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Ask:
    """One exchange. `check` makes what the job gets of a good answer; Nonsense counts as no answer."""

    op: smp.Op
    what: tuple[int, int]
    body: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = TIMEOUT
    attempts: int = ATTEMPTS
    check: Callable[[Mapping[str, Any]], Any] = dict


@dataclass(frozen=True, slots=True)
class Rejoin:
    """Greet the device anew, `after` s at the earliest, until one `fits` or `patience` s are over.

    `fits` tells why a session is not yet the awaited one, or None.
    """

    patience: float
    fits: Callable[[Session], str | None]
    after: float = BACKOFF[0]


@dataclass(frozen=True, slots=True)
class Say:
    """Hand something on to whoever watches."""

    what: Progress | Told


@dataclass(frozen=True, slots=True)
class Got:
    """What an Ask or a Rejoin came to: `value` when it went well, else why not."""

    value: Any = None
    failure: Refused | Unknown | None = None


Step = Ask | Rejoin | Say
Job = Generator[Step, Got, Outcome]
JobMaker = Callable[[Session], Job]


class Phase(Enum):
    CLOSED = auto()
    GREETING = auto()
    READY = auto()
    RESTING = auto()
    """Nobody answered, or not who was awaited; greeted again at `_greet_at`."""


@dataclass(slots=True)
class Counters:
    """`frames` are packets whose check bytes were right, `unasked` those that answered no question."""

    frames: int = 0
    unasked: int = 0
    retries: int = 0


class FirmwareHost:
    """Carries out one job, which begins with the first session. It outlives the handle.

    `packets` (one packet a transfer, as on USB) may be changed while the handle is closed. A job that
    `writes` begins each session with as many echoes as a device keeps answers of writes, so that none of
    an earlier host's is left.
    """

    def __init__(self, job: JobMaker, random: Random, *, packets: bool = False, writes: bool = False) -> None:
        self.counters = Counters()
        self.packets = packets
        self._echoes = CACHED if writes else 1
        self._random = random
        self._phase = Phase.CLOSED
        self._sequence = random.randrange(256)
        self._session: Session | None = None
        self._backoff = BACKOFF[0]
        self._greet_at = 0.0
        self._link = link.Link()
        self._open: tuple[Ask, tuple[int, int, int, int]] | None = None
        self._greeting: Generator[Ask, Got, Session] | None = None
        self._make: JobMaker | None = job
        self._job: Job | None = None
        self._rejoin: Rejoin | None = None
        self._rejoin_until = 0.0
        self._unfit = ""

    @property
    def away(self) -> bool:
        """Whether the job waits for the device to come back."""
        return self._rejoin is not None

    # What the port calls

    def start(self, now: float) -> Sequence[object]:
        self._framing = smp_packets if self.packets else smp_console
        self._decoder = self._framing.Decoder()
        return self._greet(now)

    def feed(self, data: bytes, now: float) -> Sequence[object]:
        out: list[object] = []
        for item in self._decoder.feed(data):
            if isinstance(item, smp_console.Packet):
                out += self._packet(item.data, now)
            elif isinstance(item, Garbage):
                out.append(Printed(f"({item.count} bytes that are no frame: {item.reason})"))
            else:
                out.append(Printed(item.data.decode("utf-8", "replace")))
        return out

    def tick(self, now: float) -> Sequence[object]:
        if self._rejoin is not None and now >= self._rejoin_until:
            return self._give_up(now)
        if self._phase is Phase.RESTING and now >= self._greet_at:
            return self._greet(now)
        return self._step(link.Tick(), now)

    def lost(self, reason: str, now: float) -> Sequence[object]:
        asked = self._phase is Phase.READY
        self._phase, self._session, self._greeting = Phase.CLOSED, None, None
        if asked:
            return self._step(link.Lost(reason), now)
        self._link, self._open = link.Link(), None  # a greeting is nobody's but ours
        return []

    def ack(self, n: int, now: float) -> Sequence[object]:
        del n, now
        return []

    def deadline(self) -> float | None:
        times = [self._link.deadline()]
        if self._phase is Phase.RESTING:
            times.append(self._greet_at)
        if self._rejoin is not None:
            times.append(self._rejoin_until)
        return min((t for t in times if t is not None), default=None)

    # The session: echo with a nonce, then who is there and how much it takes at once

    def _greet(self, now: float) -> list[object]:
        self._phase, self._session = Phase.GREETING, None
        self._link, self._open = link.Link(), None
        self._sequence = (self._sequence + self._random.randrange(1, 64)) % 256
        self._greeting = self._hello(f"{self._random.getrandbits(64):016x}")
        return self._ask(next(self._greeting), now)

    def _hello(self, nonce: str) -> Generator[Ask, Got, Session]:
        for _ in range(self._echoes):
            got = yield Ask(smp.Op.WRITE, ECHO, {"d": nonce}, check=_is(nonce))
            if isinstance(got.failure, Unknown):  # a refusal is an answer too: its sequence is ours
                raise ConnectionError(got.failure.reason)
        identity = yield Ask(smp.Op.READ, IDENTITY)
        if isinstance(identity.failure, Unknown):
            raise ConnectionError(identity.failure.reason)
        size = yield Ask(smp.Op.READ, PARAMETERS, check=buffer_size)
        if isinstance(size.failure, Unknown):
            raise ConnectionError(size.failure.reason)
        buffer = DEFAULT_BUFFER if size.value is None else size.value
        room = buffer if self.packets else buffer - CONSOLE_FRAME
        return Session(identity.value, min(room, smp_console.PACKET_LIMIT))

    def _hello_got(self, got: Got, now: float) -> list[object]:
        assert self._greeting is not None
        try:
            return self._ask(self._greeting.send(got), now)
        except StopIteration as ended:
            session: Session = ended.value
        except ConnectionError:
            self._unfit = ""
            return self._rest(now)
        self._greeting, self._phase, self._session = None, Phase.READY, session
        out: list[object] = [Greeted(session)]
        if self._make is not None:
            self._job, self._make = self._make(session), None
            return [*out, *self._go_on(None, now)]
        if self._rejoin is None:
            return out
        if (unfit := self._rejoin.fits(session)) is not None:
            self._unfit = unfit
            return [*out, *self._rest(now)]
        self._rejoin, self._backoff = None, BACKOFF[0]
        return [*out, *self._go_on(Got(session), now)]

    def _rest(self, now: float) -> list[object]:
        self._greeting, self._session, self._phase = None, None, Phase.RESTING
        self._greet_at = now + self._backoff
        self._backoff = min(2 * self._backoff, BACKOFF[1])
        return []

    # The job

    def _go_on(self, got: Got | None, now: float) -> list[object]:
        """Let the job take its next step; `got` is None at its first."""
        out: list[object] = []
        while self._job is not None:
            try:
                step = next(self._job) if got is None else self._job.send(got)
            except StopIteration as ended:
                self._job = None
                out.append(Ended(ended.value))
                break
            if isinstance(step, Say):
                out.append(step.what)
                got = Got()
            elif isinstance(step, Rejoin):
                self._await(step, now)
                break
            elif self._session is None:
                got = Got(failure=Unknown("the connection was lost"))
            else:
                out += self._ask(step, now)
                break
        return out

    def _await(self, step: Rejoin, now: float) -> None:
        self._rejoin, self._rejoin_until, self._unfit = step, now + step.patience, ""
        self._backoff, self._greet_at = BACKOFF[0], now + step.after
        if self._phase is not Phase.CLOSED:
            self._greeting, self._session, self._phase = None, None, Phase.RESTING

    def _give_up(self, now: float) -> list[object]:
        assert self._rejoin is not None
        patience, self._rejoin = self._rejoin.patience, None
        why = self._unfit or "it does not answer"
        text = f"the device was not there again within {patience:g} s: {why}"
        return self._go_on(Got(failure=Unknown(text)), now)

    # Exchanges

    def _ask(self, ask: Ask, now: float) -> list[object]:
        message = smp.Message(ask.op, ask.what[0], self._sequence, ask.what[1], ask.body)
        self._sequence = (self._sequence + 1) % 256
        self._open = ask, message.key
        data = self._framing.encode(smp.encode(message))
        return self._step(link.Submit("ask", data, message.key, ask.timeout, ask.attempts), now)

    def _packet(self, packet: bytes, now: float) -> list[object]:
        message = smp.decode(packet)
        if isinstance(message, smp.Malformed):
            return [Printed(f"(a packet that makes no sense: {message.reason})")]
        self.counters.frames += 1
        answers = message.op in {smp.Op.READ_ANSWER, smp.Op.WRITE_ANSWER}  # a line may echo what we send
        if not answers or self._open is None or self._open[1] != message.key:
            self.counters.unasked += 1
            return []
        failure = smp.failure(message)
        if failure is not None:
            name = meaning(message.body, failure.group, failure.rc)
            return self._step(link.Received(message.key, Refused(str(failure.rc), name)), now)
        try:
            value = self._open[0].check(message.body)
        except Nonsense as wrong:
            return [Printed(f"(an answer that makes no sense: {wrong})")]
        return self._step(link.Received(message.key, Done({"value": value})), now)

    def _step(self, event: link.Input, now: float) -> list[object]:
        self._link, outputs = link.step(self._link, event, now)
        out: list[object] = []
        for output in outputs:
            match output:
                case Send():
                    self.counters.retries += isinstance(event, link.Tick)
                    out.append(output)
                case Complete(outcome=Done(answer)):
                    out += self._answered(Got(answer["value"]), now)
                case Complete(outcome=Refused() | Unknown() as failure):
                    out += self._answered(Got(failure=failure), now)
                case Complete(outcome=NotSent(reason)):
                    out += self._answered(Got(failure=Unknown(reason)), now)
                case _:
                    self.counters.unasked += 1
        return out

    def _answered(self, got: Got, now: float) -> list[object]:
        self._open = None
        if self._phase is Phase.GREETING:
            return self._hello_got(got, now)
        return self._go_on(got, now)


def _is(nonce: str) -> Callable[[Mapping[str, Any]], str]:
    def check(body: Mapping[str, Any]) -> str:
        if body.get("r") != nonce:
            raise Nonsense("an echo of something else")
        return nonce

    return check
