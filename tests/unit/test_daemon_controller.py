"""The controller loop under a virtual clock: bursts, the watchdog, the last words of a stop."""

from __future__ import annotations

import io
import json
import os
import socket
import time as time_module
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controller import log
from controller.daemon import LAST_WORDS_S, Controller
from controller.factlog import MemoryJournal
from controller.notify import Notifier
from controller.record import Entry
from controller.service import Reply, Service
from controller.table.inputs import OperatorEvent, Role
from devices import events as ev
from firmware_bridge.clock import VirtualClock
from firmware_bridge.link import Complete, Done, Unknown
from firmware_bridge.port import Crashed, Health, Opened, Unavailable
from tests.support.control import RULES


class FakePort:
    """A port whose owner thread turns when the test says so."""

    def __init__(self) -> None:
        self.turns = 0
        self.sent: list[str] = []
        self.acked: list[int] = []
        self.last_frame: float | None = None
        self.on_command: Callable[[str], None] = lambda _call: None

    def command(self, call_id: str, name: str, args: Mapping[str, Any]) -> None:
        self.sent.append(name)
        self.on_command(call_id)

    def ack(self, n: int) -> None:
        self.acked.append(n)

    def health(self) -> Health:
        return Health("open", self.last_frame)


class Clock(VirtualClock):
    """Each look costs a tenth of a second, so that a loop that waits ends."""

    step = 0.0

    def now(self) -> float:
        self.advance(self.step)
        return super().now()


class Desk:
    def __init__(self, notify: Path) -> None:
        log.configure("critical")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(notify))
        self.socket.setblocking(False)
        self.clock = Clock()
        self.journal = MemoryJournal(self.clock)
        environ = {
            "NOTIFY_SOCKET": str(notify),
            "WATCHDOG_USEC": "10000000",
            "WATCHDOG_PID": str(os.getpid()),
        }
        self.controller = Controller(
            Service(RULES, self.journal, {}), self.clock, Notifier(environ), log.get()
        )
        self.service = self.controller.service
        self.ports = {"shoe": FakePort(), "shuffler": FakePort()}
        self.controller.ports = self.ports  # type: ignore[assignment]
        self.service.devices = self.ports
        self.service.recover()
        self.service.start("00")
        self.replies: list[Reply] = []

    def tap(self, event: str, **args: Any) -> None:
        self.controller.submit(OperatorEvent(event, args, "ann", frozenset(Role)), self.replies.append)

    def turn(self) -> bool:
        return self.controller._turn(0)

    def told(self) -> list[str]:
        out = []
        while True:
            try:
                out.append(self.socket.recv(4096).decode())
            except BlockingIOError:
                return out

    def pass_time(self, seconds: float) -> list[str]:
        self.clock.advance(seconds)
        self.turn()
        return self.told()

    def up(self) -> None:
        status = {"state": "empty", "cycle": 40, "token": None, "inside": 0, "drawn": 0}
        for name in self.ports:
            identity = {"serial": name, "firmware": "1"}
            self.controller.deliver(
                name, [ev.LinkUp(device=name, n=1, boot=1, identity=identity, status=status)]
            )


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "notify")
    yield made
    made.socket.close()


def test_all_that_waits_is_one_commit(desk: Desk) -> None:
    seen: list[list[int]] = []
    desk.service.publish = lambda entries: seen.append([entry.seq for entry in entries])
    desk.up()
    desk.tap("open")
    desk.controller.deliver("shoe", [ev.Lid(device="shoe", n=2, open=True), Opened("a port")])
    past: list[tuple[Sequence[Entry], int]] = []
    desk.controller.history(4, 2, lambda entries, head: past.append((entries, head)))
    assert desk.turn()
    assert not desk.turn()
    assert seen == [[3, 4, 5, 6]]
    assert [reply.refusal for reply in desk.replies] == [None]
    assert [([entry.seq for entry in entries], head) for entries, head in past] == [([5, 6], 6)]
    assert (desk.ports["shoe"].acked, desk.ports["shuffler"].acked) == ([2], [1])


def test_a_device_that_is_absent_when_the_daemon_starts_is_an_alarm_until_it_answers(desk: Desk) -> None:
    desk.controller.deliver("shoe", [Unavailable("Absent", "no such port")])
    desk.controller.deliver("shoe", [Unavailable("Absent", "still no such port")])
    desk.turn()
    assert [alarm["cause"] for alarm in desk.controller.view("alarms")] == ["shoe: no such port"]
    alarm = desk.controller.view("alarms")[0]
    assert (alarm["code"], alarm["state"], alarm["device"]) == ("device_down", "raised", "shoe")
    assert alarm["since_at"] is not None
    assert desk.controller.view("status")["awaiting"] == "the shoe and the shuffler to answer"
    desk.up()
    desk.controller.deliver("shoe", [Unavailable("LinkLost", "no answer")])
    desk.turn()
    assert [alarm["state"] for alarm in desk.controller.view("alarms")] == ["gone"]


def test_the_state_of_a_link_is_told_and_journaled_only_while_there_is_none(desk: Desk) -> None:
    desk.controller.deliver("shoe", [Unavailable("Absent", "no such port")])
    desk.controller.deliver("shuffler", [Opened("serial port")])
    desk.ports["shuffler"].last_frame = desk.clock.now() - 2.5
    desk.turn()
    assert desk.journal.last_seq == 3
    assert desk.controller.view("status")["ports"] == {
        "shoe": {"link": "absent", "text": "no such port", "last_frame_s": None, "hint": None},
        "shuffler": {"link": "open", "text": "serial port", "last_frame_s": 2.5, "hint": None},
    }
    assert desk.told()[-1] == "STATUS=waiting for shoe"


def test_frames_are_told_at_debug_only_and_masked_where_they_name_a_card(tmp_path: Path) -> None:
    for level, count in (("info", 0), ("debug", 3)):
        out = io.StringIO()
        log.configure(level, out, console=False)
        clock = VirtualClock()
        service = Service(RULES, MemoryJournal(clock), {"shoe": FakePort()})
        service.recover()
        service.start("00")
        controller = Controller(service, clock, Notifier({}), log.get())
        card = ev.CardDrawn(device="shoe", n=2, card="8S", raw=b"8S")
        noise = ev.FrameRejected(device="shoe", n=3, reason="crc", bytes=2, raw=b"8S")
        controller.deliver("shoe", [ev.Lid(device="shoe", n=1, open=True, raw=b"lid"), card, noise])
        controller._turn(0)
        told = [json.loads(line) for line in out.getvalue().splitlines()]
        assert [line["raw"] for line in told] == [None] * count
        assert "8S" not in out.getvalue()


def test_a_crashed_driver_is_a_latched_fault(desk: Desk) -> None:
    desk.controller.deliver("shoe", [Crashed("KeyError", "managed.py:7 feed")])
    desk.turn()
    (fault,) = desk.controller.view("faults")
    assert (fault["code"], fault["device"], fault["cause"]) == (
        "crashed",
        "shoe",
        "shoe: KeyError at managed.py:7 feed",
    )
    assert [alarm["id"] for alarm in desk.controller.view("alarms")] == [fault["id"]]


def test_the_watchdog_is_fed_only_after_every_thread_turned(desk: Desk) -> None:
    controller, ports = desk.controller, desk.ports

    def turn_all(*but: str) -> None:
        for name, port in ports.items():
            port.turns += name not in but
        if "control" not in but:
            controller.control_beat()

    turn_all()
    controller._check_owners()
    assert desk.told() == ["WATCHDOG=1"]
    assert desk.pass_time(4.9) == []
    turn_all()
    assert desk.pass_time(0.2) == ["WATCHDOG=1"]
    for frozen in ("shoe", "control"):
        turn_all(frozen)
        assert desk.pass_time(5.1) == [], frozen
    turn_all()
    assert desk.pass_time(5.1) == ["WATCHDOG=1"]
    assert ports["shoe"].acked == [0] * 5, "every check wakes the owner threads"


def test_a_stop_blames_no_thread_for_its_silence(desk: Desk) -> None:
    said: list[str] = []
    known = {"info": lambda *_, **__: None, "error": lambda event, **_: said.append(event)}
    desk.controller._log = SimpleNamespace(**known)  # type: ignore[assignment]
    desk.controller._check_owners()
    desk.controller.stop()
    desk.turn()
    assert desk.told() == ["WATCHDOG=1"]
    assert desk.pass_time(5.1) == []
    assert said == []


@pytest.fixture
def new_jersey(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "EST5EDT,M3.2.0,M11.1.0")
    time_module.tzset()
    yield
    monkeypatch.undo()
    time_module.tzset()


def test_the_table_is_told_each_hour_and_each_gaming_day(desk: Desk, new_jersey: None) -> None:
    """The clock begins at 2026-01-01 00:00 UTC, which is seven in the evening of the day before."""
    desk.clock.advance(90)
    desk.controller.keep_hours(time(6, 30))
    first = desk.service.state
    assert (first.hour, first.day, first.seq) == (490_896, "2025-12-31", 3)
    assert desk.controller._patience() == 30
    desk.controller._next_check = None
    for minutes, hour, day in (
        (58, 490_896, "2025-12-31"),
        (0.5, 490_897, "2025-12-31"),
        (10 * 60 + 29, 490_907, "2025-12-31"),
        (1, 490_907, "2026-01-01"),
        (29, 490_907, "2026-01-01"),
        (1, 490_908, "2026-01-01"),
    ):
        desk.pass_time(minutes * 60)
        assert (desk.service.state.hour, desk.service.state.day) == (hour, day), minutes
    kinds = [entry.fact.kind for entry in desk.journal.entries(2)]
    assert kinds == ["hour"] * 5


def test_without_systemd_nobody_is_woken(desk: Desk) -> None:
    controller = Controller(desk.service, desk.clock, Notifier({}), log.get())
    controller._check_owners()
    assert controller._patience() is None


def start_shuffle(desk: Desk) -> None:
    desk.up()
    desk.tap("open")
    for event in ("inspect", "verify", "spread", "player_inspected", "wash"):
        desk.tap(event, batch="A")
    desk.tap("load_shuffler", batch="A")
    desk.tap("start_shuffle")
    desk.turn()
    assert desk.ports["shuffler"].sent == ["settings"]


def test_a_stop_sees_commands_to_their_end(desk: Desk) -> None:
    start_shuffle(desk)
    call = next(iter(desk.service.state.pending))
    settings = {"mode": "shuffle", "cards_per_deck": 52, "recognition": True, "decks": 1}
    answers: list[Any] = [
        Done({"settings": settings, "crc": 1, "crc_ok": True}),
        Done({"inside": 52, "cycle": 40, "token": None}),
        Done({"cycle": 41}),
        Done({"inside": 52, "cycle": 40, "token": None}),
    ]

    def answer(call_id: str) -> None:
        desk.controller.deliver("shuffler", [Complete(call_id, answers.pop(0))])

    desk.ports["shuffler"].on_command = answer
    desk.controller.stop()
    desk.tap("wash")
    answer(call)
    desk.controller.run()
    assert desk.ports["shuffler"].sent == ["settings", "status", "start", "status"]
    assert desk.service.state.pending == {}
    assert answers == []
    assert "STOPPING=1" in desk.told()


def test_a_stop_does_not_wait_for_ever(desk: Desk) -> None:
    start_shuffle(desk)
    (call,) = desk.service.state.pending
    desk.clock.step = LAST_WORDS_S / 2
    desk.controller.stop()
    desk.tap("wash")
    desk.controller.run()
    assert call in desk.service.state.pending
    desk.controller.deliver("shuffler", [Complete(call, Unknown("the port was closed on our side"))])
    desk.controller.finish()
    assert desk.service.state.pending == {}
    refusal = desk.replies[-1].refusal
    assert refusal is not None
    assert refusal.code == "stopping"


def test_notify_reaches_abstract_sockets_and_minds_its_pid() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"\0cutcard-test-{os.getpid()}")
        sock.settimeout(10)
        Notifier({"NOTIFY_SOCKET": f"@cutcard-test-{os.getpid()}"}).tell("READY=1", "STATUS=x")
        assert sock.recv(100) == b"READY=1\nSTATUS=x"
    Notifier({"NOTIFY_SOCKET": "/nowhere/notify"}).tell("READY=1")
    Notifier({}).tell("READY=1")
    assert Notifier({"WATCHDOG_USEC": "3000000"}).watchdog_s == 1.5
    assert Notifier({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}).watchdog_s is None
    assert Notifier({"WATCHDOG_USEC": "x"}).watchdog_s is None
