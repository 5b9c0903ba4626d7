"""What must hold in every state and at every step of the small table: the invariants of the rules' section M.

`Room` is an observer's own short memory of what happened, kept from the moves and never from what the core
concluded, so that a core which forgets or misjudges is found out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from controller.table.draft import Decision
from controller.table.faults import FAULTS, Blocks
from controller.table.inputs import Ended, Fact, Observed, OperatorEvent, Refusal, Role
from controller.table.locks import FAILED
from controller.table.phases import IN_ROUND, RESHUFFLING, Phase
from controller.table.profiles import Discretionary, FirstCardPolicy, TableRules
from controller.table.rules import decide
from controller.table.state import Cycle, Fault, Place, TableState
from devices.events import CardDrawn, LinkUp
from tests.support.explore_moves import SHOE, Move, fresh

ONE_BATCH_EACH = (Place.SHUFFLER, Place.SHOE, Place.RACK)
PLAYED = frozenset({"box 1", "box 2", "dealer", "hole", "play"})
NONE: frozenset[str] = frozenset()
STEPS = ("inspect", "verify", "spread", "player_inspected", "wash")
ASIDE = ("burn", "stub", "face_up")
"""Where a card goes that nobody plays."""


class Broken(AssertionError):
    """An invariant does not hold."""


class Room(NamedTuple):
    """`rounds_left` None: as many as you like. `hidden`: faces nobody has seen, no part of the identity.

    `steps` are those of the preparation that each batch went through, `certified` the batches with a paper,
    `by_hand` those shuffled by hand, `dry` that a round waits for its rack, `by_choice` that the licensee
    ended the shoe, `looks` the uses of the reader in this round.
    """

    last: str | None = None
    shoe: str | None = None
    shuffled: frozenset[str] = NONE
    cut: frozenset[str] = NONE
    asked: bool = False
    running: bool = False
    letting_out: bool = False
    burn_due: bool = False
    in_round: bool = False
    dealt: bool = False
    cut_seen: bool = False
    rounds_left: int | None = None
    steps: tuple[tuple[str, int], ...] = ()
    certified: frozenset[str] = NONE
    by_hand: frozenset[str] = NONE
    dry: bool = False
    manual: bool = False
    by_choice: bool = False
    looks: int = 0
    hidden: frozenset[str] = NONE

    def key(self, name: Any, *, again: bool) -> tuple[Any, ...]:
        """The memory with the batches by other names."""
        return self._replace(
            last=None,
            shoe=name(self.shoe),
            shuffled=frozenset(map(name, self.shuffled)),
            cut=frozenset(map(name, self.cut)),
            steps=tuple(sorted((name(batch), n) for batch, n in self.steps)),
            certified=frozenset(map(name, self.certified)),
            by_hand=frozenset(map(name, self.by_hand)),
            by_choice=self.by_choice and again,
            hidden=NONE,
        )

    def ready(self, batch: str) -> bool:
        """Whether the batch went through one of the two ways of 13:69F-2.4(a)."""
        return batch in self.certified or dict(self.steps).get(batch, 0) == len(STEPS)


def check(holds: bool, law: str) -> None:
    if not holds:
        raise Broken(law)


# --- in every state ---


def state_holds(rules: TableRules, state: TableState, room: Room) -> None:
    """Invariants 1 to 4 as they can be read off a state."""
    size, shoe = rules.batch_size, state.shoe
    for batch in state.batches.values():
        total = 0 if state.phase is Phase.CLOSED else size
        check(sum(batch.cards.values()) == total, "M1: the cards of a batch add up")
        check(all(n > 0 for n in batch.cards.values()), "M1: no place holds less than no card")
        check(batch.proof is None or batch.id in room.shuffled, "M4: a proof needs a whole cycle, not spoilt")
        check(not batch.cut or batch.id in room.cut, "M4: a cut was made and still counts")
    for place in ONE_BATCH_EACH:
        check(sum(b.at(place) > 0 for b in state.batches.values()) <= 1, f"M2: one batch at most: {place}")
    strays = {f.batch for f in state.faults if f.code == "stray_card"}
    on_table = {b.id for b in state.batches.values() if b.at(Place.TABLE)}
    check(len(on_table - strays) <= 1, "M2: one batch is played; another one's cards are known to be strays")
    check(shoe.batch == room.shoe, "M2: the batch in the shoe is the one that was put in")
    check(shoe.last_batch == room.last, "M3: the last shoe's batch is remembered")
    if shoe.batch is not None:
        held = state.batches[shoe.batch]
        check(held.at(Place.SHOE) == max(0, size - shoe.count), "M1: the shoe holds what has not come out")
        check(not held.at(Place.SHUFFLER), "M6: a batch in play is in play")
        mid = state.phase in (Phase.RESHUFFLE_CUT, Phase.RESHUFFLE_LOAD)
        check(mid or not held.at(Place.IN_HAND), "M6: a batch in play is in play")
        check(mid or (held.proof is None and not held.cut), "M4: a proof and a cut serve one shoe")
    check((state.phase in RESHUFFLING) == room.dry, "M6: the rack is shuffled in a round by its tap alone")
    check(
        (state.phase in (*IN_ROUND, *RESHUFFLING)) == room.in_round, "M6: rounds begin and end by their taps"
    )
    check((state.round is not None) == room.in_round, "M6: a round begins and ends by its taps")
    device = state.device(SHOE)
    failed = any(fault.code in FAILED.values() and fault.gone is None for fault in state.faults)
    if rules.shoe_locks and device.up and not state.pending and not failed:
        check(device.locked or state.phase is not Phase.SIDE_WAGERS, "R-37: locked until they are settled")
        check(not device.held or state.phase is Phase.SIDE_WAGERS, "R-37: unlocked once they are settled")


# --- at every step ---


def step(rules: TableRules, before: TableState, move: Move, found: Decision, room: Room) -> Room:
    """The observer's memory after an accepted move; raises when the move breaks an invariant."""
    after = found.states[-1] if found.states else before
    _faults(rules, before, after, move, room)
    if isinstance(move.given, Observed) and not isinstance(move.given.event, LinkUp):
        if not before.device(move.given.event.device).known:
            same = replace(after, seq=0, devices={}) == replace(before, seq=0, devices={})
            check(same, "R-77: a stranger's word changes nothing")
            return room
    for command in (c for c in found.effects if c.name == "start"):
        check(before.batch_at(Place.SHUFFLER) is not None, "M4: a cycle needs cards")
        check(not any(f.blocks is Blocks.NOW for f in before.faults), "M9: a fault that blocks now, blocks")
        room = room._replace(asked=True, running=False)
        check(command.args["token"] not in _old_tokens(before), "M4: each cycle has a token of its own")
    if isinstance(move.given, OperatorEvent):
        room = _tap(rules, before, move.given, found, room)
    elif move.means in ("card", "foreign card"):
        room = _card(before, found.states[0], found.facts[0], room)
    elif move.means in ("look", "failed look"):
        room = _look(before, after, room)
    elif move.means == "cutting card":
        room = _cutting_card(rules, before, room, late=False)
    else:
        room = _shuffler(before, move.means, room)
    if before.shoe.batch is not None and room.in_round:
        check(after.shoe.batch == before.shoe.batch, "M6: no swap inside a round")
    return room


def _old_tokens(state: TableState) -> list[str]:
    return [b.proof.token for b in state.batches.values() if b.proof]


def _tap(rules: TableRules, before: TableState, tap: OperatorEvent, found: Decision, room: Room) -> Room:
    args = tap.args
    told = found.facts[0].data
    batch = str(args.get("batch", told.get("batch")))
    if tap.event not in ("clear", "acknowledge", "void_round", "out_of_service", "in_service"):
        now = any(f.blocks is Blocks.NOW for f in before.faults) and tap.event != "cutting_card_at"
        check(not now, "M9: a fault that blocks now, blocks")
    match tap.event:
        case "open":
            return room._replace(steps=(), certified=NONE, manual=args.get("mode") == "manual-shoe")
        case _ if tap.event in STEPS and ("idle" in told or "result" in told):
            return room  # an idle table's cards, or a device
        case _ if tap.event in STEPS:
            done = dict(room.steps)
            check(done.get(batch, 0) == STEPS.index(tap.event), "R-13: inspected in order, each batch apart")
            same = tap.event == "verify" and tap.who == before.batches[batch].inspected_by
            check(not same or tap.roles >= frozenset(Role), "R-13: another person verifies")
            return room._replace(steps=tuple(sorted({**done, batch: STEPS.index(tap.event) + 1}.items())))
        case "certificate":
            check(args["cards"] == rules.batch_size, "R-48: a paper for the whole batch")
            check(not dict(room.steps).get(batch), "R-12: one way or the other")
            return room._replace(certified=room.certified | {batch}, shuffled=room.shuffled | {batch})
        case "shuffle_demanded":
            room = room._replace(shuffled=room.shuffled - {batch}, cut=room.cut - {batch})
            if "inspect" in told:  # the batch that lay in the machine of an idle table
                again = {**dict(room.steps), batch: STEPS.index("spread")}
                certified = room.certified - {batch}
                return room._replace(steps=tuple(sorted(again.items())), certified=certified)
            check(batch in room.certified, "R-49: a pre-shuffled batch")
            return room
        case "replace_batch":
            held = before.batches[batch]
            check(room.shoe != batch and not held.at(Place.SHUFFLER), "M2: out of every device")
            room = room._replace(certified=room.certified - {batch}, by_hand=room.by_hand - {batch})
            left = tuple((b, n) for b, n in room.steps if b != batch)
            return room._replace(steps=left, shuffled=room.shuffled - {batch}, cut=room.cut - {batch})
        case "reshuffle_by_hand" if room.in_round:
            held = before.batches[room.shoe or ""]
            check(not held.at(Place.SHOE), "M6: a shoe with cards is not shuffled in a round")
            return room._replace(dry=True, shuffled=room.shuffled | {held.id}, cut=room.cut - {held.id})
        case "reshuffle_by_hand":
            again = room.by_choice and rules.discretionary is Discretionary.SAME_BATCH and batch == room.last
            check(room.manual or again, "M4: by hand only without a shuffler, or where a switch says so")
            check(room.ready(batch), "R-12: a batch is prepared before it is shuffled")
            hand = room.by_hand | {batch}
            return room._replace(by_hand=hand, shuffled=room.shuffled | {batch}, cut=room.cut - {batch})
        case "close" if before.phase is Phase.CLOSING:
            for each in before.batches.values():
                away = sum(each.cards.values()) - each.at(Place.IN_HAND)
                check(not away, "S10: every device is empty")
                check(each.counted is not None, "S10: each batch is counted")
            check({*before.empty} >= {SHOE, rules.shuffler}, "S10: every device was looked into")
            return Room(last=room.last)
        case "close" if before.shoe.batch is None:
            kept = frozenset(b.id for b in before.batches.values() if b.at(Place.SHUFFLER))
            return room._replace(shuffled=room.shuffled & kept, cut=NONE, by_hand=NONE)
        case "out_of_service":
            inside = before.batch_at(Place.SHUFFLER)
            return room._replace(running=False, asked=False, shuffled=room.shuffled - {inside})
        case "confirm_empty":
            check(len({*told["by"]}) == len(told["by"]), "S10: two people look, not one twice")
        case "drawn_in_error":
            cards = before.round.cards if before.round else ()
            batch, last = room.shoe or "", cards[-1]
            fewer = before.batches[batch].at(Place.TABLE) - found.states[0].batches[batch].at(Place.TABLE)
            check(fewer == (told["burned"] and not last.foreign), "M1: a card burned lies in the rack")
            check(last.seen or last.to != "hole" or not told["shown"], "M10: nobody turns up the hole card")
        case "void_round":
            check(found.states[0].shoe.unseen == before.shoe.unseen, "M10: nobody turns up a void round")
            return room._replace(in_round=False, dry=False)
        case "idle" | "close":
            return room._replace(rounds_left=0)
        case "bart_carter":
            return room
        case "load_shuffler":
            check(room.ready(batch), "R-12: a batch is prepared before it is shuffled")
            check(before.batch_at(Place.SHUFFLER) is None, "M2: one batch in the shuffler")
            check(before.batches[batch].unfit is None, "M9: an unfit batch stays out")
            room = room._replace(shuffled=room.shuffled - {batch}, cut=room.cut - {batch})
            return room._replace(asked=False, running=False, letting_out=False)
        case "take_from_shuffler":
            check(not room.in_round, "M6: no swap inside a round")
            inside = before.batch_at(Place.SHUFFLER) or ""
            out_of_play = inside in before.batches and before.batches[inside].unfit is not None
            check(inside in room.shuffled or out_of_play, "M4: only a shuffled batch is taken")
            return room._replace(letting_out=True)
        case "cut":
            position, batch = int(args["position"]), found.facts[0].data["batch"]
            size = before.batches[batch].at(Place.IN_HAND)
            least = min(rules.min_cut, size // 2) if room.dry else rules.min_cut
            check(least <= position <= size - least, "M4: the cut of R-15")
            check(batch in room.shuffled, "M4: only a shuffled batch is cut")
            return room._replace(cut=room.cut | {batch})
        case "recut":
            return room._replace(cut=room.cut - {found.facts[0].data["batch"]})
        case "insert_cutting_card":
            check(4 * int(args["position"]) >= rules.batch_size, "M4: the quarter of R-16")
        case "load_shoe" if room.dry:
            check(batch == room.shoe, "M6: the same batch goes on")
            check(batch in room.shuffled, "M4: shuffled")
            check(batch in room.cut, "M4: cut")
            room = room._replace(dry=rules.burn_after_dry, burn_due=rules.burn_after_dry)
            return room._replace(shuffled=room.shuffled - {batch}, cut=room.cut - {batch}, rounds_left=0)
        case "load_shoe":
            held, other = before.batches[batch], before.batches[rules.other(batch)]
            swap = any(f.blocks is Blocks.SWAP and f.batch in (None, batch) for f in before.faults)
            again = batch in room.by_hand
            check(batch != room.last or again, "M3: the batches alternate")
            check(batch in room.shuffled, "M4: shuffled")
            check(batch in room.cut, "M4: cut")
            check(held.at(Place.IN_HAND) == rules.batch_size and held.unfit is None, "M1: the whole batch")
            check(not swap, "M9: a fault that blocks the swap, blocks")
            check(before.batch_at(Place.RACK) is None and room.shoe is None, "M2: rack and shoe are empty")
            stored = other.at(Place.SHUFFLER) == rules.batch_size
            check(stored or room.manual, "M2: the other batch is stored (R-06)")
            room = room._replace(by_hand=room.by_hand - {batch}, by_choice=False)
            room = room._replace(shuffled=room.shuffled - {batch}, cut=room.cut - {batch}, burn_due=True)
            return room._replace(last=batch, shoe=batch, cut_seen=False, rounds_left=None, hidden=NONE)
        case "peek":
            check(_may_look(before, room), "M8: once, an ace or ten up, wagers settled")
        case "dealer_change":
            return room._replace(burn_due=rules.burn_on_dealer_change)
        case "bets_closed":
            check(room.rounds_left != 0, "M5: no round after the cutting card")
            check(not room.burn_due, "M7: the burn comes first")
            stops = [f for f in before.faults if f.blocks is Blocks.ROUND]
            stops = [f for f in stops if f.code != "dead_card" or f.batch in (None, room.shoe)]
            check(not stops, "M9: a fault that blocks, blocks")
            left = room.rounds_left - 1 if room.rounds_left else None
            return room._replace(in_round=True, rounds_left=left, dealt=bool(before.shoe.early), looks=0)
        case "cutting_card_at" if not before.shoe.cut_seen:
            late = not room.in_round and "box" in args and bool(before.last_boxes)
            return _cutting_card(rules, before, room, late=late)
        case "round_settled":
            return room._replace(in_round=False, hidden=_exposed(room, found))
        case "shuffle_now":
            return room._replace(rounds_left=0, by_choice=True)
        case "collect_rack":
            check(not room.in_round, "M6: no swap inside a round")
            return room._replace(shoe=None, hidden=NONE, burn_due=False)
        case _:
            pass
    return room


def _may_look(before: TableState, room: Room) -> bool:
    """Invariant 8, read off the cards on the table."""
    if before.phase is not Phase.PLAYING or before.no_reader or room.looks:
        return False
    if before.round is not None and before.round.owed:
        return False
    cards = before.round.cards if before.round else ()
    up = next((c.card for c in cards if c.to == "dealer" and c.seen), None)
    return up is None or up[0] in "ATJQK"


def _look(before: TableState, after: TableState, room: Room) -> Room:
    misused = {f.code for f in after.faults} >= {"reader_misuse"}
    known = "reader_misuse" in {f.code for f in before.faults}
    if room.in_round:
        check(misused == (known or not _may_look(before, room)), "M8: once, an ace or ten up, wagers settled")
    return room._replace(looks=min(room.looks + 1, 2)) if room.in_round else room


def _exposed(room: Room, found: Decision) -> frozenset[str]:
    """What stays hidden when a round is settled: the hole card is seen now, the burn card is not."""
    shown = any(fact.kind == "exposed" for fact in found.facts)
    return room.hidden & _burnt(found.states[0]) if shown else room.hidden


def _burnt(state: TableState) -> frozenset[str]:
    return frozenset(face for face in state.shoe.drawn if face)


def _card(before: TableState, after: TableState, fact: Fact, room: Room) -> Room:
    to = fact.data["to"]
    for batch, held in before.batches.items():
        gone = held.at(Place.SHOE) - after.batches[batch].at(Place.SHOE)
        rack = Place.ASIDE if fact.data.get("aside") else Place.RACK
        where = rack if to in ASIDE else Place.TABLE
        came = after.batches[batch].at(where) - held.at(where)
        check(room.shoe is None or gone == came, "M1: a card lies where it went: burn and stub in the rack")
    if room.shoe is None:
        check(to == "stray", "M4: a card from a shoe that was not loaded goes nowhere")
        return room._replace(cut=room.cut - {fact.data["batch"]})
    check(not room.burn_due or to in ASIDE, "M7: the first card is burned, or is no player's")
    if to == "face_up":
        return room
    check(to not in PLAYED or room.in_round, "M4: cards are played in a round")
    if not fact.data["seen"] and fact.sealed.get("card"):
        room = room._replace(hidden=room.hidden | {fact.sealed["card"]})
    owed = before.round is not None and before.round.owed
    open_ = fact.data.get("face_up") or ((to.startswith("box") or to in ("dealer", "play")) and not owed)
    check(open_ or not fact.data["seen"], "M10: burn, stub, stray and hole cards are unseen")
    check(fact.data["seen"] or "card" not in fact.data, "M10: an unseen card is sealed")
    dry = room.dry and not room.burn_due
    return room._replace(burn_due=False, dealt=room.dealt or room.in_round, dry=dry)


def _cutting_card(rules: TableRules, before: TableState, room: Room, *, late: bool) -> Room:
    if room.shoe is None or room.cut_seen or before.phase is Phase.SHOE_END:
        return room
    room = room._replace(cut_seen=True)
    if late or (room.in_round and room.dealt):
        return room._replace(rounds_left=0)
    if rules.first_card is FirstCardPolicy.RESHUFFLE_NOW:
        return room._replace(rounds_left=0, in_round=False)
    return room._replace(rounds_left=0 if room.in_round or room.rounds_left == 0 else 1)


def _shuffler(before: TableState, means: str, room: Room) -> Room:
    """What becomes of a cycle: only one of ours that began and completed whole counts (R-36b, R-76)."""
    inside = before.batch_at(Place.SHUFFLER)
    spoilt = room.shuffled - {inside}
    match means:
        case "started":
            if room.asked:
                return room._replace(asked=False, running=True)
            return room._replace(running=False, shuffled=spoilt)
        case "completed":
            shuffled = room.shuffled | {inside} if room.running and inside else room.shuffled
            return room._replace(running=False, shuffled=shuffled)
        case "stopped" | "rebooted":
            return room._replace(running=False, asked=False)
        case "spoilt" | "foreign" | "out" | "out but one" | "emptied" | "emptied but one":
            return room._replace(running=False, asked=False, letting_out=False, shuffled=spoilt)
        case "out whole":
            return room._replace(running=False, letting_out=False)
        case "start refused" | "start not sent":
            return room._replace(asked=False)
        case "release refused" | "release not sent":
            return room._replace(letting_out=False)
        case _:
            return room


# --- faults (M9) ---


def _faults(rules: TableRules, before: TableState, after: TableState, move: Move, room: Room) -> None:
    kept = {f.id: f for f in after.faults}
    for fault in before.faults:
        still = kept.get(fault.id)
        if still is not None:
            same = replace(still, again=fault.again, acknowledged=fault.acknowledged, gone=fault.gone)
            check(same == fault, "M9: a fault keeps its first cause")
            continue
        if fault.blocks is Blocks.NOTHING:
            continue
        tap = move.given
        check(isinstance(tap, OperatorEvent) and tap.event == "clear", "M9: only a clear clears")
        assert isinstance(tap, OperatorEvent)
        check(tap.args["fault"] == fault.id, "M9: only the named fault is cleared")
        check(bool(tap.roles & {Role.SUPERVISOR, Role.TECHNICIAN}), "M9: a dealer clears nothing")
        check(_gone(rules, before, fault, room), f"M9: {fault.code} was cleared with its cause there")
    codes = [(f.code, f.batch, f.device) for f in after.faults]
    check(len(set(codes)) == len(codes), "M9: a fault is latched once")
    for batch in after.batches.values():
        fresh_ = batch.replaced != before.batches[batch.id].replaced
        check(fresh_ or before.batches[batch.id].unfit in (None, batch.unfit), "M9: unfit stays unfit")


def _gone(rules: TableRules, state: TableState, fault: Fault, room: Room) -> bool:
    """An independent reading of "the cause is gone"."""
    inside = state.batch_at(Place.SHUFFLER)
    match fault.code:
        case code if FAULTS[code].gone == "proved_or_replaced":
            if state.phase is Phase.CLOSED:
                return True  # no card is on the table
            if fault.batch is not None and state.batches[fault.batch].replaced > fault.again:
                return True
            mended = {b for b in room.by_hand & room.shuffled if state.batches[b].at(Place.IN_HAND)}
            mended |= {inside} & room.shuffled
            return bool(mended) and fault.batch in (None, *mended)
        case "settings_mismatch":
            return room.running or inside in room.shuffled or state.shuffler.out
        case "start_unknown":
            return state.shuffler.stage is not Cycle.STARTING
        case "cards_inside":
            apart = fault.batch is not None and len(state.batches[fault.batch].cards) > 1
            return state.shuffler.surplus == 0 and not apart
        case "card_out_of_turn":
            return True
        case "reader_misuse":
            return not room.in_round
        case "reader_failed":
            return state.no_reader or fault.device in state.inspected
        case "stray_card" | "extra_cutting_card" | "events_lost" | "order_pattern":
            return room.shoe is None or state.shoe.first_fact > fault.again  # or another shoe since
        case "shoe_rebooted":
            other = state.shoe.first_fact > fault.again
            return room.shoe is None or other or state.shoe.unaccounted == 0
        case "wrong_device":
            return state.device(fault.device or "").known
        case "crashed" | "key_missing":
            return state.booted_at > fault.again
        case _:
            return not FAULTS[fault.code].unfit or state.batches[fault.batch or ""].replaced > fault.since


# --- nobody learns an unseen card (M10) ---


def twin(rules: TableRules, state: TableState, room: Room) -> TableState | None:
    """The same table to everyone's eyes, with one unseen card another one; None when none can differ."""
    dealt = (*(state.round.cards if state.round else ()), *state.shoe.early)
    known = {card.card for card in dealt if card.seen}
    free = (fresh(rules, state, skip) for skip in range(1, len(rules.deck)))
    other = next((face for face in free if face not in known), None)
    hidden = sorted(face for face in room.hidden - known if state.shoe.drawn.get(face) == 1)
    if other is None and len(hidden) > 1:
        other = hidden[0]
    if other is None or not hidden:
        return None
    return _swapped(state, hidden[-1], other)


def _swapped(state: TableState, face: str, other: str) -> TableState:
    swap = {face: other, other: face}

    def cards(dealt: Any) -> Any:
        return tuple(replace(c, card=swap.get(c.card, c.card)) for c in dealt)

    def counts(of: Mapping[str, int]) -> dict[str, int]:
        return {swap.get(f, f): n for f, n in of.items()}

    shoe = replace(
        state.shoe,
        drawn=counts(state.shoe.drawn),
        unseen=counts(state.shoe.unseen),
        early=cards(state.shoe.early),
    )
    round_ = None if state.round is None else replace(state.round, cards=cards(state.round.cards))
    return replace(state, shoe=shoe, round=round_)


def same_outputs(rules: TableRules, move: Move, found: Decision | Refusal, other: TableState) -> None:
    """What goes out of a step is the same for the twin, unless the step itself shows the cards.

    The shuffler's events and ends are left out: their judges are not given the cards of the shoe.
    """
    if isinstance(move.given, Ended) or (
        isinstance(move.given, Observed) and move.given.event.device != SHOE
    ):
        return
    again = decide(rules, other, move.given)
    if isinstance(found, Refusal) or isinstance(again, Refusal):
        check(found == again, "M10: a refusal tells an unseen card")
        return
    kinds = [fact.kind for fact in found.facts]
    if "collected" in kinds or "exposed" in kinds:
        return
    check(_open(found) == _open(again), f"M10: {move.name} tells an unseen card")


def same_for_another_face(rules: TableRules, before: TableState, move: Move, found: Decision) -> None:
    """An unseen card that is drawn now might as well be another one."""
    if not isinstance(move.given, Observed) or not isinstance(move.given.event, CardDrawn):
        return
    other, event = fresh(rules, before, 1), move.given.event
    seen, repeated = found.facts[0].data.get("seen", False), event.card in before.shoe.drawn
    if other is None or event.card is None or seen or repeated:
        return
    again = decide(rules, before, Observed(replace(event, card=other)))
    assert isinstance(again, Decision)
    check(_open(found) == _open(again), f"M10: {move.name} tells an unseen card")


def _open(found: Decision) -> Any:
    facts = [(f.kind, f.source, dict(f.data), sorted(f.sealed)) for f in found.facts]
    return facts, [(c.device, c.call_id, c.name, dict(c.args)) for c in found.effects]
