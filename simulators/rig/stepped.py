"""The whole stack in one thread under a virtual clock, over `mem:`, with its journal in memory or in a store.

Everything random comes from the seed; no thread is started and nothing waits for real time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, Protocol

from controller.access import caller
from controller.daemon import Controller, WatchedPort
from controller.factlog import FactLog, MemoryJournal
from controller.log import Log
from controller.notify import Notifier
from controller.record import Entry
from controller.render import entry_json
from controller.service import Commander, Reply, Service
from controller.table.inputs import Hour, OperatorEvent, Role
from controller.table.profiles import TableRules
from devices.base import Resume, Setup
from devices.registry import load
from firmware_bridge.clock import Clock, VirtualClock
from firmware_bridge.transports.mem import MemReceiver, MemTransport
from simulators.hosts.memory_host import MemoryHost
from simulators.rig.dealer import Dealer
from simulators.rig.felt import MANAGED_SHOE, READER, SHUFFLER, Felt
from simulators.rig.steps import Stuck, args_of
from simulators.rig.view import View
from simulators.wire.device import WireDevice

STALLED_S = 3600.0
"""Simulated seconds without any progress of the dealer after which a run is given up."""
HOUR, DAY = 500_000, "2027-01-15"
"""The hour and the gaming day in which everything is played here: no wall clock is asked."""


class Store(Protocol):
    """Where the journal lies."""

    def open(self, clock: Clock, random: Random) -> FactLog:
        """The journal for one more start of the daemon; whatever ids are new come from `random`."""


class InMemory:
    """A journal that outlives the daemon, but not the process."""

    def __init__(self) -> None:
        self._past: MemoryJournal | None = None

    def open(self, clock: Clock, random: Random) -> MemoryJournal:
        boot, past = random.randbytes(16), self._past
        new = {} if past is not None else {"journal_id": random.randbytes(16), "key": random.randbytes(32)}
        self._past = MemoryJournal(clock, boot_id=boot, past=past, **new)
        return self._past


class Stepped:
    """One table. `outputs` collects every line that leaves it when `listen` is set (for non-interference).

    `line` may put a device behind a line that can be bad. `between` is called between any two things that
    happen, and `hear` gets each fact and answer that leaves. While `restless` holds, polls are waited for
    also when nothing is to come. `recovered` is the state that the journal held at the last start, `requests`
    counts what the dealer asked for.
    """

    def __init__(
        self,
        rules: TableRules,
        seed: object,
        shoes: int = 1,
        *,
        shoe: str = MANAGED_SHOE,
        made: Sequence[bool] | None = None,
        log: Log | None = None,
        devices: Callable[[Mapping[str, Commander]], Mapping[str, Commander]] = lambda ports: ports,
        store: Store | None = None,
        line: Callable[[str, WireDevice], WireDevice] = lambda _name, wire: wire,
    ) -> None:
        self.rules = rules
        self.clock = VirtualClock()
        self.felt = Felt(rules, seed, shoe=shoe)
        self.view = View()
        self.dealer = Dealer(self.felt, self.view, seed, shoes, made=made)
        self.hosts = {name: MemoryHost(line(name, wire), name) for name, wire in self.felt.wires.items()}
        self.outputs: list[str] | None = None
        self.between: Callable[[], None] = lambda: None
        self.hear: Callable[[str, Mapping[str, Any]], None] = lambda _what, _line: None
        self.restless: Callable[[], bool] = lambda: False
        others: dict[str | None, str] = {rules.shuffler: SHUFFLER, rules.reader: READER}
        self.drivers = others | {rules.shoe: shoe}
        self._seed = seed
        self._random = Random(f"{seed}/daemon")
        self._log = log
        self._devices = devices
        self._who = caller(0, 0)
        self.store = store or InMemory()
        self.journal = self.store.open(self.clock, self._random)
        self.boots = 0
        self.requests = 0
        self._boot()

    # The daemon's life

    def _boot(self) -> None:
        self.boots += 1
        log = self._log or quiet_log()
        self.service = Service(self.rules, self.journal, {}, log=self._log)
        self.controller = Controller(self.service, self.clock, Notifier({}), log)
        self.recovered = state = self.service.recover()
        ports: dict[str, WatchedPort] = {}
        for name, host in self.hosts.items():
            known = state.device(name)
            spec = load(self.drivers[name])
            random = Random(f"{self._seed}/driver/{name}/{self.boots}")
            setup = Setup(name, random, Resume(known.n, known.boot, known.seq, known.serial))
            make, wire = (spec.controlled, MemTransport) if spec.polled else (spec.reader, MemReceiver)
            transport = wire(host.endpoint, host.uri)
            ports[name] = WatchedPort(name, transport, make(setup), self.clock, self.controller.deliver)
        self.controller.ports.update(ports)
        self.service.devices = self._devices(ports)
        for entry in self.journal.entries(self.view.seq):
            self.view.take(entry_json(entry, masked=True))
        self.service.publish = self._publish
        self.service.start(self.journal.boot_id.hex())
        self.service.handle([Hour(HOUR, DAY)])

    def crash(self) -> None:
        """The daemon is gone in mid-air; handles, threads and memory with it. Only the journal stays."""
        for host in self.hosts.values():
            host.unplug()
            host.replug()

    def restart(self) -> None:
        """A new daemon on the old journal; the dealer sends again what was not answered."""
        self.journal = self.store.open(self.clock, self._random)
        self._boot()
        if request := self.dealer.reconnected():
            self.request(request)

    def close(self) -> None:
        """Stop the daemon as SIGTERM does."""
        for port in self.controller.ports.values():
            port.close()
        self.controller.finish()

    # What goes in and out

    def request(self, request: Mapping[str, Any]) -> None:
        """One request of the dealer's on the control socket."""
        self.requests += 1
        if "get" in request:
            self.dealer.answered({"ok": True, "status": self.controller.view("status")})
            return
        self.controller.submit(_event(request, self._who.name, self._who.roles), self._answer)

    def tap(self, event: str, roles: frozenset[Role] | None = None, **args: Any) -> dict[str, Any]:
        """One tap from somebody else, answered before this returns."""
        answers: list[Reply] = []
        wanted = OperatorEvent(event, args, self._who.name, self._who.roles if roles is None else roles)
        self.controller.submit(wanted, answers.append)
        self.controller.finish()
        return _answer_json(answers[0])

    def _answer(self, reply: Reply) -> None:
        assert isinstance(reply.input, OperatorEvent)
        answer = {**_answer_json(reply), "id": reply.input.key}
        self._say("answer", answer)
        self._say_views()
        self.dealer.answered(answer)

    def _publish(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            line = entry_json(entry, masked=True)
            self._say("follow", line)
            self.view.take(line)
        self._say_views()

    def listen(self) -> list[str]:
        """From now on keep every line that leaves the table."""
        self.outputs = []
        return self.outputs

    def _say(self, what: str, line: Mapping[str, Any]) -> None:
        self.hear(what, line)
        if self.outputs is not None:
            self.outputs.append(f"{what} {json.dumps(line)}")

    def _say_views(self) -> None:
        if self.outputs is not None:
            for view in ("status", "faults", "alarms", "expected"):
                self.outputs.append(f"{view} {json.dumps(self.controller.view(view))}")

    # Time

    def step(self, *, dealer: bool = True) -> bool:
        """Everything that can happen now; True when anything did. The dealer may stand by."""
        busy, now = False, self.clock.now()
        for host in self.hosts.values():
            host.pump(now)
        self.between()
        for port in self.controller.ports.values():
            busy |= port.step(0)
            self.between()
        before = self.journal.last_seq
        self.controller.finish()
        self.between()
        for request in self.dealer.turn(now) if dealer else ():
            self.between()
            self.request(request)
            self.controller.finish()
            busy = True
        return busy or self.journal.last_seq != before

    def run(self, until: Callable[[], bool] | None = None) -> None:
        """Play until `until` holds, or to the end. Raises Stuck when nothing goes on."""
        progress = self.clock.now()
        while not (self.dealer.done if until is None else until()):
            seq = self.view.seq
            if self.step():
                if self.view.seq != seq:
                    progress = self.clock.now()
            elif not self.dealer.done:
                self.pass_time()
                if self.clock.now() - progress > STALLED_S:
                    raise Stuck(f"nothing happens any more; waiting for {self.dealer.doing}")
            elif until is not None and not until():
                raise Stuck("the dealer is done, and what was waited for did not happen")

    def settle(self, seconds: float = 5.0) -> None:
        """Let the daemon and the machines work for some simulated seconds while the dealer stands by."""
        end = self.clock.now() + seconds
        while True:
            if self.step(dealer=False):
                continue
            due = min(self._due(), default=None)
            if due is None or due > end:
                self.clock.advance(end - self.clock.now())
                return
            self.clock.advance(max(due - self.clock.now(), 0.0))

    def pass_time(self) -> None:
        """To the next thing that happens by itself. When all is journaled, polls need not be waited for.

        Raises Stuck when nothing will ever happen.
        """
        now, dealer = self.clock.now(), self.dealer
        if dealer.quiet and self.restless():
            due = min(self._due() if dealer.wake is None else [*self._due(), dealer.wake], default=None)
        elif dealer.quiet:
            times = [host.device.machine.deadline() for host in self.hosts.values()] + [dealer.wake]
            due = min((t for t in times if t is not None), default=None)
        else:
            due = min(self._due(), default=None)
        if due is None:
            raise Stuck(f"nothing will ever happen; waiting for {dealer.doing}")
        self.clock.advance(max(due - now, 0.0))

    def _due(self) -> list[float]:
        times = [port.deadline() for port in self.controller.ports.values()]
        times += [t for host in self.hosts.values() if (t := host.deadline()) is not None]
        return times


def _event(request: Mapping[str, Any], who: str, roles: frozenset[Role]) -> OperatorEvent:
    if "by" in request:
        who, roles = request["by"], frozenset({Role(request["by"])})
    return OperatorEvent(request["do"], args_of(request), who, roles, request["id"])


def _answer_json(reply: Reply) -> dict[str, Any]:
    refusal = reply.refusal
    if refusal is None:
        return {"ok": True, "facts": list(map(partial(entry_json, masked=True), reply.entries))}
    return {
        "ok": False,
        "refused": refusal.code,
        "why": refusal.why,
        "clause": refusal.clause,
        "expected": list(refusal.expected),
    }


def quiet_log() -> Log:
    import logging

    import structlog

    log: Log = structlog.wrap_logger(
        structlog.ReturnLogger(),
        processors=[structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
    ).bind()  # now, and not again at each call
    return log
