"""The hole-card reader as the commands show it: over TCP and over USB."""

from __future__ import annotations

import json

import pytest

from controller import open_tables
from controller.cli import app
from firmware_bridge.transports import libusb
from simulators.hosts.tcp_host import TcpHost
from simulators.hosts.usb_backend import SimBackend
from simulators.hosts.usb_host import UsbHost
from simulators.models.cards import Card
from simulators.models.reader import HoleCardReader
from simulators.rig import sim
from simulators.wire.framings import CONSOLE, PACKETS, Framing
from simulators.wire.managed_reader import ManagedReader
from tests.support.desk import served


def reader(framing: Framing = CONSOLE, hole: str = "K") -> ManagedReader:
    """With an ace up and `hole` beside it."""
    machine = HoleCardReader()
    machine.slide_in(Card(1, "A", "S", "red"), Card(2, hole, "S", "red"))
    return ManagedReader(machine, framing=framing)


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


@pytest.mark.parametrize(("hole", "result"), [("K", "natural"), ("9", "not_natural")])
def test_send_peek_tells_the_result_alone(cutcard, hole, result):
    with served(TcpHost(reader(hole=hole))) as host:
        code, out, _ = cutcard("send", host.uri, "--driver", "hole-card-reader", "peek", "--json")
    assert code == 0
    assert json.loads(out) == {
        "command": "peek", "outcome": "done", "code": None, "answer": {"result": result},
    }  # fmt: skip


def test_it_is_found_and_asked_over_usb(cutcard, monkeypatch):
    host = UsbHost(reader(PACKETS))
    monkeypatch.setattr(libusb, "make_backend", lambda: SimBackend(host.bus))
    assert host.uri == "usb:1209:0003:HR0001"
    with served(host):
        code, out, _ = cutcard("send", host.uri, "--driver", "hole-card-reader", "peek")
        assert host.bus.left() == {}
    assert (code, out) == (0, "peek        done\nresult      natural\n")


def test_monitor_sees_looks_that_nobody_asked_for(cutcard):
    device = sim.make("hole-card-reader", 1)
    device.machine.player._pace = 0.3
    with served(TcpHost(device)) as host:
        _, out, _ = cutcard("monitor", host.uri, "--driver", "hole-card-reader", "--count", "3", "--json")
    up, *looks = map(json.loads, out.splitlines())
    assert up["kind"] == "link_up"
    assert [(e["kind"], e["raw"]) for e in looks] == [("hole_card_checked", None)] * 2
    truth = [h.data["result"].replace(" ", "_") for h in device.machine.happenings]
    assert [e["result"] for e in looks] == truth[looks[0]["seq"] - 1 :][:2]
