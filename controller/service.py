"""The service: inputs in, one commit, then state, acks, effects and followers (law 4).

No thread and no clock call of its own: the daemon's controller thread and the deterministic world both call
`handle`. Once `stopped` is set nothing more is decided, acked or sent; the state stays readable.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from controller import access
from controller.factlog import FactLog
from controller.log import Log, where
from controller.record import CHECKPOINT, Entry, JournalError
from controller.seal import SealError
from controller.table.args import digest
from controller.table.clauses import clause
from controller.table.draft import Decision
from controller.table.evolve import evolve
from controller.table.inputs import (
    OPERATOR,
    Booted,
    Command,
    Ended,
    Fact,
    Input,
    Observed,
    OperatorEvent,
    Refusal,
    Trouble,
)
from controller.table.machine import Disagreement, TableMachine
from controller.table.phases import TAPS, Phase
from controller.table.profiles import TableRules
from controller.table.rules import decide, expected
from controller.table.state import TableState, initial
from controller.times import Times, kept, looked_up
from firmware_bridge.frozen import value
from firmware_bridge.link import NotSent

CRASHED = "crashed"
"""The fault that is latched when a part of the controller stops with an error."""
DISAGREES = "machine_disagrees"
"""The fault that is latched when the flat machine goes another way than the rules."""
REFUSED = "refused"
"""Fact kind: somebody with a role here tapped what was refused. It changes nothing but the count."""


class Commander(Protocol):
    """The command side of one device, as the controller reaches it: neither call waits."""

    def command(self, call_id: str, name: str, args: Mapping[str, Any]) -> None:
        """Start a command; its one end comes back as an `Ended` input."""

    def ack(self, n: int) -> None:
        """Everything up to the device's event `n` is journaled."""


class JournalDisagrees(Exception):
    """The journal is not one of this table as table.toml describes it: a configuration error."""


@value
class Reply:
    """What became of one input: the entries of its facts, or why it was refused.

    `repeat` tells that an operator event's key was known, and these are the entries of the first time.
    """

    input: Input
    entries: tuple[Entry, ...] = ()
    refusal: Refusal | None = None
    repeat: bool = False


@value
class _Judged:
    """An input that was decided: where its facts lie among those to be committed.

    `key_seq` is the first fact of the tap that this one repeats.
    """

    input: Input
    first: int = 0
    count: int = 0
    refusal: Refusal | None = None
    key_seq: int | None = None


@dataclass
class _Burst:
    """What a burst of inputs comes to before it is committed; `states` begins with the one before it."""

    states: list[TableState]
    facts: list[Fact] = field(default_factory=list)
    effects: list[Command] = field(default_factory=list)
    judged: list[_Judged] = field(default_factory=list)
    crash: str | None = None

    @property
    def state(self) -> TableState:
        return self.states[-1]

    def add(self, item: Input, decision: Decision, refusal: Refusal | None = None) -> None:
        """What follows from `item`; the facts of a refusal are no part of its answer."""
        count = 0 if refusal is not None else len(decision.facts)
        self.judged.append(_Judged(item, len(self.facts), count, refusal))
        self.facts += decision.facts
        self.states += decision.states
        self.effects += decision.effects


class Service:
    """One table. `publish` gets the entries of each commit, in order, after the state is adopted."""

    def __init__(
        self,
        rules: TableRules,
        journal: FactLog,
        devices: Mapping[str, Commander],
        publish: Callable[[Sequence[Entry]], None] = lambda _entries: None,
        log: Log | None = None,
    ) -> None:
        self.rules = rules
        self.journal = journal
        self.devices = devices
        self.publish = publish
        self.log = log
        self.state = initial(rules)
        self.stopped: str | None = None
        self.times: Times = {}
        self.last_refused: Entry | None = None
        self._machine: TableMachine | None = None

    def recover(self) -> TableState:
        """The state that the journal holds; drivers resume from its devices. Raises JournalDisagrees."""
        state: TableState | None = None
        for entry in self.journal.replay():
            state = state or initial(self.rules, seq=entry.seq - 1)
            try:
                state = evolve(state, entry.fact)
            except Exception as error:
                raise JournalDisagrees(
                    f"fact {entry.seq} of the journal does not fit this table ({where(error)}): use the "
                    "journal and the table.toml that belong together, and no older version than wrote it"
                ) from error
            if entry.fact.kind == REFUSED:
                self.last_refused = entry
        self.state = state or initial(self.rules, seq=self.journal.last_seq)
        self._fits()
        self.times = looked_up(self.journal, self.state)
        self._machine = TableMachine(self.rules, self.state)
        return self.state

    def _fits(self) -> None:
        """Batches in play must be those of table.toml: nobody may swap cards by editing a file."""
        known = {batch.id for batch in self.rules.batches}
        journaled = set(self.state.batches)
        if journaled != known:
            raise JournalDisagrees(
                f"the journal knows the batches {_and(journaled)}, table.toml {_and(known)}: "
                "use the journal that belongs to this table, or start a new one"
            )
        played = self.state.played
        if self.state.phase is not Phase.CLOSED and played not in {"", self.rules.played}:
            raise JournalDisagrees(
                f"the table is open for {played}, table.toml says {self.rules.played}: "
                "put it back as it was and close the table first, or start a new journal"
            )
        for batch in self.state.batches.values():
            back = self.rules.back(batch.id)
            if batch.back not in {"", back}:
                raise JournalDisagrees(
                    f"batch {batch.id} was opened with {batch.back} backs, table.toml says {back}: "
                    "put the colours back as they were, or start a new journal"
                )
            held = sum(batch.cards.values())
            if held not in {0, self.rules.batch_size}:
                raise JournalDisagrees(
                    f"batch {batch.id} is in play with {held} cards, table.toml says "
                    f"{self.rules.batch_size}: put the decks back as they were, or start a new journal"
                )

    def start(self, boot_id: str) -> Reply:
        """After `recover`: journal that the daemon runs (again); commands without an end are Unknown now."""
        return self.handle([Booted(boot_id)])[0]

    def handle(self, inputs: Sequence[Input]) -> list[Reply]:
        """Decide all of `inputs` in order, commit their facts at once, then act. One reply an input."""
        if self.stopped is not None:
            return [self._too_late(item) for item in inputs]
        burst = _Burst([self.state])
        for item in inputs:
            if burst.crash is None:
                self._judge(burst, item)
            else:
                burst.judged.append(_Judged(item, refusal=self._stopped_refusal(burst.crash)))
        entries = self._commit(burst.facts)
        if entries is None:
            return [self._too_late(item) for item in inputs]
        self._adopt(burst.state, entries)
        disagreement = self._follow(burst.facts, burst.states)
        if burst.crash is None:
            self._act(inputs, burst.effects if disagreement is None else ())
        else:
            self._stop(f"the rules failed on an input ({burst.crash})")
        if entries:
            self.publish(entries)
        if disagreement is not None:
            why = NotSent("the controller stopped before it was sent")
            ends = [Ended(effect.device, effect.call_id, why) for effect in burst.effects]
            self.handle([Trouble(DISAGREES, disagreement), *ends])
        return [self._reply(item, entries) for item in burst.judged]

    def _judge(self, burst: _Burst, item: Input) -> None:
        """Decide one input after those before it; a fault of ours is latched, whatever it is."""
        try:
            decision = self._decide(burst, item)
            if isinstance(decision, int):
                burst.judged.append(_Judged(item, key_seq=decision))
            elif isinstance(decision, Refusal):
                burst.add(item, self._refused(burst, item, decision), decision)
            else:
                burst.add(item, decision)
        except Exception as error:  # noqa: BLE001 - whatever it is
            text = f"{_name(item)}: {where(error)}"
            burst.add(item, self._crashed(burst.state, text), self._stopped_refusal(text))
            if not isinstance(item, OperatorEvent):
                burst.crash = text

    def _adopt(self, state: TableState, entries: Sequence[Entry]) -> None:
        """The times come first: who looks at the state finds them."""
        self.times = kept(self.times, self.state, state, entries)
        self.last_refused = next((e for e in reversed(entries) if e.fact.kind == REFUSED), self.last_refused)
        self.state = state

    def _decide(self, burst: _Burst, item: Input) -> Decision | Refusal | int:
        """The rules' answer, or the number of the first fact of the tap that `item` repeats."""
        state = burst.state
        if isinstance(item, OperatorEvent):
            if item.event not in access.EVENTS:
                near = _nearest(item.event)
                hint = f"; did you mean {near}?" if near else ""
                why = f"there is no operator event {item.event!r}{hint}"
                return Refusal("unknown_event", why, None, expected(self.rules, state))
            if not access.may(item.roles, item.event):
                cited, instead = clause(self.rules, item.event), expected(self.rules, state)
                return Refusal("not_allowed", access.whose(item.event), cited, instead)
            seq = None if item.key is None else state.keys.get(item.key)
            if seq is not None:
                return self._repeated(burst, item, seq)
        return decide(self.rules, state, item)

    def _repeated(self, burst: _Burst, item: OperatorEvent, seq: int) -> Refusal | int:
        """The same tap once more; another one under a used key did not happen, and is told so.

        Facts of older journals do not tell with which arguments they were tapped.
        """
        new = seq - self.state.seq
        first = burst.facts[new - 1] if new > 0 else next(iter(self.journal.entries(seq - 1))).fact
        told = first.whole.get("args_digest")
        if first.kind == item.event and told in (None, digest(item.args)):
            return seq
        other = " with other arguments" if first.kind == item.event else ""
        why = f"the id {item.key!r} was used for {first.kind}{other}: give every event an id of its own"
        return Refusal("key_used", why, clause(self.rules, item.event), expected(self.rules, burst.state))

    def _refused(self, burst: _Burst, item: Input, refusal: Refusal) -> Decision:
        """The fact of a refusal, unless the fact before it says the same: nobody fills the disk."""
        decision, last = _refused(burst.state, item, refusal), self.last_refused
        before = burst.facts[-1] if burst.facts else None
        if before is None and last is not None and last.seq == self.state.seq:
            before = last.fact
        return Decision() if decision.facts == (before,) else decision

    def _crashed(self, state: TableState, text: str) -> Decision:
        """The latched fault of an input that broke the rules themselves; its own facts are dropped whole."""
        decision = decide(self.rules, state, Trouble(CRASHED, text))
        assert isinstance(decision, Decision), "a Trouble is never refused"
        return decision

    def _follow(self, facts: Sequence[Fact], states: Sequence[TableState]) -> str | None:
        """Make the committed moves on the flat machine (law 8): how it disagrees, once, or None."""
        if self._machine is None:
            return None
        try:
            for before, fact, after in zip(states, facts, states[1:], strict=False):
                self._machine.follow(before, fact, after)
        except Disagreement as error:
            self._machine = None
            return str(error)
        return None

    def _commit(self, facts: list[Fact]) -> Sequence[Entry] | None:
        if not facts:
            return ()
        try:
            return self.journal.append(facts)
        except Exception as error:  # noqa: BLE001 - whatever it was, the facts are not proved durable
            said = str(error) if isinstance(error, JournalError | SealError) else where(error)
            self._stop(f"the journal took no more facts ({said})")
            return None

    def _act(self, inputs: Sequence[Input], effects: Sequence[Command]) -> None:
        journaled: dict[str, int] = {}
        for item in inputs:
            if isinstance(item, Observed):
                journaled[item.event.device] = max(item.event.n, journaled.get(item.event.device, 0))
        for device, n in journaled.items():
            self.devices[device].ack(n)
        for effect in effects:
            self.devices[effect.device].command(effect.call_id, effect.name, effect.args)

    def _stop(self, why: str) -> None:
        """Safe stop: no input is taken, nothing is sent, the state stays readable until a restart."""
        self.stopped = why
        if self.log is not None:
            self.log.critical("stopped", why=why, fact=self.state.seq)

    def _stopped_refusal(self, why: str) -> Refusal:
        return Refusal(CRASHED, f"the controller failed: {why}. Call the supervisor.", None, ())

    def _too_late(self, item: Input) -> Reply:
        why = f"the controller has stopped: {self.stopped}. Mend the cause and start the daemon again."
        return Reply(item, refusal=Refusal("stopped", why, None, ()))

    def _reply(self, judged: _Judged, entries: Sequence[Entry]) -> Reply:
        if judged.key_seq is not None:
            return Reply(judged.input, tuple(self._of_tap(judged.key_seq)), repeat=True)
        own = entries[judged.first : judged.first + judged.count]
        self._tell(judged, own)
        return Reply(judged.input, tuple(e for e in own if e.fact.kind != CHECKPOINT), judged.refusal)

    def _of_tap(self, seq: int) -> Iterator[Entry]:
        """The entries of the tap whose first fact is `seq`: up to another tap or a fact of another source."""
        for entry in self.journal.entries(seq - 1):
            if entry.seq > seq and (entry.fact.source != OPERATOR or entry.fact.kind in _NEXT_TAP):
                return
            yield entry

    def _tell(self, judged: _Judged, entries: Sequence[Entry]) -> None:
        """One line a fact: its kind and number, never a card (law 7)."""
        log = self.log
        if log is None:
            return
        if judged.refusal is not None:
            log.warning("refused", what=_name(judged.input), code=judged.refusal.code)
        for entry in entries:
            log.info(
                "fact", kind=entry.fact.kind, device=entry.fact.source, fact=entry.seq, **_shown(entry.fact)
            )


_NEXT_TAP = {*access.EVENTS, REFUSED}
"""Kinds of an operator's fact that begin another tap."""


def _nearest(word: str) -> str | None:
    """The operator event that is meant: one of which the word is a part, else one that is spelt alike."""
    parts = [event for event in TAPS if word and word in event.split("_")]
    return next(iter(difflib.get_close_matches(word, parts or TAPS, n=1, cutoff=0 if parts else 0.6)), None)


def _refused(state: TableState, item: Input, refusal: Refusal) -> Decision:
    """The fact of a refusal: what the rules call the event, never what else was said.

    Strangers leave none: who has no role here could fill the disk.
    """
    assert isinstance(item, OperatorEvent), "only a tap is refused"
    if not item.roles:
        return Decision()
    event = item.event if item.event in access.EVENTS else None
    data = {"event": event, "code": refusal.code, "clause": refusal.clause, "who": item.who}
    fact = Fact(REFUSED, OPERATOR, data)
    return Decision((fact,), (evolve(state, fact),))


_SHOWN = ("n", "batch", "code", "fault", "call", "command", "who", "event")
"""Fields of a fact that a log line may carry; none of them names a card."""


def _shown(fact: Fact) -> dict[str, Any]:
    return {name: fact.data[name] for name in _SHOWN if fact.data.get(name) is not None}


def _name(item: Input) -> str:
    """An input for the log, without its values."""
    if isinstance(item, OperatorEvent):
        return item.event
    if isinstance(item, Observed):
        return f"{item.event.kind} of {item.event.device}"
    return type(item).__name__.lower()


def _and(names: set[str]) -> str:
    return " and ".join(sorted(names)) or "none"
