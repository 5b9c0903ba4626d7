"""The judge of a table: where the cards really are against what the controller believes and says.

He knows the felt and the machines, and what really went wrong. The controller is asked for its belief, never
for the truth. What is excused stands in excuses.py, and is excused only once its fault has really struck.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import reduce
from math import inf
from typing import Any

from controller.journal import verify
from controller.record import Entry
from controller.table.evolve import evolve
from controller.table.state import TableState
from simulators.faults import FAULTS
from simulators.models.cards import Card
from simulators.rig.campaign.commands import Commands
from simulators.rig.campaign.excuses import (
    ADMITS_LOSS,
    COUNTED_WRONG,
    COUNTS,
    EXCUSES,
    GAPS,
    LOOK_AHEAD,
    NEVER,
    TABLE,
    Excuse,
)
from simulators.rig.campaign.result import Counters, Failure
from simulators.rig.campaign.slips import SLIPS
from simulators.rig.campaign.store import DiskStore
from simulators.rig.felt import BEE_TEK
from simulators.rig.referee import Laid
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
        self.codes: Counter[str] = Counter()
        self._world, self._store, self._struck = world, store, struck
        self._first = first
        self._known: set[str] = set()
        self._owed: list[tuple[str, Excuse, int]] = []
        self._read: list[tuple[int, Mapping[str, Any], bool]] = []
        self._places = 0
        self._drawn: list[tuple[int, Mapping[str, Any]]] = []
        self._happenings = 0
        self._commands = Commands(world.felt.shuffler)
        self._admits = False
        self._uncertain: set[str] = set()
        self._struck_at: dict[str, int] = {}
        self._latched_at: dict[str, int] = {}
        self._hidden_at: int | None = None
        self._counted: dict[str, list[int]] = {}
        self._proved: dict[str, list[int]] = {}
        self._seq = 0
        self._before: dict[str, Counter[str]] = {}
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
        self._match_cards(final=False)
        self._compare_custody()
        self._collect_debts()

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
        self._match_cards(final=True)
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

    def take(self, entries: Iterable[Entry]) -> None:
        """Facts in their order, each once."""
        shoe = self._world.rules.shoe
        for entry in entries:
            fact = entry.fact
            if entry.seq != self._seq + 1 and self._seq:
                self._gap(f"fact {entry.seq} follows fact {self._seq}")
            self._seq = entry.seq
            kind = fact.kind
            if kind == "card_drawn" and fact.source == shoe:
                self._read.append((entry.seq, fact.whole, fact.data.get("card") is not None))
            elif kind in GAPS and fact.source == shoe:
                self._admits = True
            elif kind == "fault_latched":
                code = fact.data["code"]
                self.codes[code] += 1
                self._latched_at[code] = entry.seq
                if code in ADMITS_LOSS:
                    self._uncertain.add(fact.data["fault"])
                if code in NEVER:
                    self.failed(f"{code}: {fact.data.get('cause') or fact.data.get('detail') or ''}")
            elif kind in ("command_issued", "command_ended"):
                for wrong in self._commands.take(entry):
                    self.failed(wrong)
            elif kind == "clear":
                self._uncertain.discard(fact.data["fault"])
            elif kind in COUNTS and (batch := fact.data.get(COUNTS[kind])) is not None:
                self._counted.setdefault(batch, []).append(entry.seq)
                if kind == "batch_proved":
                    self._proved.setdefault(batch, []).append(entry.seq)
            self._admits |= bool(self._uncertain)

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

    # Cards, one by one

    def _match_cards(self, *, final: bool) -> None:
        """Each card that left through the reader is one fact, in order, and open only where it lies open."""
        world = self._world
        if world.rules.shoe is None:
            return
        happenings = world.felt.shoe.happenings
        for at in range(self._happenings, len(happenings)):
            if happenings[at].kind == "drawn":
                self._drawn.append((at, happenings[at].data))
        self._happenings = len(happenings)
        lost, twice = 0, 0
        for seq, told, open_ in self._read:
            ahead = self._drawn[:LOOK_AHEAD]
            skip = next((n for n, (_, card) in enumerate(ahead) if _same(card, told)), None)
            if skip is None:
                twice += 1
                continue
            lost += skip
            at, card = self._drawn[skip]
            del self._drawn[: skip + 1]
            laid = self._laid(at, card["face"])
            if not open_ or laid is None or not laid.down or card["up"]:
                continue
            if not self._is_excused("leak", laid.place, seq):
                self._leaked(f"fact {seq} names the card that lies face down at {laid.place}")
        self._read.clear()
        if self._drawn and not (final and world.rules.shoe not in world.view.up):
            lost += len(self._drawn)
            self._drawn.clear()
        excused = self._admits or self._unnumbered_loss()
        self._admits = bool(self._uncertain)
        if lost and not excused:
            self.counters.cards_lost += lost
            self.failed(f"cards lost: {lost} left the shoe and are no fact")
        if twice and not excused:
            self.counters.cards_counted_twice += twice
            self.failed(f"counted twice: {twice} card facts more than cards")

    def _laid(self, at: int, face: str | None) -> Laid | None:
        """Where hands laid the card that the shoe saw as its happening `at`, if they took it."""
        drawn_to, first = self._world.felt.referee.drawn_to, self._places
        while first < len(drawn_to) and drawn_to[first].moment <= at:
            first += 1
        self._places = first
        for index in range(first, min(first + LOOK_AHEAD, len(drawn_to))):
            if face in (None, drawn_to[index].card.face):
                self._places = index + 1
                return drawn_to[index]
        return None

    def _unnumbered_loss(self) -> bool:
        """A shoe that only talks: what its line loses nobody knows before the next count."""
        struck = self._struck()
        return any(self._talks(device) and what for device, what in struck.items())

    def _talks(self, device: str) -> bool:
        """Whether what struck at `device` makes a shoe that only talks lose what it has to say."""
        shoe = self._world.rules.shoe
        return self._world.drivers.get(shoe) == BEE_TEK and device in (shoe, TABLE)

    # Custody

    def notice(self) -> None:
        """Look what struck: when each fault did last, and when one that hides cards did."""
        seq = self._world.journal.last_seq
        for device, now in self._struck().items():
            new = now - self._before.get(device, Counter())
            self._before[device] = Counter(now)
            self._struck_at |= dict.fromkeys(new, seq)
            if (new and self._talks(device)) or any(map(_hides, new)):
                self._hidden_at = seq

    def _uncounted(self, since: int | None, *batches: str, kind: bool = False, until: float = inf) -> bool:
        """Whether something happened, and a batch was not counted since (`kind`: and its cards read)."""
        if since is None:
            return False
        counted = self._proved if kind else self._counted
        names = batches or tuple(batch.id for batch in self._world.rules.batches)
        return any(not any(since < seq < until for seq in counted.get(name, ())) for name in names)

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
            if not self._uncounted(self._hidden_at, batch):
                self.counters.invariant_violations += 1
                told = f"the controller believes {dict(+belief)}, the cards are {dict(census[batch])}"
                self.failed(f"custody: of batch {batch} {told}")

    def _census(self) -> dict[str, Counter[str]]:
        """Cards by batch and place, as people see them: a slipped in card belongs where its back belongs.

        Cards of a batch that was replaced belong nowhere any more.
        """
        felt = self._world.felt
        by_back = {batch.back: batch.id for batch in felt.rules.batches}
        found: dict[str, Counter[str]] = {batch.id: Counter() for batch in felt.rules.batches}
        for place, holder in felt.referee.places.items():
            if place.endswith("sleeve"):
                continue
            cards = [item for item in holder.contents() if isinstance(item, Card)]
            batches = [felt.batch_of.get(card) for card in cards]
            if None in batches:
                slipped = [card for card, batch in zip(cards, batches, strict=True) if batch is None]
                batches += [by_back.get(card.back) for card in slipped if card.serial < 0]
            for batch, count in Counter(batches).items():
                if batch is not None:
                    found[batch][place] += count
        return found

    # Violations that the referee saw

    def _is_excused(self, kind: str, detail: str, fact: float = inf) -> bool:
        """Asked at the moment itself, or later of a `fact`: what was counted since excuses nothing.

        Custody is judged here, and an excuse is a debt until it is latched.
        """
        del detail
        if kind == "custody":
            return True
        self.notice()
        if kind == "mixed batches" and self._remains():
            return True
        for excuse in EXCUSES:
            for since in (self._struck_at[name] for name in excuse.faults if name in self._struck_at):
                still = self._latched(excuse, since) or self._uncounted(
                    since, kind=excuse.by_kind, until=fact
                )
                if kind in excuse.kinds and still:
                    if excuse.codes and not self._disguised():
                        self._owed.append((kind, excuse, since))
                    return True
        return kind == "leak" and self._unnumbered_loss()

    def _latched(self, excuse: Excuse, since: int) -> bool:
        latched = {fault.code for fault in self._world.service.state.faults}
        return any(code in latched or self._latched_at.get(code, -1) >= since for code in excuse.codes)

    def _remains(self) -> bool:
        """Whether the only strangers are cards of a batch that was replaced, and lie deep in the shuffler."""
        felt = self._world.felt
        strangers = {
            place: [i for i in holder.contents() if isinstance(i, Card) and i not in felt.batch_of]
            for place, holder in felt.referee.places.items()
            if not place.endswith("sleeve")
        }
        inside = strangers.pop("shuffler")
        return bool(inside) and not any(strangers.values()) and all(card.serial > 0 for card in inside)

    def _disguised(self) -> bool:
        """Whether every stranger on the table has the back of the batch in the shoe: nobody knows him."""
        felt = self._world.felt
        playing = felt.referee.shoes[-1] if felt.referee.shoes else "?"
        backs = {batch.id: batch.back for batch in felt.rules.batches}
        items = (item for holder in felt.referee.places.values() for item in holder.contents())
        strangers = [item for item in items if isinstance(item, Card) and item not in felt.batch_of]
        return "wrong_back_card" in self._struck_at and all(c.back == backs.get(playing) for c in strangers)

    def _collect_debts(self, *, final: bool = False) -> None:
        owed, self._owed = self._owed, []
        for kind, excuse, since in owed:
            if self._latched(excuse, since):
                continue
            if excuse.by_count and self._uncounted(since, kind=excuse.by_kind):
                if not final:
                    self._owed.append((kind, excuse, since))
                if not final or excuse.by_kind:
                    continue
            self.counters.invariant_violations += 1
            self.failed(f"{kind}: none of {', '.join(excuse.codes)} was latched: {excuse.why}")


def _same(card: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    """Whether a fact tells this card; a back that the device does not see is no difference."""
    return card["face"] == told.get("card") and told.get("back") in (None, card["back"])


def _difference(wanted: TableState, found: TableState) -> str:
    names = [f.name for f in fields(wanted) if getattr(wanted, f.name) != getattr(found, f.name)]
    return ", ".join(names)


def _hides(name: str) -> bool:
    """Whether cards are somewhere else, once this struck, than anybody can know before a count."""
    if name in SLIPS:
        return SLIPS[name].hides
    return name in FAULTS and FAULTS[name].hides
