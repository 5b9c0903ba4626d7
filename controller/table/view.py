"""What the outside may see of a table's state: counts and places, never an unseen card (law 7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from controller.table import continuous, daily, hands, people, reader, side_wagers, stub
from controller.table.faults import FAULTS, remedy, stops
from controller.table.judges import cause_gone
from controller.table.profiles import TableRules
from controller.table.rules import awaited, expected
from controller.table.state import Fault, Place, TableState


def snapshot(rules: TableRules, state: TableState, taps: Iterable[str] | None = None) -> dict[str, Any]:
    """The `status` answer, as plain JSON values. `taps` are what is expected, where that is known already."""
    shoe, shuffler = state.shoe, state.shuffler
    return {
        "table": rules.table,
        "profile": rules.profile,
        "mode": rules.mode,
        "fact": state.seq,
        "phase": state.phase.value,
        "expected": list(expected(rules, state) if taps is None else taps),
        "awaiting": awaited(rules, state) or _absent(rules, state),
        "shoe": {
            "number": shoe.number,
            "batch": shoe.batch,
            "last_batch": shoe.last_batch,
            "drawn": shoe.count,
            "device": rules.shoe,
            "left": _left(state),
            "empty": shoe.empty,
            "locked": state.device(rules.shoe or "").locked,
            "cutting_card": {"seen": shoe.cut_seen, "at": shoe.cut_at},
            "closing": shoe.closing.value,
            "stub_due": rules.per_round and stub.due_now(state),
            "senses": sorted(rules.shoe_senses),
            **({"may_return": continuous.may_return(state)} if rules.continuous else {}),
        },
        "shuffler": {
            "batch": shuffler.batch,
            "cycle": shuffler.stage.value,
            "counter": shuffler.counter,
            "out": shuffler.out,
            "not_started": shuffler.not_started or None,
            "since": shuffler.not_started_since,
        },
        "batches": {
            batch.id: {
                "back": rules.back(batch.id),
                "cards": {place.value: n for place, n in batch.cards.items()},
                "shuffled": batch.proof is not None,
                "shuffled_by": None if batch.proof is None else batch.proof.how.value,
                "cut": batch.cut,
                "prep": batch.prep.value,
                "unfit": batch.unfit,
                "unfit_since": batch.unfit_since,
                "missing": [] if batch.id == shoe.batch else list(batch.missing),
                "received": batch.received,
                "age_h": None if batch.received is None else daily.age(state, batch),
            }
            for batch in state.batches.values()
        },
        "round": None if state.round is None else _round(rules, state),
        "rounds": state.rounds,
        "side_wagers": side_wagers.outcome(rules, state),
        "match_the_dealer": side_wagers.posted(rules),
        "settlement": None if state.settlement is None else dict(state.settlement),
        "manual": state.manual,
        "ending": state.ending.value,
        "confirmed_empty": list(state.empty),
        "first_to_look": dict(state.first_to_look),
        "day": state.day,
        "inspected": dict(state.inspected),
        "reader": _reader(rules, state),
        "devices": {
            name: {
                "up": d.up,
                "serial": d.serial,
                "firmware": d.firmware,
                "hash": d.hash,
                "verdict": d.verdict,
                "boot": d.boot,
                "events": d.n,
            }
            for name, d in state.devices.items()
        },
        "faults": faults(rules, state),
        "alarms": alarms(rules, state),
    }


def _reader(rules: TableRules, state: TableState) -> dict[str, Any] | None:
    if rules.reader is None:
        return None
    told = None if state.round is None else state.round.natural
    says = None if told is None else "natural" if told else "not_natural"
    return {
        "device": rules.reader,
        "in_use": not state.no_reader,
        "told": says,
        "procedure": reader.procedure(rules, state),
    }


def _left(state: TableState) -> int | None:
    """Cards left to deal; None where nobody counts them."""
    if state.shoe.untold:
        return None
    return state.batches[state.shoe.batch].at(Place.SHOE) if state.shoe.batch else 0


def _absent(rules: TableRules, state: TableState) -> str | None:
    """The devices in use that do not answer: those that are inspected each day."""
    absent = [device for device in daily.devices_in_use(rules, state) if not state.device(device).up]
    return f"the {' and the '.join(absent)} to answer" if absent else None


def faults(rules: TableRules, state: TableState) -> list[dict[str, Any]]:
    """The latched faults, oldest first, as `alarms` tells them."""
    return [alarm for alarm in alarms(rules, state) if alarm["latched"]]


def alarms(rules: TableRules, state: TableState) -> list[dict[str, Any]]:
    """All that is wrong or was and nobody saw it: alarms and latched faults, oldest first (ISA-18.2)."""
    return [
        {
            **_fault(rules, fault),
            "state": people.stage(fault),
            "latched": not people.is_alarm(fault),
            "acknowledged": fault.acknowledged or None,
            "gone": fault.gone,
            "cause_gone": fault.gone is not None or cause_gone(rules, state, fault),
            "cleared_by": [role.value for role in people.may_clear(fault)],
        }
        for fault in state.faults
    ]


def _fault(rules: TableRules, fault: Fault) -> dict[str, Any]:
    kind = FAULTS[fault.code]
    return {
        "id": fault.id,
        "code": fault.code,
        "blocks": fault.blocks.value,
        "what": kind.text,
        "cause": fault.cause,
        "stops": stops(rules, fault.code, fault.blocks, fault.batch),
        "remedy": remedy(rules, fault.code),
        "unfit": kind.unfit,
        "since": fault.since,
        "batch": fault.batch,
        "device": fault.device,
    }


def _round(rules: TableRules, state: TableState) -> dict[str, Any]:
    assert state.round is not None
    return {
        "number": state.round.number,
        "boxes": list(state.round.boxes),
        "owed": state.round.owed,
        "match": list(state.round.match),
        "dealer_hands": state.round.dealer_hands,
        "dealer_hands_in_all": rules.dealer_hands,
        "cards": [{"to": c.to, "card": c.card if c.seen else None} for c in state.round.cards],
        "hands": hands.view(state.round),
    }
