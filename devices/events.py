"""Typed device events: physical facts as a device reports them (contracts: "Device events").

The kind of an event is its class name in snake case. A card is a two-character text, rank
`A23456789TJQK` then suit `CDHS`; None means "not read".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar

RANKS = "A23456789TJQK"
SUITS = "CDHS"
DECK: tuple[str, ...] = tuple(rank + suit for suit in SUITS for rank in RANKS)
"""The 52 cards of a deck, suits in the order clubs, diamonds, hearts, spades, each from ace to king."""
JOKER = "XJ"
"""The card of no suit that some games add to a deck."""

RAW_LIMIT = 64
"""Bytes of `raw` that a run of garbage or text keeps."""


class Sense(StrEnum):
    """What a shoe may notice by itself beside cards. What it does not, the dealer's taps supply."""

    CUT_CARD = "cut_card"
    BACK = "back"
    EMPTY = "empty"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceEvent:
    """What every event carries. `n` counts this device's events from 1; `mono` is monotonic seconds."""

    kind: ClassVar[str] = ""
    registry: ClassVar[dict[str, type[DeviceEvent]]] = {}
    secret: ClassVar[tuple[str, ...]] = ()
    """Fields that name a card: masked together with `raw` wherever the card may not be seen (law 7)."""

    device: str
    n: int
    mono: float | None = None
    seq: int | str | None = None
    raw: bytes | None = None
    aligned: bool = True
    diag: tuple[str, ...] = ()
    token: str | None = None

    def __init_subclass__(cls) -> None:
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        DeviceEvent.registry[cls.kind] = cls

    def own_fields(self) -> dict[str, Any]:
        """The fields of this kind alone, without the common ones."""
        return {name: getattr(self, name) for name in _own_names(self.kind)}


@cache
def _own_names(kind: str) -> tuple[str, ...]:
    common = {f.name for f in fields(DeviceEvent)}
    return tuple(f.name for f in fields(DeviceEvent.registry[kind]) if f.name not in common)


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionStarted(DeviceEvent): ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Standby(DeviceEvent): ...


@dataclass(frozen=True, kw_only=True, slots=True)
class CutCard(DeviceEvent): ...


@dataclass(frozen=True, kw_only=True, slots=True)
class CardDrawn(DeviceEvent):
    """`position`: player, banker, burn, first_card, burn_count, "box N", dealer or None; `back`: colour."""

    secret: ClassVar[tuple[str, ...]] = ("card",)
    card: str | None
    position: str | None = None
    index: int | None = None
    in_game: bool = True
    face_up: bool = False
    back: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CardReassigned(DeviceEvent):
    secret: ClassVar[tuple[str, ...]] = ("card",)
    card: str | None
    position: str | None = None
    index: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class GameResult(DeviceEvent):
    """`outcome` is player, banker, tie or forced_quit."""

    outcome: str
    player_pair: bool = False
    banker_pair: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ShoeEmpty(DeviceEvent): ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Lid(DeviceEvent):
    open: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultRaised(DeviceEvent):
    code: str
    name: str
    latched: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultCleared(DeviceEvent):
    code: str
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LockChanged(DeviceEvent):
    locked: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class PresetChanged(DeviceEvent):
    address: str
    value: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Warning(DeviceEvent):  # noqa: A001 - the contract's event kind is `warning`
    """`code` is a word of the driver's, never a text of the device."""

    code: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandSeen(DeviceEvent):
    """A host command found in a capture."""

    command: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandDone(DeviceEvent): ...


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandRefused(DeviceEvent):
    code: str
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CycleStarted(DeviceEvent):
    """`cycle` is the device's hard cycle counter after the start; `token` the host's, in hex."""

    cycle: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CycleCompleted(DeviceEvent):
    """The shuffler's report: `composition` counts by card, `backs` counts by back colour, never an order."""

    cycle: int
    count: int
    mode: str
    composition: Mapping[str, int] = field(default_factory=dict)
    backs: Mapping[str, int] = field(default_factory=dict)
    unread: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CycleAborted(DeviceEvent):
    """A cycle that ended without completing: the shuffle is void (R-36b)."""

    cycle: int
    cause: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchReleased(DeviceEvent):
    """The cards were let out: `count` left the machine, `inside` stayed; `token` None when none was given."""

    count: int | None = None
    inside: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CardsReturned(DeviceEvent):
    """`count` used cards went back into a continuous shuffler, which holds `inside` cards then."""

    count: int
    inside: int


@dataclass(frozen=True, kw_only=True, slots=True)
class HoleCardChecked(DeviceEvent):
    """`result` is natural, not_natural or error; never the value."""

    result: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AuthenticationState(DeviceEvent):
    """Where a device says its signature calculation is; `results`: it has a report. Its word, no proof."""

    state: str
    results: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class LastAuthentication(DeviceEvent):
    """When a device says that it last calculated signatures: `seconds` ago, at `level` (hex)."""

    level: str
    seconds: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AuthenticationReported(DeviceEvent):
    """A device's whole report on its own programs, in `frames` pieces of `format` xml or text; no proof."""

    format: str
    frames: int
    report: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Door(DeviceEvent):
    open: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Jam(DeviceEvent):
    place: str
    attempt: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Rebooted(DeviceEvent):
    """The device's boot counter differs from the one we last journaled."""

    boot: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkUp(DeviceEvent):
    """A session is ready: who is there, its boot counter, its status and settings as read back just now.

    Bytes are hex text. `crc_ok`: the settings' check bytes fit the settings; None when there are none.
    """

    boot: int | None = None
    identity: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    crc_ok: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkDown(DeviceEvent):
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GapPossible(DeviceEvent):
    """`missing` events were lost for certain, or None when nobody can tell how many."""

    missing: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AlignmentRequired(DeviceEvent):
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Conflict(DeviceEvent):
    """Two telegrams that cannot both be true; both raw texts are kept, masked like a card."""

    secret: ClassVar[tuple[str, ...]] = ("other",)
    what: str
    other: bytes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FrameRejected(DeviceEvent):
    """A run of `bytes` bytes that is no valid frame; `raw` keeps the first 64 of them."""

    secret: ClassVar[tuple[str, ...]] = ()
    reason: str
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Chatter(DeviceEvent):
    """Free text between frames."""

    text: str


def carries_card(event: DeviceEvent) -> bool:
    """Whether any part of the event may name a card, so that it is masked while unseen (law 7).

    Whatever came from the wire as it is counts: a broken or unknown event, or a key that nobody knows in a
    well-known one, may show the card.
    """
    return bool(event.secret) or event.raw is not None or isinstance(event, Chatter)


def to_json(event: DeviceEvent, *, at: datetime | None, masked: bool) -> dict[str, Any]:
    """The event as the contract's JSON object; `masked` nulls card and raw where the event carries a card."""
    hide = masked and carries_card(event)
    own = event.own_fields()
    if hide:
        for name in (*event.secret, "text"):
            if name in own:
                own[name] = None
    raw = event.raw[:RAW_LIMIT] if event.raw and isinstance(event, FrameRejected | Chatter) else event.raw
    out: dict[str, Any] = {
        "kind": event.kind,
        "device": event.device,
        "n": event.n,
        "at": None if at is None else at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "raw": None if raw is None or hide else raw.hex(),
        "seq": event.seq,
    }
    for name, value in own.items():
        out[name] = value.hex() if isinstance(value, bytes) else _plain(value)
    if not event.aligned:
        out["aligned"] = False
    if event.diag:
        out["diag"] = list(event.diag)
    if event.token is not None:
        out["token"] = event.token
    return out


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return value
