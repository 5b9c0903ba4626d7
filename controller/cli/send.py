"""`cutcard send`: one command to one device, and the whole truth about what became of it."""

from __future__ import annotations

import difflib
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from controller.cli.decode import Options, driver_spec, set_up
from controller.cli.exits import DEVICE, REFUSED, USAGE, CommandError, RefusedByTable, code_of, sentence

if TYPE_CHECKING:
    from devices.base import CommandSpec, DriverSpec
    from firmware_bridge.link import Outcome

SESSION_S = 10.0
"""Seconds that a device may take until its session stands; a silent one shows after 1.5 s."""
FOREVER_S = 3600.0
TOKEN_BYTES = 16
TABLE_OPEN = "table_open"


class _Send(TyperCommand):
    """Its help, asked for after a driver's name, lists that driver's commands."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is click's
        return ["PORT --driver D COMMAND [ARGS]..."]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        super().format_epilog(ctx, formatter)
        if driver := ctx.params.get("driver"):
            spec = driver_spec(driver)
            if spec.options:
                with formatter.section(f"Keys of --option for {spec.name}"):
                    formatter.write_dl(list(spec.options.items()))
            with formatter.section(f"Commands of {spec.name}"):
                rows = [(_usage(c), f"{c.help}; {_effect(c)}") for c in spec.commands]
                formatter.write_dl(rows or [("none", "this device takes no command")])


send = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@send.command(cls=_Send)
def _send(
    port: Annotated[str, typer.Argument(metavar="PORT", help="serial:PATH, socket:HOST:PORT, usb:VID:PID")],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND [ARGS]...", help="what the device shall do", show_default=False),
    ] = None,
    *,
    driver: Annotated[
        str,
        typer.Option("--driver", metavar="D", is_eager=True, help="what is there; with --help: its commands"),
    ],
    options: Options = None,
    as_json: Annotated[bool, typer.Option("--json", help="the outcome as one JSON object")] = False,
) -> None:
    """Send one command and tell what became of it; `send --driver D --help` lists the commands of a driver.

    Exit code 0 only when the device said that it is done, or `accepted`: it took a command whose end it never
    tells; 4 when it refused, 3 when the command was not sent or nobody knows whether it happened. What may
    have happened is never given to the device again.
    A command whose recording (CUTCARD_CAPTURE) is refused or cannot be made is not sent: 4 or 2.
    """
    from controller.cli.event_lines import as_json as json_line
    from controller.cli.event_lines import printable
    from firmware_bridge.transports import parse_uri

    spec = set_up(driver_spec(driver), options)
    parse_uri(port)
    command, args, made = _understood(spec, words or [])
    end = _forbidden(command) or _carried_out(port, spec, command, args)
    if made and end.outcome in {"done", "unknown"}:
        print(f"token {made}: release will ask for it", file=sys.stderr, flush=True)
    if as_json:
        told = {"command": command.name, "outcome": end.outcome, "code": end.code, "answer": end.answer}
        _print(json_line(told))
    elif end.outcome == "done":
        _print("\n".join(_done(spec, command, end.answer or {})))
    if end.outcome != "done":
        raise NotDone(printable(end.text), end.exit)


def _print(text: str) -> None:
    """Whatever becomes of our output, the exit code tells what became of the command."""
    from controller.cli.app import settle
    from controller.cli.event_lines import output

    try:
        print(text, file=output(), flush=True)
    except OSError as error:
        settle(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            print(f"cutcard: the answer cannot be printed: {error.strerror}", file=sys.stderr, flush=True)


class NotDone(CommandError):
    """The device did not say that it is done."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class End:
    """What became of the command. `code` is the device's own, or what kept us from sending."""

    outcome: str
    text: str = ""
    code: str | None = None
    answer: Mapping[str, Any] | None = None
    exit: int = DEVICE


# What is asked for


def _understood(spec: DriverSpec, words: Sequence[str]) -> tuple[CommandSpec, dict[str, str], str | None]:
    """The command, its arguments by name, and the token that was made for it. Raises CommandError."""
    names = [c.name for c in spec.commands]
    known = f"{spec.name} knows {', '.join(names) or 'no commands'}"
    if not words:
        raise CommandError(f"no command given: {known}")
    command = next((c for c in spec.commands if c.name == words[0]), None)
    if command is None:
        near = difflib.get_close_matches(words[0].lower(), names, 1, 0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise CommandError(f"there is no command {words[0]!r}{hint} ({known})")
    given, made = list(words[1:]), None
    if command.makes_token and len(given) == len(command.args) - 1:
        made = os.urandom(TOKEN_BYTES).hex()
        given.append(made)
    if len(given) != len(command.args):
        raise CommandError(f"{command.name} was given {len(given)} arguments; write: {_usage(command)}")
    args = dict(zip(command.args, given, strict=True))
    try:
        spec.check(command.name, args)
    except ValueError as wrong:
        raise CommandError(f"{_usage(command)}: {wrong}") from wrong
    return command, args, made


def _usage(command: CommandSpec) -> str:
    args = [name.upper() for name in command.args]
    if command.makes_token:
        args[-1] = f"[{args[-1]}]"
    return " ".join([command.name, *args])


def _effect(command: CommandSpec) -> str:
    if command.moves_cards:
        return "moves cards"
    return "only asks" if command.reads else "moves no card"


def _forbidden(command: CommandSpec) -> End | None:
    """Cards of an open table are moved by its daemon alone."""
    from controller.open_tables import any_open

    if not command.moves_cards or not any_open():
        return None
    text = (
        f"{command.name} moves cards, and a table is open on this machine: only its daemon may move them; "
        "close the table and stop its daemon first"
    )
    return End("refused", text, TABLE_OPEN, exit=REFUSED)


# What becomes of it


class _Talk:
    """What the port delivers: whether the session stands, how the command ended, what went wrong before."""

    def __init__(self) -> None:
        self.up = False
        self.outcome: Outcome | None = None
        self.trouble: tuple[str, str] | None = None

    def take(self, name: str, outputs: Sequence[object]) -> None:
        """The port's `deliver`. Events are not shown: some carry cards."""
        del name
        from devices.events import LinkDown, LinkUp
        from devices.managed.session import RESTARTED
        from firmware_bridge.link import Complete
        from firmware_bridge.port import Crashed, Unavailable

        for output in outputs:
            match output:
                case LinkUp():
                    self.up = True
                case LinkDown(reason=reason):
                    self.up = False
                    if reason != RESTARTED:
                        self.trouble = self.trouble or ("link_down", reason)
                case Unavailable(kind, text):
                    self.trouble = self.trouble or (kind.lower(), text)
                case Complete(outcome=outcome):
                    self.outcome = outcome
                case Crashed(error, where):
                    print(f"{error} at {where}", file=sys.stderr, flush=True)


def _carried_out(port: str, spec: DriverSpec, command: CommandSpec, args: Mapping[str, str]) -> End:
    from random import SystemRandom

    from controller.cli.signals import ended_by_signals
    from controller.cli.wires import open_wire
    from devices.base import Setup
    from firmware_bridge.clock import SystemClock
    from firmware_bridge.link import Unknown
    from firmware_bridge.port import Port
    from firmware_bridge.transports import parse_uri

    setup = Setup(spec.name, SystemRandom(), packets=parse_uri(port).packets)
    try:
        wire = open_wire(port, spec, write=True)
    except (CommandError, OSError) as error:  # a recording that was asked for and cannot be had
        code = TABLE_OPEN if isinstance(error, RefusedByTable) else "capture"
        return End("not_sent", _not_sent(command, sentence(error)), code, exit=code_of(error) or USAGE)
    clock, talk, given = SystemClock(), _Talk(), False
    pumped = Port(spec.name, wire, spec.controlled(setup), clock, talk.take)
    until = clock.now() + SESSION_S
    with ended_by_signals(wire.stop) as ending:
        try:
            while talk.outcome is None and talk.trouble is None and ending.by is None:
                if talk.up and not given:
                    given = True
                    pumped.command(command.name, command.name, args)
                elif not given and clock.now() >= until:
                    talk.trouble = ("silent", f"the device gave no session within {SESSION_S:g} s")
                    break
                pumped.step(FOREVER_S if given else until - clock.now())
            hint, trouble = pumped.health().hint, talk.trouble
            if ending.by is not None or trouble is None:
                trouble = ("interrupted", f"{ending.by} came first")
        finally:
            pumped.close()
    outcome = talk.outcome
    if outcome is None and given:
        outcome = Unknown("our own program lost sight of it")
    if outcome is None:
        return End("not_sent", _not_sent(command, _joined(trouble[1], hint)), trouble[0])
    return _ended(spec, command, outcome, ending.by, hint)


def _ended(spec: DriverSpec, command: CommandSpec, outcome: Outcome, by: str | None, hint: str | None) -> End:
    """The end of a command that the driver has got; `by` is the signal that ended the wait, if any."""
    from firmware_bridge.link import Done, NotSent, Refused

    asks = any(c.name == "status" and c.reads for c in spec.commands)
    match outcome:
        case Done(answer):
            return End("done", answer=answer)
        case Refused(code, name):
            text = f"the device refused {command.name} ({name}, its code {code}): nothing happened; "
            text += "ask `status` what state it is in" if asks else "look at the device"
            return End("refused", text, code, exit=REFUSED)
        case NotSent(reason):
            return End("not_sent", _not_sent(command, f"{by} came first" if by else _joined(reason, hint)))
    why = f"{by} came before the answer" if by else _joined(outcome.reason, hint)
    if command.reads:
        return End("unknown", f"{command.name} was not answered ({why}): it only asks, so ask again")
    look = "look at the device" + (" or ask `status`" if asks else "")
    text = f"nobody knows what became of {command.name} ({why}): it was sent and may have happened; {look} "
    return End("unknown", text + "before anything is repeated")


def _not_sent(command: CommandSpec, why: str) -> str:
    return f"{command.name} was not sent: {why}"


def _joined(why: str, hint: str | None) -> str:
    return why if hint is None else f"{why}; {hint}"


def _done(spec: DriverSpec, command: CommandSpec, answer: Mapping[str, Any]) -> Iterator[str]:
    if answer.get("done", True) is None:
        yield _row(command.name, "accepted")
        yield _row("", "the device never tells when it is done, or that it is not: look at it")
        return
    yield _row(command.name, "done")
    for key, value in answer.items():
        yield _row(key, _word(value))
    if command.moves_cards:
        yield _row("", "the device took it; cards move until it says otherwise")
        if spec.role == "shuffler":
            yield _row("", "a table takes no batch from here: it shuffles each in a cycle of its own")


def _row(name: str, text: str) -> str:
    from controller.cli.event_lines import printable

    first, *more = textwrap.wrap(printable(text), 96) or [""]
    return "\n".join([f"{printable(name):<11} {first}", *(f"{'':<11} {line}" for line in more)])


def _word(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return ", ".join(f"{key} {_word(item)}" for key, item in value.items()) or "none"
        case _:
            return str(value)
