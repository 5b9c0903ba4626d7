"""The pump of one handle: transport + driver -> outputs, in one owner thread or stepped by hand.

It acts on Sends and hands everything else on. It opens again by itself after a loss (the link, never the
game state), and nothing that goes wrong in it is silent.
"""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from firmware_bridge.clock import Clock
from firmware_bridge.errors import BridgeError, LinkLost
from firmware_bridge.link import CLOSED_HERE, Complete, NotSent, Send, Unknown
from firmware_bridge.transport import Receiver

BACKOFF_FIRST = 0.1
BACKOFF_LAST = 1.0
"""Seconds between attempts to open, doubling: a device that comes back is found within 2 s."""
BARREN = 2
SETTLED_S = 1.0
"""After so many openings in a row that brought no byte, the next one is told only when a byte came or so long
after: a port that opens and dies again and again is told once."""
MUTE_BYTES = 256
"""So many bytes without one good frame are no noise before a session any more."""
MUTE = (
    "bytes come but none makes a good frame: check that the driver and the line rate (baud) are those of the "
    "device that is connected"
)
IDLE_S = 3600.0
"""How long a turn may wait when nothing is due."""


class Counts(Protocol):
    """What a driver counts: `frames` are those whose check bytes were right."""

    @property
    def frames(self) -> int: ...


class Pumped(Protocol):
    """What the port needs of a driver (`devices.base.Driver`); a controlled one has `command` too."""

    @property
    def counters(self) -> Counts: ...
    def start(self, now: float) -> Sequence[object]: ...
    def feed(self, data: bytes, now: float) -> Sequence[object]: ...
    def tick(self, now: float) -> Sequence[object]: ...
    def lost(self, reason: str, now: float) -> Sequence[object]: ...
    def ack(self, n: int, now: float) -> Sequence[object]: ...
    def deadline(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Opened:
    """The handle is open; `port` describes it for people."""

    port: str


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The handle could not be opened, or was lost: `kind` is the error class, `text` is for people.

    Told once, and again only when the text changes.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Crashed:
    """A bug in a driver or here: the handle was closed and will be opened again.

    `where` lists files and lines. The error's own text is left out: it may quote a card (law 7).
    """

    error: str
    where: str


@dataclass(frozen=True, slots=True)
class Health:
    """`last_frame` is the monotonic time of the last good frame: an open handle alone proves nothing (I-24).

    `hint` tells people what is likely wrong with a port that is open, `heard` that a byte came since it was
    opened.
    """

    state: str
    last_frame: float | None
    hint: str | None = None
    heard: bool = False


@dataclass(frozen=True, slots=True)
class _Command:
    call_id: str
    name: str
    args: Mapping[str, Any]


Deliver = Callable[[str, Sequence[object]], None]


class Port:
    """`deliver(name, outputs)` is called by whoever steps; it must not block and must not raise.

    Either call `start` and `stop`, or call `step` and at the end `close` from one thread. `command`, `ack`
    and `health` may be called from any thread.
    """

    def __init__(
        self, name: str, transport: Receiver, driver: Pumped, clock: Clock, deliver: Deliver
    ) -> None:
        self.name = name
        self._transport = transport
        self._driver = driver
        self._clock = clock
        self._deliver = deliver
        self._requests: deque[_Command | int] = deque()
        self._nudge = threading.Event()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._open = False
        self._retry_at = clock.now()
        self._backoff = BACKOFF_FIRST
        self._told: Unavailable | None = None
        self._calls: dict[str, None] = {}  # commands in the driver's hands, oldest first
        self._last_frame: float | None = None
        self._mute_bytes = 0  # since the last good frame
        self._last_error: str | None = None
        self._dead = False
        self._heard = False  # a byte came since the handle was opened
        self._barren = 0
        self._announce_at: float | None = None  # when the open handle is to be told

    # From any thread

    def command(self, call_id: str, name: str, args: Mapping[str, Any] | None = None) -> None:
        """Start a command; exactly one Complete(call_id, ...) is delivered for it, now or later."""
        self._request(_Command(call_id, name, args or {}))

    def ack(self, n: int) -> None:
        """All events up to the driver's counter `n` are journaled."""
        self._request(n)

    def health(self) -> Health:
        state = "dead" if self._dead else "open" if self._open else "waiting"
        hint = MUTE if self._open and self._mute_bytes >= MUTE_BYTES else None
        return Health(state, self._last_frame, hint, self._heard)

    def _request(self, request: _Command | int) -> None:
        self._requests.append(request)
        self._wake()

    def _wake(self) -> None:
        """A request waits for an opening that is under way; only the end of all breaks it off."""
        self._nudge.set()
        if self._stopping:
            self._transport.stop()
        elif self._open:
            self._transport.wake()

    # The owner thread

    def start(self) -> None:
        """Step in an owner thread until `stop`."""
        self._thread = threading.Thread(target=self._run, name=f"port {self.name}", daemon=True)
        self._thread.start()

    def stop_soon(self) -> None:
        """Tell the owner thread to end, and do not wait for it: `stop` does."""
        self._stopping = True
        self._wake()

    def stop(self) -> None:
        """End the owner thread and free the handle; what was under way ends Unknown or NotSent."""
        self.stop_soon()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        try:
            while not self._stopping:
                self.step(IDLE_S)
            self.close()
        except BaseException:
            self._dead = True
            self._transport.dispose()
            raise

    # One turn

    def step(self, timeout: float) -> bool:
        """One turn of at most `timeout` seconds; True when it did anything."""
        outputs: list[object] = []
        try:
            busy = self._turn(timeout, outputs)
        except Exception as error:  # noqa: BLE001 - a bug anywhere must be told and must not end the pump
            self._crashed(error, outputs)
            busy = True
        if outputs:
            self._deliver(self.name, outputs)
        return busy or bool(outputs)

    def deadline(self) -> float:
        """When the next step has something to do without any byte or request (monotonic seconds)."""
        if not self._open:
            return self._retry_at
        due = self._due()
        return self._clock.now() + IDLE_S if due is None else due

    def _due(self) -> float | None:
        times = (self._driver.deadline(), self._announce_at)
        return min((t for t in times if t is not None), default=None)

    def close(self) -> None:
        """The end: commands still open are completed, the transport is disposed of."""
        outputs: list[object] = []
        try:
            self._last_error = CLOSED_HERE
            self._lose(self._last_error, outputs)
            self._serve(self._clock.now(), outputs)
        except Exception as error:  # noqa: BLE001 - as in `step`
            self._crashed(error, outputs)
        finally:
            self._transport.dispose()
        if outputs:
            self._deliver(self.name, outputs)

    def _turn(self, timeout: float, outputs: list[object]) -> bool:
        if self._nudge.is_set():
            self._nudge.clear()
        now = self._clock.now()
        busy = bool(self._requests) and self._serve(now, outputs)
        if self._open and busy:  # what was asked for goes out first; the next turn reads
            self._tick(now, outputs)
            return True
        if self._open:
            return self._pump(timeout, now, outputs)
        if now >= self._retry_at:
            self._try_open(outputs)
            return True
        if not busy and timeout > 0 and not self._stopping:
            self._nudge.wait(min(timeout, self._retry_at - now))
        return busy

    def _pump(self, timeout: float, now: float, outputs: list[object]) -> bool:
        if timeout > 0 and (due := self._due()) is not None:
            timeout = max(0.0, min(timeout, due - now))
        try:
            data = self._transport.read(timeout)
        except BridgeError as error:
            self._fail(error, outputs)
            return True
        now = self._clock.now()
        if data:
            self._heard, self._barren = True, 0
        if self._announce_at is not None and (data or now >= self._announce_at):
            self._announce(outputs)
        if data:
            frames = self._driver.counters.frames
            self._act(self._driver.feed(data, now), outputs)
            if self._driver.counters.frames > frames:
                self._last_frame, self._mute_bytes = now, 0
            else:
                self._mute_bytes += len(data)
            self._backoff = BACKOFF_FIRST
        return self._tick(now, outputs) or bool(data)

    def _tick(self, now: float, outputs: list[object]) -> bool:
        due = self._driver.deadline()
        if not self._open or due is None or due > now:
            return False
        self._act(self._driver.tick(now), outputs)
        return True

    def _serve(self, now: float, outputs: list[object]) -> bool:
        """Hand what other threads asked for to the driver."""
        served = False
        while self._requests:
            request = self._requests.popleft()
            served = True
            if isinstance(request, int):
                self._act(self._driver.ack(request, now), outputs)
                continue
            command = getattr(self._driver, "command", None)
            if not self._open:
                why = self._last_error or "it was not opened yet"
                outputs.append(Complete(request.call_id, NotSent(f"{self.name} is not connected: {why}")))
            elif command is None:
                outputs.append(Complete(request.call_id, NotSent(f"{self.name} is opened for reading only")))
            else:
                self._calls[request.call_id] = None
                self._act(command(request.call_id, request.name, request.args, now), outputs)
        return served

    def _act(self, produced: Sequence[object], outputs: list[object]) -> None:
        """Write the Sends, keep the rest in order. After a failed write the other Sends count as sent."""
        broken: BridgeError | None = None
        for item in produced:
            if not isinstance(item, Send):
                if isinstance(item, Complete):
                    self._calls.pop(item.call_id, None)
                outputs.append(item)
            elif broken is None and self._open:
                try:
                    self._transport.write(item.data)  # type: ignore[attr-defined]  # none on a receive-only one: told as Crashed
                except BridgeError as error:
                    broken = error
        if broken is not None:
            self._fail(broken, outputs)

    def _try_open(self, outputs: list[object]) -> None:
        try:
            self._transport.open()
        except BridgeError as error:
            if not self._stopping:
                self._unavailable(error, outputs)
            return
        self._open, self._heard = True, False
        self._mute_bytes = 0
        if self._barren < BARREN:
            self._announce(outputs)
        else:
            self._announce_at = self._clock.now() + SETTLED_S
        self._act(self._driver.start(self._clock.now()), outputs)

    def _announce(self, outputs: list[object]) -> None:
        self._announce_at = self._told = self._last_error = None
        outputs.append(Opened(self._transport.describe()))

    def _fail(self, error: BridgeError, outputs: list[object]) -> None:
        """The handle is of no use any more."""
        self._unavailable(error, outputs)
        self._lose(str(error), outputs)

    def _lose(self, reason: str, outputs: list[object]) -> None:
        """Close, and let the driver end what was open."""
        was_open, self._open = self._open, False
        self._barren += was_open and not self._heard
        self._announce_at = None
        self._transport.close()
        if was_open:
            self._act(self._driver.lost(reason, self._clock.now()), outputs)
        self._abandon(reason, outputs)

    def _abandon(self, reason: str, outputs: list[object]) -> None:
        """Whatever a driver forgot to complete ends here: one end for each command."""
        outputs += [Complete(call_id, Unknown(reason)) for call_id in self._calls]
        self._calls.clear()

    def _unavailable(self, error: BridgeError, outputs: list[object]) -> None:
        state = Unavailable(type(error).__name__, str(error))
        self._last_error = state.text
        if state != self._told:
            self._told = state
            outputs.append(state)
        self._retry_at = self._clock.now() + self._backoff
        self._backoff = min(self._backoff * 2, BACKOFF_LAST)

    def _crashed(self, error: Exception, outputs: list[object]) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        where = " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
        outputs.append(Crashed(type(error).__name__, where))
        name = f"a fault in our own program ({type(error).__name__}) closed {self.name}"
        self._unavailable(LinkLost(name), outputs)
        try:
            self._lose(name, outputs)
        except Exception as again:  # noqa: BLE001 - the driver fails in `lost` too: its commands still end
            outputs.append(Crashed(type(again).__name__, "while closing"))
            self._abandon(name, outputs)


def stop_all(ports: Iterable[Port]) -> None:
    """Stop several at the same time, so that it takes as long as the slowest."""
    ports = list(ports)
    for port in ports:
        port.stop_soon()
    for port in ports:
        port.stop()
