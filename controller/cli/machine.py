"""`cutcard machine`: the state machine as it runs."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    MERMAID = "mermaid"
    TEXT = "text"


def machine(
    form: Annotated[Format, typer.Option("--format", help="how to print it")] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Print the state machine: phases, the events that lead on, and their guards."""
    from controller.table.machine import mermaid, rows, table

    if as_json:
        print(json.dumps({"transitions": rows()}))
        return
    print(mermaid() if form is Format.MERMAID else table(), end="")
