"""What the payload of an Angel Eye II-EX telegram means (section 1.3 of its protocol page)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from devices.events import (
    RANKS,
    CardDrawn,
    CardReassigned,
    CutCard,
    DeviceEvent,
    FaultCleared,
    FaultRaised,
    GameResult,
    LockChanged,
    PresetChanged,
    SessionStarted,
    Standby,
)
from firmware_bridge.framing.angel_eye import DATA_LENGTH

_TARGETS = {0: "player", 1: "banker", 2: "burn", 4: "first_card", 5: "burn_count"}
_MODES = {0: "lock_mode", 1: "error_mode", 2: "setting_mode"}
_SUITS = {1: "D", 2: "C", 3: "S", 4: "H"}
_RANKS = dict(enumerate(RANKS, start=1))
_OUTCOMES = {1: "player", 2: "tie", 4: "banker", 7: "forced_quit"}

FAULTS = {
    1: "card_unreadable",
    2: "overdraw",
    3: "wrong_button",
    4: "reverse_run_at_exit",
    5: "reverse_run_in_middle",
    6: "card_code",
    7: "drawing_timeout",
}
NAKS = {
    "01": "line_error",
    "02": "bcc",
    "03": "no_etx",
    "11": "format_or_length",
    "12": "address",
    "13": "command",
    "14": "type",
    "21": "busy",
    "22": "writing",
    "FF": "other",
}


class BadPayload(ValueError):
    """The check bytes fit, the meaning does not; the text is the reason of `frame_rejected`."""


@dataclass(frozen=True, slots=True)
class Payload:
    event: type[DeviceEvent]
    fields: Mapping[str, Any] = field(default_factory=dict)
    diag: tuple[str, ...] = ()


def nak_name(code: str) -> str:
    return NAKS.get(code, "unknown")


def fault_name(code: int) -> str:
    return FAULTS.get(code, "unknown")


def parse(code: str, data: bytes) -> Payload:
    """The event a telegram stands for; a clear bit 7 is a diagnostic, not an error. Raises BadPayload."""
    if code not in DATA_LENGTH:
        raise BadPayload("unknown code")
    if len(data) != DATA_LENGTH[code]:
        raise BadPayload("bad length")
    if code == "M":
        return _preset(data)
    diag = () if all(byte & 0x80 for byte in data) else ("bit7_clear",)
    values = bytes(byte & 0x7F for byte in data)
    match code:
        case "S":
            return Payload(SessionStarted)
        case "P":
            return Payload(Standby)
        case "C":
            return Payload(CutCard)
        case "D" | "R":
            event = CardDrawn if code == "D" else CardReassigned
            return Payload(event, {**_place(values[0]), "card": _card(values[1])}, diag)
        case "d":
            return _outside_game(values, diag)
        case "G":
            return _result(values[0], diag)
        case "E":
            number = values[0] & 0x3F
            fields = {"code": str(number), "name": fault_name(number), "latched": bool(values[0] & 0x40)}
            return Payload(FaultRaised, fields, diag)
        case "e":
            return Payload(FaultCleared, {"code": str(values[0]), "name": fault_name(values[0])}, diag)
        case _:
            return Payload(LockChanged, {"locked": bool(values[0] & 1)}, diag)


def _place(value: int) -> dict[str, Any]:
    target, index = _TARGETS.get(value >> 4), value & 0x0F
    if target is None:
        raise BadPayload("bad target")
    low, high = (1, 3) if target in {"player", "banker"} else (0, 10)
    if not low <= index <= high:
        raise BadPayload("bad index")
    return {"position": target, "index": index}


def _card(value: int) -> str | None:
    """None when neither suit nor rank was read; a card with only one of them is no card."""
    if value == 0:
        return None
    suit, rank = _SUITS.get(value >> 4), _RANKS.get(value & 0x0F)
    if suit is None:
        raise BadPayload("bad suit")
    if rank is None:
        raise BadPayload("bad rank")
    return rank + suit


def _outside_game(values: bytes, diag: tuple[str, ...]) -> Payload:
    mode, low = _MODES.get(values[0] >> 4), values[0] & 0x0F
    if mode is None:
        raise BadPayload("bad mode")
    fields = {"card": _card(values[1]), "index": None if mode == "error_mode" else low, "in_game": False}
    also = (mode, f"error_{low}") if mode == "error_mode" else (mode,)
    return Payload(CardDrawn, fields, (*diag, *also))


def _result(value: int, diag: tuple[str, ...]) -> Payload:
    outcome = _OUTCOMES.get(value >> 4)
    if outcome is None:
        raise BadPayload("bad outcome")
    if value & 0x0C:
        diag = (*diag, "reserved_bits")
    fields = {"outcome": outcome, "player_pair": bool(value & 1), "banker_pair": bool(value & 2)}
    return Payload(GameResult, fields, diag)


def _preset(data: bytes) -> Payload:
    if not all(0x20 <= byte < 0x7F for byte in data):
        raise BadPayload("bad preset")
    text = data.decode("ascii")
    return Payload(PresetChanged, {"address": text[:2], "value": text[2:]})
