"""What a managed shoe's driver makes of each fault of firmware, line and port: the cards, or a word of it."""

from __future__ import annotations

from random import Random

import pytest

from simulators import faults
from simulators.faults.script import Step
from simulators.hosts.line import Line as BadLine
from simulators.hosts.memory_host import MemoryHost
from simulators.models.cards import Stack, make_batch
from simulators.models.shoe import Shoe
from simulators.wire.managed_shoe import ManagedShoe
from tests.support.line import Line

VALUES = {"busy_answers": "2", "deaf": "2", "pace": "real", "silent": "2", "stall": "2"}
"""So that it ends again."""
OF_IMAGES = {
    "erase_first", "keep_old", "quiet_bootloader", "remembers_upload", "slow_erase", "spoil",
    "stay_in_bootloader", "upload_reboot", "upload_refused", "watchdog",
}  # fmt: skip
AT_THE_START = {"settings_differ", "wrong_identity"}
"""What strikes when a session begins."""
CARDS = 8


def lived(fault: faults.Fault) -> tuple[Line, BadLine, Shoe]:
    """A shoe that gives out a card every 0.7 s, and some rest."""
    value = VALUES.get(fault.name)
    if fault.name in AT_THE_START:
        step = Step(fault.name, value, nth=1)
    elif fault.occasion:
        step = Step(fault.name, value, chance=0.15)
    else:
        step = Step(fault.name, value)
    shoe = Shoe(Random("shoe"))
    shoe.open_lid()
    shoe.load(Stack(make_batch("red", 1)))
    shoe.close_lid()
    bad = BadLine(ManagedShoe(shoe, decks=1), Random(7), [step])
    line = Line("managed-shoe", bad)
    line.run(2.0)
    for _ in range(CARDS):
        bad.advance(line.clock.now())
        shoe.draw()
        line.run(0.7)
    line.run(12.0)
    return line, bad, shoe


def names() -> list[str]:
    end = BadLine(ManagedShoe(Shoe(Random(0))), Random(0))
    MemoryHost(end)
    found = []
    for name, fault in faults.FAULTS.items():
        if fault.layer == "machine" or name in OF_IMAGES:
            continue
        try:
            end.add(Step(name, VALUES.get(name)))
        except faults.UnfitFault:
            continue
        found.append(name)
    return found


@pytest.mark.parametrize("name", names())
def test_no_card_is_made_up_or_twice_and_a_lost_one_is_said(name):
    line, bad, shoe = lived(faults.FAULTS[name])
    told = [event.card for event in line.of("card_drawn")]
    seen = [happening.data["face"] for happening in shoe.happenings if happening.kind == "drawn"]
    assert bad.struck[name] >= 1
    rest = iter(seen)
    assert all(card in rest for card in told), "in order, each once"
    said = {"rebooted", "gap_possible"} & set(line.kinds) or line.kinds[-1:] == ["link_down"]
    assert told == seen or said or not line.events
