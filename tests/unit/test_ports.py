"""`cutcard ports`: what is plugged in, under names that last, and what stands in the way of using it."""

import errno
import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from serial.tools import list_ports
from typer.testing import CliRunner
from usb.core import USBError

from controller.cli.app import app
from devices import registry
from firmware_bridge.errors import Unsupported
from firmware_bridge.transports import discover, libusb, locks, parse_uri, serial_find
from firmware_bridge.transports.discover import Plugged
from simulators.hosts.usb_backend import SimBackend
from simulators.hosts.usb_bus import UsbBus
from simulators.hosts.usb_descriptors import Configuration, Endpoint, Interface, hid
from simulators.hosts.usb_device import UsbDevice
from tests.support.adapters import adapter, plug
from tests.support.peers import PtyPeer
from tests.support.usb import HID, REPORT

STORAGE = Configuration((Interface(klass=8, subclass=6, protocol=80),))
KEYBOARD = Configuration((hid(REPORT, Endpoint(0x81, 8, "interrupt")),))


BROKEN = [USBError("Input/Output Error", -1, errno.EIO), NotImplementedError(), ValueError("no such index")]


def fail_at(monkeypatch, device, error, configuration=0):
    """A back end that cannot read what one device says of itself."""
    real = SimBackend.get_configuration_descriptor

    def descriptor(self, found, number):
        if found.device is device and number == configuration:
            raise error
        return real(self, found, number)

    monkeypatch.setattr(SimBackend, "get_configuration_descriptor", descriptor)


@pytest.fixture
def bus(monkeypatch):
    """A USB bus that is empty at first, and no serial port."""
    bus = UsbBus()
    monkeypatch.setattr(libusb, "make_backend", lambda: SimBackend(bus))
    plug(monkeypatch)
    yield bus
    assert bus.left() == {}


def listed(*args):
    """The command's JSON."""
    done = CliRunner().invoke(app, ["ports", "--json", *args])
    assert done.exit_code == 0, done
    assert len(done.stdout.splitlines()) == 1
    return json.loads(done.stdout)


def shown():
    done = CliRunner().invoke(app, ["ports"])
    assert done.exit_code == 0, done
    return done.stdout


class TestSerial:
    def test_a_serial_adapter_by_its_name_with_all_its_paths(self, monkeypatch, bus, tmp_path):
        peer = PtyPeer()
        monkeypatch.setattr(serial_find, "BY_ID", tmp_path)
        (tmp_path / "usb-FTDI_FT0SHOE1-if00-port0").symlink_to(peer.path)
        plug(monkeypatch, adapter(peer.path))
        found = listed()
        peer.close()
        assert found == {
            "ports": [
                {
                    "uri": "serial:0403:6001:FT0SHOE1",
                    "kind": "serial",
                    "description": "Shoe reader UART",
                    "driver": None,
                    "held_by": None,
                    "trouble": None,
                    "usb": "0403:6001:FT0SHOE1",
                    "place": "1-2",
                    "links": [peer.path, f"{tmp_path}/usb-FTDI_FT0SHOE1-if00-port0"],
                }
            ],
            "notes": [],
        }

    def test_f04_two_with_one_serial_number_are_told_apart_by_their_sockets(self, monkeypatch, bus, tmp_path):
        first, second = PtyPeer(), PtyPeer()
        for directory, name, peer in (
            ("by-id", "usb-FTDI_FT0SHOE1", second),
            ("by-path", "pci-usb-0:2", first),
            ("by-path", "pci-usb-0:3", second),
        ):
            (tmp_path / directory).mkdir(exist_ok=True)
            (tmp_path / directory / name).symlink_to(peer.path)
        monkeypatch.setattr(serial_find, "BY_ID", tmp_path / "by-id")
        monkeypatch.setattr(serial_find, "BY_PATH", tmp_path / "by-path")
        plug(monkeypatch, adapter(first.path), adapter(second.path, place="1-3"), adapter("/dev/null", "B"))
        ports = listed()["ports"]
        first.close()
        second.close()
        paths = sorted([first.path, second.path])
        of_path = {first.path: "0:2", second.path: "0:3"}
        assert [p["uri"] for p in ports] == [
            "serial:0403:6001:B",
            *(f"serial:{tmp_path}/by-path/pci-usb-{of_path[path]}" for path in paths),
        ]
        troubles = [p["trouble"] for p in ports]
        assert troubles[0] is None
        assert troubles[1] == troubles[2]
        assert f"say they are FT0SHOE1 ({first.path} at 1-2 and {second.path} at 1-3)" in troubles[1]

    @pytest.mark.parametrize("serial", [None, "FT4"])
    def test_the_ports_of_one_adapter_are_told_apart_by_their_links(self, monkeypatch, bus, tmp_path, serial):
        peers = PtyPeer(), PtyPeer()
        monkeypatch.setattr(serial_find, "BY_ID", tmp_path)
        for number, peer in enumerate(peers):
            (tmp_path / f"usb-FTDI-if0{number}").symlink_to(peer.path)
        plug(monkeypatch, *(adapter(p.path, serial, f"1-2:1.{n}") for n, p in enumerate(peers)))
        ports = listed()["ports"]
        for peer in peers:
            peer.close()
        assert sorted(p["uri"] for p in ports) == [f"serial:{tmp_path}/usb-FTDI-if0{n}" for n in (0, 1)]
        assert [p["trouble"] for p in ports] == [None, None]

    def test_odd_characters_of_a_serial_number_make_a_uri_that_can_be_used(self, monkeypatch, bus):
        plug(monkeypatch, adapter("/dev/null", "A?b c/é"))
        (port,) = listed()["ports"]
        assert port["uri"] == "serial:0403:6001:A%3Fb%20c%2F%C3%A9"
        assert parse_uri(port["uri"]).usb.serial == "A?b c/é"

    def test_our_devices_as_serial_ports_have_their_driver(self, monkeypatch, bus):
        ids = [(0x1209, 1), (0x1209, 2), (0x1209, 3), (0x1209, 9)]
        plug(monkeypatch, *(adapter(f"/dev/tty{n}", f"S{n}", vid=v, pid=n) for v, n in ids))
        drivers = ["managed-shuffler", "managed-shoe", "hole-card-reader", None]
        assert [p["driver"] for p in listed()["ports"]] == drivers

    def test_who_holds_it(self, monkeypatch, bus):
        monkeypatch.setattr(locks, "held_by", lambda device: locks.Holder(4242, "picocom"))
        plug(monkeypatch, adapter("/dev/null"))
        assert listed()["ports"][0]["held_by"] == "process 4242 (picocom)"

    def test_field_20_i44_a_port_without_rights_says_what_to_do_and_hides_no_other(self, monkeypatch, bus):
        real = os.access
        monkeypatch.setattr(os, "access", lambda path, mode: path != "/dev/zero" and real(path, mode))
        plug(monkeypatch, adapter("/dev/null", "A"), adapter("/dev/zero", "B"))
        first, second = listed()["ports"]
        assert first["trouble"] is None
        assert second["trouble"].startswith(
            "this user may not open it: its group is root and its mode 666, so joining a group does not help"
        )

    def test_a_vanishing_adapter_is_only_a_note(self, monkeypatch, bus):
        def comports():
            raise TypeError("int() argument must be a string")

        bus.plug(UsbDevice())
        monkeypatch.setattr(list_ports, "comports", comports)
        found = listed()
        assert [p["uri"] for p in found["ports"]] == ["usb:1209:0001:SF0001"]
        assert len(found["notes"]) == 1
        assert found["notes"][0].startswith("the serial ports cannot be listed")


class TestUsb:
    def test_vendor_bulk_and_hid_devices_by_name(self, bus):
        bus.plug(UsbDevice(name="Cutcard Shoe", product=2, serial="SH0001"))
        bus.plug(UsbDevice(name="Reader", vendor=0x0C2E, product=0x0B61, serial=None, configurations=(HID,)))
        ports = listed()["ports"]
        assert [(p["uri"], p["kind"], p["description"], p["driver"], p["place"]) for p in ports] == [
            ("usb:1209:0002:SH0001", "usb", "Cutcard Shoe", "managed-shoe", "1-1"),
            ("usbhid:0c2e:0b61", "usbhid", "Reader", None, "1-2"),
        ]
        assert [p["links"] for p in ports] == [["/dev/bus/usb/001/002"], ["/dev/bus/usb/001/003"]]
        assert [parse_uri(p["uri"]).packets for p in ports] == [True, True]

    def test_hubs_are_not_listed_and_what_is_no_port_has_no_uri(self, bus, monkeypatch):
        bus.plug(UsbDevice(vendor=0x0781, product=0x5567, name="Cruzer", configurations=(STORAGE,)))
        hub = UsbDevice(vendor=0x1D6B, product=2, name="root hub")
        real = hub.descriptor()
        monkeypatch.setattr(hub, "descriptor", lambda: real[:4] + b"\x09" + real[5:])
        bus.plug(hub)
        (port,) = listed()["ports"]
        assert (port["uri"], port["kind"], port["description"]) == (None, "other", "Cruzer, storage")
        assert bus.calls["claim_interface"] == bus.calls["detach_kernel_driver"] == 0

    def test_what_is_a_serial_port_already_is_listed_once(self, bus, monkeypatch):
        both = Configuration((Interface(), Interface(number=1)))
        bus.plug(UsbDevice(vendor=0x0403, product=0x6001, serial="FT0SHOE1"))
        bus.plug(UsbDevice(serial="BOTH", configurations=(both,)))
        plug(
            monkeypatch,
            adapter("/dev/null", place="1-1"),
            adapter("/dev/zero", "BOTH", "1-2:1.1", vid=0x1209, pid=1),
        )
        assert [p["uri"] for p in listed()["ports"]] == [
            "serial:0403:6001:FT0SHOE1",
            "serial:1209:0001:BOTH",
            "usb:1209:0001:BOTH",
        ]

    def test_f04_two_with_one_serial_number(self, bus):
        for serial in ("SF0001", "SF0001", "SF0002", None):
            bus.plug(UsbDevice(serial=serial))
        troubles = [p["trouble"] for p in listed()["ports"]]
        assert troubles[0] == troubles[1]
        assert "2 devices go by the name 1209:0001:SF0001 (at 1-1 and at 1-2), so none is used" in troubles[0]
        assert troubles[2] is None
        assert "4 devices go by the name 1209:0001 (at 1-1 and" in troubles[3]

    def test_i44_a_device_that_may_not_be_asked_hides_no_other(self, bus):
        mute = UsbDevice()
        mute.denied = True
        bus.plug(mute)
        bus.plug(UsbDevice(serial="SF0002"))
        first, second = listed()["ports"]
        assert (first["uri"], second["uri"]) == ("usb:1209:0001", "usb:1209:0001:SF0002")
        assert "it does not tell its names" in first["trouble"]
        assert "deploy/60-cutcard.rules" in first["trouble"]
        assert second["trouble"] is None

    @pytest.mark.parametrize("error", BROKEN, ids=lambda e: type(e).__name__)
    def test_i44_a_device_whose_description_is_broken_hides_no_other(self, bus, monkeypatch, error):
        broken = UsbDevice(vendor=0x0BAD, product=1, name="Broken", serial=None)
        bus.plug(UsbDevice())
        bus.plug(broken)
        bus.plug(UsbDevice(serial="SF0002"))
        fail_at(monkeypatch, broken, error)
        found = listed()
        assert found["notes"] == []
        assert [(p["uri"], p["kind"], p["place"]) for p in found["ports"]] == [
            ("usb:1209:0001:SF0001", "usb", "1-1"),
            ("usb:1209:0001:SF0002", "usb", "1-3"),
            (None, "other", "1-2"),
        ]
        text = str(error) or type(error).__name__
        if isinstance(error, OSError):
            text = os.strerror(error.errno)
        trouble = (
            f"its description cannot be read in full ({text}): unplug it and plug it in again; if that does "
            "not help, the device is faulty"
        )
        assert [p["trouble"] for p in found["ports"]] == [None, None, trouble]

    def test_i44_what_can_be_read_of_a_description_counts(self, bus, monkeypatch):
        double = UsbDevice(configurations=(Configuration(), Configuration((Interface(),), value=2)))
        bus.plug(double)
        fail_at(monkeypatch, double, BROKEN[0], configuration=1)
        (port,) = listed()["ports"]
        assert port["uri"] == "usb:1209:0001:SF0001"
        assert port["trouble"].startswith(
            "its description cannot be read in full (Input/output error): unplug"
        )

    @pytest.mark.parametrize("way", ["denied", "gone", "open to us"])
    def test_field_20_rights_are_the_remedy_only_where_they_are_missing(self, bus, monkeypatch, way):
        """A string that makes no sense is no question of rights."""
        mute = UsbDevice()
        mute.denied = True
        bus.plug(mute)
        monkeypatch.setattr(os, "access", lambda path, mode: way == "open to us")
        monkeypatch.setattr(Path, "exists", lambda self: way != "gone")
        trouble = listed()["ports"][0]["trouble"]
        rights = "give the user's group read and write rights on /dev/bus/usb/001/002 by a udev rule"
        assert (rights in trouble) is (way != "open to us")
        if way == "open to us":
            assert trouble.startswith("it does not tell its names (")
            assert trouble.endswith("): unplug it and plug it in again")

    @pytest.mark.parametrize("node_exists", [True, False])
    def test_field_20_a_node_without_rights(self, bus, monkeypatch, node_exists):
        bus.plug(UsbDevice())
        monkeypatch.setattr(os, "access", lambda path, mode: False)
        monkeypatch.setattr(Path, "exists", lambda self: node_exists)
        trouble = listed()["ports"][0]["trouble"]
        if not node_exists:
            assert trouble is None
            return
        assert trouble.startswith("this user may not open it: give the user's group read and write rights on")

    @pytest.mark.parametrize(
        "failure",
        [
            Unsupported("USB needs the library libusb-1.0 and there is none: install libusb-1.0-0"),
            USBError("Other error", -99, errno.EIO),
            NotImplementedError("libusb_init"),
            ImportError("No module named 'usb'"),
        ],
        ids=lambda e: type(e).__name__,
    )
    def test_i40_without_usb_the_serial_ports_are_listed_with_one_sentence(self, monkeypatch, bus, failure):
        def broken():
            raise failure

        monkeypatch.setattr(libusb, "make_backend", broken)
        plug(monkeypatch, adapter("/dev/null"))
        found = listed()
        assert [p["uri"] for p in found["ports"]] == ["serial:0403:6001:FT0SHOE1"]
        assert found["notes"] == [f"USB devices are not listed: {failure}"]

    def test_i40_no_serial_site_loads_usb(self):
        program = (
            "import sys; from firmware_bridge.transports import discover, serial; "
            "sys.exit('usb' in sys.modules)"
        )
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


class TestShown:
    def test_for_people_it_is_a_table(self, bus, monkeypatch):
        monkeypatch.setattr(locks, "held_by", lambda device: locks.Holder(7, "c"))
        plug(monkeypatch, adapter("/dev/null", place="1-7", product="Shoe UART"))
        for serial in ("SF0001", "SF0001"):
            bus.plug(UsbDevice(serial=serial))
        trouble = (
            "    trouble: 2 devices go by the name 1209:0001:SF0001 (at 1-1 and at 1-2), so none is used: "
            "unplug the one that is not meant"
        )
        assert shown().splitlines() == [
            "PORT                       WHAT                                    DRIVER            HELD BY",
            f"serial:0403:6001:FT0SHOE1  {'Shoe UART, /dev/null':<38}  {'-':<16}  process 7 (c)",
            "usb:1209:0001:SF0001       Cutcard Shuffler, /dev/bus/usb/001/002  managed-shuffler  -",
            trouble,
            "usb:1209:0001:SF0001       Cutcard Shuffler, /dev/bus/usb/001/003  managed-shuffler  -",
            trouble,
        ]

    def test_nothing_there_is_no_failure_and_says_what_to_check(self, bus):
        (line,) = shown().splitlines()
        assert line.startswith(
            "no serial port and no USB device was found: check the device's cable and power"
        )
        assert "dialout" in line
        assert listed() == {"ports": [], "notes": [line]}

    @pytest.mark.parametrize("failing", ["serial ports", "USB devices", "both"])
    def test_what_could_not_be_looked_at_is_not_said_to_be_missing(self, bus, monkeypatch, failing):
        def broken():
            raise USBError("Other error", -99, errno.EIO)

        if failing != "serial ports":
            monkeypatch.setattr(libusb, "make_backend", broken)
        if failing != "USB devices":
            monkeypatch.setattr(list_ports, "comports", broken)
        lines = shown().splitlines()
        assert len(lines) == 2
        assert ("the serial ports cannot be listed" in lines[0]) is (failing != "USB devices")
        if failing == "both":
            assert "USB devices are not listed" in lines[1]
            return
        missing = {"serial ports": "no USB device", "USB devices": "no serial port"}[failing]
        assert lines[1].startswith(f"{missing} was found: check the device's cable and power")

    def test_a_device_s_name_is_shown_without_what_a_terminal_obeys(self, bus):
        bus.plug(UsbDevice(name="\x1b[2JShoe", serial="\x1b[31m"))
        assert "\x1b" not in shown()
        assert "\\x1b[2JShoe" in shown()
        done = CliRunner().invoke(app, ["ports", "--json"])
        assert "\x1b" not in done.stdout
        assert json.loads(done.stdout)["ports"][0]["description"] == "\x1b[2JShoe"

    def test_a_driver_that_cannot_be_loaded_is_a_note(self, bus, monkeypatch):
        broken = EntryPoint("other-shoe", "no.such.module:SPEC", registry.GROUP)
        real = registry._installed()
        monkeypatch.setattr(registry, "_installed", lambda: {**real, "other-shoe": [broken]})
        bus.plug(UsbDevice())
        found = listed()
        assert found["ports"][0]["driver"] == "managed-shuffler"
        assert "driver 'other-shoe' cannot be loaded" in found["notes"][0]

    def test_every_kind_has_a_uri_that_parses(self, bus, monkeypatch):
        plug(monkeypatch, adapter("/dev/null", "x"), adapter("/dev/zero", None))
        bus.plug(UsbDevice(serial="a:b?c"))
        found, failed = discover.look()
        assert failed == {}
        assert all(isinstance(one, Plugged) and parse_uri(one.uri).scheme == one.kind for one in found)
