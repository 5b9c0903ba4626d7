"""A device that only talks, no table behind it: its shoe, a line that can be bad, a port and the driver.

Every card that leaves the shoe must come out of the driver once, in order, or the driver must have said that
something may be missing. Shoes that no blackjack table takes are tried so.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from devices.base import Setup
from devices.events import (
    AlignmentRequired,
    CardDrawn,
    Conflict,
    FaultRaised,
    FrameRejected,
    GapPossible,
    LinkDown,
    SessionStarted,
)
from devices.registry import load
from firmware_bridge.clock import VirtualClock
from firmware_bridge.port import Crashed, Port
from firmware_bridge.transports.mem import MemReceiver
from simulators.hosts.line import Line
from simulators.hosts.memory_host import MemoryHost
from simulators.models.cards import Stack, make_batch
from simulators.models.selfplay import SelfPlay
from simulators.models.shoe import Shoe
from simulators.rig.campaign.kinds import wire_of
from simulators.rig.campaign.plan import Plan
from simulators.rig.campaign.result import Failure, Outcome
from simulators.rig.felt import BEE_TEK

WARNINGS = (
    AlignmentRequired, Conflict, FaultRaised, FrameRejected, GapPossible, LinkDown, SessionStarted
)  # fmt: skip
"""Events by which a driver says that cards may be missing or wrong here."""
BARE = frozenset({BEE_TEK})
"""Messages without numbers and check bytes: one that never comes is missed by nobody, a damaged card may be
another card."""
LATE = frozenset({"delay", "reorder", "merge", "stall", "latency"})
"""A copy that comes after its time, 400 ms, is a new telegram by the device's own rules."""
CARDS_A_DECK = 52
LAST_S = 60.0
"""So long everything that is on its way may still come."""


RUN = 12
"""By so many things told after a warning it is found which card the first one is."""


class Listening:
    """One shoe of a plan after the other, as many cards as its decks have."""

    def __init__(self, plan: Plan, decks: int = 1) -> None:
        self._plan = plan
        self._cards = CARDS_A_DECK * decks * plan.shoes
        self._clock = VirtualClock()
        self.shoe = Shoe(Random(f"{plan.seed}/shoe"))
        SelfPlay(self.shoe, Random(f"{plan.seed}/hands")).change_shoe(Stack(make_batch("red", decks)))
        steps = [step for step in plan.steps if step.device in (None, "shoe")]
        wire = wire_of(plan.shoe, self.shoe)
        self.line = Line(wire, Random(f"{plan.seed}/line"), steps, "shoe")
        self.host = MemoryHost(self.line, "shoe")
        self.told: list[object] = []
        driver = load(plan.shoe).reader(Setup("shoe", Random(f"{plan.seed}/driver")))
        transport = MemReceiver(self.host.endpoint, self.host.uri)
        self.port = Port("shoe", transport, driver, self._clock, lambda _, outputs: self.told.extend(outputs))

    def play(self) -> Outcome:
        """Play to the end, and compare what left the shoe with what was told."""
        while len(self.drawn) < self._cards:
            self._turn()
        self.shoe.hands = None
        end = self._clock.now() + LAST_S
        while self._clock.now() < end:
            self._turn(end)
        self.port.close()
        self.host.close()
        return self._outcome()

    @property
    def drawn(self) -> list[str | None]:
        """The faces that the shoe read as the cards left, in order."""
        return [h.data["face"] for h in self.shoe.happenings if h.kind == "drawn"]

    def _turn(self, end: float = float("inf")) -> None:
        now = self._clock.now()
        self.host.pump(now)
        if self.port.step(0):
            return
        due = [end, self.port.deadline(), *(t for t in [self.host.deadline()] if t is not None)]
        self._clock.advance(max(0.0, min(due) - now))

    def _outcome(self) -> Outcome:
        plan, drawn = self._plan, self.drawn
        struck = self.line.struck
        lost, twice = compared(drawn, self.told, excused=bool(struck))
        late = struck.keys() & LATE or any(step.fault == "duplicate" and step.value for step in plan.steps)
        if late or (plan.shoe in BARE and struck):
            lost = twice = 0
        outcome = Outcome(plan.shoes, plan.shoes, cards=len(drawn), events=len(self.told), struck=struck)
        outcome.counters.cards_lost, outcome.counters.cards_counted_twice = lost, twice
        outcome.simulated_s = self._clock.now()
        crashed = [f"{told.error} at {told.where}" for told in self.told if isinstance(told, Crashed)]
        whats = [
            f"{lost} cards left a {plan.shoe} and nobody told that any may be missing" if lost else "",
            f"{twice} cards were told that did not leave the {plan.shoe}" if twice else "",
            f"the driver failed: {crashed[0]}" if crashed else "",
        ]
        outcome.failures = [Failure(plan.first, what) for what in whats if what]
        return outcome


def _same(told: Sequence[str | None], drawn: Sequence[str | None]) -> bool:
    return len(told) == len(drawn) and all(a in (None, b) for a, b in zip(told, drawn, strict=True))


def compared(
    drawn: Sequence[str | None], told: Sequence[object], *, excused: bool = False
) -> tuple[int, int]:
    """Cards missing without a warning before the next one, and cards told that never left.

    `excused`: a warning covers the latter too; a copy that comes late is a card by the device's own rules.
    """
    place = lost = twice = 0
    warned = False
    for at, event in enumerate(told):
        if isinstance(event, WARNINGS):
            warned = True
        if not isinstance(event, CardDrawn):
            continue
        fits = [i for i in range(place, len(drawn)) if event.card in (None, drawn[i])]
        found = next(iter(fits), None)
        if warned:  # an equal card among those that were missed is not the one
            next_ = [e.card for e in told[at : at + RUN] if isinstance(e, CardDrawn)]
            whole = (i for i in fits if _same(next_, drawn[i : i + len(next_)]))
            found = next(whole, found)
        if found is None:
            twice += not (warned and excused)
            continue
        lost += 0 if warned else found - place
        place, warned = found + 1, False
    return lost + (0 if warned else len(drawn) - place), twice
