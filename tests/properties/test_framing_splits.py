"""Any split of any stream gives the same frames, and every byte is accounted for."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge.framing import Garbage, angel_eye, smp_console

ENQ_FRAME = bytes.fromhex("05314481b8033446")
PIECES = st.one_of(
    st.binary(max_size=12),
    st.lists(st.sampled_from(b"\x02\x03\x05\x06\x151DMOPGLK0\x81"), max_size=10).map(bytes),
    st.lists(st.sampled_from(b"GPLK0\x05\x03D"), max_size=8).map(lambda rest: b"\x02OP" + bytes(rest)),
    st.sampled_from(
        [
            ENQ_FRAME,
            ENQ_FRAME[:5],
            bytes.fromhex("05324791034537"),
            b"\x02OPLK02\x031B",
            b"\x06",
            b"\x15",
            b"\x15\x02",
            b"\x05\x31\x45\x03\x03",
            b"\x05\x31\x4d",
            b"\x02\x4f\x50",
        ]
    ),
)
PACKET = bytes.fromhex("0800000100404300a0")
LINES = st.one_of(
    st.binary(max_size=40),
    st.text("abc AAsI\n", max_size=300).map(str.encode),
    st.binary(min_size=8, max_size=300).map(smp_console.encode),
    st.sampled_from(
        [
            smp_console.encode(PACKET),
            smp_console.encode(PACKET)[:-1],
            b"\x06",
            b"\x09",
            b"\x04\x14",
            b"\x06\x09" + b"A" * 126,
            b"\x06\x09" + b"A" * 127,
        ]
    ),
)


def run(decoder, chunks):
    out = []
    for chunk in chunks:
        out += decoder.feed(chunk)
    return out + decoder.flush()


def pieces_of(stream, cuts):
    edges = [0, *sorted(c % (len(stream) + 1) for c in cuts), len(stream)]
    return [stream[a:b] for a, b in itertools.pairwise(edges)]


@settings(max_examples=200)
@given(st.lists(PIECES, max_size=12).map(b"".join), st.lists(st.integers(0, 10_000), max_size=8))
def test_angel_eye(stream, cuts):
    """Frames, garbage runs and their reasons."""
    whole = run(angel_eye.Decoder(), [stream])
    assert run(angel_eye.Decoder(), [bytes([b]) for b in stream]) == whole
    assert run(angel_eye.Decoder(), pieces_of(stream, cuts)) == whole
    assert sum(i.count if isinstance(i, Garbage) else len(i.raw) for i in whole) == len(stream)
    assert not any(isinstance(a, Garbage) and isinstance(b, Garbage) for a, b in itertools.pairwise(whole))


@settings(max_examples=200)
@given(st.lists(LINES, max_size=10).map(b"".join), st.lists(st.integers(0, 10_000), max_size=8))
def test_smp_console(stream, cuts):
    whole = run(smp_console.Decoder(), [stream])
    assert run(smp_console.Decoder(), [bytes([b]) for b in stream]) == whole
    assert run(smp_console.Decoder(), pieces_of(stream, cuts)) == whole
    assert all(len(i.data) <= 64 for i in whole if isinstance(i, Garbage))


@settings(max_examples=100)
@given(st.lists(st.binary(min_size=8, max_size=1032), max_size=4))
def test_smp_console_round_trip(packets):
    stream = b"".join(map(smp_console.encode, packets))
    assert run(smp_console.Decoder(), [stream]) == [smp_console.Packet(p) for p in packets]


@settings(max_examples=100)
@given(st.sampled_from(["LK", "EC", "GP"]), st.integers(0, 99), st.booleans())
def test_angel_eye_command_round_trip(kind, number, inside):
    (seen,) = run(angel_eye.Decoder(), [angel_eye.encode_command(kind, number, bcc_includes_stx=inside)])
    assert (seen.type, seen.number, seen.bcc_includes_stx) == (kind, number, inside)
