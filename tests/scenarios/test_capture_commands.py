"""A wire recorded by `capture` or CUTCARD_CAPTURE, read by `decode`, played by `replay` to a `monitor`."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import resource
import signal
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from controller import daemon, log, open_tables
from controller.cli import capture as capture_module
from controller.cli import monitor as monitor_module
from controller.cli.app import app
from controller.cli.decode import CHUNK, _timed
from controller.cli.exits import CommandError, RefusedByTable
from controller.cli.listen import PortError
from controller.cli.send import NotDone
from controller.cli.wires import VARIABLE
from firmware_bridge.capture import CaptureError, Record, read_capture
from firmware_bridge.clock import SystemClock
from firmware_bridge.framing.angel_eye import encode_command
from firmware_bridge.transports import libusb
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.usb_backend import SimBackend
from simulators.hosts.usb_host import UsbHost
from simulators.rig import replay
from simulators.rig.sim import listen
from simulators.wire.framings import PACKETS
from tests.support.captures import USB, Bench
from tests.support.desk import angel_eye, desk, managed_shoe, served

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "angel_eye.json").read_text())
GOOD = [bytes.fromhex(v["hex"]) for v in VECTORS["round_trip"]]
STREAM = [
    b"\x00\xff\x06",
    *(frame[:at] for frame in GOOD for at in (4, None)),
    bytes.fromhex("05314481b8033445"),
]
"""Noise, each telegram cut off once and then whole, and a frame that must be refused."""
WAIT_S = 30.0


@pytest.fixture
def no_table_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of other tests on this machine shall not count."""
    monkeypatch.setattr(open_tables, "any_open", lambda: False)


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a command has opened its port."""
    opened = threading.Event()

    def note(text: str) -> None:
        if text.startswith("listening on"):
            opened.set()

    monkeypatch.setattr(monitor_module, "note", note)
    monkeypatch.setattr(capture_module, "note", note)
    return opened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "wire.pcapng"


@contextlib.contextmanager
def running(target: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(WAIT_S)
        assert not thread.is_alive()


@contextlib.contextmanager
def talking(listening: threading.Event, pieces: list[bytes]) -> Iterator[str]:
    """A serial line whose device says all that when somebody listens; the port."""
    master, slave = pty.openpty()

    def device() -> None:
        assert listening.wait(WAIT_S)
        for piece in pieces:
            os.write(master, piece)

    try:
        with running(device):
            yield f"serial:{os.ttyname(slave)}"
    finally:
        os.close(slave)
        os.close(master)


def cutcard(*args: str, **env: str) -> Result:
    return CliRunner().invoke(app, list(args), env=env)


def told(text: str) -> list[dict[str, Any]]:
    """Events without their times."""
    events = [json.loads(line) for line in text.splitlines()]
    return [{k: v for k, v in e.items() if k != "at"} for e in events if e["kind"] != "summary"]


def decoded(file: Path, driver: str = "angel-eye") -> list[dict[str, Any]]:
    done = cutcard("decode", "--driver", driver, "--format", "pcapng", "--json", str(file))
    assert done.exit_code == 0, done.exception
    return told(done.stdout)


# Recorded, then decoded


@pytest.mark.usefixtures("no_table_open")
def test_what_a_monitor_saw_is_what_its_capture_says(listening: threading.Event, file: Path) -> None:
    with talking(listening, STREAM) as port:
        seen = cutcard(
            "monitor", port, "--driver", "angel-eye", "--seconds", "1.5", "--json", CUTCARD_CAPTURE=str(file)
        )
    assert seen.exit_code == 0, seen.exception
    assert len(told(seen.stdout)) >= len(GOOD)
    assert decoded(file) == told(seen.stdout)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.usefixtures("no_table_open")
def test_capture_records_and_counts(listening: threading.Event, file: Path) -> None:
    with talking(listening, GOOD) as port:
        args = ("capture", port, "--driver", "angel-eye", "-o", str(file), "--seconds", "1.5", "--json")
        done = cutcard(*args)
    assert done.exit_code == 0, done.exception
    found = json.loads(done.stdout)
    assert 1.5 <= found.pop("seconds") < 3
    assert found.pop("records") >= 2
    size = sum(map(len, GOOD))
    assert found == {
        "file": str(file), "port": port, "driver": "angel-eye", "bytes_in": size, "bytes_out": 0,
        "frames": 18, "events": 18, "rejected": 0,
    }  # fmt: skip
    assert [e["raw"] for e in decoded(file)] == [frame.hex() for frame in GOOD]


@pytest.mark.usefixtures("no_table_open", "listening")
def test_a_polled_device_on_a_serial_line_both_directions(file: Path, tmp_path: Path) -> None:
    device = managed_shoe()
    device.shoe.draw()
    with served(PtyHost(device, tmp_path / "port")) as host:
        args = ("--driver", "managed-shoe", "--json")
        seen = cutcard("monitor", host.uri, *args, "--count", "1", CUTCARD_CAPTURE=str(file))
        assert [e["kind"] for e in told(seen.stdout)] == ["link_up"]
        second = tmp_path / "second.pcapng"
        sent = cutcard("send", host.uri, *args, "lock", CUTCARD_CAPTURE=str(second))
        assert sent.exit_code == 0, sent.exception
    assert [r.inbound for r in records(file)].count(False) >= 4
    # The oldest event of the device: the session's look at the ring brought it, and it is no news.
    assert [(e["kind"], e["seq"]) for e in decoded(file, "managed-shoe")] == [("lid", 1)]
    assert [e["kind"] for e in decoded(second, "managed-shoe") if "command" in e["kind"]] == [
        "command_seen",
        "command_done",
    ]
    assert all(e["kind"] != "frame_rejected" for f in (file, second) for e in decoded(f, "managed-shoe"))


@pytest.mark.usefixtures("no_table_open", "listening")
def test_a_polled_device_on_usb_both_directions(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = managed_shoe(PACKETS)
    with served(UsbHost(device)) as host:
        monkeypatch.setattr(libusb, "make_backend", lambda: SimBackend(host.bus))
        sent = cutcard(
            "send", host.uri, "--driver", "managed-shoe", "--json", "lock", CUTCARD_CAPTURE=str(file)
        )
        assert sent.exit_code == 0, sent.exception
    assert all(r.packets for r in records(file))
    kinds = [e["kind"] for e in decoded(file, "managed-shoe")]
    assert [kind for kind in kinds if "command" in kind] == ["command_seen", "command_done"]
    assert "frame_rejected" not in kinds


def records(file: Path) -> list[Any]:
    with file.open("rb") as source:
        return list(read_capture(source, str(file), pytest.fail))


def test_a_command_that_crosses_a_telegram_breaks_neither(file: Path) -> None:
    bench = Bench(file)
    telegram = GOOD[0]
    for data in (telegram[:4], encode_command("LK", 2, True), telegram[4:], b"\x06"):
        bench.clock.advance(0.02)
        if data.startswith(b"\x02OP"):
            bench.over.write(data)
        else:
            bench.came(data)
    bench.over.dispose()
    assert [(e["kind"], e.get("command")) for e in decoded(file)] == [
        ("command_seen", "lock"),
        ("session_started", None),
        ("command_done", None),
    ]


def test_decode_has_the_times_of_the_capture(file: Path) -> None:
    """The silence after a frame that never ended is told when it fell, not when the next byte came."""
    bench = Bench(file)
    bench.came(GOOD[0])
    bench.clock.advance(60.25)
    bench.came(GOOD[1][:3])
    bench.clock.advance(3600)
    bench.came(GOOD[1])
    bench.over.dispose()
    done = cutcard("decode", "--driver", "angel-eye", "--format", "pcapng", "--json", str(file))
    *events, _ = map(json.loads, done.stdout.splitlines())
    assert [(e["kind"], e["at"]) for e in events] == [
        ("session_started", "2026-01-01T00:00:00.000Z"),
        ("frame_rejected", "2026-01-01T00:01:00.750Z"),
        ("standby", "2026-01-01T01:01:00.250Z"),
    ]


def test_copies_are_told_by_the_times_of_the_capture(file: Path) -> None:
    bench = Bench(file)
    for pause in (0.0, 0.1, 5.0):
        bench.clock.advance(pause)
        bench.came(GOOD[1])
    bench.over.dispose()
    assert [e["kind"] for e in decoded(file)].count("standby") == 2


def test_a_driver_is_never_given_a_long_record_at_once() -> None:
    """All its events would be held at once, however many."""
    long = Record(5, inbound=True, data=bytes(range(256)) * 1000, packets=False)
    pieces = [piece for batch in _timed(iter([long])) for piece in batch]
    assert b"".join(data for data, *_ in pieces) == long.data
    assert max(len(data) for data, *_ in pieces) <= CHUNK
    assert {(now, inbound) for _, now, _, inbound, _ in pieces} == {(0.0, True)}


def test_standard_input_is_read_as_it_comes(file: Path) -> None:
    bench = Bench(file)
    bench.came(GOOD[0])
    bench.over.dispose()
    args = ["decode", "--driver", "angel-eye", "--format", "pcapng", "--json", "-"]
    done = CliRunner().invoke(app, args, input=file.read_bytes())
    assert [e["kind"] for e in told(done.stdout)] == ["session_started"]
    cut = CliRunner().invoke(app, args, input=file.read_bytes()[:-3])
    assert (cut.exit_code, told(cut.stdout)) == (0, [])
    assert cut.stderr.startswith("cutcard: standard input is cut short at byte ")


def test_a_capture_that_is_read_as_raw_bytes_is_remarked_on(file: Path) -> None:
    Bench(file).over.dispose()
    done = cutcard("decode", "--driver", "angel-eye", "--json", str(file))
    assert (done.exit_code, [e["kind"] for e in told(done.stdout)]) == (0, ["frame_rejected"])
    assert done.stderr.endswith("did you mean --format pcapng?\n")


@pytest.mark.parametrize("command", ["decode", "replay"])
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda data: data[:20], "ends before a capture begins"),
        (lambda data: data[:-4] + b"\xff\xff\xff\x7f", "is damaged at byte"),
        (lambda data: b"\x1f\x8b" + data, "gunzip"),
    ],
    ids=["cut off", "damaged", "gzip"],
)
def test_a_hostile_file_is_one_sentence_and_nothing_is_written(
    command: str, spoil: Callable[[bytes], bytes], says: str, file: Path, tmp_path: Path
) -> None:
    bench = Bench(file)
    bench.came(GOOD[0])
    bench.over.dispose()
    file.write_bytes(spoil(file.read_bytes()))
    port = tmp_path / "port"
    decode = ("--driver", "angel-eye", "--format", "pcapng")
    done = cutcard(command, str(file), *(decode if command == "decode" else ("--listen", f"pty:{port}")))
    assert isinstance(done.exception, CaptureError)
    assert str(done.exception).startswith(f"{file} ")
    assert says in str(done.exception)
    assert done.stdout == ""
    assert not port.is_symlink()


# Recorded, played, seen again


@pytest.mark.usefixtures("no_table_open", "listening")
@pytest.mark.parametrize("place", ["pty:{}", "tcp:127.0.0.1:0"])
def test_what_is_played_back_is_seen_as_the_first_time(place: str, file: Path, tmp_path: Path) -> None:
    bench = Bench(file)
    for frame in GOOD:
        for _ in range(3):
            bench.clock.advance(0.02)
            bench.came(frame)
    bench.over.dispose()
    with replay.load(file, 4.0, pytest.fail) as (tape, found):
        assert found == {"bytes": 3 * sum(map(len, GOOD)), "seconds": 1.06, "host_bytes_left_out": 0}
        with playing(tape, place.format(tmp_path / "port")) as host:
            seen = cutcard("monitor", host.uri, "--driver", "angel-eye", "--json")
    assert isinstance(seen.exception, PortError)
    assert told(seen.stdout) == decoded(file)
    first, *_, last = (json.loads(line)["at"] for line in seen.stdout.splitlines())
    assert first[:19] <= last[:19]
    assert len(told(seen.stdout)) == len(GOOD)


@contextlib.contextmanager
def playing(tape: replay.Tape, place: str) -> Iterator[Any]:
    """The host where a tape is played meanwhile; it is closed when all is played, as the command does it."""
    host = listen(tape, place)
    with contextlib.closing(host), contextlib.closing(replay.Stage(host)) as stage:

        def play() -> None:
            stage.play(tape)
            host.close()

        with running(play):
            yield host


def test_a_slow_reader_of_a_fast_tape_loses_nothing(file: Path, tmp_path: Path) -> None:
    bench, data = Bench(file), bytes(range(1, 251)) * 64
    for _ in range(20):
        bench.came(data)
    bench.over.dispose()
    place = f"pty:{tmp_path / 'port'}"
    with replay.load(file, None, pytest.fail) as (tape, _), playing(tape, place) as host:
        got, reader = b"", os.open(host.path, os.O_RDONLY | os.O_NOCTTY)
        try:
            while len(got) < 20 * len(data):
                got += os.read(reader, 4096)
        finally:
            os.close(reader)
    assert got == data * 20


def test_a_pause_of_years_is_waited_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No wait of the kernel is that long; the clock skips it here, once the first bytes came."""
    bench = Bench(file)
    for data in (b"ab", b"cd"):
        bench.came(data)
        bench.clock.advance(7e9)
    bench.over.dispose()
    monkeypatch.setattr(replay, "WAIT_LIMIT_S", 0.05)
    skipped, now = threading.Event(), SystemClock().now
    monkeypatch.setattr(SystemClock, "now", lambda _: now() + 8e9 * skipped.is_set())
    with replay.load(file, 1.0, pytest.fail) as (tape, _), playing(tape, "tcp:127.0.0.1:0") as host:
        where = host.uri.removeprefix("socket:").rsplit(":", 1)
        with socket.create_connection((where[0], int(where[1])), WAIT_S) as client:
            assert client.recv(100) == b"ab"
            skipped.set()
            assert client.recv(100) == b"cd"


@pytest.mark.usefixtures("no_table_open")
def test_the_replay_command_says_where_it_is_and_ends_well(file: Path, tmp_path: Path) -> None:
    bench = Bench(file)
    bench.came(GOOD[0])
    bench.over.write(b"?")
    bench.clock.advance(0.25)
    bench.came(GOOD[1])
    bench.over.dispose()
    with desk() as here:
        player = here.cutcard("replay", str(file), "--listen", "tcp:127.0.0.1:0")
        here.until(lambda: len(player.out) > 0)
        said = json.loads(player.out[0])
        assert said.pop("port").startswith("socket:127.0.0.1:")
        assert said == {
            "listening": "tcp:127.0.0.1:0", "file": str(file),
            "bytes": len(GOOD[0] + GOOD[1]), "seconds": 0.25, "host_bytes_left_out": 1,
        }  # fmt: skip
        port = json.loads(player.out[0])["port"]
        watcher = here.cutcard("monitor", port, "--driver", "angel-eye", "--json", alone=True)
        code, out, err = here.end_of(watcher)
        assert (code, [json.loads(line)["kind"] for line in out]) == (3, ["session_started", "standby"]), err
        assert here.end_of(player) == (0, player.out[:1], [])


def test_a_tape_of_usb_packets_or_of_nothing_is_not_played(file: Path, tmp_path: Path) -> None:
    bench = Bench(file, USB)
    bench.came(b"packet")
    bench.over.dispose()
    done = cutcard("replay", str(file), "--listen", f"pty:{tmp_path / 'port'}")
    assert isinstance(done.exception, CommandError)
    assert "cutcard decode --format pcapng" in str(done.exception)
    silent = Bench(tmp_path / "silent")
    silent.over.write(b"anybody?")
    silent.over.dispose()
    done = cutcard("replay", str(silent.file), "--listen", f"pty:{tmp_path / 'port'}")
    assert isinstance(done.exception, CommandError)
    assert "nothing to play" in str(done.exception)
    assert not (tmp_path / "port").is_symlink()


# How a recording ends


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_the_summary(number: signal.Signals, file: Path, tmp_path: Path) -> None:
    with desk() as here:
        host = here.serve(PtyHost(angel_eye(), tmp_path / "port"))
        child = here.cutcard("capture", host.uri, "--driver", "angel-eye", "-o", str(file), alone=True)
        here.until(lambda: len(child.err) == 2)
        child.process.send_signal(number)
        code, out, err = here.end_of(child)
    assert (code, len(out)) == (0, 1)
    assert out[0].startswith(f"{file}: 1 records in ")
    assert err == [f"recording to {file}; Ctrl-C ends", err[1]]
    assert records(file) == []


@pytest.mark.usefixtures("no_table_open", "listening")
def test_a_port_that_is_not_there_leaves_no_file_and_exit_code_3(file: Path) -> None:
    done = cutcard("capture", "serial:/dev/cutcard-no-such-port", "--driver", "angel-eye", "-o", str(file))
    assert isinstance(done.exception, PortError)
    assert done.exception.code == 3
    assert not file.exists()


@pytest.mark.usefixtures("no_table_open")
def test_a_full_disk_ends_a_capture_and_what_was_recorded_can_be_read(
    listening: threading.Event, file: Path
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with talking(listening, [GOOD[0] * 100]) as port:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, hard))
        try:
            done = cutcard("capture", port, "--driver", "angel-eye", "-o", str(file))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert isinstance(done.exception, CommandError)
    assert (done.exception.code, done.stdout) == (2, "")
    said = f"{file} takes no more (File too large): the recording ends there (1 records before that are in "
    assert str(done.exception).startswith(said)
    assert records(file) == []


@pytest.mark.usefixtures("no_table_open", "listening")
def test_a_file_that_is_there_is_not_overwritten(file: Path) -> None:
    file.write_text("precious")
    port = ("socket:127.0.0.1:1", "--driver", "angel-eye")
    for done, remedy in (
        (cutcard("capture", *port, "-o", str(file)), "add --force"),
        (cutcard("monitor", *port, CUTCARD_CAPTURE=str(file)), f"give {VARIABLE} another name"),
    ):
        assert isinstance(done.exception, CommandError)
        assert done.exception.code == 2
        assert "is there already and is not overwritten" in str(done.exception)
        assert remedy in str(done.exception)
    assert file.read_text() == "precious"
    assert isinstance(cutcard("capture", *port, "-o", str(file), "--force").exception, PortError)


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("command", ["capture", "monitor", "send"])
def test_nothing_is_recorded_at_an_open_table(command: str, file: Path) -> None:
    args = {"capture": ("-o", str(file)), "monitor": (), "send": ("lock",)}[command]
    env = {} if command == "capture" else {VARIABLE: str(file)}
    with open_tables.mark_open("BJ-07"):
        done = cutcard(command, "socket:127.0.0.1:1", "--driver", "angel-eye", *args, **env)
    assert isinstance(done.exception, NotDone if command == "send" else RefusedByTable)
    assert done.exception.code == 4
    assert "a table is open on this machine" in str(done.exception)
    assert not file.exists()


@pytest.mark.usefixtures("no_table_open")
def test_a_command_whose_recording_cannot_be_made_is_not_sent_and_says_so(file: Path) -> None:
    file.write_text("precious")
    args = ("send", "socket:127.0.0.1:1", "--driver", "angel-eye", "lock", "--json")
    cases = [("table_open", 4, "a table is open"), ("capture", 2, "is there already")]
    for code, number, says in cases:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(open_tables, "any_open", lambda number=number: number == 4)
            done = cutcard(*args, CUTCARD_CAPTURE=str(file))
        assert json.loads(done.stdout) == {
            "command": "lock", "outcome": "not_sent", "code": code, "answer": None
        }  # fmt: skip
        assert isinstance(done.exception, NotDone)
        assert done.exception.code == number
        assert str(done.exception).startswith("lock was not sent: ")
        assert says in str(done.exception)
    done = cutcard(*args, CUTCARD_CAPTURE=str(file / "nowhere"))
    assert json.loads(done.stdout)["code"] == "capture"
    assert str(done.exception) == f"lock was not sent: {file / 'nowhere'}: Not a directory"


def test_a_table_that_opens_ends_a_capture_on_a_silent_wire_too(
    listening: threading.Event, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_module, "TURN_S", 0.05)
    monkeypatch.setattr(open_tables, "any_open", listening.is_set)
    with talking(listening, []) as port:
        done = cutcard("capture", port, "--driver", "angel-eye", "-o", str(file))
    assert isinstance(done.exception, RefusedByTable)
    assert f"(1 records before that are in {file})" in str(done.exception)


def test_a_table_that_opens_ends_a_monitor_s_recording_and_not_the_monitor(
    listening: threading.Event, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_tables, "any_open", listening.is_set)
    with talking(listening, GOOD) as port:
        args = ("monitor", port, "--driver", "angel-eye", "--count", "18", "--json")
        done = cutcard(*args, CUTCARD_CAPTURE=str(file))
    assert done.exit_code == 0, done.exception
    assert len(told(done.stdout)) == 18
    assert done.stderr.count("a table is open on this machine") == 1
    assert records(file) == []


def test_the_daemon_of_a_table_never_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    warned: list[tuple[str, dict[str, Any]]] = []

    class Logger:
        def warning(self, event: str, **keys: Any) -> None:
            warned.append((event, keys))

    loaded = type("Loaded", (), {"notes": ()})
    monkeypatch.setattr(log, "configure", lambda level: None)
    monkeypatch.setattr(log, "get", Logger)
    monkeypatch.setattr("controller.config.load", lambda table: loaded)
    monkeypatch.setattr(daemon, "serve", lambda *_: 0)
    assert cutcard("run", str(tmp_path / "t.toml"), CUTCARD_CAPTURE=str(file)).exit_code == 0
    assert [(event, keys["variable"]) for event, keys in warned] == [("capture ignored", VARIABLE)]
    assert not file.exists()
