"""Alarms and who acknowledges them (ISA-18.2).

An alarm blocks nothing and goes with its cause; it is kept until somebody acknowledged it. A latched fault
may be acknowledged too, but only `clear` ends it (law 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.table.args import Apply, Judge, Judged
from controller.table.faults import FAULTS, Blocks
from controller.table.inputs import OperatorEvent, Refusal, Role
from controller.table.profiles import TableRules
from controller.table.state import Fault, TableState
from firmware_bridge.frozen import replace


def may_clear(fault: Fault) -> tuple[Role, ...]:
    """Never a dealer (law 6); what a supervisor has to decide, a supervisor alone."""
    if is_alarm(fault):
        return ()
    return (Role.SUPERVISOR,) if FAULTS[fault.code].decided else (Role.SUPERVISOR, Role.TECHNICIAN)


def is_alarm(fault: Fault) -> bool:
    """Whether it goes with its cause, rather than being cleared."""
    return fault.blocks is Blocks.NOTHING


def stage(fault: Fault) -> str:
    """`raised`, `acknowledged`, or `gone`: its cause went before anybody acknowledged it."""
    if fault.gone is not None:
        return "gone"
    return "acknowledged" if fault.acknowledged else "raised"


def _judge_acknowledge(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if "alarm" not in tap.args:
        raise ValueError("alarm=ID is missing")
    alarm_id = tap.args["alarm"]
    alarm = next((f for f in state.faults if f.id == alarm_id), None)
    if alarm is None:
        known = ", ".join(f.id for f in state.faults) or "none"
        return Refusal("no_such_alarm", f"there is no alarm {alarm_id}; there are: {known}")
    if alarm.acknowledged:
        return Refusal("acknowledged_already", f"{alarm.acknowledged} acknowledged {alarm.id} before")
    return {"alarm": alarm.id, "code": alarm.code}


def _changed(state: TableState, fault_id: str, **changes: Any) -> TableState:
    """The alarm with these changes; one that is both gone and acknowledged is over."""
    faults = (replace(f, **changes) if f.id == fault_id else f for f in state.faults)
    return replace(state, faults=tuple(f for f in faults if f.gone is None or not f.acknowledged))


def _acknowledge(state: TableState, data: Mapping[str, Any]) -> TableState:
    return _changed(state, data["alarm"], acknowledged=data["who"] or "somebody")


def _alarm_gone(state: TableState, data: Mapping[str, Any]) -> TableState:
    return _changed(state, data["fault"], gone=state.seq)


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {"acknowledge": (_judge_acknowledge, ("alarm",))}
APPLY: dict[str, Apply] = {"acknowledge": _acknowledge, "alarm_gone": _alarm_gone}
