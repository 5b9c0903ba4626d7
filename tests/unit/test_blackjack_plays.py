"""Which plays are open: the split-and-double matrix of both profiles, told by hand from the clauses."""

from itertools import combinations_with_replacement

import pytest

from controller.table.blackjack import (
    CASINO,
    Ties,
    casino_night,
    no_card,
    no_double,
    no_insurance,
    no_split,
    no_surrender,
    takes_one_card,
)

NIGHT = casino_night(Ties.PUSH)
RANKS = "A23456789TJQK"
PAIRS = [f"{a}S {b}H".split() for a, b in combinations_with_replacement(RANKS, 2)]
COUNTS = {rank: 10 if rank in "TJQK" else 11 if rank == "A" else int(rank) for rank in RANKS}


def clause(why) -> str:
    return "open" if why is None else why.clause


@pytest.mark.rule("13:69F-2.11", "13:47-20.22(g)1", "13:47-20.22(a) splitting pairs")
@pytest.mark.parametrize("hand", PAIRS, ids=" ".join)
def test_two_cards_of_one_value_may_be_split(hand):
    open_ = COUNTS[hand[0][0]] == COUNTS[hand[1][0]]
    assert clause(no_split(hand, CASINO)) == ("open" if open_ else "13:69F-2.11(a)")
    assert clause(no_split(hand, NIGHT)) == ("open" if open_ else "13:47-20.22(g)1")


@pytest.mark.rule("13:69F-2.11", "13:47-20.22(g)2")
@pytest.mark.parametrize("rank", RANKS)
def test_a_pair_in_a_split_hand_is_split_again_at_casino_nights_but_for_aces(rank):
    hand = [f"{rank}S", f"{rank}H"]
    assert clause(no_split(hand, NIGHT, split=True)) == ("13:47-20.22(g)2" if rank == "A" else "open")
    assert clause(no_split(hand, CASINO, split=True)) == "13:69F-2.11(a)"
    assert takes_one_card(hand, NIGHT) is (rank == "A")
    assert takes_one_card(hand, CASINO) is False, "the text of 2.11 at hand does not say so"


@pytest.mark.rule("13:69F-2.10", "13:47-20.22(g)3", "13:47-20.22(a) double down")
@pytest.mark.parametrize("hand", PAIRS, ids=" ".join)
def test_the_first_two_cards_may_be_doubled_on(hand):
    values = [COUNTS[card[0]] for card in hand]
    best = sum(values) if sum(values) <= 21 else sum(values) - 10
    least = sum(1 if value == 11 else value for value in values)
    licensed = "13:69F-2.10(a)" if best == 21 else "open"
    night = "open" if best != 21 and {best, least} & {10, 11} else "13:47-20.22(g)3"
    assert clause(no_double(hand, CASINO)) == licensed
    assert clause(no_double(hand, NIGHT)) == night
    assert clause(no_double(hand, CASINO, split=True)) == licensed
    assert clause(no_double(hand, NIGHT, split=True)) == "13:47-20.22(g)2"


@pytest.mark.rule("13:47-20.22(g)3")
def test_an_ace_counts_what_the_player_likes_when_a_ten_is_wanted():
    assert no_double(["AS", "9S"], NIGHT) is None
    assert clause(no_double(["AS", "8S"], NIGHT)) == "13:47-20.22(g)3"
    assert clause(no_double(["AS", "KS"], NIGHT)) == "13:47-20.22(g)3", "a natural is paid as it is"


@pytest.mark.rule("13:69F-2.10", "13:69F-2.11", "13:69F-2.8")
def test_a_third_card_ends_the_choice():
    hand = ["2S", "3S", "5S"]
    found = [clause(no(hand, CASINO)) for no in (no_double, no_split, no_surrender)]
    assert found == ["13:69F-2.10(a)", "13:69F-2.11(a)", "13:69F-2.8(a)"]


@pytest.mark.rule("13:69F-2.12", "13:47-20.22(g)10i", "13:47-20.22(g)10ii", "13:47-20.22(a) bust")
def test_below_21_a_hand_may_draw():
    hands = {"AS KS": 1, "7S 7H 7C": 1, "AS AH 9S": 1, "TS 9S 5S": 1, "TS KS": 0, "AS 9S": 0, "2S 2H": 0}
    for terms, by in ((CASINO, "13:69F-2.12(a)1"), (NIGHT, "13:47-20.22(g)10ii")):
        found = {hand: clause(no_card(hand.split(), terms)) for hand in hands}
        assert found == {hand: by if over else "open" for hand, over in hands.items()}


@pytest.mark.rule("13:69F-2.8", "13:47-20.22(g)10i")
def test_half_the_wager_is_surrendered_on_the_first_two_cards_and_never_at_casino_nights():
    hand = ["TS", "6S"]
    assert no_surrender(hand, CASINO) is None
    assert clause(no_surrender(hand, CASINO, split=True)) == "13:69F-2.8(a)"
    assert clause(no_surrender(hand, NIGHT)) == "13:47-20.22(g)10i"


@pytest.mark.rule("13:69F-2.9", "13:47-20.22(g)4")
@pytest.mark.parametrize("up", RANKS)
def test_insurance_takes_an_ace(up):
    assert clause(no_insurance(f"{up}D", CASINO)) == ("open" if up == "A" else "13:69F-2.9(a)")
    assert clause(no_insurance(f"{up}D", NIGHT)) == ("open" if up == "A" else "13:47-20.22(g)4")
