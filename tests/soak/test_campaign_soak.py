"""Ten thousand shoes under faults: nothing is lost, and the processes that play stay as they were."""

from __future__ import annotations

import os
import re
from pathlib import Path
from random import SystemRandom

import pytest

from simulators.rig.campaign import workers
from simulators.rig.campaign.result import Summary
from simulators.rig.campaign.run import Campaign

SHOES = int(os.environ.get("CUTCARD_CAMPAIGN_SHOES", "10000"))
SEED = os.environ.get("CUTCARD_CAMPAIGN_SEED") or str(SystemRandom().randrange(10**9))
WARM = 100
"""Shoes after which a worker has seen most of what there is."""
GROWTH = 1.5


def resident(pid: int) -> int:
    """Resident memory of a process, KiB."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1])


def children() -> list[int]:
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


@pytest.mark.soak
@pytest.mark.timeout(14400)
def test_ten_thousand_shoes() -> None:
    sizes: list[tuple[int, int]] = []
    before = set(children())

    def look(so_far: Summary) -> None:
        sizes.append((so_far.shoes, max(resident(pid) for pid in children() if pid not in before)))

    summary = workers.play(Campaign(SEED, SHOES), len(os.sched_getaffinity(0)), look)
    assert summary.failures == [], f"seed {SEED}"
    assert summary.clean, f"seed {SEED}: {summary.counters}"
    assert summary.shoes == SHOES
    assert summary.restarts > SHOES // 100
    assert len(summary.faults) >= 40
    warm = next(size for shoes, size in sizes if shoes >= min(WARM, SHOES // 2))
    assert max(size for _, size in sizes) < GROWTH * warm
