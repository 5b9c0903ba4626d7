"""Any split gives the same events; no telegram is lost and no copy counted in any sequence alphabet."""

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from devices.base import Setup
from devices.events import DECK, CardDrawn, Conflict, DeviceEvent, GapPossible, to_json
from devices.shoes.angel_eye import SPEC
from firmware_bridge.framing.angel_eye import bcc

SUITS = {"D": 1, "C": 2, "S": 3, "H": 4}
RANKS = "A23456789TJQK"


def telegram(seq: str, code: str, data: bytes = b"") -> bytes:
    body = seq.encode() + code.encode() + data + b"\x03"
    return b"\x05" + body + bcc(body)


def card_bytes(place: int, face: str, *, bit7: bool = True) -> bytes:
    value = bytes([place, SUITS[face[1]] << 4 | RANKS.index(face[0]) + 1])
    return bytes(b | 0x80 for b in value) if bit7 else value


faces = st.sampled_from(DECK)
places = st.sampled_from([0x01, 0x02, 0x03, 0x11, 0x12, 0x13, 0x20, 0x40, 0x51, 0x5A])
card_telegrams = st.builds(
    lambda seq, place, face, bit7: telegram(seq, "D", card_bytes(place, face, bit7=bit7)),
    st.sampled_from("123456789"), places, faces, st.booleans(),
)  # fmt: skip
pieces = st.one_of(
    card_telegrams,
    st.builds(telegram, st.sampled_from("123456789"), st.sampled_from("SPC")),
    st.sampled_from([bytes.fromhex("024f504c4b3032033142"), b"\x06", b"\x15\x02", b"\x15\x21"]),
    st.binary(min_size=1, max_size=12),
    st.lists(st.sampled_from(b"GPLK0\x05\x03D\x06\x15"), max_size=8).map(
        lambda rest: b"\x02OP" + bytes(rest)
    ),
    st.just(b"\x051M"),
    st.builds(lambda t, cut: t[:cut], card_telegrams, st.integers(1, 7)),
)


def run(chunks: list[bytes], **options: Any) -> tuple[list[dict[str, Any]], Any]:
    driver = SPEC.decoder(Setup("shoe", Random(1), options=options))
    events = [e for chunk in chunks for e in driver.feed(chunk, 0.0)]
    events += driver.lost("end of input", 0.0)
    return [to_json(e, at=None, masked=False) for e in events if isinstance(e, DeviceEvent)], driver.counters


def cut(data: bytes, seed: int) -> list[bytes]:
    random, out = Random(seed), []
    while data:
        size = random.randint(1, 9)
        out.append(data[:size])
        data = data[size:]
    return out


@settings(max_examples=150)
@given(st.lists(pieces, max_size=20), st.integers(0, 2**32))
def test_whole_bytewise_and_random_pieces_give_the_same(parts: list[bytes], seed: int) -> None:
    data = b"".join(parts)
    whole = run([data])
    assert run([data[at : at + 1] for at in range(len(data))]) == whole
    assert run(cut(data, seed)) == whole


def test_every_two_part_split_of_one_frame_gives_the_frame() -> None:
    frame = telegram("1", "D", card_bytes(1, "8S"))
    whole = run([frame])
    assert len(whole[0]) == 1
    for at in range(1, len(frame)):
        assert run([frame[:at], frame[at:]]) == whole


alphabets = st.one_of(
    st.sampled_from(["123456789", "0123456789", "0123456789ABCDEF"]),
    st.lists(st.sampled_from([chr(c) for c in range(0x21, 0x7F)]), min_size=5, max_size=20, unique=True).map(
        "".join
    ),
)


@settings(max_examples=100)
@given(
    alphabets,
    st.sampled_from(["learn", "free", "hex", "digits19", "digits09"]),
    st.lists(st.tuples(faces, st.integers(0, 3), st.floats(0.05, 2.0)), min_size=1, max_size=60),
    st.integers(0, 19),
)
def test_no_card_is_lost_and_no_copy_counted(
    alphabet: str, profile: str, cards: list[tuple[str, int, float]], start: int
) -> None:
    timed: list[tuple[float, int, bytes]] = []
    now = 0.0
    for at, (face, copies, pause) in enumerate(cards):
        frame = telegram(alphabet[(start + at) % len(alphabet)], "D", card_bytes(0x51, face))
        timed += [(now + 0.05 * copy, at, frame) for copy in range(copies + 1)]
        now += pause
    driver = SPEC.decoder(Setup("shoe", Random(1), options={"seq_profile": profile}))
    events = [e for when, _, frame in sorted(timed) for e in driver.feed(frame, when)]
    assert [e.card for e in events if isinstance(e, CardDrawn)] == [face for face, _, _ in cards]
    assert driver.counters.repeats == sum(copies for _, copies, _ in cards)
    assert not any(isinstance(e, Conflict) for e in events)
    if profile == "free":
        assert not any(isinstance(e, GapPossible) for e in events)


@settings(max_examples=60)
@given(
    st.sampled_from(["123456789", "0123456789", "0123456789ABCDEF"]), st.integers(0, 15), st.integers(1, 60)
)
def test_a_learner_finds_no_gap_in_a_regular_alphabet(alphabet: str, start: int, length: int) -> None:
    driver = SPEC.decoder(Setup("shoe", Random(1)))
    events = [
        e
        for at in range(length)
        for e in driver.feed(telegram(alphabet[(start + at) % len(alphabet)], "P"), at * 0.1)
    ]
    assert [e.kind for e in events if isinstance(e, DeviceEvent)] == ["standby"] * length
