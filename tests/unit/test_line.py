"""The line between a device and its port: what each of its faults does to bytes, and what ports can do."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from firmware_bridge import errors
from firmware_bridge.transports.mem import MemTransport
from simulators import faults
from simulators.faults.line import LINE
from simulators.faults.script import Step
from simulators.hosts.line import Line
from simulators.hosts.memory_host import MemoryHost
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.tcp_host import TcpHost
from simulators.hosts.usb_device import Transfer
from simulators.hosts.usb_host import UsbHost
from simulators.models.machine import Machine
from simulators.models.shoe import Shoe
from simulators.wire.barcode_hid import BarcodeReader
from simulators.wire.device import Outbox
from simulators.wire.framings import PACKETS
from simulators.wire.managed_shoe import ManagedShoe
from simulators.wire.uart import misheard


class Parrot:
    """Says again what it hears, in one piece each time; `say` makes it talk by itself."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.heard: list[bytes] = []
        self._out = Outbox()

    def say(self, *pieces: bytes, at: float = 0.0) -> None:
        for piece in pieces:
            self._out.put(at, piece)

    def receive(self, data: bytes, now: float) -> None:
        self.heard.append(data)
        self._out.put(now, data)

    def packets(self, now: float) -> list[bytes]:
        self.machine.advance(now)
        return self._out.pieces(now)

    def transmit(self, now: float) -> bytes:
        return b"".join(self.packets(now))

    def advance(self, now: float) -> None:
        self.machine.advance(now)

    def deadline(self) -> float | None:
        return self._out.deadline()


def line(*texts: str, seed: object = 0) -> Line:
    made = Line(Parrot(), Random(seed))
    for text in texts:
        faults.apply(made, text)
    return made


def told(made: Line, *pieces: bytes, until: float = 10.0) -> list[tuple[float, bytes]]:
    """What comes, and when, of pieces that are said at 0 s, 1 s, 2 s ..."""
    for number, piece in enumerate(pieces):
        made.device.say(piece, at=float(number))
    came, now = [], 0.0
    while True:
        came += [(round(now, 6), piece) for piece in made.packets(now)]
        due = made.deadline()
        if due is None or due > until:
            return came
        now = max(now, due)


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("drop@2", [(0, b"abcd"), (2, b"ijkl")]),
        ("delay:2.5@1", [(2.5, b"abcd"), (2.5, b"efgh"), (2.5, b"ijkl")]),
        ("delay@2", [(0, b"abcd"), (1.5, b"efgh"), (2, b"ijkl")]),
        ("duplicate@2", [(0, b"abcd"), (1, b"efgh"), (1, b"efgh"), (2, b"ijkl")]),
        ("duplicate:1.5@1", [(0, b"abcd"), (1, b"efgh"), (1.5, b"abcd"), (2, b"ijkl")]),
        ("reorder:5@1", [(1, b"efgh"), (1, b"abcd"), (2, b"ijkl")]),
        ("reorder:0.5@1", [(0.5, b"abcd"), (1, b"efgh"), (2, b"ijkl")]),
        ("reorder@3", [(0, b"abcd"), (1, b"efgh"), (3, b"ijkl")]),
        ("merge:5@2", [(0, b"abcd"), (2, b"efghijkl")]),
        ("merge@3", [(0, b"abcd"), (1, b"efgh"), (3, b"ijkl")]),
        ("flip_bit:9@1", [(0, b"a`cd"), (1, b"efgh"), (2, b"ijkl")]),
        ("flip_bit:32@1", [(0, b"`bcd"), (1, b"efgh"), (2, b"ijkl")]),
        ("truncate@1", [(0, b"ab"), (1, b"efgh"), (2, b"ijkl")]),
        ("truncate:3@2", [(0, b"abcd"), (1, b"efg"), (2, b"ijkl")]),
        ("truncate:0@2", [(0, b"abcd"), (2, b"ijkl")]),
        ("truncate:99@2", [(0, b"abcd"), (1, b"efg"), (2, b"ijkl")]),
        ("junk_before:00ff@3", [(0, b"abcd"), (1, b"efgh"), (2, b"\x00\xffijkl")]),
        ("junk_after:0d@3", [(0, b"abcd"), (1, b"efgh"), (2, b"ijkl\r")]),
        ("chunk:0.4@1", [(0, b"a"), (0.4, b"b"), (0.8, b"c"), (1.2, b"d"), (1.2, b"efgh"), (2, b"ijkl")]),
        ("latency:0.75", [(0, b"abcd"), (1.5, b"efgh"), (2.25, b"ijkl")]),
    ],
)
def test_what_comes_of_three_pieces(text, came):
    made = line(text)
    assert told(made, b"abcd", b"efgh", b"ijkl") == came
    assert made.struck == {text.partition("@")[0].partition(":")[0]: 1}


def test_a_piece_that_two_faults_hold_back_is_held_once_and_lost_by_none():
    made = line("reorder@1", "merge@1", "drop@2", "reorder@2")
    assert told(made, b"abcd", b"efgh", b"ijkl") == [(1, b"abcd"), (2, b"ijkl")]


def test_each_piece_without_a_number():
    made = line("flip_bit:0")
    assert told(made, b"a", b"b", b"c") == [(0, b"`"), (1, b"c"), (2, b"b")]
    assert made.struck == {"flip_bit": 3}


@pytest.mark.parametrize("name", ["flip_bit", "flip_byte", "junk_before", "junk_after"])
def test_what_is_random_comes_from_the_seed_and_is_small(name):
    def came(seed: int) -> bytes:
        return told(line(name, seed=seed), b"abcdefgh")[0][1]

    assert came(1) == came(1)
    many = {came(seed) for seed in range(40)}
    assert len(many) > 20
    for data in many:
        if name.startswith("flip"):
            (place,) = (n for n, pair in enumerate(zip(data, b"abcdefgh", strict=True)) if pair[0] != pair[1])
            bits = (data[place] ^ b"abcdefgh"[place]).bit_count()
            assert bits == 1 if name == "flip_bit" else bits >= 1
        else:
            assert 1 <= len(data) - 8 <= 16
            assert data.endswith(b"abcdefgh") if name == "junk_before" else data.startswith(b"abcdefgh")


def test_faults_of_one_piece_add_up():
    made = line("truncate:2@1", "junk_after:21@1", "duplicate@1", "delay:0.5@1")
    assert told(made, b"abcd") == [(0.5, b"ab!"), (1.0, b"ab!")]


def test_what_the_host_sends():
    made = line("lose_request@2", "garble_request:1@3")
    for data in (b"one", b"two", b"six"):
        made.receive(data, 0.0)
    first, third = made.device.heard
    assert (first, third[:1], third[2:]) == (b"one", b"s", b"x")
    assert third[1:2] != b"i"
    assert made.struck == {"lose_request": 1, "garble_request": 1}


def test_a_device_is_deaf_for_a_while():
    made = line("deaf:2.5@2")
    for second in range(6):
        made.receive(b"%d" % second, float(second))
    assert made.device.heard == [b"0", b"4", b"5"]
    forever = line("deaf@2")
    for second in range(6):
        forever.receive(b"%d" % second, float(second))
    assert forever.device.heard == [b"0"]


def test_the_host_hears_its_own_bytes_first():
    made = line("local_echo")
    made.receive(b"ask", 0.0)
    assert made.packets(0.0) == [b"ask", b"ask"]
    assert made.device.heard == [b"ask"]


@pytest.mark.parametrize("factor", [2, 0.5])
def test_a_wrong_line_rate_spoils_both_ways(factor):
    made = line(f"wrong_baud:{factor}")
    made.receive(b"ask", 0.0)
    assert made.device.heard == [misheard(b"ask", round(1000 * factor), 1000)]
    assert made.device.heard != [b"ask"]
    assert made.transmit(0.0) == misheard(made.device.heard[0], 1000, round(1000 * factor))


def test_a_second_reader_takes_half_the_bytes_for_a_while():
    made = line("second_reader:1.5@2")
    MemoryHost(made)
    came = told(made, *[bytes(range(200))] * 4)
    assert [len(data) for _, data in (came[0], came[3])] == [200, 200]
    for _, data in came[1:3]:
        assert 60 < len(data) < 140
        assert list(data) == sorted(data), "what is left is in order"
    assert made.struck == {"second_reader": 1}


def test_what_was_delayed_is_lost_with_the_plug():
    made = line("delay:3@1", "reorder:9@2")
    host = MemoryHost(made)
    made.device.say(b"late", b"held")
    host.pump(0.0)
    faults.apply(made, "unplug:1")
    host.pump(0.5)
    host.pump(20.0)
    assert host.endpoint.read() == b""


def test_nothing_random_is_asked_of_a_quiet_line():
    class Never(Random):
        def getrandbits(self, k: int, /) -> int:
            raise AssertionError(k)

        random = getrandbits  # type: ignore[assignment]

    made = Line(Parrot(), Never())
    assert told(made, b"a", b"b") == [(0, b"a"), (1, b"b")]
    made.receive(b"x", 9.0)
    assert made.device.heard == [b"x"]
    assert made.struck == Counter()


def test_a_line_shows_what_its_device_has():
    made = Line(ManagedShoe(Shoe(Random(0))), Random(0))
    assert (made.kind, made.serial) == ("shoe", "SH0001")
    assert made.machine is made.device.machine
    with pytest.raises(AttributeError):
        _ = made.nonsense


# Ports in memory


@pytest.fixture
def mem():
    host = MemoryHost(line())
    port = MemTransport(host.endpoint)
    port.open()
    host.pump(0.0)
    return host, port


def strikes(host: MemoryHost, text: str, now: float) -> None:
    faults.apply(host.device, text)
    host.pump(now)


def test_a_plug_is_out_and_in_again(mem):
    host, port = mem
    strikes(host, "unplug:1.5", 1.0)
    with pytest.raises(errors.LinkLost):
        port.read(0)
    with pytest.raises(errors.Absent):
        port.open()
    assert host.deadline() == 2.5
    host.pump(2.5)
    port.open()
    port.write(b"x")
    host.pump(3.0)
    assert port.read(0) == b"x"


def test_gone_and_back_is_a_short_unplug(mem):
    host, _ = mem
    strikes(host, "gone_and_back", 1.0)
    assert not host.endpoint.plugged
    assert host.deadline() == 1.3


def test_another_node_ends_what_was_open(mem):
    host, port = mem
    strikes(host, "other_node", 1.0)
    with pytest.raises(errors.LinkLost):
        port.read(0)
    port.open()
    assert port.read(0) == b""


@pytest.mark.parametrize(("name", "error"), [("busy", errors.Busy), ("denied", errors.Denied)])
def test_a_port_is_not_to_be_had_for_a_while(mem, name, error):
    host, port = mem
    strikes(host, f"{name}:2", 1.0)
    with pytest.raises(errors.LinkLost):
        port.read(0)
    with pytest.raises(error):
        port.open()
    host.pump(3.0)
    port.open()
    assert host.device.struck == {name: 1}


def test_a_write_runs_out_of_time(mem):
    host, port = mem
    strikes(host, "stall:2", 1.0)
    with pytest.raises(errors.LinkLost):
        port.write(b"x")
    host.pump(3.0)
    port.write(b"y")
    host.pump(3.0)
    assert host.device.device.heard == [b"y"]


def test_a_technician_leaves_nothing_that_goes_wrong_by_itself(mem):
    host, port = mem
    for text in ("unplug:1@1", "stall@2"):
        faults.apply(host.device, text)
    host.device.mend()
    host.device.device.say(b"a", b"b")
    host.pump(0.0)
    assert port.read(0) == b"ab"
    assert host.device.struck == {}


def test_an_act_at_a_piece_takes_the_piece(mem):
    host, port = mem
    faults.apply(host.device, "unplug:1@2")
    host.device.device.say(b"a", at=1.0)
    host.device.device.say(b"b", at=2.0)
    host.device.device.say(b"c", at=4.0)
    host.pump(1.0)
    assert port.read(0) == b"a"
    for now in (2.0, 3.0, 4.0):
        host.pump(now)
    assert host.endpoint.read() == b"c"


# What a port cannot do


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (MemoryHost, "half_open"), (MemoryHost, "drop_clients"), (MemoryHost, "halt"),
        (MemoryHost, "overflow"), (PtyHost, "half_open"), (PtyHost, "halt"), (TcpHost, "busy"),
        (TcpHost, "denied"), (TcpHost, "stall"), (UsbHost, "chunk"), (UsbHost, "merge"),
        (UsbHost, "latency"), (UsbHost, "local_echo"), (UsbHost, "wrong_baud"),
        (UsbHost, "second_reader"), (UsbHost, "half_open"),
    ],
)  # fmt: skip
def test_a_port_that_cannot_do_it_says_so_before_it_opens_anything(place, text):
    before = len([*Path("/proc/self/fd").iterdir()])
    made = Line(ManagedShoe(Shoe(Random(0)), framing=PACKETS), Random(0))
    faults.apply(made, text)
    with pytest.raises(faults.UnfitFault, match=f"{text}: this kind of port cannot have this fault"):
        place(made)
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_line_that_has_its_port_says_so_at_once():
    host = MemoryHost(line())
    with pytest.raises(faults.UnfitFault, match="half_open"):
        faults.apply(host.device, "half_open")
    assert host.device.struck == Counter()


def test_a_line_at_no_port_has_no_plug():
    made = line("unplug")
    with pytest.raises(faults.UnfitFault, match="unplug: the line is at no port"):
        made.advance(1.0)


@pytest.mark.parametrize("name", [name for name, fault in LINE.items() if fault.cable != "stream"])
def test_packets_can_have_what_needs_no_stream(name):
    made = Line(ManagedShoe(Shoe(Random(0)), framing=PACKETS), Random(0), [Step(name)])
    UsbHost(made).close()


# Pseudo-terminals


@pytest.fixture
def pty(tmp_path):
    host = PtyHost(line(), tmp_path / "shoe")
    yield host
    host.close()


def opened(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)


def test_a_pty_goes_and_comes_back_as_another_node(pty):
    client, node = opened(pty.path), Path(pty.path).readlink()
    faults.apply(pty.device, "other_node")
    pty.pump(0.0)
    with pytest.raises(OSError, match="Input/output"):
        os.write(client, b"x")
    os.close(client)
    assert Path(pty.path).readlink() != node
    faults.apply(pty.device, "unplug:2")
    pty.pump(1.0)
    assert not os.path.lexists(pty.path)
    pty.pump(3.0)
    assert os.path.lexists(pty.path)
    assert pty.device.struck == {"other_node": 1, "unplug": 1}


def test_another_program_has_a_pty(pty):
    faults.apply(pty.device, "busy:2")
    pty.pump(0.0)
    client = opened(pty.path)
    with pytest.raises(BlockingIOError):
        fcntl.flock(client, fcntl.LOCK_EX | fcntl.LOCK_NB)
    pty.pump(2.0)
    fcntl.flock(client, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(client)


def test_a_pty_that_is_forbidden(pty, monkeypatch):
    if os.geteuid() == 0:
        with pytest.raises(faults.UnfitFault, match="denied"):
            faults.apply(pty.device, "denied")
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
    faults.apply(pty.device, "denied:2")
    pty.pump(0.0)
    assert Path(pty.path).stat().st_mode & 0o777 == 0
    pty.pump(2.0)
    assert Path(pty.path).stat().st_mode & 0o777 == 0o620


def test_a_pty_takes_no_bytes_for_a_while(pty):
    client = opened(pty.path)
    faults.apply(pty.device, "stall:2")
    pty.pump(0.0)
    with pytest.raises(BlockingIOError):
        os.write(client, b"x")
    pty.pump(2.0)
    assert os.write(client, b"y") == 1
    assert select.select([pty.fileno()], [], [], 5)[0]
    pty.pump(2.0)
    assert pty.device.device.heard == [b"y"]
    os.close(client)


def test_a_device_may_pull_its_plug_over_what_it_hears(pty):
    pty.device.add(Step("unplug", "1", nth=1))
    client = opened(pty.path)
    os.write(client, b"x")
    assert select.select([pty.fileno()], [], [], 5)[0]
    pty.pump(0.0)
    assert not pty.plugged
    os.close(client)


# TCP


@pytest.fixture
def tcp():
    host = TcpHost(line())
    yield host
    host.close()


def connected(host: TcpHost, now: float) -> socket.socket:
    client = socket.create_connection((host.host, host.port), timeout=5)
    host.pump(now)
    return client


def test_connections_live_on_and_nothing_comes(tcp):
    with connected(tcp, 0.0) as old:
        faults.apply(tcp.device, "half_open")
        tcp.pump(1.0)
        tcp.device.device.say(b"unheard", at=1.0)
        old.sendall(b"unheard")
        tcp.pump(2.0)
        old.setblocking(False)
        with pytest.raises(BlockingIOError):
            old.recv(10)
        with connected(tcp, 2.0) as new:
            new.sendall(b"x")
            assert select.select(tcp.filenos(), [], [], 5)[0]
            tcp.pump(3.0)
            assert new.recv(10) == b"x"
    assert tcp.device.device.heard == [b"x"]


def test_connections_are_cut(tcp):
    with connected(tcp, 0.0) as client:
        faults.apply(tcp.device, "drop_clients")
        tcp.pump(1.0)
        assert client.recv(10) == b""


def test_a_serial_server_is_gone_and_comes_back_at_the_same_port(tcp):
    port = tcp.port
    with connected(tcp, 0.0) as client:
        faults.apply(tcp.device, "unplug:2")
        tcp.pump(1.0)
        assert client.recv(10) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((tcp.host, port), timeout=5)
    tcp.pump(3.0)
    connected(tcp, 3.0).close()
    assert tcp.port == port


# USB


@pytest.fixture
def usb():
    host = UsbHost(Line(ManagedShoe(Shoe(Random(0)), framing=PACKETS), Random(0)))
    host.pump(0.0)
    yield host
    host.close()


def asked(host: UsbHost, *, data: bytes = b"", size: int = 0) -> Transfer:
    endpoint = host.usb.first_in().address if size else 1
    transfer = Transfer(endpoint, lambda _: None, data=data, size=size, owner="us")
    host.usb.submit(transfer)
    return transfer


def test_an_input_stalls_until_the_host_clears_it(usb):
    waiting = asked(usb, size=512)
    faults.apply(usb.device, "halt")
    usb.pump(1.0)
    assert waiting.error == errno.EPIPE
    assert asked(usb, size=512).error == errno.EPIPE
    usb.usb.clear_halt(waiting.endpoint)
    assert asked(usb, size=512).error is None


def test_a_packet_is_too_long(usb):
    waiting = asked(usb, size=512)
    faults.apply(usb.device, "overflow")
    usb.pump(1.0)
    assert waiting.error == errno.EOVERFLOW


def test_a_usb_device_takes_no_bytes_for_a_while(usb):
    faults.apply(usb.device, "stall:2")
    usb.pump(1.0)
    sent = asked(usb, data=b"x")
    assert sent.error is None
    usb.pump(3.0)
    assert sent.error == 0


def test_a_usb_device_is_another_programs_for_a_while(usb):
    address = usb.usb.address
    faults.apply(usb.device, "busy:2")
    usb.pump(1.0)
    assert usb.usb.address != address
    with pytest.raises(OSError, match="busy"):
        usb.usb.claim(0, "us")
    usb.pump(3.0)
    usb.usb.claim(0, "us")


def test_a_usb_device_is_forbidden_for_a_while(usb):
    faults.apply(usb.device, "denied:2")
    usb.pump(1.0)
    assert usb.usb.denied
    usb.pump(3.0)
    assert not usb.usb.denied


def test_a_usb_device_is_out_and_in_again(usb):
    waiting = asked(usb, size=512)
    faults.apply(usb.device, "unplug:2")
    usb.pump(1.0)
    assert (waiting.error, usb.usb.gone) == (errno.ENODEV, True)
    usb.pump(3.0)
    assert not usb.usb.gone


def test_a_second_keyboard_comes_when_its_time_has_come():
    reader = BarcodeReader(Shoe(Random(0)))
    host = UsbHost(Line(reader, Random(0), [Step("second_keyboard", time=5.0)]))
    names = []
    for now in (0.0, 5.0, 6.0):
        host.pump(now)
        names.append([device.name for device in host.bus])
    host.close()
    assert names == [["Cutcard Barcode Reader"], *[["Cutcard Barcode Reader", "Cutcard Keyboard"]] * 2]
