"""Driver of a managed shoe that dispenses stacks (docs/protocols/managed.md, section 4.8)."""

from __future__ import annotations

from typing import Any

from devices.base import CommandSpec
from devices.events import Jam, Sense
from devices.managed.dialect import CommandDef, Dialect, Translated
from devices.managed.fields import Body, flag, known, number_argument, text, uint
from devices.managed.messages import SHOE
from devices.managed.spec import managed_spec
from devices.shoes import managed as shoe


def _check_status(body: Body) -> dict[str, Any]:
    return known(body, locked=flag, lid=flag, empty=flag, drawn=uint, dispensing=flag)


def _check_dispense(body: Body) -> dict[str, Any]:
    return {"count": uint(body, "count")}


def translate(kind: str, body: Body) -> Translated | None:
    match kind:
        case "jam":
            return Jam, {"place": text(body, "place"), "attempt": uint(body, "attempt")}
        case "cut":
            return None
        case _:
            return shoe.translate(kind, body)


DIALECT = Dialect(
    device_class="stack-shoe",
    commands=(
        CommandDef(CommandSpec("status", "state of the shoe", reads=True), SHOE, 0, _check_status),
        *(shoe.DIALECT.find(name) for name in ("lock", "unlock")),
        CommandDef(
            CommandSpec(
                "dispense", "let COUNT cards out, when DRAWN have come out so far",
                args=("count", "drawn"), moves_cards=True,
            ),
            SHOE, 3, _check_dispense, number_argument,
        ),
    ),
    translate=translate,
)  # fmt: skip
SPEC = managed_spec(
    DIALECT,
    name="managed-stack-shoe",
    role="shoe",
    games=frozenset({"three-card-poker", "mississippi-stud", "asia-poker"}),
    product=0x0007,
    senses=frozenset({Sense.BACK, Sense.EMPTY}),
)
