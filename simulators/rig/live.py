"""The demo's world: simulated machines on real ptys, a daemon as its own process, the dealer on its socket.

One loop in one thread owns everything. Wires live in real time, or a driver would take them for broken ones;
the machines' mechanics and the dealer live in simulated time, which runs ahead when all is journaled.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from controller.table.profiles import TableRules
from firmware_bridge.clock import SystemClock
from simulators.hosts.pty_host import PtyHost
from simulators.rig import child
from simulators.rig.dealer import Dealer
from simulators.rig.felt import MANAGED_SHOE, Felt
from simulators.rig.view import View
from simulators.wire.device import WireDevice

READY_S = 20.0
STOP_S = 15.0
STALLED_S = 20.0
"""Real seconds: for the daemon to come up, to stop, and for the next fact when one is due."""
RUN = child.code("controller.cli.app", "main", child.ENDED)
"""The `cutcard` command."""


class DaemonGone(Exception):
    """The daemon ended or fell silent by itself; the text says what its log says."""


class Daemon:
    """`cutcard run` as a process of its own; `ready` and its death can be waited for on descriptors."""

    def __init__(self, table: Path, control: Path, log: Path) -> None:
        self.control = control
        self.log = log
        self._command = [sys.executable, "-P", "-c", RUN, "run", str(table)]
        self._notify_path = control.with_name("notify")
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notify.bind(str(self._notify_path))
        self._notify.setblocking(False)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def notify_fd(self) -> int:
        return self._notify.fileno()

    def start(self) -> None:
        """Start it in a session of its own, so that Ctrl-C reaches us alone and we can end it properly."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "NOTIFY_SOCKET": str(self._notify_path)},
                start_new_session=True,
            )

    def said_ready(self) -> bool:
        """Whether READY=1 has come since the last question."""
        ready = False
        with suppress(BlockingIOError):
            while words := self._notify.recv(4096):
                ready |= b"READY=1" in words.split(b"\n")
        return ready

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int | None:
        """SIGTERM, and SIGKILL when that is not enough; the exit code, None when it had to be killed."""
        if self._process is None:
            return None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def close(self) -> None:
        if self.alive():
            self.kill()
        self._notify.close()
        self._notify_path.unlink(missing_ok=True)

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-5:]) or "(its log is empty)"


class Connection:
    """One connection to the control socket: requests out, answers and followed facts in."""

    def __init__(self, path: Path, since: int) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._buffer = b""
        try:
            self.sock.connect(str(path))
            self.send({"follow": since})
        except BaseException:
            self.sock.close()
            raise

    def send(self, request: Mapping[str, Any]) -> None:
        self.sock.sendall(json.dumps(request).encode() + b"\n")

    def read(self) -> list[dict[str, Any]] | None:
        """All whole lines that came, without waiting; None after the last one when the daemon went away."""
        while True:
            try:
                data = self.sock.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except ConnectionError:
                data = b""
            if not data:
                return None
            self._buffer += data
            if len(data) < 1 << 16:
                break
        *lines, self._buffer = self._buffer.split(b"\n")
        return [json.loads(line) for line in lines]


class Live:
    """A table on ptys. `speed` None lets simulated time jump; a number is how much faster than real.

    `shoe` is the driver whose device the shoe is. `line` may put a device behind a line that can be bad.
    """

    def __init__(
        self,
        rules: TableRules,
        seed: object,
        shoes: int,
        *,
        table: Path,
        ports: Mapping[str, Path],
        control: Path,
        log: Path,
        speed: float | None = None,
        shoe: str = MANAGED_SHOE,
        line: Callable[[str, WireDevice], WireDevice] = lambda _name, wire: wire,
    ) -> None:
        if speed is not None and speed < 1:
            raise ValueError("a table slower than real time would look like dead devices to its drivers")
        self.felt = Felt(rules, seed, shoe=shoe)
        self.view = View()
        self.dealer = Dealer(self.felt, self.view, seed, shoes, unhurried=speed is not None)
        self.acknowledged: dict[int, dict[str, Any]] = {}
        self._speed = speed
        self._clock = SystemClock()
        self._start = self._clock.now()
        self._skipped = 0.0
        self._connection: Connection | None = None
        self._selector = selectors.DefaultSelector()
        self.hosts = {name: PtyHost(line(name, wire), ports[name]) for name, wire in self.felt.wires.items()}
        self._watched: dict[str, list[int]] = {name: [] for name in self.hosts}
        self._watch()
        self.daemon = Daemon(table, control, log)
        self._selector.register(self.daemon.notify_fd, selectors.EVENT_READ)

    # Time

    @property
    def elapsed(self) -> float:
        """Real seconds since the beginning."""
        return self._clock.now() - self._start

    @property
    def simulated(self) -> float:
        """Seconds at the table since the beginning; never behind `elapsed`."""
        return self.elapsed * (self._speed or 1.0) + self._skipped

    def skip(self, seconds: float) -> None:
        """Let simulated time jump."""
        self._skipped += max(0.0, seconds)

    # The daemon

    def start(self) -> None:
        """Start the daemon (again), wait until it listens, and go on where the facts say."""
        self.daemon.start()
        until = self.elapsed + READY_S
        while not self.daemon.said_ready():
            if not self.daemon.alive():
                raise DaemonGone(f"the daemon did not start:\n{self.daemon.last_words()}")
            if self.elapsed > until:
                raise DaemonGone(f"the daemon is not ready in {READY_S:.0f} s:\n{self.daemon.last_words()}")
            self._pump()
            self._wait(0.2)
        self._connection = Connection(self.daemon.control, self.view.seq)
        self._selector.register(self._connection.sock, selectors.EVENT_READ)
        if (request := self.dealer.reconnected()) is not None:
            self._connection.send(request)

    def kill(self) -> None:
        """SIGKILL for the daemon; what it had already told is taken in."""
        self.daemon.kill()
        while self._connection is not None:
            self._hear()

    def stop(self) -> int | None:
        """End the daemon as systemd would; its exit code."""
        self._hang_up()
        return self.daemon.stop()

    def close(self) -> None:
        """Leave nothing behind, whatever happened."""
        self._hang_up()
        self.daemon.close()
        for host in self.hosts.values():
            host.close()
        self._selector.close()

    # The cables

    def unplug(self, device: str) -> None:
        """Pull the cable of one device; harmless when it is out."""
        self.hosts[device].unplug()
        self._watch()

    def replug(self, device: str) -> None:
        """The cable out, if it is in, and in again: another pty behind the same name."""
        self.hosts[device].replug()
        self._watch()

    def _watch(self) -> None:
        """Wait for the ports that are there now; a fault may have pulled one out or put another in."""
        for name, host in self.hosts.items():
            before, now = self._watched[name], host.filenos()
            if now != before:
                self._watched[name] = now
                for number in before:
                    self._selector.unregister(number)
                for number in now:
                    self._selector.register(number, selectors.EVENT_READ)

    # The loop

    def wait_for_bell(self, bell: int) -> None:
        """No wait here is longer than until the descriptor `bell` is readable."""
        self._selector.register(bell, selectors.EVENT_READ)

    def rest(self) -> None:
        """Serve the devices once and wait for the next thing; the dealer rests, the daemon may be away."""
        self.daemon.said_ready()
        self._pump()
        self._hear()
        self._wait(self._patience())

    def run(self, until: Callable[[], bool], tell: Callable[[], None] = lambda: None) -> None:
        """Play until `until` holds or the dealer is done. Raises DaemonGone, or Stuck of the dealer."""
        seq, since = self.view.seq, self.elapsed
        while not self.dealer.done and not until():
            self.turn()
            tell()
            rests = self.dealer.wake is not None or (self.dealer.quiet and self._due() is not None)
            if self.view.seq != seq or rests:
                seq, since = self.view.seq, self.elapsed
            elif self.elapsed - since > STALLED_S:
                words = self.daemon.last_words()
                raise DaemonGone(f"no fact for {STALLED_S:.0f} s, waiting for {self.dealer.doing}:\n{words}")

    def stand_by(self, until: Callable[[], bool]) -> None:
        """Wait until `until` holds; the dealer does nothing meanwhile, and simulated time does not jump."""
        since = self.elapsed
        self.look()
        while not until():
            if self.elapsed - since > STALLED_S:
                raise DaemonGone(f"waited in vain:\n{self.daemon.last_words()}")
            self._wait(self._patience())
            self.look()

    def turn(self) -> None:
        """Everything that can happen now, then wait for the next thing, or let the time at the table jump."""
        connection = self.look()
        for request in self.dealer.turn(self.simulated):
            connection.send(request)
        self._pump()
        if self._speed is None and self.dealer.quiet and not self.dealer.done:
            if (due := self._due()) is not None:
                self.skip(due - self.simulated)
                self._wait(0.0)
                return
        self._wait(self._patience())

    def look(self) -> Connection:
        """Take in what is there, without waiting. Raises DaemonGone."""
        self.daemon.said_ready()  # later words are taken too, or the selector would never rest
        self._pump()
        self._hear()
        if self._connection is None:
            raise DaemonGone(f"the daemon went away:\n{self.daemon.last_words()}")
        return self._connection

    def _due(self) -> float | None:
        """When the dealer or a machine next does something by itself, in simulated time."""
        times = [host.device.machine.deadline() for host in self.hosts.values()] + [self.dealer.wake]
        return min((t for t in times if t is not None), default=None)

    def _patience(self) -> float:
        due, times = self._due(), [1.0]
        if due is not None:
            times.append((due - self.simulated) / (self._speed or 1.0))
        times += [t - self.elapsed for host in self.hosts.values() if (t := host.deadline()) is not None]
        return max(0.0, min(times))

    def _pump(self) -> None:
        for host in self.hosts.values():
            host.device.machine.advance(self.simulated)
            host.pump(self.elapsed)
        self._watch()

    def _hear(self) -> None:
        if self._connection is None:
            return
        lines = self._connection.read()
        if lines is None:
            self._hang_up()
            return
        for line in lines:
            if "kind" in line:
                self.acknowledged[line["fact"]] = line
                self.view.take(line)
            else:
                self.dealer.answered(line)

    def _wait(self, seconds: float) -> None:
        self._selector.select(seconds)

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._selector.unregister(self._connection.sock)
            self._connection.sock.close()
            self._connection = None
