"""A table of the campaign: the whole stack in one thread, with whatever is planned to go wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from controller.log import Log, where
from controller.service import Commander
from controller.table.inputs import Hour
from simulators.faults.script import Director, Step
from simulators.hosts.line import Line
from simulators.models.machine import CannotDo, Traps
from simulators.rig.campaign.blows import DAEMON, DEALER, POWER
from simulators.rig.campaign.excuses import TABLE
from simulators.rig.campaign.judge import Judge
from simulators.rig.campaign.people import People
from simulators.rig.campaign.plan import Plan
from simulators.rig.campaign.result import Outcome
from simulators.rig.campaign.store import DiskStore, disk_full
from simulators.rig.stepped import DAY, HOUR, Stepped
from simulators.rig.steps import Stuck
from simulators.wire.device import WireDevice

FUSE = 12
"""A crash comes up to so many things after its trigger: between any two of them."""
RESTART_S = (0.2, 5.0)
"""How long no daemon runs."""
OFF_S = (0.1, 20.0)
"""How long the power is away."""
JUMP_S = 7200.0
PATIENCE_S = 60.0
"""Without a fact or an act for so long, somebody is called; a cycle of eight decks may take longer."""
CYCLE_S = 600.0
AWAKE_S, ASLEEP_S = 5.0, 60.0
"""After a fault struck polls are waited for as in real life for a while, and then not again so soon."""
LIVED_THROUGH = 0.05
PULL_AGAIN_S = 5.0
"""What the machines do not let happen is tried again so much later."""
MOST_S = 40_000.0
"""Simulated seconds after which a table is given up, whatever goes on at it."""


class Gone(BaseException):
    """The daemon ends here; with `power` the machine that it runs on, and all others."""

    def __init__(self, *, power: float | None = None) -> None:
        super().__init__()
        self.power = power


class Table:
    """One table of a plan; its files lie in `directory`, which is the caller's."""

    def __init__(self, plan: Plan, directory: Path, log: Log | None = None) -> None:
        self.plan = plan
        self._random = Random(f"{plan.seed}/table")
        self._own = [step for step in plan.steps if step.device in (DAEMON, POWER, DEALER)]
        self._struck: Counter[str] = Counter()
        self._director = Director(self._strike)
        self._traps = Traps()
        self._fuse: int | None = None
        self._full = False
        self._jump = self._ahead = 0.0
        self._dies: float | None = None
        self._lines: dict[str, Line] = {}
        self.store = DiskStore(directory, Random(f"{plan.seed}/disk"))
        assert plan.rules is not None, "a shoe alone has no table"
        self.world = Stepped(
            plan.rules, plan.seed, plan.shoes,
            shoe=plan.shoe, log=log, store=self.store, line=self._line, devices=self._watched,
        )  # fmt: skip
        self.people = People(Random(f"{plan.seed}/people"))
        self.judge = Judge(self.world, self.store, self.struck, plan.first)
        self.restarts = 0
        self.stopped: str | None = None
        self._ended = False
        self._progress = 0.0
        self._mark: tuple[int, ...] = ()
        self._counts = self._cards = 0
        self._awake_until = -ASLEEP_S
        self._wake: float | None = None
        self._lived = False
        self._known = 0

    def struck(self) -> Mapping[str, Counter[str]]:
        """What really happened, by device."""
        return {name: line.struck for name, line in self._lines.items()} | {
            TABLE: self._struck,
            DEALER: self.people.slips,
        }

    # The plan

    def _line(self, name: str, wire: WireDevice) -> WireDevice:
        steps = [step for step in self.plan.steps if step.device == name]
        self._lines[name] = Line(wire, Random(f"{self.plan.seed}/line/{name}"), steps, name)
        return self._lines[name]

    def _watched(self, ports: Mapping[str, Commander]) -> Mapping[str, Commander]:
        return {name: _Watched(name, port, self) for name, port in ports.items()}

    def _begin(self) -> None:
        """Lay what is planned for the table itself."""
        self.store.before, self.store.after = self._before_commit, self._after_commit
        self.world.between, self.world.restless = self._between, self._restless
        for step in self._own:
            if step.waits:
                self._director.add(step)
            elif step.nth is not None or step.chance is not None:
                self._traps.set(step.fault, step.nth, step.value, chance=step.chance, random=self._random)
            else:
                self._strike(step)

    def _strike(self, step: Step) -> None:
        """A step's moment has come; what waits for a commit or a command lies in wait from now on."""
        match step.fault:
            case "crash":
                self._light(None)
            case "power_cut":
                self._light(float(step.value) if step.value else self._random.uniform(*OFF_S))
            case "power_dip":
                self._struck[step.fault] += 1
                self._power_off(float(step.value) if step.value else self._random.uniform(*OFF_S))
            case "clock_jump":
                self._struck[step.fault] += 1
                self._jump += float(step.value) if step.value else JUMP_S
            case _ if step.device == DEALER:
                self.people.slip(self.world, step)
            case _:
                self._traps.set(step.fault, 1, step.value)

    def _light(self, power: float | None) -> None:
        self._fuse, self._dies = self._random.randint(0, FUSE), power

    def _power_off(self, seconds: float) -> None:
        for host in self.world.hosts.values():
            host.device.advance(self.world.clock.now())
            host.device.machine.power_cut(seconds)

    def _set_clock(self) -> None:
        seconds, self._jump = self._jump, 0.0
        self._ahead += seconds
        self.world.clock.set_wall(seconds)
        self.world.service.handle([Hour(HOUR + round(self._ahead / 3600), DAY)])

    # Where it happens

    def _between(self) -> None:
        if self._fuse is None:
            return
        self._fuse -= 1
        if self._fuse < 0:
            self._fuse = None
            self._struck["crash" if self._dies is None else "power_cut"] += 1
            raise Gone(power=self._dies)

    def _springs(self, name: str) -> bool:
        """Whether something lies in wait here; each is one more occasion."""
        if not self._traps:
            return False
        if self._traps.sprung(name):
            self._struck[name] += 1
            return True
        return False

    def _before_commit(self) -> None:
        if self.plan.steps:
            self.judge.notice()
        if not self._traps:
            return
        for name in ("crash", "power_cut"):
            if self._traps.sprung(name):
                self._light(None if name == "crash" else self._random.uniform(*OFF_S))
        if self._springs("crash_before_commit"):
            raise Gone
        if self._springs("disk_full"):
            self._full = True
            disk_full()

    def _after_commit(self) -> None:
        if self._springs("crash_after_commit"):
            raise Gone(power=self._random.choice((None, self._random.uniform(*OFF_S))))

    def commanded(self, device: str, name: str, send: Callable[[], None]) -> None:
        """The daemon sends a command."""
        self._director.command(name)
        if self._springs("crash_before_send"):
            raise Gone
        send()
        if self._springs("crash_after_send"):
            self.world.controller.ports[device].step(0)
            self.world.hosts[device].pump(self.world.clock.now())
            raise Gone

    def _restless(self) -> bool:
        """Whether polls are waited for: something has just gone wrong, or it is one of those times."""
        now, struck = self.world.clock.now(), sum(line.struck.total() for line in self._lines.values())
        if struck != self._known and now >= self._awake_until + ASLEEP_S:
            self._awake_until = now + AWAKE_S
        self._known = struck
        if self.world.dealer.wake != self._wake:
            self._wake = self.world.dealer.wake
            self._lived = bool(self.plan.steps) and self._random.random() < LIVED_THROUGH
        return now < self._awake_until or self._lived

    # Playing

    def play(self) -> Outcome:
        """Play to the end, or as far as it goes. An error in our own code is a failure like any other."""
        try:
            self._play()
        except Exception as error:  # noqa: BLE001 - whatever it is: it is told, and never hidden
            self.judge.failed(f"crashed: {where(error)}: {error}")
        finally:
            self.store.close()
        return self._outcome()

    def _play(self) -> None:
        self._begin()
        while not self._ended:
            try:
                self._turn()
            except Gone as gone:
                self._restart(gone)
            except Stuck as stuck:
                self._stuck(str(stuck), "")
            except CannotDo as cannot:
                self.world.clock.advance(PULL_AGAIN_S)
                self._stuck(str(cannot), cannot.why)
        self.store.before = self.store.after = self.world.between = lambda: None
        self.world.settle(1.0)
        for what in self.people.believed(self.world):
            self.judge.believed(what)
        self.judge.ended()
        self.world.close()

    def _turn(self) -> None:
        world, now = self.world, self.world.clock.now()
        if world.dealer.done:
            self._ended = True
            return
        busy = world.step()
        self._director.advance(now)
        if self._jump:
            self._set_clock()
        while self._cards < world.felt.referee.cards:
            self._cards += 1
            self._director.card()
        if world.service.stopped is not None:
            if not self._full:
                self.judge.failed(f"crashed: {world.service.stopped}")
            raise Gone
        if world.felt.referee.counts != self._counts:
            self._counts = world.felt.referee.counts
            self.judge.look()
        if not busy and not world.dealer.done:
            self._wait(now)

    def _wait(self, now: float) -> None:
        world = self.world
        mark = (world.requests, world.felt.referee.cards, world.view.rounds)
        if mark != self._mark:
            self._mark, self._progress = mark, now
        if now - self._progress > (CYCLE_S if world.dealer.quiet else PATIENCE_S) or now > MOST_S:
            raise Stuck(f"nothing happens any more; waiting for {world.dealer.doing}")
        world.pass_time()

    def _stuck(self, text: str, physical: str) -> None:
        """Somebody is called. Where nobody can help, the table stops; `physical`: what no tap can mend."""
        world = self.world
        self._progress = world.clock.now()
        if world.clock.now() <= MOST_S and self.people.help(world):
            return
        self.stopped = physical or self.judge.stopped(text, world.dealer.refused)
        self._ended = True

    def _restart(self, gone: Gone) -> None:
        """The daemon died; a new one reads what is left of the journal."""
        world = self.world
        while True:
            before, in_doubt = world.service.state, self.store.in_doubt
            self.restarts += 1
            self._full = False
            self.judge.take(self.store.take())
            world.crash()
            if gone.power is not None:
                self._power_off(gone.power)
            self.store.kill() if gone.power is None else self.store.power_cut()
            world.clock.advance(self._random.uniform(*RESTART_S))
            try:
                world.restart()
            except Gone as again:
                self.judge.reopened(before, world.recovered, in_doubt)
                gone = again
            else:
                self.judge.reopened(before, world.recovered, in_doubt)
                return

    def _outcome(self) -> Outcome:
        world, judge = self.world, self.judge
        shoes = min(len(world.felt.referee.shoes), self.plan.shoes)
        struck = sum(self.struck().values(), Counter[str]())
        return Outcome(
            shoes=shoes,
            played=shoes if world.view.phase == "closed" and self.stopped is None else max(shoes - 1, 0),
            rounds=world.view.rounds,
            cards=world.felt.referee.cards,
            events=world.journal.last_seq,
            struck=struck,
            restarts=self.restarts,
            stopped=self.stopped,
            failures=judge.failures,
            counters=judge.counters,
            simulated_s=world.clock.now(),
        )


class _Watched:
    """A device's command side that tells the table what is sent."""

    def __init__(self, name: str, port: Commander, table: Table) -> None:
        self._name, self._port, self._table = name, port, table

    def command(self, call_id: str, name: str, args: Mapping[str, Any]) -> None:
        self._table.judge.acts(self._name, int(call_id.removeprefix("C")))
        self._table.commanded(self._name, name, lambda: self._port.command(call_id, name, args))

    def ack(self, n: int) -> None:
        if n > self._table.world.service.state.device(self._name).n:
            self._table.judge.failed(
                f"facts before effects: {self._name} is told that event {n} is journaled"
            )
        self._port.ack(n)
