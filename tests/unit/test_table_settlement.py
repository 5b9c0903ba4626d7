"""What hands that were followed win, and which rounds nobody can settle."""

from dataclasses import replace

import pytest

from controller.table.blackjack import Ties
from controller.table.inputs import Role
from controller.table.settlement import CUT_OFF
from controller.table.view import snapshot
from devices import events as ev
from firmware_bridge.link import Done
from tests.support.felt_hands import Played, with_reader

SUPERVISOR = frozenset({Role.SUPERVISOR})


@pytest.mark.rule("R-25", "13:69F-2.7", "13:47-20.22(g)9i")
@pytest.mark.parametrize(
    ("night", "odds"),
    [(None, "3 to 2"), (Ties.PUSH, "3 to 2"), (Ties.NATURALS_PUSH, "2 to 1"), (Ties.HOUSE_WINS, "2 to 1")],
)
def test_a_natural_is_over_at_once(night, odds):
    t = Played(night)
    t.round("AS 9D 6C KH 8D TC")
    assert t.no("hit", box="1")[0] == "hand_is_over"
    t.tap("stand", box="2")
    t.cards("3D")
    t.tap("round_settled")
    assert t.won == {"box 2": "lose", "box 1": f"win {odds}"}


@pytest.mark.rule("13:69F-2.16")
def test_21_in_five_cards_is_paid_2_to_1():
    t = Played()
    t.round("2S 6C 3S TC", boxes="1")
    for card in ("4S", "5S", "7S"):
        t.tap("hit")
        t.cards(card)
    t.cards("4D")
    t.tap("round_settled")
    assert t.won == {"box 1": "win 2 to 1"}


@pytest.mark.rule("13:69F-2.8")
def test_half_the_wager_is_surrendered_on_two_cards():
    t = Played()
    t.round("TS 9D 6C 6H 8D TC")
    t.tap("surrender", box="1")
    assert t.no("hit", box="1")[0] == "hand_is_over"
    t.tap("hit", box="2")
    t.cards("2D")
    assert t.no("surrender", box="2") == ("no_surrender", "13:69F-2.8(a)")
    t.tap("stand")
    t.cards("TD")
    t.tap("round_settled")
    assert t.won == {"box 2": "win 1 to 1", "box 1": "surrender"}


@pytest.mark.rule("13:69F-2.9", "13:47-20.22(g)4", "13:47-20.22(g)8i", "13:47-20.22(g)10v(1)")
@pytest.mark.parametrize("night", [None, Ties.PUSH])
def test_insurance_wins_when_the_dealer_has_a_ten_below_the_ace(night):
    t = Played(night)
    t.round("TS 9D AC 6H 8D TC")
    t.tap("insurance", box="2")
    assert t.no("insurance", box="2")[0] == "already_insured"
    assert t.no("insurance", box="7")[0] == "no_wager_there"
    t.tap("round_settled")
    assert t.settled["dealer"] == {"total": 21, "natural": True}
    assert t.won == {"box 2": "lose", "box 1": "lose"}
    assert t.settled["insurance"] == [{"box": 2, "outcome": "win", "odds": "2 to 1"}]


@pytest.mark.rule("R-25", "13:69F-2.7")
def test_no_hand_is_played_against_a_natural_that_the_reader_told():
    t = with_reader()
    t.round("AS 9D AC KH 8D TC")
    t.tap("insurance", box="1")
    t.tap("peek")
    t.end(Done({}))
    t.event(ev.HoleCardChecked, "reader", result="natural")
    assert t.no("hit", box="2") == ("dealer_has_natural", "13:69F-2.7(a)")
    t.tap("round_settled")
    assert t.won == {"box 2": "lose", "box 1": "push"}
    t.round("AS 9D AC KH 8D TC")
    t.tap("peek")
    t.end(Done({}))
    t.event(ev.HoleCardChecked, "reader", result="natural")
    t.tap("round_settled")
    assert t.won == {"box 2": "lose", "box 1": "push"}, "there was nothing to tap"


@pytest.mark.rule("13:47-20.22(g)10iv")
def test_when_all_hands_bust_the_dealers_hand_is_discarded_unturned():
    t = Played(Ties.PUSH)
    t.round("TS 9D 6C 6H 8D TC")
    for card in ("TD", "9H"):
        t.tap("hit")
        t.cards(card)
    since = len(t.facts)
    t.tap("round_settled")
    assert t.kinds(since) == ["round_settled", "settlement"], "the hole card is shown to nobody"
    assert t.settled["dealer"] is None
    assert t.won == {"box 2": "lose", "box 1": "lose"}
    assert sum(t.state.shoe.unseen.values()) == 2, "the burned card and this one"
    licensed = Played()
    licensed.round("TS 6C 6H TC", boxes="1")
    licensed.tap("hit")
    licensed.cards("TD")
    licensed.tap("round_settled")
    assert licensed.settled["dealer"] == {"total": 16, "natural": False}


@pytest.mark.parametrize(
    ("faces", "plays", "why"),
    [
        ("TS 9D 6C 6H 8D TC", ["stand 1"], "box 2 was not played to its end"),
        ("TS 9D 6C 6H 8D TC", ["stand 1", "stand 2"], "the dealer's hand was not played by the rule"),
        ("TS 9D 6C 6H 8D TC", ["hit 1"], "box 2 was not played to its end"),
        ("TS 9D TD 6H 8D TC", ["stand 1", "stand 2", "2D"], "the dealer's hand was not played by the rule"),
        ("TS 9D TD 6H 8D AC", ["double 1", "2D", "stand 2"], CUT_OFF),
        ("TS 9D TD 6H 8D AC", ["surrender 1", "stand 2"], CUT_OFF),
        ("8S 9D TD 8H 8D AC", ["split 1", "2D", "stand 1", "2H", "stand 1", "stand 2"], CUT_OFF),
        ("2S 9D TD 3H 8D AC", ["hit 1", "4D", "hit 1", "5D", "hit 1", "7D", "stand 2"], CUT_OFF),
    ],
)
@pytest.mark.rule("R-30")
def test_what_the_taps_do_not_tell_is_not_settled(faces, plays, why):
    t = Played()
    t.round(faces)
    for play in plays:
        name, _, number = play.partition(" ")
        t.tap(name, box=number) if number else t.cards(name)
    t.tap("round_settled")
    assert t.settled["round"] == 1
    assert t.settled["why"].startswith(why)
    assert t.codes == []


def test_a_card_not_read_has_no_total_and_no_settlement():
    t = Played()
    t.round("TS 9D 6C 6H 8D TC")
    t.tap("hit")
    t.draw(card=None)
    assert snapshot(t.rules, t.state)["round"]["hands"][0]["total"] is None
    t.tap("stand")
    t.tap("stand")
    t.cards("5D")
    t.tap("round_settled")
    assert t.settled["why"] == "a card was not read"


def test_a_void_round_is_not_settled():
    t = Played()
    t.round("TS 9D 6C 6H 8D TC")
    t.tap("stand")
    t.tap("void_round", SUPERVISOR, reason="misdeal")
    assert t.state.settlement is None


def test_a_reader_says_natural_where_nobody_counts_the_cards():
    t = with_reader()
    t.round("AS 9D AC KH 8D TC")
    t.tap("peek")
    t.end(Done({}))
    t.event(ev.HoleCardChecked, "reader", result="natural")
    t.rules = replace(t.rules, shoe=None)
    t.tap("round_settled")
    assert t.state.settlement is None


@pytest.mark.rule("13:47-20.22(g)6")
def test_of_a_hand_with_a_card_face_down_the_player_knows_what_it_may():
    """Only what does not depend on its cards is refused; its total shows when the round is settled."""
    t = Played(Ties.PUSH)
    t.tap("bets_closed", boxes="1,2")
    assert t.state.round is not None
    t.state = replace(t.state, round=replace(t.state.round, down="first"))
    t.cards("8S 8D 6C 8H 2D TC")
    assert [card.seen for card in t.state.round.cards] == [False, False, True, True, True, False]
    assert t.no("surrender", box="1") == ("no_surrender", "13:47-20.22(g)10i")
    t.tap("split", box="1")
    t.cards("3S")
    assert t.no("double", box="1/1") == ("no_double", "13:47-20.22(g)2")
    t.tap("stand")
    t.cards("TH")
    t.tap("stand")
    assert snapshot(t.rules, t.state)["round"]["hands"][2]["total"] is None
    t.tap("double", box="2")
    t.cards("9S")
    t.cards("2C")
    t.tap("round_settled")
    assert t.won == {"box 2": "win 1 to 1", "box 1/2": "push", "box 1/1": "lose"}
    assert t.settled["dealer"] == {"total": 18, "natural": False}


@pytest.mark.rule("13:47-20.22(g)1", "13:47-20.22(g)2", "13:47-20.22(g)3", "13:47-20.22(g)10ii")
@pytest.mark.parametrize(
    ("faces", "plays", "why"),
    [
        (
            "8C 9D 6C 8D 8H TC",
            ["double 1", "5S"],
            "box 1 was doubled: a double takes a total of 10 or 11, not 16 [13:47-20.22(g)3]",
        ),
        (
            "9C 9D 6C 7C 8H TC",
            ["split 1", "TS", "stand 1", "TH", "stand 1"],
            "box 1 was split: only two cards of the same value may be split [13:47-20.22(g)1]",
        ),
        (
            "9C 9D 6C 9H 8H TC",
            ["split 1", "TS", "stand 1", "8D", "split 1", "7H", "stand 1", "3C", "stand 1"],
            "box 1 was split: only two cards of the same value may be split [13:47-20.22(g)1]",
        ),
        (
            "AC 9D 6C AH 8H TC",
            ["split 1", "2S", "hit 1", "8D", "TH", "stand 1"],
            "box 1 was split: a split ace takes one card and is over [13:47-20.22(g)2]",
        ),
        (
            "AC 9D 6C KH 8H TC",
            ["hit 1", "5S", "stand 1"],
            "box 1 took a card too many: a hand of 21 draws no card [13:47-20.22(g)10ii]",
        ),
    ],
)
def test_a_play_that_the_card_face_down_did_not_allow_is_not_settled(faces, plays, why):
    t = Played(Ties.PUSH)
    t.tap("bets_closed", boxes="1,2")
    assert t.state.round is not None
    t.state = replace(t.state, round=replace(t.state.round, down="second"))
    t.cards(faces)
    for play in [*plays, "stand 2", "5D"]:
        name, _, number = play.partition(" ")
        t.tap(name, box=number) if number else t.cards(name)
    t.tap("round_settled")
    assert t.settled == {"round": 1, "why": why}
