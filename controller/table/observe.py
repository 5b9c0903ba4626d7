"""What devices report, how commands end, what a start of the daemon means: always facts, never refused."""

from __future__ import annotations

from typing import Any

from controller.table import closing, continuous, daily, locks, reader, shoe_events, shuffler_events, stacks
from controller.table.draft import Draft
from controller.table.event_facts import plain_value, record
from controller.table.state import Cycle
from devices import events as ev
from firmware_bridge.identity import Identity, Verdict, judge
from firmware_bridge.link import CLOSED_HERE, Done, NotSent, Outcome, Refused, Unknown

JUDGED = frozenset(
    cls.kind
    for cls in (
        ev.CardDrawn,
        ev.CutCard,
        ev.ShoeEmpty,
        ev.CycleStarted,
        ev.CycleCompleted,
        ev.BatchReleased,
        ev.CardsReturned,
        ev.HoleCardChecked,
        ev.LockChanged,
    )
)
"""Kinds that `evolve` applies: from any other source they are journaled under another name."""


def observed(draft: Draft, event: ev.DeviceEvent) -> None:
    """Turn one device event into its fact and what follows from it."""
    known = draft.state.device(event.device).known
    if isinstance(event, ev.LinkUp):
        _link_up(draft, event)
    elif isinstance(event, ev.LinkDown):
        record(draft, event)
        if event.reason != CLOSED_HERE:
            draft.latch("device_down", f"{event.device}: {event.reason}", device=event.device)
    elif not (known and _handled(draft, event)):
        record(draft, event, unjudged=event.kind in JUDGED)


def _handled(draft: Draft, event: ev.DeviceEvent) -> bool:
    rules = draft.rules
    shuffler, shoe = (rules.shuffler, shuffler_events.handle), (rules.shoe, shoe_events.handle)
    first = (shoe, shuffler) if continuous.dealing(rules, draft.state) else (shuffler, shoe)
    own = rules.shoe if rules.continuous else None
    judges = ((own, continuous.handle), *first, (rules.reader, reader.handle))
    return any(event.device == device and judge(draft, event) for device, judge in judges)


def _link_up(draft: Draft, event: ev.LinkUp) -> None:
    """A session begins: the device must be the known one before anything it says is compared (S9)."""
    before, rules = draft.state.device(event.device), draft.rules
    wanted = (before.serial, before.firmware, before.hash)
    found = tuple(event.identity.get(name) for name in ("serial", "firmware", "hash"))
    if before.hash is None:
        found = (*found[:2], None)  # journaled before hashes were
    verdict, why = judge(Identity.told(event.identity), rules.allowed.get(event.device))
    # Where there is a list, it decides on firmware; numbers and cards belong to one device in any case.
    listed = verdict is Verdict.ATTESTED_UNTRUSTED
    other = found[0] != wanted[0] if listed else found != wanted
    if not verdict.fits or (before.serial is not None and other):
        record(draft, event, {"known": False, "verdict": verdict.value})
        cause = why if not verdict.fits else f"it answers as {_who(*found)}, expected {_who(*wanted)}"
        draft.latch("wrong_device", f"{event.device}: {cause}", device=event.device)
        return
    extra: dict[str, Any] = {"known": True, "verdict": verdict.value}
    dealing = continuous.dealing(rules, draft.state)
    if event.device == rules.shuffler and not dealing:
        extra |= shuffler_events.read_back(draft.state, event)
    if event.device == rules.shoe:
        extra |= shoe_events.read_back(draft.state, event, before.boot)
    record(draft, event, extra)
    draft.gone("device_down", device=event.device)
    if event.device == rules.shuffler and not dealing:
        shuffler_events.reconcile(draft, event, before.boot)
    if event.device == rules.shoe and (dealing or not rules.continuous):
        shoe_events.reconcile(draft, event, before.boot)
    if dealing:
        continuous.reconcile(draft, event, before.boot)
    if event.device == rules.shoe:
        locks.keep(draft, again=True)


def _who(serial: str | None, firmware: str | None, image: str | None) -> str:
    return f"{serial} with firmware {firmware}" + (f" (image {image})" if image else "")


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
    dealing = continuous.dealing(draft.rules, draft.state)
    if pending is not None and device == draft.rules.shuffler and not dealing:
        shuffler_events.command_ended(draft, name, outcome)
    if pending is not None and device == draft.rules.shoe:
        stacks.command_ended(draft, name, outcome)
        locks.command_ended(draft, name, outcome)
    if pending is not None and device == draft.rules.reader:
        reader.command_ended(draft, name, outcome)
    if pending is not None:
        closing.command_ended(draft, device, name, outcome)


def booted(draft: Draft, boot_id: str) -> None:
    """The daemon started: what was sent without a journaled end is Unknown now (law 4, S9)."""
    pending = dict(draft.state.pending)
    draft.add("booted", {"boot_id": boot_id})
    for call_id, command in pending.items():
        draft.source = command.device
        ended(draft, command.device, call_id, Unknown("the daemon stopped before the end was known"))
    if draft.state.shuffler.stage is Cycle.CHECKING and draft.rules.shuffler is not None:
        draft.source = draft.rules.shuffler
        draft.add("start_failed", {"why": "the daemon stopped before the shuffler was asked to start"})


def hour(draft: Draft, hour_: int, day: str, local: str) -> None:
    """A new hour began: what is due by now."""
    if (hour_, day) != (draft.state.hour, draft.state.day):
        draft.add("hour", {"hour": hour_, "day": day, **({"local": local} if local else {})})
        daily.after_hour(draft)
