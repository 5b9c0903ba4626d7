"""`socket:` raw bytes over TCP, as serial servers (an NPort in "TCP Server" mode) speak it."""

from __future__ import annotations

import errno
import os
import select
import socket
import threading
import time
from typing import Any

from firmware_bridge.errors import Absent
from firmware_bridge.transports.waker import Waker
from firmware_bridge.transports.wire import WireReceiver, Writing

CONNECT_S = 2.0
"""How long connecting may take with all that belongs to it; `wake` and `stop` end it at once."""
KEEPALIVE = {socket.TCP_KEEPIDLE: 5, socket.TCP_KEEPINTVL: 2, socket.TCP_KEEPCNT: 3}
"""A peer that vanished without a word (I-21) shows after about 11 s of silence."""
USER_TIMEOUT_MS = 10_000
"""Written bytes that nobody confirms kill the connection after this time."""
_CHECK = "the serial server, its network cable and its power"
_WHY = {
    errno.ECONNREFUSED: "the machine answers but nobody listens there: check the serial server's mode (TCP "
    "server) and the port number",
    errno.ETIMEDOUT: f"nobody answered: check {_CHECK}",
    errno.EHOSTUNREACH: f"no machine has this address: check {_CHECK}",
    errno.ENETUNREACH: "no way leads to this address: check this machine's network cable and address",
}

Address = tuple[Any, ...]


class SocketReceiver(WireReceiver):
    check = _CHECK
    unfit = "is the address right?"

    def __init__(self, uri: str, host: str, port: int) -> None:
        super().__init__(uri, f"{host}:{port}")
        self._host, self._port = host, port
        self._socket: socket.socket | None = None
        self._lookup: _Lookup | None = None

    def describe(self) -> str:
        return f"TCP connection to {self._name}"

    def _open_handle(self) -> int:
        connected = self._connect()
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

    def dispose(self) -> None:
        super().dispose()
        if self._lookup is not None:
            self._lookup.answered.close()

    def _end_of_input(self) -> str:
        return f"{self._name} closed the connection: check the serial server and who else uses it"

    def _connect(self) -> socket.socket:
        """To the first address that answers. A wake of before counts for the next read, not for this."""
        end = time.monotonic() + CONNECT_S
        poll = select.poll()
        poll.register(self._waker, select.POLLIN)
        woken = bool(poll.poll(0))
        self._waker.drain()
        try:
            addresses = self._addresses(poll, end)
            failure = errno.EADDRNOTAVAIL
            for number, (family, address) in enumerate(addresses):
                share = (end - time.monotonic()) / (len(addresses) - number)
                failure = self._try(family, address, poll, share)
                if not failure:
                    assert self._socket is not None
                    return self._socket
        finally:
            if woken:
                self._waker.wake()
        why = _WHY.get(failure, f"{os.strerror(failure)}: check {self.check}")
        raise Absent(f"{self._name} is not there: {why}")

    def _try(self, family: int, address: Address, poll: select.poll, patience: float) -> int:
        """0, or the errno of what went wrong."""
        self._close_handle()
        try:
            trying = self._socket = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:  # IPv6 is switched off, and the next address may do
            return error.errno or errno.EAFNOSUPPORT
        trying.setblocking(False)
        failure = trying.connect_ex(address)
        if failure == errno.EINPROGRESS:
            poll.register(trying, select.POLLOUT)
            ready = [number for number, _ in poll.poll(max(0.0, patience) * 1000)]
            poll.unregister(trying)
            if ready == [self._waker.fileno()]:
                raise self._broken_off()
            failure = trying.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if ready else errno.ETIMEDOUT
        if not failure and trying.getsockname() == trying.getpeername():
            return errno.ECONNREFUSED  # on this machine it may connect to itself when nobody listens
        return failure

    def _addresses(self, poll: select.poll, end: float) -> list[tuple[int, Address]]:
        """What the name stands for. Looking up takes the resolver's time, so another thread does it."""
        try:
            return _resolve(self._host, self._port, socket.AI_NUMERICHOST)
        except (socket.gaierror, UnicodeError):  # no number
            pass
        lookup = self._lookup = self._lookup or _Lookup(self._host, self._port)
        poll.register(lookup.answered, select.POLLIN)
        ready = [number for number, _ in poll.poll(max(0.0, end - time.monotonic()) * 1000)]
        poll.unregister(lookup.answered)
        if not ready:
            raise Absent(
                f"{self._name} is not there: its name was not found within {CONNECT_S:g} s: check the "
                "name server, or write the address in numbers"
            )
        if ready == [self._waker.fileno()]:
            raise self._broken_off()
        lookup.answered.close()
        self._lookup = None
        if isinstance(lookup.found, OSError):
            raise Absent(
                f"{self._name} is not there: its name is not known ({lookup.found.strerror}): correct it, or "
                "write the address in numbers"
            ) from lookup.found
        return lookup.found

    def _broken_off(self) -> Absent:
        return Absent(f"{self._name} is not there yet: connecting was broken off on our side")


class SocketTransport(SocketReceiver, Writing):
    """The command form."""


class _Lookup:
    """One name on its way to addresses: `found` is there once `answered` can be read."""

    def __init__(self, host: str, port: int) -> None:
        self.found: list[tuple[int, Address]] | OSError = []
        self.answered = Waker()
        self._asked = host, port
        threading.Thread(target=self._run, name=f"lookup {host}", daemon=True).start()

    def _run(self) -> None:
        try:
            self.found = _resolve(*self._asked, 0)
        except (OSError, UnicodeError) as error:  # a label that is empty or too long is a UnicodeError
            self.found = error if isinstance(error, OSError) else OSError(errno.EINVAL, str(error))
        self.answered.wake()


def _resolve(host: str, port: int, flags: int) -> list[tuple[int, Address]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _, _, _, address in found]
