"""Driver of a managed shoe (docs/protocols/managed.md, group 67)."""

from __future__ import annotations

from typing import Any

from devices.base import CARD_GAMES, CommandSpec
from devices.events import DECK, JOKER, CardDrawn, CutCard, Lid, LockChanged, Sense, ShoeEmpty
from devices.managed.dialect import CommandDef, Dialect, Translated, fault
from devices.managed.fields import Body, flag, known, uint
from devices.managed.messages import SHOE
from devices.managed.spec import managed_spec

_CARDS = frozenset((*DECK, JOKER))


def _check_status(body: Body) -> dict[str, Any]:
    return known(body, locked=flag, lid=flag, empty=flag, drawn=uint)


def _check_lock(body: Body) -> dict[str, Any]:
    return {"locked": flag(body, "locked")}


def _card(body: Body) -> Translated:
    """A card that came out is a card, even when its name makes no sense."""
    card, back = body.get("c"), body.get("b")
    diag: tuple[str, ...] = ()
    if card is not None and not (isinstance(card, str) and card in _CARDS):
        card, diag = None, ("bad_card",)
    if back is not None and not isinstance(back, str):
        back, diag = None, (*diag, "bad_back")
    return CardDrawn, {"card": card, "back": back, "face_up": body.get("up") is True, "diag": diag}


def translate(kind: str, body: Body) -> Translated | None:
    match kind:
        case "card":
            return _card(body)
        case "cut":
            return CutCard, {}
        case "empty":
            return ShoeEmpty, {}
        case "lid":
            return Lid, {"open": flag(body, "open")}
        case "lock":
            return LockChanged, {"locked": flag(body, "locked")}
        case "fault":
            return fault(body)
        case _:
            return None


DIALECT = Dialect(
    device_class="shoe",
    commands=(
        CommandDef(CommandSpec("status", "state of the shoe", reads=True), SHOE, 0, _check_status),
        CommandDef(CommandSpec("lock", "lock the shoe: no card comes out"), SHOE, 1, _check_lock),
        CommandDef(CommandSpec("unlock", "unlock the shoe"), SHOE, 2, _check_lock),
    ),
    translate=translate,
)
SPEC = managed_spec(
    DIALECT,
    name="managed-shoe",
    role="shoe",
    games=CARD_GAMES,
    product=0x0002,
    senses=frozenset(Sense),
)
