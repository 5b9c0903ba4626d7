"""A shoe that only talks: each card is told once, or the driver says that something may be missing."""

from __future__ import annotations

import pytest

from devices.events import CardDrawn, GapPossible
from simulators.faults.script import Step
from simulators.rig.campaign.listening import Listening, compared
from simulators.rig.campaign.plan import Plan


def listening(driver: str, *steps: Step) -> Listening:
    return Listening(Plan("listening", None, driver, "one deck", 1, steps))


@pytest.mark.parametrize("driver", ["angel-eye", "bee-tek"])
def test_without_faults_every_card_is_told_once_in_order(driver: str) -> None:
    shoe = listening(driver)
    shoe.play()
    assert [told.card for told in shoe.told if isinstance(told, CardDrawn)] == shoe.drawn
    assert len(shoe.drawn) == 52


@pytest.mark.parametrize(
    "fault",
    ["drop", "flip_bit", "duplicate", "truncate", "junk_before", "delay", "reorder", "merge", "chunk"],
)
def test_a_bad_line_costs_no_card_of_an_angel_eye_without_a_word(fault: str) -> None:
    outcome = listening("angel-eye", Step(fault, chance=0.2)).play()
    assert outcome.struck[fault] > 5
    assert (outcome.counters.cards_lost, outcome.counters.cards_counted_twice) == (0, 0)


def told(*cards: str | None) -> list[object]:
    """Events that tell these cards; None is a warning."""
    return [
        GapPossible(device="shoe", n=n) if card is None else CardDrawn(device="shoe", n=n, card=card)
        for n, card in enumerate(cards, 1)
    ]


@pytest.mark.parametrize(
    ("cards", "lost", "twice"),
    [
        (("8S", "2H", "KD"), 0, 0),
        (("8S", "KD"), 1, 0),
        (("8S", None, "KD"), 0, 0),
        (("8S", "2H"), 1, 0),
        (("8S", "8S", "2H", "KD"), 0, 1),
        (("8S", "2H", "KD", "4C"), 0, 1),
        (("8S", "2H", "KD", None, "4C"), 0, 1),
    ],
)
def test_what_is_lost_and_what_is_told_twice(cards: tuple[str | None, ...], lost: int, twice: int) -> None:
    assert compared(["8S", "2H", "KD"], told(*cards)) == (lost, twice)


def test_a_late_copy_is_excused_by_a_warning_where_something_struck() -> None:
    assert compared(["8S", "2H"], told("8S", "2H", None, "8S"), excused=True) == (0, 0)
    assert compared(["8S", "2H"], told("8S", "2H", "8S"), excused=True) == (0, 1)
