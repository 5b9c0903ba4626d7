"""A whole table for customers' tests: its daemon on ptys, or all in one thread under a virtual clock."""

from __future__ import annotations

import json
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from controller import config
from controller.cli.client import ask
from controller.cli.exits import NoDaemon
from controller.control_requests import VIEWS
from controller.render import entry_json
from controller.table.profiles import TableRules
from simulators.faults.fault import LONGEST_S
from simulators.faults.script import Step, from_text, near
from simulators.hosts.line import Line
from simulators.rig import demo
from simulators.rig.campaign.kinds import KINDS
from simulators.rig.campaign.kinds import text_of as example
from simulators.rig.fact_kinds import FACT_KINDS
from simulators.rig.felt import MANAGED_SHOE, Felt
from simulators.rig.live import DaemonGone, Live
from simulators.rig.plugged import Errands
from simulators.rig.stepped import Stepped
from simulators.rig.steps import Stuck
from simulators.rig.toml import to_toml
from simulators.wire.device import WireDevice

T = TypeVar("T")
Table = Mapping[str, Any] | str | Path | None
"""A table.toml, the name of an example, or sections that are laid over the demo's table, which None is."""


GONE = "nobody answers: the daemon was killed, and start() brings it back"


class NoSuchTable(ValueError):
    """Neither a file nor an example: one line for people."""


def text_of(table: Table, home: Path) -> str:
    """The text of a table.toml; a path is taken from `home`. Raises NoSuchTable."""
    if table is None:
        return demo.TABLE
    if isinstance(table, Mapping):
        whole = _laid_over(tomllib.loads(demo.TABLE), table)
        for role, device in whole["devices"].items() if isinstance(whole["devices"], Mapping) else ():
            if isinstance(device, dict):
                device.setdefault("port", f"mem:{role}")
        return to_toml(whole)
    if str(table) in KINDS:
        return example(str(table))
    if not str(table).endswith(".toml"):
        raise NoSuchTable(
            f"there is no example {str(table)!r}{near(str(table), KINDS)} (or name a .toml file)"
        )
    try:
        return (home / table).read_text()
    except OSError as error:
        raise NoSuchTable(f"{table} cannot be read: {error.strerror}") from None


def _laid_over(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = {**under, **over}
    for key, value in over.items():
        if isinstance(value, Mapping):
            below = under.get(key, {})
            both[key] = _laid_over(below if isinstance(below, Mapping) else {}, value)
    return both


def rules_of(text: str, name: str) -> tuple[TableRules, str]:
    """The rules of a table.toml called `name`, and the driver of its shoe. Raises config.ConfigInvalid."""
    asked, problems = config.examine(text.encode())
    if asked is None:
        raise config.ConfigInvalid(name, problems)
    drivers = {device.id: demo.simulated(device.spec) for device in asked.devices}
    shoe = asked.rules.shoe
    return asked.rules, MANAGED_SHOE if shoe is None else drivers[shoe]


class Lines:
    """Puts each device behind a line that faults can be laid on, now or later."""

    def __init__(self, seed: object) -> None:
        self._seed = seed
        self.by_device: dict[str, Line] = {}

    def __call__(self, name: str, wire: WireDevice) -> WireDevice:
        self.by_device[name] = Line(wire, Random(f"{self._seed}/line/{name}"), name=name)
        return self.by_device[name]

    def add(self, device: str, fault: str | Step) -> None:
        """Raises ValueError with one line for people."""
        self.by_device[self.known(device)].add(from_text(fault) if isinstance(fault, str) else fault)

    def known(self, device: str) -> str:
        """The name of a device that is there. Raises ValueError with one line for people."""
        if device not in self.by_device:
            raise ValueError(f"this table has no {device!r}; it has {', '.join(self.by_device)}")
        return device

    @property
    def struck(self) -> Counter[str]:
        return sum((line.struck for line in self.by_device.values()), Counter[str]())


class _Facts:
    """What both kinds of table tell alike."""

    def facts(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Everything that was journaled so far, masked, oldest first; or the facts of one kind.

        Raises ValueError for a kind that is none.
        """
        found = [fact for fact in self._all_facts() if kind in (None, fact["kind"])]
        if kind is not None and not found and kind not in FACT_KINDS:
            raise ValueError(f"no fact is of the kind {kind!r}{near(kind, sorted(FACT_KINDS))}")
        return found

    @property
    def latched(self) -> list[str]:
        """Codes of the faults that were latched so far, oldest first, alarms left out."""
        return [fact["code"] for fact in self.facts("fault_latched") if fact["blocks"] != "nothing"]

    def _all_facts(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    def _with_faults(self, why: Stuck) -> Stuck:
        """What keeps the dealer, with the faults that are to blame."""
        return Stuck(f"{why}; latched: {', '.join(self.latched) or 'nothing'}")


class LiveTable(_Facts):
    """`cutcard run` as a process of its own, its devices on ptys, and a dealer who plays when asked to.

    The devices live in a thread; simulated time at the table jumps while the dealer plays and nothing is due.
    """

    def __init__(self, place: demo.Place, live: Live, lines: Lines) -> None:
        self.place = place
        self._live = live
        self._lines = lines
        self._errands = Errands("the simulated table")
        self._ended = False
        live.wait_for_bell(self._errands.bell)
        self._thread = threading.Thread(target=self._run, name="simulated table")
        self._thread.start()

    @property
    def control(self) -> Path:
        """The control socket."""
        return self.place.control

    @property
    def ports(self) -> dict[str, str]:
        """Each device's port, as in table.toml."""
        return {name: host.uri for name, host in self._live.hosts.items()}

    @property
    def rounds(self) -> int:
        """How many were settled; good for `until` of `play`."""
        return self._live.view.rounds

    @property
    def violations(self) -> list[str]:
        """What the referee saw that must never happen at a table."""
        return list(self._live.felt.referee.violations)

    def play(self, until: Callable[[], object] = lambda: False) -> None:
        """The dealer plays on until `until()` holds, asked in the table's thread, or all shoes are dealt.

        Raises Stuck or DaemonGone, whose texts say where the play stands.
        """
        try:
            self._do(lambda: self._live.run(lambda: self._errands.given_up or bool(until())))
        except Stuck as error:
            raise self._with_faults(error) from None

    def wait(self, until: Callable[[], object]) -> None:
        """The dealer rests until `until()` holds. Raises DaemonGone when that takes too long."""
        self._do(lambda: self._live.stand_by(lambda: self._errands.given_up or bool(until())))

    def tap(self, event: str, **args: Any) -> dict[str, Any]:
        """One operator event from us; the answer, once its facts were heard. The dealer is not told."""
        answer = ask(self.control, {"do": event, **args})
        newest = max((fact["fact"] for fact in answer.get("facts", ())), default=0)
        self.wait(lambda: self._live.view.seq >= newest)
        return answer

    def get(self, what: str) -> Any:
        """What the daemon answers to `status`, `faults`, `alarms` or `expected`."""
        return ask(self.control, {"get": what})[what]

    def act(self, do: Callable[[Felt], T]) -> T:
        """`do(felt)` in the table's thread: what hands do with the cards and machines, told to nobody."""
        return self._do(lambda: do(self._live.felt))

    def fault(self, device: str, fault: str | Step) -> None:
        """Lay a fault on a device, written as for `cutcard sim --fault`. ValueError with one line."""
        self._do(lambda: self._lines.add(device, fault))

    @property
    def struck(self) -> Counter[str]:
        """How often each fault really happened so far."""
        return self._do(lambda: self._lines.struck)

    def unplug(self, device: str) -> None:
        self._do(lambda: self._live.unplug(self._lines.known(device)))

    def replug(self, device: str) -> None:
        self._do(lambda: self._live.replug(self._lines.known(device)))

    def kill(self) -> None:
        """SIGKILL for the daemon, as a power cut of its machine; `start` brings it back."""
        self._do(self._live.kill)

    def start(self) -> None:
        """Start the daemon (again) on its journal and wait until it listens."""
        self._do(self._live.start)

    def stop(self) -> None:
        """End the daemon as systemd does. Raises DaemonGone when it does not end well."""
        code = self._do(self._live.stop)
        if code != 0:
            raise DaemonGone(f"the daemon ended with {code}:\n{self._live.daemon.last_words()}")

    def close(self) -> None:
        """End the table's thread; the daemon is ended by `stop`, or killed by whoever made it."""
        self._ended = True
        self._errands.ring()
        self._thread.join()
        self._errands.close()

    def _all_facts(self) -> list[dict[str, Any]]:
        heard = self._do(lambda: dict(self._live.acknowledged))
        return [fact for _, fact in sorted(heard.items())]

    def _do(self, do: Callable[[], T]) -> T:
        return self._errands.ask(do, self._thread.is_alive)

    def _run(self) -> None:
        while not self._ended:
            self._live.rest()
            self._errands.run()


class VirtualTable(_Facts):
    """The whole stack in the test's own thread under a virtual clock: a shoe takes a fraction of a second.

    Nothing happens but in `play`, `tap` and `pass_time`; the same seed gives the same facts.
    """

    def __init__(self, rules: TableRules, seed: object, shoes: int, shoe: str) -> None:
        self._lines = Lines(seed)
        self._runs = True
        self.stepped = Stepped(rules, seed, shoes, shoe=shoe, line=self._lines)

    @property
    def felt(self) -> Felt:
        """The cards and machines; what hands do with them is told to nobody."""
        return self.stepped.felt

    @property
    def rounds(self) -> int:
        """How many were settled; good for `until` of `play`."""
        return self.stepped.view.rounds

    @property
    def violations(self) -> list[str]:
        """What the referee saw that must never happen at a table."""
        return list(self.felt.referee.violations)

    def play(self, until: Callable[[], object] | None = None) -> None:
        """The dealer plays on until `until()` holds, or all shoes are dealt. Raises Stuck or DaemonGone."""
        if not self._runs:
            raise DaemonGone(GONE)
        try:
            self.stepped.run(None if until is None else lambda: bool(until()))
        except Stuck as error:
            raise self._with_faults(error) from None

    def tap(self, event: str, **args: Any) -> dict[str, Any]:
        """One operator event from us; the answer. The dealer is not told. Raises NoDaemon."""
        self._must_run()
        return self.stepped.tap(event, **args)

    def get(self, what: str) -> Any:
        """What the daemon answers to `status`, `faults`, `alarms` or `expected`, as plain as its JSON."""
        if what not in VIEWS:
            raise ValueError(f"there is no {what!r} to get{near(what, VIEWS)} (there are {', '.join(VIEWS)})")
        self._must_run()
        return json.loads(json.dumps(self.stepped.controller.view(what)))

    def pass_time(self, seconds: float) -> None:
        """Simulated seconds in which the dealer stands by. Raises ValueError for what is no time."""
        if not 0 <= seconds <= LONGEST_S:
            raise ValueError(f"time passes by 0 to {LONGEST_S:.0f} s, a day, not by {seconds!r}")
        if self._runs:
            self.stepped.settle(seconds)
        else:
            self.stepped.clock.advance(seconds)

    def fault(self, device: str, fault: str | Step) -> None:
        """Lay a fault on a device, written as for `cutcard sim --fault`. ValueError with one line."""
        self._lines.add(device, fault)

    @property
    def struck(self) -> Counter[str]:
        """How often each fault really happened so far."""
        return self._lines.struck

    def unplug(self, device: str) -> None:
        self.stepped.hosts[self._lines.known(device)].unplug()

    def replug(self, device: str) -> None:
        self.stepped.hosts[self._lines.known(device)].replug()

    def kill(self) -> None:
        """The daemon is gone in mid-air; only its journal stays. `start` brings it back."""
        self._runs = False
        self.stepped.crash()

    def start(self) -> None:
        """A daemon on the journal (again)."""
        if self._runs:
            raise RuntimeError("the daemon runs already: kill() it first")
        self.stepped.restart()
        self._runs = True

    def _must_run(self) -> None:
        if not self._runs:
            raise NoDaemon(GONE)

    def _all_facts(self) -> list[dict[str, Any]]:
        return [entry_json(entry, masked=True) for entry in self.stepped.journal.entries(1)]


@contextmanager
def live_table(
    table: Table = None, *, seed: object = 1, shoes: int = 1, speed: float | None = None, home: Path
) -> Iterator[LiveTable]:
    """A daemon on simulated devices, started; at the end it is stopped and must end well.

    Raises NoSuchTable, config.ConfigInvalid, DaemonGone, or ValueError for a number that is none of shoes.
    """
    lines = Lines(seed)
    _check_shoes(shoes)
    with (
        demo.set_up(text_of(table, home), name=str(table)) as place,
        demo.on_ptys(place, seed, shoes, speed, lines) as live,
    ):
        live.start()
        made = LiveTable(place, live, lines)
        try:
            yield made
            if live.daemon.alive():
                made.stop()
        finally:
            made.close()


def virtual_table(table: Table = None, *, seed: object = 1, shoes: int = 1, home: Path) -> VirtualTable:
    """Raises NoSuchTable, config.ConfigInvalid, or ValueError for a number that is none of shoes."""
    _check_shoes(shoes)
    rules, shoe = rules_of(text_of(table, home), str(table))
    return VirtualTable(rules, seed, shoes, shoe)


def _check_shoes(shoes: int) -> None:
    if isinstance(shoes, bool) or not isinstance(shoes, int) or shoes < 1:
        raise ValueError(f"shoes is how many are dealt, a whole number from 1, not {shoes!r}")
