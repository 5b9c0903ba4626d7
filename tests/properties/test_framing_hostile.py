"""Every decoder under damage: single flipped bits, parts of frames, and a million bytes of junk."""

from __future__ import annotations

from random import Random
from time import process_time

import pytest

from firmware_bridge.framing import Garbage
from tests.support.streams import CODECS, Codec, held, hostile, is_subsequence

FUZZED = 1_000_000

each_codec = pytest.mark.parametrize("codec", CODECS, ids=lambda c: c.name)


def decode(codec: Codec, chunks):
    decoder = codec.decoder()
    return [*(item for chunk in chunks for item in decoder.feed(chunk)), *decoder.flush()]


@each_codec
def test_the_golden_stream_is_found_whole(codec):
    assert codec.found(decode(codec, codec.frames)) == codec.frames


@each_codec
def test_i07_no_part_of_a_frame_is_a_frame_and_its_rest_completes_it(codec):
    for frame in codec.frames:
        for at in range(1, len(frame)):
            decoder = codec.decoder()
            assert decoder.feed(frame[:at]) == [], (frame, at)
            assert codec.found(decoder.feed(frame[at:])) == [frame]
            assert decoder.flush() == []


@each_codec
def test_any_flipped_bit_of_the_golden_stream_costs_its_own_frame_only(codec):
    for number, frame in enumerate(codec.frames):
        before = codec.frames[max(0, number - 1) : number]
        after = codec.frames[number + 1 : number + 3]
        others = [*before, *after]
        for bit in range(len(frame) * 8):
            broken = bytearray(frame)
            broken[bit // 8] ^= 1 << bit % 8
            items = decode(codec, [*before, bytes(broken), *after])
            found = codec.found(items)
            assert is_subsequence(others, found), (number, bit)
            assert len(found) <= len(others) + 1, (number, bit)
            if not codec.transfers:  # USB has its own check; here the check bytes must tell
                made_up = [f for f in found if f not in {*others, frame}]
                assert all(unavoidable(f, frame) for f in made_up), (number, bit, made_up)


def unavoidable(made_up: bytes, frame: bytes) -> bool:
    """An Angel Eye start that turned into a bare ACK or NAK, or a command whose check fits the other range:

    the two ranges differ by the start byte 02, so a flip of that bit anywhere turns one into the other.
    """
    if made_up[0] in (0x06, 0x15):
        return True
    changed = [a ^ b for a, b in zip(made_up, frame, strict=True) if a != b]
    return made_up[:3] == b"\x02OP" and changed == [0x02]


@each_codec
def test_a_million_bytes_of_junk_hide_no_good_frame_and_fill_no_buffer(codec):
    random, decoder, fed = Random(f"fuzz/{codec.name}"), codec.decoder(), 0
    for chunks, good in hostile(codec, random, FUZZED):
        items = []
        for chunk in chunks:
            items += decoder.feed(chunk)
            fed += len(chunk)
            assert held(decoder) <= codec.slack
        assert is_subsequence(good, codec.found(items)), good
        assert all(len(item.data) <= 64 for item in items if isinstance(item, Garbage))
    assert fed >= FUZZED


@each_codec
def test_a_byte_costs_the_same_however_many_come_at_once(codec):
    """As in a capture of others. What grows with the square of a feed takes ten times as long and more."""
    whole = bytes(1 << 20)
    split = [whole[at : at + (1 << 14)] for at in range(0, len(whole), 1 << 14)]
    assert cost(codec, [whole]) < 4 * cost(codec, split) + 0.5


def cost(codec, chunks):
    """Seconds of this process that it takes to feed them."""
    since = process_time()
    decode(codec, chunks)
    return process_time() - since
