"""What can happen to the small table next: every tap, device fact, fault and crash, each with its meaning.

`means` is what happened in the room, for the observer in `explore_laws`; the core sees `given` alone. `cost`
0 is what honest machines do, and every tap whatever; 1 is a mishap, of which a path has a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from controller.table.inputs import Booted, Ended, Observed, OperatorEvent, Role, Trouble
from controller.table.phases import TAPS, Phase
from controller.table.profiles import TableRules
from controller.table.state import Cycle, Place, TableState
from devices import events as ev
from devices.events import DECK, Sense
from firmware_bridge.link import Done, NotSent, Refused, Unknown

if TYPE_CHECKING:
    from tests.support.explore_laws import Room

DEALER, SUPERVISOR = frozenset({Role.DEALER}), frozenset({Role.SUPERVISOR})
PREPARING = ("inspect", "verify", "spread", "player_inspected", "wash", "certificate", "shuffle_demanded")
ENDING = ("idle", "resume", "close", "count_batch", "confirm_empty", "out_of_service", "in_service")
IRREGULAR = ("drawn_in_error", "dealer_skipped", "box_skipped", "bart_carter", "dead_card", "replace_batch")
READING = ("peek", "no_reader")
"""Taps that an exploration may leave out, so that it stays small: together they are never tried."""
SHOE, SHUFFLER, READER = "shoe", "shuffler", "reader"
STRANGE = "ff" * 16
"""A token that is never ours."""


BY_SUPERVISOR = ("verify", "close", "confirm_empty", "no_reader", "reshuffle_by_hand", "shuffle_now")
"""Taps that a second person gives, or a supervisor alone."""


class SmallTable(TableRules):
    """A table of one short deck a batch, where one card on either side of the cut is enough."""

    deck = DECK[:6]
    min_cut = 1


class TinyTable(SmallTable):
    """The least that a round with one box and its burn card can be played from."""

    deck = DECK[:5]


class Move(NamedTuple):
    name: str
    given: Any
    """An input of the core; a device's event is made when it is wanted."""
    cost: int = 0
    means: str = ""


def all_taps(rules: TableRules, without: Collection[str] = ()) -> tuple[Move, ...]:
    """Every operator event but `without`, with its few arguments, right and wrong.

    `clear` and `acknowledge` depend on the state.
    """
    size, least = rules.batch_size, rules.least_behind_cutting_card
    own: list[dict[str, Any]] = [{"batch": batch.id} for batch in rules.batches]
    batches: list[dict[str, Any]] = [*own, {"batch": "C"}]
    machines: list[dict[str, Any]] = [{"device": rules.shuffler}] if rules.shuffler else []
    named = dict.fromkeys((rules.shoe, rules.shuffler))
    devices: list[dict[str, Any]] = [{"device": device} for device in named if device]
    whole = {"maker": "M", "model": "M1", "serial": "1", "operator": "eve", "at": "2026-11-30T08:00:00Z"}
    whole |= {"decks": rules.decks, "cards": size, "result": "ok", "seal": "S", "seal_intact": True}
    seats = [{"box": n} for n in ("1", "2", "dealer")]
    arguments: dict[str, list[dict[str, Any]]] = {
        "load_shuffler": batches,
        "load_shoe": batches,
        "take_in_hand": batches,
        "offer_cut": [*seats, {"box": "1", "refused": True}, {"box": "2", "refused": True}, {}],
        "cut": [{"position": n} for n in (0, 1, size - 1, size)],
        "insert_cutting_card": [{"position": n} for n in (least - 1, least, size - 1, size)],
        "bets_closed": [{"boxes": "1"}, {"boxes": "1,2"}, {"boxes": ""}, {"boxes": "3"}],
        "cutting_card_at": [*seats, {}],
        "collect_rack": [
            {"gauge": "full"},
            {"gauge": "full", "shoe_empty": True},
            {"gauge": "short"},
            {"gauge": "over", "other_backs": 1},
        ],
        "open": [{}, *([{"mode": "manual-shoe"}] if rules.mode != "manual-shoe" else [])],
        **dict.fromkeys((*PREPARING[1:5], "shuffle_demanded", "replace_batch"), own),
        "inspect": [*own, *([{"device": READER}] if rules.reader else [])],
        "certificate": [{**b, **whole, **odd} for b in own for odd in ({}, {"cards": size - 1})],
        "reshuffle_by_hand": own,
        "count_batch": [{**b, "cards": n} for b in own for n in (size, size - 1)],
        "confirm_empty": [*devices, *({**m, "cards": n} for m in machines for n in (size, 1))],
        **dict.fromkeys(("out_of_service", "in_service"), machines),
        "drawn_in_error": [{"exposed": e, "burned": b} for e in (True, False) for b in (True, False)],
        "dealer_skipped": [{"card": "first"}, {"card": "second"}],
        "box_skipped": [{"box": n, "cards": c} for n in range(1, rules.boxes + 1) for c in (0, 1)],
        "void_round": [{"reason": "other"}],
        "dead_card": own,
    }
    found = []
    for event in (*(t for t in TAPS if t not in ("clear", "acknowledge", *without)), "no_such_event"):
        for args in arguments.get(event, [{}]):
            wrong = args.get("gauge") in ("short", "over") or "shoe_empty" in args or event == "dead_card"
            wrong = wrong or (event == "count_batch" and args["cards"] != size) or args.get("cards") == 1
            name = " ".join([event, *(f"{k}={v}" for k, v in args.items() if k not in whole or k == "cards")])
            above = event in BY_SUPERVISOR or "device" in args
            who, roles = ("bob", SUPERVISOR) if above else ("ann", DEALER)
            found.append(Move(name, OperatorEvent(event, args, who, roles), int(wrong), "tap"))
            if event == "confirm_empty":
                second = OperatorEvent(event, args, "ann", DEALER)
                found.append(Move(f"{name} as another", second, int(wrong), "tap"))
    return tuple(found)


def moves(
    rules: TableRules, state: TableState, taps: tuple[Move, ...], room: Room, budget: int
) -> Iterator[Move]:
    """All that may happen in `state` at a cost within `budget`. With a command in flight all but its end is
    a mishap.
    """
    busy = bool(state.pending)
    if not busy or budget:
        for move in _others(rules, state, taps, room):
            cost = move.cost or int(busy)
            if cost > budget:
                continue
            if callable(move.given):
                yield Move(move.name, move.given(), cost, move.means)
            else:
                yield move if cost == move.cost else move._replace(cost=cost)
    yield from (move for move in _ends(rules, state) if move.cost <= budget)


def _others(rules: TableRules, state: TableState, taps: tuple[Move, ...], room: Room) -> Iterator[Move]:
    yield from taps
    yield from _told(rules, state, taps, room)
    for fault in state.faults:
        for roles, who in ((DEALER, "dealer"), (SUPERVISOR, "supervisor")):
            yield Move(f"clear {fault.code} as {who}", _clear(fault.id, roles), 0, "tap")
    yield Move("clear no fault", _clear("F0", SUPERVISOR), 0, "tap")
    if rules.shoe is not None:
        yield from _shoe(rules, state, rules.shoe)
    if rules.shuffler is not None:
        yield from _shuffler(rules, state, rules.shuffler, room)
    yield from _links(rules, state, room)
    if rules.continuous:
        yield from _returned(rules, state, room)
    yield from _reader(rules, state)
    yield Move("crash", Booted(f"{state.seq:032x}"), 1, "boot")
    for code in ("crashed", "key_missing"):
        yield Move(f"trouble {code}", Trouble(code, "detail"), 1)


def _clear(fault: str, roles: frozenset[Role]) -> OperatorEvent:
    return OperatorEvent("clear", {"fault": fault}, "ann", roles)


def _event(
    state: TableState, kind: type[ev.DeviceEvent], device: str, **fields: Any
) -> Callable[[], Observed]:
    def made() -> Observed:
        n = state.device(device).n + 1
        return Observed(kind(device=device, n=n, seq=n, raw=b"raw", **fields))

    return made


def fresh(rules: TableRules, state: TableState, skip: int = 0) -> str | None:
    """The face of the next card: the first of the deck of which copies are left in this shoe."""
    left = [face for face in rules.deck if state.shoe.drawn.get(face, 0) < rules.decks]
    return left[skip] if len(left) > skip else None


def other_back(rules: TableRules, batch: str) -> str:
    """The back of the other batch, or one that no batch of this table has."""
    other = rules.other(batch)
    return "green" if other is None else rules.back(other)


def _shoe(rules: TableRules, state: TableState, shoe: str) -> Iterator[Move]:
    batch, wrong = state.shoe.batch, 1
    backs = Sense.BACK in rules.shoe_senses
    face = fresh(rules, state) or rules.deck[0]

    def card(name: str, cost: int, means: str = "card", **fields: Any) -> Move:
        whole = {"card": face, "back": rules.back(batch) if batch and backs else None, **fields}
        return Move(name, _event(state, ev.CardDrawn, shoe, **whole), cost, means)

    if batch is None:
        for back in ("red", "blue", "green", None):
            yield card(f"stray {back} card", wrong, back=back)
    else:
        left = state.batches[batch].at(Place.SHOE)
        burns = (Phase.BURN_DUE, Phase.ROUND_BURN, Phase.RESHUFFLE_BURN)
        due = state.phase in (*burns, Phase.DEALING, Phase.HOLE_CARD, Phase.PLAYING, Phase.SHOE_END)
        asked = not rules.stacks or state.shoe.asked > state.shoe.told
        yield card("card", int(not (due and asked and left and fresh(rules, state))))
        yield card("face-up card", wrong, face_up=True)
        yield card("unread card", wrong, card=None)
        if state.shoe.drawn:
            yield card("the first card again", wrong, card=next(iter(state.shoe.drawn)) or face)
            yield card("the last card again", wrong, card=next(reversed(state.shoe.drawn)) or face)
        if backs:
            other = other_back(rules, batch)
            yield card("card of the other back", wrong, "foreign card", back=other)
            yield card("card of unread back", wrong, back=None)
    honest = batch is not None and not state.shoe.cut_seen and state.phase is not Phase.SHOE_END
    honest = honest and rules.cutting_card and not rules.per_round
    if Sense.CUT_CARD in rules.shoe_senses:
        yield Move("cutting card", _event(state, ev.CutCard, shoe), int(not honest), "cutting card")
    if Sense.EMPTY in rules.shoe_senses:
        by_hand = rules.stacks and state.phase is Phase.SHOE_END  # the rest of the cards was lifted out
        out = batch is not None and (by_hand or not state.batches[batch].at(Place.SHOE))
        strays = any(fault.code == "stray_card" for fault in state.faults)
        empty = (out and not state.shoe.empty) or (strays and not state.shoe.told_empty)
        yield Move("shoe empty", _event(state, ev.ShoeEmpty, shoe), int(not empty))
    yield Move("gap in the shoe's events", _event(state, ev.GapPossible, shoe, missing=1), wrong)
    yield Move("lid of the shoe", _event(state, ev.Lid, shoe, open=True), wrong)
    if rules.shoe_locks:
        turned = _event(state, ev.LockChanged, shoe, locked=not state.device(shoe).locked)
        yield Move("key of the shoe", turned, wrong)


def _shuffler(rules: TableRules, state: TableState, device: str, room: Room) -> Iterator[Move]:
    shuffler, size = state.shuffler, rules.batch_size
    counter, token, batch = shuffler.counter or 0, shuffler.token, shuffler.batch
    back = rules.back(batch or "A")
    inside = state.batches[batch].at(Place.SHUFFLER) if batch else 0

    def event(
        what: str, cost: int, means: str, kind: type[ev.DeviceEvent], token: str | None = None, **fields: Any
    ) -> Move:
        return Move(what, _event(state, kind, device, token=token, **fields), cost, means)

    starting, running = shuffler.stage is Cycle.STARTING, shuffler.stage is Cycle.RUNNING
    yield event("cycle started", int(not starting), "started", ev.CycleStarted, token, cycle=counter + 1)
    yield event("cycle started by another", 1, "foreign", ev.CycleStarted, STRANGE, cycle=counter + 1)
    yield event("cycle started, counter jumps", 1, "foreign", ev.CycleStarted, token, cycle=counter + 2)

    whole: dict[str, Any] = {
        "cycle": counter,
        "count": size,
        "mode": "shuffle",
        "composition": dict.fromkeys(rules.deck, rules.decks),
        "backs": {back: size},
    }
    yield event("cycle completed", int(not running), "completed", ev.CycleCompleted, token, **whole)
    yield event("cycle of another completed", 1, "foreign", ev.CycleCompleted, STRANGE, **whole)
    odd = {**whole["composition"], rules.deck[0]: 0, rules.deck[1]: 2}
    other = other_back(rules, batch or "A")
    wrong: Mapping[str, dict[str, Any]] = {
        "wrong cycle": {"cycle": counter + 1},
        "a card too few": {"count": size - 1, "backs": {back: size - 1}},
        "sort mode": {"mode": "sort"},
        "backs left out": {"backs": {}},
        "all of the other back": {"backs": {other: size}},
        "one of the other back": {"backs": {back: size - 1, other: 1}},
        "one too many of a kind": {"composition": odd},
        "a card not recognised": {"unread": 1},
    }
    for name, changes in wrong.items():
        report = {**whole, **changes}
        yield event(f"cycle completed, {name}", 1, "spoilt", ev.CycleCompleted, token, **report)
    yield event("cycle aborted", 1, "stopped", ev.CycleAborted, cycle=counter, cause="x")
    yield event("jam", 1, "spoilt", ev.Jam, place="exit")
    yield event("fault of the shuffler", 1, "stopped", ev.FaultRaised, code="1", name="x")
    yield event("door open", 1, "spoilt", ev.Door, open=True)
    yield event("door shut", 1, "", ev.Door, open=False)
    yield event("gap in the shuffler's events", 1, "spoilt", ev.GapPossible, missing=None)
    proof = state.batches[batch].proof if batch else None
    ours = proof.token if proof else None
    if ours:
        yield event(
            "batch out", int(not room.letting_out), "out whole", ev.BatchReleased, ours, count=size, inside=0
        )
    part = 0 < inside < size or (inside and (shuffler.out or state.phase is Phase.CLOSING))
    yield event("batch lifted out", int(not part), "out", ev.BatchReleased, count=inside, inside=0)
    yield event("batch out but a card", 1, "out but one", ev.BatchReleased, ours, count=size - 1, inside=1)
    yield event("batch out, a card lost", 1, "out", ev.BatchReleased, ours, count=size - 1, inside=0)
    yield event("batch out, uncounted", 1, "", ev.BatchReleased, ours)


def _links(rules: TableRules, state: TableState, room: Room) -> Iterator[Move]:
    """Sessions that begin and end: as before, after a restart of the device, with another device."""

    def up(name: str, cost: int, means: str, device: str, *, boot: int, serial: str, **status: Any) -> Move:
        who = {"serial": serial, "firmware": "1"}
        return Move(
            name, _event(state, ev.LinkUp, device, boot=boot, identity=who, status=status), cost, means
        )

    shoe, out = rules.shoe, state.shoe.told
    now = {**_shuffler_says(rules, state, room), "drawn": out} if rules.continuous else {"drawn": out}
    if shoe is not None:
        known = state.device(shoe)
        boot = known.boot or 1
        yield up(f"{shoe} up", int(known.up), "up", shoe, boot=boot, serial="SH1", **now)
        if rules.shoe_locks:
            for locked in (True, False):
                says = {"drawn": out, "locked": locked}
                name = f"shoe up, {'' if locked else 'not '}locked"
                yield up(name, int(known.up), "up", shoe, boot=boot, serial="SH1", **says)
        if known.boot is not None:
            again: list[tuple[str, dict[str, Any]]] = [
                ("", {}),
                (", a card unseen", {"drawn": out + 1}),
                (", count unknown", {"drawn": None}),
            ]
            if rules.continuous:
                again += [(", a card too few", {"inside": now["inside"] - 1}), (", emptied", {"inside": 0})]
                again += [(", cycle of another", {"cycle": now["cycle"] + 2, "token": STRANGE})]
            for name, odd in again:
                says, means = {**now, **odd}, "rebooted" if rules.continuous else "up"
                yield up(f"{shoe} rebooted{name}", 1, means, shoe, boot=boot + 1, serial="SH1", **says)
            yield up(f"another {shoe}", 1, "", shoe, boot=1, serial="SH2", **now)
            yield Move(f"{shoe} down", _event(state, ev.LinkDown, shoe, reason="x"), 1)
    if rules.shuffler is not None and not rules.continuous:
        yield from _shuffler_links(rules, state, room, up)


def _shuffler_says(rules: TableRules, state: TableState, room: Room) -> dict[str, Any]:
    """Its status, as the table knows it; a continuous one that is dealt from tells what it holds."""
    shuffler = state.shuffler
    held = state.batches[shuffler.batch].at(Place.SHUFFLER) if shuffler.batch else 0
    stage = "done" if shuffler.stage is Cycle.PROVED else "loaded" if shuffler.batch else "empty"
    if rules.continuous and state.shoe.batch is not None:
        held, stage = room.left, "dealing"
    return {"cycle": shuffler.counter or 0, "token": shuffler.token, "inside": held, "state": stage}


def _shuffler_links(
    rules: TableRules, state: TableState, room: Room, up: Callable[..., Move]
) -> Iterator[Move]:
    name = rules.shuffler or ""
    device, shuffler, now = state.device(name), state.shuffler, _shuffler_says(rules, state, room)
    boot, counter, held = device.boot or 1, shuffler.counter or 0, now["inside"]
    yield up("shuffler up", int(device.up), "up", name, boot=boot, serial="SF1", **now)
    if device.boot is None:
        return
    if shuffler.stage is Cycle.STARTING:
        began = {**now, "cycle": counter + 1}
        yield up("shuffler up, cycle begun", int(device.up), "up", name, boot=boot, serial="SF1", **began)
    later = {**now, "cycle": counter + 2, "token": STRANGE}
    yield up("shuffler up, cycle of another", 1, "foreign", name, boot=boot, serial="SF1", **later)
    rebooted: list[tuple[str, str, dict[str, Any]]] = [
        ("", "rebooted", {}),
        (", cycle forgotten", "spoilt", {"token": None, "state": "loaded"}),
        (", empty", "emptied", {"inside": 0, "state": "empty", "token": None}),
        (", a card in it", "rebooted" if held <= 1 else "emptied but one", {"inside": 1}),
        (", a card too many", "spoilt", {"inside": held + 1}),
    ]
    for what, means, changes in rebooted:
        status = {**now, **changes}
        yield up(f"shuffler rebooted{what}", 1, means, name, boot=boot + 1, serial="SF1", **status)
    yield up("another shuffler", 1, "", name, boot=1, serial="SF2", **now)
    yield Move("shuffler down", _event(state, ev.LinkDown, name, reason="x"), 1)


def _reader(rules: TableRules, state: TableState) -> Iterator[Move]:
    if rules.reader is None:
        return
    due = state.phase is Phase.PLAYING and state.round is not None and not state.round.peeks
    for result in ("natural", "not_natural", "error"):
        means = "failed look" if result == "error" else "look"
        yield Move(
            f"hole card {result}",
            _event(state, ev.HoleCardChecked, READER, result=result),
            int(result == "error" or not due),
            means,
        )
    device, who = state.device(READER), {"serial": "RD1", "firmware": "1"}
    begun = _event(state, ev.LinkUp, READER, boot=device.boot or 1, identity=who, status={})
    yield Move("reader up", begun, int(device.up))
    if device.up:
        yield Move("reader down", _event(state, ev.LinkDown, READER, reason="x"), 1)
        yield Move(
            "fault of the reader", _event(state, ev.FaultRaised, READER, code="1", name="x"), 1, "failed"
        )


def _ends(rules: TableRules, state: TableState) -> Iterator[Move]:
    """The one end of the oldest command in flight, in every way it can end."""
    call = next(iter(state.pending), None)
    if call is None:
        if rules.devices:
            yield Move("end of nothing", Ended(rules.devices[-1], "C0", Done({})), 1)
        return
    device, name, shuffler = state.pending[call].device, state.pending[call].name, state.shuffler
    counter, size = shuffler.counter or 0, rules.batch_size
    settings = {"decks": rules.decks, "cards_per_deck": len(rules.deck), "mode": "shuffle"}
    good = {"settings": {**settings, "recognition": True}, "crc_ok": True}
    status = {"inside": size, "cycle": counter, "token": shuffler.token}
    answers: dict[str, list[tuple[str, int, str, dict[str, Any]]]] = {
        "settings": [
            ("", 0, "", good),
            (" in sort mode", 1, "", {**good, "settings": {**good["settings"], "mode": "sort"}}),
            (" with a wrong check", 1, "", {**good, "crc_ok": False}),
        ],
        "status": [
            ("", 0, "", {**status, "token": None}),
            (", cycle begun", int(shuffler.stage is Cycle.CHECKING), "", {**status, "cycle": counter + 1}),
            (", counter jumps", 1, "status foreign", {**status, "cycle": counter + 2, "token": STRANGE}),
            (", a card too few", 1, "", {**status, "inside": size - 1, "token": None}),
        ],
        "start": [("", 0, "", {"cycle": counter + 1})],
        "release": [("", 0, "", {"count": size, "inside": 0})],
        "peek": [("", 0, "", {})],
        "dispense": [("", 0, "", {})],
        "lock": [("", 0, "", {"locked": True})],
        "unlock": [("", 0, "", {"locked": False})],
    }
    if device == rules.shuffler and shuffler.stage is Cycle.NONE and shuffler.batch is None:
        looked = [("", 0, shuffler.surplus), (", a card in it", 1, 1)]
        answers["status"] = [(what, cost, "", {**status, "inside": n}) for what, cost, n in looked]
    elif device == rules.shoe and rules.stacks:
        rests = {"drawn": state.shoe.told, "dispensing": False}
        answers["status"] = [("", 0, "", rests), (", still at it", 1, "", {**rests, "dispensing": True})]
    elif device == rules.shoe and not rules.continuous:
        answers["status"] = [(f", locked {said}", 0, "", {"locked": said}) for said in (True, False)]
    for shown, cost, means, answer in answers[name]:
        yield Move(f"{name} done{shown}", Ended(device, call, Done(answer)), cost, means)
    for word, outcome in (("refused", Refused("3")), ("not sent", NotSent("x")), ("unknown", Unknown("x"))):
        yield Move(f"{name} {word}", Ended(device, call, outcome), 1, f"{name} {word}")


# --- what only some modes have ---


def _told(rules: TableRules, state: TableState, taps: tuple[Move, ...], room: Room) -> Iterator[Move]:
    """Numbers that people tell: cards of a round, or of a shuffled rack, where nobody counts; a stub."""
    wanted, cards = {move.given.event for move in taps}, range(rules.batch_size + 2)

    def tap(event: str, cost: int, **args: Any) -> Move:
        who, roles = ("bob", SUPERVISOR) if event in BY_SUPERVISOR else ("ann", DEALER)
        name = " ".join([event, *(f"{name}={value}" for name, value in args.items())])
        return Move(name, OperatorEvent(event, args, who, roles), cost, "tap")

    if rules.shoe is None:
        told = (event for event in ("round_settled", "reshuffle_by_hand") if event in wanted)
        yield from (tap(event, 0, cards=n) for event in told for n in cards)
    elif rules.night and "reshuffle_by_hand" in wanted and state.round is not None:
        if len(state.round.cards) < rules.batch_size:  # the cards of hands that are over: once a round
            yield from (tap("reshuffle_by_hand", 0, cards=n) for n in cards[-3:])
    if rules.per_round and "collect_rack" in wanted and room.shoe is not None:
        known = room.stub is not None
        yield from (tap("collect_rack", int(known and n != room.stub), gauge="full", stub=n) for n in cards)
    if rules.per_round and "count_stub" in wanted and state.round is not None:
        left = room.to_be_left(rules, state.round.order)
        yield from (tap("count_stub", int(n != left), cards=n) for n in cards)


def _returned(rules: TableRules, state: TableState, room: Room) -> Iterator[Move]:
    """Used cards go back into a continuous shuffler, or cards in play are taken out of it."""
    inside, size, device = room.left, rules.batch_size, rules.shoe or ""

    def back(name: str, count: int, cost: int, drift: int = 0) -> Move:
        told = {"count": count, "inside": inside + count + drift}
        return Move(name, _event(state, ev.CardsReturned, device, **told), cost, "returned")

    if room.shoe is None:
        yield back("cards put into the machine", 1, 1)
        return
    rack = size - inside - room.laid
    old = room.used if state.phase is Phase.PLAYING else room.old
    late = int(state.phase is Phase.SHOE_END)
    if old:
        yield back("used cards back", old, late)
        yield back("used cards back, one stuck", old, 1, drift=-1)
    if old > 1:
        yield back("one used card back", 1, late)
    if rack > old:
        yield back("used cards back too early", rack, 1)
    yield back("more cards back than were used", rack + 1, 1)
    if inside:
        out = _event(state, ev.BatchReleased, device, count=inside, inside=0)
        yield Move("cards in play taken out", out, 1, "taken out")
