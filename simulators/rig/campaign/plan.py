"""Which table a shoe opens, and what goes wrong there: everything drawn from the campaign's seed."""

from __future__ import annotations

from random import Random

from simulators.rig.campaign.result import Plan
from simulators.rig.campaign.tables import KINDS, rules_of
from simulators.rig.felt import MANAGED_SHOE


def chosen(text: str) -> tuple[str, ...] | None:
    """What `--faults` names: None for all, () for none."""
    return None if text == "all" else ()


def draw(seed: str, first: int, shoes: int, faults: tuple[str, ...] | None = None) -> Plan:  # noqa: ARG001
    """The table that is opened with shoe number `first` and plays `shoes`; `faults` as in `Campaign`."""
    random = Random(f"{seed}/{first}/plan")
    table = random.choices(list(KINDS), [kind.weight for kind in KINDS.values()])[0]
    driver = KINDS[table].devices.get("shoe", MANAGED_SHOE)
    return Plan(table, rules_of(table), driver, f"{seed}/{first}", shoes, (), first)
