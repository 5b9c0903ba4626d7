"""Incidents and restarts at the table core, devices played by hand (rules.md, sections J and L)."""

from dataclasses import replace

import pytest

from controller.table.checkpoint import checkpoint, restore
from controller.table.evolve import evolve
from controller.table.inputs import Role, Trouble
from controller.table.state import Place, initial
from devices import events as ev
from firmware_bridge.link import Done, NotSent
from tests.support.table import Table, table_rules

SUPERVISOR = frozenset({Role.SUPERVISOR})


def at_rack_full() -> Table:
    t = Table()
    t.open_to_shoe()
    t.complete()
    t.tap("shuffle_now")
    t.end_shoe()
    return t


@pytest.mark.rule("R-07", "R-14")
def test_inc1_discards_loaded_cycle_never_started_batch_taken_out_no_shoe_may_start():
    t = at_rack_full()
    t.take()
    t.tap("load_shuffler", batch="A")
    for tap, args in [("offer_cut", {"box": 1}), ("cut", {"position": 26}), ("load_shoe", {"batch": "B"})]:
        assert t.refused(tap, **args).code == "unexpected"
    t.event(ev.Door, "shuffler", open=True)
    t.event(ev.BatchReleased, "shuffler", count=52, inside=0, token=None)
    assert t.codes == ["taken_without_proof"]
    assert t.state.phase.value == "batch_taken"
    assert t.refused("load_shoe", batch="A").code == "unexpected"
    t.tap("load_shuffler", batch="A")
    t.start()
    t.cut_and_load("B", offer="1")
    assert t.state.shoe.batch == "B"
    t.tap("shuffle_now")
    t.end_shoe()
    assert t.refused("take_from_shuffler").code == "fault_latched"
    t.complete()
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    t.take()


@pytest.mark.rule("R-22")
def test_inc1_a_card_from_a_batch_that_was_never_loaded_through_the_table_stops_everything():
    t = at_rack_full()
    t.take()
    t.tap("load_shuffler", batch="A")
    t.event(ev.CardDrawn, card="8S", back="red")
    assert t.codes == ["stray_card"]
    assert t.refused("start_shuffle").code == "fault_latched"
    assert t.facts[-2].sealed["card"] == "8S"


@pytest.mark.rule("R-55")
def test_inc6_sixteen_cards_left_inside_the_batch_is_short_and_never_complete():
    t = Table()
    t.open_to_shoe()
    t.complete(count=36, backs={"blue": 36}, composition={})
    assert t.codes == ["wrong_count"]
    t.tap("shuffle_now")
    t.end_shoe()
    fault = t.state.faults[0]
    assert t.refused("clear", SUPERVISOR, fault=fault.id).code == "cause_remains"
    assert t.refused("start_shuffle").code == "batch_unfit"
    t.tap("take_from_shuffler")
    t.event(ev.BatchReleased, "shuffler", count=36, inside=16, token=t.token)
    assert t.state.batches["B"].unfit == "wrong_count"
    assert t.state.phase.value == "rack_full"
    assert t.refused("load_shuffler", batch="B").code == "shuffler_not_empty"


@pytest.mark.rule("R-74")
def test_inc6_cards_that_stay_inside_at_the_release_keep_the_batch_from_the_shoe():
    t = at_rack_full()
    t.tap("take_from_shuffler")
    token = t.effects[-1].args["token"]
    t.end(Done({"count": 36, "inside": 16}))
    t.event(ev.BatchReleased, "shuffler", count=36, inside=16, token=token)
    assert t.codes == ["cards_inside"]
    assert t.state.batches["B"].cards == {Place.IN_HAND: 36, Place.SHUFFLER: 16}
    assert t.refused("load_shuffler", batch="B").code == "shuffler_not_empty"
    t.event(ev.BatchReleased, "shuffler", count=16, inside=0, token=None)
    t.tap("load_shuffler", batch="B")
    t.start()
    t.complete()
    for fault in t.state.faults:
        t.tap("clear", SUPERVISOR, fault=fault.id)
    t.take()
    assert t.state.phase.value == "batch_taken"


@pytest.mark.rule("R-76")
def test_inc7_sort_mode_is_found_before_the_start_and_in_the_report():
    t = Table()
    t.open_to_shoe()
    t.complete(mode="sort")
    assert t.codes == ["wrong_mode"]
    assert t.state.batches["B"].proof is None


@pytest.mark.rule("R-07")
def test_the_same_batch_twice_is_refused_also_across_a_restart():
    t = at_rack_full()
    for restarted in (False, True):
        if restarted:
            t.state = restore(checkpoint(t.state))
            t.boot("11" * 16)
            t.links_up(state="done", inside=52)
        refusal = t.refused("load_shuffler", batch="A")
        assert refusal.code == "shuffler_not_empty"
    t.take()
    assert t.refused("load_shuffler", batch="B").code == "batch_is_shuffled"
    t.tap("load_shuffler", batch="A")
    t.start()
    t.tap("offer_cut", box="3")
    t.tap("cut", position=20)
    t.tap("insert_cutting_card", position=20)
    refusal = t.refused("load_shoe", batch="A")
    assert (refusal.code, refusal.clause) == ("same_batch_twice", "13:69F-2.2(d)4")
    assert refusal.expected == ("recut", "load_shoe batch=B")


@pytest.mark.rule("R-05", "R-08")
def test_a_card_of_the_other_back_colour_stops_the_next_round_and_the_batch():
    t = Table()
    t.open_to_shoe()
    t.tap("bets_closed", boxes="1")
    t.draw(back="blue")
    assert t.codes == ["wrong_back"]
    for _ in range(3):
        t.draw()
    t.tap("round_settled")
    assert t.refused("bets_closed", boxes="1").code == "fault_latched"
    assert t.state.batches["A"].unfit == "wrong_back"


@pytest.mark.rule("R-08", "R-43")
def test_a_foreign_card_seen_in_the_rack_and_a_wrong_height_take_the_batch_out():
    t = Table()
    t.open_to_shoe()
    t.tap("shuffle_now")
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    t.tap("collect_rack", gauge="over", other_backs=1)
    assert t.codes == ["rack_gauge", "rack_wrong_back"]
    assert t.state.batches["A"].unfit == "rack_gauge"


@pytest.mark.rule("R-70")
def test_the_first_copy_too_many_is_found_at_the_shoe_and_not_named():
    t = Table()
    t.open_to_shoe()
    t.tap("bets_closed", boxes="1")
    t.event(ev.CardDrawn, card=t.stack[-1], back="red")
    t.event(ev.CardDrawn, card=t.stack[-1], back="red")
    (fault,) = t.state.faults
    assert fault.code == "too_many_copies"
    assert t.stack[-1] not in fault.cause


@pytest.mark.rule("R-74")
def test_a_shoe_that_ends_short_names_the_batch():
    t = Table()
    t.open_to_shoe()
    t.tap("shuffle_now")
    for _ in range(40):
        t.draw()
    t.event(ev.ShoeEmpty)
    assert t.codes == []
    t.tap("collect_rack", gauge="full")
    assert t.codes == ["cards_missing"]
    assert t.state.batches["A"].cards == {Place.SHOE: 11, Place.RACK: 41}


@pytest.mark.rule("R-35")
def test_a_shoe_that_runs_dry_in_mid_round_alarms_and_keeps_the_round():
    t = Table()
    t.open_to_shoe()
    t.deal("1")
    while t.stack:
        t.draw()
    t.event(ev.ShoeEmpty)
    assert t.alarms == ["shoe_dry"]
    assert t.refused("clear", SUPERVISOR, fault=t.state.faults[0].id).code == "not_latched"
    assert t.state.phase.value == "playing"
    t.tap("round_settled")
    assert t.state.phase.value == "shoe_end"


# --- S9: restarts ---


def restarted(t: Table, boot: str = "22" * 16, **links) -> Table:
    """The same table after a crash: state as the journal rebuilds it, then sessions with both devices."""
    t.state = restore(checkpoint(t.state))
    t.boot(boot)
    t.links_up(**links)
    return t


@pytest.mark.rule("R-69")
def test_s9_restart_in_mid_round_resumes_the_same_round_batch_and_cutting_card_flag():
    t = Table()
    t.open_to_shoe()
    t.deal("1,4")
    t.event(ev.CutCard)
    before = replace(t.state, shuffler=replace(t.state.shuffler, started_us=0))  # nobody can time that cycle
    restarted(t, state="shuffling", inside=52)
    for name in ("phase", "round", "rounds", "shoe", "batches", "shuffler", "faults", "last_boxes"):
        assert getattr(t.state, name) == getattr(before, name), name
    t.tap("cutting_card_at", box="1")
    t.tap("round_settled")
    assert t.state.phase.value == "shoe_end"


@pytest.mark.rule("R-69")
def test_s9_same_boot_and_our_cycle_keeps_the_shuffle():
    t = Table()
    t.open_to_shoe()
    restarted(t, state="done", inside=52)
    t.complete()
    assert t.codes == []
    assert t.state.batches["B"].proof is not None


@pytest.mark.rule("R-69", "R-36b")
def test_s9_the_shuffler_rebooted_in_mid_cycle_voids_and_latches():
    t = Table()
    t.open_to_shoe()
    restarted(t, shuffler_boot=2, state="loaded", inside=52, token=None)
    assert t.codes == ["shuffle_void"]
    assert t.state.shuffler.stage.value == "none"


def test_s9_a_stored_batch_survives_a_reboot_only_if_all_is_as_it_was():
    t = Table()
    t.open_to_shoe()
    t.complete()
    restarted(t, shuffler_boot=2, state="done", inside=52)
    assert t.codes == []
    restarted(t, "33" * 16, shuffler_boot=3, state="done", inside=51)
    assert t.codes == ["shuffle_void", "taken_without_proof"]
    assert t.state.batches["B"].cards == {Place.SHUFFLER: 51, Place.IN_HAND: 1}


@pytest.mark.rule("R-69")
def test_s9_start_committed_but_not_sent_reads_the_status_first():
    t = Table()
    t.boot()
    t.links_up()
    t.open()
    t.tap("load_shuffler", batch="A")
    t.tap("start_shuffle")
    t.end(
        Done(
            {
                "settings": {"decks": 1, "cards_per_deck": 52, "mode": "shuffle", "recognition": True},
                "crc_ok": True,
            }
        )
    )
    t.end(Done({"inside": 52, "cycle": t.cycle}))
    assert t.effects[-1].name == "start"
    t.state = restore(checkpoint(t.state))
    t.boot("22" * 16)
    ended = [f for f in t.facts if f.kind == "command_ended"][-1]
    assert (ended.data["command"], ended.data["outcome"]) == ("start", "unknown")
    assert t.end(NotSent("the shuffler is not connected")).name == "status"
    t.links_up(state="loaded", inside=52)
    assert t.state.shuffler.stage.value == "none"
    t.effects.clear()
    t.start()
    assert t.state.phase.value == "first_shuffling"


def test_s9_a_cycle_run_by_somebody_else_while_we_were_down_is_found():
    t = Table()
    t.open_to_shoe()
    t.complete()
    t.cycle += 1
    restarted(t, state="done", inside=52)
    assert t.codes == ["foreign_cycle"]
    assert t.state.batches["B"].proof is None


def test_s9_a_rebooted_shoe_is_trusted_again_only_when_the_counts_agree():
    t = Table()
    t.open_to_shoe()
    t.play_round("1")
    t.event(
        ev.LinkUp,
        boot=2,
        identity={"serial": "SH1", "firmware": "1"},
        status={"drawn": t.state.shoe.count + 1},
    )
    assert t.codes == ["shoe_rebooted"]
    fault = t.state.faults[0].id
    assert t.refused("clear", SUPERVISOR, fault=fault).code == "cause_remains"
    assert t.refused("bets_closed", boxes="1").code == "fault_latched"
    t.event(
        ev.LinkUp, boot=3, identity={"serial": "SH1", "firmware": "1"}, status={"drawn": t.state.shoe.count}
    )
    t.tap("clear", SUPERVISOR, fault=fault)


def test_another_device_on_the_port_is_latched_until_the_known_one_is_back():
    t = Table()
    t.open_to_shoe()
    before = t.state
    t.event(ev.LinkUp, boot=9, seq=77, identity={"serial": "OTHER", "firmware": "1"}, status={"drawn": 1})
    t.event(ev.CardDrawn, card="8S", back="red")
    assert t.codes == ["wrong_device"]
    assert (t.state.shoe, t.state.batches) == (before.shoe, before.batches)
    assert (t.state.device("shoe").boot, t.state.device("shoe").seq) == (1, None)
    fault = t.state.faults[0].id
    assert t.refused("clear", SUPERVISOR, fault=fault).code == "cause_remains"
    t.event(ev.LinkUp, boot=1, identity={"serial": "SH1", "firmware": "2"}, status={"drawn": 1})
    assert t.refused("clear", SUPERVISOR, fault=fault).code == "cause_remains"
    t.event(ev.LinkUp, boot=1, identity={"serial": "SH1", "firmware": "1"}, status={"drawn": 1})
    t.tap("clear", SUPERVISOR, fault=fault)
    t.tap("bets_closed", boxes="1")


@pytest.mark.rule("R-68")
def test_a_fault_of_the_service_is_cleared_only_after_a_restart_that_does_not_find_it_again():
    t = Table()
    t.open_to_shoe()
    t.give(Trouble("key_missing", "no such file"))
    (fault,) = t.state.faults
    assert t.refused("clear", SUPERVISOR, fault=fault.id).code == "cause_remains"
    restarted(t)
    t.give(Trouble("key_missing", "no such file"))
    assert [f.id for f in t.state.faults] == [fault.id]
    assert t.refused("clear", SUPERVISOR, fault=fault.id).code == "cause_remains"
    restarted(t, "33" * 16)
    assert t.refused("bets_closed", boxes="1").code == "fault_latched"
    t.tap("clear", SUPERVISOR, fault=fault.id)
    t.tap("bets_closed", boxes="1")


def test_a_journal_replayed_without_its_key_counts_sealed_cards_as_unread():
    t = Table()
    t.open_to_shoe()
    t.deal("1")
    blind = initial(t.rules)
    for fact in t.facts:
        blind = evolve(blind, replace(fact, sealed={}))
    assert blind.shoe.count == t.state.shoe.count
    assert blind.batches == t.state.batches
    assert blind.phase is t.state.phase


# --- found by a review: what happens when cards, events or taps come at the wrong time ---


@pytest.mark.rule("R-69")
def test_s9_a_release_that_happened_while_we_were_down_is_taken_from_the_numbered_events():
    t = at_rack_full()
    t.tap("take_from_shuffler")
    token = t.effects[-1].args["token"]
    restarted(t, state="empty", inside=0, token=None)
    t.event(ev.BatchReleased, "shuffler", count=52, inside=0, token=token)
    assert t.codes == []
    assert t.state.phase.value == "batch_taken"


def test_s9_a_batch_lifted_out_while_the_shuffler_was_off_is_in_hand_and_latched():
    t = Table()
    t.boot()
    t.links_up()
    t.open()
    t.tap("load_shuffler", batch="A")
    restarted(t, shuffler_boot=2, state="empty", inside=0)
    assert t.codes == ["taken_without_proof"]
    assert t.state.batches["A"].cards == {Place.IN_HAND: 52}
    assert t.state.phase.value == "opening"


def test_inc6_cards_already_inside_at_the_opening_are_told():
    t = Table()
    t.boot()
    t.links_up(state="loaded", inside=16)
    assert t.codes == ["cards_inside"]
    fault = t.state.faults[0].id
    assert t.refused("clear", SUPERVISOR, fault=fault).code == "cause_remains"
    t.event(ev.BatchReleased, "shuffler", count=16, inside=0, token=None)
    t.tap("clear", SUPERVISOR, fault=fault)


def test_a_cycle_counter_that_moved_without_us_is_found_in_every_stage():
    t = Table()
    t.open_to_shoe()
    t.cycle += 5
    restarted(t, state="shuffling", inside=52)
    assert t.codes == ["foreign_cycle"]


def test_a_foreign_cycle_on_an_empty_machine_can_be_cleared_after_a_full_cycle_of_ours():
    t = Table()
    t.boot()
    t.links_up()
    t.event(ev.CycleStarted, "shuffler", cycle=41, token="ff" * 16)
    t.cycle = 41
    t.open()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.complete()
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    t.take()


@pytest.mark.rule("R-63")
def test_after_a_gap_no_card_of_the_round_is_shown_for_its_place_is_uncertain():
    t = Table()
    t.open_to_shoe()
    t.tap("bets_closed", boxes="1,2")
    t.event(ev.GapPossible, missing=1)
    for _ in range(5):
        t.draw()
        assert set(t.facts[-1].sealed) == {"card", "raw"}
    t.tap("round_settled")
    assert [f.kind for f in t.facts[-2:]] == ["round_settled", "exposed"]


def test_a_lost_event_ends_with_the_rack_gauged_and_the_batch_goes_on():
    t = Table()
    t.open_to_shoe()
    t.stack.pop()
    t.event(ev.GapPossible, missing=1)
    t.tap("shuffle_now")
    t.complete()
    t.end_shoe()
    assert t.codes == ["events_lost"]
    assert t.state.batches["A"].cards == {Place.RACK: 52}
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    t.swap_to("B")


@pytest.mark.rule("R-32", "R-63")
def test_a_card_drawn_before_the_bets_were_closed_is_the_next_card_and_shows_no_hole_card():
    t = Table()
    t.open_to_shoe()
    t.draw()
    assert t.codes == ["card_out_of_turn"]
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    t.tap("bets_closed", boxes="1")
    for _ in range(3):
        t.draw()
        assert "card" not in t.facts[-1].data
    dealt = [f.data["to"] for f in t.facts if f.kind == "card_drawn"][1:]
    assert dealt == ["stray", "dealer", "box 1", "hole"]
    assert t.state.phase.value == "playing"


@pytest.mark.rule("R-32", "R-37")
def test_a_hole_card_drawn_before_the_side_wagers_are_settled_is_the_hole_card():
    t = Table(table_rules(settle_first=True))
    t.open_to_shoe()
    t.tap("bets_closed", boxes="1")
    for _ in range(4):
        t.draw()
    assert t.codes == ["card_out_of_turn"]
    t.tap("side_wagers_settled")
    assert t.state.phase.value == "playing"
    t.tap("round_settled")


@pytest.mark.rule("R-26")
def test_no_round_is_settled_while_the_shoe_does_not_answer():
    t = Table()
    t.open_to_shoe()
    t.deal("1")
    t.event(ev.LinkDown, reason="unplugged")
    assert t.refused("round_settled").code == "device_absent"


def test_an_empty_that_was_not_true_costs_nothing():
    t = Table()
    t.open_to_shoe()
    t.event(ev.ShoeEmpty)
    t.tap("shuffle_now")
    t.draw()
    assert t.refused("collect_rack", gauge="full").code == "shoe_not_empty"
    t.end_shoe()
    assert t.codes == []


def test_cards_that_strayed_before_the_shoe_was_loaded_make_the_cut_void():
    t = at_rack_full()
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.tap("offer_cut", box="1")
    t.tap("cut", position=26)
    t.event(ev.CardDrawn, card="8S", back="blue")
    assert (t.state.phase.value, t.state.cutter) == ("cut_due", None)
    t.event(ev.ShoeEmpty)
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    t.cut_and_load("B", offer="1")


@pytest.mark.rule("R-63", "R-70")
def test_an_unseen_copy_too_many_is_told_only_when_the_cards_are_collected():
    t = Table()
    t.open_to_shoe()
    t.tap("shuffle_now")
    while len(t.stack) > 1:
        last = t.draw()
    t.draw(card=last)
    t.event(ev.ShoeEmpty)
    assert t.codes == []
    t.tap("collect_rack", gauge="full")
    assert t.codes == ["too_many_copies"]


def test_events_from_another_device_change_nothing():
    t = Table()
    t.open_to_shoe()
    before = t.state
    t.counts["reader"] = 0
    for kind, fields in [(ev.CardDrawn, {"card": "8S"}), (ev.CutCard, {}), (ev.ShoeEmpty, {})]:
        t.event(kind, "reader", **fields)
        t.event(kind, "shuffler", **fields)
    assert (t.state.shoe, t.state.batches, t.state.faults) == (before.shoe, before.batches, before.faults)
    assert t.facts[-1].kind == "unjudged_shoe_empty"


def test_a_batch_that_is_not_whole_is_not_started():
    t = at_rack_full()
    t.tap("take_from_shuffler")
    token = t.effects[-1].args["token"]
    t.end(Done({"count": 36, "inside": 16}))
    t.event(ev.BatchReleased, "shuffler", count=36, inside=16, token=token)
    assert t.refused("start_shuffle").code == "batch_not_whole"


@pytest.mark.rule("R-69")
def test_a_shoe_that_lost_its_memory_without_counting_a_start_is_not_trusted():
    t = Table()
    t.open_to_shoe()
    t.tap("bets_closed", boxes="1")
    for card in ("8S", "9H", "2D"):
        t.event(ev.CardDrawn, card=card, back="red")
    identity = {"serial": "SH1", "firmware": "1"}
    t.event(ev.LinkUp, boot=1, identity=identity, status={"drawn": t.state.shoe.count})
    assert t.codes == []
    t.event(ev.LinkUp, boot=1, identity=identity, status={"drawn": 0})
    assert t.codes == ["shoe_rebooted"]
    assert "counts fewer cards than it told" in t.state.faults[0].cause
    assert t.state.shoe.unaccounted is None
