"""Faults of the core around the shuffler that a review found, each as the story it was."""

from __future__ import annotations

import pytest

from controller.table.inputs import Role
from controller.table.rules import awaited, expected
from controller.table.state import Place
from devices import events as ev
from firmware_bridge.link import Done, Refused, Unknown
from tests.support.table import Table

SUPERVISOR = frozenset({Role.SUPERVISOR})


def first_shuffling() -> Table:
    """S1: both batches prepared, batch A in the shuffler, its cycle running."""
    t = Table()
    t.boot()
    t.links_up()
    t.open()
    t.tap("load_shuffler", batch="A")
    t.start()
    return t


def rack_full() -> Table:
    """Batch A in the rack, batch B proved in the shuffler."""
    t = Table()
    t.open_to_shoe()
    t.complete()
    t.tap("shuffle_now")
    t.end_shoe()
    return t


def closing() -> Table:
    """The table closes: both batches counted and in hand, the shuffler confirmed empty."""
    t = rack_full()
    t.tap("close")
    t.take()
    for batch in "AB":
        t.tap("count_batch", batch=batch, cards=52)
    t.tap("confirm_empty", device="shuffler")
    return t


def up(t: Table, boot: int = 1, **status: object) -> None:
    """The shuffler answers (again)."""
    t.event(
        ev.LinkUp,
        "shuffler",
        boot=boot,
        identity={"serial": "SF1", "firmware": "1"},
        status={"state": "empty", "cycle": t.state.shuffler.counter, "token": None, **status},
    )


def cannot_clear(t: Table, code: str) -> bool:
    fault = next(f for f in t.state.faults if f.code == code)
    return t.refused("clear", SUPERVISOR, fault=fault.id).code == "cause_remains"


@pytest.mark.rule("R-55", "R-74")
def test_a_machine_that_lets_a_whole_batch_out_and_says_that_cards_stayed_is_not_empty():
    """Its last word was forgotten: one dealer confirmed it empty, and the table closed over the cards."""
    t = rack_full()
    t.tap("close")
    t.tap("take_from_shuffler")
    token = t.effects[-1].args["token"]
    t.end(Done({"count": 52, "inside": 3}))
    t.event(ev.BatchReleased, "shuffler", count=52, inside=3, token=token)
    assert t.codes == ["cards_inside", "wrong_count"]
    assert t.state.batches["B"].cards == {Place.IN_HAND: 49, Place.SHUFFLER: 3}
    assert cannot_clear(t, "cards_inside")
    assert t.refused("confirm_empty", device="shuffler").code == "shuffler_not_empty"
    assert t.refused("close", SUPERVISOR).code == "shuffler_not_empty"
    t.event(ev.BatchReleased, "shuffler", count=3, inside=0, token=None)
    t.tap("confirm_empty", device="shuffler")
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)


@pytest.mark.rule("R-55")
def test_cards_that_are_nowhere_are_not_in_a_machine_that_says_it_is_empty():
    """Custody kept them in the shuffler, so that it could neither be loaded nor confirmed empty."""
    t = rack_full()
    t.tap("close")
    t.event(ev.BatchReleased, "shuffler", count=40, inside=0, token=None)
    assert t.codes == ["wrong_count"]
    assert t.state.batches["B"].cards == {Place.IN_HAND: 52}
    t.tap("count_batch", batch="B", cards=40)
    t.tap("confirm_empty", device="shuffler")


@pytest.mark.rule("R-74", "R-08")
@pytest.mark.parametrize("opening", [True, False])
def test_no_batch_goes_into_a_machine_on_top_of_cards_that_it_holds(opening: bool) -> None:
    """Loading was even expected, and wiped out what the machine had said (INC-6)."""
    if opening:
        t = Table()
        t.boot()
        t.links_up(inside=16)
        t.open()
    else:
        t = rack_full()
        t.take()
        up(t, boot=2, inside=16)
    refusal = t.refused("load_shuffler", batch="A")
    assert (refusal.code, "16 cards" in refusal.why) == ("shuffler_not_empty", True)
    assert "load_shuffler batch=A" not in expected(t.rules, t.state)
    assert awaited(t.rules, t.state) == "16 cards to come out of the shuffler"
    assert cannot_clear(t, "cards_inside")
    t.event(ev.BatchReleased, "shuffler", count=16, inside=0, token=None)
    assert t.codes == ["cards_inside"]
    t.tap("load_shuffler", batch="A")
    t.start()


def test_a_batch_that_was_put_in_before_the_tap_is_no_surplus() -> None:
    t = Table()
    t.boot()
    t.links_up(inside=52)
    t.open()
    t.tap("load_shuffler", batch="A")
    assert t.state.shuffler.surplus == 0
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    t.start()


@pytest.mark.rule("R-36b")
def test_cards_out_of_a_machine_that_was_confirmed_empty_send_people_back_to_it():
    t = closing()
    assert t.state.empty == ("shuffler",)
    t.event(ev.BatchReleased, "shuffler", count=3, inside=0, token=None)
    assert t.codes == ["cards_inside"]
    assert t.state.empty == ()
    t.tap("confirm_empty", device="shoe")
    assert t.refused("close", SUPERVISOR).code == "not_confirmed_empty"
    t.tap("confirm_empty", device="shuffler")
    t.tap("close", SUPERVISOR)


@pytest.mark.rule("R-36b")
def test_cards_put_into_a_machine_while_its_cable_was_out_are_told():
    """The table could not close, and nothing said why."""
    t = closing()
    t.tap("confirm_empty", device="shoe")
    t.event(ev.LinkDown, "shuffler", reason="pulled")
    up(t, inside=12)
    assert t.state.empty == ("shoe",)
    assert t.codes == ["cards_inside"]
    assert t.refused("close", SUPERVISOR).code == "shuffler_not_empty"
    assert awaited(t.rules, t.state) == "12 cards to come out of the shuffler"
    t.event(ev.BatchReleased, "shuffler", count=12, inside=0, token=None)
    assert t.codes == ["cards_inside"]
    t.tap("confirm_empty", device="shuffler")
    t.tap("close", SUPERVISOR)


@pytest.mark.rule("R-06")
def test_a_fault_on_the_batch_that_is_out_does_not_keep_the_other_one_in() -> None:
    """B stayed in the machine and A could not go in: no tap led on, and nothing was awaited."""
    t = first_shuffling()
    t.complete(mode="sort")
    t.event(ev.BatchReleased, "shuffler", count=52, inside=0, token=None)
    assert t.codes == ["wrong_mode", "taken_without_proof"]
    t.tap("load_shuffler", batch="B")
    t.start()
    t.complete()
    t.take()
    t.tap("load_shuffler", batch="A")
    t.start()
    t.cut_and_load("B", offer="1")
    t.complete()
    for fault in t.state.faults:
        t.tap("clear", SUPERVISOR, fault=fault.id)
    assert (t.state.shoe.batch, t.codes) == ("B", [])


@pytest.mark.parametrize(
    ("report", "code"),
    [
        ({"mode": "sort"}, "wrong_mode"),
        ({"cycle": 99}, "foreign_cycle"),
        ({"backs": {}}, "report_incomplete"),
        ({"backs": {"blue": 52}}, "wrong_batch"),
    ],
)
def test_a_fault_of_a_cycle_goes_with_its_batch(report: dict[str, object], code: str) -> None:
    t = first_shuffling()
    t.complete(**report)
    assert t.codes == [code]
    assert cannot_clear(t, code)
    t.event(ev.BatchReleased, "shuffler", count=52, inside=0, token=None)
    t.tap("replace_batch", SUPERVISOR, batch="A")
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)


SETTINGS_ANSWER = Done(
    {
        "settings": {"mode": "shuffle", "cards_per_deck": 52, "recognition": True, "decks": 1},
        "crc": 1,
        "crc_ok": True,
    }
)


@pytest.mark.rule("R-76")
def test_no_cycle_is_started_while_an_earlier_question_is_open() -> None:
    """Two chains of questions ran at once, and the older answer undid what the younger one had begun."""
    t = Table()
    t.boot()
    t.links_up()
    t.open()
    t.tap("load_shuffler", batch="A")
    t.tap("start_shuffle")
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    t.tap("in_service", SUPERVISOR, device="shuffler")
    refusal = t.refused("start_shuffle")
    assert (refusal.code, "settings" in refusal.why) == ("shuffler_busy", True)
    t.end(SETTINGS_ANSWER)
    assert t.effects == []
    t.start()
    assert t.state.shuffler.stage.value == "running"


@pytest.mark.rule("R-74", "R-76")
def test_cards_beside_the_batch_are_told_when_the_cycle_is_not_started() -> None:
    t = Table()
    t.boot()
    t.links_up()
    t.open()
    t.tap("load_shuffler", batch="A")
    t.tap("start_shuffle")
    t.end(SETTINGS_ANSWER)
    t.end(Done({"inside": 68, "cycle": t.cycle, "token": None}))
    assert t.state.shuffler.surplus == 16
    assert [(f.code, f.batch) for f in t.state.faults] == [("cards_inside", "A")]
    assert cannot_clear(t, "cards_inside")
    t.event(ev.BatchReleased, "shuffler", count=16, inside=52, token=None)
    assert t.codes == ["cards_inside"]
    assert t.state.batches["A"].cards == {Place.SHUFFLER: 52}
    t.start()
    t.complete()
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    t.take()


@pytest.mark.rule("R-74", "R-76")
def test_all_cards_out_of_a_machine_that_held_too_many_are_no_wrong_count() -> None:
    t = Table()
    t.boot()
    t.links_up()
    t.open()
    t.tap("load_shuffler", batch="A")
    up(t, inside=68)
    assert t.codes == ["cards_inside"]
    t.event(ev.BatchReleased, "shuffler", count=68, inside=0, token=None)
    assert t.codes == ["cards_inside", "taken_without_proof"]
    assert (t.state.shuffler.surplus, t.state.batches["A"].unfit) == (0, None)


def test_a_shuffled_batch_beside_which_cards_lay_is_shuffled_again() -> None:
    t = rack_full()
    up(t, inside=55, state="done")
    t.event(ev.BatchReleased, "shuffler", count=3, inside=52, token=None)
    assert t.codes == ["cards_inside", "shuffle_void"]
    assert t.state.batches["B"].proof is None
    t.start()
    t.complete()
    for fault in t.state.faults:
        t.tap("clear", SUPERVISOR, fault=fault.id)
    t.take()


@pytest.mark.parametrize("how", ["status", "link"])
def test_a_release_that_nobody_answered_is_settled_by_what_is_inside(how: str) -> None:
    """The table went on to say that the batch was on its way out, for ever."""
    t = rack_full()
    t.tap("take_from_shuffler")
    t.end(Unknown("no answer"))
    assert t.refused("idle").code == "shuffler_busy"
    inside = {"inside": 52, "cycle": t.cycle, "token": t.token, "state": "done"}
    if how == "status":
        assert t.end(Done(inside)).name == "status"
    else:
        t.end(Unknown("no answer"))
        up(t, **inside)
    assert t.state.shuffler.letting_out is False
    assert t.state.batches["B"].proof is not None
    t.take()


def test_a_release_of_which_only_the_answer_was_lost_is_told_by_its_event() -> None:
    t = rack_full()
    t.tap("take_from_shuffler")
    t.end(Unknown("no answer"))
    t.end(Done({"inside": 0, "cycle": t.cycle, "token": t.token, "state": "empty"}))
    t.event(ev.BatchReleased, "shuffler", count=52, inside=0, token=t.token)
    assert (t.codes, t.state.taken) == ([], "B")


def test_after_lost_events_the_machine_is_asked_what_it_holds() -> None:
    """The event of the release was among them: custody kept the batch in an empty machine."""
    t = rack_full()
    t.tap("take_from_shuffler")
    t.end(Done({"count": 52, "inside": 0}))
    t.event(ev.GapPossible, "shuffler", missing=None)
    assert t.end(Done({"inside": 0, "cycle": t.cycle, "token": t.token})).name == "status"
    assert t.codes == ["shuffle_void", "taken_without_proof"]
    assert t.state.batches["B"].cards == {Place.IN_HAND: 52}
    t.tap("load_shuffler", batch="B")
    t.start()
    t.event(ev.GapPossible, "shuffler", missing=None)
    t.end(Done({"inside": 55, "cycle": t.cycle, "token": t.token}))
    assert (t.codes[-1], t.state.shuffler.surplus) == ("cards_inside", 3)


def out_of_service(t: Table) -> None:
    t.tap("out_of_service", SUPERVISOR, device="shuffler")
    t.tap("close")


def closes(t: Table) -> None:
    """All that is left is to look into the devices."""
    t.tap("count_batch", batch="B", cards=52)
    for device in ("shoe", "shuffler"):
        t.tap("confirm_empty", device=device)
        if device not in t.state.empty:
            t.tap("confirm_empty", SUPERVISOR, who="sue", device=device)
    t.tap("close", SUPERVISOR)
    assert t.state.phase.value == "closed"


@pytest.mark.rule("R-36b", "R-55")
def test_cards_that_lack_are_not_in_a_machine_that_answers_and_is_empty() -> None:
    """They were booked into a machine that knew it was empty: no confirmation, no count, no closing."""
    t = rack_full()
    t.take()
    out_of_service(t)
    t.tap("count_batch", batch="A", cards=36)
    assert t.codes == ["wrong_count"]
    assert (t.state.batches["A"].counted, t.state.shuffler.batch) == (36, None)
    closes(t)


@pytest.mark.rule("R-36b", "R-55")
@pytest.mark.parametrize("boot", [1, 2], ids=["cable", "power"])
def test_a_silent_machine_that_was_to_be_searched_answers_that_it_is_empty(boot: int) -> None:
    t = rack_full()
    t.take()
    out_of_service(t)
    t.event(ev.LinkDown, "shuffler", reason="pulled")
    t.tap("count_batch", batch="A", cards=36)
    assert t.state.batches["A"].cards == {Place.IN_HAND: 36, Place.SHUFFLER: 16}
    refusal = t.refused("in_service", SUPERVISOR, device="shuffler")
    assert (refusal.code, "16 cards" in refusal.why) == ("shuffler_not_empty", True)
    up(t, boot=boot, inside=0)
    assert t.state.batches["A"].cards == {Place.IN_HAND: 52}
    t.tap("count_batch", batch="A", cards=36)
    assert t.codes == ["cards_inside", "wrong_count"]
    closes(t)


@pytest.mark.rule("R-36b", "R-55")
def test_a_batch_is_counted_once_the_cards_that_the_machine_tells_of_are_out() -> None:
    t = rack_full()
    t.take()
    out_of_service(t)
    up(t, inside=16)
    assert t.codes == ["cards_inside"]
    assert t.refused("count_batch", batch="A", cards=36).code == "batch_not_in_hand"
    t.event(ev.BatchReleased, "shuffler", count=16, inside=0, token=None)
    t.tap("count_batch", batch="A", cards=52)
    assert t.codes == ["cards_inside"]
    closes(t)


@pytest.mark.rule("R-05", "R-06")
def test_when_the_shuffler_holds_the_batch_in_play_no_round_begins_with_what_the_shoe_holds() -> None:
    """The batches changed places on their way: a shoe that sees no backs dealt one that was not shuffled."""
    t = Table()
    t.open_to_shoe()
    t.complete(backs={"red": 52})
    assert t.codes == ["wrong_batch", "batches_exchanged"]
    t.refused("bets_closed", "fault_latched", boxes="1")
    assert cannot_clear(t, "batches_exchanged")
    t.tap("shuffle_now", SUPERVISOR)
    t.end_shoe()
    exchanged = next(fault for fault in t.state.faults if fault.code == "batches_exchanged")
    t.tap("clear", SUPERVISOR, fault=exchanged.id)
    assert t.codes == ["wrong_batch"]


@pytest.mark.rule("R-36b")
def test_a_machine_that_forgot_the_token_is_asked_and_its_batch_shuffled_again() -> None:
    """It refused to let the batch out for ever, and nothing said why."""
    t = first_shuffling()
    t.complete()
    t.tap("take_from_shuffler")
    assert t.end(Refused("5", "token unknown or already used")).name == "release"
    status = {"state": "done", "inside": 52, "cycle": 1, "token": None, "mode": "shuffle", "door": False}
    assert t.end(Done(status)).name == "status"
    assert t.codes == ["shuffle_void"]
    t.start()
    t.complete()
    t.tap("clear", SUPERVISOR, fault=t.state.faults[0].id)
    t.take()
    assert t.codes == []


def test_a_refused_release_of_a_batch_whose_token_is_known_voids_nothing() -> None:
    t = first_shuffling()
    t.complete()
    t.tap("take_from_shuffler")
    t.end(Refused("6", "open"))
    assert t.state.shuffler.token is not None
    status = {"state": "done", "inside": 52, "cycle": 1, "token": t.state.shuffler.token}
    t.end(Done(status))
    assert t.codes == []
    t.take()
