"""The shoe is locked from the players' second cards until the side wagers are settled (R-37).

What is wanted follows from the phase alone, and is asked for whenever the shoe is known to stand otherwise.
A lock that fails is an alarm: the rules of the taps, and the fault of a card out of turn, hold without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.table.changes import with_device
from controller.table.draft import Draft
from controller.table.phases import Phase
from controller.table.state import TableState
from firmware_bridge.link import Done, NotSent, Outcome, Refused

LOCK, UNLOCK, STATUS = "lock", "unlock", "status"
FAILED = {LOCK: "shoe_not_locked", UNLOCK: "shoe_stays_locked"}
"""The alarm of each command, which is not sent again until the shoe has said anew where it stands."""


def due(draft: Draft) -> str | None:
    """The command that brings the shoe to where it should be. What others locked, they unlock."""
    known = draft.state.device(draft.rules.shoe or "")
    if draft.state.phase is Phase.SIDE_WAGERS:
        return None if known.locked else LOCK
    return UNLOCK if known.held else None


def keep(draft: Draft, *, again: bool = False) -> None:
    """Ask for what is due; after a failure only `again`, when the shoe has just said where it stands."""
    rules, shoe = draft.rules, draft.rules.shoe
    if not rules.shoe_locks or shoe is None:
        return
    wanted = due(draft)
    for command, alarm in FAILED.items():
        if command != wanted:
            draft.gone(alarm, device=shoe)
    asked = any(pending.device == shoe for pending in draft.state.pending.values())
    if wanted is None or asked or not draft.state.device(shoe).up:
        return
    failed = any((f.code, f.device, f.gone) == (FAILED[wanted], shoe, None) for f in draft.state.faults)
    if again or not failed:
        draft.command(shoe, wanted)


def command_ended(draft: Draft, name: str, outcome: Outcome) -> None:
    """An end of which nobody can tell what the shoe did is asked after, once it answers (law 5)."""
    shoe = draft.rules.shoe
    if name == STATUS and isinstance(outcome, Done):
        keep(draft, again=True)
    if name not in FAILED or name != due(draft) or shoe is None or not draft.state.device(shoe).up:
        return
    if isinstance(outcome, Done | Refused | NotSent):
        draft.latch(FAILED[name], f"the shoe did not {name} when it was asked to", device=shoe)
    else:
        draft.latch(FAILED[name], f"nobody can tell whether the shoe did {name}", device=shoe)
        draft.command(shoe, STATUS)


# --- facts ---


def told(state: TableState, device: str, said: Mapping[str, Any]) -> TableState:
    """What a device says of its lock. It is `held` when it was locked for the side wagers, by whomever."""
    locked = said.get("locked")
    if not isinstance(locked, bool):
        return state
    asked = any((p.device, p.name) == (device, LOCK) for p in state.pending.values())
    held = asked or (locked and (state.device(device).held or state.phase is Phase.SIDE_WAGERS))
    return with_device(state, device, locked=locked, held=held)


def ended(state: TableState, data: Mapping[str, Any]) -> TableState:
    """A command ended whose answer tells of the lock; what was certainly not locked is not held."""
    device: str = data["device"]
    if data["outcome"] == "done":
        said = dict(data["answer"])
        if data["command"] in FAILED:
            said = {"locked": data["command"] == LOCK, **said}
        state = told(state, device, said)
        return with_device(state, device, held=True) if data["command"] == LOCK and said["locked"] else state
    if data["command"] == LOCK and data["outcome"] != "unknown":
        return with_device(state, device, held=state.device(device).locked is True)
    return state
