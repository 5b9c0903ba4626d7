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
SLOT_SIZE = 1 << 20


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


@dataclass(frozen=True, slots=True)
class Image:
    """What a slot holds."""

    data: bytes
    version: str
    hash: bytes
    product: str | None


def parse(data: bytes) -> Image:
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
    return Image(data, ".".join(map(str, version)), digest, product)


class Flash:
    """`erase_s`: how long erasing a slot takes. `remembers`: an upload goes on after a restart.

    Traps: `keep_old` (the swap is said and not done), `spoil` (a bit of an upload turns over),
    `stay_in_bootloader` (the image does not start, for value s or until it is reset; an upload then goes
    into slot 0).
    """

    def __init__(self, image: bytes, *, erase_s: float = 0.0, remembers: bool = False) -> None:
        self.running: Image | None = parse(image)
        self.other: Image | None = None
        self.trial = False
        """The running image is gone at the next start, unless it is confirmed."""
        self.pending: str | None = None
        """How the other image is to be started: `test` or `permanent`."""
        self.bootloader = False
        self.leaves_after: float | None = None
        """Seconds after which the bootloader tries again to start the image."""
        self.erase_s = erase_s
        self.remembers = remembers
        self.erased = 0
        self.traps = Traps()
        self._forget()

    def _forget(self) -> None:
        self._upload = bytearray()
        self._length = 0
        self._session: bytes | None = None

    @property
    def free(self) -> bool:
        """Whether an upload may erase a slot: never what the next start may need."""
        return self.bootloader or not (self.trial or self.pending)

    @property
    def uploading(self) -> bool:
        return self._length > 0

    @property
    def received(self) -> int:
        return len(self._upload)

    @property
    def length(self) -> int:
        return self._length

    def continues(self, session: bytes | None) -> bool:
        """Whether this is the upload that is under way already."""
        return self.uploading and session is not None and session == self._session

    def erase(self) -> None:
        """The slot that takes uploads is empty now."""
        self.erased += 1
        self._forget()
        if self.bootloader:
            self.running = None
        else:
            self.other, self.pending = None, None

    def begin(self, length: int, session: bytes | None) -> None:
        self._length, self._session = length, session

    def write(self, data: bytes) -> bool | None:
        """More bytes; at the end whether the whole is what the session's hash says (None: no hash)."""
        self._upload += data
        if len(self._upload) < self._length:
            return None
        whole, session = bytearray(self._upload), self._session
        self._forget()
        if self.traps.sprung("spoil"):
            whole[len(whole) // 2] ^= 1
        try:
            made = parse(bytes(whole))
        except Spoilt:
            made = None
        if self.bootloader:
            self.running, self.trial = made, False
        else:
            self.other = made
        return None if session is None else sha256(whole).digest() == session

    def boot(self) -> None:
        """What the bootloader does at each start."""
        if not self.remembers:
            self._forget()
        trap = self.traps.sprung("stay_in_bootloader")
        self.leaves_after = None if trap is None else trap.value
        self.bootloader = trap is not None
        if self.leaves_after is not None:  # it has not chosen yet
            return
        pending, self.pending = self.pending, None
        swaps = (pending or self.trial) and not (pending and self.traps.sprung("keep_old"))
        if swaps and self.other is not None:
            self.running, self.other = self.other, self.running
            self.trial = pending == "test"
        self.bootloader |= self.running is None
