import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from devices.base import OptionError, Resume, Setup
from devices.events import DeviceEvent, LinkDown, to_json
from devices.shoes.angel_eye import SPEC, AngelEye, AngelEyeControlled
from firmware_bridge.framing.angel_eye import bcc
from firmware_bridge.link import Complete, Done, NotSent, Refused, Send, Unknown

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "angel_eye.json").read_text())
BYTE_S = 10 / 4800
ALL_MISSING = ["player 1", "player 2", "banker 1", "banker 2"]


def telegram(seq: str, code: str, data: str = "") -> bytes:
    body = seq.encode() + code.encode() + bytes.fromhex(data) + b"\x03"
    return b"\x05" + body + bcc(body)


def decoder(**options: Any) -> Any:
    return SPEC.decoder(Setup("shoe", Random(1), options=options))


def decode(*chunks: bytes, end: bool = True, **options: Any) -> tuple[list[DeviceEvent], Any]:
    driver, events, now = decoder(**options), [], 0.0
    for chunk in chunks:
        for byte in chunk:
            now += BYTE_S
            events += driver.feed(bytes([byte]), now)
    if end:
        events += driver.lost("end of input", now)
    return events, driver.counters


def short(events: Iterable[object]) -> list[dict[str, Any]]:
    """Kind, seq, own fields and optional keys, as in JSON; without what every event has."""
    common = {"device", "n", "at", "raw"}
    return [
        {k: v for k, v in to_json(e, at=None, masked=False).items() if k not in common}
        for e in events
        if isinstance(e, DeviceEvent)
    ]


def kinds(events: Iterable[object]) -> list[str]:
    return [e.kind for e in events if isinstance(e, DeviceEvent)]


def card(seq: str, face: str, position: str | None, index: int | None, **more: Any) -> dict[str, Any]:
    drawn = {"kind": "card_drawn", "seq": seq, "card": face, "position": position, "index": index}
    return {**drawn, "in_game": True, "face_up": False, "back": None, **more}


def result(seq: str, outcome: str, player: bool = False, banker: bool = False, **more: Any) -> dict[str, Any]:
    pairs = {"player_pair": player, "banker_pair": banker}
    return {"kind": "game_result", "seq": seq, "outcome": outcome, **pairs, **more}


def seen(command: str, *args: str, stx: bool) -> dict[str, Any]:
    diag = ["bcc_includes_stx" if stx else "bcc_excludes_stx"]
    return {"kind": "command_seen", "seq": None, "command": command, "args": list(args), "diag": diag}


def rejected(reason: str, size: int, seq: str | None = None) -> dict[str, Any]:
    return {"kind": "frame_rejected", "seq": seq, "reason": reason, "bytes": size}


def unaligned(seq: str, missing: list[str]) -> dict[str, Any]:
    return {"kind": "alignment_required", "seq": seq, "missing": missing}


BIT7 = {"diag": ["bit7_clear"]}
EXPECTED: dict[str, list[dict[str, Any]]] = {
    "024f504c4b3032033142": [seen("lock", stx=True)],
    "024f504c4b3032033139": [seen("lock", stx=False)],
    "024f504c4b3031033138": [seen("unlock", stx=True)],
    "024f504c4b3031033141": [seen("unlock", stx=False)],
    "024f5045433031033139": [seen("clear-fault", "01", stx=True)],
    "024f5045433031033142": [seen("clear-fault", "01", stx=False)],
    "024f5045433032033141": [seen("clear-fault", "02", stx=True)],
    "024f5045433032033138": [seen("clear-fault", "02", stx=False)],
    "024f5047503030033039": [seen("confirm", stx=True)],
    "024f5047503030033042": [seen("confirm", stx=False)],
    "05314481b8033446": [card("1", "8S", "player", 1)],
    "05324791034537": [result("2", "player", player=True, aligned=False), unaligned("2", ALL_MISSING)],
    "053343033733": [{"kind": "cut_card", "seq": "3"}],
    "053445c1034233": [
        {"kind": "fault_raised", "seq": "4", "code": "1", "name": "card_unreadable", "latched": True}
    ],
    "05354c81034642": [{"kind": "lock_changed", "seq": "5", "locked": True}],
    "05374491a5033434": [card("7", "5C", "banker", 1)],
    "053847a2034445": [result("8", "tie", banker=True, aligned=False), unaligned("8", ALL_MISSING)],
    "054353033133": [{"kind": "session_started", "seq": "C", "diag": ["no_cut_card_before"]}],
    "054450033137": [{"kind": "standby", "seq": "D"}],
    "053144c0b8033045": [card("1", "8S", "first_card", 0)],
    "053244d94d034531": [card("2", "KH", "burn_count", 9, **BIT7)],
    "053244914d034139": [card("2", "KH", "banker", 1, **BIT7)],
    "05334482b9033446": [card("3", "9S", "player", 2)],
    "0534449241034130": [card("4", "AH", "banker", 2, **BIT7)],
    "05354770033031": [result("5", "forced_quit", aligned=False, **BIT7)],
    "053547f0033831": [result("5", "forced_quit", aligned=False)],
    "053645c2034232": [
        {"kind": "fault_raised", "seq": "6", "code": "2", "name": "overdraw", "latched": True}
    ],
    "05366582034432": [{"kind": "fault_cleared", "seq": "6", "code": "2", "name": "overdraw"}],
    "05375281b8033546": [
        {"kind": "card_reassigned", "seq": "7", "card": "8S", "position": "player", "index": 1}
    ],
    "05364c80034639": [{"kind": "lock_changed", "seq": "6", "locked": False}],
    "05386481b8033636": [card("8", "8S", None, 1, in_game=False, diag=["lock_mode"])],
    "05314d313230303031033744": [{"kind": "preset_changed", "seq": "1", "address": "12", "value": "0001"}],
    "0531448108034646": [rejected("bad suit", 8, "1")],
    "05314481b8033466": [rejected("lower-case BCC", 8)],
}
BY_MEANING = {
    "Player index 0": [rejected("bad index", 8, "1")],
    "last BCC digit flipped": [rejected("bad BCC", 8)],
}
ROUND_TRIP = [
    {"kind": "session_started", "seq": "1", "diag": ["no_cut_card_before"]},
    {"kind": "standby", "seq": "2"},
    card("3", "3S", "first_card", 0),
    card("4", "QH", "burn_count", 1),
    card("5", "AC", "burn_count", 2),
    card("6", "TD", "burn_count", 3),
    card("7", "4S", "player", 1),
    card("8", "5C", "banker", 1),
    card("9", "5D", "player", 2),
    card("1", "2H", "banker", 2),
    result("2", "player"),
    card("3", "2H", "player", 1),
    card("4", "KS", "banker", 1),
    card("5", "2C", "player", 2),
    card("6", "3D", "banker", 2),
    card("7", "8H", "player", 3),
    result("8", "banker", player=True),
    {"kind": "cut_card", "seq": "9"},
]
HAND = [("D", "81b8"), ("D", "91a5"), ("D", "82b9"), ("D", "92c2")]
"""Player 1, Banker 1, Player 2, Banker 2."""


# The golden vectors


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda v: v["meaning"])
def test_a_golden_vector_gives_exactly_its_events(vector: dict[str, Any]) -> None:
    wanted = EXPECTED.get(vector["hex"]) or BY_MEANING[vector["meaning"]]
    events, counters = decode(bytes.fromhex(vector["hex"]))
    assert short(events) == wanted
    assert [e.raw for e in events] == [bytes.fromhex(vector["hex"])] * len(events)
    assert ("frame_rejected" in kinds(events)) is not vector["good"]
    assert counters.frames == (0 if vector.get("layer") == "frame" else 1)


def test_the_round_trip_is_one_stream_without_a_diagnostic_too_many() -> None:
    events, counters = decode(*(bytes.fromhex(v["hex"]) for v in VECTORS["round_trip"]))
    assert short(events) == ROUND_TRIP
    assert [e.n for e in events] == list(range(1, 19))
    assert (counters.frames, counters.repeats) == (18, 0)


def test_every_telegram_sent_three_times_is_told_once() -> None:
    thrice = [bytes.fromhex(v["hex"]) * 3 for v in VECTORS["round_trip"]]
    events, counters = decode(*thrice)
    assert short(events) == ROUND_TRIP
    assert (counters.frames, counters.repeats) == (54, 36)


STREAMS = {
    "ETX missing, then the next ENQ: the second frame counts": [
        rejected("ENQ inside a frame", 5),
        {"kind": "cut_card", "seq": "2"},
    ],
    "a lone 15, its code byte (02, BCC) 120 ms later": [
        {"kind": "command_refused", "seq": None, "code": "02", "name": "bcc"}
    ],
    "two frames in one read": [
        card("1", "8S", "player", 1),
        result("2", "player", player=True, aligned=False),
        unaligned("2", ["player 2", "banker 1", "banker 2"]),
    ],
    "noise before a frame; its 06 is no ACK when no command is pending": [
        rejected("noise", 3),
        card("1", "8S", "player", 1),
    ],
}


@pytest.mark.parametrize("stream", VECTORS["streams"], ids=lambda s: s["meaning"])
def test_a_negative_stream_gives_exactly_its_events(stream: dict[str, Any]) -> None:
    driver, events = decoder(), []
    for number, chunk in enumerate(stream["chunks"]):
        events += driver.feed(bytes.fromhex(chunk), 0.12 * number)
    events += driver.lost("end of input", 1.0)
    assert short(events) == STREAMS[stream["meaning"]]


# Answers and commands in a capture


def test_ack_and_nak_after_a_command_seen_are_its_end() -> None:
    lock = bytes.fromhex("024f504c4b3032033142")
    events, _ = decode(lock, b"\x06", lock, b"\x15\x21")
    assert kinds(events) == ["command_seen", "command_done", "command_seen", "command_refused"]
    assert short(events)[-1] == {"kind": "command_refused", "seq": None, "code": "21", "name": "busy"}


def test_a_nak_code_may_look_like_a_frame_start_but_not_like_enq() -> None:
    lock = bytes.fromhex("024f504c4b3032033142")
    events, _ = decode(lock, b"\x15\x02", lock, b"\x15", telegram("1", "C"))
    assert kinds(events) == ["command_seen", "command_refused", "command_seen", "frame_rejected", "cut_card"]


def test_a_second_ack_and_one_long_after_the_command_are_noise() -> None:
    lock = bytes.fromhex("024f504c4b3032033142")
    events, counters = decode(lock, b"\x06\x06")
    assert short(events)[1:] == [
        {"kind": "command_done", "seq": None},
        rejected("answer to no command", 1),
    ]
    assert counters.unasked == 1
    driver = decoder()
    late = [*driver.feed(lock, 0.0), *driver.feed(b"\x06", 3.5), *driver.lost("end", 4.0)]
    assert kinds(late) == ["command_seen", "frame_rejected"]


def test_stray_acks_and_the_noise_behind_them_are_one_run() -> None:
    events, _ = decode(b"\x06\x06\x00\xff", telegram("1", "C"))
    assert short(events) == [rejected("noise", 4), {"kind": "cut_card", "seq": "1"}]
    assert events[0].raw == b"\x06\x06\x00\xff"


def test_noise_is_told_once_when_the_line_falls_silent() -> None:
    driver = AngelEye(Setup("shoe", Random(1)))
    driver.start(0.0)
    assert list(driver.feed(b"\xaa" * 100, 1.0)) == []
    assert driver.deadline() == 1.5
    assert list(driver.tick(1.4)) == []
    (event,) = driver.tick(1.5)
    assert short([event]) == [rejected("noise", 100)]
    assert event.raw == b"\xaa" * 64
    assert driver.deadline() is None


def test_100_kb_of_noise_are_one_event_and_the_frame_behind_them_counts() -> None:
    noise = Random(7).randbytes(100_000).replace(b"\x05", b"\x00").replace(b"\x02", b"\x00")
    driver = decoder()
    events = [*driver.feed(noise, 0.0), *driver.feed(telegram("1", "D", "81b8"), 1.0)]
    assert short(events) == [rejected("noise", 100_000), card("1", "8S", "player", 1)]


# Copies, conflicts, gaps


def feed_at(driver: Any, *timed: tuple[float, bytes]) -> list[Any]:
    return [event for now, data in timed for event in driver.feed(data, now)]


def test_a_copy_inside_400_ms_is_counted_and_one_after_it_is_new() -> None:
    one, driver = telegram("1", "D", "81b8"), decoder()
    assert kinds(feed_at(driver, (0.0, one), (0.05, one), (0.4, one))) == ["card_drawn"]
    assert driver.counters.repeats == 2
    assert kinds(driver.feed(one, 0.401)) == ["gap_possible", "card_drawn"]


def test_the_window_counts_from_the_first_copy_not_from_the_last() -> None:
    one, driver = telegram("1", "C"), decoder()
    feed_at(driver, (0.0, one), (0.3, one))
    assert "cut_card" in kinds(driver.feed(one, 0.5))


@pytest.mark.parametrize(("newer", "events"), [(3, 0), (4, 1)])
def test_the_fourth_newer_telegram_makes_one_forgotten(newer: int, events: int) -> None:
    driver = decoder(seq_profile="free")
    feed_at(driver, *((0.0, telegram(s, "P")) for s in "1234"[: 1 + newer]))
    driver.feed(telegram("5", "P"), 0.0) if newer == 4 else None
    assert len(driver.feed(telegram("1", "P"), 0.1)) == events


def test_a_conflict_is_told_once_and_its_card_still_counts() -> None:
    first, other = telegram("1", "D", "81b8"), telegram("1", "D", "91a5")
    events, counters = decode(first, other, first, other, other, first)
    assert short(events) == [
        card("1", "8S", "player", 1),
        card("1", "5C", "banker", 1),
        {"kind": "conflict", "seq": "1", "what": "sequence 1", "other": first.hex()},
    ]
    assert counters.repeats == 4


def test_after_s_the_same_character_and_the_next_are_in_order() -> None:
    for following in "34":
        events, _ = decode(telegram("2", "P"), telegram("3", "S"), telegram(following, "P"))
        assert kinds(events) == ["standby", "session_started", "standby"]


def test_s_may_carry_any_character_and_never_conflicts() -> None:
    events, _ = decode(telegram("4", "P"), telegram("4", "S"), telegram("4", "D", "81b8"))
    assert kinds(events) == ["standby", "session_started", "card_drawn"]


def test_a_jump_is_a_gap_warning_and_the_telegram_counts() -> None:
    events, _ = decode(telegram("2", "P"), telegram("5", "C"))
    assert short(events)[1:] == [
        {"kind": "gap_possible", "seq": "5", "missing": 2},
        {"kind": "cut_card", "seq": "5"},
    ]


@pytest.mark.parametrize(
    ("profile", "sequence", "gaps"),
    [
        ("digits19", "8912", 0),
        ("digits19", "8901", 2),
        ("digits09", "8901", 0),
        ("digits09", "8912", 1),
        ("hex", "89AB", 0),
        ("hex", "EF01", 0),
        ("hex", "EF12", 1),
        ("free", "3Z17", 0),
        ("learn", "8912", 0),
        ("learn", "8901", 0),
        ("learn", "89AB", 0),
        ("learn", "EF01", 0),
        ("learn", "891234567890", 1),
        ("learn", "1Zz!?", 1),
    ],
)
def test_sequence_alphabets(profile: str, sequence: str, gaps: int) -> None:
    driver = decoder(seq_profile=profile)
    events = [e for at, seq in enumerate(sequence) for e in driver.feed(telegram(seq, "P"), float(at))]
    assert kinds(events).count("gap_possible") == gaps
    assert kinds(events).count("standby") == len(sequence)


def test_the_size_of_a_gap_is_told_only_when_the_alphabets_agree() -> None:
    known = short(decode(telegram("8", "P"), telegram("2", "P"), seq_profile="digits19")[0])
    open_ = short(decode(telegram("8", "P"), telegram("2", "P"))[0])
    assert (known[1]["missing"], open_[1]["missing"]) == (2, None)


def test_a_rejected_payload_does_not_eat_its_sequence() -> None:
    bad, good = telegram("2", "D", "80b8"), telegram("2", "D", "81b8")
    events, counters = decode(telegram("1", "P"), bad, bad, good, good, telegram("3", "P"))
    assert kinds(events) == ["standby", "frame_rejected", "frame_rejected", "card_drawn", "standby"]
    assert counters.repeats == 1


@pytest.mark.parametrize(
    ("code", "data", "reason"),
    [
        ("D", "80b8", "bad index"),
        ("D", "84b8", "bad index"),
        ("D", "cbb8", "bad index"),
        ("D", "b1b8", "bad target"),
        ("D", "8188", "bad suit"),
        ("D", "81d8", "bad suit"),
        ("D", "81b0", "bad rank"),
        ("D", "81be", "bad rank"),
        ("R", "9041", "bad index"),
        ("d", "b1b8", "bad mode"),
        ("G", "80", "bad outcome"),
        ("M", "313281303031", "bad preset"),
        ("X", "", "unknown code"),
    ],
)
def test_a_payload_without_meaning_is_rejected_with_its_reason(code: str, data: str, reason: str) -> None:
    raw = telegram("1", code, data)
    assert short(decode(raw)[0]) == [rejected(reason, len(raw), "1")]


def test_a_card_that_was_not_read_still_counts() -> None:
    events, _ = decode(telegram("1", "D", "8180"), telegram("2", "d", "9180"))
    assert [(e["card"], e["position"], e["index"], e.get("diag")) for e in short(events)] == [
        (None, "player", 1, None),
        (None, None, None, ["error_mode", "error_1"]),
    ]


# Hands and shoes


def hand(start: int, *, leave_out: str = "", outcome: str = "90") -> list[bytes]:
    parts = [p for p in [*HAND, ("G", outcome)] if p[1] != leave_out or not leave_out]
    return [telegram(str((start + at - 1) % 9 + 1), code, data) for at, (code, data) in enumerate(parts)]


def test_a_result_with_all_four_cards_is_aligned() -> None:
    events, _ = decode(*hand(1))
    assert kinds(events) == ["card_drawn"] * 4 + ["game_result"]
    assert events[-1].aligned


@pytest.mark.parametrize(
    ("left_out", "missing"),
    [("81b8", ALL_MISSING), ("91a5", ["banker 1"]), ("82b9", ["player 2"]), ("92c2", ["banker 2"])],
)
def test_a_result_without_its_cards_requires_alignment(left_out: str, missing: list[str]) -> None:
    events, _ = decode(*hand(1, leave_out=left_out))
    assert short(events)[-2:] == [result("4", "player", aligned=False), unaligned("4", missing)]


def test_the_next_player_1_aligns_again() -> None:
    events, _ = decode(*hand(1, leave_out="81b8"), *hand(5))
    assert events[-1].kind == "game_result"
    assert events[-1].aligned


def test_a_forced_quit_needs_no_cards_but_a_known_start() -> None:
    events, _ = decode(telegram("1", "D", "81b8"), telegram("2", "G", "f0"), telegram("3", "G", "f0"))
    assert kinds(events) == ["card_drawn", "game_result", "game_result"]
    assert [e.aligned for e in events] == [True, True, False]


def test_another_card_on_a_filled_place_is_an_alarm_and_the_same_one_is_not() -> None:
    first, same, other = telegram("2", "D", "91a5"), telegram("3", "D", "91a5"), telegram("4", "D", "91b8")
    events, _ = decode(telegram("1", "D", "81b8"), first, same, other)
    assert kinds(events) == ["card_drawn"] * 4 + ["conflict"]
    assert short(events)[-1] == {"kind": "conflict", "seq": "4", "what": "banker 1", "other": first.hex()}


def test_player_1_after_a_lost_result_starts_the_next_hand() -> None:
    first = hand(1)[:-1]
    second = [telegram(str(5 + at), code, data) for at, (code, data) in enumerate([("D", "81c1"), *HAND[1:]])]
    events, _ = decode(*first, *second, telegram("9", "G", "90"))
    assert kinds(events) == ["card_drawn"] * 5 + ["conflict"] + ["card_drawn"] * 3 + ["game_result"]
    assert events[-1].aligned


def starts(*codes: str) -> list[Any]:
    events, _ = decode(*(telegram(str(at % 9 + 1), code) for at, code in enumerate(codes)))
    return [e.diag for e in events if e.kind == "session_started"]


def test_phantom_shoes() -> None:
    phantom = ("no_cut_card_before",)
    assert starts("S") == [phantom]
    assert starts("S", "S") == [phantom, phantom]
    assert starts("C", "S") == [()]
    assert starts("C", "S", "S") == [(), phantom]
    assert starts("C", "C", "S", "S") == [(), phantom]


def test_a_second_cutting_card_is_told_and_marked() -> None:
    events, _ = decode(telegram("1", "C"), telegram("2", "C"))
    assert short(events) == [
        {"kind": "cut_card", "seq": "1"},
        {"kind": "cut_card", "seq": "2", "diag": ["cut_card_again"]},
    ]


def test_after_a_restart_between_cutting_card_and_start_no_new_shoe_is_believed() -> None:
    driver = AngelEye(Setup("shoe", Random(1)))
    driver.start(0.0)
    driver.feed(telegram("1", "C"), 0.1)
    driver.lost("gone", 0.2)
    again = [*driver.start(5.0), *driver.feed(telegram("2", "S"), 5.1)]
    assert kinds(again) == ["link_up", "gap_possible", "alignment_required", "session_started"]
    assert again[-1].diag == ("no_cut_card_before",)


def test_a_result_after_s_is_not_aligned() -> None:
    cards = hand(1)
    events, _ = decode(*cards[:-1], telegram("5", "S"), telegram("6", "G", "90"))
    assert short(events)[-2:] == [result("6", "player", aligned=False), unaligned("6", ALL_MISSING)]


@pytest.mark.parametrize(("reading", "aligned"), [("next_round", True), ("redeal", False)])
def test_r_is_for_the_next_round_or_deals_the_hand_again(reading: str, aligned: bool) -> None:
    cards = hand(1)
    events, _ = decode(*cards[:-1], telegram("5", "R", "81c1"), telegram("6", "G", "90"), r_reading=reading)
    assert kinds(events)[4] == "card_reassigned"
    assert next(e for e in events if e.kind == "game_result").aligned is aligned


def test_a_hand_dealt_again_by_r_is_whole_when_its_cards_came() -> None:
    again = [telegram(str(5 + at), "R", data) for at, (_, data) in enumerate(HAND)]
    events, _ = decode(*hand(1)[:-1], *again, telegram("9", "G", "90"), r_reading="redeal")
    assert events[-1].kind == "game_result"
    assert events[-1].aligned


def test_one_conflict_is_told_for_one_pair_of_telegrams() -> None:
    """The same place, the same sequence, other cards: that is one disagreement."""
    first, other = telegram("1", "D", "81b8"), telegram("1", "D", "81b9")
    events, _ = decode(first, other, first, other)
    assert kinds(events) == ["card_drawn", "card_drawn", "conflict"]
    assert short(events)[-1] == {"kind": "conflict", "seq": "1", "what": "sequence 1", "other": first.hex()}


def test_two_different_conflicts_of_one_telegram_are_both_told() -> None:
    place, rival = telegram("1", "D", "81b8"), telegram("2", "D", "91a5")
    events, _ = decode(place, rival, telegram("2", "D", "81b9"))
    assert [(e["what"], e["other"]) for e in short(events) if e["kind"] == "conflict"] == [
        ("sequence 2", rival.hex()),
        ("player 1", place.hex()),
    ]


def test_a_spoilt_copy_of_the_last_telegram_is_no_gap() -> None:
    """Its check bytes fit, its content does not; nothing is missing."""
    good, spoilt = telegram("2", "D", "81b8"), telegram("2", "D", "80b8")
    events, _ = decode(telegram("1", "P"), good, spoilt, good, spoilt, telegram("3", "P"))
    assert kinds(events) == ["standby", "card_drawn", "frame_rejected", "frame_rejected", "standby"]


def test_after_a_spoilt_copy_a_jump_is_still_a_gap() -> None:
    good, spoilt = telegram("2", "D", "81b8"), telegram("2", "D", "80b8")
    events, _ = decode(good, spoilt, telegram("5", "P"))
    assert kinds(events) == ["card_drawn", "frame_rejected", "gap_possible", "standby"]


@pytest.mark.parametrize("size", [1, 4096])
def test_a_burst_of_acks_costs_time_in_proportion_and_keeps_64_bytes(size: int) -> None:
    driver, count = decoder(), 200_000 if size > 1 else 20_000
    events: list[Any] = []
    for _ in range(count // size):
        events += driver.feed(b"\x06" * size, 0.0)
        assert len(driver._stray._data) <= 64
    count = count // size * size
    events += driver.feed(b"\x00\x01" + telegram("1", "C"), 0.0)
    assert short(events) == [rejected("noise", count + 2), {"kind": "cut_card", "seq": "1"}]
    assert events[0].raw == b"\x06" * 64


# The live forms


@pytest.mark.parametrize("begun", ["15", "05", "0531", "05314481", "02", "024f50"])
def test_an_unfinished_frame_is_given_up_when_the_line_falls_silent(begun: str) -> None:
    driver = AngelEye(Setup("shoe", Random(1)))
    driver.start(0.0)
    assert list(driver.feed(bytes.fromhex(begun), 1.0)) == []
    assert driver.deadline() == 1.5
    assert kinds(driver.tick(1.5)) == ["frame_rejected"]
    assert driver.deadline() is None
    assert kinds(driver.feed(telegram("1", "C"), 2.0)) == ["cut_card"]


def test_silence_counts_even_when_nobody_ticked() -> None:
    driver = AngelEye(Setup("shoe", Random(1)))
    driver.start(0.0)
    driver.feed(b"\x15", 1.0)
    assert kinds(driver.feed(b"\x02", 9.0)) == ["frame_rejected"]


def test_a_cut_card_behind_a_half_frame_is_told_at_once() -> None:
    events, _ = decode(b"\x051M", telegram("2", "C"), end=False)
    assert kinds(events) == ["frame_rejected", "cut_card"]


def test_a_restart_admits_what_it_cannot_know() -> None:
    fresh = AngelEye(Setup("shoe", Random(1)))
    assert kinds(fresh.start(0.0)) == ["link_up"]
    resumed = AngelEye(Setup("shoe", Random(1), resume=Resume(n=41)))
    events = list(resumed.start(0.0))
    assert kinds(events) == ["link_up", "gap_possible", "alignment_required"]
    assert [e.n for e in events] == [42, 43, 44]


def test_the_link_is_told_down_once() -> None:
    driver = AngelEye(Setup("shoe", Random(1)))
    driver.start(0.0)
    assert list(driver.lost("unplugged", 1.0)) == [LinkDown(device="shoe", n=2, mono=1.0, reason="unplugged")]
    assert list(driver.lost("unplugged", 2.0)) == []


def test_the_receive_only_form_has_no_way_to_command() -> None:
    assert not hasattr(SPEC.reader(Setup("shoe", Random(1))), "command")
    assert not hasattr(decoder(), "command")


@pytest.mark.parametrize(
    "options", [{"seq_profile": "octal"}, {"r_reading": "maybe"}, {"bcc_includes_stx": "perhaps"}]
)
def test_a_wrong_option_value_is_an_error_that_names_the_right_ones(options: dict[str, str]) -> None:
    for form in (SPEC.reader, SPEC.controlled, SPEC.decoder):
        with pytest.raises(OptionError, match=next(iter(options))):
            form(Setup("shoe", Random(1), options=options))


# Commands


def controlled(**options: Any) -> AngelEyeControlled:
    driver = AngelEyeControlled(Setup("shoe", Random(1), options=options))
    driver.start(0.0)
    return driver


LOCK_IN, LOCK_OUT = (Send(bytes.fromhex(h)) for h in ("024f504c4b3032033142", "024f504c4b3032033139"))


@pytest.mark.parametrize(
    ("name", "args", "sent", "answer"),
    [
        ("lock", {}, "024f504c4b3032033142", {"locked": True}),
        ("unlock", {}, "024f504c4b3031033138", {"locked": False}),
        ("clear-fault", {"nn": "02"}, "024f5045433032033141", {}),
        ("clear-fault", {"nn": 1}, "024f5045433031033139", {}),
        ("confirm", {}, "024f5047503030033039", {}),
    ],
)
def test_a_command_is_its_golden_vector_and_ack_is_the_truth(
    name: str, args: dict[str, Any], sent: str, answer: dict[str, Any]
) -> None:
    driver = controlled()
    assert list(driver.command("a", name, args, 1.0)) == [Send(bytes.fromhex(sent))]
    assert list(driver.feed(b"\x06", 1.1)) == [Complete("a", Done(answer))]


def test_a_later_l_speaks_for_itself() -> None:
    driver = controlled()
    driver.command("a", "lock", {}, 1.0)
    out = list(driver.feed(b"\x06" + telegram("1", "L", "80"), 1.1))
    assert out[0] == Complete("a", Done({"locked": True}))
    assert short(out) == [{"kind": "lock_changed", "seq": "1", "locked": False}]


def test_nak_02_switches_the_check_bytes_once_and_remembers() -> None:
    driver = controlled()
    assert list(driver.command("a", "lock", {}, 1.0)) == [LOCK_IN]
    assert list(driver.feed(b"\x15\x02", 1.1)) == [LOCK_OUT]
    assert list(driver.feed(b"\x06", 1.2)) == [Complete("a", Done({"locked": True}))]
    assert list(driver.command("b", "lock", {}, 2.0)) == [LOCK_OUT]
    assert list(driver.feed(b"\x15\x02", 2.1)) == [Complete("b", Refused("02", "bcc"))]


def test_nak_02_in_both_forms_ends_refused_and_proves_nothing() -> None:
    driver = controlled()
    driver.command("a", "lock", {}, 1.0)
    driver.feed(b"\x15\x02", 1.1)
    assert list(driver.feed(b"\x15\x02", 1.2)) == [Complete("a", Refused("02", "bcc"))]
    assert list(driver.command("b", "lock", {}, 2.0)) == [LOCK_IN]


@pytest.mark.parametrize(("choice", "sent"), [(True, LOCK_IN), (False, LOCK_OUT), ("false", LOCK_OUT)])
def test_a_fixed_range_of_check_bytes_is_never_switched(choice: Any, sent: Send) -> None:
    driver = controlled(bcc_includes_stx=choice)
    assert list(driver.command("a", "lock", {}, 1.0)) == [sent]
    assert list(driver.feed(b"\x15\x02", 1.1)) == [Complete("a", Refused("02", "bcc"))]


def test_a_refusal_split_in_two_reads_names_its_code() -> None:
    driver = controlled()
    driver.command("a", "confirm", {}, 1.0)
    assert list(driver.feed(b"\x15", 1.1)) == []
    assert list(driver.feed(b"\x21", 1.22)) == [Complete("a", Refused("21", "busy"))]


def test_silence_ends_unknown_and_a_late_ack_is_not_taken_for_the_next_command() -> None:
    driver = controlled()
    driver.command("a", "lock", {}, 1.0)
    assert driver.deadline() == 4.0
    (end,) = driver.tick(4.0)
    assert isinstance(end, Complete)
    assert isinstance(end.outcome, Unknown)
    assert list(driver.command("b", "unlock", {}, 4.5)) == []
    sent = [o for o in driver.feed(b"\x06", 5.0) if not isinstance(o, DeviceEvent)]
    assert sent == [Send(bytes.fromhex("024f504c4b3031033138"))]
    assert list(driver.feed(b"\x06", 5.1))[-1] == Complete("b", Done({"locked": False}))


def test_after_unknown_the_line_opens_again_by_itself() -> None:
    driver = controlled()
    driver.command("a", "lock", {}, 1.0)
    driver.tick(4.0)
    driver.command("b", "lock", {}, 4.1)
    assert driver.deadline() == 7.0
    assert list(driver.tick(7.0)) == [LOCK_IN]


@pytest.mark.parametrize(
    "stale", [b"\x15", b"\x05", b"\x051", b"\x051D\x81", b"\x02O", b"\x02OPL", b"\x00\x15"]
)
def test_what_was_left_on_the_line_does_not_touch_the_answer_to_a_command(stale: bytes) -> None:
    for age, ticked in ((0.1, False), (5.0, False), (5.0, True)):
        driver = controlled()
        driver.feed(stale, 1.0)
        if ticked:
            driver.tick(1.5)
        assert list(driver.command("a", "lock", {}, 1.0 + age))[-1] == LOCK_IN
        assert list(driver.feed(b"\x06", 1.1 + age)) == [Complete("a", Done({"locked": True}))]


def test_half_a_nak_just_before_a_command_is_no_refusal_of_it() -> None:
    driver = controlled()
    driver.feed(b"\x15", 1.0)
    out = list(driver.command("a", "lock", {}, 1.001))
    assert short(out) == [rejected("NAK without a code", 1)]
    assert out[-1] == LOCK_IN
    assert list(driver.feed(b"\x06", 1.1)) == [Complete("a", Done({"locked": True}))]


def test_a_telegram_under_way_when_a_command_goes_out_is_told() -> None:
    driver, card_ = controlled(), telegram("1", "D", "81b8")
    driver.feed(card_[:4], 1.0)
    assert list(driver.command("a", "lock", {}, 1.002)) == [LOCK_IN]
    assert kinds(driver.feed(card_[4:], 1.01)) == ["card_drawn"]
    assert list(driver.feed(b"\x06", 1.1)) == [Complete("a", Done({"locked": True}))]


def test_an_answer_behind_a_half_frame_is_heard_after_the_silence() -> None:
    driver = controlled()
    driver.command("a", "lock", {}, 1.0)
    assert list(driver.feed(telegram("1", "D", "81b8")[:3] + b"\x06", 1.1)) == []
    out = list(driver.tick(1.6))
    assert kinds(out) == ["frame_rejected"]
    assert out[-1] == Complete("a", Done({"locked": True}))


def test_a_second_ack_in_one_read_is_not_the_answer_to_the_command_that_follows() -> None:
    driver = controlled()
    driver.command("a", "lock", {}, 1.0)
    driver.command("b", "unlock", {}, 1.0)
    out = list(driver.feed(b"\x06\x06", 1.1))
    assert [o.call_id for o in out if isinstance(o, Complete)] == ["a"]
    assert list(driver.feed(b"\x15\x21", 1.2))[-1] == Complete("b", Refused("21", "busy"))


def test_one_command_at_a_time_and_telegrams_do_not_end_it() -> None:
    driver = controlled()
    assert list(driver.command("a", "lock", {}, 1.0)) == [LOCK_IN]
    assert list(driver.command("b", "confirm", {}, 1.0)) == []
    assert kinds(driver.feed(telegram("1", "C"), 1.1)) == ["cut_card"]
    assert list(driver.feed(b"\x06", 1.2)) == [
        Complete("a", Done({"locked": True})),
        Send(bytes.fromhex("024f5047503030033039")),
    ]


def test_an_ack_nobody_asked_for_is_noise() -> None:
    driver = controlled()
    driver.feed(b"\x06", 1.0)
    assert short(driver.tick(1.5)) == [rejected("answer to no command", 1)]
    assert list(driver.command("a", "lock", {}, 2.0)) == [LOCK_IN]


def test_a_lost_line_ends_every_command_once() -> None:
    driver = controlled()
    driver.command("a", "lock", {}, 1.0)
    driver.command("b", "unlock", {}, 1.0)
    ends = {o.call_id: o.outcome for o in driver.lost("unplugged", 1.5) if isinstance(o, Complete)}
    assert ends == {"a": Unknown("unplugged"), "b": NotSent("unplugged")}
    (end,) = driver.command("c", "lock", {}, 2.0)
    assert isinstance(end, Complete)
    assert isinstance(end.outcome, NotSent)


@pytest.mark.parametrize(
    ("name", "args", "says"),
    [
        ("lokc", {}, "it knows lock, unlock, clear-fault, confirm"),
        ("lock", {"nn": "1"}, "no arguments"),
        ("clear-fault", {}, "takes nn"),
        ("clear-fault", {"nn": "100"}, "from 00 to 99"),
        ("clear-fault", {"nn": "-1"}, "from 00 to 99"),
    ],
)
def test_a_wrong_command_is_not_sent(name: str, args: dict[str, Any], says: str) -> None:
    (end,) = controlled().command("a", name, args, 1.0)
    assert isinstance(end, Complete)
    assert isinstance(end.outcome, NotSent)
    assert says in end.outcome.reason


def test_masked_events_show_neither_card_nor_bytes() -> None:
    events, _ = decode(telegram("1", "D", "81b8"), telegram("1", "D", "81b7"), telegram("2", "D", "8108"))
    assert set(kinds(events)) == {"card_drawn", "conflict", "frame_rejected"}
    text = json.dumps([to_json(e, at=None, masked=True) for e in events])
    assert "8S" not in text
    assert "81b8" not in text
    assert "81b7" not in text
    assert "8108" not in text
