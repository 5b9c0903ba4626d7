"""`evolve(state, fact) -> state`: applies a fact that has happened and judges nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controller.table import (
    by_eye,
    certificates,
    closing,
    continuous,
    daily,
    dry_shoe,
    hands,
    irregular,
    locks,
    multiple_action,
    opening,
    out_of_service,
    patterns,
    people,
    reader,
    side_wagers,
    stacks,
    stub,
    swap,
)
from controller.table.changes import (
    move,
    move_all,
    table_to_rack,
    with_batch,
    with_device,
    with_shoe,
    with_shuffler,
)
from controller.table.checkpoint import restore
from controller.table.faults import blocks
from controller.table.inputs import Fact
from controller.table.phases import RESHUFFLING, Phase
from controller.table.round import FACE_UP, NO_HAND, STUB, box, deal_order
from controller.table.state import (
    KEYS_KEPT,
    Closing,
    Cycle,
    Dealt,
    Device,
    Ending,
    Fault,
    Pending,
    Place,
    Proof,
    Round,
    Shoe,
    Shuffler,
    TableState,
)
from firmware_bridge.frozen import replace

Data = Mapping[str, Any]


def evolve(state: TableState, fact: Fact) -> TableState:
    """The state after `fact`. Facts of unknown kinds change nothing but the count."""
    seq = state.seq + 1
    if fact.kind == "checkpoint":
        return replace(restore(fact.data["state"]), seq=seq)
    data = {"device": fact.source, **fact.data, **fact.sealed}
    state = replace(
        state, seq=seq, devices=_devices(state, fact.source, data) if "n" in data else state.devices
    )
    apply = _APPLY.get(fact.kind)
    if apply is not None:
        state = apply(state, data)
    if data.get("key"):
        kept = list(state.keys.items())[-(KEYS_KEPT - 1) :]
        state = replace(state, keys={**dict(kept), data["key"]: seq})
    if "moves" in data:
        state = replace(state, phase=Phase(data["moves"][1]), burning=False)
    return state


def _devices(state: TableState, source: str, data: Data) -> Mapping[str, Device]:
    device = state.device(source)
    seq = data.get("seq") if data.get("known", True) else None
    device = replace(device, n=data["n"], seq=seq if isinstance(seq, int) else device.seq)
    return {**state.devices, source: device}


# --- the daemon and its devices ---


def _booted(state: TableState, data: Data) -> TableState:
    devices = {name: replace(device, up=False) for name, device in state.devices.items()}
    return replace(state, boot=data["boot_id"], booted_at=state.seq, devices=devices, set_back=0)


def _link_up(state: TableState, data: Data) -> TableState:
    identity = data["identity"]
    device: str = data["device"]
    verdict = data.get("verdict")
    if not data["known"]:
        return with_device(state, device, up=False, known=False, verdict=verdict)
    state = with_device(
        state,
        device,
        up=True,
        known=True,
        boot=data["boot"],
        serial=identity.get("serial"),
        firmware=identity.get("firmware"),
        hash=identity.get("hash"),
        verdict=verdict,
    )
    if "counter" in data:
        state = with_shuffler(state, counter=data["counter"])
    if "surplus" in data:
        state = _surplus(state, data)
    if data.get("untimed"):
        state = with_shuffler(state, started_us=0)
    if "unaccounted" in data:
        state = with_shoe(state, unaccounted=data["unaccounted"])
    if "told_empty" in data:
        state = with_shoe(state, told_empty=data["told_empty"])
    return locks.told(state, device, data.get("status", {}))


def _surplus(state: TableState, data: Data) -> TableState:
    state = with_shuffler(state, surplus=data["surplus"])
    return closing.not_confirmed(state, data["device"]) if data["surplus"] else state


def _link_down(state: TableState, data: Data) -> TableState:
    return with_device(state, data["device"], up=False)


def _command_issued(state: TableState, data: Data) -> TableState:
    pending = Pending(data["device"], data["command"])
    if pending.name == locks.LOCK:
        state = with_device(state, pending.device, held=True)
    return replace(state, pending={**state.pending, data["call"]: pending})


def _command_ended(state: TableState, data: Data) -> TableState:
    if data["command"] == "release" and data["outcome"] in ("refused", "not_sent"):
        state = with_shuffler(state, letting_out=False)
    pending = {k: v for k, v in state.pending.items() if k != data["call"]}
    return locks.ended(replace(state, pending=pending), data)


# --- faults ---


def _fault_latched(state: TableState, data: Data) -> TableState:
    fault = Fault(
        id=data["fault"],
        code=data["code"],
        blocks=blocks(data["code"], data["blocks"]),
        cause=data["cause"],
        since=state.seq,
        again=state.seq,
        batch=data["batch"],
        device=data["device"],
    )
    unseen = next((f for f in state.faults if f.id == fault.id), None)
    if unseen is None:
        faults = (*state.faults, fault)
    else:  # an alarm that came and went before
        back = replace(fault, since=unseen.since)
        faults = tuple(back if f is unseen else f for f in state.faults)
    state = replace(state, faults=faults)
    return _unfit(state, data["batch"], data["code"]) if data["unfit"] else state


def _fault_again(state: TableState, data: Data) -> TableState:
    again = (replace(f, again=state.seq) if f.id == data["fault"] else f for f in state.faults)
    state = replace(state, faults=tuple(again))
    return _unfit(state, data["unfit"], data["code"]) if "unfit" in data else state


def _unfit(state: TableState, batch: str | None, code: str) -> TableState:
    """Out of play until replaced; cards shuffled by hand for a round in play still finish it (R-35)."""
    if batch is None or state.batches[batch].unfit is not None:
        return state
    proof = state.batches[batch].proof if state.phase in RESHUFFLING else None
    return with_batch(state, batch, unfit=code, unfit_since=state.seq, proof=proof)


def _clear(state: TableState, data: Data) -> TableState:
    cleared = next(f for f in state.faults if f.id == data["fault"])
    if cleared.code == "stray_card" and cleared.batch is not None:
        on_table = state.batches[cleared.batch].at(Place.TABLE)
        state = move(state, cleared.batch, on_table, Place.TABLE, Place.IN_HAND)
    return replace(state, faults=tuple(f for f in state.faults if f.id != data["fault"]))


# --- the shuffler ---


def _shuffler_checked(state: TableState, data: Data) -> TableState:
    return with_shuffler(state, stage=Cycle.STARTING, counter=data["counter"])


def _start_failed(state: TableState, data: Data) -> TableState:
    state = _surplus(state, data) if "surplus" in data else state
    return with_shuffler(state, stage=Cycle.NONE, not_started=data["why"], not_started_since=state.seq)


def _cycle_started(state: TableState, data: Data) -> TableState:
    if not data["ours"]:
        return with_shuffler(state, counter=data["cycle"])
    at = data.get("mono_us") if state.shuffler.started_us is None else state.shuffler.started_us
    state = with_shuffler(state, counter=data["cycle"], stage=Cycle.RUNNING, started_us=at)
    return with_shuffler(state, not_started="", not_started_since=None)


def _batch_proved(state: TableState, data: Data) -> TableState:
    proof = Proof(data["token"], data["cycle"])
    state = with_batch(state, data["batch"], proof=proof, uncounted=0)
    return with_shuffler(state, stage=Cycle.PROVED)


def _batch_voided(state: TableState, data: Data) -> TableState:
    if data["batch"] is not None:
        state = with_batch(state, data["batch"], proof=None)
    return with_shuffler(state, stage=Cycle.NONE)


def _batch_released(state: TableState, data: Data) -> TableState:
    batch: str | None = data["batch"]
    if batch is not None:
        state = move(state, batch, data["moved"], Place.SHUFFLER, Place.IN_HAND)
        if not data["proved"]:
            state = with_batch(state, batch, proof=None)
    left = 0 if batch is None else state.batches[batch].at(Place.SHUFFLER)
    state = closing.not_confirmed(state, data["device"])
    shuffler = Shuffler(
        batch=batch if left else None,
        counter=state.shuffler.counter,
        shuffles=state.shuffler.shuffles,
        surplus=state.shuffler.surplus if data["inside"] is None else max(0, data["inside"] - left),
        out=state.shuffler.out,
    )
    return replace(state, shuffler=shuffler, cutter=None, declined=())


# --- the shoe ---


def _card_drawn(state: TableState, data: Data) -> TableState:
    """Custody, count and the round in one step: this is the fact that comes most often."""
    to: str = data["to"]
    batch: str | None = data["batch"]
    shoe, batches, round_ = state.shoe, state.batches, state.round
    card: str | None = data.get("card")
    if data["foreign"]:
        shoe = replace(shoe, foreign=shoe.foreign + 1)
    elif batch is not None:
        source = Place.IN_HAND if shoe.batch is None else Place.SHOE
        if batches[batch].at(source):
            dest = Place.TABLE if to not in NO_HAND else Place.ASIDE if data.get("aside") else Place.RACK
            batches = {**batches, batch: batches[batch].move(1, source, dest)}
        if shoe.batch is not None:
            drawn = {**shoe.drawn, card or "": shoe.drawn.get(card or "", 0) + 1}
            order = patterns.grown(shoe.order, card if data["seen"] else None)
            shoe = replace(shoe, drawn=drawn, order=order)
            if card and not data["seen"]:
                shoe = replace(shoe, unseen={**shoe.unseen, card: shoe.unseen.get(card, 0) + 1})
            if to == STUB:
                shoe = replace(shoe, stub=shoe.stub + 1)
            if data.get("aside"):
                shoe = replace(shoe, aside={**shoe.aside, card or "": shoe.aside.get(card or "", 0) + 1})
    if to == FACE_UP:
        shoe = replace(shoe, face_up=shoe.face_up + 1)
    if to not in NO_HAND:
        dealt = Dealt(to, card, state.seq, seen=data["seen"], foreign=data["foreign"])
        if round_ is not None:
            round_ = replace(round_, cards=(*round_.cards, dealt))
        elif shoe.batch is not None:
            shoe = replace(shoe, early=(*shoe.early, dealt))
    if shoe.batch is None and batch is not None:
        batches = {**batches, batch: replace(batches[batch], cut=False)}
        state = replace(state, cutter=None, declined=())
    elif shoe.batch is not None and shoe.empty:
        shoe = replace(shoe, empty=False)
    if shoe.batch is None:
        state = closing.not_confirmed(state, data["device"])
    if shoe.told_empty or shoe.loading:
        shoe = replace(shoe, told_empty=False, loading=False)
    dry_in = None if to == "burn" else state.dry_in
    return replace(state, shoe=shoe, batches=batches, round=round_, dry_in=dry_in)


def _lid(state: TableState, data: Data) -> TableState:
    return with_shoe(state, loading=False) if "loaded" in data else state


def _cut_card(state: TableState, data: Data) -> TableState:
    if "moves" in data and state.round is not None:
        state = replace(state, round=None, rounds=state.rounds - 1)
    return with_shoe(state, cut_seen=True, cut_at=data["at"], closing=Closing(data["closing"]))


def _cutting_card_at(state: TableState, data: Data) -> TableState:
    """Where the cutting card came out; from a shoe that does not sense it, that it came out at all."""
    return _cut_card(state, data) if "closing" in data else with_shoe(state, cut_at=data["at"])


def _shoe_empty(state: TableState, data: Data) -> TableState:
    return with_shoe(state, empty=True, closing=Closing(data["closing"]), told_empty="by_count" not in data)


# --- the round ---


def _bets_closed(state: TableState, data: Data) -> TableState:
    boxes = tuple(data["boxes"])
    shoe = state.shoe
    if shoe.closing is Closing.ONE_MORE_ROUND:
        at = shoe.cut_at if shoe.cut_at is not None else box(boxes[0])
        state = with_shoe(state, closing=Closing.THIS_ROUND, cut_at=at)
    number = state.rounds + 1
    early, state = state.shoe.early, with_shoe(state, early=(), used=data.get("used", 0))
    round_ = Round(number, boxes, early, tuple(data.get("order", ())) or deal_order(boxes))
    round_ = replace(round_, down=data.get("down", round_.down), match=tuple(data.get("match", ())))
    return replace(state, round=round_, rounds=number, last_boxes=boxes, settlement=None)


def _round_settled(state: TableState, data: Data) -> TableState:
    return irregular.settled(by_eye.settled(state, data), data)


def _shuffle_now(state: TableState, data: Data) -> TableState:
    return with_shoe(state, closing=Closing.THIS_ROUND, by_choice=True)


def _collect_rack(state: TableState, data: Data) -> TableState:
    state = replace(table_to_rack(state), round=None)
    state = move_all(state, data["batch"], Place.ASIDE, Place.RACK)
    if data["by_gauge"]:
        state = move(state, data["batch"], data["by_gauge"], Place.SHOE, Place.RACK)
    state = stub.collected(state, data)
    if state.shoe.order:
        orders = (*state.batches[data["batch"]].orders, state.shoe.order)
        state = with_batch(state, data["batch"], orders=orders[-patterns.ORDERS_KEPT :])
    shoe = Shoe(
        last_batch=state.shoe.last_batch,
        number=state.shoe.number,
        cut_at=state.shoe.cut_at,
        by_choice=state.shoe.by_choice and not state.shoe.cut_seen,
        told_empty=state.shoe.told_empty,
    )
    closes = state.ending is Ending.CLOSE
    state = replace(state, shoe=shoe, ending=Ending.SWAP, settlement=None)
    return closing.begin_closing(state) if closes else state


_APPLY: dict[str, Callable[[TableState, Data], TableState]] = {
    "booted": _booted,
    "link_up": _link_up,
    "link_down": _link_down,
    "command_issued": _command_issued,
    "command_ended": _command_ended,
    "fault_latched": _fault_latched,
    "fault_again": _fault_again,
    "clear": _clear,
    "shuffler_checked": _shuffler_checked,
    "start_failed": _start_failed,
    "surplus_seen": _surplus,
    "release_failed": lambda state, data: with_shuffler(state, letting_out=False),
    "cycle_started": _cycle_started,
    "batch_proved": _batch_proved,
    "batch_stored": lambda state, data: with_shuffler(state, stage=Cycle.PROVED),
    "batch_voided": _batch_voided,
    "batch_released": _batch_released,
    "batch_lifted": _batch_released,
    "card_drawn": _card_drawn,
    "lock_changed": lambda state, data: locks.told(state, data["device"], data),
    "lid": _lid,
    "door": _lid,
    "cut_card": _cut_card,
    "cutting_card_at": _cutting_card_at,
    "shoe_empty": _shoe_empty,
    "bets_closed": _bets_closed,
    "round_settled": _round_settled,
    "shuffle_now": _shuffle_now,
    "collect_rack": _collect_rack,
    **swap.APPLY,
    **by_eye.APPLY,
    **opening.APPLY,
    **certificates.APPLY,
    **daily.APPLY,
    **irregular.APPLY,
    **dry_shoe.APPLY,
    **closing.APPLY,
    **out_of_service.APPLY,
    **reader.APPLY,
    **side_wagers.APPLY,
    **multiple_action.APPLY,
    **continuous.APPLY,
    **stacks.APPLY,
    **stub.APPLY,
    **hands.APPLY,
    **people.APPLY,
}
KINDS = frozenset(_APPLY)
"""The kinds of facts that change a state by what they are."""
