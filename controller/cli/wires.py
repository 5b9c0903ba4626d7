"""How the commands that hold a port get it; CUTCARD_CAPTURE=FILE records what goes over it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from controller.cli.event_lines import note
from controller.cli.exits import CommandError, RefusedByTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from devices.base import DriverSpec
    from firmware_bridge.capture import Recorder
    from firmware_bridge.transport import Receiver

VARIABLE = "CUTCARD_CAPTURE"
TABLE_OPEN = (
    "a table is open on this machine, and the recording of a wire could show cards that nobody may see yet: "
    "record when no table is open"
)


def open_wire(uri: str, spec: DriverSpec, *, write: bool) -> Receiver:
    """The transport of a port, recorded where CUTCARD_CAPTURE says so; its `open` touches the port.

    Without `write` a device that only talks gets a receive-only form (law 10); a polled one must be asked.
    Raises BadUri, and what `record` raises.
    """
    from firmware_bridge.errors import BadUri
    from firmware_bridge.transports import open_receiver, open_transport, parse_uri

    if parse_uri(uri).scheme == "mem":
        raise BadUri(f"{uri!r}: mem: is for tests in one process; `cutcard ports` lists the ports there are")
    asks = write or spec.polled
    return captured(open_transport(uri, spec.baud) if asks else open_receiver(uri, spec.baud))


def captured(wire: Receiver) -> Receiver:
    """The wire, recorded where CUTCARD_CAPTURE says so. Raises what `record` raises."""
    file = os.environ.get(VARIABLE)
    if not file:
        return wire
    return record(
        wire, Path(file), told=lambda text: note(f"cutcard: {text}"), again=f"give {VARIABLE} another name"
    )[0]


def record(
    wire: Receiver, file: Path, *, told: Callable[[str], None], again: str, force: bool = False
) -> tuple[Receiver, Recorder]:
    """The wire, recorded into a new file until it is disposed of or a table opens on this machine.

    `again` says what to do about a file that exists. Raises RefusedByTable, CommandError or OSError; the
    wire is disposed of then.
    """
    from firmware_bridge.capture import Recorder, recorded
    from firmware_bridge.clock import SystemClock

    try:
        if (reason := _forbidden()) is not None:
            raise RefusedByTable(reason)
        recorder = Recorder(file, wire, SystemClock(), told=told, forbidden=_forbidden, force=force)
    except FileExistsError as error:
        wire.dispose()
        raise CommandError(f"{file} is there already and is not overwritten: {again}") from error
    except BaseException:
        wire.dispose()
        raise
    return recorded(wire, recorder), recorder


def _forbidden() -> str | None:
    from controller.open_tables import any_open

    return TABLE_OPEN if any_open() else None
