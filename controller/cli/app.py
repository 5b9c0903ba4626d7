"""The `cutcard` command: commands come from the entry-point group `cutcard.commands`, loaded when called.

An entry point is a plain function with typer annotations, or a `typer.Typer` with commands of its own.
A command reads the global options as `ctx.obj` (an `Options`).
"""

from __future__ import annotations

import difflib
import inspect
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from controller.cli import exits
from controller.cli.event_lines import printable

GROUP = "cutcard.commands"
OWN = {
    "run": "the daemon of one table",
    "do": "send one operator event to the running daemon",
    "status": "where the cards are, what is next, what is wrong",
    "alarms": "what is wrong since when, and who saw it",
    "faults": "latched faults, and clearing one",
    "check": "validate a table.toml, each problem with its clause",
    "demo": "play shoes on simulated devices",
    "sim": "one simulated device on a pty, a TCP port or a simulated USB bus",
    "ports": "what is plugged in, and the name to use for it",
    "send": "one command to a device, and what became of it",
    "monitor": "live device events of a port, read-only",
    "decode": "bytes of a file to device events",
    "capture": "record a wire to a file that Wireshark opens",
    "replay": "play a capture's device back on a pty or TCP port",
    "identify": "who is on a port, and whether it is approved",
    "firmware": "a device's images: list, upload, confirm, reset, echo",
    "gat": "what a device reports of its own programs",
    "import": "a device's log file to JSON lines",
    "journal": "verify, show, export or follow a journal",
    "machine": "the state machine as it runs",
    "bench": "the benchmark table",
    "campaign": "whole tables under seeded faults, judged by where the cards are",
}
"""One line a command of this house, in the order of --help, so that help loads none of them."""


@dataclass(frozen=True, slots=True)
class Options:
    """The global options of one call."""

    config: Path | None = None


class LazyGroup(TyperGroup):
    """A command group that finds names without importing what they name."""

    @cached_property
    def found(self) -> dict[str, metadata.EntryPoint]:
        return {point.name: point for point in metadata.entry_points(group=GROUP)}

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is typer's
        own = [name for name in OWN if name in self.found]
        return own + sorted(self.found.keys() - OWN.keys())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the signature is typer's
        point = self.found.get(cmd_name)
        if point is None:
            return None
        try:
            value = point.load()
        except (ImportError, AttributeError) as error:
            text = f"The command {cmd_name} cannot be loaded ({error}): install what provides it again."
            raise exits.CommandError(text) from error
        return _command(cmd_name, value)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if not name.startswith("-") and name not in self.found:
            near = difflib.get_close_matches(name, self.found, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise exits.CommandError(
                f"There is no command {name!r}.{hint} `cutcard --help` lists the commands."
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            settle(sys.stdout)
            raise typer.Exit(exits.FINE) from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, OWN.get(name) or self._summary(ctx, name)) for name in self.list_commands(ctx)]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def _summary(self, ctx: Any, name: str) -> str:
        try:
            return str(self.get_command(ctx, name).get_short_help_str(80))
        except exits.CommandError as error:
            return str(error)


def _command(name: str, value: Any) -> Any:
    """The value of an entry point as a click command."""
    if isinstance(value, typer.Typer):
        made = typer.main.get_command(value)
    else:
        single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        single.command(name, help=inspect.getdoc(value))(value)
        made = typer.main.get_command(single)
    made.name = name
    return made


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"cutcard {metadata.version('cutcard')}")
        raise typer.Exit


@app.callback()
def cutcard(
    ctx: typer.Context,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="table.toml of the table that is meant")
    ] = None,
    version: Annotated[  # noqa: ARG001 - acted on by its callback
        bool, typer.Option("--version", help="print the version", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Table-side controller for dealing shoes and automated card shufflers."""
    ctx.obj = Options(config)


def main(args: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code; users' mistakes never show a traceback."""
    words = list(sys.argv[1:] if args is None else args)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - it lives as long as the process
    try:
        if sys.stdout is None and "run" not in words[:3]:  # the daemon prints nothing
            raise exits.CommandError("standard output is closed: there is nowhere to print to")
        try:
            app(args=args, prog_name="cutcard")
        finally:
            if sys.stdout is not None:
                with suppress(BrokenPipeError):  # the verdict does not depend on who reads it
                    sys.stdout.flush()
    except BrokenPipeError:
        pass
    except Exception as error:
        code = exits.code_of(error)
        if code is None:
            raise
        lines = map(printable, exits.sentence(error).split("\n"))  # some quote what a device says
        with suppress(OSError):
            print("cutcard: " + "\n".join(lines), file=sys.stderr)
        sys.exit(code)
    finally:
        for stream in (sys.stdout, sys.stderr):
            settle(stream)


def settle(stream: TextIO | None) -> None:
    """A reader that left or a full disk must not change the exit code when the interpreter flushes last."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
