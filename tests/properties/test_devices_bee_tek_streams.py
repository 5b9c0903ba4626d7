"""A damaged Bee-Tek line: the cards told are the shoe's, or the driver says that some may be missing."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from devices.base import Setup
from devices.events import DECK, CardDrawn, DeviceEvent, to_json
from devices.shoes.bee_tek import ORDERS, SPEC
from firmware_bridge.framing import Garbage
from firmware_bridge.framing.bee_tek import BODY_LIMIT, MODE_LIMIT, Decoder
from simulators.models.cards import Card, Stack
from simulators.models.shoe import Shoe
from simulators.wire.bee_tek import MODES, SEPARATORS, BeeTek
from tests.support.streams import Codec, hostile, is_subsequence

CARD_LETTERS = b"A23456789TJQK10CDHS"
Timed = list[tuple[float, int, int | None]]
"""A line: each byte with the time at which it arrives, s, and the number of the card that it tells of."""

# --- the simulated shoe's own line ---


@st.composite
def shoes(draw: Any) -> tuple[list[str | None], Timed, dict[str, str]]:
    """Cards drawn 0.3 s apart or more, what they put on the wire, and the driver's options that fit."""
    unread = draw(st.sampled_from(["game", "alarm", "both"]))
    faces = draw(st.lists(st.sampled_from([*DECK, *[None] * 8]), min_size=1, max_size=8))
    shoe = Shoe(Random(0))
    shoe.open_lid()
    shoe.load(Stack(Card(n, *(face or "4S"), back="red") for n, face in enumerate(faces)))
    suit_first = draw(st.booleans())
    device = BeeTek(
        shoe,
        separator=draw(st.sampled_from(list(SEPARATORS))),
        mode=draw(st.sampled_from(list(MODES))),
        unread=unread,
        echo=draw(st.booleans()),
        ten=draw(st.booleans()),
        suit_first=suit_first,
    )
    for number, face in enumerate(faces, 1):
        if face is None:
            shoe.traps.set("misread", number)
    line: Timed = []
    now = 0.0
    for number, _ in enumerate(faces):
        now += draw(st.sampled_from([0.3, 0.5, 2.0]))
        if draw(st.integers(0, 9)) == 0:
            device.warn("01", now)
        line += sent(device, None)
        device.advance(now)
        shoe.draw()
        device.advance(now)
        line += sent(device, number)
    orders = ["both", "suit_first" if suit_first else "rank_first"]
    options = {
        "card_order": draw(st.sampled_from(orders)),
        "e3_reading": "card" if unread == "alarm" else "alarm",
        "echo": draw(st.sampled_from(["same", "any"])) if device.echo else "same",
    }
    return faces, line, options


def sent(device: BeeTek, card: int | None) -> Timed:
    """What is on its way, byte by byte; separators tell of no card."""
    line: Timed = []
    while (due := device.deadline()) is not None:
        line += [(due, byte, None if byte in b" \r\n" else card) for byte in device.transmit(due)]
    return line


@st.composite
def harm(draw: Any, line: Timed) -> Timed:
    """The line with bytes lost, changed and added, and cut for a while.

    A byte is not changed into another letter of a card, nor is one added: that is what no check byte tells.
    """
    harmless = st.integers(0, 255).filter(lambda byte: byte not in CARD_LETTERS)
    line = list(line)
    for _ in range(draw(st.integers(0, 6))):
        if not line:
            break
        at = draw(st.integers(0, len(line) - 1))
        how = draw(st.sampled_from(["lose", "change", "add", "cut", "cut"]))
        if how == "lose":
            del line[at]
        elif how == "change":
            line[at] = (line[at][0], draw(harmless), line[at][2])
        elif how == "add":
            line.insert(at, (line[at][0] - draw(st.sampled_from([0.0, 0.15])), draw(harmless), None))
            line.sort(key=lambda byte: byte[0])
        else:
            start = line[at][0]
            end = start + draw(st.sampled_from([0.005, 0.1, 0.3, 1.0]))
            line = [byte for byte in line if not start <= byte[0] < end]
    return line


def played(line: Timed, options: dict[str, str]) -> list[DeviceEvent]:
    """What the driver tells when it reads each byte as it arrives, and is called when it asks to be."""
    driver: Any = SPEC.decoder(Setup("shoe", Random(1), options=options))
    events: list[DeviceEvent] = []
    for at, byte, _ in line:
        while (due := driver.deadline()) is not None and due <= at:
            events += driver.tick(due)
        events += driver.feed(bytes([byte]), at)
    return [*events, *driver.lost("end of input", line[-1][0] + 2.0 if line else 0.0)]


def fits(told: list[str | None], truth: list[str | None]) -> bool:
    """Whether what was told is the truth with cards left out or not named, in order."""
    rest = iter(truth)
    return all(any(card is None or card == real for real in rest) for card in told)


@settings(max_examples=60)
@given(shoes())
def test_an_undamaged_line_is_the_shoes_truth_in_every_form(shoe: Any) -> None:
    faces, line, options = shoe
    events = played(line, options)
    assert [e.card for e in events if isinstance(e, CardDrawn)] == faces
    assert {e.kind for e in events} <= {"card_drawn", "fault_raised", "warning"}


@settings(max_examples=150)
@given(st.data())
def test_a_damaged_line_tells_no_wrong_card_and_says_when_one_may_be_missing(data: Any) -> None:
    """A card of which no byte arrived leaves nothing to tell: nobody counts for this shoe."""
    faces, line, options = data.draw(shoes())
    line = data.draw(harm(line))
    events = played(line, options)
    cards = [e for e in events if isinstance(e, CardDrawn)]
    assert fits([e.card for e in cards], faces)
    if any(e.kind == "gap_possible" for e in events):
        return
    left = {number for _, _, number in line}
    traced = [face for number, face in enumerate(faces) if number in left]
    assert len(cards) == len(traced), "a card of which a byte arrived is told"
    for told, face in zip(cards, traced, strict=True):
        assert told.card == face or (told.card is None and told.diag), "a card not believed says why"


# --- what no check byte tells: the limit, to the bit ---


def test_one_changed_bit_of_a_card_is_another_card_in_106_of_832_cases_and_in_no_other_place() -> None:
    believed = 0
    for face in DECK:
        whole = f"[Game]<Card:{face}>".encode()
        for bit in range(len(whole) * 8):
            broken = bytearray(whole)
            broken[bit // 8] ^= 1 << bit % 8
            line: Timed = [(0.001 * n, byte, 0) for n, byte in enumerate(bytes(broken))]
            cards = [e.card for e in played(line, {}) if isinstance(e, CardDrawn)]
            wrong = [card for card in cards if card not in (None, face)]
            assert not wrong or bit // 8 in (12, 13), (face, bit)
            believed += len(wrong)
    assert believed == 106


def test_the_order_suit_first_has_no_such_bit_when_only_it_is_read() -> None:
    """The other order on the wire would not be believed at all: fix the order where it is known."""
    for text, face in ORDERS["suit_first"].items():
        for bit in range(8, 16):
            broken = bytearray(text)
            broken[bit // 8 % len(text)] ^= 1 << bit % 8
            found = ORDERS["suit_first"].get(bytes(broken))
            assert found is None or found[1] == face[1]


# --- any bytes, any split ---

PARTS = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(
        [b"[Game]<Card:4S>", b"[Manual Burn Cards]<Card:TH>", b"[Game]<Game>", b"<W0x01>", b" ", b"\r\n",
         b"4S", b"[GameAlarm]<Alarm:E3 Card Not Read>", b"[", b"[Game", b"[Game]", b"[Game]<Card:", b">",
         b"]", b"[" + b"m" * MODE_LIMIT, b"<" + b"b" * BODY_LIMIT]
    ),
    st.lists(st.sampled_from(b"[]<> \r\nGameCard:4S"), max_size=30).map(bytes),
)  # fmt: skip


def told(chunks: list[bytes]) -> list[dict[str, Any]]:
    driver: Any = SPEC.decoder(Setup("shoe", Random(1)))
    events = [e for chunk in chunks for e in driver.feed(chunk, 0.0)]
    return [to_json(e, at=None, masked=False) for e in [*events, *driver.lost("end of input", 0.0)]]


@settings(max_examples=100)
@given(st.lists(PARTS, max_size=20).map(b"".join), st.integers(0, 2**32))
def test_whole_bytewise_and_random_pieces_give_the_same(stream: bytes, seed: int) -> None:
    random, chunks, at = Random(seed), [], 0
    while at < len(stream):
        chunks.append(stream[at : at + random.randint(1, 9)])
        at += len(chunks[-1])
    assert told(chunks) == told([stream]) == told([bytes([byte]) for byte in stream])


@settings(max_examples=100)
@given(st.lists(PARTS, max_size=20).map(b"".join))
def test_every_byte_is_accounted_for(stream: bytes) -> None:
    decoder = Decoder()
    items = [*decoder.feed(stream), *decoder.flush()]
    sizes = sum(i.count if isinstance(i, Garbage) else len(i.raw) for i in items)
    assert len(stream) - sum(map(stream.count, (b" ", b"\r", b"\n"))) <= sizes <= len(stream)
    assert all(len(i.data) <= 64 for i in items if isinstance(i, Garbage))


CODEC = Codec(
    "bee_tek", Decoder,
    [b"[Game]<Card:4S>", b"[Manual Burn Cards]<Card:10H>", b"[Game]<Game>", b"[GameAlarm]<Alarm:E3>"],
    [b"[", b"]", b"<", b">", b"[Game", b"[Game]", b"<Card:", b"<W0x01>", b"4S", b" ", b"\r\n", b"[Game]<",
     b"x" * 40],
    slack=0,
)  # fmt: skip


def test_much_junk_hides_no_good_message_and_fills_no_buffer() -> None:
    random, decoder = Random("fuzz/bee_tek"), Decoder()
    for chunks, good in hostile(CODEC, random, 300_000):
        items = []
        for chunk in chunks:
            items += decoder.feed(chunk)
            assert len(decoder._buffer) <= MODE_LIMIT + BODY_LIMIT + 4
            assert len(decoder._run._blank) <= 64
            assert len(decoder._run._run._data) <= 64
        assert is_subsequence(good, [bytes(item.raw) for item in items if not isinstance(item, Garbage)]), (
            good
        )
