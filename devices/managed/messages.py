"""What every managed device is asked and how it answers (docs/protocols/managed.md, sections 1 and 4).

Of an answer the documented keys alone go further; others pass and end here (law 7).
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any, Final

from devices.managed.fields import Body, Malformed, deterministic, flag, known, octets, text, uint
from firmware_bridge.frozen import value

OS, DEVICE, EVENTS, SHUFFLER, SHOE, READER = 0, 64, 65, 66, 67, 68
ECHO: Final = (OS, 0)
IDENTITY: Final = (DEVICE, 0)
SETTINGS: Final = (DEVICE, 1)
READ_EVENTS: Final = (EVENTS, 0)

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


@value
class RingEntry:
    """One entry of the event ring as it came."""

    n: int
    kind: str
    body: Body
    raw: bytes
    """Its CBOR, in the deterministic form (RFC 8949, section 4.2)."""


@value
class Ring:
    """The answer to a read of the event ring; entries in order of number."""

    boot: int
    oldest: int
    next: int
    entries: tuple[RingEntry, ...]


def error_name(group: int, rc: int) -> str:
    names = _MCUMGR_ERRORS if group == OS else _ERRORS
    return names.get(rc, "unknown error")


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
        if not isinstance(entry, dict):
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
