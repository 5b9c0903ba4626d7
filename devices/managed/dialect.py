"""What one class of managed device adds to the common protocol: its commands and its events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from devices.base import CommandSpec, Maker
from devices.events import (
    DeviceEvent,
    FaultCleared,
    FaultRaised,
    GapPossible,
    Warning,  # noqa: A004 - the contract's event kind is `warning`
)
from devices.managed.fields import Body, Malformed, flag, text, token_argument
from devices.managed.messages import RingEntry
from firmware_bridge.smp import Op

UNKNOWN_EVENT, MALFORMED_EVENT, EVENT_WITHHELD = "unknown_event", "malformed_event", "event_withheld"
"""Codes of warnings: words of ours, never a device's (law 7)."""

Translated = tuple[type[DeviceEvent], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class CommandDef:
    """One command: how it looks to people, on the wire, and what a right answer is.

    `argument` makes what goes over the wire of an argument, or raises Malformed.
    """

    spec: CommandSpec
    group: int
    command: int
    check: Callable[[Body], dict[str, Any]]
    argument: Callable[[Any], Any] = token_argument

    @property
    def op(self) -> Op:
        return Op.READ if self.spec.reads else Op.WRITE

    def body(self, args: Body) -> dict[str, Any]:
        """The request's body. Raises Malformed with a text for people."""
        if set(args) != set(self.spec.args):
            raise Malformed(f"{self.spec.name} takes {', '.join(self.spec.args) or 'no arguments'}")
        return {name: self.argument(value) for name, value in args.items()}


class Discreet(Maker):
    """Events without anything as it came over the wire: of this device even a stray byte may tell a card."""

    __slots__ = ()

    def __call__(self, kind: type[DeviceEvent], now: float, **fields: Any) -> DeviceEvent:
        kept = {name: "" if name == "text" else value for name, value in fields.items() if name != "raw"}
        return super().__call__(kind, now, **kept)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one class of device adds to the common protocol.

    `translate` gives the event for a ring entry of kind `k`, None for a kind it doesn't know, and raises
    Malformed. `maker` makes its events.
    """

    device_class: str
    commands: tuple[CommandDef, ...]
    translate: Callable[[str, Body], Translated | None]
    maker: type[Maker] = Maker

    @property
    def status(self) -> CommandDef | None:
        """The command whose answer a session starts with, None where a device has none."""
        return next((c for c in self.commands if c.spec.name == "status"), None)

    def find(self, name: str) -> CommandDef:
        """The command of that name. Raises Malformed with a text for people."""
        found = next((c for c in self.commands if c.spec.name == name), None)
        if found is None:
            names = ", ".join(c.spec.name for c in self.commands)
            raise Malformed(f"a managed {self.device_class} has no command {name!r}: it knows {names}")
        return found

    def body(self, name: str, args: Body) -> dict[str, Any]:
        """The request's body of that command. Raises Malformed with a text for people."""
        return self.find(name).body(args)


def fault(body: Body) -> Translated:
    """The event kind `fault`, which any device may have."""
    code = body.get("code")
    if isinstance(code, bool) or not isinstance(code, int | str):
        raise Malformed("code is neither number nor text")
    kind = FaultRaised if flag(body, "on") else FaultCleared
    return kind, {"code": str(code), "name": text(body, "name")}


def translated(dialect: Dialect, entry: RingEntry, event: Maker, now: float) -> list[DeviceEvent]:
    """The device event of one ring entry; one that nobody understands is told as a warning.

    A broken event of a known kind may have been a card: it also counts as missing.
    """
    given: dict[str, Any] = {"seq": entry.n, "raw": entry.raw}
    try:
        found = dialect.translate(entry.kind, entry.body)
    except Malformed as wrong:
        gap = event(GapPossible, now, missing=1)
        return [gap, event(Warning, now, **given, code=MALFORMED_EVENT, diag=(str(wrong),))]
    kind, fields = found or (Warning, {"code": UNKNOWN_EVENT})
    return [event(kind, now, **given, **fields)]
