"""Serial adapters and USB devices that only the system knows: `cutcard` as a program of its own finds them.

The real pyserial and libusb look through umockdev's preload.
"""

import contextlib
import json
import os
import subprocess
import sys

import pytest

from simulators.hosts.pty_host import PtyHost
from simulators.hosts.served import Served
from simulators.hosts.usb_bus import UsbBus
from simulators.hosts.usb_descriptors import Configuration, Interface
from simulators.hosts.usb_device import UsbDevice
from simulators.rig import sim
from tests.support.umockdev import Bed, needs_umockdev
from tests.support.usb import HID

pytestmark = needs_umockdev

STORAGE = Configuration((Interface(klass=8, subclass=6, protocol=80),))
CUTCARD = [sys.executable, "-c", "from controller.cli.app import main; main()"]


def ftdi(serial, name="FT232R USB UART"):
    return UsbDevice(0x0403, 0x6001, maker="FTDI", name=name, serial=serial)


class Desk:
    """A shoe behind a serial adapter, on a machine of which we decide what is plugged in."""

    def __init__(self, bed, shoe):
        self.bed, self.shoe, self.bus = bed, shoe, bed.bus

    def mount(self, device, name, port=None):
        """Plug in an adapter as /dev/NAME, with the shoe behind it; its link in /dev/serial/by-id."""
        link = self.bed.host.mount_tty(device, self.shoe.path, name)
        self.bus.plug(device, port)
        return link

    def cutcard(self, *args):
        return subprocess.run(
            [*CUTCARD, *args],
            env={**os.environ, **self.bed.environment},
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )

    def ports(self):
        done = self.cutcard("ports", "--json")
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    def first_event(self, uri):
        """The exit code, the first event's kind, and what was said beside it."""
        done = self.cutcard("monitor", uri, "--driver", "managed-shoe", "--count", "1", "--json")
        kinds = [json.loads(line)["kind"] for line in done.stdout.splitlines()]
        return done.returncode, kinds, done.stderr


@pytest.fixture
def desk():
    shoe = PtyHost(sim.make("managed-shoe", 0))
    with contextlib.closing(shoe), Bed(bus=UsbBus()) as bed, Served(shoe):
        yield Desk(bed, shoe)


def test_ports_lists_adapters_and_devices_under_names_that_last(desk):
    link = desk.mount(ftdi("FT0SHOE1"), "ttyUSB0")
    desk.bus.plug(UsbDevice(serial="SH0001"))
    desk.bus.plug(UsbDevice(0x0781, 0x5567, name="Cruzer", serial="STICK", configurations=(STORAGE,)))
    desk.bus.plug(UsbDevice(0x0C2E, 0x0B61, name="Barcode scanner", serial=None, configurations=(HID,)))
    found = desk.ports()
    assert found["notes"] == []
    keys = ("uri", "kind", "description", "driver", "held_by", "trouble", "place")
    assert [tuple(port[key] for key in keys) for port in found["ports"]] == [
        ("serial:0403:6001:FT0SHOE1", "serial", "FT232R USB UART", None, None, None, "1-1"),
        ("usb:1209:0001:SH0001", "usb", "Cutcard Shuffler", "managed-shuffler", None, None, "1-2"),
        ("usbhid:0c2e:0b61", "usbhid", "Barcode scanner", None, None, None, "1-4"),
        (None, "other", "Cruzer, storage", None, None, None, "1-3"),
    ]
    assert found["ports"][0]["links"] == ["/dev/ttyUSB0", link]
    assert link == "/dev/serial/by-id/usb-FTDI_FT232R_USB_UART_FT0SHOE1-if00-port0"


class Cut(Interface):
    """An interface whose descriptor says that it is one byte long."""

    def encode(self):
        return b"\x01" + super().encode()[1:]


def test_i44_a_device_with_a_broken_description_hides_no_other(desk):
    desk.mount(ftdi("FT0SHOE1"), "ttyUSB0")
    desk.bus.plug(
        UsbDevice(0x0BAD, 1, name="Broken", serial="BAD", configurations=(Configuration((Cut(),)),))
    )
    desk.bus.plug(UsbDevice(serial="SH0001"))
    found = desk.ports()
    assert found["notes"] == []
    assert [(p["uri"], p["usb"], bool(p["trouble"])) for p in found["ports"]] == [
        ("serial:0403:6001:FT0SHOE1", "0403:6001:FT0SHOE1", False),
        ("usb:1209:0001:SH0001", "1209:0001:SH0001", False),
        (None, "0bad:0001:BAD", True),
    ]
    assert "its description cannot be read in full" in found["ports"][2]["trouble"]


def test_nothing_plugged_in_is_no_failure(desk):
    found = desk.ports()
    assert found["ports"] == []
    assert "cable and power" in found["notes"][0]


def test_field_20_an_adapter_under_another_number_is_found_by_its_name_and_by_its_link(desk):
    adapter, other = ftdi("FT0SHOE1"), ftdi("FT0OTHER")
    link = desk.mount(adapter, "ttyUSB0")
    code, kinds, said = desk.first_event("serial:0403:6001:FT0SHOE1")
    assert (code, kinds) == (0, ["link_up"])
    assert "0403:6001:FT0SHOE1 -> /dev/ttyUSB0, 115200 bit/s" in said
    desk.bus.unplug(adapter)
    code, kinds, said = desk.first_event("serial:0403:6001:FT0SHOE1")
    assert (code, kinds) == (3, [])
    assert said.count("\n") == 1
    assert "serial adapter 0403:6001:FT0SHOE1 is not there" in said
    desk.mount(other, "ttyUSB0")
    assert desk.mount(adapter, "ttyUSB5", port=4) == link
    for uri in ("serial:0403:6001:FT0SHOE1", f"serial:{link}"):
        code, kinds, said = desk.first_event(uri)
        assert (code, kinds) == (0, ["link_up"])
        assert "-> /dev/ttyUSB5, 115200 bit/s" in said


def test_i10_who_holds_an_adapter_is_listed_and_named_to_the_next(desk):
    desk.mount(ftdi("FT0SHOE1"), "ttyUSB0")
    uri = "serial:0403:6001:FT0SHOE1"
    with subprocess.Popen(
        [*CUTCARD, "monitor", uri, "--driver", "managed-shoe"],
        env={**os.environ, **desk.bed.environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as first:
        try:
            assert first.stderr.readline().startswith("listening on")
            (port,) = desk.ports()["ports"]
            assert port["held_by"].startswith(f"process {first.pid} (")
            code, kinds, said = desk.first_event(uri)
            assert (code, kinds) == (3, [])
            assert f"0403:6001:FT0SHOE1 is held by process {first.pid} (" in said
            assert said.count("\n") == 1
        finally:
            first.kill()


def test_f04_two_adapters_with_one_serial_number_are_warned_of_and_neither_is_opened(desk):
    link = desk.mount(ftdi("FT0SHOE1"), "ttyUSB0")
    desk.mount(ftdi("FT0SHOE1", "UM232R"), "ttyUSB1")
    places = "(/dev/ttyUSB0 at 1-1 and /dev/ttyUSB1 at 1-2)"
    ports = desk.ports()["ports"]
    assert [port["uri"] for port in ports] == ["serial:/dev/ttyUSB0", "serial:/dev/ttyUSB1"]
    assert all(f"say they are FT0SHOE1 {places}: nobody can tell them apart" in p["trouble"] for p in ports)
    requests = desk.shoe.device.requests
    for uri in ("serial:0403:6001:FT0SHOE1", f"serial:{link}"):
        code, kinds, said = desk.first_event(uri)
        assert (code, kinds) == (3, [])
        assert places in said
        assert said.count("\n") == 1
    assert desk.shoe.device.requests == requests, "something was written"
