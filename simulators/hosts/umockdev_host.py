"""Simulated USB devices served to umockdev's preload, so that the real libusb finds them and talks to them.

The preload (LD_PRELOAD in a program that is started later) sends each ioctl on a simulated node over a unix
socket as three native unsigned longs. That is umockdev's inner protocol, seen with 0.17.16, and no promise.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from struct import Struct, calcsize, pack

from simulators.hosts import locks
from simulators.hosts import umockdev_tree as tree
from simulators.hosts.usb_bus import UsbBus
from simulators.hosts.usb_device import UsbDevice
from simulators.hosts.usb_identity import refused
from simulators.hosts.usbdevfs import OpenFile, Readiness

PRELOAD = "libumockdev-preload.so.0"
SOCKET_PATH_LIMIT = 107
IOCTL, _RESULT, DONE, RUN, READ_MEMORY, WRITE_MEMORY = range(1, 7)
LINGER_S = 2.0
"""How long programs may take to close a file after its device was pulled out for good.

The preload ends a program that uses a file nobody answers for any more.
"""
BUSES = 9
ROUNDS = 16
"""Calls answered a pump: a program that asks and asks must not keep the loop from the rest."""
PATIENCE_S = 5
"""How long a program may take to answer in the middle of an ioctl."""
_MESSAGE = Struct("=QQQ")
_MINUS_ONE = 2**64 - 1
_LONGEST_NODE = "/ioctl/dev/bus/usb/001/127"


class PathTooLongError(ValueError):
    """The directory's name leaves no room for the sockets in it."""


def missing() -> str | None:
    """What this machine lacks for it, as a sentence; None when all is there."""
    if sys.platform != "linux" or calcsize("P") != 8:
        return "umockdev's preload is served on 64-bit Linux only"
    found = [*Path("/usr").glob(f"lib*/{PRELOAD}"), *Path("/usr").glob(f"lib/*/{PRELOAD}")]
    if not [*found, *Path("/usr/local").glob(f"lib*/{PRELOAD}")]:
        return "the Debian package umockdev is missing (make system-deps, as root)"
    return None


def environment(directory: Path | str) -> dict[str, str]:
    """What a program must be started with to see the simulated devices instead of this machine's."""
    already = os.environ.get("LD_PRELOAD")
    return {
        "UMOCKDEV_DIR": str(Path(directory).resolve()),
        "LD_PRELOAD": f"{PRELOAD}:{already}" if already else PRELOAD,
    }


class _Client:
    """One program's open file: a node of ours, or (without `node`) one whose calls go to the real kernel."""

    def __init__(self, connection: socket.socket, node: _Node | None) -> None:
        patience = pack("@ll", PATIENCE_S, 0)  # of the kernel: settimeout would poll before each call
        connection.setblocking(True)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, patience)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
        self.connection = connection
        self._node = node
        self._file = node.open() if node else None
        self._out = b""

    def serve(self) -> None:
        """Answer one call. EOFError when the file was closed."""
        command, request, argument = _MESSAGE.unpack(self._take(_MESSAGE.size))
        if self._file is None:
            self._out += _MESSAGE.pack(RUN, 0, 0)
            self._flush()
            _, result, number = _MESSAGE.unpack(self._take(_MESSAGE.size))
        else:
            try:
                if command != IOCTL:
                    raise refused(errno.EINVAL)
                result, number = self._file.ioctl(request, argument, self), 0
            except OSError as error:
                result, number = _MINUS_ONE, error.errno or errno.EIO
        self._out += _MESSAGE.pack(DONE, result, number)
        self._flush()

    def close(self) -> None:
        if self._node is not None and self._file is not None:
            self._node.close(self._file)
        self.connection.close()

    def read(self, address: int, size: int) -> bytes:
        if not size:
            return b""
        self._out += _MESSAGE.pack(READ_MEMORY, address, size)
        self._flush()
        return self._take(size)

    def write(self, address: int, data: bytes) -> None:
        self._out += _MESSAGE.pack(WRITE_MEMORY, address, len(data)) + data

    def _flush(self) -> None:
        out, self._out = self._out, b""
        self.connection.sendall(out)

    def _take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                more = self.connection.recv(size - len(data))
            except OSError as error:
                raise EOFError from error
            if not more:
                raise EOFError
            data += more
        return data


class _Node:
    """One attachment of a device: its files, the socket that programs connect to, and who has it open."""

    def __init__(self, root: Path, device: UsbDevice, counts: Counter[str]) -> None:
        self.device = device
        self.files = tree.Files(root)
        self._counts = counts
        self._open: list[OpenFile] = []
        self._lock = threading.Lock()
        self._left = False
        path = tree.node_path(device)
        self._readiness = Readiness(str(self.files.place(f"dev/{path}")))
        self.listener = _listen(self.files.place(f"ioctl/dev/{path}"))
        tree.add_device(self.files, device)

    def open(self) -> OpenFile:
        file = OpenFile(self.device, self._changed, self._counts)
        with self._lock:
            self._open.append(file)
        return file

    def close(self, file: OpenFile) -> None:
        file.close()
        with self._lock:
            self._open.remove(file)
        self._changed()

    def leave(self) -> None:
        """The device was pulled out: nobody finds or opens it any more."""
        self.listener.close()
        self.files.remove()
        self._left = True
        self._changed()

    def _changed(self) -> None:
        """Let libusb wake when one of the open files has something for it, and not before."""
        with self._lock:
            if self._left and not self._open:
                self._readiness.close()
            else:
                self._readiness.set(ready=any(file.due for file in self._open))


class UmockdevHost:
    """Serves the devices of `bus` in `directory`, which must be empty, missing, or another such host's.

    Like the other hosts it has one loop: select on `filenos()`, call `pump`. Devices may be plugged, pulled
    and fed from any thread. `ioctls` counts what programs asked, by name. Raises PathTooLongError, or
    FileExistsError when the directory holds something else. Programs need `environment(directory)`.
    """

    def __init__(self, directory: Path | str, bus: UsbBus) -> None:
        self.directory = Path(directory).resolve()
        self.bus = bus
        self.ioctls: Counter[str] = Counter()
        _check(self.directory)
        self._files = tree.prepare(self.directory)
        try:
            self._claim = self._claim_number()
        except BaseException:
            tree.leave(self.directory, self._files)
            raise
        self._lock = threading.RLock()
        self._epoll = select.epoll()
        self._served: dict[int, Callable[[], None]] = {}
        self._nodes: dict[UsbDevice, _Node] = {}
        self._ttys: dict[UsbDevice, tuple[str, str]] = {}
        self._clients: list[_Client] = []
        self._messages = 0
        self._default = self._listen_for_the_rest()
        for device in bus:
            self._add(device)
        bus.watchers.append(self._watch)

    def filenos(self) -> list[int]:
        return [] if self._epoll.closed else [self._epoll.fileno()]

    def writers(self) -> list[int]:
        return []

    def deadline(self) -> float | None:
        return None

    def pump(self, now: float) -> None:  # noqa: ARG002 - nothing here depends on the time
        with self._lock:
            for _ in range(ROUNDS):
                ready = [] if self._epoll.closed else self._epoll.poll(0)
                for fd, _ in ready:
                    if serve := self._served.get(fd):
                        serve()
                if not ready:
                    return

    @property
    def clients(self) -> int:
        """Files that programs have open here."""
        return len(self._clients)

    def mount_tty(self, device: UsbDevice, pty: str, name: str = "ttyUSB0") -> str:
        """Make a device that is not plugged in yet a serial adapter on a pseudo-terminal; its stable path."""
        self._ttys[device] = (name, pty)
        return f"/dev/serial/by-id/{tree.stable_name(device)}"

    def close(self) -> None:
        """Pull all plugs, give programs a moment to see it, and take every file away."""
        if self._epoll.closed:
            return
        for device in list(self.bus):
            self.bus.unplug(device)
        self.bus.watchers.remove(self._watch)
        while self._clients and self._epoll.poll(LINGER_S):
            self.pump(0.0)
        with self._lock:
            for client in list(self._clients):
                self._end(client)
            if self._default is not None:
                self._default.close()
            self._epoll.close()
            with tree.alone(self.directory):
                (self.directory / f"dev/.bus{self.bus.number}").unlink()
                tree.leave(self.directory, self._files)
            os.close(self._claim)

    # Plugging

    def _watch(self, action: str, device: UsbDevice) -> None:
        with self._lock:
            if action == "add":
                self._add(device)
            elif (node := self._nodes.pop(device, None)) is not None:
                self._ignore(node.listener)
                node.leave()
                self._announce("remove", device)

    def _add(self, device: UsbDevice) -> None:
        node = self._nodes[device] = _Node(self.directory, device, self.ioctls)
        if device in self._ttys:
            name, pty = self._ttys[device]
            tree.add_tty(node.files, device, name, pty)
        self._serve(node.listener, lambda: self._accept(node.listener, node))
        self._announce("add", device)

    def _announce(self, action: str, device: UsbDevice) -> None:
        self._messages += 1
        tree.announce(self.directory, action, device, self._messages)

    # Programs

    def _serve(self, handle: socket.socket, act: Callable[[], None]) -> None:
        self._served[handle.fileno()] = act
        self._epoll.register(handle, select.EPOLLIN)

    def _ignore(self, handle: socket.socket) -> None:
        del self._served[handle.fileno()]
        self._epoll.unregister(handle)

    def _accept(self, listener: socket.socket, node: _Node | None) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:  # the program has gone again
            return
        client = _Client(connection, node)
        self._clients.append(client)
        self._serve(connection, lambda: self._talk(client))

    def _talk(self, client: _Client) -> None:
        try:
            client.serve()
        except (EOFError, OSError):  # closed, or ended in the middle of a call
            self._end(client)

    def _end(self, client: _Client) -> None:
        self._ignore(client.connection)
        client.close()
        self._clients.remove(client)

    # The directory

    def _claim_number(self) -> int:
        """Be the first bus that no other host of this directory is; the handle that keeps others off it."""
        for number in range(1, BUSES + 1):
            claim = locks.take(self.directory / f"dev/.bus{number}", os.O_RDWR | os.O_CREAT, 0o600)
            if claim is not None:
                tree.clear(self.directory, number)
                self._files.keep(*tree.of_bus(number))
                self.bus.renumber(number)
                return claim
        raise FileExistsError(errno.EEXIST, f"{self.directory} has {BUSES} simulated buses already")

    def _listen_for_the_rest(self) -> socket.socket | None:
        """Whatever has no socket of its own asks here. One host of a directory is enough."""
        path = self.directory / "ioctl/_default"
        with socket.socket(socket.AF_UNIX) as probe, suppress(FileNotFoundError, ConnectionRefusedError):
            probe.connect(str(path))
            return None
        listener = _listen(self._files.place("ioctl/_default"))
        self._serve(listener, lambda: self._accept(listener, None))
        return listener


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        listener.listen(16)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def _check(directory: Path) -> None:
    room = SOCKET_PATH_LIMIT - len(_LONGEST_NODE)
    length = len(os.fsencode(directory))
    if length > room:
        raise PathTooLongError(
            f"{directory} is {length} bytes long and may be {room}: the sockets in it must fit into "
            f"{SOCKET_PATH_LIMIT} bytes; choose a shorter one"
        )
    if directory.is_dir() and any(directory.iterdir()) and not (directory / "dev/.node").is_dir():
        raise FileExistsError(
            errno.EEXIST, f"{directory} holds other files; choose an empty or new directory"
        )
