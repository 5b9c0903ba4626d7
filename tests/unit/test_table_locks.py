"""The shoe is locked from the players' second cards until the side wagers are settled (R-37)."""

from __future__ import annotations

from typing import Any

import pytest

from controller.table.inputs import Role
from controller.table.phases import Phase
from controller.table.view import snapshot
from devices import events as ev
from firmware_bridge.link import Done, NotSent, Outcome, Refused, Unknown
from tests.support.table import Table, table_rules

SUPERVISOR = frozenset({Role.SUPERVISOR})


class Lockable(Table):
    """A table whose shoe takes the commands, up to the players' second cards, with one box in play."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(table_rules(**{"settle_first": True, "shoe_locks": True, **changes}))
        self.open_to_shoe()
        self.effects.clear()
        self.deal_to_side_wagers()

    def deal_to_side_wagers(self) -> None:
        self.tap("bets_closed", boxes="1")
        for _ in range(3):
            self.draw()

    def asked(self) -> list[str]:
        """The commands that are on their way, oldest first."""
        return [command.name for command in self.effects]

    def answers(self, **answer: Any) -> None:
        self.end(Done(answer))

    def says(self, *, locked: bool) -> None:
        self.event(ev.LockChanged, locked=locked)

    def session(self, *, locked: bool | None = None, boot: int = 1) -> None:
        status = {"drawn": self.state.shoe.count, "empty": False}
        status |= {} if locked is None else {"locked": locked}
        who = {"serial": "SH1", "firmware": "1"}
        self.event(ev.LinkUp, boot=boot, identity=who, status=status)

    def lost(self, *ends: Outcome) -> None:
        self.event(ev.LinkDown, reason="unplugged")
        for outcome in ends:
            self.end(outcome)

    @property
    def locked(self) -> bool | None:
        told: bool | None = snapshot(self.rules, self.state)["shoe"]["locked"]
        return told


@pytest.mark.rule("R-37")
def test_it_is_locked_at_the_last_second_card_and_unlocked_when_they_are_settled() -> None:
    t = Lockable()
    assert t.state.phase is Phase.SIDE_WAGERS
    assert (t.asked(), t.locked) == (["lock"], None)
    t.says(locked=True)
    t.answers(locked=True)
    assert (t.asked(), t.locked) == ([], True)
    t.tap("side_wagers_settled")
    assert t.asked() == ["unlock"]
    t.answers(locked=False)
    t.says(locked=False)
    assert (t.asked(), t.locked) == ([], False)
    t.draw()
    t.tap("round_settled")
    assert t.alarms == []
    t.deal_to_side_wagers()
    assert t.asked() == ["lock"]


@pytest.mark.parametrize("changes", [{"settle_first": False}, {"shoe_locks": False}])
def test_no_lock_where_no_wager_asks_for_it_or_the_shoe_has_none(changes: dict[str, bool]) -> None:
    t = Lockable(**changes)
    t.draw()
    assert t.asked() == []


def test_settled_before_the_shoe_answered_it_is_unlocked_at_once() -> None:
    t = Lockable()
    t.tap("side_wagers_settled")
    assert t.asked() == ["lock"], "one command at a time"
    t.answers(locked=True)
    assert t.asked() == ["unlock"]
    t.says(locked=True)
    t.answers(locked=False)
    t.says(locked=False)
    assert (t.asked(), t.alarms, t.locked) == ([], [], False)


def test_a_round_that_is_void_and_a_shoe_that_ran_dry_unlock_it_too() -> None:
    t = Lockable()
    t.answers(locked=True)
    t.tap("void_round", SUPERVISOR, reason="misdeal")
    assert t.asked() == ["unlock"]
    t.answers(locked=False)
    t.deal_to_side_wagers()
    t.answers(locked=True)
    t.stack.clear()
    t.event(ev.ShoeEmpty)
    t.tap("reshuffle_by_hand", SUPERVISOR)
    assert t.asked() == ["unlock"]
    t.answers(locked=False)
    t.tap("cut", position=2)
    t.tap("load_shoe", batch="A")
    t.stack = ["2C", "3C"]
    t.draw()
    assert t.state.phase is Phase.SIDE_WAGERS
    assert t.asked() == ["lock"], "the same wagers are still to be settled"


def test_what_a_key_locked_a_key_unlocks() -> None:
    t = Lockable()
    t.answers(locked=True)
    t.tap("side_wagers_settled")
    t.answers(locked=False)
    t.says(locked=True)
    assert (t.asked(), t.locked) == ([], True)
    t.session(locked=True)
    assert t.asked() == []


def test_unlocked_with_a_key_it_is_locked_again() -> None:
    t = Lockable()
    t.answers(locked=True)
    t.says(locked=False)
    assert t.asked() == ["lock"]
    t.answers(locked=True)
    assert t.alarms == []


# --- it fails: an alarm, and the round goes on ---


@pytest.mark.parametrize(
    "outcome", [Refused("1", "no lock"), NotSent("busy"), Done({"locked": False})], ids=str
)
def test_a_shoe_that_does_not_lock_is_told_and_the_round_goes_on(outcome: Outcome) -> None:
    t = Lockable()
    t.end(outcome)
    assert (t.asked(), t.alarms, t.codes) == ([], ["shoe_not_locked"], [])
    t.tap("acknowledge", alarm=t.state.faults[-1].id)
    t.tap("side_wagers_settled")
    assert (t.asked(), t.alarms) == ([], []), "nothing is to be unlocked"
    t.draw()
    t.tap("round_settled")
    t.deal_to_side_wagers()
    assert t.asked() == ["lock"], "each round asks anew"
    t.draw()
    assert t.codes == ["card_out_of_turn"]


def test_the_shoe_is_asked_where_nobody_can_tell_and_then_again() -> None:
    t = Lockable()
    t.end(Unknown("no answer"))
    assert (t.asked(), t.alarms) == (["status"], ["shoe_not_locked"])
    t.answers(locked=False)
    assert t.asked() == ["lock"]
    t.end(Unknown("no answer"))
    t.answers(locked=True)
    assert (t.asked(), [f.gone is None for f in t.state.faults]) == ([], [False])
    t.tap("side_wagers_settled")
    assert t.asked() == ["unlock"]
    t.end(Unknown("no answer"))
    t.end(Unknown("no answer"))
    assert (t.asked(), t.alarms[-1]) == ([], "shoe_stays_locked")
    t.session(locked=True)
    assert t.asked() == ["unlock"], "it is asked again when a session begins"
    t.answers(locked=False)
    assert all(f.gone is not None for f in t.state.faults)


def test_a_shoe_that_stays_locked_is_unlocked_with_its_key() -> None:
    t = Lockable()
    t.answers(locked=True)
    t.tap("side_wagers_settled")
    t.end(Refused("3", "no"))
    assert (t.asked(), t.alarms) == ([], ["shoe_stays_locked"])
    t.says(locked=False)
    assert t.state.faults[-1].gone is not None
    t.draw()
    t.tap("round_settled")


# --- links and restarts ---


@pytest.mark.rule("R-37", "R-69")
def test_a_link_that_was_lost_with_the_command_is_reconciled_when_it_comes_back() -> None:
    t = Lockable()
    t.lost(Unknown("the link was lost"))
    assert (t.asked(), t.alarms) == ([], ["device_down"])
    t.session(locked=True)
    assert (t.asked(), t.locked) == ([], True)
    t.lost()
    t.tap("side_wagers_settled")
    assert t.asked() == [], "it cannot be asked now"
    t.session(locked=True)
    assert t.asked() == ["unlock"]


@pytest.mark.rule("R-37", "R-69")
@pytest.mark.parametrize("locked", [True, False], ids=["it had locked", "it had not"])
def test_a_daemon_that_stopped_meanwhile_goes_by_what_the_shoe_says(locked: bool) -> None:
    t = Lockable()
    t.boot("11" * 16)
    assert (t.asked(), t.state.pending) == ([], {})
    t.session(locked=locked)
    assert t.asked() == ([] if locked else ["lock"])
    t = Lockable()
    t.answers(locked=True)
    t.tap("side_wagers_settled")
    t.boot("11" * 16)
    t.session(locked=locked)
    assert t.asked() == (["unlock"] if locked else [])


def test_an_old_word_that_comes_late_loses_no_lock() -> None:
    """The event of the last unlocking is read after the next lock was sent, and that ends unknown."""
    t = Lockable()
    t.says(locked=False)
    t.end(Unknown("no answer"))
    t.answers(locked=True)
    t.tap("side_wagers_settled")
    assert t.asked() == ["unlock"]
