"""Commands to field devices over lines and firmwares that go wrong: what was said to be done was done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from firmware_bridge.link import Done, Outcome, Refused
from simulators.faults import FAULTS
from simulators.faults.script import Step, dump
from simulators.hosts.line import Line as BadLine
from simulators.models.cards import Stack, make_batch
from simulators.models.dealing_machine import DealingMachine
from simulators.models.shoe import Shoe
from simulators.wire.angel_eye import AngelEye
from simulators.wire.reshuffled import ReShuffled
from tests.support.line import Line

COMMON: dict[str, tuple[str | None, ...]] = {
    "silent": ("0.5", "3", "10"), "late_answer": ("0.5", "1.1", "1.9"), "duplicate_answer": (None,),
    "drop": (None,), "duplicate": ("0",), "truncate": (None,),
    "lose_request": (None,),
    "deaf": ("0.5", "5"), "latency": ("0.016",),
    "unplug": ("0.2", "3"), "gone_and_back": (None,), "stall": ("0.5", "4"), "local_echo": (None,),
}  # fmt: skip
"""Faults and their values. Noise is none of them: an answer of one byte without a check may stand in it. No
answer is kept back for longer than a line is held closed for it, 3 s, and none comes again after a while:
nobody could tell it from the next."""
OWN: dict[str, dict[str, tuple[str | None, ...]]] = {
    "angel-eye": {
        "nak": ("02", "21", "11"), "nak_apart": (None,), "bcc_without_stx": (None,), "drop_copy": ("23",),
        "reboot_mid_round": (None,),
    },
    "reshuffled": {
        "refuse": ("1", "2", "6"), "text_inside": (None,), "stray_bytes": (None,), "document": (None,),
        "request_echo": (None,), "jam": (None,), "no_start": (None,), "chatter": (None,), "flip_bit": (None,),
    },
}  # fmt: skip
COMMANDS: dict[str, tuple[tuple[str, dict[str, str], bytes], ...]] = {
    "angel-eye": (
        ("lock", {}, b"LK02"), ("unlock", {}, b"LK01"), ("confirm", {}, b"GP00"),
        ("clear-fault", {"nn": "01"}, b"EC01"),
    ),
    "reshuffled": (
        ("init", {}, b"IN"), ("shuffle", {}, b"SH"), ("deal", {"n": "3"}, b"D3"),
        ("deal-each", {"n": "2"}, b"A2"),
    ),
}  # fmt: skip
MOVES = ("shuffle", "deal", "deal-each")
CALLS = 10


@dataclass
class Session:
    """Ten commands under up to four faults. `wrong`: outcomes that were not so."""

    driver: str
    steps: list[Step]
    ends: list[Outcome] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    struck: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return f"{self.driver}: {'; '.join(self.wrong)}\n{dump(tuple(self.steps))}"


def _device(driver: str) -> tuple[AngelEye | ReShuffled, list[bytes]]:
    """A device, and the words of what it carried out, as they come."""
    cards, acted = Stack(make_batch("red", 1)), list[bytes]()
    if driver == "reshuffled":
        machine = DealingMachine(Random(1))
        machine.load(cards)
        dealer = ReShuffled(machine)
        act = dealer._act

        def watched(words: bytes) -> bytes:
            answer = act(words)
            acted.extend([words] if answer == b"OK" else [])
            return answer

        dealer._act = watched  # type: ignore[method-assign]
        return dealer, acted
    shoe = Shoe(Random(1))
    shoe.open_lid()
    shoe.load(cards)
    shoe.close_lid()
    device = AngelEye(shoe)
    judge = device._judge

    def judged(command: bytes, end: int) -> int | None:
        nak = judge(command, end)
        acted.extend([command[3:7]] if nak is None else [])
        return nak

    device._judge = judged  # type: ignore[method-assign]
    return device, acted


def _step(driver: str, random: Random) -> Step:
    faults = COMMON | OWN[driver]
    name = random.choice(list(faults))
    value = random.choice(faults[name])
    when: dict[str, Any] = {}
    if FAULTS[name].kind == "trap":
        when = random.choice([{"nth": random.randint(1, 12)}, {"chance": 0.2}])
    elif FAULTS[name].kind == "act":
        when = {"time": round(random.uniform(0, 30), 1)}
    return Step(name, value, **when)


def session(seed: str) -> Session:
    random = Random(seed)
    driver = random.choice(list(OWN))
    device, acted = _device(driver)
    steps = [_step(driver, random) for _ in range(random.randint(1, 4))]
    bad = BadLine(device, Random(f"{seed}/line"), steps)
    line = Line(driver, bad, cut=lambda data: [data] if data else []).up()
    found = Session(driver, steps)
    for number in range(CALLS):
        name, args, word = random.choice(COMMANDS[driver])
        before, call = len(acted), f"{number} {name}"
        line.port.command(call, name, args)
        end = line.end_of(call)
        found.ends.append(end)
        done = acted[before:].count(word)
        twice = done > 1 and name in MOVES and not bad.struck.keys() & {"duplicate", "local_echo"}
        if (isinstance(end, Done) and not done) or (isinstance(end, Refused) and done) or twice:
            found.wrong.append(f"{call} ended {end}, and was carried out {done} times")
        line.run(random.choice([0.0, 0.0, 0.1, 5.0]))
    found.struck = bad.struck
    return found
