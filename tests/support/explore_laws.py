"""What must hold in every state and at every step of the small table: the invariants of the rules' section M.

`Room` is an observer's own short memory of what happened, kept from the moves and never from what the core
concluded, so that a core which forgets or misjudges is found out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from controller.table.draft import Decision
from controller.table.faults import FAULTS, Blocks
from controller.table.inputs import Ended, Fact, Observed, OperatorEvent, Refusal, Role
from controller.table.locks import FAILED
from controller.table.phases import IN_ROUND, RESHUFFLING, Phase
from controller.table.profiles import (
    Burn,
    CardDown,
    CutPolicy,
    Discretionary,
    FirstCardPolicy,
    TableRules,
)
from controller.table.rules import decide
from controller.table.state import Cycle, Fault, Place, TableState
from devices.events import BatchReleased, CardDrawn, CardsReturned, LinkUp, Sense
from tests.support.explore_moves import Move, fresh

ONE_BATCH_EACH = (Place.SHUFFLER, Place.SHOE, Place.RACK)
PLAYED = frozenset({"box 1", "box 2", "dealer", "hole", "play", "community"})
NONE: frozenset[str] = frozenset()
STEPS = ("inspect", "verify", "spread", "player_inspected", "wash")
ASIDE = ("burn", "stub", "face_up")
"""Where a card goes that nobody plays."""
STUB_ROUNDS = 5
"""A stub is counted at least once in so many rounds (R-54)."""


class Broken(AssertionError):
    """An invariant does not hold."""


class Room(NamedTuple):
    """`rounds_left` None: as many as you like. `hidden`: faces nobody has seen, no part of the identity.

    `steps` are those of the preparation that each batch went through, `certified` the batches with a paper,
    `by_hand` those shuffled by hand, `dry` that a round waits for its rack, `by_choice` that the licensee
    ended the shoe, `looks` the uses of the reader in this round, `natural` that it told one. Where no shoe
    counts to its end `left` are the cards in the hand or in the continuous shuffler, `laid` those on the
    layout, `used` those in the rack as the round began, `old` those of them that may go back. With one deck
    a round `stub` is what must be left of the deck, None once nobody knows, `counted` what the dealer
    counted of it in the round; `open_cards` were found face up in the deal, `uncounted` are the rounds since
    each deck was counted.
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
    natural: bool = False
    left: int = 0
    laid: int = 0
    used: int = 0
    old: int = 0
    stub: int | None = None
    open_cards: int = 0
    counted: int | None = None
    uncounted: tuple[tuple[str, int], ...] = ()
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
            uncounted=tuple(sorted((name(batch), n) for batch, n in self.uncounted if n)),
            hidden=NONE,
        )

    def to_be_left(self, rules: TableRules, order: Sequence[str]) -> int | None:
        """What must be left of a deck while its round is played: from the hand the deal is still in it."""
        dealt = len(order) if rules.shoe is None else 0
        return None if self.stub is None else self.stub - dealt

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
        check(not held.at(Place.SHUFFLER), "M6: a batch in play is in play")
        mid = state.phase in (Phase.RESHUFFLE_CUT, Phase.RESHUFFLE_LOAD)
        left = room.left if rules.shoe is None or rules.continuous else max(0, size - shoe.count)
        check(mid or held.at(Place.SHOE) == left, "M1: the shoe holds what has not come out")
        check(mid or not held.at(Place.IN_HAND), "M6: a batch in play is in play")
        check(mid or (held.proof is None and not held.cut), "M4: a proof and a cut serve one shoe")
    check((state.phase in RESHUFFLING) == room.dry, "M6: the rack is shuffled in a round by its tap alone")
    check(
        (state.phase in (*IN_ROUND, *RESHUFFLING)) == room.in_round, "M6: rounds begin and end by their taps"
    )
    check((state.round is not None) == room.in_round, "M6: a round begins and ends by its taps")
    device = state.device(rules.shoe or "")
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
        room = _card(rules, before, found.states[0], found.facts[0], room)
        _not_in_silence(rules, before, found, room)
    elif move.means == "returned" or (rules.continuous and room.shoe and _lets_out(move)):
        room = _back(before, after, move, room)
    elif move.means in ("look", "failed look"):
        room = _look(before, after, move, room)
    elif move.means == "cutting card":
        room = _cutting_card(rules, before, room, late=False)
    else:
        room = _dealt_from(rules, before, after, _shuffler(before, move.means, room))
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
            manual = rules.shuffler is None or args.get("mode") == "manual-shoe"
            manual = manual or (rules.mode == "manual-shoe" and before.shuffler.out)
            return room._replace(steps=(), certified=NONE, manual=manual)
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
            room = room._replace(uncounted=tuple((b, n) for b, n in room.uncounted if b != batch))
            return room._replace(steps=left, shuffled=room.shuffled - {batch}, cut=room.cut - {batch})
        case "reshuffle_by_hand" if room.in_round:
            held = before.batches[room.shoe or ""]
            if rules.shoe is None:
                room = room._replace(left=int(args["cards"]), laid=rules.batch_size - int(args["cards"]))
            else:
                dry = before.shoe.empty or not held.at(Place.SHOE)  # by its own word, or by count
                check(dry, "M6: a shoe with cards is not shuffled in a round")
            check(not rules.per_round, "R-53: no shuffle mends a round of one deck")
            return room._replace(dry=True, shuffled=room.shuffled | {held.id}, cut=room.cut - {held.id})
        case "reshuffle_by_hand":
            again = room.by_choice and rules.discretionary is Discretionary.SAME_BATCH and batch == room.last
            allowed = room.manual or again or rules.night
            check(allowed, "M4: by hand only without a shuffler, or where a switch says so")
            check(rules.night or room.ready(batch), "R-12: a batch is prepared before it is shuffled")
            hand = room.by_hand | {batch}
            return room._replace(by_hand=hand, shuffled=room.shuffled | {batch}, cut=room.cut - {batch})
        case "close" if before.phase is Phase.CLOSING:
            for each in before.batches.values():
                away = sum(each.cards.values()) - each.at(Place.IN_HAND)
                check(not away, "S10: every device is empty")
                check(each.counted is not None, "S10: each batch is counted")
            looked_into = {*before.empty, None} >= {rules.shoe, rules.shuffler}
            check(looked_into, "S10: every device was looked into")
            return Room(last=room.last)
        case "close" if before.shoe.batch is None:
            kept = frozenset(b.id for b in before.batches.values() if b.at(Place.SHUFFLER))
            return room._replace(shuffled=room.shuffled & kept, cut=NONE, by_hand=NONE)
        case "out_of_service":
            inside = before.batch_at(Place.SHUFFLER)
            return room._replace(running=False, asked=False, shuffled=room.shuffled - {inside})
        case "confirm_empty":
            check(len({*told["by"]}) == len(told["by"]), "S10: two people look, not one twice")
        case "drawn_in_error" | "card_face_up" if rules.shoe is None:
            gone = min(1, room.left) if tap.event == "card_face_up" or told["burned"] else 0
            return _told_out(room, gone, open_=tap.event == "card_face_up")
        case "drawn_in_error":
            cards = before.round.cards if before.round else ()
            batch, last = room.shoe or "", cards[-1]
            laid = before.batches[batch].at(Place.TABLE)  # none, when this one came beyond the whole batch
            fewer = laid - found.states[0].batches[batch].at(Place.TABLE)
            burned = told["burned"] and not last.foreign and laid > 0
            check(fewer == burned, "M1: a card burned lies in the rack")
            check(last.seen or last.to != "hole" or not told["shown"], "M10: nobody turns up the hole card")
            room = room._replace(laid=max(0, room.laid - fewer))
        case "void_round":
            check(found.states[0].shoe.unseen == before.shoe.unseen, "M10: nobody turns up a void round")
            if rules.shoe is None and before.phase in (Phase.RESHUFFLE_CUT, Phase.RESHUFFLE_LOAD):
                room = room._replace(left=0)
            unknown = rules.shoe is None and before.phase in (Phase.PLAYING, Phase.SIDE_WAGERS)
            room = _round_over(rules, before, room._replace(dry=False))
            return room._replace(stub=None) if unknown else room
        case "idle" | "close":
            check(tap.event == "close" or not _rests(rules, before, room), "R-79: discards rest")
            return room._replace(rounds_left=0)
        case "bart_carter":
            check(rules.shoe is not None, "R-10: nothing goes back into a hand")
            check(not rules.night, "R-79: discards rest until every card is dealt")
            return room
        case "load_shuffler":
            check(rules.night or room.ready(batch), "R-12: a batch is prepared before it is shuffled")
            check(not (rules.continuous and room.shoe), "M2: nothing goes in where a batch is dealt from")
            check(before.batch_at(Place.SHUFFLER) is None, "M2: one batch in the shuffler")
            check(before.batches[batch].unfit is None, "M9: an unfit batch stays out")
            room = room._replace(shuffled=room.shuffled - {batch}, cut=room.cut - {batch})
            return room._replace(asked=False, running=False, letting_out=False)
        case "take_from_shuffler":
            check(not room.in_round, "M6: no swap inside a round")
            check(not rules.continuous, "R-11: no batch comes out of a continuous shuffler")
            inside = before.batch_at(Place.SHUFFLER) or ""
            out_of_play = inside in before.batches and before.batches[inside].unfit is not None
            check(inside in room.shuffled or out_of_play, "M4: only a shuffled batch is taken")
            return room._replace(letting_out=True)
        case "cut":
            position, batch = int(args["position"]), found.facts[0].data["batch"]
            size = before.batches[batch].at(Place.IN_HAND)
            least = 1 if rules.night else rules.min_cut
            least = min(least, size // 2) if room.dry else least
            check(least <= position <= size - least, "M4: the cut of R-15")
            check(batch in room.shuffled, "M4: only a shuffled batch is cut")
            return room._replace(cut=room.cut | {batch})
        case "recut":
            return room._replace(cut=room.cut - {found.facts[0].data["batch"]})
        case "insert_cutting_card":
            check(rules.night or 4 * int(args["position"]) >= rules.batch_size, "M4: the quarter of R-16")
        case "load_shoe" | "take_in_hand" if room.dry:
            check(batch == room.shoe, "M6: the same batch goes on")
            check(batch in room.shuffled, "M4: shuffled")
            check(batch in room.cut, "M4: cut")
            burn = rules.burn_after_dry and not rules.night
            room = room._replace(dry=burn, burn_due=burn or (rules.night and room.burn_due))
            room = room._replace(shuffled=room.shuffled - {batch}, cut=room.cut - {batch})
            return room if rules.night else room._replace(rounds_left=0)
        case "load_shoe" | "take_in_hand":
            check(
                (tap.event == "take_in_hand") == (rules.shoe is None), "R-28: from the hand, or from a shoe"
            )
            held, other = before.batches[batch], before.batches.get(rules.other(batch) or "")
            swap = any(f.blocks is Blocks.SWAP and f.batch in (None, batch) for f in before.faults)
            again = batch in room.by_hand
            one = len(rules.batches) == 1
            check(one or batch != room.last or again, "M3: the batches alternate")
            check(batch in room.shuffled, "M4: shuffled")
            machine = rules.cut is CutPolicy.HAND_SHUFFLED and not again
            check(batch in room.cut or machine, "M4: cut")
            check(held.at(Place.IN_HAND) == rules.batch_size and held.unfit is None, "M1: the whole batch")
            check(not swap, "M9: a fault that blocks the swap, blocks")
            check(before.batch_at(Place.RACK) is None and room.shoe is None, "M2: rack and shoe are empty")
            stored = other is None or other.at(Place.SHUFFLER) == rules.batch_size
            check(stored or room.manual, "M2: the other batch is stored (R-06)")
            room = room._replace(by_hand=room.by_hand - {batch}, by_choice=False)
            burn = rules.burn is Burn.EACH_LOAD
            room = room._replace(shuffled=room.shuffled - {batch}, cut=room.cut - {batch}, burn_due=burn)
            return _new_shoe(rules, batch, room)
        case "peek":
            check(_may_look(before, room), "M8: once, an ace or ten up, wagers settled")
        case "dealer_change":
            burns = rules.burn is not Burn.NEVER and not rules.night
            return room._replace(burn_due=rules.burn_on_dealer_change and burns)
        case "burn" if rules.shoe is None:
            room = _told_out(room, min(1, room.left))
            dry = room.dry and not room.burn_due
            return room._replace(burn_due=False, dry=dry, dealt=room.in_round)
        case "bets_closed":
            check(room.rounds_left != 0, "M5: no round after the cutting card")
            check(not room.burn_due, "M7: the burn comes first")
            stops = [f for f in before.faults if f.blocks is Blocks.ROUND]
            stops = [f for f in stops if f.code != "dead_card" or f.batch in (None, room.shoe)]
            check(not stops, "M9: a fault that blocks, blocks")
            swap = rules.continuous and any(f.blocks is Blocks.SWAP for f in before.faults)
            check(not swap, "M9: a continuous shuffler swaps by itself: what blocks that, blocks")
            left = room.rounds_left - 1 if room.rounds_left else None
            burn = rules.burn is Burn.EACH_ROUND
            dealt = bool(before.shoe.early) or (rules.shoe is None and not burn)
            used = rules.batch_size - room.left - room.laid if rules.continuous else 0
            room = room._replace(used=used, burn_due=burn)
            return room._replace(in_round=True, rounds_left=left, dealt=dealt, looks=0, natural=False)
        case "dispense":
            check(
                room.in_round or before.phase is Phase.SHOE_END, "R-53: no stack before the bets are closed"
            )
        case "cutting_card_at" if not before.shoe.cut_seen:
            late = not room.in_round and "box" in args and bool(before.last_boxes)
            return _cutting_card(rules, before, room, late=late)
        case "round_settled":
            check(not room.burn_due, "M7: the burn comes first")
            told = any(f.code == "reader_skipped" for f in before.faults)
            check(told or not _owes_look(rules, before, room), "M8: no round ends before the look")
            check(not (rules.per_round and room.open_cards > 1), "R-31: two cards face up void all hands")
            left = room.to_be_left(rules, before.round.order if before.round else ())
            certain = room.counted is None or before.uncertain or room.counted == left
            check(certain or not rules.per_round, "R-55: a wrong stub voids the hands")
            if rules.shoe is None:
                room = _told_cards(rules, before, args.get("cards"), room)
            return _round_over(rules, before, room._replace(hidden=_exposed(before, room, found)))
        case "count_stub":
            room = room._replace(counted=int(args["cards"]))
            left = room.to_be_left(rules, before.round.order if before.round else ())
            return _stub_judged(before, found.states[-1], left, room)
        case "shuffle_now":
            check(not _rests(rules, before, room), "R-79: discards rest until every card is dealt")
            return room._replace(rounds_left=0, by_choice=True)
        case "collect_rack":
            check(not room.in_round, "M6: no swap inside a round")
            room = _stub(rules, before, found.states[-1], args.get("stub"), room)
            return room._replace(shoe=None, hidden=NONE, burn_due=False, left=0, laid=0, used=0, old=0)
        case _:
            pass
    return room


def _rests(rules: TableRules, before: TableState, room: Room) -> bool:
    """Whether cards of a casino night are left to deal, and nothing is wrong with them (R-79)."""
    if not rules.night or room.shoe is None or before.shoe.untold or before.shoe.empty:
        return False
    held, faults = before.batches[room.shoe], before.faults
    stopped = held.unfit or any(f.blocks in (Blocks.NOW, Blocks.ROUND) for f in faults)
    return bool(held.at(Place.SHOE)) and not stopped


def _may_look(before: TableState, room: Room) -> bool:
    """Invariant 8, read off the cards on the table."""
    if before.phase is not Phase.PLAYING or before.no_reader or room.looks:
        return False
    if before.round is not None and before.round.owed:
        return False
    cards = before.round.cards if before.round else ()
    up = next((c.card for c in cards if c.to == "dealer" and c.seen), None)
    return up is None or up[0] in "ATJQK"


def _owes_look(rules: TableRules, before: TableState, room: Room) -> bool:
    """Whether the look comes next: a reader is in use and works, and an ace or ten lies open."""
    up = any(c.to == "dealer" and c.seen and c.card for c in before.round.cards) if before.round else False
    works = rules.reader is not None and all(f.code != "reader_failed" for f in before.faults)
    return works and up and _may_look(before, room)


def _not_in_silence(rules: TableRules, before: TableState, found: Decision, room: Room) -> None:
    """A further card: not before the look, and not after a natural."""
    if found.facts[0].data["to"] not in PLAYED:
        return
    latched = {f.code for f in found.states[-1].faults}
    check("reader_skipped" in latched or not _owes_look(rules, before, room), "M8: no card before the look")
    check("card_out_of_turn" in latched or not room.natural, "M8: no card after a natural")


def _look(before: TableState, after: TableState, move: Move, room: Room) -> Room:
    misused = {f.code for f in after.faults} >= {"reader_misuse"}
    known = "reader_misuse" in {f.code for f in before.faults}
    if room.in_round:
        check(misused == (known or not _may_look(before, room)), "M8: once, an ace or ten up, wagers settled")
        said = getattr(move.given.event, "result", None) == "natural" and _may_look(before, room)
        room = room._replace(looks=min(room.looks + 1, 2), natural=room.natural or said)
    return room


def _exposed(before: TableState, room: Room, found: Decision) -> frozenset[str]:
    """What stays hidden when a round is settled: the hole card is seen now, the burn card is not."""
    if not any(fact.kind == "exposed" for fact in found.facts) or before.round is None:
        return room.hidden
    turned = {card.card for card in before.round.cards if card.to not in ("stray", "burned") and card.card}
    return room.hidden - turned


# --- what no shoe counts, and one deck a round ---


def _new_shoe(rules: TableRules, batch: str, room: Room) -> Room:
    """A whole batch is dealt from now on."""
    rounds = 1 if rules.per_round else None
    stub = rules.batch_size if rules.per_round else None
    left = rules.batch_size if rules.shoe is None or rules.continuous else 0
    room = room._replace(left=left, laid=0, used=0, old=0, stub=stub, open_cards=0)
    room = room._replace(counted=None)
    return room._replace(last=batch, shoe=batch, cut_seen=False, rounds_left=rounds, hidden=NONE)


def _told_out(room: Room, gone: int, *, open_: bool = False) -> Room:
    """So many cards went from the hand to the rack."""
    stub = None if room.stub is None else room.stub - gone
    return room._replace(left=room.left - gone, stub=stub, open_cards=min(2, room.open_cards + open_))


def _told_cards(rules: TableRules, before: TableState, cards: Any, room: Room) -> Room:
    """A round from the hand is settled: `cards` lie on the layout, None when nobody said."""
    if cards is None and rules.per_round and before.round is not None:
        cards = min(len(before.round.order), room.laid + room.left)
    if cards is None:
        return room
    check(room.laid <= cards <= room.laid + room.left, "M1: no card of a round that was not there")
    left = room.left - (cards - room.laid)
    return room._replace(left=left, stub=None if room.stub is None else left)


def _round_over(rules: TableRules, before: TableState, room: Room) -> Room:
    """Its cards lie in the rack; cards of rounds before one that was dealt may go back (R-60)."""
    old = room.used if before.phase is Phase.PLAYING else room.old
    due = room.burn_due and rules.burn is not Burn.EACH_ROUND
    return room._replace(in_round=False, laid=0, old=old, burn_due=due)


def _stub(rules: TableRules, before: TableState, after: TableState, counted: Any, room: Room) -> Room:
    """A stub is counted at least every fifth round, and a wrong one takes the deck off the table."""
    if not rules.per_round or room.shoe is None:
        return room
    rounds, batch = dict(room.uncounted), room.shoe
    played = bool(before.last_boxes)
    room = room._replace(counted=room.counted if counted is None else int(counted))
    rounds[batch] = rounds.get(batch, 0) + played
    if room.counted is None:
        in_time = not played or rounds[batch] < STUB_ROUNDS
        check(in_time, "R-54: the stub is counted in every fifth round")
    elif room.stub is not None and not before.uncertain:
        room = _stub_judged(before, after, room.stub, room)
        rounds[batch] = 0
    counts = tuple(sorted((b, min(n, STUB_ROUNDS)) for b, n in rounds.items()))
    return room._replace(uncounted=counts, counted=None)


def _stub_judged(before: TableState, after: TableState, left: int | None, room: Room) -> Room:
    """A number that is not what must be left is latched, and no other."""
    wrong, knew = _has(after, "wrong_stub"), _has(before, "wrong_stub")
    known = left is not None and not before.uncertain
    right = knew or wrong == (room.counted != left)
    check(right or not known, "R-55: hands, community and stub are the deck")
    return room


# --- a continuous shuffler ---


def _dealt_from(rules: TableRules, before: TableState, after: TableState, room: Room) -> Room:
    """The batch that it shuffled is dealt from where it lies: only a whole cycle of ours lets it."""
    batch = after.shoe.batch
    if batch == before.shoe.batch or batch is None:
        return room
    check(rules.continuous, "M4: a batch goes into the shoe by its tap")
    check(batch in room.shuffled, "M4: shuffled")
    check(len(rules.batches) == 1 or batch != room.last, "M3: the batches alternate")
    check(after.batches[batch].unfit is None, "M9: an unfit batch stays out")
    return _new_shoe(rules, batch, room._replace(shuffled=room.shuffled - {batch}, burn_due=False))


def _lets_out(move: Move) -> bool:
    return isinstance(move.given, Observed) and isinstance(move.given.event, BatchReleased)


def _back(before: TableState, after: TableState, move: Move, room: Room) -> Room:
    """Cards go back into the machine, or come out by its door: whose count is wrong is latched (R-60)."""
    event = move.given.event
    if room.shoe is None:
        return room
    if not isinstance(event, CardsReturned):
        check(_new(before, after, "count_drift"), "R-60: cards in play taken out are told")
        return room._replace(left=room.left - min(event.count or 0, room.left))
    rack = sum(before.batches[room.shoe].cards.values()) - room.left - room.laid
    old = room.used if before.phase is Phase.PLAYING else room.old
    old = 0 if before.phase is Phase.SHOE_END else old  # the rest is dealt out: nothing goes back
    if not before.uncertain:
        twice, early = event.count > rack, old < event.count <= rack
        drift = event.inside != room.left + event.count and not twice
        found = {code for code in ("returned_twice", "returned_early", "count_drift") if _has(after, code)}
        had = {code for code in ("returned_twice", "returned_early", "count_drift") if _has(before, code)}
        wanted = {"returned_twice"} if twice else {"returned_early"} if early else set()
        wanted |= {"count_drift"} if drift and "returned_twice" not in had else set()
        check(found - had == wanted - had, "R-60: what went back is judged by what lay there, and since when")
    moved = min(event.count, rack)
    used, old = max(0, room.used - moved), max(0, room.old - moved)
    return room._replace(left=room.left + moved, used=used, old=old)


def _has(state: TableState, code: str) -> bool:
    return any(fault.code == code for fault in state.faults)


def _new(before: TableState, after: TableState, code: str) -> bool:
    return _has(after, code) or _has(before, code)


def _card(rules: TableRules, before: TableState, after: TableState, fact: Fact, room: Room) -> Room:
    to = fact.data["to"]
    room = _counted(rules, fact, room)
    for batch, held in before.batches.items():
        gone = held.at(Place.SHOE) - after.batches[batch].at(Place.SHOE)
        rack = Place.ASIDE if fact.data.get("aside") else Place.RACK
        where = rack if to in ASIDE else Place.TABLE
        came = after.batches[batch].at(where) - held.at(where)
        check(room.shoe is None or gone == came, "M1: a card lies where it went: burn and stub in the rack")
    if room.shoe is None:
        check(to == "stray", "M4: a card from a shoe that was not loaded goes nowhere")
        return room._replace(cut=room.cut - {fact.data["batch"]})
    stray = to == "stray"  # latched: a supervisor decides what becomes of it
    check(not room.burn_due or to in ASIDE or stray, "M7: the first card is burned, or is no player's")
    if to == "face_up":
        return room
    check(to not in PLAYED or room.in_round, "M4: cards are played in a round")
    if not fact.data["seen"] and fact.sealed.get("card"):
        room = room._replace(hidden=room.hidden | {fact.sealed["card"]})
    owed = before.round is not None and before.round.owed
    players = (to.startswith("box") or to in ("dealer", "play")) and not owed
    open_ = fact.data.get("face_up") or (players and _open_game(rules, before, to))
    check(open_ or not fact.data["seen"], "M10: burn, stub, stray and hole cards are unseen")
    check(fact.data["seen"] or "card" not in fact.data, "M10: an unseen card is sealed")
    dry, due = room.dry and (stray or not room.burn_due), room.burn_due and stray
    return room._replace(burn_due=due, dealt=room.dealt or room.in_round, dry=dry)


def _counted(rules: TableRules, fact: Fact, room: Room) -> Room:
    """One card fewer where it came from, one more where it went."""
    to = fact.data["to"]
    if room.shoe is None or fact.data["foreign"]:
        return room
    laid = room.laid + int(to not in ASIDE and room.left > 0)
    stub = room.stub - 1 if room.stub and to != "stub" else room.stub
    open_cards = min(2, room.open_cards + (to == "face_up")) if rules.per_round else 0
    return room._replace(left=max(0, room.left - 1), laid=laid, stub=stub, open_cards=open_cards)


def _open_game(rules: TableRules, before: TableState, to: str) -> bool:
    """Whether cards lie open for all to see: none of a one-deck game, and one of two by a night's option."""
    if rules.game != "blackjack":
        return False
    if rules.player_card_down is CardDown.NONE or not to.startswith("box") or before.round is None:
        return True
    had = sum(card.to == to for card in before.round.cards)
    return had != (0 if rules.player_card_down is CardDown.FIRST else 1)


def _cutting_card(rules: TableRules, before: TableState, room: Room, *, late: bool) -> Room:
    unused = not rules.cutting_card or rules.per_round
    if unused or room.shoe is None or room.cut_seen or before.phase is Phase.SHOE_END:
        return room
    room = room._replace(cut_seen=True)
    if late or (room.in_round and room.dealt):
        return room._replace(rounds_left=0)
    if rules.first_card is FirstCardPolicy.RESHUFFLE_NOW:
        due = room.burn_due and rules.burn is not Burn.EACH_ROUND
        return room._replace(rounds_left=0, in_round=False, burn_due=due)
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
            if not (room.running and inside):
                return room._replace(running=False)
            room = room._replace(uncounted=tuple((b, n) for b, n in room.uncounted if b != inside))
            return room._replace(running=False, shuffled=room.shuffled | {inside})
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
            back = fault.gone is not None and still.gone is None  # an alarm, for a cause of its own
            check(replace(same, cause=fault.cause) == fault, "M9: a fault stays what it is")
            check(back or still.cause == fault.cause, "M9: a fault keeps its first cause")
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
            empty = fault.batch is None and inside is None
            if empty and len(rules.batches) == 1 and not rules.continuous:
                return True  # it ran empty, and there is no other batch to mix up
            mended = {b for b in room.by_hand & room.shuffled if state.batches[b].at(Place.IN_HAND)}
            mended |= {inside} & room.shuffled
            if room.shoe and room.dry and state.batches[room.shoe].at(Place.IN_HAND) == rules.batch_size:
                mended |= {room.shoe} & room.shuffled  # a night's discards may be the whole batch
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
        case "reader_misuse" | "reader_skipped":
            return not room.in_round
        case "reader_failed":
            return state.no_reader or fault.device in state.inspected
        case "stray_card" if Sense.EMPTY in rules.shoe_senses and not rules.continuous:
            return state.shoe.told_empty or state.shoe.first_fact > fault.again
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
        isinstance(move.given, Observed) and move.given.event.device != rules.shoe
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
