"""`cutcard monitor`: live device events of one port, read-only."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any, TextIO

import typer

from controller.cli.exits import DEVICE, CommandError

FOREVER_S = 3600.0


class PortError(CommandError):
    """The port is absent, busy, denied or lost."""

    code = DEVICE


def monitor(
    port: Annotated[str, typer.Argument(metavar="PORT", help="serial:PATH or socket:HOST:PORT")],
    driver: Annotated[str, typer.Option("--driver", metavar="D", help="what is there, e.g. angel-eye")],
    count: Annotated[
        int | None, typer.Option("--count", min=1, metavar="N", help="end after N events")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0.0, metavar="T", help="end after T seconds")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object a line")] = False,
) -> None:
    """Show device events as they happen, read-only; ends with exit code 3 when the port is lost.

    Unseen cards are hidden while a table is open on this machine.
    """
    from random import SystemRandom

    from controller.cli import event_lines
    from controller.cli.decode import driver_spec
    from devices.base import Setup
    from firmware_bridge.clock import SystemClock
    from firmware_bridge.port import Port
    from firmware_bridge.transports import open_receiver, open_transport

    spec = driver_spec(driver)
    setup = Setup(spec.name, SystemRandom())
    clock = SystemClock()
    lines = _Lines(event_lines.output(), clock.wall, count, as_json=as_json)
    if spec.polled:
        pumped = Port(spec.name, open_transport(port, spec.baud), spec.reader(setup), clock, lines.take)
    else:
        # The form that decodes captures: what a line tells, told the same way as by `decode`.
        pumped = Port(spec.name, open_receiver(port, spec.baud), spec.decoder(setup), clock, lines.take)
    end = None if seconds is None else clock.now() + seconds
    try:
        while not lines.full and lines.trouble is None and (end is None or clock.now() < end):
            pumped.step(FOREVER_S if end is None else max(0.0, end - clock.now()))
            if lines.told > lines.acked:
                lines.acked = lines.told
                pumped.ack(lines.told)
    except KeyboardInterrupt:
        pass
    finally:
        lines.closing = True
        pumped.close()
    if lines.trouble is not None and not lines.full:
        raise PortError(event_lines.printable(lines.trouble))


class _Lines:
    """Prints what the port delivers, each line at once, and keeps what ends the command."""

    def __init__(self, out: TextIO, wall: Any, count: int | None, *, as_json: bool) -> None:
        self._out = out
        self._wall = wall
        self._left = count
        self._as_json = as_json
        self._colour = out.isatty()
        self.trouble: str | None = None
        self.told = self.acked = 0
        self.closing = False

    @property
    def full(self) -> bool:
        return self._left == 0

    def take(self, name: str, outputs: Sequence[object]) -> None:
        """The port's `deliver`."""
        del name
        from devices.events import DeviceEvent, LinkDown
        from devices.managed import RESTARTED
        from firmware_bridge.port import Crashed, Opened, Unavailable

        for output in outputs:
            if isinstance(output, LinkDown) and self.closing:
                continue
            if isinstance(output, DeviceEvent):
                self.told = output.n
                self._event(output)
                if isinstance(output, LinkDown) and output.reason != RESTARTED:
                    self.trouble = self.trouble or output.reason
            elif isinstance(output, Opened):
                _note(f"listening on {output.port}")
            elif isinstance(output, Unavailable) and self.trouble is None:
                self.trouble = output.text
            elif isinstance(output, Crashed):
                _note(f"{output.error} at {output.where}")

    def _event(self, event: Any) -> None:
        from controller.cli import event_lines
        from controller.open_tables import any_open
        from devices.events import to_json

        if self.full:
            return
        if self._left is not None:
            self._left -= 1
        found = to_json(event, at=self._wall(), masked=any_open())
        line = (
            event_lines.as_json(found) if self._as_json else event_lines.as_text(found, colour=self._colour)
        )
        self._out.write(line + "\n")
        self._out.flush()


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
