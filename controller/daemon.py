"""The daemon of one table: who runs, who owns what, and how it ends.

The main thread is the controller: it owns the journal and the state and drains one inbox, a burst a commit.
Each device has an owner thread (`firmware_bridge.port`), the control socket has one. They only post here.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import time
from functools import partial
from itertools import islice
from random import Random
from typing import Any

from controller.config import Config, DeviceConfig
from controller.control import ControlServer
from controller.factlog import new_boot_id
from controller.hours import hour_at, until_next_minute
from controller.journal import Journal
from controller.log import Log, where
from controller.notify import Notifier
from controller.open_tables import mark_open
from controller.record import Entry
from controller.render import entry_json
from controller.seal import KeyMissing
from controller.service import CRASHED, Reply, Service
from controller.signals import told_of_signals
from controller.table.inputs import Ended, Input, Observed, OperatorEvent, Refusal, Trouble
from controller.table.state import TableState
from controller.views import view
from devices.base import Resume, Setup
from devices.events import DeviceEvent, carries_card
from firmware_bridge.clock import Clock, SystemClock
from firmware_bridge.frozen import value
from firmware_bridge.link import Complete
from firmware_bridge.port import Crashed, Opened, Port, Unavailable, stop_all
from firmware_bridge.transports import open_receiver, open_transport, parse_uri

BURST = 256
"""Inputs of one commit at most, so that a flood of events cannot keep an answer waiting."""
LAST_WORDS_S = 5.0
"""How long a stop waits for commands that were sent, seconds; then their end is Unknown."""
KEY_MISSING = "key_missing"
DEVICE_DOWN = "device_down"


@value
class _Outputs:
    """What a port produced in one turn."""

    device: str
    outputs: Sequence[object]


@value
class _Tap:
    event: OperatorEvent
    answer: Callable[[Reply], None]


@dataclass(frozen=True, slots=True)
class _Past:
    since: int
    limit: int
    answer: Callable[[Sequence[Entry], int], None]


@dataclass(frozen=True, slots=True)
class _Died:
    """A thread ended with an error."""

    trouble: Trouble


class _Stop:
    """SIGTERM or SIGINT came."""


_Letter = _Outputs | _Tap | _Past | _Died | _Stop


class WatchedPort(Port):
    """A port that counts its turns: the proof for the watchdog that its owner thread lives."""

    turns = 0

    def step(self, timeout: float) -> bool:
        done = super().step(timeout)
        self.turns += 1
        return done


class Controller:
    """The controller thread's loop, and the desk of the control socket. Only `run` touches the service."""

    def __init__(self, service: Service, clock: Clock, notifier: Notifier, log: Log) -> None:
        self.service = service
        self.ports: dict[str, WatchedPort] = {}
        self.links: dict[str, dict[str, str | None]] = {}
        self.control: ControlServer | None = None
        self._clock = clock
        self._notifier = notifier
        self._log = log
        self._inbox: queue.SimpleQueue[_Letter] = queue.SimpleQueue()
        self._stopping = False
        self._next_check: float | None = None
        self._day_starts = time()
        self._next_look: float | None = None
        self._seen: dict[str, int] = {}
        self._control_beats = 0

    # --- from any thread ---

    def deliver(self, device: str, outputs: Sequence[object]) -> None:
        """A port's outputs, in order."""
        self._inbox.put(_Outputs(device, outputs))

    def submit(self, event: OperatorEvent, answer: Callable[[Reply], None]) -> None:
        self._inbox.put(_Tap(event, answer))

    def history(self, since: int, limit: int, answer: Callable[[Sequence[Entry], int], None]) -> None:
        self._inbox.put(_Past(since, limit, answer))

    def died(self, name: str, error: BaseException, device: str | None = None) -> None:
        """A thread ended with an error: latched, never silent."""
        self._inbox.put(_Died(Trouble(CRASHED, f"{name}: {where(error)}", device)))

    def stop(self, *_signal: object) -> None:
        """Ask the loop to end at the next safe point."""
        self._inbox.put(_Stop())

    def control_beat(self) -> None:
        """The control thread is alive."""
        self._control_beats += 1

    def view(self, what: str) -> Any:
        """A view of the last committed state, which is frozen: any thread may look."""
        found = view(self.service, what)
        if what == "status":
            found["ports"] = {name: {**link, **self._health(name)} for name, link in self.links.items()}
        return found

    def _health(self, device: str) -> dict[str, Any]:
        """How long ago the last good frame came (s), and what is likely wrong with an open port."""
        port = self.ports.get(device)
        if port is None:
            return {"last_frame_s": None, "hint": None}
        health = port.health()
        age = None if health.last_frame is None else round(self._clock.now() - health.last_frame, 1)
        return {"last_frame_s": age, "hint": health.hint}

    # --- the controller thread ---

    def run(self) -> None:
        """Serve until stopped, then see commands that were sent to their end, but not for ever."""
        self._check_owners()
        while not self._stopping:
            self._turn(self._patience())
        self._notifier.tell("STOPPING=1")
        self._log.info("stopping", pending=len(self.service.state.pending))
        until = self._clock.now() + LAST_WORDS_S
        while self.service.state.pending and self.service.stopped is None:
            left = until - self._clock.now()
            if left <= 0 or not self._turn(left):
                break

    def finish(self) -> None:
        """Take what the ports said while they were closed."""
        while self._turn(0):
            pass

    def keep_hours(self, day_starts: time) -> None:
        """From now on the table is told each hour and each gaming day, as they begin (R-42, R-45)."""
        self._day_starts = day_starts
        self._look_at_the_clock()

    def _look_at_the_clock(self) -> None:
        wall, state = self._clock.wall(), self.service.state
        hour = hour_at(wall, self._day_starts)
        if (hour.hour, hour.day) != (state.hour, state.day):
            self.service.handle([hour])
        self._next_look = self._clock.now() + until_next_minute(wall)

    def _patience(self) -> float | None:
        due = [t for t in (self._next_check, self._next_look) if t is not None]
        return max(0.0, min(due) - self._clock.now()) if due else None

    def _turn(self, timeout: float | None) -> bool:
        """Wait for a letter, take all that came with it, and handle them as one commit."""
        letters: list[_Letter] = []
        if timeout != 0:
            with suppress(queue.Empty):
                letters.append(self._inbox.get(timeout=timeout))
        while len(letters) < BURST and not self._inbox.empty():  # nobody else takes any
            letters.append(self._inbox.get_nowait())
        if letters:
            self._handle(letters)
        if self._next_check is not None and self._clock.now() >= self._next_check:
            self._check_owners()
        if self._next_look is not None and self._clock.now() >= self._next_look:
            self._look_at_the_clock()
        return bool(letters)

    def _handle(self, letters: Sequence[_Letter]) -> None:
        inputs: list[Input] = []
        answers: dict[int, Callable[[Reply], None]] = {}
        past: list[_Past] = []
        for letter in letters:
            match letter:
                case _Outputs(device, outputs):
                    for output in outputs:
                        inputs += self._of_port(device, output)
                case _Tap(event, answer) if self._stopping:
                    answer(Reply(event, refusal=Refusal("stopping", "the daemon is stopping", None, ())))
                case _Tap(event, answer):
                    answers[len(inputs)] = answer
                    inputs.append(event)
                case _Past():
                    past.append(letter)
                case _Died(trouble):
                    self._log.error("thread died", device=trouble.device, why=trouble.detail)
                    inputs.append(trouble)
                case _Stop():
                    self._stopping = True
        if inputs:
            replies = self.service.handle(inputs)
            for index, answer in answers.items():
                answer(replies[index])
        for ask in past:
            journal = self.service.journal
            ask.answer(list(islice(journal.entries(ask.since), ask.limit)), journal.last_seq)

    def _of_port(self, device: str, output: object) -> Iterator[Input]:
        """What a port's output is for the rules: of the state of its link only that there is none."""
        match output:
            case DeviceEvent():
                raw = None if carries_card(output) else output.raw
                self._log.debug("event", device=device, kind=output.kind, n=output.n, seq=output.seq, raw=raw)
                yield Observed(output)
            case Complete(call_id, outcome):
                yield Ended(device, call_id, outcome)
            case Opened(port):
                self._link(device, "open", port)
            case Unavailable(kind, text):
                self._link(device, kind.lower(), text)
                yield Trouble(DEVICE_DOWN, f"{device}: {text}", device)
            case Crashed(error, place):
                self._log.error("driver failed", device=device, error=error, where=place)
                yield Trouble(CRASHED, f"{device}: {error} at {place}", device)

    def _link(self, device: str, state: str, text: str) -> None:
        self.links = {**self.links, device: {"link": state, "text": text}}
        self._log.info("link", device=device, link=state, text=text)
        self.tell_status()

    def tell_status(self) -> None:
        """One line for `systemctl status`: which devices are awaited."""
        waiting = [name for name in self.ports if self.links.get(name, {}).get("link") != "open"]
        self._notifier.tell(
            f"STATUS={'waiting for ' + ', '.join(waiting) if waiting else 'all devices connected'}"
        )

    def _check_owners(self) -> None:
        """The watchdog: fed when every owner thread has turned since the last check, then all are woken."""
        period = self._notifier.watchdog_s
        if period is None or self._stopping:
            return
        now = {name: port.turns for name, port in self.ports.items()} | {"control": self._control_beats}
        silent = [name for name, count in now.items() if self._seen.get(name, -1) >= count]
        if not silent:
            self._notifier.tell("WATCHDOG=1")
        elif self._seen:
            self._log.error("no sign of life", threads=silent)
        self._seen = now
        for name, port in self.ports.items():
            port.ack(self.service.state.device(name).n)
        if self.control is not None:
            self.control.ping()
        self._next_check = self._clock.now() + period


def serve(config: Config, log: Log, environ: Mapping[str, str], clock: Clock | None = None) -> int:
    """Run the table until SIGTERM or SIGINT; the exit code. Raises what `exits.CODES` lists at start."""
    clock = clock or SystemClock()
    notifier = Notifier(environ)
    boot = new_boot_id()
    log = log.bind(table=config.rules.table, boot=boot.hex())
    with ExitStack() as stack:
        stack.enter_context(mark_open(config.rules.table))
        journal, trouble = _open_journal(config, clock, boot)
        stack.callback(journal.close)
        service = Service(config.rules, journal, {}, log=log)
        controller = Controller(service, clock, notifier, log)
        state = service.recover()
        controller.ports.update((d.id, _port(d, state, clock, controller.deliver)) for d in config.devices)
        service.devices = controller.ports
        control = ControlServer(
            config.socket, controller, partial(entry_json, masked=True), beat=controller.control_beat
        )
        stack.callback(control.close)
        controller.control = control
        service.publish = control.publish
        stack.enter_context(told_of_signals(controller.stop))
        stack.enter_context(_thread_faults(controller))
        service.start(boot.hex())
        controller.keep_hours(config.day_starts)
        if trouble is not None:
            service.handle([trouble])
        speaker = threading.Thread(target=control.serve, name="control", daemon=True)
        speaker.start()
        log.info("ready", socket=str(config.socket), fact=service.state.seq, phase=service.state.phase.value)
        notifier.tell("READY=1")
        controller.tell_status()
        try:
            for port in controller.ports.values():
                port.start()
            controller.run()
        except Exception as error:  # noqa: BLE001 - told without its own text, which may name a card (law 7)
            why = f"controller: {where(error)}"
            log.critical("controller failed", why=why)
            service.handle([Trouble(CRASHED, why)])
            service.stopped = why
        finally:
            stop_all(controller.ports.values())
            controller.finish()
            control.stop()
            speaker.join()
        log.info("stopped", fact=service.state.seq)
        return 0 if service.stopped is None else 1


def _open_journal(config: Config, clock: Clock, boot: bytes) -> tuple[Journal, Trouble | None]:
    """The journal; without its key it opens too, and the missing key is a latched fault (law 7)."""
    try:
        return Journal.open(config.journal, config.key, clock=clock, boot_id=boot), None
    except KeyMissing as error:
        journal = Journal.open(config.journal, None, clock=clock, boot_id=boot)
        return journal, Trouble(KEY_MISSING, str(error))


def _port(device: DeviceConfig, state: TableState, clock: Clock, deliver: Callable[..., None]) -> WatchedPort:
    """The port of one device: a listen-only driver gets a handle that cannot write (law 10)."""
    spec, known = device.spec, state.device(device.id)
    setup = Setup(
        device.id,
        Random(os.urandom(16)),
        Resume(known.n, known.boot, known.seq, known.serial),
        device.options,
        packets=parse_uri(device.port).packets,
    )
    if spec.polled:
        return WatchedPort(
            device.id, open_transport(device.port, spec.baud), spec.controlled(setup), clock, deliver
        )
    return WatchedPort(device.id, open_receiver(device.port, spec.baud), spec.reader(setup), clock, deliver)


@contextmanager
def _thread_faults(controller: Controller) -> Iterator[None]:
    """Any thread that dies of an error is a fault of the table, told without the error's own text (law 7)."""

    def hook(args: threading.ExceptHookArgs) -> None:
        name = args.thread.name if args.thread else "a thread"
        device = name.removeprefix("port ") if name.startswith("port ") else None
        controller.died(name, args.exc_value or args.exc_type(), device)

    before, threading.excepthook = threading.excepthook, hook
    try:
        yield
    finally:
        threading.excepthook = before
