"""`usb:` and `usbhid:` on a simulated bus under the real pyusb: what USB does wrong (I-40 to I-52)."""

import contextlib
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from usb.backend import libusb1

from firmware_bridge import errors
from firmware_bridge.clock import SystemClock
from firmware_bridge.transports import libusb, open_receiver, open_transport, usb_find
from firmware_bridge.transports import usb as usb_module
from simulators.hosts import usb_faults as faults
from simulators.hosts.usb_backend import SimBackend
from simulators.hosts.usb_bus import UsbBus
from simulators.hosts.usb_descriptors import Configuration, Endpoint, Interface, hid
from simulators.hosts.usb_device import UsbDevice
from tests.support.usb import REPORT, SimHidPeer, SimUsbPeer

CLOCK = SystemClock()
BULK_IN, BULK_OUT = 0x81, 0x01


@pytest.fixture
def plugged(monkeypatch):
    """Makes transports open a bus; every handle, claim and transfer must be given back at the end."""
    buses = []

    def plug(bus, plan=None):
        buses.append(bus)
        monkeypatch.setattr(libusb, "make_backend", lambda: SimBackend(bus, plan))
        return bus

    yield plug
    assert [bus.left() for bus in buses] == [{}] * len(buses)


@pytest.fixture
def peer(plugged):
    return make(plugged, SimUsbPeer())


def make(plugged, peer):
    plugged(peer.bus, peer.plan)
    return peer


@contextlib.contextmanager
def opened(uri, make=open_transport):
    transport = make(uri)
    try:
        transport.open()
        yield transport
    finally:
        transport.dispose()


def fails(uri, kind, text):
    transport = open_transport(uri)
    try:
        with pytest.raises(kind, match=text) as caught:
            transport.open()
    finally:
        transport.dispose()
    return str(caught.value)


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def read(transport, seconds=2.0):
    """The next transfer; b"" when none came in time."""
    end = CLOCK.now() + seconds
    while not (data := transport.read(max(0.0, end - CLOCK.now()))) and CLOCK.now() < end:
        pass
    return data


class TestFinding:
    def test_i40_without_libusb_one_sentence_names_the_packages(self, monkeypatch):
        libusb._library.cache_clear()
        monkeypatch.setattr(libusb, "_where", lambda name: None)
        monkeypatch.setattr(libusb1, "_lib_object", None)
        try:
            fails("usb:1209:0001", errors.Unsupported, "libusb-1.0-0, or the Python package libusb-package")
        finally:
            libusb._library.cache_clear()

    def test_i40_a_serial_only_site_never_loads_usb(self):
        program = (
            "import sys, os, pty; from firmware_bridge.transports import open_transport\n"
            "master, slave = pty.openpty(); port = open_transport('serial:' + os.ttyname(slave))\n"
            "port.open(); port.dispose(); sys.exit(any(name.startswith('usb') for name in sys.modules))"
        )
        done = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=False)
        assert done.returncode == 0

    def test_i44_a_device_that_may_not_be_asked_hides_no_other(self, plugged):
        dumb, good = UsbDevice(serial="SF0001"), UsbDevice(serial="SF0002")
        dumb.languages = ()
        plugged(UsbBus(dumb, good))
        with opened("usb:1209:0001:SF0002") as transport:
            good.send(b"hello")
            assert read(transport) == b"hello"
        text = fails("usb:1209:0001:SF0001", errors.Denied, "may not read its serial number")
        assert "(The device has no langid" in text
        assert "udev rule" in text

    def test_i44_listing_goes_on_past_an_unreadable_device(self, plugged):
        dumb, good = UsbDevice(serial="SF0001"), UsbDevice(serial="SF0002")
        dumb.denied = True
        backend = SimBackend(plugged(UsbBus(dumb, good)))
        found = [(f.serial, f.place, f.trouble is None) for f in usb_find.present(backend)]
        backend.finalize()
        assert found == [(None, "1-1", False), ("SF0002", "1-2", True)]

    def test_two_of_a_kind_are_told_apart_by_serial_or_refused(self, plugged):
        plugged(UsbBus(UsbDevice(serial="SF0001"), UsbDevice(serial="SF0002")))
        with opened("usb:1209:0001:SF0002") as transport:
            assert "at 1-2, Cutcard Shuffler, serial SF0002" in transport.describe()
        fails("usb:1209:0001", errors.WrongDevice, r"2 devices 1209:0001 are there \(SF0001, SF0002\)")

    def test_two_with_one_serial_number_are_refused_and_nothing_is_written(self, plugged):
        bus = plugged(UsbBus(UsbDevice(serial="SAME"), UsbDevice(serial="SAME")))
        text = fails("usb:1209:0001:SAME", errors.WrongDevice, "at 1-1 and at 1-2")
        assert "nobody can tell them apart" in text
        assert (bus.calls["claim_interface"], bus.calls["bulk_write"]) == (0, 0)

    def test_a_wrong_device_in_the_right_place_is_named(self, plugged):
        plugged(UsbBus(UsbDevice(serial="SF0009")))
        fails("usb:1209:0001:SF0001", errors.Absent, "'SF0001' is not there, but SF0009 at 1-1 is")
        fails("usb:1209:0002:SF0001", errors.Absent, "no USB device 1209:0002:SF0001 is there")
        fails("usbhid:1209:0001", errors.Unsupported, "no HID interface with interrupt reports")

    def test_i14_i44_no_rights_on_the_node_is_denied(self, peer):
        peer.device.denied = True
        fails("usb:1209:0001", errors.Denied, "may not be opened by this user")


class TestOpening:
    def test_i43_the_configuration_is_not_set_again(self, peer):
        for _ in range(3):
            with opened(peer.uri):
                assert peer.bus.calls["set_configuration"] == 0

    def test_i43_an_unconfigured_device_is_configured(self, peer):
        peer.device.configuration = 0
        with opened(peer.uri) as transport:
            assert (peer.bus.calls["set_configuration"], peer.device.configuration) == (1, 1)
            peer.send(b"x")
            assert read(transport) == b"x"

    def test_i43_claimed_by_another_program_is_busy_and_works_later(self, peer):
        other = object()
        peer.device.claim(0, other)
        fails(peer.uri, errors.Busy, "is held by another program")
        peer.device.release(0, other)
        with opened(peer.uri):
            assert len(peer.device.claims) == 1

    def test_i43_who_holds_it_is_named(self, peer, monkeypatch):
        from firmware_bridge.transports import locks

        monkeypatch.setattr(locks, "opened_by", lambda node: locks.Holder(42, f"tool on {node}"))
        peer.device.claim(0, object())
        fails(peer.uri, errors.Busy, r"held by process 42 \(tool on /dev/bus/usb/001/002\)")
        peer.device.claims.clear()

    def test_i43_a_kernel_driver_is_detached_on_purpose_only_and_put_back(self, plugged):
        device = UsbDevice()
        device.drivers = {0: "cdc_acm"}
        bus = plugged(UsbBus(device))
        text = fails(device.uri, errors.Busy, "held by a driver of the kernel")
        assert f"{device.uri}?detach=on" in text
        assert bus.calls["detach_kernel_driver"] == 0
        with opened(f"{device.uri}?detach=on") as transport:
            assert (device.bound, "kernel driver detached" in transport.describe()) == ({}, True)
            transport.write(b"x")
        assert device.bound == {0: "cdc_acm"}

    def test_only_our_interface_is_taken(self, plugged):
        other = hid(REPORT, Endpoint(0x82, kind="interrupt"), number=0)
        ours = Interface((Endpoint(0x03, 512), Endpoint(0x83, 512)), number=1)
        device = UsbDevice(configurations=(Configuration((other, ours)),), speed=480)
        device.drivers = {0: "usbhid"}
        plugged(UsbBus(device))
        with opened(device.uri) as transport:
            assert (device.bound, list(device.claims)) == ({0: "usbhid"}, [1])
            assert (transport.ends.interface, transport.ends.into, transport.ends.out) == (1, 0x83, 0x03)

    def test_a_bound_keyboard_reader_is_taken_and_given_back(self, plugged):
        peer = make(plugged, SimHidPeer())
        peer.device.drivers = {0: "usbhid"}
        peer.bus.replug(peer.device)
        with opened("usbhid:1209:0001") as transport:
            assert peer.device.bound == {}
            peer.device.send(bytes(64))
            assert read(transport) == bytes(64)
        assert peer.device.bound == {0: "usbhid"}

    def test_endpoints_without_room_for_a_packet_are_no_use(self, plugged):
        ends = (Endpoint(0x01, 0), Endpoint(0x81, 64))
        peer = make(plugged, SimUsbPeer(UsbDevice(configurations=(Configuration((Interface(ends),)),))))
        fails(peer.uri, errors.Unsupported, "has no vendor interface with bulk endpoints")

    def test_i43_an_error_without_a_number_sets_no_configuration(self, peer):
        peer.plan.add("get_configuration", faults.NAMELESS)
        fails(peer.uri, errors.Absent, "not there")
        assert peer.bus.calls["set_configuration"] == 0

    def test_i42_not_implemented_is_no_crash(self, peer):
        peer.plan.add("is_kernel_driver_active", faults.UNIMPLEMENTED)
        with opened(peer.uri):
            pass
        peer.plan.add("claim_interface", faults.UNIMPLEMENTED)
        fails(peer.uri, errors.Unsupported, "cannot be used like this")

    @pytest.mark.parametrize("call", ["open_device", "get_configuration", "claim_interface", "submit_in"])
    def test_gone_while_it_is_opened_is_absent_and_leaves_nothing(self, peer, call):
        first = [None] if call == "open_device" else []  # that one reads the serial number
        peer.plan.add(call, *first, faults.GONE)
        fails(peer.uri, errors.Absent, "not there")

    def test_stale_input_is_thrown_away_at_open(self, peer):
        for number in range(5):
            peer.send(b"old %d" % number)
        with opened(peer.uri) as transport:
            peer.send(b"new")
            assert read(transport) == b"new"


class TestTransfers:
    @pytest.mark.parametrize("size", [1, 63, 64, 65, 127, 128, 1032, 1024])
    def test_i50_every_length_arrives_as_one_packet_both_ways(self, peer, size):
        data = bytes(range(256)) * 5
        with opened(peer.uri) as transport:
            transport.write(data[:size])
            assert peer.heard() == data[:size]
            peer.send(data[:size])
            assert read(transport) == data[:size]
            peer.send(b"next")
            assert read(transport) == b"next"

    def test_i50_an_empty_transfer_is_no_data_and_no_loss(self, peer):
        with opened(peer.uri) as transport:
            peer.send(b"")
            peer.send(b"after")
            assert read(transport) == b"after"

    def test_i50_empty_packets_without_end_are_a_lost_link_and_no_full_load(self, peer):
        transport = open_transport(peer.uri)
        try:
            transport.open()
            peer.send(b"")
            peer.plan.add("in", *[faults.EMPTY] * 2000)
            with pytest.raises(errors.LinkLost, match="empty packets without end"):
                read(transport)
            assert 400 < len(peer.plan.struck) < 700
        finally:
            transport.dispose()

    def test_i45_whole_packets_are_asked_for_so_nothing_overflows(self, peer):
        with opened(peer.uri) as transport:
            assert transport._size == 2048
            peer.device.send(bytes(64), ended=False)  # a device that forgets its zero-length packet
            peer.send(b"tail")
            assert read(transport) == bytes(64) + b"tail"

    def test_i45_packets_of_odd_size_are_asked_for_whole(self, plugged):
        ends = (Endpoint(0x01, 40), Endpoint(0x81, 40))
        peer = make(plugged, SimUsbPeer(UsbDevice(configurations=(Configuration((Interface(ends),)),))))
        with opened(peer.uri) as transport:
            assert transport._size == 2080
            peer.send(bytes(79))
            assert read(transport) == bytes(79)

    def test_i45_an_overflow_is_a_lost_link(self, peer):
        peer.plan.add("in", None, None, faults.OVERFLOW)
        with opened(peer.uri) as transport:
            peer.send(b"one")
            peer.send(b"two")
            assert read(transport) == b"one"
            assert read(transport) == b"two"
            with pytest.raises(errors.LinkLost, match=r"Value too large|Overflow"):
                read(transport)

    @pytest.mark.parametrize("fault", faults.TIMEOUTS, ids=lambda f: str(f.number))
    def test_i41_a_write_that_times_out_is_a_lost_link_whatever_its_number(self, peer, fault):
        with opened(peer.uri) as transport:
            peer.plan.add("bulk_write", fault)
            with pytest.raises(errors.LinkLost, match="its state must be asked before anything is repeated"):
                transport.write(b"deal")

    def test_i08_a_short_write_is_a_lost_link_that_says_how_much_left(self, peer):
        with opened(peer.uri) as transport:
            peer.plan.add("bulk_write", faults.Fault("short", 1))
            with pytest.raises(errors.LinkLost, match="took only 1 of 5 bytes"):
                transport.write(b"eject")

    def test_i09_a_device_that_takes_nothing_ends_the_write_in_time(self, peer):
        with opened(peer.uri) as transport:
            peer.device.accept(64)
            start = CLOCK.now()
            with pytest.raises(errors.LinkLost, match="took only 64 of 200 bytes"):
                transport.write(bytes(200), timeout=0.1)
            assert CLOCK.now() - start < 1
            with pytest.raises(errors.LinkLost, match=r"did not take 10 bytes in 0.1 s"):
                transport.write(bytes(10), timeout=0.1)
            peer.device.accept(None)

    def test_a_halted_endpoint_is_cleared_once_then_it_is_opened_anew(self, peer):
        with opened(peer.uri) as transport:
            peer.device.halt(BULK_IN)
            assert transport.read(1) == b""
            assert (peer.bus.calls["clear_halt"], peer.device.halted) == (1, set())
            peer.send(b"again")
            assert read(transport) == b"again"
            peer.device.halt(BULK_IN)
            transport.read(1)
            peer.device.halt(BULK_IN)
            with pytest.raises(errors.Stalled, match="opened anew"):
                transport.read(1)
            assert peer.bus.calls["clear_halt"] == 2
            with pytest.raises(errors.LinkLost, match="not open"):
                transport.read(1)
            peer.device.halt(BULK_IN)
            transport.open()
            assert peer.bus.calls["clear_halt"] == 3
            peer.send(b"it goes on")
            assert read(transport) == b"it goes on"

    def test_a_halt_of_the_way_out_never_repeats_the_packet(self, peer):
        with opened(peer.uri) as transport:
            peer.device.halt(BULK_OUT)
            with pytest.raises(errors.Stalled, match="whether it took the packet is not known"):
                transport.write(b"deal")
            assert peer.device.received.empty()
            assert peer.device.halted == set()

    def test_reports_go_out_by_interrupt_or_by_control(self, plugged):
        peer = make(plugged, SimHidPeer())
        with opened("usbhid:1209:0001") as transport:
            transport.write(bytes(64))
            assert peer.device.received.get(timeout=1) == (0x01, bytes(64))
        only_in = Configuration((hid(REPORT, Endpoint(0x81, 8, kind="interrupt")),))
        peer = make(plugged, SimUsbPeer(UsbDevice(configurations=(only_in,))))
        with opened("usbhid:1209:0001") as transport:
            assert transport._size == 8
            transport.write(b"lamp")
            assert peer.device.received.get(timeout=1) == (0, b"lamp")

    def test_a_receiver_cannot_write(self, peer):
        with opened(peer.uri, open_receiver) as receiver:
            peer.send(b"x")
            assert read(receiver) == b"x"
            assert not hasattr(receiver, "write")


class TestLoss:
    def test_i47_a_replugged_device_is_found_under_its_new_address(self, peer):
        with opened(peer.uri) as transport:
            assert transport.ends.address == 2
            peer.bus.replug(peer.device)
            with pytest.raises(errors.LinkLost, match="No such device"):
                transport.read(1)
            transport.open()
            assert transport.ends.address == 3
            peer.send(b"back")
            assert read(transport) == b"back"

    def test_i47_five_hundred_replugs_leave_handles_and_descriptors_flat(self, peer, monkeypatch):
        monkeypatch.setattr(usb_module, "DRAIN_S", 0.0005)  # there is nothing old to wait for
        with opened(peer.uri) as transport:
            before = descriptors()
            for _ in range(500):
                peer.bus.replug(peer.device)
                with pytest.raises(errors.LinkLost):
                    transport.read(1)
                transport.close()
                assert peer.bus.left() == {}
                transport.open()
            assert (descriptors(), len(peer.bus.handles)) == (before, 1)

    def test_unplugged_in_a_pending_read_shows_within_50_ms(self, peer):
        with opened(peer.uri) as transport:
            told = []
            pull = threading.Timer(0.05, lambda: (told.append(CLOCK.now()), peer.cut()))
            pull.start()
            with pytest.raises(errors.LinkLost):
                transport.read(5)
            late = CLOCK.now() - told[0]
            pull.join()
        assert late < 0.05

    def test_what_came_before_the_plug_was_pulled_is_told_before_the_loss(self, peer):
        with opened(peer.uri) as transport:
            peer.send(b"LAST CARD")
            peer.cut()
            assert transport.read(1) == b"LAST CARD"
            with pytest.raises(errors.LinkLost, match="No such device"):
                transport.read(1)
            with pytest.raises(errors.LinkLost):
                transport.write(b"x")

    def test_i48_only_the_owner_closes_a_wake_ends_the_read_and_no_thread_is_started(self, peer):
        with opened(peer.uri) as transport:
            threads = threading.active_count()
            waker = threading.Timer(0.05, transport.wake)
            waker.start()
            start = CLOCK.now()
            assert transport.read(5) == b""
            assert CLOCK.now() - start < 2
            waker.join()
            assert threading.active_count() == threads
            assert peer.device.waiting == 1, "the transfer that was under way still is"
            peer.send(b"not lost")
            assert read(transport) == b"not lost"

    def test_i52_close_gives_everything_back_whatever_fails(self, peer):
        for call in ("release_interface", "clear_halt", "attach_kernel_driver"):
            peer.plan.add(call, faults.IO)
        peer.device.drivers = {0: "cdc_acm"}
        peer.bus.replug(peer.device)
        with opened(f"{peer.uri}?detach=on"):
            pass
        assert (len(peer.bus.handles), len(peer.bus.transfers), peer.device.claims) == (0, 0, {})
        peer.device.attach(0)  # the one thing that failed is the kernel's to mend


@pytest.mark.parametrize("seed", range(3))
def test_whatever_fails_only_our_errors_come_out_and_nothing_is_left(plugged, seed):
    plan = faults.FaultPlan(Random(f"storm {seed}"), 0.2)
    peer = make(plugged, SimUsbPeer(plan=plan))
    transport = open_transport(peer.uri)
    ends = Counter()
    for number in range(150):
        try:
            transport.open()
            peer.send(b"%d" % number)
            transport.write(b"%d" % number)
            while not transport.read(0.01):
                ends["empty"] += 1
            ends["whole"] += 1
        except errors.BridgeError as error:
            ends[type(error).__name__] += 1
    transport.dispose()
    assert ends["whole"] > 15
    assert ends["LinkLost"] > 5
    assert ends["Absent"] > 5
    assert len(plan.struck) > 50
