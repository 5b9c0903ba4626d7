"""SMP packets: golden vectors, both error forms, hostile bodies, and the PyPI codec as an oracle."""

import json
from pathlib import Path
from random import Random

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge.smp import Failure, Malformed, Message, Op, decode, encode, failure

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "managed.json").read_text())


def packet(body, length=None, first=0x09):
    size = len(body) if length is None else length
    return bytes((first, 0)) + size.to_bytes(2, "big") + b"\x00\x41\x45\x00" + body


@pytest.mark.parametrize("vector", VECTORS, ids=[v["name"] for v in VECTORS])
def test_vectors_are_read_and_written_byte_for_byte(vector):
    raw = bytes.fromhex(vector["packet"])
    assert encode(decode(raw)) == raw


def test_the_header_and_the_key_of_an_answer():
    request = Message(Op.WRITE, 66, 70, 1, {"token": bytes(range(16))})
    answer = decode(bytes.fromhex("0b00000a00424601a1656379636c65190421"))
    assert answer == Message(Op.WRITE_ANSWER, 66, 70, 1, {"cycle": 1057})
    assert request.key == answer.key == (3, 66, 70, 1)
    assert Message(Op.READ, 66, 70, 1).key != answer.key


def test_encoding_is_deterministic():
    one = Message(Op.WRITE, 64, 1, 1, {"bb": 1, "a": 2, "c": [True, None]})
    other = Message(Op.WRITE, 64, 1, 1, {"c": [True, None], "a": 2, "bb": 1})
    assert encode(one) == encode(other)


@pytest.mark.parametrize(
    ("body", "version", "expected"),
    [
        ({}, 1, None),
        ({"rc": 0}, 0, None),
        ({"rc": 1}, 0, Failure(66, 1)),
        ({"err": {"group": 66, "rc": 6}}, 1, Failure(66, 6)),
        ({"err": {"group": 0, "rc": 8, "extra": 1}, "rsn": "x"}, 1, Failure(0, 8)),
        ({"err": {"group": 66, "rc": 0}}, 1, None),
        ({"err": {"rc": 3}}, 1, Failure(66, 3)),
        ({"err": {"group": 66}}, 1, Failure(66, -1)),
        ({"err": {"group": "x", "rc": 1}}, 1, Failure(66, -1)),
        ({"rc": True}, 0, Failure(66, -1)),
    ],
)
def test_errors_of_both_versions(body, version, expected):
    assert failure(Message(Op.WRITE_ANSWER, 66, 1, 1, body, version)) == expected


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\x09\x00\x00", "shorter than a header"),
        (packet(b"\xa0", length=2), "2 bytes, 1 came"),
        (packet(b"\xa0\x00", length=1), "1 bytes, 2 came"),
        (packet(b"", length=1025), "limit is 1024"),
        (packet(b"\xa0", first=0x11), "unknown SMP version 2"),
        (packet(b"\xa0", first=0x0C), "unknown op 4"),
        (packet(b"\xa0\x00"), "1 bytes follow"),
        (packet(b"\x80"), "no map but list"),
        (packet(b"\xf6"), "no map but NoneType"),
        (packet(b"\xa1\x61a" + b"\x81" * 900 + b"\x00"), "not CBOR"),
        (packet(b"\xa1\x61a" + b"\x81" * 8 + b"\x00"), "not CBOR"),
        (packet(b"\xa1\x61a\x9b\x7f" + b"\xff" * 7), "not CBOR"),
        (packet(b"\xbb\x7f" + b"\xff" * 7), "not CBOR"),
        (packet(b"\xa1\x61a\x5b\x00\x00\x00\x10\x00\x00\x00\x00"), "not CBOR"),
        (packet(b"\xa2\x61a\x01\x61a\x02"), "not CBOR"),
        (packet(b"\xa1\x61\xff\x01"), "not CBOR"),
        (packet(bytes.fromhex("a16161d81c81d81d00")), "not CBOR"),
        (packet(b"\xff"), "not CBOR"),
    ],
)
def test_bad_input_is_malformed_with_a_reason(raw, reason):
    result = decode(raw)
    assert isinstance(result, Malformed)
    assert reason in result.reason


def test_unknown_keys_stay_and_keys_that_are_no_text_are_ignored():
    assert decode(packet(cbor2.dumps({"boot": 1, "later": [1.5], 7: 8}))).body == {"boot": 1, "later": [1.5]}


def test_too_long_or_out_of_range_is_not_sent():
    with pytest.raises(ValueError, match="at most 1024"):
        encode(Message(Op.WRITE, 64, 0, 0, {"x": bytes(1024)}))
    with pytest.raises(ValueError, match=r"0\.\.255"):
        encode(Message(Op.WRITE, 64, 256, 0))


@settings(max_examples=300)
@given(st.binary(max_size=80), st.integers(0, 255))
def test_no_bytes_raise(body, first):
    assert isinstance(decode(packet(body, first=first)), Message | Malformed)
    assert isinstance(decode(body), Message | Malformed)


def test_random_changes_of_good_packets_never_raise():
    rng = Random(11)
    for vector in VECTORS:
        raw = bytes.fromhex(vector["packet"])
        for _ in range(100):
            broken = bytearray(raw)
            for _ in range(rng.randint(1, 3)):
                broken[rng.randrange(8, len(raw))] = rng.randrange(256)
            assert isinstance(decode(bytes(broken)), Message | Malformed)


def test_the_standard_codec_reads_what_we_write():
    header = pytest.importorskip("smp.header")
    raw = encode(Message(Op.WRITE, 0, 66, 0, {"d": "0011"}))
    seen = header.Header.loads(raw[:8])
    assert (seen.op, seen.version, seen.length, seen.group_id, seen.sequence, seen.command_id) == (
        header.OP.WRITE,
        header.Version.V2,
        len(raw) - 8,
        0,
        66,
        0,
    )
    from smp import packet as console

    from firmware_bridge.framing import smp_console

    assert b"".join(console.encode(raw, line_length=127)) == smp_console.encode(raw)
