"""Values, the order of the deal, who cuts: pure functions over the clauses."""

import pytest

from controller.table.cards import difference, over_under_value, values
from controller.table.round import cutters, deal_order
from devices.events import DECK


@pytest.mark.rule("R-09")
def test_values_of_cards():
    assert [values(r + "S") for r in "A29TJQK"] == [(11, 1), (2,), (9,), (10,), (10,), (10,), (10,)]


@pytest.mark.rule("R-09")
def test_an_ace_is_one_for_the_over_under_wager_only():
    assert over_under_value("AH") == 1
    assert over_under_value("KH") == 10


@pytest.mark.rule("R-44")
def test_difference_counts_missing_and_extra_separately():
    assert difference(dict.fromkeys(DECK, 6), 6) == (0, 0)
    assert difference({**dict.fromkeys(DECK, 6), "8S": 5, "KH": 7}, 6) == (1, 1)
    assert difference({**dict.fromkeys(DECK, 1), "1X": 2}, 1) == (0, 2)


@pytest.mark.rule("R-24")
def test_the_deal_goes_clockwise_from_the_dealers_left_and_the_hole_card_is_last():
    assert deal_order((5, 1, 2)) == (
        "box 1", "box 2", "box 5", "dealer", "box 1", "box 2", "box 5", "hole",
    )  # fmt: skip


@pytest.mark.rule("R-17")
@pytest.mark.parametrize(
    ("given", "first", "order"),
    [
        ({"new_game": True}, "box 1", ("box 1", "box 2", "box 3", "box 4", "box 5", "dealer")),
        ({"appeared_at": "box 2"}, "box 2", ("box 2", "box 4", "box 1", "dealer")),
        ({"appeared_at": "dealer"}, "box 4", ("box 4", "box 1", "box 2", "dealer")),
        ({"appeared_at": None}, "box 4", ("box 4", "box 1", "box 2", "dealer")),
    ],
)
def test_who_is_offered_the_cut(given, first, order):
    facts = {
        "new_game": False,
        "boxes": 5,
        "appeared_at": None,
        "last_boxes": (1, 2, 4),
    }
    got = cutters(**{**facts, **given})
    assert got[0] == first
    assert got == order
