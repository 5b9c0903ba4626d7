"""A table of a campaign that is played again with the faults of a script instead of the drawn ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from simulators.faults import FAULTS, script
from simulators.faults.fault import LONGEST_S
from simulators.faults.script import ScriptError, Step, near
from simulators.models.shoe import Shoe
from simulators.rig.campaign.kinds import wire_of
from simulators.rig.campaign.plan import WHOLE, Plan, unfit
from simulators.rig.felt import Felt

NONE = "faults: []\n"
"""The script of a failure that comes without any fault."""
LASTING = frozenset({"power_cut", "power_dip", "clock_jump"})
"""Faults of a whole table that take seconds."""


def text_of(steps: tuple[Step, ...]) -> str:
    """The script of these steps; `with_script` gives them back."""
    return script.dump(steps) if steps else NONE


def with_script(plan: Plan, text: str) -> Plan:
    """The same table from the same seed with these faults. Raises ScriptError: one line for people."""
    if script.tree(text) == {"faults": []}:
        return replace(plan, steps=())
    known = (*FAULTS, *(WHOLE if plan.rules is not None else ()))
    return replace(plan, steps=tuple(_fitting(plan, script.read(text, known))))


def _fitting(plan: Plan, steps: tuple[Step, ...]) -> Iterator[Step]:
    rules, shoe = plan.rules, plan.shoe
    wires = {"shoe": wire_of(shoe, Shoe(Random(0)))} if rules is None else Felt(rules, "", shoe=shoe).wires
    for number, step in enumerate(steps, 1):
        device = WHOLE.get(step.fault) or step.device
        if step.fault in WHOLE:
            why = _wrong_for_all(step)
        elif device is None:
            why = f"say whose fault it is, device: {' or '.join(wires)}"
        elif device not in wires:
            why = f"this table has no {device!r}{near(device, wires)} (it has {', '.join(wires)})"
        else:
            why = unfit(step, wires[device])
        if why is not None:
            raise ScriptError(f"step {number} ({step.fault}): {why}")
        yield replace(step, device=device)


def _wrong_for_all(step: Step) -> str | None:
    """What is wrong with a step that befalls the whole table."""
    device = WHOLE[step.fault]
    if step.device not in (None, device):
        return f"it befalls {device}, not {step.device}"
    if step.value is None:
        return None
    if step.fault not in LASTING:
        return "it takes no value"
    try:
        seconds = float(step.value)
    except ValueError:
        seconds = math.nan
    least = -LONGEST_S if step.fault == "clock_jump" else 0.0
    return None if least <= seconds <= LONGEST_S else f"its value is seconds, not {step.value[:20]!r}"
