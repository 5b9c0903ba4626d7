"""`cutcard journal verify|show|export|tail PATH`: read a journal, live or copied, without touching it."""

from __future__ import annotations

import csv
import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from controller.cli import exits
from controller.factlog import Verdict
from controller.journal import JournalReader, verify
from controller.record import Entry
from controller.render import ENVELOPE, Visible, entry_json, utc, visible

FOLLOW_SECONDS = 0.25
"""How long `tail -f` waits between two looks: one read transaction of well under a millisecond each."""
PROGRESS_SECONDS = 2.0

journal = typer.Typer(
    help="Verify, show, export or follow a journal.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

PathArgument = Annotated[Path, typer.Argument(metavar="PATH", help="the journal file")]
KeyOption = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="seal key: shows cards exposed or collected by now"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="one JSON object a line")]
SinceOption = Annotated[int, typer.Option("--since", metavar="FACT", min=0, help="only facts after this one")]


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"


@journal.command("verify")
def verify_command(
    path: PathArgument,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="seal key: opens every seal as well")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Check the whole hash chain. Exit code 1 names the first bad fact."""
    has_wal = _wal_beside(path)
    verdict = verify(path, key, _progress())
    if as_json:
        _print(json.dumps(_verdict_json(path, verdict, seals=key is not None, has_wal=has_wal)))
    else:
        _print(_verdict_text(verdict, seals=key is not None, has_wal=has_wal))
    if not verdict.ok:
        raise typer.Exit(exits.FOUND)


@journal.command("show")
def show_command(
    path: PathArgument, key: KeyOption = None, since: SinceOption = 0, as_json: JsonOption = False
) -> None:
    """Print the facts, a line each."""
    with JournalReader(path, key) as reader:
        seen = _seen(reader)
        for entry in reader.entries(since):
            _print(_line(entry, seen, as_json=as_json))


@journal.command("export")
def export_command(
    path: PathArgument,
    key: KeyOption = None,
    form: Annotated[Format, typer.Option("--format", help="JSON lines or CSV")] = Format.JSONL,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="write here, not to the screen")
    ] = None,
    since: SinceOption = 0,
) -> None:
    """Write the facts as JSON lines or CSV."""
    with JournalReader(path, key) as reader, _sink(output, path) as sink:
        seen = _seen(reader)
        rows = (entry_json(entry, masked=entry.seq not in seen) for entry in reader.entries(since))
        if form is Format.JSONL:
            sink.writelines(f"{json.dumps(row)}\n" for row in rows)
        else:
            _write_csv(sink, rows)


@journal.command("tail")
def tail_command(
    path: PathArgument,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="go on as facts are committed")] = False,
    count: Annotated[int, typer.Option("-n", metavar="COUNT", min=0, help="begin with the last COUNT")] = 10,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the last facts; with -f also those to come, until interrupted.

    A card is shown or not as it stands when its line is printed.
    """
    with JournalReader(path, key) as reader:
        seen, last, kept = Visible(), 0, deque[Entry](maxlen=count)
        for entry in reader.entries():
            seen.note(entry)
            kept.append(entry)
            last = entry.seq
        for entry in kept:
            _print(_line(entry, seen, as_json=as_json))
        try:
            while follow:
                sys.stdout.flush()
                time.sleep(FOLLOW_SECONDS)
                fresh = list(reader.entries(last))
                for entry in fresh:
                    seen.note(entry)
                for entry in fresh:
                    _print(_line(entry, seen, as_json=as_json))
                    last = entry.seq
        except KeyboardInterrupt:
            return


def _seen(reader: JournalReader) -> Visible:
    watch = _progress()

    def watched() -> Iterator[Entry]:
        for entry in reader.entries():
            watch(entry.seq)
            yield entry

    return visible(watched())


def _line(entry: Entry, seen: Visible, *, as_json: bool) -> str:
    shown = entry_json(entry, masked=entry.seq not in seen)
    if as_json:
        return json.dumps(shown)
    values = " ".join(f"{name}={_value(value)}" for name, value in shown.items() if name not in ENVELOPE)
    return f"{entry.seq:>7}  {shown['at']}  {shown['source']:<10}  {shown['kind']:<20}  {values}".rstrip()


def _value(value: Any) -> str:
    """Text as it is when that is unmistakable, else JSON, which also disarms terminal control characters."""
    if isinstance(value, str) and value.isalnum() and value.isascii():
        return value
    return json.dumps(value)


def _write_csv(sink: TextIO, rows: Iterable[dict[str, Any]]) -> None:
    """The envelope in columns, the values of the fact as one JSON object in the last."""
    table = csv.writer(sink, lineterminator="\n")
    table.writerow([*ENVELOPE, "data"])
    for row in rows:
        rest = {name: value for name, value in row.items() if name not in ENVELOPE}
        table.writerow([*(row[name] for name in ENVELOPE), json.dumps(rest)])


@contextmanager
def _sink(output: Path | None, source: Path) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
        return
    own = {source.resolve().with_name(source.resolve().name + end) for end in ("", "-wal", "-shm", "-lock")}
    if output.resolve() in own:
        raise exits.CommandError(f"{output} belongs to the journal itself: name another output file")
    with output.open("w", newline="") as file:
        yield file


def _verdict_json(path: Path, verdict: Verdict, *, seals: bool, has_wal: bool) -> dict[str, Any]:
    return {
        "path": str(path),
        "verified": verdict.ok,
        "entries": verdict.entries,
        "last": verdict.last_seq,
        "at": None if verdict.last_wall_ms is None else utc(verdict.last_wall_ms),
        "hash": verdict.last_hash.hex(),
        "seals": seals,
        "wal": has_wal,
        "bad_fact": verdict.bad_seq,
        "why": verdict.why or None,
    }


def _verdict_text(verdict: Verdict, *, seals: bool, has_wal: bool) -> str:
    last = f"fact {verdict.last_seq}"
    if verdict.last_wall_ms is not None:
        last += f" of {utc(verdict.last_wall_ms)}"
    if not verdict.ok:
        good = f"The last good one is {last}." if verdict.entries else "No fact before it is good."
        return f"DAMAGED at fact {verdict.bad_seq}: {verdict.why}. {good}"
    lines = [
        f"whole: {verdict.entries} facts, the last is {last}",
        f"hash   {verdict.last_hash.hex()}",
        f"seals  {'all opened' if seals else 'not checked (no --key)'}",
    ]
    if not has_wal:
        lines.append(
            f"There is no -wal file beside it. If this is a copy of a running journal, facts after "
            f"{verdict.last_seq} are missing from the copy."
        )
    return "\n".join(lines)


def _wal_beside(path: Path) -> bool:
    wal = path.resolve().with_name(path.resolve().name + "-wal")
    return wal.exists() and wal.stat().st_size > 0


def _progress() -> Callable[[int], None]:
    """Tells people on a terminal how far a long read is."""
    due = time.monotonic() + PROGRESS_SECONDS
    on = sys.stderr.isatty()

    def watch(seq: int) -> None:
        nonlocal due
        if on and time.monotonic() >= due:
            due = time.monotonic() + PROGRESS_SECONDS
            sys.stderr.write(f"... {seq} facts read\n")

    return watch


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
