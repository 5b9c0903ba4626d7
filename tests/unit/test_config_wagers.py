"""`[wagers.match-the-dealer]` and multiple action: what is posted, and what `check` refuses of it."""

from __future__ import annotations

from typing import Any

import pytest

from controller.table.profiles import MatchTerms
from tests.unit.test_config_tables import good, lines, problems

FLOOR, LIMITS = "13:69F-2.23(f)", "13:69F-2.23(c)"


def section(**keys: int) -> dict[str, Any]:
    return {f"wagers__match-the-dealer__{key}": value for key, value in keys.items()}


@pytest.mark.rule("R-38")
def test_without_a_word_it_pays_what_the_table_of_the_clause_says() -> None:
    assert good().rules.match == MatchTerms(4, 11)
    assert good(cards__decks_per_batch=8).rules.match == MatchTerms(3, 14)
    in_total = good(cards__decks_per_batch=4, rules__deck_floor="total")
    assert in_total.rules.match == MatchTerms(3, 14), "two batches of four are eight decks"
    assert good(table__wagers=["bonus"]).rules.match is None


@pytest.mark.rule("R-38", "R-39")
def test_a_house_may_pay_more_and_post_its_limits() -> None:
    asked = section(other_suit=5, same_suit=11, minimum=5, maximum=100)
    assert good(**asked).rules.match == MatchTerms(5, 11, 5, 100)
    assert good(**section(minimum=5, maximum=5)).rules.match == MatchTerms(4, 11, 5, 5)


@pytest.mark.rule("R-38")
@pytest.mark.parametrize(("decks", "other_suit", "same_suit"), [(6, 4, 11), (8, 3, 14)])
def test_never_less(decks: int, other_suit: int, same_suit: int) -> None:
    for key, floor in (("other_suit", other_suit), ("same_suit", same_suit)):
        good(cards__decks_per_batch=decks, **section(**{key: floor}))
        (found,) = problems(cards__decks_per_batch=decks, **section(**{key: floor - 1}))
        assert (found.key, found.clause) == (f"wagers.match-the-dealer.{key}", FLOOR)
        assert f"no less than {floor} to 1 with {decks} decks, not {floor - 1}" in found.text


@pytest.mark.parametrize(
    ("keys", "key", "words"),
    [
        ({"minimum": 0}, "minimum", "0 is no wager"),
        ({"maximum": -1}, "maximum", "-1 is no wager"),
        ({"minimum": 10, "maximum": 9}, "maximum", "9 is less than the minimum of 10"),
    ],
)
def test_limits_that_cannot_be(keys: dict[str, int], key: str, words: str) -> None:
    (found,) = problems(**section(**keys))
    assert (found.key, found.clause) == (f"wagers.match-the-dealer.{key}", LIMITS)
    assert words in found.text


def test_terms_of_another_wager_or_of_one_that_is_not_offered_are_read_by_nothing() -> None:
    assert lines(**{"wagers__match-dealer": {"minimum": 5}}) == [
        "wagers.match-dealer: nothing reads this; did you mean match-the-dealer?"
    ]
    assert lines(table__wagers=["bonus"], wagers__bonus={"minimum": 5}) == [
        "wagers.bonus: nothing reads this; terms are read of match-the-dealer alone"
    ]
    assert lines(table__wagers=["bonus"], **section(minimum=5)) == [
        "wagers.match-the-dealer: this table does not offer the wager: name it in table.wagers"
    ]


@pytest.mark.rule("R-29")
def test_multiple_action_is_two_or_three_hands_of_the_dealer() -> None:
    assert [good(table__dealer_hands=n).rules.dealer_hands for n in (1, 2, 3)] == [1, 2, 3]
    for n in (0, 4):
        (found,) = problems(table__dealer_hands=n)
        assert (found.key, found.clause) == ("table.dealer_hands", "13:69F-2.18(a)")


@pytest.mark.rule("R-37")
def test_a_shoe_that_takes_the_commands_is_locked_and_one_that_takes_none_is_not() -> None:
    assert good().rules.shoe_locks
    bee_tek = {"driver": "bee-tek", "port": "serial:/dev/null"}
    assert not good(devices__shoe=bee_tek).rules.shoe_locks
