"""All faults by name, and how one is laid on a device.

`N` counts occasions of the fault's own kind, from 1: shuffle cycles, loads, cards, requests; without `@N` the
fault is there at each occasion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from simulators.faults.cable import CABLE
from simulators.faults.fault import Fault, UnfitFault
from simulators.faults.field import FIELD
from simulators.faults.line import LINE, Carrier
from simulators.faults.machines import MACHINES
from simulators.faults.script import LISTED, from_text, near, quoted
from simulators.faults.wires import WIRES
from simulators.models.machine import Traps
from simulators.wire.device import WireDevice

LAYERS = {
    "machine": "what the mechanics do",
    "wire": "what the firmware does",
    "line": "what happens to bytes on their way",
    "cable": "what happens to the port itself",
}


def _menu(*catalogues: tuple[str, Mapping[str, Fault]]) -> dict[str, Fault]:
    menu: dict[str, Fault] = {}
    for layer, catalogue in catalogues:
        if twice := menu.keys() & catalogue.keys():
            raise RuntimeError(f"faults in two catalogues: {', '.join(sorted(twice))}")
        menu |= {name: replace(fault, name=name, layer=layer) for name, fault in catalogue.items()}
    return menu


FAULTS: Mapping[str, Fault] = _menu(
    ("machine", MACHINES), ("wire", WIRES), ("wire", FIELD), ("line", LINE), ("cable", CABLE)
)


def find(name: str) -> Fault:
    """The fault of this name. Raises UnfitFault naming the nearest."""
    if (fault := FAULTS.get(name)) is None:
        raise UnfitFault(f"there is no fault {quoted(name)}{near(name, FAULTS)} ({LISTED})")
    return fault


def value_of(fault: Fault, device: WireDevice, text: str | None) -> Any:
    """VALUE as the fault takes it on this device. Raises UnfitFault, also when the device cannot have it."""
    fault.bearer(device)
    if text is not None and fault.valued is not None:
        fault.valued(device)
    try:
        return fault.value(text)
    except UnfitFault as error:
        raise UnfitFault(f"{fault.name}: {error}") from None
    except ValueError:
        raise UnfitFault(f"{text!r} is no value for {fault.name}: {fault.help}") from None


def lay(
    fault: Fault,
    device: WireDevice,
    value: Any,
    at: int | None = None,
    *,
    chance: float | None = None,
    random: Random | None = None,
) -> Traps | None:
    """Lay the trap, and tell where; or make the setting, or do the act."""
    if fault.strike is not None:
        fault.strike(fault.bearer(device), value)
        return None
    traps = fault.traps(device)
    traps.set(fault.trap or fault.name, at, value, label=fault.name, chance=chance, random=random)
    return traps


def apply(device: WireDevice, text: str) -> None:
    """Lay the fault `NAME[:VALUE][@N]` on a device or line. Raises UnfitFault with a sentence for people."""
    step = from_text(text)
    if isinstance(device, Carrier):
        device.add(step)
        return
    fault = find(step.fault)
    value = value_of(fault, device, step.value)
    if step.nth is not None and fault.strike is not None:
        raise UnfitFault(
            f"{fault.name} takes no @N; it is {'an act' if fault.kind == 'act' else 'a setting'}"
        )
    lay(fault, device, value, step.nth)
