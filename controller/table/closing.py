"""Idle tables and closing: batches are counted, devices seen empty (R-19, R-21, S8, S10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from controller.table import args, by_eye, continuous
from controller.table.args import Apply, Args, Judge, Judged
from controller.table.by_hand import NIGHT_DISCARDS
from controller.table.cards import count_of
from controller.table.changes import move, move_all, with_batch, with_shoe, with_shuffler
from controller.table.draft import Draft
from controller.table.faults import Blocks
from controller.table.inputs import OperatorEvent, Refusal, Role
from controller.table.phases import IN_ROUND, Phase
from controller.table.profiles import TableRules
from controller.table.state import Closing, Ending, Place, TableState
from devices.events import Sense
from firmware_bridge.frozen import replace
from firmware_bridge.link import Done, Outcome

OUT_OF_USE = "La. 42:III-3106"
IDLE_TABLE = "58 Pa. Code 633a.5(g)"
DECK_LOG = "13:69E-1.18(b)"
ENDS = (Phase.BETWEEN_ROUNDS, Phase.RACK_FULL, Phase.IDLE, Phase.CLOSING)
"""Where it is usual to end the play; elsewhere it is possible, and not told among what is expected."""


# --- nobody plays (S8) ---


def _judge_idle(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    """Not while the stored batch is on its way out: what follows is decided with it in hand."""
    if rests := discards_rest(rules, state):
        return rests
    if state.shuffler.letting_out:
        return Refusal("shuffler_busy", "the shuffler is letting the batch out", "13:69F-2.2(d)3")
    return {}


def discards_rest(rules: TableRules, state: TableState) -> Refusal | None:
    """Why nobody ends the shoe or deck of a casino night: cards are left, and nothing is wrong with them."""
    if not rules.night or state.shoe.batch is None:
        return None
    broken = state.batch_in_use.unfit or any(f.blocks in (Blocks.NOW, Blocks.ROUND) for f in state.faults)
    if broken or (state.phase not in IN_ROUND and by_eye.all_out(state)):
        return None
    why = "discards rest until every card of the shoe or deck is dealt"
    return Refusal("shoe_not_empty", why, NIGHT_DISCARDS)


def _idle(state: TableState, data: Mapping[str, Any]) -> TableState:
    return _ends(state, Ending.IDLE)


def _ends(state: TableState, ending: Ending) -> TableState:
    """The shoe in use, if there is one, ends now; what follows comes once its cards are collected."""
    if state.shoe.batch is None:
        return state
    return replace(with_shoe(state, closing=Closing.THIS_ROUND), ending=ending)


def _judge_resume(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    stacked = state.batch_at(Place.RACK)
    if stacked is not None and not rules.night:
        return Refusal(
            "not_spread",
            f"batch {stacked} lies in the rack: the cards of an idle table are spread out",
            IDLE_TABLE,
            (f"spread batch={stacked}",),
        )
    return {}


def _resume(state: TableState, data: Mapping[str, Any]) -> TableState:
    """The first player to arrive cuts, as in a new game (R-17)."""
    return replace(with_shoe(state, cut_at=None), last_boxes=())


# --- closing (S10) ---


def _judge_close(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if state.phase is Phase.CLOSING:
        return _judge_closed(rules, state, tap)
    if state.ending is Ending.CLOSE:
        return Refusal("already_ending", "the table closes once the cards are collected", DECK_LOG)
    return {}


def _judge_closed(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if Role.SUPERVISOR not in tap.roles:
        return Refusal("not_allowed", "a supervisor closes the table", DECK_LOG)
    inside = state.batch_at(Place.SHUFFLER)
    if inside is not None or state.shuffler.surplus:
        return Refusal("shuffler_not_empty", "cards are in the shuffler: take them out", OUT_OF_USE)
    uncounted = tuple(b.id for b in state.batches.values() if b.counted is None)
    if uncounted:
        return Refusal(
            "not_counted",
            f"count batch {' and '.join(uncounted)}",
            DECK_LOG,
            tuple(f"count_batch batch={batch} cards={rules.batch_size}" for batch in uncounted),
        )
    if silence := not_answered(state, rules.devices):
        return silence
    unsure = tuple(device for device in rules.devices if device not in state.empty)
    if unsure:
        return Refusal(
            "not_confirmed_empty",
            f"see that no card is left in the {' and the '.join(unsure)}",
            OUT_OF_USE,
            tuple(f"confirm_empty device={device}" for device in unsure),
        )
    return {"removed": [b.id for b in state.batches.values() if b.unfit]}


def _close(state: TableState, data: Mapping[str, Any]) -> TableState:
    if state.phase is Phase.CLOSING:
        batches = {b.id: replace(b, cards={}, proof=None, cut=False) for b in state.batches.values()}
        return replace(state, batches=batches)
    return begin_closing(state) if state.shoe.batch is None else _ends(state, Ending.CLOSE)


def begin_closing(state: TableState) -> TableState:
    """What was shuffled and is in hand leaves the table."""
    batches = {
        b.id: replace(b, proof=b.proof if b.at(Place.SHUFFLER) else None, cut=False, counted=None)
        for b in state.batches.values()
    }
    return replace(state, batches=batches, ending=Ending.SWAP, cutter=None, declined=())


def _after_close(draft: Draft, before: TableState) -> None:
    """The log of decks, one line a batch (R-45): hours on the table, and what is missing."""
    if before.phase is not Phase.CLOSING:
        return
    for batch in before.batches.values():
        hours = None if batch.received is None else max(0, before.hour - batch.received)
        draft.add(
            "deck_log",
            {
                "batch": batch.id,
                "back": batch.back,
                "received": batch.received,
                "hours": hours,
                "cards": batch.counted,
                "missing": list(batch.missing),
                "unfit": batch.unfit,
            },
        )


def _judge_count(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    batch, cards = args.batch(rules, tap.args), args.whole(tap.args, "cards")
    held, size = state.batches[batch], rules.batch_size
    if not 0 <= cards <= 2 * size:
        raise ValueError(f"cards is a number from 0 to {2 * size}")
    away = held.at(Place.SHUFFLER) or state.shuffler.surplus
    if away:
        why = f"{count_of(away, 'are')} in the shuffler: take them out before batch {batch} is counted"
        return Refusal("batch_not_in_hand", why, DECK_LOG)
    suspected = any((f.code, f.batch) == ("cards_inside", batch) for f in state.faults)
    silent = state.shuffler.out and state.silent(rules.shuffler)
    search = silent and state.shuffler.batch is None and cards < size and not suspected
    return {"batch": batch, "cards": cards, "inside": size - cards if search else 0, "device": rules.shuffler}


def _count(state: TableState, data: Mapping[str, Any]) -> TableState:
    """Cards that lack may be in a machine that is out of service and silent: until it was searched, they are.

    A machine that answers is believed (INC-6).
    Cards that never came out of the shoe are where the count says: here, or nowhere.
    """
    batch: str = data["batch"]
    for place in (Place.RACK, Place.TABLE, Place.ASIDE, Place.SHOE):
        state = move_all(state, batch, place, Place.IN_HAND)
    if not data["inside"]:
        return with_batch(state, batch, counted=data["cards"])
    state = with_batch(move(state, batch, data["inside"], Place.IN_HAND, Place.SHUFFLER), batch, counted=None)
    return not_confirmed(with_shuffler(state, batch=batch), data["device"])


def _after_count(draft: Draft, before: TableState) -> None:
    tap, size = draft.facts[0].data, draft.rules.batch_size
    batch, cards = tap["batch"], tap["cards"]
    if tap["inside"]:
        cause = f"{cards} of {size} cards of batch {batch}: look for the others in the shuffler"
        draft.latch("cards_inside", cause, batch=batch)
    elif cards != size:
        draft.latch("wrong_count", f"{count_of(cards)} instead of {size} at the closing", batch=batch)


# --- a device is empty ---


def _judge_confirm(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    device = args.device(rules, tap.args)
    data = {"device": device, "batch": None, "moved": 0, "inside": 0, "by": [tap.who]}
    if hindered := continuous.deals(rules, state):
        return hindered
    if device == rules.shuffler:
        lifted = _cards_out(rules, state, tap)
        if isinstance(lifted, Refusal):
            return lifted
        data |= lifted
    elif state.phase is not Phase.CLOSING:
        why = f"the {device} is looked into when the table closes"
        return Refusal("unexpected", why, DECK_LOG)
    elif "cards" in tap.args:
        raise ValueError(f"cards are taken out of the {rules.shuffler} alone")
    if device in state.empty and not data["moved"]:
        return Refusal("already_known", f"the {device} was confirmed empty")
    if silence := not_answered(state, (device,)):
        return silence
    first = state.first_to_look.get(device)
    if data["inside"]:
        return {**data, "confirmed": False}
    if _tells(rules, state, device):
        return _ask_too(data, tap, first)
    if _proves(rules, state, device) or tap.roles >= frozenset(Role):
        return {**data, "confirmed": True}
    if first is None:
        return {**data, "confirmed": False}
    if not args.other_person(tap, first):
        return Refusal("second_person", f"{first} looked already: somebody else must look too", OUT_OF_USE)
    return {**data, "confirmed": True, "by": [first, tap.who]}


def not_answered(state: TableState, devices: Iterable[str]) -> Refusal | None:
    """Why nobody may rely on these devices being empty: one of them was asked and did not answer yet."""
    for pending in state.pending.values():
        if pending.device in devices:
            why = f"the {pending.device} has not answered yet: {pending.name}"
            return Refusal("not_answered", why, OUT_OF_USE)
    return None


def _tells(rules: TableRules, state: TableState, device: str) -> bool:
    """Whether the device answers what it holds: it is asked, whoever looked into it."""
    asked = device == rules.shuffler or (device == rules.shoe and rules.shoe_answers)
    return asked and state.device(device).up


def _ask_too(data: Mapping[str, Any], tap: OperatorEvent, first: str | None) -> Judged:
    """Its word stands for the second person. Without an answer that person looks, and it is asked again."""
    if first is None or not args.other_person(tap, first):
        return {**data, "confirmed": False, "asked": True}
    return {**data, "confirmed": True, "asked": True, "by": [first, tap.who]}


def _proves(rules: TableRules, state: TableState, device: str) -> bool:
    """Whether a shoe that cannot be asked told by itself that it is empty; otherwise two people look."""
    told = Sense.EMPTY in rules.shoe_senses and state.shoe.told_empty
    return device == rules.shoe and told and state.device(device).up


def _cards_out(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    """What comes out of the shuffler by hand: `cards` of the batch that is known to be in it."""
    if state.phase is not Phase.CLOSING and not state.shuffler.out:
        return Refusal("unexpected", "the shuffler is in service", OUT_OF_USE)
    batch, up = state.shuffler.batch, not state.silent(rules.shuffler)
    inside = 0 if batch is None else state.batches[batch].at(Place.SHUFFLER)
    if up and (inside or state.shuffler.surplus):
        why = f"the shuffler still holds {count_of(inside or state.shuffler.surplus)}: take them out"
        return Refusal("shuffler_not_empty", why, OUT_OF_USE)
    if batch is None:
        if "cards" in tap.args:
            raise ValueError("no card is known to be inside: leave cards out")
        return {"surplus": 0}
    out = args.whole(tap.args, "cards")
    if not 0 <= out <= 2 * rules.batch_size:
        raise ValueError(f"cards is a number from 0 to {2 * rules.batch_size}")
    searched = any((f.code, f.batch) == ("cards_inside", batch) for f in state.faults)
    moved = inside if searched else min(out, inside)
    return {"batch": batch, "cards": out, "moved": moved, "inside": inside - moved, "wrong": out - moved}


def _confirm(state: TableState, data: Mapping[str, Any]) -> TableState:
    device, looked = data["device"], dict(state.first_to_look)
    looked.pop(device, None)
    if data["confirmed"] and "surplus" in data:
        state = with_shuffler(state, surplus=0)
    if data["confirmed"]:
        return replace(state, empty=(*state.empty, device), first_to_look=looked)
    if not data["inside"]:
        looked[device] = data["by"][0]
    return replace(state, first_to_look=looked, empty=tuple(d for d in state.empty if d != device))


def _after_confirm(draft: Draft, before: TableState) -> None:
    tap = draft.facts[0].data
    batch, wrong = tap["batch"], tap.get("wrong", 0)
    if tap.get("asked"):
        draft.command(tap["device"], "status")
    if batch is None:
        return
    if tap["moved"]:
        moves = {} if tap["inside"] else draft.moves("lifted_out")
        lifted = {"batch": batch, "moved": tap["moved"], "inside": tap["inside"], "proved": False}
        draft.add("batch_lifted", {**lifted, **moves})
    if tap["inside"]:
        cause = f"{count_of(tap['cards'])} came out, {tap['inside']} of batch {batch} stayed inside"
        draft.latch("cards_inside", cause, batch=batch)
    if wrong:
        came = f"{count_of(tap['cards'])} came out of the shuffler instead of {tap['moved']}"
        draft.latch("wrong_count", came, batch=batch)


def command_ended(draft: Draft, device: str, name: str, outcome: Outcome) -> None:
    """A device that somebody looked into says whether it is empty; cards in a shuffler are counted there."""
    if name != "status" or not isinstance(outcome, Done):
        return
    known = {*draft.state.empty, *draft.state.first_to_look}
    empty, inside = outcome.answer.get("empty"), outcome.answer.get("inside")
    if device == draft.rules.shuffler:
        empty = inside == 0 if isinstance(inside, int) else None
    if device in known and isinstance(empty, bool):
        told = {"device": device, "empty": empty, "shoe": device == draft.rules.shoe}
        draft.add("looked_into", told)


def _looked_into(state: TableState, data: Mapping[str, Any]) -> TableState:
    device: str = data["device"]
    state = not_confirmed(state, device)
    if data["shoe"]:
        state = with_shoe(state, told_empty=data["empty"])
    return replace(state, empty=(*state.empty, device)) if data["empty"] else state


def shoe_is_not_empty(rules: TableRules, state: TableState) -> bool:
    """Whether the table cannot close yet because the shoe has not said that it is empty."""
    waits = state.phase is Phase.CLOSING and rules.shoe_answers and rules.shoe not in state.empty
    return waits and not state.silent(rules.shoe) and not state.shoe.told_empty


def not_confirmed(state: TableState, device: str) -> TableState:
    """Whoever looked into the device must look again."""
    looked = {d: who for d, who in state.first_to_look.items() if d != device}
    return replace(state, empty=tuple(d for d in state.empty if d != device), first_to_look=looked)


def examples(rules: TableRules, state: TableState, event: str) -> list[tuple[str, Args]]:
    """How a tap that is called for is written."""
    match event:
        case "idle" | "close" if state.phase in ENDS or state.shuffler.out:
            return [("", {})]
        case "count_batch":
            size, left = rules.batch_size, [b.id for b in state.batches.values() if b.counted is None]
            return [(f"batch={b} cards={size}", {"batch": b, "cards": size}) for b in left]
        case "confirm_empty":
            return [look(rules, state, device) for device in rules.devices if device not in state.empty]
        case _:
            return []


def look(rules: TableRules, state: TableState, device: str) -> tuple[str, Args]:
    inside = state.batches[state.shuffler.batch].at(Place.SHUFFLER) if state.shuffler.batch else 0
    if device == rules.shuffler and inside:
        return f"device={device} cards={inside}", {"device": device, "cards": inside}
    return f"device={device}", {"device": device}


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {
    "idle": (_judge_idle, ()),
    "resume": (_judge_resume, ()),
    "close": (_judge_close, ()),
    "count_batch": (_judge_count, ("batch", "cards")),
    "confirm_empty": (_judge_confirm, ("device", "cards")),
}
APPLY: dict[str, Apply] = {
    "idle": _idle,
    "resume": _resume,
    "close": _close,
    "count_batch": _count,
    "confirm_empty": _confirm,
    "looked_into": _looked_into,
}
FOLLOW: dict[str, Callable[[Draft, TableState], None]] = {
    "close": _after_close,
    "count_batch": _after_count,
    "confirm_empty": _after_confirm,
}
