"""Lock files lie in directories that everybody may write to, and name processes we may not look into."""

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from firmware_bridge import errors
from firmware_bridge.transports import locks
from tests.support.peers import PtyPeer, using

DEVICE = "/dev/ttyX"


@pytest.fixture
def lock_dir(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "LOCK_DIRS", (tmp_path,))
    return tmp_path


@pytest.fixture
def other():
    """Another program, which keeps running and has no port open."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        yield child
        child.kill()


@pytest.fixture
def may_not_look(monkeypatch):
    """As into another user's process when we are not root."""

    def denied(self):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", denied)


def in_time(act):
    """What `act` gives; fails when it blocks."""
    out = []
    thread = threading.Thread(target=lambda: out.append(act()), daemon=True)
    thread.start()
    thread.join(3)
    return out[0]


class TestTraps:
    """What another user may have laid where a lock file is expected."""

    def test_a_pipe_is_not_waited_for(self, lock_dir):
        pipe = lock_dir / "LCK..ttyX"
        os.mkfifo(pipe)
        try:
            assert in_time(lambda: locks.holder(DEVICE)) is None
            in_time(lambda: locks.remove(DEVICE))
            assert pipe.is_fifo()
            locks.write(DEVICE)
            assert pipe.read_text().split()[0] == str(os.getpid())
        finally:  # whoever waits for a writer is let go
            if pipe.is_fifo():
                os.close(os.open(pipe, os.O_RDWR))

    def test_a_file_without_an_end_is_not_read_to_it(self, lock_dir, monkeypatch):
        asked = []
        real = os.read
        monkeypatch.setattr(os, "read", lambda handle, size: asked.append(size) or real(handle, size))
        with (lock_dir / "LCK..ttyX").open("wb") as file:
            file.write(b"%10d\n" % os.getpid())
            file.truncate(1 << 40)
        monkeypatch.setattr(locks, "_has_open", lambda pid, device: True)
        assert locks.holder(DEVICE).pid == os.getpid()
        locks.remove(DEVICE)
        assert asked == [locks.READ_MAX] * 2
        assert list(lock_dir.iterdir()) == []

    @pytest.mark.parametrize("name", ["LCK..ttyX", "LCK..ttyX.{pid}"])
    def test_no_link_is_followed(self, lock_dir, tmp_path_factory, name):
        name = name.format(pid=os.getpid())
        precious = tmp_path_factory.mktemp("home") / "precious"
        precious.write_text(f"{os.getpid()}\n")
        (lock_dir / name).symlink_to(precious)
        assert locks.holder(DEVICE) is None
        locks.remove(DEVICE)
        assert (lock_dir / name).is_symlink()
        locks.write(DEVICE)
        assert precious.read_text() == f"{os.getpid()}\n"
        file = lock_dir / "LCK..ttyX"
        assert not file.is_symlink()
        assert file.read_text().split()[0] == str(os.getpid())

    def test_a_directory_in_its_place_hinders_nothing(self, lock_dir):
        (lock_dir / "LCK..ttyX").mkdir()
        assert locks.holder(DEVICE) is None
        locks.write(DEVICE)
        locks.remove(DEVICE)
        assert [entry.name for entry in lock_dir.iterdir()] == ["LCK..ttyX"]

    def test_others_may_read_ours_whatever_the_umask(self, lock_dir):
        before = os.umask(0o077)
        try:
            locks.write(DEVICE)
        finally:
            os.umask(before)
        assert (lock_dir / "LCK..ttyX").stat().st_mode & 0o777 == 0o644

    @pytest.mark.parametrize("text", ["", "\n", "none\n", "-1\n", "12ab\n", "9" * 300, "\xff"])
    def test_what_names_nobody_is_no_lock(self, lock_dir, text):
        (lock_dir / "LCK..ttyX").write_text(text)
        assert locks.holder(DEVICE) is None


class TestForeignProcess:
    """I-10: a program that only writes the file and takes no lock of the kernel's, as another user."""

    @staticmethod
    def leave(lock_dir, device, text, age=0.0):
        file = lock_dir / locks._name(device)
        file.write_text(text)
        os.utime(file, (time.time() - age,) * 2)
        return file

    @pytest.mark.parametrize(
        "form", ["{:10d}\n", "{:10d} minicom root\n", "{:10d}\nminicom\n"], ids=["HDB", "minicom", "ours"]
    )
    def test_i10_it_is_refused_and_named(self, lock_dir, other, may_not_look, form):
        peer = PtyPeer()
        with using(peer) as transport:
            self.leave(lock_dir, peer.path, form.format(other.pid))
            named = r"\(minicom\)" if form.endswith("minicom\n") else r"\(py"
            with pytest.raises(errors.Busy, match=rf"held by process {other.pid} {named}"):
                transport.open()
            other.kill()
            other.wait()
            transport.open()

    @pytest.mark.parametrize("age", [3600.0, -3600.0], ids=["older than the process", "of the future"])
    def test_a_stale_file_with_a_number_that_was_given_away_again_stops_nothing(
        self, lock_dir, other, may_not_look, age
    ):
        peer = PtyPeer()
        with using(peer) as transport:
            self.leave(lock_dir, peer.path, f"{other.pid:10d}\n", age)
            assert not locks.holder(peer.path).sure
            transport.open()
            assert locks.holder(peer.path).pid == os.getpid()

    def test_a_file_of_one_user_proves_nothing_about_another_users_process(
        self, lock_dir, other, may_not_look
    ):
        file = self.leave(lock_dir, DEVICE, f"{other.pid:10d}\n")
        assert locks.holder(DEVICE).sure
        if os.geteuid():
            file.write_text("         1\n")
        else:
            os.chown(file, 65534, 65534)
        assert not locks.holder(DEVICE).sure

    def test_a_process_that_we_may_look_into_and_has_it_not_open_left_the_file(self, lock_dir, other):
        self.leave(lock_dir, DEVICE, f"{other.pid:10d}\n")
        assert locks.holder(DEVICE) is None

    def test_the_kernels_word_comes_before_a_file(self, lock_dir, other, may_not_look, monkeypatch):
        self.leave(lock_dir, DEVICE, f"{other.pid:10d}\nleft\n")
        monkeypatch.setattr(locks, "locked_by", lambda device: locks.Holder(42, "picocom"))
        assert locks.held_by(DEVICE) == locks.Holder(42, "picocom")
        monkeypatch.setattr(locks, "locked_by", lambda device: locks.Holder(other.pid, "python3"))
        assert locks.held_by(DEVICE) == locks.Holder(other.pid, "left")

    def test_a_holder_with_a_name_that_is_no_text_is_a_holder(self, lock_dir, may_not_look):
        program = "open('/proc/self/comm', 'wb').write(b'ab\\xff'); print(flush=True); input()"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", program], **pipes) as child:
            child.stdout.readline()
            self.leave(lock_dir, DEVICE, f"{child.pid:10d}\n")
            assert locks.holder(DEVICE) == locks.Holder(child.pid, "ab\ufffd")
            child.communicate(b"\n")

    def test_the_start_of_a_process_is_told_in_wall_time(self, lock_dir):
        before = time.time()
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
            after = time.time()
            file = self.leave(lock_dir, DEVICE, "x")
            for written, proves in ((after, True), (before - 2 * locks.CLOCK_S, False)):
                os.utime(file, (written,) * 2)
                assert locks._wrote(child.pid, file.stat()) is proves
            child.communicate(b"\n")
        assert not locks._wrote(child.pid, file.stat())
