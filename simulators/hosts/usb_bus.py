"""The bus that simulated USB devices are plugged into, and what programs have open on it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator

from simulators.hosts.usb_device import UsbDevice

Watcher = Callable[[str, UsbDevice], None]

FIRST_ADDRESS, LAST_ADDRESS = 2, 127
"""Address 1 is the root hub's. Like Linux, the bus gives each new device the next number, and goes round."""


class UsbBus:
    """Thread-safe. `watchers` are told ("add" or "remove", device) after it happened.

    `calls` counts what programs asked, by the name of the back end's method; `handles` and `transfers` are
    those that somebody holds now.
    """

    def __init__(self, *devices: UsbDevice, number: int = 1) -> None:
        self.number = number
        self.watchers: list[Watcher] = []
        self.calls: Counter[str] = Counter()
        self.handles: set[object] = set()
        self.transfers: set[object] = set()
        self.lock = threading.RLock()
        self._devices: list[UsbDevice] = []
        self._known: list[UsbDevice] = []
        self._last = FIRST_ADDRESS - 1
        for device in devices:
            self.plug(device)

    def __iter__(self) -> Iterator[UsbDevice]:
        """The devices that are there, in the order of their ports."""
        with self.lock:
            return iter(sorted(self._devices, key=lambda device: device.port))

    def plug(self, device: UsbDevice, port: int | None = None) -> None:
        """Put it into a port: its old one, or the first free one. ValueError when that is taken."""
        with self.lock:
            ports = {other.port for other in self._devices}
            port = port or device.port or next(n for n in range(1, 128) if n not in ports)
            if device in self._devices or port in ports:
                raise ValueError(f"port {port} is taken, or the device is plugged in already")
            device.plugged_in(self.number, self._next_address(), port)
            self._devices.append(device)
            if device not in self._known:
                self._known.append(device)
        self._tell("add", device)

    def unplug(self, device: UsbDevice) -> None:
        """Pull it out; harmless when it is out."""
        with self.lock:
            if device not in self._devices:
                return
            self._devices.remove(device)
            device.pulled_out()
        self._tell("remove", device)

    def replug(self, device: UsbDevice, port: int | None = None) -> None:
        """Out and in again: a new address."""
        self.unplug(device)
        self.plug(device, port)

    def renumber(self, number: int) -> None:
        """Be another bus, before anybody looked at it."""
        with self.lock:
            self.number = number
            for device in self._devices:
                device.bus = number

    def left(self) -> dict[str, int]:
        """What is still held, by name, without what is 0: a clean end gives {}."""
        figures = {
            "handles": len(self.handles),
            "transfers": len(self.transfers),
            "claims": sum(len(device.claims) for device in self._known),
            "detached drivers": sum(device.detached for device in self._known),
        }
        return {name: count for name, count in figures.items() if count}

    def _next_address(self) -> int:
        taken = {device.address for device in self._devices}
        while True:
            self._last = self._last + 1 if self._last < LAST_ADDRESS else FIRST_ADDRESS
            if self._last not in taken:
                return self._last

    def _tell(self, action: str, device: UsbDevice) -> None:
        for watcher in list(self.watchers):
            watcher(action, device)
