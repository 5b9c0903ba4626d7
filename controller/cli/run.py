"""`cutcard run`: the daemon of one table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from controller.cli.exits import CommandError
from controller.cli.wires import VARIABLE


def run(
    table: Annotated[Path, typer.Argument(metavar="TABLE.toml", help="the table's configuration")],
    log_level: Annotated[
        str, typer.Option("--log-level", help="debug, info, warning, error or critical", metavar="LEVEL")
    ] = "info",
) -> None:
    """Run the daemon of one table until SIGTERM, which stops it at the next safe point."""
    from controller import config, daemon, log

    if log_level not in log.LEVELS:
        raise CommandError(f"--log-level takes one of {', '.join(log.LEVELS)}, not {log_level!r}")
    loaded = config.load(table)
    log.configure(log_level)
    logger = log.get()
    if os.environ.get(VARIABLE):
        logger.warning(
            "capture ignored",
            variable=VARIABLE,
            why="the wire of an open table shows cards nobody may see yet",
        )
    for note in loaded.notes:
        logger.warning("check notes", note=note)
    raise typer.Exit(daemon.serve(loaded, logger, os.environ))
