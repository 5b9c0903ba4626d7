"""Refusals are journaled: what was tapped, why it was refused, the clause, who; nothing else changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from controller.record import Entry
from controller.service import REFUSED
from controller.table.inputs import Hour, Observed, Refusal, Role
from controller.views import view
from devices import events as ev
from tests.unit.test_service_commits import Bench, break_on, tap, up


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.service.start("00")
    made.give(up("shoe"), up("shuffler"))
    return made


def refusals(bench: Bench) -> list[dict[str, Any]]:
    entries: Iterable[Entry] = bench.recorder.journal.entries()
    return [dict(entry.fact.data) for entry in entries if entry.fact.kind == REFUSED]


def code(refusal: Refusal | None) -> str | None:
    return None if refusal is None else refusal.code


def test_a_refusal_is_journaled_and_nothing_else_changes(bench: Bench) -> None:
    before = bench.service.state
    (reply,) = bench.give(tap("burn"))
    assert code(reply.refusal) == "unexpected"
    assert reply.entries == ()
    assert bench.service.state == replace(before, seq=before.seq + 1)
    assert refusals(bench) == [
        {"event": "burn", "code": "unexpected", "clause": "58 Pa. Code 685a.7(c)", "who": "ann"}
    ]
    assert bench.recorder.happened == ["commit 1", "publish"]
    assert bench.restarted().service.state == bench.service.state


def test_what_was_said_is_not_journaled(bench: Bench) -> None:
    bench.give(tap("cut", position="8S"), tap("8S", card="8S"), tap("open", key="8S\n"))
    assert refusals(bench) == [
        {"event": "cut", "code": "unexpected", "clause": "13:69F-2.5(c)", "who": "ann"},
        {"event": None, "code": "unknown_event", "clause": None, "who": "ann"},
        {"event": "open", "code": "bad_argument", "clause": "13:69F-2.4(a)", "who": "ann"},
    ]
    assert "8S" not in repr([entry.fact for entry in bench.recorder.journal.entries()])
    assert bench.service.state.keys == {}


def test_missing_rights_and_used_keys_are_journaled_and_strangers_are_not(bench: Bench) -> None:
    bench.give(
        tap("open", roles=[Role.SURVEILLANCE]),
        tap("open", roles=[]),
        tap("open", key="k"),
        tap("burn", key="k"),
        tap("open", key="k", roles=[Role.SURVEILLANCE]),
    )
    assert [(r["event"], r["code"], r["clause"]) for r in refusals(bench)] == [
        ("open", "not_allowed", "13:69F-2.4(a)"),
        ("burn", "key_used", "58 Pa. Code 685a.7(c)"),
        ("open", "not_allowed", "13:69F-2.4(a)"),
    ]


def test_the_same_refusal_once_more_is_not_journaled_again(bench: Bench) -> None:
    """Anyone with a role could fill the disk."""
    bench.give(tap("burn"), tap("burn"))
    replies = [bench.give(tap("burn", seconds=number))[0] for number in range(3)]
    assert [code(reply.refusal) for reply in replies] == ["unexpected"] * 3
    bench.give(tap("cut"), tap("burn"))
    assert [r["event"] for r in refusals(bench)] == ["burn", "cut", "burn"]


def test_a_refusal_never_breaks_the_commit_of_others(bench: Bench) -> None:
    replies = bench.give(
        tap("burn"), tap("open", key="k"), tap("burn"), Observed(ev.Lid(device="shoe", n=2, open=True))
    )
    assert bench.recorder.happened == ["commit 4", "shoe ack 2", "publish"]
    kinds = [[entry.fact.kind for entry in reply.entries] for reply in replies]
    assert kinds == [[], ["open"], [], ["lid"]]
    assert [code(reply.refusal) for reply in replies] == ["unexpected", None, "unexpected", None]
    (again,) = bench.give(tap("open", key="k"))
    assert again.repeat
    assert again.entries == replies[1].entries, "the refusal after it is no part of its answer"


def test_a_tap_that_breaks_the_rules_is_a_fault_and_no_refusal(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_on(monkeypatch, "open")
    assert code(bench.give(tap("open"))[0].refusal) == "crashed"
    assert bench.faults == ["crashed"]
    assert refusals(bench) == []


def test_status_tells_the_last_refusal_also_after_a_restart(bench: Bench) -> None:
    assert view(bench.service, "status")["refused"] is None
    bench.give(tap("burn"), tap("cut", position=1), tap("open"))
    told = view(bench.service, "status")["refused"]
    assert (told["event"], told["who"], told["clause"]) == ("cut", "ann", "13:69F-2.5(c)")
    assert told["at"] == "2026-01-01T00:00:00.000Z"
    assert view(bench.restarted().service, "status")["refused"] == told


def test_since_when_is_told_by_the_journal(bench: Bench) -> None:
    bench.clock.advance(60)
    bench.give(Observed(ev.LinkDown(device="shoe", n=2, reason="unplugged")))
    bench.clock.advance(60)
    bench.give(tap("open"), Observed(ev.CardDrawn(device="shoe", n=3, card="8S", back="red")))

    def times(service: Any) -> list[tuple[str, str | None]]:
        return [(alarm["code"], alarm["since_at"]) for alarm in view(service, "alarms")]

    expected = [
        ("device_down", "2026-01-01T00:01:00.000Z"),
        ("stray_card", "2026-01-01T00:02:00.000Z"),
    ]
    assert times(bench.service) == expected
    assert [fault["since_at"] for fault in view(bench.service, "faults")] == [expected[1][1]]
    bench.clock.advance(60)
    again = bench.restarted()
    again.service.start("01")
    assert times(again.service) == expected
    again.give(up("shoe", 4))
    gone = view(again.service, "alarms")[0]
    assert (gone["state"], gone["gone_at"]) == ("gone", "2026-01-01T00:03:00.000Z")
    again.give(tap("acknowledge", alarm=gone["id"]))
    assert times(again.service) == expected[1:]
    assert set(again.service.times) <= {gone["since"], gone["gone"], again.service.state.faults[0].since}


def test_who_may_do_what_is_expected(bench: Bench) -> None:
    bench.give(Observed(ev.LinkDown(device="shoe", n=2, reason="unplugged")))
    status = view(bench.service, "status")
    (alarm,) = bench.service.state.faults
    assert status["allowed_to"] == {
        "open": ["dealer", "supervisor"],
        f"acknowledge alarm={alarm.id}": ["dealer", "supervisor", "technician"],
    }
    assert list(status["allowed_to"]) == status["expected"]


def test_a_right_that_the_rules_narrow_is_told_as_narrow(bench: Bench) -> None:
    """A dealer inspects cards, and a supervisor alone the devices (R-42)."""
    bench.give(Hour(500_000, "2027-01-15"))
    allowed = view(bench.service, "status")["allowed_to"]
    assert allowed == {"inspect device=shoe": ["supervisor"], "inspect device=shuffler": ["supervisor"]}
