"""Where simulated devices appear: real pseudo-terminals, real sockets, memory. Waits on handles alone."""

from __future__ import annotations

import os
import select
import socket
import tty
from pathlib import Path
from random import Random

import pytest

from simulators.hosts.host import PENDING_LIMIT
from simulators.hosts.memory_host import MemoryHost
from simulators.hosts.pty_host import PtyHost
from simulators.hosts.tcp_host import CLIENT_PENDING_LIMIT, TcpHost
from simulators.models.machine import Machine
from simulators.models.shoe import Shoe
from simulators.wire.angel_eye import AngelEye
from simulators.wire.device import Outbox


class Parrot:
    """Says everything twice; `say` makes it talk by itself."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.heard = b""
        self._out = Outbox()

    def say(self, data: bytes, at: float = 0.0) -> None:
        self._out.put(at, data)

    def receive(self, data: bytes, now: float) -> None:
        self.heard += data
        self._out.put(now, data * 2)

    def transmit(self, now: float) -> bytes:
        return self._out.take(now)

    def advance(self, now: float) -> None:
        self.machine.advance(now)

    def deadline(self) -> float | None:
        return self._out.deadline()


def readable(handle, timeout: float = 5.0) -> bool:
    return bool(select.select([handle], [], [], timeout)[0])


def read_exactly(descriptor: int, count: int) -> bytes:
    data = b""
    while len(data) < count:
        assert readable(descriptor), f"only {data!r} came"
        data += os.read(descriptor, count - len(data))
    return data


@pytest.fixture
def port(tmp_path):
    host = PtyHost(Parrot(), tmp_path / "shoe")
    yield host
    host.close()


def test_a_pty_carries_all_bytes_both_ways(port):
    every = bytes(range(256))
    client = os.open(port.path, os.O_RDWR | os.O_NOCTTY)
    try:
        os.write(client, every)
        assert readable(port)
        port.pump(0.0)
        assert port.device.heard == every
        assert read_exactly(client, 512) == every * 2
    finally:
        os.close(client)


def test_a_controller_may_come_and_go(port):
    for _ in range(3):
        client = os.open(port.path, os.O_RDWR | os.O_NOCTTY)
        os.write(client, b"x")
        assert readable(port)
        port.pump(0.0)
        assert read_exactly(client, 2) == b"xx"
        os.close(client)
        port.pump(0.0)
    assert port.device.heard == b"xxx"


def test_nobody_reads_for_a_long_time(port):
    """The host neither blocks nor grows, and a reader who comes at last gets whole new output."""
    for number in range(2000):
        port.device.say(b"%05d" % number * 20)
        port.pump(float(number))
    assert len(port._pending) <= PENDING_LIMIT
    assert port.dropped > 50_000
    assert port.writers() == [port.fileno()]
    client = os.open(port.path, os.O_RDWR | os.O_NOCTTY)
    try:
        tty.setraw(client)
        while select.select([client], [], [], 0)[0] or port.writers():
            os.read(client, 65536)
            port.pump(2000.0)
        dropped = port.dropped
        port.device.say(b"fresh")
        port.pump(2001.0)
        assert read_exactly(client, 5) == b"fresh"
        assert port.dropped == dropped
    finally:
        os.close(client)


def test_replug_gives_a_new_pty_under_the_same_name(port, tmp_path):
    before = port.link.readlink()
    client = os.open(port.path, os.O_RDWR | os.O_NOCTTY)
    port.replug()
    with pytest.raises(OSError, match="Input/output"):
        os.write(client, b"into the void")
    assert os.read(client, 1) == b""
    os.close(client)
    again = os.open(port.path, os.O_RDWR | os.O_NOCTTY)
    port.device.say(b"back")
    port.pump(0.0)
    assert read_exactly(again, 4) == b"back"
    os.close(again)
    assert {entry.name for entry in tmp_path.iterdir()} == {"shoe", ".shoe.lock"}
    assert port.link.readlink() != before


def test_a_name_that_cannot_be_made_leaves_no_handle(tmp_path):
    (tmp_path / ".shoe.new").mkdir()
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OSError, match=r"shoe\.new"):
        PtyHost(Parrot(), tmp_path / "shoe")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert [path.name for path in tmp_path.iterdir()] == [".shoe.new"]


def test_unplug_takes_the_name_away_and_the_device_lives_on(port):
    port.unplug()
    assert not port.link.is_symlink()
    assert port.filenos() == []
    assert not port.plugged
    with pytest.raises(OSError, match="unplugged"):
        port.fileno()
    port.device.say(b"lost")
    port.pump(1.0)
    assert port.device.deadline() is None
    port.replug()
    client = os.open(port.path, os.O_RDWR | os.O_NOCTTY)
    assert not readable(client, 0)
    os.close(client)


def test_a_link_is_replaced_but_a_file_is_not(tmp_path):
    (tmp_path / "stale").symlink_to("/dev/pts/does-not-exist")
    host = PtyHost(Parrot(), tmp_path / "stale")
    assert host.link.exists()
    host.close()
    host.close()
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("precious")
    with pytest.raises(FileExistsError, match="no link"):
        PtyHost(Parrot(), tmp_path / "file")


def test_a_pty_without_a_name():
    host = PtyHost(Parrot())
    assert host.uri == f"serial:{host.path}"
    assert host.path.startswith("/dev/pts/")
    host.close()


@pytest.fixture
def server():
    host = TcpHost(Parrot(), clients=2)
    yield host
    host.close()


def connect(host: TcpHost) -> socket.socket:
    client = socket.create_connection((host.host, host.port), timeout=5)
    assert readable(host)
    host.pump(0.0)
    return client


def test_tcp_clients_all_get_the_bytes_and_any_may_write(server):
    with connect(server) as one, connect(server) as two:
        assert (server.host, server.clients) == ("127.0.0.1", 2)
        two.sendall(b"ab")
        assert readable(server.filenos()[2])
        server.pump(0.0)
        assert one.recv(10) == two.recv(10) == b"abab"
        assert server.device.heard == b"ab"


def test_tcp_refuses_one_client_too_many_and_forgets_who_left(server):
    with connect(server), connect(server) as two:
        with connect(server) as three:
            assert three.recv(1) == b""
        assert server.clients == 2
        two.close()
        assert readable(server.filenos()[2])
        server.pump(0.0)
        assert server.clients == 1
        with connect(server):
            assert server.clients == 2


def test_a_tcp_client_that_does_not_read_harms_nobody(server):
    with connect(server) as lazy, connect(server) as keen:
        keen.settimeout(5)
        chunk = bytes(60_000)
        for number in range(120):
            server.device.say(chunk)
            server.pump(float(number))
            got = 0
            while got < len(chunk):
                got += len(keen.recv(65536))
                server.pump(float(number))
        lazy_pending = next(iter(server._clients.values()))
        assert len(lazy_pending) <= CLIENT_PENDING_LIMIT
        assert server.dropped > 0
        assert server.clients == 2
        assert len(server.writers()) == 1
        lazy.close()
        server.pump(200.0)
        server.pump(200.0)
        assert server.clients == 1


def test_tcp_clients_can_be_cut(server):
    with connect(server) as client:
        server.drop_clients()
        assert client.recv(1) == b""
        assert len(server.filenos()) == 1


def test_memory_moves_bytes_when_it_is_pumped():
    host = MemoryHost(Parrot(), "shoe")
    end = host.endpoint
    end.write(b"ab")
    assert end.read() == b""
    host.pump(0.0)
    assert end.read() == b"abab"
    assert end.read() == b""
    assert host.uri == "mem:shoe"
    host.device.say(b"on the wire")
    host.pump(0.0)
    host.unplug()
    with pytest.raises(ConnectionError):
        end.read()
    with pytest.raises(ConnectionError):
        end.write(b"x")
    host.device.say(b"unheard")
    host.pump(1.0)
    host.replug()
    assert end.read() == b""
    assert host.dropped == len(b"on the wire")


def test_an_unread_endpoint_is_bounded():
    host = MemoryHost(Parrot())
    for _ in range(30):
        host.device.say(bytes(100_000))
        host.pump(0.0)
    assert host.dropped == 3_000_000 - (1 << 20)


def test_a_real_device_on_a_pty_keeps_its_times():
    device = AngelEye(Shoe(Random(1)))
    host = PtyHost(device)
    client = os.open(host.path, os.O_RDWR | os.O_NOCTTY)
    try:
        now, pumps = 0.0, 0
        while (due := host.deadline()) is not None:
            now = due
            host.pump(now)
            pumps += 1
        start, ready = bytes.fromhex("053153033631"), bytes.fromhex("053250033631")
        assert read_exactly(client, 36) == start * 3 + ready * 3
        assert (pumps, round(now, 4)) == (6, 0.2625)
    finally:
        os.close(client)
        host.close()


def test_a_name_that_a_living_host_holds_is_not_taken_and_a_dead_ones_is(tmp_path):
    link = tmp_path / "shoe"
    link.symlink_to("/dev/pts/4711")  # left by one that was killed
    first = PtyHost(Parrot(), link)
    with pytest.raises(OSError, match="another simulated device is there"):
        PtyHost(Parrot(), link)
    assert str(link.readlink()) == os.ttyname(first._slave)
    first.close()
    assert list(tmp_path.iterdir()) == []
    PtyHost(Parrot(), link).close()
