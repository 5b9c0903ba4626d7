"""Frames by a regular expression: any split, any damage, bounded memory."""

import itertools
import re
from functools import reduce
from operator import xor
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge.framing import Garbage
from firmware_bridge.framing.patterns import UNFINISHED, WRONG_CHECK, Decoder
from tests.support.streams import Codec, held, hostile, is_subsequence

LINE = re.compile(rb"\$([0-9]{3})([A-Z?]{0,3})\*([0-9A-F]{2})\r\n")
LONGEST = 12
SHARDS = [b"$", b"$$", b"$001", b"$001AB*", b"*00\r\n", b"$001*00\r\n", b"\r\n", b"\n", b"AB" * 40]


def line(number, text):
    body = f"{number:03}{text}".encode()
    return b"$" + body + f"*{reduce(xor, body):02X}\r\n".encode()


def right(found):
    return reduce(xor, found[0][1:-5]) == int(found[3], 16)


def decoder():
    return Decoder(LINE, LONGEST, right)


def run(chunks):
    made = decoder()
    items = [*(item for chunk in chunks for item in made.feed(chunk)), *made.flush()]
    assert not made.pending
    return [item if isinstance(item, Garbage) else item[0] for item in items]


FRAMES = [line(n, text) for n, text in enumerate(["", "A", "KS", "???", "ABC"])]


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from([*FRAMES, *SHARDS]) | st.binary(max_size=15), max_size=12).map(b"".join),
    st.lists(st.integers(0, 300), max_size=6),
)
def test_any_split_gives_the_same_and_every_byte_is_accounted_for(stream, cuts):
    whole = run([stream])
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    assert run(stream[a:b] for a, b in itertools.pairwise(edges)) == whole
    assert run(bytes((byte,)) for byte in stream) == whole
    assert sum(i.count if isinstance(i, Garbage) else len(i) for i in whole) == len(stream)
    assert not any(isinstance(a, Garbage) and isinstance(b, Garbage) for a, b in itertools.pairwise(whole))


def test_any_flipped_bit_costs_its_own_frame_only():
    for number, frame in enumerate(FRAMES):
        others = FRAMES[:number] + FRAMES[number + 1 :]
        for bit in range(8 * len(frame)):
            broken = bytearray(frame)
            broken[bit // 8] ^= 1 << bit % 8
            stream = b"".join(FRAMES[:number]) + broken + b"".join(FRAMES[number + 1 :])
            assert [i for i in run([stream]) if not isinstance(i, Garbage)] == others


class Lines(Codec):
    def wire(self, item):
        return item[0]


def test_junk_hides_no_good_frame_and_fills_no_buffer():
    codec = Lines("patterns", decoder, FRAMES, SHARDS, slack=LONGEST + 64)
    made = decoder()
    for chunks, good in hostile(codec, Random("fuzz/patterns"), 200_000):
        items = []
        for chunk in chunks:
            items += made.feed(chunk)
            assert held(made) <= codec.slack
        assert is_subsequence(good, codec.found(items))


def test_what_is_no_frame_says_why():
    wrong = FRAMES[2].replace(b"KS", b"KH")
    assert run([b"noise" + FRAMES[0]]) == [Garbage("noise", b"noise", 5), FRAMES[0]]
    assert run([wrong]) == [Garbage(WRONG_CHECK, wrong, len(wrong))]
    assert run([FRAMES[1][:-1]]) == [Garbage(UNFINISHED, FRAMES[1][:-1], len(FRAMES[1]) - 1)]


def test_a_good_frame_may_begin_inside_what_only_looked_like_one():
    greedy = Decoder(re.compile(rb"\$.{0,9}\*(..)\r\n"), LONGEST, lambda found: found[0].count(b"$") == 1)
    items = greedy.feed(b"$00" + FRAMES[0])
    assert (items[0].data, items[1][0]) == (b"$00", FRAMES[0])


def test_a_frame_longer_than_said_is_none_however_it_arrives():
    longest = len(FRAMES[4])
    for size in (longest, longest - 1):
        for cut in range(longest):
            short = Decoder(LINE, size, right)
            items = [*short.feed(FRAMES[4][:cut]), *short.feed(FRAMES[4][cut:]), *short.flush()]
            assert [isinstance(item, Garbage) for item in items] == [size < longest]
