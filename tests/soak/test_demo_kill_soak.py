"""The kill test at length: fifty kills over eight six-deck shoes."""

from __future__ import annotations

import pytest

from tests.support.demo import killed_again_and_again


@pytest.mark.soak
@pytest.mark.rule("R-07", "R-68")
def test_fifty_kills_in_eight_shoes() -> None:
    verdict = killed_again_and_again("fifty", 50, shoes=8, decks=6)
    assert verdict.ok
