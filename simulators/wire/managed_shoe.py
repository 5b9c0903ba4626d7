"""The managed shoe's firmware (docs/protocols/managed.md, section 4.4)."""

from __future__ import annotations

from typing import Any

from simulators.models.machine import Happening
from simulators.models.shoe import Shoe
from simulators.wire.managed import Command, ManagedDevice
from simulators.wire.smp import DEVICE, EVENTS, OS, READ, SHOE, WRITE, Body


class ManagedShoe(ManagedDevice):
    product = "SIM-SHOE"
    kind = "shoe"
    groups = frozenset({OS, DEVICE, EVENTS, SHOE})

    def __init__(self, shoe: Shoe, *, serial: str = "SH0001", decks: int = 6, **options: Any) -> None:
        super().__init__(shoe, serial=serial, **options)
        self.shoe = shoe
        self._settings: dict[str, Any] = {"decks": decks, "cards_per_deck": 52, "recognition": True}
        self._commands |= {(SHOE, 0, READ): self._status, **locking(shoe)}

    def event_of(self, happening: Happening) -> tuple[str, Body] | None:
        data = happening.data
        match happening.kind:
            case "drawn":
                return card_event(data)
            case "cutting_card":
                return "cut", {}
            case "emptied":
                return "empty", {}
            case "lid":
                return "lid", {"open": data["open"]}
            case "lock":
                return "lock", {"locked": data["locked"]}
        return None

    def settings(self) -> dict[str, Any]:
        return self._settings

    def _status(self, _: Body) -> Body:
        shoe = self.shoe
        return {"locked": shoe.locked, "lid": shoe.lid_open, "empty": shoe.empty, "drawn": shoe.drawn}


def card_event(data: Body) -> tuple[str, Body]:
    """What the ring tells of a card that left."""
    keys = {"c": data["face"], "b": data["back"]}
    return "card", keys | {"up": True} if data["up"] else keys


def locking(shoe: Shoe) -> dict[tuple[int, int, int], Command]:
    """The commands lock and unlock."""

    def to(locked: bool) -> Command:
        def command(_: Body) -> Body:
            shoe.set_lock(locked)
            return {"locked": locked}

        return command

    return {(SHOE, 1, WRITE): to(True), (SHOE, 2, WRITE): to(False)}
