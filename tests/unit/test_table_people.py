"""Alarms are raised, acknowledged and gone; latched faults are acknowledged and cleared; who may do what."""

from __future__ import annotations

from controller import access
from controller.table import rules as judge
from controller.table.args import other_person
from controller.table.checkpoint import checkpoint, restore
from controller.table.clauses import CLAUSES
from controller.table.inputs import OperatorEvent, Role
from controller.table.people import stage
from controller.table.phases import TAPS, TRANSITIONS, Phase
from controller.table.state import Fault, initial
from controller.table.view import alarms, faults, snapshot
from devices import events as ev
from tests.support.table import Table, table_rules

SUPERVISOR = frozenset({Role.SUPERVISOR})


def playing() -> Table:
    t = Table()
    t.open_to_shoe()
    return t


def down(t: Table, device: str = "shoe") -> str:
    """The id of the alarm that the device does not answer."""
    t.event(ev.LinkDown, device, reason="unplugged")
    return next(f.id for f in reversed(t.state.faults) if f.code == "device_down")


def back(t: Table) -> None:
    t.links_up(shuffler_boot=1, state="shuffling", inside=t.size, token=t.token)


def stages(t: Table) -> dict[str, str]:
    return {f.id: stage(f) for f in t.state.faults}


def test_an_alarm_is_raised_acknowledged_and_over_with_its_cause() -> None:
    t = playing()
    alarm = down(t)
    assert stages(t) == {alarm: "raised"}
    assert f"acknowledge alarm={alarm}" in judge.expected(t.rules, t.state)
    t.tap("acknowledge", alarm=alarm)
    assert stages(t) == {alarm: "acknowledged"}
    assert t.state.faults[0].acknowledged == "ann"
    assert t.refused("acknowledge", alarm=alarm).code == "acknowledged_already"
    back(t)
    assert stages(t) == {}
    assert t.refused("acknowledge", alarm=alarm).code == "no_such_alarm"


def test_an_alarm_whose_cause_went_stays_until_somebody_saw_it() -> None:
    t = playing()
    alarm = down(t)
    back(t)
    assert stages(t) == {alarm: "gone"}
    assert t.state.faults[0].gone is not None
    t.tap("acknowledge", alarm=alarm)
    assert stages(t) == {}


def test_a_cause_that_comes_back_is_a_new_alarm_once_the_old_one_was_acknowledged() -> None:
    t = playing()
    first = down(t)
    t.tap("acknowledge", alarm=first)
    assert down(t) == first, "acknowledged and still there is not raised again"
    back(t)
    second = down(t)
    assert second != first
    assert stages(t) == {second: "raised"}


def test_an_alarm_that_nobody_acknowledged_is_the_same_one_when_its_cause_comes_back() -> None:
    t = playing()
    alarm = down(t)
    since = t.state.faults[0].since
    back(t)
    assert down(t) == alarm
    assert stages(t) == {alarm: "raised"}
    assert (t.state.faults[0].since, t.state.faults[0].gone) == (since, None)
    back(t)
    assert stages(t) == {alarm: "gone"}
    t.tap("acknowledge", alarm=alarm)
    assert stages(t) == {}


def test_each_device_has_an_alarm_of_its_own() -> None:
    t = playing()
    shoe, shuffler = down(t), down(t, "shuffler")
    assert stages(t) == {shoe: "raised", shuffler: "raised"}


def test_a_handle_that_we_closed_is_no_alarm() -> None:
    t = playing()
    t.event(ev.LinkDown, "shoe", reason="it was closed on our side")
    assert not t.state.device("shoe").up
    assert t.alarms == []


def test_an_alarm_blocks_nothing_and_is_never_cleared() -> None:
    t = playing()
    alarm = down(t, "shuffler")
    t.tap("bets_closed", boxes="1")
    assert t.refused("clear", SUPERVISOR, fault=alarm).code == "not_latched"
    assert faults(t.rules, t.state) == []
    assert [(a["id"], a["latched"], a["state"]) for a in alarms(t.rules, t.state)] == [
        (alarm, False, "raised")
    ]


def test_a_latched_fault_may_be_acknowledged_but_only_a_clear_ends_it() -> None:
    t = playing()
    t.draw()
    t.draw()
    assert t.codes == ["card_out_of_turn"]
    fault = t.state.faults[0].id
    t.tap("acknowledge", alarm=fault)
    assert t.codes == ["card_out_of_turn"]
    (shown,) = alarms(t.rules, t.state)
    assert (shown["state"], shown["acknowledged"], shown["latched"]) == ("acknowledged", "ann", True)
    assert shown["cause_gone"] is True
    assert t.refused("clear", fault=fault).code == "not_allowed"
    t.tap("clear", SUPERVISOR, fault=fault)
    assert t.codes == []


def test_what_blocks_everything_lets_itself_be_acknowledged() -> None:
    t = Table()
    t.boot()
    t.links_up()
    t.tap("open")
    t.event(ev.CardDrawn, "shoe", card="8S", back="red")
    assert t.codes == ["stray_card"]
    t.tap("acknowledge", alarm=t.state.faults[0].id)
    assert t.state.faults[0].acknowledged == "ann"


def test_alarms_outlive_a_checkpoint() -> None:
    t = playing()
    down(t)
    back(t)
    assert restore(checkpoint(t.state)).faults == t.state.faults


def test_an_unfit_batch_keeps_the_fact_since_which_it_is() -> None:
    t = playing()
    t.event(ev.CardDrawn, "shoe", card="8S", back="blue")
    batch = t.state.batches["A"]
    fault = next(f for f in t.state.faults if f.code == "wrong_back")
    assert (batch.unfit, batch.unfit_since) == ("wrong_back", fault.since)
    assert snapshot(t.rules, t.state)["batches"]["A"]["unfit_since"] == fault.since


def test_the_second_of_two_people_is_another_one() -> None:
    def by(who: str, *roles: Role) -> OperatorEvent:
        return OperatorEvent("verify", {}, who, frozenset(roles))

    assert not other_person(by("ann", Role.SUPERVISOR), "ann")
    assert not other_person(by("ann", Role.DEALER, Role.SUPERVISOR), "ann")
    assert other_person(by("bob", Role.SUPERVISOR), "ann")
    assert other_person(by("ann", *Role), "ann"), "who holds every role is root, or the demo"


def test_every_event_has_a_clause_and_roles() -> None:
    assert set(TAPS) <= set(CLAUSES)
    assert set(CLAUSES) <= access.EVENTS
    assert set(TAPS) <= access.EVENTS
    for role in (Role.DEALER, Role.SUPERVISOR, Role.TECHNICIAN):
        assert access.may(frozenset({role}), "acknowledge")
    assert access.RIGHTS[Role.SURVEILLANCE] == frozenset()


def test_every_tap_out_of_its_phase_is_refused_with_a_clause_and_what_is_expected() -> None:
    closed, between, dealt = Table(), playing(), playing()
    dealt.deal("1")
    refused = set()
    for t in (closed, between, dealt):
        right = {row.trigger for row in TRANSITIONS if row.tap and t.state.phase in row.sources}
        for event in set(TAPS) - right:
            refusal = t.refused(event, frozenset(Role))
            by_hand = event == "reshuffle_by_hand" and t.state.round is None
            cited = "13:69F-2.5(a)" if by_hand else CLAUSES[event]  # 2.15(f) is of a round
            assert (refusal.code, refusal.clause) == ("unexpected", cited)
            assert refusal.expected == judge.expected(t.rules, t.state)
            refused.add(event)
    anywhere = {row.trigger for row in TRANSITIONS if row.tap and set(row.sources) == set(Phase)}
    assert refused == set(TAPS) - anywhere


def test_a_fault_of_a_table_before_alarms_were_is_restored() -> None:
    plain = checkpoint(initial(table_rules()))
    plain["faults"] = [
        {"id": "F3", "code": "crashed", "blocks": "now", "cause": "x", "since": 3, "again": 3}
        | {"batch": None, "device": None}
    ]
    assert restore(plain).faults == (Fault("F3", "crashed", judge.Blocks.NOW, "x", 3, 3),)
