"""Casino nights, 13:47-20.22: one batch, shoe and shuffler optional, a burn before each round."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controller.table.inputs import Fact, Hour
from controller.table.phases import Phase
from controller.table.profiles import Burn, CardDown, FirstCardPolicy
from controller.table.rules import awaited, expected
from controller.table.state import Closing, Place, Prep, Shuffled
from controller.table.view import snapshot
from devices import events as ev
from tests.support.hands import SUPERVISOR, Hand, night_rules, night_shoe

NIGHT = "13:47-20.22"
VARIANTS: dict[str, Any] = {
    "hand": night_rules(),
    "hand and shuffler": night_rules(shuffler="shuffler"),
    "shoe": night_shoe(),
    "shoe and shuffler": night_shoe(shuffler="shuffler"),
}


def opened(rules: Any) -> Hand:
    t = Hand(rules)
    if rules.shuffler is None:
        t.open_by_hand()
    else:
        t.open_by_machine()
    return t


def begin(t: Hand, boxes: str = "1,2") -> None:
    t.tap("bets_closed", boxes=boxes)
    t.burn()


def dealt(t: Hand, boxes: str = "1,2") -> None:
    """A round up to its last card, through the shoe."""
    begin(t, boxes)
    while t.state.phase is not Phase.PLAYING:
        t.draw()


def runs_out(t: Hand) -> None:
    """The shoe is dealt out in a round, and says so."""
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)


# --- before the first card ---


@pytest.mark.rule("R-79", f"{NIGHT}(c)1", f"{NIGHT}(c)2", f"{NIGHT}(b)2i")
@pytest.mark.parametrize("rules", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("decks", [1, 4])
def test_shoe_and_shuffler_are_optional_and_one_batch_goes_in_again_and_again(rules: Any, decks: int) -> None:
    t = opened(replace(rules, decks=decks, cutting_card=True))
    for number in (1, 2, 3):
        assert (t.state.shoe.number, t.state.shoe.batch, t.state.phase) == (number, "A", Phase.BETWEEN_ROUNDS)
        if rules.by_eye:
            t.told(9, box="1")
            t.tap("collect_rack", gauge="full")
        else:
            dealt(t)
            t.event(ev.CutCard)
            t.tap("cutting_card_at", box="2")
            t.tap("round_settled")
            t.end_shoe()
        assert t.cards() == {Place.RACK: 52 * decks}
        if rules.shuffler is None:
            t.tap("reshuffle_by_hand", batch="A")
        else:
            t.tap("load_shuffler", batch="A")
            t.start()
            t.complete()
            t.take()
        t.load()
    assert (t.codes, t.alarms) == ([], [])


@pytest.mark.rule(f"{NIGHT}(d)1")
def test_a_batch_is_shuffled_as_it_came() -> None:
    t = Hand(night_rules())
    t.boot()
    t.tap("open")
    assert t.state.batches["A"].prep is Prep.AS_IT_CAME
    assert t.expected == ["reshuffle_by_hand"]
    for event in ("inspect", "verify", "spread", "player_inspected", "wash"):
        refusal = t.refused(event, SUPERVISOR, batch="A")
        assert (refusal.code, refusal.clause) == ("not_in_turn", NIGHT)
    assert t.refused("shuffle_demanded", batch="A").code == "not_certified"


@pytest.mark.rule(f"{NIGHT}(d)1", "R-79")
def test_it_is_cut_anywhere_by_anyone_or_by_the_dealer_unasked() -> None:
    t = Hand(night_rules())
    t.boot()
    t.tap("open")
    t.tap("reshuffle_by_hand", batch="A")
    for position in (0, 52):
        refusal = t.refused("cut", position=position)
        assert (refusal.code, refusal.clause) == ("cut_too_near_the_end", f"{NIGHT}(d)1")
    t.tap("offer_cut", box="5", refused=True)
    t.tap("offer_cut", box="2")
    t.tap("cut", position=1)
    assert t.facts[-1].data["by"] == "box 2"
    t.tap("take_in_hand", batch="A")
    assert t.state.phase is Phase.BETWEEN_ROUNDS
    other = opened(night_rules())
    assert next(f for f in other.facts if f.kind == "cut").data["by"] == "dealer"


@pytest.mark.rule(f"{NIGHT}(d)1", "R-79")
@pytest.mark.parametrize("behind", [0, 51])
def test_a_cutting_card_goes_in_where_it_likes(behind: int) -> None:
    t = Hand(night_rules(cutting_card=True))
    t.boot()
    t.tap("open")
    t.tap("reshuffle_by_hand", batch="A")
    t.tap("cut", position=51)
    assert t.refused("take_in_hand", batch="A").code == "unexpected"
    t.tap("insert_cutting_card", position=behind)
    t.tap("take_in_hand", batch="A")
    assert t.state.phase is Phase.BETWEEN_ROUNDS


@pytest.mark.rule(f"{NIGHT}(c)2")
def test_a_table_with_a_shuffler_may_shuffle_by_hand_as_well() -> None:
    t = Hand(night_shoe(shuffler="shuffler"))
    t.boot()
    t.links_up()
    t.tap("open")
    t.tap("reshuffle_by_hand", batch="A")
    t.load()
    proofs = [f.data.get("again") for f in t.facts if f.kind == "load_shoe"]
    assert (t.state.shoe.number, proofs) == (1, [False])
    t.tap("close")
    t.end_shoe()
    assert t.state.phase is Phase.CLOSING


@pytest.mark.rule(f"{NIGHT}(c)2", "INC-6")
def test_a_shuffler_out_of_service_is_searched_and_the_night_goes_on_by_hand() -> None:
    t = Hand(night_rules(shuffler="shuffler"))
    t.boot()
    t.links_up()
    t.tap("open")
    t.tap("load_shuffler", batch="A")
    t.start()
    t.event(ev.LinkDown, "shuffler", reason="unplugged")
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    t.tap("confirm_empty", device="shuffler", cards=52)
    assert (t.state.phase, t.cards()) == (Phase.OPENING, {Place.IN_HAND: 52})
    t.tap("reshuffle_by_hand", batch="A")
    t.load()
    t.tap("close")
    t.tap("collect_rack", gauge="full")
    t.tap("count_batch", batch="A", cards=52)
    t.tap("confirm_empty", SUPERVISOR, who="sue", device="shuffler")
    t.tap("close", SUPERVISOR)
    t.tap("open")
    assert (t.state.manual, t.state.phase) == (True, Phase.OPENING)
    assert t.refused("load_shuffler", batch="A").code == "out_of_service"


@pytest.mark.rule(f"{NIGHT}(c)2", "INC-6")
def test_it_does_not_open_over_a_shuffler_that_nobody_searched() -> None:
    t = Hand(night_rules(shuffler="shuffler"))
    t.boot()
    t.links_up()
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    assert t.refused("open").code == "not_confirmed_empty"
    t.tap("confirm_empty", device="shuffler")
    t.tap("open")
    assert t.state.manual


@pytest.mark.rule("R-42")
def test_the_daily_inspection_of_the_casinos_is_not_asked_for() -> None:
    t = Hand(night_shoe())
    t.boot()
    t.give(Hour(490_000, "2026-11-30"))
    t.links_up()
    t.tap("open")
    assert t.alarms == []
    t.tap("inspect", SUPERVISOR, device="shoe", result="faulty")
    t.tap("reshuffle_by_hand", batch="A")
    t.tap("cut", position=20)
    refusal = t.refused("load_shoe", batch="A")
    assert (refusal.code, refusal.clause) == ("inspection_due", f"{NIGHT}(c)1")


# --- the burn ((g)6) ---


@pytest.mark.rule(f"{NIGHT}(g)6", f"{NIGHT}(g)5i", "R-23", "R-79")
@pytest.mark.parametrize("rules", VARIANTS.values(), ids=VARIANTS)
def test_a_card_is_burned_after_the_bets_and_before_the_first_card_of_each_round(rules: Any) -> None:
    t = opened(rules)
    for number in (1, 2):
        t.tap("bets_closed", boxes="1,2")
        assert t.state.phase is Phase.ROUND_BURN
        assert t.refused("round_settled").code == "unexpected"
        before = t.cards()
        t.burn()
        moved = {Place.SHOE: before[Place.SHOE] - 1, Place.RACK: before.get(Place.RACK, 0) + 1}
        assert t.cards() == moved
        if rules.by_eye:
            t.tap("round_settled", cards=7)
        else:
            assert (t.facts[-1].data["to"], t.facts[-1].data["seen"]) == ("burn", False)
            assert "card" in t.facts[-1].sealed
            for _ in range(7):
                t.draw()
            t.tap("round_settled")
        assert t.cards() == {Place.SHOE: 52 - 8 * number, Place.RACK: 8 * number}


@pytest.mark.rule(f"{NIGHT}(g)6", "R-79")
def test_a_switch_burns_once_a_shoe_instead() -> None:
    t = opened(night_shoe(burn=Burn.EACH_LOAD))
    assert (t.state.phase, t.cards()) == (Phase.BETWEEN_ROUNDS, {Place.SHOE: 51, Place.RACK: 1})
    t.tap("bets_closed", boxes="1")
    assert t.state.phase is Phase.DEALING


@pytest.mark.rule(f"{NIGHT}(g)6")
def test_a_new_dealer_burns_no_card_of_his_own() -> None:
    t = opened(night_shoe(burn=Burn.EACH_LOAD, burn_on_dealer_change=True))
    t.tap("dealer_change")
    assert t.state.phase is Phase.BETWEEN_ROUNDS


@pytest.mark.rule(f"{NIGHT}(g)6")
def test_the_shoes_first_card_is_awaited_for_the_burn_and_in_a_hand_the_dealers_tap() -> None:
    t = opened(night_shoe())
    t.tap("bets_closed", boxes="1")
    assert awaited(t.rules, t.state) == "the first card from the shoe, to the rack unseen (burn)"
    t = opened(night_rules())
    t.tap("bets_closed", boxes="1")
    assert (awaited(t.rules, t.state), t.expected[0]) == (None, "burn")


@pytest.mark.rule(f"{NIGHT}(g)6", "R-31")
def test_a_card_found_face_up_before_the_burn_is_no_burn() -> None:
    t = opened(night_shoe())
    t.tap("bets_closed", boxes="1")
    t.draw(face_up=True)
    assert (t.state.phase, t.cards()[Place.RACK]) == (Phase.ROUND_BURN, 1)
    t.draw()
    assert (t.state.phase, t.cards()[Place.RACK]) == (Phase.DEALING, 2)


# --- the deal: order, and the card that may lie face down ---


def drawn(facts: list[Fact]) -> list[tuple[str, bool]]:
    return [(f.data["to"], f.data["seen"]) for f in facts if f.kind == "card_drawn"]


@pytest.mark.rule(f"{NIGHT}(g)6", f"{NIGHT}(a) hole card", "R-24")
@pytest.mark.parametrize("down", CardDown)
def test_the_order_of_the_deal_and_which_card_of_a_player_lies_face_down(down: CardDown) -> None:
    t = opened(night_shoe(player_card_down=down))
    dealt(t, "2,4")
    first, second = down is not CardDown.FIRST, down is not CardDown.SECOND
    assert drawn(t.facts) == [
        ("burn", False),
        ("box 2", first),
        ("box 4", first),
        ("dealer", True),
        ("box 2", second),
        ("box 4", second),
        ("hole", False),
    ]


@pytest.mark.rule(f"{NIGHT}(g)6", f"{NIGHT}(g)10v(1)", "R-63")
@pytest.mark.parametrize("down", [CardDown.FIRST, CardDown.SECOND])
def test_law_7_a_players_card_that_lies_face_down_is_sealed_until_the_round_is_settled(
    down: CardDown,
) -> None:
    t = opened(night_shoe(player_card_down=down))
    dealt(t, "2,4")
    hidden = [f for f in t.facts if f.kind == "card_drawn" and not f.data["seen"]]
    assert len(hidden) == 4
    assert all("card" in f.sealed and "raw" in f.sealed and "card" not in f.data for f in hidden)
    cards = snapshot(t.rules, t.state)["round"]["cards"]
    assert [card["to"] for card in cards if card["card"] is None] == ["box 2", "box 4", "hole"]
    t.draw()
    assert drawn(t.facts)[-1] == ("play", True)
    t.tap("round_settled")
    (shown,) = (f for f in t.facts if f.kind == "exposed")
    assert len(shown.data["seqs"]) == 3
    assert t.state.shoe.unseen.values()
    assert sum(t.state.shoe.unseen.values()) == 1


@pytest.mark.rule(f"{NIGHT}(g)6", "R-63")
@pytest.mark.parametrize(
    ("down", "hidden"), [(CardDown.FIRST, (0, 1, 2, 6)), (CardDown.SECOND, (0, 4, 5, 6))]
)
def test_law_7_what_lies_face_down_makes_no_difference_outside(
    down: CardDown, hidden: tuple[int, ...]
) -> None:
    told = []
    for turn in (0, 1):
        t = opened(night_shoe(player_card_down=down))
        places = [len(t.stack) - 1 - n for n in hidden]
        cards = [t.stack[place] for place in places]
        for place, card in zip(places, cards[turn:] + cards[:turn], strict=True):
            t.stack[place] = card
        begin(t, "2,4")
        seen = []
        while t.state.phase is not Phase.PLAYING:
            t.draw()
            seen.append(snapshot(t.rules, t.state))
        seen.append(snapshot(t.rules, t.state))
        told.append((seen, [(f.kind, f.data) for f in t.facts]))
    assert told[0] == told[1]


@pytest.mark.rule(f"{NIGHT}(g)6", "R-36")
def test_a_box_left_out_moves_the_cards_that_lie_face_down() -> None:
    t = opened(night_shoe(player_card_down=CardDown.SECOND))
    begin(t, "1,2,4")
    t.draw()
    t.draw()
    t.tap("box_skipped", box=1, cards=0)
    assert t.state.round is not None
    assert t.state.round.order == ("box 2", "box 4", "dealer", "box 2", "box 4", "hole")
    while t.state.phase is not Phase.PLAYING:
        t.draw()
    assert [card.seen for card in t.state.round.cards] == [True, True, True, False, False, False]


@pytest.mark.rule(f"{NIGHT}(g)6", "R-36")
def test_a_card_that_may_lie_face_down_is_hidden_as_soon_as_it_is_told() -> None:
    t = opened(night_shoe(player_card_down=CardDown.SECOND))
    begin(t, "1,2")
    for _ in range(3):
        t.draw()
    t.tap("dealer_skipped", card="first")
    assert t.state.round is not None
    assert [(c.to, c.seen) for c in t.state.round.cards] == [
        ("box 1", True),
        ("box 2", True),
        ("box 1", False),
    ]
    assert sum(t.state.shoe.unseen.values()) == 2


# --- discards rest until all is dealt ((g)6) ---


@pytest.mark.rule(f"{NIGHT}(g)6")
@pytest.mark.parametrize("rules", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("event", ["shuffle_now", "bart_carter"])
def test_discards_are_not_used_while_cards_are_left(rules: Any, event: str) -> None:
    t = opened(rules)
    if rules.by_eye:
        t.told(48)
    else:
        dealt(t)
        for _ in range(44):
            t.draw()
        t.tap("round_settled")
    refusal = t.refused(event, SUPERVISOR)
    assert refusal.code == (
        "not_from_hand" if (event, rules.by_eye) == ("bart_carter", True) else "shoe_not_empty"
    )
    assert refusal.clause == f"{NIGHT}(g)6"
    assert event not in t.expected


@pytest.mark.rule(f"{NIGHT}(g)6")
def test_a_shoe_that_was_dealt_out_to_its_last_card_is_shuffled_again() -> None:
    t = opened(night_shoe())
    dealt(t)
    runs_out(t)
    assert (t.state.shoe.closing, t.alarms, t.codes) == (Closing.NO, [], [])
    t.tap("round_settled")
    assert t.refused("bets_closed", boxes="1").expected == ("shuffle_now",)
    t.tap("shuffle_now", SUPERVISOR)
    t.tap("collect_rack", gauge="full")
    assert (t.state.phase, t.codes) == (Phase.RACK_FULL, [])


@pytest.mark.rule(f"{NIGHT}(g)6")
@pytest.mark.parametrize("told", [50, None])
def test_a_deck_that_was_dealt_out_by_hand_is_shuffled_again(told: int | None) -> None:
    t = opened(night_rules())
    t.told(6)
    t.told(told - 6 if told else None)
    t.tap("shuffle_now", SUPERVISOR)
    t.tap("collect_rack", gauge="full")
    assert (t.state.phase, t.cards()) == (Phase.RACK_FULL, {Place.RACK: 52})


@pytest.mark.rule(f"{NIGHT}(g)6", "R-35")
@pytest.mark.parametrize(
    "rules", [night_shoe(), night_shoe(shoe_senses=frozenset()), night_shoe(shuffler="shuffler")]
)
def test_a_shoe_that_runs_out_in_a_round_is_ordinary_and_the_deal_goes_on_after_it(rules: Any) -> None:
    t = opened(rules)
    dealt(t)
    for _ in range(35):
        t.draw()
    t.tap("round_settled")
    begin(t, "1,2,3")
    while t.stack:
        t.draw()
    if rules.shoe_senses:
        t.event(ev.ShoeEmpty)
    assert (t.state.shoe.empty, t.alarms, t.codes) == (True, [], [])
    held = t.state.round
    t.tap("reshuffle_by_hand")
    assert t.refused("cut", position=0).code == "cut_too_near_the_end"
    t.tap("cut", position=1)
    t.tap("load_shoe", batch="A")
    assert (t.state.phase, t.state.round) == (Phase.PLAYING, held)
    t.fill()
    t.draw()
    t.tap("round_settled")
    assert (t.state.phase, t.state.shoe.closing) == (Phase.BETWEEN_ROUNDS, Closing.NO)
    dealt(t, "1")
    t.tap("round_settled")
    assert (t.codes, t.alarms, t.state.rounds) == ([], [], 3)
    assert sum(t.cards().values()) == 52


@pytest.mark.rule(f"{NIGHT}(g)6", "R-35")
def test_a_deck_that_runs_out_in_the_dealers_hand_is_ordinary_too() -> None:
    t = opened(night_rules())
    t.told(None)
    begin(t)
    t.tap("reshuffle_by_hand", cards=40)
    t.tap("cut", position=7)
    t.tap("take_in_hand", batch="A")
    assert (t.state.phase, t.state.shoe.untold) == (Phase.PLAYING, False)
    t.tap("round_settled", cards=15)
    assert t.cards() == {Place.SHOE: 37, Place.RACK: 15}
    t.told(6)
    assert t.cards() == {Place.SHOE: 30, Place.RACK: 22}
    assert (t.codes, t.alarms) == ([], [])


@pytest.mark.rule(f"{NIGHT}(g)6")
def test_a_deck_that_is_used_up_when_the_burn_is_due_is_shuffled_before_it() -> None:
    t = opened(night_rules())
    t.told(51)
    t.tap("bets_closed", boxes="1,2")
    t.tap("reshuffle_by_hand", cards=52)
    t.tap("cut", position=26)
    t.tap("take_in_hand", batch="A")
    assert (t.state.phase, t.expected[0]) == (Phase.ROUND_BURN, "burn")
    t.tap("burn")
    t.tap("round_settled", cards=9)
    assert t.cards() == {Place.SHOE: 42, Place.RACK: 10}


@pytest.mark.rule(f"{NIGHT}(g)6", "R-26")
def test_the_cutting_card_lets_no_new_round_begin_and_the_rest_leaves_the_shoe() -> None:
    t = opened(night_shoe(cutting_card=True))
    dealt(t)
    t.event(ev.CutCard)
    t.tap("cutting_card_at", box="1")
    t.tap("round_settled")
    assert t.state.phase is Phase.SHOE_END
    assert t.refused("collect_rack", gauge="full").code == "shoe_not_empty"
    t.end_shoe()
    assert (t.state.phase, t.cards()) == (Phase.RACK_FULL, {Place.RACK: 52})


@pytest.mark.rule(f"{NIGHT}(g)6", "R-27")
@pytest.mark.parametrize("policy", FirstCardPolicy)
def test_the_cutting_card_in_place_of_the_burn(policy: FirstCardPolicy) -> None:
    t = opened(night_shoe(cutting_card=True, first_card=policy))
    t.tap("bets_closed", boxes="4,5")
    t.event(ev.CutCard)
    if policy is FirstCardPolicy.RESHUFFLE_NOW:
        assert (t.state.phase, t.state.round, t.state.rounds) == (Phase.SHOE_END, None, 0)
        return
    assert (t.state.phase, t.state.shoe.cut_at) == (Phase.ROUND_BURN, "box 4")
    t.burn()
    while t.state.phase is not Phase.PLAYING:
        t.draw()
    t.tap("round_settled")
    assert t.state.phase is Phase.SHOE_END


@pytest.mark.rule(f"{NIGHT}(g)6")
def test_where_no_cutting_card_is_in_use_none_is_told() -> None:
    t = opened(night_rules())
    assert t.refused("cutting_card_at").code == "no_cutting_card"


@pytest.mark.rule("R-70")
def test_a_batch_out_of_play_ends_the_shoe_whatever_is_left() -> None:
    t = opened(night_shoe())
    t.tap("dead_card", batch="A", reason="marked")
    t.tap("shuffle_now", SUPERVISOR)
    t.end_shoe()
    t.tap("replace_batch", SUPERVISOR, batch="A")
    assert t.state.batches["A"].prep is Prep.AS_IT_CAME
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    t.tap("reshuffle_by_hand", batch="A")
    t.load()
    assert t.state.phase is Phase.BETWEEN_ROUNDS


# --- a refused card ((e)) ---


@pytest.mark.rule(f"{NIGHT}(e)", "R-33")
@pytest.mark.parametrize("rules", [night_rules(), night_shoe()], ids=["hand", "shoe"])
def test_a_card_nobody_asked_for_is_burned_when_it_is_refused(rules: Any) -> None:
    t = opened(rules)
    if rules.by_eye:
        begin(t)
    else:
        dealt(t)
        t.draw()
    rack = t.cards()[Place.RACK]
    assert t.refused("drawn_in_error").clause == f"{NIGHT}(e)"
    t.tap("drawn_in_error", exposed=True, burned=True)
    assert t.cards()[Place.RACK] == rack + 1


# --- the end of the night ---


@pytest.mark.rule(f"{NIGHT}(g)10iv", "S8")
def test_nobody_plays_and_nothing_need_be_spread() -> None:
    t = opened(night_rules())
    t.told(9)
    assert "idle" not in expected(t.rules, t.state)
    refusal = t.refused("idle")
    assert (refusal.code, refusal.clause) == ("shoe_not_empty", f"{NIGHT}(g)6")
    t.told(None)
    t.tap("idle")
    t.tap("collect_rack", gauge="full")
    t.tap("resume")
    t.tap("reshuffle_by_hand", batch="A")
    t.load()
    assert t.state.phase is Phase.BETWEEN_ROUNDS


@pytest.mark.rule("S10")
@pytest.mark.parametrize("rules", VARIANTS.values(), ids=VARIANTS)
def test_the_night_ends_with_every_card_counted(rules: Any) -> None:
    t = opened(rules)
    t.tap("close")
    if rules.by_eye:
        t.tap("collect_rack", gauge="full")
    else:
        t.end_shoe()
    t.tap("count_batch", batch="A", cards=52)
    for device in rules.devices:
        t.tap("confirm_empty", device=device)
    t.tap("close", SUPERVISOR)
    assert (t.state.phase, t.codes) == (Phase.CLOSED, [])


@pytest.mark.rule("S9", "R-69")
@pytest.mark.parametrize("rules", VARIANTS.values(), ids=VARIANTS)
def test_s9_a_crash_between_bets_and_burn_resumes_there(rules: Any) -> None:
    t = opened(rules)
    t.tap("bets_closed", boxes="1,2")
    t.restart()
    assert (t.state.phase, t.state.rounds) == (Phase.ROUND_BURN, 1)


@pytest.mark.rule("R-22", f"{NIGHT}(c)1")
def test_a_shuffle_by_hand_is_the_proof_it_needs() -> None:
    t = Hand(night_rules())
    t.boot()
    t.tap("open")
    t.tap("reshuffle_by_hand", batch="A")
    proof = t.state.batches["A"].proof
    assert proof is not None
    assert proof.how is Shuffled.HAND


@pytest.mark.rule(f"{NIGHT}(d)1")
def test_no_refusal_of_a_night_cites_a_clause_of_the_casinos() -> None:
    t = opened(night_shoe(cutting_card=True, shuffler="shuffler"))
    dealt(t)
    for event in ("bets_closed", "side_wagers_settled", "load_shoe", "cut", "peek", "certificate", "close"):
        assert str(t.refused(event).clause).startswith(NIGHT), event
