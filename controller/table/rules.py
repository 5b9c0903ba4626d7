"""`decide(rules, state, input)`: the one place where taps are accepted or refused. Pure.

Device events, ends of commands and boots are never refused: `observe` turns them into facts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from controller.table import (
    by_hand,
    certificates,
    closing,
    continuous,
    daily,
    deal,
    dry_shoe,
    hands,
    irregular,
    locks,
    observe,
    opening,
    out_of_service,
    people,
    reader,
    settlement,
    side_wagers,
    stacks,
    stub,
    swap,
)
from controller.table.args import Args, Judged, digest
from controller.table.cards import count_of
from controller.table.checkpoint import checkpoint
from controller.table.clauses import clause
from controller.table.draft import Decision, Draft
from controller.table.evolve import evolve
from controller.table.faults import FAULTS, Blocks, remedy
from controller.table.inputs import (
    OPERATOR,
    SERVICE,
    Booted,
    Ended,
    Hour,
    Input,
    Observed,
    OperatorEvent,
    Refusal,
    Role,
    Trouble,
)
from controller.table.judges import JUDGES, cause_gone, no_args
from controller.table.phases import IN_ROUND, RESHUFFLING, SHOE_IN_USE, TAPPED_IN, TRANSITIONS, Phase
from controller.table.profiles import TableRules
from controller.table.state import Fault, Place, TableState
from devices.events import Sense

KEY_LENGTH = 128
ANYBODY = frozenset(Role)
"""Whoever it takes: what is expected does not depend on who asks."""
SWAP_TAPS = (
    "take_from_shuffler",
    "offer_cut",
    "cut",
    "recut",
    "insert_cutting_card",
    "load_shoe",
    "take_in_hand",
)
"""What a fault that blocks the next swap stops."""
CARDS_IN_SHOE = ("stray_card", "cards_in_shoe")
"""Faults that stop everything until the cards are out of the shoe."""


def decide(rules: TableRules, state: TableState, given: Input) -> Decision | Refusal:
    """Facts and effects that follow from `given`, or why a tap is refused. Only a tap can be refused."""
    if isinstance(given, OperatorEvent):
        return _tap(rules, state, given)
    draft = Draft(rules, state, SERVICE, evolve)
    match given:
        case Observed(event):
            draft.source = event.device
            observe.observed(draft, event)
        case Ended(device, call_id, outcome):
            draft.source = device
            observe.ended(draft, device, call_id, outcome)
        case Booted(boot_id):
            observe.booted(draft, boot_id)
        case Hour(hour, day, local):
            observe.hour(draft, hour, day, local)
        case Trouble("device_down", detail, device):
            if device is not None and not state.device(device).up:
                draft.latch("device_down", detail, device=device)
        case Trouble(code, detail, device):
            known = next((f for f in state.faults if (f.code, f.device) == (code, device)), None)
            if known is None:
                draft.latch(code, detail, device=device)
            else:
                draft.add("fault_again", {"fault": known.id, "cause": detail})
    deal.keep(draft)
    locks.keep(draft)
    return draft.done()


def _tap(rules: TableRules, state: TableState, tap: OperatorEvent) -> Decision | Refusal:
    judged = judge(rules, state, tap)
    if isinstance(judged, Refusal):
        instead = judged.expected or expected(rules, state)
        waits = None if instead else awaited(rules, state)
        why = f"{judged.why}; the table waits for {waits}" if waits else judged.why
        return replace(judged, why=why, clause=clause(rules, tap.event, judged.clause), expected=instead)
    draft = Draft(rules, state, OPERATOR, evolve)
    sealed = judged.pop("sealed", {})
    data = {**judged, "who": tap.who}
    if tap.key:
        data["key"] = tap.key
        (sealed or data)["args_digest"] = digest(tap.args)  # in the open whoever tries all cards finds it
    draft.add(tap.event, {**data, **draft.moves(tap.event)}, sealed)
    follow = _FOLLOW.get(tap.event)
    if follow is not None:
        follow(draft, state)
    deal.keep(draft)
    locks.keep(draft)
    return draft.done()


def judge(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    """The data of the tap's fact, or the refusal (without `expected`, which `decide` adds)."""
    if tap.key is not None and not (tap.key.isprintable() and 0 < len(tap.key) <= KEY_LENGTH):
        return Refusal("bad_argument", f"an id is 1 to {KEY_LENGTH} printable characters")
    refused = continuous.replaced(rules, tap.event) or _out_of_phase(rules, state, tap.event)
    refused = refused or _blocked(rules, state, tap.event)
    refused = refused or daily.locked_out(rules, state, tap.event)
    if refused:
        return refused
    if tap.event == "clear":
        return _judge_clear(rules, state, tap)
    judge_tap, allowed = JUDGES.get(tap.event, (no_args, ()))
    strange = [name for name in tap.args if name not in allowed]
    if strange:
        takes = ", ".join(allowed) or "nothing"
        return Refusal("bad_argument", f"{tap.event} does not take {strange[0]!r}; it takes {takes}")
    try:
        return judge_tap(rules, state, tap)
    except ValueError as error:
        return Refusal("bad_argument", f"{tap.event}: {error}")


def accepts(rules: TableRules, state: TableState, tap: OperatorEvent) -> bool:
    """Whether the rules accept the tap now; the machine's guards ask this."""
    return not isinstance(judge(rules, state, tap), Refusal)


def _out_of_phase(rules: TableRules, state: TableState, event: str) -> Refusal | None:
    if event not in TAPPED_IN:
        return Refusal("unknown_event", f"there is no operator event {event!r} in this version")
    if state.phase in TAPPED_IN[event]:
        return None
    why, nearer = f"{event} is not expected now: the table is in phase {state.phase.value}", None
    if state.phase is Phase.SIDE_WAGERS and Phase.PLAYING in TAPPED_IN[event]:
        why, nearer = f"{event} comes after the side wagers are settled", rules.settle_clause
    elif event == "reshuffle_by_hand" and state.round is None:
        nearer = by_hand.CHOICE  # 2.15(f) is of a shoe that runs out in a round
    return Refusal("unexpected", why, nearer)


def _blocked(rules: TableRules, state: TableState, event: str) -> Refusal | None:
    if event in ("acknowledge", "clear", "cutting_card_at"):
        return None
    round_ = (Blocks.ROUND, Blocks.SWAP) if rules.continuous else (Blocks.ROUND,)  # it swaps by itself
    for fault in state.faults:
        if (
            fault.blocks is Blocks.NOW
            or (fault.blocks in round_ and event == "bets_closed" and _in_play(state, fault))
            or (fault.blocks is Blocks.SWAP and _swaps(state, event) and _hinders(state, fault, event))
        ):
            what = f"{FAULTS[fault.code].text}; {remedy(rules, fault.code)}"
            return Refusal("fault_latched", f"fault {fault.id} blocks this: {what}")
    return None


def _in_play(state: TableState, fault: Fault) -> bool:
    """A batch that is out of play does not stop the rounds of the other one."""
    return not FAULTS[fault.code].unfit or fault.batch in (None, state.shoe.batch)


def _swaps(state: TableState, event: str) -> bool:
    """What is out of play is no part of a swap: it comes out whatever is latched."""
    if event == "take_from_shuffler" and state.unfit_inside:
        return False
    return event in SWAP_TAPS and state.phase not in (Phase.CLOSING, *RESHUFFLING)


def _hinders(state: TableState, fault: Fault, event: str) -> bool:
    """A fault on one batch keeps that batch where it is (S4).

    The stored one stays in while the other is out of play, but not while the other needs a shuffle.
    """
    if event != "take_from_shuffler":
        return fault.batch in (None, state.taken)
    return FAULTS[fault.code].unfit or fault.batch in (None, state.shuffler.batch)


def _judge_clear(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if set(tap.args) != {"fault"}:
        return Refusal("bad_argument", "clear takes fault=ID and nothing else")
    fault_id = tap.args.get("fault")
    fault = next((f for f in state.faults if f.id == fault_id), None)
    if fault is None:
        latched = ", ".join(f.id for f in state.faults if not people.is_alarm(f)) or "none"
        return Refusal("no_such_fault", f"there is no latched fault {fault_id}; latched: {latched}")
    if people.is_alarm(fault):
        why = f"{fault.id} is an alarm: it goes with its cause, and is acknowledged (`acknowledge`)"
        return Refusal("not_latched", why)
    if not tap.roles & set(people.may_clear(fault)):
        who = " or a ".join(role.value for role in people.may_clear(fault))
        return Refusal("not_allowed", f"{fault.code} is cleared by a {who}, never by a dealer")
    if not cause_gone(rules, state, fault):
        return Refusal("cause_remains", f"{FAULTS[fault.code].text}; {remedy(rules, fault.code)}")
    return {"fault": fault.id, "code": fault.code}


# --- what follows an accepted tap ---


def _after_settled(draft: Draft, before: TableState) -> None:
    cards = before.round.cards if before.round else ()
    unseen = [card.seq for card in irregular.shown_at_the_end(before.round, draft.facts[0].data)]
    if unseen:
        draft.add("exposed", {"seqs": unseen})
    irregular.judge_copies(draft, [card.card for card in cards if not card.seen])
    settlement.settle(draft, before)
    dry_shoe.no_longer_dry(draft, before)


def _after_collect(draft: Draft, before: TableState) -> None:
    tap = draft.facts[0].data
    batch = tap["batch"]
    if why := irregular.too_many(draft.rules, before.shoe.drawn):
        draft.latch("too_many_copies", why, batch=batch)
    by_eye = draft.rules.by_eye
    if tap["by_gauge"] and not before.uncertain and not by_eye:
        shoe, cause = draft.rules.shoe, f"{count_of(tap['left'])} came out of a shoe that does not answer"
        draft.latch("events_lost", cause, device=shoe)
    if tap["left"] and not tap["by_gauge"] and "stub" not in tap and not by_eye:
        size = draft.rules.batch_size
        draft.latch("cards_missing", f"{before.shoe.count} of {size} cards came out", batch=batch)
    if tap["gauge"] != "full":
        draft.latch("rack_gauge", f"the rack of batch {batch} is {tap['gauge']}", batch=batch)
    if tap["other_backs"]:
        draft.latch("rack_wrong_back", f"{count_of(tap['other_backs'])} of another back in it", batch=batch)
    stub.after_collect(draft, tap)
    dry_shoe.no_longer_dry(draft, before)
    draft.gone("shoe_jam", batch=batch)
    draft.add("collected", {"from": before.shoe.first_fact, "batch": batch, "shoe": before.shoe.number})
    draft.source = SERVICE
    draft.add("checkpoint", {"state": checkpoint(draft.state)})


_FOLLOW: dict[str, Callable[[Draft, TableState], None]] = {
    "round_settled": _after_settled,
    "collect_rack": _after_collect,
    **swap.FOLLOW,
    **opening.FOLLOW,
    **certificates.FOLLOW,
    **daily.FOLLOW,
    **irregular.FOLLOW,
    **dry_shoe.FOLLOW,
    **closing.FOLLOW,
    **out_of_service.FOLLOW,
    **reader.FOLLOW,
    **stacks.FOLLOW,
    **stub.FOLLOW,
}

# --- what is expected instead ---


_TAPS_IN = {
    phase: tuple(dict.fromkeys(t.trigger for t in TRANSITIONS if t.tap and phase in t.sources))
    for phase in Phase
}


def expected(rules: TableRules, state: TableState) -> tuple[str, ...]:
    """What may be tapped now, written as `do` takes it; empty while a device is awaited."""
    return tuple(expected_taps(rules, state))


def expected_taps(rules: TableRules, state: TableState) -> dict[str, OperatorEvent]:
    """The same, each with a tap that is such a one."""
    gone = [f.id for f in state.faults if cause_gone(rules, state, f)]
    out = {f"clear fault={f}": OperatorEvent("clear", {"fault": f}, roles=ANYBODY) for f in gone}
    for event in _TAPS_IN[state.phase]:
        for shown, args in _examples(rules, state, event):
            tap = OperatorEvent(event, args, roles=ANYBODY)
            if accepts(rules, state, tap):
                out[f"{event} {shown}".strip()] = tap
    return out


def _examples(rules: TableRules, state: TableState, event: str) -> list[tuple[str, Args]]:
    match event:
        case "clear":
            return []
        case "acknowledge":
            alarms = [f.id for f in state.faults if people.is_alarm(f)]
            return [(f"alarm={alarm}", {"alarm": alarm}) for alarm in alarms]
        case "no_reader" if not reader.no_reader_is_called_for(rules, state):
            return []
        case "inspect":
            return daily.examples(rules, state)
        case "verify" | "spread" | "player_inspected" | "wash" | "replace_batch":
            return opening.examples(rules, state, event)
        case "certificate":
            return certificates.examples(rules)
        case "card_face_up" | "dead_card" | "shuffle_demanded":
            return []
        case "count_stub":
            return stub.examples(rules, state)
        case "idle" | "close" | "count_batch" | "confirm_empty":
            return closing.examples(rules, state, event)
        case "open" | "out_of_service" | "in_service":
            return out_of_service.examples(rules, state, event)
        case "reshuffle_by_hand" if (rules.by_eye or rules.night) and state.phase in IN_ROUND:
            return dry_shoe.examples(rules, state, event)
        case "load_shuffler" | "load_shoe" | "take_in_hand" | "reshuffle_by_hand":
            return [(f"batch={b.id}", {"batch": b.id}) for b in rules.batches]
        case "drawn_in_error" | "dealer_skipped" | "box_skipped" | "void_round" | "bart_carter":
            return irregular.examples(rules, state, event)
        case _ if event in hands.TAPS:
            return hands.examples(state, event)
        case "cut" if state.phase is Phase.RESHUFFLE_CUT:
            return dry_shoe.examples(rules, state, event)
        case "offer_cut" | "cut" | "insert_cutting_card":
            return swap.examples(rules, state, event)
        case "cash_wager" | "cash_converted":
            return side_wagers.examples(rules, state, event)
        case "bets_closed":
            return [("boxes=1,2,5", {"boxes": "1"})]
        case "cutting_card_at":
            return [("box=N|dealer", {"box": "dealer"}), ("", {})] if state.shoe.cut_at is None else []
        case "collect_rack":
            backs = "" if Sense.BACK in rules.shoe_senses else " other_backs=0"
            taps: list[tuple[str, Args]] = [(f"gauge=full|short|over{backs}", {"gauge": "full"})]
            if state.silent(rules.shoe) and not state.shoe.empty:
                said = {"gauge": "full", "shoe_empty": True}
                taps = [(f"gauge=full|short|over shoe_empty=true{backs}", said)]
            return [*taps, *stub.counted(rules, state, taps)]
        case _:
            return [("", {})]


def awaited(rules: TableRules, state: TableState) -> str | None:
    """What the table waits for that no tap can bring, in words."""
    pending = next(iter(state.pending.values()), None)
    if pending is not None:
        return f"the {pending.device} to answer {pending.name}"
    if any(f.code in CARDS_IN_SHOE and not cause_gone(rules, state, f) for f in state.faults):
        return f"the {rules.shoe} to say that it is empty"
    waits: dict[str, str] = {
        "burn_due": "the first card from the shoe, to the rack unseen (burn)",
        "round_burn": "the first card from the shoe, to the rack unseen (burn)",
        "dealing": "the next card of the initial deal",
        "hole_card": "the dealer's second card",
        "shoe_end": "the rest of the cards, through the shoe to the rack, faces down",
        "reshuffle_burn": "the first card from the shoe, to the rack unseen (burn)",
    }
    if rules.stacks and state.phase is Phase.SHOE_END and stacks.holds_more(state):
        return "the shoe to be opened, and what it still holds to be laid in the rack"
    if state.phase is Phase.CLOSING and state.shuffler.batch is not None:
        return f"batch {state.shuffler.batch} to come out of the shuffler"
    if closing.shoe_is_not_empty(rules, state):
        return f"the {rules.shoe} to say that it is empty"
    if state.phase is Phase.PLAYING and (hand := hands.called_for(state)):
        waits["playing"] = f"a card for {hand}"
    if irregular.owes_a_card(state):
        waits["playing"] = "the dealer's second card"
    dry = state.shoe.batch is not None and state.shoe.empty
    left = state.shoe.batch is not None and state.batches[state.shoe.batch].at(Place.SHOE)
    asks = rules.stacks and left and state.shoe.told >= state.shoe.asked  # none comes before `dispense`
    waited = None if dry or rules.by_eye or asks else waits.get(state.phase.value)
    if waited is None and state.shuffler.stage.value in ("starting", "running"):
        return f"the shuffler to complete its cycle on batch {state.shuffler.batch}"
    if waited is None and state.shuffler.surplus and state.phase not in (*SHOE_IN_USE, *RESHUFFLING):
        return f"{count_of(state.shuffler.surplus)} to come out of the shuffler"
    inside = 0 if state.shuffler.batch is None else state.batches[state.shuffler.batch].at(Place.SHUFFLER)
    if waited is None and inside and len(state.batches[state.shuffler.batch or ""].cards) > 1:
        return f"the {count_of(inside)} of batch {state.shuffler.batch} in the shuffler to come out"
    if waited is None and state.unfit_inside and state.phase not in (*SHOE_IN_USE, *RESHUFFLING):
        return f"batch {state.shuffler.batch}, which is out of play, to come out of the shuffler or by hand"
    return waited
