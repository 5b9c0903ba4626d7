"""From the rack to the shoe: a batch is shuffled, taken out, cut and loaded (13:69F-2.2(d), 2.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from controller.table import args, by_hand, continuous, dry_shoe, opening, out_of_service
from controller.table.args import Apply, Args, Judge, Judged
from controller.table.cards import count_of
from controller.table.changes import move, with_batch, with_shuffler
from controller.table.draft import Draft, no_cut
from controller.table.faults import FAULTS
from controller.table.inputs import OperatorEvent, Refusal, Role
from controller.table.phases import SHOE_IN_USE, Phase
from controller.table.profiles import TableRules
from controller.table.round import DEALER, SUPERVISOR, cutters
from controller.table.state import Cycle, Place, Shoe, Shuffled, TableState
from firmware_bridge.frozen import replace

ROUND_CUT = "13:69F-14.5(a)-(b)"
"""One deck a round: the dealer lifts at least ten cards off and lays the rest upon them (R-56)."""

# --- the shuffler ---


def _judge_load_shuffler(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    batch = args.batch(rules, tap.args)
    held = state.batches[batch]
    inside = state.batch_at(Place.SHUFFLER)
    if out := out_of_service.unusable(rules, state) or continuous.in_use(rules, state):
        return out
    if inside is not None:
        return Refusal("shuffler_not_empty", f"batch {inside} is in the shuffler", "13:69F-2.2(d)3")
    if state.shuffler.surplus not in (0, rules.batch_size):  # a whole batch was put in before it was told
        why = f"{count_of(state.shuffler.surplus, 'are')} in the shuffler: take them out"
        return Refusal("shuffler_not_empty", why, "13:69F-2.2(d)3")
    if held.unfit:
        return Refusal("batch_unfit", f"batch {batch} is out of play: {FAULTS[held.unfit].text}")
    unprepared = opening.not_prepared(held)
    if unprepared is not None:
        return unprepared
    if _waits_for_cut(rules, state, batch):
        instead = "" if rules.alone else "; load the other batch"
        return Refusal("batch_is_shuffled", f"batch {batch} is shuffled and waits for its cut{instead}")
    if _out_of_turn(rules, state, batch):
        return _alternation(batch)
    outside = held.at(Place.IN_HAND) + held.at(Place.RACK)
    if state.shoe.batch == batch or outside != rules.batch_size:
        return Refusal(
            "batch_not_whole",
            f"only {outside} of {rules.batch_size} cards of batch {batch} are in hand or in the rack",
            "13:69F-2.2(d)",
        )
    return {"batch": batch}


def _waits_for_cut(rules: TableRules, state: TableState, batch: str) -> bool:
    """Whether a shuffled batch is the one to be cut next: loading it would waste its shuffle.

    Of two shuffled batches in hand either may be stored, but the one whose turn it is only when a patron
    demands its shuffle (R-07, R-49). While a shoe is played, a certified batch may be stored and shuffled.
    """
    held, other = state.batches[batch], state.batches.get(rules.other(batch) or "")
    if held.proof is None or (state.phase in SHOE_IN_USE and held.proof.how is Shuffled.CERTIFICATE):
        return False
    if rules.continuous:
        return False  # nothing is cut: it is shuffled in any case
    return not (other and other.proof and other.at(Place.IN_HAND) and other.id != state.shoe.last_batch)


def _out_of_turn(rules: TableRules, state: TableState, batch: str) -> bool:
    """Whether loading this batch would make it the next one in the shoe, where it was last (R-07)."""
    first = state.phase in (Phase.OPENING, Phase.RACK_FULL) and state.taken in (None, batch)
    return first and not rules.alone and batch == state.shoe.last_batch


def _judge_start_shuffle(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    shuffler = state.shuffler
    if out := out_of_service.unusable(rules, state):
        return out
    if shuffler.batch is None:
        return Refusal("shuffler_empty", "no batch was loaded into the shuffler")
    if shuffler.stage is not Cycle.NONE:
        return Refusal("shuffler_busy", f"the cycle on batch {shuffler.batch} is {shuffler.stage.value}")
    held = state.batches[shuffler.batch]
    if held.unfit:
        return Refusal("batch_unfit", f"batch {held.id} is out of play: {FAULTS[held.unfit].text}")
    if held.at(Place.SHUFFLER) != rules.batch_size:
        return Refusal(
            "batch_not_whole",
            f"only {held.at(Place.SHUFFLER)} of {rules.batch_size} cards of batch {held.id} are inside: "
            "take them out and load the whole batch",
            "13:69F-2.2(d)",
        )
    if state.silent(rules.shuffler):
        return Refusal("device_absent", "the shuffler does not answer: check its cable and power")
    if asked := [p.name for p in state.pending.values() if p.device == rules.shuffler]:
        return Refusal("shuffler_busy", f"the shuffler has not answered yet: {asked[0]}")
    token = sha256(f"{rules.table}/{state.boot}/{shuffler.shuffles + 1}".encode()).digest()[:16].hex()
    return {"batch": held.id, "token": token}


def _judge_take(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    batch = state.shuffler.batch
    proof = None if batch is None else state.batches[batch].proof
    token = proof.token if proof else None
    if out := out_of_service.unusable(rules, state):
        return out
    if batch is not None and state.unfit_inside:
        if state.shuffler.stage in (Cycle.CHECKING, Cycle.STARTING, Cycle.RUNNING):
            return Refusal("shuffler_busy", f"the cycle on batch {batch} is {state.shuffler.stage.value}")
        token = state.shuffler.token  # the machine's own cycle may be over, whatever is wrong with the cards
    if batch is None or token is None:
        return Refusal(
            "not_shuffled",
            f"batch {batch} has no completed shuffle" if batch else "no batch is in the shuffler",
            "13:69F-2.2(d)3",
        )
    if state.silent(rules.shuffler):
        return Refusal("device_absent", "the shuffler does not answer: check its cable and power")
    if any(p.name == "release" for p in state.pending.values()):
        return Refusal("shuffler_busy", "the shuffler is letting the batch out")
    return {"batch": batch, "token": token}


def _alternation(batch: str) -> Refusal:
    return Refusal(
        "same_batch_twice",
        f"batch {batch} was in the last shoe: the batches alternate shoe by shoe",
        "13:69F-2.2(d)4",
    )


def _load_shuffler(state: TableState, data: Mapping[str, Any]) -> TableState:
    batch: str = data["batch"]
    for place in (Place.RACK, Place.IN_HAND):
        state = move(state, batch, state.batches[batch].at(place), place, Place.SHUFFLER)
    state = with_batch(state, batch, proof=None, cut=False)
    surplus = max(0, state.shuffler.surplus - state.batches[batch].at(Place.SHUFFLER))
    return with_shuffler(state, batch=batch, stage=Cycle.NONE, token=None, surplus=surplus)


def _start_shuffle(state: TableState, data: Mapping[str, Any]) -> TableState:
    shuffler = state.shuffler
    return with_shuffler(
        state,
        stage=Cycle.CHECKING,
        token=data["token"],
        shuffles=shuffler.shuffles + 1,
        started_us=None,
    )


def _after_start_shuffle(draft: Draft, before: TableState) -> None:
    draft.ask_shuffler("settings")


def _after_take(draft: Draft, before: TableState) -> None:
    draft.ask_shuffler("release", {"token": draft.facts[0].data["token"]})


# --- the cut ---


def cut_order(rules: TableRules, state: TableState) -> tuple[str, ...]:
    """Who is offered the cut now, first to last (R-17)."""
    return cutters(
        new_game=state.shoe.number == 0,
        boxes=rules.boxes,
        appeared_at=state.shoe.cut_at,
        last_boxes=state.last_boxes,
        last_cutter=rules.last_cutter,
    )


def _judge_offer_cut(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if rules.per_round:
        why = "the dealer cuts the deck of each round; it is offered to nobody"
        return Refusal("dealer_cuts", why, ROUND_CUT, ("cut position=N",))
    if "box" not in tap.args:
        raise ValueError("box=NUMBER or box=dealer is missing")
    last = rules.last_cutter
    seat = last if tap.args["box"] == last else args.seat(rules, tap.args["box"])
    refused = args.flag(tap.args, "refused")
    open_to = [s for s in cut_order(rules, state) if s not in state.declined]
    anyone = rules.night or (not state.last_boxes and (seat != last or bool(state.declined)))
    if state.cutter is not None:
        return Refusal("already_accepted", f"{state.cutter} took the cut", expected=("cut position=N",))
    stranger = seat in state.declined or (seat not in open_to and not rules.night)
    if stranger or (seat != open_to[0] and not anyone):
        return Refusal(
            "wrong_cutter",
            f"the cut goes to {open_to[0]}",
            "13:69F-2.5(e)",
            (f"offer_cut box={open_to[0].removeprefix('box ')}",),
        )
    if refused and seat == last:
        return Refusal(f"{last}_cuts", f"when nobody accepts, the {last} cuts", "13:69F-2.5(f)")
    if seat == SUPERVISOR and Role.SUPERVISOR not in tap.roles:
        return Refusal("not_allowed", "a supervisor takes this cut", "13:69F-2.5(f)")
    return {"to": seat, "refused": refused}


def _judge_cut(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if state.phase is Phase.RESHUFFLE_CUT:
        return dry_shoe.judge_cut(rules, state, tap)
    position, size, least = args.whole(tap.args, "position"), rules.batch_size, rules.least_cut
    if state.cutter is None and not (rules.per_round or rules.night):
        offer = next(s for s in cut_order(rules, state) if s not in state.declined)
        return Refusal(
            "nobody_cuts",
            "offer the cut first",
            "13:69F-2.5(e)",
            (f"offer_cut box={offer.removeprefix('box ')}",),
        )
    if not least <= position <= size - least:
        return Refusal(
            "cut_too_near_the_end",
            f"the cut at {position} leaves fewer than {count_of(least)} on one side: cut again",
            ROUND_CUT if rules.per_round else "13:69F-2.5(c)",
            (f"cut position={least}..{size - least}",),
        )
    batch = state.taken
    if batch is None:
        return Refusal("not_shuffled", "no shuffled batch is in hand", "13:69F-2.5(a)")
    return {"batch": batch, "by": state.cutter or DEALER, "position": position}


def _judge_recut(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if state.taken is None:
        return Refusal("not_shuffled", "no shuffled batch is in hand", "13:69F-2.5(a)")
    return {"batch": state.taken}


def _judge_insert(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    behind, size = args.whole(tap.args, "position"), rules.batch_size
    least, most = rules.least_behind_cutting_card, size - 1
    if not least <= behind <= most:
        return Refusal(
            "cutting_card_misplaced",
            f"{least} to {most} of {size} cards lie behind the cutting card, not {behind}",
            "13:69F-2.5(d)",
            (f"insert_cutting_card position={least}..{most}",),
        )
    batch = state.taken
    if rules.hand_dealt:
        return {"position": behind, "cutting_cards": rules.cutting_cards}
    if not rules.double_shoe or batch is None:
        return {"position": behind}
    return {"position": behind, "batch": batch, "cutting_card": rules.batch(batch).cutting_card}


def _offer_cut(state: TableState, data: Mapping[str, Any]) -> TableState:
    if data["refused"]:
        return replace(state, declined=(*state.declined, data["to"]))
    return replace(state, cutter=data["to"])


def _cut(state: TableState, data: Mapping[str, Any]) -> TableState:
    return with_batch(state, data["batch"], cut=True)


def _recut(state: TableState, data: Mapping[str, Any]) -> TableState:
    return replace(with_batch(state, data["batch"], cut=False), cutter=None, declined=())


def examples(rules: TableRules, state: TableState, event: str) -> list[tuple[str, Args]]:
    """How a tap that is called for is written."""
    size, least = rules.batch_size, rules.least_cut
    if event == "offer_cut":
        seat = next(s for s in cut_order(rules, state) if s not in state.declined).removeprefix("box ")
        return [(f"box={seat}", {"box": seat})]
    if event == "cut":
        return [(f"position={least}..{size - least}", {"position": least})]
    behind = rules.least_behind_cutting_card
    return [(f"position={behind}..{size - 1}", {"position": behind})]


# --- into the shoe, or into the hand ---


def _with_batch(rules: TableRules, event: str, tap: OperatorEvent) -> tuple[str, ...]:
    """The tap that is meant, with the batch that was named."""
    named = [b.id for b in rules.batches if b.id == tap.args.get("batch")]
    return tuple(f"{event} batch={batch}" for batch in named or [b.id for b in rules.batches])


def _judge_take_in_hand(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if not rules.by_eye:
        why = "the cards of this table come from its shoe"
        return Refusal("not_from_hand", why, "13:69F-2.6(a)", _with_batch(rules, "load_shoe", tap))
    return _judge_load(rules, state, tap)


def _judge_load_shoe(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if rules.by_eye:
        why = "no shoe of this table tells its cards"
        return Refusal("no_shoe", why, "13:69F-2.6A(b)", _with_batch(rules, "take_in_hand", tap))
    return _judge_load(rules, state, tap)


def _judge_load(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if state.phase is Phase.RESHUFFLE_LOAD:
        return dry_shoe.judge_load(rules, state, tap)
    batch = args.batch(rules, tap.args)
    held, other = state.batches[batch], state.batches.get(rules.other(batch) or "")
    again = by_hand.again(rules, state, held)
    if batch == state.shoe.last_batch and not (again or state.manual or rules.alone):
        return _alternation(batch)
    if held.at(Place.IN_HAND) != rules.batch_size:
        return Refusal("batch_not_in_hand", f"batch {batch} is not in hand")
    if other is not None and (missing := other.at(Place.SHOE)):
        why = f"{count_of(missing)} of batch {other.id} never came out of the shoe: replace that batch first"
        return Refusal("shoe_not_empty", why, "13:69F-2.2(d)5", (f"replace_batch batch={other.id}",))
    if held.unfit:
        return Refusal("batch_unfit", f"batch {batch} is out of play: {FAULTS[held.unfit].text}")
    if held.proof is None:
        return Refusal("not_shuffled", f"batch {batch} has no completed shuffle", "13:69F-2.5(a)")
    if not held.cut and not no_cut(rules, state):
        return Refusal("not_cut", f"batch {batch} was not cut", "13:69F-2.5(c)")
    running = state.shuffler.stage in (Cycle.RUNNING, Cycle.PROVED)
    if (
        other is not None
        and not state.manual
        and (other.at(Place.SHUFFLER) != rules.batch_size or not running)
    ):
        return Refusal(
            "other_batch_not_stored",
            f"batch {other.id} must be shuffled and stored in the shuffler meanwhile",
            "13:69F-2.2(d)3",
        )
    if state.silent(rules.shoe):
        return Refusal("device_absent", "the shoe does not answer: check its cable and power")
    return {"batch": batch, "token": held.proof.token, "again": again}


def _load_shoe(state: TableState, data: Mapping[str, Any]) -> TableState:
    if state.phase is Phase.RESHUFFLE_LOAD:
        return dry_shoe.loaded_again(state, data)
    batch: str = data["batch"]
    state = move(state, batch, state.batches[batch].at(Place.IN_HAND), Place.IN_HAND, Place.SHOE)
    state = with_batch(state, batch, proof=None, cut=False)
    shoe = Shoe(
        batch=batch,
        last_batch=batch,
        number=state.shoe.number + (0 if data.get("again") else 1),
        first_fact=state.seq,
        empty=False,
        loading=True,
    )
    return replace(state, shoe=shoe, cutter=None, declined=(), last_boxes=())


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {
    "load_shuffler": (_judge_load_shuffler, ("batch",)),
    "start_shuffle": (_judge_start_shuffle, ()),
    "take_from_shuffler": (_judge_take, ()),
    "offer_cut": (_judge_offer_cut, ("box", "refused")),
    "cut": (_judge_cut, ("position",)),
    "recut": (_judge_recut, ()),
    "insert_cutting_card": (_judge_insert, ("position",)),
    "load_shoe": (_judge_load_shoe, ("batch",)),
    "take_in_hand": (_judge_take_in_hand, ("batch",)),
}
APPLY: dict[str, Apply] = {
    "load_shuffler": _load_shuffler,
    "start_shuffle": _start_shuffle,
    "take_from_shuffler": lambda state, data: with_shuffler(state, letting_out=True),
    "offer_cut": _offer_cut,
    "cut": _cut,
    "recut": _recut,
    "load_shoe": _load_shoe,
    "take_in_hand": _load_shoe,
}
FOLLOW: dict[str, Callable[[Draft, TableState], None]] = {
    "start_shuffle": _after_start_shuffle,
    "take_from_shuffler": _after_take,
}
