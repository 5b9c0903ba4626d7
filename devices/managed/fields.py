"""Fields of a managed device's CBOR maps, and arguments for them.

A check raises Malformed for a value that breaks the CDDL of docs/protocols/managed.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cbor2

TOKEN_BYTES = 16

Body = Mapping[str, Any]


class Malformed(ValueError):
    """An answer, event or argument that is not as the protocol page says; the text is the reason."""


def uint(body: Body, key: str) -> int:
    value = body.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Malformed(f"{key} is no number")
    return value


def text(body: Body, key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str):
        raise Malformed(f"{key} is no text")
    return value


def flag(body: Body, key: str) -> bool:
    value = body.get(key)
    if not isinstance(value, bool):
        raise Malformed(f"{key} is neither true nor false")
    return value


def token(body: Body, key: str = "token") -> str | None:
    """A token in hex; None where the device has none."""
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, bytes) or len(value) != TOKEN_BYTES:
        raise Malformed(f"{key} is no token")
    return value.hex()


def octets(body: Body, key: str) -> str:
    """Bytes, in hex."""
    value = body.get(key)
    if not isinstance(value, bytes):
        raise Malformed(f"{key} is no byte string")
    return value.hex()


def counts(body: Body, key: str) -> dict[str, int]:
    """A map of text to number."""
    value = body.get(key)
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise Malformed(f"{key} is no map of counts")
    if any(isinstance(count, bool) or not isinstance(count, int) or count < 0 for count in value.values()):
        raise Malformed(f"{key} is no map of counts")  # a key is a device's text: it is not repeated here
    return dict(value)


def plain(value: Any) -> Any:
    """An answer for facts and JSON: bytes become hex text, keys become text."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value if isinstance(value, str | int | None) else str(value)
    return [plain(item) for item in value]


def deterministic(body: Body) -> bytes:
    """A map in the form of RFC 8949, section 4.2. Raises Malformed for what has none."""
    try:
        return cbor2.dumps(dict(body), canonical=True)
    except (cbor2.CBORError, ValueError, TypeError, OverflowError, RecursionError) as wrong:
        raise Malformed(f"a map that cannot be encoded again: {type(wrong).__name__}") from wrong


def known(body: Body, **checks: Callable[[Body, str], Any]) -> dict[str, Any]:
    """The documented keys alone, each checked; a key with a trailing underscore may be absent."""
    found = {}
    for name, check in checks.items():
        key = name.rstrip("_")
        if key in body or key == name:
            found[key] = check(body, key)
    return found


def token_argument(value: Any) -> bytes:
    """A token argument of a command, bytes or hex text."""
    try:
        made = value if isinstance(value, bytes) else bytes.fromhex(str(value))
    except ValueError:
        made = b""
    if len(made) != TOKEN_BYTES:
        raise Malformed(f"a token is {TOKEN_BYTES} bytes in hex ({2 * TOKEN_BYTES} digits)")
    return made


def number_argument(value: Any) -> int:
    """A whole number from 0, given as such or as text."""
    if isinstance(value, bool) or not re.fullmatch("[0-9]{1,9}", str(value)):
        raise Malformed(f"{value!r} is no number from 0")
    return int(value)
