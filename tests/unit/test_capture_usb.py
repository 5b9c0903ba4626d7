"""The real USB transport recorded on a simulated bus: what no read or write shows is in the file too."""

import struct

import pytest

from firmware_bridge.capture import Recorder, recorded
from firmware_bridge.clock import SystemClock
from firmware_bridge.errors import LinkLost
from firmware_bridge.transports import libusb, open_transport
from simulators.hosts.usb_backend import SimBackend
from simulators.hosts.usb_descriptors import Configuration, Endpoint, hid
from simulators.hosts.usb_device import UsbDevice
from tests.support.captures import read, transfers, usb_headers
from tests.support.usb import REPORT, SimUsbPeer

ONLY_IN = Configuration((hid(REPORT, Endpoint(0x81, 8, kind="interrupt")),))
SUBMITTED, DONE, GIVEN_UP, STALL = -115, 0, -2, -32


@pytest.fixture
def peer():
    found = SimUsbPeer()
    yield found
    found.close()


@pytest.fixture
def record(monkeypatch, tmp_path):
    """Opens a recorded transport; afterwards it and the file are closed."""
    opened = []

    def begin(peer, uri):
        monkeypatch.setattr(libusb, "make_backend", lambda: SimBackend(peer.bus, peer.plan))
        wire = open_transport(uri)
        over = recorded(wire, Recorder(tmp_path / "f", wire, SystemClock(), told=pytest.fail))
        opened.append(over)
        over.open()
        return over

    yield begin
    for over in opened:
        over.dispose()


def test_an_empty_packet_and_a_stall_that_was_cleared_are_there(peer, record, tmp_path):
    over = record(peer, peer.uri)
    peer.send(b"")
    assert over.read(1) == b""
    peer.device.halt(0x81)
    assert over.read(1) == b""
    peer.send(b"data")
    assert over.read(1) == b"data"
    over.dispose()
    statuses = [DONE, STALL, DONE, GIVEN_UP]
    assert transfers(tmp_path / "f") == [
        record
        for number, status in enumerate(statuses, 1)
        for record in (("S", 0x81, number, SUBMITTED), ("C", 0x81, number, status))
    ]
    assert [r.data for r in read(tmp_path / "f")] == [b"data"]


def test_a_whole_packet_s_empty_one_follows_it(peer, record, tmp_path):
    over = record(peer, peer.uri)
    for size in (64, 63):
        over.write(bytes(size))
    assert [number for _, endpoint, number, _ in transfers(tmp_path / "f") if endpoint == 0x01] == [
        2, 2, 3, 3, 4, 4,
    ]  # fmt: skip
    sizes = [struct.unpack_from("<I", header, 32)[0] for header in usb_headers(tmp_path / "f")]
    assert sizes == [0, 64, 64, 0, 0, 63, 63]
    assert [r.data for r in read(tmp_path / "f")] == [bytes(64), bytes(63)]


def test_a_packet_whose_empty_one_is_refused_has_none(peer, record, tmp_path):
    over = record(peer, peer.uri)
    peer.device.accept(64)
    with pytest.raises(LinkLost):
        over.write(bytes(64), timeout=0.05)
    peer.device.accept(None)
    assert len([e for e in transfers(tmp_path / "f") if e[1] == 0x01]) == 2


def test_what_is_thrown_away_at_an_open_is_not_there(peer, record, tmp_path):
    peer.send(b"old")
    peer.send(b"")
    over = record(peer, peer.uri)
    over.close()
    peer.send(b"older")
    peer.send(b"")
    over.open()
    over.dispose()
    assert [(event, status) for event, _, _, status in transfers(tmp_path / "f")] == [
        ("S", SUBMITTED), ("C", GIVEN_UP), ("S", SUBMITTED), ("C", GIVEN_UP),
    ]  # fmt: skip


def test_a_report_without_an_endpoint_is_a_control_transfer(record, tmp_path):
    peer = SimUsbPeer(UsbDevice(configurations=(ONLY_IN,)))
    over = record(peer, "usbhid:1209:0001")
    over.write(b"lamp")
    assert peer.device.received.get(timeout=1) == (0, b"lamp")
    over.dispose()
    peer.close()
    _, submitted, done, _ = usb_headers(tmp_path / "f")
    assert [(h[8:9], h[9], h[10]) for h in (submitted, done)] == [(b"S", 2, 0), (b"C", 2, 0)]
    assert [(h[14], h[40:48].hex()) for h in (submitted, done)] == [
        (0, "2109000200000400"), (ord("-"), "0000000000000000"),
    ]  # fmt: skip
    assert [(r.inbound, r.data) for r in read(tmp_path / "f")] == [(False, b"lamp")]
