"""Simulated devices, and `cutcard` commands as processes beside them: one loop serves and hears them all."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from firmware_bridge.clock import SystemClock
from simulators.models.cards import Stack, make_batch
from simulators.models.shoe import Shoe
from simulators.models.shuffler import BatchShuffler
from simulators.wire.angel_eye import AngelEye
from simulators.wire.framings import CONSOLE, Framing
from simulators.wire.managed_shoe import ManagedShoe
from simulators.wire.managed_shuffler import ManagedShuffler

ALONE = "import controller.open_tables as tables; tables.any_open = lambda: False\n"
"""Tables that other tests have open on this machine shall not count."""
MAIN = "from controller.cli.app import main; main()"
WITHIN_S = 30.0
LATE_S = 0.05
"""A host's clock stands still while this process is kept from running, or a short event would pass unseen."""


class Child:
    """One command. `out` and `err` are the lines so far, `code` its exit code once it is gone."""

    def __init__(self, args: tuple[str, ...], env: dict[str, str], alone: bool) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", (ALONE if alone else "") + MAIN, *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **env},
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._text = {self.process.stdout: b"", self.process.stderr: b""}
        self.open = list(self._text)
        for pipe in self.open:
            os.set_blocking(pipe.fileno(), False)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def out(self) -> list[str]:
        return self._lines(0)

    @property
    def err(self) -> list[str]:
        return self._lines(1)

    @property
    def code(self) -> int | None:
        return None if self.open else self.process.wait()

    def _lines(self, which: int) -> list[str]:
        return list(self._text.values())[which].decode().splitlines()

    def hear(self) -> None:
        for pipe in list(self.open):
            try:
                while data := os.read(pipe.fileno(), 65536):
                    self._text[pipe] += data
            except BlockingIOError:
                continue
            self.open.remove(pipe)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in self._text:
            pipe.close()


class Desk:
    """Its hosts live in real time, from 0 on, while somebody waits; what this process sleeps is left out."""

    def __init__(self) -> None:
        self.hosts: list[Any] = []
        self.children: list[Child] = []
        self._clock = SystemClock()
        self._start = self._clock.now()
        self._at, self._due = 0.0, 0.0

    def serve(self, host: Any) -> Any:
        self.hosts.append(host)
        return host

    def cutcard(self, *args: str, alone: bool = False, **env: str) -> Child:
        """A command; `alone`: it sees no table open on this machine."""
        child = Child(args, env, alone)
        self.children.append(child)
        return child

    def until(self, ready: Callable[[], bool], within: float = WITHIN_S) -> float:
        """Serve and hear until `ready`; the seconds it took. AssertionError tells what was said so far."""
        since = self._clock.now()
        while True:
            self._pump()
            waited = self._clock.now() - since
            if ready():
                return waited
            assert waited < within, [(c.out, c.err, c.code) for c in self.children]
            self._wait(within - waited)

    def end_of(self, child: Child) -> tuple[int | None, list[str], list[str]]:
        """Exit code and both outputs of a command that ends by itself."""
        self.until(lambda: not child.open)
        return child.code, child.out, child.err

    def _now(self) -> float:
        """Of the hosts, seconds: never more than LATE_S after it was due."""
        real = self._clock.now() - self._start
        slept = max(0.0, real - max(self._at, self._due) - LATE_S)
        self._start += slept
        self._at = real - slept
        return self._at

    def _pump(self) -> None:
        for host in self.hosts:
            host.pump(self._now())

    def _wait(self, patience: float) -> None:
        now = self._now()
        times = [t - now for host in self.hosts if (t := host.deadline()) is not None]
        with selectors.DefaultSelector() as selector:
            for host in self.hosts:
                writers = set(host.writers())
                for number in {*host.filenos(), *writers}:
                    also = selectors.EVENT_WRITE if number in writers else 0
                    selector.register(number, selectors.EVENT_READ | also)
            for child in self.children:
                for pipe in child.open:
                    selector.register(pipe, selectors.EVENT_READ)
            wait = max(0.0, min([patience, *times]))
            self._due = self._at + wait
            selector.select(wait)
        for child in self.children:
            child.hear()

    def close(self) -> None:
        for child in self.children:
            child.close()
        for host in self.hosts:
            host.close()


@contextmanager
def desk() -> Iterator[Desk]:
    made = Desk()
    try:
        yield made
    finally:
        made.close()


class _Bell:
    """A host without a device that ends a wait."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0)
        self.rung = False

    def ring(self) -> None:
        self.rung = True
        os.eventfd_write(self._fd, 1)

    def filenos(self) -> list[int]:
        return [self._fd]

    def writers(self) -> list[int]:
        return []

    def deadline(self) -> None:
        return None

    def pump(self, now: float) -> None:
        pass

    def close(self) -> None:
        os.close(self._fd)


@contextmanager
def served(host: Any) -> Iterator[Any]:
    """The host lives in a thread of its own meanwhile."""
    with desk() as made:
        bell = made.serve(_Bell())
        made.serve(host)
        thread = threading.Thread(target=made.until, args=(lambda: bell.rung, 60.0))
        thread.start()
        try:
            yield host
        finally:
            bell.ring()
            thread.join()


def managed_shoe(framing: Framing = CONSOLE) -> ManagedShoe:
    """With one deck inside."""
    return ManagedShoe(_shoe(), decks=1, framing=framing)


def angel_eye() -> AngelEye:
    return AngelEye(_shoe())


def managed_shuffler(framing: Framing = CONSOLE) -> ManagedShuffler:
    """Loaded with one deck."""
    machine = BatchShuffler(Random("shuffler"), decks=1)
    machine.load(Stack(make_batch("red", 1)))
    return ManagedShuffler(machine, framing=framing)


def _shoe() -> Shoe:
    shoe = Shoe(Random("shoe"))
    shoe.open_lid()
    shoe.load(Stack(make_batch("red", 1)))
    shoe.close_lid()
    return shoe


def never_answered(device: ManagedShoe | ManagedShuffler, group: int, command: int) -> list[Any]:
    """The device carries out this write, and its answers are lost; the list holds the bodies it got."""
    heard: list[Any] = []
    carry_out = device._commands[group, command, 2]

    def swallow(body: Any) -> None:
        heard.append(body)
        if len(heard) == 1:
            carry_out(body)

    device._commands[group, command, 2] = swallow  # type: ignore[assignment]
    return heard
