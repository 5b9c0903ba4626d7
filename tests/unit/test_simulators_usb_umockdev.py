"""The simulated USB device under the real libusb (Debian's and the wheel's), through umockdev's preload."""

from __future__ import annotations

import errno
import os
import pty
import subprocess
import sys
import threading
import tty
from pathlib import Path

import pytest

from firmware_bridge import errors
from simulators.hosts import umockdev_host
from simulators.hosts.umockdev_host import PathTooLongError, UmockdevHost
from simulators.hosts.usb_bus import UsbBus
from simulators.hosts.usb_descriptors import Configuration, Endpoint, Interface
from simulators.hosts.usb_device import UsbDevice
from tests.support.umockdev import Bed, RemoteTransport, needs_umockdev, protocol_trouble
from tests.support.usb import HID

pytestmark = needs_umockdev


def test_the_protocol_of_the_preload_is_the_one_we_speak():
    """Fails alone when a newer umockdev speaks otherwise; all that need it are skipped then."""
    assert protocol_trouble() is None


@pytest.fixture
def device():
    return UsbDevice()


@pytest.fixture
def bed(device):
    with Bed(device) as made:
        yield made


@pytest.fixture(params=["system", "package"])
def client(bed, request):
    if request.param == "package":
        pytest.importorskip("libusb_package")
    return bed.client(request.param)


def test_the_real_libusb_finds_it_and_talks_to_it(bed, device, client):
    device.vendor = lambda kind, request, *_: b"version 7"
    device.heard = lambda endpoint, data: device.send(data)
    assert ("libusb_package" in client.get("usb.library")) == (client.library == "package")
    assert client.find() == [1, 2]
    assert client.get("usb.strings") == ["Cutcard", "Cutcard Shuffler", "SF0001", 2]
    assert client.get("usb.configuration") == 1
    assert client.get("usb.endpoints") == [[0, 0x01, 0x81]]
    client.get("usb.set_configuration")
    assert client.get("usb.control", 0xC0, 1, 2, 3, 7) == b"version".hex()
    assert client.get("usb.control", 0x40, 1, 2, 3, "aabb") == 2
    assert client.get("usb.write", 1, b"hello".hex()) == 5
    assert client.get("usb.read", 0x81, 64) == b"hello".hex()
    every = bytes(range(256)) * 40
    assert client.get("usb.write", 1, every.hex()) == len(every)
    assert client.get("usb.write", 1, "") == 0
    assert client.get("usb.read", 0x81, 16384) == every.hex()
    client.get("usb.dispose")
    assert bed.bus.left() == {}


def test_zero_length_packets_and_overflow(device, client):
    client.find()
    client.get("usb.write", 1, bytes(64).hex())
    assert device.received.empty()
    client.get("usb.write", 1, "")
    assert device.received.get(timeout=2) == (1, bytes(64))
    device.send(bytes(128))
    device.send(b"")
    assert client.get("usb.read", 0x81, 2048) == bytes(128).hex()
    assert client.get("usb.read", 0x81, 2048) == ""
    device.send(bytes(64))
    assert client.ask("usb.read", 0x81, 10)["errno"] == errno.EOVERFLOW


def test_stalls_are_errno_32_and_cleared(device, client):
    client.find()
    assert client.ask("usb.control", 0xC0, 1, 0, 0, 8)["errno"] == errno.EPIPE
    device.halt(0x81)
    assert client.ask("usb.read", 0x81, 64)["errno"] == errno.EPIPE
    device.send(b"later")
    client.get("usb.clear_halt", 0x81)
    assert client.get("usb.read", 0x81, 64) == b"later".hex()


def test_waiting_neither_spins_nor_overruns_its_time(bed, device, client):
    client.find()
    client.get("usb.write", 1, "00")
    bed.host.ioctls.clear()
    answer = client.ask("usb.read", 0x81, 64, 300)
    assert (answer["error"], answer["errno"]) == ("USBTimeoutError", errno.ETIMEDOUT)
    assert 0.3 <= answer["seconds"] < 1
    assert answer["cpu"] < 0.05
    assert bed.host.ioctls["submiturb"] == bed.host.ioctls["discardurb"] == 1
    assert bed.host.ioctls["reapurbndelay"] <= 4
    device.accept(128)
    answer = client.ask("usb.write", 1, bytes(1000).hex(), 50)
    assert answer["value"] == 128, "what had left counts"


def test_a_pending_read_ends_within_50_ms_of_the_unplugging(bed, device, client):
    took = []
    while not took or (min(took) > 0.05 and len(took) < 5):  # a busy machine gets another chance
        bed.until(lambda: client.find() is not None)
        client.get("usb.claim", 0)
        client.start("usb.read", 0x81, 64, 10_000)
        bed.until(lambda: device.waiting)
        start = bed.now()
        bed.bus.unplug(device)
        answer = client.result()
        took.append(bed.now() - start)
        assert answer["errno"] == errno.ENODEV
        bed.host.ioctls.clear()
        assert client.ask("usb.write", 1, "00")["errno"] == errno.ENODEV
        assert client.ask("usb.control", 0x80, 6, 0x100, 0, 18)["errno"] == errno.ENODEV
        assert sum(bed.host.ioctls.values()) < 20, "it spins on the dead handle"
        client.get("usb.dispose")
        bed.until(lambda: not bed.bus.left())
        bed.bus.plug(device)
    assert min(took) <= 0.05


def test_a_replugged_device_has_a_new_address_and_the_old_handle_stays_dead(bed, device, client):
    assert client.find() == [1, 2]
    client.get("usb.write", 1, "00")
    bed.bus.replug(device)
    assert client.ask("usb.write", 1, "00")["errno"] == errno.ENODEV
    client.get("usb.dispose")
    bed.until(lambda: client.find() == [1, 3])
    assert client.get("usb.write", 1, "00") == 1


def test_fifty_replugs_under_an_open_program_leave_no_handle(bed, device, client):
    client.find()
    theirs, ours = client.handles, len(list(Path("/proc/self/fd").iterdir()))
    for number in range(50):
        bed.until(lambda wanted=[1, 2 + number]: client.find() == wanted)
        assert client.get("usb.write", 1, "00") == 1
        bed.bus.replug(device)
        client.get("usb.dispose")
    bed.until(lambda: not bed.host.clients)
    assert client.handles == theirs
    assert len(list(Path("/proc/self/fd").iterdir())) == ours


def test_a_kernel_driver_is_taken_off_and_put_back(bed, device, client):
    bed.bus.unplug(device)
    device.drivers = {0: "cdc_acm"}
    bed.bus.plug(device)
    bed.until(lambda: client.find() is not None)
    assert client.get("usb.is_kernel_driver_active", 0) is True
    assert client.ask("usb.claim", 0)["errno"] == errno.EBUSY
    assert client.ask("usb.set_configuration")["errno"] == errno.EBUSY
    client.get("usb.detach_kernel_driver", 0)
    assert client.get("usb.is_kernel_driver_active", 0) is False
    assert client.get("usb.write", 1, "00") == 1
    client.get("usb.release", 0)
    client.get("usb.attach_kernel_driver", 0)
    assert client.get("usb.is_kernel_driver_active", 0) is True
    assert client.get("usb.is_kernel_driver_active", 5) is False
    assert client.ask("usb.claim", 5)["errno"] == errno.ENOENT


def test_an_interface_belongs_to_one_program_at_a_time(bed, device, client):
    other = bed.client()
    for program in (client, other):
        program.find()
    client.get("usb.claim", 0)
    assert other.ask("usb.claim", 0)["errno"] == errno.EBUSY
    client.close()
    bed.until(lambda: not device.claims)
    other.get("usb.claim", 0)


def test_configurations_interfaces_and_hid_reports(client, bed):
    two = Configuration((Interface(), Interface((Endpoint(0x82, 512),), 1)), value=2)
    double = UsbDevice(product=7, serial=None, configurations=(Configuration(), two), speed=480)
    reader = UsbDevice(0x1D50, 0x0003, configurations=(HID,))
    for device in (double, reader):
        bed.bus.plug(device)
    bed.until(lambda: client.find(0x1D50) == [1, 4])
    assert client.get("usb.all") == [["1209:0001", 1], ["1209:0007", 2], ["1d50:0003", 3]]
    client.find(0x1D50)
    assert client.get("usb.endpoints") == [[0, 0x81, 0x01]]
    report = HID.interfaces[0].report
    assert client.get("usb.control", 0x81, 6, 0x2200, 0, 255) == report.hex()
    reader.send(bytes(range(64)))
    assert client.get("usb.read", 0x81, 64) == bytes(range(64)).hex()
    client.get("usb.write", 1, bytes(64).hex())
    assert reader.received.get(timeout=2) == (1, bytes(64))


def test_the_products_transport_over_the_real_libusb(bed, device, client):
    transport = RemoteTransport(client, device.uri)
    transport.open()
    device.send(b"event")
    assert transport.read(5) == b"event"
    transport.write(bytes(128))
    assert device.received.get(timeout=2) == (1, bytes(128))
    bed.bus.unplug(device)
    with pytest.raises(errors.LinkLost):
        transport.read(5)
    transport.dispose()
    bed.until(lambda: not bed.bus.left())


def test_a_program_that_closes_late_is_waited_for_when_the_host_ends(bed, device):
    client = bed.client()
    client.find()
    client.get("usb.claim", 0)
    client.start("usb.read", 0x81, 64, 10_000)
    bed.until(lambda: device.waiting)
    closing = threading.Thread(target=bed.end_host)
    closing.start()
    assert client.result()["errno"] == errno.ENODEV
    client.get("usb.dispose")
    closing.join()
    assert client.process.poll() is None


class TestSerialAdapters:
    @pytest.fixture
    def line(self):
        master, slave = pty.openpty()
        tty.setraw(slave)
        yield master, os.ttyname(slave)
        os.close(master)
        os.close(slave)

    @pytest.fixture
    def adapter(self):
        made = UsbDevice(0x0403, 0x6001, maker="FTDI", name="Shoe reader UART", serial="FT0SHOE1")
        made.drivers = {0: "ftdi_sio"}
        return made

    def test_pyserial_finds_it_with_its_names_and_talks_to_the_pty(self, line, adapter):
        master, path = line
        with Bed() as bed:
            stable = bed.host.mount_tty(adapter, path)
            bed.bus.plug(adapter)
            client = bed.client()
            assert client.get("ports.all") == [
                {
                    "device": "/dev/ttyUSB0",
                    "vid": 0x0403,
                    "pid": 0x6001,
                    "serial_number": "FT0SHOE1",
                    "location": "1-1",
                    "manufacturer": "FTDI",
                    "product": "Shoe reader UART",
                }
            ]
            assert stable == "/dev/serial/by-id/usb-FTDI_Shoe_reader_UART_FT0SHOE1-if00-port0"
            assert client.get("ports.real", stable) == "/dev/ttyUSB0"
            assert client.get("usb.all") == [["0403:6001", 1]]
            client.find(0x0403)
            assert client.get("usb.is_kernel_driver_active", 0) is True
            transport = RemoteTransport(client, f"serial:{stable}?baud=4800")
            transport.open()
            os.write(master, b"hello")
            assert transport.read(5) == b"hello"
            transport.write(b"answer")
            assert os.read(master, 10) == b"answer"
            transport.dispose()
            bed.bus.unplug(adapter)
            assert client.get("ports.all") == []
            with pytest.raises(errors.Absent):
                RemoteTransport(client, f"serial:{stable}").open()


class TestDirectory:
    def test_a_name_that_is_too_long_for_its_sockets_is_told(self, tmp_path):
        with pytest.raises(PathTooLongError, match=r"bytes long and may be 8\d: the sockets in it"):
            UmockdevHost(tmp_path / ("x" * 90), UsbBus())
        assert list(tmp_path.iterdir()) == []

    def test_other_files_are_left_alone(self, tmp_path):
        (tmp_path / "precious").write_text("x")
        with pytest.raises(FileExistsError, match="holds other files"):
            UmockdevHost(tmp_path, UsbBus())
        assert [entry.name for entry in tmp_path.iterdir()] == ["precious"]

    def test_one_host_too_many_is_told_and_leaves_the_others_alone(self, tmp_path):
        hosts = [UmockdevHost(tmp_path / "d", UsbBus()) for _ in range(9)]
        with pytest.raises(FileExistsError, match="9 simulated buses already"):
            UmockdevHost(tmp_path / "d", UsbBus())
        for host in hosts:
            assert (tmp_path / "d/ioctl").is_dir()
            host.close()
        assert list(tmp_path.rglob("*")) == []

    def test_an_empty_directory_of_its_users_stays(self, tmp_path):
        host = UmockdevHost(tmp_path, UsbBus(UsbDevice()))
        assert (tmp_path / "dev/bus/usb/001/002").is_fifo()
        host.close()
        assert list(tmp_path.iterdir()) == []

    def test_two_hosts_share_a_directory_and_each_takes_its_own_away(self, tmp_path):
        first, second = (UmockdevHost(tmp_path / "d", UsbBus(UsbDevice(serial=name))) for name in "ab")
        assert [first.bus.number, second.bus.number] == [1, 2]
        devices = tmp_path / "d/sys/bus/usb/devices"
        assert sorted(entry.name for entry in devices.iterdir()) == ["1-1", "2-1"]
        first.close()
        assert [entry.name for entry in devices.iterdir()] == ["2-1"]
        assert all((tmp_path / "d" / name).is_dir() for name in umockdev_host.tree.COMMON)
        second.close()
        second.close()
        assert list(tmp_path.rglob("*")) == []

    def test_hosts_that_leave_at_the_same_time_leave_nothing(self, tmp_path, monkeypatch):
        first, last = (UmockdevHost(tmp_path / "d", UsbBus(UsbDevice(serial=name))) for name in "ab")
        meanwhile, remove = threading.Thread(target=last.close), umockdev_host.tree.Files.remove

        def half_way(files, *spared):
            if spared:  # the first one saw that it is not the last
                monkeypatch.undo()
                meanwhile.start()
                meanwhile.join(0.2)  # it has to wait until the first one has left whole
            remove(files, *spared)

        monkeypatch.setattr(umockdev_host.tree.Files, "remove", half_way)
        first.close()
        meanwhile.join()
        assert list(tmp_path.rglob("*")) == []

    def test_what_a_killed_host_left_is_taken_over(self, tmp_path):
        code = (
            "import os, sys; from simulators.hosts.umockdev_host import UmockdevHost\n"
            "from simulators.hosts.usb_bus import UsbBus; from simulators.hosts.usb_device import UsbDevice\n"
            "UmockdevHost(sys.argv[1], UsbBus(UsbDevice(), UsbDevice(serial='x'))); os._exit(0)"
        )
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "d")], check=True, timeout=20)
        assert (tmp_path / "d/sys/bus/usb/devices/1-2").is_symlink()
        host = UmockdevHost(tmp_path / "d", UsbBus(UsbDevice()))
        assert host.bus.number == 1
        assert [entry.name for entry in (tmp_path / "d/sys/bus/usb/devices").iterdir()] == ["1-1"]
        host.close()
        assert list(tmp_path.rglob("*")) == []


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(umockdev_host, "PRELOAD", "libnothing.so")
    assert "umockdev" in umockdev_host.missing()
