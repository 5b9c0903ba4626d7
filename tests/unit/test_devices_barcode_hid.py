"""The barcode reader's driver: reports to presses, presses to codes, and only exact codes to cards."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from devices.base import OptionError, Resume, Setup
from devices.events import DECK, DeviceEvent, to_json
from devices.readers.barcode_hid import CARDS, SPEC
from firmware_bridge.link import Complete, NotSent

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "barcode_hid.json").read_text())["vectors"]
UP = bytes(8)


def decoder(*, packets: bool = True, **options: Any) -> Any:
    return SPEC.decoder(Setup("reader", Random(1), options=options, packets=packets))


def down(key: int, modifiers: int = 0) -> bytes:
    return bytes((modifiers, 0, key, 0, 0, 0, 0, 0))


def typed(code: str, enter: int = 0x28) -> list[bytes]:
    keys = [0x27 if digit == "0" else 0x1D + int(digit) for digit in code] + [enter]
    return [report for key in keys for report in (down(key), UP)]


def feed(driver: Any, reports: list[bytes], at: float = 0.0, step: float = 0.008) -> list[DeviceEvent]:
    return [e for place, report in enumerate(reports) for e in driver.feed(report, at + place * step)]


def short(events: Any) -> list[tuple[Any, ...]]:
    fields = ("card", "reason", "bytes", "missing")
    return [(e.kind, *(getattr(e, name) for name in fields if hasattr(e, name))) for e in events]


def cards(events: Any) -> list[str]:
    return [e.card for e in events if e.kind == "card_drawn"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["meaning"])
def test_every_vector_is_its_card_or_none(vector):
    driver = decoder(**vector.get("options", {}))
    reports = [bytes.fromhex(report) for report in vector["reports"]]
    events = feed(driver, reports)
    events += driver.tick(len(reports) * 0.008 + 0.3)
    if vector["card"] is not None:
        assert short(events) == [("card_drawn", vector["card"])]
        assert events[0].raw == b"".join(reports[: len(reports) - 1])[: len(events[0].raw)]
        assert (events[0].position, events[0].index, events[0].seq) == (None, None, None)
        return
    rejected, gap = events
    assert (rejected.kind, rejected.reason) == ("frame_rejected", vector["reason"])
    assert (gap.kind, gap.missing) == ("gap_possible", None)
    assert short(feed(driver, typed("4130"), 60.0)) == [("card_drawn", "KD")], "the next code is clean"


@pytest.mark.parametrize("vector", [v for v in VECTORS if "options" in v], ids=lambda v: v["meaning"])
def test_what_only_an_option_allows_is_no_card_without_it(vector):
    events = feed(decoder(), [bytes.fromhex(report) for report in vector["reports"]])
    assert cards(events) == []


def test_the_table_has_every_card_of_a_deck_once():
    assert sorted(CARDS.values()) == sorted(DECK)
    assert (CARDS["1010"], CARDS["4130"], CARDS["2100"], CARDS["3090"]) == ("AS", "KD", "TH", "9C")
    for code, card in CARDS.items():
        assert cards(feed(decoder(), typed(code))) == [card]


def test_of_all_numbers_of_up_to_five_digits_only_the_52_are_cards():
    driver, found = decoder(), 0
    numbers = [f"{n:0{size}d}" for size in range(1, 5) for n in range(10**size)]
    numbers += [code[:at] + "0" + code[at:] for code in CARDS for at in range(5)]
    for at, text in enumerate(numbers):
        events = feed(driver, typed(text), at * 10.0)
        assert cards(events) == ([CARDS[text]] if text in CARDS else [])
        found += len(cards(events))
    assert found == 52


def test_a_press_counts_when_it_goes_down_however_long_it_stays_down():
    one, _, zero, _, *rest = typed("1010")
    events = feed(decoder(), [one] * 20 + [UP] * 3 + [zero] * 20 + [UP, *rest], step=0.004)
    assert cards(events) == ["AS"]


def test_a_key_that_stays_down_for_ever_is_given_up():
    driver = decoder()
    feed(driver, [down(0x1E)])
    assert driver.deadline() == pytest.approx(0.2)
    events = feed(driver, [down(0x1E)] * 100, 0.01)
    assert short(events) == [("frame_rejected", "code without its end", 25 * 8), ("gap_possible", None)]
    assert driver.deadline() is None, "the repeated report alone begins nothing"
    assert cards(feed(driver, [UP, *typed("4130")], 2.0)) == ["KD"]


def test_a_code_of_more_reports_than_a_code_can_have_is_none():
    reports = typed("1010")
    flood = [reports[0]] * 70 + reports[1:]
    events = feed(decoder(), flood, step=0.001)
    assert short(events) == [("frame_rejected", "too long", (len(flood) - 1) * 8), ("gap_possible", None)]
    assert len(events[0].raw) == 64


def test_two_cards_within_half_a_second_are_two_cards_and_so_are_two_equal_ones():
    driver = decoder()
    events = feed(driver, typed("1010")) + feed(driver, typed("1010"), 0.2) + feed(driver, typed("4130"), 0.4)
    assert cards(events) == ["AS", "AS", "KD"]
    back_to_back = feed(decoder(), typed("1010") * 3, step=0.001)
    assert cards(back_to_back) == ["AS", "AS", "AS"]


@pytest.mark.parametrize(
    ("gap_ms", "pause", "card"), [(200, 0.19, True), (200, 0.21, False), (500, 0.4, True)]
)
def test_a_pause_within_a_code_ends_it(gap_ms, pause, card):
    driver = decoder(gap_ms=gap_ms)
    reports = typed("1010")
    events = feed(driver, reports[:4]) + feed(driver, reports[4:], 0.016 + pause)
    if card:
        assert cards(events) == ["AS"]
    else:
        assert [e.reason for e in events if e.kind == "frame_rejected"] == [
            "code without its end",
            "not four digits",
        ]


def test_the_rest_of_one_code_and_the_rest_of_another_make_no_third():
    """1 of the first and 030 of the second would be the three of spades."""
    driver = decoder()
    events = feed(driver, typed("1010")[:2]) + feed(driver, typed("2030")[2:], 0.3)
    assert cards(events) == []
    assert [e.kind for e in events] == ["frame_rejected", "gap_possible"] * 2


def test_unplugged_in_mid_code_the_part_is_dropped_and_told_and_the_next_code_is_clean():
    driver = SPEC.reader(Setup("reader", Random(1), packets=True))
    driver.start(0.0)
    feed(driver, typed("1010")[:5])
    events = list(driver.lost("unplugged", 0.1))
    assert short(events) == [
        ("frame_rejected", "code without its end", 40),
        ("gap_possible", None),
        ("link_down", "unplugged"),
    ]
    assert [e.kind for e in driver.start(1.0)] == ["link_up", "gap_possible"]
    assert cards(feed(driver, typed("1010"), 1.1)) == ["AS"], "a key that was down then is up"


def test_reports_come_one_a_transfer_and_as_a_stream_in_any_pieces():
    reports = typed("1010") + typed("4130")
    for size in (1, 3, 7, 8, 13, 200):
        stream, driver = b"".join(reports), decoder(packets=False)
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert cards(feed(driver, pieces)) == ["AS", "KD"]
        assert driver.lost("end of input", 1.0) == []
    driver = decoder(packets=False)
    feed(driver, [b"".join(reports)[:-3]])
    assert short(driver.lost("end of input", 1.0)) == [
        ("frame_rejected", "report of another size", 5),
        ("gap_possible", None),
    ]


def test_reports_that_are_shifted_in_a_stream_are_no_cards():
    stream = b"".join(typed("1010") * 4)
    for lost in range(1, 8):
        events = feed(decoder(packets=False), [stream[lost:]], 1.0)
        assert set(cards(events)) <= {"AS"}, lost


def test_codes_never_stand_in_a_reason():
    for vector in VECTORS:
        driver = decoder()
        events = feed(driver, [bytes.fromhex(r) for r in vector["reports"]]) + driver.tick(9.0)
        assert not any(
            digit in e.reason for e in events if e.kind == "frame_rejected" for digit in "0123456789"
        )


def test_everything_that_may_show_a_card_can_be_masked():
    driver = decoder()
    events = feed(driver, typed("1010") + typed("1011"))
    masked = [to_json(e, at=None, masked=True) for e in events]
    assert [(e.get("card"), e["raw"]) for e in masked] == [(None, None)] * 3


def test_bad_options_are_named():
    for name, value in (("terminator", "tab"), ("digits", "roman"), ("reserved", "one")):
        with pytest.raises(OptionError, match=f"{name} is one of .*not '{value}'"):
            decoder(**{name: value})
    for value in (19, 2001, "200", True):
        with pytest.raises(OptionError, match="gap_ms is a number from 20 to 2000"):
            decoder(gap_ms=value)


def test_field_42_a_reader_that_numbers_nothing_may_have_read_something_meanwhile():
    fresh = SPEC.reader(Setup("reader", Random(1), packets=True))
    assert [e.kind for e in fresh.start(0.0)] == ["link_up"]
    again = SPEC.reader(Setup("reader", Random(1), Resume(n=3), packets=True))
    assert [(e.kind, e.n) for e in again.start(0.0)] == [("link_up", 4), ("gap_possible", 5)]


def test_it_takes_no_commands_and_serves_no_table():
    driver = SPEC.controlled(Setup("reader", Random(1), packets=True))
    driver.start(0.0)
    (end,) = driver.command("c", "peek", {}, 1.0)
    assert end == Complete("c", NotSent("this device takes no commands"))
    assert (SPEC.role, SPEC.games, SPEC.commands, SPEC.polled) == ("reader", frozenset(), (), False)
    assert "whose card" in SPEC.unfit
