"""The history log of a Deck Mate 1: every line is kept, in its place, whatever it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.cli import app
from devices.importers.deckmate1 import Record, count_lines, parse, summary

LOG = Path(__file__).parents[1] / "fixtures" / "deckmate1.log"
"""Written for these tests in the machine's layout; no machine printed it."""
TEXT = LOG.read_bytes().decode("latin-1")


def one(line: str) -> Record:
    (record,) = parse(line)
    return record


def test_field_39_nothing_is_dropped_mended_or_sorted() -> None:
    records = list(parse(TEXT))
    lines = re.split(r"\r\n|\r|\n", TEXT)
    assert [r.line for r in records] == [n for n, line in enumerate(lines, 1) if line]
    assert all(r.raw == lines[r.line - 1] for r in records)
    doors = [r for r in records if r.name == "door_opened"]
    assert [r.line for r in doors] == [12, 13], "two lines that look the same are two events"
    dates = [r.date for r in records if r.kind == "event"]
    assert dates == [
        "03-02-17", "03-02-17", "03-02-17", "03-02-17", "03-02-17", "02-27-17", "13-40-17", "01-01-00",
        "01-01-00", "04-02-17",
    ]  # fmt: skip
    assert {(r.line, note) for r in records for note in r.notes} == {
        (6, "year_00"), (15, "date_impossible"), (16, "year_00"), (16, "cycles_went_back"), (17, "year_00"),
        (17, "time_impossible"), (18, "name_not_known"),
    }  # fmt: skip


@pytest.mark.rule("R-78")
def test_the_whole_log_comes_to_this() -> None:
    assert summary(list(parse(TEXT)), count_lines(TEXT)) == {
        "kind": "summary", "serial": "00417", "lines": 28, "records": 27,
        "events": {
            "powered_up": 2, "auto_setups": 1, "extra_card": 1, "door_opened": 2, "jam_recovery": 1,
            "missing_card": 2, "belt_changed": 1,
        },
        "totals": {
            "power_ups": 91, "cds_failures": 0, "missing_card": 207, "extra_card": 5, "door_open_jams": 233,
            "jam_recoveries": 3, "auto_setups": 12, "platform_oop": 640, "total_cycles": 1101,
        },
        "settings": {"current_gripper_offset": 198, "current_platform_offset": 187},
        "unknown": 1,
        "notes": {
            "year_00": 3, "date_impossible": 1, "cycles_went_back": 1, "time_impossible": 1,
            "name_not_known": 1,
        },
    }  # fmt: skip


EVENT = Record(1, "event", "", name="powered_up", time="06:58:23", date="04-24-18", cycles=2982, p=243, g=224)


@pytest.mark.parametrize(
    "line",
    [
        "Powered Up   :  Time:06:58:23,Date:04-24-18,P:243,G:224,Cyc:2982",
        "Powered Up. Time=06:58:23,Date=04-24-18,P=243,G=224,Cyc=2982",
        "powered up Time: 06:58:23 , Date : 04-24-18 , P : 243 , G = 224 , Cyc . 2982",
        "  POWERED  UP::Time:6:58:23;Date:4/24/18;P:243;G:224;Cycles:2982.  ",
        "Powered\tUp\x00: Time:06.58.23\x07,Date:04.24.18,P:243,G:224,Cyc:2982",
        "PoweredUp:Date:04-24-18,Time:06:58:23,Cyc:2982,G:224,P:243",
    ],
)
def test_events_however_they_are_spaced_and_punctuated(line: str) -> None:
    from dataclasses import replace

    assert replace(one(line), raw="") == EVENT
    assert one(line).raw == line


@pytest.mark.parametrize(
    ("line", "kind", "name", "value"),
    [
        ("Power Ups = 89", "total", "power_ups", 89),
        ("CDS Failures:0", "total", "cds_failures", 0),
        ("Missing Card  = 201", "total", "missing_card", 201),
        ("Missing Card.201", "total", "missing_card", 201),
        ("Total Cycles:1056", "total", "total_cycles", 1056),
        ("Current Gripper Offset:203", "setting", "current_gripper_offset", 203),
        ("Current Platform Offset=-3", "setting", "current_platform_offset", -3),
        ("Serial Number: A-17 4", "serial", None, "A-17 4"),
        ("Serial No.=12", "serial", None, "12"),
        ("deck mate shuffler history log", "title", None, None),
        ("Boxes Opened = 3", "unknown", None, None),
        ("Missing Card", "unknown", None, None),
        ("Missing Card = many", "unknown", None, None),
        ("=", "unknown", None, None),
    ],
)
def test_other_lines(line: str, kind: str, name: str | None, value: object) -> None:
    record = one(line)
    assert (record.kind, record.name, record.value, record.raw) == (kind, name, value, line)


def test_report_lines() -> None:
    assert (one("Report T:10:02:39").time, one("Report T = 10.02.39").time) == ("10:02:39",) * 2
    assert (one("Report D:04-29-00").date, one("Report D:04-29-00").notes) == ("04-29-00", ("year_00",))
    assert one("Report D:today").notes == ("field_unreadable",)


@pytest.mark.parametrize(
    ("line", "notes"),
    [
        ("Extra Card. Time:24:00:00,Date:02-29-16,Cyc:1", ("time_impossible",)),
        ("Extra Card. Time:23:59:59,Date:02-30-16,Cyc:1", ("date_impossible",)),
        ("Extra Card. Time:23:59:59,Date:00-00-00,Cyc:1", ("year_00", "date_impossible")),
        ("Extra Card. Time:,Date:04-2,Cyc:x", ("field_unreadable",)),
        ("Something Else. Time:23:59:59", ("name_not_known",)),
        ("Time:23:59:59,Cyc:3", ("name_not_known",)),
    ],
)
def test_what_looks_wrong_is_noted_and_the_line_kept(line: str, notes: tuple[str, ...]) -> None:
    record = one(line)
    assert (record.kind, record.notes, record.raw) == ("event", notes, line)


def test_a_count_that_goes_back_is_noted_once_each_time() -> None:
    counts = (5, 6, 6, 2, 3, 1, 9)
    text = "\n".join(f"Extra Card. Time:10:00:00,Date:01-02-17,Cyc:{count}" for count in counts)
    records = list(parse(text))
    assert [r.cycles for r in records] == list(counts)
    assert [bool(r.notes) for r in records] == [False, False, False, True, False, True, False]


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_of_any_kind_and_a_missing_last_one(end: str, last: bool) -> None:
    lines = [line for line in re.split(r"\r\n|\r|\n", TEXT) if line]
    text = end.join(lines) + (end if last else "")
    assert [r.raw for r in parse(text)] == lines
    assert count_lines(text) == len(lines)


EVENT_LINE = "Powered Up   :  Time:06:58:23,Date:04-24-18,P:243,G:224,Cyc:2982"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (EVENT_LINE + "Door Opened. Time:06:59:00,Date:04-24-18,Cyc:2983",
         [("event", "powered_up", 2982), ("event", "door_opened", 2983)]),
        (EVENT_LINE + "Power Ups = 89CDS Failures:0",
         [("event", "powered_up", 2982), ("total", "power_ups", None), ("total", "cds_failures", None)]),
        ("Serial Number: 00417Report T:10:02:39", [("serial", None, None), ("report_time", None, None)]),
    ],
)  # fmt: skip
def test_lines_that_run_on_are_told_apart(text: str, found: list[tuple[str, str | None, int | None]]) -> None:
    """An event must not get the time and the count of the next one."""
    records = list(parse(text))
    assert [(r.kind, r.name, r.cycles) for r in records] == found
    assert {r.notes for r in records} == {("line_end_missing",)}
    assert {(r.line, r.raw) for r in records} == {(1, text)}


def test_values_that_stand_twice_in_a_line_are_noted() -> None:
    record = one(EVENT_LINE + "?Door Opened. Time:06:59:00,Date:04-24-18,Cyc:2983")
    assert (record.kind, record.notes) == ("event", ("field_unreadable",))


def test_nul_bytes_anywhere_are_read_over() -> None:
    spoilt = one("\0".join(EVENT_LINE))
    assert (spoilt.name, spoilt.time, spoilt.cycles) == ("powered_up", "06:58:23", 2982)
    assert spoilt.raw == "\0".join(EVENT_LINE)
    assert one("Missing Card\0\0  = 2\x0001").value == 201


def test_a_banner_in_front_of_a_line_is_a_record_of_its_own() -> None:
    both = list(parse("\x00SHUFFLE MASTER DECK MATE SHUFFLER  Serial Number: 7"))
    assert [(r.line, r.kind, r.value) for r in both] == [(1, "banner", None), (1, "serial", "7")]
    assert both[0].raw == both[1].raw


@settings(max_examples=50)
@given(st.text(st.characters(codec="latin-1"), max_size=400), st.integers(0, 2**32))
def test_nothing_fails_and_no_line_gets_lost(noise: str, seed: int) -> None:
    random = Random(seed)
    at = random.randrange(len(TEXT))
    text = TEXT[:at] + noise + TEXT[at + random.randrange(40) :]
    records = list(parse(text))
    lines = re.split(r"\r\n|\r|\n", text)
    kept = {r.line for r in records}
    dropped = [line for number, line in enumerate(lines, 1) if number not in kept]
    assert all(not re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", line).strip() for line in dropped)
    assert [r.line for r in records] == sorted(r.line for r in records)
    json.dumps([r.as_json() for r in records])


# The command


@pytest.fixture
def cutcard(capsys):
    def call(*words: str) -> tuple[int, str, str]:
        code = 0
        try:
            app.main(list(words))
        except SystemExit as left:
            code = int(left.code or 0)
        return code, *capsys.readouterr()

    return call


def test_the_command_prints_json_lines_and_says_what_looks_wrong(cutcard) -> None:
    code, out, err = cutcard("import", "deckmate1", str(LOG))
    *records, last = map(json.loads, out.splitlines())
    assert code == 0
    assert records == [r.as_json() for r in parse(TEXT)]
    assert last["kind"] == "summary"
    assert err.splitlines()[0] == "serial number 00417; 28 lines, 27 records, 10 events, 1 unknown lines"
    assert "looks wrong: year_00 3," in err
    assert cutcard("import", "deckmate1", str(LOG), "--json") == (0, out, "")


def test_a_log_of_something_else_is_kept_too_and_said_to_be_none(cutcard, tmp_path) -> None:
    file = tmp_path / "x.bin"
    file.write_bytes(bytes(range(256)) * 3 + b"\x1b[2J\xff")
    code, out, err = cutcard("import", "deckmate1", str(file))
    assert code == 0
    assert err == "nothing in this file looks like a Deck Mate 1 log: is it the right one?\n"
    assert out.isascii()
    assert "\x1b" not in out
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    assert json.loads(cutcard("import", "deckmate1", str(empty))[1])["records"] == 0


@pytest.mark.parametrize(
    ("words", "code"), [(["deckmate1", "/nowhere/x.log"], 2), (["deckmate2", "x"], 2), (["deckmate1"], 2)]
)
def test_mistakes_are_usage_errors(cutcard, words: list[str], code: int) -> None:
    assert cutcard("import", *words)[0] == code


def test_a_reader_that_leaves_early_is_no_failure() -> None:
    command = "from controller.cli.app import main; main()"
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-c", command, "import", "deckmate1", str(LOG)],
            stdout=writing, stderr=subprocess.PIPE, check=False, timeout=30,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
