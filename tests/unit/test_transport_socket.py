"""TCP connections to serial servers."""

import socket

import pytest

from firmware_bridge import errors
from firmware_bridge.transports import open_transport
from tests.support.peers import TcpPeer, using


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
