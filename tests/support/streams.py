"""Golden streams of each codec, and hostile ones: good frames amid structured junk, drawn from a seed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from firmware_bridge.framing import (
    GARBAGE_LIMIT,
    Garbage,
    angel_eye,
    reshuffled,
    smp_console,
    smp_packets,
)

_VECTORS = Path(__file__).parents[1] / "vectors"
_ANGEL_EYE = json.loads((_VECTORS / "angel_eye.json").read_text())
_RESHUFFLED = json.loads((_VECTORS / "reshuffled.json").read_text())
_MANAGED = json.loads((_VECTORS / "managed.json").read_text())

TELEGRAMS = [bytes.fromhex(v["hex"]) for v in _ANGEL_EYE["round_trip"]]
COMMANDS = [
    bytes.fromhex(v["hex"])
    for v in _ANGEL_EYE["vectors"]
    if v["hex"].startswith("02") and v.get("layer") != "frame"
]
PACKETS = [bytes.fromhex(v["packet"]) for v in _MANAGED]
LINES = [bytes.fromhex(v["hex"]) for v in _RESHUFFLED["vectors"] if v["good"] and "options" not in v]


@dataclass(frozen=True, slots=True)
class Codec:
    """One frame style: how to decode it, whole good frames on the wire, and the pieces junk is made of.

    `slack` is how many bytes its buffers may hold; `cut` splits a stream as its transport would.
    """

    name: str
    decoder: Callable[[], Any]
    frames: Sequence[bytes]
    shards: Sequence[bytes]
    slack: int
    transfers: bool = False

    def found(self, items: Sequence[Any]) -> list[bytes]:
        """The good frames among what a decoder told, as they were on the wire."""
        return [self.wire(item) for item in items if not isinstance(item, Garbage | smp_console.Text)]

    def wire(self, item: Any) -> bytes:
        if isinstance(item, smp_console.Packet):
            return item.data if self.transfers else smp_console.encode(item.data)
        return bytes(item.raw)


RUN = GARBAGE_LIMIT
"""Bytes of a run of garbage that are kept."""
CODECS = (
    Codec(
        "angel_eye", angel_eye.Decoder, [*TELEGRAMS, *COMMANDS],
        [b"\x02", b"\x03", b"\x05", b"\x06", b"\x15", b"\x051D\x81", b"\x051M12", b"\x02OPLK0", b"\x02O",
         b"\x15\x02"],
        slack=16 + RUN,
    ),
    Codec(
        "smp_console", smp_console.Decoder, [smp_console.encode(p) for p in PACKETS],
        [b"\n", b"\x06", b"\x09", b"\x06\x09", b"\x04\x14", b"\x06\x09AAsI", b"\x04\x14AAAA\n", b"\x04\x14\n",
         b"\x06\x09//8A\n", b"boot: ok\r\n", b"A" * 60, b"=", b"\r"],
        slack=smp_console.TEXT_LIMIT + smp_console.PACKET_LIMIT + 4 + 2 * RUN,
    ),
    Codec(
        "smp_packets", smp_packets.Decoder, PACKETS,
        [b"", b"\x08", b"\x08\x00\x00\x05\x00\x41\x07\x00", b"\x0b\x00\x04\x00\x00\x00\x00\x00", b"\xff" * 64,
         b"\x01\x00\xff\xff\x00\x00\x00\x00", PACKETS[0][:9], PACKETS[1][:-1]],
        slack=smp_packets.PACKET_LIMIT + RUN, transfers=True,
    ),
    Codec(
        "reshuffled", lambda: reshuffled.Decoder(reshuffled.Style()), LINES,
        [b":", b"#", b"\n", b":OK#", b":OK\x01#", b"D736D92D\n", b":D1#841298C", b"Error", b"Fehler: 1\r\n",
         b"Received a request: ", b":" * 40, b"#" * 40],
        slack=reshuffled.LINE_LIMIT + RUN,
    ),
)  # fmt: skip


def held(decoder: Any) -> int:
    """Bytes in a decoder's own buffers."""
    parts = [getattr(part, "_data", part) for part in vars(decoder).values()]
    return sum(len(part) for part in parts if isinstance(part, bytes | bytearray))


def hostile(codec: Codec, random: Random, size: int) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Blocks of junk, `size` bytes or a little more: the chunks of each, and the good frames that end it.

    A third each is plain noise, shards of frames, and golden frames with some bytes changed, lost or more.
    """
    made, planted = 0, _unmistakable(codec)
    while made < size:
        kind, length = random.randrange(3), random.randrange(1, 3000)
        if kind == 0:
            junk = [random.randbytes(length)]
        elif kind == 1:
            junk = random.choices(codec.shards, k=random.randrange(1, 60))
        else:
            junk = [
                damaged(frame, random) for frame in random.choices(codec.frames, k=random.randrange(1, 30))
            ]
        good = random.choices(planted, k=random.randrange(1, 4))
        made += sum(map(len, junk)) + sum(map(len, good))
        if codec.transfers:
            yield [piece for one in junk for piece in transfers(one, random)] + good, good
        else:
            yield pieces(b"".join(junk + good), random), good


def damaged(frame: bytes, random: Random) -> bytes:
    """A frame with one to three of its bytes changed, lost, doubled or swapped; now and then a whole one."""
    broken = bytearray(frame)
    for _ in range(random.randrange(4)):
        at, how = random.randrange(len(broken)), random.randrange(4)
        if how == 0:
            broken[at] ^= 1 << random.randrange(8)
        elif how == 1 and len(broken) > 1:
            del broken[at]
        elif how == 2:
            broken.insert(at, random.randrange(256))
        else:
            broken[at] = random.randrange(256)
    return bytes(broken)


_READS = (1, 7, 64, 64, *[4096] * 28)
"""Largest reads: few byte by byte, which take most of the time."""


def pieces(data: bytes, random: Random) -> list[bytes]:
    """A stream as it may arrive: whole, byte by byte, or in reads of any size."""
    most = random.choice(_READS)
    out, at = [], 0
    while at < len(data):
        step = random.randrange(1, most + 1)
        out.append(data[at : at + step])
        at += step
    return out


def transfers(data: bytes, random: Random) -> list[bytes]:
    """The same on USB: one transfer, now and then two."""
    if not data or random.randrange(4):
        return [data]
    at = random.randrange(len(data))
    return [data[:at], data[at:]]


def _unmistakable(codec: Codec) -> list[bytes]:
    """Frames that no junk before them can swallow: an Angel Eye command may be the code of a NAK."""
    return [frame for frame in codec.frames if frame[0] != 0x02]


def is_subsequence(wanted: Sequence[bytes], found: Sequence[bytes]) -> bool:
    rest = iter(found)
    return all(frame in rest for frame in wanted)
