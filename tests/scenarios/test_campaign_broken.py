"""Laws that are broken here on purpose, and a script of a campaign under which the judge must see it."""

from __future__ import annotations

from pathlib import Path

import pytest

from devices.managed.ring import RingReader
from firmware_bridge import link
from simulators.rig.campaign import run, scripted
from simulators.rig.campaign.plan import draw


def failures(directory: Path, seed: str, first: int, shoes: int, fault: str) -> list[str]:
    """What is found at one table of a campaign with this fault alone."""
    plan = scripted.with_script(draw(seed, first, shoes), f"faults:\n  - {fault}\n")
    outcome = run.play(plan, directory)
    assert outcome.struck.total() >= 1
    return [run.kind_of(failure.what) for failure in outcome.failures]


def test_a_command_that_was_done_without_an_answer_is_not_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = (tmp_path, "m1", 4, 1, "{fault: mute, value: 2, device: shuffler, command: release}")
    assert failures(*silent) == []
    monkeypatch.setattr(link, "Unknown", link.NotSent)
    assert failures(*silent) == ["commands"]


def test_a_ring_that_ran_over_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = (tmp_path, "m1", 22, 1, "{fault: overrun, device: shoe, nth: 30}")
    assert failures(*lost) == []
    monkeypatch.setattr(RingReader, "_gap_before", lambda *_: [])
    assert failures(*lost)[-1] == "cards lost"
