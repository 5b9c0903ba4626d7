"""`cutcard capture`: what goes over one wire, into a file that Wireshark opens; read-only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from controller.cli.decode import Options, driver_spec, set_up
from controller.cli.event_lines import note
from controller.cli.exits import CommandError, RefusedByTable
from controller.cli.listen import Listener
from controller.cli.wires import TABLE_OPEN, open_wire, record

if TYPE_CHECKING:
    from devices.events import DeviceEvent
    from firmware_bridge.capture import Recorder

TURN_S = 1.0
"""Seconds after which a table that was opened is noticed, also on a silent wire."""
PROGRESS_S = 2.0


def capture(
    port: Annotated[
        str, typer.Argument(metavar="PORT", help="serial:PATH, socket:HOST:PORT or usb:VID:PID:SERIAL")
    ],
    driver: Annotated[str, typer.Option("--driver", metavar="D", help="what is there, e.g. angel-eye")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.pcapng", help="the file to make, mode 600")
    ],
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0.0, metavar="T", help="end after T seconds")
    ] = None,
    *,
    options: Options = None,
    force: Annotated[bool, typer.Option("--force", help="overwrite a file that is there")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="the summary as one JSON object")] = False,
) -> None:
    """Record a wire until Ctrl-C, as pcapng; ends with exit code 3 when the port is lost.

    Read-only: a device that only talks is never written to, a polled one is asked as `monitor` asks it.
    Refused (4) while a table is open on this machine: the file would hold cards that nobody may see yet.
    """
    from controller.cli.event_lines import output as standard_output

    out = standard_output()
    spec = set_up(driver_spec(driver), options)
    wire, recorder = record(
        open_wire(port, spec, write=False),
        output,
        told=lambda _: None,
        again="choose another name, or add --force",
        force=force,
    )
    progress = _Progress(recorder)
    listener = Listener(spec, wire, progress.event, note)

    def done() -> bool:
        progress.show()
        return not recorder.check()

    note(f"recording to {output}; Ctrl-C ends")
    took = listener.run(seconds, done, TURN_S)
    if recorder.stopped is not None:
        kept = f" ({recorder.records} records before that are in {output})" if recorder.records else ""
        refused = recorder.stopped == TABLE_OPEN
        raise (RefusedByTable if refused else CommandError)(recorder.stopped + kept)
    summary = {
        "file": str(output),
        "port": port,
        "driver": spec.name,
        "seconds": round(took, 3),
        "records": recorder.records,
        "bytes_in": recorder.bytes_in,
        "bytes_out": recorder.bytes_out,
        "frames": listener.counters.frames,
        "events": progress.events,
        "rejected": progress.rejected,
    }
    out.write(json.dumps(summary) + "\n" if as_json else _text(summary))
    out.flush()


def _text(found: dict[str, Any]) -> str:
    return (
        f"{found['file']}: {found['records']} records in {found['seconds']:.1f} s, {found['bytes_in']} bytes "
        f"from the device and {found['bytes_out']} to it; {found['frames']} frames, "
        f"{found['events']} events, {found['rejected']} rejected\n"
    )


class _Progress:
    """Counts events and tells on standard error how far it is."""

    def __init__(self, recorder: Recorder) -> None:
        from firmware_bridge.clock import SystemClock

        self.events = self.rejected = 0
        self._recorder = recorder
        self._clock = SystemClock()
        self._told = 0
        self._due = self._clock.now() + PROGRESS_S

    def event(self, event: DeviceEvent) -> None:
        from devices.events import FrameRejected

        self.events += 1
        self.rejected += isinstance(event, FrameRejected)

    def show(self) -> None:
        now, recorder = self._clock.now(), self._recorder
        if now < self._due or recorder.records == self._told:
            return
        self._due, self._told = now + PROGRESS_S, recorder.records
        note(f"{recorder.bytes_in} bytes from the device, {recorder.bytes_out} to it, {self.events} events")
