"""`do`, `status`, `alarms` and `faults`: one question to the running daemon, over its control socket."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from controller.cli import note
from controller.cli.exits import CommandError, NoDaemon, RefusedByTable

SOCKET_VARIABLE = "CUTCARD_SOCKET"
RUNTIME_DIR = Path("/run/cutcard")
ANSWER_S = 10.0
"""Seconds to wait for an answer; a commit takes milliseconds."""
VERBS = frozenset({"do", "id", "get", "follow"})

Socket = Annotated[
    Path | None,
    typer.Option("--socket", metavar="PATH", help=f"control socket of the daemon (or ${SOCKET_VARIABLE})"),
]
Json = Annotated[bool, typer.Option("--json", help="the daemon's answer as one JSON object")]
Key = Annotated[
    str | None, typer.Option("--id", metavar="KEY", help="the same key twice is one event, safe to repeat")
]


def do(
    ctx: typer.Context,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="the operator event, e.g. bets_closed")],
    args: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE...", help="its arguments, e.g. boxes=1,2,5")
    ] = None,
    *,
    key: Key = None,
    as_json: Json = False,
    at: Socket = None,
) -> None:
    """Send one operator event to the running daemon; a refusal says what is expected instead."""
    request: dict[str, Any] = {"do": event}
    for arg in args or []:
        name, equals, value = arg.partition("=")
        if not equals or not name or name in VERBS:
            raise CommandError(f"{arg!r} is no argument of an event: write KEY=VALUE, e.g. box=3")
        if name in request:
            raise CommandError(f"{name} is given twice: write it once, e.g. {name}={request[name]}")
        request[name] = value
    _tap(ctx, at, request, key, as_json=as_json)


def status(ctx: typer.Context, as_json: Json = False, at: Socket = None) -> None:
    """What the table is doing, where the cards are, what is next and who may do it, what is wrong."""
    found = ask(find(ctx, at), {"get": "status"})["status"]
    if as_json:
        print(json.dumps(found))
    else:
        print("\n".join(note.status(found, datetime.now(UTC), bold=sys.stdout.isatty())))


def alarms(ctx: typer.Context, as_json: Json = False, at: Socket = None) -> None:
    """What is wrong, or was and nobody saw it: alarms and latched faults, who acknowledged, what to do."""
    _wrong(ctx, at, "alarms", as_json=as_json)


def _wrong(ctx: typer.Context, at: Path | None, what: str, *, as_json: bool) -> None:
    found = ask(find(ctx, at), {"get": what})[what]
    if as_json:
        print(json.dumps({what: found}))
    else:
        nothing = {"alarms": "no alarm and no latched fault", "faults": "no latched fault"}
        print("\n".join(note.alarms(found, datetime.now(UTC))) or nothing[what])


faults = typer.Typer(invoke_without_command=True, add_completion=False, rich_markup_mode=None)


@faults.callback()
def _faults(ctx: typer.Context, as_json: Json = False, at: Socket = None) -> None:
    """Latched faults: what each blocks, why, and what mends it. `faults clear ID` clears one."""
    if ctx.invoked_subcommand is not None:
        return
    _wrong(ctx, at, "faults", as_json=as_json)


@faults.command()
def clear(
    ctx: typer.Context,
    fault: Annotated[str, typer.Argument(metavar="ID", help="the fault's id, e.g. F12")],
    key: Key = None,
    as_json: Json = False,
    at: Socket = None,
) -> None:
    """Clear a latched fault: needs the cause gone, and the role of a supervisor or technician."""
    _tap(ctx, at, {"do": "clear", "fault": fault}, key, as_json=as_json)


def _tap(
    ctx: typer.Context, at: Path | None, request: dict[str, Any], key: str | None, *, as_json: bool
) -> None:
    if key is not None:
        request["id"] = key
    answer = ask(find(ctx, at), request)
    if as_json:
        print(json.dumps(answer), flush=True)
    if not answer["ok"]:
        raise RefusedByTable(_refusal(answer))
    if not as_json:
        print("\n".join(f"fact {fact['fact']}  {note.kind(fact)}" for fact in answer["facts"]))
        if any(fact["kind"] == "command_issued" for fact in answer["facts"]):
            print("a device was asked: `cutcard status` tells what comes of it")


def _refusal(answer: Mapping[str, Any]) -> str:
    clause = f" [{answer['clause']}]" if answer["clause"] else ""
    expected = f"; expected now: {', '.join(answer['expected'])}" if answer["expected"] else ""
    return f"refused ({answer['refused']}): {answer['why']}{clause}{expected}"


# --- the daemon ---


def find(ctx: typer.Context, at: Path | None) -> Path:
    """The control socket that is meant: --socket, --config, the environment, or the only one there is."""
    if at is not None:
        return at
    file: Path | None = getattr(ctx.obj, "config", None)
    if file is not None:
        return _of_config(file)
    if named := os.environ.get(SOCKET_VARIABLE):
        return Path(named)
    found = sorted(RUNTIME_DIR.glob("*.sock"))
    if len(found) > 1:
        names = ", ".join(path.stem for path in found)
        raise CommandError(f"several tables run here ({names}): say which with --socket or --config")
    if not found:
        raise NoDaemon(
            f"no daemon runs here: there is no socket in {RUNTIME_DIR}; start `cutcard run TABLE.toml`"
        )
    return found[0]


def _of_config(file: Path) -> Path:
    """Where the daemon of this table.toml listens; the rest of the file may have changed meanwhile."""
    import tomllib

    try:
        plain = tomllib.loads(file.read_text())
        named = plain.get("service", {}).get("socket")
        return Path(named) if named else RUNTIME_DIR / f"{plain['table']['id']}.sock"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(
            f"{file} names no control socket and no table: run `cutcard check {file}`"
        ) from error


def ask(path: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """Send one request and return its answer. Raises NoDaemon, or CommandError when it was not understood."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(ANSWER_S)
        try:
            sock.connect(str(path))
            sock.sendall(json.dumps(request).encode() + b"\n")
            with sock.makefile("rb") as stream:
                line = stream.readline()
        except PermissionError:
            raise NoDaemon(
                f"you may not use {path}: join the group cutcard and one of the role groups"
            ) from None
        except TimeoutError:
            raise NoDaemon(f"the daemon at {path} gave no answer in {ANSWER_S:.0f} s: see its log") from None
        except OSError as error:
            raise NoDaemon(
                f"no daemon answers at {path} ({error.strerror or error}); start `cutcard run TABLE.toml`"
            ) from None
    if not line.endswith(b"\n"):
        raise NoDaemon(f"the daemon at {path} went away before it answered; repeat with the same --id")
    answer: dict[str, Any] = json.loads(line)
    if not answer["ok"] and "error" in answer:
        raise CommandError(answer["error"])
    if not answer["ok"] and "get" in request:
        raise RefusedByTable(_refusal(answer))
    return answer
