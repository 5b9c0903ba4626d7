"""The hole-card reader: when it may look, what a misuse and a failure mean (R-25, R-36a, R-37)."""

from __future__ import annotations

from typing import Any

import pytest

from controller.table.inputs import Role
from controller.table.phases import Phase
from controller.table.rules import expected
from controller.table.view import snapshot
from devices import events as ev
from firmware_bridge.link import Done, NotSent, Unknown
from tests.support.table import Table, table_rules

SUPERVISOR = frozenset({Role.SUPERVISOR})


class WithReader(Table):
    """A table with a reader, where one box is played."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(table_rules(reader="reader", decks=6, **changes))
        self.counts["reader"] = 0
        self.open_to_shoe()
        self.event(ev.LinkUp, "reader", boot=1, identity={"serial": "HR1", "firmware": "1"})

    def deal_with(self, up: str | None, hole: str = "9D") -> None:
        """The initial deal on box 1: box, dealer, box, hole."""
        self.stack += [hole, "3C", up or "AS", "2C"]
        self.tap("bets_closed", boxes="1")
        self.draw()
        self.draw(**({"card": None} if up is None else {}))
        self.draw()
        if self.state.phase is Phase.SIDE_WAGERS:
            return
        self.draw()
        assert self.state.phase is Phase.PLAYING

    def look(self, result: str) -> None:
        self.event(ev.HoleCardChecked, "reader", result=result)

    def last(self, kind: str) -> dict[str, Any]:
        return dict(next(f for f in reversed(self.facts) if f.kind == kind).data)

    @property
    def procedure(self) -> Any:
        return snapshot(self.rules, self.state)["reader"]["procedure"]

    def cause(self, code: str) -> str:
        return next(f.cause for f in self.state.faults if f.code == code)


# --- allowed ---


@pytest.mark.parametrize("up", ["AS", "TS", "JS", "QS", "KS", None])
@pytest.mark.rule("R-25")
def test_the_tap_asks_the_reader_and_the_answer_is_a_fact(up: str | None) -> None:
    t = WithReader()
    t.deal_with(up)
    assert "peek" in expected(t.rules, t.state)
    t.tap("peek")
    assert (t.effects[-1].device, t.effects[-1].name) == ("reader", "peek")
    assert t.refused("peek").code == "reader_busy"
    t.look("not_natural")
    t.end(Done({"result": "not_natural"}))
    assert t.last("hole_card_checked") | {"n": 0} == {
        "n": 0, "seq": None, "result": "not_natural", "in_round": True, "allowed": True,
    }  # fmt: skip
    assert (t.state.round and t.state.round.peeks, t.codes) == (1, [])
    refused = t.refused("peek")
    assert (refused.code, refused.clause) == ("reader_not_due", "13:69F-2.7(a)")
    assert "in this round before" in refused.why
    t.tap("round_settled")
    assert t.state.phase is Phase.BETWEEN_ROUNDS


@pytest.mark.rule("R-25")
def test_a_reader_that_looks_by_itself_has_been_used() -> None:
    t = WithReader()
    t.deal_with("AS", "KD")
    t.look("natural")
    assert t.last("hole_card_checked")["result"] == "natural"
    assert t.codes == []
    assert t.refused("peek").code == "reader_not_due"
    t.tap("round_settled")
    t.deal_with("KS")
    t.tap("peek")


@pytest.mark.rule("R-36a", "R-42")
def test_a_look_outside_a_round_is_a_trial() -> None:
    """A misuse is of a hole card, and between two rounds there is none."""
    t = WithReader()
    t.look("error")
    assert t.codes == ["reader_failed"]
    t.tap("inspect", SUPERVISOR, device="reader")
    t.tap("clear", SUPERVISOR, fault=t.state.faults[-1].id)
    t.look("not_natural")
    assert t.codes == []
    assert t.last("hole_card_checked")["in_round"] is False


def test_a_table_without_a_reader_has_neither_tap() -> None:
    t = Table()
    t.open_to_shoe()
    t.deal()
    assert t.refused("peek").code == "no_such_device"
    assert t.refused("no_reader", SUPERVISOR).code == "no_such_device"
    assert not {"peek", "no_reader"} & set(expected(t.rules, t.state))


# --- not allowed: the tap is refused, and a look all the same is latched ---


@pytest.mark.rule("R-37", "R-40")
def test_side_wagers_first_in_both_orders() -> None:
    """13:69F-2.23(e): neither the reader nor the next card before the side wagers are settled."""
    t = WithReader(settle_first=True)
    t.deal_with("AS")
    refused = t.refused("peek")
    assert (refused.code, refused.clause) == ("reader_not_due", "13:69F-2.23(e)")
    assert "side_wagers_settled" in refused.expected
    t.draw()
    assert t.codes == ["card_out_of_turn"], "the card came before they were settled"
    t = WithReader(settle_first=True)
    t.deal_with("AS")
    t.look("not_natural")
    assert t.codes == ["reader_misuse"]
    assert t.cause("reader_misuse").startswith("the side wagers are not settled (13:69F-2.23(e))")
    t = WithReader(settle_first=True)
    t.deal_with("AS")
    t.tap("side_wagers_settled")
    assert t.refused("peek").clause == "13:69F-2.7(a)", "the hole card does not lie there yet"
    t.draw()
    t.tap("peek")
    t.look("not_natural")
    assert t.codes == []


@pytest.mark.parametrize("up", ["2S", "9S"])
@pytest.mark.parametrize("discloses", [False, True])
@pytest.mark.rule("R-25", "R-36a")
def test_a_look_with_another_up_card_is_told_to_the_supervisor(up: str, discloses: bool) -> None:
    t = WithReader(reader_discloses=discloses)
    t.deal_with(up)
    assert "peek" not in expected(t.rules, t.state)
    refused = t.refused("peek")
    assert (refused.code, refused.clause) == ("reader_not_due", "13:69F-2.7(a)")
    assert up not in refused.why
    t.look("not_natural")
    assert t.codes == ["reader_misuse"]
    then = "so the round is void (`void_round reason=reader`)" if discloses else "so the round may stand"
    assert t.cause("reader_misuse").endswith(then)
    fault = t.state.faults[-1].id
    assert t.refused("clear", SUPERVISOR, fault=fault).code == "cause_remains"
    if discloses:
        t.tap("void_round", SUPERVISOR, reason="reader")
    else:
        t.tap("round_settled")
    assert t.refused("bets_closed", boxes="1").code == "fault_latched"
    assert t.refused("clear", fault=fault).code == "not_allowed"
    t.tap("clear", SUPERVISOR, fault=fault)
    t.tap("bets_closed", boxes="1")


@pytest.mark.rule("R-36a", "R-63")
def test_what_a_look_said_that_nobody_may_have_had_is_sealed() -> None:
    """Law 7: while the side wagers are open, nobody learns from any output whether there is a natural."""
    told = []
    for result in ("natural", "not_natural"):
        t = WithReader(settle_first=True)
        t.deal_with("AS")
        t.look(result)
        fact = next(f for f in t.facts if f.kind == "hole_card_checked")
        assert fact.sealed["result"] == result
        told.append([(f.kind, f.data) for f in t.facts])
    assert told[0] == told[1]


@pytest.mark.rule("R-25")
def test_a_second_look_in_a_round_is_a_misuse() -> None:
    t = WithReader()
    t.deal_with("AS")
    t.look("not_natural")
    t.look("not_natural")
    assert t.codes == ["reader_misuse"]
    assert t.cause("reader_misuse").startswith("it was used in this round before")


@pytest.mark.rule("R-63")
def test_nothing_is_concluded_from_an_up_card_of_which_nobody_can_tell() -> None:
    """Law 7: events were lost before the up card, so it may be another one that lies there."""
    told = []
    for up in ("9S", "AS"):
        t = WithReader()
        t.stack += ["9D", "3C", up, "2C"]
        t.tap("bets_closed", boxes="1")
        t.draw()
        t.event(ev.GapPossible, "shoe", missing=1)
        for _ in range(3):
            t.draw()
        t.tap("peek")
        t.look("not_natural")
        assert t.codes == ["events_lost"]
        told.append([(f.kind, f.data) for f in t.facts])
    assert told[0] == told[1]


# --- a look that was left out, and what it told (R-25) ---


@pytest.mark.rule("R-25")
def test_a_further_card_before_the_look_is_latched_once_a_round_and_the_look_may_still_be_made() -> None:
    t = WithReader()
    t.deal_with("KS")
    assert t.procedure == "the hole card goes into it (`peek`) before any further card"
    t.draw()
    t.draw()
    assert t.codes == ["reader_skipped"]
    assert t.cause("reader_skipped") == "a card came out before the hole card was checked (13:69F-2.7(a))"
    assert t.procedure.startswith(
        "a card came before the look: a supervisor decides; the hole card goes into"
    )
    t.look("not_natural")
    assert (t.codes, t.last("hole_card_checked")["allowed"]) == (["reader_skipped"], True)
    assert t.procedure == "a card came before the look: a supervisor decides"
    t.tap("round_settled")
    fault = t.state.faults[-1].id
    assert t.refused("bets_closed", boxes="1").code == "fault_latched"
    assert t.refused("clear", fault=fault).code == "not_allowed"
    t.tap("clear", SUPERVISOR, fault=fault)
    t.deal_with("9S")
    t.draw()
    t.tap("round_settled")
    assert t.codes == []


@pytest.mark.rule("R-25")
def test_a_card_while_the_reader_has_not_answered_yet_is_before_the_look() -> None:
    t = WithReader()
    t.deal_with("AS")
    t.tap("peek")
    t.draw()
    assert t.codes == ["reader_skipped"]


@pytest.mark.rule("R-25")
def test_a_round_is_not_settled_while_nobody_looked_unless_that_is_latched() -> None:
    t = WithReader()
    t.deal_with("AS")
    refused = t.refused("round_settled")
    assert (refused.code, refused.clause, refused.expected) == ("reader_first", "13:69F-2.7(a)", ("peek",))
    t.tap("peek")
    t.look("not_natural")
    t.end(Done({"result": "not_natural"}))
    t.tap("round_settled")
    t.deal_with("AS")
    t.draw()
    t.tap("round_settled")
    assert t.codes == ["reader_skipped"]


@pytest.mark.rule("R-25", "R-36a")
def test_a_round_whose_reader_is_silent_goes_on_without_it_when_a_supervisor_says_so() -> None:
    t = WithReader()
    t.deal_with("AS")
    t.event(ev.LinkDown, "reader", reason="unplugged")
    refused = t.refused("round_settled")
    assert (refused.code, refused.expected) == ("reader_first", ("no_reader",))
    assert t.procedure.startswith("it does not answer: a supervisor may have the table deal without it")
    t.tap("no_reader", SUPERVISOR)
    assert t.procedure == "it is not used: the round is played as at a table without one"
    t.draw()
    t.tap("round_settled")
    assert t.codes == []


@pytest.mark.rule("R-25", "R-36a")
def test_a_reader_that_reports_a_fault_owes_no_look() -> None:
    t = WithReader()
    t.deal_with("AS")
    t.event(ev.FaultRaised, "reader", code="7", name="lamp")
    assert t.procedure == "it failed: the round is played to its end as at a table without one"
    t.tap("hit", box="1")
    t.draw()
    t.tap("round_settled")
    assert t.codes == ["reader_failed"]


@pytest.mark.rule("R-25")
@pytest.mark.parametrize(("up", "face_up"), [("9S", False), (None, False), ("AS", True)])
def test_where_no_look_is_owed_or_no_hand_gets_the_card_nothing_is_latched(
    up: str | None, face_up: bool
) -> None:
    t = WithReader()
    t.deal_with(up)
    t.draw(face_up=face_up)
    assert t.codes == []


@pytest.mark.rule("R-25")
def test_a_card_after_the_reader_told_a_natural_is_out_of_turn_and_status_tells_why() -> None:
    t = WithReader()
    t.deal_with("AS", "KD")
    t.look("natural")
    said = snapshot(t.rules, t.state)["reader"]
    assert said["told"] == "natural"
    assert said["procedure"] == "it told a natural: no further card is dealt, the round is settled"
    t.draw()
    t.draw()
    assert t.codes == ["card_out_of_turn"]
    assert t.cause("card_out_of_turn").startswith("a card left the shoe after the reader told a natural")
    t.tap("round_settled")
    assert snapshot(t.rules, t.state)["reader"]["told"] is None


@pytest.mark.rule("R-29")
def test_the_dealers_next_hand_is_dealt_after_a_natural_of_the_first() -> None:
    t = WithReader(dealer_hands=2)
    t.deal_with("AS", "KD")
    t.look("natural")
    t.tap("dealer_hand_settled")
    t.draw()
    assert t.codes == []


@pytest.mark.rule("R-36a", "R-30")
def test_after_a_misuse_the_round_goes_on_and_insurance_is_still_taken() -> None:
    """A misuse before the hole card was dealt: no player loses the right of 13:69F-2.9 by it."""
    t = WithReader(settle_first=True)
    t.deal_with("AS")
    t.look("not_natural")
    without = "it was misused: the round is played as at a table without one, or a supervisor voids it"
    assert t.procedure == without
    t.tap("side_wagers_settled")
    t.draw()
    assert t.procedure == without
    assert {"insurance box=NUMBER", "hit box=1", "round_settled"} <= set(expected(t.rules, t.state))
    assert t.refused("peek").code == "reader_not_due"
    t.tap("insurance", box="1")
    t.tap("hit", box="1")
    t.draw()
    t.tap("round_settled")
    assert t.codes == ["reader_misuse"]


# --- it does not work ---


@pytest.mark.rule("R-36a")
def test_an_error_lets_the_round_end_and_the_next_one_only_without_the_reader() -> None:
    t = WithReader()
    t.deal_with("AS")
    t.tap("peek")
    t.look("error")
    t.end(Done({"result": "error"}))
    assert t.codes == ["reader_failed"]
    t.draw()
    t.tap("round_settled")
    fault = t.state.faults[-1].id
    assert t.refused("bets_closed", boxes="1").code == "fault_latched"
    assert t.refused("clear", SUPERVISOR, fault=fault).code == "cause_remains"
    assert "no_reader" in expected(t.rules, t.state)
    t.tap("no_reader", SUPERVISOR)
    assert "no_reader" not in expected(t.rules, t.state)
    said = snapshot(t.rules, t.state)["reader"]
    assert said == {"device": "reader", "in_use": False, "told": None, "procedure": None}
    assert t.refused("no_reader", SUPERVISOR).code == "already_so"
    t.tap("clear", SUPERVISOR, fault=fault)
    t.deal_with("KS")
    assert "without the reader" in t.refused("peek").why
    t.look("not_natural")
    assert t.codes == ["reader_misuse"]
    t.tap("round_settled")
    t.tap("clear", SUPERVISOR, fault=t.state.faults[-1].id)
    t.tap("inspect", SUPERVISOR, device="reader", result="faulty")
    assert t.state.no_reader
    t.tap("inspect", SUPERVISOR, device="reader")
    assert not t.state.no_reader
    t.deal_with("QS")
    t.tap("peek")


@pytest.mark.rule("R-36a")
def test_mended_and_inspected_it_is_used_again() -> None:
    t = WithReader()
    t.event(ev.FaultRaised, "reader", code="7", name="lamp")
    assert t.codes == ["reader_failed"]
    fault = t.state.faults[-1].id
    assert t.refused("clear", SUPERVISOR, fault=fault).code == "cause_remains"
    t.tap("inspect", SUPERVISOR, device="reader")
    t.tap("clear", SUPERVISOR, fault=fault)
    t.deal_with("AS")
    t.tap("peek")


@pytest.mark.rule("R-36a")
def test_a_look_of_which_nobody_knows_is_a_failure_and_one_not_begun_is_none() -> None:
    t = WithReader()
    t.deal_with("AS")
    t.tap("peek")
    t.end(NotSent("the link was lost"))
    assert t.codes == []
    t.tap("peek")
    t.event(ev.LinkDown, "reader", reason="unplugged")
    t.end(Unknown("the link was lost"))
    assert t.codes == ["reader_failed"]
    refused = t.refused("peek")
    assert (refused.code, refused.expected) == ("device_absent", ("no_reader",))
    t.tap("no_reader", SUPERVISOR)
    t.draw()
    t.tap("round_settled")
    t.tap("clear", SUPERVISOR, fault=next(f.id for f in t.state.faults if f.code == "reader_failed"))
    t.deal_with("KS")


@pytest.mark.rule("R-69")
def test_a_daemon_that_stopped_while_it_asked_does_not_ask_again() -> None:
    t = WithReader()
    t.deal_with("AS")
    t.tap("peek")
    t.boot("11" * 16)
    assert t.codes == ["reader_failed"]
    assert t.effects == []
    assert t.state.pending == {}
