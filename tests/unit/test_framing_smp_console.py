"""SMP console framing against the managed protocol's golden vectors, broken lines and text in between."""

import json
from pathlib import Path
from random import Random

import pytest

from firmware_bridge.framing import Garbage
from firmware_bridge.framing.smp_console import Decoder, Packet, Text, encode

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "managed.json").read_text())
PACKETS = [bytes.fromhex(v["packet"]) for v in VECTORS]
LONG = max(PACKETS, key=len)
SHORT = min(PACKETS, key=len)


def decode(*chunks):
    decoder = Decoder()
    out = [item for chunk in chunks for item in decoder.feed(chunk)]
    return out + decoder.flush()


@pytest.mark.parametrize("vector", VECTORS, ids=[v["name"] for v in VECTORS])
def test_vectors_both_ways(vector):
    packet = bytes.fromhex(vector["packet"])
    wire = b"".join(bytes.fromhex(line) + b"\n" for line in vector["lines"])
    assert encode(packet) == wire
    assert decode(wire) == [Packet(packet)]
    assert decode(*[bytes([b]) for b in wire]) == [Packet(packet)]


@pytest.mark.parametrize("size", [8, 88, 89, 90, 91, 92, 181, 182, 183, 1031, 1032])
def test_sizes_around_the_line_bound(size):
    packet = Random(size).randbytes(size)
    wire = encode(packet)
    assert all(len(line) <= 127 for line in wire.splitlines(keepends=True))
    assert decode(wire) == [Packet(packet)]


def test_sizes_out_of_range_are_refused():
    for size in (7, 1033):
        with pytest.raises(ValueError, match=r"8\.\.1032"):
            encode(bytes(size))


def test_text_between_frames_and_carriage_returns():
    wire = b"boot: ready\r\n\r\n" + encode(LONG).replace(b"\n", b"\r\n") + b"next line\n"
    assert decode(wire) == [Text(b"boot: ready"), Packet(LONG), Text(b"next line")]


def test_a_frame_that_starts_inside_a_text_line_is_found():
    assert decode(b"half a li" + encode(SHORT)) == [Text(b"half a li"), Packet(SHORT)]


def test_text_between_the_lines_of_one_packet_does_not_break_it():
    first, rest = encode(LONG).split(b"\n", 1)
    assert decode(first + b"\nlog line\n" + rest) == [Text(b"log line"), Packet(LONG)]


def lines(packet):
    return encode(packet).splitlines(keepends=True)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (b"\x06\x09!!!!\n", "bad base64"),
        (lines(LONG)[1], "continuation without a start"),
        (lines(LONG)[0], "unfinished packet"),
        (b"\x06\x09AAQAAAAA\n", "bad length"),
        (b"\x06\x09//8AAAAAAAAAAAAAAAA=\n", "bad length"),
        (encode(SHORT).replace(b"z1A==", b"z2A=="), "bad CRC"),
        (b"\x06\x09" + b"A" * 400 + b"\n", "line too long"),
        (encode(SHORT)[:-1], "unfinished packet"),
        (b"\x00\xff\x01\n", "noise"),
    ],
)
def test_broken_lines_are_one_run_and_the_next_packet_is_found(broken, reason):
    assert decode(broken + encode(SHORT)) == [Garbage(reason, broken[:64], len(broken)), Packet(SHORT)]


def test_a_new_first_line_abandons_an_unfinished_packet():
    start = lines(LONG)[0]
    assert decode(start + encode(SHORT)) == [
        Garbage("unfinished packet", start[:64], len(start)),
        Packet(SHORT),
    ]


def test_a_lost_line_end_costs_one_packet_only():
    wire = encode(SHORT)[:-1] + encode(LONG)
    assert decode(wire)[-1] == Packet(LONG)


def test_after_any_flipped_bit_the_next_packet_is_found():
    wire = encode(SHORT)
    for bit in range(len(wire) * 8):
        broken = bytearray(wire)
        broken[bit // 8] ^= 1 << bit % 8
        out = decode(bytes(broken) + encode(LONG))
        assert out[-1] == Packet(LONG)
        assert {item for item in out if isinstance(item, Packet)} <= {Packet(SHORT), Packet(LONG)}


def test_100_kb_of_noise_before_a_packet_is_bounded():
    noise = Random(3).randbytes(100_000)
    decoder = Decoder()
    out = []
    for at in range(0, len(noise), 500):
        out += decoder.feed(noise[at : at + 500])
        assert len(decoder._line) <= 256
        assert len(decoder._packet) <= 1034
    out += decoder.feed(b"\n" + encode(SHORT))
    assert out[-1] == Packet(SHORT)
    assert sum(isinstance(item, Garbage) for item in out) < 300


def test_long_text_comes_in_bounded_pieces():
    assert decode(b"a" * 600 + b"\n") == [Text(b"a" * 256), Text(b"a" * 256), Text(b"a" * 88)]


@pytest.mark.parametrize("line", [b"\x04\x14\n", b"\x04\x14\r\r\r\r\n", b"\x04\x14AA==\n"])
def test_a_packet_under_way_is_bounded_however_little_its_lines_carry(line):
    decoder = Decoder()
    decoder.feed(b"\x06\x09" + b"BAoA" + b"\n")
    for _ in range(2000):
        decoder.feed(line)
    assert len(decoder._packet) + len(decoder._lines._data) <= 1034 + 64
    assert decoder.feed(encode(SHORT))[-1] == Packet(SHORT)


@pytest.mark.parametrize("text", [b"AAsIAAABAEBDAKDz1A===", b"AAsI====", b"AAsI=", b"AAs", b"AA=A"])
def test_padding_that_is_too_much_or_in_the_middle_is_bad_base64(text):
    line = b"\x06\x09" + text + b"\n"
    assert decode(line) == [Garbage("bad base64", line, len(line))]
