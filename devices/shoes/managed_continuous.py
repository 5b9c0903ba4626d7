"""Driver of a managed continuous shuffler (docs/protocols/managed.md, section 4.7)."""

from __future__ import annotations

from typing import Any

from devices.base import CommandSpec
from devices.events import CardsReturned, Sense
from devices.managed.dialect import CommandDef, Dialect, Translated
from devices.managed.fields import Body, flag, known, text, token, uint
from devices.managed.messages import SHUFFLER
from devices.managed.spec import managed_spec
from devices.shoes import managed as shoe
from devices.shufflers import managed as shuffler


def _check_status(body: Body) -> dict[str, Any]:
    counts = dict.fromkeys(("inside", "cycle", "drawn"), uint)
    flags = dict.fromkeys(("door", "locked", "empty"), flag)
    return known(body, state=text, mode=text, token=token, **counts, **flags)


def translate(kind: str, body: Body) -> Translated | None:
    match kind:
        case "returned":
            return CardsReturned, {"count": uint(body, "count"), "inside": uint(body, "inside")}
        case "cut" | "lid":
            return None
        case _:
            return shoe.translate(kind, body) or shuffler.translate(kind, body)


DIALECT = Dialect(
    device_class="continuous",
    commands=(
        CommandDef(
            CommandSpec("status", "state of the shuffler and its exit", reads=True),
            SHUFFLER,
            0,
            _check_status,
        ),
        *(shuffler.DIALECT.find(name) for name in ("settings", "start", "abort", "report")),
        *(shoe.DIALECT.find(name) for name in ("lock", "unlock")),
    ),
    translate=translate,
)
SPEC = managed_spec(
    DIALECT,
    name="managed-continuous",
    role="shoe",
    games=frozenset({"blackjack"}),
    product=0x0006,
    senses=frozenset({Sense.BACK, Sense.EMPTY}),
)
