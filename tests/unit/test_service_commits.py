"""The service: one commit a burst, nothing acted on before it, nothing decided after a failure (law 4)."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from controller import log as logging_
from controller import service as service_module
from controller.factlog import MemoryJournal
from controller.record import Entry, JournalFailed
from controller.service import JournalDisagrees, Reply, Service
from controller.table.args import digest
from controller.table.checkpoint import checkpoint
from controller.table.draft import Decision
from controller.table.inputs import Ended, Fact, Input, Observed, OperatorEvent, Role
from controller.table.machine import Disagreement
from controller.table.phases import Phase
from controller.table.profiles import BatchRules, TableRules
from controller.table.state import Place
from devices import events as ev
from firmware_bridge.clock import VirtualClock
from firmware_bridge.link import Done
from tests.support.table import STEPS, Table

RULES = TableRules("T1", 7, 1, (BatchRules("A", "red"), BatchRules("B", "blue")))
ALL = frozenset(Role)


class Recorder:
    """A journal that tells when it commits, and can be told to fail; and devices that tell what they get."""

    def __init__(self, journal: MemoryJournal) -> None:
        self.journal = journal
        self.happened: list[str] = []
        self.broken = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)

    def append(self, facts: Sequence[Fact]) -> list[Entry]:
        if self.broken:
            raise JournalFailed("no space is left")
        self.happened.append(f"commit {len(facts)}")
        return self.journal.append(facts)

    def device(self, name: str) -> Line:
        return Line(name, self.happened)


class Line:
    def __init__(self, name: str, happened: list[str]) -> None:
        self.name, self.happened = name, happened

    def command(self, call_id: str, name: str, args: Mapping[str, Any]) -> None:
        self.happened.append(f"{self.name} {call_id} {name}")

    def ack(self, n: int) -> None:
        self.happened.append(f"{self.name} ack {n}")


def tap(event: str, *, key: str | None = None, roles: Iterable[Role] = ALL, **args: Any) -> OperatorEvent:
    return OperatorEvent(event, args, "ann", frozenset(roles), key)


def loaded(batch: str) -> list[OperatorEvent]:
    """The batch is prepared and put into the shuffler."""
    return [tap(step, batch=batch) for step in (*STEPS, "load_shuffler")]


def up(device: str, n: int = 1) -> Observed:
    status = {"state": "empty", "cycle": 40, "token": None, "inside": 0, "drawn": 0}
    identity = {"serial": f"{device}-1", "firmware": "1"}
    return Observed(ev.LinkUp(device=device, n=n, boot=1, identity=identity, status=status))


def stream() -> tuple[io.StringIO, logging_.Log]:
    out = io.StringIO()
    logging_.configure("debug", out, console=False)
    return out, logging_.get()


class Bench:
    def __init__(
        self, journal: MemoryJournal | None = None, rules: TableRules = RULES, log: Any = None
    ) -> None:
        self.clock = VirtualClock()
        self.recorder = Recorder(journal or MemoryJournal(self.clock, boot_id=bytes(16)))
        self.published: list[int] = []
        devices = {name: self.recorder.device(name) for name in ("shoe", "shuffler")}
        self.service = Service(rules, self.recorder, devices, self.publish, log)
        self.service.recover()

    def publish(self, entries: Sequence[Entry]) -> None:
        self.recorder.happened.append("publish")
        self.published += [entry.seq for entry in entries]

    def give(self, *inputs: Input) -> list[Reply]:
        self.recorder.happened.clear()
        return self.service.handle(inputs)

    def restarted(self, rules: TableRules = RULES, boot: int = 1) -> Bench:
        past = self.recorder.journal
        return Bench(MemoryJournal(self.clock, boot_id=bytes([boot] * 16), past=past), rules)

    @property
    def faults(self) -> list[str]:
        return [fault.code for fault in self.service.state.faults]


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.service.start("00")
    made.give(up("shoe"), up("shuffler"))
    return made


def test_a_burst_is_one_commit_and_effects_follow_it(bench: Bench) -> None:
    bench.give(tap("open"), *loaded("A"))
    replies = bench.give(Observed(ev.Lid(device="shoe", n=2, open=True)), tap("start_shuffle"), up("shoe", 3))
    happened = bench.recorder.happened
    call = replies[1].entries[-1].fact.data["call"]
    assert happened == ["commit 4", "shoe ack 3", f"shuffler {call} settings", "publish"]
    assert [[entry.fact.kind for entry in reply.entries] for reply in replies] == [
        ["lid"],
        ["start_shuffle", "command_issued"],
        ["link_up"],
    ]
    assert bench.service.state.seq == bench.recorder.journal.last_seq == bench.published[-1]


def test_what_a_driver_tells_is_journaled_whatever_it_is(bench: Bench) -> None:
    """Drivers of others: a value that no fact may hold must not stop the table at its commit."""
    status = {"inside": 0, "volts": 3.3, 7: [1.5, Phase.IDLE], "raw": bytearray(b"\x01")}
    bench.give(Observed(replace(up("shuffler").event, status=status)))
    bench.give(Observed(ev.Lid(device="shoe", n=1, open=True, raw=bytearray(b"\x02"))))
    facts = {entry.fact.kind: entry.fact for entry in bench.recorder.entries()}
    assert facts["link_up"].data["status"] == {
        "inside": 0,
        "volts": "3.3",
        "7": ["1.5", "idle"],
        "raw": b"\x01",
    }
    assert facts["lid"].sealed["raw"] == b"\x02"
    assert bench.service.stopped is None


def test_inputs_that_change_nothing_commit_nothing(bench: Bench) -> None:
    assert bench.give(tap("burn", roles=()))[0].refusal is not None
    assert bench.recorder.happened == []


def test_a_failed_commit_stops_everything(bench: Bench) -> None:
    bench.give(tap("open"), *loaded("A"))
    before = bench.service.state
    bench.recorder.broken = True
    replies = bench.give(tap("start_shuffle"), Observed(ev.Lid(device="shoe", n=2, open=True)))
    assert bench.recorder.happened == []
    assert bench.service.state == before
    assert bench.service.stopped is not None
    assert "no space is left" in bench.service.stopped
    assert [reply.refusal.code for reply in replies if reply.refusal] == ["stopped", "stopped"]
    bench.recorder.broken = False
    assert bench.give(tap("start_shuffle"))[0].refusal is not None
    assert bench.recorder.happened == []


def test_a_restart_finds_the_same_state(bench: Bench) -> None:
    bench.give(tap("open"), *loaded("A"), tap("start_shuffle"))
    again = bench.restarted()
    assert again.service.state == bench.service.state
    again.service.start("01")
    assert again.service.state.phase is Phase.FIRST_LOADED
    assert again.service.state.pending == {}, "what was sent without a journaled end is Unknown"
    ended = [e.fact for e in again.recorder.journal.entries() if e.fact.kind == "command_ended"]
    assert [fact.data["outcome"] for fact in ended] == ["unknown"]


def test_the_same_key_is_one_event_also_after_a_restart(bench: Bench) -> None:
    first = bench.give(tap("open", key="k1"), *loaded("A"), tap("start_shuffle", key="k2"))
    again = bench.give(tap("start_shuffle", key="k2"), tap("open", key="k1"))
    assert bench.recorder.happened == []
    assert [reply.repeat for reply in again] == [True, True]
    assert again[0].entries == first[-1].entries
    assert again[1].entries == first[0].entries
    late = bench.restarted()
    late.service.start("01")
    repeated = late.give(tap("start_shuffle", key="k2"))[0]
    assert repeated.entries == first[-1].entries
    assert late.recorder.happened == []


def test_the_same_key_twice_in_one_burst(bench: Bench) -> None:
    first, second, third = bench.give(tap("open", key="k"), tap("open", key="k"), tap("inspect", batch="A"))
    assert second.repeat
    assert second.entries == first.entries
    assert [entry.fact.kind for entry in (*first.entries, *third.entries)] == ["open", "inspect"]


def test_a_key_that_was_used_for_another_event_is_told(bench: Bench) -> None:
    bench.give(tap("open", key="k"))
    reply = bench.give(tap("wash", key="k"))[0]
    assert reply.refusal is not None
    assert (reply.refusal.code, reply.entries, reply.repeat) == ("key_used", (), False)
    assert "used for open" in reply.refusal.why


def test_a_key_that_was_used_with_other_arguments_is_told(bench: Bench) -> None:
    bench.give(tap("open"), tap("inspect", key="k", batch="A"))
    for again in (bench, bench.restarted()):
        reply = again.give(tap("inspect", key="k", batch="B"))[0]
        assert reply.refusal is not None
        assert (reply.refusal.code, reply.entries, reply.repeat) == ("key_used", (), False)
        assert "used for inspect with other arguments" in reply.refusal.why
        assert again.give(tap("inspect", key="k", batch="A"))[0].repeat


def test_a_key_counts_alike_for_text_and_numbers_and_in_journals_that_do_not_tell(bench: Bench) -> None:
    assert digest({"cards": 9, "refused": True}) == digest({"refused": "true", "cards": "9"})
    past = MemoryJournal(bench.clock)
    past.append([Fact("open", "operator", {"cards": 52, "backs": {"A": "red", "B": "blue"}, "key": "old"})])
    old = Bench(MemoryJournal(bench.clock, past=past))
    assert old.give(tap("open", key="old", mode="manual-shoe"))[0].repeat


def test_law_7_no_digest_tells_a_card_that_nobody_may_see() -> None:
    t = Table()
    t.open_to_shoe()
    batch = t.state.shoe.batch
    assert batch is not None
    args = {"batch": batch, "card": "8S"}
    decision = t.give(OperatorEvent("dead_card", args, "ann", frozenset(Role), "k"))
    assert isinstance(decision, Decision)
    assert digest(args) not in decision.facts[0].data.values()
    assert decision.facts[0].sealed == {"card": "8S", "args_digest": digest(args)}


def test_a_checkpoint_is_in_no_answer() -> None:
    bench = Bench()
    facts = [
        Fact("open", "operator", {"cards": 52, "who": "ann", "key": "k"}),
        Fact("checkpoint", "service", {"state": {}}),
    ]
    entries = bench.recorder.append(facts)
    judged = service_module._Judged(tap("open"), 0, 2)
    assert [e.fact.kind for e in bench.service._reply(judged, entries).entries] == ["open"]
    assert [e.fact.kind for e in bench.service._of_tap(entries[0].seq)] == ["open"]


def test_rights_and_unknown_events(bench: Bench) -> None:
    def code(event: OperatorEvent) -> str | None:
        refusal = bench.give(event)[0].refusal
        return None if refusal is None else refusal.code

    assert code(tap("opne")) == "unknown_event"
    refusal = bench.give(tap("opne"))[0].refusal
    assert refusal is not None
    assert refusal.why.endswith("did you mean open?")
    assert code(tap("open", roles=[Role.SURVEILLANCE])) == "not_allowed"
    assert code(tap("open", roles=[Role.TECHNICIAN])) == "not_allowed"
    assert code(tap("clear", fault="F1", roles=[Role.DEALER])) == "not_allowed"
    assert code(tap("clear", fault="F1", roles=[Role.TECHNICIAN])) == "no_such_fault"
    assert code(tap("void_round", roles=[Role.DEALER])) == "not_allowed"
    assert code(tap("open", roles=[Role.DEALER])) is None
    assert bench.give(tap("burn", roles=()))[0].refusal is not None


def test_rules_that_break_on_a_tap_latch_and_go_on(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    break_on(monkeypatch, "wash")
    bench.give(tap("open"))
    inspect, wash, lid = bench.give(
        tap("inspect", batch="A"), tap("wash"), Observed(ev.Lid(device="shoe", n=2, open=True))
    )
    assert inspect.refusal is None
    assert wash.refusal is not None
    assert wash.refusal.code == "crashed"
    assert lid.refusal is None
    assert bench.faults == ["crashed"]
    assert bench.recorder.happened == ["commit 3", "shoe ack 2", "publish"]
    assert bench.service.stopped is None
    assert bench.restarted().service.state == bench.service.state
    assert "8S" not in repr(wash)


def test_rules_that_break_on_a_device_event_latch_and_stop_before_it_is_acked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_on(monkeypatch, "lid")
    bench.give(tap("open"))
    lid = Observed(ev.Lid(device="shoe", n=2, open=True))
    replies = bench.give(tap("inspect", batch="A"), lid, tap("inspect", batch="B"))
    assert [reply.refusal is None for reply in replies] == [True, False, False]
    assert bench.recorder.happened == ["commit 2", "publish"]
    assert bench.faults == ["crashed"]
    assert bench.service.stopped is not None
    assert bench.restarted().service.state.device("shoe").n == 1, "the device is asked for it again"


def break_on(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    true = service_module.decide

    def decide(rules: Any, state: Any, given: Any) -> Any:
        name = getattr(given, "event", None)
        if name == what or getattr(name, "kind", None) == what:
            raise RuntimeError("the unseen card is 8S")
        return true(rules, state, given)

    monkeypatch.setattr(service_module, "decide", decide)


def test_a_machine_that_disagrees_latches_and_sends_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.give(tap("open"), *loaded("A"))

    def follow(*_: Any) -> None:
        raise Disagreement("fact 9 leads elsewhere")

    assert bench.service._machine is not None
    monkeypatch.setattr(bench.service._machine, "follow", follow)
    bench.give(tap("start_shuffle"))
    assert bench.faults == ["machine_disagrees"]
    assert not [line for line in bench.recorder.happened if "settings" in line]
    assert bench.service.state.pending == {}
    assert bench.give(tap("start_shuffle"))[0].refusal is not None


def test_a_journal_of_another_table_is_told(bench: Bench) -> None:
    bench.give(tap("open"), *loaded("A"))
    others = TableRules("T1", 7, 1, (BatchRules("C", "red"), BatchRules("B", "blue")))
    with pytest.raises(JournalDisagrees, match=r"knows the batches A and B, table.toml B and C"):
        bench.restarted(others)
    swapped = TableRules("T1", 7, 1, (BatchRules("A", "blue"), BatchRules("B", "red")))
    with pytest.raises(JournalDisagrees, match=r"batch A was opened with red backs, table.toml says blue"):
        bench.restarted(swapped)
    with pytest.raises(JournalDisagrees, match=r"52 cards, table.toml says 104"):
        bench.restarted(TableRules("T1", 7, 2, RULES.batches), boot=2)
    other_mode = replace(RULES, mode="hand-dealt", shoe=None)
    told = "open for blackjack of nj-casino in mode two-batch-shoe, table.toml says .* hand-dealt"
    with pytest.raises(JournalDisagrees, match=told):
        bench.restarted(other_mode)


def test_a_journal_of_a_later_version_is_told(bench: Bench) -> None:
    """What a checkpoint of it holds is not known here."""
    later = checkpoint(bench.service.state)
    later["shoe"]["invented_later"] = 1
    bench.recorder.append([Fact("checkpoint", "service", {"state": later})])
    with pytest.raises(JournalDisagrees, match=r"fact 5 of the journal .*no older version than wrote it"):
        bench.restarted()


def test_log_lines_carry_numbers_and_never_a_card() -> None:
    out, logger = stream()
    bench = Bench(log=logger.bind(table="T1", boot="00"))
    bench.service.start("00")
    bench.give(up("shoe"), up("shuffler"), tap("open"))
    bench.give(Observed(ev.CardDrawn(device="shoe", n=2, card="8S", back="red", raw=b"8S", face_up=True)))
    bench.give(tap("nonsense"))
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    card = next(line for line in lines if line.get("kind") == "card_drawn")
    assert {"table": "T1", "boot": "00", "device": "shoe", "n": 2}.items() <= card.items()
    assert card["fact"] in bench.published
    assert any(line["event"] == "refused" and line["code"] == "unknown_event" for line in lines)
    assert "8S" not in out.getvalue()
    assert b"8S".hex() not in out.getvalue()
    assert bench.faults == ["stray_card"]
    assert bench.service.state.batches["A"].at(Place.IN_HAND) == 51


def test_the_end_of_a_command_is_a_fact(bench: Bench) -> None:
    bench.give(tap("open"), *loaded("A"))
    call = bench.give(tap("start_shuffle"))[0].entries[-1].fact.data["call"]
    settings = {"mode": "shuffle", "cards_per_deck": 52, "recognition": True, "decks": 1}
    reply = bench.give(Ended("shuffler", call, Done({"settings": settings, "crc": 1, "crc_ok": True})))[0]
    assert reply.entries[0].fact.kind == "command_ended"
    assert reply.entries[0].fact.source == "shuffler"
