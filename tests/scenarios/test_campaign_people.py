"""People at a campaign's table: what a remedy says is done, the table goes on, and no slip is believed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from simulators.faults.script import Step
from simulators.rig.campaign.kinds import rules_of
from simulators.rig.campaign.plan import KINDS, Plan
from simulators.rig.campaign.result import Outcome
from simulators.rig.campaign.slips import SLIPS
from simulators.rig.campaign.table import Table
from simulators.rig.felt import MANAGED_SHOE

ONE_DECK, BEE_TEK = "two-batch-shoe-1", "two-batch-shoe-1-bee-tek"
"""The second is quick to play: its shoe is not asked."""
READER = "two-batch-shoe-1-reader"


class Played:
    """A table that was played with these steps, and what its journal says."""

    def __init__(
        self, directory: Path, kind: str, *steps: Step, seed: str = "people", shoes: int = 2
    ) -> None:
        driver = KINDS[kind].devices.get("shoe", MANAGED_SHOE)
        table = Table(Plan(kind, rules_of(kind), driver, seed, shoes, steps), directory)
        facts: list[Mapping[str, Any]] = []
        take = table.world.view.take
        table.world.view.take = lambda fact: (facts.append(fact), take(fact))[1]  # type: ignore[method-assign]
        self.outcome: Outcome = table.play()
        self.phase = table.world.view.phase
        self.left = list(table.world.view.faults.values())
        self.latched = [fact["code"] for fact in facts if fact["kind"] == "fault_latched"]
        self.told = [fact["kind"] for fact in facts]

    def went_on(self) -> bool:
        """Both shoes were dealt, the table is closed, nothing is latched and nothing wrong was found."""
        done = self.phase == "closed" and self.outcome.stopped is None and self.outcome.shoes == 2
        return done and not self.left and not self.outcome.failures


@pytest.mark.parametrize(
    ("steps", "codes"),
    [
        (
            [Step("sort_mode", device="shuffler"), Step("leave_inside", "16", "shuffler", nth=1)],
            ["settings_mismatch", "wrong_count", "cards_inside"],
        ),
        ([Step("jam", device="shuffler")], ["shuffle_void", "taken_without_proof"]),
        (
            [Step("no_start", device="shuffler", nth=1), Step("unreadable", device="shuffler", nth=2)],
            ["wrong_composition"],
        ),
        (
            [Step("freeze", device="shuffler", nth=1), Step("wrong_back_card", "green", "shuffler", nth=2)],
            ["shuffle_void", "wrong_back_in_shuffler"],
        ),
        (
            [
                Step("forget_token", device="shuffler", nth=1),
                Step("reboot_mid_cycle", "1", "shuffler", nth=3),
            ],
            ["shuffle_void"],
        ),
    ],
)
def test_a_shuffler_that_fails_is_mended_and_the_table_goes_on(
    tmp_path: Path, steps: list[Step], codes: list[str]
) -> None:
    played = Played(tmp_path, BEE_TEK, *steps)
    assert played.went_on(), (played.outcome, played.left)
    assert {step.fault for step in steps} == set(played.outcome.struck)
    assert set(codes) <= set(played.latched) <= {*codes, "taken_without_proof", "device_down"}
    unfit = {"wrong_count", "wrong_composition", "wrong_back_in_shuffler"} & set(codes)
    assert played.told.count("replace_batch") == len(unfit)


@pytest.mark.parametrize(
    ("fault", "value", "codes"),
    [
        ("wrong_back_card", "green", {"wrong_back"}),
        ("reboot", "3", {"shoe_rebooted", "device_down"}),
        ("sticks", "30", set()),
        ("deaf", None, {"device_down"}),
    ],
)
def test_a_shoe_that_fails_in_play_ends_as_its_remedy_says_and_the_next_is_dealt(
    tmp_path: Path, fault: str, value: str | None, codes: set[str]
) -> None:
    played = Played(tmp_path, ONE_DECK, Step(fault, value, "shoe", card=17))
    assert played.outcome.stopped is None, played.outcome
    assert played.phase == "closed"
    assert codes <= set(played.latched)
    assert played.left == []


def test_a_batch_that_is_out_of_play_is_replaced_and_prepared_anew(tmp_path: Path) -> None:
    played = Played(tmp_path, BEE_TEK, Step("torn_card", None, "dealer"))
    assert played.went_on(), played.outcome
    assert played.latched == ["dead_card"]
    replaced = played.told.index("replace_batch")
    assert [event for event in played.told[replaced:] if event in ("verify", "wash")][:2] == [
        "verify",
        "wash",
    ]


def test_a_shuffler_that_never_shuffles_goes_out_of_service_and_the_table_opens_again(tmp_path: Path) -> None:
    steps = [Step("jam", None, "shuffler", nth=n) for n in range(1, 12)]
    played = Played(tmp_path, BEE_TEK, *steps)
    assert played.phase == "closed", played.outcome
    assert played.left == []


LATCHED = {
    name: set(slip.becomes) for name, slip in SLIPS.items() if slip.becomes and slip.becomes != "refused"
}
REFUSED = sorted(name for name, slip in SLIPS.items() if slip.becomes == "refused")
MENDED = sorted(set(SLIPS) - set(LATCHED) - set(REFUSED))


def test_a_wrong_tap_is_refused_and_the_game_goes_on(tmp_path: Path) -> None:
    steps = [Step(name, None, "dealer") for name in (*REFUSED, "torn_card")]
    played = Played(tmp_path, BEE_TEK, *steps)
    assert played.went_on(), played.outcome
    assert dict(played.outcome.struck) == dict.fromkeys((*REFUSED, "torn_card"), 1)
    assert played.told.count("refused") >= len(REFUSED)


@pytest.mark.parametrize("name", LATCHED)
def test_what_people_do_wrong_with_cards_is_latched_and_mended(tmp_path: Path, name: str) -> None:
    table = READER if name == "looked_out_of_turn" else BEE_TEK
    played = Played(tmp_path, table, Step(name, None, "dealer", time=60.0))
    assert played.outcome.struck == {name: 1}
    assert played.outcome.failures == []
    assert played.phase == "closed"
    assert LATCHED[name] & set(played.latched)
    assert played.left == (["wrong_count"] if name == "wrong_count_told" else [])


def test_what_is_latched_already_need_not_be_latched_again(tmp_path: Path) -> None:
    step = Step("door_opened_mid_cycle", None, "dealer")
    played = Played(tmp_path, BEE_TEK, step, step)
    assert played.outcome.struck == {step.fault: 2}
    assert played.outcome.failures == []
    assert played.latched == ["shuffle_void"]


def test_a_dealer_who_left_out_or_drew_a_card_says_so_and_no_card_is_lost(tmp_path: Path) -> None:
    played = Played(tmp_path, "two-batch-shoe-2", *(Step(name, None, "dealer") for name in MENDED))
    assert played.went_on(), played.outcome
    assert set(played.outcome.struck) == set(MENDED)
    assert {"drawn_in_error", "dealer_skipped", "box_skipped", "void_round"} <= set(played.told)
    assert set(played.latched) <= {"shoe_opened"}
