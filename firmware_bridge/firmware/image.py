"""MCUboot image files (docs.mcuboot.com/design, "Image format"): checked before a device erases anything.

The product an image is for stands in a protected TLV of the range for vendors (docs/protocols/managed.md,
section 4.6); images for other makers' devices have none.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import sha256

MAGIC = 0x96F3B83D
LEAST_HEADER = 32
PRODUCT_TLV = 0x00A0
_SHA256_TLV = 0x10
_TLVS, _PROTECTED_TLVS = 0x6907, 0x6908
_HEADER = struct.Struct("<IIHHIIBBHI4x")
_TLV = struct.Struct("<HH")


class BadImage(ValueError):
    """A file that must not be sent to any device: why, and what to do."""


@dataclass(frozen=True, slots=True)
class Image:
    """A whole image. `hash` is the one the device lists (header, body, protected TLVs), lower-case hex."""

    data: bytes
    version: str
    hash: str
    product: str | None

    @property
    def session(self) -> bytes:
        """SHA-256 of the file: by it a device knows a broken upload again."""
        return sha256(self.data).digest()


def read(data: bytes) -> Image:
    """Check an image file whole. Raises BadImage."""
    if len(data) < LEAST_HEADER or int.from_bytes(data[:4], "little") != MAGIC:
        raise BadImage("this is no firmware image (no MCUboot header): use the signed .bin of the maker")
    _, _, head, protected, body, _, major, minor, revision, build = _HEADER.unpack_from(data)
    end = head + body
    if head < LEAST_HEADER or len(data) < end + protected + _TLV.size:
        raise BadImage(
            f"this image is cut off: its header tells of {end + protected} bytes and what proves them, the "
            f"file has {len(data)}; fetch it again"
        )
    sealed = _tlvs(data, end, _PROTECTED_TLVS) if protected else {}
    if protected and _length(data, end) != protected:
        raise BadImage("this image is damaged: its protected part has another length than its header says")
    found = _tlvs(data, end + protected, _TLVS)
    if len(data) != end + protected + _length(data, end + protected):
        raise BadImage("this image has bytes behind its end, or is cut off there: fetch it again")
    told = found.get(_SHA256_TLV)
    if told is None:
        raise BadImage("this image has no SHA-256 of itself: sign it with imgtool")
    real = sha256(data[: end + protected]).digest()
    if told != real:
        raise BadImage("this image is damaged: its SHA-256 does not fit its content; fetch it again")
    product = sealed.get(PRODUCT_TLV)
    version = f"{major}.{minor}.{revision}" + (f".{build}" if build else "")
    return Image(data, version, real.hex(), None if product is None else product.decode("utf-8", "replace"))


def _length(data: bytes, at: int) -> int:
    return int(_TLV.unpack_from(data, at)[1])


def _tlvs(data: bytes, at: int, magic: int) -> dict[int, bytes]:
    found_magic, length = _TLV.unpack_from(data, at)
    if found_magic != magic or length < _TLV.size or at + length > len(data):
        raise BadImage("this image is cut off or damaged behind its body: fetch it again")
    end, found = at + length, dict[int, bytes]()
    at += _TLV.size
    while at < end:
        if at + _TLV.size > end:
            raise BadImage("this image is damaged: a record behind its body has no length")
        kind, size = _TLV.unpack_from(data, at)
        at += _TLV.size
        if at + size > end:
            raise BadImage("this image is damaged: a record behind its body is longer than its place")
        found.setdefault(kind, data[at : at + size])
        at += size
    return found
