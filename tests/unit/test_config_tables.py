"""table.toml: what `check` finds, in which words, with which clause."""

from __future__ import annotations

import copy
import tomllib
from datetime import time
from pathlib import Path
from typing import Any

import pytest

from controller import config
from controller.config import Config, examine
from controller.config_file import keys
from controller.table.eligibility import Problem
from firmware_bridge.identity import Identity

CONTRACT = """
[table]
id = "BJ-07"
profile = "nj-casino"
game = "blackjack"
boxes = 7
mode = "two-batch-shoe"
wagers = ["match-the-dealer"]
[cards]
decks_per_batch = 6
cutting_card = "yellow"
edge = "white"
[[cards.batch]]
id = "A"
back = "red"
[[cards.batch]]
id = "B"
back = "blue"
[devices.shoe]
driver = "managed-shoe"
port = "serial:/dev/serial/by-id/usb-Cutcard_Shoe_0001?baud=115200"
[devices.shuffler]
driver = "managed-shuffler"
port = "usb:1209:0001:SH0001"
[service]
socket = "/run/cutcard/BJ-07.sock"
[journal]
path = "/var/lib/cutcard/journal.db"
key = "/etc/cutcard/seal.key"
[panel]
listen = "127.0.0.1:8620"
[uplink]
mqtt = "mqtts://broker.pit.example:8883"
"""


APPROVED = {
    "vendor": "Cutcard",
    "product": "SIM-SHOE",
    "serial": "SH0001",
    "firmware": "1.0.0",
    "hash": "ab" * 32,
}


def toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def changed(**changes: Any) -> bytes:
    """The contract's table with values at dotted paths replaced (`__` for a dot), None taking one out."""
    tree = copy.deepcopy(tomllib.loads(CONTRACT))
    for path, value in changes.items():
        at: Any = tree
        *way, last = path.split("__")
        for step in way:
            at = at[int(step)] if isinstance(at, list) else at.setdefault(step, {})
        key: Any = int(last) if isinstance(at, list) else last
        if value is None:
            del at[key]
        else:
            at[key] = value
    return "\n".join(f"{section} = {toml(value)}" for section, value in tree.items()).encode()


def problems(**changes: Any) -> list[Problem]:
    found, listed = examine(changed(**changes))
    assert (found is None) == bool(listed)
    return listed


def lines(**changes: Any) -> list[str]:
    return [str(problem) for problem in problems(**changes)]


def good(**changes: Any) -> Config:
    found, listed = examine(changed(**changes))
    assert found is not None, listed
    return found


def test_the_example_of_the_contract_is_fine_but_for_what_is_not_built() -> None:
    found, listed = examine(CONTRACT.encode())
    assert listed == []
    assert found is not None
    assert [note.partition(":")[0] for note in found.notes] == [
        "panel.listen",
        "uplink.mqtt",
    ]
    rules = found.rules
    assert (rules.table, rules.boxes, rules.decks, rules.settle_first) == ("BJ-07", 7, 6, True)
    assert [(batch.id, batch.back) for batch in rules.batches] == [("A", "red"), ("B", "blue")]
    assert (rules.shoe, rules.shuffler) == ("shoe", "shuffler")
    assert [(d.id, d.spec.name) for d in found.devices] == [
        ("shoe", "managed-shoe"),
        ("shuffler", "managed-shuffler"),
    ]
    assert found.socket == Path("/run/cutcard/BJ-07.sock")


# 13:69F-2.2(a)1-4, transcribed by hand: the deck counts 1..8 that each wager allows.
ALLOWED = {
    "match-the-dealer": "6 8",
    "optional-bonus": "6 8",
    "twenty-point": "2 3 4 5 6 7 8",
    "in-between": "2 3 4 5 6 7 8",
    "seven": "4 5 6 7 8",
    "progressive": "4 5 6 7 8",
    "over-under-13": "1 2 3 4 5 6 7 8",
    "same-suit": "1 2 3 4 5 6 7 8",
    "bonus": "1 2 3 4 5 6 7 8",
}
CLAUSE = {
    "match-the-dealer": "13:69F-2.2(a)4",
    "optional-bonus": "13:69F-2.2(a)4",
    "twenty-point": "13:69F-2.2(a)2",
    "in-between": "13:69F-2.2(a)2",
    "seven": "13:69F-2.2(a)3",
    "progressive": "13:69F-2.2(a)3",
}


# The same where the decks of both batches count: decks a batch, of two batches.
ALLOWED_IN_TOTAL = {
    "match-the-dealer": "3 4",
    "optional-bonus": "3 4",
    "twenty-point": "1 2 3 4 5 6 7 8",
    "in-between": "1 2 3 4 5 6 7 8",
    "seven": "2 3 4 5 6 7 8",
    "progressive": "2 3 4 5 6 7 8",
    "over-under-13": "1 2 3 4 5 6 7 8",
    "same-suit": "1 2 3 4 5 6 7 8",
    "bonus": "1 2 3 4 5 6 7 8",
}
READINGS = [("batch", ALLOWED, 1, "a batch"), ("total", ALLOWED_IN_TOTAL, 2, "in both batches together")]


@pytest.mark.rule("R-03", "R-41")
@pytest.mark.parametrize(("floor", "allowed", "times", "each"), READINGS, ids=["batch", "total"])
@pytest.mark.parametrize("wager", ALLOWED)
def test_decks_by_wager(wager: str, floor: str, allowed: dict[str, str], times: int, each: str) -> None:
    for decks in range(1, 9):
        found = problems(cards__decks_per_batch=decks, table__wagers=[wager], rules__deck_floor=floor)
        if str(decks) in allowed[wager].split():
            assert found == []
        else:
            assert [problem.clause for problem in found] == [CLAUSE[wager]]
            assert found[0].text.startswith(f"{wager} needs ")
            assert found[0].text.endswith(f" decks {each}, this table has {decks * times}")


@pytest.mark.rule("R-03")
def test_the_decks_of_both_batches_are_unknown_where_there_are_not_two() -> None:
    total = {"rules__deck_floor": "total"}
    two = "two batches are needed"
    for count, batches in ((0, []), (1, [{"id": "A", "back": "red"}])):
        assert lines(**total, cards__batch=batches) == [f"cards.batch: {two}, {count} given [13:69F-2.2(d)1]"]
    assert [problem.text for problem in problems(**total, cards__batch__1__decks=9)] == [
        "9 decks a batch: Cutcard handles at most 8",
        "the batches must have an equal number of decks, they have 6 and 9",
    ]
    assert lines(rules__deck_floor="totl", cards__decks_per_batch=1) == [
        "rules.deck_floor: there is no reading 'totl'; did you mean total?"
    ]


@pytest.mark.rule("R-03")
def test_several_wagers_take_the_strictest() -> None:
    found = problems(
        cards__decks_per_batch=3, table__wagers=["twenty-point", "progressive", "optional-bonus"]
    )
    assert [problem.clause for problem in found] == ["13:69F-2.2(a)3", "13:69F-2.2(a)4"]


WRONG: list[tuple[str, dict[str, Any], str, str | None, str]] = [
    (
        "no decks",
        {"cards__decks_per_batch": 0, "table__wagers": []},
        "0 decks a batch",
        "13:69F-2.2(a)",
        "R-01",
    ),
    ("seven decks", {"cards__decks_per_batch": 7}, "exactly 6 or 8 decks", "13:69F-2.2(a)4", "R-03"),
    ("9 decks", {"cards__decks_per_batch": 9, "table__wagers": []}, "at most 8", None, "R-01"),
    ("6 and 8", {"cards__batch__1__decks": 8}, "they have 6 and 8", "13:69F-2.2(d)1", "R-05"),
    ("one batch", {"cards__batch__1": None}, "two batches are needed, 1 given", "13:69F-2.2(d)1", "R-05"),
    ("same backs", {"cards__batch__1__back": "Red"}, "different colours", "13:69F-2.2(d)2", "R-05"),
    ("cutting card like a back", {"cards__cutting_card": "Blue"}, "like the backs", "13:69F-2.2(a)", "R-02"),
    (
        "cutting card like the edge",
        {"cards__cutting_card": "white"},
        "like the edges",
        "13:69F-2.2(a)",
        "R-02",
    ),
    ("no cutting card", {"cards__cutting_card": None}, "cutting_card: is missing", "13:69F-2.2(a)", "R-02"),
    (
        "match and in-between",
        {"table__wagers": ["match-the-dealer", "in-between"]},
        "match-the-dealer may not be offered together with in-between",
        "13:69F-2.23(g)",
        "R-39",
    ),
    (
        "match and optional bonus",
        {"table__wagers": ["optional-bonus", "match-the-dealer"]},
        "together with optional-bonus",
        "13:69F-2.23(g)",
        "R-39",
    ),
    (
        "progressive and seven",
        {"table__wagers": ["progressive", "seven"]},
        "seven may not be offered where the progressive is",
        "13:69F-2.17(a)",
        "R-40",
    ),
    (
        "two of 2.17",
        {"table__wagers": ["same-suit", "over-under-13"]},
        "only one of",
        "13:69F-2.17(a)",
        "R-40",
    ),
    ("no shuffler", {"devices__shuffler": None}, "needs a shuffler", "13:69F-2.2(d)", "R-05"),
    ("no shoe", {"devices__shoe": None}, "needs a shoe", "13:69F-2.6(a)", "R-05"),
]


@pytest.mark.parametrize(
    ("changes", "words", "clause"),
    [pytest.param(*row[1:4], marks=pytest.mark.rule(row[4]), id=row[0]) for row in WRONG],
)
def test_what_the_rules_forbid(changes: dict[str, Any], words: str, clause: str | None) -> None:
    found = problems(**changes)
    assert len(found) == 1, [str(problem) for problem in found]
    assert words in str(found[0])
    assert found[0].clause == clause
    assert str(found[0]).endswith(f"[{clause}]") == (clause is not None)


NO_KEY = "there is no such key; "
NAMES: list[tuple[dict[str, Any], str, str]] = [
    ({"table__boxs": 5}, "table.boxs", NO_KEY + "did you mean boxes?"),
    ({"tabel": {"id": "x"}}, "tabel", NO_KEY + "did you mean table?"),
    (
        {"table__decks_per_batch": 6},
        "table.decks_per_batch",
        "there is no such key here; did you mean cards.decks_per_batch?",
    ),
    (
        {"cards__batch__0__colour": "red"},
        "cards.batch[1].colour",
        NO_KEY + "known are id, back, decks, cutting_card",
    ),
    (
        {"rules__cutting_card": "yellow"},
        "rules.cutting_card",
        "there is no such key here; did you mean cards.cutting_card?",
    ),
    (
        {"table__mode": "two-batch-shoo"},
        "table.mode",
        "there is no mode 'two-batch-shoo'; did you mean two-batch-shoe?",
    ),
    (
        {"table__profile": "nj-casin"},
        "table.profile",
        "there is no profile 'nj-casin'; did you mean nj-casino?",
    ),
    (
        {"table__wagers": ["match-dealer"]},
        "table.wagers",
        "there is no wager 'match-dealer'; did you mean match-the-dealer?",
    ),
    (
        {"table__game": "baccarat"},
        "table.game",
        "there is no game 'baccarat'; known are blackjack, three-card-poker, mississippi-stud, asia-poker",
    ),
    (
        {"table__first_card": "play-a-round"},
        "table.first_card",
        "there is no policy 'play-a-round'; did you mean play-one-round?",
    ),
    (
        {"devices__shoe__speed": 5},
        "devices.shoe.speed",
        "the driver managed-shoe has no such key; known are driver, port, allowed, sides, discloses, wait_ms",
    ),
    (
        {"devices__shoe__prot": "x"},
        "devices.shoe.prot",
        "the driver managed-shoe has no such key; did you mean port?",
    ),
]


def test_a_wrong_name_is_told_with_the_nearest_right_one() -> None:
    for changes, key, text in NAMES:
        assert lines(**changes) == [f"{key}: {text}"]


def test_devices() -> None:
    assert "did you mean 'managed-shoe'" in lines(devices__shoe__driver="managed-sho")[0]
    assert lines(devices__shoe__driver="angel-eye") == [
        "devices.shoe.driver: angel-eye serves baccarat, not blackjack"
    ]
    why = "it proves no shuffle by a token, counts no cards and numbers no events"
    assert lines(devices__shuffler__driver="reshuffled") == [
        f"devices.shuffler.driver: reshuffled serves no table: {why}"
    ]
    why = "it reads faces without knowing whose card it is, so nobody could tell which of them may be seen"
    assert f"devices.shoe.driver: barcode-hid serves no table: {why}" in lines(
        devices__shoe__driver="barcode-hid"
    )
    assert lines(devices__shoe__port="serail:/dev/ttyS0")[0].startswith(
        "devices.shoe.port: 'serail:/dev/ttyS0'"
    )
    assert lines(devices__shoe__port="usb:12:0001")[0].startswith("devices.shoe.port:")
    assert lines(devices__shoe__port=None) == ["devices.shoe.port: is missing: a transport URI"]
    assert lines(devices__shoe__port="usb:1209:0001:SH0001") == [
        "devices.shuffler.port: devices.shoe has the same port"
    ]
    second = {"driver": "managed-shoe", "port": "socket:10.0.0.7:4001"}
    assert lines(devices__extra=second) == ["devices: 2 devices are a shoe: a table has one at most"]
    assert any("name of the controller's own" in line for line in lines(devices__operator=second))
    assert lines(devices__shoe__wait_ms="long")[0].startswith("devices.shoe: ")
    assert good(devices__shoe__wait_ms=50).devices[0].options == {"wait_ms": 50}


TYPES: list[tuple[dict[str, Any], str]] = [
    ({"table__boxes": "seven"}, "table.boxes: must be a whole number, not 'seven'"),
    ({"table__boxes": True}, "table.boxes: must be a whole number, not True"),
    ({"table__boxes": 6.5}, "table.boxes: must be a whole number, not 6.5"),
    ({"table__id": 7}, "table.id: must be a text in quotes, not 7"),
    ({"table__wagers": "seven"}, "table.wagers: must be a list in brackets, not 'seven'"),
    ({"table__wagers": ["bonus", 7]}, "table.wagers[2]: must be a text in quotes, not 7"),
    ({"table__burn_on_dealer_change": 1}, "table.burn_on_dealer_change: must be true or false, not 1"),
    ({"panel": 8620}, "panel: must be a section with keys of its own, not 8620"),
    ({"devices__shoe": "managed"}, "devices.shoe: must be a section with keys of its own, not 'managed'"),
]


def test_a_wrong_type_is_told() -> None:
    for changes, line in TYPES:
        assert line in lines(**changes)


def test_a_number_of_the_wrong_type_is_not_missing_as_well() -> None:
    assert lines(cards__decks_per_batch=8.0) == ["cards.decks_per_batch: must be a whole number, not 8.0"]


def test_journal_key_and_socket_are_three_files(tmp_path: Path) -> None:
    one, link = tmp_path / "one", tmp_path / "link"
    link.symlink_to(one)
    for name in (str(one), str(link), f"{tmp_path}/./one"):
        assert lines(journal__path=str(one), journal__key=name) == [
            "journal.key: names the same file as journal.path: give each a file of its own"
        ]
    assert lines(service__socket=str(one), journal__path=str(link)) == [
        "journal.path: names the same file as service.socket: give each a file of its own"
    ]
    assert lines(service__socket=str(one), journal__key=str(one)) == [
        "journal.key: names the same file as service.socket: give each a file of its own"
    ]
    assert lines(journal__path="a\\u0000b") == ["journal.path: holds a character that no file name may have"]
    assert lines(journal__key="") == ["journal.key: is empty: give a file name"]


def test_every_problem_is_told_at_once() -> None:
    found = problems(
        table__boxs=7,
        table__boxes="x",
        cards__decks_per_batch=7,
        cards__batch__1__back="red",
        cards__cutting_card="red",
        devices__shoe__driver="angel-eye",
        panel__listen="nowhere",
    )
    assert [problem.clause for problem in found if problem.clause] == [
        "13:69F-2.2(a)",
        "13:69F-2.2(a)4",
        "13:69F-2.2(d)2",
    ]
    assert {problem.key for problem in found} >= {
        "table.boxs",
        "table.boxes",
        "devices.shoe.driver",
        "panel.listen",
    }


@pytest.mark.parametrize("data", [b"[table", b"\xff\xfe", b"a = 1\na = 2"])
def test_what_is_no_toml_is_one_sentence(data: bytes) -> None:
    found, listed = examine(data)
    assert found is None
    assert len(listed) == 1
    assert listed[0].text.startswith(("not valid TOML", "not UTF-8"))


def test_an_empty_file_names_what_is_missing() -> None:
    found, listed = examine(b"")
    assert found is None
    assert {problem.key for problem in listed} >= {"table.id", "cards.decks_per_batch", "cards.cutting_card"}


# Law 9, by use: each key that may stand in a table.toml changes what comes out, or is judged.
USES: dict[str, Any] = {
    "table.id": "T2",
    "table.profile": "nj-casino-night",
    "table.game": "baccarat",
    "table.boxes": 5,
    "table.mode": "continuous",
    "table.wagers": ["bonus"],
    "table.first_card": "reshuffle-now",
    "table.cutting_card_tolerance": 4,
    "table.burn_on_dealer_change": False,
    "table.ties": "house-wins",
    "table.player_card_down": "first",
    "table.dealer_hands": 2,
    **dict.fromkeys(("wagers.minimum", "wagers.maximum", "wagers.other_suit", "wagers.same_suit"), 20),
    "rules.cut": "hand-shuffled",
    "rules.last_cutter": "supervisor",
    "rules.deck_floor": "total",
    "rules.discretionary": "same-batch",
    "rules.burn_after_dry": False,
    "rules.burn": "each-load",
    "rules.hand_backs_differ": False,
    "rules.continuous_batches": 2,
    "rules.deck_age_h": 24,
    "rules.least_cycle_s": 60,
    "rules.day_starts": "04:30",
    "cards.decks_per_batch": 8,
    "cards.cutting_card": "red",
    "cards.edge": "yellow",
    "cards.batch.id": "C",
    "cards.batch.back": "green",
    "cards.batch.decks": 8,
    "cards.batch.cutting_card": "green",
    "devices.driver": "angel-eye",
    "devices.port": "socket:10.0.0.7:4001",
    "devices.sides": 2,
    "devices.discloses": True,
    **dict.fromkeys(
        (
            "devices.allowed.vendor",
            "devices.allowed.product",
            "devices.allowed.serial",
            "devices.allowed.firmware",
        ),
        "other",
    ),
    "devices.allowed.hash": "cd" * 32,
    "service.socket": "/tmp/other.sock",
    "journal.path": "/tmp/j.db",
    "journal.key": "/tmp/k",
    "panel.listen": "127.0.0.1:1",
    "uplink.mqtt": "mqtt://other",
}


def test_every_key_is_read_by_something() -> None:
    assert set(keys()) == set(USES)
    listed = {"devices__shoe__allowed": [APPROVED]}
    before = examine(changed(**listed))
    for key, value in USES.items():
        path = (
            key.replace("cards.batch.", "cards.batch.0.")
            .replace("devices.", "devices.shoe.")
            .replace("allowed.", "allowed.0.")
            .replace("wagers.", "wagers.match-the-dealer.")
            .replace(".", "__")
        )
        assert examine(changed(**copy.deepcopy(listed), **{path: value})) != before, key


DOUBLE = {
    "devices__shoe__sides": 2,
    "cards__cutting_card": None,
    "cards__batch__0__cutting_card": "yellow",
    "cards__batch__1__cutting_card": "green",
}
"""A double shoe, and what it asks of the cards."""
READER = {"driver": "hole-card-reader", "port": "socket:10.0.0.7:4003"}


def test_switches_are_taken_over_and_have_the_stricter_reading_as_default() -> None:
    plain = good()
    rules = plain.rules
    assert (rules.cut, rules.last_cutter, rules.discretionary) == ("always", "dealer", "swap")
    assert (rules.burn_after_dry, rules.deck_age_h, rules.least_cycle_s) == (True, None, 0)
    assert (rules.double_shoe, rules.reader, rules.reader_discloses) == (False, None, False)
    assert plain.day_starts == time(6)
    found = good(
        rules={
            "cut": "hand-shuffled",
            "last_cutter": "supervisor",
            "discretionary": "same-batch",
            "burn_after_dry": False,
            "deck_age_h": 24,
            "least_cycle_s": 90,
            "day_starts": "23:59",
        },
        **DOUBLE,
        devices__eye={**READER, "discloses": True},
    )
    rules = found.rules
    assert (rules.cut, rules.last_cutter, rules.discretionary) == (
        "hand-shuffled",
        "supervisor",
        "same-batch",
    )
    assert (rules.burn_after_dry, rules.deck_age_h, rules.least_cycle_s) == (False, 24, 90)
    assert (rules.double_shoe, rules.reader, rules.reader_discloses) == (True, "eye", True)
    assert found.day_starts == time(23, 59)
    assert good(devices__shoe__sides=1).rules.double_shoe is False
    assert good(devices__eye=READER).rules.reader_discloses is False


SWITCHES: list[tuple[dict[str, Any], str]] = [
    ({"rules__cuts": "always"}, "rules.cuts: there is no such key; did you mean cut?"),
    ({"rules__cut": "alway"}, "rules.cut: there is no policy 'alway'; did you mean always?"),
    (
        {"rules__last_cutter": "player"},
        "rules.last_cutter: there is no last cutter 'player'; known are dealer, supervisor",
    ),
    (
        {"rules__discretionary": "same"},
        "rules.discretionary: there is no policy 'same'; did you mean same-batch?",
    ),
    ({"rules__deck_age_h": 0}, "rules.deck_age_h: 0 hours: no batch could be used"),
    ({"rules__least_cycle_s": -1}, "rules.least_cycle_s: -1 seconds: 0 judges no cycle"),
    ({"rules__day_starts": "6:00"}, "rules.day_starts: '6:00' is no time of day such as \"06:00\""),
    ({"rules__day_starts": "24:00"}, "rules.day_starts: '24:00' is no time of day such as \"06:00\""),
    (
        {"rules__day_starts": 6},
        "rules.day_starts: must be a text in quotes, not 6",
    ),
    (
        {"rules__first_card": "play-one-round"},
        "rules.first_card: there is no such key here; did you mean table.first_card?",
    ),
    (
        {"table__last_cutter": "dealer"},
        "table.last_cutter: there is no such key here; did you mean rules.last_cutter?",
    ),
    (
        {"devices__shuffler__sides": 2},
        "devices.shuffler.sides: only a shoe has sides: managed-shuffler is a shuffler",
    ),
    (
        {"devices__shoe__sides": 3},
        "devices.shoe.sides: a shoe has one side or two, not 3 [58 Pa. Code 633a.3(c)]",
    ),
    (
        {"devices__shoe__discloses": False},
        "devices.shoe.discloses: only a hole-card reader discloses: managed-shoe is a shoe",
    ),
    (
        {"devices__eye": READER, "devices__other": {**READER, "port": "socket:10.0.0.7:4004"}},
        "devices: 2 devices are a reader: a table has one at most",
    ),
]


def test_a_wrong_switch_is_told() -> None:
    for changes, line in SWITCHES:
        assert lines(**changes) == [line]


@pytest.mark.rule("R-51")
def test_a_double_shoe_wants_equal_decks_and_different_backs() -> None:
    found = problems(**DOUBLE, cards__batch__1__back="red", cards__batch__1__decks=8)
    assert [problem.clause for problem in found] == ["13:69F-2.2(d)1", "13:69F-2.2(d)2"]


SIDE = "58 Pa. Code 633a.3(c)"
ONE = "13:69F-2.2(a)"
MISSING = "is missing: the colour of the cutting card"
CUTTING_CARDS: list[tuple[dict[str, Any], list[tuple[str, str, str]]]] = [
    (
        {"devices__shoe__sides": 2},
        [
            ("cards.cutting_card", "a double shoe has one a side: each batch names its own instead", SIDE),
            ("cards.batch[1].cutting_card", MISSING, SIDE),
            ("cards.batch[2].cutting_card", MISSING, SIDE),
        ],
    ),
    (
        {"devices__shoe__sides": 2, "cards__cutting_card": None, "cards__batch__1__cutting_card": "green"},
        [("cards.batch[1].cutting_card", MISSING, SIDE)],
    ),
    (
        {**DOUBLE, "cards__batch__0__cutting_card": "Blue", "cards__batch__1__cutting_card": "white"},
        [
            (
                "cards.batch[1].cutting_card",
                "the cutting card is Blue like the backs of a batch: take another colour",
                ONE,
            ),
            (
                "cards.batch[2].cutting_card",
                "the cutting card is white like the edges of the cards: take another",
                ONE,
            ),
        ],
    ),
    (
        {"cards__batch__1__cutting_card": "green"},
        [("cards.batch[2].cutting_card", "one cutting card is in use: cards.cutting_card names it", ONE)],
    ),
]


@pytest.mark.rule("R-02", "R-51")
def test_a_double_shoe_has_a_cutting_card_for_each_side_and_another_shoe_one() -> None:
    for changes, told in CUTTING_CARDS:
        assert problems(**changes) == [Problem(text, clause, key) for key, text, clause in told]
    assert [batch.cutting_card for batch in good(**DOUBLE).rules.batches] == ["yellow", "green"]
    assert [batch.cutting_card for batch in good().rules.batches] == ["yellow", "yellow"]


def test_the_list_of_approved_devices() -> None:
    found = good(devices__shoe__allowed=[APPROVED, {**APPROVED, "serial": "SH0002"}])
    assert [entry.serial for entry in found.rules.allowed["shoe"]] == ["SH0001", "SH0002"]
    assert found.rules.allowed["shoe"][0] == Identity(**APPROVED)
    assert "shuffler" not in found.rules.allowed
    (bad,) = lines(devices__shoe__allowed=[{**APPROVED, "hash": "AB"}])
    assert bad.startswith("devices.shoe.allowed.hash: 'AB' is no SHA-256: 64 hex digits")
    assert lines(devices__shoe__allowed=[{"vendor": "Cutcard", "product": "P", "serial": "S"}]) == [
        "devices.shoe.allowed.firmware: is missing: `cutcard identify --enrol` prints it"
    ]
    assert "did you mean serial?" in lines(devices__shoe__allowed=[{**APPROVED, "serail": "S"}])[0]
    assert (
        lines(devices__shoe={"driver": "bee-tek", "port": "socket:10.0.0.7:4001", "allowed": [APPROVED]})[0]
        == "devices.shoe.allowed: a bee-tek does not say who it is: there is nothing to compare with a list"
    )


def test_a_file_that_is_not_there_is_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        config.load(tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_bytes(changed(cards__decks_per_batch=7))
    with pytest.raises(config.ConfigInvalid, match=r"bad.toml: .*\[13:69F-2.2\(a\)4\]"):
        config.load(bad)


@pytest.mark.rule("R-16")
@pytest.mark.parametrize(("decks", "most"), [(1, 6), (2, 13), (4, 26), (8, 26)])
def test_about_a_quarter_is_never_less_than_half_of_it(decks, most):
    problem = f'"approximately one quarter" of {decks * 52} leaves 0 to {most}'
    for tolerance, wrong in ((most, False), (most + 1, True), (-1, True)):
        told = lines(cards__decks_per_batch=decks, table__cutting_card_tolerance=tolerance)
        assert any(problem in line for line in told) is wrong
