"""The Bee-Tek simulator against the document's vectors, its forms and its prepared faults."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from simulators import faults
from simulators.models.cards import Card, CuttingCard, Stack
from simulators.models.selfplay import SelfPlay
from simulators.models.shoe import Shoe
from simulators.wire.bee_tek import LINE_RATE, BeeTek, message

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "bee_tek.json").read_text())
BYTE_S = 10 / LINE_RATE
TEXTS = {v["meaning"]: bytes.fromhex(v["hex"]) for v in VECTORS["vectors"]}


def bee_tek(cards: str = "4S TH 6D", **options) -> BeeTek:
    """A shoe of these cards; `|` is the cutting card."""
    shoe = Shoe(Random(1))
    items = [
        CuttingCard() if face == "|" else Card(n, *face, back="red") for n, face in enumerate(cards.split())
    ]
    shoe.open_lid()
    shoe.load(Stack(items))
    shoe.close_lid()
    return BeeTek(shoe, **options)


def drawn(device: BeeTek, count: int = 3) -> bytes:
    """What `count` draws, a second apart, put on the wire."""
    out = b""
    for number in range(count):
        device.advance(float(number))
        device.shoe.draw()
        device.advance(float(number))
        out += device.transmit(number + 0.9)
    return out


def test_messages_are_the_documents() -> None:
    assert message(b"[Game]", "Card:AC") == TEXTS["ace of clubs"]
    device = bee_tek("4S")
    assert drawn(device, 1) == TEXTS["game mode, 4 of spades, a space on either side"]
    device = bee_tek("TH", mode="burn")
    assert drawn(device, 1) == TEXTS["manual burn mode, ten of hearts"]
    device = bee_tek("4S")
    faults.apply(device, "misread")
    assert drawn(device, 1) == TEXTS["a card passed and was not read"]
    device = bee_tek("4S", unread="alarm")
    faults.apply(device, "misread")
    assert drawn(device, 1) == TEXTS["alarm E3, no card told with it"]
    device = bee_tek(separator="none")
    device.warn("01", 0.0)
    assert device.transmit(0.1) == TEXTS["warning 01, without separators"]
    assert drawn(bee_tek("TH", separator="none", ten=True), 1) == TEXTS["a ten sent as 10"]
    assert (
        drawn(bee_tek("TS", separator="none", ten=True, suit_first=True), 1)
        == TEXTS["suit first, a ten sent as 10"]
    )


@pytest.mark.parametrize(
    ("separator", "meaning"),
    [
        ("space", "one space between messages: all three cards"),
        ("double", "two spaces"),
        ("crlf", "CR LF and no spaces"),
        ("none", "no separator at all"),
    ],
)
def test_separators_are_the_documents(separator: str, meaning: str) -> None:
    (stream,) = (s["chunks"][0] for s in VECTORS["streams"] if s["meaning"] == meaning)
    assert drawn(bee_tek("4S 5H 6D", separator=separator)) == bytes.fromhex(stream)


def test_the_echo_comes_behind_each_card_in_game_mode_alone() -> None:
    assert drawn(bee_tek(separator="none", echo=True, ten=True)) == (
        b"[Game]<Card:4S>4S[Game]<Card:10H>10H[Game]<Card:6D>6D"
    )
    assert drawn(bee_tek("4S", separator="none", echo=True, mode="burn")) == b"[Manual Burn Cards]<Card:4S>"


def test_an_unread_card_may_come_with_its_alarm() -> None:
    device = bee_tek("4S", separator="crlf", unread="both")
    faults.apply(device, "misread")
    assert drawn(device, 1) == b"[GameAlarm]<Alarm:E3 Card Not Read>\r\n[Game]<Game>\r\n"
    assert device.newest == 1


def test_it_tells_cards_alone() -> None:
    device = bee_tek("4S | TH")
    SelfPlay(device.shoe, Random(1), pace=1000.0)
    device.shoe.set_lock(True, by="key")
    device.shoe.set_lock(False, by="key")
    device.shoe.open_lid()
    device.shoe.close_lid()
    device.receive(b"anything", 0.0)
    assert drawn(device) == b" [Game]<Card:4S> [Game]<Card:TH> "
    assert device.shoe.empty
    assert device.newest == 2
    device.shoe.power_cut(1.0)
    assert device.transmit(10.0) == b""


def test_bytes_take_their_time() -> None:
    device = bee_tek("4S", separator="none")
    device.shoe.draw()
    device.advance(0.0)
    out = []
    while (due := device.deadline()) is not None:
        out.append((round(due, 6), device.transmit(due)))
    text = b"[Game]<Card:4S>"
    assert out == [(round(n * BYTE_S, 6), text[n - 1 : n]) for n in range(1, len(text) + 1)]


# --- prepared faults ---


@pytest.mark.parametrize(
    ("fault", "stream"),
    [
        ("alarm@2", "[Game]<Card:4S>[GameAlarm]<Alarm:E3 Card Not Read>[Game]<Card:TH>[Game]<Card:6D>"),
        ("alarm:E9 Door@1", "[GameAlarm]<Alarm:E9 Door>[Game]<Card:4S>[Game]<Card:TH>[Game]<Card:6D>"),
        ("warning@3", "[Game]<Card:4S>[Game]<Card:TH><W0x01>[Game]<Card:6D>"),
        ("warning:2A@1", "<W0x2A>[Game]<Card:4S>[Game]<Card:TH>[Game]<Card:6D>"),
        ("damage:12@2", "[Game]<Card:4S>[Game]<Card:\xabH>[Game]<Card:6D>"),
        ("damage@1", "[Game]<\xbcard:4S>[Game]<Card:TH>[Game]<Card:6D>"),
        ("chatter@2", "[Game]<Card:4S>Bee-Tek 1.0\r\n[Game]<Card:TH>[Game]<Card:6D>"),
        ("line_cut@2", "[Game]<Card:4S>[Game]<[Game]<Card:6D>"),
        ("line_cut:1.5@2", "[Game]<Card:4S>[Game]<"),
        ("misread@2", "[Game]<Card:4S>[Game]<Game>[Game]<Card:6D>"),
        ("ten", "[Game]<Card:4S>[Game]<Card:10H>[Game]<Card:6D>"),
        ("echo", "[Game]<Card:4S>4S[Game]<Card:TH>TH[Game]<Card:6D>6D"),
        ("suit_first", "[Game]<Card:S4>[Game]<Card:HT>[Game]<Card:D6>"),
        ("mode:burn", "".join(f"[Manual Burn Cards]<Card:{face}>" for face in ("4S", "TH", "6D"))),
    ],
)  # fmt: skip
def test_a_fault_by_name(fault: str, stream: str) -> None:
    device = bee_tek(paced=False)
    faults.apply(device, "separator:none")
    faults.apply(device, fault)
    assert drawn(device) == stream.encode("latin-1")


def test_a_cut_line_loses_what_is_under_way_and_what_begins_meanwhile() -> None:
    device = bee_tek("4S TH 6D", separator="none")
    faults.apply(device, "line_cut@1")
    out = b""
    for at in (0.0, 0.3, 0.5):
        device.advance(at)
        device.shoe.draw()
        device.advance(at)
        while (due := device.deadline()) is not None:
            out += device.transmit(due)
    whole = b"[Game]<Card:TH>"
    back = next(n for n in range(1, 16) if 0.3 + n * BYTE_S >= 7.5 * BYTE_S + 0.3)
    assert out == b"[Game]<" + whole[back - 1 :] + b"[Game]<Card:6D>"
    assert 1 < back < 15


@pytest.mark.parametrize(
    "fault",
    ["separator", "separator:tab", "mode:x", "unread@1", "echo:1", "ten@2", "warning:XY", "silent", "jam"],
)
def test_a_fault_it_cannot_have_is_refused(fault: str) -> None:
    with pytest.raises(faults.UnfitFault):
        faults.apply(bee_tek(), fault)


@pytest.mark.parametrize("fault", ["alarm", "warning", "line_cut", "echo", "separator:none"])
def test_other_devices_have_none_of_these(fault: str) -> None:
    from simulators.wire.angel_eye import AngelEye

    with pytest.raises(faults.UnfitFault, match="only a bee-tek"):
        faults.apply(AngelEye(Shoe(Random(1))), fault)
