"""`cutcard monitor`: live device events of one port, read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from controller.cli.decode import Options, driver_spec, set_up
from controller.cli.event_lines import note
from controller.cli.listen import Listener
from controller.cli.wires import open_wire

if TYPE_CHECKING:
    from devices.events import DeviceEvent


def monitor(
    port: Annotated[
        str, typer.Argument(metavar="PORT", help="serial:PATH, socket:HOST:PORT or usb:VID:PID:SERIAL")
    ],
    driver: Annotated[str, typer.Option("--driver", metavar="D", help="what is there, e.g. angel-eye")],
    count: Annotated[
        int | None, typer.Option("--count", min=1, metavar="N", help="end after N events")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0.0, metavar="T", help="end after T seconds")
    ] = None,
    *,
    options: Options = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object a line")] = False,
) -> None:
    """Show device events as they happen, read-only; ends with exit code 3 when the port is lost.

    Unseen cards are hidden while a table is open on this machine. CUTCARD_CAPTURE=FILE records the wire.
    """
    from controller.cli import event_lines

    spec = set_up(driver_spec(driver), options)
    lines = _Lines(event_lines.output(), count, as_json=as_json)
    listener = Listener(spec, open_wire(port, spec, write=False), lines.take, note)
    took = listener.run(seconds, lambda: lines.full)
    if not listener.heard:
        note(f"{took:.1f} s, 0 bytes, 0 events: nothing came")


MASKED = "a table is open on this machine: cards that may not be seen yet are shown as ?, without raw bytes"
SHOWN = "the table is closed: cards are shown again"


class _Lines:
    """Prints events, each at once, until there were enough."""

    def __init__(self, out: TextIO, count: int | None, *, as_json: bool) -> None:
        from firmware_bridge.clock import SystemClock

        self._out = out
        self._clock = SystemClock()
        self._left = count
        self._as_json = as_json
        self._colour = out.isatty()
        self._masked = False

    @property
    def full(self) -> bool:
        return self._left == 0

    def take(self, event: DeviceEvent) -> None:
        from controller.cli import event_lines
        from controller.open_tables import any_open
        from devices.events import to_json

        if self.full:
            return
        if self._left is not None:
            self._left -= 1
        masked = any_open()
        if masked != self._masked:
            self._masked = masked
            note(MASKED if masked else SHOWN)
        found = to_json(event, at=self._clock.wall(), masked=masked)
        line = (
            event_lines.as_json(found) if self._as_json else event_lines.as_text(found, colour=self._colour)
        )
        self._out.write(line + "\n")
        self._out.flush()
