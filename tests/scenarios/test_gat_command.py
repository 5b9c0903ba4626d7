"""`cutcard gat` against a simulated device on TCP: its word is shown with what it is worth."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest

from controller.cli import app
from controller.cli import gat as command
from firmware_bridge.gat import queries
from simulators import faults
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.tcp_host import TcpHost
from simulators.rig import sim
from simulators.wire.gat import GatDevice, frame
from tests.support.desk import desk, served
from tests.support.gat import CARDS, PROGRAMS, SALT, UI, gat_device, hmac_sha1


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        (line,) = self.out.splitlines()
        return dict(json.loads(line))


def run(words: list[str]) -> int:
    """One command in this process; its exit code."""
    try:
        app.main(words)
    except SystemExit as left:
        return int(left.code or 0)
    return 0


@pytest.fixture
def gat(capsys, monkeypatch):
    """The command, with polls ten times as often."""
    monkeypatch.setattr(queries, "POLL_S", 0.1)
    return lambda port, *words: Ran(run(["gat", port, *words]), *capsys.readouterr())


def device(*wanted: str, duration: float = 0.1, **options: Any) -> GatDevice:
    made = gat_device(duration=duration, paced=False, **options)
    for fault in wanted:
        faults.apply(made, fault)
    return made


def test_field_40_what_a_device_reports_is_called_so_and_never_more(gat) -> None:
    with served(TcpHost(device())) as host:
        text, found = gat(host.uri), gat(host.uri, "--json")
    assert (text.code, found.code) == (0, 0)
    for said in (text.out, found.out):
        assert "reported by device" in said
        assert not re.search(
            r"verif|genuine|approved|authentic\b|\bvalid|passed|trusted", said, re.IGNORECASE
        )
    for line in text.out.splitlines():
        if line.startswith(("hash", "device", "result", "last")):
            assert "reported by device" in line
    assert "a changed device can report any hash" in text.out


def test_field_40_two_visits_can_be_compared_by_hash_and_salt(gat) -> None:
    made = device()
    with served(TcpHost(made)) as host:
        first = gat(host.uri, "--component", UI, "--json").json["reports"][0]
        fresh = gat(host.uri, "--component", UI, "--json").json["reports"][0]
        again = gat(host.uri, "--component", UI, "--salt", first["salt"], "--json").json["reports"][0]
        made.verifier.components = {**PROGRAMS, UI: PROGRAMS[UI][:-1] + b"!"}
        changed = gat(host.uri, "--component", UI, "--salt", first["salt"], "--json").json["reports"][0]
    assert re.fullmatch("[0-9a-f]{40}", first["salt"])
    assert first["salt"] != fresh["salt"], "drawn anew for each visit"
    assert first["hashes"] == again["hashes"] == [hmac_sha1(first["salt"], PROGRAMS[UI])]
    assert first["hashes"] != fresh["hashes"]
    assert first["hashes"] != changed["hashes"]


def test_without_a_name_all_components_that_it_lists_are_asked_for(gat) -> None:
    for formats in (1, 3):
        with served(TcpHost(device(formats=formats))) as host:
            found = gat(host.uri, "--salt", SALT, "--json").json
        listed, *reports = found["reports"]
        assert (listed["request"], listed["result"], listed["hashes"]) == ("functions", "reported", [])
        assert [(r["component"], r["hashes"]) for r in reports] == [
            (name, [hmac_sha1(SALT, PROGRAMS[name])]) for name in (UI, CARDS)
        ]
        assert {r["salt"] for r in reports} == {SALT}
        assert reports[0]["frames"] > 2
        assert (found["protocol"], found["foreign"], found["rejected"]) == ("3.50", 0, 0)
        assert found["last"] == {"level": "00", "seconds": 0}
        assert found["trouble"] is None


@pytest.mark.parametrize(
    ("wanted", "result", "code"),
    [
        (["level_error"], "not_supported", 4), (["nak"], "not_supported", 4),
        (["old_version"], "not_supported", 4), (["error"], "failed", 4), ([], "reported", 0),
    ],
)  # fmt: skip
def test_field_44_reported_failed_and_not_supported_are_three_results(gat, wanted, result, code) -> None:
    with served(TcpHost(device(*wanted))) as host:
        ran = gat(host.uri, "--component", UI, "--json")
        text = gat(host.uri, "--component", UI)
    (report,) = ran.json["reports"]
    assert (report["result"], ran.code, text.code) == (result, code, code)
    shown = {"reported": "reported by device", "not_supported": "not supported: ", "failed": "failed: "}
    assert f"result     {shown[result]}" in text.out
    assert bool(report["hashes"]) is (result == "reported")
    assert ran.err.startswith(f"cutcard: {UI}: the device") is (code != 0)


def test_an_old_device_shows_its_last_report_beside_what_it_cannot_do(gat) -> None:
    made = device(formats=1)
    with served(TcpHost(made)) as host:
        gat(host.uri, "--component", UI, "--salt", SALT)
        made.version = 0x0200
        ran = gat(host.uri, "--json")
    functions, last = ran.json["reports"]
    assert (ran.code, ran.json["protocol"], functions["result"]) == (4, "2.00", "not_supported")
    assert (last["request"], last["result"]) == ("results", "reported")
    assert hmac_sha1(SALT, PROGRAMS[UI]) in last["hashes"]


def test_a_slow_calculation_shows_progress_on_standard_error(gat, monkeypatch) -> None:
    monkeypatch.setattr(command, "PROGRESS_S", (0.3, 0.3))
    monkeypatch.setattr(command, "TURN_S", 0.1)
    with served(TcpHost(device("slow_calculation:1"))) as host:
        ran = gat(host.uri, "--component", UI, "--json")
    assert ran.code == 0
    lines = ran.err.splitlines()
    assert len(lines) >= 2
    said = re.escape(UI) + r": the device calculates \(calculating\), \d s; it may take 20 minutes"
    assert any(re.fullmatch(said, line) for line in lines)


def test_one_that_takes_too_long_is_unknown(gat, monkeypatch) -> None:
    monkeypatch.setattr(queries, "CALCULATION_S", 0.5)
    with served(TcpHost(device("slow_calculation:60"))) as host:
        ran = gat(host.uri, "--component", UI, "--json")
    assert (ran.code, ran.json["reports"][0]["result"]) == (3, "unknown")
    assert "did not end within" in ran.err


def test_a_second_master_is_told_and_its_report_is_not_taken_for_ours(gat) -> None:
    with served(TcpHost(device("two_masters@5", duration=1.0))) as host:
        ran = gat(host.uri, "--component", UI, "--json")
    assert ran.json["foreign"] >= 1
    assert ran.code == 3
    assert "another host talks to this device" in ran.err


def test_nothing_that_a_device_writes_is_obeyed_or_expanded(gat) -> None:
    bomb = (
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;"><!ENTITY f SYSTEM '
        '"file:///etc/passwd">]><x>&b;&f;\x1b[2J\x07\x9b31m</x>\r\n'
        "<Feature>Component</Feature><Parameter>&b;</Parameter>"
        "<Feature>Component</Feature><Parameter>bad\x1bname</Parameter>"
    )
    made = device()
    made.report = lambda wanted: bomb.encode("latin-1")
    with served(TcpHost(made)) as host:
        text, found = gat(host.uri), gat(host.uri, "--json")
    for ran in (text, found):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", ran.out + ran.err)
        assert "haha" not in ran.out
        assert "root:" not in ran.out
        assert "&b;&f;" in ran.out
    assert found.json["reports"][0]["report"] == bomb
    assert [r["component"] for r in found.json["reports"]] == [None, "&b;"]


def test_a_silent_device_a_missing_one_and_a_wrong_line(gat, monkeypatch) -> None:
    from firmware_bridge.gat import talk

    monkeypatch.setattr(talk, "ANSWER_S", 0.05)
    with served(TcpHost(device("silent"))) as host:
        silent = gat(host.uri, "--json")
    gone = gat("serial:/dev/cutcard-no-such-port", "--json")
    speaker = device()
    speaker.transmit = lambda now: b"\r\nLogin: \xff\xfe 4800 8N1\r\n" * 20
    speaker.deadline = lambda: None
    with served(TcpHost(speaker)) as host:
        noise = gat(host.uri)
    assert (silent.code, gone.code, noise.code) == (3, 3, 3)
    assert "no right answer came" in silent.err
    assert (silent.json["reports"], silent.json["protocol"]) == ([], None)
    assert silent.json["trouble"] in silent.err
    assert "is not there" in gone.err
    assert "none makes a good frame" in noise.err
    assert noise.out == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [(["--salt", "abc"], "a salt is up to 32 bytes in hex, or none, not 'abc'"),
     (["--component", "a\tb"], "a component's name has"), (["--component", ""], "a component's name has")],
)  # fmt: skip
def test_what_cannot_be_right_is_never_tried(gat, words, says) -> None:
    ran = gat("serial:/dev/cutcard-no-such-port", *words)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert gat("/dev/ttyS0").code == 2


def test_ctrl_c_ends_it_and_says_what_goes_on() -> None:
    import signal

    with desk() as made:
        host = made.serve(TcpHost(device("slow_calculation:600")))
        child = made.cutcard("gat", host.uri, "--component", UI, "--json")
        made.until(lambda: host.device.verifier.state == "calculating")
        child.process.send_signal(signal.SIGINT)
        code, out, err = made.end_of(child)
    assert code == 3
    assert err[-1].startswith("cutcard: SIGINT came first; what the device was asked to calculate goes on")
    assert json.loads(out[0])["reports"] == []


def test_monitor_send_and_decode_of_the_simulated_device_on_a_pty(tmp_path, capsys) -> None:
    made = sim.make("gat", 1)
    with served(PtyHost(made, tmp_path / "gat")) as host:
        for words in (
            ["send", host.uri, "--driver", "gat", "status", "--json"],
            ["monitor", host.uri, "--driver", "gat", "--count", "1", "--json"],
        ):
            run(words)
        sent, up = map(json.loads, capsys.readouterr().out.splitlines())
    assert (sent["outcome"], sent["answer"]["state"], sent["answer"]["version"]) == ("done", "idle", "3.50")
    assert (up["kind"], up["identity"]) == ("link_up", {"protocol": "GAT", "version": "3.50"})
    dump = tmp_path / "dump.bin"
    dump.write_bytes(frame(1) + frame(0x81, b"\x03\x50\x06\x03") + b"\x83\xff" + frame(0x84, b"\x04"))
    run(["decode", "--driver", "gat", str(dump), "--json"])
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [e["kind"] for e in told] == [
        "authentication_state", "frame_rejected", "command_refused", "summary",
    ]  # fmt: skip
    assert told[-1] == {
        "kind": "summary", "frames": 3, "events": 3, "repeats": 0, "rejected": 1, "bytes": 19,
    }  # fmt: skip
