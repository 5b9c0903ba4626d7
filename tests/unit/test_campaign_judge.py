"""The campaign's judge must be able to fail: for all that must never happen, belief or truth is broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from controller.record import Entry
from controller.table.inputs import Fact
from controller.table.profiles import BatchRules, TableRules
from simulators.faults import FAULTS
from simulators.models.cards import Card
from simulators.rig.campaign.excuses import EXCUSES
from simulators.rig.campaign.journals import journals
from simulators.rig.campaign.judge import Judge
from simulators.rig.campaign.plan import WHOLE
from simulators.rig.campaign.store import DiskStore
from simulators.rig.felt import BEE_TEK, MANAGED_SHOE
from simulators.rig.stepped import Stepped

RULES = TableRules("BJ-07", 7, 1, (BatchRules("A", "red"), BatchRules("B", "blue")))


class Court:
    """A table after its first round, and its judge; `struck` is what he believes to have struck the shoe."""

    def __init__(self, store: DiskStore, shoe: str = MANAGED_SHOE) -> None:
        self.store, self.struck, self.mono_ns = store, Counter[str](), 0
        self.world = Stepped(RULES, "court", 1, shoe=shoe, store=store)
        self.judge = Judge(self.world, store, lambda: {"shoe": self.struck}, first=4)
        self.world.run(lambda: self.world.felt.referee.counts == 2)
        self.judge.look()
        assert self.told == []

    @property
    def told(self) -> list[str]:
        return [failure.what for failure in self.judge.failures]

    def kinds(self) -> list[str]:
        return [what.partition(":")[0] for what in self.told]

    def fact(self, kind: str, source: str = "operator", skip: int = 0, **data: Any) -> None:
        """One more fact, as if the controller had committed it."""
        seq = self.judge._seq + 1 + skip
        self.judge.take([Entry(seq, Fact(kind, source, data), self.mono_ns, 0, b"", b"")])

    def latched(self, code: str) -> None:
        self.fact("fault_latched", code=code, fault=f"F{self.judge._seq + 1}", blocks="round")

    def off_the_table(self) -> None:
        """A card of the rack goes up somebody's sleeve."""
        rack = self.world.felt.rack
        cards = rack.take()
        self.world.felt.shoe.sleeve.add(cards.lift(1).give())
        rack.put(cards.give())

    def card_leaves(self) -> None:
        """The shoe sees a card leave."""
        self.world.felt.shoe._happen("drawn", face="8S", back="red", up=False)


@pytest.fixture
def store() -> Iterator[DiskStore]:
    with journals() as directory:
        store = DiskStore(directory, Random("court"))
        yield store
        store.close()


@pytest.fixture
def court(store: DiskStore) -> Court:
    return Court(store)


# Where the cards are


def test_a_card_that_is_elsewhere_than_the_controller_believes(court: Court) -> None:
    court.off_the_table()
    court.judge.look()
    assert court.kinds() == ["custody"]
    assert "'rack': " in court.told[0]
    assert court.judge.counters.invariant_violations == 1
    assert court.judge.failures[0].shoe == 4


def test_what_the_controller_admits_to_have_missed_is_hidden_until_it_is_counted(court: Court) -> None:
    court.latched("shoe_rebooted")
    court.fact("clear", fault=f"F{court.judge._seq}")
    court.off_the_table()
    court.judge.look()
    assert court.told == []
    court.fact("collect_rack", batch="A")
    court.judge.look()
    assert court.kinds() == ["custody"]


def test_a_count_before_the_last_fault_that_hides_cards_settles_nothing(court: Court) -> None:
    """Facts are taken later than what struck is noticed: an earlier admission moves nothing back."""
    seq, excused = court.world.journal.last_seq, court.judge._excused
    court.struck["double_feed"] += 1
    excused.notice()
    for at, kind, data in (
        (seq - 2, "fault_latched", {"code": "events_lost"}),
        (seq - 1, "collect_rack", {"batch": "A"}),
    ):
        excused.take(Entry(at, Fact(kind, "operator", data), 0, 0, b"", b""))
    assert excused.hidden("A")
    excused.take(Entry(seq + 1, Fact("collect_rack", "operator", {"batch": "A"}), 0, 0, b"", b""))
    assert not excused.hidden("A")


def test_a_fault_that_hides_cards_excuses_until_the_batch_is_counted(court: Court) -> None:
    court.off_the_table()
    court.struck["double_feed"] += 1
    court.judge.look()
    assert court.told == []
    court.fact("collect_rack", batch="B")
    court.judge.look()
    assert court.told == []
    court.fact("collect_rack", batch="A")
    court.judge.look()
    assert court.kinds() == ["custody"]


def test_a_fault_that_hides_nothing_excuses_no_card(court: Court) -> None:
    court.off_the_table()
    court.struck["late_answer"] += 1
    court.judge.look()
    assert court.kinds() == ["custody"]


def test_a_line_without_numbers_hides_cards_of_the_shoe_behind_it(store: DiskStore) -> None:
    court = Court(store, BEE_TEK)
    court.off_the_table()
    court.card_leaves()
    court.struck["damage"] += 1
    court.judge.look()
    assert court.told == []


def test_what_leaves_a_shoe_without_power_is_not_known_before_it_tells_of_its_start(court: Court) -> None:
    court.off_the_table()
    shoe, told = court.world.felt.shoe, court.told
    shoe.power_cut(1.0)
    court.judge.look()
    shoe.advance(shoe.now + 2.0)
    court.judge.look()
    assert court.told == told == []
    court.world.view.seen["shoe"] = (shoe.boot, 0)
    court.judge.look()
    assert court.kinds() == ["custody"]


def test_a_slipped_in_card_counts_by_its_back_and_one_of_a_batch_long_gone_does_not(court: Court) -> None:
    felt = court.world.felt
    felt.rack.put([Card(900, "8", "S", "red")])
    court.judge.look()
    assert court.told == []
    court.off_the_table()
    felt.rack.put([Card(-1, "8", "S", "green")])
    court.judge.look()
    assert court.told == [], "it lies in place of one of those around it"
    felt.rack.put([Card(-2, "8", "S", "red")])
    court.judge.look()
    assert court.kinds() == ["custody"]


# Cards, one by one


def test_a_card_that_left_the_shoe_and_is_no_fact(court: Court) -> None:
    court.card_leaves()
    court.judge.look()
    assert court.told == ["cards lost: 1 left the shoe and are no fact"]
    assert court.judge.counters.cards_lost == 1


@pytest.mark.parametrize("code", ["events_lost", "shoe_rebooted"])
def test_a_card_is_not_lost_where_the_controller_says_that_it_may_have_missed_some(
    court: Court, code: str
) -> None:
    court.latched(code)
    court.card_leaves()
    court.judge.look()
    assert court.told == []
    court.fact("clear", fault=f"F{court.judge._seq}")
    court.judge.look()
    court.card_leaves()
    court.judge.look()
    assert court.kinds() == ["cards lost"]


def test_two_facts_of_one_card(court: Court) -> None:
    court.fact("card_drawn", "shoe", card=None, back="red", seen=False)
    court.judge.look()
    assert court.told == ["counted twice: 1 card facts more than cards"]
    assert court.judge.counters.cards_counted_twice == 1


def test_a_card_told_as_another_one(court: Court) -> None:
    court.card_leaves()
    court.fact("card_drawn", "shoe", card="9S", back="red", seen=True)
    court.judge.look()
    assert court.kinds() == ["cards lost", "counted twice"]


@pytest.mark.rule("R-23")
def test_a_fact_that_names_a_burned_card(court: Court) -> None:
    felt = court.world.felt
    felt.referee.violations.clear()
    card = felt.draw("burn")
    assert isinstance(card, Card)
    court.fact("card_drawn", "shoe", card=card.face, back=card.back, seen=True)
    court.judge.look()
    assert court.told[0] == f"leak: fact {court.judge._seq} names the card that lies face down at burn"
    assert court.judge.counters.unseen_cards_leaked == 1


def test_a_leak_is_excused_by_what_was_hidden_when_the_card_was_told_not_when_he_looks(court: Court) -> None:
    def told_card_of_the_burn() -> None:
        card = court.world.felt.draw("burn")
        assert isinstance(card, Card)
        court.fact("card_drawn", "shoe", card=card.face, back=card.back, seen=True)

    def counted() -> None:
        for batch in ("A", "B"):
            court.fact("collect_rack", batch=batch)

    court.struck["unseen"] += 1
    court.judge.notice()
    told_card_of_the_burn()
    counted()
    court.judge.look()
    assert court.judge.counters.unseen_cards_leaked == 0
    told_card_of_the_burn()
    counted()
    court.judge.look()
    assert court.judge.counters.unseen_cards_leaked == 1


def test_a_follower_is_told_a_card_that_nobody_may_see(court: Court) -> None:
    court.world.hear("follow", {"fact": 7, "seen": False, "card": None, "raw": None})
    court.world.hear("follow", {"fact": 8, "seen": True, "card": "8S"})
    assert court.told == []
    court.world.hear("follow", {"fact": 9, "seen": False, "card": "8S"})
    assert court.kinds() == ["leak"]


# Violations on the felt


def test_a_violation_without_an_excuse(court: Court) -> None:
    court.world.felt.referee.violation("uncut", "a card that nobody cut reached box 1")
    court.judge.ended()
    assert court.told == ["uncut: a card that nobody cut reached box 1"]
    assert court.judge.counters.invariant_violations == 1


def test_cards_that_are_nowhere_are_lost(court: Court) -> None:
    court.world.felt.rack.take()
    court.world.felt.referee.check()
    court.judge.ended()
    assert court.kinds() == ["cards lost"]
    assert court.judge.counters.cards_lost == 1


def test_an_excuse_is_owed_until_the_controller_latches_what_it_can_know(court: Court) -> None:
    court.struck["wrong_back_card"] += 1
    court.off_the_table()
    court.world.felt.rack.put([Card(-1, "8", "S", "green")])
    court.judge.notice()
    court.world.felt.referee.violation("unshuffled", "a card without a completed shuffle reached box 1")
    court.judge.look()
    assert court.told == []
    for batch in ("A", "B"):
        court.fact("collect_rack", batch=batch)
    court.judge.look()
    assert court.kinds() == ["unshuffled"]
    assert "none of wrong_back" in court.told[0]
    assert court.world.felt.referee.violations == []


def test_who_counts_by_hand_has_not_told_the_backs(court: Court) -> None:
    """A shuffle that is void is not judged, and the batch goes to be counted."""
    court.struck["wrong_back_card"] += 1
    court.off_the_table()
    court.world.felt.rack.put([Card(-1, "8", "S", "green")])
    court.judge.notice()
    court.world.felt.referee.violation("unshuffled", "a card without a completed shuffle reached box 1")
    for batch in ("A", "B"):
        court.fact("count_batch", batch=batch)
    court.judge.look()
    assert court.told == []
    for batch in ("A", "B"):
        court.fact("batch_proved", batch=batch)
    court.judge.look()
    assert court.kinds() == ["unshuffled"]


def test_what_was_latched_since_the_fault_struck_pays_the_debt(court: Court) -> None:
    court.struck["wrong_back_card"] += 1
    court.judge.notice()
    court.latched("wrong_back")
    court.world.felt.referee.violation("unshuffled", "a card without a completed shuffle reached box 1")
    for batch in ("A", "B"):
        court.fact("collect_rack", batch=batch)
    court.judge.look()
    court.judge.ended()
    assert court.told == []


def test_a_joker_is_owed_until_a_shuffler_has_read_each_batch(court: Court) -> None:
    court.struck["joker"] += 1
    court.judge.notice()
    court.world.felt.referee.violation("unshuffled", "a card without a completed shuffle reached box 1")
    for batch in ("A", "B"):
        court.fact("collect_rack", batch=batch)
    court.judge.look()
    assert court.told == []
    for batch in ("A", "B"):
        court.fact("batch_proved", batch=batch)
    court.judge.look()
    assert court.kinds() == ["unshuffled"]


def test_every_excuse_names_faults_that_there_are() -> None:
    for excuse in EXCUSES:
        assert set(excuse.faults) <= {*FAULTS, *WHOLE}, excuse.why


# The journal


def reopened(court: Court, lost: int = 0) -> None:
    """A new daemon; `lost` facts were acknowledged and are not there."""
    before = court.world.service.state
    court.world.crash()
    court.store.kill()
    court.world.restart()
    court.judge.reopened(replace(before, seq=before.seq + lost), court.world.recovered, [])


def test_what_was_acknowledged_is_there_after_a_restart(court: Court) -> None:
    reopened(court)
    assert court.told == []


def test_an_acknowledged_fact_that_is_not_there(court: Court) -> None:
    reopened(court, lost=1)
    assert "journal" in court.kinds()
    assert court.judge.counters.journal_gaps == 1


def test_another_fact_than_was_acknowledged(court: Court) -> None:
    assert court.store.acknowledged is not None
    court.store.acknowledged = replace(court.store.acknowledged, hash=bytes(32))
    court.store.take()
    before = court.world.service.state
    court.judge.reopened(before, before, [])
    assert court.kinds() == ["journal"]


def test_half_of_what_was_in_doubt(court: Court) -> None:
    before = court.world.service.state
    court.world.tap("bets_closed", boxes="1")
    entries = list(court.world.journal.entries(before.seq))
    assert len(entries) == 1
    court.judge.reopened(before, court.world.service.state, [*entries, entries[-1]])
    assert court.kinds() == ["journal"]


def test_another_state_than_the_facts_make(court: Court) -> None:
    before = court.world.service.state
    court.judge.reopened(before, replace(before, rounds=before.rounds + 1), [])
    assert court.told == ["recovered state differs: rounds"]


def test_a_gap_in_the_numbers(court: Court) -> None:
    court.fact("hour", "service", skip=1)
    assert court.kinds() == ["journal"]
    assert court.judge.counters.journal_gaps == 1


def test_a_broken_chain(court: Court) -> None:
    court.world.journal.close()
    content = bytearray(court.store.path.read_bytes())
    at = content.rindex(b"card_drawn")
    content[at : at + 4] = b"cart"
    court.store.path.write_bytes(bytes(content))
    court.judge.verify()
    assert court.kinds() == ["journal"]


def test_a_command_that_is_sent_before_its_fact_is_safe(court: Court) -> None:
    assert court.store.acknowledged is not None
    court.judge.acts("shuffler", court.store.acknowledged.seq)
    assert court.told == []
    court.judge.acts("shuffler", court.store.acknowledged.seq + 1)
    assert court.kinds() == ["facts before effects"]


def test_a_command_ends_once(court: Court) -> None:
    court.fact("command_issued", call="C900", device="shoe", command="status")
    court.fact("command_ended", "shoe", call="C900", device="shoe", command="status", outcome="done")
    assert court.told == []
    court.fact("command_ended", "shoe", call="C900", device="shoe", command="status", outcome="unknown")
    assert court.kinds() == ["commands"]


def test_a_command_that_is_said_not_to_be_done_and_was(court: Court) -> None:
    cycle = next(h for h in court.world.felt.shuffler.happenings if h.kind == "cycle_started")
    asked, then = {"device": "shuffler", "command": "start"}, round(cycle.at * 1e9)
    for call, outcome, at, wrong in (
        ("C900", "unknown", then + 1, 0), ("C901", "refused", then, 0), ("C902", "not_sent", then + 1, 1),
    ):  # fmt: skip
        court.mono_ns = 0
        court.fact("command_issued", **asked, call=call, args={"token": cycle.data["token"].hex()})
        court.mono_ns = at
        court.fact("command_ended", "shuffler", **asked, call=call, outcome=outcome)
        assert court.kinds() == ["commands"] * wrong


def test_a_command_that_never_ends(court: Court) -> None:
    court.fact("command_issued", call="C900", device="shoe", command="status")
    court.judge.ended()
    assert court.told == ["commands: C900 never ended"]


# Going on


@pytest.mark.parametrize("code", ["crashed", "machine_disagrees"])
def test_a_fault_of_our_own(court: Court, code: str) -> None:
    court.latched(code)
    assert court.kinds() == [code]


def test_a_table_that_neither_goes_on_nor_says_why(court: Court) -> None:
    assert court.judge.stopped("nothing happens", None) is None
    assert court.kinds() == ["dead end in between_rounds"]


def test_a_refusal_with_a_way_on_and_a_latched_fault_say_why(court: Court) -> None:
    assert court.judge.stopped("no", {"refused": "bad_boxes", "expected": ["close"]}) == "bad_boxes"
    court.world.felt.shoe_wire.machine.power_cut()
    court.world.settle(10)
    assert court.judge.stopped("no", None) == "shoe_rebooted"
    assert court.told == []
