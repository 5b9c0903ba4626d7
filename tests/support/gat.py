"""A GAT device in memory: its programs, its line, and hashes worked out apart from it."""

from __future__ import annotations

import hashlib
from typing import Any

from simulators.models.verifier import Verifier
from simulators.wire.gat import GatDevice
from tests.support.line import Line

UI, CARDS = "Shuffler_UI_2.0.254", "Shuffler_CardRec & <5.0>"
PROGRAMS = {UI: bytes(range(256)) * 16, CARDS: b"card recognition" * 100}
SALT = "00112233445566778899aabbccddeeff00112233"


def frames_of(data: bytes) -> list[bytes]:
    """A piece of a simulated device's output by frames; what is none stays with the one before."""
    out, at = [], 0
    while at < len(data):
        size = data[at + 1] if data[at] >= 0x81 and at + 1 < len(data) else 1
        out.append(data[at : at + max(size, 1)])
        at += max(size, 1)
    return out


def hmac_sha1(salt: str, image: bytes) -> str:
    """RFC 2104 by hand."""
    key = bytes.fromhex(salt.removeprefix("0x")).ljust(64, b"\0")
    inner = hashlib.sha1(bytes(b ^ 0x36 for b in key) + image).digest()
    return hashlib.sha1(bytes(b ^ 0x5C for b in key) + inner).hexdigest().upper()


def gat_device(*, duration: float = 2.0, pickup: float = 0.0, **options: Any) -> GatDevice:
    return GatDevice(Verifier(PROGRAMS, duration=duration, pickup=pickup), **options)


def gat_line(device: GatDevice | None = None, **more: Any) -> Line:
    """The driver on its line, with its session."""
    return Line("gat", device or gat_device(), cut=frames_of, **more).up()
