"""Serial ports over a real pty, and the ways a port may fail (I-01 to I-14)."""

import contextlib
import errno
import fcntl
import grp
import os
import pwd
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import termios
import threading
from pathlib import Path

import pytest
import serial

from firmware_bridge import errors
from firmware_bridge.transports import locks, open_receiver, open_transport
from firmware_bridge.transports import serial as serial_module
from firmware_bridge.transports.errors import translated
from tests.support.peers import CLOCK, PtyPeer, read_all, using


@pytest.fixture
def lock_dir(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "LOCK_DIRS", (tmp_path,))
    return tmp_path


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

    @pytest.mark.parametrize("known", [False, True])
    @pytest.mark.parametrize("held", [False, True])
    def test_a_lock_file_of_a_process_we_may_not_look_into_only_names_it(
        self, lock_dir, monkeypatch, held, known
    ):
        """Its number may have been given to somebody else since: the kernel knows who holds the port."""

        def denied(self):
            raise PermissionError(errno.EACCES, "Permission denied", str(self))

        peer = PtyPeer()
        device = os.path.realpath(peer.uri.removeprefix("serial:").partition("?")[0])
        with using(peer) as transport:
            stale = lock_dir / locks._name(device)
            stale.write_text("         1\nold\n")
            os.utime(stale, (1, 1))
            monkeypatch.setattr(Path, "iterdir", denied)
            assert locks.holder(device) == locks.Holder(1, "old", sure=False)
            if not held:
                transport.open()
                return
            other = os.open(device, os.O_RDWR | os.O_NOCTTY)
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not known:  # as when the holder lives in another container
                    monkeypatch.setattr(locks, "locked_by", lambda device: None)
                named = rf"process {os.getpid()} \(py" if known else r"process 1 \(old\)"
                with pytest.raises(errors.Busy, match=named):
                    transport.open()
            finally:
                os.close(other)

    def test_who_is_seen_to_hold_the_port_is_named_before_a_guess(self, tmp_path, monkeypatch):
        for name, pid in (("run", 1), ("tmp", os.getpid())):
            (tmp_path / name).mkdir()
            (tmp_path / name / "LCK..ttyX").write_text(f"{pid:10d}\n{name}\n")
            os.utime(tmp_path / name / "LCK..ttyX", (1, 1))
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

    def test_only_a_serial_port_is_asked_whether_it_is_one(self):
        with (
            pytest.raises(errors.Unsupported) as caught,
            translated("USB device 1209:0001", opening=True),
        ):
            raise NotImplementedError("Operation not supported or unimplemented on this platform")
        assert str(caught.value) == (
            "USB device 1209:0001 cannot be used like this (Operation not supported or unimplemented on this "
            "platform): `cutcard ports` tells what it can be used as"
        )

    def test_i04_only_a_wake_ends_a_blocked_read_and_foreign_handles_stay_untouched(self):
        """What is opened next gets the number of our closed handle: nothing of it may be read or closed."""
        reader, writer = os.pipe()
        with using(PtyPeer()) as transport:
            transport.open()
            ours = transport._fd
            seen = []

            def owner():
                seen.append(transport.read(5))
                transport.close()

            thread = threading.Thread(target=owner)
            thread.start()
            transport.wake()
            thread.join(3)
            assert seen == [b""]
            try:
                foreign = os.dup2(reader, ours)
                os.write(writer, b"foreign")
                for use in (lambda: transport.read(0), lambda: transport.write(b"x")):
                    with pytest.raises(errors.LinkLost, match="is not open"):
                        use()
                transport.wake()
                transport.close()
                transport.dispose()
                assert os.read(foreign, 100) == b"foreign"
                os.write(writer, b"still open")
                assert os.read(foreign, 100) == b"still open"
            finally:
                for handle in (reader, writer, ours):
                    os.close(handle)

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

    def test_i10_the_kernel_is_told_to_refuse_others_and_to_let_them_in_again(self, monkeypatch):
        """Beside the lock, which binds only those who ask. A pty keeps this for ever, so none is told so."""
        told, real = [], fcntl.ioctl
        peer = PtyPeer()
        names = {termios.TIOCEXCL: "exclusive", termios.TIOCNXCL: "free"}

        def ioctl(handle, request, *more):
            if request not in names:
                return real(handle, request, *more)
            told.append((names[request], os.ttyname(handle)))
            return 0

        monkeypatch.setattr(fcntl, "ioctl", ioctl)
        with using(peer) as transport:
            transport.open()
            assert told == []
            transport.close()
            told.clear()
            monkeypatch.setattr(serial_module, "_is_pty", lambda device: False)
            for _ in range(2):
                transport.open()
                assert told == [("exclusive", peer.path)]
                transport.close()
                assert told == [("exclusive", peer.path), ("free", peer.path)]
                told.clear()

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
        monkeypatch.setattr(serial_module, "_is_tty", lambda device: True)
        try:
            with unprivileged():
                with pytest.raises(errors.Absent, match=r"may not open it.*appeared only now.*60-cutcard"):
                    transport.open()
                monkeypatch.setattr(serial_module, "APPEARANCE_S", 0.0)
                with pytest.raises(errors.Denied, match=r"may not open it.*its mode 0, so"):
                    transport.open()
        finally:
            transport.dispose()
            shutil.rmtree(directory)

    @pytest.mark.parametrize(("mode", "helps"), [(0o660, True), (0o640, False), (0o600, False)])
    def test_field_20_the_fix_is_printed_word_for_word(self, monkeypatch, tmp_path, mode, helps):
        """Joining a group helps only where the group has rights."""
        node = tmp_path / "ttyUSB0"
        node.touch()
        node.chmod(mode)
        monkeypatch.setattr(serial_module, "ROOT", -1)  # the file may be root's here
        entry = grp.struct_group(("games", "x", 60, []))
        monkeypatch.setattr(grp, "getgrgid", lambda number: entry)
        user = pwd.getpwuid(os.geteuid()).pw_name
        assert serial_module.rights_hint(str(node)) == (
            f"add the user to the group games (sudo usermod -aG games {user}) and log in again"
            if helps
            else f"its group is games and its mode {mode:o}, so joining a group does not help: give it a "
            "group with read and write rights by a udev rule (deploy/60-cutcard.rules is one) and plug the "
            "device in again"
        )

    def test_nobody_is_told_to_join_the_group_root(self):
        hint = serial_module.rights_hint("/dev/null")
        assert hint.startswith("its group is root and its mode 666, so joining a group does not help: ")

    @pytest.mark.parametrize("held", [True, False])
    def test_a_device_that_is_no_line_is_unsupported_whoever_has_it_open(self, monkeypatch, held):
        other = serial_module.locks.Holder(1, "bash") if held else None
        monkeypatch.setattr(serial_module.locks, "held_by", lambda device: other)
        transport = open_transport("serial:/dev/null")
        with pytest.raises(errors.Unsupported, match="is it a serial port"):
            transport.open()
        transport.dispose()

    def test_a_file_that_is_no_port_is_unsupported(self, tmp_path):
        node = tmp_path / "file"
        node.touch()
        transport = open_transport(f"serial:{node}")
        with pytest.raises(errors.Unsupported, match="is it a serial port"):
            transport.open()
        transport.dispose()


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


class TestLines:
    """Field problem 9: pins 8 and 9 of a wrong cable; nothing is raised that nobody asked for."""

    @pytest.fixture
    def lines(self, monkeypatch):
        """What is done to the modem lines, in order; a pty has none and refuses."""
        done = []
        real = fcntl.ioctl
        names = {termios.TIOCMBIS: "raise", termios.TIOCMBIC: "lower", termios.TIOCMSET: "set"}
        pins = {termios.TIOCM_DTR: "DTR", termios.TIOCM_RTS: "RTS"}

        def ioctl(handle, request, *more):
            if request in names:
                done.append((names[request], pins[int.from_bytes(more[0], sys.byteorder)]))
                return 0
            return real(handle, request, *more)

        monkeypatch.setattr(fcntl, "ioctl", ioctl)
        return done

    @pytest.mark.parametrize(
        ("settings", "expected"),
        [
            ("", [("lower", "DTR"), ("lower", "RTS")]),
            ("&dtr=off&rts=off", [("lower", "DTR"), ("lower", "RTS")]),
            ("&dtr=on", [("raise", "DTR"), ("lower", "RTS")]),
            ("&rts=on", [("lower", "DTR"), ("raise", "RTS")]),
            ("&dtr=on&rts=on", [("raise", "DTR"), ("raise", "RTS")]),
        ],
    )
    def test_field_09_dtr_and_rts_are_off_unless_the_uri_says_on(self, lines, settings, expected):
        peer = PtyPeer()
        peer.uri += settings
        with using(peer) as transport:
            for _ in range(2):
                lines.clear()
                transport.open()
                transport.write(b"x")
                transport.close()
                assert lines == expected
            raised = [pin for what, pin in expected if what == "raise"]
            assert [pin for pin in ("DTR", "RTS") if f"{pin} on" in transport.describe()] == raised

    def test_field_09_the_receive_only_form_raises_none_either(self, lines):
        with using(PtyPeer(), open_receiver) as receiver:
            receiver.open()
        assert lines == [("lower", "DTR"), ("lower", "RTS")]

    @pytest.mark.parametrize(("settings", "falls"), [("", True), ("&dtr=on", False), ("&rts=on", False)])
    def test_field_09_closing_leaves_a_raised_line_as_it_is(self, settings, falls):
        peer = PtyPeer()
        before = termios.tcgetattr(peer.spare)
        before[2] |= termios.HUPCL
        termios.tcsetattr(peer.spare, termios.TCSANOW, before)
        peer.uri += settings
        with using(peer) as transport:
            transport.open()
            transport.close()
            assert bool(termios.tcgetattr(peer.spare)[2] & termios.HUPCL) is falls

    def test_the_port_is_set_up_before_it_opens(self, monkeypatch):
        seen = []
        real = serial.Serial.open

        def spy(self):
            seen.append((self.dtr, self.rts, self.exclusive, self.write_timeout, self.baudrate))
            real(self)

        monkeypatch.setattr(serial.Serial, "open", spy)
        with using(PtyPeer()) as transport:
            transport.open()
        assert seen == [(False, False, True, 0.5, 4800)]

    @pytest.mark.parametrize(
        "error", [None, ValueError("no such flag"), OSError(errno.ENOTTY, "x")], ids=repr
    )
    def test_i17_low_latency_is_asked_for_at_every_open_and_may_be_refused(self, monkeypatch, error):
        asked = []

        def set_low_latency_mode(self, wanted):
            asked.append(wanted)
            if error is not None:
                raise error

        monkeypatch.setattr(serial.Serial, "set_low_latency_mode", set_low_latency_mode)
        peer = PtyPeer()
        with using(peer) as transport:
            for _ in range(3):
                transport.open()
                peer.send(b"on")
                assert read_all(transport, 2) == b"on"
                transport.close()
        assert asked == [True, True, True]


@contextlib.contextmanager
def opened_elsewhere(path, lock=False):
    """Another process that has the port open, as `cat` has, or locked as a terminal program has."""
    program = (
        "import fcntl, os, sys; handle = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)\n"
        "if sys.argv[2:]: fcntl.flock(handle, fcntl.LOCK_EX)\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, path, *["lock"] * lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout.readline() == b"held\n"
        try:
            yield child
        finally:
            child.communicate()


class TestWhoHolds:
    def test_i10_a_lock_without_a_lock_file_is_named_by_the_kernel(self, lock_dir):
        peer = PtyPeer()
        with using(peer) as transport, opened_elsewhere(peer.path, lock=True) as other:
            with pytest.raises(errors.Busy, match=rf"held by process {other.pid} \(python"):
                transport.open()
            other.communicate()
            transport.open()
            assert locks.held_by(peer.path) == locks.Holder(os.getpid(), locks.holder(peer.path).program)

    def test_i10_a_program_that_locks_nothing_is_named_too(self, lock_dir, monkeypatch):
        """As `cat` on a real port: each would get half of the bytes. A pty's far end has it open as well."""
        peer = PtyPeer()
        with using(peer) as transport, opened_elsewhere(peer.path) as other:
            transport.open()
            transport.close()
            assert locks.held_by(peer.path) is None
            seen = locks.opened_by(peer.path)
            assert (seen.pid, seen.sure) == (other.pid, True)
            monkeypatch.setattr(locks, "held_by", locks.opened_by)
            with pytest.raises(errors.Busy, match=rf"held by process {other.pid} \(python"):
                transport.open()

    def test_nobody_holds_what_is_not_there_or_not_locked(self, tmp_path):
        assert locks.held_by(str(tmp_path / "none")) is None
        (tmp_path / "free").touch()
        assert locks.held_by(str(tmp_path / "free")) is None
