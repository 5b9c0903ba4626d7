"""Faults of card-reading shoes by name, and what the real drivers make of them: no card twice, none lost
unless it is said."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from firmware_bridge.link import Done, Refused, Unknown
from simulators import faults
from simulators.hosts.line import Line as BadLine
from simulators.models.baccarat import Baccarat
from simulators.models.cards import Stack, make_batch
from simulators.models.shoe import Shoe
from simulators.wire.angel_eye import SEQUENCES, AngelEye
from simulators.wire.bee_tek import BeeTek
from simulators.wire.device import WireDevice
from tests.support.line import Line, drawn

GREETING = 2
"""Telegrams that are on their way when a fault is laid: `S` and `P`. N counts from the first card."""


def loaded() -> Shoe:
    shoe = Shoe(Random("shoe"))
    shoe.open_lid()
    shoe.load(Stack(make_batch("red", 1)))
    shoe.close_lid()
    return shoe


def behind(wire: WireDevice, driver: str, *wanted: str, form: str = "reader", **options: Any) -> Line:
    """The driver, a line that can be bad, and the device with its faults."""
    bad = BadLine(wire, Random("line"))
    for fault in wanted:
        faults.apply(bad, fault)
    line = Line(driver, bad, form=form, cut=lambda data: [data] if data else [], **options)
    return line.up()


def angel_eye(*wanted: str, form: str = "reader", **options: Any) -> tuple[Line, Shoe]:
    shoe = loaded()
    line = behind(AngelEye(shoe), "angel-eye", *wanted, form=form, **options)
    line.run(1.0)
    return line, shoe


def deal(line: Line, shoe: Shoe, cards: int, pause: float = 0.6) -> None:
    for _ in range(cards):
        shoe.draw()
        line.run(pause)


def cards(line: Line) -> list[str | None]:
    return [event.card for event in line.of("card_drawn")]


def brief(line: Line) -> list[str]:
    return [
        kind for kind in line.kinds if kind not in ("link_up", "session_started", "standby", "game_result")
    ]


# Angel Eye: telegrams


@pytest.mark.parametrize("copies", ["1", "2", "3", "12", "13", "23"])
def test_one_copy_of_each_telegram_is_enough(copies: str) -> None:
    line, shoe = angel_eye(f"drop_copy:{copies}")
    deal(line, shoe, 20)
    assert cards(line) == drawn(shoe)
    assert set(brief(line)) == {"card_drawn"}
    telegrams = len(line.events) - 1 - GREETING
    assert line.driver.counters.repeats == 2 * GREETING + (2 - len(copies)) * telegrams


def test_a_telegram_of_which_no_copy_comes_is_a_gap_of_one() -> None:
    line, shoe = angel_eye("drop_copy:123@4")
    deal(line, shoe, 6)
    assert brief(line)[:6] == ["card_drawn"] * 3 + ["gap_possible"] + ["card_drawn"] * 2
    assert line.of("gap_possible")[0].missing == 1
    assert cards(line) == drawn(shoe)[:3] + drawn(shoe)[4:]


@pytest.mark.parametrize("fault", [*(f"damage:{place}" for place in range(8)), "lost_etx"])
@pytest.mark.parametrize(
    "copies", [(1,), (2,), (3,), (1, 2, 3)], ids=lambda copies: "".join(map(str, copies))
)
def test_a_spoilt_copy_is_none_and_three_of_them_are_a_gap(fault: str, copies: tuple[int, ...]) -> None:
    line, shoe = angel_eye(*(f"{fault}@{9 + number}" for number in copies))
    deal(line, shoe, 6)
    told = cards(line)
    assert "frame_rejected" in line.kinds
    assert not line.of("conflict")
    if len(copies) < 3:
        assert told == drawn(shoe)
        assert not line.of("gap_possible")
    else:
        assert told == drawn(shoe)[:3] + drawn(shoe)[4:], "lost, and no other card in its place"
        assert [event.missing for event in line.of("gap_possible")] == [1]


def test_data_without_its_top_bit_is_read_and_said() -> None:
    """Player index 3 is then 03, which is ETX."""
    line, shoe = angel_eye("top_bit_clear")
    deal(line, shoe, 52)
    assert cards(line) == drawn(shoe)
    assert {event.diag for event in line.of("card_drawn")} == {("bit7_clear",)}
    assert b"\x44\x03" in b"".join(event.raw for event in line.of("card_drawn"))
    assert not line.of("frame_rejected")


@pytest.mark.parametrize("keeps", [(), ("start_keeps_sequence",)], ids=["advances", "keeps"])
@pytest.mark.parametrize("alphabet", SEQUENCES)
def test_every_alphabet_is_read_by_its_profile_and_all_but_free_are_learned(
    alphabet: str, keeps: tuple[str, ...]
) -> None:
    for profile in (alphabet, *(["learn"] if alphabet != "free" else [])):
        line, shoe = angel_eye(f"sequence:{alphabet}", *keeps, seq_profile=profile)
        deal(line, shoe, 40)
        assert line.kinds[:3] == ["link_up", "session_started", "standby"]
        assert cards(line) == drawn(shoe)
        assert set(brief(line)) == {"card_drawn"}


@pytest.mark.parametrize("card", [2, 9, 20])
def test_a_reboot_in_mid_round_numbers_anew_and_no_card_is_taken_for_an_old_one(card: int) -> None:
    line, shoe = angel_eye(f"reboot_mid_round@{card}")
    deal(line, shoe, 40, pause=0.9)
    assert cards(line) == drawn(shoe)
    assert not {"conflict", "gap_possible", "frame_rejected"} & set(line.kinds)
    assert [event.diag for event in line.of("session_started")] == [("no_cut_card_before",)] * 2
    assert [event.seq for event in line.of("session_started")] == ["1", "1"]


@pytest.mark.parametrize(
    ("how", "diags", "cut_cards"),
    [
        ("alone", [("no_cut_card_before",)], 0),
        ("twice", [("no_cut_card_before",)] * 2, 0),
        ("cut", [()], 1),
    ],
)
@pytest.mark.parametrize("keeps", [(), ("start_keeps_sequence",)], ids=["advances", "keeps"])
def test_a_session_that_starts_again(
    how: str, diags: list[Any], cut_cards: int, keeps: tuple[str, ...]
) -> None:
    """Only behind a cutting card it is a new shoe."""
    line, shoe = angel_eye(*keeps, f"start_again:{how}@20")
    deal(line, shoe, 30, pause=1.2)
    told = cards(line)
    assert told == drawn(shoe)
    assert [event.diag for event in line.of("session_started")][1:] == diags
    assert len(line.of("cut_card")) == cut_cards
    assert not line.of("conflict")


def first_round() -> int:
    """Cards until the end of the first round."""
    game = Baccarat()
    cards = enumerate(make_batch("red", 1), 1)
    return next(count for count, card in cards if game.take(card.rank)[1] is not None)


@pytest.mark.parametrize(("reading", "aligned"), [("next_round", False), ("redeal", True)])
@pytest.mark.parametrize("button", ["", ":0.5"], ids=["by command", "by button"])
def test_a_card_drawn_too_early_is_one_card_and_moves_to_the_next_round(
    button: str, reading: str, aligned: bool
) -> None:
    line, shoe = angel_eye(f"early_card{button}@1", form="controlled", r_reading=reading)
    deal(line, shoe, first_round() + 1, pause=1.2)
    if not button:
        line.command("c", "clear-fault", nn="02")
        assert isinstance(line.end_of("c"), Done)
        line.run(1.0)
    early = line.of("card_drawn")[-1]
    (raised,), (cleared,) = line.of("fault_raised"), line.of("fault_cleared")
    assert (raised.code, raised.name, cleared.code) == ("2", "overdraw", "2")
    (moved,) = line.of("card_reassigned")
    assert (early.in_game, moved.card, moved.position, moved.index) == (False, early.card, "player", 1)
    deal(line, shoe, 12)
    assert cards(line) == drawn(shoe), "its R is no second card"
    assert line.of("game_result")[1].aligned is aligned


# Angel Eye: commands and the line


@pytest.mark.parametrize("apart", [(), ("nak_apart",)], ids=["together", "apart"])
@pytest.mark.parametrize("code", ["01", "02", "03", "11", "12", "13", "14", "21", "22", "FF"])
def test_each_nak_is_a_refusal_by_its_name(code: str, apart: tuple[str, ...]) -> None:
    line, shoe = angel_eye(f"nak:{code}", *apart, form="controlled")
    line.command("c", "lock")
    end = line.end_of("c")
    assert isinstance(end, Refused)
    assert (end.code, bool(end.name)) == (code, True)
    assert not shoe.locked
    assert len(line.wire.sent) == (2 if code == "02" else 1), "02 may mean the other range of check bytes"


def test_check_bytes_without_stx_are_found_out_at_the_first_command() -> None:
    line, shoe = angel_eye("bcc_without_stx", form="controlled")
    for call in ("lock", "unlock", "lock"):
        line.command(f"{call} {len(line.wire.sent)}", call)
        line.run(1.0)
    assert [type(end) for end in line.ends.values()] == [Done] * 3
    assert (shoe.locked, len(line.wire.sent)) == (True, 4)


@pytest.mark.parametrize(("late", "outcome"), [("2.9", Done), ("3.1", Unknown)])
def test_an_answer_within_three_seconds_counts_and_a_later_one_answers_nothing(
    late: str, outcome: type
) -> None:
    line, shoe = angel_eye(f"late_answer:{late}@1", "silent@2", form="controlled")
    line.command("a", "lock")
    line.command("b", "unlock")
    assert isinstance(line.end_of("a"), outcome)
    assert isinstance(line.end_of("b"), Unknown)
    assert not shoe.locked, "it was done, and nobody said so"


@pytest.mark.parametrize("times", ["0.5", "2"])
def test_at_a_wrong_line_rate_there_are_bytes_and_no_frame(times: str) -> None:
    """9600 instead of 4800, at either end: the fourth rung of the ladder."""
    line, shoe = angel_eye(f"wrong_baud:{times}", form="controlled")
    deal(line, shoe, 30)
    assert set(line.kinds) == {"link_up", "frame_rejected"}
    line.command("c", "lock")
    assert isinstance(line.end_of("c"), Unknown)
    assert not shoe.locked


@pytest.mark.parametrize("gap", ["0.0", "0.002", "0.01"])
def test_segments_of_one_byte_are_telegrams_all_the_same(gap: str) -> None:
    line, shoe = angel_eye(f"chunk:{gap}", form="controlled")
    deal(line, shoe, 20, pause=2.0)
    line.command("c", "lock")
    assert isinstance(line.end_of("c"), Done)
    assert cards(line) == drawn(shoe)
    assert not {"frame_rejected", "gap_possible"} & set(line.kinds)


# Bee-Tek


def bee_tek(*wanted: str, **options: Any) -> tuple[Line, Shoe]:
    shoe = loaded()
    return behind(BeeTek(shoe), "bee-tek", *wanted, **options), shoe


@pytest.mark.parametrize("separator", ["space", "double", "crlf", "none"])
@pytest.mark.parametrize(
    "form", [(), ("mode:burn",), ("echo",), ("ten",), ("suit_first", "ten"), ("echo", "ten")]
)
def test_every_form_of_the_stream_is_read(separator: str, form: tuple[str, ...]) -> None:
    line, shoe = bee_tek(f"separator:{separator}", *form)
    deal(line, shoe, 13)
    assert cards(line) == drawn(shoe)
    assert set(brief(line)) == {"card_drawn"}
    assert {event.in_game for event in line.of("card_drawn")} == {"mode:burn" not in form}


@pytest.mark.parametrize(
    ("unread", "reading", "kinds"),
    [
        ("game", "alarm", ["card_drawn"]),
        ("both", "alarm", ["fault_raised", "card_drawn"]),
        ("alarm", "card", ["fault_raised", "card_drawn"]),
        ("alarm", "alarm", ["fault_raised", "gap_possible"]),
    ],
)
def test_an_unread_card_is_told_in_its_place_however_the_shoe_says_it(
    unread: str, reading: str, kinds: list[str]
) -> None:
    line, shoe = bee_tek(f"unread:{unread}", "misread@2", e3_reading=reading)
    deal(line, shoe, 3, pause=1.2)
    assert brief(line) == ["card_drawn", *kinds, "card_drawn"]
    assert [card for card in cards(line) if card] == [face for face in drawn(shoe) if face]


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        ("alarm@2", ["fault_raised", "gap_possible", "card_drawn"]),
        ("alarm:E9 Door@2", ["fault_raised", "chatter", "card_drawn"]),
        ("warning:2A@2", ["warning", "card_drawn"]),
        ("chatter@2", ["chatter", "gap_possible", "card_drawn"]),
    ],
)
def test_alarms_warnings_and_text_keep_their_place_and_cost_no_card(fault: str, kinds: list[str]) -> None:
    line, shoe = bee_tek(fault)
    deal(line, shoe, 3, pause=1.2)
    assert brief(line) == ["card_drawn", *kinds, "card_drawn"]
    assert cards(line) == drawn(shoe)


@pytest.mark.parametrize("seconds", ["0.3", "0.1", "2"])
def test_a_cut_line_loses_a_card_and_the_halves_of_two_never_become_a_third(seconds: str) -> None:
    line, shoe = bee_tek(f"line_cut:{seconds}@2")
    deal(line, shoe, 6)
    whole = cards(line)
    lost = 1 if float(seconds) < 1 else 4
    assert whole == drawn(shoe)[:1] + drawn(shoe)[1 + lost :]
    assert "gap_possible" in line.kinds


@pytest.mark.parametrize("place", range(15))
def test_a_damaged_byte_makes_no_other_card(place: int) -> None:
    line, shoe = bee_tek(f"damage:{place}@2")
    deal(line, shoe, 3)
    told, true = cards(line), drawn(shoe)
    assert told in ([true[0], None, true[2]], [true[0], true[2]])
    assert len(told) == 3 or "gap_possible" in line.kinds


def test_a_bee_tek_hears_no_command_and_its_bytes_at_another_rate_are_none() -> None:
    line, shoe = bee_tek("wrong_baud:0.5")
    deal(line, shoe, 20)
    assert not cards(line)
    assert {"frame_rejected", "chatter"} & set(line.kinds)
