"""Bee-Tek messages: where one begins and ends, whatever stands between them."""

import pytest

from firmware_bridge.framing import Garbage
from firmware_bridge.framing.bee_tek import (
    BODY_LIMIT,
    CUT,
    LOOSE_TEXT,
    MODE_LIMIT,
    TOO_LONG,
    UNFINISHED,
    Decoder,
    Message,
)


def read(*chunks: bytes) -> list[Message | Garbage]:
    decoder = Decoder()
    return [item for chunk in chunks for item in decoder.feed(chunk)] + decoder.flush()


def message(text: bytes) -> Message:
    mode, _, body = text.removesuffix(b">").rpartition(b"<")
    return Message(text, mode[1:-1] or None, body)


CARD, BURN = message(b"[Game]<Card:4S>"), message(b"[Manual Burn Cards]<Card:TH>")


def test_a_message_is_its_mode_and_its_body():
    card = Message(b"[Game]<Card:4S>", b"Game", b"Card:4S")
    assert read(CARD.raw, BURN.raw, b"<W0x01>") == [card, BURN, Message(b"<W0x01>", None, b"W0x01")]


@pytest.mark.parametrize("separator", [b"", b" ", b"  ", b"\r\n", b"\n", b" \r\n "])
def test_separators_are_no_events_and_no_message_needs_one(separator):
    stream = separator.join([b"", CARD.raw, BURN.raw, CARD.raw, b""])
    assert read(stream) == [CARD, BURN, CARD]


def test_nothing_waits_once_a_message_is_whole():
    decoder = Decoder()
    assert decoder.feed(b" " + CARD.raw) == [CARD]
    assert not decoder.pending
    assert decoder.feed(b" \r\n") == []
    assert not decoder.pending


@pytest.mark.parametrize("loose", [b"4S", b"4S 5H", b"Bee-Tek 1.0\r\nready", b"("])
def test_text_between_messages_is_one_run_without_the_separators_around_it(loose):
    wanted = [CARD, Garbage(LOOSE_TEXT, loose, len(loose)), CARD]
    assert read(CARD.raw + b" " + loose + b"\r\n" + CARD.raw) == wanted


@pytest.mark.parametrize("noise", [b"\xff", b"4\x00S", b"4S>", b"]", b"ab]c", b"\x7f"])
def test_other_bytes_between_messages_are_noise(noise):
    assert read(CARD.raw + noise + b" " + CARD.raw) == [CARD, Garbage("noise", noise, len(noise)), CARD]


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (b"[", CUT), (b"[Ga", CUT), (b"[Game]", CUT), (b"[Game]<", CUT), (b"[Game]<Card:4S", CUT),
        (b"[Game]Card:4S", CUT), (b"[Game", CUT), (b"<Card:4", CUT),
        (b"[" + b"x" * (MODE_LIMIT + 1), TOO_LONG), (b"<" + b"x" * (BODY_LIMIT + 1), TOO_LONG),
    ],
)  # fmt: skip
def test_a_message_that_the_next_one_cuts_off_does_not_take_it_along(part, reason):
    assert read(part + BURN.raw) == [Garbage(reason, part[:64], len(part)), BURN]


def test_a_mode_whose_end_is_gone_does_not_take_its_body_along():
    assert read(b"[Game<Card:4S>") == [Garbage(CUT, b"[Game", 5), Message(b"<Card:4S>", None, b"Card:4S")]


def test_a_line_end_ends_a_message():
    assert read(b"[Game]<Card:4\r\nS>" + CARD.raw) == [Garbage(CUT, b"[Game]<Card:4\r\nS>", 17), CARD]


def test_the_longest_texts_are_read():
    longest = message(b"[" + b"m" * MODE_LIMIT + b"]<" + b"b" * BODY_LIMIT + b">")
    assert read(longest.raw) == [longest]


def test_silence_gives_up_what_is_under_way():
    decoder = Decoder()
    assert decoder.feed(b"4S [Game]<Card:5") == []
    assert decoder.pending
    assert decoder.flush() == [Garbage(UNFINISHED, b"4S [Game]<Card:5", 16)]
    assert not decoder.pending
    assert decoder.feed(b"H>" + CARD.raw) == [Garbage("noise", b"H>", 2), CARD]


def test_a_long_run_keeps_its_first_64_bytes_and_counts_all():
    noise = bytes([0x80]) * 30 + b" " * 100 + b"z" * 1000
    assert read(noise + b"   " + CARD.raw) == [Garbage("noise", noise[:64], 1130), CARD]


def test_separators_alone_fill_no_buffer():
    decoder = Decoder()
    for _ in range(100):
        assert decoder.feed(b" \r\n" * 1000) == []
    assert not decoder.pending
    assert decoder.feed(CARD.raw) == [CARD]
