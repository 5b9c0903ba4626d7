"""ReShuffled lines: any split gives the same, every byte is accounted for, no junk hides a frame."""

from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge.framing import Garbage
from firmware_bridge.framing.reshuffled import ENDS, Decoder, Frame, Style, encode

WORDS = st.one_of(
    st.sampled_from(["IN", "SH", "XX", "OK"]),
    st.builds("{}{}".format, st.sampled_from("DA"), st.integers(1, 99)),
    st.builds("E{}".format, st.integers(1, 9)),
)
STYLES = st.builds(
    Style, strict=st.booleans(), crc_includes_hash=st.booleans(), end=st.sampled_from(list(ENDS.values()))
)
JUNK = st.one_of(
    st.binary(max_size=40),
    st.text("Fehlr: 1#:OK\r\n;", max_size=130).map(str.encode),
    st.sampled_from([b"Error", b"Fehler: 1\r\n", b":OK#D7", b":", b"#", b"Received a request: "]),
)


def run(style: Style, chunks: list[bytes]) -> list[object]:
    decoder = Decoder(style)
    return [*(item for chunk in chunks for item in decoder.feed(chunk)), *decoder.flush()]


def pieces(data: bytes, sizes: list[int]) -> list[bytes]:
    out = []
    while data:
        size = sizes[len(out) % len(sizes)]
        out.append(data[:size])
        data = data[size:]
    return out


@settings(max_examples=200)
@given(
    STYLES,
    st.lists(st.one_of(JUNK, WORDS), max_size=12),
    st.lists(st.integers(1, 50), min_size=1, max_size=9),
)
def test_any_pieces_give_the_same_and_every_byte_is_told(style, parts, sizes):
    data = b"".join(encode(part, style) if isinstance(part, str) else part for part in parts)
    whole = run(style, [data])
    assert run(style, pieces(data, [1])) == whole
    assert run(style, pieces(data, sizes)) == whole
    told = sum(
        item.count if isinstance(item, Garbage) else len(getattr(item, "raw", item.data)) for item in whole
    )
    ends = sum(data.count(byte) for byte in (b"\r", b"\n"))
    assert len(data) - ends <= told <= len(data), "of a text its line end alone is left out"


@settings(max_examples=200)
@given(STYLES, JUNK, WORDS, JUNK)
def test_a_good_frame_is_found_whatever_stands_around_it(style, before, word, after):
    frame = encode(word, style)
    found = [item for item in run(style, [before + frame + after]) if isinstance(item, Frame)]
    assert frame in [item.raw for item in found]
    assert all(encode(item.data, style) == item.raw or item.diag for item in found)
