"""What a replay leaves where it is told to, and what it plays from a script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controller import config
from controller.journal import verify
from simulators.rig.campaign import scripted
from simulators.rig.campaign.judge import Judge
from simulators.rig.campaign.run import Campaign
from tests.support.campaign_command import Cutcard, caller


@pytest.fixture
def campaign(capsys: pytest.CaptureFixture[str]) -> Cutcard:
    return caller(capsys)


# --- kept ---


def test_a_replay_leaves_its_journal_key_table_and_log(campaign: Cutcard, tmp_path: Path) -> None:
    keep = tmp_path / "a" / "b"
    done = campaign("--replay", "11:4", "--shoes", "4", "--keep", str(keep))
    place = keep / "shoe-4"
    assert done.code == 0
    assert done.out.endswith(
        f"to look at it:\n  cutcard journal show {place}/journal.db --key {place}/seal.key\n"
    )
    assert {path.name for path in place.iterdir()} == {"daemon.log", "journal.db", "seal.key", "table.toml"}
    verdict = verify(place / "journal.db", place / "seal.key")
    told = json.loads(campaign("--replay", "11:4", "--shoes", "4", "--json").out)
    assert (verdict.ok, verdict.entries) == (True, told["events"])
    assert config.examine((place / "table.toml").read_bytes())[1] == []
    lines = [json.loads(line) for line in (place / "daemon.log").read_text().splitlines()]
    times = [line["at"] for line in lines]
    assert times == sorted(times)
    assert [line["fact"] for line in lines if line.get("kind") == "load_shoe"] != []


def test_of_a_table_that_fails_everything_is_kept(
    campaign: Cutcard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_judge: Judge) -> None:
        raise ZeroDivisionError("as if")

    monkeypatch.setattr(Judge, "look", fails)
    done = campaign("--replay", "11:4", "--shoes", "4", "--keep", str(tmp_path / "kept"))
    assert done.code == 1
    assert verify(tmp_path / "kept/shoe-4/journal.db", tmp_path / "kept/shoe-4/seal.key").ok


def test_a_shoe_alone_leaves_nothing(campaign: Cutcard, tmp_path: Path) -> None:
    alone = next(seed for seed in map(str, range(999)) if Campaign(seed, 1).plan(1, 1).rules is None)
    done = campaign("--replay", f"{alone}:1", "--shoes", "1", "--keep", str(tmp_path))
    assert done.out.endswith(
        f"{tmp_path} is empty: shoes were played alone, without a table and its journal\n"
    )


def test_a_place_that_holds_something_or_cannot_be_is_named(campaign: Cutcard, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for keep, says in ((tmp_path, "file is in it; name a new or an empty directory"), (file, "File exists")):
        done = campaign("--replay", "7:1", "--keep", str(keep))
        assert (done.code, done.out, done.err) == (2, "", f"cutcard: --keep {keep}: {says}\n")
    assert file.read_bytes() == b""


def test_a_place_without_room_says_nothing_of_the_table(
    campaign: Cutcard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    done = campaign("--replay", "11:4", "--shoes", "4", "--keep", str(tmp_path))
    assert (done.code, done.out) == (3, "")
    assert f"nothing can be kept in {tmp_path}/shoe-4: No space left on device\n" in done.err


# --- a script ---


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ("{fault: misred}", "step 1: there is no fault 'misred'; did you mean 'misread'?"),
        ("{fault: misread}", "step 1 (misread): say whose fault it is, device: "),
        ("{fault: misread, device: sho}", "this table has no 'sho'; did you mean 'shoe'?"),
        (
            "{fault: chunk, device: shuffler, command: strat}",
            "there is no command 'strat'; did you mean 'start'?",
        ),
        ("{fault: power_cut, value: soon}", "step 1 (power_cut): its value is seconds, not 'soon'"),
        ("{fault: power_cut, value: nan}", "step 1 (power_cut): its value is seconds, not 'nan'"),
        ("{fault: crash, value: 1}", "step 1 (crash): it takes no value"),
        ("{fault: crash, device: shoe}", "step 1 (crash): it befalls daemon, not shoe"),
    ],
)
def test_a_script_that_does_not_fit_the_table_is_one_line(
    campaign: Cutcard, tmp_path: Path, step: str, says: str
) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f"faults:\n  - {step}\n")
    assert Campaign("1", 4).plan(4, 4).table == "two-batch-shoe-1-reader"
    done = campaign("--replay", "1:4", "--script", str(file))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"cutcard: --script {file}: ")
    assert says in done.err
    assert done.err.count("\n") == 1


def test_every_planned_table_takes_its_own_plan_as_a_script() -> None:
    for shoe in range(1, 200, 3):
        made = Campaign("script", 300).plan(shoe, shoe + 2)
        assert scripted.with_script(made, scripted.text_of(made.steps)) == made
