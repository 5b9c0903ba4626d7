"""A simulated device on a real pseudo-terminal, under a stable name if wanted."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import select
import termios
import tty
from pathlib import Path

from simulators.hosts import locks
from simulators.hosts.cable import join
from simulators.hosts.host import READ_SIZE, READS_PER_PUMP, Pending
from simulators.wire.device import WireDevice


class PtyHost:
    """Keeps the slave open itself, so that a controller may come and go as on a real port.

    `link` is a symbolic link with the device's stable name (as /dev/serial/by-id); it must not exist as
    anything but a link, and OSError says when another host that lives has it. `replug()` gives the device a
    new pty behind the same name.
    """

    CAN = frozenset({"stream", "unplug", "other_node", "busy", "denied", "stall"})

    def __init__(self, device: WireDevice, link: Path | str | None = None) -> None:
        join(device, self)
        self.device = device
        self.link = None if link is None else Path(link)
        self._pending = Pending()
        self._master: int | None = None
        self._slave: int | None = None
        self._path = ""
        self._other: int | None = None
        if self.link is not None and self.link.exists() and not self.link.is_symlink():
            raise FileExistsError(f"{self.link} exists and is no link; choose another name")
        self._held = None if self.link is None else _hold(self.link)
        try:
            self.replug()
        except OSError:
            self.close()
            raise

    @property
    def path(self) -> str:
        """The stable name, or the pty itself when there is none."""
        return self._path if self.link is None else str(self.link)

    @property
    def uri(self) -> str:
        return f"serial:{self.path}"

    @property
    def dropped(self) -> int:
        """Bytes that nobody read in time."""
        return self._pending.dropped

    @property
    def plugged(self) -> bool:
        return self._master is not None

    @property
    def unread(self) -> bool:
        """Whether bytes lie in the line that no reader has taken yet."""
        if self._slave is None:
            return False
        line = select.poll()
        line.register(self._slave, select.POLLIN)
        return bool(line.poll(0))

    @property
    def can(self) -> frozenset[str]:
        """Not `denied` when this is root, who may open what is forbidden."""
        return self.CAN - {"denied"} if os.geteuid() == 0 else self.CAN

    def fileno(self) -> int:
        """The master. It changes at every replug; OSError while unplugged."""
        if self._master is None:
            raise OSError("the device is unplugged")
        return self._master

    def filenos(self) -> list[int]:
        return [] if self._master is None else [self._master]

    def writers(self) -> list[int]:
        return self.filenos() if self._pending else []

    def deadline(self) -> float | None:
        return self.device.deadline()

    def pump(self, now: float) -> None:
        self.device.advance(now)
        for _ in range(READS_PER_PUMP):
            if self._master is None:  # also when the device pulled its own plug over what it read
                break
            try:
                data = os.read(self._master, READ_SIZE)
            except BlockingIOError:
                break
            self.device.receive(data, now)
            if len(data) < READ_SIZE:
                break
        self._pending.add(self.device.transmit(now))
        if self._master is None:
            self._pending.clear()
            return
        while self._pending:
            try:
                self._pending.gone(os.write(self._master, self._pending.peek()))
            except BlockingIOError:
                break

    def replug(self) -> None:
        """Pull the plug, if it is in, and put it in again: a new pty, the same name."""
        master, slave = pty.openpty()
        tty.setraw(slave)
        os.set_blocking(master, False)
        path = os.ttyname(slave)
        try:
            self._point_at(path)
        except OSError:
            os.close(master)
            os.close(slave)
            raise
        self._hang_up()
        self._master, self._slave, self._path = master, slave, path

    def unplug(self) -> None:
        """Pull the plug: the port and its name are gone, readers get an error."""
        self._remove_link()
        self._hang_up()

    def other_node(self) -> None:
        self.replug()

    def busy(self) -> None:
        """Out and in again, and another program has it."""
        self.replug()
        self._other = os.open(self._path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        fcntl.flock(self._other, fcntl.LOCK_EX)

    def denied(self) -> None:
        """Out and in again, and only root may open it."""
        self.replug()
        Path(self._path).chmod(0)

    def free(self) -> None:
        self._let_go()
        if self._master is not None:
            Path(self._path).chmod(0o620)

    def stall(self) -> None:
        """The line takes no bytes from whoever writes: its output is stopped."""
        if self._slave is not None:
            termios.tcflow(self._slave, termios.TCOOFF)

    def flow(self) -> None:
        if self._slave is not None:
            termios.tcflow(self._slave, termios.TCOON)

    def close(self) -> None:
        self.unplug()
        if self._held is not None and self.link is not None:
            _lock_of(self.link).unlink(missing_ok=True)
            os.close(self._held)
            self._held = None

    def _point_at(self, path: str) -> None:
        if self.link is not None:
            fresh = self.link.with_name(f".{self.link.name}.new")
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(path)
            fresh.replace(self.link)

    def _let_go(self) -> None:
        if self._other is not None:
            os.close(self._other)
            self._other = None

    def _remove_link(self) -> None:
        if self.link is not None and self.link.is_symlink() and str(self.link.readlink()) == self._path:
            self.link.unlink()

    def _hang_up(self) -> None:
        self._let_go()
        for descriptor in (self._master, self._slave):
            if descriptor is not None:
                os.close(descriptor)
        self._master = self._slave = None
        self._pending.clear()


def _lock_of(link: Path) -> Path:
    return link.with_name(f".{link.name}.lock")


def _hold(link: Path) -> int:
    """Take the name as long as we live: a link that a dead host left may be taken over."""
    try:
        held = locks.take(_lock_of(link), os.O_RDONLY | os.O_CREAT)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(link)) from None
    if held is None:
        raise OSError(
            errno.EBUSY, "another simulated device is there: end it, or choose another name", str(link)
        )
    return held
