"""A real table for incidents: daemon as its own process, machines on ptys, hands that do as a test says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from controller.cli.client import ask
from simulators.models.cards import Item
from simulators.models.shuffler import SECONDS_PER_DECK
from simulators.rig.acts import PREPARATION
from simulators.rig.demo import Place, on_ptys, set_up
from simulators.rig.felt import Felt
from simulators.rig.live import Live
from simulators.rig.referee import BURN, STUB
from tests.support.demo import TABLE

MONEY = re.compile(r"(?i)compensat|refund|reimburs|goodwill|pay (the|a) player|give back")
"""What no text of this program may ever propose (INC-2)."""


class Floor:
    """Everything is done by hand here; each act waits until what the machines saw is journaled."""

    def __init__(self, place: Place, live: Live) -> None:
        self.place, self.live = place, live
        live.start()
        self.settle()

    @property
    def felt(self) -> Felt:
        return self.live.felt

    # What people tell the table

    def ask(self, event: str, **args: Any) -> dict[str, Any]:
        return ask(self.place.control, {"do": event, **args})

    def tap(self, event: str, **args: Any) -> list[dict[str, Any]]:
        """A tap that is accepted; its facts."""
        answer = self.ask(event, **args)
        assert answer["ok"], (event, args, answer)
        self.settle(lambda: self.live.view.seq >= answer["facts"][-1]["fact"])
        return list(answer["facts"])

    def refused(self, event: str, **args: Any) -> tuple[str, str | None]:
        """A tap that is refused: the code and the clause. Nothing of the table has changed by it."""
        before = self.status
        answer = self.ask(event, **args)
        assert not answer["ok"], (event, args, answer)
        after = self.status
        for name in ("phase", "shoe", "shuffler", "batches", "round"):
            assert after[name] == before[name]
        return answer["refused"], answer["clause"]

    # What the daemon says

    @property
    def status(self) -> dict[str, Any]:
        return dict(ask(self.place.control, {"get": "status"})["status"])

    def facts(self, kind: str) -> list[dict[str, Any]]:
        """The facts of a kind, as they were heard."""
        return [fact for _, fact in sorted(self.live.acknowledged.items()) if fact["kind"] == kind]

    @property
    def faults(self) -> list[dict[str, Any]]:
        """What is latched, alarms left out."""
        latched = ask(self.place.control, {"get": "faults"})["faults"]
        return [fault for fault in latched if fault["blocks"] != "nothing"]

    @property
    def codes(self) -> list[str]:
        return [fault["code"] for fault in self.faults]

    @property
    def said(self) -> str:
        """Every word that left the daemon: status, alarms, faults, facts, its log and its output."""
        views = [
            ask(self.place.control, {"get": what}) for what in ("status", "alarms", "faults", "expected")
        ]
        return f"{views}\n{self.live.acknowledged}\n{self.place.log.read_text()}"

    # Time

    def settle(self, until: Callable[[], bool] = lambda: True) -> None:
        """Until `until` holds and the daemon has journaled everything that the machines saw."""
        self.live.stand_by(lambda: self.live.dealer.settled() and until())

    def pass_time(self, seconds: float) -> None:
        self.live.skip(seconds)
        self.settle()

    def kill_and_start_again(self) -> None:
        self.live.kill()
        self.live.start()
        self.settle()

    # What hands do, told to the table step by step

    def inspect_and_open(self) -> None:
        for device in self.felt.wires:
            self.tap("inspect", device=device)
        self.tap("open")

    def prepare(self, batch: str, *, wash: bool = True) -> None:
        for event in PREPARATION:
            self.tap(event, batch=batch)
        if wash:
            self.felt.wash(batch)

    def load_shuffler(self, batch: str) -> None:
        self.tap("load_shuffler", batch=batch)
        self.felt.load_shuffler(batch)
        self.settle()

    def start_shuffle(self) -> None:
        self.tap("start_shuffle")
        self.settle(lambda: self.live.view.cycle == "running")

    def proved(self) -> None:
        """Time passes until the running cycle is completed and proved."""
        self.pass_time(self.felt.rules.decks * SECONDS_PER_DECK)
        self.settle(lambda: self.live.view.cycle == "proved")

    def swap(self, taken: str, loaded: str, *, start: bool = True) -> None:
        """S4: the proved batch out, the other one in, its cycle started."""
        self.proved()
        self.tap("take_from_shuffler")
        self.settle(lambda: self.live.view.taken == taken)
        self.felt.take_tray(taken)
        self.load_shuffler(loaded)
        if start:
            self.start_shuffle()

    def cut_and_load(self, batch: str) -> None:
        """Cut by whoever is due, cutting card in, into the shoe; the burn card is not drawn yet."""
        (offer,) = (text for text in self.status["expected"] if text.startswith("offer_cut"))
        self.tap("offer_cut", box=offer.removeprefix("offer_cut box="))
        size, behind = self.felt.rules.batch_size, self.felt.rules.least_behind_cutting_card
        self.tap("cut", position=size // 2)
        self.felt.cut(batch, size // 2)
        self.tap("insert_cutting_card", position=behind)
        self.felt.insert_cutting_card(batch, behind)
        self.tap("load_shoe", batch=batch)
        self.into_the_shoe(batch)

    def open(self, *, burn: bool = True) -> None:
        """S1, with batch A in the shoe and batch B in the shuffler, its cycle running."""
        self.inspect_and_open()
        self.prepare("A")
        self.prepare("B")
        self.load_shuffler("A")
        self.start_shuffle()
        self.swap(taken="A", loaded="B")
        self.cut_and_load("A")
        if burn:
            self.draw(BURN)

    def end_shoe(self) -> None:
        """S4: between two rounds, by choice; the whole batch is in hand afterwards."""
        batch = self.status["shoe"]["batch"]
        self.tap("shuffle_now")
        while not self.felt.shoe.empty:
            self.felt.draw(STUB)
        self.settle()
        self.tap("collect_rack", gauge="full")
        self.felt.empty_rack(batch)

    def deal(self, boxes: str) -> None:
        """The initial deal of a round, the dealer's second card with it (R-24)."""
        self.tap("bets_closed", boxes=boxes)
        seats = [f"box {number}" for number in boxes.split(",")]
        for place in (*seats, "dealer", *seats, "dealer"):
            self.draw(place)

    def settle_round(self) -> None:
        self.tap("round_settled")
        self.felt.pick_up()

    # What hands do without a word

    def draw(self, place: str) -> Item | None:
        item = self.felt.draw(place)
        self.settle()
        return item

    def into_the_shoe(self, batch: str) -> None:
        self.felt.load_shoe(batch)
        self.settle()

    def lift_out(self, batch: str, count: int | None = None) -> None:
        """Door open, cards out, door shut."""
        shuffler = self.felt.shuffler
        shuffler.open_door()
        self.felt.piles[batch] = shuffler.lift_out_by_hand(count)
        shuffler.close_door()
        self.settle()


@contextmanager
def floor(seed: str, decks: int = 1, more: str = "", wagers: str = "") -> Iterator[Floor]:
    """A table of so many decks that offers a wager; `more` are further sections of its table.toml."""
    table = TABLE.replace("decks_per_batch = 6", f"decks_per_batch = {decks}") + more
    if wagers:
        table = table.replace("boxes = 7", f'boxes = 7\nwagers = ["{wagers}"]')
    with set_up(table) as place, on_ptys(place, seed, 1) as live:
        yield Floor(place, live)
