"""Taps: what is accepted when, with the boundaries of each clause and the text of each refusal."""

import pytest

from controller.table.draft import Decision
from controller.table.inputs import OperatorEvent, Refusal, Role, Trouble
from controller.table.profiles import FirstCardPolicy
from controller.table.state import Place
from controller.table.swap import cut_order
from controller.table.view import snapshot
from devices import events as ev
from firmware_bridge.link import Done, NotSent, Refused, Unknown
from tests.support.table import Table, table_rules

SUPERVISOR = frozenset({Role.SUPERVISOR})


@pytest.fixture
def table() -> Table:
    t = Table()
    t.open_to_shoe()
    return t


def at_cut(decks: int = 1) -> Table:
    t = Table(table_rules(decks=decks))
    t.boot()
    t.links_up()
    t.open()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.complete()
    t.take()
    t.tap("load_shuffler", batch="B")
    t.start()
    return t


def test_a_tap_out_of_phase_is_refused_with_what_is_expected():
    t = Table()
    refusal = t.refused("bets_closed", boxes="1")
    assert refusal.code == "unexpected"
    assert "phase closed" in refusal.why
    assert refusal.expected == ("open",)


def test_an_unknown_event_and_an_unknown_argument_are_named():
    t = Table()
    assert t.refused("dance").code == "unknown_event"
    refusal = t.refused("open", batch="A")
    assert refusal.code == "bad_argument"
    assert "'batch'" in refusal.why


@pytest.mark.rule("R-15")
@pytest.mark.parametrize("decks", [1, 6, 8])
def test_the_cut_leaves_ten_cards_on_either_side(decks):
    size = 52 * decks
    for position, fine in [(9, False), (10, True), (size - 10, True), (size - 9, False)]:
        t = at_cut(decks)
        t.tap("offer_cut", box="3")
        if fine:
            t.tap("cut", position=position)
            assert t.state.phase.value == "cut_done"
        else:
            refusal = t.refused("cut", position=str(position))
            assert (refusal.code, refusal.clause) == ("cut_too_near_the_end", "13:69F-2.5(c)")
            assert refusal.expected == (f"cut position=10..{size - 10}",)


@pytest.mark.rule("R-16")
@pytest.mark.parametrize(("decks", "least"), [(1, 13), (2, 26), (4, 52), (6, 78), (8, 104)])
def test_a_quarter_lies_behind_the_cutting_card(decks, least):
    t = at_cut(decks)
    t.tap("offer_cut", box="3")
    t.tap("cut", position=26)
    refusal = t.refused("insert_cutting_card", position=least - 1)
    assert (refusal.code, refusal.clause) == ("cutting_card_misplaced", "13:69F-2.5(d)")
    size = 52 * decks
    for behind in (-5, 0, size):
        why = f"{least} to {size - 1} of {size} cards lie behind the cutting card, not {behind}"
        assert t.refused("insert_cutting_card", position=behind).why == why
    t.tap("insert_cutting_card", position=least)
    assert t.state.phase.value == "cutting_card_in"


@pytest.mark.rule("R-16")
def test_whatever_the_tolerance_a_card_lies_behind_the_cutting_card():
    assert table_rules(cutting_card_tolerance=6).least_behind_cutting_card == 7
    assert table_rules(cutting_card_tolerance=26).least_behind_cutting_card == 1


@pytest.mark.rule("R-16")
def test_the_order_cut_then_cutting_card_then_shoe_cannot_be_changed():
    t = at_cut()
    assert t.refused("load_shoe", batch="A").code == "unexpected"
    assert t.refused("insert_cutting_card", position=20).code == "unexpected"
    assert t.refused("cut", position=26).code == "nobody_cuts"
    t.tap("offer_cut", box="3")
    t.tap("cut", position=26)
    assert t.refused("load_shoe", batch="A").code == "unexpected"


@pytest.mark.rule("R-20")
def test_another_cut_may_be_ordered_until_the_cards_are_in_the_shoe():
    t = at_cut()
    assert t.refused("recut").code == "unexpected"
    for before in ("cut_done", "cutting_card_in"):
        t.tap("offer_cut", box="3")
        t.tap("cut", position=26)
        if before == "cutting_card_in":
            t.tap("insert_cutting_card", position=13)
        assert t.state.phase.value == before
        t.tap("recut")
        assert (t.state.phase.value, t.state.cutter) == ("cut_due", None)
        assert not t.state.batches["A"].cut
    t.tap("offer_cut", box="3")
    t.tap("cut", position=20)
    assert t.refused("load_shoe", batch="A").code == "unexpected", "the cutting card goes in again, too"
    t.tap("insert_cutting_card", position=13)
    t.tap("load_shoe", batch="A")
    assert t.refused("recut").clause == "58 Pa. Code 633a.5"


@pytest.mark.rule("R-17", "R-18")
def test_the_cut_is_offered_clockwise_and_at_last_to_the_dealer(table):
    table.deal("2,4")
    table.event(ev.CutCard)
    table.tap("cutting_card_at", box=4)
    table.tap("round_settled")
    table.complete()
    table.end_shoe()
    table.take()
    table.tap("load_shuffler", batch="A")
    table.start()
    refusal = table.refused("offer_cut", box="2")
    assert (refusal.code, refusal.expected) == ("wrong_cutter", ("offer_cut box=4",))
    table.tap("offer_cut", box="4", refused="true")
    table.tap("offer_cut", box="2", refused=True)
    assert table.refused("offer_cut", box="dealer", refused=True).code == "dealer_cuts"
    table.tap("offer_cut", box="dealer")
    assert table.state.cutter == "dealer"


@pytest.mark.rule("R-06")
def test_the_shoe_is_loaded_only_while_the_other_batch_is_being_shuffled_or_stored():
    t = at_cut()
    t.tap("offer_cut", box="1")
    t.tap("cut", position=26)
    t.tap("insert_cutting_card", position=13)
    t.event(ev.CycleAborted, "shuffler", cycle=t.cycle, cause="door")
    refusal = t.refused("load_shoe", batch="A")
    assert (refusal.code, refusal.clause) == ("other_batch_not_stored", "13:69F-2.2(d)3")
    t.start()
    t.tap("load_shoe", batch="A")
    t.complete()
    assert t.codes == ["shuffle_void"]


@pytest.mark.rule("R-23")
def test_the_first_card_after_loading_is_the_burn_and_no_bet_closes_before_it():
    t = at_cut()
    t.cut_and_load("A", offer="1")
    assert t.refused("bets_closed", boxes="1").code == "unexpected"
    t.draw()
    burn = t.facts[-1]
    assert (burn.data["to"], burn.data["moves"]) == ("burn", ["burned", "between_rounds"])
    assert "card" not in burn.data
    assert "raw" not in burn.data
    assert set(burn.sealed) == {"card", "raw"}
    assert t.state.batches["A"].cards == {Place.SHOE: 51, Place.RACK: 1}


@pytest.mark.rule("R-23")
def test_each_new_dealer_burns_one(table):
    table.tap("dealer_change")
    assert table.refused("bets_closed", boxes="1").code == "unexpected"
    table.draw()
    assert table.facts[-1].data["to"] == "burn"
    assert table.state.batches["A"].at(Place.RACK) == 2


@pytest.mark.rule("R-24")
def test_cards_go_where_the_deal_order_says_and_only_the_hole_card_is_sealed(table):
    table.tap("bets_closed", boxes=[5, 2])
    for _ in range(6):
        table.draw()
    dealt = [f for f in table.facts if f.kind == "card_drawn"][1:]
    assert [f.data["to"] for f in dealt] == ["box 2", "box 5", "dealer", "box 2", "box 5", "hole"]
    assert [set(f.sealed) for f in dealt] == [set()] * 5 + [{"card", "raw"}]
    shown = snapshot(table.rules, table.state)["round"]["cards"]
    assert [c["card"] is None for c in shown] == [False] * 5 + [True]


def test_the_hole_card_is_exposed_when_the_round_is_settled(table):
    table.play_round("1")
    hole = next(i for i, f in enumerate(table.facts, 1) if f.data.get("to") == "hole")
    assert table.facts[-1].kind == "exposed"
    assert table.facts[-1].data == {"seqs": [hole]}


@pytest.mark.rule("R-37")
def test_side_wagers_are_settled_before_the_hole_card():
    t = Table(table_rules(settle_first=True))
    t.open_to_shoe()
    t.tap("bets_closed", boxes="1")
    for _ in range(3):
        t.draw()
    assert t.state.phase.value == "side_wagers"
    t.draw()
    assert t.codes == ["card_out_of_turn"]
    t.tap("side_wagers_settled")
    t.draw()
    assert t.state.phase.value == "playing"


@pytest.mark.rule("R-26")
def test_the_cutting_card_lets_the_round_finish_and_no_other_begin(table):
    table.tap("bets_closed", boxes="1,2")
    table.draw()
    table.event(ev.CutCard)
    assert table.state.shoe.cut_at == "box 2"
    for _ in range(6):
        table.draw()
    table.tap("round_settled")
    assert table.state.phase.value == "shoe_end"
    assert table.refused("bets_closed", boxes="1").code == "unexpected"


@pytest.mark.rule("R-17", "R-26")
def test_after_the_initial_deal_the_dealer_must_say_where_the_cutting_card_was(table):
    table.deal("1")
    table.event(ev.CutCard)
    refusal = table.refused("round_settled")
    assert refusal.code == "where_was_the_cutting_card"
    table.tap("cutting_card_at", box="dealer")
    table.tap("round_settled")
    assert table.state.shoe.cut_at == "dealer"


@pytest.mark.rule("R-27")
@pytest.mark.parametrize("before_bets", [True, False])
def test_cutting_card_first_plays_one_round_by_default(table, before_bets):
    if before_bets:
        table.event(ev.CutCard)
        table.tap("bets_closed", boxes="3")
    else:
        table.tap("bets_closed", boxes="3")
        table.event(ev.CutCard)
    assert table.state.shoe.cut_at == "box 3"
    for _ in range(4):
        table.draw()
    table.tap("round_settled")
    assert table.state.phase.value == "shoe_end"


@pytest.mark.rule("R-27")
@pytest.mark.parametrize("before_bets", [True, False])
def test_cutting_card_first_reshuffles_at_once_where_the_profile_says_so(before_bets):
    t = Table(table_rules(first_card=FirstCardPolicy.RESHUFFLE_NOW))
    t.open_to_shoe()
    if not before_bets:
        t.tap("bets_closed", boxes="3")
    t.event(ev.CutCard)
    assert t.state.phase.value == "shoe_end"
    assert (t.state.round, t.state.rounds, t.state.shoe.cut_at) == (None, 0, None)
    t.complete()
    t.end_shoe()
    assert t.codes == []


@pytest.mark.rule("R-02")
def test_a_second_cutting_card_is_a_fault(table):
    table.tap("bets_closed", boxes="1")
    table.event(ev.CutCard)
    table.event(ev.CutCard)
    assert table.codes == ["extra_cutting_card"]


@pytest.mark.rule("R-14")
def test_a_discretionary_shuffle_waits_for_the_end_of_the_round(table):
    table.tap("bets_closed", boxes="1,6")
    table.tap("shuffle_now")
    assert table.state.phase.value == "dealing"
    assert table.refused("shuffle_now").code == "already_ending"
    for _ in range(6):
        table.draw()
    table.tap("round_settled")
    assert table.state.phase.value == "shoe_end"
    table.complete()
    table.end_shoe()
    table.take()
    table.tap("load_shuffler", batch="A")
    table.start()
    assert table.refused("offer_cut", box=1).expected == ("offer_cut box=6",)


@pytest.mark.rule("R-14")
def test_a_discretionary_shuffle_between_rounds_ends_the_shoe(table):
    table.tap("shuffle_now")
    assert table.state.phase.value == "shoe_end"


@pytest.mark.rule("R-08")
def test_the_rack_is_collected_only_when_the_shoe_has_proved_empty(table):
    table.tap("shuffle_now")
    assert table.refused("collect_rack", gauge="full").code == "shoe_not_empty"
    while table.stack:
        table.draw()
    assert table.refused("collect_rack", gauge="full").code == "shoe_not_empty"
    table.event(ev.ShoeEmpty)
    table.tap("collect_rack", gauge="full")
    assert [f.kind for f in table.facts[-3:]] == ["collect_rack", "collected", "checkpoint"]
    assert table.state.batches["A"].cards == {Place.RACK: 52}


def test_the_cutting_card_lies_at_a_box_in_play_and_its_place_is_told_once(table):
    table.deal("1,4")
    table.event(ev.CutCard)
    assert table.refused("cutting_card_at", box="2").code == "no_wager_there"
    table.tap("cutting_card_at", box="4")
    assert table.refused("cutting_card_at", box="1").code == "already_known"


def test_after_a_refusal_in_a_new_game_the_dealer_may_cut():
    t = at_cut()
    assert t.refused("offer_cut", box="dealer").code == "wrong_cutter"
    t.tap("offer_cut", box="2", refused=True)
    t.tap("offer_cut", box="dealer")
    assert t.state.cutter == "dealer"


def test_a_shuffle_asked_for_in_the_round_of_the_cutting_card_leaves_the_cut_to_its_box(table):
    table.tap("bets_closed", boxes="2,6")
    table.tap("shuffle_now")
    table.event(ev.CutCard)
    for _ in range(6):
        table.draw()
    table.tap("round_settled")
    assert cut_order(table.rules, table.state)[0] == "box 2"


def test_counts_and_arguments_that_make_no_sense_are_refused(table):
    table.tap("shuffle_now")
    while table.stack:
        table.draw()
    table.event(ev.ShoeEmpty)
    assert table.refused("collect_rack", gauge="full", other_backs=-5).code == "bad_argument"
    assert table.refused("clear", SUPERVISOR, fault="F1", why="x").code == "bad_argument"


@pytest.mark.parametrize("key", ["\ud800", "a\nb", "", "x" * 129])
def test_an_id_that_cannot_be_journaled_is_refused(table, key):
    refusal = table.give(OperatorEvent("dealer_change", key=key))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "bad_argument"


def test_box_lists_are_checked(table):
    assert "missing" in table.refused("bets_closed").why
    assert "1 to 7" in table.refused("bets_closed", boxes="0,1").why
    assert "1 to 7" in table.refused("bets_closed", boxes="8").why
    assert "not a list" in table.refused("bets_closed", boxes="one").why
    table.tap("bets_closed", boxes="5, 1")
    assert table.state.last_boxes == (1, 5)


# --- the start of a cycle: settings, status, start, and every way it can end ---


@pytest.fixture
def loaded() -> Table:
    t = Table()
    t.boot()
    t.links_up()
    t.open()
    t.tap("load_shuffler", batch="A")
    return t


@pytest.mark.rule("R-76")
def test_settings_are_read_back_before_the_start(loaded):
    loaded.tap("start_shuffle")
    assert loaded.refused("start_shuffle").code == "shuffler_busy"
    settings = {"decks": 1, "cards_per_deck": 52, "mode": "sort", "recognition": True}
    loaded.end(Done({"settings": settings, "crc_ok": True}))
    assert loaded.effects == []
    assert loaded.codes == ["settings_mismatch"]
    assert "mode is sort, not shuffle" in loaded.state.faults[0].cause
    assert loaded.refused("clear", SUPERVISOR, fault=loaded.state.faults[0].id).code == "cause_remains"
    loaded.start()
    loaded.tap("clear", SUPERVISOR, fault=loaded.state.faults[0].id)
    assert loaded.codes == []


@pytest.mark.parametrize(
    "answer",
    [
        {
            "settings": {"decks": 6, "cards_per_deck": 52, "mode": "shuffle", "recognition": True},
            "crc_ok": True,
        },
        {
            "settings": {"decks": 1, "cards_per_deck": 48, "mode": "shuffle", "recognition": True},
            "crc_ok": True,
        },
        {
            "settings": {"decks": 1, "cards_per_deck": 52, "mode": "shuffle", "recognition": False},
            "crc_ok": True,
        },
        {
            "settings": {"decks": 1, "cards_per_deck": 52, "mode": "shuffle", "recognition": True},
            "crc_ok": False,
        },
        {"settings": "?", "crc_ok": True},
        {},
    ],
)
@pytest.mark.rule("R-76")
def test_any_wrong_setting_keeps_the_cycle_from_starting(loaded, answer):
    loaded.tap("start_shuffle")
    loaded.end(Done(answer))
    assert loaded.codes == ["settings_mismatch"]
    assert loaded.effects == []
    assert loaded.state.shuffler.stage.value == "none"


@pytest.mark.parametrize("outcome", [NotSent("port closed"), Refused("3", "wrong state"), Unknown("silence")])
def test_unread_settings_let_the_dealer_try_again(loaded, outcome):
    loaded.tap("start_shuffle")
    loaded.end(outcome)
    assert [f.kind for f in loaded.facts[-2:]] == ["command_ended", "start_failed"]
    loaded.start()
    assert loaded.state.phase.value == "first_shuffling"


def ask_to_start(t: Table) -> str:
    t.tap("start_shuffle")
    settings = {"decks": 1, "cards_per_deck": 52, "mode": "shuffle", "recognition": True}
    t.end(Done({"settings": settings, "crc_ok": True}))
    t.end(Done({"inside": 52, "cycle": t.cycle}))
    assert t.effects[-1].name == "start"
    return t.effects[-1].args["token"]


def test_an_unknown_start_asks_the_machine_and_never_starts_twice(loaded):
    ask_to_start(loaded)
    loaded.end(Unknown("no answer"))
    assert [e.name for e in loaded.effects] == ["status"]
    assert loaded.codes == ["start_unknown"]
    loaded.end(Done({"inside": 52, "cycle": loaded.cycle, "token": None}))
    assert loaded.state.shuffler.stage.value == "none"
    assert loaded.facts[-1].data["why"] == "the shuffler did not start"


def test_an_unknown_start_that_did_start_goes_on_by_the_machines_events(loaded):
    token = ask_to_start(loaded)
    loaded.end(Unknown("no answer"))
    loaded.end(Done({"inside": 52, "cycle": loaded.cycle + 1, "token": token}))
    assert loaded.state.shuffler.stage.value == "starting"
    loaded.event(ev.CycleStarted, "shuffler", cycle=loaded.cycle + 1, token=token)
    assert loaded.state.phase.value == "first_shuffling"
    loaded.tap("clear", SUPERVISOR, fault=loaded.state.faults[0].id)
    assert loaded.codes == []


def test_an_unknown_start_with_a_strange_counter_is_a_foreign_cycle(loaded):
    ask_to_start(loaded)
    loaded.end(Unknown("no answer"))
    loaded.end(Done({"inside": 52, "cycle": loaded.cycle + 2, "token": "ff"}))
    assert "foreign_cycle" in loaded.codes


def test_a_cycle_counter_that_did_not_advance_is_no_proof(loaded):
    token = ask_to_start(loaded)
    loaded.end(Done({"cycle": loaded.cycle}))
    loaded.event(ev.CycleStarted, "shuffler", cycle=loaded.cycle, token=token)
    assert loaded.codes == ["foreign_cycle"]
    assert loaded.state.phase.value == "first_loaded"


def test_a_start_under_another_token_is_no_start_of_ours(loaded):
    ask_to_start(loaded)
    loaded.end(Done({"cycle": loaded.cycle + 1}))
    loaded.event(ev.CycleStarted, "shuffler", cycle=loaded.cycle + 1, token="ee" * 16)
    assert loaded.codes == ["foreign_cycle"]
    assert loaded.state.phase.value == "first_loaded"


def test_a_start_that_is_answered_but_never_seen_is_no_start(loaded):
    ask_to_start(loaded)
    loaded.end(Done({"cycle": loaded.cycle + 1}))
    assert [e.name for e in loaded.effects] == ["status"]
    loaded.end(Done({"inside": 52, "cycle": loaded.cycle, "token": None}))
    assert loaded.facts[-1].data["why"] == "the shuffler did not start"
    assert loaded.state.phase.value == "first_loaded"


def test_a_fault_that_blocks_everything_also_stops_a_start_under_way(loaded):
    loaded.tap("start_shuffle")
    settings = {"decks": 1, "cards_per_deck": 52, "mode": "shuffle", "recognition": True}
    loaded.end(Done({"settings": settings, "crc_ok": True}))
    loaded.give(Trouble("crashed", "a thread"))
    loaded.end(Done({"inside": 52, "cycle": 40}))
    assert loaded.effects == []
    assert loaded.facts[-1].kind == "start_failed"


def test_an_empty_shuffler_is_not_started(loaded):
    loaded.tap("start_shuffle")
    settings = {"decks": 1, "cards_per_deck": 52, "mode": "shuffle", "recognition": True}
    loaded.end(Done({"settings": settings, "crc_ok": True}))
    loaded.end(Done({"inside": 0, "cycle": 40}))
    assert loaded.facts[-1].data["why"] == "the shuffler holds 0, not 52 cards"
    assert loaded.effects == []


@pytest.mark.parametrize(
    ("report", "code"),
    [
        ({"mode": "sort"}, "wrong_mode"),
        ({"backs": {}}, "report_incomplete"),
        ({"backs": {"blue": 52}}, "wrong_batch"),
        ({"count": 51}, "wrong_count"),
        ({"backs": {"red": 51, "blue": 1}}, "wrong_back_in_shuffler"),
        ({"composition": {"8S": 52}}, "wrong_composition"),
        ({"unread": 1}, "wrong_composition"),
        ({"token": "00" * 16}, "foreign_cycle"),
        ({"cycle": 99}, "foreign_cycle"),
    ],
)
@pytest.mark.rule("R-14", "R-44", "R-55", "R-76")
def test_a_report_that_is_not_a_whole_shuffled_batch_proves_nothing(loaded, report, code):
    loaded.start()
    loaded.complete(**report)
    assert loaded.codes == [code]
    held = loaded.state.batches["A"]
    assert held.proof is None
    if held.unfit is None:
        assert loaded.refused("take_from_shuffler").code == "fault_latched"
    else:
        loaded.tap("take_from_shuffler")
        loaded.event(ev.BatchReleased, "shuffler", count=52, inside=0, token=loaded.token)
        assert loaded.state.phase.value == "opening"
        assert loaded.refused("load_shuffler", batch="A").code == "batch_unfit"


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (ev.CycleAborted, {"cycle": 41, "cause": "operator"}),
        (ev.Jam, {"place": "exit"}),
        (ev.Door, {"open": True}),
        (ev.GapPossible, {"missing": 3}),
    ],
)
@pytest.mark.rule("R-36b")
def test_an_abnormal_cycle_is_void_and_a_later_completion_counts_for_nothing(loaded, kind, fields):
    loaded.start()
    loaded.event(kind, "shuffler", **fields)
    assert loaded.codes == ["shuffle_void"]
    assert loaded.state.phase.value == "first_loaded"
    if kind is ev.GapPossible:  # it is asked what it holds
        assert loaded.end(Done({"inside": 52})).name == "status"
    loaded.complete()
    assert loaded.state.batches["A"].proof is None
    loaded.start()
    loaded.complete()
    loaded.tap("clear", SUPERVISOR, fault=loaded.state.faults[0].id)
    loaded.take()
    assert loaded.state.phase.value == "batch_taken"


def test_a_fault_keeps_its_first_cause_and_a_dealer_never_clears_it(loaded):
    loaded.start()
    loaded.event(ev.Jam, "shuffler", place="exit")
    loaded.start()
    loaded.event(ev.Door, "shuffler", open=True)
    (fault,) = loaded.state.faults
    assert fault.cause == "cards jammed at exit"
    loaded.start()
    loaded.complete()
    refusal = loaded.refused("clear", frozenset({Role.DEALER, Role.SURVEILLANCE}), fault=fault.id)
    assert refusal.code == "not_allowed"
    assert loaded.refused("clear", SUPERVISOR, fault="F1").code == "no_such_fault"
    assert isinstance(loaded.tap("clear", SUPERVISOR, fault=fault.id), Decision)


def test_the_tap_that_needs_a_silent_device_is_refused(table):
    table.event(ev.LinkDown, "shoe", reason="unplugged")
    assert table.refused("bets_closed", boxes="1").code == "device_absent"


def test_a_missing_or_wrong_word_is_told_with_the_words_there_are() -> None:
    t = Table()
    t.open_to_shoe()
    t.deal("1,2")
    supervisor = frozenset({Role.SUPERVISOR})
    assert t.refused("void_round", supervisor).why == (
        "void_round: reason=misdeal|reader|shoe_dry|wrong_card|other is missing"
    )
    t.tap("round_settled")
    t.tap("shuffle_now", supervisor)
    for given, words in (
        ({}, "gauge=full|short|over is missing"),
        ({"gauge": "high"}, "is none of full, short, over"),
    ):
        assert words in t.refused("collect_rack", **given).why
