"""Transports over a real pty, real TCP and memory, and the ways a port may fail (I-01 to I-14)."""

import contextlib
import errno
import fcntl
import os
import pty
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import tty
from pathlib import Path

import pytest
import serial

from firmware_bridge import errors
from firmware_bridge.clock import SystemClock
from firmware_bridge.transports import UsbName, locks, mem, open_receiver, open_transport, parse_uri
from firmware_bridge.transports import serial as serial_module
from firmware_bridge.transports.errors import translated

CLOCK = SystemClock()


class PtyPeer:
    def __init__(self):
        self.master, self.spare = pty.openpty()
        tty.setraw(self.spare)
        self.path = os.ttyname(self.spare)
        self.uri = f"serial:{self.path}?baud=4800"

    def send(self, data):
        os.write(self.master, data)

    def receive(self, size):
        out = b""
        while len(out) < size and select.select([self.master], [], [], 2)[0]:
            out += os.read(self.master, size - len(out))
        return out

    def cut(self):
        for fd in (self.master, self.spare):
            if fd >= 0:
                os.close(fd)
        self.master = self.spare = -1

    close = cut


class TcpPeer:
    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"socket:127.0.0.1:{self.listener.getsockname()[1]}"
        self.socket = None

    def accepted(self):
        if self.socket is None:
            self.socket = self.listener.accept()[0]
        return self.socket

    def send(self, data):
        self.accepted().sendall(data)

    def receive(self, size):
        self.accepted().settimeout(2)
        out = b""
        while len(out) < size:
            out += self.socket.recv(size - len(out))
        return out

    def cut(self):
        self.accepted().close()
        self.listener.close()

    def close(self):
        if self.socket:
            self.socket.close()
        self.listener.close()


class MemPeer:
    def __init__(self):
        self.uri = "mem:unit"
        self.to_us, self.to_them, self.dead = b"", b"", False
        mem.plug("unit", self)

    def write(self, data):
        self._check()
        self.to_them += data

    def read(self):
        self._check()
        data, self.to_us = self.to_us, b""
        return data

    def _check(self):
        if self.dead:
            raise ConnectionError("unplugged")

    def send(self, data):
        self.to_us += data

    def receive(self, size):
        data, self.to_them = self.to_them[:size], self.to_them[size:]
        return data

    def cut(self):
        self.dead = True

    def close(self):
        mem.unplug("unit")


@contextlib.contextmanager
def using(peer, make=open_transport):
    transport = make(peer.uri)
    try:
        yield transport
    finally:
        transport.dispose()
        peer.close()


def read_all(transport, size):
    out, end = b"", CLOCK.now() + 3
    while len(out) < size and CLOCK.now() < end:
        out += transport.read(0.2)
    return out


@pytest.fixture
def lock_dir(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "LOCK_DIRS", (tmp_path,))
    return tmp_path


@pytest.mark.parametrize("kind", [PtyPeer, TcpPeer, MemPeer])
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
            with pytest.raises(errors.Absent, match=r"not there|nothing is plugged"):
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


@pytest.mark.parametrize("kind", [PtyPeer, TcpPeer])
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
            start = CLOCK.now()
            with pytest.raises(errors.LinkLost, match=r"took only [1-9]\d+ of 20000000 bytes in 0.2 s"):
                transport.write(bytes(20_000_000), timeout=0.2)
            assert CLOCK.now() - start < 2


class TestSerial:
    def test_i01_readable_but_empty_is_link_lost(self, monkeypatch):
        with using(PtyPeer()) as transport:
            transport.open()
            ours = transport._fd
            monkeypatch.setattr(transport, "_receive", lambda: os.read(ours, 10))
            transport._poll.modify(ours, select.POLLOUT)  # "readable" while another reader took the bytes
            with pytest.raises(errors.LinkLost, match="unplugged, or another program took the bytes"):
                transport.read(1)

    def test_i01_a_second_reader_is_named_when_its_lock_file_is_there(self, lock_dir, monkeypatch):
        peer = PtyPeer()
        with using(peer) as transport:
            transport.open()
            monkeypatch.setattr(locks, "holder", lambda device: locks.Holder(42, "minicom"))
            assert "process 42 (minicom) has it open too" in transport._end_of_input()

    @pytest.mark.parametrize("held", [False, True])
    def test_a_lock_file_of_a_process_we_may_not_look_into_only_names_it(self, lock_dir, monkeypatch, held):
        """Its number may have been given to somebody else since: the kernel knows who holds the port."""

        def denied(self):
            raise PermissionError(errno.EACCES, "Permission denied", str(self))

        peer = PtyPeer()
        device = os.path.realpath(peer.uri.removeprefix("serial:").partition("?")[0])
        with using(peer) as transport:
            (lock_dir / locks._name(device)).write_text("         1\nold\n")
            monkeypatch.setattr(Path, "iterdir", denied)
            assert locks.holder(device) == locks.Holder(1, "old", sure=False)
            if not held:
                transport.open()
                return
            other = os.open(device, os.O_RDWR | os.O_NOCTTY)
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with pytest.raises(errors.Busy, match=r"process 1 \(old\)"):
                    transport.open()
            finally:
                os.close(other)

    def test_who_is_seen_to_hold_the_port_is_named_before_a_guess(self, tmp_path, monkeypatch):
        for name, pid in (("run", 1), ("tmp", os.getpid())):
            (tmp_path / name).mkdir()
            (tmp_path / name / "LCK..ttyX").write_text(f"{pid:10d}\n{name}\n")
        monkeypatch.setattr(locks, "LOCK_DIRS", (tmp_path / "run", tmp_path / "tmp"))
        monkeypatch.setattr(locks, "_has_open", lambda pid, device: None if pid == 1 else True)
        assert locks.holder("/dev/ttyX") == locks.Holder(os.getpid(), "tmp")

    @pytest.mark.parametrize(
        "error",
        [
            serial.SerialException("device reports readiness to read but returned no data"),
            serial.SerialTimeoutException("Write timeout"),
            serial.PortNotOpenError(),
            OSError(errno.EIO, "Input/output error"),
            termios.error(errno.EIO, "Input/output error"),
            TypeError("an integer is required (got type NoneType)"),
            ValueError("bad value"),
        ],
        ids=lambda e: type(e).__name__,
    )
    def test_i02_i03_every_foreign_family_becomes_link_lost(self, error):
        with pytest.raises(errors.LinkLost, match="was lost") as caught, translated("/dev/x"):
            raise error
        assert caught.value.__cause__ is error

    def test_not_implemented_is_unsupported_and_ours_pass_unchanged(self):
        with pytest.raises(errors.Unsupported), translated("x"):
            raise NotImplementedError
        ours = errors.Busy("b")
        with pytest.raises(errors.Busy) as caught, translated("x", opening=True):
            raise ours
        assert caught.value is ours
        with pytest.raises(KeyError), translated("x"):
            raise KeyError("a bug stays a bug")

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (serial.SerialException(errno.ENOENT, "x"), errors.Absent),
            (OSError(errno.ENXIO, "x"), errors.Absent),
            (OSError(errno.ECONNREFUSED, "x"), errors.Absent),
            (socket.gaierror(-2, "Name or service not known"), errors.Absent),
            (TimeoutError("timed out"), errors.Absent),
            (serial.SerialException(errno.EACCES, "x"), errors.Denied),
            (serial.SerialException(errno.EAGAIN, "x"), errors.Busy),
            (OSError(errno.EBUSY, "x"), errors.Busy),
            (termios.error(errno.ENOTTY, "x"), errors.Unsupported),
            (ValueError("baud"), errors.Unsupported),
        ],
    )
    def test_errors_of_opening(self, error, kind):
        with pytest.raises(kind), translated("/dev/x", opening=True):
            raise error

    def test_i04_only_a_wake_ends_a_blocked_read_and_foreign_handles_stay_untouched(self):
        peer = PtyPeer()
        with using(peer) as transport:
            transport.open()
            seen = []

            def owner():
                seen.append(transport.read(5))
                transport.close()

            thread = threading.Thread(target=owner)
            thread.start()
            transport.wake()
            thread.join(3)
            other = os.open("/dev/null", os.O_RDWR)
            try:
                assert seen == [b""]
                with pytest.raises(errors.LinkLost):
                    transport.read(0)
            finally:
                os.close(other)

    def test_i09_a_write_that_nobody_reads_ends_in_time_and_so_does_the_close(self):
        peer = PtyPeer()
        with using(peer) as transport:
            transport.open()
            start = CLOCK.now()
            with pytest.raises(errors.LinkLost):
                transport.write(bytes(1_000_000))
            transport.close()
            assert CLOCK.now() - start < 3

    def test_i10_a_second_open_is_busy_and_names_the_holder(self, lock_dir):
        peer = PtyPeer()
        with using(peer) as first:
            first.open()
            second = open_transport(peer.uri)
            with pytest.raises(errors.Busy, match=rf"held by process {os.getpid()} \("):
                second.open()
            second.dispose()
            first.close()
            assert list(lock_dir.iterdir()) == []

    def test_i10_a_lock_file_of_a_living_foreign_holder_is_respected_a_stale_one_is_not(self, lock_dir):
        peer = PtyPeer()
        name = "LCK.." + peer.path.removeprefix("/dev/").replace("/", "_")
        program = (
            "import os, sys; os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY); "
            "print('held', flush=True); sys.stdin.read()"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", program, peer.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with using(peer) as transport:
            assert child.stdout.readline() == b"held\n"
            (lock_dir / name).write_text(f"{child.pid:10d}\n")
            with pytest.raises(errors.Busy, match=rf"process {child.pid} \("):
                transport.open()
            child.communicate()
            transport.open()
            assert (lock_dir / name).read_text().split()[0] == str(os.getpid())

    def test_i12_a_link_is_resolved_at_every_open(self, tmp_path):
        first, second, link = PtyPeer(), PtyPeer(), tmp_path / "by-id"
        link.symlink_to(first.path)
        transport = open_transport(f"serial:{link}")
        try:
            transport.open()
            first.cut()
            with pytest.raises(errors.LinkLost):
                transport.read(1)
            fresh = tmp_path / "new"
            fresh.symlink_to(second.path)
            fresh.replace(link)
            transport.open()
            second.send(b"new")
            assert read_all(transport, 3) == b"new"
            assert second.path in transport.describe()
        finally:
            transport.dispose()
            second.close()

    def test_i14_no_rights_on_a_fresh_node_is_absent_later_denied(self, monkeypatch):
        directory = Path(tempfile.mkdtemp())  # pytest's own directories let no other user through
        directory.chmod(0o755)
        node = directory / "ttyUSB9"
        node.touch(mode=0)
        transport = open_transport(f"serial:{node}")
        monkeypatch.setattr(serial_module, "_is_pty", lambda device: False)
        try:
            with unprivileged():
                with pytest.raises(errors.Absent, match=r"may not open it.*appeared only now.*usermod -aG"):
                    transport.open()
                monkeypatch.setattr(serial_module, "APPEARANCE_S", 0.0)
                with pytest.raises(errors.Denied, match=r"may not open it.*usermod -aG dialout"):
                    transport.open()
        finally:
            transport.dispose()
            shutil.rmtree(directory)

    def test_a_file_that_is_no_port_is_unsupported(self, tmp_path):
        node = tmp_path / "file"
        node.touch()
        transport = open_transport(f"serial:{node}")
        with pytest.raises(errors.Unsupported, match="is it a serial port"):
            transport.open()
        transport.dispose()

    def test_control_lines_are_off_before_the_port_opens(self, monkeypatch):
        seen = []
        real = serial.Serial.open

        def spy(self):
            seen.append((self.dtr, self.rts, self.exclusive, self.write_timeout, self.baudrate))
            real(self)

        monkeypatch.setattr(serial.Serial, "open", spy)
        with using(PtyPeer()) as transport:
            transport.open()
        assert seen == [(False, False, True, 0.5, 4800)]


@contextlib.contextmanager
def unprivileged():
    """As another user when we are root, so that rights count."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


class TestSocket:
    def test_options_are_set(self):
        peer = TcpPeer()
        with using(peer) as transport:
            transport.open()
            ours = transport._socket
            assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
            assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 5

    def test_a_name_that_does_not_exist_is_absent(self):
        transport = open_transport("socket:no-such-host.invalid:4001")
        with pytest.raises(errors.Absent):
            transport.open()
        transport.dispose()


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
