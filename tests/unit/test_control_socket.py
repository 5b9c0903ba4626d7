"""The control socket on a real Unix socket: answers, followers, slow and rude clients, rights."""

from __future__ import annotations

import grp
import json
import os
import pwd
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from controller import access, control, control_requests, log
from controller.control import ControlServer
from controller.control_requests import SocketUnusable, listen
from controller.factlog import MemoryJournal
from controller.record import Entry
from controller.service import Reply
from controller.table.inputs import Fact, OperatorEvent, Role
from controller.table.phases import TAPS, TRANSITIONS, Phase
from firmware_bridge.clock import SystemClock
from firmware_bridge.errors import Busy
from tests.support.control import Client, masked, running, serving


@pytest.fixture(autouse=True)
def quiet() -> None:
    log.configure("critical")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.sock"


@pytest.fixture
def table(path: Path) -> Iterator[Path]:
    with running(path):
        yield path


def test_do_get_and_refusals(table: Path) -> None:
    with Client(table) as client:
        answer = client.ask({"do": "open", "id": "k1"})
        assert answer["ok"] is True
        assert answer["id"] == "k1"
        assert [(fact["fact"], fact["kind"], fact["who"]) for fact in answer["facts"]] == [
            (3, "open", pwd.getpwuid(os.getuid()).pw_name)
        ]
        refused = client.ask({"do": "load_shoe", "batch": "A"})
        assert {"ok", "refused", "why", "clause", "expected"} == set(refused)
        assert (refused["ok"], refused["refused"], refused["clause"]) == (
            False,
            "unexpected",
            "13:69F-2.5(d)",
        )
        assert refused["expected"][:2] == ["inspect batch=A", "inspect batch=B"]
        assert client.ask({"get": "expected"})["expected"] == refused["expected"]
        status = client.ask({"get": "status"})["status"]
        assert (status["phase"], status["fact"], status["table"]) == ("opening", 4, "T1"), (
            "the refusal is a fact, too"
        )
        assert client.ask({"get": "faults"}) == {"ok": True, "faults": []}
        assert client.ask({"get": "alarms"}) == {"ok": True, "alarms": []}


def test_a_refusal_is_told_to_followers_and_kept(table: Path) -> None:
    me = pwd.getpwuid(os.getuid()).pw_name
    with Client(table) as client, Client(table) as follower:
        before = client.ask({"get": "status"})["status"]
        refused = client.ask({"do": "load_shoe", "batch": "8S", "id": "k"})
        assert (refused["clause"], refused["expected"]) == ("13:69F-2.5(d)", ["open"])
        follower.send({"follow": before["fact"]})
        fact = follower.line()
        told = {name: fact[name] for name in ("fact", "kind", "source", "event", "code", "clause", "who")}
        assert told == {
            "fact": before["fact"] + 1,
            "kind": "refused",
            "source": "operator",
            "event": "load_shoe",
            "code": "unexpected",
            "clause": "13:69F-2.5(d)",
            "who": me,
        }
        assert "8S" not in json.dumps(fact)
        after = client.ask({"get": "status"})["status"]
        refusal, _ = after.pop("refused"), before.pop("refused")
        assert (refusal["fact"], refusal["at"], refusal["who"]) == (fact["fact"], fact["at"], me)
        assert after == {**before, "fact": fact["fact"]}


def test_every_event_at_the_wrong_time_is_refused_with_its_clause_and_journaled(path: Path) -> None:
    journal = MemoryJournal(SystemClock())
    here = {t.trigger for t in TRANSITIONS if t.tap and Phase.CLOSED in t.sources}
    wrong = [event for event in TAPS if event not in here]
    assert len(wrong) > 30
    with running(path, journal), Client(path) as client:
        before = client.ask({"get": "status"})["status"]
        answers = [client.ask({"do": event}) for event in wrong]
        after = client.ask({"get": "status"})["status"]
    assert {answer["refused"] for answer in answers} == {"unexpected"}
    assert [answer["expected"] for answer in answers] == [before["expected"]] * len(wrong)
    assert all(answer["clause"] for answer in answers)
    facts = [entry.fact for entry in journal.entries(before["fact"])]
    assert [(f.kind, f.data["event"], f.data["clause"]) for f in facts] == [
        ("refused", event, answer["clause"]) for event, answer in zip(wrong, answers, strict=True)
    ]
    assert {**after, "fact": 0, "refused": None} == {**before, "fact": 0}


def test_the_same_key_is_one_event_over_any_connection(path: Path) -> None:
    journal = MemoryJournal(SystemClock())
    with running(path, journal), Client(path) as one, Client(path) as two:
        first = one.ask({"do": "open", "id": "k"})
        assert two.ask({"do": "open", "id": "k"}) == first
        assert one.ask({"do": "open"})["refused"] == "unexpected"
    with running(path, MemoryJournal(SystemClock(), past=journal)), Client(path) as late:
        assert late.ask({"do": "open", "id": "k"}) == first


def test_pipelined_requests_are_answered_in_order(table: Path) -> None:
    with Client(table) as client:
        client.send({"do": "open"}, {"get": "status"}, {"do": "inspect", "batch": "A"}, {"get": "status"})
        answers = [client.line() for _ in range(4)]
        assert [answers[1]["status"]["fact"], answers[3]["status"]["fact"]] == [3, 4]
        assert [answers[0]["facts"][0]["kind"], answers[2]["facts"][0]["kind"]] == ["open", "inspect"]


RUDE: list[tuple[bytes, str]] = [
    (b"{", "one JSON object on a line"),
    (b"\xff\xfe", "one JSON object on a line"),
    (b'{"do": "open", "id": "\\ud800"}', "one JSON object on a line"),
    (b"[" * 60000, "one JSON object on a line"),
    (b"7", "a JSON object"),
    (b"{}", 'exactly one of "do", "get" and "follow"'),
    (b'{"do":"open","get":"status"}', "exactly one of"),
    (b'{"tell":"status"}', "exactly one of"),
    (b'{"get":"cards"}', '"get" takes one of status, alarms, faults, expected'),
    (b'{"get":["status"]}', '"get" takes one of'),
    (b'{"get":"status","of":1}', "stands alone"),
    (b'{"do":7}', "the name of an operator event"),
    (b'{"do":""}', "the name of an operator event"),
    (b'{"do":"open","id":7}', '"id" takes a text'),
    (b'{"do":"open","id":"' + b"k" * 129 + b'"}', '"id" takes a text'),
    (b'{"do":"cut","position":1.5}', "position takes a text, a whole number"),
    (b'{"do":"cut","position":null}', "position takes"),
    (b'{"do":"bets_closed","boxes":[1,true]}', "boxes takes"),
    (b'{"follow":-1}', '"follow" takes the number'),
    (b'{"follow":true}', '"follow" takes the number'),
    (b'{"follow":0,"until":9}', "does not take 'until'"),
    (b"x" * 65537, "may have 65536 bytes"),
    (b"y" * 500_000, "may have 65536 bytes"),
]


def test_bad_input_gets_one_answer_and_the_connection_lives(table: Path) -> None:
    with Client(table) as client:
        for line, words in RUDE:
            client.sock.sendall(line + b"\n\n")
            answer = client.line()
            assert answer["ok"] is False, line[:40]
            assert words in answer["error"], line[:40]
        assert client.ask({"get": "status"})["status"]["fact"] == 2


def test_a_list_of_boxes_is_taken_like_text(table: Path) -> None:
    with Client(table) as client:
        assert control_requests.value_of("boxes", [1, 2, 5]) == "1,2,5"
        assert client.ask({"do": "bets_closed", "boxes": [1, 2, 5]})["refused"] == "unexpected"


def test_a_line_in_pieces_and_a_client_that_leaves(table: Path) -> None:
    with Client(table) as client:
        for byte in b'{"get": "expected"}':
            client.sock.sendall(bytes([byte]))
        client.sock.sendall(b"\n")
        assert client.line()["expected"] == ["open"]
    gone = Client(table)
    gone.send({"do": "open"}, {"follow": 0})
    gone.close()
    with Client(table) as client:
        assert client.ask({"get": "status"})["ok"]


def test_who_only_stops_sending_gets_all_answers_before_the_end(table: Path) -> None:
    with Client(table) as client:
        client.send({"do": "open"}, {"get": "expected"}, {"do": "inspect", "batch": "A"}, {"follow": 0})
        client.sock.shutdown(socket.SHUT_WR)
        lines = [json.loads(line) for line in client.stream]
    assert [line["ok"] for line in lines[:3]] == [True, True, True]
    assert [line["kind"] for line in lines[-2:]] == ["open", "inspect"]


def test_a_follower_gets_the_past_then_the_present_without_gap_or_copy(path: Path) -> None:
    taps = 300
    with running(path), Client(path) as tapper, Client(path) as early:
        tapper.send({"do": "open"}, *[{"do": "burn"}, {"do": "recut"}] * (taps // 2))
        early.send({"follow": 0})
        facts = []
        followers = []
        for number in range(taps + 1):
            assert tapper.line()["ok"] is (number == 0), "a refusal is a fact, too"
            if number % 60 == 30:
                late = Client(path)
                late.send({"follow": number // 2})
                followers.append((number // 2, late))
        last = 3 + taps
        while not facts or facts[-1] < last:
            facts.append(early.line()["fact"])
        assert facts == list(range(1, last + 1))
        for since, late in followers:
            with late:
                seen = [late.line()["fact"] for _ in range(last - since)]
                assert seen == list(range(since + 1, last + 1))
        assert early.ask({"get": "status"})["status"]["fact"] == last, "a follower may ask, too"


def entry(seq: int, **data: Any) -> Entry:
    return Entry(seq, Fact("note", "service", data), 0, 0, bytes(16), bytes(32))


class Archive:
    """A desk with a past but no table; questions are answered when the test says so."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.entries = list(entries)
        self.asked: list[Callable[[], None]] = []
        self.hold = False

    def submit(self, event: OperatorEvent, answer: Callable[[Reply], None]) -> None:
        answer(Reply(event))

    def view(self, what: str) -> Any:
        return what

    def history(self, since: int, limit: int, answer: Callable[[Sequence[Entry], int], None]) -> None:
        found = [e for e in self.entries if e.seq > since][:limit]
        head = len(self.entries)
        letter = partial(answer, found, head)
        if self.hold:
            self.asked.append(letter)
        else:
            letter()


def test_a_fact_committed_while_the_past_is_read_is_told_once(path: Path) -> None:
    desk = Archive([entry(1), entry(2)])
    desk.hold = True
    with serving(ControlServer(path, desk, masked)) as server, Client(path) as client:
        client.send({"follow": 0}, {"get": "status"})
        assert client.line() == {"ok": True, "status": "status"}
        answer = desk.asked.pop()
        answer()
        server.publish([entry(3)])
        server.publish([entry(3), entry(4)])
        assert [client.line()["fact"] for _ in range(4)] == [1, 2, 3, 4]


def test_a_slow_follower_is_cut_off_with_a_reason_and_nobody_waits(path: Path) -> None:
    desk = Archive()
    server = ControlServer(path, desk, masked, out_limit=512 * 1024)
    with serving(server), Client(path) as slow, Client(path) as quick:
        slow.send({"follow": 0})
        quick.send({"follow": 0})
        assert slow.ask({"get": "status"})["ok"]
        assert quick.ask({"get": "status"})["ok"]
        for seq in range(1, 21):
            server.publish([entry(seq, text="x" * 170_000)])
            assert quick.line()["fact"] == seq
        lines = [json.loads(line) for line in slow.stream.read().splitlines()]
        told = [line["fact"] for line in lines[:-1]]
        assert told == list(range(1, len(told) + 1))
        assert len(told) < 20
        assert lines[-1]["ok"] is False
        assert "did not read fast enough" in lines[-1]["error"]


def test_a_slow_reader_of_the_past_is_waited_for_in_bounded_memory(path: Path) -> None:
    desk = Archive([entry(seq, text="x" * 2000) for seq in range(1, 2002)])
    server = ControlServer(path, desk, masked)
    with serving(server), Client(path) as slow, Client(path) as other:
        slow.send({"follow": 0})
        for _ in range(30):
            assert other.ask({"get": "status"})["ok"]
        waiting = max(len(client.outgoing) for client in server._clients.values())
        assert 0 < waiting <= control.OUT_LIMIT
        assert [slow.line()["fact"] for _ in range(2001)] == list(range(1, 2002))


def test_clients_are_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "MOST_CLIENTS", 3)
    with serving(ControlServer(path, Archive(), masked)):
        clients = [Client(path) for _ in range(3)]
        assert all(client.ask({"get": "status"})["ok"] for client in clients)
        with Client(path) as fourth:
            assert "3 clients are connected already" in fourth.line()["error"]
            assert fourth.stream.readline() == b""
        clients.pop().close()
        with Client(path) as next_one:
            assert next_one.ask({"get": "status"})["ok"]
        for client in clients:
            client.close()


# --- the socket file ---


def test_the_file_is_for_the_group_and_goes_away(path: Path) -> None:
    with serving(ControlServer(path, Archive(), masked)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        with pytest.raises(Busy, match="another daemon answers"):
            listen(path)
    assert not path.exists()


def test_a_dead_daemons_name_is_taken_over_but_nothing_else(path: Path) -> None:
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    with serving(ControlServer(path, Archive(), masked)), Client(path) as client:
        assert client.ask({"get": "status"})["ok"]
    path.write_text("not ours")
    with pytest.raises(SocketUnusable, match="is no socket"):
        listen(path)
    assert path.read_text() == "not ours"
    with pytest.raises(SocketUnusable, match="cannot be made: No such file"):
        listen(path.parent / "none" / "t.sock")


def test_another_daemons_file_is_left_when_ours_was_replaced(path: Path) -> None:
    server = ControlServer(path, Archive(), masked)
    with serving(server):
        path.unlink()
        path.write_text("newer")
    assert path.read_text() == "newer"


# --- who is asking ---

NOBODY = 65534


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that other users can reach."""
    made = Path(tempfile.mkdtemp(prefix="cutcard-"))
    made.chmod(0o755)
    yield made / "t.sock"
    shutil.rmtree(made)


def ask_as(uid: int, gid: int, path: str, requests: list[Any]) -> list[Any]:
    """In a process of its own: become another user, then ask."""
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    try:
        with Client(Path(path)) as client:
            return [client.ask(request) for request in requests]
    except OSError as error:
        return [{"errno": error.errno}]


@pytest.fixture
def other_user() -> Iterator[Callable[..., list[Any]]]:
    """Asks as another user. The child is forked before any thread, and needs no file of ours then."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        with theirs.makefile("rwb") as orders:
            for order in orders:
                child = os.fork()
                if child == 0:
                    orders.write(json.dumps(ask_as(*json.loads(order))).encode() + b"\n")
                    orders.flush()
                    os._exit(0)
                os.waitpid(child, 0)
        os._exit(0)
    theirs.close()
    stream = ours.makefile("rwb")

    def ask(path: Path, *requests: Any, uid: int = NOBODY) -> list[Any]:
        stream.write(json.dumps([uid, uid, str(path), requests]).encode() + b"\n")
        stream.flush()
        return list(json.loads(stream.readline()))

    yield ask
    stream.close()
    ours.close()
    os.waitpid(pid, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_roles_come_from_the_callers_groups(
    public: Path, other_user: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: dict[str, int] = {"cutcard": NOBODY}
    true = grp.getgrnam

    def getgrnam(name: str) -> grp.struct_group:
        if name.startswith("cutcard"):
            return grp.struct_group((name, "x", groups[name], []))
        return true(name)

    monkeypatch.setattr(grp, "getgrnam", getgrnam)
    name = pwd.getpwuid(NOBODY).pw_name
    with running(public):
        assert public.stat().st_gid == NOBODY
        outsider = other_user(public, {"get": "status"}, uid=NOBODY - 1)
        assert outsider == [{"errno": 13}], "without the group cutcard nobody reaches the socket"
        (none, stranger) = other_user(public, {"get": "status"}, {"do": "open"})
        assert none["refused"] == stranger["refused"] == "not_allowed"
        assert f"{name} has no role here" in none["why"]
        groups["cutcard-surveillance"] = NOBODY
        seen, done = other_user(public, {"get": "status"}, {"do": "open"})
        assert (seen["ok"], seen["status"]["refused"]) == (True, None), "strangers leave no fact"
        assert done["refused"] == "not_allowed"
        (seen,) = other_user(public, {"get": "status"})
        refusal = seen["status"]["refused"]
        assert (refusal["event"], refusal["code"], refusal["who"]) == ("open", "not_allowed", name)
        groups["cutcard-dealer"] = NOBODY
        opened, cleared, recut = other_user(
            public, {"do": "open"}, {"do": "clear", "fault": "F1"}, {"do": "recut"}
        )
        assert opened["facts"][0]["who"] == name
        assert cleared["refused"] == recut["refused"] == "not_allowed"
        assert "supervisor or technician" in cleared["why"]
        groups["cutcard-supervisor"] = NOBODY
        (cleared,) = other_user(public, {"do": "clear", "fault": "F1"})
        assert cleared["refused"] == "no_such_fault"


def test_supplementary_groups_count(monkeypatch: pytest.MonkeyPatch) -> None:
    me = pwd.getpwuid(NOBODY)
    monkeypatch.setattr(access, "_gid", {Role.DEALER: 7001, Role.TECHNICIAN: 7002}.get)
    monkeypatch.setattr(os, "getgrouplist", lambda name, gid: [gid, 7002] if name == me.pw_name else [])
    assert access.caller(NOBODY, NOBODY, own_uid=1).roles == {Role.TECHNICIAN}
    assert access.caller(NOBODY, 7001, own_uid=1).roles == {Role.TECHNICIAN, Role.DEALER}
    assert access.caller(NOBODY, NOBODY, own_uid=NOBODY).roles == set(Role)
    assert access.caller(0, 0, own_uid=1) == access.Caller("root", frozenset(Role))
    nameless = access.caller(4_000_000, 7001, own_uid=1)
    assert nameless == access.Caller("uid 4000000", frozenset({Role.DEALER}))


def test_every_event_has_a_right_and_a_dealer_never_clears() -> None:
    assert all(access.who_may(event) for event in access.EVENTS)
    assert Role.DEALER not in access.who_may("clear")
    assert all(access.who_may(event) != (Role.SURVEILLANCE,) for event in access.EVENTS)
    assert not access.may(frozenset({Role.SURVEILLANCE}), "open")
