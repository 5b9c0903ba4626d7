"""`usb:` vendor bulk and `usbhid:` interrupt reports over pyusb; one thread, which waits in `poll`.

Each read gives one transfer and each write sends one: packet boundaries are the framing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import usb.core
import usb.util

from firmware_bridge.errors import Absent, BridgeError, Busy, Denied, LinkLost, Stalled, Unsupported
from firmware_bridge.transports import Uri, UsbName, libusb, locks, usb_find
from firmware_bridge.transports.errors import translated
from firmware_bridge.transports.waker import Waker

READ_SIZE = 2048
"""Bytes asked for at once, rounded up to a multiple of the packet size (I-45): the longest packet is 1032."""
DRAIN_S = 0.01
"""Old input shows within this time after opening; `DRAIN_LIMIT` transfers of it are thrown away."""
DRAIN_LIMIT = 64
EMPTY_LIMIT = 500
"""Zero-length packets a second; a device that sends more is broken."""
APPEARANCE_S = 2.0
MAX_WAIT = 3600.0
_VENDOR, _HID = 0xFF, 3
_SET_REPORT = 9


@dataclass(frozen=True, slots=True)
class Ends:
    """Where the bytes of one opened device go, as a capture names it."""

    bus: int
    address: int
    interface: int
    into: int
    """Address of the IN endpoint."""
    out: int | None
    interrupt: bool


class UsbReceiver:
    """One device, found anew by its name at each open, with a libusb context of its own."""

    def __init__(self, uri: Uri, name: UsbName) -> None:
        self._uri = uri
        self._wanted = name
        self._hid = uri.scheme == "usbhid"
        self._name = f"USB device {name}"
        self._label = self._name
        self._living = translated(self._name)
        self._waker = Waker()
        self._poll = select.poll()
        self._backend: Any = None
        self._device: Any = None
        self._transfer: libusb.InTransfer | None = None
        self._failed: usb.core.USBError | None = None  # what the next read tells
        self._stalled = False
        self._empty = (0, 0.0)  # zero-length packets in a row, and since when
        self._detached = False
        self._size = READ_SIZE
        self._out_packet = 0
        self.ends: Ends | None = None
        self.observer: Callable[[int, int], None] = lambda endpoint, status: None  # noqa: ARG005 - nobody asks
        """Told endpoint and status (0, -errno) of transfers that no read or write shows: empty, stalled."""

    @property
    def uri(self) -> str:
        return self._uri.text

    def describe(self) -> str:
        kind = "interrupt reports" if self._hid else "bulk"
        return f"{self._label}, {kind}" + (", kernel driver detached" if self._detached else "")

    def open(self) -> None:
        if self._waker.closed:
            raise Absent(f"{self._name} was disposed of and cannot be opened again")
        self.close()
        try:
            with translated(self._name, opening=True):
                self._open()
                self._drain()
                self._poll.register(self._waker, select.POLLIN)
        except BaseException:
            self.close()
            raise

    def read(self, timeout: float) -> bytes:
        with self._living:
            self._check()
            return self._take() if self._wait(timeout) else b""

    def wake(self) -> None:
        self._waker.wake()

    def stop(self) -> None:
        self._waker.stop()

    def close(self) -> None:
        transfer, self._transfer = self._transfer, None
        device, self._device = self._device, None
        backend, self._backend = self._backend, None
        ends, self.ends = self.ends, None
        self._failed, self._stalled, self._empty = None, False, (0, 0.0)
        with contextlib.suppress(OSError, NotImplementedError):
            if transfer is not None:
                transfer.close()
        if device is not None:
            _let_go(device, ends.interface if ends and self._detached else None)
        del transfer, device  # what is left of a device must go before its libusb context
        self._detached = False
        if backend is not None:
            backend.finalize()

    def dispose(self) -> None:
        self.close()
        self._waker.close()

    def _wait(self, timeout: float) -> bool:
        """Until the transfer is done; False after `timeout` or a wake. Other news of libusb ends no wait."""
        assert self._transfer is not None
        end = time.monotonic() + max(0.0, min(timeout, MAX_WAIT))
        while not self._transfer.done:
            left = max(0.0, end - time.monotonic())
            ready = [fd for fd, _ in self._poll.poll(left * 1000)]
            if woken := self._waker.fileno() in ready:
                self._waker.drain()
            self._backend.handle_events()
            if woken or (not ready and not left):
                break
        return self._transfer.done

    def _open(self) -> None:
        self._backend = libusb.make_backend()
        found = usb_find.the_one(self._backend, self._wanted)
        device = self._device = found.device
        self._label = f"USB device {found.vid:04x}:{found.pid:04x} at {found.place}" + "".join(
            f", {text}" for text in (found.product, found.serial and f"serial {found.serial}") if text
        )
        try:
            self._claim(device, found)
        except OSError as error:
            if error.errno == errno.EBUSY:
                raise self._busy(found) from error
            if error.errno in {errno.EACCES, errno.EPERM}:
                raise _rights(found) from error
            raise

    def _claim(self, device: Any, found: usb_find.Found) -> None:
        interface, into, out = self._endpoints(_configuration(device))
        number = interface.bInterfaceNumber
        self.ends = Ends(
            found.bus, found.address, number, into.bEndpointAddress, out and out.bEndpointAddress, self._hid
        )
        if _driven(device, number):
            if not (self._hid or self._uri.switch("detach")):
                raise Busy(
                    f"{self._label} is held by a driver of the kernel: stop what uses it, or let Cutcard "
                    f"take it over with {self._uri.text}?detach=on (it is given back afterwards)"
                )
            device.detach_kernel_driver(number)
            self._detached = True
        usb.util.claim_interface(device, number)
        if interface.bAlternateSetting:
            device.set_interface_altsetting(number, interface.bAlternateSetting)
        self._out_packet = 0 if out is None else _packet(out)
        packet = _packet(into)
        self._size = packet if self._hid else -(-READ_SIZE // packet) * packet
        self._submit()
        self._poll = select.poll()
        for fd, events in self._backend.pollfds():
            self._poll.register(fd, events)

    def _endpoints(self, configuration: Any) -> tuple[Any, Any, Any]:
        """The first fitting interface with its IN and OUT endpoint; HID may have no OUT."""
        kind = usb.util.ENDPOINT_TYPE_INTR if self._hid else usb.util.ENDPOINT_TYPE_BULK
        for interface in configuration:
            if interface.bInterfaceClass != (_HID if self._hid else _VENDOR):
                continue
            ends = [e for e in interface if usb.util.endpoint_type(e.bmAttributes) == kind]
            into = next((e for e in ends if e.bEndpointAddress & 0x80), None)
            out = next((e for e in ends if not e.bEndpointAddress & 0x80), None)
            if into is None or not _packet(into) or (out is not None and not _packet(out)):
                continue
            if out is not None or self._hid:
                return interface, into, out
        what = "HID interface with interrupt reports" if self._hid else "vendor interface with bulk endpoints"
        raise Unsupported(
            f"{self._label} has no {what}: it is another kind of device, or wants another kind of port "
            "(`cutcard ports` lists them)"
        )

    def _submit(self) -> None:
        assert self.ends is not None
        handle = self._device._ctx.handle  # noqa: SLF001 - pyusb shows its backend's handle nowhere else
        self._transfer = self._backend.submit_in(handle, self.ends.into, self._hid, self._size)

    def _take(self) -> bytes:
        """What the finished transfer brought; the next one is under way when this returns."""
        transfer, self._transfer = self._transfer, None
        assert transfer is not None
        assert self.ends is not None
        try:
            data = transfer.result()
        except usb.core.USBError as error:
            if error.errno != errno.EPIPE:
                raise
            if self._stalled:
                raise Stalled(
                    f"{self._label} stopped its endpoint again after it was cleared: it is opened anew; "
                    "if this stays, switch the device off and on"
                ) from error
            self._stalled = True
            self._device.clear_halt(self.ends.into)
            self._submit()
            self.observer(self.ends.into, -errno.EPIPE)
            return b""
        finally:
            transfer.close()
        self._stalled = False
        self._count_empty(data)
        try:
            self._submit()
        except usb.core.USBError as error:  # what came before the plug was pulled is told first
            self._failed = error
        if not data:
            self.observer(self.ends.into, 0)
        return data

    def _check(self) -> None:
        if self._failed is not None:
            raise self._failed
        if self._transfer is None:
            raise LinkLost(f"{self._name} is not open")

    def _count_empty(self, data: bytes) -> None:
        """Zero-length packets are no data (I-50); a flood of them would keep this thread busy for ever."""
        count, since = self._empty
        now = time.monotonic()
        if data or now - since > 1:
            count, since = 0, now
        if count > EMPTY_LIMIT:
            raise LinkLost(
                f"{self._label} sends empty packets without end: it is opened anew; "
                "if this stays, switch the device off and on"
            )
        self._empty = (count + (not data), since)

    def _drain(self) -> None:
        """Old input is thrown away, so that a session begins with its own answers."""
        end = time.monotonic() + DRAIN_S
        for _ in range(DRAIN_LIMIT):
            if not self._wait(end - time.monotonic()):
                return
            self._take()
            self._check()

    def _busy(self, found: usb_find.Found) -> Busy:
        holder = locks.opened_by(found.node)
        who = str(holder) if holder else "another program or a driver of the kernel"
        return Busy(f"{self._label} is held by {who}: stop it, or wait until it lets go")


class UsbTransport(UsbReceiver):
    """The command form."""

    def write(self, data: bytes, timeout: float = 0.5) -> None:
        with self._living:
            self._check()
            try:
                sent = self._send(data, max(1, int(timeout * 1000)))
            except usb.core.USBTimeoutError as error:
                raise LinkLost(
                    f"{self._label} did not take {len(data)} bytes in {timeout:g} s: how many of them it has "
                    "is not known, and its state must be asked before anything is repeated"
                ) from error
            except usb.core.USBError as error:
                if error.errno == errno.EPIPE:
                    raise self._refused() from error
                raise
        if sent < len(data):
            raise LinkLost(
                f"{self._label} took only {sent} of {len(data)} bytes in {timeout:g} s: its state must be "
                "asked before anything is repeated"
            )

    def _send(self, data: bytes, milliseconds: int) -> int:
        assert self.ends is not None
        if self.ends.out is None:  # HID class specification 1.11, 7.2.2: an output report by SET_REPORT
            kind = usb.util.build_request_type(
                usb.util.CTRL_OUT, usb.util.CTRL_TYPE_CLASS, usb.util.CTRL_RECIPIENT_INTERFACE
            )
            return int(
                self._device.ctrl_transfer(kind, _SET_REPORT, 0x0200, self.ends.interface, data, milliseconds)
            )
        sent = int(self._device.write(self.ends.out, data, milliseconds))
        if not self._hid and data and sent == len(data) and len(data) % self._out_packet == 0:
            self._device.write(self.ends.out, b"", milliseconds)  # else the device waits for the rest (I-50)
            self.observer(self.ends.out, 0)
        return sent

    def _refused(self) -> BridgeError:
        assert self.ends is not None
        with contextlib.suppress(OSError, NotImplementedError):
            self._device.clear_halt(self.ends.out)
        return Stalled(
            f"{self._label} refused a packet and stopped its endpoint: whether it took the packet is not "
            "known; it is opened anew"
        )


def _configuration(device: Any) -> Any:
    """The active configuration; set only when there is none, since a bound driver forbids it (I-43)."""
    try:
        return device.get_active_configuration()
    except usb.core.USBError as error:
        if error.errno is not None or error.backend_error_code is not None:
            raise
    device.set_configuration()
    return device.get_active_configuration()


def _packet(endpoint: Any) -> int:
    """Bytes of the endpoint's largest packet (USB 2.0, table 9-13: the lower 11 bits)."""
    return int(endpoint.wMaxPacketSize & 0x7FF)


def _driven(device: Any, interface: int) -> bool:
    try:
        return bool(device.is_kernel_driver_active(interface))
    except NotImplementedError:  # a system that has no such drivers (I-42)
        return False


def _let_go(device: Any, give_back: int | None) -> None:
    """Release, give the kernel its interface back if we took it, and close; a device that is gone is fine."""
    failures = (OSError, NotImplementedError, ValueError)
    if give_back is not None:
        with contextlib.suppress(*failures):
            usb.util.release_interface(device, give_back)
        with contextlib.suppress(*failures):
            device.attach_kernel_driver(give_back)
    with contextlib.suppress(*failures):
        usb.util.dispose_resources(device)


def _rights(found: usb_find.Found) -> Absent | Denied:
    """Rights come from udev, a moment after the node appears (I-14)."""
    remedy = usb_find.rights_hint(found.node)
    try:
        status = Path(found.node).stat()
    except OSError:
        return Denied(f"USB device at {found.place} may not be opened by this user: {remedy}")
    text = f"{found.node} exists but this user (uid {os.getuid()}) may not open it"
    if 0 <= time.time() - status.st_ctime < APPEARANCE_S:
        return Absent(f"{text}; it appeared only now and its rights may still change. If not: {remedy}")
    return Denied(f"{text}: {remedy}")
