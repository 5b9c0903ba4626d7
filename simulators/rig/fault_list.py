"""`cutcard sim --list-faults`: the menu as text for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from simulators.faults import FAULTS, Fault, UnfitFault
from simulators.faults.menu import LAYERS
from simulators.hosts.line import Line
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.tcp_host import TcpHost
from simulators.hosts.usb_host import UsbHost
from simulators.rig import sim
from simulators.rig.campaign.blows import BLOWS
from simulators.rig.campaign.slips import SLIPS
from simulators.wire.device import WireDevice

PORTS = {"pty": PtyHost.CAN, "tcp": TcpHost.CAN, "usb": UsbHost.CAN}
_GROUPS = {
    "shoes": (
        "angel-eye", "barcode-hid", "bee-tek", "managed-continuous", "managed-shoe", "managed-stack-shoe",
    ),
    "managed": (
        "managed-continuous", "managed-shoe", "managed-shuffler", "managed-stack-shoe", "hole-card-reader",
    ),
}  # fmt: skip
ON_LINE = ("line", "cable")
TABLE_LAYERS = {
    "daemon": "what befalls the daemon and the power of a whole table (campaign and scenarios alone)",
    "people": "what people do wrong at a whole table (campaign and scenarios alone)",
}


def rows(only: str | None = None) -> list[dict[str, Any]]:
    """The menu and what only whole tables know, or what one device can have. Raises sim.Misused for none."""
    devices = {name: sim.make(name, 0) for name in ([only] if only else sim.DEVICES)}
    listed = [row for row in (_row(fault, devices) for fault in FAULTS.values()) if row["devices"]]
    return listed if only else [*listed, *_of_tables()]


def _of_tables() -> list[dict[str, Any]]:
    """What no device can have by itself."""
    blows = [(name, "daemon", blow.help, blow.occasion or None) for name, blow in BLOWS.items()]
    slips = [(name, "people", slip.help, None) for name, slip in SLIPS.items()]
    return [
        {"name": name, "layer": layer, "kind": "act", "does": does, "counts": counts, "devices": [],
         "tables_only": True}
        for name, layer, does, counts in (*blows, *slips)
    ]  # fmt: skip


def _row(fault: Fault, devices: dict[str, WireDevice]) -> dict[str, Any]:
    row = {
        "name": fault.name,
        "layer": fault.layer,
        "kind": fault.kind,
        "does": fault.help,
        "counts": fault.occasion or None,
        "devices": [name for name, device in devices.items() if _fits(fault, device)],
    }
    if fault.layer in ON_LINE:
        row["ports"] = [port for port, can in PORTS.items() if not fault.cable or fault.cable in can]
    return row


def _fits(fault: Fault, device: WireDevice) -> bool:
    try:
        fault.bearer(Line(device, Random(0)) if fault.layer in ON_LINE else device)
    except UnfitFault:
        return False
    return True


def as_text(found: Sequence[dict[str, Any]], *, devices: bool = True) -> str:
    """By layer: name, what it does, what N counts, who can have it."""
    parts = []
    for layer, what in {**LAYERS, **TABLE_LAYERS}.items():
        if here := [row for row in found if row["layer"] == layer]:
            cells = [[row["name"], row["does"], _counts(row), _who(row) if devices else ""] for row in here]
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            lines = ["  ".join(map(str.ljust, cell, widths)).rstrip() for cell in cells]
            parts.append("\n  ".join([f"{layer}: {what}", *lines]))
    if devices:
        parts.append("\n  ".join(["where", *(f"{word}: {', '.join(who)}" for word, who in _GROUPS.items())]))
    return "\n\n".join(parts)


def _counts(row: dict[str, Any]) -> str:
    return f"N: {row['counts']}" if row["counts"] else row["kind"]


def _who(row: dict[str, Any]) -> str:
    if "tables_only" in row:
        return "tables"
    names, ports, said = row["devices"], row.get("ports", PORTS), []
    if len(names) == len(sim.DEVICES):
        said, names = ["all"], []
    for word, group in _GROUPS.items():
        if set(group) <= set(names):
            said.append(word)
            names = [name for name in names if name not in group]
    where = "" if len(ports) == len(PORTS) else f" on {' and '.join(ports)}"
    return ", ".join([*said, *names]) + where
