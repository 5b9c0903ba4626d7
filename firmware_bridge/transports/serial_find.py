"""Serial ports that are there, and the one a URI means. Nothing is opened here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serial.tools import list_ports, list_ports_common

from firmware_bridge.errors import Absent, WrongDevice
from firmware_bridge.transports import UsbName

BY_ID, BY_PATH = Path("/dev/serial/by-id"), Path("/dev/serial/by-path")
BUILT_IN = Path("/dev"), "ttyS[0-9]*"
SYSFS = Path("/sys/class/tty")
LINKS = 40
"""So many links in a row the kernel follows (path_resolution(7))."""
ATTEMPTS = 3
"""A device that goes while its files are read ends a listing; the next one no longer sees it."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """One serial port. `place` and what follows are None when it is not on USB."""

    device: str
    """Its path now, e.g. /dev/ttyUSB0; it may be another one after the next plugging in."""
    description: str
    vid: int | None = None
    pid: int | None = None
    serial: str | None = None
    place: str | None = None
    """Bus and ports as the kernel writes them, e.g. 1-2.4: it stays while the plug stays."""
    interface: str | None = None
    """The kernel's name of the USB interface behind it, e.g. 1-2.4:1.0."""

    def is_a(self, name: UsbName) -> bool:
        return (self.vid, self.pid) == (name.vid, name.pid) and name.serial in {None, self.serial}

    def __str__(self) -> str:
        return f"{self.device} at {self.place}"


def present() -> list[Adapter]:
    """All serial ports with hardware behind them. Raises Absent when they cannot be listed."""
    for _ in range(ATTEMPTS):
        try:
            found = list_ports.comports()
        except (OSError, TypeError, ValueError) as error:
            failure: Exception = error
            continue
        adapters = [_adapter(info) for info in sorted(found)]
        known = {adapter.device for adapter in adapters}
        missed = [Adapter(path, "built-in port") for path in _built_in() if path not in known]
        return [a for a in (*missed, *adapters) if a.place is not None or _is_real(a.device)]
    raise Absent(
        f"the serial ports cannot be listed ({failure}): name the port by its path, as serial:/dev/ttyUSB0"
    ) from failure


def the_one(name: UsbName) -> Adapter:
    """The port that `name` means now. Raises Absent, or WrongDevice when it could be several (F-04)."""
    all_ports = present()
    fitting = [a for a in all_ports if a.is_a(name)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise WrongDevice(several(name, fitting))
    of_kind = [a for a in all_ports if (a.vid, a.pid) == (name.vid, name.pid)]
    if of_kind:
        others = ", ".join(f"{a.serial or 'one without a serial number'} at {a.place}" for a in of_kind)
        raise Absent(
            f"serial adapter {name} is not there, but {others} is: connect the right one, or correct the port"
        )
    raise Absent(f"serial adapter {name} is not there: check the adapter, its cable and its power")


def behind(path: str) -> str:
    """The device file that `path` leads to. Raises WrongDevice when that could be several (F-04).

    A link in BY_ID is made of what an adapter says of itself: of two that say the same, udev gives it to
    whichever came last.
    """
    device = os.path.realpath(path)
    if not _by_identity(Path(path)):
        return device
    all_ports = present()
    for one in all_ports:
        if one.vid is None or one.pid is None or os.path.realpath(one.device) != device:
            continue
        same = [a for a in all_ports if (a.vid, a.pid, a.serial) == (one.vid, one.pid, one.serial)]
        if len({a.place for a in same}) > 1:
            raise WrongDevice(several(UsbName(one.vid, one.pid, one.serial), same))
    return device


def several(name: UsbName, fitting: Iterable[Adapter]) -> str:
    """Why `name` is no name for one of these ports, and what would be."""
    fitting = list(fitting)
    count, where = len({a.place for a in fitting}), " and ".join(map(str, fitting))
    kind = f"{name.vid:04x}:{name.pid:04x}"
    if count == 1:
        return f"serial adapter {name} has {len(fitting)} ports ({where}): name one by its link in {BY_ID}"
    if len({a.serial for a in fitting}) > 1:
        named = " and ".join(f"{a.serial or 'one without a serial number'} ({a})" for a in fitting)
        return (
            f"{count} serial adapters {kind} are there, {named}: name one by its serial number, "
            f"as serial:{kind}:SERIAL, or the socket it is plugged into by its link in {BY_PATH}"
        )
    say = f"say they are {fitting[0].serial}" if fitting[0].serial else "tell no serial number"
    return (
        f"{count} serial adapters {kind} {say} ({where}): nobody can tell them apart, so none is used; "
        f"unplug the one that is not meant, or name the socket it is plugged into by its link in {BY_PATH}"
    )


def links(device: str) -> list[str]:
    """The stable names that udev gave the port, those by identity first."""
    wanted = Path(device).resolve()
    found = []
    for directory in (BY_ID, BY_PATH):
        try:
            entries = sorted(directory.iterdir())
        except OSError:  # no adapter is plugged in
            continue
        found += [str(entry) for entry in entries if entry.resolve() == wanted]
    return found


def _by_identity(path: Path) -> bool:
    """Whether a link in BY_ID is on the way to the device, be it `path` itself or one that it leads to."""
    home = Path(os.path.realpath(BY_ID))
    try:
        for _ in range(LINKS):
            directory = Path(os.path.realpath(path.parent))
            if directory == home:
                return True
            path = directory / path.readlink()
    except OSError:  # it is no link any more
        pass
    return False


def _adapter(info: list_ports_common.ListPortInfo) -> Adapter:
    known: Any = info  # the Linux form tells more than the common one
    interface = getattr(known, "usb_interface_path", None)
    return Adapter(
        info.device,
        info.description if info.description not in {None, "n/a"} else "serial port",
        info.vid,
        info.pid,
        info.serial_number or None,
        info.location.partition(":")[0] if info.location else None,
        None if interface is None else Path(interface).name,
    )


def _built_in() -> list[str]:
    """Also those that pyserial leaves out for being on the platform bus, as on most ARM boards."""
    directory, pattern = BUILT_IN
    return sorted(map(str, directory.glob(pattern)), key=lambda path: int(re.sub(r"\D", "", path)))


def _is_real(device: str) -> bool:
    """Whether there is hardware behind a built-in port: the kernel makes a few for the case that there is."""
    try:
        return (SYSFS / Path(device).name / "type").read_text().strip() != "0"  # PORT_UNKNOWN
    except OSError:
        return True
