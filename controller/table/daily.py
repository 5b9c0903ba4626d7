"""What each gaming day and each hour makes due: devices inspected, batches too old (R-42, R-45)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controller.table import args, opening, reader
from controller.table.args import Apply, Args, Judge, Judged
from controller.table.draft import Draft
from controller.table.inputs import OperatorEvent, Refusal, Role
from controller.table.phases import PREPARING, RESHUFFLING, Phase
from controller.table.profiles import TableRules
from controller.table.state import Batch, TableState
from firmware_bridge.frozen import replace

DAILY = "13:69E-1.10"
DAY_H = 24
FOUND_FAULTY = "a supervisor found it faulty"


def _inspect(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if "device" in tap.args or "result" in tap.args:
        try:
            return _inspect_device(rules, state, tap)
        except ValueError as error:
            return Refusal("bad_argument", f"inspect: {error}", DAILY)
    if state.phase not in PREPARING:
        why = f"a batch is not inspected now: the table is in phase {state.phase.value}"
        return Refusal("unexpected", why, opening.IN_TURN)
    return opening.step(rules, state, tap)


def _inspect_device(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if "device" not in tap.args:
        raise ValueError("result belongs to a device: a card that is no good is told by dead_card")
    if "batch" in tap.args:
        raise ValueError("a device or a batch is inspected, not both at once")
    device, result = args.device(rules, tap.args), tap.args.get("result", "ok")
    if result not in ("ok", "faulty"):
        raise ValueError(f"result={result} is neither ok nor faulty")
    if Role.SUPERVISOR not in tap.roles:
        return Refusal("not_allowed", "a supervisor inspects the devices", DAILY)
    return {"device": device, "result": str(result), "day": state.day}


def _inspected(state: TableState, data: Mapping[str, Any]) -> TableState:
    """A device found faulty stays locked out, whatever was found before."""
    if "batch" in data:
        return opening.inspected(state, data)
    found = {d: day for d, day in state.inspected.items() if d != data["device"]}
    if data["result"] == "ok":
        found[data["device"]] = data["day"]
    return replace(state, inspected=found)


def _after_inspect(draft: Draft, before: TableState) -> None:
    fact = draft.facts[0].data
    if fact.get("result") == "ok":
        draft.gone("inspection_due", device=fact["device"])
        reader.found_in_order(draft, fact["device"])
    elif "result" in fact:
        draft.latch("inspection_due", FOUND_FAULTY, device=fact["device"])


def devices_in_use(rules: TableRules, state: TableState) -> tuple[str, ...]:
    """Not a shuffler that is out of service, or a reader that the table deals without."""
    unused = {rules.shuffler} if state.shuffler.out else set()
    if rules.reader is not None and state.no_reader:
        unused.add(rules.reader)
    return tuple(device for device in rules.devices if device not in unused)


def uninspected(rules: TableRules, state: TableState) -> tuple[str, ...]:
    """The devices in use that nobody found in order on this gaming day, or that were found faulty last."""
    used = devices_in_use(rules, state)
    due = [f.device for f in state.faults if f.code == "inspection_due" and f.gone is None]
    daily = bool(state.day) and not rules.night  # 13:69E is for licensed casinos
    return tuple(d for d in used if d in due or (daily and state.inspected.get(d) != state.day))


def locked_out(rules: TableRules, state: TableState, event: str) -> Refusal | None:
    """A device that was not inspected today is not used; a round in play is finished (R-42)."""
    match event:
        case "open":
            needs: tuple[str | None, ...] = rules.devices
        case "bets_closed":
            needs = (rules.shoe, rules.reader or "")
        case "load_shoe" if state.phase not in RESHUFFLING:
            needs = (rules.shoe,)
        case "load_shuffler" | "start_shuffle":
            needs = (rules.shuffler,)
        case "take_from_shuffler" if state.phase is not Phase.CLOSING:
            needs = (rules.shuffler,)
        case "peek" if not state.inspected.get(rules.reader or ""):
            needs = (rules.reader or "",)
        case _:
            return None
    missing = [device for device in uninspected(rules, state) if device in needs]
    if not missing:
        return None
    why = f"the {' and the '.join(missing)} must be inspected by a supervisor"
    why += f" on {state.day}" if state.day else ""
    why += "".join(f"; the {device} {found}" for device in missing if (found := _failed(state, device)))
    return Refusal("inspection_due", why, DAILY, tuple(f"inspect device={d}" for d in missing))


def _failed(state: TableState, device: str) -> str | None:
    """What a device is to be inspected for, beside the new day: it was found faulty, or failed since."""
    for fault in state.faults:
        if fault.device == device and fault.code == "reader_failed":
            return f"failed: {fault.cause}"
        if fault.device == device and fault.code == "inspection_due" and fault.cause == FOUND_FAULTY:
            return "was found faulty"
    return None


# --- time (R-42, R-45) ---


def _hour(state: TableState, data: Mapping[str, Any]) -> TableState:
    """A clock that goes back takes the time of receipt with it: no batch gets younger.

    One that comes forward again at a stroke gives it back: no batch gets older than the time that passed.
    """
    step = data["hour"] - state.hour if state.day else 0
    set_back = state.set_back - min(0, step)
    shift, batches = min(0, step), {}
    if step > 1 and step >= set_back:
        shift, set_back = set_back, 0
    for batch in state.batches.values():
        received = data["hour"] if batch.cards else None
        if batch.received is not None:
            received = batch.received + shift
        batches[batch.id] = replace(batch, received=received)
    now = {"hour": data["hour"], "day": data["day"], "local": data.get("local", "")}
    return replace(state, **now, batches=batches, set_back=set_back)


def age(state: TableState, batch: Batch) -> int:
    """Full hours that a batch has been at the table; 0 while no hour is known."""
    return 0 if batch.received is None else state.hour - batch.received


def after_hour(draft: Draft) -> None:
    """What a new hour makes due: inspections, and batches that have been here too long."""
    rules = draft.rules
    due_now = uninspected(rules, draft.state) if draft.state.phase is not Phase.CLOSED else ()
    for device in due_now:
        found = _failed(draft.state, device)
        cause = f"it {found}" if found else f"not inspected on {draft.state.day}"
        draft.latch("inspection_due", cause, device=device)
    for batch in list(draft.state.batches.values()):
        hours = age(draft.state, batch)
        if not batch.cards:
            draft.gone("deck_over_a_day", batch=batch.id)
            continue
        if hours > DAY_H:
            draft.latch(
                "deck_over_a_day", f"batch {batch.id} has been here for {hours} hours", batch=batch.id
            )
        if _too_old(rules, draft.state, batch):
            opening.give_up(draft, draft.state, batch.id, "it is too old")
            cause = f"{hours} of at most {rules.deck_age_h} hours"
            draft.latch("deck_too_old", cause, batch=batch.id)


def _too_old(rules: TableRules, state: TableState, batch: Batch) -> bool:
    """Hours are counted from the full hour before the receipt: no batch passes the limit by a minute.

    Cards that are shuffled by hand for a round in play finish it (R-35).
    """
    limit, in_play = rules.deck_age_h, state.phase in RESHUFFLING and state.shoe.batch == batch.id
    return limit is not None and age(state, batch) >= limit and not batch.unfit and not in_play


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {"inspect": (_inspect, ("batch", "device", "result"))}
APPLY: dict[str, Apply] = {"inspect": _inspected, "hour": _hour}
FOLLOW: dict[str, Callable[[Draft, TableState], None]] = {"inspect": _after_inspect}


def examples(rules: TableRules, state: TableState) -> list[tuple[str, Args]]:
    """What is to be inspected now."""
    devices_due: list[tuple[str, Args]] = [(f"device={d}", {"device": d}) for d in uninspected(rules, state)]
    return [*devices_due, *opening.examples(rules, state, "inspect")]
