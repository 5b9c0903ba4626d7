"""Who is called when a table does not go on: a supervisor, or a technician with tools (layer `people`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from random import Random

from simulators.faults.script import Step
from simulators.hosts.line import Line
from simulators.models.shoe import Shoe
from simulators.rig.campaign.go_on import GoOn
from simulators.rig.campaign.slip import REFUSED, Scene
from simulators.rig.campaign.slips import SLIPS
from simulators.rig.stepped import Stepped
from simulators.rig.steps import Script, Tap
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
        self.slips: Counter[str] = Counter()
        self._waiting: list[str] = []
        self._owed: list[tuple[str, Collection[str], int]] = []
        self._wrapped = False

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
        script = self._go_on(world)
        world.dealer.take_over(self._slipping(world, script) if self._wrapped else script)
        return True

    def _go_on(self, world: Stepped) -> Script:
        return GoOn(world, self._random, self._tried, self._seen).play()

    # Slips

    def slip(self, world: Stepped, step: Step) -> None:
        """The moment of a slip has come: it is made at the next occasion, which is counted in `slips`."""
        self._waiting.append(step.fault)
        if not self._wrapped:
            self._wrapped = True
            world.dealer.wrap(lambda script: self._slipping(world, script))

    def believed(self, world: Stepped) -> list[str]:
        """Slips that had to be latched as a fault, and were not."""
        if not self._owed:
            return []
        facts = [
            entry for entry in world.journal.entries() if entry.fact.kind in ("fault_latched", "fault_again")
        ]
        latched = [(entry.seq, entry.fact.data.get("code")) for entry in facts]
        return [
            f"slip {name}: none of {', '.join(codes)} was latched"
            for name, codes, since in self._owed
            if not any(seq > since and code in codes for seq, code in latched)
        ]

    def _slipping(self, world: Stepped, script: Script) -> Script:
        """The script, with the slips that wait for an occasion."""
        at = Scene(world.felt, world.view, world.dealer, self._random)
        for step in script:
            at.step, instead = step, False
            if (name := self._due(at, after=False)) is not None:
                yield from self._make(at, name)
                instead = SLIPS[name].instead
                if SLIPS[name].over:
                    yield from self._slipping(world, self._go_on(world))
                    return
            if not instead:
                yield step
            accepted = isinstance(step, Tap) and world.dealer.heard.get("ok")
            if accepted and (name := self._due(at, after=True)) is not None:
                yield from self._make(at, name)
                if SLIPS[name].over:
                    yield from self._slipping(world, self._go_on(world))
                    return

    def _due(self, at: Scene, *, after: bool) -> str | None:
        due = (n for n in self._waiting if SLIPS[n].after is after and SLIPS[n].occasion(at))
        return next(due, None)

    def _make(self, at: Scene, name: str) -> Script:
        self._waiting.remove(name)
        self.slips[name] += 1
        becomes, since = SLIPS[name].becomes, at.view.seq
        known = set(at.view.faults.values())
        yield from SLIPS[name].act(at)
        if becomes == REFUSED and at.dealer.heard.get("ok"):
            at.felt.referee.violation("slip believed", name)
        elif not isinstance(becomes, str) and becomes and not known.intersection(becomes):
            self._owed.append((name, becomes, since))


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
