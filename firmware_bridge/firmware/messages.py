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
"""Bytes of one packet, header and all, for a device that does not tell (Zephyr's default)."""
NOT_SUPPORTED = 8
"""The general error that a device answers for a group or command that it does not have."""

_GENERAL = (
    "ok", "unknown error", "no memory", "invalid value", "timed out", "no such entry",
    "not in this state, perhaps an image waits for a restart or for its confirmation", "answer too long",
    "not supported", "corrupt", "busy", "access denied", "protocol too old", "protocol too new",
)  # fmt: skip
_IMAGE = (
    "ok", "unknown error", "flash layout unknown", "no image", "no records", "invalid record", "two hashes",
    "record of invalid size", "no such hash",
    "no free slot, perhaps an image waits for a restart or for its confirmation", "flash not opened",
    "flash not read", "flash not written", "flash not erased", "invalid slot", "no memory",
    "flash context set", "flash context not set", "no flash device", "invalid page", "no offset",
    "no length", "image header cut off", "no image header", "invalid hash",
    "image made for another flash address", "version not readable", "version not newer",
    "an image waits for a restart or for its confirmation", "invalid vector table", "image too large",
    "more data than announced", "confirmation denied", "a test of what runs",
)  # fmt: skip
"""Errors by number, from MCUmgr's headers."""


class Nonsense(ValueError):
    """An answer that breaks the documentation."""


def meaning(body: Mapping[str, Any], group: int, rc: int) -> str:
    """The error of an answer in words. A bare `rc` is a general code, whatever group was asked."""
    table = _IMAGE if group == 1 and "err" in body else _GENERAL
    return table[rc] if 0 <= rc < len(table) else f"error {rc}"


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

    def __str__(self) -> str:
        return self.version if self.hash is None else f"{self.version} ({self.hash})"


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
    """The image that runs; None in a bootloader."""
    return next((slot for slot in found if slot.active and slot.image == 0), None)


def offset(body: Mapping[str, Any]) -> int:
    """How many bytes of an upload the device has. Raises Nonsense."""
    found = body.get("off")
    if not _is_uint(found):
        raise Nonsense("an upload's answer without an offset")
    return found


def buffer_size(body: Mapping[str, Any]) -> int:
    """The largest packet the device says it takes, or the default where it says nothing that makes sense."""
    found = body.get("buf_size")
    return found if _is_uint(found) else DEFAULT_BUFFER


def _is_uint(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
