"""The shoe runs out in a round: its rack is shuffled by hand, cut and dealt on (R-35).

At a casino night that is how a deck is dealt out, and nothing is wrong (13:47-20.22(g)6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controller.table import args, by_eye, by_hand, stub
from controller.table.args import Apply, Args, Judge, Judged
from controller.table.cards import count_of
from controller.table.changes import move, move_all, with_batch, with_shoe
from controller.table.draft import Draft
from controller.table.inputs import OperatorEvent, Refusal, Role
from controller.table.phases import IN_ROUND, Phase
from controller.table.profiles import TableRules
from controller.table.round import BURNED, DEALER
from controller.table.state import Closing, Place, TableState
from firmware_bridge.frozen import replace

Data = Mapping[str, Any]


def no_longer_dry(draft: Draft, before: TableState) -> None:
    """The alarm of a shoe that ran out in a round goes with the round, or with cards in the shoe."""
    draft.gone("shoe_dry", batch=before.shoe.batch)


def _judge_by_hand(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    in_round = state.phase in IN_ROUND
    if Role.SUPERVISOR not in tap.roles and not by_hand.usual(rules, in_round=in_round):
        return Refusal("not_allowed", "a supervisor has cards shuffled by hand here", by_hand.CHOICE)
    return _by_hand_in_round(rules, state, tap) if in_round else by_hand.judge(rules, state, tap)


def _by_hand_in_round(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    batch = state.batch_in_use.id
    if tap.args.get("batch", batch) != batch:
        return _same_batch(batch)
    if misdeal := stub.misdeal(rules):
        return misdeal
    if rules.by_eye:
        return by_eye.judge_reshuffle(state, tap.args) | _goes_on(rules, state)
    if not dry(state):
        return Refusal("shoe_not_empty", "the round goes on with the cards in the shoe", "13:69F-2.15(f)")
    cards = _discards(rules, state, tap.args)
    if not cards:
        why = "no card lies in the rack: settle the round if it needs none, or a supervisor voids it"
        return Refusal("rack_empty", why, "13:69F-2.15(f)")
    ended = {"ended": cards - rack(state)} if cards > rack(state) else {}
    out = _foreign_in_rack(state)
    return {"batch": batch, "cards": cards, "take_out": out, **ended, **_goes_on(rules, state)}


def _discards(rules: TableRules, state: TableState, given: Args) -> int:
    """How many cards are shuffled: the rack's, which the shoe counted.

    At a casino night hands that are over lie among the discards already (13:47-20.22(g)9, (g)10ii): then the
    dealer counts them.
    """
    counted = rack(state)
    if "cards" not in given:
        return counted
    if not rules.night:
        raise ValueError("the shoe counted the cards of the rack: leave cards out")
    cards, most = args.whole(given, "cards"), counted + _laid(state)
    if not counted <= cards <= most:
        raise ValueError(f"cards is how many discards were shuffled, {counted} to {most}")
    return cards


def _laid(state: TableState) -> int:
    return state.batch_in_use.at(Place.TABLE)


def _goes_on(rules: TableRules, state: TableState) -> dict[str, bool]:
    """At a casino night the deal goes on with these cards, also after the round (13:47-20.22(g)6).

    A batch that is out of play finishes the round, and so does one of which a card never came: then the
    rack is gauged.
    """
    held = state.batch_in_use
    whole = rules.by_eye or not held.at(Place.SHOE)
    return {"goes_on": True} if rules.night and whole and not held.unfit else {}


def _foreign_in_rack(state: TableState) -> int:
    """How many cards of another batch, which are counted nowhere, lie in the rack."""
    lying = (*(state.round.cards if state.round else ()), *state.shoe.early)
    return state.shoe.foreign - sum(dealt.foreign and dealt.to != BURNED for dealt in lying)


def _by_hand(state: TableState, data: Data) -> TableState:
    after = by_hand.shuffled(state, data)
    if state.phase not in IN_ROUND:
        return after
    if "laid" in data:
        after = by_eye.reshuffled(after, data)
    after = move(after, data["batch"], data.get("ended", 0), Place.TABLE, Place.IN_HAND)
    closing = state.shoe.closing if data.get("goes_on") else Closing.THIS_ROUND
    return replace(with_shoe(after, empty=True, closing=closing), dry_in=state.phase)


def dry(state: TableState) -> bool:
    """Whether the shoe has no card left, by its own word or because all came out."""
    return state.shoe.empty or not state.batch_in_use.at(Place.SHOE)


def cut_range(rules: TableRules, state: TableState) -> tuple[int, int]:
    """Between which numbers of cards the shuffled rack is cut: few cards may leave less on either side."""
    cards = state.batch_in_use.at(Place.IN_HAND)
    least = min(rules.least_cut, cards // 2)
    return least, cards - least


def judge_cut(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    """The cut of the shuffled rack; it is offered to nobody."""
    position, (least, most) = args.whole(tap.args, "position"), cut_range(rules, state)
    if not least <= position <= most:
        return Refusal(
            "cut_too_near_the_end",
            f"the cut at {position} leaves fewer than {count_of(least)} on one side: cut again",
            "13:69F-2.5(c)",
            (f"cut position={least}..{most}",),
        )
    return {"batch": state.batch_in_use.id, "by": DEALER, "position": position}


def judge_load(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    """The shuffled rack goes back into the shoe it came from: no swap, and no other batch is concerned."""
    batch = state.batch_in_use.id
    if args.batch(rules, tap.args) != batch:
        return _same_batch(batch)
    if state.silent(rules.shoe):
        return Refusal("device_absent", "the shoe does not answer: check its cable and power")
    return {"batch": batch, "cards": state.batches[batch].at(Place.IN_HAND)}


def loaded_again(state: TableState, data: Data) -> TableState:
    """The same shoe goes on. Its own counter begins anew, for it was empty: what lies outside was before."""
    batch: str = data["batch"]
    state = move_all(state, batch, Place.IN_HAND, Place.SHOE)
    state = by_hand.back_in_shoe(with_batch(state, batch, proof=None, cut=False))
    outside = state.batches[batch].at(Place.TABLE) + state.batches[batch].at(Place.ASIDE)
    if state.shoe.count > outside:  # cards of hands that are over went in too: nobody knows which
        state = with_shoe(state, drawn={"": outside} if outside else {}, unseen={})
    shoe, burns = state.shoe, data["moves"][1] == Phase.RESHUFFLE_BURN
    state = with_shoe(state, empty=False, loading=True, returned=-(shoe.count + shoe.foreign))
    return replace(state, dry_in=state.dry_in if burns else None)


def _after_load_shoe(draft: Draft, before: TableState) -> None:
    if before.phase is Phase.RESHUFFLE_LOAD:
        no_longer_dry(draft, before)


def _same_batch(batch: str) -> Refusal:
    why = f"only cards of batch {batch}, whose round is in play, are shuffled and dealt"
    return Refusal("other_batch", why, "13:69F-2.15(f)")


def rack(state: TableState) -> int:
    """Cards of this shoe that lie in the rack."""
    return state.batch_in_use.at(Place.RACK)


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {"reshuffle_by_hand": (_judge_by_hand, ("batch", "cards"))}
APPLY: dict[str, Apply] = {"reshuffle_by_hand": _by_hand}
FOLLOW: dict[str, Callable[[Draft, TableState], None]] = {
    **dict.fromkeys(("load_shoe", "take_in_hand"), _after_load_shoe)
}


def examples(rules: TableRules, state: TableState, event: str) -> list[tuple[str, Args]]:
    """How its taps are written."""
    if event == "cut":
        least, most = cut_range(rules, state)
        return [(f"position={least}..{most}", {"position": least})]
    if not rules.by_eye:
        least, most = rack(state), rack(state) + _laid(state)
        return [(f"cards={least}..{most}", {"cards": least})]
    begun = state.phase is not Phase.ROUND_BURN  # no card of this round has come before
    return [("cards=N", {"cards": 1})] if begun or by_eye.all_out(state) else []
