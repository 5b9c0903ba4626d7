"""What field engineers hit on the wire of a shoe or shuffler, one problem a test, with its number.

Problems of a port, its rights and its name are beside the ports (`test_port_incidents.py`); those that need
the whole table (27, 28) in `test_wire_table.py`.
"""

from __future__ import annotations

import json
from random import Random

import pytest
from typer.testing import CliRunner

from controller.cli.app import app
from devices.base import Setup
from devices.registry import load
from firmware_bridge.framing.angel_eye import bcc, encode_command
from firmware_bridge.link import Done, Refused
from simulators import faults
from simulators.wire.angel_eye import SEQUENCES, parse_script
from tests.support.line import (
    TOKEN,
    Line,
    Pieces,
    angel_eye_line,
    drawn,
    message_of,
    shoe_line,
    shuffler_line,
)

BYTE_S = 10 / 4800


def telegram(seq: str, code: str, data: str = "") -> bytes:
    body = seq.encode() + code.encode() + bytes.fromhex(data) + b"\x03"
    return b"\x05" + body + bcc(body)


def scripted(*steps: str, **options: str) -> Line:
    """A shoe that sends a script of telegrams, each three times."""
    line, _ = angel_eye_line(form="reader", sim_script=parse_script("\n".join(steps)), **options)
    line.run(60.0)
    return line


def brief(line: Line) -> list[str]:
    """The kinds in order, without the link's."""
    return [kind for kind in line.kinds if not kind.startswith("link_")]


def test_field_01_three_copies_of_errors_and_starts_are_one_event_each() -> None:
    line = scripted("1 S", "1 E c1", "1 e 81", "1 S", "1 P", "1 C")
    assert brief(line) == [
        "session_started", "fault_raised", "fault_cleared", "session_started", "standby", "cut_card",
    ]  # fmt: skip
    assert (line.driver.counters.frames, line.driver.counters.repeats) == (18, 12)


@pytest.mark.parametrize("alphabet", SEQUENCES)
@pytest.mark.parametrize("s_advances", [True, False])
def test_field_02_no_card_is_taken_for_a_copy_after_a_wrap_a_restart_or_a_start(
    alphabet: str, s_advances: bool
) -> None:
    line, shoe = angel_eye_line(
        form="reader", sim_sequence=alphabet, sim_s_advances=s_advances, seq_profile="free"
    )
    for number in range(52):
        shoe.draw()
        line.run(0.5)
        if number == 20:
            line.device.machine.power_cut(1.0)
            line.run(2.0)
        if number == 40:
            shoe.press_new_shoe()
            line.run(1.0)
    assert [e.card for e in line.of("card_drawn")] == drawn(shoe)
    assert not line.of("conflict")


def test_field_02_the_same_number_with_other_data_is_an_alarm_and_both_cards_count() -> None:
    line = Line("angel-eye", angel_eye_line()[0].device, form="reader")
    out = [*line.driver.start(0.0)]
    for number, frame in enumerate((telegram("1", "D", "81b8"), telegram("1", "D", "91a5"))):
        out += line.driver.feed(frame, 1.0 + 0.1 * number)
    assert [e.kind for e in out] == ["link_up", "card_drawn", "card_drawn", "conflict"]
    assert [e.card for e in out[1:3]] == ["8S", "5C"]


@pytest.mark.parametrize("includes_stx", [True, False])
def test_field_03_the_range_of_the_check_byte_is_found_and_remembered(includes_stx: bool) -> None:
    line, shoe = angel_eye_line(sim_bcc_includes_stx=includes_stx)
    line.run(1.0)
    for number, command in enumerate(("lock", "unlock", "lock")):
        line.command(str(number), command)
        assert isinstance(line.end_of(str(number)), Done)
    assert shoe.locked
    wanted = [encode_command("LK", number, includes_stx) for number in (2, 1, 2)]
    first = [] if includes_stx else [encode_command("LK", 2, bcc_includes_stx=True)]
    assert line.wire.sent == first + wanted, "one attempt in the other form, then never again"


def test_field_05_a_bad_check_is_never_an_event_and_is_counted() -> None:
    line, shoe = angel_eye_line(form="reader")
    line.run(1.0)
    seen = [0]

    def spoil(frame: bytes) -> Pieces:
        seen[0] += 1
        good = seen[0] % 3 == 0  # of three copies the third is whole
        return [(0.0, frame if good else frame[:4] + bytes([frame[4] ^ 0x01]) + frame[5:])]

    line.wire.up = spoil
    for _ in range(30):
        shoe.draw()
        line.run(0.5)
    line.run(5.0)
    assert [e.card for e in line.of("card_drawn")] == drawn(shoe)
    assert {e.reason for e in line.of("frame_rejected")} <= {"bad BCC", "missing ETX", "noise"}
    assert len(line.of("frame_rejected")) == seen[0] // 3, "one run for the two bad copies of each"


def test_field_05_decode_tells_how_much_was_bad() -> None:
    good, bad = telegram("1", "C"), telegram("2", "C")[:-1] + b"0"
    ran = CliRunner().invoke(app, ["decode", "--driver", "angel-eye", "--json", "-"], input=(good + bad) * 10)
    assert ran.exit_code == 0
    summary = json.loads(ran.stdout.splitlines()[-1])
    counted = {name: summary[name] for name in ("kind", "frames", "rejected", "bytes")}
    assert counted == {"kind": "summary", "frames": 10, "rejected": 10, "bytes": 120}


@pytest.mark.parametrize(
    ("steps", "new_shoes"),
    [
        (["1 S"], [False]),
        (["1 S", "1 S"], [False, False]),
        (["1 C", "1 S"], [True]),
        (["1 C", "1 C", "1 S"], [True]),
        (["1 C", "1 S", "1 S"], [True, False]),
        (["1 P", "1 P", "1 S", "1 P"], [False]),
    ],
)
def test_field_10_a_new_shoe_is_a_start_after_a_cutting_card_and_nothing_else(
    steps: list[str], new_shoes: list[bool]
) -> None:
    line = scripted(*steps)
    starts = line.of("session_started")
    assert ["no_cut_card_before" not in e.diag for e in starts] == new_shoes


def test_field_10_a_restart_between_cutting_card_and_start_makes_no_new_shoe() -> None:
    line, _ = angel_eye_line(form="reader", sim_script=parse_script("1 C\n5 S"))
    line.run(2.0)
    line.unplug()
    line.run(0.5)
    line.replug()
    line.run(10.0)
    assert [e.diag for e in line.of("session_started")] == [("no_cut_card_before",)]


HAND = ["D 81b8", "D 91a5", "D 82b9", "D 92c2", "G 90"]


def test_field_12_a_round_that_was_seen_in_part_is_not_aligned_and_says_what_is_missing() -> None:
    line, _ = angel_eye_line(form="reader", sim_script=parse_script("\n".join(f"1 {s}" for s in HAND * 2)))
    line.run(1.5)  # one card was seen
    line.unplug()
    line.run(2.0)  # two go by unseen
    line.replug()
    line.run(30.0)
    first, second = line.of("game_result")
    assert (first.aligned, second.aligned) == (False, True)
    asked = line.of("alignment_required")
    assert [e.missing for e in asked] == [(), ("player 1", "player 2", "banker 1", "banker 2")]
    assert len(line.of("gap_possible")) >= 1


@pytest.mark.parametrize(("reading", "aligned"), [("next_round", True), ("redeal", False)])
def test_field_14_an_overdraw_and_r_are_events_of_their_own_and_the_reading_is_a_setting(
    reading: str, aligned: bool
) -> None:
    steps = [f"1 {s}" for s in HAND[:4]] + ["1 E c2", "1 R 81c1", "1 e 82", "1 G 90"]
    line = scripted(*steps, r_reading=reading)
    kinds = brief(line)
    assert kinds[4:7] == ["fault_raised", "card_reassigned", "fault_cleared"]
    assert (line.of("fault_raised")[0].name, line.of("card_reassigned")[0].card) == ("overdraw", "AH")
    assert line.of("game_result")[0].aligned is aligned
    assert len(line.of("card_drawn")) == 4, "R deals no card"


@pytest.mark.parametrize("pause", [0.1, 0.3, 0.49])
def test_field_16_a_message_in_pieces_is_one_message(pause: float) -> None:
    """Reads that end after 100 ms cut messages; a pause shorter than half a second ends none."""
    driver = load("angel-eye").reader(Setup("shoe", Random(1)))
    now, out = 0.0, [*driver.start(0.0)]
    for frame in (telegram("1", "D", "81b8"), telegram("2", "D", "91a5")):
        for at in range(len(frame)):
            now += pause
            out += [*driver.tick(now), *driver.feed(frame[at : at + 1], now)]
    assert [e.kind for e in out] == ["link_up", "card_drawn", "card_drawn"]


@pytest.mark.parametrize("kind", ["managed", "angel-eye"])
def test_field_18_a_card_that_was_not_read_keeps_its_place_among_the_others(kind: str) -> None:
    line, shoe = shoe_line() if kind == "managed" else angel_eye_line(form="reader")
    faults.apply(line.device, "misread@3")
    for _ in range(6):
        shoe.draw()
        line.run(0.5)
    line.run(2.0)
    faces = drawn(shoe)
    assert faces[2] is None
    if kind == "managed":
        assert [e.card for e in line.of("card_drawn")] == faces
        assert [e.seq for e in line.of("card_drawn")] == sorted(e.seq for e in line.of("card_drawn"))
        return
    # this shoe tells an error instead, and until it is cancelled no card belongs to a hand
    told = [(e.kind, getattr(e, "card", None), getattr(e, "in_game", None)) for e in line.events]
    told = [entry for entry in told if entry[0] in {"card_drawn", "fault_raised"}]
    assert told == [
        *[("card_drawn", face, True) for face in faces[:2]],
        ("fault_raised", None, None),
        *[("card_drawn", face, False) for face in faces[3:]],
    ]
    assert all(e.position is None for e in line.of("card_drawn") if not e.in_game)
    assert line.of("fault_raised")[0].name == "card_unreadable"


def test_field_28_accepted_and_done_are_two_messages() -> None:
    line, machine = shuffler_line()
    line.command("a", "start", token=TOKEN.hex())
    assert line.end_of("a") == Done({"cycle": 1})
    assert not line.of("cycle_completed"), "the answer to a start says that it was accepted"
    line.run(60.0)
    (done,) = line.of("cycle_completed")
    assert (done.cycle, done.token, done.count) == (1, TOKEN.hex(), 52)
    assert machine.cycle == 1


def test_field_30_a_device_that_restarts_at_every_greeting_is_greeted_less_and_less_often() -> None:
    """Nobody resets anybody: the host sends an echo with a nonce, counts its attempts and waits longer."""
    line, _ = shoe_line()

    def restart(frame: bytes) -> Pieces:
        if message_of(frame).group == 0:
            line.device.machine.power_cut(0.1)
            return []
        return [(0.0, frame)]

    line.wire.down = restart
    line.unplug()
    line.run(0.3)
    line.replug()
    line.run(10.0)
    line.wire.sent.clear()
    line.run(600.0)
    assert {(message_of(f).group, message_of(f).command) for f in line.wire.sent} == {(0, 0)}
    nonces = [message_of(f).body["d"] for f in line.wire.sent]
    assert len(set(nonces)) <= 600 / 9.5 + 2
    assert max(nonces.count(nonce) for nonce in set(nonces)) == 3
    line.wire.down = lambda frame: [(0.0, frame)]
    line.run(12.0)
    assert line.kinds[-2:] == ["link_up", "rebooted"]


def test_field_32_free_text_between_frames_is_told_as_chatter_and_hurts_nothing() -> None:
    line, machine = shuffler_line()
    for text in ("Error", "E (4211) motor: stall"):
        line.device.traps.set("chatter", 1, text)
        line.run(1.0)
    line.command("a", "start", token=TOKEN.hex())
    assert line.end_of("a") == Done({"cycle": 1})
    assert [e.text for e in line.of("chatter")] == ["Error", "E (4211) motor: stall"]
    assert not line.of("frame_rejected")
    assert line.kinds.count("link_up") == 1
    assert machine.cycle == 1


def test_field_32_text_on_a_telegram_line_is_skipped_to_the_next_start_and_told() -> None:
    line = scripted("1 C", "1 raw 4572726f720d0a", "1 P")
    assert brief(line) == ["cut_card", "frame_rejected", "standby"]
    (run,) = line.of("frame_rejected")
    assert (run.reason, run.raw, run.bytes) == ("noise", b"Error\r\n", 7)


def test_field_42_who_cannot_prove_that_nothing_was_lost_says_so_and_who_can_counts_it() -> None:
    without, shoe = angel_eye_line(form="reader")
    counted, managed = shoe_line()
    for line, machine in ((without, shoe), (counted, managed)):
        machine.draw()
        line.run(2.0)
        line.unplug()
        machine.draw()
        line.run(2.0)
        line.replug()
        line.run(3.0)
    (gap,) = without.of("gap_possible")
    assert gap.missing is None
    assert [e.card for e in without.of("card_drawn")] == drawn(shoe)[:1]
    assert not counted.of("gap_possible")
    assert [e.card for e in counted.of("card_drawn")] == drawn(managed)
    counted.unplug()
    counted.device._ring.size = 3
    for _ in range(10):
        managed.draw()
        counted.run(0.1)
    counted.replug()
    counted.run(3.0)
    (gap,) = counted.of("gap_possible")
    assert gap.missing == 7, "exactly what the ring no longer holds"
    assert [e.card for e in counted.of("card_drawn")] == drawn(managed)[:2] + drawn(managed)[-3:]
    assert Refused not in map(type, counted.ends.values())
