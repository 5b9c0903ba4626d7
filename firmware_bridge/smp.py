"""SMP packets: 8-byte header and one CBOR map (docs/protocols/managed.md, section 1).

Reading is tolerant (unknown keys, versions 0 and 1) and safe on hostile input: `decode` never raises, it
answers `Malformed`. Writing is deterministic (RFC 8949, section 4.2), so that a repeat is byte for byte
the same.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NoReturn

import cbor2

from firmware_bridge.frozen import value

HEADER = 8
BODY_LIMIT = 1024
"""Bytes of CBOR in one packet."""
DEPTH_LIMIT = 8
"""Nesting of arrays and maps; the deepest body of the protocol has three levels."""


class Op(IntEnum):
    READ = 0
    READ_ANSWER = 1
    WRITE = 2
    WRITE_ANSWER = 3


@value
class Message:
    """One packet. `body` has text keys only; others are ignored when read."""

    op: Op
    group: int
    sequence: int
    command: int
    body: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1

    @property
    def key(self) -> tuple[int, int, int, int]:
        """What joins an answer to its request: (op of the answer, group, sequence, command)."""
        return (self.op | 1, self.group, self.sequence, self.command)


@dataclass(frozen=True, slots=True)
class Malformed:
    """A packet that makes no sense, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failure:
    """The error in an answer: `rc` in the sense of `group`."""

    group: int
    rc: int


def encode(message: Message) -> bytes:
    """The packet. Raises ValueError when the body is too long or a header field is out of range."""
    body = cbor2.dumps(dict(message.body), canonical=True)
    if len(body) > BODY_LIMIT:
        raise ValueError(f"an SMP body has at most {BODY_LIMIT} bytes, this one has {len(body)}")
    if not (0 <= message.sequence <= 255 and 0 <= message.command <= 255 and 0 <= message.group <= 0xFFFF):
        raise ValueError("sequence and command are 0..255, a group is 0..65535")
    if message.version not in (0, 1):
        raise ValueError(f"SMP version is 0 or 1, not {message.version}")
    return (
        bytes((message.version << 3 | message.op, 0))
        + len(body).to_bytes(2, "big")
        + message.group.to_bytes(2, "big")
        + bytes((message.sequence, message.command))
        + body
    )


def decode(packet: bytes) -> Message | Malformed:
    """The message, or why there is none. Reserved bits and flags are ignored."""
    if len(packet) < HEADER:
        return Malformed(f"{len(packet)} bytes are shorter than a header")
    length = int.from_bytes(packet[2:4], "big")
    if length > BODY_LIMIT:
        return Malformed(f"the header tells of {length} bytes, the limit is {BODY_LIMIT}")
    if length != len(packet) - HEADER:
        return Malformed(f"the header tells of {length} bytes, {len(packet) - HEADER} came")
    version, op = packet[0] >> 3 & 3, packet[0] & 7
    if version > 1:
        return Malformed(f"unknown SMP version {version}")
    if op > Op.WRITE_ANSWER:
        return Malformed(f"unknown op {op}")
    body = _body(packet[HEADER:])
    if isinstance(body, Malformed):
        return body
    group = int.from_bytes(packet[4:6], "big")
    return Message(Op(op), group, packet[6], packet[7], body, version)


def failure(message: Message) -> Failure | None:
    """The error an answer carries, in the form of either version; None when it is a success."""
    err = message.body.get("err")
    if isinstance(err, dict):
        group, rc = err.get("group", message.group), err.get("rc")
    else:
        group, rc = message.group, message.body.get("rc", 0)
    if not _is_uint(group) or not _is_uint(rc):
        return Failure(message.group, -1)
    return Failure(group, rc) if rc else None


def _is_uint(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _body(data: bytes) -> dict[str, Any] | Malformed:
    if not data:
        return {}
    stream = io.BytesIO(data)
    decoder = cbor2.CBORDecoder(
        stream, max_depth=DEPTH_LIMIT, allow_duplicate_keys=False, semantic_decoders=_TAGS
    )
    try:
        value = decoder.decode()
    except (cbor2.CBORError, ValueError, TypeError, OverflowError, RecursionError, MemoryError) as wrong:
        return Malformed(f"the body is not CBOR: {type(wrong).__name__}")
    if stream.tell() != len(data):
        return Malformed(f"{len(data) - stream.tell()} bytes follow the body's map")
    if not isinstance(value, dict):
        return Malformed(f"the body is no map but {type(value).__name__}")
    return {key: item for key, item in value.items() if isinstance(key, str)}


def _refuse(*_: object) -> NoReturn:
    raise ValueError("shared values are not used here; they could form a cycle")


class _Tags(dict[int, Callable[..., object]]):
    """Every tag stays a tag: no date, mail or pattern is made of a device's bytes, and all encode again."""

    def __missing__(self, tag: int) -> Callable[..., object]:
        return lambda value, *_: cbor2.CBORTag(tag, value)


_TAGS = _Tags(dict.fromkeys((25, 28, 29, 256), _refuse))
