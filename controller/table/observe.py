"""What devices report, how commands end, what a start of the daemon means: always facts, never refused."""

from __future__ import annotations

from typing import Any

from controller.table import shoe_events, shuffler_events
from controller.table.draft import Draft
from controller.table.event_facts import plain_value, record
from controller.table.state import Cycle
from devices import events as ev
from firmware_bridge.link import Done, NotSent, Outcome, Refused, Unknown


def observed(draft: Draft, event: ev.DeviceEvent) -> None:
    """Turn one device event into its fact and what follows from it."""
    rules = draft.rules
    if event.device == rules.shuffler and shuffler_events.handle(draft, event):
        return
    if event.device == rules.shoe and shoe_events.handle(draft, event):
        return
    match event:
        case ev.LinkUp():
            _link_up(draft, event)
        case _:
            record(draft, event)


def _link_up(draft: Draft, event: ev.LinkUp) -> None:
    known = draft.state.device(event.device).serial
    serial = event.identity.get("serial")
    is_known = known is None or serial == known
    was_boot = draft.state.device(event.device).boot
    extra: dict[str, Any] = {"known": is_known}
    if event.device == draft.rules.shuffler:
        extra |= shuffler_events.read_back(draft.state, event)
    if event.device == draft.rules.shoe:
        extra |= shoe_events.read_back(draft.state, event, was_boot)
    record(draft, event, extra)
    if not is_known:
        draft.latch(
            "wrong_device", f"{event.device} answers as {serial}, expected {known}", device=event.device
        )
    if event.device == draft.rules.shuffler:
        shuffler_events.reconcile(draft, event, was_boot)
    if event.device == draft.rules.shoe:
        shoe_events.reconcile(draft, event, was_boot)


def ended(draft: Draft, device: str, call_id: str, outcome: Outcome) -> None:
    """The one end of a command; what it means depends on what was asked and how far the shuffle is."""
    pending = draft.state.pending.get(call_id)
    name = pending.name if pending else "unasked"
    data: dict[str, Any] = {"call": call_id, "device": device, "command": name}
    match outcome:
        case Done(answer):
            data |= {"outcome": "done", "answer": plain_value(dict(answer))}
        case Refused(code, meaning):
            data |= {"outcome": "refused", "code": code, "name": meaning}
        case NotSent(reason):
            data |= {"outcome": "not_sent", "reason": reason}
        case Unknown(reason):
            data |= {"outcome": "unknown", "reason": reason}
    draft.add("command_ended", data)
    if pending is not None and device == draft.rules.shuffler:
        shuffler_events.command_ended(draft, name, outcome)


def booted(draft: Draft, boot_id: str) -> None:
    """The daemon started: what was sent without a journaled end is Unknown now (law 4, S9)."""
    pending = dict(draft.state.pending)
    draft.add("booted", {"boot_id": boot_id})
    for call_id, command in pending.items():
        draft.source = command.device
        ended(draft, command.device, call_id, Unknown("the daemon stopped before the end was known"))
    draft.source = draft.rules.shuffler
    if draft.state.shuffler.stage is Cycle.CHECKING:
        draft.add("start_failed", {"why": "the daemon stopped before the shuffler was asked to start"})
