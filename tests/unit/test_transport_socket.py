"""TCP connections to serial servers: connecting, what is told when it fails, and a peer that vanishes."""

import ctypes
import errno
import select
import socket
import struct
import threading
from pathlib import Path

import pytest

from firmware_bridge import errors
from firmware_bridge.transports import open_transport
from firmware_bridge.transports import socket as socket_module
from tests.support.peers import CLOCK, TcpPeer, deaf_port, read_all, using

SO_ATTACH_FILTER = 26
"""asm-generic/socket.h; Python has no name for it."""


def vanish(connection):
    """From now on the machine at the other end hears nothing and says nothing: not even the kernel answers.

    A packet filter (linux/filter.h) whose one instruction, "return 0", drops all that comes.
    """
    instruction = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
    program = struct.pack("HxxxxxxP", 1, ctypes.addressof(instruction))
    connection.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)


@pytest.fixture
def deaf():
    with deaf_port() as port:
        yield port


class TestConnecting:
    def test_i21_the_options_by_value(self):
        with using(TcpPeer()) as transport:
            transport.open()
            ours = transport._socket
            tcp = {
                name: ours.getsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}"))
                for name in ("NODELAY", "KEEPIDLE", "KEEPINTVL", "KEEPCNT", "USER_TIMEOUT")
            }
            assert tcp == {"NODELAY": 1, "KEEPIDLE": 5, "KEEPINTVL": 2, "KEEPCNT": 3, "USER_TIMEOUT": 10_000}
            assert tcp["KEEPIDLE"] + tcp["KEEPINTVL"] * tcp["KEEPCNT"] == 11
            assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert not ours.getblocking()

    @pytest.mark.parametrize(
        ("target", "says"),
        [
            ("127.0.0.1:1", r"127.0.0.1:1 is not there: the machine answers but nobody listens there: check"),
            ("a..b:4001", r"its name is not known"),
            ("x" * 70 + ":4001", r"its name is not known"),
            ("[::1]:1", r"::1:1 is not there"),
        ],
    )
    def test_what_is_wrong_is_said(self, target, says):
        transport = open_transport(f"socket:{target}")
        with pytest.raises(errors.Absent, match=says):
            transport.open()
        transport.dispose()

    @pytest.mark.parametrize(
        ("number", "says"),
        [
            (errno.EHOSTUNREACH, "no machine has this address: check the serial server, its network cable"),
            (errno.ENETUNREACH, "no way leads to this address: check this machine's network cable"),
            (errno.ECONNRESET, "Connection reset by peer: check the serial server"),
        ],
    )
    def test_what_the_network_says(self, monkeypatch, number, says):
        monkeypatch.setattr(socket.socket, "connect_ex", lambda self, address: number)
        transport = open_transport("socket:192.0.2.1:4001")
        with pytest.raises(errors.Absent, match=says):
            transport.open()
        transport.dispose()

    def test_a_name_that_nobody_knows(self, monkeypatch):
        def getaddrinfo(*args, **keys):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        transport = open_transport("socket:no-such-host.invalid:4001")
        with pytest.raises(
            errors.Absent, match=r"not known \(Name or service not known\): correct it, or write"
        ):
            transport.open()
        transport.dispose()

    def test_a_name_is_looked_up_and_each_of_its_addresses_tried(self, monkeypatch):
        peer = TcpPeer()
        port = peer.listener.getsockname()[1]
        real = socket.getaddrinfo

        def getaddrinfo(host, port, *more, **keys):
            if host != "server.pit.example":
                return real(host, port, *more, **keys)
            if keys["flags"] & socket.AI_NUMERICHOST:
                raise socket.gaierror(socket.EAI_NONAME, "no number")
            v4 = socket.AF_INET
            addresses = ((99, ("::1", port)), (v4, ("127.0.0.1", 1)), (v4, ("127.0.0.1", port)))
            return [(family, socket.SOCK_STREAM, 6, "", address) for family, address in addresses]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        peer.uri = f"socket:server.pit.example:{port}"
        with using(peer) as transport:
            for _ in range(2):
                transport.open()
                peer.socket = None
                peer.send(b"up")
                assert read_all(transport, 2) == b"up"
                peer.socket.close()

    def test_nobody_answers_within_two_seconds(self, monkeypatch, deaf):
        assert socket_module.CONNECT_S == 2.0
        monkeypatch.setattr(socket_module, "CONNECT_S", 0.2)
        transport = open_transport(f"socket:127.0.0.1:{deaf}")
        start = CLOCK.now()
        with pytest.raises(errors.Absent, match="nobody answered: check the serial server"):
            transport.open()
        assert 0.15 < CLOCK.now() - start < 1.0
        transport.dispose()

    def test_a_wake_ends_connecting_at_once_and_one_of_before_does_not(self, deaf):
        transport = open_transport(f"socket:127.0.0.1:{deaf}")
        transport.wake()
        begun = threading.Event()
        real, transport._try = transport._try, lambda *args: begun.set() or real(*args)
        told = []

        def owner():
            start = CLOCK.now()
            with pytest.raises(errors.Absent, match="broken off on our side"):
                transport.open()
            told.append(CLOCK.now() - start)

        thread = threading.Thread(target=owner)
        thread.start()
        assert begun.wait(3)
        assert thread.is_alive()
        transport.wake()
        thread.join(3)
        assert told[0] < 1.0
        assert select.select([transport._waker], [], [], 0)[0]  # the first wake is the next read's
        transport.dispose()

    def test_a_name_server_that_hangs_holds_up_nothing(self, monkeypatch):
        answer, asked = threading.Event(), []

        def getaddrinfo(host, port, *more, **keys):
            if keys["flags"]:
                raise socket.gaierror(socket.EAI_NONAME, "no number")
            asked.append(host)
            answer.wait(10)
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        monkeypatch.setattr(socket_module, "CONNECT_S", 0.1)
        transport = open_transport("socket:server.pit.example:4001")
        try:
            for _ in range(3):
                with pytest.raises(errors.Absent, match=r"not found within 0.1 s: check the name server"):
                    transport.open()
            monkeypatch.setattr(socket_module, "CONNECT_S", 5.0)
            waker = threading.Timer(0.05, transport.wake)
            waker.start()
            start = CLOCK.now()
            with pytest.raises(errors.Absent, match="broken off on our side"):
                transport.open()
            assert CLOCK.now() - start < 2.0
            waker.join()
            assert asked == ["server.pit.example"]  # one at a time, however often it is tried
            late = open_transport("socket:server.pit.example:4001")
            monkeypatch.setattr(socket_module, "CONNECT_S", 0.1)
            with pytest.raises(errors.Absent, match="not found within"):
                late.open()
            late.dispose()  # while the name is still looked up
            monkeypatch.setattr(socket_module, "CONNECT_S", 5.0)
            answer.set()
            with pytest.raises(errors.Absent, match="name is not known"):
                transport.open()
            assert len(asked) == 2
        finally:
            answer.set()
            transport.dispose()

    @pytest.mark.parametrize("early", [True, False])
    def test_the_answer_of_a_name_server_breaks_off_no_connection(self, monkeypatch, deaf, early):
        """Whether it comes before or after somebody waits for it: it is no wake."""

        def getaddrinfo(host, port, *more, **keys):
            if keys["flags"]:
                raise socket.gaierror(socket.EAI_NONAME, "no number")
            threading.Event().wait(0.0 if early else 0.05)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

        def start(self):
            real_start(self)
            if early and self.name.startswith("lookup"):
                self.join(5)

        real_start = threading.Thread.start
        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        monkeypatch.setattr(threading.Thread, "start", start)
        monkeypatch.setattr(socket_module, "CONNECT_S", 0.3)
        transport = open_transport(f"socket:server.pit.example:{deaf}")
        for _ in range(2):
            begun = CLOCK.now()
            with pytest.raises(errors.Absent, match="nobody answered"):
                transport.open()
            assert CLOCK.now() - begun > 0.25
        assert not select.select([transport._waker], [], [], 0)[0]
        transport.dispose()

    def test_it_never_connects_to_itself(self, monkeypatch):
        """A port of this machine that nobody listens on may become our own one: TCP then talks to itself."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        real = socket.socket.connect_ex

        def connect_ex(self, address):
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.bind(address)
            return real(self, address)

        monkeypatch.setattr(socket.socket, "connect_ex", connect_ex)
        transport = open_transport(f"socket:127.0.0.1:{port}")
        with pytest.raises(errors.Absent, match="nobody listens there"):
            transport.open()
        transport.dispose()

    def test_failed_attempts_leave_no_handle(self):
        transport = open_transport("socket:localhost:1")
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(20):
            with pytest.raises(errors.Absent):
                transport.open()
        assert len(list(Path("/proc/self/fd").iterdir())) == before
        transport.dispose()


class TestHalfOpen:
    """I-21: the other machine lost its power; no FIN, no RST, the connection looks healthy."""

    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch):
        """3 s of silence instead of 11, half a second for written bytes instead of 10 s."""
        quick = {socket.TCP_KEEPIDLE: 1, socket.TCP_KEEPINTVL: 1, socket.TCP_KEEPCNT: 2}
        monkeypatch.setattr(socket_module, "KEEPALIVE", quick)

    def test_i21_a_reader_finds_a_vanished_peer_by_keep_alive(self, monkeypatch):
        monkeypatch.setattr(socket_module, "USER_TIMEOUT_MS", 2000)
        peer = TcpPeer()
        with using(peer) as transport:
            transport.open()
            peer.send(b"one")
            assert read_all(transport, 3) == b"one"
            vanish(peer.socket)
            start = CLOCK.now()
            with pytest.raises(errors.LinkLost, match=r"Connection timed out\): check the serial server"):
                transport.read(10)
            assert 1.5 < CLOCK.now() - start < 4.5

    def test_i21_a_writer_finds_it_by_bytes_that_nobody_confirms(self, monkeypatch):
        monkeypatch.setattr(socket_module, "USER_TIMEOUT_MS", 500)
        peer = TcpPeer()
        with using(peer) as transport:
            transport.open()
            vanish(peer.accepted())
            transport.write(b"anybody?")
            start = CLOCK.now()
            with pytest.raises(errors.LinkLost, match="Connection timed out"):
                transport.read(10)
            assert 0.3 < CLOCK.now() - start < 3.0
