"""Hands followed one by one: which card goes to whom, whose turn it is, what is refused, what is settled."""

from itertools import product

import cbor2
import pytest

from controller.table import hands
from controller.table.blackjack import Ties
from controller.table.checkpoint import checkpoint, restore
from controller.table.inputs import OperatorEvent, Refusal, Role
from controller.table.rules import decide, expected
from controller.table.view import snapshot
from devices import events as ev
from tests.support.felt_hands import Played, with_reader
from tests.support.table import table_rules

SUPERVISOR = frozenset({Role.SUPERVISOR})


@pytest.mark.rule("R-30", "13:69F-2.12", "13:47-20.22(d)4", "13:47-20.22(g)10", "13:47-20.22(g)10v")
@pytest.mark.rule("13:47-20.22(a) stand", "13:47-20.22(g)10i(1)", "13:47-20.22(g)10i(2)", "13:47-20.22(h)1")
def test_each_card_goes_to_the_hand_that_called_for_it_then_to_the_dealer():
    t = Played()
    t.round("5S 9D 6C 7S 8D TC")
    t.tap("hit", box="1")
    t.cards("4H")
    t.tap("hit", box="1")
    t.cards("3D")
    t.tap("stand", box="1")
    t.tap("stand", box="2")
    t.cards("5D")
    assert t.places[6:] == ["box 1", "box 1", "dealer"]
    t.tap("round_settled")
    assert t.settled["dealer"] == {"total": 21, "natural": False}
    assert t.settled["hands"] == [
        {"hand": "box 2", "total": 17, "doubled": False, "outcome": "lose", "odds": None},
        {"hand": "box 1", "total": 19, "doubled": False, "outcome": "lose", "odds": None},
    ], "from the dealer's right"


@pytest.mark.rule("R-30")
def test_two_taps_a_round_still_suffice():
    t = Played()
    t.round("5S 9D 6C 7S 8D TC")
    since = len(t.facts)
    t.cards("4H 3D")
    assert t.places[6:] == ["play", "play"]
    t.tap("round_settled")
    assert t.kinds(since) == ["card_drawn", "card_drawn", "round_settled", "exposed"]


@pytest.mark.rule("R-30")
def test_a_card_that_no_tap_called_for_ends_it_for_this_round():
    t = Played()
    t.round("5S 9D 6C 7S 8D TC")
    t.tap("stand", box="1")
    t.cards("4H")
    assert t.places[6:] == ["play"]
    assert t.no("stand", box="2")[0] == "hands_not_followed"
    assert not any(line.startswith(("hit", "stand")) for line in expected(t.rules, t.state))
    t.tap("round_settled")
    assert t.settled == {"round": 1, "why": "a card came out that no tap called for"}
    t.round("5S 9D 6C 7S 8D TC")
    assert t.state.settlement is None
    t.tap("stand", box="1")


@pytest.mark.rule("13:47-20.22(e)")
def test_a_card_nobody_asked_for_that_is_burned_is_forgotten():
    t = Played()
    t.round("5S 9D 6C 7S 8D TC")
    t.tap("stand", box="1")
    t.cards("4H")
    t.tap("drawn_in_error", exposed=True, burned=True)
    t.tap("stand", box="2")
    t.cards("5D")
    assert t.places[6:] == ["burned", "dealer"]
    t.tap("round_settled")
    assert t.won == {"box 2": "lose", "box 1": "lose"}


@pytest.mark.rule("R-30", "13:47-20.22(g)5ii", "13:47-20.22(g)10iii")
@pytest.mark.rule("13:47-20.22(a) stand", "13:47-20.22(g)10i(1)", "13:47-20.22(g)10i(2)")
def test_the_hand_farthest_right_is_played_to_its_end_first():
    t = Played()
    t.round("5S 9D 6C 7S 8D TC")
    assert t.no("hit", box="2") == ("not_its_turn", "13:69F-2.6")
    t.tap("hit", box="1")
    assert t.no("hit", box="1") == ("card_due", "13:69F-2.12")
    assert t.no("stand", box="2")[0] == "not_its_turn"
    t.cards("9H")
    assert t.no("hit", box="1") == ("hand_is_over", "13:69F-2.12(a)1"), "21"
    t.tap("hit")
    assert t.facts[-1].data["hand"] == "box 2", "without a box: whose turn it is"
    t.cards("9C")
    assert t.no("hit") == ("no_hand_plays", "13:69F-2.12"), "both are over"
    night = Played(Ties.PUSH)
    night.round("5S 9D 6C 7S 8D TC")
    assert night.no("hit", box="2") == ("not_its_turn", "13:47-20.22(g)5ii")
    assert night.no("stand", box="3") == ("no_wager_there", "13:47-20.22(g)10i")


@pytest.mark.rule("R-30", "13:69F-2.10")
def test_a_doubled_hand_takes_one_card():
    t = Played()
    t.round("5S 9D 6C 6H 8D TC")
    t.tap("double", box="1")
    t.cards("2H")
    assert t.no("hit", box="1")[0] == "hand_is_over"
    assert t.no("double", box="3")[0] == "no_wager_there"
    t.tap("hit", box="2")
    t.cards("2D")
    assert t.no("double", box="2") == ("no_double", "13:69F-2.10(a)")
    t.tap("stand")
    t.cards("TD")
    t.tap("round_settled")
    assert t.won == {"box 2": "win 1 to 1", "box 1": "win 1 to 1"}
    assert [hand["doubled"] for hand in t.settled["hands"]] == [False, True]


@pytest.mark.rule("R-30", "13:69F-2.11", "13:69F-2.10")
def test_a_split_pair_is_two_hands_and_the_right_one_is_played_first():
    t = Played()
    t.round("8S 9D 6C 8H 8D TC")
    t.tap("split", box="1")
    assert t.places[:6] == ["box 1/1", "box 2", "dealer", "box 1/2", "box 2", "hole"]
    t.cards("3S")
    assert t.no("stand", box="1/2")[0] == "not_its_turn"
    t.tap("double", box="1/1")
    t.cards("TS")
    t.cards("8C")
    assert t.places[6:] == ["box 1/1", "box 1/1", "box 1/2"], "the second card needs no tap"
    assert t.no("split", box="1/2") == ("no_split", "13:69F-2.11(a)")
    t.tap("stand", box="1")
    t.tap("stand", box="2")
    t.cards("TD")
    t.tap("round_settled")
    assert t.won == {"box 2": "win 1 to 1", "box 1/2": "win 1 to 1", "box 1/1": "win 1 to 1"}
    assert t.settled["hands"][-1] == {
        "hand": "box 1/1",
        "total": 21,
        "doubled": True,
        "outcome": "win",
        "odds": "1 to 1",
    }


@pytest.mark.rule("13:47-20.22(g)2", "13:47-20.22(g)3", "13:47-20.22(g)1")
def test_splits_of_a_casino_night_go_on_and_are_never_doubled():
    t = Played(Ties.PUSH)
    t.round("KS 9D 6C JH 8D TC")
    t.tap("split", box="1")
    t.cards("QS")
    assert t.no("double", box="1/1") == ("no_double", "13:47-20.22(g)2")
    t.tap("split", box="1/1")
    t.cards("AS")
    assert t.no("hit", box="1/1") == ("hand_is_over", "13:47-20.22(g)10ii"), "21 in two cards"
    t.cards("5S")
    assert t.places[6:] == ["box 1/3", "box 1/1", "box 1/3"], "the third hand before the second"
    t.tap("stand", box="1/3")
    t.cards("2H")
    t.tap("stand", box="1/2")
    assert t.no("double", box="2") == ("no_double", "13:47-20.22(g)3")
    assert t.no("surrender", box="2") == ("no_surrender", "13:47-20.22(g)10i")
    t.tap("stand", box="2")
    t.cards("5D")
    t.tap("round_settled")
    assert t.won == {"box 2": "lose", "box 1/2": "lose", "box 1/3": "lose", "box 1/1": "push"}


@pytest.mark.rule("13:47-20.22(g)2")
def test_split_aces_of_a_casino_night_take_one_card_each_and_are_no_natural():
    t = Played(Ties.NATURALS_PUSH)
    t.round("AS 9D 6C AH 8D TC")
    t.tap("split", box="1")
    t.cards("KS")
    t.cards("AC")
    assert t.no("split", box="1/2")[0] == "hand_is_over", "two cards in all"
    t.tap("stand", box="2")
    t.cards("TD")
    t.tap("round_settled")
    assert t.won == {"box 2": "win 1 to 1", "box 1/2": "win 1 to 1", "box 1/1": "win 1 to 1"}


@pytest.mark.rule("13:69F-2.9", "13:47-20.22(g)4")
def test_insurance_takes_an_ace_and_comes_before_the_look():
    t = Played()
    t.round("TS 9D 6C 6H 8D TC")
    assert t.no("insurance", box="2") == ("no_insurance", "13:69F-2.9(a)")
    night = Played(Ties.PUSH)
    night.round("TS 9D AC 6H 8D 9C")
    night.tap("stand", box="1")
    assert night.no("insurance", box="2") == ("too_late", "13:47-20.22(g)4")
    night.tap("stand", box="2")
    night.tap("round_settled")
    assert night.won == {"box 2": "lose", "box 1": "lose"}


@pytest.mark.rule("R-25", "13:69F-2.7")
def test_the_reader_goes_before_any_further_card_and_before_it_insurance():
    t = with_reader()
    t.round("TS 9D AC 6H 8D 9C")
    for play in ("hit", "stand", "double", "split"):
        refusal = t.refused(play, box="1")
        assert (refusal.code, refusal.clause, refusal.expected) == (
            "reader_first",
            "13:69F-2.7(a)",
            ("peek",),
        )
    t.tap("insurance", box="1")
    t.tap("peek")
    t.event(ev.HoleCardChecked, "reader", result="not_natural")
    assert t.no("insurance", box="2") == ("too_late", "13:69F-2.9(a)")
    t.tap("stand", box="1")
    t.tap("stand", box="2")


def test_events_lost_end_it():
    t = Played()
    t.round("TS 9D 6C 6H 8D TC")
    t.tap("stand")
    t.event(ev.GapPossible, missing=1)
    refusal = t.refused("stand")
    assert refusal.code == "hands_not_followed"
    assert "cards may have come out unseen" in refusal.why
    t.tap("round_settled")
    assert t.settled["why"] == "cards may have come out unseen"


def test_a_box_that_was_skipped_has_no_hand_and_what_was_told_of_the_others_is_forgotten():
    t = Played()
    t.tap("bets_closed", boxes="1,2")
    t.cards("TS 6C 6H TC TD 9D")
    t.tap("stand", box="1")
    t.tap("box_skipped", box=2, cards=0)
    assert t.state.round is not None
    assert t.state.round.hands == ()
    assert t.no("hit", box="2")[0] in ("no_wager_there", "hands_not_followed")


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"shoe": None}, "no_cards_known"), ({"game": "three-card-poker"}, "not_this_game")],
)
def test_tables_where_no_hand_is_followed(changes, code):
    t = Played()
    t.round("TS 9D 6C 6H 8D TC")
    t.rules = table_rules(decks=6, **changes)
    for event in ("hit", "surrender", "insurance"):
        assert t.no(event, box="1")[0] == code
    assert not any(line.startswith("hit") for line in expected(t.rules, t.state))


@pytest.mark.parametrize("box", ["0", "8", "x", "1/x", ""])
def test_a_box_that_there_is_not(box):
    t = Played()
    t.round("TS 9D 6C 6H 8D TC")
    assert t.no("hit", box=box)[0] in ("bad_argument", "no_wager_there")
    assert t.no("insurance")[0] == "bad_argument"


def test_status_tells_totals_turns_and_the_settlement_and_a_checkpoint_keeps_them():
    t = Played()
    t.round("AS 9D 6C 6H 8D TC")
    assert "hit box=1" in expected(t.rules, t.state)
    assert snapshot(t.rules, t.state)["round"]["hands"] == []
    t.tap("stand", box="1")
    t.tap("hit", box="2")
    assert snapshot(t.rules, t.state)["round"]["hands"] == [
        {"hand": "box 1", "total": 17, "soft": True, "state": "stood", "insured": False},
        {"hand": "box 2", "total": 17, "soft": False, "state": "plays", "insured": False},
    ]
    assert restore(cbor2.loads(cbor2.dumps(checkpoint(t.state)))) == t.state
    t.cards("9H")
    assert snapshot(t.rules, t.state)["round"]["hands"][1]["state"] == "over"
    t.cards("5D")
    t.tap("round_settled")
    assert snapshot(t.rules, t.state)["settlement"] == t.settled
    assert restore(cbor2.loads(cbor2.dumps(checkpoint(t.state)))) == t.state


def leaves_the_table(t: Played) -> list[object]:
    """Status, and the answer to every tap of hands that may be tried now."""
    out: list[object] = [snapshot(t.rules, t.state)]
    for event, box in product(hands.TAPS, ("1", "1/2", "2")):
        found = decide(t.rules, t.state, OperatorEvent(event, {"box": box}, "ann", SUPERVISOR))
        out.append(found if isinstance(found, Refusal) else [(f.kind, f.data) for f in found.facts])
    return out


@pytest.mark.rule("R-30")
@pytest.mark.parametrize("night", [None, Ties.PUSH])
@pytest.mark.parametrize("up", ["AC", "TC"])
def test_no_tap_of_hands_depends_on_the_hole_card(night, up):
    """Law 7: below the same up card a ten, an ace and a two. All hands bust: at casino nights for good."""
    tables = [Played(night) for _ in range(3)]
    for t, hole in zip(tables, ("TH", "AH", "2H"), strict=True):
        t.round(f"8S TD {up} 8H 6D {hole}")
    for step in ("split 1", "TS", "hit 1/1", "TH", "TC", "hit 1/2", "9H", "hit 2", "9D", "5S"):
        event, _, box = step.partition(" ")
        for t in tables:
            t.tap(event, box=box) if box else t.cards(event)
        first, *others = map(leaves_the_table, tables)
        assert others == [first, first]
    open_facts = []
    for t in tables:
        since = len(t.facts)
        t.tap("round_settled")
        open_facts.append([(fact.kind, fact.data) for fact in t.facts[since:]])
    assert (open_facts[1:] == open_facts[:1] * 2) is (night is not None)
