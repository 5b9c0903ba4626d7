"""A simulated device that lives in a thread of its own, for programs that have no loop: customers' tests."""

from __future__ import annotations

import os
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from simulators.faults.script import Step, from_text
from simulators.hosts.host import Host
from simulators.hosts.line import Line
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.served import Served
from simulators.rig import sim

T = TypeVar("T")
LOOK_S = 1.0
"""How often a caller who waits for an errand looks whether its thread still lives, seconds."""


class Errands:
    """What other threads want done in the thread that owns `what`; `bell` is readable while any waits."""

    def __init__(self, what: str) -> None:
        self.bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._what = what
        self._owner = 0
        self._wanted: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._answer: Future[Any] = Future()

    @property
    def given_up(self) -> bool:
        """In the owner's thread: whether nobody waits any more for what is being done."""
        return self._answer.cancelled()

    def ask(self, do: Callable[[], T], alive: Callable[[], bool]) -> T:
        """Wait until it is done; what it returned or raised. RuntimeError once its thread is not `alive`.

        Whoever is interrupted in the wait (Ctrl-C, a test's timeout) has given it up.
        """
        if threading.get_ident() == self._owner:
            return do()
        answer: Future[T] = Future()
        if alive():
            self._wanted.append((do, answer))
            os.eventfd_write(self.bell, 1)
        try:
            while not wait([answer], LOOK_S if alive() else 0).done:
                if not alive():
                    raise RuntimeError(f"{self._what} is gone: it broke, or its test is over")
        finally:
            answer.cancel()
        return answer.result()

    def run(self) -> None:
        """In the owner's thread: do what is wanted."""
        self._owner = threading.get_ident()
        with suppress(BlockingIOError):
            os.eventfd_read(self.bell)
        while self._wanted:
            do, self._answer = self._wanted.popleft()
            if not self.given_up:
                _answer(do, self._answer)

    def ring(self) -> None:
        """End the owner's wait."""
        os.eventfd_write(self.bell, 1)

    def close(self) -> None:
        os.close(self.bell)


def _answer(do: Callable[[], T], answer: Future[T]) -> None:
    """Whatever `do` raises is raised where it was asked for, pytest.fail and pytest.skip too."""
    try:
        done = do()
    except BaseException as error:  # noqa: BLE001 - the thread lives on for the next errand
        with suppress(InvalidStateError):  # given up meanwhile
            answer.set_exception(error)
    else:
        with suppress(InvalidStateError):
            answer.set_result(done)


class _Messenger:
    """Errands at a host, as a part of its loop: each is run at the device's own time."""

    def __init__(self, errands: Errands, host: Host) -> None:
        self._errands, self._host = errands, host

    def filenos(self) -> list[int]:
        return [self._errands.bell]

    def writers(self) -> list[int]:
        return []

    def deadline(self) -> float | None:
        return None

    def pump(self, now: float) -> None:
        self._host.device.advance(now)
        self._errands.run()


class Plugged:
    """One simulated device in real time, behind a `line` that carries its bytes and has its faults.

    `uri` is its port as `[devices]` of a table.toml and every command want it; it stays the same when the
    device is plugged in again.
    """

    def __init__(self, name: str, line: Line, host: Host, errands: Errands, served: Served) -> None:
        self.name = name
        self.line = line
        self._host = host
        self._errands = errands
        self._served = served

    def __repr__(self) -> str:
        return f"<simulated {self.name} at {self.uri}>"

    @property
    def uri(self) -> str:
        return self._host.uri

    @property
    def path(self) -> str:
        """The pty's stable name, for programs that open a serial port by themselves."""
        return self._pty().path

    @property
    def struck(self) -> Counter[str]:
        """How often each fault really happened so far."""
        return self._done(lambda: self.line.struck)

    @property
    def machine(self) -> Any:
        """The mechanics behind the wire; move things in `act` alone."""
        return self.line.machine

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables for programs that are to see a device on a simulated USB bus."""
        if not isinstance(self._host, sim.UsbPlace):
            raise TypeError(f"{self!r} is on no USB bus; ask for listen='usb'")
        return self._host.environment

    def act(self, do: Callable[[Any], T]) -> T:
        """`do(machine)` in the device's own thread, at its own time; what it returns or raises."""
        return self._done(lambda: do(self.machine))

    def unplug(self) -> None:
        """Pull the cable of a device on a pty: its port is gone, whoever reads gets an error."""
        self._done(self._pty().unplug)

    def replug(self) -> None:
        """Put the cable in (again): another pty under the same name."""
        self._done(self._pty().replug)

    def _pty(self) -> PtyHost:
        if not isinstance(self._host, PtyHost):
            raise TypeError(f"{self!r} is on no pty: it has no path and no cable; ask for listen='pty'")
        return self._host

    def _done(self, do: Callable[[], T]) -> T:
        return self._errands.ask(do, lambda: self._served.alive)


def _steps(faults: Any) -> Iterator[Step]:
    """Each fault as a step. Raises TypeError or ValueError with one line for people."""
    if isinstance(faults, str) or not isinstance(faults, Iterable):
        raise TypeError(f"faults is a list, as faults=['misread@3'], not {faults!r}")
    for fault in faults:
        if not isinstance(fault, str | Step):
            raise TypeError(f"a fault is a text as 'misread@3', or a Step, not {fault!r}")
        yield sim.of_a_device(from_text(fault) if isinstance(fault, str) else fault)


@contextmanager
def plugged(
    name: str,
    *,
    seed: object = 1,
    faults: Iterable[str | Step] = (),
    script: Path | str | None = None,
    listen: str = "pty",
    plays: bool = False,
) -> Iterator[Plugged]:
    """The device `name` until the block ends.

    `faults` are written as for `cutcard sim --fault`, or are Steps; `script` is a file of them. `listen` is
    pty, tcp or usb, or a place as for `cutcard sim --listen`. With `plays` somebody deals from it in real
    time, and puts back what it lets out. Raises ValueError with one line for people, or OSError when the
    place cannot be had.
    """
    steps = list(_steps(faults))
    if not isinstance(plays, bool):
        raise TypeError(f"plays is True or False, not {plays!r}")
    steps += [] if script is None else sim.steps_in(Path(script).read_text())
    with ExitStack() as stack:
        device, load = sim.build(name, seed, usb=listen.startswith("usb"), plays=plays)
        line = Line(device, Random(f"{seed}/line"), steps, name)
        load()
        if listen in ("pty", "usb"):
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cutcard-")))
            listen = f"{listen}:{home / name}"
        host = sim.listen(line, "tcp:127.0.0.1:0" if listen == "tcp" else listen)
        stack.callback(host.close)
        errands = Errands(f"the simulated {name}")
        stack.callback(errands.close)
        others = [sim.Attendant(device)] if plays else []
        served = stack.enter_context(Served(_Messenger(errands, host), host, *others))
        yield Plugged(name, line, host, errands, served)
