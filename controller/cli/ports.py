"""`cutcard ports`: what is plugged in, and the name to use for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from firmware_bridge.transports.discover import Plugged

SOUGHT = {"serial": "serial port", "usb": "USB device"}
NOTHING = (
    "no {} was found: check the device's cable and power, what `dmesg` says when "
    "it is plugged in, whether a virtual machine or container passes it on, and the groups of this user "
    "(`id`: serial adapters mostly want dialout, our own devices cutcard)"
)


def ports(as_json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False) -> None:
    """List serial ports and USB devices: the name to use, what it is, which driver fits, who holds it.

    Nothing is claimed and nothing sent.
    """
    from controller.cli import event_lines
    from firmware_bridge.transports import discover

    out = event_lines.output()
    found, failed = discover.look()
    drivers, broken = _drivers()
    notes = [*failed.values(), *broken]
    missing = [what for kind, what in SOUGHT.items() if kind not in failed]
    if missing and not found:
        notes.append(NOTHING.format(" and no ".join(missing)))
    if as_json:
        rows = [_row(one, drivers) for one in found]
        out.write(event_lines.as_json({"ports": rows, "notes": notes}) + "\n")
        return
    for line in _table(found, drivers, colour=out.isatty()):
        out.write(line + "\n")
    for note in notes:
        out.write(event_lines.printable(note) + "\n")


def _drivers() -> tuple[dict[tuple[int, int], str], list[str]]:
    """Driver names by vendor and product id; and what is wrong with drivers that cannot be loaded."""
    from devices import registry

    names: dict[tuple[int, int], list[str]] = {}
    notes = []
    for name in registry.names():
        try:
            spec = registry.load(name)
        except registry.DriverError as error:
            notes.append(str(error))
            continue
        for ids in spec.usb:
            names.setdefault(ids, []).append(name)
    return {ids: ", ".join(fitting) for ids, fitting in names.items()}, notes


def _driver_of(one: Plugged, drivers: dict[tuple[int, int], str]) -> str | None:
    return None if one.usb is None else drivers.get((one.usb.vid, one.usb.pid))


def _row(one: Plugged, drivers: dict[tuple[int, int], str]) -> dict[str, Any]:
    return {
        "uri": one.uri,
        "kind": one.kind,
        "description": one.description,
        "driver": _driver_of(one, drivers),
        "held_by": one.held_by,
        "trouble": one.trouble,
        "usb": None if one.usb is None else str(one.usb),
        "place": one.place,
        "links": list(one.links),
    }


def _table(found: list[Plugged], drivers: dict[tuple[int, int], str], *, colour: bool) -> list[str]:
    """Aligned; what is wrong with a port stands below it."""
    from controller.cli.event_lines import printable

    if not found:
        return []
    rows = [("PORT", "WHAT", "DRIVER", "HELD BY")]
    for one in found:
        what = f"{one.description}, {one.links[0]}"
        cells = (one.uri or one.kind, what, _driver_of(one, drivers) or "-", one.held_by or "-")
        rows.append(tuple(map(printable, cells)))  # type: ignore[arg-type]  # four of them
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for number, row in enumerate(rows):
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        trouble = found[number - 1].trouble if number else None
        if trouble is not None:
            line = f"    trouble: {printable(trouble)}"
            lines.append(typer.style(line, fg="red") if colour else line)
    return lines
