"""The GAT decoder under damage. It has no start mark: a block of junk ends with silence, as on a line."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge.framing import Garbage
from firmware_bridge.framing.gat import Decoder, encode
from tests.support.streams import RUN, Codec, held, hostile

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "gat.json").read_text())["vectors"]
FRAMES = [
    *(bytes.fromhex(v["hex"]) for v in VECTORS if v["good"]), encode(0x83, bytes(range(251))),
    encode(0x83, b"\x02\x00\x02" + bytes.fromhex("8108035004035fbd")),
    encode(4, b"\xba\x00Component\tUI\t00ff"),
]  # fmt: skip
CODEC = Codec(
    "gat", Decoder, FRAMES,
    [b"\x01", b"\x04", b"\x81", b"\x83", b"\x84\x05", b"\x83\xff", b"\x04\xe3", b"\x01\x04\xe3",
     b"\x81\x08\x03\x50", b"\x83\x0b\x02\x00\x01<a/>", b"\xff" * 30, FRAMES[-1][:-1], FRAMES[5][1:]],
    slack=255 + RUN,
)  # fmt: skip
FUZZED = 300_000


def decode(chunks: list[bytes]) -> list:
    decoder = Decoder()
    return [*(item for chunk in chunks for item in decoder.feed(chunk)), *decoder.flush()]


def test_the_golden_stream_is_found_whole_and_no_part_of_a_frame_is_one():
    assert CODEC.found(decode(FRAMES)) == FRAMES
    for frame in FRAMES:
        for at in range(1, len(frame)):
            decoder = Decoder()
            assert decoder.feed(frame[:at]) == [], (frame, at)
            assert CODEC.found(decoder.feed(frame[at:])) == [frame]
            assert not decoder.pending


def test_any_flipped_bit_costs_its_own_frame_only_and_makes_up_none():
    for number, frame in enumerate(FRAMES):
        others = [*FRAMES[max(0, number - 1) : number], *FRAMES[number + 1 : number + 3]]
        cut = min(number, 1)
        for bit in range(len(frame) * 8):
            broken = bytearray(frame)
            broken[bit // 8] ^= 1 << bit % 8
            found = CODEC.found(decode([*others[:cut], bytes(broken), *others[cut:]]))
            inside = [f for f in found if f in frame]  # a frame in the data of a broken one is read as one
            assert [f for f in found if f not in inside or f in others] == others, (number, bit)


def test_junk_hides_no_good_frame_behind_silence_and_fills_no_buffer():
    random, decoder, fed = Random("fuzz/gat"), Decoder(), 0
    for chunks, good in hostile(CODEC, random, FUZZED):
        block = b"".join(chunks)
        junk, end = block[: -sum(map(len, good))], b"".join(good)
        items = [item for at in range(0, len(junk), 97) for item in decoder.feed(junk[at : at + 97])]
        assert held(decoder) <= CODEC.slack
        items += decoder.flush()
        assert held(decoder) == 0
        assert CODEC.found(decoder.feed(end)) == good
        assert all(len(item.data) <= 64 for item in items if isinstance(item, Garbage))
        fed += len(block)
    assert fed >= FUZZED


@settings(max_examples=100)
@given(
    st.lists(st.sampled_from([*FRAMES, *CODEC.shards]) | st.binary(max_size=12), max_size=15),
    st.lists(st.integers(0, 4000), max_size=12),
)
def test_any_split_gives_the_same_and_every_byte_is_accounted_for(parts, cuts):
    stream = b"".join(parts)
    edges = [0, *sorted(c % (len(stream) + 1) for c in cuts), len(stream)]
    whole = decode([stream])
    assert decode([stream[a:b] for a, b in pairwise(edges)]) == whole
    assert decode([stream[n : n + 1] for n in range(len(stream))]) == whole
    assert sum(item.count if isinstance(item, Garbage) else len(item.raw) for item in whole) == len(stream)
