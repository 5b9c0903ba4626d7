"""What every transport must do, over each kind of far end; and the URIs that name them."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from firmware_bridge import errors
from firmware_bridge.transports import UsbName, open_receiver, open_transport, parse_uri
from tests.support.peers import CLOCK, HidPeer, MemPeer, PtyPeer, TcpPeer, UsbPeer, read_all, using
from tests.support.umockdev import UmockdevPeer, needs_umockdev

USB = [UsbPeer, HidPeer, pytest.param(UmockdevPeer, marks=needs_umockdev)]
"""A simulated bus under pyusb, with bulk and interrupt endpoints; and the real libusb on umockdev."""


@pytest.mark.parametrize("kind", [PtyPeer, TcpPeer, MemPeer, *USB])
class TestEveryTransport:
    def test_bytes_pass_unchanged_both_ways(self, kind):
        peer = kind()
        with using(peer) as transport:
            transport.open()
            every = bytes(range(256))
            peer.send(every)
            assert read_all(transport, 256) == every
            transport.write(every)
            assert peer.receive(256) == every

    def test_a_loss_is_told_as_link_lost_and_nothing_else(self, kind):
        peer = kind()
        with using(peer) as transport:
            transport.open()
            transport.read(0)
            peer.cut()
            with pytest.raises(errors.LinkLost):
                transport.read(3)
            transport.close()
            transport.close()
            with pytest.raises(errors.LinkLost, match="not open"):
                transport.read(0)
            with pytest.raises(errors.LinkLost, match="not open"):
                transport.write(b"x")

    def test_absent_is_told_before_and_after(self, kind):
        peer = kind()
        with using(peer) as transport:
            transport.open()
            peer.cut()
            with pytest.raises(errors.Absent, match=r"not there|nothing is plugged|no USB device"):
                transport.open()

    def test_opens_again_after_a_close(self, kind):
        peer = kind()
        with using(peer) as transport:
            for _ in range(3):
                transport.open()
                peer.socket = None
                peer.send(b"hi")
                assert read_all(transport, 2) == b"hi"
                if kind is TcpPeer:
                    peer.socket.close()
                transport.close()

    def test_the_receive_only_form_has_no_write(self, kind):
        peer = kind()
        with using(peer, open_receiver) as receiver:
            receiver.open()
            peer.send(b"abc")
            assert read_all(receiver, 3) == b"abc"
            assert not hasattr(receiver, "write")
            assert receiver.uri == peer.uri
            assert receiver.describe()

    def test_disposal_twice_is_harmless(self, kind):
        peer = kind()
        with using(peer) as transport:
            transport.open()
            transport.dispose()
            transport.wake()


@pytest.mark.parametrize("kind", [PtyPeer, TcpPeer, *USB])
class TestWaiting:
    def test_wake_ends_a_read_from_another_thread(self, kind):
        peer = kind()
        with using(peer) as transport:
            transport.open()
            waker = threading.Timer(0.05, transport.wake)
            waker.start()
            start = CLOCK.now()
            assert transport.read(5) == b""
            assert CLOCK.now() - start < 2
            waker.join()

    def test_a_wake_before_the_read_counts_once(self, kind):
        peer = kind()
        with using(peer) as transport:
            for _ in range(70_000):
                transport.wake()
            transport.open()
            start = CLOCK.now()
            assert transport.read(5) == b""
            assert CLOCK.now() - start < 2
            start = CLOCK.now()
            assert transport.read(0.05) == b""
            assert CLOCK.now() - start > 0.04
            transport.wake()
            peer.send(b"z")
            assert read_all(transport, 1) == b"z"

    def test_i06_the_timeout_is_not_restarted_and_one_read_returns_what_came(self, kind):
        peer = kind()
        with using(peer) as transport:
            transport.open()
            start = CLOCK.now()
            assert transport.read(0.05) == b""
            assert 0.04 < CLOCK.now() - start < 1
            peer.send(b"a")
            assert transport.read(5) == b"a"

    def test_i08_a_write_that_stops_half_way_is_link_lost_within_its_timeout(self, kind):
        peer = kind()
        with using(peer) as transport:
            transport.open()
            peer.take_no_more()
            start = CLOCK.now()
            flood = getattr(kind, "flood", 20_000_000)  # more than all buffers on the way hold
            with pytest.raises(errors.LinkLost, match=rf"took only [1-9]\d+ of {flood} bytes in 0.2 s"):
                transport.write(bytes(flood), timeout=0.2)
            assert CLOCK.now() - start < 2


class TestUri:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("serail:/dev/ttyUSB0", "did you mean 'serial'"),
            ("serial:/dev/ttyUSB0?bauds=9600", "did you mean 'baud'"),
            ("serial:/dev/ttyUSB0?speed=9600", "has no such setting"),
            ("serial:/dev/ttyUSB0?baud=fast", "number of bit/s"),
            ("serial:/dev/ttyUSB0?baud=7", "number of bit/s"),
            ("serial:", "names no port"),
            ("/dev/ttyUSB0", "did you mean serial:/dev/ttyUSB0"),
            ("usb:1209", "four hex digits each"),
            ("usb:1209:0001:", "four hex digits each"),
            ("usb:1209:0001?detach=maybe", "detach is on or off, not 'maybe'"),
            ("usbhid:12:34", "four hex digits each"),
            ("serial:0403:60", "write serial:VID:PID or serial:VID:PID:SERIAL with four hex digits each"),
            ("serial:zzzz:6001:X", "four hex digits each"),
            ("serial:/dev/ttyUSB0?baud=9600&baud=4800", "baud is given twice"),
            ("serial:/dev/ttyUSB0?dtr=1", "dtr is on or off, not '1'"),
            ("socket:10.0.0.7", "socket:HOST:PORT"),
            ("socket:10.0.0.7:0", "1..65535"),
            ("socket:10.0.0.7:http", "1..65535"),
            ("socket:10.0.0.7:4001?baud=9600", "has no such setting"),
        ],
    )
    def test_a_bad_uri_says_what_is_right(self, text, message):
        for make in (parse_uri, open_transport, open_receiver):
            with pytest.raises(errors.BadUri, match=message.replace("?", r"\?")):
                make(text)

    @pytest.mark.parametrize("path", ["/dev/pci-0:1", "./0403:60", "by/zzzz:6001"])
    def test_a_path_with_a_colon_is_no_name(self, path):
        assert (parse_uri(f"serial:{path}").target, parse_uri(f"serial:{path}").usb) == (path, None)

    def test_good_uris(self):
        assert (parse_uri("serial:/dev/x?baud=4800").baud, parse_uri("serial:/dev/x").baud) == (4800, None)
        assert parse_uri("socket:[::1]:4001").target == "::1"
        assert parse_uri("socket:[::1]:4001").port == 4001

    def test_usb_names(self):
        assert parse_uri("usb:1209:0a01:SH0001").usb == UsbName(0x1209, 0x0A01, "SH0001")
        assert parse_uri("usbhid:1209:0001").usb == UsbName(0x1209, 1)
        assert parse_uri("usb:1209:0001:A%3F%20b").usb == UsbName(0x1209, 1, "A? b")
        assert str(UsbName(0x1209, 1, "A? b")) == "1209:0001:A%3F%20b"
        assert parse_uri("usb:1209:0001:S?detach=on").switch("detach")
        assert parse_uri("serial:0403:6001:FT0SHOE1?baud=4800").usb == UsbName(0x0403, 0x6001, "FT0SHOE1")
        assert parse_uri("serial:/dev/serial/by-path/1209:0001").usb is None
        packets = [parse_uri(text).packets for text in ("usb:1209:0001", "usbhid:1209:0001", "mem:x")]
        assert packets == [True, True, False]

    def test_the_drivers_line_rate_is_the_default(self):
        for uri, rate in (("serial:/dev/x", 4800), ("serial:/dev/x?baud=9600", 9600)):
            transport = open_transport(uri, baud=4800)
            assert f"{rate} bit/s" in transport.describe()
            transport.dispose()

    def test_a_socket_site_never_loads_pyserial(self):
        program = (
            "import sys; from firmware_bridge.transports import open_transport; "
            "open_transport('socket:127.0.0.1:1').dispose(); sys.exit('serial' in sys.modules)"
        )
        assert (
            subprocess.run(
                [sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=False
            ).returncode
            == 0
        )
