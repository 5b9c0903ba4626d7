"""`cutcard send` against simulated devices: every end of a command, told once and with its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from controller import open_tables
from controller.cli import app
from controller.cli import send as send_module
from devices.managed import session
from firmware_bridge.transports import libusb
from simulators.hosts.tcp_host import TcpHost
from simulators.hosts.usb_backend import SimBackend
from simulators.hosts.usb_host import UsbHost
from simulators.wire.framings import PACKETS
from tests.support.desk import (
    angel_eye,
    managed_shoe,
    managed_shuffler,
    never_answered,
    served,
)

TOKEN = bytes(range(16))
SHOE, SHUFFLER = "managed-shoe", "managed-shuffler"


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        (line,) = self.out.splitlines()
        return dict(json.loads(line))


Send = Callable[..., Ran]


@pytest.fixture
def send(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Send:
    """The command in this process; tables of other tests on this machine are not seen."""
    monkeypatch.setattr(open_tables, "any_open", lambda: False)

    def call(port: str, driver: str, *words: str) -> Ran:
        code = 0
        try:
            app.main(["send", port, "--driver", driver, *words])
        except SystemExit as left:
            code = int(left.code or 0)
        return Ran(code, *capsys.readouterr())

    return call


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence shows ten times sooner."""
    monkeypatch.setattr(session, "TIMEOUT", 0.05)


# How commands end


def test_done_shows_the_checked_answer_as_rows_or_as_one_object(send: Send) -> None:
    with served(TcpHost(managed_shuffler())) as host:
        status = send(host.uri, SHUFFLER, "status")
        as_json = send(host.uri, SHUFFLER, "settings", "--json")
    assert (status.code, status.err) == (0, "")
    rows = dict(line.split(maxsplit=1) for line in status.out.splitlines())
    assert rows == {
        "status": "done", "state": "loaded", "inside": "52", "door": "no", "cycle": "0", "token": "none",
        "mode": "shuffle",
    }  # fmt: skip
    assert list(as_json.json) == ["command", "outcome", "code", "answer"]
    told = as_json.json
    assert (told["command"], told["outcome"], told["code"]) == ("settings", "done", None)
    assert told["answer"]["settings"]["decks"] == 1
    assert told["answer"]["crc_ok"] is True


def test_start_makes_a_token_when_none_is_given_and_shows_it(send: Send) -> None:
    device = managed_shuffler()
    with served(TcpHost(device)) as host:
        done = send(host.uri, SHUFFLER, "start", "--json")
        status = send(host.uri, SHUFFLER, "status", "--json")
        again = send(host.uri, SHUFFLER, "start", TOKEN.hex(), "--json")
        refused = send(host.uri, SHUFFLER, "start")
        aborted = send(host.uri, SHUFFLER, "abort")
    made = done.err.split()[1].rstrip(":")
    assert (done.code, done.json["answer"]) == (0, {"cycle": 1})
    assert len(bytes.fromhex(made)) == 16
    assert status.json["answer"]["token"] == made
    assert (again.code, again.json["outcome"], again.json["code"]) == (4, "refused", "4")
    assert "busy" in again.err
    assert (refused.code, "token" in refused.err) == (4, False)
    assert aborted == Ran(0, "abort       done\n", "")
    assert [h.kind for h in device.machine.happenings].count("cycle_started") == 1


def test_release_and_report_of_a_proved_cycle(send: Send) -> None:
    device = managed_shuffler()
    device.machine.start(TOKEN)
    device.machine.advance(1000.0)
    with served(TcpHost(device)) as host:
        report = send(host.uri, SHUFFLER, "report", "--json")
        wrong = send(host.uri, SHUFFLER, "release", bytes(16).hex(), "--json")
        done = send(host.uri, SHUFFLER, "release", TOKEN.hex())
    answer = report.json["answer"]
    assert (answer["token"], answer["count"], answer["unread"]) == (TOKEN.hex(), 52, 0)
    assert sorted(answer["composition"].values()) == [1] * 52
    assert (wrong.code, wrong.json["code"]) == (4, "5")
    assert done.code == 0
    assert "release     done\ncount       52\ninside      0\n" in done.out
    assert "a table takes no batch from here" in done.out


@pytest.mark.usefixtures("hasty")
def test_without_an_answer_nobody_knows_and_what_moves_cards_moved_once(send: Send) -> None:
    device = managed_shuffler()
    heard = never_answered(device, 66, 1)
    with served(TcpHost(device)) as host:
        lost = send(host.uri, SHUFFLER, "start", TOKEN.hex(), "--json")
    assert lost.json == {"command": "start", "outcome": "unknown", "code": None, "answer": None}
    assert lost.code == 3
    assert "it was sent and may have happened; look at the device or ask `status` before" in lost.err
    assert "no answer within" in lost.err
    assert len(lost.err.splitlines()) == 1
    assert heard == [{"token": TOKEN}] * len(heard)
    assert [h.kind for h in device.machine.happenings].count("cycle_started") == 1


def test_a_shoe_that_says_yes_and_no(send: Send) -> None:
    device = angel_eye()
    with served(TcpHost(device)) as host:
        locked = send(host.uri, "angel-eye", "lock", "--json")
        cleared = send(host.uri, "angel-eye", "clear-fault", "05")
        device.busy = True
        refused = send(host.uri, "angel-eye", "confirm")
    assert (locked.code, locked.json["answer"]) == (0, {"locked": True})
    assert device.shoe.locked
    assert cleared == Ran(0, "clear-fault done\n", "")
    assert (refused.code, refused.out) == (4, "")
    assert "its code 21): nothing happened; look at the device" in refused.err


def test_the_same_over_usb_one_packet_a_transfer(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    host = UsbHost(managed_shuffler(PACKETS))
    monkeypatch.setattr(libusb, "make_backend", lambda: SimBackend(host.bus))
    with served(host):
        done = send(host.uri, SHUFFLER, "status", "--json")
        assert host.bus.left() == {}
    assert done.json["answer"]["inside"] == 52


# What keeps a command from being sent


@pytest.mark.usefixtures("hasty")
def test_a_silent_device_a_wrong_one_and_one_that_speaks_otherwise(send: Send) -> None:
    silent, other = managed_shoe(), managed_shuffler()
    silent.traps.set("silent", None)
    with served(TcpHost(silent)) as host:
        mute = send(host.uri, SHOE, "lock", "--json")
    with served(TcpHost(other)) as host:
        wrong = send(host.uri, SHOE, "lock", "--json")
    speaker = managed_shoe()
    speaker.transmit = lambda now: b"\r\nAT OK 4800 8N1 Cutcard\r\n" * 20
    speaker.deadline = lambda: None
    with served(TcpHost(speaker)) as host:
        noise = send(host.uri, SHOE, "lock", "--json")
    for ran in (mute, wrong, noise):
        assert ran.json == {"command": "lock", "outcome": "not_sent", "code": "link_down", "answer": None}
        assert (ran.code, len(ran.err.splitlines())) == (3, 1)
    assert "lock was not sent: the device is silent" in mute.err
    assert "expected a shoe, found the shuffler" in wrong.err
    assert "none makes a good frame" in noise.err
    assert not any(h.kind == "lock" for h in silent.machine.happenings)


def test_no_port_is_absent_and_nothing_was_sent(send: Send) -> None:
    gone = send("serial:/dev/cutcard-no-such-port", SHOE, "lock", "--json")
    assert (gone.code, gone.json["outcome"], gone.json["code"]) == (3, "not_sent", "absent")
    assert gone.err.startswith("cutcard: lock was not sent: /dev/cutcard-no-such-port is not there")


@pytest.mark.parametrize(
    ("driver", "words", "says"),
    [
        (SHUFFLER, ["strat"], "there is no command 'strat'; did you mean 'start'?"),
        (SHUFFLER, ["x"], "there is no command 'x' (managed-shuffler knows status, settings, start, "),
        (SHUFFLER, [], "no command given: managed-shuffler knows status,"),
        (SHUFFLER, ["release"], "release was given 0 arguments; write: release TOKEN"),
        (SHUFFLER, ["start", "1", "2"], "start was given 2 arguments; write: start [TOKEN]"),
        (SHUFFLER, ["release", "zz"], "release TOKEN: a token is 16 bytes in hex (32 digits)"),
        ("angel-eye", ["clear-fault", "100"], "clear-fault takes an error number from 00 to 99, not '100'"),
        ("angel-ey", ["lock"], "did you mean 'angel-eye'?"),
    ],
)
def test_what_cannot_be_right_is_never_tried(send: Send, driver: str, words: list[str], says: str) -> None:
    ran = send("serial:/dev/cutcard-no-such-port", driver, *words)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_port_that_is_none_is_a_mistake_too(send: Send) -> None:
    assert send("/dev/ttyUSB0", SHOE, "lock").err.endswith("did you mean serial:/dev/ttyUSB0?\n")


def test_cards_of_an_open_table_are_moved_by_its_daemon_alone(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    device = managed_shuffler()
    with open_tables.mark_open("BJ-07"), served(TcpHost(device)) as host:
        start = send(host.uri, SHUFFLER, "start", "--json")
        asked = device.requests
        status = send(host.uri, SHUFFLER, "status", "--json")
    assert start.json == {"command": "start", "outcome": "refused", "code": "table_open", "answer": None}
    assert (start.code, asked) == (4, 0)
    assert "only its daemon may move them" in start.err
    assert status.json["outcome"] == "done"


# Its help


def test_help_after_a_driver_lists_its_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")

    def shown(*args: str) -> str:
        with pytest.raises(SystemExit) as left:
            app.main(["send", *args, "--help"])
        assert not left.value.code
        return capsys.readouterr().out

    listed = shown("--driver", SHUFFLER).partition("Commands of managed-shuffler:\n")[2]
    rows = [line.split("  ") for line in listed.splitlines()]
    assert [(row[1], row[-1].rpartition("; ")[2]) for row in rows] == [
        ("status", "only asks"), ("settings", "only asks"), ("start [TOKEN]", "moves cards"),
        ("abort", "moves no card"), ("release TOKEN", "moves cards"), ("report", "only asks"),
    ]  # fmt: skip
    assert "clear-fault NN  cancel error NN" in shown("serial:/dev/ttyS0", "--driver", "angel-eye")
    assert "Commands of" not in shown()
    with pytest.raises(SystemExit) as left:
        app.main(["send", "--driver", "nobody", "--help"])
    assert left.value.code == 2


# Nothing more is shown than the device's check lets through


def test_an_answer_with_more_in_it_shows_no_card_and_nothing_a_terminal_obeys(send: Send) -> None:
    device = managed_shuffler()
    told = {**device._commands[66, 0, 0]({}), "state": "\x1b[2Jgone", "next_card": "8S", "order": ["8S"]}
    device._commands[66, 0, 0] = lambda _: told
    with served(TcpHost(device)) as host:
        text, as_json = (send(host.uri, SHUFFLER, "status", *more) for more in ([], ["--json"]))
    assert text.code == as_json.code == 0
    assert "8S" not in text.out + as_json.out
    assert "\\x1b[2Jgone" in text.out
    assert "\x1b" not in text.out + as_json.out


def test_events_of_the_session_are_not_shown(send: Send) -> None:
    device = managed_shoe()
    faces = [device.machine.draw().face for _ in range(3)]
    with served(TcpHost(device)) as host:
        done = send(host.uri, SHOE, "status")
    assert "drawn       3" in done.out
    assert not any(face in done.out + done.err for face in faces)


def test_a_fault_of_a_driver_s_own_leaves_the_command_unknown(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a traceback, and without the error's own text: it may name a card."""

    class Broken(session.Managed):
        def command(self, *_: Any) -> Any:
            raise ValueError("the next card is 8S")

    from dataclasses import replace

    from devices.shoes.managed import DIALECT, SPEC

    spec = replace(SPEC, controlled=lambda setup: Broken(setup, DIALECT))
    monkeypatch.setattr(send_module, "driver_spec", lambda name: spec)
    with served(TcpHost(managed_shoe())) as host:
        ran = send(host.uri, SHOE, "lock", "--json")
    assert (ran.code, ran.json["outcome"]) == (3, "unknown")
    assert "ValueError at " in ran.err
    assert "8S" not in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("full", [True, False], ids=["full disk", "closed pipe"])
def test_the_exit_code_is_the_command_s_also_when_nobody_can_read_it(full: bool) -> None:
    command = [sys.executable, "-c", "from controller.cli.app import main; main()", "send"]
    command += ["socket:127.0.0.1:1", "--driver", SHOE, "lock", "--json"]
    if full:
        out = os.open("/dev/full", os.O_WRONLY)
    else:
        reading, out = os.pipe()
        os.close(reading)
    try:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    finally:
        os.close(out)
    assert done.returncode == 3
    assert "lock was not sent" in done.stderr
    assert "Traceback" not in done.stderr
