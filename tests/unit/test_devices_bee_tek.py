"""The Bee-Tek driver: golden vectors, each reading of what its sources leave open, and its session."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from devices.base import OptionError, Resume, Setup
from devices.events import DECK, DeviceEvent, to_json
from devices.registry import load
from devices.shoes.bee_tek import PARTNER, SILENCE, SPEC
from firmware_bridge.link import Complete, NotSent

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "bee_tek.json").read_text())
COMMON = {"device", "n", "at", "raw", "seq"}
GAP = {"kind": "gap_possible", "missing": None}


def decoder(**options: Any) -> Any:
    return SPEC.decoder(Setup("shoe", Random(1), options=options))


def short(events: Any) -> list[dict[str, Any]]:
    """Kind, own fields and optional keys, as in JSON."""
    found = [to_json(e, at=None, masked=False) for e in events if isinstance(e, DeviceEvent)]
    assert all(e["seq"] is None for e in found)
    return [{k: v for k, v in e.items() if k not in COMMON} for e in found]


def decode(*texts: str | bytes, step: float = 0.1, **options: Any) -> list[dict[str, Any]]:
    """Each text `step` s after the one before, then the end of the input."""
    driver, events = decoder(**options), []
    for number, text in enumerate(texts):
        data = text.encode("latin-1") if isinstance(text, str) else text
        events += driver.feed(data, step * number) if data else ()
    events += driver.lost("end of input", step * len(texts))
    return short(events)


def kinds(*texts: str, **more: Any) -> list[str]:
    return [e["kind"] for e in decode(*texts, **more)]


def cards(*texts: str, **more: Any) -> list[str | None]:
    return [e["card"] for e in decode(*texts, **more) if e["kind"] == "card_drawn"]


def card(face: str | None, *diag: str, in_game: bool = True) -> dict[str, Any]:
    drawn = {"kind": "card_drawn", "card": face, "position": None, "index": None, "in_game": in_game}
    return {**drawn, "face_up": False, "back": None, **({"diag": list(diag)} if diag else {})}


def alarm(code: str, name: str, *diag: str) -> dict[str, Any]:
    raised = {"kind": "fault_raised", "code": code, "name": name, "latched": False}
    return {**raised, **({"diag": list(diag)} if diag else {})}


def rejected(reason: str, size: int) -> dict[str, Any]:
    return {"kind": "frame_rejected", "reason": reason, "bytes": size}


def said(text: str) -> dict[str, Any]:
    return {"kind": "chatter", "text": text}


E3 = alarm("E3", "card_not_read")
LONE_E3 = "[GameAlarm]<Alarm:E3 Card Not Read>"
W01 = {"kind": "warning", "code": "W0x01"}

# --- golden and negative vectors ---

EXPECTED = {
    "game mode, 4 of spades, a space on either side": [card("4S")],
    "manual burn mode, ten of hearts": [card("TH", in_game=False)],
    "alarm E3, no card told with it": [E3, GAP],
    "a card passed and was not read": [card(None)],
    "warning 01, without separators": [W01],
    "alarm E3 in game mode, CR LF": [E3, GAP],
    "unread card in manual burn mode": [card(None, in_game=False)],
    "a ten sent as 10": [card("TH")],
    "suit first": [card("3H", "suit_first", in_game=False)],
    "suit first, a ten sent as 10": [card("TS", "suit_first")],
    "ace of clubs": [card("AC")],
    "an alarm whose meaning is unknown": [alarm("E7", "unknown"), said("E7 Something Else")],
    "no rank 1": [card(None, "bad_card")],
    "no suit X": [card(None, "bad_card")],
    "lower case is a changed bit, not a suit": [card(None, "bad_card")],
    "two ranks": [card(None, "bad_card")],
    "three characters that are no ten": [card(None, "bad_card")],
    "top bit of the suit set": [card(None, "bad_card")],
    "no characters": [card(None, "bad_card")],
    "a mode nobody knows": [card(None, "unknown_mode")],
    "a card in the mode of alarms": [card(None, "unknown_mode")],
    "a card without a mode": [card(None, "no_mode")],
    "no such message; it may have been a card": [rejected("unknown message", 15), GAP],
    "the colon is gone": [rejected("unknown message", 14), GAP],
    "an unread card without a mode: nobody knows what it is": [rejected("unknown message", 6), GAP],
    "a warning that is no hex; it was no card": [rejected("unknown message", 7)],
    "an alarm without its colon; it was no card": [rejected("unknown message", 16)],
    "the mode's end is gone: two pieces": [rejected("cut message", 5), GAP, card(None, "no_mode")],
    "the body's start is gone": [rejected("cut message", 14), GAP],
    "the end is gone": [rejected("unfinished message", 14), GAP],
    "a line end inside": [rejected("cut message", 17), GAP],
    "one byte of noise: it may be all that is left of a card": [rejected("noise", 1), GAP],
}


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda v: v["meaning"])
def test_a_vector_gives_exactly_its_events(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    found = decode(data)
    assert found == EXPECTED[vector["meaning"]]
    driver = decoder()
    (first, *_) = [*driver.feed(data, 0.0), *driver.lost("end", 0.0)]
    assert first.raw == data.strip(b" \r\n")[: len(first.raw)]
    flawed = any(e["kind"] == "frame_rejected" or "bad_card" in e.get("diag", ()) for e in found)
    flawed = flawed or any({"no_mode", "unknown_mode"} & set(e.get("diag", ())) for e in found)
    assert flawed is not vector["good"]


STREAMS = {
    "two loose characters behind each card": [card("4S"), card("5H"), card("6D")],
    "alarm, unread card and warning in the order in which they came": [
        card("4S"), E3, card(None), W01, card("5H")
    ],
    "a half and the rest 100 ms later": [card("4S"), card("5H")],
    "cut for 300 ms: the end of another card completes nothing": [
        rejected("unfinished message", 13), GAP, rejected("noise", 2), GAP, card("6D")
    ],
    "a message cut off by the next one": [rejected("cut message", 13), GAP, card("5H")],
    "loose characters that are not the card's": [card("4S"), said("5S"), GAP, card("5H")],
}  # fmt: skip


@pytest.mark.parametrize("stream", VECTORS["streams"], ids=lambda s: s["meaning"])
def test_a_stream_gives_exactly_its_events(stream: dict[str, Any]) -> None:
    wanted = STREAMS.get(stream["meaning"], [card("4S"), card("5H"), card("6D")])
    assert decode(*map(bytes.fromhex, stream["chunks"])) == wanted


# --- field problems ---

THREE = ("[Game]<Card:4S>", "[Game]<Card:5H>", "[Game]<Card:6D>")


@pytest.mark.parametrize("separator", ["", " ", "  ", "\r\n", "\n", " \r\n "])
def test_field_15_no_card_is_lost_to_the_separator_of_another(separator: str) -> None:
    assert decode(separator + separator.join(THREE) + separator) == [card("4S"), card("5H"), card("6D")]


def test_field_15_a_card_is_told_when_it_ends_not_when_the_next_one_begins() -> None:
    driver = decoder()
    for number, text in enumerate(THREE):
        assert short(driver.feed(text.encode(), float(number))) == [card(text[-3:-1])]


@pytest.mark.parametrize("pause", [0.02, 0.1, 0.2])
def test_field_16_half_lines_are_whole_cards(pause: float) -> None:
    line = " [Game]<Card:4S>\r\n"
    for at in range(1, len(line)):
        assert decode(line[:at], line[at:], step=pause) == [card("4S")]
    assert cards(*line, step=pause) == ["4S"]


def test_field_16_a_half_that_never_goes_on_is_told() -> None:
    driver = decoder()
    assert driver.feed(b"[Game]<Card:4", 1.0) == []
    assert driver.deadline() == 1.0 + SILENCE
    assert short(driver.tick(driver.deadline())) == [rejected("unfinished message", 13), GAP]
    assert driver.deadline() is None


@pytest.mark.parametrize(
    ("unread", "options"),
    [("[Game]<Game>", {}), ("[Game]<Card:??>", {}), (f"{LONE_E3} [Game]<Game>", {}),
     (f"[Game]<Game> {LONE_E3}", {}), (LONE_E3, {"e3_reading": "card"})],
)  # fmt: skip
def test_field_18_an_unread_card_keeps_its_place_in_the_order(unread: str, options: dict[str, str]) -> None:
    stream = f"[Game]<Card:4S> {unread} [Game]<Card:6D>"
    assert cards(stream, **options) == ["4S", None, "6D"]
    assert "gap_possible" not in kinds(stream, **options)


def test_field_02_the_same_card_twice_is_two_cards() -> None:
    assert cards("[Game]<Card:4S>[Game]<Card:4S>") == ["4S", "4S"]
    assert cards("[Game]<Card:4S>4S[Game]<Card:4S>4S[Game]<Card:4S>4S") == ["4S"] * 3
    assert cards("[Game]<Game> [Game]<Game>") == [None, None]


# --- what the sources leave open: each reading ---


@pytest.mark.parametrize("face", DECK)
def test_every_card_in_every_form(face: str) -> None:
    rank, suit = face
    forms = {rank + suit, suit + rank} | ({"10" + suit, suit + "10"} if rank == "T" else set())
    for form in forms:
        assert cards(f"[Game]<Card:{form}>") == [face]


@pytest.mark.parametrize(
    ("order", "rank_first", "suit_first"),
    [("both", "3H", "3H"), ("rank_first", "3H", None), ("suit_first", None, "3H")],
)
def test_card_order(order: str, rank_first: str | None, suit_first: str | None) -> None:
    assert cards("[Game]<Card:3H>", card_order=order) == [rank_first]
    assert cards("[Game]<Card:H3>", card_order=order) == [suit_first]


ECHOED = "[Game]<Card:4S>{}[Game]<Card:5H>"


@pytest.mark.parametrize(
    ("loose", "same", "any_", "none"),
    [("4S", True, True, False), (" 4S\r\n", True, True, False), ("5S", False, True, False),
     ("4", False, True, False), ("4S4", False, False, False), ("4S 4S", False, False, False)],
)  # fmt: skip
def test_echo(loose: str, same: bool, any_: bool, none: bool) -> None:
    for echo, skipped in (("same", same), ("any", any_), ("none", none)):
        driver = decoder(echo=echo)
        events = short(driver.feed(ECHOED.format(loose).encode(), 0.0))
        between = [] if skipped else [said(loose.strip()), GAP]
        assert events == [card("4S"), *between, card("5H")], echo
        assert (driver.counters.frames, driver.counters.repeats) == (2, skipped)


def test_an_echo_comes_in_game_mode_once_and_of_a_ten_as_it_was_sent() -> None:
    assert decode("[Game]<Card:10H>10H") == [card("TH")]
    assert decode("[Game]<Card:10H>TH") == [card("TH"), said("TH"), GAP]
    assert decode("[Manual Burn Cards]<Card:4S>4S") == [card("4S", in_game=False), said("4S"), GAP]
    assert decode("[Game]<Card:4S>4S[Game]<Game>4S") == [card("4S"), card(None), said("4S"), GAP]


def test_an_echo_that_comes_alone_is_skipped_too() -> None:
    driver = decoder()
    driver.feed(b"[Game]<Card:4S>", 0.0)
    assert driver.feed(b"4S", 0.01) == []
    assert driver.tick(0.01 + SILENCE) == []
    assert driver.counters.repeats == 1


def test_e3_is_an_alarm_whose_card_is_told_by_itself_or_may_be_lost() -> None:
    assert decode(LONE_E3, "[Game]<Game>") == [E3, card(None)]
    assert decode("[Game]<Game>", LONE_E3) == [card(None), E3]
    assert decode(LONE_E3, "<W0x01>", "[Game]<Game>") == [E3, W01, card(None)]
    assert decode(LONE_E3, "[Game]<Card:4S>") == [E3, GAP, card("4S")]
    assert decode(LONE_E3, LONE_E3, "[Game]<Game>") == [E3, GAP, E3, card(None)]
    assert decode("[Game]<Game>", LONE_E3, LONE_E3) == [card(None), E3, E3, GAP]
    assert decode("[Game]<Game>", "[Game]<Card:4S>", LONE_E3) == [card(None), card("4S"), E3, GAP]
    assert decode("[Game]<Game>", LONE_E3, step=PARTNER) == [card(None), E3, GAP]


def test_a_lone_e3_says_so_after_a_second() -> None:
    driver = decoder()
    driver.feed(LONE_E3.encode(), 1.0)
    assert driver.deadline() == 1.0 + PARTNER
    assert short(driver.tick(1.5)) == []
    assert short(driver.tick(2.0)) == [GAP]
    assert driver.deadline() is None


def test_e3_may_be_the_card_itself() -> None:
    options = {"e3_reading": "card"}
    assert decode(LONE_E3, "[Game]<Card:4S>", **options) == [E3, card(None, "alarm"), card("4S")]
    assert decode(LONE_E3, "[Game]<Game>", **options) == [E3, card(None, "alarm"), card(None)]
    assert kinds("[Game]<Alarm E3>", **options) == ["frame_rejected", "gap_possible"]
    assert kinds("[GameAlarm]<Alarm:E7 x>", **options) == ["fault_raised", "chatter", "gap_possible"]


@pytest.mark.parametrize("text", ["E3 Card Not Rexd", "E7 Card Not Read", "Card Not Read", "E3 "])
def test_either_half_of_the_known_alarm_is_enough(text: str) -> None:
    (raised, _) = decode(f"[GameAlarm]<Alarm:{text}>")
    assert raised["name"] == "card_not_read"


def test_an_alarm_whose_code_could_be_a_card_shows_it_in_the_masked_text_alone() -> None:
    assert decode("[GameAlarm]<Alarm:H3 torn>") == [alarm("?", "unknown"), said("H3 torn")]


def test_an_alarm_in_a_mode_nobody_knows_is_an_alarm() -> None:
    assert decode("<Alarm:E9 x>")[0] == alarm("E9", "unknown", "no_mode")
    assert decode("[Gxme]<Alarm:E9 x>")[0] == alarm("E9", "unknown", "unknown_mode")
    assert decode("[Game]<Alarm:\xff>") == [alarm("?", "unknown"), said("\\xff")]


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("<W0xard:AC>", ["frame_rejected", "gap_possible"]),
        ("[Game]<Alarm of:AC>", ["frame_rejected", "gap_possible"]),
        ("<W0xZZ>", ["frame_rejected"]),
    ],
)
def test_the_end_of_a_card_behind_the_beginning_of_another_message_is_a_gap(
    line: str, kinds: list[str]
) -> None:
    assert [told["kind"] for told in decode(line)] == kinds


@pytest.mark.parametrize(("sent", "code"), [("1", "W0x01"), ("ff", "W0xFF"), ("01A2", "W0x1A2")])
def test_a_warning_keeps_its_number(sent: str, code: str) -> None:
    assert decode(f"[Game]<W0x{sent}>") == [{"kind": "warning", "code": code}]


@pytest.mark.parametrize("option", ["card_order", "echo", "e3_reading"])
def test_an_option_with_a_wrong_value_names_the_right_ones(option: str) -> None:
    with pytest.raises(OptionError, match=f"{option} is one of .*, not 'neither'"):
        decoder(**{option: "neither"})
    assert option in SPEC.options


# --- the session ---


def live(n: int = 0) -> Any:
    return SPEC.reader(Setup("shoe", Random(1), Resume(n=n)))


def test_a_first_session_claims_no_gap_and_needs_no_answer() -> None:
    driver = live()
    (up,) = driver.start(0.0)
    assert (up.kind, up.boot, up.identity, up.status) == ("link_up", None, {}, {})
    assert short(driver.feed(b"[Game]<Card:4S>", 1.0)) == [card("4S")]


def test_every_later_session_says_once_that_cards_may_be_missing() -> None:
    driver = live()
    driver.start(0.0)
    driver.feed(b"[Game]<Card:4", 1.0)
    lost = short(driver.lost("unplugged", 1.1))
    assert lost == [rejected("unfinished message", 13), GAP, {"kind": "link_down", "reason": "unplugged"}]
    assert [e.kind for e in driver.start(2.0)] == ["link_up", "gap_possible"]
    assert short(driver.feed(b"H>[Game]<Card:4S>", 2.1)) == [rejected("noise", 2), GAP, card("4S")]
    assert [e.kind for e in live(n=17).start(0.0)] == ["link_up", "gap_possible"]


def test_numbers_go_on_where_the_journal_ends() -> None:
    driver = live(n=17)
    events = [*driver.start(0.0), *driver.feed(b"[Game]<Card:4S>", 1.0)]
    assert [e.n for e in events] == [18, 19, 20]


def test_it_knows_no_command_and_says_so() -> None:
    driver = SPEC.controlled(Setup("shoe", Random(1)))
    driver.start(0.0)
    (end,) = driver.command("a", "lock", {}, 1.0)
    assert end == Complete("a", NotSent("this device takes no commands"))
    assert not hasattr(live(), "command")


def test_what_it_claims() -> None:
    spec = load("bee-tek")
    assert spec is SPEC
    assert (spec.baud, spec.polled, spec.commands, spec.senses) == (9600, False, (), frozenset())
    assert spec.games == {"blackjack", "baccarat"}


def test_masked_events_show_neither_card_nor_bytes() -> None:
    driver = decoder()
    stream = b"[Game]<Card:8S>9S[Game]<Cxrd:8S>[GameAlarm]<Alarm:E8 8S><W0x08>8S"
    events = [*driver.feed(stream, 0.0), *driver.lost("end", 1.0)]
    assert {"card_drawn", "chatter", "frame_rejected", "fault_raised", "warning"} <= {e.kind for e in events}
    text = json.dumps([to_json(e, at=None, masked=True) for e in events])
    assert not any(word in text for word in ("8S", "9S", "3853", "3953"))
