"""What a host can do to its own port, for faults of the cable (simulators/faults/cable.py)."""

from __future__ import annotations

from typing import Protocol

from simulators.faults.line import Carrier
from simulators.wire.device import WireDevice


class Cable(Protocol):
    """The port of a host. `can` names what else it can do, each a method without arguments.

    stream: bytes, not packets. other_node: out and in again elsewhere. busy, denied: out and in again, and
    held by another program, or forbidden, until `free`. stall: it takes no bytes until `flow`. half_open,
    drop_clients: of connections. halt, overflow: of an endpoint.
    """

    @property
    def can(self) -> frozenset[str]: ...

    def unplug(self) -> None: ...

    def replug(self) -> None: ...


def join(device: WireDevice, cable: Cable) -> None:
    """Tell a line what port it has got. Raises UnfitFault when it is to do what this port cannot."""
    if isinstance(device, Carrier):
        device.cable = cable
