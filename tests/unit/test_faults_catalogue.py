"""The fault catalogue of the field devices: every entry has a name that `cutcard sim` takes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from devices.base import Setup
from devices.events import DeviceEvent
from devices.registry import load
from firmware_bridge.clock import VirtualClock
from firmware_bridge.link import Complete, Done, Refused, Unknown
from firmware_bridge.port import Port
from firmware_bridge.transports import open_transport
from simulators import faults
from simulators.hosts.line import Line as BadLine
from simulators.hosts.memory_host import MemoryHost
from simulators.hosts.tcp_host import TcpHost
from simulators.models.cards import Stack, make_batch
from simulators.models.dealing_machine import DealingMachine
from simulators.rig import sim
from simulators.wire.angel_eye import AngelEye
from simulators.wire.reshuffled import ReShuffled
from tests.support.gat import frames_of, gat_device
from tests.support.line import Line
from tests.unit.test_faults_field import loaded

CATALOGUE = {
    "angel-eye": {
        "drop copy 1, 2 or 3": ("drop_copy:1", "drop_copy:2", "drop_copy:3"),
        "change one byte": ("damage@3", "damage:0", "flip_byte@3", "flip_bit@3"),
        "lose ETX": ("lost_etx@3",),
        "bit 7 clear": ("top_bit_clear",),
        "sequence alphabets": ("sequence:digits19", "sequence:digits09", "sequence:hex", "sequence:free"),
        "sequence not advanced on S": ("start_keeps_sequence",),
        "reboot in mid round": ("reboot_mid_round@5", "reboot_mid_round:2@5"),
        "overdraw, cancel, R": ("early_card@1", "early_card:2@1"),
        "C-S, S alone, S-S": ("start_again:cut@9", "start_again@9", "start_again:twice@9"),
        "NAK with each code": tuple(
            f"nak:{code}@1" for code in ("01", "02", "03", "11", "12", "13", "14", "21", "22", "FF")
        ),
        "NAK and its code apart": ("nak_apart", "nak_apart:0.05"),
        "ACK late": ("late_answer:2.9@1", "late_answer:3.1@1"),
        "BCC form other than ours": ("bcc_without_stx",),
        "9600 instead of 4800": ("wrong_baud:0.5", "wrong_baud:2"),
        "TCP half-open": ("half_open",),
        "1-byte TCP segments": ("chunk",),
    },
    "bee-tek": {
        "separators": ("separator:space", "separator:double", "separator:crlf", "separator:none"),
        "both modes": ("mode:game", "mode:burn"),
        "unread card": ("misread@2", "unread:alarm", "unread:both"),
        "E3 alarm": ("alarm@2",),
        "W code": ("warning@2", "warning:2A@2"),
        "two loose echo characters": ("echo",),
        "10 instead of T": ("ten",),
        "suit first": ("suit_first",),
        "line cut for 300 ms": ("line_cut@2",),
    },
    "barcode-hid": {
        "lost key-up": tuple(f"lost_key_up:{number}@2" for number in range(1, 6)),
        "modifier byte 04": ("modifier@2",),
        "lost Enter": ("lost_enter@2",),
        "unplug in mid code": ("unplug_mid_code@2",),
        "second keyboard present": ("second_keyboard", "second_keyboard:same"),
    },
    "reshuffled": {
        "E1..E9": tuple(f"refuse:{number}@1" for number in range(1, 10)),
        "CRC without leading zeros": ("refuse:2",),
        "as its document says": ("document", "crc_includes_hash", "semicolon"),
        "chatter text": ("chatter", "text_inside", "stray_bytes", "request_echo"),
        "no answer": ("silent", "silent:5@2"),
        "answer after the timeout": ("late_answer:1.1@1",),
    },
    "gat": {
        "bad CRC": ("bad_crc@2", "garble_request@2"),
        "slow calculation 20 min": ("slow_calculation",),
        "error state": ("error",),
        "wrong frame number": ("wrong_frame@2",),
        "two masters": ("two_masters@2",),
    },
}
ENTRIES = [(device, text) for device, rows in CATALOGUE.items() for texts in rows.values() for text in texts]


@pytest.mark.parametrize(("device", "text"), ENTRIES)
def test_every_entry_has_a_name_and_the_device_takes_it(device: str, text: str) -> None:
    bad = BadLine(sim.make(device, 1), Random(1))
    host = TcpHost(bad) if text == "half_open" else MemoryHost(bad)
    try:
        sim.prepare(bad, [text])
        host.pump(0.0)
    finally:
        host.close()


@pytest.mark.parametrize("profile", ["tolerant", "strict"])
@pytest.mark.parametrize("number", range(1, 10))
def test_each_error_of_a_reshuffled_is_a_refusal_and_moves_nothing(number: int, profile: str) -> None:
    """As the firmware prints them, the strict reading misses those whose check begins with a zero."""
    for firmware in (True, False):
        machine = DealingMachine(Random(1))
        machine.load(Stack(make_batch("red", 1)))
        device = ReShuffled(machine, firmware=firmware)
        faults.apply(device, f"refuse:{number}@1")
        line = Line("reshuffled", device, cut=lambda data: [data] if data else [], profile=profile).up()
        line.command("c", "deal", n="3")
        end = line.end_of("c")
        if firmware and profile == "strict" and number in (2, 6):
            assert isinstance(end, Unknown)
        else:
            assert isinstance(end, Refused)
            assert end.code == f"E{number}"
        line.run(30.0)
        assert machine.inside == 52
        assert len(line.wire.sent) == 1


def test_a_gat_device_says_nothing_to_a_request_with_wrong_check_bytes_and_is_asked_again() -> None:
    for number in range(1, 8):
        device = gat_device()
        bad = BadLine(device, Random(number))
        line = Line("gat", bad, cut=frames_of)
        faults.apply(bad, f"garble_request@{number}")
        line.up()
        line.command("c", "functions")
        assert isinstance(line.end_of("c"), Done)
        assert device.bad <= 1
        assert not line.of("frame_rejected"), "the device was silent"


class Desk:
    """Driver and serial server in one thread; time passes by itself."""

    def __init__(self, device: BadLine) -> None:
        self.clock = VirtualClock()
        self.log: list[object] = []
        self.host = TcpHost(device)
        driver = load("angel-eye").controlled(Setup("shoe", Random(1)))
        transport = open_transport(self.host.uri, 4800)
        self.port = Port("shoe", transport, driver, self.clock, lambda _, outputs: self.log.extend(outputs))

    def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        end = self.clock.now() + seconds
        while self.clock.now() < end and not until():
            self.host.pump(self.clock.now())
            if not self.port.step(0):
                self.clock.advance(0.01)

    def kinds(self) -> list[str]:
        return [said.kind for said in self.log if isinstance(said, DeviceEvent)]

    def close(self) -> None:
        self.port.close()
        self.host.close()


def test_a_half_open_connection_brings_nothing_makes_nothing_up_and_ends_with_a_gap() -> None:
    shoe = loaded()
    bad = BadLine(AngelEye(shoe), Random(1))
    desk = Desk(bad)
    try:
        desk.run(60.0, lambda: "standby" in desk.kinds())
        faults.apply(bad, "half_open")
        desk.run(1.0)
        before = desk.kinds()
        shoe.draw()
        desk.port.command("c", "lock", {})
        desk.run(5.0)
        (end,) = [said for said in desk.log if isinstance(said, Complete)]
        assert isinstance(end.outcome, Unknown)
        assert not shoe.locked
        assert desk.kinds() == before, "nobody can tell it from a shoe at rest"
        number = desk.host.port
        desk.host.close()
        desk.host = TcpHost(bad, port=number)
        desk.run(60.0, lambda: desk.kinds().count("link_up") == 2)
        shoe.draw()
        desk.run(60.0, lambda: "card_drawn" in desk.kinds())
        assert desk.kinds()[len(before) :] == [
            "link_down", "link_up", "gap_possible", "alignment_required", "card_drawn",
        ]  # fmt: skip
    finally:
        desk.close()
