"""SIGKILL for the daemon in mid-demo: it resumes, repeats nothing, skips nothing, loses nothing."""

from __future__ import annotations

import pytest

from tests.support.demo import killed_again_and_again


@pytest.mark.rule("R-07", "R-68")
def test_five_kills_in_two_shoes() -> None:
    verdict = killed_again_and_again("five", 5, shoes=2, decks=2)
    assert verdict.ok
