"""`cutcard import`: log files of devices to JSON lines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import_log = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True
)


@import_log.callback()
def _import() -> None:
    """A device's log file to JSON lines."""


@import_log.command()
def deckmate1(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="what the machine printed on its service port")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="no words for people beside the JSON lines on standard output")
    ] = False,
) -> None:
    """The history log of a Deck Mate 1: one JSON object a record, in the file's order, then a summary.

    Every record keeps its line. What looks wrong (year 00, a count that went back) is noted, never mended.
    """
    from controller.cli import event_lines
    from devices.importers import deckmate1 as log

    text = file.read_bytes().decode("latin-1")  # each byte is a character: `raw` is the line as it was
    out = event_lines.output()
    records = []
    for record in log.parse(text):
        records.append(record)
        out.write(event_lines.as_json(record.as_json()) + "\n")
    found = log.summary(records, log.count_lines(text))
    out.write(event_lines.as_json(found) + "\n")
    out.flush()
    if not as_json:
        for line in _words(found, known=any(r.kind != "unknown" for r in records)):
            print(line, file=sys.stderr)


def _words(found: dict[str, Any], *, known: bool) -> list[str]:
    """The summary for people."""
    from controller.cli.event_lines import printable

    if not known:
        return ["nothing in this file looks like a Deck Mate 1 log: is it the right one?"]
    serial = "not told" if found["serial"] is None else printable(found["serial"])
    counted = f"{found['lines']} lines, {found['records']} records, {sum(found['events'].values())} events"
    lines = [f"serial number {serial}; {counted}, {found['unknown']} unknown lines"]
    if found["notes"]:
        wrong = ", ".join(f"{note} {count}" for note, count in found["notes"].items())
        lines.append(f"looks wrong: {wrong}; the order is the file's, the machine's dates prove nothing")
    return lines
