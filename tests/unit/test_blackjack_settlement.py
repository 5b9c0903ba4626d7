"""Golden settlements, told by hand from the clauses: up cards, naturals and ties under every regime."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.table.blackjack import (
    CASINO,
    Outcome,
    Terms,
    Ties,
    casino_night,
    dealer_draws,
    dealer_is_done,
    is_natural,
    is_soft,
    odds,
    score,
    settle,
    settle_insurance,
    totals,
)
from devices.events import DECK

REGIMES = {"nj": CASINO, "i": casino_night(Ties.PUSH)}
REGIMES |= {"ii": casino_night(Ties.NATURALS_PUSH), "iii": casino_night(Ties.HOUSE_WINS)}
UP = "A23456789TJQK"
TEN = "TJQK"

# A column each: 13:69F, then casino nights with options i, ii and iii. "+3/2" is won for each unit wagered.
NATURALS = {
    # (player has one, dealer has one): both, the player alone, the dealer alone
    (True, True): ("0", "0", "0", "-1"),
    (True, False): ("+3/2", "+3/2", "+2", "+2"),
    (False, True): ("-1", "-1", "-1", "-1"),
}
HANDS = {
    "bust, dealer bust": ("TS 8S 9S", "TD 6D 8D", ("-1", "-1", "-1", "-1")),
    "bust, dealer 17": ("TS 8S 9S", "TD 7D", ("-1", "-1", "-1", "-1")),
    "18, dealer bust": ("TS 8S", "TD 6D 8D", ("+1", "+1", "+1", "+1")),
    "12, dealer bust": ("TS 2S", "TD 6D 8D", ("+1", "+1", "+1", "+1")),
    "20 to 19": ("TS KS", "TD 9D", ("+1", "+1", "+1", "+1")),
    "19 to 20": ("TS 9S", "TD KD", ("-1", "-1", "-1", "-1")),
    "17 to 17": ("TS 7S", "TD 7D", ("0", "0", "-1", "-1")),
    "soft 17 to 17": ("AS 6S", "TD 7D", ("0", "0", "-1", "-1")),
    "20 to 20": ("TS KS", "TD KD", ("0", "0", "-1", "-1")),
    "21 to 21, in three cards each": ("7S 7H 7C", "TD 6D 5D", ("0", "0", "-1", "-1")),
    "21 in three to a natural": ("7S 7H 7C", "AD KD", ("-1", "-1", "-1", "-1")),
    "a natural to 21 in three": ("AS KS", "TD 6D 5D", ("+3/2", "+3/2", "+2", "+2")),
    "21 in four to 20": ("5S 5H 5C 6S", "TD KD", ("+1", "+1", "+1", "+1")),
    "21 in five to 20": ("2S 3S 4S 5S 7S", "TD KD", ("+2", "+1", "+1", "+1")),
    "21 in five, dealer bust": ("2S 3S 4S 5S 7S", "TD 6D 8D", ("+2", "+1", "+1", "+1")),
    "21 in five to 21 in three": ("2S 3S 4S 5S 7S", "TD 6D 5D", ("0", "0", "-1", "-1")),
    "21 in five to a natural": ("2S 3S 4S 5S 7S", "AD KD", ("-1", "-1", "-1", "-1")),
    "21 in six to 20": ("2S 2H 3S 4S 5S 5H", "TD KD", ("+1", "+1", "+1", "+1")),
    "20 in five to 19": ("2S 3S 4S 5S 6S", "TD 9D", ("+1", "+1", "+1", "+1")),
}
SPLIT = {
    # one hand of a split pair
    "ace and ten to 20": ("AS KS", "TD KD", ("+1", "+1", "+1", "+1")),
    "ace and ten to 21 in three": ("AS KS", "TD 6D 5D", ("0", "0", "-1", "-1")),
    "ace and ten to a natural": ("AS KS", "AD KD", ("-1", "-1", "-1", "-1")),
    "21 in five to 20": ("2S 3S 4S 5S 7S", "TD KD", ("+2", "+1", "+1", "+1")),
    "bust, dealer bust": ("TS 8S 9S", "TD 6D 8D", ("-1", "-1", "-1", "-1")),
}


def dealers(up: str) -> list[list[str]]:
    """Two cards of the dealer with this one up, every other rank face down."""
    return [[f"{up}D", f"{hole}H"] for hole in UP]


@pytest.mark.rule("R-25", "13:69F-2.7", "13:47-20.22(g)7i", "13:47-20.22(g)7ii", "13:47-20.22(g)7iii")
@pytest.mark.rule("13:47-20.22(a) blackjack", "13:47-20.22(g)7", "13:47-20.22(g)8", "13:47-20.22(g)9")
@pytest.mark.rule("13:47-20.22(g)8i", "13:47-20.22(g)9i")
@pytest.mark.parametrize("up", UP)
@pytest.mark.parametrize("regime", REGIMES)
def test_naturals_against_every_up_card_and_hole_card(regime, up):
    column = [*REGIMES].index(regime)
    for dealer in dealers(up):
        natural = {up, dealer[1][0]} & {"A"} != set() and {up, dealer[1][0]} & {*TEN} != set()
        assert is_natural(dealer) is natural
        for ten in TEN:
            for mine in (["AS", f"{ten}S"], [f"{ten}S", "AS"]):
                wanted = Fraction(NATURALS[True, natural][column])
                assert settle(mine, dealer, REGIMES[regime]).gain == wanted
        if natural:
            other = settle(["TS", "KS"], dealer, REGIMES[regime])
            assert other.gain == Fraction(NATURALS[False, True][column])


@pytest.mark.rule("13:47-20.22(h)")
@pytest.mark.rule("13:69F-2.3", "13:69F-2.16", "13:47-20.22(h)1", "13:47-20.22(h)2", "13:47-20.22(h)3")
@pytest.mark.parametrize("name", HANDS)
def test_hands_against_hands(name):
    mine, dealer, wanted = HANDS[name]
    got = [settle(mine.split(), dealer.split(), terms).gain for terms in REGIMES.values()]
    assert got == [Fraction(gain) for gain in wanted]


@pytest.mark.rule("13:69F-2.11", "13:47-20.22(g)2")
@pytest.mark.parametrize("name", SPLIT)
def test_a_split_hand_holds_no_natural(name):
    mine, dealer, wanted = SPLIT[name]
    got = [settle(mine.split(), dealer.split(), terms, split=True).gain for terms in REGIMES.values()]
    assert got == [Fraction(gain) for gain in wanted]


@pytest.mark.rule("13:69F-2.8")
def test_a_surrender_costs_half_the_wager_whatever_the_dealer_has():
    for dealer in ([], ["TD", "6D", "8D"], ["AD", "KD"]):
        assert settle(["TS", "6S"], dealer, CASINO, surrendered=True) == (Outcome.SURRENDER, Fraction(-1, 2))


@pytest.mark.rule("13:69F-2.9", "13:47-20.22(g)4", "13:47-20.22(a) insurance betting")
@pytest.mark.parametrize("hole", UP)
def test_insurance_is_paid_2_to_1_when_the_dealers_second_card_is_a_ten(hole):
    wanted = (Outcome.WIN, Fraction(2)) if hole in TEN else (Outcome.LOSE, Fraction(-1))
    assert settle_insurance(["AD", f"{hole}H"]) == wanted
    assert settle_insurance(["AD", f"{hole}H", "9C"]) == wanted


@pytest.mark.rule("R-34", "13:47-20.22(g)10v(2)", "13:47-20.22(g)10v(3)")
def test_the_dealer_draws_to_16_and_stands_on_every_17():
    draws = {"TD 6D": True, "AD 5D": True, "TD 7D": False, "AD 6D": False, "AD 7D": False, "8D 8H 5D": False}
    draws |= {"AD 5D TD": True, "AD 5D TD AH": False, "AD AH 5D": False, "AD AH 4D": True, "TD 6D 9D": False}
    assert {hand: dealer_draws(hand.split()) for hand in draws} == draws
    assert dealer_is_done(["TD", "6D", "9D"])
    assert not dealer_is_done(["TD", "6D"])
    assert not dealer_is_done(["TD", "7D", "2D"]), "a card that the dealer must not take"
    assert not dealer_is_done(["AD", "6D", "2D"]), "nor on a soft 17"


@pytest.mark.rule(
    "R-09", "13:47-20.22(b)2ii", "13:47-20.22(b)2ii(1)", "13:47-20.22(b)2ii(2)", "13:47-20.22(b)2ii(3)"
)
def test_what_hands_count():
    hands = {"AS KS": 21, "AS AH": 12, "AS AH AC": 13, "AS 9S": 20, "AS 5S TS": 16, "AS AH 9S": 21}
    hands |= {"AS AH 9S TS": 21, "9S 8S 7S": 24, "AS": 11, "JS QS KS": 30, "": 0}
    assert {hand: score(hand.split()) for hand in hands} == hands
    assert totals(["AS", "9S"]) == (10, 20)
    assert [is_soft(hand.split()) for hand in ("AS 6S", "AS 6S TS", "9S 8S", "AS AH 9S")] == [
        *(True, False, False, True)
    ]


def test_odds_in_words():
    assert [odds(Fraction(gain)) for gain in ("3/2", "2", "1")] == ["3 to 2", "2 to 1", "1 to 1"]


CARDS = st.sampled_from(DECK)
TERMS = st.sampled_from([*REGIMES.values()])
TWO = st.lists(CARDS, min_size=2, max_size=2)
HAND = st.lists(CARDS, min_size=2, max_size=8)


@given(HAND)
def test_a_score_is_the_best_total_and_no_order_changes_it(hand):
    counts = [[1, 11] if card[0] == "A" else [10 if card[0] in TEN else int(card[0])] for card in hand]
    sums = {sum(combination) for combination in product(*counts)}
    assert score(hand) == max((total for total in sums if total <= 21), default=min(sums))
    assert score(hand[::-1]) == score(hand)


@given(HAND, HAND, TERMS, st.booleans())
def test_what_a_wager_gains_is_what_its_outcome_says(mine, dealer, terms, split):
    outcome, gain = settle(mine, dealer, terms, split=split)
    assert (gain > 0, gain == 0, gain < 0) == (
        *(outcome is Outcome.WIN, outcome is Outcome.PUSH, outcome is Outcome.LOSE),
    )
    assert Fraction(-1) <= gain <= 2


@given(HAND, HAND)
def test_each_option_of_ties_keeps_more_ties_for_the_house(mine, dealer):
    order = [Outcome.LOSE, Outcome.PUSH, Outcome.WIN]
    i, ii, iii = (order.index(settle(mine, dealer, casino_night(ties)).outcome) for ties in Ties)
    assert i >= ii >= iii
    assert (i == 2) == (ii == 2) == (iii == 2), "no option makes a winner of a loser"


@given(TWO, st.lists(CARDS, max_size=12))
def test_a_dealer_who_plays_by_the_rule_is_done(hand, rest):
    dealer = list(hand)
    for card in rest:
        if not dealer_draws(dealer):
            break
        dealer.append(card)
    assert dealer_is_done(dealer) is not dealer_draws(dealer)
    assert dealer_draws(dealer) or 17 <= score(dealer) <= 26


@given(TWO, TWO, TERMS)
def test_suits_change_nothing(mine, dealer, terms: Terms):
    plain = [[card[0] + "S" for card in hand] for hand in (mine, dealer)]
    assert settle(*plain, terms) == settle(mine, dealer, terms)
