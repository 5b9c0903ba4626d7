"""What devices report, how commands end, what a start of the daemon means: always facts, never refused."""

from __future__ import annotations

from typing import Any

from controller.table import shoe_events, shuffler_events
from controller.table.draft import Draft
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


def plain(event: ev.DeviceEvent) -> dict[str, Any]:
    """The event as open fact data, without the texts that may name a card and without `raw`."""
    data: dict[str, Any] = {"n": event.n, "seq": event.seq}
    if event.mono is not None:
        data["mono_us"] = round(event.mono * 1e6)
    if event.token is not None:
        data["token"] = event.token
    if event.diag:
        data["diag"] = list(event.diag)
    if not event.aligned:
        data["aligned"] = False
    hidden = (*event.secret, "text")
    data.update({k: _value(v) for k, v in event.own_fields().items() if k not in hidden})
    return data


def secrets(event: ev.DeviceEvent) -> dict[str, Any]:
    """What `plain` leaves out: sealed as long as the card may not be seen (law 7)."""
    own = event.own_fields()
    hidden = {k: _value(own[k]) for k in (*event.secret, "text") if k in own}
    return {**hidden, "raw": event.raw}


def record(draft: Draft, event: ev.DeviceEvent, extra: dict[str, Any] | None = None) -> None:
    """Journal the event; whatever may name a card is sealed."""
    data = {**plain(event), **(extra or {})}
    if ev.carries_card(event):
        draft.add(event.kind, data, secrets(event))
    else:
        draft.add(event.kind, {**data, "raw": event.raw})


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _value(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return [_value(v) for v in value]
    return value


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
            data |= {"outcome": "done", "answer": _value(dict(answer))}
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
