"""Recording any transport: what is written, and that the wire does not notice."""

import io
import os
import resource
import stat
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge.capture import Recorder, read_capture, recorded
from firmware_bridge.clock import VirtualClock
from firmware_bridge.errors import Absent, LinkLost, Stalled
from firmware_bridge.transports.mem import MemReceiver, MemTransport
from tests.support.captures import HID, SERIAL, START_NS, USB, Bench, End, transfers


@pytest.fixture
def file(tmp_path):
    return tmp_path / "wire.pcapng"


Exchanges = st.lists(
    st.tuples(st.booleans(), st.binary(min_size=1, max_size=300), st.integers(0, 10**10)), max_size=12
)


@settings(max_examples=40)
@given(Exchanges, st.sampled_from([SERIAL, USB, HID, "socket:10.0.0.7:4001"]))
def test_what_goes_over_a_wire_is_read_back_with_its_times(tmp_path_factory, exchanges, uri):
    bench = Bench(tmp_path_factory.mktemp("wire") / "f", uri)
    expected, at = [], 0
    for inbound, data, pause in exchanges:
        bench.clock.advance(pause / 1e9)
        at += pause
        if inbound:
            assert bench.came(data) == data
        else:
            bench.over.write(data)
        expected.append((inbound, data, at))
    bench.over.dispose()
    found = bench.records()
    assert [(r.inbound, r.data) for r in found] == [(inbound, data) for inbound, data, _ in expected]
    assert all(abs(r.at - START_NS - e[2]) < 1000 for r, e in zip(found, expected, strict=True))
    assert all(r.packets == uri.startswith("usb") for r in found)
    assert bench.end.heard == b"".join(data for inbound, data, _ in exchanges if not inbound)
    assert (bench.recorder.bytes_in, bench.recorder.bytes_out) == (
        sum(len(data) for inbound, data, _ in exchanges if inbound),
        len(bench.end.heard),
    )


def test_a_receive_only_wire_stays_one_and_the_rest_is_its_own(file):
    bench = Bench(file, form=MemReceiver)
    bench.wire.device_number = 42
    assert not hasattr(bench.over, "write")
    assert bench.over.device_number == 42
    assert (bench.over.uri, bench.over.describe()) == (bench.wire.uri, bench.wire.describe())
    with pytest.raises(AttributeError):
        bench.over.nothing_like_it  # noqa: B018 - asking is the test
    bench.over.dispose()


def test_errors_come_through_and_what_failed_is_told_in_the_file(file):
    bench = Bench(file)
    bench.over.write(b"one")
    bench.end.dead = True
    with pytest.raises(LinkLost, match="Input/output error"):
        bench.over.write(b"two")
    with pytest.raises(LinkLost, match="No such device"):
        bench.over.read(0)
    bench.over.close()
    bench.over.dispose()
    assert [r.data for r in bench.records()] == [b"one", b"two"]
    raw = file.read_bytes()
    for words in (b"opened: simulated line", b"this write failed: ", b"lost: "):
        assert raw.count(words) == 1


def test_a_wall_clock_that_is_set_back_does_not_set_the_file_back(file):
    bench = Bench(file)
    for n in range(4):
        bench.clock.advance(1.5)
        bench.clock._epoch -= timedelta(hours=1)
        bench.came(bytes([n]))
    bench.over.dispose()
    assert [r.at - START_NS for r in bench.records()] == [1_500_000_000 * n for n in range(1, 5)]


# The file


def test_only_its_owner_may_read_the_file(file):
    before = os.umask(0)
    try:
        Bench(file).over.dispose()
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_is_overwritten_only_by_force_and_is_its_owner_s_then(file):
    file.write_bytes(b"precious" * 1000)
    file.chmod(0o644)
    with pytest.raises(FileExistsError):
        Bench(file)
    assert file.read_bytes() == b"precious" * 1000
    bench = Bench(file, force=True)
    bench.came(b"abc")
    bench.over.dispose()
    assert [r.data for r in bench.records()] == [b"abc"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_old_capture_lasts_until_the_port_of_the_new_one_was_opened(file):
    file.write_bytes(b"precious")
    wire = MemTransport.plugged("mem:nobody", "nobody")
    over = recorded(wire, Recorder(file, wire, VirtualClock(), told=pytest.fail, force=True))
    with pytest.raises(Absent):
        over.open()
    assert file.read_bytes() == b"precious"
    over.dispose()
    assert {f.name: f.read_bytes() for f in file.parent.iterdir()} == {file.name: b"precious"}


def test_an_old_capture_is_not_given_for_a_recording_that_never_began(file):
    file.write_bytes(b"precious")
    bench = Bench(file, force=True, forbidden=lambda: "a table is open")
    bench.came(b"abc")
    bench.over.dispose()
    assert bench.told == ["a table is open"]
    assert {f.name: f.read_bytes() for f in file.parent.iterdir()} == {file.name: b"precious"}


def test_what_cannot_take_the_place_of_the_old_file_is_told_and_leaves_it(file):
    file.write_bytes(b"precious")
    wire = MemTransport(End(), SERIAL)
    told = []
    over = recorded(wire, recorder := Recorder(file, wire, VirtualClock(), told=told.append, force=True))
    file.unlink()
    file.mkdir()
    over.open()
    over.dispose()
    assert told == [f"{file} cannot be overwritten (Is a directory): nothing is recorded"]
    assert (recorder.records, list(file.parent.iterdir())) == (0, [file])


def test_a_link_to_an_old_file_stays_one(file, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    real = tmp_path / "elsewhere" / "real"
    for old in (b"precious", None):
        if old is None:
            real.unlink()
        else:
            real.write_bytes(old)
        file.unlink(missing_ok=True)
        file.symlink_to(real)
        bench = Bench(file, force=True)
        bench.came(b"abc")
        bench.over.dispose()
        assert file.is_symlink()
        assert [r.data for r in bench.records()] == [b"abc"]
        assert (stat.S_IMODE(real.stat().st_mode), list(real.parent.iterdir())) == (0o600, [real])


def test_a_link_is_not_followed_to_a_file_that_is_not_there(file, tmp_path):
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        Bench(file)
    assert not (tmp_path / "elsewhere").exists()


def test_a_port_that_was_never_opened_leaves_no_file(file):
    wire = MemTransport.plugged("mem:nobody", "nobody")
    over = recorded(wire, Recorder(file, wire, VirtualClock(), told=pytest.fail))
    assert file.exists()
    with pytest.raises(Absent):
        over.open()
    over.dispose()
    assert not file.exists()


def test_every_record_is_there_at_once(file):
    """A crash, or a power cut of the program, leaves what was recorded; half a block is told and no harm."""
    bench = Bench(file)
    for n in range(3):
        bench.came(bytes([n]))
        assert [r.data for r in bench.records()] == [bytes([m]) for m in range(n + 1)]
    whole, notes = file.read_bytes(), []
    bench.over.dispose()
    assert file.read_bytes() == whole
    found = list(read_capture(io.BytesIO(whole[:-5]), "f", notes.append))
    assert [r.data for r in found] == [b"\0", b"\1"]
    assert len(notes) == 1


# Recording ends, the wire does not


def test_a_full_disk_ends_the_recording_with_a_word_and_troubles_nobody(file):
    bench = Bench(file)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 250, hard))
    try:
        for n in range(5):
            assert bench.came(bytes([n]) * 30) == bytes([n]) * 30
            bench.over.write(b"x")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert bench.end.heard == b"xxxxx"
    bench.came(b"room again")
    bench.over.dispose()
    assert bench.told == [bench.recorder.stopped]
    assert "wire.pcapng takes no more (File too large)" in bench.told[0]
    found = bench.records()
    assert [r.data for r in found] == [b"\0" * 30, b"x", b"\1" * 30][: len(found)]
    assert 0 < len(found) == bench.recorder.records - 1  # and the opening


def test_a_disk_that_is_full_from_the_start_is_an_error(tmp_path):
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught:
        Bench(full, force=True)
    assert caught.value.filename == str(full)
    assert full.exists()


@pytest.mark.parametrize("force", [False, True])
def test_the_file_that_cannot_be_made_is_named_as_it_was_given(tmp_path, force):
    nowhere = tmp_path / "nowhere" / "f"
    with pytest.raises(FileNotFoundError) as caught:
        Bench(nowhere, force=force)
    assert caught.value.filename == str(nowhere)
    with pytest.raises(OSError, match=r"directory|exists") as caught:
        Bench(tmp_path, force=force)
    assert (caught.value.filename, list(tmp_path.iterdir())) == (str(tmp_path), [])


def test_a_reader_of_the_file_that_left_ends_the_recording_too(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    bench = Bench(pipe, force=True)
    os.close(reader)
    for n in range(3):
        assert bench.came(bytes([n])) == bytes([n])
    bench.over.dispose()
    assert ["Broken pipe" in text for text in bench.told] == [True]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_is_forbidden_is_not_recorded_from_then_on(file):
    reasons = [None, None, None, "a table is open", None]
    bench = Bench(file, forbidden=lambda: reasons.pop(0))
    assert bench.recorder.check()
    for n in range(4):
        assert bench.came(bytes([n])) == bytes([n])
    assert not bench.recorder.check()
    bench.over.dispose()
    assert bench.told == ["a table is open"]
    assert [r.data for r in bench.records()] == [b"\0"]


# USB


def test_transfers_fail_with_the_status_that_linux_gives_them(file):
    bench = Bench(file, USB)

    def stall(_):
        raise Stalled("its endpoint is halted")

    bench.wire.read = stall
    with pytest.raises(Stalled):
        bench.over.read(0)
    bench.over.open()
    bench.end.dead = True
    with pytest.raises(LinkLost):
        bench.over.write(b"q")
    del bench.wire.read
    with pytest.raises(LinkLost):
        bench.over.read(0)
    bench.over.dispose()
    assert transfers(file) == [
        ("S", 0x81, 1, -115), ("C", 0x81, 1, -32),
        ("S", 0x81, 2, -115),
        ("S", 0x02, 3, -115), ("C", 0x02, 3, -5),
        ("C", 0x81, 2, -19),
    ]  # fmt: skip


def test_a_device_that_comes_back_under_another_number_stays_one_wire(file):
    bench = Bench(file, USB)
    bench.came(b"before")
    bench.over.close()
    bench.wire.ends.address = 6
    bench.over.open()
    bench.came(b"after")
    bench.over.dispose()
    assert [r.data for r in bench.records()] == [b"before", b"after"]
