"""Each simulated wire is as slow as its document says: bytes both ways, copies, answers, work."""

from __future__ import annotations

from random import Random

import pytest

from simulators import faults
from simulators.models.cards import Stack, make_batch
from simulators.models.dealing_machine import DealingMachine
from simulators.models.reader import HoleCardReader
from simulators.models.shoe import Shoe
from simulators.wire import angel_eye, bee_tek, gat, managed, reshuffled
from simulators.wire.angel_eye import AngelEye
from simulators.wire.barcode_hid import BarcodeReader
from simulators.wire.bee_tek import BeeTek
from simulators.wire.device import WireDevice
from simulators.wire.framings import CONSOLE, PACKETS
from simulators.wire.gat import IACQ, LARQ, SQ, frame
from simulators.wire.managed_reader import ManagedReader
from simulators.wire.reshuffled import ReShuffled
from simulators.wire.uart import Uart, misheard
from tests.support.gat import gat_device

LOCK = bytes.fromhex("024f504c4b3032033142")
SHUFFLE, OK = b":SH#A848D5CA\n", b":OK#D736D92D\n"
ECHO = bytes((8, 0, 0, 8, 0, 0, 7, 0)) + b"\xa1\x61d\x64abcd"
"""SMP: read 0 of group 0, sequence 7, {"d": "abcd"}."""


def loaded() -> Shoe:
    shoe = Shoe(Random(1))
    shoe.open_lid()
    shoe.load(Stack(make_batch("red", 1)))
    shoe.close_lid()
    return shoe


def told(device: WireDevice, until: float) -> list[tuple[float, bytes]]:
    """What leaves up to `until`, each piece with its time in ms."""
    out = []
    while (due := device.deadline()) is not None and due <= until:
        if data := device.transmit(due):
            out.append((round(due * 1000, 1), data))
    return out


def test_angel_eye_telegrams_take_their_bytes_and_come_at_0_50_and_100_ms():
    shoe = loaded()
    device = AngelEye(shoe)
    told(device, 1.0)
    device.advance(1.0)
    times = {}
    for act in (shoe.draw, shoe.press_new_shoe, lambda: shoe.set_lock(True, by="key")):
        start = shoe.now
        act()
        device.advance(start)
        for at, data in told(device, start + 0.13):
            times.setdefault(len(data), []).append(round(at - start * 1000, 1))
        told(device, start + 1.0)
        device.advance(start + 1.0)
    assert times == {8: [16.7, 66.7, 116.7], 6: [12.5, 62.5, 112.5], 7: [14.6, 64.6, 114.6]}


def test_an_angel_eye_command_takes_its_ten_bytes_before_it_is_judged():
    device = AngelEye(loaded())
    told(device, 1.0)
    device.receive(LOCK, 1.0)
    device.advance(1.0208)
    assert not device.shoe.locked
    device.advance(1.0209)
    assert device.shoe.locked
    assert told(device, 2.0) == [(1042.9, b"\x06")]


def test_an_angel_eye_nak_and_its_code_may_lie_120_ms_apart():
    device = AngelEye(loaded())
    told(device, 1.0)
    for fault in ("nak_apart", "nak:13"):
        faults.apply(device, fault)
    device.receive(LOCK, 1.0)
    assert told(device, 2.0) == [(1042.9, b"\x15"), (1162.9, b"\x13")]


def test_telegrams_that_wait_for_the_line_come_one_behind_the_other():
    device = AngelEye(loaded(), spacing=0.0)
    for _ in range(4):
        device.change_preset(1, 2)
    times = [at for at, _ in told(device, 0.9)]
    # S and P have 6 bytes, M has 12: 3 x (2 x 6 + 4 x 12) bytes without a pause are 375 ms
    assert times[-1] == pytest.approx(375.0)
    assert len(times) == 18


def test_bee_tek_messages_come_byte_by_byte_at_9600():
    shoe = loaded()
    device = BeeTek(shoe)
    shoe.draw()
    device.advance(0.0)
    found = told(device, 1.0)
    text = b" [Game]<Card:AC> "
    assert b"".join(data for _, data in found) == text
    assert [at for at, _ in found] == [round(n * 10_000 / 9600, 1) for n in range(1, len(text) + 1)]


def test_a_reshuffled_answers_13_bytes_with_13_at_57600():
    machine = DealingMachine(Random(1))
    machine.load(Stack(make_batch("red", 1)))
    device = ReShuffled(machine)
    device.receive(SHUFFLE, 0.0)
    device.advance(0.002)
    assert machine.state == "loaded", "its last byte is not there yet"
    # 2.26 ms for the request, 5 ms until it answers, 2.26 ms for the answer; the shuffle takes far longer
    assert told(device, 1.0) == [(9.5, OK)]
    assert machine.state == "working"


def test_a_gat_device_begins_its_answers_within_200_ms_and_needs_266_ms_for_a_whole_frame():
    device = gat_device(duration=0.0)
    device.receive(frame(SQ), 0.0)
    assert [at for at, _ in told(device, 1.0)] == [32.5]  # 4 bytes, 20 ms, 8 bytes
    device.receive(frame(IACQ, b"\xba\x00Get Special Functions"), 1.0)
    told(device, 2.0)
    device.receive(frame(IACQ, b"\xba\x00Component\tShuffler_UI_2.0.254\t0011"), 2.0)
    told(device, 3.0)
    device.receive(frame(LARQ, bytes((2, 0, 1))), 3.0)
    ((at, data),) = told(device, 4.0)
    assert (at, len(data)) == (round(3000 + 7 / 0.96 + 20 + 255 / 0.96, 1), 255)


def test_a_slow_calculation_takes_just_under_twenty_minutes():
    device = gat_device()
    faults.apply(device, "slow_calculation")
    device.receive(frame(IACQ, b"\xba\x00Get Special Functions"), 0.0)
    told(device, 1.0)
    for now, state in ((1169.0, 0x09), (1171.0, 0x06)):
        device.receive(frame(SQ), now)
        assert device.transmit(now + 0.1)[4] == state


def test_a_barcode_reader_types_one_report_each_8_ms_and_a_code_within_a_tenth_of_a_second():
    shoe = loaded()
    device = BarcodeReader(shoe)
    shoe.draw()
    device.advance(0.0)
    assert [at for at, _ in told(device, 1.0)] == [8.0 * n for n in range(10)]


def test_a_managed_device_takes_the_time_of_its_line_and_on_usb_that_of_its_answer():
    request = CONSOLE.encode(ECHO)
    device = ManagedReader(HoleCardReader(), paced=True)
    device.receive(request, 0.0)
    ((at, answer),) = told(device, 1.0)
    assert (len(request), len(answer)) == (31, 31)
    assert at == round(62 * 10_000 / 115_200 + 2.0, 1)
    device = ManagedReader(HoleCardReader(), paced=True, framing=PACKETS)
    device.receive(ECHO, 0.0)
    assert [at for at, _ in told(device, 1.0)] == [2.0]


def test_a_world_without_time_to_lose_has_the_same_bytes_at_once():
    device = ManagedReader(HoleCardReader())
    device.receive(CONSOLE.encode(ECHO), 5.0)
    at_once = device.transmit(5.0)
    faults.apply(device, "pace:real")
    device.receive(CONSOLE.encode(ECHO), 6.0)
    assert (device.transmit(6.005), device.transmit(6.01)) == (b"", at_once)
    faults.apply(device, "pace:none")
    device.receive(CONSOLE.encode(ECHO), 7.0)
    assert device.transmit(7.0) == at_once
    shoe = AngelEye(loaded(), paced=False)
    assert shoe.transmit(0.0) == angel_eye.telegram("1", "S")


def test_line_rates_are_the_documents():
    rates = {
        wire.__name__.rsplit(".", 1)[1]: wire.LINE_RATE for wire in (angel_eye, bee_tek, reshuffled, gat)
    }
    assert rates == {"angel_eye": 4800, "bee_tek": 9600, "reshuffled": 57600, "gat": 9600}
    assert managed.LINE_RATE == 115200


# The port


def test_both_ways_at_a_time_and_pieces_in_order():
    uart = Uart(1000)
    uart.come(b"ab", 0.0)
    uart.say(0.0, b"1234")
    uart.come(b"c", 0.005)
    uart.say(0.1, b"5")
    assert uart.deadline() == pytest.approx(0.02)
    assert [(round(at, 3), data) for at, data in uart.heard(1.0)] == [(0.02, b"ab"), (0.03, b"c")]
    assert uart.said(0.039) == []
    assert uart.said(0.041) == [b"1234"]
    assert uart.deadline() == pytest.approx(0.11)
    uart.clear()
    assert uart.said(1.0) == []


@pytest.mark.parametrize("rate", [1200, 4800, 115200])
def test_at_its_own_rate_every_byte_is_heard_as_it_was_sent(rate):
    data = bytes(range(256))
    assert misheard(data, rate, rate) == data


def test_at_another_rate_other_bytes_are_heard():
    """Worked out by hand."""
    # 05 is 0 1010 0000 1 on the line. Only its last low run is long enough for a start bit of half the rate:
    # then come the last of its zeros, its stop bit, and silence.
    assert misheard(b"\x05", 9600, 4800) == bytes([0b11111110])
    # at twice the rate a start bit is two bits long, and so is every bit behind it
    assert misheard(b"\xff", 4800, 9600) == bytes([0b11111110])
    assert misheard(b"", 9600, 4800) == b""
