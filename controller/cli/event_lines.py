"""Device events as lines for `decode` and `monitor`: one JSON object each, or aligned text for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from controller.cli.exits import CommandError

_COMMON = frozenset({"kind", "device", "n", "at", "raw", "seq"})
_WITH_RAW = frozenset({"frame_rejected", "conflict"})
_COLOURS = {
    "frame_rejected": "red",
    "conflict": "red",
    "fault_raised": "red",
    "gap_possible": "yellow",
    "alignment_required": "yellow",
    "link_down": "yellow",
    "rebooted": "yellow",
    "warning": "yellow",
    "cut_card": "cyan",
}


def output() -> TextIO:
    """Standard output, able to show any text. Raises CommandError when it is closed."""
    out: TextIO | None = sys.stdout
    if out is None:
        raise CommandError("standard output is closed: give it a file or a pipe to write to")
    reconfigure = getattr(out, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return out


def printable(text: str) -> str:
    """The text without anything that a terminal would obey: such characters become escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def note(text: str) -> None:
    """A line for people beside the output, on standard error: it may quote what a device says of itself."""
    print(printable(text), file=sys.stderr, flush=True)


def as_json(event: Mapping[str, Any]) -> str:
    """One line of plain ASCII: right in every encoding and harmless on every terminal."""
    return json.dumps(event, separators=(",", ":")).replace("\x7f", "\\u007f")


def as_text(event: Mapping[str, Any], *, colour: bool) -> str:
    """One aligned line; a card that was not read, or is hidden, shows as `?`."""
    kind = f"{event['kind']:<18}"
    if colour and event["kind"] in _COLOURS:
        import typer

        kind = typer.style(kind, fg=_COLOURS[event["kind"]])
    time = f"{event['at'][11:23]}  " if event["at"] else ""
    seq = "-" if event["seq"] is None else event["seq"]
    return f"{time}{event['n']:>6}  {printable(str(seq)):>6}  {kind}  {printable(_details(event))}".rstrip()


def _details(event: Mapping[str, Any]) -> str:
    words = [
        f"{key}={_word(value)}" for key, value in event.items() if key not in _COMMON and _shown(key, value)
    ]
    if event["kind"] in _WITH_RAW and event["raw"]:
        words.append(f"raw={event['raw']}")
    return " ".join(words)


def _shown(key: str, value: Any) -> bool:
    if key == "card":
        return True
    if isinstance(value, bool):
        return value is not _usual(key)
    return value is not None and value not in ([], {})


def _usual(key: str) -> bool:
    return key in {"in_game", "aligned"}


def _word(value: Any) -> str:
    match value:
        case None:
            return "?"
        case bool():
            return "yes" if value else "no"
        case list():
            return ",".join(map(str, value))
        case dict():
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        case str() if " " in value or not value or not value.isprintable():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)
