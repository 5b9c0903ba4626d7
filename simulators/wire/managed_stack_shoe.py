"""The firmware of a shoe that dispenses stacks (docs/protocols/managed.md, section 4.8)."""

from __future__ import annotations

from typing import Any

from simulators.models.machine import CannotDo, Happening
from simulators.models.stack_shoe import StackShoe
from simulators.wire.device import Refused
from simulators.wire.managed_shoe import ManagedShoe
from simulators.wire.smp import BAD_BODY, BUSY, NO_CARDS, OPEN, SHOE, WRITE, WRONG_STATE, Body, number

_WHY = {"busy": BUSY, "lid": OPEN, "locked": WRONG_STATE, "counts": WRONG_STATE, "empty": NO_CARDS}


class ManagedStackShoe(ManagedShoe):
    product = "SIM-STACK-SHOE"
    kind = "stack-shoe"

    def __init__(self, shoe: StackShoe, *, serial: str = "SS0001", decks: int = 1, **options: Any) -> None:
        super().__init__(shoe, serial=serial, decks=decks, **options)
        self.stacks = shoe
        self._commands[SHOE, 3, WRITE] = self._dispense

    def event_of(self, happening: Happening) -> tuple[str, Body] | None:
        if happening.kind == "jam":
            return "jam", happening.data
        return super().event_of(happening)

    def _status(self, body: Body) -> Body:
        return {**super()._status(body), "dispensing": self.stacks.dispensing}

    def _dispense(self, body: Body) -> Body:
        count, drawn = number(body, "count"), number(body, "drawn")
        if count < 1:
            raise Refused(BAD_BODY)
        try:
            return {"count": self.stacks.dispense(count, drawn)}
        except CannotDo as no:
            raise Refused(_WHY[no.why]) from None
