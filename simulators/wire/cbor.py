"""CBOR (RFC 8949) as a small device would have it: deterministic encoding, definite lengths only."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

MAX_DEPTH = 8
_SIMPLE: dict[int, bool | None] = {20: False, 21: True, 22: None, 23: None}
_FLOATS = {25: ("!e", 2), 26: ("!f", 4), 27: ("!d", 8)}


class CborError(ValueError):
    """Not one well-formed item of the kinds that the protocol uses."""


class Encoded(bytes):
    """Bytes that are an encoded item already."""


def _head(major: int, value: int) -> bytes:
    major <<= 5
    if value < 24:
        return bytes((major | value,))
    if value < 0x100:
        return bytes((major | 24, value))
    if value < 0x10000:
        return struct.pack("!BH", major | 25, value)
    if value < 0x100000000:
        return struct.pack("!BI", major | 26, value)
    return struct.pack("!BQ", major | 27, value)


@lru_cache(maxsize=1024)
def _text(value: str) -> bytes:
    raw = value.encode()
    return _head(3, len(raw)) + raw


def array(items: list[bytes]) -> Encoded:
    """An array of items that are encoded already."""
    return Encoded(_head(4, len(items)) + b"".join(items))


def encode(value: Any) -> bytes:
    """The deterministic encoding: shortest heads, map keys in the order of their encoded bytes."""
    if isinstance(value, str):
        return _text(value)
    if value is True:
        return b"\xf5"
    if value is False:
        return b"\xf4"
    if value is None:
        return b"\xf6"
    if isinstance(value, int):
        return _head(0, value) if value >= 0 else _head(1, -1 - value)
    if isinstance(value, Encoded):
        return value
    if isinstance(value, bytes):
        return _head(2, len(value)) + value
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 - the first is much faster
        pairs = sorted([(encode(key), encode(item)) for key, item in value.items()])
        return _head(5, len(pairs)) + b"".join([key + item for key, item in pairs])
    if isinstance(value, list | tuple):
        return _head(4, len(value)) + b"".join([encode(item) for item in value])
    raise TypeError(f"no CBOR for {type(value).__name__}")


def decode(data: bytes) -> Any:
    """The one item that `data` is. Raises CborError."""
    value, end = _item(data, 0, 0)
    if end != len(data):
        raise CborError("bytes after the item")
    return value


def _item(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if depth > MAX_DEPTH:
        raise CborError("nested too deep")
    if at >= len(data):
        raise CborError("cut short")
    major, info = data[at] >> 5, data[at] & 31
    at += 1
    if major == 7:
        return _simple(data, at, info)
    if info > 27:
        raise CborError("an indefinite length or a reserved head")
    if info < 24:
        value = info
    else:
        width = 1 << (info - 24)
        value = int.from_bytes(data[at : at + width], "big")
        at += width
        if at > len(data):
            raise CborError("cut short")
    if major < 2:
        return (-1 - value if major else value), at
    if major < 4:
        return _string(data, at, value, text=major == 3)
    if value > len(data) - at and major != 6:
        raise CborError("cut short")
    if major == 4:
        items = []
        for _ in range(value):
            item, at = _item(data, at, depth + 1)
            items.append(item)
        return items, at
    if major == 5:
        pairs: dict[Any, Any] = {}
        for _ in range(value):
            key, at = _item(data, at, depth + 1)
            if not isinstance(key, str | int | bytes) or key in pairs:
                raise CborError("a map key is no text, number or bytes, or comes twice")
            pairs[key], at = _item(data, at, depth + 1)
        return pairs, at
    return _item(data, at, depth + 1)  # a tag says nothing to us


def _string(data: bytes, at: int, length: int, *, text: bool) -> tuple[str | bytes, int]:
    end = at + length
    if end > len(data):
        raise CborError("cut short")
    if not text:
        return bytes(data[at:end]), end
    try:
        return str(data[at:end], "utf-8"), end
    except UnicodeDecodeError:
        raise CborError("text that is no UTF-8") from None


def _simple(data: bytes, at: int, info: int) -> tuple[Any, int]:
    if info in _SIMPLE:
        return _SIMPLE[info], at
    if info in _FLOATS:
        layout, width = _FLOATS[info]
        if at + width > len(data):
            raise CborError("cut short")
        return struct.unpack_from(layout, data, at)[0], at + width
    raise CborError("a simple value that has no meaning here")
