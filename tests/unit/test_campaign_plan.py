"""What a campaign plans: the seed says all, every fault fits its table, and blocks hang together."""

from __future__ import annotations

import math
from collections import Counter
from random import Random

import pytest

from simulators.faults import FAULTS, script
from simulators.faults.script import Step
from simulators.hosts.line import Line
from simulators.hosts.memory_host import MemoryHost
from simulators.rig.campaign import plan
from simulators.rig.campaign.kinds import KINDS, rules_of
from simulators.rig.campaign.run import Campaign, kind_of
from simulators.rig.felt import Felt

CAMPAIGN = Campaign("plan", 300)
PLANS = [CAMPAIGN.plan(first, last) for first, last in CAMPAIGN.blocks()]


def test_blocks_are_of_three_and_the_last_may_be_shorter() -> None:
    assert list(Campaign("", 7).blocks()) == [(1, 3), (4, 6), (7, 7)]
    assert [Campaign("", 7).block_of(shoe) for shoe in (1, 3, 4, 7)] == [(1, 3), (1, 3), (4, 6), (7, 7)]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_table_is_one_that_the_rules_allow(name: str) -> None:
    rules = rules_of(name)
    assert rules.decks == KINDS[name].decks
    assert len(rules.batches) == KINDS[name].batches
    assert set(rules.devices) == set(KINDS[name].devices)


def test_the_same_seed_gives_the_same_plan_and_another_seed_another() -> None:
    assert CAMPAIGN.plan(4, 6) == PLANS[1]
    others = [Campaign("other", 300).plan(first, last) for first, last in CAMPAIGN.blocks()]
    assert sum(a.steps == b.steps for a, b in zip(PLANS, others, strict=True)) < 5


def test_a_table_that_is_cut_short_has_the_steps_of_a_whole_one() -> None:
    long, short = CAMPAIGN.plan(7, 9), CAMPAIGN.plan(7, 7)
    assert (long.shoes, short.shoes) == (3, 1)
    assert (long.steps, long.seed, long.table) == (short.steps, short.seed, short.table)


def test_a_table_that_opens_in_the_middle_of_a_block_has_a_plan_of_its_own() -> None:
    assert CAMPAIGN.plan(8, 9).steps != CAMPAIGN.plan(7, 9).steps
    assert CAMPAIGN.plan(8, 9).first == 8
    assert CAMPAIGN.plan(8, 9).seed == "plan/8"


def test_300_shoes_have_every_kind_of_table_and_most_kinds_of_fault() -> None:
    assert {made.table for made in PLANS} >= {name for name, kind in KINDS.items() if kind.weight > 3}
    planned = Counter(step.fault for made in PLANS for step in made.steps)
    assert len(planned) >= 80
    assert {plan.LAYER_OF[name] for name in planned} == set(plan.LAYER_OF.values())
    assert planned.total() / 300 > 1


@pytest.mark.parametrize(
    "table", ["two-batch-shoe-2-reader", "two-batch-shoe-2-bee-tek", "continuous-2-reader"]
)
def test_every_value_that_may_be_drawn_fits_every_device_that_may_have_the_fault(table: str) -> None:
    felt = Felt(rules_of(table), "", shoe=KINDS[table].devices["shoe"])
    for fault, draw in plan.VALUES.items():
        for device in plan._possible(table).get(fault, ()):
            for value in sorted({draw(Random(seed)) for seed in range(12)} - {None}):
                if fault in FAULTS:
                    MemoryHost(Line(felt.wires[device], Random(0), [Step(fault, value, device)]))
                else:
                    assert math.isfinite(float(value))


def test_every_step_fits_its_table() -> None:
    for made in PLANS:
        if made.rules is None:
            continue
        felt = Felt(made.rules, "", shoe=made.shoe)
        lines = {name: Line(wire, Random(0)) for name, wire in felt.wires.items()}
        for name, line in lines.items():
            MemoryHost(line, name)
        for step in made.steps:
            if step.fault in FAULTS:
                assert step.device is not None
                lines[step.device].add(step)


def test_no_name_means_two_things() -> None:
    assert not FAULTS.keys() & plan.WHOLE.keys()
    assert {plan.LAYER_OF[name] for name in plan.WHOLE} == {"daemon", "people"}


def test_a_planned_script_can_be_written_and_read() -> None:
    for made in PLANS:
        assert script.read(script.dump(made.steps), plan.LAYER_OF) == made.steps


def test_no_faults_and_named_faults() -> None:
    assert all(Campaign("", 9, ()).plan(1, 3).steps == () for _ in range(3))
    only = Campaign("named", 90, ("misread", "cable"))
    planned = {step.fault for first, last in only.blocks() for step in only.plan(first, last).steps}
    assert "misread" in planned
    assert {plan.LAYER_OF[name] for name in planned - {"misread"}} == {"cable"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("all", None),
        ("none", ()),
        ("misread", ("misread",)),
        ("wire,crash,wire", ("wire", "crash")),
    ],
)
def test_what_may_be_chosen(text: str, names: tuple[str, ...] | None) -> None:
    assert plan.chosen(text) == names


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mis_read", "there is no fault 'mis_read'; did you mean 'misread'?"),
        ("misread,crush", "there is no fault 'crush'; did you mean 'crash'?"),
        ("misread,", "there is no fault ''"),
        ("", "there is no fault ''"),
        ("none,misread", "none stands alone"),
        ("spoil", "at no table of a campaign can 'spoil' strike"),
        ("bad_crc", "at no table of a campaign can 'bad_crc' strike"),
    ],
)
def test_what_may_not_be_chosen(text: str, says: str) -> None:
    with pytest.raises(plan.UnknownFault) as refused:
        plan.chosen(text)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_failures_of_a_kind_differ_in_their_numbers_alone() -> None:
    assert kind_of("card 8S of shoe 3: lost twice") == kind_of("card 9S of shoe 12: something else")
    assert kind_of("card lost") != kind_of("card counted twice")
