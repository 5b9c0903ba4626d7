"""One judge an operator event: the data of its fact, or a refusal. Pure; clauses are 13:69F-2.x."""

from __future__ import annotations

from typing import Any

from controller.table import (
    args,
    by_eye,
    certificates,
    closing,
    continuous,
    cutting_card,
    daily,
    dry_shoe,
    hands,
    irregular,
    multiple_action,
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
from controller.table.args import Judge, Judged
from controller.table.cards import count_of
from controller.table.faults import FAULTS
from controller.table.inputs import OperatorEvent, Refusal, Role
from controller.table.phases import IN_ROUND, Phase
from controller.table.profiles import CardDown, TableRules
from controller.table.round import DEALER, box
from controller.table.state import Batch, Closing, Cycle, Fault, Place, Shuffled, TableState
from devices.events import Sense

# --- one judge an event: the fact's data, or a refusal ---


def no_args(rules: TableRules, state: TableState, tap: OperatorEvent) -> dict[str, Any]:
    return {}


def _judge_bets_closed(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    boxes = args.boxes(rules, tap.args)
    if state.shoe.empty or (rules.by_eye and not rules.night and by_eye.none_left(state)):
        how = "idle" if rules.continuous else "shuffle_now"
        return Refusal("shoe_empty", "the shoe is empty: end the shoe", "13:69F-2.6", (how,))
    if state.silent(rules.shoe):
        return Refusal("device_absent", "the shoe does not answer: no card could be counted")
    if rules.hand_dealt and (state.shuffler.out or state.silent(rules.shuffler)):
        why = "cards are dealt from the hand only while the shuffler works"
        return Refusal("device_absent", why, "13:69F-2.2(c)")
    if out := continuous.out_of_service(rules, state):
        return out
    data: dict[str, Any] = {"boxes": list(boxes), "round": state.rounds + 1}
    data |= continuous.used(rules, state)
    if rules.player_card_down is not CardDown.NONE:
        data["down"] = rules.player_card_down.value
    match = side_wagers.judge_match(rules, boxes, tap.args)
    if isinstance(match, Refusal) or (game := rules.one_deck) is None:
        return match if isinstance(match, Refusal) else data | match
    if len(boxes) > (most := game.most(rules.boxes)):
        return Refusal("too_many_boxes", f"{rules.game} has hands for {most} players", game.clause)
    order = game.order(boxes, stacked=rules.stacks)
    if (drawn := len(state.shoe.early)) >= len(order):
        why = f"{count_of(drawn, 'are')} out and the deal is {len(order)}: a supervisor ends the shoe"
        return Refusal("cards_dealt", why, rules.deal_clause, ("shuffle_now",))
    return data | {"order": list(order)}


def _judge_cutting_card_at(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    in_round, sensed = state.phase in IN_ROUND, Sense.CUT_CARD in rules.shoe_senses
    if sensed and not in_round:
        why = f"cutting_card_at is not expected now: the table is in phase {state.phase.value}"
        return Refusal("unexpected", why)
    if in_round and "box" not in tap.args:
        raise ValueError("box=NUMBER or box=dealer is missing")
    seat = args.seat(rules, tap.args["box"]) if "box" in tap.args else None
    if not rules.marked:
        return Refusal("no_cutting_card", "no cutting card lies among the cards of this table")
    if sensed and not state.shoe.cut_seen:
        return Refusal("no_cutting_card", "the cutting card has not come out of this shoe")
    if state.shoe.cut_at is not None or (state.shoe.cut_seen and not sensed):
        where = f" at {state.shoe.cut_at}" if state.shoe.cut_at else ""
        return Refusal("already_known", f"the cutting card came out{where}")
    if seat not in (None, DEALER, *map(box, state.last_boxes)):
        return Refusal("no_wager_there", f"there is no wager on {seat} in this round")
    return {"at": seat} if sensed else _cutting_card_by_tap(rules, state, seat)


def _cutting_card_by_tap(rules: TableRules, state: TableState, seat: str | None) -> dict[str, Any]:
    """The fact that the card came out. Between rounds a place means the round before, none the next one."""
    if state.phase in IN_ROUND:
        return cutting_card.came_out(rules, state, seat)
    if seat is not None and state.last_boxes:
        return cutting_card.told_late(rules, state, seat)
    return cutting_card.came_out(rules, state, None)


def _judge_round_settled(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    assert state.round is not None
    if state.phase is not Phase.PLAYING and not state.uncertain:
        return Refusal("deal_not_finished", "the initial deal is not finished", "13:69F-2.6")
    if state.silent(rules.shoe):
        why = "the shoe does not answer: cards may have come out uncounted; a supervisor may void the round"
        return Refusal("device_absent", why, expected=("void_round reason=other",))
    data = {"round": state.round.number, "cards": len(state.round.cards)}
    data |= by_eye.round_cards(rules, state, tap.args)
    data |= {"unplayed": True} if settlement.goes_unturned(rules, state.round, tap.args) else {}
    data |= {"folded": True} if rules.one_deck is not None else {}
    laid = data["cards"] if rules.by_eye else state.round.placed
    if laid != len(state.round.order) and not state.uncertain and (misdeal := stub.misdeal(rules)):
        return misdeal
    return irregular.not_countable(rules, state) or data


def _judge_shuffle_now(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    """At a casino night the dealer shuffles what was dealt out; else a shuffle is the licensee's choice."""
    dealt_out = rules.night and state.phase not in IN_ROUND and by_eye.all_out(state)
    if Role.SUPERVISOR not in tap.roles and not dealt_out:
        return Refusal("not_allowed", "a supervisor ends a shoe before its time", "13:69F-2.5(a)")
    if state.shoe.closing is Closing.THIS_ROUND or (rules.per_round and state.phase in IN_ROUND):
        return Refusal("already_ending", "the shoe ends with this round anyway", "13:69F-2.5(a)")
    return closing.discards_rest(rules, state) or {
        "when": "after this round" if state.phase in IN_ROUND else "now"
    }


def _judge_collect(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    gauge = args.one_of(tap.args, "gauge", ("full", "short", "over"))
    foreign = args.whole(tap.args, "other_backs") if "other_backs" in tap.args else 0
    if not 0 <= foreign <= rules.batch_size:
        raise ValueError(f"other_backs is a number of cards, 0 to {rules.batch_size}")
    batch, sensed = state.batch_in_use, Sense.EMPTY in rules.shoe_senses
    left = batch.at(Place.SHOE)
    said, unsure = args.flag(tap.args, "shoe_empty"), not_counted_on(rules, state)
    if said and sensed and not unsure:
        raise ValueError("this shoe tells by itself when it is empty: leave shoe_empty out")
    if not (rules.by_eye or state.shoe.empty or said or (not sensed and not left)):
        why = "take the rest of the cards through the shoe to the rack first, faces down"
        if sensed and not unsure:
            return Refusal("shoe_not_empty", why, "13:69F-2.6")
        why += f": {left} did not come yet; when the shoe is empty all the same, say shoe_empty=true"
        again = f"collect_rack gauge={gauge} shoe_empty=true"
        return Refusal("shoe_not_empty", why, "13:69F-2.6", (again,))
    counted = stub.judge(rules, state, tap.args, unsure=unsure)
    if isinstance(counted, Refusal):
        return counted
    by_gauge = left if unsure and gauge == "full" else 0
    data = {"batch": batch.id, "gauge": gauge, "other_backs": foreign, "left": left, "by_gauge": by_gauge}
    return data | counted


def not_counted_on(rules: TableRules, state: TableState) -> bool:
    """Whether cards may have left the shoe that nobody counted: people say that it is empty, and gauge."""
    lost = state.uncertain and state.shoe.unaccounted != 0
    return rules.by_eye or lost or state.silent(rules.shoe)


def _mended(rules: TableRules, batch: Batch) -> bool:
    """Whether a full shuffle, by the machine or by hand, has made good what was wrong with the batch."""
    if batch.proof is None:
        return False
    by_hand = batch.proof.how is Shuffled.HAND and batch.at(Place.IN_HAND) == rules.batch_size
    return by_hand or bool(batch.at(Place.SHUFFLER))


def cause_gone(rules: TableRules, state: TableState, fault: Fault) -> bool:
    """Whether the cause of a latched fault is gone, so that it may be cleared (law 6)."""
    shuffler, shoe = state.shuffler, state.shoe
    batch = state.batches.get(fault.batch or "")
    match FAULTS[fault.code].gone:
        case "always":
            return True
        case "proved_or_replaced" | "cycle_running_or_proved" if continuous.began_since(rules, state, fault):
            return True
        case "proved_or_replaced":
            if batch is not None and batch.replaced > fault.again:
                return True
            if rules.alone and not rules.continuous and batch is None and shuffler.batch is None:
                return True  # the machine ran empty, and no other batch can be in it
            proved = [b for b in state.batches.values() if _mended(rules, b)]
            return state.phase is Phase.CLOSED or (bool(proved) and batch in (None, *proved))
        case "shuffler_accounted":
            whole = batch is None or not batch.cards or rules.batch_size in batch.cards.values()
            return shuffler.surplus == 0 and whole
        case "cycle_running_or_proved":
            return shuffler.stage in (Cycle.RUNNING, Cycle.PROVED) or shuffler.out
        case "start_reconciled":
            return shuffler.stage is not Cycle.STARTING
        case "shoe_emptied" if Sense.EMPTY in rules.shoe_senses and not rules.continuous:
            return shoe.told_empty or shoe.first_fact > fault.again
        case "shoe_unused" | "shoe_emptied":  # a continuous shuffler rightly holds a batch
            return shoe.batch is None or shoe.first_fact > fault.again
        case "shoe_told_empty":
            return shoe.told_empty
        case "not_in_round":
            return state.round is None
        case "shoe_accounted":
            return shoe.batch is None or shoe.first_fact > fault.again or shoe.unaccounted == 0
        case "reader_settled":
            return reader.settled(state, fault.device)
        case "known_device":
            return state.device(fault.device or "").known
        case "batch_replaced":
            return batch is not None and batch.replaced > fault.again
        case "restarted":
            return state.booted_at > fault.again
        case _:
            return False


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {
    "bets_closed": (_judge_bets_closed, ("boxes", "match")),
    "cutting_card_at": (_judge_cutting_card_at, ("box",)),
    "round_settled": (_judge_round_settled, ("cards", "unplayed")),
    "shuffle_now": (_judge_shuffle_now, ()),
    "collect_rack": (_judge_collect, ("gauge", "other_backs", "shoe_empty", "stub")),
    **swap.JUDGES,
    **by_eye.JUDGES,
    **opening.JUDGES,
    **certificates.JUDGES,
    **daily.JUDGES,
    **irregular.JUDGES,
    **dry_shoe.JUDGES,
    **closing.JUDGES,
    **out_of_service.JUDGES,
    **reader.JUDGES,
    **side_wagers.JUDGES,
    **multiple_action.JUDGES,
    **stacks.JUDGES,
    **stub.JUDGES,
    **hands.JUDGES,
    **people.JUDGES,
}
"""Each event's judge and the arguments it takes; an event that is not here takes none."""
