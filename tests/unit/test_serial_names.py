"""Serial adapters by what they say of themselves, and what is no name for one."""

import errno
from pathlib import Path

import pytest
import serial
from serial.tools import list_ports, list_ports_common

from firmware_bridge import errors
from firmware_bridge.transports import UsbName, open_transport, serial_find
from tests.support.adapters import adapter, plug
from tests.support.peers import PtyPeer, read_all


class TestNames:
    """`serial:VID:PID:SERIAL`: the adapter that says so, wherever it is plugged in."""

    def test_i12_field_20_a_renumbered_adapter_is_found_by_its_name(self, monkeypatch):
        first, second = PtyPeer(), PtyPeer()
        transport = open_transport("serial:0403:6001:FT0SHOE1?baud=4800")
        other = adapter("/dev/ttyUSB7", "FT0OTHER", "1-7")
        try:
            plug(monkeypatch, other, adapter(first.path))
            transport.open()
            first.cut()
            with pytest.raises(errors.LinkLost):
                transport.read(1)
            plug(monkeypatch, other)
            with pytest.raises(errors.Absent, match="FT0SHOE1 is not there, but FT0OTHER at 1-7 is"):
                transport.open()
            plug(monkeypatch, adapter(second.path, place="1-4"), other)
            transport.open()
            second.send(b"new")
            assert read_all(transport, 3) == b"new"
            assert f"0403:6001:FT0SHOE1 -> {second.path}, 4800 bit/s" in transport.describe()
        finally:
            transport.dispose()
            second.close()

    def test_no_such_adapter(self, monkeypatch):
        plug(monkeypatch, adapter("/dev/ttyUSB0"))
        with pytest.raises(errors.Absent, match="serial adapter 1209:0001:X is not there: check the adapter"):
            serial_find.the_one(UsbName(0x1209, 1, "X"))

    def test_without_a_serial_number_the_only_one_of_its_kind_is_meant(self, monkeypatch):
        plug(monkeypatch, adapter("/dev/ttyUSB0", None), adapter("/dev/ttyACM0", vid=0x1209, pid=2))
        assert serial_find.the_one(UsbName(0x0403, 0x6001)).device == "/dev/ttyUSB0"

    @pytest.mark.parametrize(
        ("uri", "adapters", "says"),
        [
            (
                "serial:0403:6001:FT0SHOE1",
                [("/dev/ttyUSB0", "FT0SHOE1", "1-2"), ("/dev/ttyUSB1", "FT0SHOE1", "1-3")],
                r"are FT0SHOE1 \(/dev/ttyUSB0 at 1-2 and /dev/ttyUSB1 at 1-3\): nobody.*unplug.*by-path",
            ),
            (
                "serial:0403:6001",
                [("/dev/ttyUSB0", "A", "1-2"), ("/dev/ttyUSB1", "B", "1-3")],
                r"A \(/dev/ttyUSB0 at 1-2\) and B \(/dev/ttyUSB1 at 1-3\): .* as serial:0403:6001:SERIAL",
            ),
            (
                "serial:0403:6001",
                [("/dev/ttyUSB0", None, "1-2"), ("/dev/ttyUSB1", None, "1-3")],
                r"tell no serial number \(/dev/ttyUSB0 at 1-2 and /dev/ttyUSB1 at 1-3\).*by-path",
            ),
            (
                "serial:0403:6011:FT4",
                [("/dev/ttyUSB0", "FT4", "1-2:1.0"), ("/dev/ttyUSB1", "FT4", "1-2:1.1")],
                r"adapter 0403:6011:FT4 has 2 ports \(.*\): name one by its link in /dev/serial/by-id",
            ),
            (
                "serial:0403:6011:FT4",
                [(f"/dev/ttyUSB{n}", "FT4", f"1-{2 + n // 2}:1.{n % 2}") for n in range(4)],
                r"^2 serial adapters 0403:6011 say they are FT4 \(/dev/ttyUSB0 at 1-2 and .*: nobody",
            ),
        ],
        ids=[
            "two with one number",
            "two of a kind",
            "two without numbers",
            "one with two ports",
            "two of two",
        ],
    )
    def test_f04_an_ambiguous_name_opens_nothing(self, monkeypatch, uri, adapters, says):
        pid = int(uri.split(":")[2], 16)
        plug(monkeypatch, *(adapter(*fields, pid=pid) for fields in adapters))
        monkeypatch.setattr(serial, "Serial", None)
        transport = open_transport(uri)
        with pytest.raises(errors.WrongDevice, match=says):
            transport.open()
        transport.dispose()

    @pytest.fixture
    def linked(self, monkeypatch, tmp_path):
        """Two ports, and links to the second: by its identity, by its socket, and one that a user made."""
        peers = PtyPeer(), PtyPeer()
        targets = {
            "by-id/usb-FTDI_FT0SHOE1-if00-port0": peers[1].path,
            "by-path/pci-usb-0:3": peers[1].path,
            "shoe": "by-id/usb-FTDI_FT0SHOE1-if00-port0",
        }
        for name, target in targets.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).symlink_to(target)
        monkeypatch.setattr(serial_find, "BY_ID", tmp_path / "by-id")
        monkeypatch.setattr(serial_find, "BY_PATH", tmp_path / "by-path")
        yield peers
        for peer in peers:
            peer.close()

    @pytest.mark.parametrize("serial", ["FT0SHOE1", None])
    @pytest.mark.parametrize("link", ["by-id/usb-FTDI_FT0SHOE1-if00-port0", "shoe", "by-path/../shoe"])
    def test_f04_a_link_by_identity_opens_no_twin(self, monkeypatch, linked, tmp_path, link, serial):
        """udev gives the link to whichever came last, and the wrong device would be written to."""
        first, second = linked
        plug(monkeypatch, adapter(first.path, serial), adapter(second.path, serial, "1-3"))
        transport = open_transport(f"serial:{tmp_path}/{link}")
        with monkeypatch.context() as closed:
            closed.setattr("serial.Serial", None)
            with pytest.raises(
                errors.WrongDevice, match=rf"{first.path} at 1-2 and {second.path} at 1-3\): nobody can tell"
            ):
                transport.open()
        plug(monkeypatch, adapter(second.path, serial, "1-3"))
        transport.open()  # the other one was unplugged
        transport.dispose()

    @pytest.mark.parametrize(
        ("link", "others"),
        [
            ("by-path/pci-usb-0:3", [("FT0SHOE1", "1-2")]),
            ("by-id/usb-FTDI_FT0SHOE1-if00-port0", [("FT0OTHER", "1-2"), (None, "1-4")]),
            ("by-id/usb-FTDI_FT0SHOE1-if00-port0", [("FT0SHOE1", "1-3:1.1")]),
        ],
        ids=["by its socket", "others of a kind", "another port of the same adapter"],
    )
    def test_a_link_that_is_clear_is_opened(self, monkeypatch, linked, tmp_path, link, others):
        first, second = linked
        plug(monkeypatch, adapter(second.path, place="1-3:1.0"), *(adapter(first.path, *o) for o in others))
        transport = open_transport(f"serial:{tmp_path}/{link}")
        transport.open()
        second.send(b"this one")
        assert read_all(transport, 8) == b"this one"
        transport.dispose()

    def test_a_link_to_what_is_not_listed_is_opened_and_one_to_nothing_is_absent(
        self, monkeypatch, linked, tmp_path
    ):
        plug(monkeypatch)
        transport = open_transport(f"serial:{tmp_path}/shoe")
        transport.open()
        transport.close()
        (tmp_path / "by-id/usb-FTDI_FT0SHOE1-if00-port0").unlink()
        with pytest.raises(errors.Absent, match="shoe is not there"):
            transport.open()
        transport.dispose()

    def test_an_adapter_that_goes_while_it_is_looked_at_hides_no_other_one(self, monkeypatch):
        plug(monkeypatch, adapter("/dev/ttyUSB0"))
        listed = list_ports.comports
        failures = [TypeError("int() argument must be a string"), OSError(errno.ENODEV, "x")]

        def flaky():
            if failures:
                raise failures.pop()
            return listed()

        monkeypatch.setattr(list_ports, "comports", flaky)
        assert [a.device for a in serial_find.present()] == ["/dev/ttyUSB0"]
        failures += [TypeError("x")] * 9
        with pytest.raises(errors.Absent, match="cannot be listed"):
            serial_find.present()

    def test_built_in_ports_are_those_with_hardware(self, monkeypatch, tmp_path):
        for name, kind in (("ttyS0", "4"), ("ttyS1", "0"), ("ttyS10", "4"), ("ttyS2", "4")):
            (tmp_path / "sys" / name).mkdir(parents=True)
            (tmp_path / "sys" / name / "type").write_text(kind + "\n")
            (tmp_path / name).touch()
        (tmp_path / "ttyS").touch()
        monkeypatch.setattr(serial_find, "BUILT_IN", (tmp_path, "ttyS[0-9]*"))
        monkeypatch.setattr(serial_find, "SYSFS", tmp_path / "sys")
        listed = list_ports_common.ListPortInfo(str(tmp_path / "ttyS1"))
        monkeypatch.setattr(list_ports, "comports", lambda: [listed])
        assert [Path(a.device).name for a in serial_find.present()] == ["ttyS0", "ttyS2", "ttyS10"]

    def test_links(self, monkeypatch, tmp_path):
        peer = PtyPeer()
        for directory, name in (("by-id", "usb-A-if00"), ("by-id", "usb-B"), ("by-path", "pci-1")):
            (tmp_path / directory).mkdir(exist_ok=True)
            (tmp_path / directory / name).symlink_to(peer.path if name != "usb-B" else "/dev/null")
        monkeypatch.setattr(serial_find, "BY_ID", tmp_path / "by-id")
        monkeypatch.setattr(serial_find, "BY_PATH", tmp_path / "by-path")
        found = serial_find.links(peer.path)
        assert found == [f"{tmp_path}/by-id/usb-A-if00", f"{tmp_path}/by-path/pci-1"]
        peer.close()
        monkeypatch.setattr(serial_find, "BY_ID", tmp_path / "none")
        assert serial_find.links("/dev/null") == []
