"""Faults of the line: what happens to bytes between device and port. They need a Line (hosts/line.py).

An occasion is one piece: what the device says at a time (an answer, a telegram), or what comes to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Protocol, runtime_checkable

from simulators.faults.fault import (
    Fault,
    UnfitFault,
    hex_bytes,
    number,
    put,
    seconds,
    seconds_or,
    setting,
    trap,
    whole,
)
from simulators.faults.script import Step
from simulators.wire.barcode_hid import BarcodeReader
from simulators.wire.bee_tek import BeeTek
from simulators.wire.device import WireDevice

Pieces = list[tuple[float, bytes]]
"""What becomes of one piece: parts of it, each with the s until it comes."""
Bend = Callable[[bytes, Any, Random], Pieces]

BYTE_GAP_S = 0.002
HELD_S = 1.0
"""A piece that waits for the next one waits no longer."""


@runtime_checkable
class Carrier(Protocol):
    """A line with its device behind it (hosts/line.py), and a port before it."""

    device: WireDevice
    cable: Any

    def add(self, step: Step) -> None: ...


def line(device: WireDevice) -> Any:
    """The line itself."""
    if not isinstance(device, Carrier):
        raise UnfitFault("it is a fault of the line: put the device behind one (simulators.hosts.line.Line)")
    return device


def asked(device: WireDevice) -> Any:
    """The line of a device that hears its host."""
    if isinstance(line(device).device, BeeTek | BarcodeReader):
        raise UnfitFault("it only talks, and hears no host")
    return device


def _drop(_: bytes, __: None, ___: Random) -> Pieces:
    return []


def _delay(data: bytes, value: float, _: Random) -> Pieces:
    return [(value, data)]


def _flip_bit(data: bytes, value: int | None, random: Random) -> Pieces:
    place = random.randrange(len(data) * 8) if value is None else value % (len(data) * 8)
    return [(0.0, _with(data, place // 8, data[place // 8] ^ 1 << place % 8))]


def _flip_byte(data: bytes, value: int | None, random: Random) -> Pieces:
    place = random.randrange(len(data)) if value is None else value % len(data)
    return [(0.0, _with(data, place, data[place] ^ random.randrange(1, 256)))]


def _with(data: bytes, place: int, byte: int) -> bytes:
    return data[:place] + bytes((byte,)) + data[place + 1 :]


def _truncate(data: bytes, value: int | None, _: Random) -> Pieces:
    rest = data[: len(data) // 2 if value is None else min(value, len(data) - 1)]
    return [(0.0, rest)] if rest else []


def _junk_before(data: bytes, value: bytes | None, random: Random) -> Pieces:
    return [(0.0, (value or random.randbytes(random.randint(1, 16))) + data)]


def _junk_after(data: bytes, value: bytes | None, random: Random) -> Pieces:
    return [(0.0, data + (value or random.randbytes(random.randint(1, 16))))]


def _chunk(data: bytes, value: float, _: Random) -> Pieces:
    return [(value * place, data[place : place + 1]) for place in range(len(data))]


OUT: Mapping[str, Bend] = {
    "drop": _drop,
    "truncate": _truncate,
    "flip_bit": _flip_bit,
    "flip_byte": _flip_byte,
    "junk_before": _junk_before,
    "junk_after": _junk_after,
    "delay": _delay,
    "chunk": _chunk,
}
"""What bends a piece of the device's output, in the order in which they do."""
HOLDS = ("reorder", "merge")
"""What holds a piece back until the next one."""
IN: Mapping[str, Bend] = {"lose_request": _drop, "garble_request": _flip_byte}
"""What bends what comes to the device."""
STREAM = "stream"
"""What a host must be for faults that packets cannot have."""

_ANSWER, _REQUEST = "piece of output", "piece of input"

LINE: dict[str, Fault] = {
    "drop": trap("a piece never comes", _ANSWER, line),
    "delay": trap("a piece, and all behind it, comes VALUE (0.5) s late", _ANSWER, line, seconds_or(0.5)),
    "duplicate": trap("a piece comes again VALUE (0) s later", _ANSWER, line, seconds_or(0.0)),
    "reorder": trap(
        "a piece comes behind the next one, or VALUE (1) s late when none follows",
        _ANSWER,
        line,
        seconds_or(HELD_S),
    ),
    "flip_bit": trap("bit VALUE (any) of a piece is wrong", _ANSWER, line, whole(None, 0)),
    "flip_byte": trap("byte VALUE (any) of a piece is another one", _ANSWER, line, whole(None, 0)),
    "truncate": trap("VALUE (half) bytes of a piece come, the rest never", _ANSWER, line, whole(None, 0)),
    "junk_before": trap("bytes VALUE (hex; 1 to 16 any) before a piece", _ANSWER, line, hex_bytes),
    "junk_after": trap("bytes VALUE (hex; 1 to 16 any) behind a piece", _ANSWER, line, hex_bytes),
    "chunk": trap(
        "a piece comes byte by byte, VALUE (0.002) s apart",
        _ANSWER,
        line,
        seconds_or(BYTE_GAP_S),
        cable=STREAM,
    ),
    "merge": trap(
        "a piece comes in one with the next, or VALUE (1) s late when none follows",
        _ANSWER,
        line,
        seconds_or(HELD_S),
        cable=STREAM,
    ),
    "lose_request": trap("what the host sends does not reach the device", _REQUEST, asked),
    "garble_request": trap(
        "byte VALUE (any) of what the host sends is another one", _REQUEST, asked, whole(None, 0)
    ),
    "deaf": trap("the device hears nothing any more, or for VALUE s", _REQUEST, asked, seconds),
    "mute": trap(
        "the device does what it hears, and nothing it says comes any more, or for VALUE s",
        _ANSWER,
        asked,
        seconds,
    ),
    "latency": setting(
        "bytes come in batches, every VALUE (0.016) s",
        line,
        put(latency=...),
        seconds_or(0.016),
        cable=STREAM,
    ),
    "local_echo": setting("the host hears its own bytes", asked, put(local_echo=True), cable=STREAM),
    "wrong_baud": setting(
        "the host's port runs VALUE (2) times as fast as the device's",
        line,
        put(baud=...),
        number(2.0, 0.01, 100),
        cable=STREAM,
    ),
}
