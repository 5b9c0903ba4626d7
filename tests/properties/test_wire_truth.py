"""Whatever the wire, the device and the hands do: the end of a command is the truth about the machine."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from firmware_bridge.link import Done, NotSent, Refused, Unknown
from simulators.models.machine import Machine
from tests.support.line import Line, Pieces, shuffler_line


def wire(random: Random, *, lose: float, double: float, late: float) -> object:
    """Frames get lost, doubled, and late by up to three seconds."""

    def meddle(frame: bytes) -> Pieces:
        if random.random() < lose:
            return []
        copies = 1 + (random.random() < double)
        return [(3.0 * random.random() if random.random() < late else 0.0, frame) for _ in range(copies)]

    return meddle


def in_order(line: Line, random: Random, *, lose: float, double: float, late: float) -> object:
    """The same towards the device, but nothing overtakes: a line or a serial server keeps the order."""
    last = [0.0]

    def meddle(frame: bytes) -> Pieces:
        out = []
        for delay, piece in wire(random, lose=lose, double=double, late=late)(frame):
            last[0] = max(last[0], line.clock.now() + delay)
            out.append((last[0] - line.clock.now(), piece))
        return out

    return meddle


def hands(line: Line, machine: Machine, random: Random) -> None:
    """What people and bad luck do between two commands."""
    draw = random.random()
    if draw < 0.08:
        line.device.machine.power_cut(off_s=random.choice((0.0, 0.05, 0.2, 2.0)))
    elif draw < 0.16:
        line.unplug()
        if random.random() < 0.5:
            line.device.machine.power_cut(0.2)
        line.run(random.choice((0.05, 0.3, 3.0)))
        line.replug()
    elif draw < 0.3:
        machine.open_door()
        machine.close_door()
    stack = machine.take()
    if len(stack) and machine.state in ("empty", "loaded"):
        machine.load(stack)


def started(machine: Machine) -> Counter[bytes]:
    return Counter(h.data["token"] for h in machine.happenings if h.kind == "cycle_started")


@pytest.mark.parametrize("seed", range(12, 18))
def test_i26_i28_i29_the_end_of_every_start_is_what_the_machine_did(seed: int) -> None:
    random = Random(f"truth/{seed}")
    line, machine = shuffler_line(seed=seed)
    bad = random.random() < 0.7
    if bad:
        line.wire.up = wire(random, lose=0.1, double=0.2, late=0.15)
        line.wire.down = in_order(line, random, lose=0.1, double=0.2, late=0.05)
    tokens: dict[str, bytes] = {}
    for number in range(25):
        call, token = f"start {number}", random.randbytes(16)
        tokens[call] = token
        line.command(call, "start", token=token.hex())
        line.run(random.choice((0.0, 0.02, 0.3, 0.6, 1.2, 3.0, 30.0)))
        if random.random() < 0.3:
            line.command(f"abort {number}", "abort")
        hands(line, machine, random)
    line.run(60.0)
    counted = started(machine)
    assert counted.keys() <= set(tokens.values())
    kinds = Counter()
    for call, token in tokens.items():
        outcome = line.ends[call]
        kinds[type(outcome)] += 1
        assert counted[token] <= 1, (call, outcome)
        if isinstance(outcome, Done):
            assert counted[token] == 1, (call, outcome)
            (cycle,) = [
                h.data["cycle"]
                for h in machine.happenings
                if h.data.get("token") == token and h.kind == "cycle_started"
            ]
            assert outcome.answer == {"cycle": cycle}
        elif isinstance(outcome, Refused | NotSent):
            assert counted[token] == 0, (call, outcome)
        else:
            assert isinstance(outcome, Unknown)
    assert kinds[Done] + kinds[Refused] + kinds[Unknown] > 0
