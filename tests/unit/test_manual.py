"""docs/operating.md tells what each tap takes."""

from __future__ import annotations

import re
from pathlib import Path

from controller.table.judges import JUDGES
from controller.table.phases import TAPS

MANUAL = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()


def rows() -> dict[str, str]:
    """The cell of each tap in the table of arguments."""
    table = MANUAL.partition("| tap | takes |\n|---|---|\n")[2].partition("\n\n")[0]
    cells = (line.replace("\\|", "/").strip("| ").split(" | ") for line in table.splitlines())
    return {name: takes for names, takes in cells for name in re.findall(r"`(\w+)`", names)}


def test_every_argument_of_every_tap_is_told() -> None:
    takes = rows()
    assert set(takes) <= set(TAPS)
    taken = {event: JUDGES[event][1] for event in TAPS if event in JUDGES and JUDGES[event][1]}
    told = {
        event: tuple(name for name in names if f"{name}=" in takes.get(event, ""))
        for event, names in taken.items()
    }
    assert told == taken
