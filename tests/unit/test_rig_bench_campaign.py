"""The benchmark's rows of whole shoes: what two workers did, and the rules alone. Nothing is timed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from simulators.rig import bench, bench_campaign
from simulators.rig.bench_campaign import Pace, floor, noted, rows, table, whole


def test_the_rules_alone_decide_as_many_facts_as_the_whole_stack(tmp_path: Path) -> None:
    rules = table(1)
    shoes = noted(rules, 1)
    played = whole(rules, 1, tmp_path)
    assert played.shoes == 1
    alone = shoes.decide()
    assert alone.events == pytest.approx(played.events, rel=0.1)
    assert floor(shoes, 2) == Pace(2, 2 * alone.events)


def test_a_table_that_does_not_play_well_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = replace(bench_campaign.play(bench_campaign.Plan("two", table(1)), tmp_path), played=0)
    monkeypatch.setattr(bench_campaign, "play", lambda *_: stopped)
    with pytest.raises(RuntimeError, match="did not play well"):
        whole(table(1), 1, tmp_path)


def test_the_best_round_of_both_workers_is_judged() -> None:
    rounds = [(1.0, [Pace(2, 800, 0.9)] * 2), (0.5, [Pace(2, 800, 0.4), Pace(2, 800, 0.5)])]
    floors = [(0.25, [Pace(4, 1600)] * 2), (0.5, [Pace(4, 1600)] * 2)]
    shoes, shoe, events = rows(floors, rounds)
    assert (shoes.goal, shoes.value, shoes.goal_text, shoes.ok) == (9, 8.0, ">= 6 /s", True)
    assert (shoe.value, shoe.goal_text, shoe.ok) == (0.2, "<= 0.333 s", True)
    assert (events.value, events.floor, events.ratio) == (3200.0, 12800.0, 0.25)
    assert (events.goal_text, events.ok) == (">= 0.05x", True)
    assert [row.ok for row in rows(floors, rounds[:1])] == [False, False, True]


def test_a_worker_answers_what_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_campaign, "WORKERS", 1)
    found = list(bench_campaign.rates(decks=1, shoes=1, rounds=1))
    assert [row.name for row in found] == [
        "six-deck shoes a second, 1 workers",
        "processor time of a six-deck shoe",
        "simulated events a second (floor: the rules alone)",
    ]
    assert all(row.value > 0 for row in found)


def test_the_rows_are_measured_by_bench() -> None:
    assert bench_campaign.GOALS[0] in bench.GOALS
