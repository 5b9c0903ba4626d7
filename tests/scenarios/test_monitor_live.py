"""`cutcard monitor` on real pseudo-terminals and TCP connections."""

import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import cbor2
import pytest
from typer.testing import CliRunner, Result

from controller import open_tables
from controller.cli import monitor as monitor_module
from controller.cli.app import app
from controller.cli.listen import PortError
from devices.managed import session
from firmware_bridge import smp
from firmware_bridge.framing import smp_console
from firmware_bridge.port import MUTE

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "angel_eye.json").read_text())
GOOD = [bytes.fromhex(v["hex"]) for v in VECTORS["round_trip"]]
STREAM = b"\x00\xff\x06" + b"".join(frame * 3 for frame in GOOD) + bytes.fromhex("05314481b8033445")
"""Noise, every telegram three times, and a frame that must be refused."""
CUTCARD = [sys.executable, "-c", "from controller.cli.app import main; main()"]
WAIT_S = 30.0


@pytest.fixture
def no_table_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of other programs on this machine shall not hide our cards."""
    monkeypatch.setattr(open_tables, "any_open", lambda: False)


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when the monitor has opened its port."""
    opened = threading.Event()
    monkeypatch.setattr(monitor_module, "note", lambda text: opened.set())
    return opened


def whole(data: bytes) -> list[bytes]:
    return [data]


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def pieces(data: bytes) -> list[bytes]:
    random, out = Random(11), []
    while data:
        size = random.randint(1, 40)
        out.append(data[:size])
        data = data[size:]
    return out


@contextlib.contextmanager
def running(target: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=target)
    thread.start()
    try:
        yield
    finally:
        thread.join(WAIT_S)
        assert not thread.is_alive()


@contextlib.contextmanager
def pty_line() -> Iterator[tuple[int, str]]:
    """A serial line: the device's handle, and the controller's port."""
    master, slave = pty.openpty()
    try:
        yield master, f"serial:{os.ttyname(slave)}"
    finally:
        os.close(slave)
        with contextlib.suppress(OSError):
            os.close(master)


@contextlib.contextmanager
def tcp_line() -> Iterator[tuple[socket.socket, str]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S)
        yield server, f"socket:127.0.0.1:{server.getsockname()[1]}"


def monitor(*args: str) -> Result:
    return CliRunner().invoke(app, ["monitor", *args])


def own_lines(err: str) -> list[str]:
    """What was said but for tables of other programs on this machine, which come and go."""
    return [line for line in err.splitlines() if line not in (monitor_module.MASKED, monitor_module.SHOWN)]


def told(result: Result) -> list[dict[str, Any]]:
    """The events without their time."""
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(e["at"].endswith("Z") for e in events)
    return [{k: v for k, v in e.items() if k != "at"} for e in events]


def decoded(data: bytes) -> list[dict[str, Any]]:
    done = CliRunner().invoke(app, ["decode", "--driver", "angel-eye", "--json", "-"], input=data)
    *events, _ = (json.loads(line) for line in done.stdout.splitlines())
    return [{k: v for k, v in e.items() if k != "at"} for e in events]


@pytest.mark.parametrize("split", [whole, bytewise, pieces])
@pytest.mark.usefixtures("no_table_open")
def test_a_pty_gives_the_events_that_decode_gives(
    split: Callable[[bytes], list[bytes]], listening: threading.Event
) -> None:
    expected = decoded(STREAM)
    with pty_line() as (master, port):

        def device() -> None:
            assert listening.wait(WAIT_S)
            for piece in split(STREAM):
                os.write(master, piece)

        with running(device):
            done = monitor(port, "--driver", "angel-eye", "--count", str(len(expected)), "--json")
    assert (done.exit_code, told(done)) == (0, expected)
    assert len(expected) == 20


@pytest.mark.parametrize("split", [whole, bytewise, pieces])
@pytest.mark.usefixtures("no_table_open")
def test_a_serial_server_gives_them_too_and_its_end_is_exit_3(
    split: Callable[[bytes], list[bytes]], listening: threading.Event
) -> None:
    with tcp_line() as (server, port):

        def device() -> None:
            connection, _ = server.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                assert listening.wait(WAIT_S)
                for piece in split(STREAM):
                    connection.sendall(piece)

        with running(device):
            done = monitor(port, "--driver", "angel-eye", "--json")
    assert told(done) == decoded(STREAM)
    assert isinstance(done.exception, PortError)
    assert done.exception.code == 3
    assert "closed the connection: check the serial server" in str(done.exception)


@pytest.mark.parametrize("vector", VECTORS["vectors"][10::6], ids=lambda v: v["meaning"])
@pytest.mark.usefixtures("no_table_open")
def test_single_vectors_live(vector: dict[str, Any], listening: threading.Event) -> None:
    data = bytes.fromhex(vector["hex"])
    with tcp_line() as (server, port):

        def device() -> None:
            connection, _ = server.accept()
            with connection:
                assert listening.wait(WAIT_S)
                connection.sendall(data)

        with running(device):
            done = monitor(port, "--driver", "angel-eye", "--json")
    assert told(done) == decoded(data)


def test_cards_are_hidden_while_a_table_is_open(listening: threading.Event) -> None:
    frames = [bytes.fromhex(h) for h in ("05314481b8033446", "053243033732", "05314481b8033445")]
    with open_tables.mark_open("BJ-07"), pty_line() as (master, port):

        def device() -> None:
            assert listening.wait(WAIT_S)
            os.write(master, b"".join(frames))

        with running(device):
            done = monitor(port, "--driver", "angel-eye", "--count", "2", "--json")
    card, cut = told(done)
    assert (card["kind"], card["card"], card["raw"]) == ("card_drawn", None, None)
    assert (cut["kind"], cut["raw"]) == ("cut_card", None)
    assert "8S" not in done.output
    assert frames[0].hex() not in done.output


@pytest.mark.usefixtures("no_table_open")
def test_seconds_end_it_and_what_is_left_is_told(listening: threading.Event) -> None:
    with pty_line() as (master, port):

        def device() -> None:
            assert listening.wait(WAIT_S)
            os.write(master, GOOD[0][:4])

        with running(device):
            done = monitor(port, "--driver", "angel-eye", "--seconds", "1.5", "--json")
    assert done.exit_code == 0
    assert [(e["kind"], e["reason"]) for e in told(done)] == [("frame_rejected", "incomplete frame")]


@pytest.mark.usefixtures("no_table_open")
def test_a_mute_line_is_told_at_the_end() -> None:
    with pty_line() as (_, port):
        done = monitor(port, "--driver", "angel-eye", "--seconds", "0.2")
    assert (done.exit_code, done.stdout) == (0, "")
    assert re.fullmatch(r"0\.\d s, 0 bytes, 0 events: nothing came", done.stderr.splitlines()[-1])


# A polled device


def answer(packet: bytes) -> bytes:
    """A shoe with one card in its ring before we came, and two events since."""
    message = smp.decode(packet)
    assert isinstance(message, smp.Message)
    bodies: dict[tuple[int, int], dict[str, Any]] = {
        (0, 0): {"r": message.body.get("d")},
        (64, 0): {"vendor": "V", "product": "P", "serial": "S", "firmware": "1", "boot": 3, "protocol": 1,
                  "class": "shoe"},
        (64, 1): {"settings": {}, "crc": 0},
        (67, 0): {"locked": False, "lid": False, "empty": False, "drawn": 1},
        (65, 0): {"boot": 3, "oldest": 1, "next": 2, "events": []},
    }  # fmt: skip
    body = bodies[message.group, message.command]
    if message.body.get("since") == 2:
        events = [{"n": 2, "t": 0, "k": "card", "c": "8S", "b": "red"}, {"n": 3, "t": 0, "k": "cut"}]
        body = {"boot": 3, "oldest": 1, "next": 4, "events": events}
    raw = cbor2.dumps(body)
    head = bytes([packet[0] | 1, 0]) + len(raw).to_bytes(2, "big") + packet[4:8]
    return smp_console.encode(head + raw)


@pytest.mark.usefixtures("no_table_open")
def test_a_managed_shoe_is_read_and_never_written_to(listening: threading.Event) -> None:
    asked: list[tuple[int, int]] = []
    with tcp_line() as (server, port):

        def device() -> None:
            connection, _ = server.accept()
            decoder = smp_console.Decoder()
            with connection:
                connection.settimeout(WAIT_S)
                while data := connection.recv(4096):
                    for item in decoder.feed(data):
                        assert isinstance(item, smp_console.Packet)
                        asked.append((item.data[0] & 7, int.from_bytes(item.data[4:6], "big")))
                        connection.sendall(answer(item.data))

        with running(device):
            done = monitor(port, "--driver", "managed-shoe", "--count", "3", "--json")
    assert done.exit_code == 0
    up, card, cut = told(done)
    assert (up["kind"], up["boot"], up["status"]["drawn"]) == ("link_up", 3, 1)
    assert (card["kind"], card["card"], card["seq"]) == ("card_drawn", "8S", 2)
    assert (cut["kind"], cut["seq"]) == ("cut_card", 3)
    assert {op for op, group in asked if group != 0} == {0}


def managed_device(server: socket.socket, reply: Callable[[bytes], bytes]) -> None:
    """One connection of a device that answers until the host leaves."""
    connection, _ = server.accept()
    decoder = smp_console.Decoder()
    with connection, contextlib.suppress(OSError):
        connection.settimeout(WAIT_S)
        while data := connection.recv(4096):
            for item in decoder.feed(data):
                assert isinstance(item, smp_console.Packet)
                connection.sendall(reply(item.data))


def changed(packet: bytes, **keys: Any) -> bytes:
    """The usual answer with other values."""
    (found,) = smp_console.Decoder().feed(answer(packet))
    assert isinstance(found, smp_console.Packet)
    body = cbor2.loads(found.data[8:])
    raw = cbor2.dumps({**body, **{key: value for key, value in keys.items() if key in body}})
    return smp_console.encode(found.data[:2] + len(raw).to_bytes(2, "big") + found.data[4:8] + raw)


@pytest.mark.usefixtures("no_table_open", "listening")
def test_a_device_that_restarts_with_every_answer_ends_it_with_3() -> None:
    boots = iter(range(1, 1000))
    with (
        tcp_line() as (server, port),
        running(lambda: managed_device(server, lambda packet: changed(packet, boot=next(boots)))),
    ):
        done = monitor(port, "--driver", "managed-shoe", "--json")
    assert isinstance(done.exception, PortError)
    assert "again and again" in str(done.exception)
    assert len(told(done)) < 10


@pytest.mark.usefixtures("no_table_open", "listening")
def test_a_device_s_name_is_shown_without_what_a_terminal_obeys() -> None:
    with (
        tcp_line() as (server, port),
        running(
            lambda: managed_device(
                server, lambda p: changed(p, **{"class": "shuffler", "product": "\x1b[2J"})
            )
        ),
    ):
        done = monitor(port, "--driver", "managed-shoe")
    assert isinstance(done.exception, PortError)
    assert "found the shuffler \\x1b[2J" in str(done.exception)
    assert "\x1b" not in done.output + str(done.exception)


@pytest.mark.usefixtures("no_table_open", "listening")
def test_a_silent_managed_device_ends_it_with_3() -> None:
    with pty_line() as (_, port):
        done = monitor(port, "--driver", "managed-shoe", "--json")
    assert [e["kind"] for e in told(done)] == ["link_down"]
    assert isinstance(done.exception, PortError)
    assert "silent" in str(done.exception)


@pytest.mark.parametrize(("driver", "ends"), [("angel-eye", 0), ("managed-shoe", 3)])
@pytest.mark.usefixtures("no_table_open")
def test_field_08_bytes_that_make_no_frame_name_the_likely_cause(
    driver: str, ends: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from a line at another rate: what only talks is listened to on, what never answers is given up."""
    noise, notes, heard = bytes(range(128, 256)) * 3, list[str](), threading.Event()

    def note(text: str) -> None:
        notes.append(text)
        heard.set()

    monkeypatch.setattr(monitor_module, "note", note)
    monkeypatch.setattr(session, "TIMEOUT", 0.1)
    with pty_line() as (master, port):

        def device() -> None:
            assert heard.wait(WAIT_S)
            os.write(master, noise)

        with running(device):
            done = monitor(port, "--driver", driver, "--seconds", "2", "--json")
    assert notes[0].startswith("listening on")
    assert notes[1:] == [MUTE]
    assert "baud" in MUTE
    assert isinstance(done.exception, PortError) == (ends == 3)
    kinds = {event["kind"] for event in told(done)}
    assert kinds == {"frame_rejected"} if ends == 0 else "link_down" in kinds


# The real program


@contextlib.contextmanager
def program(*args: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*CUTCARD, "monitor", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def note_of(child: subprocess.Popen[str]) -> str:
    assert child.stderr is not None
    return child.stderr.readline()


def test_each_line_is_there_at_once_and_ctrl_c_is_a_clean_end() -> None:
    with pty_line() as (master, port), program(port, "--driver", "angel-eye", "--json") as child:
        assert note_of(child).startswith("listening on serial port")
        assert child.stdout is not None
        for frame, kind in ((GOOD[0], "session_started"), (GOOD[1], "standby")):
            os.write(master, frame)
            assert json.loads(child.stdout.readline())["kind"] == kind
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=WAIT_S)
        assert (child.returncode, out, own_lines(err)) == (0, "", [])


def test_an_unplugged_port_ends_it_with_3_at_once() -> None:
    with pty_line() as (master, port), program(port, "--driver", "angel-eye") as child:
        assert note_of(child)
        start = time.monotonic()
        os.close(master)
        out, err = child.communicate(timeout=WAIT_S)
        assert time.monotonic() - start < 4.0
        assert (child.returncode, out) == (3, "")
        assert len(own_lines(err)) == 1


def test_a_port_that_another_monitor_holds_is_busy_and_names_it() -> None:
    with pty_line() as (_, port), program(port, "--driver", "angel-eye") as first:
        assert note_of(first)
        with program(port, "--driver", "angel-eye") as second:
            _, err = second.communicate(timeout=WAIT_S)
            assert second.returncode == 3
            assert f"process {first.pid}" in err
            assert len(own_lines(err)) == 1
        assert first.poll() is None


@pytest.mark.parametrize(
    ("port", "driver", "code", "says"),
    [
        ("serial:/dev/cutcard-no-such-port", "angel-eye", 3, "is not there"),
        ("socket:127.0.0.1:1", "angel-eye", 3, "127.0.0.1:1"),
        ("/dev/ttyS0", "angel-eye", 2, "serial:/dev/ttyS0"),
        ("serial:/dev/ttyS0", "angel-ey", 2, "did you mean 'angel-eye'"),
    ],
)
def test_one_clear_sentence_and_the_exit_code(port: str, driver: str, code: int, says: str) -> None:
    with program(port, "--driver", driver) as child:
        out, err = child.communicate(timeout=WAIT_S)
    assert (child.returncode, out) == (code, "")
    assert says in err
    assert len(err.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody without rights")
def test_a_port_without_permission_is_denied_with_the_remedy() -> None:
    """The first call loads all modules: root's interpreter may not be readable for others."""
    code = (
        "import os, sys\nfrom controller.cli.app import main\n"
        "try:\n    main(['monitor', 'serial:/dev/cutcard-no-such-port', *sys.argv[2:]])\n"
        "except SystemExit:\n    print('loaded', flush=True)\n"
        "os.setgroups([]), os.setgid(65534), os.setuid(65534)\n"
        "main(['monitor', *sys.argv[1:]])\n"
    )
    with pty_line() as (_, port):
        Path(port.removeprefix("serial:")).chmod(0o600)
        done = subprocess.run(
            [sys.executable, "-c", code, port, "--driver", "angel-eye"],
            capture_output=True, text=True, timeout=WAIT_S, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "loaded\n")
    _, err = done.stderr.splitlines()
    assert "its mode 600, so joining a group does not help" in err
