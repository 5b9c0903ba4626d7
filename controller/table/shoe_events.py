"""The shoe: where each card goes, custody, the cutting card, the end of a batch (R-08, R-22 to R-27)."""

from __future__ import annotations

from typing import Any

from controller.table import cutting_card, deal, event_facts, hands, irregular, patterns, reader, stacks
from controller.table.draft import Draft
from controller.table.phases import IN_ROUND, OUT_OF_SHOE, Phase
from controller.table.profiles import TableRules
from controller.table.round import DEALER, FACE_UP, HOLE, PLAY, STRAY, STUB, lies_down
from controller.table.state import Closing, Place, TableState
from devices import events as ev
from devices.events import Sense


def handle(draft: Draft, event: ev.DeviceEvent) -> bool:
    """Judge an event of the shoe; False leaves it to the general handling."""
    match event:
        case ev.CardDrawn():
            _card(draft, event)
        case ev.CutCard():
            _cutting_card(draft, event)
        case ev.ShoeEmpty():
            _empty(draft, event)
        case ev.Lid(open=opened) | ev.Door(open=opened):
            loaded = draft.state.shoe.loading and not opened
            event_facts.record(draft, event, {"loaded": True} if loaded else None)
            _lid(draft, opened=opened)
            if opened:
                stacks.stopped(draft, "the lid was opened")
        case ev.Jam():
            stacks.jammed(draft, event)
        case ev.LockChanged():
            event_facts.record(draft, event)
        case ev.GapPossible():
            event_facts.record(draft, event)
            if draft.state.shoe.batch is not None:
                draft.latch("events_lost", "cards may have been drawn unseen", device=event.device)
        case _:
            return False
    return True


def _lid(draft: Draft, *, opened: bool) -> None:
    """Open while cards are loaded and taken out is work; in play it is told."""
    state = draft.state
    in_play = state.phase in (Phase.BETWEEN_ROUNDS, *IN_ROUND) and not state.shoe.loading
    if opened and state.shoe.batch is not None and in_play:
        draft.latch("shoe_opened", "its lid was opened", batch=state.shoe.batch)
    elif not opened:
        for batch in draft.state.batches:
            draft.gone("shoe_opened", batch=batch)


def next_place(rules: TableRules, state: TableState) -> tuple[str, str | None]:
    """Where the next card from the shoe goes, and what that does to the phase.

    `stray` means that no card is due; it is used as the next one (R-32) and takes its place in the order.
    Cards of the initial deal go by R-24, later ones to whoever plays; in a one-deck game none plays on.
    """
    match state.phase:
        case Phase.BURN_DUE | Phase.ROUND_BURN | Phase.RESHUFFLE_BURN:
            return "burn", "burned"
        case Phase.DEALING | Phase.HOLE_CARD:
            assert state.round is not None
            order, placed = state.round.order, state.round.placed
            happens = "dealt" if state.phase is Phase.DEALING else "hole_dealt"
            done = placed + 1 + deal.held_back(rules, state.phase) >= len(order)
            trigger = happens if done else None
            return order[min(placed, len(order) - 1)], trigger
        case Phase.PLAYING if rules.one_deck is None:
            return hands.next_place(state), None
        case Phase.PLAYING | Phase.SHOE_END:
            return STUB, None
        case _:
            return STRAY, None


def _card(draft: Draft, event: ev.CardDrawn) -> None:
    state, rules = draft.state, draft.rules
    to, trigger = next_place(rules, state)
    batch = state.shoe.batch
    if event.face_up and batch is not None and to != STUB and state.phase not in OUT_OF_SHOE:
        to, trigger = FACE_UP, None
    if batch is None:
        by_back = {b.back: b.id for b in rules.batches}
        batch = by_back.get(event.back or "")
    foreign = state.shoe.batch is not None and event.back not in (None, rules.back(state.shoe.batch))
    open_ = rules.one_deck is None and (to.startswith("box") or to in (DEALER, PLAY))
    seen = event.face_up or (_certain(state) and open_ and not _lies_down(state))
    extra: dict[str, Any] = {
        "to": to,
        "batch": batch,
        "shoe": state.shoe.number,
        "round": state.round.number if state.round else None,
        "foreign": foreign,
        "seen": seen,
        **({"aside": True} if to == FACE_UP and rules.double_shoe else {}),
        **(draft.moves(trigger or "card_strayed")),
    }
    data, secret = {**event_facts.plain(event), **extra}, event_facts.secrets(event)
    if seen:
        draft.add(event.kind, {**data, **secret})
    else:
        draft.add(event.kind, data, secret)
    _judge_card(draft, event, to, batch, foreign=foreign, seen=seen)
    reader.card_drawn(draft, state, to)
    if batch is not None and draft.state.batches[batch].at(Place.SHOE):
        draft.gone("shoe_dry", batch=batch)
    if batch is not None:
        draft.gone("shoe_jam", batch=batch)
    _empty_by_count(draft)


def _certain(state: TableState) -> bool:
    """Whether the place of the next card tells if it lies face down: not while any may be the hole card."""
    cards, owed = (state.round.cards, state.round.owed) if state.round else ((), False)
    return not state.uncertain and not owed and all(card.to != STRAY for card in cards)


def _lies_down(state: TableState) -> bool:
    """Whether the next card of the initial deal goes to a player face down (13:47-20.22(g)6)."""
    round_ = state.round
    initial = state.phase in (Phase.DEALING, Phase.HOLE_CARD)  # there too, when the last one was burned
    if round_ is None or not initial or round_.placed >= len(round_.order):
        return False
    return lies_down(round_.order, round_.placed, round_.down)


def _judge_card(
    draft: Draft, event: ev.CardDrawn, to: str, batch: str | None, *, foreign: bool, seen: bool
) -> None:
    """What is wrong with the card; no text may name it, and an unseen one is not judged yet (law 7)."""
    state, rules = draft.state, draft.rules
    shoe = state.shoe
    if shoe.batch is None:
        whose = f"batch {batch}" if batch else "an unknown batch"
        draft.latch(
            "stray_card", f"a card of {whose} left the shoe in phase {state.phase.value}", batch=batch
        )
        return
    if foreign:
        wanted = rules.back(shoe.batch)
        draft.latch("wrong_back", f"a {event.back} card among the {wanted} ones", batch=shoe.batch)
    elif shoe.count > rules.batch_size:
        draft.latch("too_many_cards", f"card {shoe.count} of {rules.batch_size}", batch=shoe.batch)
    elif seen:
        irregular.judge_copies(draft, [event.card])
    if seen and not foreign and (why := patterns.found(shoe.order, state.batches[shoe.batch].orders)):
        draft.latch("order_pattern", why, batch=shoe.batch)
    if rules.stacks and to not in (STRAY, STUB) and shoe.told > shoe.asked:
        draft.latch("card_out_of_turn", "a card came that was not asked for: look at the last stack")
    if to == STRAY:
        draft.latch("card_out_of_turn", f"a card left the shoe in phase {state.phase.value}")


def _cutting_card(draft: Draft, event: ev.CutCard) -> None:
    state = draft.state
    shoe = state.shoe
    if not draft.rules.marked:
        event_facts.record(draft, event, unjudged=True)
        if shoe.batch is not None and not _covers(draft.rules, state):
            draft.latch("extra_cutting_card", "none is in use at this table", batch=shoe.batch)
        return
    if shoe.batch is None or state.phase is Phase.SHOE_END or shoe.cut_seen:
        event_facts.record(
            draft, event, {"at": shoe.cut_at, "closing": shoe.closing.value, "first": False, "again": True}
        )
        if shoe.batch is not None and shoe.cut_seen:
            draft.latch("extra_cutting_card", "the cutting card came out twice", batch=shoe.batch)
        return
    at = next_place(draft.rules, state)[0] if state.phase in (Phase.DEALING, Phase.HOLE_CARD) else None
    at = DEALER if at == HOLE else at
    if state.phase is Phase.ROUND_BURN and state.round is not None:
        at = state.round.order[0]
    event_facts.record(draft, event, cutting_card.came_out(draft.rules, state, at))


def _covers(rules: TableRules, state: TableState) -> bool:
    """Whether it may be the cover card below all others (R-56): the stub may come out in the round."""
    assert state.shoe.batch is not None
    last = rules.per_round and not state.batches[state.shoe.batch].at(Place.SHOE)
    return last or state.phase is Phase.SHOE_END


def _empty(draft: Draft, event: ev.ShoeEmpty) -> None:
    """Whether cards are missing is judged when the rack is collected: a card may still come."""
    event_facts.record(draft, event, _closing(draft.rules, draft.state))
    stacks.stopped(draft, "the shoe is empty")
    _judge_empty(draft)


def _empty_by_count(draft: Draft) -> None:
    """A shoe that does not sense its end is empty when every card of the batch has come out."""
    state = draft.state
    batch = state.shoe.batch
    if Sense.EMPTY in draft.rules.shoe_senses or batch is None or state.shoe.empty:
        return
    if not state.batches[batch].at(Place.SHOE):
        draft.add(ev.ShoeEmpty.kind, {**_closing(draft.rules, state), "by_count": True})
        _judge_empty(draft)


def _closing(rules: TableRules, state: TableState) -> dict[str, Any]:
    """A shoe that is empty in a round ends with it."""
    return {"closing": (Closing.THIS_ROUND if _dry(rules, state) else state.shoe.closing).value}


def _dry(rules: TableRules, state: TableState) -> bool:
    """Whether cards are still wanted that should be there: none after the deal of a one-deck game.

    At a casino night the shoe is dealt out as a matter of course (13:47-20.22(g)6).
    """
    if rules.night:
        return False
    dealt = rules.one_deck is not None and state.phase is Phase.PLAYING
    return state.shoe.batch is not None and state.phase in (*IN_ROUND, Phase.RESHUFFLE_BURN) and not dealt


def _judge_empty(draft: Draft) -> None:
    if _dry(draft.rules, draft.state):
        batch = draft.state.shoe.batch
        draft.latch("shoe_dry", "no card is left and the round is not settled", batch=batch)


def read_back(state: TableState, event: ev.LinkUp, was_boot: int | None) -> dict[str, Any]:
    """After a restart of the shoe: how many cards it drew that this table did not see, if it can tell.

    Whether it says that it is empty is told in any case.
    """
    empty = event.status.get("empty")
    said = isinstance(empty, bool) or (was_boot is not None and event.boot != was_boot)
    data: dict[str, Any] = {"told_empty": empty is True} if said else {}
    if was_boot is None or not _holds_cards(state):
        return data
    drawn, told = event.status.get("drawn"), state.shoe.told
    if event.boot == was_boot:
        return data | ({"unaccounted": None} if _forgot(state, event) else {})
    return data | {"unaccounted": drawn - told if isinstance(drawn, int) else None}


def _empty_by_status(draft: Draft, event: ev.LinkUp, was_boot: int | None) -> None:
    """A shoe whose word that it is empty was lost says so again; not before it was seen to let a card out."""
    state, status = draft.state, event.status
    if event.boot != was_boot or not status.get("empty") or state.shoe.empty or not _holds_cards(state):
        return
    if state.uncertain or status.get("drawn") == state.shoe.told > 0:
        draft.add(ev.ShoeEmpty.kind, {**_closing(draft.rules, state), "by_status": True})
        _judge_empty(draft)


def _forgot(state: TableState, event: ev.LinkUp) -> bool:
    """Whether it counts fewer cards than it told: it lost its memory and did not count the start."""
    drawn = event.status.get("drawn")
    return isinstance(drawn, int) and drawn < state.shoe.told


def _holds_cards(state: TableState) -> bool:
    """Whether a start of the shoe may have cost a card: while its rack is shuffled by hand it is empty."""
    return state.shoe.batch is not None and state.phase not in OUT_OF_SHOE


def reconcile(draft: Draft, event: ev.LinkUp, was_boot: int | None) -> None:
    """A shoe that started again while it held cards is not trusted until the counts agree (S9)."""
    _empty_by_status(draft, event, was_boot)
    loading_or_closing = draft.state.phase in (Phase.CUTTING_CARD_IN, Phase.CLOSING)
    unused = draft.state.shoe.batch is None and not loading_or_closing
    if unused and event.status.get("empty") is False:
        draft.latch("cards_in_shoe", "the shoe says that it is not empty", device=event.device)
    if was_boot is None or not _holds_cards(draft.state):
        return
    changed = event.boot != was_boot
    if changed:
        stacks.stopped(draft, "the shoe started again")
    stacks.reconcile(draft, event.status)
    if changed or _forgot(draft.state, event):
        draft.latch(
            "shoe_rebooted",
            "the shoe's start counter changed"
            if changed
            else "the shoe counts fewer cards than it told, though its start counter is the same",
            batch=draft.state.shoe.batch,
            device=event.device,
        )
