"""What managed devices and hosts say: requests, checked answers, events (docs/protocols/managed.md).

A check raises Malformed for a body that breaks the page's CDDL; unknown keys pass, and go no further (law 7).
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import cbor2

from devices.base import CommandSpec, Maker, Setup
from devices.events import (
    RAW_LIMIT,
    Chatter,
    DeviceEvent,
    FaultCleared,
    FaultRaised,
    FrameRejected,
    GapPossible,
    Warning,  # noqa: A004 - the contract's event kind is `warning`
)
from firmware_bridge.framing import Garbage, smp_console, smp_packets
from firmware_bridge.smp import Op

OS, DEVICE, EVENTS, SHUFFLER, SHOE, READER = 0, 64, 65, 66, 67, 68
ECHO: Final = (OS, 0)
IDENTITY: Final = (DEVICE, 0)
SETTINGS: Final = (DEVICE, 1)
READ_EVENTS: Final = (EVENTS, 0)
TOKEN_BYTES = 16
UNKNOWN_EVENT, MALFORMED_EVENT, EVENT_WITHHELD = "unknown_event", "malformed_event", "event_withheld"
"""Codes of warnings: words of ours, never a device's (law 7)."""

_ERRORS = {
    1: "unknown command",
    2: "bad body",
    3: "wrong state",
    4: "busy",
    5: "token unknown or already used",
    6: "door or lid open",
    7: "jam",
    8: "settings invalid",
    9: "no cards",
}
_MCUMGR_ERRORS = {8: "not supported"}

Body = Mapping[str, Any]


class Malformed(ValueError):
    """An answer, event or argument that is not as the protocol page says; the text is the reason."""


def token_argument(value: Any) -> bytes:
    """A token argument of a command, bytes or hex text."""
    try:
        made = value if isinstance(value, bytes) else bytes.fromhex(str(value))
    except ValueError:
        made = b""
    if len(made) != TOKEN_BYTES:
        raise Malformed(f"a token is {TOKEN_BYTES} bytes in hex ({2 * TOKEN_BYTES} digits)")
    return made


def number_argument(value: Any) -> int:
    """A whole number from 0, given as such or as text."""
    if isinstance(value, bool) or not re.fullmatch("[0-9]{1,9}", str(value)):
        raise Malformed(f"{value!r} is no number from 0")
    return int(value)


@dataclass(frozen=True, slots=True)
class CommandDef:
    """One command: how it looks to people, on the wire, and what a right answer is.

    `argument` makes what goes over the wire of an argument, or raises Malformed.
    """

    spec: CommandSpec
    group: int
    command: int
    check: Callable[[Body], dict[str, Any]]
    argument: Callable[[Any], Any] = token_argument

    @property
    def op(self) -> Op:
        return Op.READ if self.spec.reads else Op.WRITE

    def body(self, args: Body) -> dict[str, Any]:
        """The request's body. Raises Malformed with a text for people."""
        if set(args) != set(self.spec.args):
            raise Malformed(f"{self.spec.name} takes {', '.join(self.spec.args) or 'no arguments'}")
        return {name: self.argument(value) for name, value in args.items()}


Translated = tuple[type[DeviceEvent], dict[str, Any]]


class Discreet(Maker):
    """Events without anything as it came over the wire: of this device even a stray byte may tell a card."""

    __slots__ = ()

    def __call__(self, kind: type[DeviceEvent], now: float, **fields: Any) -> DeviceEvent:
        kept = {name: "" if name == "text" else value for name, value in fields.items() if name != "raw"}
        return super().__call__(kind, now, **kept)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one class of device adds to the common protocol.

    `translate` gives the event for a ring entry of kind `k`, None for a kind it doesn't know, and raises
    Malformed. `status` is the command whose answer a session starts with, None where a device has none.
    `maker` makes its events.
    """

    device_class: str
    status: CommandDef | None
    commands: tuple[CommandDef, ...]
    translate: Callable[[str, Body], Translated | None]
    maker: type[Maker] = Maker

    def find(self, name: str) -> CommandDef:
        """The command of that name. Raises Malformed with a text for people."""
        found = next((c for c in self.commands if c.spec.name == name), None)
        if found is None:
            names = ", ".join(c.spec.name for c in self.commands)
            raise Malformed(f"a managed {self.device_class} has no command {name!r}: it knows {names}")
        return found

    def body(self, name: str, args: Body) -> dict[str, Any]:
        """The request's body of that command. Raises Malformed with a text for people."""
        return self.find(name).body(args)


@dataclass(frozen=True, slots=True)
class RingEntry:
    """One entry of the event ring as it came."""

    n: int
    kind: str
    body: Body
    raw: bytes
    """Its CBOR, in the deterministic form (RFC 8949, section 4.2)."""


@dataclass(frozen=True, slots=True)
class Ring:
    """The answer to a read of the event ring; entries in order of number."""

    boot: int
    oldest: int
    next: int
    entries: tuple[RingEntry, ...]


def error_name(group: int, rc: int) -> str:
    names = _MCUMGR_ERRORS if group == OS else _ERRORS
    return names.get(rc, "unknown error")


def uint(body: Body, key: str) -> int:
    value = body.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Malformed(f"{key} is no number")
    return value


def text(body: Body, key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str):
        raise Malformed(f"{key} is no text")
    return value


def flag(body: Body, key: str) -> bool:
    value = body.get(key)
    if not isinstance(value, bool):
        raise Malformed(f"{key} is neither true nor false")
    return value


def token(body: Body, key: str = "token") -> str | None:
    """A token in hex; None where the device has none."""
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, bytes) or len(value) != TOKEN_BYTES:
        raise Malformed(f"{key} is no token")
    return value.hex()


def octets(body: Body, key: str) -> str:
    """Bytes, in hex."""
    value = body.get(key)
    if not isinstance(value, bytes):
        raise Malformed(f"{key} is no byte string")
    return value.hex()


def counts(body: Body, key: str) -> dict[str, int]:
    """A map of text to number."""
    value = body.get(key)
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise Malformed(f"{key} is no map of counts")
    if any(isinstance(count, bool) or not isinstance(count, int) or count < 0 for count in value.values()):
        raise Malformed(f"{key} is no map of counts")  # a key is a device's text: it is not repeated here
    return dict(value)


def plain(value: Any) -> Any:
    """An answer for facts and JSON: bytes become hex text, keys become text."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value if isinstance(value, str | int | None) else str(value)
    return [plain(item) for item in value]


def deterministic(body: Body) -> bytes:
    """A map in the form of RFC 8949, section 4.2. Raises Malformed for what has none."""
    try:
        return cbor2.dumps(dict(body), canonical=True)
    except (cbor2.CBORError, ValueError, TypeError, OverflowError, RecursionError) as wrong:
        raise Malformed(f"a map that cannot be encoded again: {type(wrong).__name__}") from wrong


def known(body: Body, **checks: Callable[[Body, str], Any]) -> dict[str, Any]:
    """The documented keys alone, each checked; a key with a trailing underscore may be absent."""
    found = {}
    for name, check in checks.items():
        key = name.rstrip("_")
        if key in body or key == name:
            found[key] = check(body, key)
    return found


def check_identity(body: Body) -> dict[str, Any]:
    words = dict.fromkeys(("vendor", "product", "serial", "firmware", "class"), text)
    return known(body, **words, boot=uint, protocol=uint, hash_=octets)


def check_settings(body: Body) -> dict[str, Any]:
    """Settings, their check value, and whether it is CRC-32/ISO-HDLC of their deterministic encoding."""
    settings, crc = body.get("settings"), uint(body, "crc")
    if not isinstance(settings, Mapping):
        raise Malformed("settings are no map")
    right = binascii.crc32(deterministic(settings))
    documented = known(settings, decks_=uint, cards_per_deck_=uint, mode_=text, recognition_=flag)
    return {"settings": documented, "crc": crc, "crc_ok": crc == right}


def check_ring(body: Body) -> Ring:
    entries = body.get("events")
    if not isinstance(entries, list):
        raise Malformed("events are no list")
    found: dict[int, RingEntry] = {}
    for entry in entries:
        if not isinstance(entry, Mapping):
            raise Malformed("an event is no map")
        number = uint(entry, "n")
        made = RingEntry(number, text(entry, "k"), entry, deterministic(entry))
        if found.setdefault(number, made).raw != made.raw:
            raise Malformed(f"two different events with number {number}")
    ring = Ring(
        uint(body, "boot"), uint(body, "oldest"), uint(body, "next"), tuple(found[n] for n in sorted(found))
    )
    if any(not ring.oldest <= n < ring.next for n in found) or ring.oldest > ring.next:
        raise Malformed("event numbers outside the ring")
    return ring


def fault(body: Body) -> Translated:
    """The event kind `fault`, which any device may have."""
    code = body.get("code")
    if isinstance(code, bool) or not isinstance(code, int | str):
        raise Malformed("code is neither number nor text")
    kind = FaultRaised if flag(body, "on") else FaultCleared
    return kind, {"code": str(code), "name": text(body, "name")}


def translated(dialect: Dialect, entry: RingEntry, event: Maker, now: float) -> list[DeviceEvent]:
    """The device event of one ring entry; one that nobody understands is told as a warning.

    A broken event of a known kind may have been a card: it also counts as missing.
    """
    given: dict[str, Any] = {"seq": entry.n, "raw": entry.raw}
    try:
        found = dialect.translate(entry.kind, entry.body)
    except Malformed as wrong:
        gap = event(GapPossible, now, missing=1)
        return [gap, event(Warning, now, **given, code=MALFORMED_EVENT, diag=(str(wrong),))]
    kind, fields = found or (Warning, {"code": UNKNOWN_EVENT})
    return [event(kind, now, **given, **fields)]


@dataclass(frozen=True, slots=True)
class Framing:
    """How packets travel: `encode` one, and a fresh decoder for one session."""

    encode: Callable[[bytes], bytes]
    decoder: Callable[[], smp_console.Decoder | smp_packets.Decoder]


def framing(setup: Setup) -> Framing:
    """One transfer a packet on USB, console lines elsewhere (docs/protocols/managed.md, sections 2 and 3)."""
    if setup.packets:
        return Framing(smp_packets.encode, smp_packets.Decoder)
    return Framing(smp_console.encode, smp_console.Decoder)


def rejected(packet: bytes, reason: str, event: Maker, now: float) -> DeviceEvent:
    """A packet whose check bytes fit and whose content makes no sense."""
    return event(FrameRejected, now, raw=packet[:RAW_LIMIT], reason=reason, bytes=len(packet))


def noise(items: Iterable[smp_console.Frame | Garbage], event: Maker, now: float) -> Iterable[DeviceEvent]:
    """Text and rejected bytes between packets as events."""
    for item in items:
        if isinstance(item, Garbage):
            yield event(FrameRejected, now, raw=item.data, reason=item.reason, bytes=item.count)
        elif isinstance(item, smp_console.Text):
            yield event(Chatter, now, raw=item.data, text=item.data.decode("utf-8", "replace"))
