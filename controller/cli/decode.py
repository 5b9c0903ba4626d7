"""`cutcard decode`: bytes of a file to device events; no device needed, nothing sent."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, cast

import typer

from controller.cli.exits import CommandError
from firmware_bridge.clock import SystemClock

if TYPE_CHECKING:
    from io import BufferedReader

    from devices.base import DriverSpec

CHUNK = 65536
STEP_S = 0.002
"""Bytes without times go to the driver in steps of at most so many seconds of its line."""
BITS_PER_BYTE = 10
PROGRESS_S = 2.0
"""Seconds between two lines of progress on standard error."""


class Format(StrEnum):
    RAW = "raw"
    HEX = "hex"
    PCAPNG = "pcapng"


def decode(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="the bytes; - reads standard input")],
    driver: Annotated[str, typer.Option("--driver", metavar="D", help="whose wire this is, e.g. angel-eye")],
    form: Annotated[
        Format, typer.Option("--format", help="raw bytes, or hex text with # comments")
    ] = Format.RAW,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object a line")] = False,
) -> None:
    """Decode captured bytes to device events. Rejected frames are events too: the exit code stays 0.

    Bytes carry no times here: they are taken to arrive back to back at the driver's line rate.
    """
    if form is Format.PCAPNG:
        raise CommandError(
            "this version reads raw bytes and hex text only: pcapng captures come with a later version; "
            "export the bytes and use --format raw or --format hex"
        )
    spec = driver_spec(driver)
    chunks = _hex(file) if form is Format.HEX else _raw(file)
    _decode(spec, chunks, as_json=as_json)


def driver_spec(name: str) -> DriverSpec:
    """The driver of that name. Raises CommandError with the registry's sentence."""
    from devices.registry import DriverError, load

    try:
        return load(name)
    except DriverError as error:
        raise CommandError(f"--driver {name}: {error}") from error


def _decode(spec: DriverSpec, chunks: Iterator[bytes], *, as_json: bool) -> None:
    from random import Random

    from controller.cli import event_lines
    from devices.base import DriverOutput, Setup
    from devices.events import DeviceEvent, FrameRejected, to_json

    out = event_lines.output()
    colour = out.isatty()
    events = rejected = size = 0
    rate = spec.baud / BITS_PER_BYTE
    step = max(1, int(rate * STEP_S))
    driver = spec.decoder(Setup(spec.name, Random(0)))

    def show(outputs: Sequence[DriverOutput]) -> None:
        nonlocal events, rejected
        for event in outputs:
            if isinstance(event, DeviceEvent):
                events += 1
                rejected += isinstance(event, FrameRejected)
                found = to_json(event, at=None, masked=False)
                line = event_lines.as_json(found) if as_json else event_lines.as_text(found, colour=colour)
                out.write(line + "\n")

    show(driver.start(0.0))
    clock = SystemClock()
    told_at = clock.now()
    for chunk in chunks:
        for at in range(0, len(chunk), step):
            piece = chunk[at : at + step]
            size += len(piece)
            now = size / rate
            if outputs := driver.feed(piece, now):
                show(outputs)
            due = driver.deadline()
            if due is not None and due <= now:
                show(driver.tick(now))
        out.flush()
        if clock.now() - told_at >= PROGRESS_S:
            told_at = clock.now()
            print(f"{size} bytes decoded, {events} events", file=sys.stderr, flush=True)
    show(driver.lost("end of input", size / rate))
    counted = driver.counters
    if as_json:
        summary = {
            "kind": "summary",
            "frames": counted.frames,
            "events": events,
            "repeats": counted.repeats,
            "rejected": rejected,
            "bytes": size,
        }
        out.write(event_lines.as_json(summary) + "\n")
    else:
        out.write(
            f"{counted.frames} frames, {events} events, {counted.repeats} repeats, {rejected} rejected, "
            f"{size} bytes\n"
        )
    out.flush()


def _raw(file: str) -> Iterator[bytes]:
    if file == "-":
        if sys.stdin is None:
            raise CommandError("standard input is closed: give a file, or pipe the bytes in")
        stdin = cast("BufferedReader", sys.stdin.buffer)
        while chunk := stdin.read1(CHUNK):
            yield chunk
        return
    with open(file, "rb") as source:  # noqa: PTH123 - errors shall name the file as it was typed
        while chunk := source.read(CHUNK):
            yield chunk


def _hex(file: str) -> Iterator[bytes]:
    """Hex text: white space between digits and comments from # to the end of a line count for nothing."""
    text = b"".join(_raw(file)).decode("utf-8", "replace")
    digits: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        for word in line.partition("#")[0].split():
            if not all(c in "0123456789abcdefABCDEF" for c in word):
                raise CommandError(
                    f"{_name(file)}, line {number}: {word[:20]!r} is no hex; write bytes as 05 31 ..."
                )
            digits.append(word)
    joined = "".join(digits)
    if len(joined) % 2:
        raise CommandError(f"{_name(file)}: an odd number of hex digits; a byte is two of them")
    for at in range(0, len(joined), CHUNK):
        yield bytes.fromhex(joined[at : at + CHUNK])


def _name(file: str) -> str:
    return "standard input" if file == "-" else file
