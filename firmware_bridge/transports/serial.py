"""`serial:` over pyserial, which opens and sets the port; bytes go through the handle itself."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import grp
import os
import pwd
import stat
import termios
import time
from pathlib import Path

import serial

from firmware_bridge.errors import Absent, Busy, Denied
from firmware_bridge.transports import Uri, locks, serial_find
from firmware_bridge.transports.wire import WireReceiver, Writing

APPEARANCE_S = 2.0
"""How long after a device node appeared (or was changed) its rights may still be on their way (udev)."""
ROOT = 0
"""The group that nobody is told to join."""


class SerialReceiver(WireReceiver):
    """A serial port, found anew at every open: a by-id link or a VID:PID:SERIAL may have moved."""

    unfit = "is it a serial port, and are its settings right?"

    def __init__(self, uri: Uri, baud: int) -> None:
        super().__init__(uri.text, uri.target)
        self._path = path = uri.target
        self._wanted = uri.usb
        self._baud = uri.baud or baud
        self._dtr, self._rts = uri.switch("dtr"), uri.switch("rts")
        self._port: serial.Serial | None = None
        self._device = path

    def describe(self) -> str:
        where = self._path if self._device == self._path else f"{self._path} -> {self._device}"
        raised = "".join(f", {line} on" for line, on in (("DTR", self._dtr), ("RTS", self._rts)) if on)
        return f"serial port {where}, {self._baud} bit/s 8N1{raised}"

    def open(self) -> None:
        try:
            super().open()
        except Denied as error:
            raise self._rights(error) from error
        except Busy as error:
            raise self._busy(locks.held_by(self._device)) from error

    def _open_handle(self) -> int:
        path = self._path if self._wanted is None else serial_find.the_one(self._wanted).device
        self._device = serial_find.behind(path)
        if not Path(self._device).exists():
            raise Absent(f"{self._path} is not there: check {self.check}")
        if not _is_tty(self._device):  # asked first: half the machine has /dev/null open
            raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
        other = locks.held_by(self._device)
        if other is not None and other.sure and other.pid != os.getpid():
            raise self._busy(other)
        port = serial.Serial(
            baudrate=self._baud, timeout=0, write_timeout=0.5, exclusive=True, rtscts=False, dsrdtr=False
        )
        port.port = self._device
        port.dtr = self._dtr
        port.rts = self._rts
        port.open()
        self._port = port
        if self._dtr or self._rts:
            _keep_lines(port.fileno())
        if not _is_pty(self._device):
            fcntl.ioctl(port.fileno(), termios.TIOCEXCL)
        with contextlib.suppress(OSError, ValueError, NotImplementedError):
            port.set_low_latency_mode(True)  # only some drivers know it, and none keeps it over a replug
        locks.write(self._device)
        return port.fileno()

    def _close_handle(self) -> None:
        port, self._port = self._port, None
        if port is None:
            return
        locks.remove(self._device)
        # A dead or stuck line must not hold up the close: drop what it has not taken.
        with contextlib.suppress(OSError, termios.error, TypeError, ValueError):
            termios.tcflush(port.fileno(), termios.TCOFLUSH)
        with contextlib.suppress(OSError, termios.error, TypeError, ValueError):
            fcntl.ioctl(port.fileno(), termios.TIOCNXCL)
        with contextlib.suppress(OSError, termios.error, TypeError, ValueError):
            port.close()

    def _end_of_input(self) -> str:
        other = locks.holder(self._device)
        if other is None and not _is_pty(self._device):
            other = locks.opened_by(self._device)
        thief = f" ({other} has it open too)" if other and other.sure and other.pid != os.getpid() else ""
        return (
            f"{self._name} was readable but empty: it was unplugged, or another program took the bytes{thief}"
        )

    def _busy(self, other: locks.Holder | None) -> Busy:
        who = str(other) if other else "another program"
        return Busy(f"{self._path} is held by {who}: stop it, or wait until it lets go")

    def _rights(self, error: Denied) -> Absent | Denied:
        remedy = rights_hint(self._device)
        try:
            age = time.time() - Path(self._device).stat().st_ctime
        except OSError:
            return Denied(f"{error}: {remedy}")
        if 0 <= age < APPEARANCE_S and not _is_pty(self._device):
            return Absent(f"{error}; it appeared only now and its rights may still change. If not: {remedy}")
        return Denied(f"{error}: {remedy}")


class SerialTransport(SerialReceiver, Writing):
    """The command form."""


def rights_hint(device: str) -> str:
    """What a user without rights on `device` must do, word for word."""
    group = "dialout"
    with contextlib.suppress(OSError):
        status = Path(device).stat()
        try:
            group = grp.getgrgid(status.st_gid).gr_name
        except KeyError:
            group = f"{status.st_gid} without a name"
        if status.st_gid == ROOT or status.st_mode & 0o060 != 0o060 or " " in group:
            return (
                f"its group is {group} and its mode {stat.S_IMODE(status.st_mode):o}, so joining a group "
                "does not help: give it a group with read and write rights by a udev rule "
                "(deploy/60-cutcard.rules is one) and plug the device in again"
            )
    user = "USER"
    with contextlib.suppress(KeyError):
        user = pwd.getpwuid(os.geteuid()).pw_name
    return f"add the user to the group {group} (sudo usermod -aG {group} {user}) and log in again"


def _keep_lines(handle: int) -> None:
    """Without this the kernel lets both lines fall at closing, and the next opening would be an edge."""
    settings = termios.tcgetattr(handle)
    settings[2] &= ~termios.HUPCL
    termios.tcsetattr(handle, termios.TCSANOW, settings)


def _is_tty(device: str) -> bool:
    """Whether `device` can be a serial line; yes when in doubt. Opening it to ask would raise DTR."""
    status = Path(device).stat()
    if not stat.S_ISCHR(status.st_mode):
        return stat.S_ISDIR(status.st_mode)  # has an error of its own
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    try:
        return Path(f"/sys/dev/char/{number}/subsystem").readlink().name == "tty"
    except OSError:  # no pseudo-terminal stands there
        return True


def _is_pty(device: str) -> bool:
    """Pseudo-terminals get no late rights, and TIOCEXCL on one outlives its holder: not used there."""
    return device.startswith("/dev/pts/")
