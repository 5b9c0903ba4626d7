"""Who is called when a table does not go on: a supervisor, or a technician with tools (layer `people`)."""

from __future__ import annotations

from collections import Counter
from random import Random

from simulators.faults.script import Step
from simulators.rig.campaign.go_on import GoOn
from simulators.rig.stepped import Stepped

CALLS = 60
"""Calls for help at one table after which it is given up."""
AT_ONE_POINT = 6
"""Calls without any card, round or phase between them."""


class People:
    """Help at one table. Everything random comes from `random`."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._tried: Counter[str] = Counter()
        self._seen: set[str] = set()
        self._calls: Counter[object] = Counter()

    def help(self, world: Stepped) -> bool:
        """Do what the table needs to go on; False when nobody knows a way on."""
        view = world.view
        point = (view.phase, view.rounds, view.cards, len(view.batches), view.cycle, *view.faults.values())
        self._calls[point] += 1
        if self._calls[point] > AT_ONE_POINT or self._calls.total() > CALLS:
            return False
        world.dealer.take_over(GoOn(world, self._random, self._tried, self._seen).play())
        return True

    def slip(self, step: Step) -> None:
        """The moment of a slip has come."""
        raise NotImplementedError(step.fault)
