"""The menu of faults: each one strikes on each device that can have it, shows, and is counted."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from simulators import faults
from simulators.faults import menu
from simulators.faults.script import Step
from simulators.hosts.line import Line
from simulators.rig import fault_list
from simulators.rig.campaign.blows import BLOWS
from simulators.rig.campaign.slips import SLIPS
from tests.support import exercises

VALUES = {"mode": "burn", "separator": "crlf", "sequence": "hex", "unread": "alarm"}
"""Settings that have no usual VALUE."""
LOADED = frozenset({
    "banner", "erase_first", "keep_old", "no_images", "no_parameters", "quiet_bootloader",
    "remembers_upload", "slow_erase", "small_buffer", "spoil", "stay_in_bootloader", "upload_reboot",
    "upload_refused", "watchdog",
})  # fmt: skip
"""Faults that show when an image is loaded."""
WITH = {"quiet_bootloader": (Step("stay_in_bootloader"),), "unread": (Step("misread", nth=2),)}
"""What must be there too, or nothing shows."""
ELSEWHERE = {"barcode-hid-second_keyboard", "bee-tek-chunk"}
"""What shows on a USB host alone (test_simulators_usb.py); a bee-tek's bytes come one by one anyway."""
LINES = ("angel-eye", "bee-tek", "managed-shoe")
"""Lines are alike; these are the kinds of devices behind them."""


def cases():
    lines = {name: Line(make(), exercises.Random(0)) for name, make in exercises.MAKE.items()}
    for device, line in lines.items():
        for name, fault in faults.FAULTS.items():
            try:
                fault.bearer(line if fault.layer == "line" else line.device)
            except faults.UnfitFault:
                continue
            if fault.layer == "cable" or (fault.layer == "line" and device not in LINES):
                continue
            if (case := f"{device}-{name}") not in ELSEWHERE:
                yield pytest.param(device, name, id=case)


def value(device: str, name: str) -> str | None:
    if name == "pace":
        return "none" if exercises.MAKE[device]().uart.paced else "real"
    return VALUES.get(name)


@cache
def usual(device: str, loaded: bool, with_: tuple[Step, ...]):
    return exercises.lived(device, with_, day=exercises.uploads if loaded else None).whole


@pytest.mark.parametrize(("device", "name"), [*cases()])
def test_each_fault_strikes_shows_and_is_counted(device, name):
    loaded, with_ = name in LOADED, WITH.get(name, ())
    day = exercises.uploads if loaded else None
    bench = exercises.lived(device, [*with_, Step(name, value(device, name))], day=day)
    assert bench.line.struck[name] >= 1
    assert bench.whole != usual(device, loaded, with_)


@pytest.mark.parametrize("device", exercises.MAKE)
def test_a_line_with_nothing_to_do_changes_no_byte(device):
    bare = exercises.MAKE[device]()
    behind = Line(exercises.MAKE[device](), exercises.Random(0))
    ends = []
    for end in (bare, behind):
        bench = exercises.Bench(exercises.MAKE[device]())
        bench.line, bench.machine = end, end.machine
        exercises.DAY[device](bench)
        ends.append(bench.whole)
    assert ends[0] == ends[1]
    assert behind.struck == Counter()


def test_a_trap_springs_at_its_occasion_and_no_other():
    bench = exercises.lived("managed-shoe", [Step("misread", nth=3)])
    faces = [h.data["face"] for h in bench.machine.happenings if h.kind == "drawn"]
    assert [number for number, face in enumerate(faces, 1) if face is None] == [3]
    assert bench.line.struck == {"misread": 1}


# The words


def test_every_row_tells_what_it_is():
    for name, fault in faults.FAULTS.items():
        assert fault.name == name
        assert fault.layer in menu.LAYERS
        assert fault.help
        assert (fault.kind == "trap") == bool(fault.occasion) or fault.layer == "cable", name
        assert (fault.strike is None) == (fault.kind == "trap"), name


def test_a_name_twice_is_an_error():
    with pytest.raises(RuntimeError, match="faults in two catalogues: misread"):
        menu._menu(
            ("machine", {"misread": faults.FAULTS["misread"]}), ("wire", {"misread": faults.FAULTS["nak"]})
        )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("misred", "there is no fault 'misred'; did you mean 'misread'? (see cutcard sim --list-faults)"),
        (
            "q" * 9000,
            "there is no fault 'qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq... (see",
        ),
        ("Q" * 9000, "... is no fault; write NAME[:VALUE][@N], N from 1"),
        ("qqqq", "there is no fault 'qqqq' (see cutcard sim --list-faults)"),
        ("misread@0", "'misread@0' is no fault; write NAME[:VALUE][@N], N from 1"),
        ("misread:8", "only a hole-card reader can have this fault"),
        ("wrong_face:8X", "wrong_face: its VALUE is one of 52 words, as AC, AD, AH ... KS"),
        ("old_errors@2", "old_errors takes no @N; it is a setting"),
        ("late_answer:soon", "'soon' is no value for late_answer: an answer comes VALUE (3) s late"),
        ("late_answer:-1", "'-1' is no value for late_answer"),
        ("late_answer:nan", "'nan' is no value for late_answer"),
        ("face_up:yes", "face_up: it takes no VALUE"),
        ("small_ring:0", "'0' is no value for small_ring"),
        ("leave_inside", "only a shuffler can have this fault"),
        ("drop", "it is a fault of the line: put the device behind one (simulators.hosts.line.Line)"),
        ("unplug", "it is a fault of the line"),
    ],
)
def test_what_cannot_be_is_told_in_words(text, said):
    with pytest.raises(faults.UnfitFault) as told:
        faults.apply(exercises.MAKE["managed-shoe"](), text)
    assert said in str(told.value)


@pytest.mark.parametrize(
    ("device", "text", "said"),
    [
        ("managed-shuffler", "wear:1e308", "wear: its VALUE is a number from 0.001 to 10, not 1e+308"),
        (
            "managed-shoe",
            "wrong_baud:0.0001",
            "wrong_baud: its VALUE is a number from 0.01 to 100, not 0.0001",
        ),
        (
            "bee-tek",
            "alarm:\N{LATIN SMALL LETTER U WITH DIAERESIS}",
            "is no value for alarm: an alarm of text",
        ),
        ("barcode-hid", "modifier: ", "' ' is no value for modifier"),
        ("barcode-hid", "modifier:0404", "'0404' is no value for modifier"),
    ],
)
def test_a_value_that_would_break_the_device_is_none(device, text, said):
    with pytest.raises(faults.UnfitFault) as told:
        faults.apply(Line(exercises.MAKE[device](), exercises.Random(0)), text)
    assert said in str(told.value)


# The list


def test_the_list_names_who_can_have_a_fault():
    rows = {row["name"]: row for row in fault_list.rows()}
    assert list(rows) == [*faults.FAULTS, *BLOWS, *SLIPS]
    assert rows["leave_inside"] == {
        "name": "leave_inside",
        "layer": "machine",
        "kind": "trap",
        "does": "VALUE (16) cards never leave the input",
        "counts": "cycle",
        "devices": ["managed-shuffler"],
    }
    assert rows["half_open"]["ports"] == ["tcp"]
    assert rows["chunk"]["ports"] == ["pty", "tcp"]
    assert rows["drop"]["ports"] == ["pty", "tcp", "usb"]
    assert rows["disk_full"] == {
        "name": "disk_full",
        "layer": "daemon",
        "kind": "act",
        "does": "a commit finds no room: a safe stop, then a start",
        "counts": "commit",
        "devices": [],
        "tables_only": True,
    }
    assert rows["wrong_tap"]["layer"] == "people"


def test_the_list_of_one_device_has_what_it_can_have():
    names = {row["name"] for row in fault_list.rows("gat")}
    assert {"nak", "bad_crc", "slow_calculation", "drop", "unplug"} <= names
    assert not {"misread", "leave_inside", "keep_old", "crash", "wrong_tap"} & names


def test_the_list_is_aligned_and_grouped():
    text = fault_list.as_text(fault_list.rows())
    blocks = text.split("\n\n")
    assert [block.split(":")[0].split("\n")[0] for block in blocks] == [
        *menu.LAYERS, "daemon", "people", "where",
    ]  # fmt: skip
    for block in blocks[:-1]:
        (column,) = {line.index(row["does"]) for line, row in zip(block.splitlines()[1:], [
            row for row in fault_list.rows() if block.startswith(row["layer"])
        ], strict=True)}  # fmt: skip
        assert column > 4
