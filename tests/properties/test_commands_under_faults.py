"""Whatever goes wrong on the way: done means done, refused means not done, and no card is moved twice."""

from __future__ import annotations

from collections import Counter

import pytest

from firmware_bridge.link import Done, Refused, Unknown
from tests.support.commanded import Session, session


def sessions(seed: str, count: int) -> list[Session]:
    found = [session(f"{seed}/{number}") for number in range(count)]
    wrong = [str(one) for one in found if one.wrong]
    assert not wrong, wrong[0]
    return found


def test_outcomes_of_commands_are_true_whatever_goes_wrong() -> None:
    found = sessions("commands", 60)
    kinds = Counter(type(end) for one in found for end in one.ends)
    assert min(kinds[Done], kinds[Refused], kinds[Unknown]) > 20
    assert len(sum((one.struck for one in found), Counter())) > 15


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_thousands_of_commands() -> None:
    sessions("soak", 4000)
