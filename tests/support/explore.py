"""Every state a small table can come to, breadth first: the pure core against the invariants of section M.

A state's identity (`key`) leaves out what no judgement depends on, and says so line by line. Without a mishap
the exploration is complete. Every mishap is tried in every one of those states, and what can follow the last
mishap of a path is followed for a number of steps. States are explored in the order of the fewest mishaps, so
each is explored once, with all the mishaps it may still meet.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import cbor2

from controller.record import encode, plain
from controller.table.checkpoint import checkpoint, restore
from controller.table.draft import Decision
from controller.table.evolve import evolve
from controller.table.faults import FAULTS, Blocks
from controller.table.inputs import Booted, Fact, OperatorEvent, Refusal
from controller.table.locks import FAILED
from controller.table.machine import TableMachine
from controller.table.phases import Phase
from controller.table.profiles import Discretionary, TableRules
from controller.table.rules import awaited, decide, expected, judge
from controller.table.state import Dealt, Fault, TableState, initial
from controller.table.view import snapshot
from tests.support.explore_laws import (
    STUB_ROUNDS,
    Broken,
    Room,
    check,
    same_for_another_face,
    same_outputs,
    state_holds,
    step,
    twin,
)
from tests.support.explore_moves import PREPARING, READER, Move, all_taps, moves

HOME = (Phase.BETWEEN_ROUNDS, Phase.CLOSED)


@dataclass
class Report:
    """What an exploration met."""

    states: int = 0
    transitions: int = 0
    refusals: int = 0
    by_mishaps: Counter[int] = field(default_factory=Counter)
    phases: set[Phase] = field(default_factory=set)
    ways: set[tuple[Phase, str, Phase]] = field(default_factory=set)
    faults: set[str] = field(default_factory=set)
    refused: set[tuple[Phase, str, str]] = field(default_factory=set)
    dead_ends: list[Node] = field(default_factory=list)

    def __str__(self) -> str:
        by = ", ".join(f"{n} after {m} mishaps" for m, n in sorted(self.by_mishaps.items()))
        return (
            f"{self.states} states ({by}), {self.transitions} transitions, {self.refusals} refusals, "
            f"{len(self.phases)} phases, {len(self.faults)} kinds of faults"
        )


@dataclass(frozen=True, slots=True)
class Node:
    """A state met: how it was first reached, and how many steps after the last mishap."""

    state: TableState
    room: Room
    parent: Node | None = None
    by: str = "start"
    steps: int = 0

    def path(self) -> str:
        node, names = self, []
        while node.parent is not None:
            names.append(node.by)
            node = node.parent
        return " > ".join(reversed(names))


_OTHER_NAME = {"A": "B", "B": "A"}


def key(state: TableState, room: Room, *, again: bool = False) -> tuple[Any, ...]:
    """What tells two states apart.

    Left out, for no judgement reads them: `seq`, `boot`, idempotency `keys`, the number of the round and of
    the shoe beyond "the first", `first_fact`, causes and numbers of faults (of those mended by a restart it
    is kept whether one came since), a proof's cycle, event numbers and boot counters of devices (moves are
    relative to them), serial and firmware (constant once known), verdicts.
    Kept as a relation: tokens (none, the shuffler's, an older one), faces (how often each came, seen or not;
    which face it is does not matter), unaccounted cards (none known, 0, some), surplus (none, some).
    The batches differ in nothing but their names: the one that was in the last shoe is called A here.
    """
    shoe, shuffler, round_ = state.shoe, state.shuffler, state.round
    ids = list(state.batches)
    name: Any = dict(zip(ids, ids, strict=True)).get
    if len(ids) > 1 and shoe.last_batch == ids[1]:
        ids.reverse()
        name = _OTHER_NAME.get
    return (
        state.phase,
        tuple(
            (
                tuple(sorted(b.cards.items())),
                b.proof and (b.proof.token == shuffler.token),
                b.cut,
                b.unfit,
                bool(b.back),
                b.proof and b.proof.how,
                b.prep,
                b.inspected_by,
                b.counted,
                b.missing,
                min(b.uncounted, STUB_ROUNDS),
            )
            for b in map(state.batches.__getitem__, ids)
        ),
        (
            name(shuffler.batch),
            shuffler.stage,
            shuffler.token is None,
            shuffler.counter is None,
            shuffler.surplus > 0,
            shuffler.out,
            shuffler.letting_out,
        ),
        (
            name(shoe.batch),
            shoe.number == 0,
            tuple(sorted((n, shoe.unseen.get(face, 0)) for face, n in shoe.drawn.items() if face)),
            shoe.drawn.get("", 0),
            shoe.empty,
            shoe.closing,
            shoe.cut_seen,
            shoe.cut_at,
            shoe.unaccounted and 1,
            _dealt(shoe.early, state),
            shoe.by_choice and again,
            (shoe.untold, shoe.used, shoe.free),
            room.stub is not None and (shoe.stub, min(shoe.face_up, 2)),
            (shoe.counted, shoe.stub_wrong),
            max(0, shoe.asked - shoe.told),
        ),
        round_
        and (round_.boxes, _dealt(round_.cards, state), round_.order, round_.owed, min(round_.peeks, 2)),
        round_ and round_.left_out,
        round_ and round_.natural,
        round_ and round_.hands and (round_.hands, round_.insured, _shown(round_.cards)),
        (
            state.manual,
            state.ending,
            state.dry_in,
            state.burning,
            state.no_reader,
            state.empty,
            state.day,
            tuple(sorted(state.inspected.items())),
            tuple(sorted(state.first_to_look.items())),
        ),
        state.last_boxes,
        state.cutter,
        state.declined,
        tuple(
            sorted(
                (name, d.up, d.known, d.boot is None, str(d.locked), d.held)
                for name, d in state.devices.items()
            )
        ),
        frozenset(f.code for f in state.faults if f.code in FAILED.values() and f.gone is None),
        tuple(p.name for p in state.pending.values()),
        frozenset((f.code, name(f.batch), f.device, _mended(state, f)) for f in latched(state)),
        room.key(name, again=again),
    )


def _dealt(cards: tuple[Dealt, ...], state: TableState) -> tuple[Any, ...]:
    return tuple((c.to, c.card and state.shoe.drawn.get(c.card, 0) > 1, c.seen) for c in cards)


def _shown(cards: tuple[Dealt, ...]) -> tuple[str | None, ...]:
    """Where hands are followed it matters which face it is."""
    return tuple(card.card for card in cards if card.seen)


def latched(state: TableState) -> list[Fault]:
    """Faults without the alarms, which stop nothing."""
    return [fault for fault in state.faults if fault.blocks is not Blocks.NOTHING]


def _mended(state: TableState, fault: Fault) -> bool:
    """Whether a restart, a new batch or the word of the shoe that it is empty came since."""
    if FAULTS[fault.code].gone == "shoe_emptied":
        return state.shoe.told_empty
    gone, batch = FAULTS[fault.code].gone, state.batches.get(fault.batch or "")
    replaced = gone == "batch_replaced" and batch is not None and batch.replaced > fault.since
    return replaced or (gone == "restarted" and state.booted_at > fault.again)


class Explorer:
    """One exploration of one table with at most `mishaps` on a path, and `after` steps after the last one.

    It leaves out the taps `without`, begins at a table whose batches are `prepared`, after the moves named in
    `begin`, and goes no further than the phases `within`.
    """

    def __init__(
        self,
        rules: TableRules,
        mishaps: int,
        after: int,
        *,
        without: Collection[str] = (),
        prepared: bool = True,
        begin: Sequence[str] = (),
        within: Collection[Phase] = tuple(Phase),
    ) -> None:
        self.rules, self.mishaps, self.after = rules, mishaps, after
        self.prepared, self.begin, self.within = prepared, begin, within
        self.machine = TableMachine(rules, initial(rules))
        self.taps = all_taps(rules, without)
        self.report = Report()
        self._shut: set[tuple[Phase, str]] = set()
        self._back: list[list[int]] = []
        self._unexplored: list[int] = []

    def run(self) -> Report:
        """Explore everything. Raises Broken with the shortest path that breaks an invariant."""
        start = self._begun()
        numbers = {self._key(start.state, start.room): 0}
        nodes: list[Node] = [start]
        self._back.append([])
        level: deque[int] = deque([0])
        for spent in range(self.mishaps + 1):
            later: dict[int, None] = {}
            while level:
                number = level.popleft()
                node = nodes[number]
                self.report.by_mishaps[spent] += 1
                far = spent and spent == self.mishaps and node.steps > self.after
                if far or node.state.phase not in self.within:
                    self._unexplored.append(number)
                    continue
                for move, facts, after, room in self._steps(node, spent):
                    found = self._key(after, room)
                    to = numbers.get(found)
                    if to is None:
                        self._replay(node.state, facts, after)
                        to = numbers[found] = len(nodes)
                        steps = 0 if move.cost else node.steps + 1
                        nodes.append(Node(after, room, node, move.name, steps))
                        self._back.append([])
                        (level.append if not move.cost else later.setdefault)(to)
                    elif to in later and not move.cost:
                        del later[to]
                        nodes[to] = Node(after, room, node, move.name, node.steps + 1)
                        level.append(to)
                    if not move.cost:
                        self._back[to].append(number)
            level = deque(later)
        self.report.states = len(nodes)
        self._dead_ends(nodes)
        return self.report

    def _begun(self) -> Node:
        """A table in service that was never opened: both devices answer. Without one it is a mishap."""
        state, room = initial(self.rules), Room()
        for name in ("crash", *(f"{device} up" for device in self.rules.devices if device != READER)):
            move = next(m for m in moves(self.rules, state, (), room, 1) if m.name == name)
            found = decide(self.rules, state, move.given)
            assert isinstance(found, Decision)
            state = found.states[-1]
        if self.prepared:
            batches = [] if self.rules.night else [batch.id for batch in self.rules.batches]
            taps = [("open", {}), *((event, {"batch": b}) for b in batches for event in PREPARING[:5])]
            for event, args in taps:
                move = next(
                    m for m in all_taps(self.rules) if (m.given.event, dict(m.given.args)) == (event, args)
                )
                found = decide(self.rules, state, move.given)
                assert isinstance(found, Decision), found
                room = step(self.rules, state, move, found, room)
                state = found.states[-1]
        for name in self.begin:
            may = moves(self.rules, state, all_taps(self.rules), room, 0)
            move = next(m for m in may if m.name == name)
            found = decide(self.rules, state, move.given)
            assert isinstance(found, Decision), f"{name}: {found}"
            room = step(self.rules, state, move, found, room)
            state = found.states[-1]
        return Node(state, room)

    def _key(self, state: TableState, room: Room) -> tuple[Any, ...]:
        """As `key`; whose choice it was to end a shoe matters only where the same batch may go on (S5)."""
        return key(state, room, again=self.rules.discretionary is Discretionary.SAME_BATCH)

    # --- one state ---

    def _steps(self, node: Node, spent: int) -> list[tuple[Move, tuple[Fact, ...], TableState, Room]]:
        state, rules = node.state, self.rules
        whole, out, other = self._key(state, node.room), [], twin(rules, state, node.room)
        try:
            self._state(node, other)
        except Broken as broken:
            raise Broken(f"{broken}; in {state.phase.value} after: {node.path()}") from None
        for move in moves(rules, state, self.taps, node.room, self.mishaps - spent):
            try:
                step_ = self._step(node, move, other)
            except Broken as broken:
                where = f"in {state.phase.value} after: {node.path()} > {move.name}"
                raise Broken(f"{broken}; {where}") from None
            except Exception as error:
                error.add_note(f"in {state.phase.value} after: {node.path()} > {move.name}")
                raise
            if step_ is not None:
                out.append((move, *step_))
        check(self._key(state, node.room) == whole, "nothing that was tried changed the state itself")
        return out

    def _state(self, node: Node, other: TableState | None) -> None:
        state, rules = node.state, self.rules
        self.report.phases.add(state.phase)
        self.report.faults.update(f.code for f in state.faults)
        state_holds(rules, state, node.room)
        stored = cbor2.loads(cbor2.dumps(checkpoint(state)))
        check(restore(stored) == state, "a checkpoint is the whole state (S9)")
        if not state.faults and not state.pending and all(d.up for d in state.devices.values()):
            lead = expected(rules, state) or awaited(rules, state)
            check(bool(lead), "a table with nothing wrong knows what is next")
        crash = decide(rules, state, Booted("c" * 32))
        assert isinstance(crash, Decision)
        after = crash.states[-1]
        check(set(after.faults) >= set(state.faults), "M9: a fault outlives a restart")
        check(after.phase is state.phase and after.round == state.round, "S9: the same round goes on")
        check((after.batches, after.shoe) == (state.batches, state.shoe), "S9: the cards lie as they lay")
        if other is not None:
            check(snapshot(rules, other) == snapshot(rules, state), "M10: the view tells an unseen card")

    def _step(
        self, node: Node, move: Move, other: TableState | None
    ) -> tuple[tuple[Fact, ...], TableState, Room] | None:
        state, rules = node.state, self.rules
        if isinstance(move.given, OperatorEvent):
            if not self._accepted(node, move.given):
                self.report.refusals += 1
                return None
        found = decide(rules, state, move.given)
        assert isinstance(found, Decision)
        self.report.transitions += 1
        before = state
        for fact, after in zip(found.facts, found.states, strict=True):
            self._follow(before, fact, after)
            before = after
        if other is not None:
            same_outputs(rules, move, found, other)
        same_for_another_face(rules, state, move, found)
        return found.facts, before, step(rules, state, move, found, node.room)

    def _accepted(self, node: Node, tap: OperatorEvent) -> bool:
        """Rules and machine say the same; a refusal tells what is expected instead, or what is awaited."""
        state = node.state
        if (state.phase, tap.event) in self._shut:
            return False
        judged = judge(self.rules, state, tap)
        accepted = not isinstance(judged, Refusal)
        if isinstance(judged, Refusal) and judged.code in ("unexpected", "unknown_event"):
            # out of phase is a matter of the phase alone, so both judges are asked once a phase
            if tap.event != "cutting_card_at":
                self._shut.add((state.phase, tap.event))
        met = (state.phase, tap.event, judged.code) if isinstance(judged, Refusal) else None
        if met not in self.report.refused:  # the machine's guards ask the same rules: once for each refusal
            check(self.machine.may(state, tap) is accepted, f"law 8: rules and machine differ on {tap.event}")
        if met is not None and met not in self.report.refused:
            self.report.refused.add(met)
            self._refusal(state, tap)
        return accepted

    def _refusal(self, state: TableState, tap: OperatorEvent) -> None:
        """It says what to do instead: what is expected, what is awaited, or how a fault is mended."""
        refusal = decide(self.rules, state, tap)
        assert isinstance(refusal, Refusal)
        waits = awaited(self.rules, state) is not None or refusal.code in ("fault_latched", "device_absent")
        waits = waits or not all(d.up for d in state.devices.values())
        named = any(FAULTS[f.code].remedy for f in state.faults)
        check(bool(refusal.expected) or waits or named, f"a refused {tap.event} names nothing to do instead")

    def _follow(self, before: TableState, fact: Fact, after: TableState) -> None:
        """The machine goes along."""
        check(after.seq == before.seq + 1, "the count of facts")
        if "moves" in fact.data:
            self.machine.stand(before)
            self.machine.follow(before, fact, after)
            self.report.ways.add((before.phase, fact.data["moves"][0], after.phase))
        else:
            check(before.phase is after.phase, "law 8: a phase changes by a listed move alone")

    def _replay(self, before: TableState, facts: tuple[Fact, ...], after: TableState) -> None:
        """The facts as the journal holds them lead to the same state."""
        rows = [(fact.kind, fact.source, fact.data, fact.sealed) for fact in facts]
        for row in cbor2.loads(encode(plain(rows))):
            before = evolve(before, Fact(*row))
        check(before == after, "S9: the replay differs")

    # --- the whole ---

    def _dead_ends(self, nodes: list[Node]) -> None:
        """States from which no honest step and no tap leads to a next round or to the end of the day.

        What was not explored further counts as no dead end, nor does a fault that only a new batch, a restart
        or a machine that says something else mends.
        """
        reached = [n.state.phase in HOME and not latched(n.state) for n in nodes]
        for number in self._unexplored:
            reached[number] = True
        queue = deque(i for i, home in enumerate(reached) if home)
        while queue:
            for source in self._back[queue.popleft()]:
                if not reached[source]:
                    reached[source] = True
                    queue.append(source)
        for node, home in zip(nodes, reached, strict=True):
            lasting = any(FAULTS[f.code].gone in ("batch_replaced", "restarted") for f in node.state.faults)
            lasting = lasting or node.state.shuffler.surplus > 0
            if not home and not lasting:
                self.report.dead_ends.append(node)
