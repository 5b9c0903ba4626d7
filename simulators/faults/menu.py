"""All faults by name, and how `NAME[:VALUE][@N]` is laid on a device.

`N` counts occasions of the fault's own kind, from 1: shuffle cycles, loads, cards, requests; without `@N` the
fault is there at each occasion.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from simulators.faults.fault import Fault, UnfitFault
from simulators.faults.field import FIELD
from simulators.faults.machines import MACHINES
from simulators.faults.wires import WIRES
from simulators.wire.device import WireDevice

LAYERS = {
    "machine": "what the mechanics does",
    "wire": "what the firmware does",
}


def _menu(*catalogues: tuple[str, Mapping[str, Fault]]) -> dict[str, Fault]:
    menu: dict[str, Fault] = {}
    for layer, catalogue in catalogues:
        if twice := menu.keys() & catalogue.keys():
            raise RuntimeError(f"faults in two catalogues: {', '.join(sorted(twice))}")
        menu |= {name: replace(fault, name=name, layer=layer) for name, fault in catalogue.items()}
    return menu


FAULTS: Mapping[str, Fault] = _menu(("machine", MACHINES), ("wire", WIRES), ("wire", FIELD))

_TEXT = re.compile(r"(?P<name>[a-z_]+)(:(?P<value>[^@]+))?(@(?P<at>[1-9][0-9]*))?")


def apply(device: WireDevice, text: str) -> None:
    """Lay the fault `NAME[:VALUE][@N]` on the device. Raises UnfitFault with a sentence for people."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise UnfitFault(f"{text!r} is no fault; write NAME[:VALUE][@N], N from 1")
    fault = FAULTS.get(match["name"])
    if fault is None:
        raise UnfitFault(f"there is no fault {match['name']!r}; there are {', '.join(FAULTS)}")
    bearer = fault.bearer(device)
    if match["value"] is not None and fault.valued is not None:
        fault.valued(device)
    try:
        value = fault.value(match["value"])
    except UnfitFault as error:
        raise UnfitFault(f"{fault.name}: {error}") from None
    except ValueError:
        raise UnfitFault(f"{match['value']!r} is no value for {fault.name}: {fault.help}") from None
    if fault.strike is None:
        fault.traps(device).set(fault.trap or fault.name, int(match["at"]) if match["at"] else None, value)
        return
    if match["at"]:
        raise UnfitFault(f"{fault.name} takes no @N; it is a {fault.kind}")
    fault.strike(bearer, value)
