"""The shuffler: proofs, voids and custody from what the machine reports (R-06, R-14, R-36b, R-76, S4, S9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.table import continuous, event_facts
from controller.table.cards import count_of, difference
from controller.table.draft import Draft
from controller.table.faults import Blocks
from controller.table.phases import Phase
from controller.table.state import Cycle, Place, TableState
from devices import events as ev
from firmware_bridge.link import Done, NotSent, Outcome, Refused

UNFINISHED = (Cycle.STARTING, Cycle.RUNNING)
READ_LATE_US = 500_000
"""How late an event of the shuffler may be read while the table is idle."""


def handle(draft: Draft, event: ev.DeviceEvent) -> bool:
    """Judge an event of the shuffler; False leaves it to the general handling."""
    match event:
        case ev.CycleStarted():
            _started(draft, event)
        case ev.CycleCompleted():
            _completed(draft, event)
        case ev.CycleAborted(cause=cause):
            event_facts.record(draft, event)
            _void(draft, f"the cycle was aborted: {cause}", UNFINISHED)
        case ev.Jam(place=place):
            event_facts.record(draft, event)
            _void(draft, f"cards jammed at {place}", (*UNFINISHED, Cycle.PROVED))
        case ev.FaultRaised(name=name):
            event_facts.record(draft, event)
            _void(draft, f"the shuffler reports a fault: {name}", UNFINISHED)
        case ev.Door(open=True):
            event_facts.record(draft, event)
            _void(draft, "the door was opened over the batch", (*UNFINISHED, Cycle.PROVED))
        case ev.GapPossible():
            event_facts.record(draft, event)
            _void(draft, "events of the shuffler were lost", (*UNFINISHED, Cycle.PROVED))
            shuffler, asked = draft.state.shuffler, [p.device for p in draft.state.pending.values()]
            if shuffler.batch is not None and shuffler.stage is Cycle.NONE and event.device not in asked:
                draft.command(event.device, "status")  # is the batch still inside?
        case ev.BatchReleased():
            _released(draft, event)
        case _:
            return False
    return True


def _void(draft: Draft, cause: str, stages: tuple[Cycle, ...]) -> None:
    """No partial credit: the batch in the shuffler is unshuffled again (R-36b)."""
    shuffler = draft.state.shuffler
    if shuffler.stage not in stages:
        return
    batch = shuffler.batch
    out_of_play = draft.state.unfit_inside
    draft.add("batch_voided", {"batch": batch, "cause": cause, **draft.moves("cycle_void")})
    if not out_of_play:
        draft.latch("shuffle_void", cause, batch=batch, device=draft.rules.shuffler)


def _started(draft: Draft, event: ev.CycleStarted) -> None:
    shuffler = draft.state.shuffler
    ours = (
        shuffler.stage is Cycle.STARTING
        and event.token == shuffler.token
        and event.cycle == (shuffler.counter or 0) + 1
    )
    moves = draft.moves("cycle_started") if ours else {}
    event_facts.record(draft, event, {"ours": ours, "batch": shuffler.batch, **moves})
    if not ours:
        _foreign(draft, f"cycle {event.cycle} started without this table's token")


def _foreign(draft: Draft, cause: str) -> None:
    batch = draft.state.shuffler.batch
    if draft.state.shuffler.stage is not Cycle.NONE:
        draft.add("batch_voided", {"batch": batch, "cause": cause, **draft.moves("cycle_void")})
    if draft.state.shuffler.out:
        return  # whoever mends it may try it
    draft.latch("foreign_cycle", cause, batch=batch, device=draft.rules.shuffler)


def _completed(draft: Draft, event: ev.CycleCompleted) -> None:
    shuffler = draft.state.shuffler
    event_facts.record(draft, event, {"batch": shuffler.batch})
    batch = shuffler.batch
    if shuffler.stage is Cycle.NONE and event.token is not None and event.token == shuffler.token:
        return  # voided before it completed: no partial credit
    if (
        batch is None
        or shuffler.stage is not Cycle.RUNNING
        or event.token != shuffler.token
        or event.cycle != shuffler.counter
    ):
        _foreign(draft, f"cycle {event.cycle} completed, but it is not the one this table started")
        return
    code, cause = _verdict(draft, batch, event)
    if code is None and draft.state.unfit_inside:
        draft.add("batch_stored", {"batch": batch})  # whole and in its place, but it goes into no shoe
        return
    if code is None:
        draft.add("batch_proved", {"batch": batch, "token": event.token, "cycle": event.cycle})
        continuous.ready(draft, batch)
        return
    draft.add("batch_voided", {"batch": batch, "cause": cause, **draft.moves("cycle_void")})
    draft.latch(code, cause, batch=batch)
    other = draft.rules.other(batch)
    if code == "wrong_batch" and other is not None and _to_be_dealt(draft.state, other):
        draft.latch("batches_exchanged", cause, batch=other)


def _to_be_dealt(state: TableState, batch: str) -> bool:
    """Whether the batch is believed in the shoe, or shuffled and on its way there."""
    return state.shoe.batch == batch or state.batches[batch].proof is not None


def _verdict(draft: Draft, batch: str, event: ev.CycleCompleted) -> tuple[str | None, str]:
    """Judge the report at completion: mode, count, backs, composition. None is a complete shuffle."""
    rules = draft.rules
    if event.mode != "shuffle":
        return "wrong_mode", f"cycle {event.cycle} ran in {event.mode} mode"
    if _too_short(draft, event):
        return "cycle_too_short", f"cycle {event.cycle} took less than {rules.least_cycle_s} s"
    if event.count != rules.batch_size:
        return "wrong_count", f"{count_of(event.count)} instead of {rules.batch_size}"
    if sum(event.backs.values()) != event.count:
        return "report_incomplete", f"back colours of {count_of(sum(event.backs.values()))} only"
    foreign = {back: n for back, n in event.backs.items() if back != rules.back(batch)}
    other = rules.other(batch)
    if other is not None and foreign == {rules.back(other): event.count}:
        return "wrong_batch", f"all cards are {rules.back(other)}: that is the other batch"
    if foreign:
        shown = ", ".join(f"{n} {back}" for back, n in sorted(foreign.items()))
        return "wrong_back_in_shuffler", f"cards of another back: {shown}"
    missing, extra = difference(event.composition, rules.decks, rules.deck)
    if missing or extra or event.unread:
        return (
            "wrong_composition",
            f"{count_of(missing)} missing, {extra} too many of a kind, {event.unread} not recognised",
        )
    return None, ""


def _too_short(draft: Draft, event: ev.CycleCompleted) -> bool:
    """Whether the cycle took less than a whole shuffle takes; only what one session saw is judged (R-75)."""
    started = draft.state.shuffler.started_us
    if not started or event.mono is None:
        return False
    return round(event.mono * 1e6) - started + READ_LATE_US < draft.rules.least_cycle_s * 1_000_000


def _released(draft: Draft, event: ev.BatchReleased) -> None:
    shuffler, rules = draft.state.shuffler, draft.rules
    batch = shuffler.batch
    if batch is None:
        event_facts.record(draft, event, {"batch": None, "moved": 0, "proved": False})
        told = (event.count or 0) + (event.inside or 0) == shuffler.surplus
        if event.count and not told and not (shuffler.out and not event.inside):
            cause = f"{count_of(event.count)} came out of a machine that held {shuffler.surplus or 'none'}"
            draft.latch("cards_inside", cause)
        return
    held = draft.state.batches[batch]
    inside = held.at(Place.SHUFFLER)
    count, left = event.count or 0, event.inside or 0
    if shuffler.surplus and left >= inside:
        _void(draft, "cards that do not belong to it were taken from beside it", (*UNFINISHED, Cycle.PROVED))
        event_facts.record(draft, event, {"batch": batch, "moved": 0, "proved": False})
        return
    moved = min(count, inside) if event.inside is None else max(0, inside - left)
    with_token = held.proof is not None and event.token == held.proof.token
    whole = left == 0 and count == inside == rules.batch_size
    due = bool(draft.moves("batch_taken")) and not rules.continuous
    proved = with_token and whole and due
    trigger = "batch_taken" if proved else ("lifted_out" if moved == inside else None)
    moves = draft.moves(trigger) if trigger else {}
    event_facts.record(draft, event, {"batch": batch, "moved": moved, "proved": proved, **moves})
    if _leaves(draft.state, batch):
        pass
    elif not with_token:
        draft.latch(
            "taken_without_proof",
            f"batch {batch} left the shuffler without a completed cycle of this table",
            batch=batch,
            device=rules.shuffler,
        )
    elif whole and not due:
        draft.latch(
            "taken_without_proof",
            f"batch {batch} left the shuffler before its turn: its shuffle no longer counts",
            batch=batch,
            device=rules.shuffler,
        )
    if left:
        draft.latch("cards_inside", f"{count_of(left)} stayed inside with batch {batch}", batch=batch)
    if count + left != inside + shuffler.surplus:
        draft.latch(
            "wrong_count", f"{count_of(count + left)} instead of {inside + shuffler.surplus}", batch=batch
        )


def _leaves(state: TableState, batch: str | None) -> bool:
    """Whether a batch may come out without a shuffle: it cannot reach the shoe from here."""
    unfit = batch is not None and state.batches[batch].unfit is not None
    return state.phase is Phase.CLOSING or state.shuffler.out or unfit


# --- commands: settings and status are read before every start (R-76) ---


def command_ended(draft: Draft, name: str, outcome: Outcome) -> None:
    """Go on with the start of a cycle, or reconcile after an unknown end."""
    stage = draft.state.shuffler.stage
    answer = outcome.answer if isinstance(outcome, Done) else None
    if name == "settings" and stage is Cycle.CHECKING:
        _check_settings(draft, answer)
    elif name == "status" and stage is Cycle.CHECKING:
        _check_status(draft, answer)
    elif name == "start" and stage is Cycle.STARTING:
        if isinstance(outcome, Refused | NotSent):
            _start_failed(draft, "the shuffler did not start")
            return
        if answer is None:
            draft.latch("start_unknown", "no answer to start", batch=draft.state.shuffler.batch)
        draft.ask_shuffler("status")  # it must be seen to have started (S4)
    elif name == "status" and stage is Cycle.STARTING and answer is not None:
        _reconcile_start(draft, answer)
    elif name == "release" and answer is None and not isinstance(outcome, NotSent):
        draft.ask_shuffler("status")
    elif name == "status" and answer is not None:
        _reconcile_release(draft, answer)
        _check_proof(draft, answer)
        inside = answer.get("inside")
        if stage is Cycle.NONE and isinstance(inside, int):
            _count_inside(draft, inside)  # asked after lost events


def _start_failed(draft: Draft, why: str, **found: int) -> None:
    draft.add("start_failed", {"why": why, "batch": draft.state.shuffler.batch, **found})


def _check_settings(draft: Draft, answer: Mapping[str, Any] | None) -> None:
    if answer is None:
        _start_failed(draft, "the shuffler's settings could not be read")
        return
    settings = answer.get("settings")
    settings = settings if isinstance(settings, Mapping) else {}
    wanted = {
        "decks": draft.rules.decks,
        "cards_per_deck": len(draft.rules.deck),
        "mode": "shuffle",
        "recognition": True,
    }
    wrong = [f"{k} is {settings.get(k)}, not {v}" for k, v in wanted.items() if settings.get(k) != v]
    if answer.get("crc_ok") is not True:
        wrong.append("the settings' check value is wrong")
    if wrong:
        _start_failed(draft, "; ".join(wrong))
        batch = draft.state.shuffler.batch
        draft.latch("settings_mismatch", "; ".join(wrong), batch=batch, device=draft.rules.shuffler)
        return
    draft.ask_shuffler("status")


def _check_status(draft: Draft, answer: Mapping[str, Any] | None) -> None:
    if answer is None or not isinstance(answer.get("cycle"), int):
        _start_failed(draft, "the shuffler's status could not be read")
        return
    inside, size = answer.get("inside"), draft.rules.batch_size
    if inside != size:
        surplus = {"surplus": inside - size} if isinstance(inside, int) and inside > size else {}
        _start_failed(draft, f"the shuffler holds {inside}, not {size} cards", **surplus)
        _tell_surplus(draft)
        return
    if any(fault.blocks is Blocks.NOW for fault in draft.state.faults):
        _start_failed(draft, "a latched fault blocks everything")
        return
    if _leaves(draft.state, draft.state.shuffler.batch):
        _start_failed(draft, "the shuffler is not needed any more")
        return
    counter, known = answer["cycle"], draft.state.shuffler.counter
    if known is not None and counter != known:
        cause = f"the cycle counter is {counter}, but this table knows of {known}"
        draft.latch("foreign_cycle", cause, batch=draft.state.shuffler.batch, device=draft.rules.shuffler)
    draft.add("shuffler_checked", {"counter": counter, "batch": draft.state.shuffler.batch})
    draft.ask_shuffler("start", {"token": draft.state.shuffler.token})


def _reconcile_start(draft: Draft, status: Mapping[str, Any]) -> None:
    """An unknown start is settled by the machine's own counter and token (law 5, S9)."""
    shuffler = draft.state.shuffler
    counter = shuffler.counter or 0
    if status.get("token") == shuffler.token or status.get("cycle") == counter + 1:
        return  # it did start: its numbered events say the rest
    if status.get("cycle") == counter:
        _start_failed(draft, "the shuffler did not start")
    else:
        _foreign(draft, f"the cycle counter is {status.get('cycle')}, not {counter}")


def _reconcile_release(draft: Draft, status: Mapping[str, Any]) -> None:
    """A release without an answer did not happen while every card is inside; else its event tells (law 5)."""
    batch, asked = draft.state.shuffler.batch, [p.name for p in draft.state.pending.values()]
    if not draft.state.shuffler.letting_out or batch is None or "release" in asked:
        return
    if status.get("inside") == draft.state.batches[batch].at(Place.SHUFFLER):
        draft.add("release_failed", {"batch": batch})


def _check_proof(draft: Draft, status: Mapping[str, Any]) -> None:
    """A machine that holds the batch whole, and does not know its token any more, gives no proof of it."""
    shuffler = draft.state.shuffler
    whole = status.get("inside") == draft.rules.batch_size
    if shuffler.stage is Cycle.PROVED and whole and status.get("token") != shuffler.token:
        _void(draft, "the shuffler does not know the shuffle's token any more", (Cycle.PROVED,))


# --- a session begins (S9) ---


def read_back(state: TableState, event: ev.LinkUp) -> dict[str, Any]:
    """What this table takes over: the counter of the first session ever, and cards it did not put in."""
    counter, inside, batch = event.status.get("cycle"), event.status.get("inside"), state.shuffler.batch
    found: dict[str, Any] = {"untimed": True} if state.shuffler.stage in UNFINISHED else {}
    if state.shuffler.counter is None and isinstance(counter, int):
        found["counter"] = counter
    if isinstance(inside, int):
        held = state.batches[batch].at(Place.SHUFFLER) if batch else 0
        found["surplus"] = max(0, inside - held)
    return found


def reconcile(draft: Draft, event: ev.LinkUp, was_boot: int | None) -> None:
    """Compare what the machine says with what the journal holds; unequal means void and latched.

    Without a restart of the machine its numbered events will tell all that the status runs ahead of, so only
    the counter is judged. After one, or in the first session, the status is all there is.
    """
    shuffler, status = draft.state.shuffler, event.status
    if was_boot is not None and event.boot == was_boot:
        if shuffler.stage is Cycle.STARTING:
            _reconcile_start(draft, status)
        elif status.get("cycle") != shuffler.counter:
            _foreign(draft, f"the cycle counter is {status.get('cycle')}, not {shuffler.counter}")
        _reconcile_release(draft, status)
        _tell_surplus(draft)
        if shuffler.out and status.get("inside") == 0:
            _count_inside(draft, 0)  # people looked for cards in it
        return
    _reconcile_release(draft, status)
    if shuffler.stage in UNFINISHED:
        _void(draft, "the shuffler started again in the middle of a cycle", UNFINISHED)
    same = status.get("cycle") == shuffler.counter and status.get("token") == shuffler.token
    whole = status.get("inside") == draft.rules.batch_size
    if shuffler.stage is Cycle.PROVED and not (same and whole and status.get("state") == "done"):
        _void(draft, "after its restart the shuffler no longer holds the batch as it was", (Cycle.PROVED,))
    inside = status.get("inside")
    if isinstance(inside, int):
        _count_inside(draft, inside)


def _tell_surplus(draft: Draft) -> None:
    """Cards that were put in unseen; not a whole batch that is about to be told (`load_shuffler`)."""
    shuffler, surplus = draft.state.shuffler, draft.state.shuffler.surplus
    about_to_be_told = surplus == draft.rules.batch_size and shuffler.batch is None
    if surplus and (not about_to_be_told or _leaves(draft.state, None)):
        cause = f"the shuffler holds {count_of(surplus)} that this table did not put in"
        draft.latch("cards_inside", cause, batch=shuffler.batch)


def _count_inside(draft: Draft, inside: int) -> None:
    """Cards that came or went while nobody saw: custody follows the machine, and the fault says so."""
    batch = draft.state.shuffler.batch
    held = draft.state.batches[batch].at(Place.SHUFFLER) if batch else 0
    if inside > held:
        if draft.state.shuffler.surplus != inside - held:
            draft.add("surplus_seen", {"surplus": inside - held})
        draft.latch(
            "cards_inside", f"the shuffler holds {count_of(inside)}, {held} are known of", batch=batch
        )
    elif inside < held:
        moves = draft.moves("lifted_out") if inside == 0 else {}
        draft.add(
            "batch_lifted",
            {"batch": batch, "moved": held - inside, "inside": inside, "proved": False, **moves},
        )
        if _leaves(draft.state, batch):
            if inside:
                draft.latch("cards_inside", f"{count_of(inside)} of batch {batch} stayed inside", batch=batch)
            return
        draft.latch(
            "taken_without_proof",
            f"{count_of(held - inside)} of batch {batch} left the shuffler unseen",
            batch=batch,
            device=draft.rules.shuffler,
        )
