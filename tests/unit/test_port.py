"""The pump: losses, back-off, commands from other threads, crashes, and what a turn costs."""

import os
import pty
import select
import threading
import tty
from collections import deque
from pathlib import Path

import pytest

from devices.base import Counters
from firmware_bridge import errors
from firmware_bridge import port as port_module
from firmware_bridge.clock import SystemClock, VirtualClock
from firmware_bridge.link import Complete, Done, NotSent, Send, Unknown
from firmware_bridge.port import Crashed, Opened, Port, Unavailable
from firmware_bridge.transports import open_receiver, open_transport
from firmware_bridge.transports.mem import MemTransport


class Line:
    """A memory endpoint that answers every byte string with itself when `echo`."""

    def __init__(self):
        self.inbox, self.written, self.plugged, self.echo, self.full = deque(), [], True, False, False

    def write(self, data):
        if not self.plugged or self.full:
            raise ConnectionError("unplugged")
        self.written.append(data)
        if self.echo:
            self.inbox.append(data)

    def read(self):
        if not self.plugged:
            raise ConnectionError("unplugged")
        data = b"".join(self.inbox)
        self.inbox.clear()
        return data


class Echo:
    """A driver: a command sends its argument and is done when the same bytes come back."""

    def __init__(self):
        self.calls, self.acked, self.lost_for, self.due, self.ticks = {}, [], [], None, []
        self.counters = Counters()
        self.fail_in = None

    def _fail(self, where):
        if self.fail_in == where:
            raise KeyError("8S is a secret")

    def start(self, now):
        self._fail("start")
        return [Send(b"hello"), "started"]

    def feed(self, data, now):
        self._fail("feed")
        self.counters.frames += not data.startswith(b"?")
        call = self.calls.pop(data, None)
        return [Complete(call, Done())] if call else [("got", data)]

    def tick(self, now):
        self.ticks.append(now)
        self.due = None
        return ["tick"]

    def lost(self, reason, now):
        self._fail("lost")
        self.lost_for.append(reason)
        out = [Complete(call, Unknown(reason)) for call in self.calls.values()]
        self.calls.clear()
        return [*out, "down"]

    def ack(self, n, now):
        self.acked.append(n)
        return []

    def deadline(self):
        return self.due

    def command(self, call_id, name, args, now):
        self._fail("command")
        self.calls[name.encode()] = call_id
        return [Send(name.encode())]


class Log:
    """What was delivered, and a way to wait for it."""

    def __init__(self):
        self.items, self.condition = [], threading.Condition()

    def __call__(self, name, outputs):
        assert name == "shoe"
        with self.condition:
            self.items += outputs
            self.condition.notify_all()

    def wait_for(self, test, seconds=5):
        with self.condition:
            assert self.condition.wait_for(lambda: any(map(test, self.items)), seconds), self.items

    def take(self):
        items, self.items = self.items, []
        return items


@pytest.fixture
def world():
    line, driver, log, clock = Line(), Echo(), Log(), VirtualClock(100.0)
    return line, driver, log, clock, Port("shoe", MemTransport(line), driver, clock, log)


def settle(port):
    while port.step(0):
        pass


def test_it_opens_starts_and_hands_everything_but_sends_on(world):
    line, _driver, log, _clock, port = world
    settle(port)
    assert log.take() == [Opened("simulated line mem:"), "started"]
    assert line.written == [b"hello"]
    line.inbox.append(b"abc")
    assert port.step(0) is True
    assert log.take() == [("got", b"abc")]
    assert port.step(0) is False
    assert (port.health().state, port.health().last_frame) == ("open", 100.0)


def test_a_command_completes_and_acks_reach_the_driver(world):
    line, driver, log, _clock, port = world
    line.echo = True
    settle(port)
    log.take()
    port.command("c1", "lock")
    port.ack(7)
    settle(port)
    assert log.take() == [Complete("c1", Done())]
    assert driver.acked == [7]


def test_ticks_come_at_the_drivers_deadline(world):
    _line, driver, _log, clock, port = world
    settle(port)
    driver.due = 103.0
    assert port.deadline() == 103.0
    assert port.step(0) is False
    clock.advance(3.0)
    assert port.step(0) is True
    assert driver.ticks == [103.0]


def test_not_connected_means_not_sent_at_once(world):
    line, _driver, log, _clock, port = world
    line.plugged = False
    settle(port)
    log.take()
    port.command("c1", "lock")
    port.step(0)
    (end,) = log.take()
    assert isinstance(end.outcome, NotSent)
    assert "shoe is not connected: mem: is not there" in end.outcome.reason


def test_loss_ends_what_was_sent_as_unknown_and_it_opens_again(world):
    line, _driver, log, clock, port = world
    settle(port)
    port.command("c1", "lock")
    settle(port)
    log.take()
    line.plugged = False
    settle(port)
    state, end, down = log.take()[:3]
    assert (state.kind, end.call_id, type(end.outcome), down) == ("LinkLost", "c1", Unknown, "down")
    assert port.health().state == "waiting"
    line.plugged = True
    clock.advance(5.0)
    settle(port)
    assert log.take() == [Opened("simulated line mem:"), "started"]


def test_back_off_doubles_to_one_second_and_the_same_failure_is_told_once(world):
    line, _driver, log, clock, port = world
    line.plugged = False
    waits = []
    for _ in range(9):
        port.step(0)
        waits.append(round(port.deadline() - clock.now(), 3))
        clock.advance(port.deadline() - clock.now())
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0, 1.0, 1.0]
    (state,) = log.take()
    assert state.kind == "Absent"
    assert state.text.startswith("mem: is not there")


def test_field_06_health_is_the_age_of_the_last_good_frame_not_an_open_handle(world):
    line, _driver, _log, clock, port = world
    settle(port)
    assert (port.health().state, port.health().last_frame) == ("open", None)
    line.inbox.append(b"frame")
    settle(port)
    clock.advance(7.0)
    line.inbox.append(b"?noise")
    settle(port)
    assert (port.health().state, port.health().last_frame) == ("open", 100.0)
    line.plugged = False
    settle(port)
    assert port.health().last_frame == 100.0


def test_field_08_bytes_without_a_frame_name_the_likely_cause(world):
    line, _driver, _log, _clock, port = world
    settle(port)
    line.inbox.append(b"?" * 255)
    settle(port)
    assert port.health().hint is None
    line.inbox.append(b"?")
    settle(port)
    assert "line rate (baud)" in port.health().hint
    line.inbox.append(b"frame")
    settle(port)
    assert port.health().hint is None


def test_i23_whatever_open_raises_the_pump_goes_on(world):
    _line, _driver, log, clock, port = world
    kinds = [OSError, ValueError, TypeError, NotImplementedError, errors.LinkLost, errors.Busy, KeyError]
    raised = iter([kinds[number % len(kinds)]("told") for number in range(50)])
    real = port._transport.open

    def opening():
        if (error := next(raised, None)) is not None:
            raise error
        real()

    port._transport.open = opening
    for _ in range(50):
        port.step(0)
        assert port.health().state == "waiting"
        clock.advance(port.deadline() - clock.now())
    settle(port)
    assert log.take()[-2:] == [Opened("simulated line mem:"), "started"]


def test_a_port_that_opens_and_dies_again_and_again_is_told_once(world):
    line, _driver, log, clock, port = world
    told = []
    for _ in range(20):
        line.plugged = True
        port.step(0)
        line.plugged = False
        port.step(0)
        told += [type(item) for item in log.take() if isinstance(item, Opened | Unavailable)]
        clock.advance(port.deadline() - clock.now())
    assert told == [Opened, Unavailable, Opened, Unavailable]
    line.plugged = True
    port.step(0)
    assert [item for item in log.take() if isinstance(item, Opened)] == []
    line.inbox.append(b"alive")
    settle(port)
    assert log.take() == [Opened("simulated line mem:"), ("got", b"alive")]


def test_a_silent_port_that_stays_open_is_told_after_a_second(world):
    line, _driver, log, clock, port = world
    for _ in range(3):
        line.plugged = True
        port.step(0)
        line.plugged = False
        port.step(0)
        clock.advance(port.deadline() - clock.now())
    line.plugged = True
    port.step(0)
    log.take()
    assert port.deadline() - clock.now() == 1.0
    clock.advance(1.0)
    port.step(0)
    assert log.take() == [Opened("simulated line mem:")]


def test_a_write_that_fails_ends_the_command_unknown(world):
    line, _driver, log, _clock, port = world
    settle(port)
    log.take()
    line.full = True
    port.command("c1", "lock")
    port.step(0)
    state, end, down = log.take()
    assert (state.kind, end.call_id, type(end.outcome), down) == ("LinkLost", "c1", Unknown, "down")
    assert line.written == [b"hello"]


@pytest.mark.parametrize("where", ["start", "feed", "command"])
def test_i23_a_bug_in_a_driver_is_told_without_its_text_and_the_pump_goes_on(world, where):
    line, driver, log, clock, port = world
    driver.fail_in = where
    settle(port)
    if where != "start":
        line.inbox.append(b"x")
        port.command("c1", "lock")
        settle(port)
    crashed = [item for item in log.items if isinstance(item, Crashed)]
    assert [c.error for c in crashed] == ["KeyError"]
    assert "test_port.py" in crashed[0].where
    assert "8S" not in repr(log.items)
    assert port.health().state == "waiting"
    ends = [item for item in log.items if isinstance(item, Complete)]
    assert [e.call_id for e in ends] == ([] if where == "start" else ["c1"])
    log.take()
    driver.fail_in = None
    clock.advance(5.0)
    settle(port)
    assert log.take() == [Opened("simulated line mem:"), "started"]


def test_a_driver_that_also_fails_in_lost_still_has_its_commands_ended(world):
    line, driver, log, _clock, port = world
    settle(port)
    port.command("c1", "lock")
    settle(port)
    driver.fail_in = "lost"
    line.plugged = False
    settle(port)
    assert next(i for i in log.items if isinstance(i, Complete)).call_id == "c1"
    assert any(isinstance(i, Crashed) for i in log.items)


def test_a_crash_at_every_byte_is_slowed_down_by_the_back_off(world):
    line, driver, _log, clock, port = world
    driver.fail_in = "feed"
    waits = []
    for _ in range(4):
        settle(port)
        line.inbox.append(b"x")
        settle(port)
        waits.append(round(port.deadline() - clock.now(), 3))
        clock.advance(port.deadline() - clock.now())
    assert waits == [0.1, 0.2, 0.4, 0.8]


def test_a_read_only_driver_refuses_commands_and_a_receiver_cannot_be_written_to():
    line, log, clock = Line(), Log(), VirtualClock()

    class Listener(Echo):
        command = None

        def start(self, now):
            return []

    port = Port("shoe", MemTransport(line), Listener(), clock, log)
    settle(port)
    port.command("c1", "lock")
    settle(port)
    assert log.take()[-1] == Complete("c1", NotSent("shoe is opened for reading only"))


def test_close_completes_everything(world):
    _line, _driver, log, _clock, port = world
    settle(port)
    port.command("c1", "lock")
    settle(port)
    port.command("c2", "unlock")
    log.take()
    port.close()
    ends = {i.call_id: type(i.outcome) for i in log.take() if isinstance(i, Complete)}
    assert ends == {"c1": Unknown, "c2": NotSent}


class Pty:
    def __init__(self):
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        self.path = os.ttyname(self.slave)

    def read(self, size=100):
        assert select.select([self.master], [], [], 3)[0]
        return os.read(self.master, size)

    def close(self):
        os.close(self.master)
        os.close(self.slave)


def test_over_ptys_it_survives_a_swapped_link_and_leaves_nothing_behind(tmp_path):
    first, second, link = Pty(), Pty(), tmp_path / "shoe"
    link.symlink_to(first.path)
    driver, log = Echo(), Log()
    port = Port("shoe", open_transport(f"serial:{link}"), driver, SystemClock(), log)
    port.start()
    try:
        log.wait_for(lambda i: i == "started")
        assert first.read() == b"hello"
        port.command("c1", "lock")
        assert first.read() == b"lock"
        first.close()
        log.wait_for(lambda i: isinstance(i, Complete))
        assert [type(i.outcome) for i in log.items if isinstance(i, Complete)] == [Unknown]
        log.take()
        fresh = tmp_path / "new"
        fresh.symlink_to(second.path)
        fresh.replace(link)
        log.wait_for(lambda i: i == "started")
        assert second.read() == b"hello"
        os.write(second.master, b"card")
        log.wait_for(lambda i: i == ("got", b"card"))
    finally:
        port.stop()
        second.close()
    assert driver.lost_for[-1] == "it was closed on our side"


def test_commands_and_stop_work_while_the_port_is_absent(tmp_path, monkeypatch):
    monkeypatch.setattr(port_module, "BACKOFF_FIRST", 50.0)
    monkeypatch.setattr(port_module, "BACKOFF_LAST", 50.0)
    log = Log()
    port = Port("shoe", open_transport(f"serial:{tmp_path}/none"), Echo(), SystemClock(), log)
    port.start()
    log.wait_for(lambda i: isinstance(i, Unavailable))
    for number in range(20):
        port.command(f"c{number}", "lock")
    log.wait_for(lambda i: isinstance(i, Complete) and i.call_id == "c19")
    port.stop()
    assert {type(i.outcome) for i in log.items if isinstance(i, Complete)} == {NotSent}
    assert sum(isinstance(i, Unavailable) for i in log.items) == 1


class Slow:
    """An opening that takes until `stop`, as connecting to a machine that is switched off does."""

    uri = "slow:"

    def __init__(self):
        self.begun, self.woken = threading.Event(), threading.Event()

    def open(self):
        self.begun.set()
        assert self.woken.wait(3)
        raise errors.Absent("broken off on our side")

    def stop(self):
        self.woken.set()

    def close(self):
        pass

    dispose = close


def test_a_request_does_not_break_off_an_opening_and_stop_does_without_a_word():
    slow, log = Slow(), Log()
    port = Port("shoe", slow, Echo(), SystemClock(), log)
    port.start()
    assert slow.begun.wait(3)
    port.command("c1", "lock")
    port.ack(1)
    assert not slow.woken.wait(0.05)
    port.stop()
    assert slow.woken.is_set()
    (end,) = log.items
    assert (end.call_id, type(end.outcome)) == ("c1", NotSent)


def test_fifty_losses_leave_no_handle():
    driver, log, clock = Echo(), Log(), VirtualClock()

    def handles():
        return len(list(Path("/proc/self/fd").iterdir()))

    peer = Pty()
    port = Port("shoe", open_transport(f"serial:{peer.path}"), driver, clock, log)
    settle(port)
    before = handles()
    for _ in range(50):
        port._fail(errors.LinkLost("pulled"), [])
        assert handles() < before
        clock.advance(5.0)
        port.step(0)
        assert port.health().state == "open"
    assert handles() == before
    port.close()
    peer.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_i24_a_pump_that_cannot_deliver_is_dead_and_says_so():
    peer = Pty()

    def broken(name, outputs):
        raise RuntimeError("inbox closed")

    port = Port("shoe", open_transport(f"serial:{peer.path}"), Echo(), SystemClock(), broken)
    port.start()
    port._thread.join(3)
    assert port.health().state == "dead"
    port.stop()
    peer.close()


def test_an_idle_port_sleeps():
    """Goal 3: no polling; a port with nothing due makes no turn at all."""
    peer = Pty()
    turns = []

    class Counted(Echo):
        def deadline(self):
            turns.append(1)
            return

    log = Log()
    port = Port("shoe", open_receiver(f"serial:{peer.path}"), Counted(), SystemClock(), log)
    port._driver.start = lambda now: ["started"]
    port.start()
    log.wait_for(lambda i: i == "started")
    peer_wait = threading.Event()
    peer_wait.wait(0.3)
    assert len(turns) <= 4
    port.stop()
    peer.close()
