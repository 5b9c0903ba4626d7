"""Directories for journals: they go with whoever made them, also when he was killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulators.hosts import locks
from simulators.rig.campaign import journals as places
from simulators.rig.campaign.journals import PREFIX, MachineFailed, journals, sweep

PLAYS = """
import sys
from pathlib import Path
from simulators.rig.campaign import journals as places
places.SHARED_MEMORY = Path(sys.argv[1])
with places.journals() as directory:
    (directory / "1").mkdir()
    print(directory, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(places, "SHARED_MEMORY", tmp_path)
    return tmp_path


def test_what_a_killed_campaign_left_goes_with_the_next_and_what_a_living_one_has_stays(memory: Path) -> None:
    command = [sys.executable, "-P", "-c", PLAYS, str(memory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as playing:
        assert playing.stdout is not None
        theirs = Path(playing.stdout.readline().strip())
        with journals() as ours:
            assert {theirs, ours} == set(memory.iterdir())
        playing.kill()
        playing.wait()
    assert list(memory.iterdir()) == [theirs]
    assert (theirs / "1").is_dir()
    with journals() as ours:
        assert list(memory.iterdir()) == [ours]
    assert list(memory.iterdir()) == []


def test_only_our_own_directories_are_swept(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (memory / "cutcard-other").mkdir()
    (memory / f"{PREFIX}link").symlink_to(memory / "cutcard-other")
    (memory / f"{PREFIX}file").touch()
    left = memory / f"{PREFIX}left"
    left.mkdir()
    with monkeypatch.context() as somebody:
        somebody.setattr(os, "geteuid", lambda: os.getuid() + 1)
        sweep(memory)
    assert left.is_dir()
    sweep(memory)
    assert not left.exists()
    assert {path.name for path in memory.iterdir()} == {"cutcard-other", f"{PREFIX}link", f"{PREFIX}file"}


def test_a_directory_that_is_swept_before_it_is_held_is_made_again(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, swept = locks.take, list[Path]()

    def too_late(path: Path, flags: int) -> int | None:
        if not swept:
            swept.append(path)
            path.rmdir()
        return take(path, flags)

    monkeypatch.setattr(locks, "take", too_late)
    with journals() as directory:
        assert list(memory.iterdir()) == [directory]
        assert directory != swept[0]


def test_without_locks_nothing_is_swept_and_tables_are_played(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> int | None:
        raise OSError(37, "No locks available")

    (memory / f"{PREFIX}left").mkdir()
    monkeypatch.setattr(locks, "take", none)
    with journals() as directory:
        assert directory.is_dir()
    assert [path.name for path in memory.iterdir()] == [f"{PREFIX}left"]


def test_no_place_at_all_is_no_failure_of_a_table(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(places.tempfile, "mkdtemp", full)
    with pytest.raises(MachineFailed, match="journals: No space left on device"), journals():
        pass
    assert list(memory.iterdir()) == []


def test_a_file_is_held_by_one_and_what_was_taken_away_by_none(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    held = locks.take(path, os.O_RDONLY | os.O_CREAT)
    assert held is not None
    assert locks.take(path) is None
    path.unlink()
    other = locks.take(path, os.O_RDONLY | os.O_CREAT)
    assert other is not None
    for descriptor in (held, other):
        os.close(descriptor)
