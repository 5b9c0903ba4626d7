"""`status` for people reads like a floor supervisor's note: clock times, who may do what, no unseen card."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controller.cli import note
from controller.table.faults import FAULTS, STOPS, Blocks
from controller.table.inputs import Observed, Role
from controller.table.phases import Phase
from controller.table.state import Cycle, Ending, Place, Prep, Shuffled
from controller.times import explained
from controller.views import view
from devices import events as ev
from firmware_bridge.link import Done, Unknown
from tests.support.table import SETTINGS, Table, table_rules
from tests.unit.test_service_commits import Bench, tap, up

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def new_jersey(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "EST5EDT,M3.2.0,M11.1.0")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def shown(bench: Bench, now: datetime | None = None) -> list[str]:
    status = {**view(bench.service, "status"), "ports": {}}
    json.dumps(status)
    return list(note.status(status, now or bench.clock.wall(), bold=False))


def bench_with(table: Table) -> Bench:
    """A service whose table stands where this one does."""
    bench = Bench(rules=table.rules)
    bench.service.state = table.state
    return bench


def test_what_a_device_says_moves_no_terminal() -> None:
    t = Table()
    t.links_up()
    t.event(ev.LinkDown, reason="lost \x1b[2J")
    lines = list(note.status({**view(bench_with(t).service, "status"), "ports": {}}, START, bold=True))
    assert "\x1b[1mclosed\x1b[0m: the table is closed" in lines[1]
    assert "\x1b" not in "".join(lines[:1] + lines[2:])
    assert any("lost \\x1b[2J" in line for line in lines)


def test_every_phase_place_and_state_has_words() -> None:
    assert set(note.PHASES) == set(Phase)
    assert set(note.PLACES) == set(Place)
    assert set(note.CYCLES) == set(Cycle)
    assert set(STOPS) == set(Blocks)
    assert set(note.STEPS) == set(Prep)
    assert set(note.PROOFS) == set(Shuffled)
    assert set(note.ENDINGS) == set(Ending) - {Ending.SWAP}


def test_a_table_in_play() -> None:
    t = Table()
    t.open_to_shoe()
    t.play_round("1,2,5")
    lines = shown(bench_with(t))
    assert lines[:5] == [
        f"table       BJ-07, 1 round, fact {t.state.seq}",
        "phase       between_rounds: no round is in play",
        "shoe        number 1, batch A, 41 cards left",
        "batch A     red: 41 in the shoe, 11 in the discard rack",
        "batch B     blue: 52 in the shuffler; being shuffled",
    ]
    assert "next        " + "dealer_change (dealer or supervisor)" in lines
    assert "            bets_closed boxes=1,2,5 (dealer or supervisor)" in lines
    assert "            shuffle_now (supervisor)" in lines
    assert not [line for line in lines if line.startswith("waiting")], "nobody waits for the shuffler now"
    t.tap("bets_closed", boxes="1")
    assert "waiting     for the next card of the initial deal" in shown(bench_with(t))


def test_a_first_shuffle_that_is_done_is_not_called_running_nor_a_shoe_over_that_never_was() -> None:
    t = Table()
    t.boot()
    t.links_up()
    t.open()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.complete()
    lines = shown(bench_with(t))
    assert (
        lines[1]
        == "phase       first_shuffling: the first shuffle was started, its batch tells how far it is"
    )
    assert "batch A     red: 52 in the shuffler; shuffled, waits for its turn" in lines
    t.take()
    t.tap("load_shuffler", batch="B")
    t.start()
    t.tap("dead_card", batch="A")
    lines = shown(bench_with(t))
    assert lines[1] == "phase       rack_full: no batch is in the shoe, a shuffled one comes next"


def test_the_last_round_of_a_shoe_is_told() -> None:
    t = Table()
    t.open_to_shoe()
    t.deal("1,2")
    t.event(ev.CutCard)
    t.tap("cutting_card_at", box="2")
    assert shown(bench_with(t))[3] == (
        "shoe        number 1, batch A, 45 cards left, cutting card out at box 2; ends with this round"
    )


def test_a_round_in_play_says_its_number_its_boxes_and_its_cards() -> None:
    t = Table()
    t.open_to_shoe()
    t.tap("bets_closed", boxes="1,2,5")
    t.draw()
    lines = shown(bench_with(t))
    assert lines[0] == f"table       BJ-07, round 1 in play, fact {t.state.seq}"
    assert lines[2] == "round       boxes 1, 2 and 5, 1 card"
    for _ in range(7):
        t.draw()
    t.draw()
    t.tap("drawn_in_error", exposed=False, burned=True)
    assert shown(bench_with(t))[2] == "round       boxes 1, 2 and 5, 8 cards"
    t.tap("round_settled")
    t.deal("3")
    lines = shown(bench_with(t))
    assert lines[0].startswith("table       BJ-07, round 2 in play, ")
    assert lines[2] == "round       box 3, 4 cards"


def test_a_dealers_second_card_that_is_owed_is_told() -> None:
    t = Table()
    t.open_to_shoe()
    t.deal("1,2")
    t.tap("dealer_skipped", card="second")
    assert shown(bench_with(t))[2] == (
        "round       boxes 1 and 2, 6 cards; the dealer's second card is owed or came late: "
        "cards stay hidden until the round is settled"
    )


@pytest.mark.parametrize(
    ("event", "words"), [("idle", "then the table goes idle"), ("close", "then the table closes")]
)
def test_what_follows_the_end_of_the_shoe_is_told(event: str, words: str) -> None:
    t = Table()
    t.open_to_shoe()
    assert shown(bench_with(t))[2] == "shoe        number 1, batch A, 51 cards left"
    t.tap(event)
    assert shown(bench_with(t))[2] == f"shoe        number 1, batch A, 51 cards left; it has ended; {words}"
    t.end_shoe()
    assert shown(bench_with(t))[2] == "shoe        empty, 1 so far"


def batch_row(t: Table, batch: str) -> str:
    (line,) = (line for line in shown(bench_with(t)) if line.startswith(f"batch {batch}"))
    return line


def test_each_step_of_the_preparation_is_told() -> None:
    t = Table()
    t.boot()
    t.links_up()
    t.tap("open")
    t.prepare("A")
    assert batch_row(t, "A") == "batch A     red: 52 in hand; washed, to be shuffled"
    said = dict.fromkeys(("maker", "model", "serial", "operator", "seal"), "x")
    t.tap("certificate", batch="B", at="2026-01-01", decks=1, cards=52, result="ok", seal_intact=True, **said)
    assert batch_row(t, "B") == "batch B     blue: 52 in hand; certified, shuffled before it came, not cut"
    t.tap("shuffle_demanded")
    assert batch_row(t, "B") == "batch B     blue: 52 in hand; certified, to be shuffled"


def test_the_cards_of_an_idle_table_lie_spread() -> None:
    t = Table()
    t.open_to_shoe()
    t.tap("idle")
    t.end_shoe()
    assert batch_row(t, "A") == "batch A     red: 52 in the discard rack"
    t.tap("spread")
    assert batch_row(t, "A") == "batch A     red: 52 in hand; lies spread"


def test_a_batch_to_be_counted_at_the_closing_is_not_to_be_shuffled() -> None:
    t = Table()
    t.boot()
    t.links_up()
    t.open()
    t.tap("close")
    assert batch_row(t, "A") == "batch A     red: 52 in hand"


def test_who_looked_into_a_device_first_is_told_until_another_person_has_looked() -> None:
    t = Table()
    t.boot()
    t.links_up()
    t.open()
    t.tap("close")
    t.event(ev.LinkDown, "shoe", reason="unplugged")
    t.tap("confirm_empty", who="ann", device="shoe")
    looked = "looked      into the shoe: ann saw it empty; one more person must look"
    assert looked in shown(bench_with(t))
    t.tap("confirm_empty", who="tom", device="shoe")
    assert not [line for line in shown(bench_with(t)) if line.startswith("looked")]


def test_a_closed_table_says_of_nothing_that_play_goes_on() -> None:
    t = Table()
    t.boot()
    t.links_up()
    t.event(ev.LinkDown, "shuffler", reason="unplugged")
    t.tap("inspect", frozenset({Role.SUPERVISOR}), device="shoe", result="faulty")
    lines = shown(bench_with(t))
    assert t.alarms == ["device_down", "inspection_due"]
    waits = "            stops nothing by itself; what needs the device waits: "
    assert f"{waits}check its cable and power" in lines
    assert f"{waits}a supervisor inspects it (`inspect device=NAME`)" in lines
    assert "play goes on" not in "\n".join([*lines, *STOPS.values()])


def test_an_alarm_of_no_device_lets_nothing_wait() -> None:
    t = Table()
    t.open_to_shoe()
    t.event(ev.Lid, open=True)
    assert t.alarms == ["shoe_opened"]
    assert [line for line in shown(bench_with(t)) if "stops nothing by itself" in line] == [
        f"            stops nothing by itself: {FAULTS['shoe_opened'].remedy}"
    ]
    assert set(note.UNUSABLE) <= set(FAULTS)


def test_what_the_table_does_without_is_told() -> None:
    t = Table(table_rules(reader="reader"))
    t.open_to_shoe()
    assert not [line for line in shown(bench_with(t)) if line.startswith("without")]
    t.state = replace(t.state, no_reader=True, shuffler=replace(t.state.shuffler, out=True))
    assert "without     the shuffler (out of service) and the hole-card reader" in shown(bench_with(t))


def test_what_is_wrong_since_when_and_what_to_do() -> None:
    bench = Bench()
    bench.service.start("00")
    bench.give(up("shoe"), up("shuffler"), tap("open"))
    bench.clock.advance(14 * 3600)
    bench.give(Observed(ev.LinkDown(device="shuffler", n=2, reason="unplugged")))
    bench.clock.advance(12 * 60)
    bench.give(Observed(ev.CardDrawn(device="shoe", n=2, card="8S", back="red")), tap("burn"))
    bench.clock.advance(180)
    down, stray = bench.service.state.faults
    lines = shown(bench)
    first = lines.index(f"alarm {down.id}    a device does not answer (shuffler), since 09:00 (15 min)")
    assert lines[first + 1 : first + 4] == [
        "            shuffler: unplugged (device_down)",
        "            stops nothing by itself; what needs the device waits: check its cable and power",
        "            not acknowledged",
    ]
    text = "\n".join(lines)
    assert f"fault {stray.id}    a card left the shoe although no batch was put into it" in text
    assert ", since 09:12 (3 min)\n" in text
    assert "nothing goes on until this is cleared: take every card out of the shoe" in text
    assert "its cause is gone" not in text
    bench.give(Observed(ev.ShoeEmpty(device="shoe", n=3)))
    lines = shown(bench)
    text = "\n".join(lines)
    assert f"its cause is gone: `cutcard faults clear {stray.id}` (supervisor or technician)" in text
    assert lines[-1] == "refused     last: burn by ann, unexpected [58 Pa. Code 685a.7(c)], at 09:12 (3 min)"
    bench.give(tap("acknowledge", alarm=stray.id), up("shuffler", 3))
    bench.clock.advance(86_400)
    text = "\n".join(shown(bench))
    assert "acknowledged by ann" in text
    assert ", gone since 01 Jan 09:15 (24 h 00 min)" in text
    assert f"nobody acknowledged it: `cutcard do acknowledge alarm={down.id}`" in text


def test_a_batch_out_of_play_says_since_when() -> None:
    t = Table()
    t.open_to_shoe()
    t.event(ev.CardDrawn, "shoe", card="8S", back="blue")
    bench = bench_with(t)
    since = t.state.batches["A"].unfit_since
    assert since is not None
    bench.service.times = {since: 0, t.state.faults[0].since: 0}
    lines = shown(bench, datetime(1970, 1, 1, 0, 5, tzinfo=UTC))
    (batch,) = (line for line in lines if line.startswith("batch A"))
    assert batch.endswith("OUT OF PLAY (wrong_back), since 19:00 (5 min)")
    stops = next(line for line in lines if line.startswith("            no new round"))
    assert stops.startswith(
        "            no new round begins with batch A until it is replaced: end the shoe if"
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "less than a minute"),
        (59, "less than a minute"),
        (60, "1 min"),
        (3599, "59 min"),
        (3660, "1 h 01 min"),
        (47 * 3600, "47 h 00 min"),
        (49 * 3600, "2 days"),
    ],
)
def test_how_long(seconds: int, words: str) -> None:
    assert note._since(START.isoformat(), START + timedelta(seconds=seconds)).endswith(f"({words})")


def test_unseen_cards_are_in_no_view_and_no_text() -> None:
    """Law 7: the same table with other unseen cards says the same, whatever is wrong with it."""

    def said(burn: str, hole: str) -> list[Any]:
        t = Table()
        t.open_to_shoe()
        t.deal("1,2")
        assert t.state.round is not None
        cards = [replace(c, card=c.card if c.seen else hole) for c in t.state.round.cards]
        drawn = {**t.state.shoe.drawn, burn: 1, hole: 1}
        t.state = replace(
            t.state,
            round=replace(t.state.round, cards=tuple(cards)),
            shoe=replace(t.state.shoe, drawn=drawn, unseen={burn: 1, hole: 1}),
        )
        t.event(ev.LinkDown, "shuffler", reason="unplugged")
        t.event(ev.Jam, "shuffler", place="shelf", attempt=1)
        bench = bench_with(t)
        views = [view(bench.service, what) for what in ("status", "alarms", "faults", "expected")]
        views[0]["shoe"].pop("drawn")
        return [*views, shown(bench)]

    assert said("8S", "TH") == said("2C", "3D")


def test_a_start_that_came_to_nothing_is_told_until_one_works_or_the_batch_is_out() -> None:
    t = Table()
    t.boot()
    t.links_up()
    t.open()
    t.tap("load_shuffler", batch="A")
    t.tap("start_shuffle")
    t.end(Done({"settings": {**SETTINGS, "decks": 1}, "crc_ok": True}))
    t.end(Done({"inside": 0, "cycle": t.cycle, "token": None}))
    since = t.state.shuffler.not_started_since
    assert since in explained(t.state)
    bench = bench_with(t)
    bench.service.times = {since: round(START.timestamp() * 1000)}
    line = "not started the shuffler holds 0, not 52 cards, since 19:00 (12 min)"
    assert line in shown(bench, START + timedelta(minutes=12))
    t.start()
    assert not any(line.startswith("not started") for line in shown(bench_with(t)))
    t.complete()
    t.take()
    t.tap("load_shuffler", batch="B")
    t.tap("start_shuffle")
    t.end(Unknown("no answer"))
    assert "not started the shuffler's settings could not be read" in shown(bench_with(t))
    t.event(ev.BatchReleased, "shuffler", count=52, inside=0, token=None)
    assert not any(line.startswith("not started") for line in shown(bench_with(t)))
