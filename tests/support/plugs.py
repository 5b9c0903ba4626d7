"""A device on one kind of wire, with a plug to pull: what a `cutcard` process beside it finds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from firmware_bridge.transports import locks, open_transport
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.tcp_host import TcpHost
from simulators.hosts.umockdev_host import UmockdevHost, environment
from simulators.hosts.usb_host import UsbHost
from simulators.wire.framings import PACKETS


class Pty:
    """A serial port under a stable name; unplugged, its name is gone."""

    def __init__(self, make: Callable[..., Any], place: Path) -> None:
        self.device = make()
        self.host = PtyHost(self.device, place / "port")
        self.hosts: list[Any] = [self.host]
        self.env: dict[str, str] = {}
        self.pty = str((place / "port").readlink())

    def unplug(self) -> None:
        self.host.unplug()

    def is_free(self) -> bool:
        return not any((d / locks._name(self.pty)).exists() for d in locks.LOCK_DIRS)

    def opens_again(self) -> None:
        self.host.replug()
        opened(self.host.uri)


class Tcp:
    """A device behind a serial server that cuts the connection."""

    def __init__(self, make: Callable[..., Any], place: Path) -> None:
        del place
        self.device = make()
        self.host = TcpHost(self.device)
        self.hosts: list[Any] = [self.host]
        self.env: dict[str, str] = {}

    def unplug(self) -> None:
        self.host.drop_clients()

    def is_free(self) -> bool:
        return self.host.clients == 0

    def opens_again(self) -> None:
        opened(self.host.uri)


class Usb:
    """Under the real libusb, which umockdev shows the device; plugged in again it has a new address."""

    def __init__(self, make: Callable[..., Any], place: Path) -> None:
        del place  # its name is too long for the sockets in it
        self.device = make(PACKETS)
        self.host = UsbHost(self.device)
        self._home = tempfile.TemporaryDirectory(prefix="bed")
        self._bed = UmockdevHost(f"{self._home.name}/d", self.host.bus)
        self.hosts = [self._bed, self.host, self]
        self.env = environment(f"{self._home.name}/d")

    def unplug(self) -> None:
        self.host.unplug()

    def is_free(self) -> bool:
        return self.host.bus.left() == {} and self._bed.clients == 0

    def opens_again(self) -> None:
        """Claims and files are all there is to be held, and there are none: see `is_free`."""

    # The directory goes last, like a host

    def filenos(self) -> list[int]:
        return []

    writers = filenos

    def deadline(self) -> None:
        return None

    def pump(self, now: float) -> None:
        pass

    def close(self) -> None:
        self._home.cleanup()


def opened(uri: str) -> None:
    again = open_transport(uri)
    again.open()
    again.dispose()
