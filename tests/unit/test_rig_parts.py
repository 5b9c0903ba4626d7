"""Small parts of the rig: hands, strategy, benchmark rows, and what the comparison of two runs leaves out."""

from __future__ import annotations

import tomllib

import pytest

from controller.record import Entry
from controller.table.inputs import Fact
from controller.table.profiles import BatchRules, TableRules
from simulators.rig import demo
from simulators.rig.bench import as_text
from simulators.rig.bench_rows import Row, percentile
from simulators.rig.bench_wire import angel_eye_stream, packets
from simulators.rig.blackjack import dealer_draws, player_draws, total
from simulators.rig.felt import Felt
from simulators.rig.toml import to_toml
from simulators.rig.view import View
from tests.support.facts import comparable


@pytest.mark.parametrize(
    ("faces", "points"),
    [
        (["AS", "KH"], (21, True)),
        (["AS", "AH"], (12, True)),
        (["AS", "6H", "TD"], (17, False)),
        (["9S", "8H", "7D"], (24, False)),
        ([], (0, False)),
    ],
)
def test_counts_of_hands(faces: list[str], points: tuple[int, bool]) -> None:
    assert total(faces) == points


def test_who_draws() -> None:
    assert player_draws(["9S", "3H"], "TD") is True
    assert player_draws(["9S", "3H"], "5D") is False
    assert player_draws(["9S", "8H"], "TD") is False
    assert player_draws(["AS", "6H"], "5D") is True
    assert player_draws(["AS", "7H"], "TD") is False
    assert dealer_draws(["AS", "6H"]) is False
    assert dealer_draws(["TS", "6H"]) is True


def test_rows_judge_ratios_values_and_lower_bounds() -> None:
    slow = Row(2, "exchange", 60.0, "us", 10.0, 5.0)
    assert (slow.ratio, slow.ok, slow.goal_text) == (6.0, False, "<= 5x")
    rate = Row(1, "decoder", 480_000, "B/s", 480, 50, at_least=True)
    assert (rate.ratio, rate.ok, rate.goal_text) == (1000, True, ">= 50x")
    start = Row(8, "start", 1.0, "s", 0.02, 1.5, absolute=True)
    assert (start.ratio, start.ok, start.goal_text) == (50.0, True, "<= 1.5 s")
    memory = Row(8, "rss", 81.0, "MiB", None, 80)
    assert (memory.ratio, memory.ok) == (None, False)
    assert memory.as_json() == {
        "goal": 8, "name": "rss", "value": 81.0, "unit": "MiB", "floor": None, "ratio": None,
        "limit": "<= 80 MiB", "ok": False,
    }  # fmt: skip
    assert [line.split()[-1] for line in as_text([slow, rate]).splitlines()] == ["limit", "MISSED", "ok"]


def test_what_the_benchmarks_feed() -> None:
    assert percentile([3.0, 1.0, 2.0, 4.0], 0.5) == 3.0
    assert percentile([1.0], 0.99) == 1.0
    assert angel_eye_stream()[:1] == b"\x05"
    assert packets(200, 1000).count(b"\x06\x09") >= 3


def entry(seq: int, kind: str, source: str, /, **data: object) -> Entry:
    return Entry(seq, Fact(kind, source, data), seq, seq, bytes(16), bytes(32))


def test_two_runs_may_differ_in_numbers_but_not_in_what_they_point_at() -> None:
    one = [
        entry(1, "card_drawn", "shoe", n=4, seq=9, mono_us=5, card="8S"),
        entry(2, "cycle_started", "shuffler", token="aa"),
        entry(3, "card_drawn", "shoe", n=5, seq=10, mono_us=7, card="KH"),
        entry(4, "exposed", "operator", seqs=[3]),
    ]
    other = [
        entry(1, "card_drawn", "shoe", n=5, seq=1, mono_us=9, card="8S"),
        entry(2, "card_drawn", "shoe", n=6, seq=2, mono_us=9, card="KH"),
        entry(3, "cycle_started", "shuffler", token="bb"),
        entry(4, "exposed", "operator", seqs=[2]),
    ]
    wrong = [*other[:3], entry(4, "exposed", "operator", seqs=[1])]
    sources = ("operator", "shoe", "shuffler")
    assert comparable(one, sources) == comparable(other, sources)
    assert comparable(one, sources) != comparable(wrong, sources)


def test_a_fact_told_twice_counts_once() -> None:
    view = View()
    line = {"fact": 1, "kind": "card_drawn", "source": "shoe", "card": "8S"}
    view.take(line)
    view.take(line)
    assert (view.cards, view.seq) == (1, 1)


def test_the_demos_time_jumps_so_no_cycle_is_too_short() -> None:
    with demo.set_up(demo.TABLE + "[rules]\nleast_cycle_s = 60\ndeck_age_h = 24\n") as place:
        assert (place.rules.least_cycle_s, place.rules.deck_age_h) == (0, 24)


def test_a_card_that_was_drawn_too_early_and_is_nobodys_goes_to_the_rack() -> None:
    felt = Felt(TableRules("BJ-07", 7, 1, (BatchRules("A", "red"),)), "early")
    felt.load_shoe("A")
    card = felt.draw_early()
    assert felt.layout.places["aside"] == felt.early == [card]
    felt.give_up_early()
    assert list(felt.rack.contents()) == [card]
    assert felt.layout.places["aside"] == felt.early == []


def test_a_table_that_was_read_is_written_so_that_it_reads_the_same():
    tree = {
        "table": {"id": 'T "1"', "boxes": 7, "wagers": ["progressive"], "odd key": True, "rate": 0.5},
        "cards": {
            "batch": [{"id": "A", "more": {"deep": 1}}, {"id": "B"}],
            "none": [],
            "mixed": ["", {"a": [1]}],
        },
        "empty": {},
    }
    assert tomllib.loads(to_toml(tree)) == tree
