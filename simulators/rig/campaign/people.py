"""Who is called when a table does not go on: a supervisor, or a technician with tools (layer `people`)."""

from __future__ import annotations

from collections import Counter
from random import Random

from simulators.faults.script import Step
from simulators.hosts.line import Line
from simulators.models.shoe import Shoe
from simulators.rig.campaign.go_on import GoOn
from simulators.rig.stepped import Stepped
from simulators.wire.device import WireDevice

OFF_S = 2.0
"""How long a machine is switched off that does not answer or does not end."""
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
        again = self._calls[point] > 1
        for name, host in world.hosts.items():
            if again or name not in view.up:
                mend(host.device, off=again and name not in view.up)
        if view.cycle == "running" and world.felt.shuffler.state == "shuffling" and world.dealer.quiet:
            world.felt.shuffler.power_cut(OFF_S)
        if again:
            free(world.felt.shoe)
            forget(world)
        world.dealer.take_over(GoOn(world, self._random, self._tried, self._seen).play())
        return True

    def slip(self, step: Step) -> None:
        """The moment of a slip has come."""


def mend(device: WireDevice, *, off: bool) -> None:
    """A technician sees to a device; when that did not help, its power goes off and on."""
    if isinstance(device, Line):
        device.mend()
    if off:
        device.machine.power_cut(OFF_S)


def free(shoe: Shoe) -> None:
    """A card that sticks in the exit is freed from within."""
    if not shoe.lid_open:
        shoe.open_lid()
        shoe.remove_by_hand(0)
        shoe.close_lid()


def forget(world: Stepped) -> None:
    """What a device told, and nobody heard, is not waited for any longer."""
    for name, newest in world.felt.newest().items():
        if name in world.view.up:
            world.view.seen[name] = newest
