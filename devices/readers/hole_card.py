"""Driver of a hole-card reader (docs/protocols/managed.md, group 68): whether there is a natural, no more."""

from __future__ import annotations

from typing import Any

from devices.base import CommandSpec
from devices.events import HoleCardChecked
from devices.managed.dialect import CommandDef, Dialect, Discreet, Translated, fault
from devices.managed.fields import Body, Malformed
from devices.managed.messages import READER
from devices.managed.spec import managed_spec

_RESULTS = {"natural": "natural", "not natural": "not_natural", "error": "error"}
"""What the wire says, and the word for it in events and answers."""


def _check_peek(body: Body) -> dict[str, Any]:
    """The result alone: whatever else a device tells stays here (law 7)."""
    said = body.get("result")
    result = _RESULTS.get(said) if isinstance(said, str) else None
    if result is None:
        raise Malformed("result is neither natural nor not natural nor error")  # it is not quoted
    return {"result": result}


def translate(kind: str, body: Body) -> Translated | None:
    match kind:
        case "peek":
            return HoleCardChecked, _check_peek(body)
        case "fault":
            return fault(body)
        case _:
            return None


DIALECT = Dialect(
    device_class="reader",
    commands=(
        CommandDef(
            CommandSpec("peek", "look whether the hole card makes a natural; never its value", reads=True),
            READER, 0, _check_peek,
        ),
    ),
    translate=translate,
    maker=Discreet,
)  # fmt: skip
SPEC = managed_spec(
    DIALECT,
    name="hole-card-reader",
    role="reader",
    games=frozenset({"blackjack"}),
    product=0x0003,
)
