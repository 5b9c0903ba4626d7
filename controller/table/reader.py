"""The hole-card reader: when it is used, what it says, a misuse and a skipped look (R-25, R-36a, R-37).

A look is a fact, whoever asked for it: readers look by themselves as soon as a card lies in them. It is due
once a round, with the deal finished and its side wagers settled, when the up card is an ace or of value ten:
then no further card comes before it, and none after it if it told a natural.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controller.table import event_facts
from controller.table.args import Apply, Judge, Judged
from controller.table.draft import Draft
from controller.table.inputs import OperatorEvent, Refusal
from controller.table.phases import Phase
from controller.table.profiles import TableRules
from controller.table.round import DEALER, NO_HAND
from controller.table.state import Round, TableState
from devices import events as ev
from firmware_bridge.frozen import replace
from firmware_bridge.link import Done, NotSent, Outcome, Refused

LOOK = "13:69F-2.7(a)"
MISUSE = "13:69F-2.15(j)-(k)"
ACE_OR_TEN = "ATJQK"


def not_due(rules: TableRules, state: TableState) -> tuple[str, str] | None:
    """Why the reader may not be used in this round now, and the clause; nothing is said of an unseen card."""
    assert state.round is not None
    if state.no_reader:
        return "this round is dealt without the reader", MISUSE
    if state.phase is Phase.SIDE_WAGERS:
        return "the side wagers are not settled", rules.settle_clause
    if state.phase is not Phase.PLAYING or state.round.owed:
        return "the initial deal is not finished", LOOK
    if state.round.peeks:
        return "it was used in this round before", LOOK
    up = up_card(state.round)
    if up and up[0] not in ACE_OR_TEN:
        return "the up card is neither an ace nor of value ten", LOOK
    return None


def up_card(round_: Round) -> str | None:
    """The dealer's up card, if it lies there and everybody sees which one it is."""
    up = next((card for card in round_.cards if card.to == DEALER), None)
    return up.card if up is not None and up.seen else None


def owed(rules: TableRules, state: TableState) -> bool:
    """Whether the look goes first: R-25, for no further card comes before it. Not where the reader failed."""
    if rules.reader is None or state.round is None or not_due(rules, state) is not None:
        return False
    return bool(up_card(state.round)) and not _latched(state, "reader_failed")


def _latched(state: TableState, code: str) -> bool:
    """Whether it was latched in this round: none begins while it is."""
    return any(fault.code == code for fault in state.faults)


def first(rules: TableRules, state: TableState, before: str) -> Refusal | None:
    """Why something waits, while the look is owed."""
    if not owed(rules, state):
        return None
    why, silent = f"the hole card is checked with the reader before {before}", state.silent(rules.reader)
    if silent:
        why += "; it does not answer: a supervisor may have the table deal without it"
    return Refusal("reader_first", why, LOOK, ("no_reader",) if silent else ("peek",))


# --- what the reader reports ---


def handle(draft: Draft, event: ev.DeviceEvent) -> bool:
    """Judge an event of the reader; False leaves it to the general handling."""
    match event:
        case ev.HoleCardChecked():
            _looked(draft, event)
        case ev.FaultRaised():
            event_facts.record(draft, event)
            failed(draft, event.device, "it reports a fault")
        case _:
            return False
    return True


def _looked(draft: Draft, event: ev.HoleCardChecked) -> None:
    """What a look says that nobody may have had stays sealed (law 7). Without a round it is a trial."""
    in_round = draft.state.round is not None
    why = not_due(draft.rules, draft.state) if in_round else None
    known = {"in_round": in_round, "allowed": why is None}
    if why is None:
        event_facts.record(draft, event, known)
    else:
        data = {**event_facts.plain(event), **known}
        sealed = {**event_facts.secrets(event), "result": data.pop("result")}
        draft.add(event.kind, data, sealed)
        _misused(draft, event.device, *why)
    if event.result == "error":
        failed(draft, event.device, "it could not read the hole card")


def _misused(draft: Draft, device: str, why: str, clause: str) -> None:
    then = "it shows no value, so the round may stand"
    if draft.rules.reader_discloses:
        then = "it may have shown a value to a player, so the round is void (`void_round reason=reader`)"
    draft.latch("reader_misuse", f"{why} ({clause}); {then}", device=device)


def card_drawn(draft: Draft, before: TableState, to: str) -> None:
    """A card came out of the shoe: a further one neither before the look nor after a natural (R-25)."""
    rules, round_ = draft.rules, before.round
    if to in NO_HAND or round_ is None or before.phase is not Phase.PLAYING:
        return
    if owed(rules, before):
        why = f"a card came out before the hole card was checked ({LOOK})"
        draft.latch("reader_skipped", why, device=rules.reader)
    elif round_.natural and rules.dealer_hands == 1:
        draft.latch("card_out_of_turn", f"a card left the shoe after the reader told a natural ({LOOK})")


def failed(draft: Draft, device: str, why: str) -> None:
    """It is out of order until a supervisor inspects it, or says that the table deals without it."""
    draft.add("reader_out_of_order", {"device": device, "why": why})
    draft.latch("reader_failed", why, device=device)


def command_ended(draft: Draft, name: str, outcome: Outcome) -> None:
    """What a look said comes as an event; one that did not begin may be asked for again."""
    reader = draft.rules.reader
    if name == "peek" and reader is not None and not isinstance(outcome, Done | Refused | NotSent):
        failed(draft, reader, "nobody can tell whether it looked at the hole card")


def found_in_order(draft: Draft, device: str) -> None:
    """A supervisor inspected a device: if it is the reader, the table deals with it again."""
    if device == draft.rules.reader and draft.state.no_reader:
        draft.add("reader_in_order", {"device": device})


# --- the taps ---


def _judge_peek(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if rules.reader is None:
        return Refusal("no_such_device", "this table has no hole-card reader", LOOK)
    if any(pending.device == rules.reader for pending in state.pending.values()):
        return Refusal("reader_busy", "the reader did not answer yet", LOOK)
    why = not_due(rules, state)
    if why is not None:
        return Refusal("reader_not_due", f"the reader may not be used now: {why[0]}", why[1])
    if not state.device(rules.reader).up:
        text = "the reader does not answer; a supervisor may have the table deal without it"
        return Refusal("device_absent", text, MISUSE, ("no_reader",))
    return {}


def _after_peek(draft: Draft, before: TableState) -> None:
    assert draft.rules.reader is not None
    draft.command(draft.rules.reader, "peek")


def _judge_no_reader(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if rules.reader is None:
        return Refusal("no_such_device", "this table has no hole-card reader", MISUSE)
    if state.no_reader:
        return Refusal("already_so", "this table deals without the reader", MISUSE)
    return {"reader": rules.reader}


def no_reader_is_called_for(rules: TableRules, state: TableState) -> bool:
    """Whether the reader does not work: what else may be tapped then is told."""
    if rules.reader is None or state.no_reader:
        return False
    known = state.device(rules.reader)
    return (known.boot is not None and not known.up) or any(f.code == "reader_failed" for f in state.faults)


def hinders_the_end(rules: TableRules, state: TableState, *, void: bool) -> Refusal | None:
    """Why a round cannot end yet: a look is under way, or a value may have been shown and it is void."""
    if any(pending.device == rules.reader for pending in state.pending.values()):
        return Refusal("reader_busy", "the reader did not answer yet", LOOK)
    if not void and rules.reader_discloses and any(f.code == "reader_misuse" for f in state.faults):
        why = "the reader may have shown a value to a player: the round is void"
        return Refusal("reader_misused", why, MISUSE, ("void_round reason=reader",))
    return None


def forgotten(rules: TableRules, state: TableState) -> Refusal | None:
    """Why a round is not settled yet: nobody looked. Once that is latched, a supervisor decides instead."""
    return None if _latched(state, "reader_skipped") else first(rules, state, "the round is settled")


def procedure(rules: TableRules, state: TableState) -> str | None:
    """How this round goes on, as far as the reader decides it."""
    if rules.reader is None or state.round is None:
        return None
    misused, skipped = _latched(state, "reader_misuse"), _latched(state, "reader_skipped")
    if misused and rules.reader_discloses:
        return "it was misused and may have shown a value: the round is void (`void_round reason=reader`)"
    if state.round.natural:
        return "it told a natural: no further card is dealt, the round is settled"
    if state.no_reader:
        return "it is not used: the round is played as at a table without one"
    if _latched(state, "reader_failed"):
        return "it failed: the round is played to its end as at a table without one"
    if misused:
        return "it was misused: the round is played as at a table without one, or a supervisor voids it"
    if owed(rules, state) and state.silent(rules.reader):
        return "it does not answer: a supervisor may have the table deal without it (`no_reader`)"
    if owed(rules, state):
        late = "a card came before the look: a supervisor decides; " if skipped else ""
        return f"{late}the hole card goes into it (`peek`) before any further card"
    return "a card came before the look: a supervisor decides" if skipped else None


def settled(state: TableState, device: str | None) -> bool:
    """Whether a reader that failed was found in order again, or the table deals without it."""
    return state.no_reader or device in state.inspected


# --- facts ---


def _apply_look(state: TableState, data: Mapping[str, Any]) -> TableState:
    if state.round is None:
        return state
    said = data["result"] if data.get("allowed") else None
    natural = said == "natural" if said in ("natural", "not_natural") else state.round.natural
    return replace(state, round=replace(state.round, peeks=state.round.peeks + 1, natural=natural))


def _apply_out_of_order(state: TableState, data: Mapping[str, Any]) -> TableState:
    inspected = {d: day for d, day in state.inspected.items() if d != data["device"]}
    return replace(state, inspected=inspected)


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {
    "peek": (_judge_peek, ()),
    "no_reader": (_judge_no_reader, ()),
}
APPLY: dict[str, Apply] = {
    "hole_card_checked": _apply_look,
    "reader_out_of_order": _apply_out_of_order,
    "reader_in_order": lambda state, data: replace(state, no_reader=False),
    "no_reader": lambda state, data: replace(state, no_reader=True),
}
FOLLOW: dict[str, Callable[[Draft, TableState], None]] = {"peek": _after_peek}
