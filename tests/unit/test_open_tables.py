import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from controller import open_tables


def _marks(of: int) -> bool:
    return f"@cutcard/open-table/{of}/" in Path("/proc/net/unix").read_text()


def test_a_table_is_open_as_long_as_its_mark_is_held() -> None:
    with open_tables.mark_open("BJ-07"):
        assert _marks(os.getpid())
        assert open_tables.any_open()
    assert not _marks(os.getpid())


def test_no_mark_no_open_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = tmp_path / "unix"
    listing.write_text(
        "Num RefCount Protocol Flags Type St Inode Path\n0000: 00000002 0 10 0001 01 7 @other\n"
    )
    monkeypatch.setattr(open_tables, "_LISTING", listing)
    assert not open_tables.any_open()


def test_where_nobody_can_tell_cards_are_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_tables, "_LISTING", tmp_path / "nothing")
    assert open_tables.any_open()


def test_a_mark_dies_with_its_process_however_it_dies() -> None:
    code = (
        "import sys\nfrom controller.open_tables import mark_open\n"
        "with mark_open('BJ-07'):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        assert _marks(child.pid)
        child.send_signal(signal.SIGKILL)
        child.wait(10)
        assert not _marks(child.pid)
