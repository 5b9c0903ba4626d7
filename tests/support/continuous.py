"""A table with a continuous shuffler, driven by hand: one device shuffles, deals and takes cards back."""

from __future__ import annotations

from typing import Any

from controller.table.draft import Decision
from controller.table.profiles import Burn
from devices import events as ev
from devices.events import DECK, Sense
from tests.support.table import BATCHES, Table, table_rules

DEVICE = "csm"
CONTINUOUS: dict[str, Any] = {
    "mode": "continuous",
    "batches": BATCHES[:1],
    "shoe": DEVICE,
    "shuffler": DEVICE,
    "shoe_senses": frozenset({Sense.BACK, Sense.EMPTY}),
    "cutting_card": False,
    "burn": Burn.NEVER,
}


class ContinuousTable(Table):
    """`stack` are the cards inside, `used` those in the rack; the machine deals from any place."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(table_rules(**{**CONTINUOUS, **changes}))
        self.counts = {DEVICE: 0}
        self.stack: list[str] = []
        self.used: list[str] = []
        self.lying: list[str] = []
        self.drawn = 0

    def event(self, kind: type[ev.DeviceEvent], device: str = DEVICE, **fields: Any) -> Decision:
        return super().event(kind, DEVICE, **fields)

    def up(self, boot: int = 1, **status: Any) -> None:
        told = {
            "state": "dealing" if self.stack else "empty",
            "cycle": self.cycle,
            "token": self.token,
            "inside": len(self.stack),
            "empty": not self.stack,
            "drawn": self.drawn,
            **status,
        }
        self.event(ev.LinkUp, boot=boot, identity={"serial": "CS1", "firmware": "1"}, status=told)

    def load(self, batch: str = "A") -> None:
        """The batch is loaded and its first shuffle proved: the table deals."""
        self.tap("load_shuffler", batch=batch)
        self.start()
        self.complete()
        self.stack = [card for card in DECK for _ in range(self.rules.decks)]
        self.random.shuffle(self.stack)
        self.drawn = 0

    def open_to_deal(self) -> None:
        self.boot()
        self.up()
        self.open()
        self.load()

    def draw(self, **changes: Any) -> str:
        card = super().draw(**changes)
        self.drawn += 1
        self.lying.append(card)
        return card

    def settle(self) -> None:
        self.tap("round_settled")
        self.used += self.lying
        self.lying = []

    def give_back(self, count: int, told: int | None = None, inside: int | None = None) -> None:
        """`count` used cards go in; the machine tells `told` of them and holds `inside`."""
        self.stack += self.used[:count]
        del self.used[:count]
        self.random.shuffle(self.stack)
        self.event(
            ev.CardsReturned,
            count=count if told is None else told,
            inside=len(self.stack) if inside is None else inside,
        )

    def play_round(self, boxes: str = "1,2,5", extra: int = 2) -> None:
        """A whole round; once it is dealt, the cards of the rack go back."""
        self.deal(boxes)
        if rested := len(self.used):
            self.give_back(rested)
        for _ in range(extra):
            self.draw()
        self.settle()
