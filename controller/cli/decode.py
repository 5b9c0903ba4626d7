"""`cutcard decode`: bytes of a file to device events; no device needed, nothing sent."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar, cast

import typer

from controller.cli.event_lines import note
from controller.cli.exits import CommandError
from firmware_bridge.clock import SystemClock

if TYPE_CHECKING:
    from io import BufferedReader

    from devices.base import Counters, Driver, DriverOutput, DriverSpec
    from firmware_bridge.capture import Record

_D = TypeVar("_D")
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="KEY=VALUE", help="another reading of the driver's documents; may be repeated"
    ),
]
CHUNK = 65536
"""Bytes that a driver is given at once at the most, also of a capture whose packets are longer."""
HEX_LIMIT = 64 << 20
"""Bytes of hex text, which is read whole."""
STEP_S = 0.002
"""Bytes without times go to the driver in steps of at most so many seconds of its line."""
BITS_PER_BYTE = 10
_NO_STDIN = "standard input is closed: give a file, or pipe the bytes in"
_PCAPNG = b"\n\r\r\n"
"""How a pcapng file begins."""
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
        Format, typer.Option("--format", help="raw bytes, hex text with # comments, or a pcapng capture")
    ] = Format.RAW,
    options: Options = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object a line")] = False,
) -> None:
    """Decode captured bytes to device events. Rejected frames are events too: the exit code stays 0.

    A pcapng capture has times, and tells what the host sent. Raw bytes and hex text carry no times: they
    are taken to arrive back to back at the driver's line rate.
    """
    spec = set_up(driver_spec(driver), options)
    if form is Format.PCAPNG:
        _decode(spec, _recorded(file), as_json=as_json)
    else:
        chunks = _hex(file) if form is Format.HEX else _raw(file)
        _decode(spec, _paced(chunks, spec.baud / BITS_PER_BYTE), as_json=as_json)


def driver_spec(name: str) -> DriverSpec:
    """The driver of that name. Raises CommandError with the registry's sentence."""
    from devices.registry import DriverError, load

    try:
        return load(name)
    except DriverError as error:
        raise CommandError(f"--driver {name}: {error}") from error


def set_up(spec: DriverSpec, given: Sequence[str] | None) -> DriverSpec:
    """The driver with the options `given` as KEY=VALUE. Raises CommandError naming the nearest key."""
    if not given:
        return spec
    from random import Random

    from devices.base import OptionError, Setup

    options: dict[str, str | int] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or key not in spec.options:
            near = difflib.get_close_matches(key, spec.options, 1)
            hint = f"there is no option {key}" if equals else "write KEY=VALUE"
            hint = f"did you mean {near[0]}=VALUE?" if near else hint
            known = "; ".join(f"{name}: {help_}" for name, help_ in spec.options.items()) or "none"
            raise CommandError(f"--option {text}: {hint} (options of {spec.name} are {known})")
        options[key] = int(value) if re.fullmatch("[0-9]{1,9}", value) else value
    try:
        spec.reader(Setup(spec.name, Random(0), options=options))
    except OptionError as error:
        raise CommandError(f"--option: {error}") from error

    def bound(make: Callable[[Setup], _D]) -> Callable[[Setup], _D]:
        return lambda setup: make(replace(setup, options=options))

    return replace(
        spec, reader=bound(spec.reader), controlled=bound(spec.controlled), decoder=bound(spec.decoder)
    )


_Piece = tuple[bytes, float, datetime | None, bool, bool]
"""Bytes that arrived together, when (s since the first), the time of day if it is known, whether they came
from the device, and whether they are one USB transfer. A plain tuple: each raw byte may be a piece."""


def _decode(spec: DriverSpec, batches: Iterator[Iterable[_Piece]], *, as_json: bool) -> None:
    """Feed all pieces to the driver and print what it tells, batch by batch."""
    from controller.cli import event_lines
    from devices.base import HearsHost

    lines = _Lines(event_lines.output(), as_json=as_json)
    driver: Driver | None = None
    due: float | None = None
    size, now, at = 0, 0.0, cast("datetime | None", None)
    clock = SystemClock()
    told_at = clock.now()
    for batch in batches:
        for data, now, at, inbound, packets in batch:
            if driver is None:
                driver = _begun(spec, lines, packets=packets)
            if due is not None and due < now:
                _pass_time(driver, lines, now, at)
            size += len(data)
            if inbound:
                outputs = driver.feed(data, now)
            else:
                outputs = driver.feed_host(data, now) if isinstance(driver, HearsHost) else ()
            if outputs:
                lines.show(outputs, at)
            due = driver.deadline()
            if due is not None and due <= now:
                lines.show(driver.tick(now), at)
                due = driver.deadline()
        lines.out.flush()
        if clock.now() - told_at >= PROGRESS_S:
            told_at = clock.now()
            print(f"{size} bytes decoded, {lines.events} events", file=sys.stderr, flush=True)
    driver = driver or _begun(spec, lines, packets=False)
    lines.show(driver.lost("end of input", now), at)
    lines.end(driver.counters, size)


def _begun(spec: DriverSpec, lines: _Lines, *, packets: bool) -> Driver:
    from random import Random

    from devices.base import Setup

    driver = spec.decoder(Setup(spec.name, Random(0), packets=packets))
    lines.show(driver.start(0.0), None)
    return driver


def _pass_time(driver: Driver, lines: _Lines, now: float, at: datetime | None) -> None:
    """What fell due on a silent line before `now`, which is `at`, is told with its own time."""
    due = driver.deadline()
    while due is not None and due < now:
        lines.show(driver.tick(due), None if at is None else at - timedelta(seconds=now - due))
        before, due = due, driver.deadline()
        if due is not None and due <= before:
            return


class _Lines:
    """Prints events and the summary, and counts."""

    def __init__(self, out: TextIO, *, as_json: bool) -> None:
        self.out = out
        self.events = self.rejected = 0
        self._as_json = as_json
        self._colour = out.isatty()

    def show(self, outputs: Sequence[DriverOutput], at: datetime | None) -> None:
        from controller.cli import event_lines
        from devices.events import DeviceEvent, FrameRejected, to_json

        for event in outputs:
            if isinstance(event, DeviceEvent):
                self.events += 1
                self.rejected += isinstance(event, FrameRejected)
                found = to_json(event, at=at, masked=False)
                as_text = event_lines.as_json if self._as_json else self._text
                self.out.write(as_text(found) + "\n")

    def end(self, counted: Counters, size: int) -> None:
        """The last line."""
        from controller.cli import event_lines

        if self._as_json:
            summary = {
                "kind": "summary",
                "frames": counted.frames,
                "events": self.events,
                "repeats": counted.repeats,
                "rejected": self.rejected,
                "bytes": size,
            }
            self.out.write(event_lines.as_json(summary) + "\n")
        else:
            self.out.write(
                f"{counted.frames} frames, {self.events} events, {counted.repeats} repeats, "
                f"{self.rejected} rejected, {size} bytes\n"
            )
        self.out.flush()

    def _text(self, found: Mapping[str, Any]) -> str:
        from controller.cli import event_lines

        return event_lines.as_text(found, colour=self._colour)


def _paced(chunks: Iterator[bytes], rate: float) -> Iterator[Iterable[_Piece]]:
    """Bytes without times, back to back at `rate` bytes/s."""
    step = max(1, int(rate * STEP_S))
    size = 0
    for chunk in chunks:
        yield _stepped(chunk, size, step, rate)
        size += len(chunk)


def _stepped(chunk: bytes, before: int, step: int, rate: float) -> Iterator[_Piece]:
    """A chunk that `before` bytes have passed before."""
    for at in range(0, len(chunk), step):
        piece = chunk[at : at + step]
        yield piece, (before + at + len(piece)) / rate, None, True, False


def _recorded(file: str) -> Iterator[Iterable[_Piece]]:
    """The pieces of a capture with their own times. A file is looked through before anything is told."""
    from firmware_bridge.capture import read_capture

    if file == "-":
        if sys.stdin is None:
            raise CommandError(_NO_STDIN)
        yield from _timed(read_capture(sys.stdin.buffer, _name(file), _told))
        return
    with open(file, "rb") as source:  # noqa: PTH123 - errors shall name the file as it was typed
        if source.seekable():
            for _ in read_capture(source, file, lambda _: None):
                pass
            source.seek(0)
        yield from _timed(read_capture(source, file, _told))


def _timed(records: Iterator[Record]) -> Iterator[Iterable[_Piece]]:
    """Times that go back, as after a step of the recorder's clock, stand still for the driver."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    first, now = None, 0.0
    for record in records:
        first = record.at if first is None else first
        now = max(now, (record.at - first) / 1e9)
        at = epoch + timedelta(microseconds=record.at // 1000)
        for begin in range(0, len(record.data), CHUNK):
            data = record.data[begin : begin + CHUNK]
            yield ((data, now, at, record.inbound, record.packets),)


def _told(text: str) -> None:
    note(f"cutcard: {text}")


def _raw(file: str) -> Iterator[bytes]:
    if file == "-":
        if sys.stdin is None:
            raise CommandError(_NO_STDIN)
        stdin = cast("BufferedReader", sys.stdin.buffer)
        while chunk := stdin.read1(CHUNK):
            yield chunk
        return
    with open(file, "rb") as source:  # noqa: PTH123 - errors shall name the file as it was typed
        while chunk := source.read(CHUNK):
            if chunk.startswith(_PCAPNG) and source.tell() == len(chunk):
                _told(f"{file} looks like a capture and is read as raw bytes: did you mean --format pcapng?")
            yield chunk


def _hex(file: str) -> Iterator[bytes]:
    """Hex text: white space between digits and comments from # to the end of a line count for nothing."""
    gathered = bytearray()
    for chunk in _raw(file):
        gathered += chunk
        if len(gathered) > HEX_LIMIT:
            raise CommandError(
                f"{_name(file)}: hex text of more than {HEX_LIMIT >> 20} MiB is not read: "
                "give the bytes themselves, with --format raw"
            )
    text = gathered.decode("utf-8", "replace")
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
