"""The simulated USB device by itself, and under the real pyusb without libusb."""

from __future__ import annotations

import array
import errno
import queue
import select
import threading
from random import Random

import pytest
import usb.core
import usb.util

from simulators.hosts import usb_faults as faults
from simulators.hosts.usb_backend import SimBackend
from simulators.hosts.usb_bus import UsbBus
from simulators.hosts.usb_descriptors import Configuration, Endpoint, Interface
from simulators.hosts.usb_device import Transfer, UsbDevice
from simulators.hosts.usb_host import UsbHost
from simulators.hosts.usb_identity import Stalled
from simulators.models.shoe import Shoe
from simulators.models.shuffler import BatchShuffler
from simulators.wire.framings import PACKETS
from simulators.wire.managed_shoe import ManagedShoe
from simulators.wire.managed_shuffler import ManagedShuffler
from tests.support.usb import HID, SimHidPeer, SimUsbPeer


def refused(number):
    return pytest.raises(OSError, match=rf"\[Errno {number}\]")


@pytest.fixture
def device():
    made = UsbDevice()
    UsbBus(made)
    return made


def submit(device, endpoint, data=b"", size=0, owner="us"):
    transfer = Transfer(endpoint, lambda _: None, data=data, size=size, owner=owner)
    device.submit(transfer)
    return transfer


class TestDevice:
    @pytest.mark.parametrize("length", [0, 1, 63, 65, 127])
    def test_a_short_packet_ends_a_transfer(self, device, length):
        assert submit(device, 0x01, bytes(length)).error == 0
        assert device.received.get_nowait() == (0x01, bytes(length))

    @pytest.mark.parametrize("length", [64, 128, 640])
    def test_a_multiple_of_the_packet_stays_open_until_the_zero_length_packet(self, device, length):
        assert submit(device, 0x01, b"a" * length).error == 0
        assert device.received.empty()
        submit(device, 0x01, b"")
        assert device.received.get_nowait() == (0x01, b"a" * length)
        submit(device, 0x01, b"a" * length)
        submit(device, 0x01, b"next")
        assert device.received.get_nowait() == (0x01, b"a" * length + b"next")

    def test_in_transfers_keep_packet_boundaries(self, device):
        for data in (b"x" * 64, b"y" * 65, b"z", b""):
            device.send(data)
        got = [bytes(submit(device, 0x81, size=256).data) for _ in range(4)]
        assert got == [b"x" * 64, b"y" * 65, b"z", b""]
        waits = submit(device, 0x81, size=256)
        assert (waits.error, device.waiting) == (None, 1)
        device.send(b"w" * 64, ended=False)
        assert (waits.error, waits.data) == (None, b"w" * 64)
        device.send(b"w")
        assert (waits.error, waits.data) == (0, b"w" * 65)

    def test_a_full_buffer_ends_a_transfer_and_the_rest_comes_next(self, device):
        device.send(b"a" * 100)
        assert submit(device, 0x81, size=64).data == b"a" * 64
        assert submit(device, 0x81, size=64).data == b"a" * 36

    def test_a_buffer_that_is_no_multiple_overflows_and_the_packet_is_lost(self, device):
        device.send(b"a" * 64 + b"b" * 10)
        assert submit(device, 0x81, size=10).error == errno.EOVERFLOW
        assert submit(device, 0x81, size=64).data == b"b" * 10

    def test_a_halted_endpoint_stalls_until_it_is_cleared(self, device):
        waits = submit(device, 0x81, size=64)
        device.halt(0x81)
        assert waits.error == errno.EPIPE
        device.send(b"later")
        assert submit(device, 0x81, size=64).error == errno.EPIPE
        assert device.control(0x82, 0, 0, 0x81, 2) == b"\1\0"
        device.clear_halt(0x81)
        assert submit(device, 0x81, size=64).data == b"later"

    def test_a_deaf_device_takes_whole_packets_only(self, device):
        device.accept(100)
        write = submit(device, 0x01, b"a" * 200)
        assert (write.error, write.actual) == (None, 64)
        device.accept(64)
        assert (write.error, write.actual) == (None, 128)
        assert device.cancel(write)
        assert (write.error, write.actual) == (errno.ECANCELED, 128)
        assert not device.cancel(write)
        device.accept(None)
        submit(device, 0x01, b"b")
        assert device.received.get_nowait() == (0x01, b"a" * 128 + b"b")

    def test_a_replug_gives_a_new_address_and_kills_what_was_open(self, device):
        bus = UsbBus()
        other = UsbDevice(serial="other")
        bus.plug(other)
        waits, before = submit(other, 0x81, size=64), other.address
        attachment = other.attachment
        bus.replug(other)
        assert waits.error == errno.ENODEV
        assert (other.address, other.port) == (before + 1, 1)
        assert (other.claims, other.waiting) == ({}, 0)
        with refused(errno.ENODEV):
            other.check(attachment)
        for _ in range(300):
            bus.replug(other)
            assert 2 <= other.address <= 127
        with pytest.raises(ValueError, match="plugged in already"):
            bus.plug(other)

    def test_claims_and_kernel_drivers(self, device):
        device.claim(0, "us")
        device.claim(0, "us")
        with refused(errno.EBUSY):
            device.claim(0, "them")
        with refused(errno.EBUSY):
            device.configure(1)
        with refused(errno.ENOENT):
            device.claim(7, "us")
        device.release(0, "us")
        with refused(errno.EINVAL):
            device.release(0, "us")
        device.configure(1)
        with refused(errno.ENODATA):
            device.detach(0)

    def test_hid_descriptors_and_reports(self):
        device = UsbDevice(configurations=(HID,))
        UsbBus(device)
        report = HID.interfaces[0].report
        assert device.uri == "usbhid:1209:0001:SF0001"
        assert device.control(0x81, 6, 0x2200, 0, 4096) == report
        assert device.control(0x81, 6, 0x2100, 0, 9)[-2:] == len(report).to_bytes(2, "little")
        submit(device, 0x01, bytes(64))
        assert device.received.get_nowait() == (0x01, bytes(64)), "a report needs no zero-length packet"
        device.control(0x21, 9, 0x0200, 0, b"report")
        assert device.received.get_nowait() == (0, b"report")
        device.send(bytes(64))
        assert submit(device, 0x81, size=64).data == bytes(64)
        assert submit(device, 0x81, size=64).error is None
        with pytest.raises(Stalled):
            device.control(0x81, 6, 0x2300, 0, 9)

    def test_alternate_settings_decide_which_endpoints_are_there(self):
        silent = Interface((), 0, 0)
        device = UsbDevice(configurations=(Configuration((silent, Interface(alternate=1))),))
        UsbBus(device)
        with refused(errno.ENOENT):
            submit(device, 0x01, b"x")
        device.claim(0, "us")
        device.set_alternate(0, 1)
        assert submit(device, 0x01, b"x").error == 0
        with refused(errno.EINVAL):
            device.set_alternate(0, 2)
        device.let_go("us")
        assert device.alternates == {}


@pytest.fixture
def peer():
    made = SimUsbPeer()
    yield made
    made.close()


@pytest.fixture
def backend(peer):
    made = peer.backend()
    yield made
    made.finalize()


@pytest.fixture
def found(peer, backend):
    device = usb.core.find(idVendor=0x1209, backend=backend)
    yield device
    usb.util.dispose_resources(device)


def usb_error(number, kind=usb.core.USBError):
    """A context that wants this errno and class."""

    class Wanted:
        def __enter__(self):
            return self

        def __exit__(self, _, error, __):
            assert type(error) is kind, repr(error)
            assert error.errno == number
            self.error = error
            return True

    return Wanted()


class TestUnderPyusb:
    def test_finding_strings_and_descriptors(self, peer, found):
        assert (found.manufacturer, found.product, found.serial_number) == (
            "Cutcard",
            "Cutcard Shuffler",
            "SF0001",
        )
        assert (found.bus, found.address, found.port_numbers, found.speed) == (1, 2, (1,), 2)
        config = found.get_active_configuration()
        interface = config[(0, 0)]
        assert (config.bConfigurationValue, interface.bInterfaceClass) == (1, 0xFF)
        assert [(e.bEndpointAddress, e.wMaxPacketSize, e.bmAttributes) for e in interface] == [
            (0x01, 64, 2),
            (0x81, 64, 2),
        ]
        assert "Cutcard Shuffler" in str(found)
        assert peer.bus.calls["set_configuration"] == 0

    def test_two_configurations_and_several_interfaces(self):
        two = Configuration((Interface(), Interface((Endpoint(0x82, 512),), 1)), value=2)
        bus = UsbBus(UsbDevice(configurations=(Configuration(), two), speed=480))
        backend = SimBackend(bus)
        found = usb.core.find(backend=backend)
        assert [[i.bInterfaceNumber for i in config] for config in found] == [[0], [0, 1]]
        found.set_configuration(2)
        bus_device = next(iter(bus))
        assert bus_device.configuration == 2
        bus_device.send(b"big" * 200, 0x82)
        assert len(found.read(0x82, 1024)) == 600
        usb.util.dispose_resources(found)
        assert bus.left() == {}
        backend.finalize()

    def test_bytes_both_ways_blocking(self, peer, found):
        peer.device.heard = lambda endpoint, data: peer.device.send(data)
        assert found.write(0x01, b"hello") == 5
        assert found.read(0x81, 64).tobytes() == b"hello"
        every = bytes(range(256)) * 40
        found.write(0x01, every)
        found.write(0x01, b"")
        assert found.read(0x81, 16384).tobytes() == every
        with usb_error(errno.ETIMEDOUT, usb.core.USBTimeoutError):
            found.read(0x81, 64, timeout=20)

    def test_a_stall_is_cleared_once(self, peer, found):
        peer.device.halt(0x01)
        with usb_error(errno.EPIPE) as caught:
            found.write(0x01, b"x")
        assert caught.error.backend_error_code == -9
        found.clear_halt(0x01)
        assert found.write(0x01, b"x") == 1
        assert peer.bus.calls["clear_halt"] == 1
        with usb_error(errno.EPIPE):
            found.ctrl_transfer(0xC0, 1, 0, 0, 8)

    def test_a_partial_write_tells_its_count_and_nothing_is_left(self, peer, found):
        peer.device.accept(128)
        assert found.write(0x01, bytes(1000), timeout=20) == 128
        with usb_error(errno.ETIMEDOUT, usb.core.USBTimeoutError):
            found.write(0x01, bytes(1000), timeout=20)

    def test_vendor_requests(self, peer, found):
        asked = []

        def vendor(*request):
            asked.append(request)
            return b"version 7"

        peer.device.vendor = vendor
        assert found.ctrl_transfer(0xC0, 1, 2, 3, 8).tobytes() == b"version "
        assert found.ctrl_transfer(0x40, 1, 2, 3, b"abc") == 3
        assert asked == [(0xC0, 1, 2, 3, b""), (0x40, 1, 2, 3, b"abc")]

    def test_busy_by_another_program_or_a_kernel_driver(self, peer, found):
        peer.device.claim(0, "another program")
        with usb_error(errno.EBUSY):
            usb.util.claim_interface(found, 0)
        with usb_error(errno.EBUSY):
            found.set_configuration()
        peer.device.let_go("another program")
        peer.device.drivers = {0: "cdc_acm"}
        peer.bus.replug(peer.device)
        with usb_error(errno.ENODEV):
            found.write(0x01, b"x")
        again = usb.core.find(backend=found.backend)
        assert again.address == found.address + 1
        assert again.is_kernel_driver_active(0)
        with usb_error(errno.EBUSY):
            again.write(0x01, b"x")
        again.detach_kernel_driver(0)
        assert peer.bus.left() == {"handles": 1 + 1, "detached drivers": 1}
        again.write(0x01, b"x")
        with usb_error(errno.EBUSY):
            again.attach_kernel_driver(0)
        usb.util.release_interface(again, 0)
        again.attach_kernel_driver(0)
        assert again.is_kernel_driver_active(0)
        assert not again.is_kernel_driver_active(5)
        usb.util.dispose_resources(again)

    @pytest.mark.parametrize("why", ["no languages", "no rights"])
    def test_no_langid(self, peer, found, why):
        if why == "no languages":
            peer.device.languages = ()
        else:
            peer.device.denied = True
        with pytest.raises(ValueError, match="no langid"):
            _ = found.serial_number
        if why == "no rights":
            with usb_error(errno.EACCES):
                found.get_active_configuration()

    def test_closing_gives_everything_back(self, peer, found):
        found.write(0x01, b"x")
        assert peer.bus.left() == {"handles": 1, "claims": 1}
        usb.util.dispose_resources(found)
        assert peer.bus.left() == {}
        with usb_error(errno.EINVAL):
            found.backend.release_interface(found.backend.open_device(found._ctx.dev), 0)
        for handle in list(peer.bus.handles):
            found.backend.close_device(handle)

    def test_closing_ends_a_read_that_another_thread_blocks_in(self, peer, found):
        entered = threading.Event()
        peer.plan.add("in", entered.set)
        seen = queue.SimpleQueue()

        def read():
            try:
                found.read(0x81, 64, timeout=0)
            except usb.core.USBError as error:
                seen.put(error)

        thread = threading.Thread(target=read)
        thread.start()
        entered.wait(5)
        while not peer.device.waiting:
            threading.Event().wait(0.001)
        usb.util.dispose_resources(found)
        assert seen.get(timeout=5).errno == errno.ECANCELED
        thread.join()


class TestWithoutBlocking:
    @pytest.fixture
    def handle(self, backend):
        opened = backend.open_device(next(backend.enumerate_devices()))
        yield opened
        backend.close_device(opened)

    @staticmethod
    def ready(backend, seconds):
        poll = select.poll()
        for fd, mask in backend.pollfds():
            poll.register(fd, mask)
        return bool(poll.poll(seconds * 1000))

    def test_a_transfer_is_done_only_after_its_events_were_handled(self, peer, backend, handle):
        transfer = backend.submit_in(handle, 0x81, False, 128)
        assert not self.ready(backend, 0)
        peer.send(b"hello")
        assert not transfer.done
        with pytest.raises(RuntimeError, match="not done"):
            transfer.result()
        assert self.ready(backend, 1)
        backend.handle_events()
        assert not self.ready(backend, 0)
        assert (transfer.done, transfer.result()) == (True, b"hello")
        assert peer.bus.left() == {"handles": 1, "claims": 1, "transfers": 1}
        transfer.close()
        transfer.close()
        assert peer.bus.left() == {"handles": 1, "claims": 1}

    def test_a_zero_length_packet_is_an_empty_result(self, peer, backend, handle):
        transfer = backend.submit_in(handle, 0x81, False, 64)
        peer.send(b"")
        backend.handle_events()
        assert transfer.result() == b""
        transfer.close()

    def test_what_comes_while_nobody_asks_waits_in_the_device(self, peer, backend, handle):
        for number in range(3):
            peer.send(b"%d" % number)
        got = []
        for _ in range(3):
            transfer = backend.submit_in(handle, 0x81, False, 64)
            backend.handle_events()
            got.append(transfer.result())
            transfer.close()
        assert got == [b"0", b"1", b"2"]

    def test_an_unplugged_device_ends_the_transfer_and_wakes_the_poll(self, peer, backend, handle):
        transfer = backend.submit_in(handle, 0x81, False, 64)
        puller = threading.Thread(target=peer.cut)
        puller.start()
        assert self.ready(backend, 5)
        puller.join()
        backend.handle_events()
        with usb_error(errno.ENODEV):
            transfer.result()
        transfer.close()
        with usb_error(errno.ENODEV):
            backend.submit_in(handle, 0x81, False, 64)

    def test_a_closed_transfer_takes_no_data_with_it(self, peer, backend, handle):
        backend.submit_in(handle, 0x81, False, 64).close()
        peer.send(b"kept")
        transfer = backend.submit_in(handle, 0x81, False, 64)
        backend.handle_events()
        assert transfer.result() == b"kept"
        transfer.close()

    def test_an_interface_that_another_handle_claimed_is_busy(self, peer, backend, handle):
        other = backend.open_device(next(backend.enumerate_devices()))
        backend.claim_interface(other, 0)
        with usb_error(errno.EBUSY):
            backend.submit_in(handle, 0x81, False, 64)
        backend.close_device(other)
        backend.submit_in(handle, 0x81, False, 64).close()


ERRORS = [
    (faults.STALL, errno.EPIPE, usb.core.USBError),
    (faults.OVERFLOW, 75, usb.core.USBError),
    (faults.GONE, errno.ENODEV, usb.core.USBError),
    (faults.BUSY, 16, usb.core.USBError),
    (faults.DENIED, errno.EACCES, usb.core.USBError),
    (faults.IO, errno.EIO, usb.core.USBError),
    (faults.NAMELESS, None, usb.core.USBError),
    *[(fault, fault.number, usb.core.USBTimeoutError) for fault in faults.TIMEOUTS],
]


class TestFaultPlan:
    @pytest.mark.parametrize(("fault", "number", "kind"), ERRORS)
    @pytest.mark.parametrize("call", ["bulk_write", "in", "claim_interface", "ctrl_transfer", "open_device"])
    def test_each_call_can_be_struck_once(self, peer, found, call, fault, number, kind):
        peer.device.vendor = lambda *_: b""
        does = {
            "bulk_write": lambda: found.write(0x01, b"x"),
            "in": lambda: found.read(0x81, 64),
            "claim_interface": lambda: usb.util.claim_interface(found, 0),
            "ctrl_transfer": lambda: found.ctrl_transfer(0xC0, 1, 0, 0, 1),
            "open_device": lambda: found.is_kernel_driver_active(0),
        }[call]
        peer.send(b"kept")
        peer.plan.add(call, fault)
        with usb_error(number, kind):
            does()
        does()
        assert peer.plan.struck == [(call, fault)]

    def test_timeouts_carry_the_four_known_numbers(self):
        assert [fault.number for fault in faults.TIMEOUTS] == [110, 60, 10060, None]

    def test_short_writes_empty_reads_and_not_implemented(self, peer, found, backend):
        peer.plan.add("bulk_write", None, faults.Fault("short", 2))
        assert [found.write(0x01, b"hello"), found.write(0x01, b"hello")] == [5, 2]
        assert peer.receive(7) == b"hellohe"
        peer.plan.add("in", faults.EMPTY)
        peer.send(b"after")
        assert found.read(0x81, 64) == array.array("B")
        assert found.read(0x81, 64).tobytes() == b"after"
        peer.plan.add("is_kernel_driver_active", faults.UNIMPLEMENTED)
        with pytest.raises(NotImplementedError):
            found.is_kernel_driver_active(0)

    def test_an_asynchronous_transfer_ends_as_planned(self, peer, backend):
        handle = backend.open_device(next(backend.enumerate_devices()))
        for fault, number, kind in ERRORS:
            peer.plan.add("in", fault)
            transfer = backend.submit_in(handle, 0x81, False, 64)
            backend.handle_events()
            assert transfer.done
            with usb_error(number, kind):
                transfer.result()
            transfer.close()
        peer.plan.add("submit_in", faults.GONE)
        with usb_error(errno.ENODEV):
            backend.submit_in(handle, 0x81, False, 64)
        backend.close_device(handle)

    def test_the_plug_is_pulled_at_a_planned_moment(self, peer, found):
        peer.plan.add("bulk_write", None, peer.cut)
        assert found.write(0x01, b"x") == 1
        with usb_error(errno.ENODEV):
            found.write(0x01, b"x")

    def test_a_seed_gives_the_same_faults(self):
        def run(seed):
            plan = faults.FaultPlan(Random(seed), 0.2)
            return [plan.pop(call) for _ in range(100) for call in ("bulk_write", "in", "claim_interface")]

        assert run(1) == run(1) != run(2)
        assert 20 < sum(fault is not None for fault in run(1)) < 70


ECHO = bytes.fromhex("0a00001400004200a161647030303131323233336161626263636464")
ECHOED = bytes.fromhex("0b00001400004200a161727030303131323233336161626263636464")
"""Of docs/protocols/managed.md, section 6."""
RESET = bytes.fromhex("0a00000100004405a0")
RESET_ANSWER = bytes.fromhex("0b00000100004405a0")


def long_echo(total):
    """An echo request whose packet is `total` bytes long."""
    short = total < 269
    count = total - (13 if short else 14)
    body = b"\xa1\x61d" + (b"\x78" if short else b"\x79") + count.to_bytes(1 if short else 2, "big")
    body += b"x" * count
    return b"\x0a\0" + len(body).to_bytes(2, "big") + b"\0\0\x01\0" + body


class TestManagedDevice:
    @pytest.fixture
    def host(self):
        made = UsbHost(ManagedShoe(Shoe(Random(1)), serial="SH0001", framing=PACKETS))
        yield made
        made.close()
        assert made.bus.left() == {}

    @pytest.fixture
    def opened(self, host):
        backend = SimBackend(host.bus)
        device = usb.core.find(idVendor=0x1209, idProduct=2, backend=backend)
        yield device
        usb.util.dispose_resources(device)
        backend.finalize()

    def test_one_packet_a_transfer(self, host, opened):
        assert (opened.product, opened.serial_number) == ("Cutcard Shoe", "SH0001")
        assert host.uri == "usb:1209:0002:SH0001"
        opened.write(0x01, ECHO)
        assert select.select(host.filenos(), [], [], 1)[0]
        host.pump(0.0)
        assert not select.select(host.filenos(), [], [], 0)[0]
        assert opened.read(0x81, 2048).tobytes() == ECHOED

    @pytest.mark.parametrize("length", [63, 64, 65, 128, 512])
    def test_i50_lengths_around_the_packet_size(self, host, opened, length):
        opened.write(0x01, long_echo(length))
        host.pump(0.0)
        if length % 64 == 0:
            with usb_error(errno.ETIMEDOUT, usb.core.USBTimeoutError):
                opened.read(0x81, 2048, timeout=5)
            opened.write(0x01, b"")
            host.pump(0.0)
        answer = opened.read(0x81, 2048).tobytes()
        assert (len(answer), answer[:2]) == (length, b"\x0b\0")

    def test_chatter_and_copies_are_transfers_of_their_own(self, host, opened):
        host.device.traps.set("chatter", value="hello")
        host.device.traps.set("duplicate_answer")
        opened.write(0x01, ECHO)
        host.pump(0.0)
        got = [opened.read(0x81, 2048).tobytes() for _ in range(4)]
        assert got == [b"hello\r\n", ECHOED] * 2

    def test_a_reset_takes_it_off_the_bus_and_back_under_a_new_address(self, host, opened):
        opened.write(0x01, RESET)
        host.pump(1.0)
        assert opened.read(0x81, 64).tobytes() == RESET_ANSWER
        host.pump(1.3)
        assert host.usb.gone
        with usb_error(errno.ENODEV):
            opened.write(0x01, ECHO)
        host.pump(1.6)
        assert (host.usb.gone, host.usb.address, host.device.machine.boot) == (False, 3, 2)
        host.device.machine.power_cut()
        host.pump(1.7)
        assert (host.usb.address, host.device.machine.boot) == (4, 3)

    def test_the_plug_may_be_pulled_and_put_back(self, host, opened):
        host.unplug()
        host.pump(0.0)
        assert host.usb.gone
        host.replug()
        host.replug()
        assert (host.usb.gone, host.usb.address) == (False, 4)
        assert host.device.machine.boot == 1

    def test_a_shuffler_has_its_own_name(self):
        host = UsbHost(ManagedShuffler(BatchShuffler(Random(1)), serial="SF7", framing=PACKETS))
        assert (host.uri, host.usb.name) == ("usb:1209:0001:SF7", "Cutcard Shuffler")
        host.close()
        host.close()


def test_a_device_that_nobody_reads_keeps_a_bounded_queue(device):
    for _ in range(5000):
        device.send(bytes(100))
    assert 3000 < device.dropped < 4900
    for _ in range(5000 - device.dropped):
        assert len(submit(device, 0x81, size=2048).data) == 100


def test_five_hundred_replugs_leave_nothing():
    peer = SimHidPeer()
    backend = peer.backend()
    for _ in range(500):
        found = usb.core.find(idProduct=1, backend=backend)
        found.write(0x01, b"report")
        peer.bus.replug(peer.device)
        with usb_error(errno.ENODEV):
            found.write(0x01, b"report")
        usb.util.dispose_resources(found)
    assert peer.bus.calls["open_device"] == peer.bus.calls["close_device"] == 500
    peer.close()
    backend.finalize()
