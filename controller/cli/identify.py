"""`cutcard identify`: who is on a port, by its own word, against the list of approved devices."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from controller.cli.event_lines import note
from controller.cli.exits import DEVICE, CommandError

if TYPE_CHECKING:
    from controller.cli.app import Options
    from devices.base import DriverSpec
    from firmware_bridge.identity import Identity

    Allowed = Sequence[Identity] | None

HEARD_S = 3.0
"""How long a device that is only listened to may be silent."""
ROWS = ("vendor", "product", "serial", "firmware", "hash", "boot", "class", "verdict", "why")


class NotExpected(CommandError):
    """Somebody else is there, or nobody."""

    code = DEVICE


def identify(
    ctx: typer.Context,
    port: Annotated[
        str, typer.Argument(metavar="PORT", help="serial:PATH, socket:HOST:PORT, usb:VID:PID:SERIAL")
    ],
    *,
    driver: Annotated[
        str | None, typer.Option("--driver", metavar="D", help="for a device that is only listened to")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="TABLE.toml", help="whose list to compare with")
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", metavar="NAME", help="its name in table.toml, e.g. shoe")
    ] = None,
    enrol: Annotated[
        bool, typer.Option("--enrol", help="print the lines for table.toml that approve this device")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object instead of text")] = False,
) -> None:
    """Ask a device who it is and what it runs, and compare that with the approved devices of a table.

    What a device says of itself is no proof: a fitting answer is necessary and never sufficient. Exit code 0
    when it fits or nothing was to compare, 3 when it is not the expected one or says nothing.
    """
    from controller.cli.decode import driver_spec
    from controller.cli.event_lines import as_json as json_line
    from controller.cli.event_lines import output, printable
    from firmware_bridge.transports import parse_uri

    if enrol and as_json:
        raise CommandError("--enrol prints lines for table.toml: leave --json out")
    parse_uri(port)
    options: Options = ctx.obj
    approved = _Approved.read(config or options.config, device, port)
    spec = None if driver is None else driver_spec(driver)
    out = output()
    found, fits = _asked(port, approved) if spec is None or spec.identifies else _heard(spec, port)
    if enrol:
        lines, fits = list(_enrolled(found, approved.name)), True
    else:
        told = {name: found[name] for name in ROWS}
        lines = [json_line(told)] if as_json else [printable(line) for line in _text(told)]
    for line in lines:
        out.write(line + "\n")
    out.flush()
    if not fits:
        raise NotExpected(printable(f"{found['verdict'] or 'nobody answers'}: {found['why']}"))


class _Approved:
    """The list of one device of a table; `devices` (role and list by name) None when no table was named."""

    def __init__(self, name: str | None, devices: Mapping[str, tuple[str, Allowed]] | None) -> None:
        self.name = name
        self._devices = devices

    @classmethod
    def read(cls, file: Path | None, name: str | None, port: str) -> _Approved:
        """By the device's name, or the only one on that port. Raises ConfigInvalid, CommandError, OSError."""
        if file is None:
            return cls(name, None)
        from controller import config

        table = config.load(file)
        devices = {d.id: (d.spec.role, table.rules.allowed.get(d.id)) for d in table.devices}
        if name is not None and name not in devices:
            raise CommandError(f"--device {name}: {file} has {', '.join(devices)}")
        return cls(name or next((d.id for d in table.devices if d.port == port), None), devices)

    def of(self, kind: Any) -> Allowed:
        """The list to compare with; without a name the table's only device of that class. Names it."""
        if self._devices is None:
            return None
        if self.name is None:
            fitting = [name for name, (role, _) in self._devices.items() if role == kind]
            if len(fitting) != 1:
                text = f"which device of the table is meant? give --device, one of {', '.join(self._devices)}"
                raise CommandError(text)
            self.name = fitting[0]
        return self._devices[self.name][1]


def _asked(port: str, approved: _Approved) -> tuple[dict[str, Any], bool]:
    """What a device that speaks SMP says, and whether it fits."""
    from controller.cli.smp_job import carried_out
    from firmware_bridge.firmware import jobs
    from firmware_bridge.identity import Identity, Verdict, judge

    end = carried_out(port, "identify", jobs.identify)
    if end.answer is None:
        why = f"{end.text}; of a device that does not speak SMP give the --driver"
        return {**dict.fromkeys(ROWS), "why": why}, False
    told = dict(end.answer)
    verdict, why = judge(Identity.told(told), approved.of(told["class"]))
    if told["bootloader"]:
        why += "; its bootloader answers, and no image runs"
    elif told["serial"] is None:
        why += "; it speaks SMP and does not tell who it is (group 64)"
    told["lies"] = told["running"] is not None and told["hash"] not in {None, told["running"]}
    if told["lies"]:
        verdict = Verdict.CHANGED
        why = f"it says that it runs image {told['hash']}, and lists {told['running']} as running"
    return told | {"verdict": verdict.value, "why": why}, verdict.fits


def _heard(spec: DriverSpec, port: str) -> tuple[dict[str, Any], bool]:
    """What comes from a device that has no identity, and whether anything does."""
    from controller.cli.listen import Listener
    from controller.cli.wires import open_wire

    wire = open_wire(port, spec, write=False)
    listener = Listener(spec, wire, lambda _: None, note)
    seconds = listener.run(HEARD_S, lambda: listener.counters.frames > 0)
    frames = listener.counters.frames
    if not frames:
        why = f"nothing of {spec.name} was heard within {HEARD_S:g} s: check device, port and driver"
        return {**dict.fromkeys(ROWS), "why": why}, False
    why = (
        f"{spec.name} is heard ({frames} good frames in {seconds:.1f} s); it does not tell who it is, so "
        "nobody can tell one from another"
    )
    return {**dict.fromkeys(ROWS), "verdict": "UNCHECKED", "why": why}, True


def _text(found: Mapping[str, Any]) -> Iterator[str]:
    for name in ROWS:
        value = found[name]
        yield f"{name:<10} {'not told' if value is None else value}"


def _enrolled(found: Mapping[str, Any], name: str | None) -> Iterator[str]:
    """The lines for table.toml. Raises NotExpected for a device that cannot be approved."""
    from controller.cli.event_lines import printable

    missing = [key for key in ROWS[:4] if not found[key]]
    if missing or found["lies"]:
        lack = f"it does not tell its {', '.join(missing)}" if missing else "it contradicts itself"
        raise NotExpected(printable(f"{lack}, so it cannot be approved: {found['why']}"))
    yield f"[[devices.{name or found['class']}.allowed]]"
    for key in ROWS[:5]:
        if found[key] is not None:
            yield f"{key} = {_toml(str(found[key]))}"


def _toml(text: str) -> str:
    """A basic string of TOML that no terminal obeys."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in quoted)
