"""The commands of the rig: `demo`, `sim`, `replay`, `bench`. Heavy imports wait until a command runs."""

from __future__ import annotations

import json
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated

import typer

from controller.cli.exits import DEVICE, FINE, FOUND, CommandError

INTERRUPTED = 130

Json = Annotated[bool, typer.Option("--json", help="one JSON object instead of text")]


class MachineError(CommandError):
    """Something on this machine is not as it must be: nothing is known of what was to be done."""

    code = DEVICE


def demo(
    *,
    shoes: Annotated[int, typer.Option(min=1, help="shoe cycles to play", metavar="N")] = 2,
    seed: Annotated[str, typer.Option(help="the same seed plays the same cards", metavar="S")] = "1",
    speed: Annotated[
        str, typer.Option(help="max, 1 (real time), or how many times faster", metavar="max|1|X")
    ] = "max",
    config: Annotated[
        Path | None, typer.Option("--config", metavar="TABLE.toml", help="play by this table's rules")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="leave journal, key and log in this directory")
    ] = None,
    as_json: Json = False,
) -> None:
    """Play shoes on simulated machines: real pseudo-terminals, a real daemon, a simulated dealer."""
    from simulators.rig import demo as play
    from simulators.rig.signals import ended_by_signals

    times = _speed(speed)
    table = play.TABLE if config is None else config.read_text()
    try:
        with (
            ended_by_signals(),
            play.set_up(table, None if keep is None else keep.resolve(), str(config)) as place,
        ):
            summary = play.play(place, seed, shoes, times)
            print(json.dumps(summary) if as_json else play.as_text(summary, place, kept=keep is not None))
    except KeyboardInterrupt:
        print("cutcard: stopped; the daemon is ended and nothing is left behind", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    raise typer.Exit(FINE if play.is_good(summary) else FOUND)


def _speed(text: str, slowest: float = 1) -> float | None:
    if text == "max":
        return None
    try:
        times = float(text)
    except ValueError:
        times = 0.0
    if not slowest <= times <= 1e6:
        raise CommandError(f"--speed {text}: write max, 1 for real time, or a number from {slowest:g} on")
    return times


def sim(
    device: Annotated[
        str | None, typer.Argument(metavar="DEVICE", help="e.g. angel-eye, managed-shoe")
    ] = None,
    *,
    listen: Annotated[
        str | None, typer.Option(metavar="pty:PATH|tcp:HOST:PORT|usb:DIRECTORY", help="where it appears")
    ] = None,
    seed: Annotated[
        str, typer.Option(help="the same seed gives the same cards and chances", metavar="S")
    ] = "1",
    fault: Annotated[
        list[str] | None, typer.Option(metavar="NAME[:VALUE][@N]", help="a prepared fault; may be repeated")
    ] = None,
    script: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", readable=False, help="faults with their moments, in YAML (docs/simulators.md)"
        ),
    ] = None,
    list_faults: Annotated[
        bool, typer.Option("--list-faults", help="what can go wrong, with DEVICE or with any; then end")
    ] = False,
    as_json: Json = False,
) -> None:
    """One simulated device. A shoe plays rounds by itself in real time; a shuffler waits for commands.

    Each fault is told on stderr when it first strikes, and at the end how often each did.
    On usb:DIRECTORY it is seen by programs that are started with the variables printed as "env".
    """
    from random import Random

    from simulators.hosts.line import Line
    from simulators.rig import sim as device_sim
    from simulators.rig.signals import ended_by_signals

    if list_faults:
        _list_faults(device, as_json=as_json)
        return
    if device is None or listen is None:
        raise CommandError(
            "say which device and where it appears: cutcard sim DEVICE --listen pty:PATH; devices are "
            + ", ".join(device_sim.DEVICES)
        )
    try:
        made, load = device_sim.build(device, seed, usb=listen.startswith("usb:"))
        line = Line(made, Random(f"{seed}/line"), name=device)
        device_sim.prepare(line, fault or [])
        if script is not None:
            device_sim.follow(line, script, device)
        load()
        host = device_sim.listen(line, listen)
    except device_sim.Misused as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise MachineError(f"--listen {listen}: {error.strerror or error}") from error
    strikes = device_sim.Strikes(line, _tell)
    try:
        with ended_by_signals():
            said: dict[str, object] = {"listening": listen, "device": device, "port": host.uri}
            if isinstance(host, device_sim.UsbPlace):
                said["env"] = host.environment
            print(json.dumps(said), flush=True)
            device_sim.serve(host, watch=strikes.look)
    except KeyboardInterrupt:
        strikes.sum_up()
        raise typer.Exit(FINE) from None
    finally:
        host.close()


def _list_faults(device: str | None, *, as_json: bool) -> None:
    from simulators.rig import fault_list
    from simulators.rig import sim as device_sim

    try:
        found = fault_list.rows(device)
    except device_sim.Misused as error:
        raise CommandError(str(error)) from error
    print(json.dumps({"faults": found}) if as_json else fault_list.as_text(found, devices=device is None))


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE.pcapng", help="what `cutcard capture` recorded")],
    listen: Annotated[str, typer.Option(metavar="pty:PATH|tcp:HOST:PORT", help="where it appears")],
    speed: Annotated[
        str, typer.Option(help="max, 1 (as it was), or how many times faster", metavar="max|1|X")
    ] = "1",
) -> None:
    """Play the device's side of a capture to the first reader that comes, and end when all is played.

    What the host sent then is not played: read the capture of a polled device with `decode`.
    """
    from simulators.rig import replay as tape
    from simulators.rig import sim as device_sim
    from simulators.rig.signals import ended_by_signals

    times = _speed(speed, tape.SLOWEST)
    if listen.startswith("usb:"):
        raise CommandError(f"--listen {listen}: a capture is played on pty:PATH or tcp:HOST:PORT")
    try:
        with tape.load(file, times, _tell) as (played, found):
            try:
                host = device_sim.listen(played, listen)
            except OSError as error:
                raise MachineError(f"--listen {listen}: {error.strerror or error}") from error
            with closing(host), closing(tape.Stage(host)) as stage, ended_by_signals():
                said: dict[str, object] = {"listening": listen, "port": host.uri, "file": str(file), **found}
                print(json.dumps(said), flush=True)
                stage.play(played)
    except device_sim.Misused as error:
        raise CommandError(str(error)) from error
    except KeyboardInterrupt:
        raise typer.Exit(FINE) from None


def _tell(note: str) -> None:
    with suppress(OSError):  # nobody reads it
        print(f"cutcard: {note}", file=sys.stderr, flush=True)


def bench(as_json: Json = False) -> None:
    """The benchmark table: each goal as a ratio to a floor measured in the same run."""
    from simulators.rig import bench as goals

    rows = goals.run(lambda text: print(text, file=sys.stderr, flush=True))
    print(json.dumps({"rows": [row.as_json() for row in rows]}) if as_json else goals.as_text(rows))
