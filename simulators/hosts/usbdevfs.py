"""Linux's usbdevfs (linux/usbdevice_fs.h) on a simulated device: what libusb asks of it, 64-bit layout."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct, pack
from typing import Protocol

from simulators.hosts.usb_device import Transfer, UsbDevice
from simulators.hosts.usb_identity import Stalled, refused

CONTROL, INTERRUPT, BULK = 2, 1, 3
CAPABILITIES = 0x04 | 0x08 | 0x10
"""No packet size limit, scatter-gather (so one URB a transfer), reap after disconnect."""
_URB = Struct("=BBxxiIxxxxQiiiiiIQ")
_URB_RESULT = Struct("=iIxxxxQii")
_URB_RESULT_AT = 4
_SETUP = Struct("<BBHHH")
_DRIVER_NAME = 256
_DISCONNECT, _CONNECT = 0x5516, 0x5517
_STATUS = {errno.ENODEV: errno.ESHUTDOWN, errno.ECANCELED: errno.ENOENT}
"""Where an URB's status has another number than the refusal of a call."""


class Memory(Protocol):
    """The memory of the program that asks."""

    def read(self, address: int, size: int) -> bytes: ...

    def write(self, address: int, data: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class _Urb:
    """One request of a program, at `address` in its memory."""

    address: int
    kind: int
    endpoint: int
    flags: int
    buffer: int
    length: int

    @property
    def data_at(self) -> int:
        return self.buffer + (_SETUP.size if self.kind == CONTROL else 0)


@dataclass(frozen=True, slots=True)
class _Done:
    urb: _Urb
    status: int
    data: bytes
    actual: int


class OpenFile:
    """One open file of a device's node. `changed` is called when `due` may have changed.

    Serve it from one thread; transfers may finish in any other. The file stays dead when the device was
    pulled out, even if it is back.
    """

    def __init__(self, device: UsbDevice, changed: Callable[[], None], counts: Counter[str]) -> None:
        self._device = device
        self._attachment = device.attachment
        self._changed = changed
        self._counts = counts
        self._running: dict[int, Transfer] = {}
        self._done: deque[_Done] = deque()
        self._lock = threading.Lock()
        self._calls: dict[int, tuple[str, Callable[[int, Memory], int]]] = {
            3: ("resetep", lambda arg, m: self._do(self._here().clear_halt, _uint(m, arg))),
            4: ("setinterface", self._set_interface),
            5: ("setconfiguration", lambda arg, m: self._do(self._here().configure, _uint(m, arg))),
            8: ("getdriver", self._get_driver),
            10: ("submiturb", self._submit),
            11: ("discardurb", self._discard),
            12: ("reapurb", self._reap),
            13: ("reapurbndelay", self._reap),
            15: ("claiminterface", lambda arg, m: self._do(self._here().claim, _uint(m, arg), self)),
            16: ("releaseinterface", lambda arg, m: self._do(self._here().release, _uint(m, arg), self)),
            18: ("ioctl", self._driver_ioctl),
            20: ("reset", lambda _, __: self._do(self._here().reset)),
            21: ("clear_halt", lambda arg, m: self._do(self._here().clear_halt, _uint(m, arg))),
            26: ("get_capabilities", self._get_capabilities),
        }

    @property
    def due(self) -> bool:
        """Whether a reap would bring something."""
        with self._lock:
            return bool(self._done)

    def ioctl(self, request: int, argument: int, memory: Memory) -> int:
        """The call's result. OSError with the errno it fails with; ENOTTY for what usbdevfs does not know."""
        name, call = self._calls.get(request & 0xFF, (f"unknown {request:#x}", None))
        self._counts[name] += 1
        if call is None or request >> 8 & 0xFF != ord("U"):
            raise refused(errno.ENOTTY)
        return call(argument, memory)

    def close(self) -> None:
        self._device.let_go(self)

    def _here(self) -> UsbDevice:
        self._device.check(self._attachment)
        return self._device

    @staticmethod
    def _do(act: Callable[..., None], *arguments: object) -> int:
        act(*arguments)
        return 0

    def _get_capabilities(self, argument: int, memory: Memory) -> int:
        memory.write(argument, pack("=I", CAPABILITIES))
        return 0

    def _set_interface(self, argument: int, memory: Memory) -> int:
        self._here().set_alternate(_uint(memory, argument), _uint(memory, argument + 4))
        return 0

    def _get_driver(self, argument: int, memory: Memory) -> int:
        interface = _uint(memory, argument)
        device = self._here()
        name = device.driver_of(interface) or ("usbfs" if interface in device.claims else None)
        if name is None:
            raise refused(errno.ENODATA)
        memory.write(argument + 4, name.encode().ljust(_DRIVER_NAME, b"\0"))
        return 0

    def _driver_ioctl(self, argument: int, memory: Memory) -> int:
        """USBDEVFS_IOCTL, which hands a call to an interface's driver or takes the driver away."""
        interface, code = _uint(memory, argument), _uint(memory, argument + 4)
        device = self._here()
        if code == _DISCONNECT:
            device.detach(interface)
            return 0
        if code == _CONNECT:
            return int(device.attach(interface))
        raise refused(errno.ENOTTY)

    def _submit(self, argument: int, memory: Memory) -> int:
        device = self._here()
        kind, endpoint, _, flags, buffer, length, *_ = _URB.unpack(memory.read(argument, _URB.size))
        urb = _Urb(argument, kind, endpoint, flags, buffer, length)
        if kind == CONTROL:
            self._control(device, urb, memory)
            return 0
        if kind not in (BULK, INTERRUPT):
            raise refused(errno.EINVAL)
        is_in = bool(endpoint & 0x80)
        transfer = Transfer(
            endpoint,
            lambda ended: self._finished(urb, ended),
            data=b"" if is_in else memory.read(buffer, length),
            size=length,
            owner=self,
        )
        self._running[argument] = transfer
        try:
            device.submit(transfer)
        except OSError:
            del self._running[argument]
            raise
        return 0

    def _control(self, device: UsbDevice, urb: _Urb, memory: Memory) -> None:
        kind, request, value, index, length = _SETUP.unpack(memory.read(urb.buffer, _SETUP.size))
        reads = bool(kind & 0x80)
        try:
            answer = device.control(
                kind, request, value, index, length if reads else memory.read(urb.data_at, length)
            )
        except Stalled:
            self._end(_Done(urb, -errno.EPIPE, b"", 0))
        else:
            self._end(_Done(urb, 0, answer, len(answer) if reads else length))

    def _finished(self, urb: _Urb, ended: Transfer) -> None:
        error = ended.error or 0
        data = bytes(ended.data) if urb.endpoint & 0x80 else b""
        self._end(_Done(urb, -_STATUS.get(error, error), data, ended.actual))

    def _end(self, done: _Done) -> None:
        with self._lock:
            self._done.append(done)
        self._changed()

    def _discard(self, argument: int, _: Memory) -> int:
        running = self._running.get(argument)
        if running is None or not self._device.cancel(running):
            raise refused(errno.EINVAL)
        return 0

    def _reap(self, argument: int, memory: Memory) -> int:
        with self._lock:
            done = self._done.popleft() if self._done else None
        self._changed()
        if done is None:
            self._here()
            raise refused(errno.EAGAIN)
        urb = done.urb
        self._running.pop(urb.address, None)
        if done.data:
            memory.write(urb.data_at, done.data)
        result = _URB_RESULT.pack(done.status, urb.flags, urb.buffer, urb.length, done.actual)
        memory.write(urb.address + _URB_RESULT_AT, result)
        memory.write(argument, pack("=Q", urb.address))
        return 0


class Readiness:
    """A device's node as libusb waits for it: writable when something can be reaped.

    It is a FIFO that is kept full, since a plain file would always be writable and let libusb spin.
    """

    SIZE = 4096

    def __init__(self, path: str) -> None:
        os.mkfifo(path, 0o600)
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, self.SIZE)
        self._ready = True
        self.set(ready=False)

    def set(self, *, ready: bool) -> None:
        if self._fd < 0 or ready == self._ready:
            return
        self._ready = ready
        if ready:
            os.read(self._fd, self.SIZE)
        else:
            os.write(self._fd, bytes(self.SIZE))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _uint(memory: Memory, address: int) -> int:
    return int.from_bytes(memory.read(address, 4), "little")
