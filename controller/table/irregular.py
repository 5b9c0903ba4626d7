"""What goes wrong with cards in a round (R-31 to R-36).

People tell it: a card drawn in error, a hand left out. Cards lie where they were dealt;
the table takes note of it by the order in which the next ones are due. Nobody knows on which side of a tap a
card came out, so a place that may hold the dealer's second card is called the hole card, and no tap ever
shows a card that was hidden as one (law 7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from controller.table import (
    args,
    by_eye,
    by_hand,
    continuous,
    dry_shoe,
    hands,
    multiple_action,
    reader,
    stub,
)
from controller.table.args import Apply, Args, Judge, Judged
from controller.table.cards import count_of
from controller.table.changes import move_all, table_to_rack, with_batch, with_shoe
from controller.table.draft import Draft
from controller.table.inputs import OperatorEvent, Refusal
from controller.table.phases import IN_ROUND, OUT_OF_SHOE, Phase
from controller.table.profiles import TableRules
from controller.table.round import BURNED, DEALER, HOLE, PLAY, STRAY, box, lies_down
from controller.table.state import Dealt, Place, Round, TableState
from firmware_bridge.frozen import replace

Data = Mapping[str, Any]
VOID = ("misdeal", "reader", "shoe_dry", "wrong_card", "other")
"""Why a round may be void: a word of this list, so that no text names a card."""
FACE_UP_CARDS = "13:69F-20.12"


# --- which card goes where, once something was left out (R-34, R-36) ---


def _late(order: list[str], missing: str, placed: int) -> list[str]:
    """The order with `missing` after all others' cards, before the hole card (which `order` leaves out).

    Told when more cards are out than that, one of the last two is the hole card, and nobody can say which.
    """
    return [*order, missing, HOLE] if placed <= len(order) else [*order, HOLE, HOLE]


def _told_already(card: str, clause: str = "13:69F-2.15(e)") -> Refusal:
    return Refusal("told_already", f"it is known that {card} was left out", clause)


def _not_begun(state: TableState) -> Refusal | None:
    """Why no card of the deal can have been left out: none was dealt yet."""
    if state.phase is not Phase.ROUND_BURN:
        return None
    return Refusal("not_skipped", "no card of this round is dealt yet: the first one is burned")


def _without_last(order: Iterable[str], place: str) -> list[str]:
    left = list(order)
    left.reverse()
    left.remove(place)
    left.reverse()
    return left


def _judge_dealer_skipped(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    round_ = _round(state)
    if wrong := stub.misdeal(rules) or _not_begun(state):
        return wrong
    match tap.args.get("card"):
        case "first":
            if DEALER not in round_.order or DEALER in round_.left_out:
                return _told_already("the dealer's first card")
            if rules.by_eye:
                return {"missed": "first", "left_out": DEALER}
            players = [place for place in round_.order if place not in (DEALER, HOLE)]
            late = _late(players, DEALER, round_.placed)
            return {"missed": "first", "left_out": DEALER, "order": late}
        case "second":
            if HOLE not in round_.order or HOLE in round_.left_out:
                return _told_already("the dealer's second card")
            if state.phase not in (Phase.HOLE_CARD, Phase.PLAYING):
                why = "the dealer's second card is not due yet: finish the players' cards first"
                return Refusal("not_skipped", why, "13:69F-2.15(e)")
            if rules.by_eye:
                return {"missed": "second", "left_out": HOLE}
            left = _without_last(round_.order, HOLE)
            return {"missed": "second", "left_out": HOLE, "order": left, "owed": True}
    raise ValueError("card=first or card=second is missing: which of the dealer's cards was not dealt")


def _judge_box_skipped(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    round_ = _round(state)
    if wrong := stub.misdeal(rules) or _not_begun(state):
        return wrong
    if "box" not in tap.args:
        raise ValueError("box=NUMBER is missing")
    number, had = args.whole(tap.args, "box"), args.whole(tap.args, "cards")
    place = box(number)
    if number not in round_.boxes:
        return Refusal("no_wager_there", f"there is no wager on {place} in this round")
    if had not in (0, 1):
        raise ValueError("cards=0 or cards=1: how many cards the box got")
    if round_.order.count(place) < 2 or place in round_.left_out:
        return _told_already(f"a card of {place}", "13:69F-2.15(g)")
    told: Data = {"box": place, "had": had, "left_out": place}
    if rules.by_eye and had:
        return {**told}
    if round_.order[-1] != HOLE and not rules.by_eye:
        why = "the dealer's second card was left out before: play on, or a supervisor voids the round"
        return Refusal("dealer_skipped_before", why, "13:69F-2.15(g)", ("void_round reason=misdeal",))
    if had:
        others = _without_last(_without_last(round_.order, HOLE), place)
        return {**told, "order": _late(others, place, round_.placed)}
    order = [other for other in round_.order if other != place]
    if not any(other.startswith("box") for other in order):
        return Refusal("only_box", "no other hand is left to play: the round is void", "13:69F-2.15(g)")
    return {**told, "order": order}


def _reordered(state: TableState, data: Data) -> TableState:
    """The cards lie where they lie: only what the table calls their places changes, and may hide one."""
    round_, unseen = _round(state), dict(state.shoe.unseen)
    if "left_out" in data:
        round_ = replace(round_, left_out=(*round_.left_out, data["left_out"]))
    if "order" not in data:
        return replace(state, round=round_)
    order, cards, index = tuple(data["order"]), [], 0
    for dealt in round_.cards:
        if dealt.to != BURNED:
            place = order[index] if index < len(order) else PLAY
            down = index < len(order) and lies_down(order, index, round_.down)
            index += 1
            if dealt.to != STRAY:
                if down and dealt.seen and dealt.card and not dealt.foreign:
                    unseen[dealt.card] = unseen.get(dealt.card, 0) + 1
                dealt = replace(dealt, to=place, seen=dealt.seen and not down)
        cards.append(dealt)
    owed = round_.owed or data.get("owed", False)
    state = with_shoe(state, unseen=unseen)
    return replace(state, round=replace(round_, cards=tuple(cards), order=order, owed=owed, hands=()))


# --- a card drawn in error (R-32 to R-34) ---


def _judge_drawn_in_error(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if "exposed" not in tap.args:
        raise ValueError("exposed=true or exposed=false is missing")
    exposed, burned = args.flag(tap.args, "exposed"), args.flag(tap.args, "burned")
    if rules.stacks:
        why = "the shoe lets whole stacks out: nobody draws a card of this table"
        return Refusal("deals_in_stacks", why, FACE_UP_CARDS)
    if rules.night and exposed and not burned and state.phase is Phase.PLAYING:
        why = "a card that nobody called for and its player refuses is dead; one that is kept needs no tap"
        again = ("drawn_in_error exposed=true burned=true",)
        return Refusal("card_is_dead", why, "13:47-20.22(e)", again)
    if rules.by_eye and state.phase is Phase.ROUND_BURN:
        why = "no card of this round is dealt yet: the next one is burned in any case"
        return Refusal("no_card_drawn", why, "13:69F-2.15(b)")
    if rules.by_eye:
        return by_eye.drawn_in_error(state, exposed=exposed, burned=burned)
    cards = _round(state).cards
    if not cards:
        return Refusal("no_card_drawn", "no card was drawn in this round", "13:69F-2.15(b)")
    last = cards[-1]
    if burned and state.phase is Phase.PLAYING and (misdeal := stub.misdeal(rules)):
        return misdeal
    if last.to == BURNED:
        return Refusal("burned_already", "the last card drawn was burned", "13:69F-2.15(c)")
    strays = sum(card.to == STRAY and not card.seen for card in cards)
    shown = exposed and not last.seen and last.to == STRAY and strays == 1  # of two, which one is not known
    return {"drawn": last.seq, "exposed": exposed, "burned": burned, "shown": shown}


def _drawn_in_error(state: TableState, data: Data) -> TableState:
    if "taken" in data:
        return by_eye.drawn(state, data)
    round_ = _round(state)
    *others, last = round_.cards
    if data["shown"]:
        state = _less_unseen(state, [last])
        last = replace(last, seen=True)
    if data["burned"]:
        batch = state.shoe.batch
        if batch is not None and not last.foreign and state.batches[batch].at(Place.TABLE):
            moved = state.batches[batch].move(1, Place.TABLE, Place.RACK)
            state = replace(state, batches={**state.batches, batch: moved})
        round_ = hands.burned(round_, last.to)
        last = replace(last, to=BURNED)
    round_ = replace(round_, cards=(*others, last))
    if state.phase is Phase.PLAYING and round_.placed < len(round_.order):
        round_ = replace(round_, order=round_.order[:-1], owed=True)
    return replace(state, round=round_)


def _after_drawn_in_error(draft: Draft, before: TableState) -> None:
    told = draft.facts[0].data
    if draft.rules.by_eye:
        return
    if told["shown"]:
        draft.add("exposed", {"seqs": [told["drawn"]]})
        judge_copies(draft, [_round(draft.state).cards[-1].card])


def judge_copies(draft: Draft, faces: Iterable[str | None]) -> None:
    """The first copy too many, once the card may be seen (law 7)."""
    shoe = draft.state.shoe
    copies = {face: shoe.copies(face) for face in faces if face}
    if shoe.batch is not None and (why := too_many(draft.rules, copies)):
        draft.latch("too_many_copies", why, batch=shoe.batch)


def too_many(rules: TableRules, copies: Mapping[str, int]) -> str | None:
    """Why one of these cards came out more often than a batch holds it: a joker of another game at once."""
    for face, came in copies.items():
        held = rules.decks if face in rules.deck else 0
        if face and came > held:
            return f"copy {held + 1} of one card" if held else "a card that no deck of this game holds"
    return None


# --- the end of a round ---


def shown_at_the_end(round_: Round | None, settled: Data) -> list[Dealt]:
    """The hidden cards that everybody sees once the round is settled.

    The dealer's stay hidden when `unplayed`. In a one-deck game nobody tells which hands were `folded`: all
    of them stay hidden until the deck is collected.
    """
    if round_ is None or settled.get("folded"):
        return []
    hidden = (STRAY, BURNED, *((HOLE,) if settled.get("unplayed") else ()))
    return [card for card in round_.cards if not card.seen and card.to not in hidden]


def settled(state: TableState, data: Data) -> TableState:
    """The round is over, its cards turned up and laid into the rack."""
    state = _less_unseen(continuous.round_over(state), shown_at_the_end(state.round, data))
    return replace(table_to_rack(state), round=None)


def _less_unseen(state: TableState, cards: Iterable[Dealt]) -> TableState:
    """Cards that everybody sees now; one of another batch was never counted among the unseen."""
    unseen = dict(state.shoe.unseen)
    for dealt in cards:
        if dealt.card in unseen and not dealt.foreign:
            unseen[dealt.card] -= 1
    return with_shoe(state, unseen={face: n for face, n in unseen.items() if n > 0})


def not_countable(rules: TableRules, state: TableState, *, void: bool = False) -> Refusal | None:
    """Why a round cannot end yet; one that is `void` may lack a card."""
    if hindered := reader.hinders_the_end(rules, state, void=void):
        return hindered
    if not void and (waits := reader.forgotten(rules, state)):
        return waits
    if not void and (wrong := stub.hands_void(state)):
        return wrong
    if not void and all_void(rules, state):
        why = f"{count_of(state.shoe.face_up, 'were')} found face up in the deal: all hands are void"
        return Refusal("all_hands_void", why, FACE_UP_CARDS, ("void_round reason=face_up",))
    if not void and (missing := multiple_action.hinders_the_end(rules, state)):
        return missing
    if not void and owes_a_card(state):
        why = "the dealer's second card was left out and is not dealt yet"
        return Refusal("card_missing", why, "13:69F-2.15(e)")
    if state.shoe.cut_seen and state.shoe.cut_at is None and state.phase in IN_ROUND:
        return Refusal(
            "where_was_the_cutting_card",
            "say where the cutting card came out: the next cut goes by it",
            "13:69F-2.5(e)",
            ("cutting_card_at box=NUMBER", "cutting_card_at box=dealer"),
        )
    return None


def all_void(rules: TableRules, state: TableState) -> bool:
    """Whether more than one card of a one-deck game was found face up in the deal."""
    return rules.one_deck is not None and state.shoe.face_up > 1


def owes_a_card(state: TableState) -> bool:
    """Whether the dealer's second card, left out before, did not come yet."""
    round_ = state.round
    late = round_ is not None and round_.owed and round_.placed <= len(round_.order)
    return late and not state.uncertain


def _reasons(rules: TableRules) -> tuple[str, ...]:
    """Cards found face up void no round of blackjack."""
    return VOID if rules.one_deck is None else ("face_up", *VOID)


def _may_be_face_up(rules: TableRules, state: TableState) -> bool:
    """Whether a card was told or seen to lie face up; of some shoes nobody is told."""
    return state.shoe.face_up > 0 or not (rules.by_eye or rules.shoe_senses)


def _judge_void(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    reason = args.one_of(tap.args, "reason", _reasons(rules))
    if reason == "face_up" and not _may_be_face_up(rules, state):
        return Refusal("no_card_face_up", "no card was found face up in this deal", FACE_UP_CARDS)
    round_ = _round(state)
    data = {"round": round_.number, "cards": len(round_.cards), "reason": reason}
    return not_countable(rules, state, void=True) or data | by_eye.void(rules, state)


def _void(state: TableState, data: Data) -> TableState:
    """What was hidden stays hidden: nobody turns up the cards of a void round."""
    if state.phase in OUT_OF_SHOE:
        batch = state.batch_in_use.id
        state = with_batch(move_all(state, batch, Place.IN_HAND, Place.RACK), batch, proof=None, cut=False)
    state = by_eye.settled(continuous.round_over(state), data)
    return replace(table_to_rack(state), round=None, dry_in=None)


def _after_void(draft: Draft, before: TableState) -> None:
    """A shoe that died in the round may have let cards out: it ends, and the gauge decides."""
    dry_shoe.no_longer_dry(draft, before)
    shoe = draft.rules.shoe
    if before.phase not in OUT_OF_SHOE and before.silent(shoe):
        draft.latch("events_lost", "the shoe did not answer in the round that is void", device=shoe)


# --- what is expected ---


def examples(rules: TableRules, state: TableState, event: str) -> list[tuple[str, Args]]:
    """When a round is void; what goes wrong otherwise is told when it does."""
    match event:
        case "void_round" if reader.hinders_the_end(rules, state, void=False):
            return [("reason=reader", {"reason": "reader"})]
        case "void_round" if stub.hands_void(state):
            return [("reason=misdeal", {"reason": "misdeal"})]
        case "void_round" if all_void(rules, state):
            return [("reason=face_up", {"reason": "face_up"})]
        case "void_round" if _void_is_called_for(rules, state):
            fit = [r for r in _reasons(rules) if r != "face_up" or _may_be_face_up(rules, state)]
            return [(f"reason={'|'.join(fit)}", {"reason": "other"})]
    return []


def _void_is_called_for(rules: TableRules, state: TableState) -> bool:
    """Whether the round cannot go on as it is."""
    if state.silent(rules.shoe):
        return True
    if rules.one_deck is not None:
        return dry_shoe.dry(state) and state.phase is Phase.DEALING
    no_help = rules.continuous or not dry_shoe.rack(state)
    return dry_shoe.dry(state) and (
        state.phase is Phase.RESHUFFLE_BURN or (state.phase in IN_ROUND and no_help)
    )


def _round(state: TableState) -> Round:
    assert state.round is not None
    return state.round


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {
    "drawn_in_error": (_judge_drawn_in_error, ("exposed", "burned")),
    "dealer_skipped": (_judge_dealer_skipped, ("card",)),
    "box_skipped": (_judge_box_skipped, ("box", "cards")),
    "void_round": (_judge_void, ("reason",)),
    "bart_carter": (by_hand.judge_bart_carter, ()),
}
APPLY: dict[str, Apply] = {
    "drawn_in_error": _drawn_in_error,
    "dealer_skipped": _reordered,
    "box_skipped": _reordered,
    "void_round": _void,
    "bart_carter": by_hand.bart_carter,
}
FOLLOW: dict[str, Callable[[Draft, TableState], None]] = {
    "drawn_in_error": _after_drawn_in_error,
    "void_round": _after_void,
}
