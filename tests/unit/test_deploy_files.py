"""What `deploy/` ships fits the program."""

from __future__ import annotations

from pathlib import Path

from controller import access, config

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_example_table_is_valid_and_complete() -> None:
    loaded = config.load(DEPLOY / "table.toml")
    assert loaded.notes == ()
    assert loaded.socket == config.RUNTIME_DIR / "BJ-07.sock"


def test_the_groups_of_the_control_socket_are_made() -> None:
    lines = (DEPLOY / "sysusers.conf").read_text().splitlines()
    made = {line.split()[1] for line in lines if line[:1] in {"u", "g"}}
    assert made == {access.SOCKET_GROUP, *access.GROUPS}


def test_the_unit_is_notified_watched_and_may_write_where_the_example_does() -> None:
    unit = (DEPLOY / "cutcard@.service").read_text()
    values = dict(
        line.split("=", 1) for line in unit.splitlines() if "=" in line and not line.startswith("#")
    )
    assert values["Type"] == "notify"
    assert float(values["WatchdogSec"]) > 0
    assert int(values["StartLimitBurst"]) > 0
    loaded = config.load(DEPLOY / "table.toml")
    writable = values["ReadWritePaths"].split()
    for path in (loaded.socket, loaded.journal, loaded.key):
        assert str(path.parent) in writable
