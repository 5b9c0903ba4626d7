"""`socket:` raw bytes over TCP, as serial servers (an NPort in "TCP Server" mode) speak it."""

from __future__ import annotations

import socket

from firmware_bridge.transports.wire import WireReceiver, Writing

CONNECT_S = 2.0
KEEPALIVE = {socket.TCP_KEEPIDLE: 5, socket.TCP_KEEPINTVL: 2, socket.TCP_KEEPCNT: 3}
"""A dead peer shows after about 11 s of silence."""
USER_TIMEOUT_MS = 10_000
"""Written bytes that nobody confirms kill the connection after this time."""


class SocketReceiver(WireReceiver):
    def __init__(self, uri: str, host: str, port: int) -> None:
        super().__init__(uri, f"{host}:{port}")
        self._address = (host, port)
        self._socket: socket.socket | None = None

    def describe(self) -> str:
        return f"TCP connection to {self._name}"

    def _open_handle(self) -> int:
        connected = self._socket = socket.create_connection(self._address, timeout=CONNECT_S)
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE.items():
            connected.setsockopt(socket.IPPROTO_TCP, option, value)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MS)
        return connected.fileno()

    def _close_handle(self) -> None:
        connected, self._socket = self._socket, None
        if connected is not None:
            connected.close()

    def _end_of_input(self) -> str:
        return f"{self._name} closed the connection: check the serial server and who else uses it"


class SocketTransport(SocketReceiver, Writing):
    """The command form."""
