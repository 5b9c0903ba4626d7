"""What the control socket's `get` answers: the core's view, with clock times and who may do what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from controller.access import who_may
from controller.record import Entry
from controller.render import utc
from controller.service import Service
from controller.table.inputs import OperatorEvent
from controller.table.profiles import TableRules
from controller.table.rules import accepts, expected, expected_taps
from controller.table.state import TableState
from controller.table.view import alarms, faults, snapshot
from controller.times import Times


def view(service: Service, what: str) -> Any:
    """One of `control_requests.VIEWS`, of the last committed state; any thread may ask."""
    rules, state = service.rules, service.state
    times = service.times
    if what == "expected":
        return list(expected(rules, state))
    if what == "faults":
        return [_timed(fault, times) for fault in faults(rules, state)]
    if what == "alarms":
        return [_timed(alarm, times) for alarm in alarms(rules, state)]
    taps = expected_taps(rules, state)
    status = snapshot(rules, state, taps)
    return {
        **status,
        "allowed_to": allowed_to(rules, state, taps),
        "shuffler": {**status["shuffler"], "since_at": _at(times, status["shuffler"]["since"])},
        "batches": {name: _batch_timed(batch, times) for name, batch in status["batches"].items()},
        "faults": [_timed(fault, times) for fault in status["faults"]],
        "alarms": [_timed(alarm, times) for alarm in status["alarms"]],
        "refused": _refused(service.last_refused),
        "boot": state.boot,
        "stopped": service.stopped,
    }


def allowed_to(
    rules: TableRules, state: TableState, taps: Mapping[str, OperatorEvent]
) -> dict[str, list[str]]:
    """Who may do what is expected: the same texts as in `expected`, each with its roles."""
    return {
        text: [
            role.value
            for role in who_may(tap.event)
            if accepts(rules, state, replace(tap, roles=frozenset({role})))
        ]
        for text, tap in taps.items()
    }


def _at(times: Times, seq: int | None) -> str | None:
    return utc(times[seq]) if seq is not None and seq in times else None


def _timed(fault: dict[str, Any], times: Times) -> dict[str, Any]:
    gone = {"gone_at": _at(times, fault["gone"])} if "gone" in fault else {}
    return {**fault, "since_at": _at(times, fault["since"]), **gone}


def _batch_timed(batch: dict[str, Any], times: Times) -> dict[str, Any]:
    return {**batch, "unfit_since_at": _at(times, batch["unfit_since"])}


def _refused(entry: Entry | None) -> dict[str, Any] | None:
    """The last refusal since the last shoe's end."""
    return None if entry is None else {"fact": entry.seq, "at": utc(entry.wall_ms), **entry.fact.data}
