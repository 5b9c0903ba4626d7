"""The Bee-Tek as the commands show it: on a pty and over TCP, recorded and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controller import open_tables
from controller.cli import app
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.tcp_host import TcpHost
from simulators.rig import sim
from simulators.wire.bee_tek import BeeTek
from tests.support.desk import served


@pytest.fixture
def cutcard(capsys, monkeypatch):
    monkeypatch.setattr(open_tables, "any_open", lambda: False)

    def call(*words: str) -> tuple[int, str, str]:
        code = 0
        try:
            app.main(list(words))
        except SystemExit as left:
            code = int(left.code or 0)
        return code, *capsys.readouterr()

    return call


def playing(*faults: str) -> BeeTek:
    """What `cutcard sim bee-tek` shows, three cards a second."""
    device = sim.make("bee-tek", 4)
    assert isinstance(device, BeeTek)
    sim.prepare(device, faults)
    device.shoe.hands._pace = device.shoe.hands._at = 0.3
    device.uart.paced = False  # a busy test machine shall not look like a cut line
    return device


def host_of(kind: str, device: BeeTek, tmp_path: Path) -> Any:
    return PtyHost(device, tmp_path / "shoe") if kind == "pty" else TcpHost(device)


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize(
    ("kind", "faults"),
    [("pty", ("echo", "ten", "unread:both", "misread@3")),
     ("tcp", ("separator:crlf", "mode:burn", "warning@2"))],
)  # fmt: skip
def test_monitor_shows_what_the_shoe_dealt(cutcard, tmp_path, kind, faults):
    with served(host_of(kind, playing(*faults), tmp_path)) as host:
        code, out, _ = cutcard("monitor", host.uri, "--driver", "bee-tek", "--count", "5", "--json")
        dealt = [h.data["face"] for h in host.device.machine.happenings if h.kind == "drawn"]
    assert code == 0
    events = lines(out)
    told = [e["card"] for e in events if e["kind"] == "card_drawn"]
    assert len(told) >= 3
    starts = [dealt[at : at + len(told)] for at in range(len(dealt))]
    assert told in starts
    assert {e["kind"] for e in events} <= {"card_drawn", "fault_raised", "warning"}
    assert {e["in_game"] for e in events if "in_game" in e} == {kind == "pty"}


def test_a_recording_is_decoded_to_what_was_told(cutcard, tmp_path):
    file = tmp_path / "wire.pcapng"
    with served(PtyHost(playing("damage@2"), tmp_path / "shoe")) as host:
        code, _, _ = cutcard("capture", host.uri, "--driver", "bee-tek", "-o", str(file), "--seconds", "1.5")
    assert code == 0
    code, out, _ = cutcard("decode", "--driver", "bee-tek", "--format", "pcapng", str(file), "--json")
    *events, summary = lines(out)
    assert code == 0
    cards = [e for e in events if e["kind"] == "card_drawn"]
    assert len(cards) >= 3
    assert summary["frames"] == len(cards)
    assert summary["rejected"] == len([e for e in events if e["kind"] == "frame_rejected"])
    assert len([e for e in events if e["kind"] == "gap_possible"]) == summary["rejected"]


def test_decode_of_a_file_and_the_commands_that_it_does_not_have(cutcard, tmp_path):
    file = tmp_path / "raw.bin"
    file.write_bytes(b" [Game]<Card:4S>4S [Game]<Game> [Game]<Card:5X><W0x01>[Game]<Ca")
    code, out, _ = cutcard("decode", "--driver", "bee-tek", str(file), "--json")
    *events, summary = lines(out)
    assert code == 0
    assert [(e["kind"], e.get("card")) for e in events] == [
        ("card_drawn", "4S"), ("card_drawn", None), ("card_drawn", None), ("warning", None),
        ("frame_rejected", None), ("gap_possible", None),
    ]  # fmt: skip
    assert summary == {
        "kind": "summary", "frames": 4, "events": 6, "repeats": 1, "rejected": 1, "bytes": 63,
    }  # fmt: skip
    code, _, err = cutcard("send", "serial:/dev/null", "--driver", "bee-tek", "lock")
    assert code == 2
    assert "bee-tek knows no commands" in err


def test_a_shoe_by_that_name_can_be_simulated_and_its_faults_are_named(cutcard):
    code, _, err = cutcard("sim", "bee-tak", "--listen", "tcp:127.0.0.1:0")
    assert (code, "did you mean 'bee-tek'?" in err) == (2, True)
    code, _, err = cutcard("sim", "bee-tek", "--listen", "tcp:127.0.0.1:0", "--fault", "separator:tab")
    assert (code, "separator: its VALUE is space, double, crlf or none" in err) == (2, True)
