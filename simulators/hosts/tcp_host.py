"""A simulated device behind a serial server: several clients, each gets all bytes, any may write."""

from __future__ import annotations

import socket

from simulators.hosts.cable import join
from simulators.hosts.host import READ_SIZE, READS_PER_PUMP, Pending
from simulators.wire.device import WireDevice

CLIENT_PENDING_LIMIT = 65536


class TcpHost:
    """Listens on `host`:`port` (0: any free port) and takes up to `clients` connections, refusing more."""

    can = CAN = frozenset({"stream", "unplug", "other_node", "half_open", "drop_clients"})

    def __init__(
        self, device: WireDevice, host: str = "127.0.0.1", port: int = 0, *, clients: int = 4
    ) -> None:
        join(device, self)
        self.device = device
        self._dead: list[socket.socket] = []
        self._limit = clients
        self._dropped = 0
        self._clients: dict[socket.socket, Pending] = {}
        self._listener: socket.socket | None = None
        self.host, self.port = host, port
        self.replug()

    @property
    def uri(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"socket:{host}:{self.port}"

    @property
    def dropped(self) -> int:
        """Bytes that clients did not read in time, all clients together."""
        return self._dropped + sum(pending.dropped for pending in self._clients.values())

    @property
    def clients(self) -> int:
        return len(self._clients)

    def fileno(self) -> int:
        """The listening socket; the clients' are in `filenos()`."""
        return -1 if self._listener is None else self._listener.fileno()

    def filenos(self) -> list[int]:
        listening = [] if self._listener is None else [self._listener.fileno()]
        return listening + [client.fileno() for client in self._clients]

    def writers(self) -> list[int]:
        return [client.fileno() for client, pending in self._clients.items() if pending]

    def deadline(self) -> float | None:
        return self.device.deadline()

    def pump(self, now: float) -> None:
        self.device.advance(now)
        self._accept()
        for client in list(self._clients):
            self._read(client, now)
        out = self.device.transmit(now)
        for client, pending in list(self._clients.items()):
            pending.add(out)
            self._write(client, pending)

    def drop_clients(self) -> None:
        """Cut every connection, as a serial server does when it restarts."""
        for client in list(self._clients):
            self._lose(client)

    def half_open(self) -> None:
        """Every connection lives on, and nothing comes or goes on it any more."""
        self._dead += self._clients
        self._clients.clear()

    def other_node(self) -> None:
        self.unplug()
        self.replug()

    def unplug(self) -> None:
        """The serial server is gone: connections are cut, new ones refused."""
        self.drop_clients()
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def replug(self) -> None:
        if self._listener is None:
            family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
            self._listener = socket.create_server((self.host, self.port), family=family)
            self._listener.setblocking(False)
            self.host, self.port = self._listener.getsockname()[:2]

    def close(self) -> None:
        self.unplug()
        while self._dead:
            self._dead.pop().close()

    def _accept(self) -> None:
        while self._listener is not None:
            try:
                client, _ = self._listener.accept()
            except (BlockingIOError, ConnectionError):
                return
            if len(self._clients) >= self._limit:
                client.close()
                continue
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._clients[client] = Pending(CLIENT_PENDING_LIMIT)

    def _read(self, client: socket.socket, now: float) -> None:
        for _ in range(READS_PER_PUMP):
            try:
                data = client.recv(READ_SIZE)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._lose(client)
                return
            self.device.receive(data, now)
            if len(data) < READ_SIZE:
                return

    def _write(self, client: socket.socket, pending: Pending) -> None:
        while pending:
            try:
                pending.gone(client.send(pending.peek()))
            except BlockingIOError:
                return
            except OSError:
                self._lose(client)
                return

    def _lose(self, client: socket.socket) -> None:
        pending = self._clients.pop(client)
        pending.clear()
        self._dropped += pending.dropped
        client.close()
