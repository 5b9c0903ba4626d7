"""`cutcard check`: is this table allowed, and is it written right?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from controller.cli import exits


def check(
    table: Annotated[Path, typer.Argument(metavar="TABLE.toml", help="the table's configuration")],
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Validate a table.toml: each problem on a line with its clause."""
    from controller import config

    loaded, problems = config.examine(table.read_bytes())
    notes = loaded.notes if loaded is not None else ()
    if as_json:
        found = [{"key": p.key, "text": p.text, "clause": p.clause} for p in problems]
        print(json.dumps({"ok": not problems, "problems": found, "notes": list(notes)}))
    else:
        for problem in problems:
            print(f"{table}: {problem}")
        for note in notes:
            print(f"{table}: note: {note}")
        if loaded is not None:
            rules = loaded.rules
            decks = f"{rules.decks} deck{'s' if rules.decks > 1 else ''}"
            batches = f"{len(rules.batches)} batches of {decks}" if len(rules.batches) > 1 else decks
            print(f"{table}: table {rules.table} is fine: {rules.played}, {batches}")
    raise typer.Exit(exits.USAGE if problems else exits.FINE)
