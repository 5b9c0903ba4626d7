"""Firmware images in a device's flash, and the bootloader that chooses (MCUboot's swap with test).

Two slots: 0 runs, 1 takes uploads. A pending image is tried once; unless it is confirmed, the next start goes
back to the old one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import sha256

from simulators.models.machine import Traps

MAGIC = 0x96F3B83D
HEADER, TLV_INFO, PROTECTED_INFO, SHA256_TLV, PRODUCT_TLV = 32, 0x6907, 0x6908, 0x10, 0xA0


def build(version: str, product: str | None, body: bytes = b"") -> bytes:
    """An image file as a maker would sign it, without a signature."""
    major, minor, revision = (int(part) for part in version.split("."))
    protected = b""
    if product is not None:
        name = product.encode()
        entry = struct.pack("<HH", PRODUCT_TLV, len(name)) + name
        protected = struct.pack("<HH", PROTECTED_INFO, 4 + len(entry)) + entry
    body = body or f"{product} {version}".encode() * 8
    head = struct.pack(
        "<IIHHIIBBHII", MAGIC, 0, HEADER, len(protected), len(body), 0, major, minor, revision, 0, 0
    )
    covered = head + body + protected
    digest = sha256(covered).digest()
    return covered + struct.pack("<HHHH", TLV_INFO, 4 + 4 + len(digest), SHA256_TLV, len(digest)) + digest


class Spoilt(ValueError):
    """Bytes that no bootloader would start."""


@dataclass(slots=True)
class Slot:
    data: bytes
    version: str
    hash: bytes
    product: str | None
    confirmed: bool = False
    pending: bool = False
    permanent: bool = False


def parse(data: bytes) -> Slot:
    """What the bootloader sees of an image. Raises Spoilt."""
    try:
        magic, _, head, protected, size, _, *version, _, _ = struct.unpack_from("<IIHHIIBBHII", data)
        end = head + size + protected
        info, _, kind, length = struct.unpack_from("<HHHH", data, end)
        digest = data[end + 8 : end + 8 + length]
    except struct.error as error:
        raise Spoilt("cut off") from error
    if (magic, info, kind) != (MAGIC, TLV_INFO, SHA256_TLV) or sha256(data[:end]).digest() != digest:
        raise Spoilt("wrong hash")
    product = data[head + size + 8 : end].decode() if protected else None
    return Slot(data, ".".join(map(str, version)), digest, product)


class Flash:
    """Traps: `keep_old` (the swap is said and not done), `spoil` (a bit of the upload turns over)."""

    def __init__(self, image: bytes, *, erase_s: float = 0.0) -> None:
        self.running = parse(image)
        self.running.confirmed = True
        self.other: Slot | None = None
        self.erase_s = erase_s
        self.erased = 0
        self.traps = Traps()
        self._upload = bytearray()
        self._length = 0
        self._session: bytes | None = None

    @property
    def slots(self) -> list[tuple[int, Slot]]:
        return [(0, self.running), *([] if self.other is None else [(1, self.other)])]

    def begin(self, length: int, session: bytes | None) -> int:
        """First packet of an upload: how many bytes are there already; else the slot is erased."""
        if session is not None and session == self._session and length == self._length and self._upload:
            return len(self._upload)
        self.other, self._upload = None, bytearray()
        self._length, self._session = length, session
        self.erased += 1
        return 0

    @property
    def received(self) -> int:
        return len(self._upload)

    @property
    def uploading(self) -> bool:
        return self._length > 0

    def write(self, data: bytes) -> bool | None:
        """More bytes; at the end whether the whole is what the session's hash says (None: no hash)."""
        self._upload += data[: self._length - len(self._upload)]
        if len(self._upload) < self._length:
            return None
        whole, session = bytearray(self._upload), self._session
        self._upload, self._length, self._session = bytearray(), 0, None
        if self.traps.sprung("spoil"):
            whole[len(whole) // 2] ^= 1
        try:
            self.other = parse(bytes(whole))
        except Spoilt:
            self.other = None
        return None if session is None else sha256(whole).digest() == session

    def boot(self) -> None:
        """What the bootloader does at each start."""
        if self.other is None or self.traps.sprung("keep_old"):
            if self.other is not None:
                self.other.pending = False
            return
        if self.other.pending:
            new, old = self.other, self.running
            new.pending, new.confirmed = False, new.permanent
            self.running, self.other = new, old
        elif not self.running.confirmed:
            self.running, self.other = self.other, self.running
            self.running.confirmed = True
