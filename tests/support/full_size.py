"""A table of full size, played by people and machines and watched at every step (`explore_laws`).

The cards of the batch in play are real ones: what the core counts is held against where they lie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from random import Random
from typing import Any

import cbor2

from controller.table.checkpoint import checkpoint, restore
from controller.table.draft import Decision
from controller.table.evolve import evolve
from controller.table.inputs import Booted, Fact, Hour, Observed, OperatorEvent, Refusal, Role
from controller.table.machine import TableMachine
from controller.table.phases import OUT_OF_SHOE, Phase
from controller.table.profiles import TableRules
from controller.table.rules import decide, expected_taps
from controller.table.state import Cycle, Place, TableState, initial
from controller.table.view import snapshot
from devices import events as ev
from devices.events import Sense
from tests.support.explore_laws import Broken, Room, check, same_outputs, state_holds, step
from tests.support.explore_moves import Move, moves, other_back

DEALER, SUPERVISOR = frozenset({Role.DEALER}), frozenset({Role.SUPERVISOR})
STEPS = ("inspect", "verify", "spread", "player_inspected", "wash")
HONEST = ("settings done", "status done, cycle begun", "status done", "start done", "cycle started")
HONEST += ("release done", "batch out", "batch lifted out", "peek done", "dispense done")
"""What machines do by themselves as soon as they can, in the order in which the one excludes the other."""
COMES_UP = ("shoe up", "shuffler up", "reader up", "csm up")
CARDS = ("card", "face-up card", "unread card", "card of the other back", "card of unread back")
CARDS += ("the first card again", "the last card again")


class FullSize:
    """`stack` is what lies in the shoe, or in hand while the rack is shuffled; `facts` came since `base`."""

    def __init__(self, rules: TableRules) -> None:
        self.rules = rules
        self.state = self.base = initial(rules)
        self.machine = TableMachine(rules, self.state)
        self.room = Room()
        self.facts: list[Fact] = []
        self.stack: list[str] = []
        self.path: list[str] = []
        self.random = Random("full size")
        self.hour = 490_000

    def again(self) -> FullSize:
        """The same table, to go on from here."""
        other = copy(self)
        other.base, other.facts, other.path, other.stack = self.state, [], [], list(self.stack)
        other.machine = TableMachine(self.rules, self.state)
        other.random = Random("again")
        return other

    @property
    def shoe(self) -> str:
        return self.rules.shoe or ""

    # --- every step ---

    def make(self, move: Move) -> bool:
        """Whether the move was accepted; raises when it, or its refusal, breaks an invariant."""
        phase = self.state.phase.value
        try:
            accepted = self._make(move)
        except Broken as broken:
            raise Broken(f"{broken}; in {phase} after: {' > '.join([*self.path[-40:], move.name])}") from None
        if accepted:
            self.path.append(move.name)
        return accepted

    def _make(self, move: Move) -> bool:
        before, rules = self.state, self.rules
        other = twin(rules, before)
        found = decide(rules, before, move.given)
        if other is not None:
            same_outputs(rules, move, found, other)
        if isinstance(move.given, OperatorEvent):
            accepted = isinstance(found, Decision)
            check(self.machine.may(before, move.given) is accepted, "law 8: rules and machine differ")
        if isinstance(found, Refusal):
            return False
        last = before
        for fact, after in zip(found.facts, found.states, strict=True):
            self.machine.follow(last, fact, after)
            last = after
        self.state = last
        self.facts += found.facts
        self.room = step(rules, before, move, found, self.room)
        state_holds(rules, last, self.room)
        self._physical(before, move)
        return True

    def _physical(self, before: TableState, move: Move) -> None:
        """What people do with the cards, and whether the core knows."""
        batch, tap = self.state.shoe.batch, move.given
        if batch is None or self.rules.by_eye:
            self.stack = []
            return
        if self.rules.continuous and before.shoe.batch is None:
            self.stack = self._shuffled(Counter())
        elif move.means == "returned":
            self._go_back(before.batches[batch].at(Place.RACK), tap.event.count)
        elif self.rules.continuous and move.means in ("taken out", "out", "out but one", "out whole", ""):
            del self.stack[self.state.batches[batch].at(Place.SHOE) :]
        if isinstance(tap, OperatorEvent):
            if tap.event == "load_shoe" and before.shoe.batch is None:
                self.stack = self._shuffled(Counter())
            elif tap.event == "bart_carter" or tap.event == "reshuffle_by_hand":
                outside = Counter(self._on_layout()) + Counter(self.state.shoe.aside)
                unread = outside.pop("", 0)
                over = sorted(outside.elements())[: self._of_hands_over(before, tap)]
                self.stack = self._shuffled(outside - Counter(over))
                del self.stack[: unread - (self._of_hands_over(before, tap) - len(over))]
            elif tap.event == "void_round" and before.phase in OUT_OF_SHOE:
                self.stack = []
        held = self.state.batches[batch]
        place = Place.IN_HAND if self.state.phase in OUT_OF_SHOE else Place.SHOE
        check(held.at(place) == len(self.stack), "M1: the shoe holds what lies in it")

    def _of_hands_over(self, before: TableState, tap: OperatorEvent) -> int:
        """Cards of the layout that are shuffled with the rack: only at a casino night, as the dealer says."""
        held = before.batches[before.shoe.batch or ""]
        return max(0, int(tap.args["cards"]) - held.at(Place.RACK)) if "cards" in tap.args else 0

    def _go_back(self, rack: int, count: int) -> None:
        """Any cards of the rack are in the continuous shuffler again, at any place."""
        away = Counter(self.stack) + Counter(self._on_layout())
        used = self._shuffled(away)[: min(rack, count)]
        self.stack += used
        self.random.shuffle(self.stack)

    def _on_layout(self) -> Iterator[str]:
        for dealt in (*(self.state.round.cards if self.state.round else ()), *self.state.shoe.early):
            if dealt.to != "burned" and not dealt.foreign:
                yield dealt.card or ""

    def _shuffled(self, outside: Counter[str]) -> list[str]:
        whole = Counter(dict.fromkeys(self.rules.deck, self.rules.decks))
        stack = list((whole - outside).elements())
        self.random.shuffle(stack)
        return stack

    # --- people ---

    def tap(self, event: str, roles: frozenset[Role] = SUPERVISOR, who: str = "bob", **args: Any) -> bool:
        return self.make(Move(event, OperatorEvent(event, args, who, roles), 0, "tap"))

    def prepare(self, batch: str, paper: bool = False) -> None:
        """By the cards on the layout (R-13), or by a paper (R-48)."""
        if paper:
            self.tap("certificate", **certificate(self.rules, batch))
            return
        for number, event in enumerate(STEPS):
            self.tap(event, who="ann" if number == 0 else "bob", batch=batch)

    def expected_tap(self, random: Random, *, ending: bool = False) -> bool:
        """One of the taps that the table calls for."""
        taps = list(expected_taps(self.rules, self.state).values())
        if not ending:
            taps = [tap for tap in taps if tap.event not in ("close", "idle", "shuffle_now", "recut")]
        if not taps:
            return False
        tap = random.choice(taps)
        who = random.choice(("ann", "bob"))
        return self.make(Move(tap.event, replace(tap, who=who, roles=SUPERVISOR), 0, "tap"))

    def new_hour(self, hours: int, day: str) -> None:
        self.hour += hours
        self.make(Move("hour", Hour(self.hour, day), 0, "hour"))

    # --- machines ---

    def may(self, budget: int) -> list[Move]:
        """What may happen at the machines; cards are drawn by `cards` and `odd_card`."""
        found = moves(self.rules, self.state, (), self.room, budget)
        return [m for m in found if m.name not in CARDS and not m.name.startswith("clear ")]

    def happens(self, names: tuple[str, ...]) -> bool:
        """The first of the named moves that honest machines would make now."""
        now = {m.name: m for m in self.may(0)}
        name = next((name for name in names if name in now), None)
        return name is not None and self.make(now[name])

    def machines(self, *, complete: bool = False) -> None:
        """What honest machines do until they wait for somebody; a cycle runs until it may `complete`."""
        for _ in range(30):
            names = HONEST
            if self.state.shuffler.stage is Cycle.CHECKING:
                names = tuple(name for name in HONEST if name != "status done, cycle begun")
            if complete and self.state.shuffler.stage is Cycle.RUNNING:
                names = (*names, "cycle completed")
            if not self.happens(names):
                return

    def links(self) -> None:
        while self.happens(COMES_UP):
            pass

    def restart(self) -> None:
        """A crash, a checkpoint read back, and a start at which every device answers as it was."""
        plain = cbor2.loads(cbor2.dumps(checkpoint(self.state)))
        check(restore(plain) == self.state, "S9: a checkpoint is the whole state")
        before = self.state
        self.make(Move("crash", Booted(f"{before.seq:032x}"), 0, "boot"))
        check((self.state.phase, self.state.round) == (before.phase, before.round), "S9: the same round")
        check((self.state.batches, self.state.shoe) == (before.batches, before.shoe), "S9: the same cards")
        check(
            not {*self.state.pending} & {*before.pending},
            "law 4: what was sent without an end is unknown after a start",
        )

    # --- the shoe ---

    def cards(self, count: int) -> None:
        """The next cards of the shoe, and its word that it is empty."""
        for _ in range(count):
            batch, shoe = self.state.shoe.batch, self.state.shoe
            if batch is None or self.state.phase in OUT_OF_SHOE or not self.state.device(self.shoe).known:
                return
            if self.rules.stacks and shoe.asked <= shoe.told and self.tap("dispense"):
                self.machines()
            if self.stack:
                self._card()
            elif Sense.EMPTY in self.rules.shoe_senses and not shoe.empty:
                self.happens(("shoe empty",))
            else:
                return

    def _card(self, name: str = "card", **changes: Any) -> None:
        batch = self.state.shoe.batch
        assert batch is not None
        foreign = name == "card of the other back"
        card = self.stack[-1] if foreign else self.stack.pop()
        back = self.rules.back(batch) if Sense.BACK in self.rules.shoe_senses else None
        n = self.state.device(self.shoe).n + 1
        whole = {"card": card, "back": back, **changes}
        event = ev.CardDrawn(device=self.shoe, n=n, seq=n, raw=b"raw", **whole)
        self.make(Move(name, Observed(event), 0, "foreign card" if foreign else "card"))

    def odd_card(self, name: str) -> None:
        """A card that comes another way than it should."""
        batch = self.state.shoe.batch
        if not self.stack or self.state.phase in OUT_OF_SHOE or not self.state.device(self.shoe).known:
            return
        assert batch is not None
        if name == "card of the other back":
            if Sense.BACK in self.rules.shoe_senses:
                self._card(name, back=other_back(self.rules, batch))
        else:
            self._card(name, **{"face-up card": {"face_up": True}, "unread card": {"card": None}}[name])

    # --- whole stretches of play ---

    def round(self, boxes: str, *, cut: bool = False, extra: int = 0) -> None:
        """A round from the bets to the settlement, as far as it gets."""
        self.tap("bets_closed", boxes=boxes)
        for _ in range(60):
            if self.state.phase is Phase.SIDE_WAGERS:
                self.tap("side_wagers_settled")
            elif self.state.phase is Phase.ROUND_BURN and not cut:
                self.burn()
            elif self.state.phase in (Phase.DEALING, Phase.HOLE_CARD) and self.stack:
                self.cards(1)
            else:
                break
        if cut and not self.state.shoe.cut_seen and Sense.CUT_CARD in self.rules.shoe_senses:
            self.happens(("cutting card",))
        if cut:
            self.tap("cutting_card_at", box="dealer")
        self.cards(extra)
        cards = 2 * len(boxes.split(",")) + 2 + extra
        told = self.rules.by_eye and self.random.random() < 0.7
        _ = (told and self.tap("round_settled", cards=cards)) or self.tap("round_settled")

    def burn(self) -> None:
        if self.rules.by_eye:
            self.tap("burn")
        else:
            self.cards(1)

    def end_of_shoe(self) -> None:
        while self.stack and self.state.phase is Phase.SHOE_END:
            self.cards(1)
        self.cards(1)
        said: tuple[dict[str, Any], ...] = ({}, {"shoe_empty": True}, {"stub": self.room.stub or 0})
        any(self.tap("collect_rack", gauge="full", **words) for words in said)

    def cut_and_load(self) -> None:
        """The cut by whoever it goes to, the cutting card, the shoe and its burn."""
        for tap in expected_taps(self.rules, self.state).values():
            if tap.event == "offer_cut":
                self.make(Move("offer_cut", replace(tap, who="ann", roles=SUPERVISOR), 0, "tap"))
        self.tap("cut", position=self.rules.batch_size // 2)
        self.tap("insert_cutting_card", position=self.rules.least_behind_cutting_card)
        self.load(self.state.taken or "A")
        if self.state.phase is Phase.BURN_DUE:
            self.burn()

    def load(self, batch: str) -> None:
        self.tap("take_in_hand" if self.rules.by_eye else "load_shoe", batch=batch)

    def shuffle(self, batch: str) -> None:
        self.tap("load_shuffler", batch=batch)
        self.tap("start_shuffle")
        self.machines()

    def swap(self) -> None:
        """The stored batch comes out and is cut, the other one goes in (S4); one batch alone goes round."""
        other = self.rules.other(self.state.shoe.last_batch or "B") or "A"
        if self.rules.alone and self.rules.shuffler is not None and not self.state.manual:
            self.shuffle("A")
            self.machines(complete=True)
            self.tap("take_from_shuffler")
            self.machines()
        elif not (self.state.manual and self.tap("reshuffle_by_hand", batch=other)):
            self.machines(complete=True)
            self.tap("take_from_shuffler")
            self.machines()
            self.shuffle(self.rules.other(self.state.taken or "A"))
        self.cut_and_load()

    def close(self) -> None:
        """From the rack to the closed table: every batch counted, every device seen empty (S10)."""
        self.tap("close")
        self.machines(complete=True)
        self.tap("take_from_shuffler")
        self.machines()
        for batch in "AB":
            self.tap("count_batch", batch=batch, cards=self.rules.batch_size)
        for who in ("ann", "bob"):
            for device in ("shoe", "shuffler", "reader", "csm"):
                self.tap("confirm_empty", who=who, device=device)
                self.machines()
        self.tap("close")

    # --- what must hold in the end ---

    def replays(self) -> None:
        """The journal rebuilds the state."""
        state = self.base
        for fact in self.facts:
            plain = cbor2.loads(cbor2.dumps([fact.data, fact.sealed], canonical=True))
            state = evolve(state, Fact(fact.kind, fact.source, *plain))
        check(state == self.state, "S9: the replay differs")

    def seen(self) -> None:
        """The view tells no unseen card."""
        other = twin(self.rules, self.state)
        if other is not None:
            check(snapshot(self.rules, other) == snapshot(self.rules, self.state), "M10: the view tells")


def certificate(rules: TableRules, batch: str) -> dict[str, Any]:
    """The paper of a pre-shuffled batch."""
    numbers = {"decks": rules.decks, "cards": rules.batch_size, "result": "ok", "seal_intact": True}
    names = {"maker": "M", "model": "M1", "serial": "1", "operator": "eve", "seal": f"S{batch}"}
    return {"batch": batch, **names, "at": "2026-11-30T08:00:00Z", **numbers}


def twin(rules: TableRules, state: TableState) -> TableState | None:
    """The same table to everyone's eyes, with one unseen card another one; None when none can differ."""
    shoe, round_ = state.shoe, state.round
    dealt = [*(round_.cards if round_ else ()), *shoe.early]
    hidden = [c.card for c in dealt if not c.seen and c.card and not c.foreign]
    hidden += [face for face, n in shoe.unseen.items() if n > hidden.count(face)]
    hidden = [face for face in hidden if shoe.drawn.get(face)]  # of shuffled discards nobody knows any more
    if not hidden:
        return None
    face = hidden[0]
    other = next((f for f in reversed(rules.deck) if f != face and shoe.drawn.get(f, 0) < rules.decks), None)
    if other is None:
        return None
    changed = replace(
        shoe,
        drawn=_one_more(_one_more(shoe.drawn, face, -1), other, 1),
        unseen=_one_more(_one_more(shoe.unseen, face, -1), other, 1),
    )
    at = next((i for i, c in enumerate(dealt) if c.card == face and not c.seen and not c.foreign), None)
    if at is not None:
        dealt[at] = replace(dealt[at], card=other)
    cards = len(round_.cards) if round_ else 0
    round_ = replace(round_, cards=tuple(dealt[:cards])) if round_ else None
    return replace(state, shoe=replace(changed, early=tuple(dealt[cards:])), round=round_)


def _one_more(counts: Any, face: str, n: int) -> dict[str, int]:
    found = {**counts, face: counts.get(face, 0) + n}
    return {each: number for each, number in found.items() if number}
