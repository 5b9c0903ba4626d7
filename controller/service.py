"""The service: inputs in, one commit, then state, acks, effects and followers (law 4).

No thread and no clock call of its own: the daemon's controller thread and the deterministic world both call
`handle`. Once `stopped` is set nothing more is decided, acked or sent; the state stays readable.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from controller import access
from controller.factlog import FactLog
from controller.log import Log, where
from controller.record import CHECKPOINT, Entry, JournalError
from controller.seal import SealError
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
from controller.table.phases import TAPS
from controller.table.profiles import TableRules
from controller.table.rules import decide, expected
from controller.table.state import TableState, initial
from firmware_bridge.link import NotSent

CRASHED = "crashed"
"""The fault that is latched when a part of the controller stops with an error."""
DISAGREES = "machine_disagrees"
"""The fault that is latched when the flat machine goes another way than the rules."""


class Commander(Protocol):
    """The command side of one device, as the controller reaches it: neither call waits."""

    def command(self, call_id: str, name: str, args: Mapping[str, Any]) -> None:
        """Start a command; its one end comes back as an `Ended` input."""

    def ack(self, n: int) -> None:
        """Everything up to the device's event `n` is journaled."""


class JournalDisagrees(Exception):
    """The journal is not one of this table as table.toml describes it: a configuration error."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of one input: the entries of its facts, or why it was refused.

    `repeat` tells that an operator event's key was known, and these are the entries of the first time.
    """

    input: Input
    entries: tuple[Entry, ...] = ()
    refusal: Refusal | None = None
    repeat: bool = False


@dataclass(frozen=True, slots=True)
class _Judged:
    """An input that was decided: where its facts lie among those to be committed."""

    input: Input
    first: int = 0
    count: int = 0
    refusal: Refusal | None = None
    key_seq: int | None = None


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
        self._machine: TableMachine | None = None

    def recover(self) -> TableState:
        """The state that the journal holds; drivers resume from its devices. Raises JournalDisagrees."""
        state: TableState | None = None
        for entry in self.journal.replay():
            state = state or initial(self.rules, seq=entry.seq - 1)
            try:
                state = evolve(state, entry.fact)
            except (KeyError, ValueError) as error:
                raise JournalDisagrees(
                    f"fact {entry.seq} of the journal does not fit this table ({where(error)}): "
                    "use the journal and the table.toml that belong together"
                ) from error
        self.state = state or initial(self.rules, seq=self.journal.last_seq)
        self._fits()
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
        state = self.state
        facts: list[Fact] = []
        states: list[TableState] = [state]
        effects: list[Command] = []
        judged: list[_Judged] = []
        crash: str | None = None
        for item in inputs:
            if crash is not None:
                judged.append(_Judged(item, refusal=self._stopped_refusal(crash)))
                continue
            first, key_seq = len(facts), self._repeats(state, item)
            if key_seq is not None:
                judged.append(_Judged(item, key_seq=key_seq))
                continue
            try:
                decision = self._decide(state, item)
                if isinstance(decision, Refusal):
                    judged.append(_Judged(item, refusal=decision))
                    continue
            except Exception as error:  # noqa: BLE001 - a fault of ours is latched, whatever it is
                text = f"{_name(item)}: {where(error)}"
                decision = self._crashed(state, text)
                if not isinstance(item, OperatorEvent):
                    crash = text
                judged.append(_Judged(item, first, 0, self._stopped_refusal(text)))
            else:
                judged.append(_Judged(item, first, len(decision.facts)))
            facts += decision.facts
            states += decision.states
            state = states[-1]
            effects += decision.effects
        entries = self._commit(facts)
        if entries is None:
            return [self._too_late(item) for item in inputs]
        self.state = state
        disagreement = self._follow(facts, states)
        if crash is None:
            self._act(inputs, effects if disagreement is None else ())
        else:
            self._stop(f"the rules failed on an input ({crash})")
        if entries:
            self.publish(entries)
        if disagreement is not None:
            why = NotSent("the controller stopped before it was sent")
            ends = [Ended(effect.device, effect.call_id, why) for effect in effects]
            self.handle([Trouble(DISAGREES, disagreement), *ends])
        return [self._reply(item, entries) for item in judged]

    def _decide(self, state: TableState, item: Input) -> Decision | Refusal:
        if isinstance(item, OperatorEvent):
            if item.event not in access.EVENTS:
                near = difflib.get_close_matches(item.event, TAPS, n=1, cutoff=0.5)
                hint = f"; did you mean {near[0]}?" if near else ""
                why = f"there is no operator event {item.event!r}{hint}"
                return Refusal("unknown_event", why, None, expected(self.rules, state))
            if not access.may(item.roles, item.event):
                why = f"{item.event} is the right of {' or '.join(access.who_may(item.event))}"
                return Refusal("not_allowed", why, None, expected(self.rules, state))
        return decide(self.rules, state, item)

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

    def _repeats(self, state: TableState, item: Input) -> int | None:
        """The number of the first fact of an operator event whose key is known."""
        if isinstance(item, OperatorEvent) and item.key is not None:
            return state.keys.get(item.key)
        return None

    def _reply(self, judged: _Judged, entries: Sequence[Entry]) -> Reply:
        if judged.key_seq is not None:
            return self._repeated(judged.input, tuple(self._of_tap(judged.key_seq)))
        own = entries[judged.first : judged.first + judged.count]
        self._tell(judged, own)
        return Reply(judged.input, tuple(e for e in own if e.fact.kind != CHECKPOINT), judged.refusal)

    def _repeated(self, item: Input, entries: tuple[Entry, ...]) -> Reply:
        """The same tap once more; another event under a used key did not happen, and is told so."""
        assert isinstance(item, OperatorEvent)
        if entries[0].fact.kind == item.event and access.may(item.roles, item.event):
            return Reply(item, entries, repeat=True)
        why = f"the id {item.key!r} was used for {entries[0].fact.kind}: give every event an id of its own"
        return Reply(item, refusal=Refusal("key_used", why))

    def _of_tap(self, seq: int) -> Iterator[Entry]:
        """The entries of the tap whose first fact is `seq`: up to another tap or a fact of another source."""
        for entry in self.journal.entries(seq - 1):
            if entry.seq > seq and (entry.fact.source != OPERATOR or entry.fact.kind in access.EVENTS):
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
