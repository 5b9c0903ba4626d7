"""Match-the-dealer (13:69F-2.23), over/under-13 (2.17, 2.2(b)3ii) and multiple action (2.18)."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from controller.table.eligibility import MATCH_ODDS
from controller.table.inputs import Role
from controller.table.phases import Phase
from controller.table.profiles import MatchTerms
from controller.table.rules import expected
from controller.table.side_wagers import over_under, pays
from controller.table.view import snapshot
from devices import events as ev
from devices.events import DECK
from tests.support.table import Table, table_rules

DEALER, SUPERVISOR = frozenset({Role.DEALER}), frozenset({Role.SUPERVISOR})
TERMS = {decks: MatchTerms(*odds) for decks, odds in MATCH_ODDS.items()}

POSTED = MatchTerms(4, 11, 5, 100)

# --- the cards ---

GOLDEN = {
    # dealer's first card, player's cards: what each matching card pays with six decks, and with eight
    ("8S", "8H 2C"): ((4,), (3,)),
    ("8S", "2C 8D"): ((4,), (3,)),
    ("8S", "8S 2C"): ((11,), (14,)),
    ("8S", "8H 8D"): ((4, 4), (3, 3)),
    ("8S", "8S 8D"): ((11, 4), (14, 3)),
    ("8S", "8C 8S"): ((4, 11), (3, 14)),
    ("8S", "8S 8S"): ((11, 11), (14, 14)),
    ("8S", "2S 3S"): ((), ()),
    ("AS", "AC AS"): ((4, 11), (3, 14)),
    ("TS", "JS KS"): ((), ()),
    ("TS", "TD QS"): ((4,), (3,)),
    ("JS", "TS JS"): ((11,), (14,)),
    ("QS", "KS JS"): ((), ()),
    ("KS", "KD KS"): ((4, 11), (3, 14)),
}


@pytest.mark.rule("R-38")
@pytest.mark.parametrize(("cards", "paid"), GOLDEN.items(), ids=lambda value: " ".join(map(str, value)))
def test_what_each_matching_card_pays(cards: tuple[str, str], paid: tuple[tuple[int, ...], ...]) -> None:
    dealers, own = cards
    for decks, odds in zip((6, 8), paid, strict=True):
        found = [pays(card, dealers, TERMS[decks]) for card in own.split()]
        assert tuple(one for one in found if one is not None) == odds


@pytest.mark.rule("R-38")
@pytest.mark.parametrize("decks", [6, 8])
def test_of_a_deck_one_card_matches_in_suit_and_three_beside_it(decks: int) -> None:
    """By rank alone, for the ten-values too: counted without asking what a card is worth."""
    other_suit, same_suit = {6: (4, 11), 8: (3, 14)}[decks]
    for dealers in DECK:
        paid = {card: pays(card, dealers, TERMS[decks]) for card in DECK}
        assert [card for card, odds in paid.items() if odds == same_suit] == [dealers]
        beside = {card for card, odds in paid.items() if odds == other_suit}
        assert beside == {dealers[0] + suit for suit in "CDHS"} - {dealers}
        assert sum(odds is None for odds in paid.values()) == 48


@pytest.mark.rule("R-09", "R-40")
def test_an_ace_counts_one_for_over_under_thirteen_and_thirteen_wins_nothing() -> None:
    worth = {**{str(n): n for n in range(2, 10)}, "A": 1, **dict.fromkeys("TJQK", 10)}
    for one, two in product("A23456789TJQK", repeat=2):
        total = worth[one] + worth[two]
        wins = None if total == 13 else "over" if total >= 14 else "under"
        assert over_under((f"{one}S", f"{two}D")) == wins
    assert over_under(("AS", "AD")) == "under"
    assert over_under(("AS", "KD")) == "under"


# --- at the table ---


class Matching(Table):
    """A six-deck table that offers match-the-dealer, with what its posted terms are."""

    def __init__(self, **changes: Any) -> None:
        rules = {"decks": 6, "settle_first": True, "match": POSTED, "wagers": ("match-the-dealer",)}
        super().__init__(table_rules(**{**rules, **changes}))
        self.open_to_shoe()

    def deal_cards(self, cards: str, **given: Any) -> None:
        """The bets, and the cards up to the players' second ones."""
        self.tap("bets_closed", **given)
        self.stack += reversed(cards.split())
        for _ in cards.split():
            self.draw()

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = snapshot(self.rules, self.state)["side_wagers"]
        return found

    def settle(self) -> dict[str, Any]:
        return dict(self.tap("side_wagers_settled").facts[0].data)


@pytest.mark.rule("R-37", "R-38", "R-40")
def test_the_losers_are_named_first_then_the_winners_and_what_each_card_pays() -> None:
    t = Matching()
    assert t.told == {}
    t.deal_cards("8S 2C 8H 3C 8S 8D 2D 4D 9S", boxes="1,2,3,5", match="1,2,3")
    rows = [
        {"box": 2, "outcome": "lost"},
        {"box": 1, "outcome": "won", "pays": [11, 4]},
        {"box": 3, "outcome": "won", "pays": [4]},
    ]
    assert t.told == {"match": rows}
    assert t.settle()["match"] == rows
    assert t.told == {}
    t.draw()
    t.tap("round_settled")


def test_a_wager_nobody_entered_is_not_told_and_none_is_guessed() -> None:
    t = Matching()
    t.deal_cards("8S 2C 8H 8D 2D", boxes="1,2")
    assert "match" not in t.settle()
    t = Matching()
    t.tap("bets_closed", boxes="1,2,3", match=[1, 2, 3])
    t.stack += reversed(["8S", "2C", "3D", "8H", "8D", "2D", "4S"])
    for index in range(7):
        t.draw(**({"card": None} if index == 4 else {}))
    unread, lost = {"box": 1, "outcome": "unknown"}, {"outcome": "lost"}
    assert t.told == {"match": [{"box": 2, **lost}, {"box": 3, **lost}, unread]}
    t.event(ev.GapPossible, missing=1)
    assert {row["outcome"] for row in t.told["match"]} == {"unknown"}
    t.settle()


@pytest.mark.rule("R-39")
def test_the_basic_wager_comes_first_and_the_wager_must_be_offered() -> None:
    t = Matching()
    refused = t.refused("bets_closed", boxes="1,2", match="2,3")
    assert (refused.code, refused.clause) == ("no_basic_wager", "13:69F-2.23(c)")
    assert "box 3" in refused.why
    assert t.refused("bets_closed", boxes="1,2", match="x").code == "bad_argument"
    assert t.refused("bets_closed", boxes="1,2", match="").code == "bad_argument"
    assert t.refused("side_wagers_settled").code == "unexpected"
    t = Matching(match=None, wagers=())
    assert t.refused("bets_closed", boxes="1", match="1").code == "not_offered"
    t.tap("bets_closed", boxes="1")
    assert t.refused("cash_wager", box=1, amount=5).code == "not_offered"
    assert snapshot(t.rules, t.state)["match_the_dealer"] is None


def test_what_is_posted_is_shown() -> None:
    shown = {"minimum": 5, "maximum": 100, "other_suit": 4, "same_suit": 11}
    t = Matching()
    assert snapshot(t.rules, t.state)["match_the_dealer"] == shown


# --- by word, with cash ---


@pytest.mark.rule("R-39")
@pytest.mark.parametrize("first", [DEALER, SUPERVISOR], ids=["dealer first", "supervisor first"])
def test_a_wager_by_word_needs_both_before_the_first_card_and_chips_before_it_is_settled(first: Any) -> None:
    t = Matching()
    assert t.refused("cash_wager", box=1, amount=25).code == "unexpected", "no basic wager is known yet"
    t.tap("bets_closed", boxes="1,2")
    (ann, one), (sue, two) = sorted([("ann", DEALER), ("sue", SUPERVISOR)], key=lambda who: who[1] != first)
    t.tap("cash_wager", one, ann, box=1, amount=25)
    assert "cash_wager box=1 amount=25" in expected(t.rules, t.state)
    assert t.refused("cash_wager", one, ann, box=1, amount=25).code == "not_allowed"
    assert t.refused("cash_wager", two, sue, box=1, amount=30).code == "amount_differs"
    assert t.refused("cash_wager", two, ann, box=1, amount=25).code == "same_person"
    assert t.refused("cash_converted", box=1).code == "no_cash_wager"
    t.tap("cash_wager", two, sue, box=1, amount=25)
    assert t.refused("cash_wager", two, sue, box=1, amount=25).code == "confirmed_already"
    assert "cash_converted box=1" in expected(t.rules, t.state)
    t.stack += reversed(["8S", "2C", "8H", "3D", "3C"])
    for _ in range(5):
        t.draw()
    refused = t.refused("side_wagers_settled")
    assert (refused.code, refused.clause) == ("cash_not_converted", "13:69F-2.23(d)")
    assert refused.expected == ("cash_converted box=1",)
    t.tap("cash_converted", box=1)
    assert t.refused("cash_converted", box=1).code == "converted_already"
    assert t.settle()["match"] == [{"box": 1, "outcome": "won", "pays": [4]}]


@pytest.mark.rule("R-39")
def test_too_late_too_little_too_much_or_without_a_basic_wager() -> None:
    t = Matching()
    t.tap("bets_closed", boxes="1,2")
    for amount in (4, 101):
        refused = t.refused("cash_wager", box=1, amount=amount)
        assert (refused.code, refused.clause) == ("outside_limits", "13:69F-2.23(c)")
    assert t.refused("cash_wager", box=3, amount=5).code == "no_basic_wager"
    t.tap("cash_wager", box=1, amount=5)
    t.draw()
    for box in (1, 2):
        refused = t.refused("cash_wager", SUPERVISOR, "sue", box=box, amount=5)
        assert (refused.code, refused.clause) == ("cards_dealt", "13:69F-2.23(d)")
    for _ in range(4):
        t.draw()
    told = t.settle()
    assert told["cash_back"] == [1], "one of two confirmed it: it is no wager"
    assert "match" not in told


def test_no_limit_is_posted_and_a_person_who_is_both_confirms_twice() -> None:
    t = Matching(match=MatchTerms(4, 11))
    t.tap("bets_closed", boxes="1")
    assert t.refused("cash_wager", box=1, amount=0).code == "outside_limits"
    everyone = frozenset(Role)
    for _ in range(2):
        t.tap("cash_wager", everyone, "root", box=1, amount=100_000)
    assert t.state.round is not None
    assert t.state.round.cash[0].accepted


# --- other wagers ---


@pytest.mark.rule("R-09", "R-40")
def test_over_under_thirteen_is_told_of_every_box_whose_cards_are_known() -> None:
    t = Matching(match=None, wagers=("over-under-13",))
    t.deal_cards("AS 7C KD 9H KD 6C 5S", boxes="1,2,3")
    rows = [{"box": 1, "wins": "under"}, {"box": 2, "wins": None}, {"box": 3, "wins": "over"}]
    assert t.told == {"over_under_13": rows}
    assert t.settle()["over_under_13"] == rows


@pytest.mark.rule("R-29")
@pytest.mark.parametrize("hands", [2, 3])
def test_every_hand_of_the_dealer_is_played_before_the_round_is_settled_and_the_shoe_ends(hands: int) -> None:
    t = Table(table_rules(dealer_hands=hands))
    t.open_to_shoe()
    t.deal("1")
    t.event(ev.CutCard)
    t.tap("cutting_card_at", box="dealer")
    for left in range(hands - 1, 0, -1):
        refused = t.refused("round_settled")
        assert (refused.code, refused.clause) == ("dealer_hands_left", "13:69F-2.18(a)")
        assert refused.expected == ("dealer_hand_settled",)
        assert refused.why.startswith(str(left))
        t.draw()
        t.tap("dealer_hand_settled")
    assert t.refused("dealer_hand_settled").code == "last_hand"
    assert t.state.phase is Phase.PLAYING
    t.tap("round_settled")
    assert t.state.phase is Phase.SHOE_END


@pytest.mark.rule("R-29")
def test_a_void_round_waits_for_no_hand_and_one_hand_needs_no_tap() -> None:
    t = Table(table_rules(dealer_hands=3))
    t.open_to_shoe()
    t.deal("1")
    t.tap("void_round", SUPERVISOR, reason="misdeal")
    t = Table()
    t.open_to_shoe()
    t.deal("1")
    assert t.refused("dealer_hand_settled").code == "not_offered"
    assert "dealer_hand_settled" not in expected(t.rules, t.state)
