"""A simulated device in this process, without a handle: for deterministic runs."""

from __future__ import annotations

from simulators.hosts.host import Pending
from simulators.wire.device import WireDevice

MEMORY_LIMIT = 1 << 20


class Endpoint:
    """The controller's end. Bytes move when the host is pumped. ConnectionError while unplugged."""

    def __init__(self) -> None:
        self.plugged = True
        self.to_device = Pending(MEMORY_LIMIT)
        self.to_controller = Pending(MEMORY_LIMIT)

    def write(self, data: bytes) -> None:
        self._check()
        self.to_device.add(data)

    def read(self) -> bytes:
        """All bytes that have come; b"" when none have."""
        self._check()
        return self.to_controller.take()

    def _check(self) -> None:
        if not self.plugged:
            raise ConnectionError("the device is unplugged")


class MemoryHost:
    """Joins a device to its `endpoint`, which stays the same over `unplug` and `replug`."""

    def __init__(self, device: WireDevice, name: str = "") -> None:
        self.device = device
        self.name = name
        self.endpoint = Endpoint()

    @property
    def uri(self) -> str:
        return f"mem:{self.name}"

    @property
    def dropped(self) -> int:
        """Bytes that nobody read in time, or that were on the wire when it was cut."""
        return self.endpoint.to_controller.dropped

    def filenos(self) -> list[int]:
        return []

    def writers(self) -> list[int]:
        return []

    def deadline(self) -> float | None:
        return self.device.deadline()

    def pump(self, now: float) -> None:
        end = self.endpoint
        if data := end.to_device.take():
            self.device.receive(data, now)
        out = self.device.transmit(now)
        if end.plugged:
            end.to_controller.add(out)

    def unplug(self) -> None:
        """Cut the wire: what is on it is lost."""
        self.endpoint.plugged = False
        self.endpoint.to_device.clear()
        self.endpoint.to_controller.clear()

    def replug(self) -> None:
        self.endpoint.plugged = True

    def close(self) -> None:
        self.unplug()
