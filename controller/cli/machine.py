"""`cutcard machine`: the state machine as it runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    MERMAID = "mermaid"
    TEXT = "text"


def machine(
    form: Annotated[Format, typer.Option("--format", help="how to print it")] = Format.TEXT,
) -> None:
    """Print the state machine: phases, the events that lead on, and their guards."""
    from controller.table.machine import mermaid, table

    print(mermaid() if form is Format.MERMAID else table(), end="")
