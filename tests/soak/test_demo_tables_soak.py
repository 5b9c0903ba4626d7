"""Ten shoes of each mode, profile and game: the main job on every example table, over real ptys."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulators.rig import demo
from tests.support.demo import journal_facts

TABLES = sorted((Path(__file__).parents[2] / "deploy" / "tables").glob("*.toml"))


@pytest.mark.soak
@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_ten_shoes_of_every_example_table(table: Path) -> None:
    with demo.set_up(table.read_text()) as place:
        summary = demo.play(place, table.stem, 10)
        raised = [fact for fact in journal_facts(place).values() if fact["kind"] == "fault_latched"]
    assert demo.is_good(summary), summary
    assert summary["shoes"] == 10
    assert raised == []
