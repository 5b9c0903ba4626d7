"""The groups of MCUmgr that firmware management needs, and what their answers must hold.

Zephyr documentation, "SMP Groups": OS management (0), image management (1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

ECHO, RESET, PARAMETERS = (0, 0), (0, 5), (0, 6)
STATE, UPLOAD = (1, 0), (1, 1)
IDENTITY = (64, 0)
"""Group 64 is ours (docs/protocols/managed.md); others refuse it."""

DEFAULT_BUFFER = 384
"""Bytes of one packet, header and all, that a device takes that does not tell (Zephyr's default)."""
LEAST_BUFFER = 96
"""A packet must have room for its keys and a few bytes of an image."""
NOT_SUPPORTED = 8

_GENERAL = (
    "ok", "unknown error", "no memory", "invalid value", "timed out", "no such entry", "bad state",
    "answer too long", "not supported", "corrupt", "busy", "access denied",
)  # fmt: skip
_IMAGE = (
    "ok", "unknown error", "flash layout unknown", "no image", "no records", "invalid record", "two hashes",
    "record of invalid size", "no such hash", "no free slot", "flash not opened", "flash not read",
    "flash not written", "flash not erased", "invalid slot", "no memory", "flash context set",
    "flash context not set", "no flash device", "invalid page", "invalid offset", "no length",
    "invalid length", "bad header", "invalid hash", "invalid flash address", "version not readable",
    "version not newer", "image already pending",
)  # fmt: skip
"""Errors by number, from MCUmgr's headers."""


class Nonsense(ValueError):
    """An answer that breaks the documentation."""


def meaning(body: Mapping[str, Any], group: int, rc: int) -> str:
    """The error of an answer in words. A bare `rc` is a general code, whatever group was asked."""
    table = _IMAGE if group == 1 and "err" in body else _GENERAL
    return table[rc] if rc < len(table) else f"error {rc}"


@dataclass(frozen=True, slots=True)
class Slot:
    """One image that a device holds. `hash` is lower-case hex, None where it is not told."""

    image: int
    slot: int
    version: str
    hash: str | None
    active: bool
    confirmed: bool
    pending: bool
    permanent: bool

    @property
    def flags(self) -> list[str]:
        return [name for name in ("active", "confirmed", "pending", "permanent") if getattr(self, name)]


def slots(body: Mapping[str, Any]) -> tuple[Slot, ...]:
    """The list of images. Raises Nonsense."""
    images = body.get("images")
    if not isinstance(images, list):
        raise Nonsense("the list of images is missing")
    return tuple(_slot(entry) for entry in images)


def _slot(entry: object) -> Slot:
    if not isinstance(entry, Mapping):
        raise Nonsense("an image is no map")
    number, image = entry.get("slot"), entry.get("image", 0)
    version, told = entry.get("version"), entry.get("hash")
    if not _is_uint(number) or not _is_uint(image) or not isinstance(version, str):
        raise Nonsense("an image without slot or version")
    if told is not None and not isinstance(told, bytes):
        raise Nonsense("a hash that is no bytes")
    flags = {name: entry.get(name, False) is True for name in ("active", "confirmed", "pending", "permanent")}
    return Slot(image, number, version, None if told is None else told.hex(), **flags)


def running(found: tuple[Slot, ...]) -> Slot | None:
    """The image that runs."""
    return next((slot for slot in found if slot.active and slot.image == 0), None)


def offset(body: Mapping[str, Any]) -> int:
    """How many bytes of an upload the device has. Raises Nonsense."""
    found = body.get("off")
    if not _is_uint(found):
        raise Nonsense("an upload's answer without an offset")
    return found


def buffer_size(body: Mapping[str, Any]) -> int:
    """The largest packet the device takes. Raises Nonsense."""
    found = body.get("buf_size")
    if not _is_uint(found) or found < LEAST_BUFFER:
        raise Nonsense("parameters without a usable buffer size")
    return found


def _is_uint(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
