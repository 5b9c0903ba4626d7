"""A simulated device in this process, without a handle: for deterministic runs."""

from __future__ import annotations

import errno
import os

from simulators.hosts.cable import join
from simulators.hosts.host import Pending
from simulators.wire.device import WireDevice

MEMORY_LIMIT = 1 << 20


class Endpoint:
    """The controller's end. Bytes move when the host is pumped. ConnectionError while unplugged.

    `refused` is the errno of every use while another program has it; `renewed`: the next use finds that what
    it had open is gone. `full`: no byte goes in, TimeoutError.
    """

    def __init__(self) -> None:
        self.plugged = True
        self.refused = 0
        self.renewed = False
        self.full = False
        self.to_device = Pending(MEMORY_LIMIT)
        self.to_controller = Pending(MEMORY_LIMIT)

    def write(self, data: bytes) -> None:
        self._check()
        if self.full and data:
            raise TimeoutError(errno.ETIMEDOUT, "the device takes no bytes")
        self.to_device.add(data)

    def read(self) -> bytes:
        """All bytes that have come; b"" when none have."""
        self._check()
        return self.to_controller.take()

    def _check(self) -> None:
        if self.renewed or not self.plugged:
            self.renewed = False
            raise ConnectionError("the device is unplugged")
        if self.refused:
            raise OSError(self.refused, os.strerror(self.refused))


class MemoryHost:
    """Joins a device to its `endpoint`, which stays the same over `unplug` and `replug`."""

    can = CAN = frozenset({"stream", "unplug", "other_node", "busy", "denied", "stall"})

    def __init__(self, device: WireDevice, name: str = "") -> None:
        join(device, self)
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

    def other_node(self) -> None:
        """Out and in again: whoever has it open finds it gone."""
        self.unplug()
        self.replug()
        self.endpoint.renewed = True

    def busy(self) -> None:
        self.other_node()
        self.endpoint.refused = errno.EBUSY

    def denied(self) -> None:
        self.other_node()
        self.endpoint.refused = errno.EACCES

    def free(self) -> None:
        self.endpoint.refused = 0

    def stall(self) -> None:
        """The device takes no bytes."""
        self.endpoint.full = True

    def flow(self) -> None:
        self.endpoint.full = False

    def close(self) -> None:
        self.unplug()
