"""`cutcard firmware`: a device's images over SMP. Only from here, and only while no daemon has the port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from controller.cli.exits import DEVICE, REFUSED, CommandError
from controller.cli.send import TABLE_OPEN, End, NotDone

if TYPE_CHECKING:
    from firmware_bridge.firmware.host import JobMaker

firmware = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Firmware of a device over SMP, from here alone and never by the daemon.",
)

Port = Annotated[
    str, typer.Argument(metavar="PORT", help="serial:PATH, socket:HOST:PORT, usb:VID:PID:SERIAL")
]
Json = Annotated[bool, typer.Option("--json", help="the outcome as one JSON object")]

NEXT = {
    "pending": "`firmware reset` starts it, then `firmware confirm` makes it stay",
    "running": "it runs already",
    "stored": "`firmware reset` starts it",
}


@firmware.command("list")
def _list(port: Port, *, as_json: Json = False) -> None:
    """The images that a device holds, and which one runs."""
    from firmware_bridge.firmware import jobs

    _do(port, "list", jobs.list_images, as_json=as_json)


@firmware.command("upload")
def _upload(
    port: Port,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a signed MCUboot image")],
    *,
    product: Annotated[
        str | None,
        typer.Option("--product", metavar="NAME", help="what the device is, where it cannot say so itself"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Send an image, to be tried at the next restart; nothing that runs is changed.

    A broken, cut off or foreign image is refused before the device erases anything. The same upload again
    goes on where the device is.
    """
    from firmware_bridge.firmware import image
    from firmware_bridge.firmware.upload import upload
    from firmware_bridge.transports import parse_uri

    parse_uri(port)
    made = image.read(file.read_bytes())
    _do(port, "upload", partial(upload, image=made, product=product), as_json=as_json)


@firmware.command("confirm")
def _confirm(
    port: Port,
    wanted: Annotated[
        str | None, typer.Argument(metavar="[HASH]", help="confirm only if the running image's begins so")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Make the image that runs stay; without this the next restart goes back to the one before."""
    from firmware_bridge.firmware import jobs

    if wanted is not None:
        wanted = wanted.lower()
        if not wanted or set(wanted) - set("0123456789abcdef"):
            raise CommandError(f"{wanted!r} is no hash: write hex digits, as `firmware list` shows them")
    _do(port, "confirm", partial(jobs.confirm, wanted=wanted), as_json=as_json)


@firmware.command("reset")
def _reset(port: Port, *, as_json: Json = False) -> None:
    """Restart a device and see what it runs then; a pending image is tried."""
    from firmware_bridge.firmware import jobs

    _do(port, "reset", jobs.reset, as_json=as_json)


@firmware.command("echo")
def _echo(
    port: Port,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="what the device shall give back")],
    *,
    as_json: Json = False,
) -> None:
    """Have the device give back a text."""
    from firmware_bridge.firmware import jobs

    if len(text.encode()) > 64:
        raise CommandError("a device need not take more than 64 bytes of text: write less")
    _do(port, "echo", partial(jobs.echo, text=text), as_json=as_json)


def _do(port: str, name: str, job: JobMaker, *, as_json: bool) -> None:
    """Carry it out and print its end. Raises NotDone with the exit code."""
    from controller.cli.event_lines import as_json as json_line
    from controller.cli.event_lines import output, printable
    from controller.cli.smp_job import READS, carried_out

    out = output()
    end = (None if name in READS else _forbidden(name)) or carried_out(port, name, job)
    if as_json:
        told = {"command": name, "outcome": end.outcome, "code": end.code, "answer": end.answer}
        print(json_line(told), file=out, flush=True)
    elif end.answer is not None:
        print("\n".join(printable(line) for line in _text(name, end.answer)), file=out, flush=True)
    if end.outcome != "done":
        raise NotDone(printable(end.text), REFUSED if end.outcome == "refused" else DEVICE)


def _forbidden(name: str) -> End | None:
    """While a table is open here, no device of this machine changes."""
    from controller.open_tables import any_open

    if not any_open():
        return None
    text = f"{name} changes a device, and a table is open on this machine: close the table first"
    return End("refused", text, TABLE_OPEN)


def _text(name: str, answer: Mapping[str, Any]) -> Iterator[str]:
    match name:
        case "upload":
            yield f"{answer['state']}: {answer['version']}, {answer['sent']} bytes sent"
            yield f"hash {answer['hash']}"
            yield NEXT[answer["state"]]
        case "reset":
            yield f"runs: {answer['version'] or answer['firmware'] or 'not told'}"
            yield f"hash {answer['hash'] or 'not told'}"
            if answer["restarted"] is None:
                yield "the device counts no starts: that it restarted is its word alone"
            if answer["confirmed"] is False:
                yield "on trial: `firmware confirm` makes it stay, another restart goes back"
        case "echo":
            yield str(answer["text"])
        case _:
            yield f"{'IMAGE':<6} {'SLOT':<5} {'VERSION':<16} {'STATE':<28} HASH"
            for one in answer["images"]:
                state = " ".join(one["flags"]) or "-"
                yield (
                    f"{one['image']:<6} {one['slot']:<5} {one['version']:<16} {state:<28} "
                    f"{one['hash'] or 'not told'}"
                )
