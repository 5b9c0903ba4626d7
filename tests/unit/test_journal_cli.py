"""`cutcard journal`: what is shown, what is masked, and the exit codes."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.cli.app import main
from controller.journal import Journal
from controller.table.inputs import Fact
from firmware_bridge.clock import VirtualClock

FACTS = (
    Fact("card_drawn", "shoe", {"n": 1, "boot": 4, "position": "box 1"}, {"card": "8S", "raw": b"\x02"}),
    Fact("card_drawn", "shoe", {"n": 2, "position": "dealer"}, {"card": "TH", "raw": b"\x03"}),
    Fact("chatter", "shoe", {"text": "\x1b[31mred\n"}),
    Fact("exposed", "shoe", {"seqs": [2]}),
)

Answer = tuple[int, str, str]
Cutcard = Callable[..., Answer]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    journal = Journal.open(folder / "j.db", folder / "k", clock=VirtualClock(0.5), boot_id=bytes(16))
    journal.append(FACTS)
    journal.close()
    return folder


@pytest.fixture
def cutcard(capsys: pytest.CaptureFixture[str]) -> Cutcard:
    def call(*arguments: object) -> Answer:
        code = 0
        try:
            main([str(argument) for argument in ("journal", *arguments)])
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_verify_says_whole_and_where_it_ends(made: Path, cutcard: Cutcard) -> None:
    code, out, _ = cutcard("verify", made / "j.db")
    assert code == 0
    assert out.startswith("whole: 5 facts, the last is fact 5 of 2026-01-01T00:00:00.500Z\n")
    assert "no -wal file" in out
    assert "not checked" in out


def test_verify_json(made: Path, cutcard: Cutcard) -> None:
    code, out, _ = cutcard("verify", made / "j.db", "--key", made / "k", "--json")
    found = json.loads(out)
    assert len(found.pop("hash")) == 64
    assert (code, found) == (
        0,
        {
            "path": str(made / "j.db"),
            "verified": True,
            "entries": 5,
            "last": 5,
            "at": "2026-01-01T00:00:00.500Z",
            "seals": True,
            "wal": False,
            "bad_fact": None,
            "why": None,
        },
    )


def test_verify_names_the_first_bad_fact(made: Path, tmp_path: Path, cutcard: Cutcard) -> None:
    content = (made / "j.db").read_bytes()
    assert content.count(b"chatter") == 1
    (tmp_path / "bad.db").write_bytes(content.replace(b"chatter", b"chitter"))
    code, out, _ = cutcard("verify", tmp_path / "bad.db")
    assert code == 1
    assert out.startswith("DAMAGED at fact 4: ")
    assert "The last good one is fact 3 of" in out
    code, out, _ = cutcard("verify", tmp_path / "bad.db", "--json")
    assert (code, json.loads(out)["bad_fact"], json.loads(out)["entries"]) == (1, 4, 3)


@pytest.mark.parametrize("command", ["verify", "show", "export", "tail"])
def test_usage_errors_are_one_sentence(made: Path, tmp_path: Path, cutcard: Cutcard, command: str) -> None:
    for arguments in (
        [tmp_path / "none.db"],
        [tmp_path],
        [made / "j.db", "--key", tmp_path / "none"],
        [made / "j.db", "--key", made / "j.db"],
    ):
        code, out, err = cutcard(command, *arguments)
        assert (code, out) == (2, "")
        assert err.startswith("cutcard: ")
        assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_damage_that_stops_the_reading_is_exit_1(tmp_path: Path, cutcard: Cutcard) -> None:
    (tmp_path / "j.db").write_bytes(b"x" * 5000)
    for command in ("verify", "show", "export", "tail"):
        assert cutcard(command, tmp_path / "j.db")[0] == 1


def test_show_masks_without_key(made: Path, cutcard: Cutcard) -> None:
    code, out, _ = cutcard("show", made / "j.db", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [row["fact"] for row in rows] == [1, 2, 3, 4, 5]
    assert rows[1] == {
        "fact": 2,
        "kind": "card_drawn",
        "source": "shoe",
        "at": "2026-01-01T00:00:00.500Z",
        "mono_ns": 500_000_000,
        "boot_id": "00" * 16,
        "n": 1,
        "boot": 4,
        "position": "box 1",
        "card": None,
        "raw": None,
    }


def test_show_with_key_shows_exposed_cards_alone(made: Path, cutcard: Cutcard) -> None:
    _, out, _ = cutcard("show", made / "j.db", "--json", "--key", made / "k")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (rows[1]["card"], rows[1]["raw"]) == ("8S", "02")
    assert (rows[2]["card"], rows[2]["raw"]) == (None, None)


def test_text_is_aligned_and_disarmed(made: Path, cutcard: Cutcard) -> None:
    _, out, _ = cutcard("show", made / "j.db", "--key", made / "k", "--since", 1)
    lines = out.splitlines()
    assert len(lines) == 4
    assert "\x1b" not in out
    assert 'text="\\u001b[31mred\\n"' in lines[2]
    assert lines[0].split()[:4] == ["2", "2026-01-01T00:00:00.500Z", "shoe", "card_drawn"]
    assert lines[0].index("n=1") == lines[2].index("text=")
    assert "card=8S" in lines[0]
    assert "card=null" in lines[1]


def test_tail_shows_the_last_ones(made: Path, cutcard: Cutcard) -> None:
    _, out, _ = cutcard("tail", made / "j.db", "-n", 2, "--json")
    assert [json.loads(line)["fact"] for line in out.splitlines()] == [4, 5]
    assert cutcard("tail", made / "j.db", "-n", 0)[1] == ""


def test_export_csv_and_jsonl(made: Path, tmp_path: Path, cutcard: Cutcard) -> None:
    code, out, _ = cutcard("export", made / "j.db", "--format", "csv")
    table = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert list(table[0]) == ["fact", "kind", "source", "at", "mono_ns", "boot_id", "data"]
    assert json.loads(table[3]["data"]) == {"text": "\x1b[31mred\n"}
    code, out, _ = cutcard("export", made / "j.db", "-o", tmp_path / "out.jsonl")
    assert (code, out) == (0, "")
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["fact"] for line in lines] == [1, 2, 3, 4, 5]
    assert cutcard("export", made / "j.db", "-o", tmp_path / "no" / "x")[0] == 2
    assert cutcard("export", made / "j.db", "--format", "xml")[0] == 2


def test_export_never_writes_over_the_journal(made: Path, tmp_path: Path, cutcard: Cutcard) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    before = (tmp_path / "j.db").read_bytes()
    for end in ("", "-wal", "-lock"):
        code, _, err = cutcard("export", tmp_path / "j.db", "-o", tmp_path / f"j.db{end}")
        assert code == 2
        assert "belongs to the journal" in err
    assert (tmp_path / "j.db").read_bytes() == before
