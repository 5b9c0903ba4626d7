"""libusb under pyusb: which library, and IN transfers that the owner thread can wait for in `poll`.

pyusb's own reads block and nothing but their timeout ends them; libusb's asynchronous transfers with its
pollable handles (libusb manual, "Polling libusb file descriptors for event handling") wait together with a
wake pipe in one thread. All else is pyusb's.
"""

from __future__ import annotations

import ctypes
import errno
import time
import weakref
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Protocol

from usb.backend import IBackend, libusb1
from usb.core import USBError
from usb.libloader import LibraryException

from firmware_bridge.errors import Unsupported
from firmware_bridge.transports.errors import words

SYSTEM = "libusb-1.0.so.0"
CANCEL_S = 1
"""How long a cancelled transfer may take to come back, seconds."""
_BULK, _INTERRUPT = 2, 3
_INTERRUPTED = -10
"""LIBUSB_ERROR_INTERRUPTED: a signal came; ask again."""
_STATUS = {
    1: ("Input/output error", errno.EIO),
    2: ("Operation timed out", errno.ETIMEDOUT),
    3: ("Transfer was cancelled", errno.ECANCELED),
    4: ("Endpoint is halted", errno.EPIPE),
    5: ("No such device (it may have been disconnected)", errno.ENODEV),
    6: ("Overflow", errno.EOVERFLOW),
}
"""enum libusb_transfer_status, all but completed (0)."""


class InTransfer(Protocol):
    """One IN transfer under way."""

    @property
    def done(self) -> bool: ...

    def result(self) -> bytes:
        """What came, b"" for a zero-length packet. Raises USBError."""

    def close(self) -> None:
        """Cancel if it still runs, and free it; safe twice."""


class PollableBackend(Protocol):
    """What a pyusb backend must add so that one thread can wait for it and for a wake."""

    def pollfds(self) -> list[tuple[int, int]]:
        """Handles and poll events to wait for; valid until a device is opened or closed."""

    def submit_in(self, handle: Any, endpoint: int, interrupt: bool, size: int) -> InTransfer:
        """Ask for up to `size` bytes, a multiple of the endpoint's packet size. Raises USBError."""

    def handle_events(self) -> None:
        """Let finished transfers become done; never blocks."""

    def finalize(self) -> None:
        """Free the backend; nothing of it may be used after."""


class _PollFd(ctypes.Structure):
    _fields_ = (("fd", ctypes.c_int), ("events", ctypes.c_short))


class _TimeVal(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("microseconds", ctypes.c_long))


class _Transfer(ctypes.Structure):
    """struct libusb_transfer without its isochronous tail."""


_Callback = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Transfer))
_Transfer._fields_ = (
    ("dev_handle", ctypes.c_void_p),
    ("flags", ctypes.c_uint8),
    ("endpoint", ctypes.c_uint8),
    ("type", ctypes.c_uint8),
    ("timeout", ctypes.c_uint),
    ("status", ctypes.c_int),
    ("length", ctypes.c_int),
    ("actual_length", ctypes.c_int),
    ("callback", _Callback),
    ("user_data", ctypes.c_void_p),
    ("buffer", ctypes.c_void_p),
    ("num_iso_packets", ctypes.c_int),
)


class PollableLibusb(libusb1._LibUSB):  # type: ignore[misc]  # noqa: SLF001 - pyusb keeps one context a process; each port needs its own
    """A libusb context of one transport. Made anew at each open, so that it sees the bus as it is now."""

    def __init__(self, lib: ctypes.CDLL) -> None:
        self._given: list[weakref.ref[Any]] = []  # before anything fails: it is looked at in the end
        super().__init__(lib)

    def enumerate_devices(self) -> Iterator[Any]:
        devices = list(super().enumerate_devices())
        self._given += map(weakref.ref, devices)
        return iter(devices)

    def _finalize_object(self) -> None:
        """Devices go before their context, also those that the frames of an error on its way still hold."""
        for given in self._given:
            if (device := given()) is not None:
                device.finalize()
        super()._finalize_object()

    def pollfds(self) -> list[tuple[int, int]]:
        found = self.lib.libusb_get_pollfds(self.ctx)
        if not found:
            raise NotImplementedError("this libusb has no handles to wait for")
        out = []
        number = 0
        while found[number]:
            entry = found[number].contents
            out.append((entry.fd, entry.events))
            number += 1
        self.lib.libusb_free_pollfds(found)
        return out

    def submit_in(self, handle: Any, endpoint: int, interrupt: bool, size: int) -> InTransfer:
        return _LibusbIn(self, handle.handle, endpoint, _INTERRUPT if interrupt else _BULK, size)

    def handle_events(self) -> None:
        self.wait_events(0)

    def wait_events(self, seconds: int) -> None:
        """As `handle_events`, waiting for at most so long."""
        patience = _TimeVal(seconds, 0)
        code = self.lib.libusb_handle_events_timeout_completed(self.ctx, ctypes.byref(patience), None)
        if code < 0 and code != _INTERRUPTED:
            raise _error(code)


class _LibusbIn:
    """The structure and buffer belong to libusb while the transfer runs: both are kept until it is back."""

    def __init__(self, backend: PollableLibusb, handle: Any, endpoint: int, kind: int, size: int) -> None:
        self._backend = backend
        self._buffer = ctypes.create_string_buffer(size)
        self._callback = _Callback(self._finished)
        self.done = False
        self._transfer = backend.lib.libusb_alloc_transfer(0)
        if not self._transfer:
            raise USBError("Out of memory", -11, errno.ENOMEM)
        fields = self._transfer.contents
        fields.dev_handle, fields.endpoint, fields.type, fields.timeout = handle, endpoint, kind, 0
        fields.length, fields.buffer = size, ctypes.addressof(self._buffer)
        fields.callback = self._callback
        code = backend.lib.libusb_submit_transfer(self._transfer)
        if code < 0:
            self.done = True
            self.close()
            raise _error(code)

    def _finished(self, _transfer: object) -> None:
        self.done = True

    def result(self) -> bytes:
        fields = self._transfer.contents
        if fields.status:
            text, number = _STATUS.get(fields.status, ("Unknown transfer status", errno.EIO))
            raise USBError(text, fields.status, number)
        return self._buffer.raw[: fields.actual_length]

    def close(self) -> None:
        if self._transfer is None:
            return
        try:
            if not self.done:
                self._backend.lib.libusb_cancel_transfer(self._transfer)
                end = time.monotonic() + CANCEL_S
                while not self.done and time.monotonic() < end:
                    self._backend.wait_events(CANCEL_S)
        finally:
            if self.done:
                self._backend.lib.libusb_free_transfer(self._transfer)
            else:
                _stuck.append(self)  # libusb may still write to it: keeping it is the lesser evil
            self._transfer = None


_stuck: list[_LibusbIn] = []


def _error(code: int) -> USBError:
    number = libusb1._libusb_errno.get(code)  # noqa: SLF001 - the library's own table of its codes
    return USBError(f"libusb error {code}", code, number)


@cache
def _library() -> ctypes.CDLL:
    """The system's libusb, else that of the package libusb-package. Raises Unsupported."""
    # Not pyusb's get_backend: it tells no reason, and its context keeps a thread and handles for ever.
    try:
        lib = libusb1._lib = libusb1._load_library(_where)  # noqa: SLF001 - see above
    except LibraryException as error:
        raise Unsupported(
            f"USB needs the library libusb-1.0, which cannot be loaded ({_loading()}): install the Debian "
            "package libusb-1.0-0, or the Python package libusb-package"
        ) from error
    libusb1._setup_prototypes(lib)  # noqa: SLF001 - see above
    lib.libusb_get_pollfds.argtypes = [ctypes.c_void_p]
    lib.libusb_get_pollfds.restype = ctypes.POINTER(ctypes.POINTER(_PollFd))
    lib.libusb_free_pollfds.argtypes = [ctypes.POINTER(ctypes.POINTER(_PollFd))]
    lib.libusb_free_pollfds.restype = None
    lib.libusb_alloc_transfer.restype = ctypes.POINTER(_Transfer)
    for name in ("submit_transfer", "cancel_transfer", "free_transfer"):
        getattr(lib, f"libusb_{name}").argtypes = [ctypes.POINTER(_Transfer)]
    lib.libusb_free_transfer.restype = None
    lib.libusb_handle_events_timeout_completed.argtypes = [
        ctypes.c_void_p,
        ctypes.POINTER(_TimeVal),
        ctypes.c_void_p,
    ]
    return lib  # type: ignore[no-any-return]  # pyusb is untyped


def _where(_name: str) -> str | None:
    try:
        ctypes.CDLL(SYSTEM)
    except OSError:
        pass
    else:
        return SYSTEM
    try:
        import libusb_package
    except ImportError:
        return None
    path = libusb_package.get_library_path()
    return None if path is None else str(path)


def _loading() -> str:
    """What the system says about loading its libusb."""
    try:
        ctypes.CDLL(SYSTEM)
    except OSError as error:
        return str(error)
    return f"{SYSTEM} is something else"


def _make() -> IBackend:
    """A context of its own. Raises Unsupported when libusb is missing or does not start."""
    lib = _library()
    try:
        return PollableLibusb(lib)
    except (USBError, NotImplementedError) as error:
        raise Unsupported(
            f"USB needs the library libusb-1.0, which is there but does not start ({words(error)}): a "
            "container or a restricted service must let it have /dev/bus/usb and netlink sockets"
        ) from error


make_backend: Callable[[], IBackend] = _make
"""What `usb:` and `usbhid:` are built on; tests put a simulated bus here."""
