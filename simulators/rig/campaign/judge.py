"""The judge of a table: where the cards really are against what the controller believes and says.

He knows the felt and the machines, and what really went wrong. The controller is asked for its belief, never
for the truth. What is excused stands in excuses.py, and is excused only once its fault has really struck.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import reduce
from typing import Any

from controller.journal import verify
from controller.record import Entry
from controller.table.evolve import evolve
from controller.table.state import TableState
from simulators.models.cards import Card
from simulators.rig.campaign.commands import Commands
from simulators.rig.campaign.drawn import Drawn
from simulators.rig.campaign.excused import Excused
from simulators.rig.campaign.excuses import COUNTED_WRONG, NEVER
from simulators.rig.campaign.result import Counters, Failure
from simulators.rig.campaign.store import DiskStore
from simulators.rig.stepped import Stepped


class Judge:
    """One table's. `struck` tells by device and fault how often what was planned really happened."""

    def __init__(
        self,
        world: Stepped,
        store: DiskStore,
        struck: Callable[[], Mapping[str, Counter[str]]],
        first: int = 1,
    ) -> None:
        self.failures: list[Failure] = []
        self.counters = Counters()
        self._world, self._store, self._first = world, store, first
        self._known: set[str] = set()
        self._seq = 0
        self._cards = Drawn(world)
        self._commands = Commands(world.felt.shuffler)
        self._excused = Excused(world, struck)
        world.felt.referee.excused = self._is_excused
        world.hear = self._hear

    @property
    def shoe(self) -> int:
        """The number of the shoe that is on the table."""
        return self._first + max(len(self._world.felt.referee.shoes) - 1, 0)

    def failed(self, what: str, shoe: int | None = None) -> None:
        """The same failure is told once a shoe."""
        shoe = self.shoe if shoe is None else shoe
        key = f"{shoe} {what.partition(':')[0]}"
        if key not in self._known:
            self._known.add(key)
            self.failures.append(Failure(shoe, what))

    # Moments

    def look(self) -> None:
        """A quiet point: everything that happened is journaled, and the dealer counted."""
        self.take(self._store.take())
        self.notice()
        self._compare_cards(final=False)
        self._compare_custody()
        self._collect_debts(final=False)

    def reopened(self, before: TableState, found: TableState, in_doubt: Sequence[Entry]) -> None:
        """A new daemon read the journal: `found` is what it made of it, `before` what the old one knew."""
        journal = self._world.journal
        new = [entry for entry in journal.entries(before.seq) if entry.seq <= found.seq]
        if new and [entry.hash for entry in new] != [entry.hash for entry in in_doubt]:
            self._gap(f"{len(new)} facts after {before.seq}, {len(in_doubt)} were written unacknowledged")
        if found.seq < before.seq:
            self._gap(f"facts lost: {before.seq} were acknowledged, {found.seq} are there")
        elif (last := self._store.acknowledged) is not None:
            there = next(iter(journal.entries(last.seq - 1)), None)
            if there is None or there.hash != last.hash:
                self._gap(f"fact {last.seq} is another one than was acknowledged")
        self.verify()
        wanted = reduce(evolve, (entry.fact for entry in new), before)
        if found != wanted:
            self.failed(f"recovered state differs: {_difference(wanted, found)}")
        self.take(new)

    def verify(self) -> None:
        verdict = verify(self._store.path, self._store.key)
        if not verdict.ok:
            self._gap(f"journal broken at fact {verdict.bad_seq}: {verdict.why}")

    def stopped(self, stuck: str, refused: Mapping[str, Any] | None) -> str | None:
        """The table does not go on: the code that says why; None is a dead end, which is a failure."""
        self.take(self._store.take())
        status = self._world.controller.view("status")
        for latched in (*status["faults"], *status["alarms"]):
            return str(latched["code"])
        if refused is not None and refused.get("expected"):
            return str(refused["refused"])
        self.failed(
            f"dead end in {status['phase']}: nothing is latched, and it does not go on: {stuck}; "
            f"expected {status['expected']}, awaiting {status['awaiting']}, shuffler {status['shuffler']}"
        )
        return None

    def ended(self) -> None:
        """The last look: the table is closed, or was given up."""
        self.take(self._store.take())
        self.notice()
        self._compare_cards(final=True)
        self._collect_debts(final=self._world.view.phase == "closed")
        if forgotten := self._commands.under_way.keys() - self._world.service.state.pending.keys():
            self.failed(f"commands: {', '.join(sorted(forgotten))} never ended")
        self.verify()
        for what in self._world.felt.referee.violations:
            self.counters.invariant_violations += 1
            self.counters.cards_lost += ": cards lost: " in what
            shoe, _, text = what.removeprefix("shoe ").partition(": ")
            self.failed(text, self._first + max(int(shoe) - 1, 0))

    def acts(self, device: str, fact: int) -> None:
        """Something goes to a device because of a fact, which must be safe by then (law 4)."""
        last = self._store.acknowledged
        if last is None or fact > last.seq:
            self.failed(
                f"facts before effects: {device} is sent what fact {fact} asks for, before it is safe"
            )

    def believed(self, what: str) -> None:
        """Somebody did something wrong, and the controller took it for right."""
        self.counters.invariant_violations += 1
        self.failed(what)

    # Facts and lines

    def notice(self) -> None:
        """Look what struck since the last time."""
        self._excused.notice()

    def take(self, entries: Iterable[Entry]) -> None:
        """Facts in their order, each once."""
        for entry in entries:
            if entry.seq != self._seq + 1 and self._seq:
                self._gap(f"fact {entry.seq} follows fact {self._seq}")
            self._seq = entry.seq
            self._cards.take(entry)
            self._excused.take(entry)
            for wrong in self._commands.take(entry):
                self.failed(wrong)
            data = entry.fact.data
            if entry.fact.kind == "fault_latched" and data["code"] in NEVER:
                self.failed(f"{data['code']}: {data.get('cause') or data.get('detail') or ''}")

    def _hear(self, what: str, line: Mapping[str, Any]) -> None:
        """Each fact as followers get it."""
        if what == "follow" and line.get("seen") is False and (line.get("card") or line.get("raw")):
            self._leaked(f"the follow line of fact {line['fact']} names a card that nobody may see")

    def _leaked(self, text: str) -> None:
        self.counters.unseen_cards_leaked += 1
        self.failed(f"leak: {text}")

    def _gap(self, text: str) -> None:
        self.counters.journal_gaps += 1
        self.failed(f"journal: {text}")

    # Where the cards are

    def _compare_cards(self, *, final: bool) -> None:
        """Each card that left through the reader is one fact, and open only where it lies open."""
        if self._world.rules.shoe is None:
            return
        found = self._cards.compare(final=final)
        for seq, laid in found.open_:
            if not self._excused.violation("leak", seq):
                self._leaked(f"fact {seq} names the card that lies face down at {laid.place}")
        if found.admitted or self._excused.unnumbered_loss():
            return
        if found.lost:
            self.counters.cards_lost += found.lost
            self.failed(f"cards lost: {found.lost} left the shoe and are no fact")
        if found.twice:
            self.counters.cards_counted_twice += found.twice
            self.failed(f"counted twice: {found.twice} card facts more than cards")

    def _compare_custody(self) -> None:
        """Belief and census by batch; what a shoe without link or power has to tell is not known yet."""
        shoe, view = self._world.rules.shoe, self._world.view
        if shoe is not None and (shoe not in view.up or not self._world.felt.shoe.powered):
            return
        if shoe is not None and view.seen[shoe][0] not in (None, self._world.felt.shoe.boot):
            return  # that it was without power is about to be told
        state = self._world.service.state
        latched = {fault.code for fault in state.faults} & COUNTED_WRONG
        census = self._census()
        for batch, believed in state.batches.items():
            belief = Counter({place.value: n for place, n in believed.cards.items()})
            untold = state.shoe.untold and state.shoe.batch == batch
            if +belief == census[batch] or latched or believed.unfit or untold:
                continue
            if not self._excused.hidden(batch):
                self.counters.invariant_violations += 1
                told = f"the controller believes {dict(+belief)}, the cards are {dict(census[batch])}"
                self.failed(f"custody: of batch {batch} {told}")

    def _census(self) -> dict[str, Counter[str]]:
        """Cards by batch and place, as people see them: a slipped in card belongs where its back belongs.

        With a back of no batch it is taken for one of those around it, until its back is seen. Cards of a
        batch that was replaced belong nowhere any more.
        """
        felt = self._world.felt
        by_back = {batch.back: batch.id for batch in felt.rules.batches}
        found: dict[str, Counter[str]] = {batch.id: Counter() for batch in felt.rules.batches}
        for place, holder in felt.referee.places.items():
            if place.endswith("sleeve"):
                continue
            cards = [item for item in holder.contents() if isinstance(item, Card)]
            batches = list(map(felt.batch_of.get, cards))
            if None in batches:
                slipped = [card for card, batch in zip(cards, batches, strict=True) if batch is None]
                around = Counter(filter(None, batches)).most_common(1)
                among = around[0][0] if around else None
                batches += [by_back.get(card.back, among) for card in slipped if card.serial < 0]
            for batch, count in Counter(batches).items():
                if batch is not None:
                    found[batch][place] += count
        return found

    # Violations that the referee saw

    def _is_excused(self, kind: str) -> bool:
        """Asked at the moment itself. Custody is judged here."""
        return kind == "custody" or self._excused.violation(kind)

    def _collect_debts(self, *, final: bool) -> None:
        for what in self._excused.unpaid(final=final):
            self.counters.invariant_violations += 1
            self.failed(what)


def _difference(wanted: TableState, found: TableState) -> str:
    names = [f.name for f in fields(wanted) if getattr(wanted, f.name) != getattr(found, f.name)]
    return ", ".join(names)
