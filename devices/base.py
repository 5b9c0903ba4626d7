"""What a driver is: a match table, commands, and the translation of bytes to device events.

A driver is pure: no clock, no thread, no I/O. `firmware_bridge.port` (or the deterministic world) pumps it
and acts on what it returns. Session rules may add events; they never remove or delay one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol, runtime_checkable

from devices.events import DeviceEvent, Sense
from firmware_bridge.link import Complete, Send

CARD_GAMES = frozenset({"baccarat", "blackjack", "three-card-poker", "mississippi-stud", "asia-poker"})
"""Games that are served by whatever tells or shuffles cards without knowing what is played with them."""
DriverOutput = Send | DeviceEvent | Complete


@dataclass(frozen=True, slots=True)
class Resume:
    """Where to go on after a restart: what the journal holds of this device.

    `n` is our counter of the last journaled event, `boot` the device's boot counter then, `seq` the
    device's own number of that event (None: nothing journaled yet), `serial` the device it all belongs to
    (None: whoever answers first).
    """

    n: int = 0
    boot: int | None = None
    seq: int | None = None
    serial: str | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """What a driver is made from. `random` draws first sequence numbers and nonces, never game data.

    `packets`: each `feed` is one whole transfer and each Send becomes one (USB); else bytes are a stream.
    """

    device: str
    random: Random
    resume: Resume = Resume()
    options: Mapping[str, Any] = field(default_factory=dict)
    packets: bool = False


@dataclass(slots=True)
class Counters:
    """What happened on the wire: frames with right check bytes, copies among them, answers to no question."""

    frames: int = 0
    repeats: int = 0
    unasked: int = 0
    retries: int = 0


class Maker:
    """Makes one device's events and counts them; `n` is the number of the last one."""

    __slots__ = ("device", "n")

    def __init__(self, setup: Setup) -> None:
        self.device = setup.device
        self.n = setup.resume.n

    def __call__(self, kind: type[DeviceEvent], now: float, **fields: Any) -> DeviceEvent:
        """One event; `fields` are those of its kind and the optional common ones."""
        self.n += 1
        return kind(device=self.device, n=self.n, mono=now, **fields)


class Driver(Protocol):
    """The read-only form (law 10). All times are monotonic seconds."""

    device: str
    counters: Counters

    def start(self, now: float) -> Sequence[DriverOutput]:
        """The handle was opened: begin a session."""

    def feed(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        """Bytes came; any split of a stream gives the same events."""

    def tick(self, now: float) -> Sequence[DriverOutput]:
        """Called when `deadline()` has passed, and harmless at any other time."""

    def lost(self, reason: str, now: float) -> Sequence[DriverOutput]:
        """The handle died: completes what was pending and emits LinkDown."""

    def ack(self, n: int, now: float) -> Sequence[DriverOutput]:
        """All events up to our counter `n` are journaled; nothing is acked on the wire."""

    def deadline(self) -> float | None:
        """When `tick` wants to be called next."""


@runtime_checkable
class HearsHost(Driver, Protocol):
    """A decoder that also understands what the host sent: a capture tells the two directions apart.

    Each direction is framed by itself, for their bytes cross on the wire; what a command and its answer
    mean for each other is the decoder's to know. Any other decoder is fed the device's bytes alone.
    """

    def feed_host(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        """Bytes that the host sent."""


class Controlled(Driver, Protocol):
    """The command form."""

    def command(self, call_id: str, name: str, args: Mapping[str, Any], now: float) -> Sequence[DriverOutput]:
        """Start one command; exactly one Complete(call_id, outcome) follows, now or later."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """One command for people and for `send`. `reads` commands are allowed without write permission.

    `makes_token`: its last argument is a token of the host's own, made when nobody gives one.
    """

    name: str
    help: str
    args: tuple[str, ...] = ()
    reads: bool = False
    moves_cards: bool = False
    makes_token: bool = False


@dataclass(frozen=True, slots=True)
class DriverSpec:
    """What the registry holds of a driver.

    `role` is shoe, shuffler, reader or verifier; `games` those it can serve; `polled` drivers must write
    even to read; `baud` is the line rate of `--format raw` and the default of a serial port, bit/s.
    `decoder` makes the pure form that `decode` feeds: a Driver that needs no answer from a device.
    `options` are the configuration keys it reads, each with a line for people (law 9).
    `check` raises ValueError with a text for people when a command's arguments cannot be right.
    `usb` are vendor and product ids of devices it fits, whether they come as USB or as serial ports.
    `senses`: what a shoe tells beside its cards; a table asks the dealer for the rest.
    `unfit` says why it serves no game, when it serves none. `identifies`: its LinkUp tells who is there.
    """

    name: str
    role: str
    games: frozenset[str]
    baud: int
    polled: bool
    commands: tuple[CommandSpec, ...]
    reader: Callable[[Setup], Driver]
    controlled: Callable[[Setup], Controlled]
    decoder: Callable[[Setup], Driver]
    options: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[str, Mapping[str, Any]], object] = lambda name, args: None  # noqa: ARG005 - any will do
    usb: frozenset[tuple[int, int]] = frozenset()
    senses: frozenset[Sense] = frozenset()
    unfit: str = ""
    identifies: bool = False

    def takes(self, command: str) -> bool:
        """Whether it has the command: a shoe that takes `start` is a continuous shuffler."""
        return any(spec.name == command for spec in self.commands)


class OptionError(ValueError):
    """A driver option has a value it cannot have: a configuration error."""


def choice(setup: Setup, name: str, allowed: tuple[str, ...]) -> str:
    """An option that is one of a few words, the first of them by default. Raises OptionError."""
    value = str(setup.options.get(name, allowed[0])).lower()
    if value not in allowed:
        raise OptionError(f"{name} is one of {', '.join(allowed)}, not {value!r}")
    return value
