"""Simulated USB devices under the real pyusb: a back end without libusb and without a kernel.

Beside pyusb's interface it has asynchronous IN transfers and descriptors to wait on: `pollfds`, `submit_in`,
`handle_events`. Each back end is one program's view of the bus; several may share it.
"""

from __future__ import annotations

import errno
import os
import select
import threading
from array import array
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace

import usb.backend
from usb.core import USBError, USBTimeoutError

from simulators.hosts.usb_bus import UsbBus
from simulators.hosts.usb_descriptors import (
    CONFIGURATION_SHAPE,
    DEVICE_SHAPE,
    ENDPOINT_SHAPE,
    INTERFACE_SHAPE,
    Interface,
)
from simulators.hosts.usb_device import Transfer, UsbDevice
from simulators.hosts.usb_faults import Fault, FaultPlan
from simulators.hosts.usb_identity import Stalled, refused

_LIBUSB: dict[int | None, tuple[int, str]] = {
    errno.EIO: (-1, "Input/Output Error"),
    errno.EINVAL: (-2, "Invalid parameter"),
    errno.EACCES: (-3, "Access denied (insufficient permissions)"),
    errno.ENODEV: (-4, "No such device (it may have been disconnected)"),
    errno.ENOENT: (-5, "Entity not found"),
    errno.ENODATA: (-5, "Entity not found"),
    errno.EBUSY: (-6, "Resource busy"),
    errno.EOVERFLOW: (-8, "Overflow"),
    errno.EPIPE: (-9, "Pipe error"),
}
"""libusb's code and words for an errno; everything else is "Other error", -99."""
_TIMED_OUT = (-7, "Operation timed out")
_SPEEDS = {12: 2, 480: 3, 5000: 4}


def failed(number: int | None) -> USBError:
    """The error that pyusb raises for this errno under libusb."""
    code, text = _LIBUSB.get(number, (-99, "Other error"))
    return USBError(text, code, errno.ENOENT if number == errno.ENODATA else number)


def _raise(fault: Fault) -> None:
    if fault.kind == "error":
        raise failed(fault.number)
    if fault.kind == "timeout":
        raise USBTimeoutError(_TIMED_OUT[1], _TIMED_OUT[0], fault.number)
    if fault.kind == "unimplemented":
        raise NotImplementedError("Operation not supported or unimplemented on this platform")


@dataclass(frozen=True, slots=True)
class Found:
    """A device as it was found: one attachment of it, which never comes back."""

    device: UsbDevice
    attachment: int
    descriptor: SimpleNamespace

    def alive(self) -> UsbDevice:
        """OSError ENODEV when it was pulled out, even if it is back under another address."""
        self.device.check(self.attachment)
        return self.device


class Handle:
    """One opened device."""

    def __init__(self, found: Found) -> None:
        self.alive = found.alive
        self.device = found.device


class InTransfer:
    """An IN transfer under way; `done` is true once `handle_events` has seen its end."""

    def __init__(self, bus: UsbBus, fault: Fault | None) -> None:
        self.done = False
        self._bus = bus
        self._fault = fault
        self._inner: Transfer | None = None
        bus.transfers.add(self)

    def start(self, handle: Handle, inner: Transfer) -> None:
        self._inner = inner
        handle.alive().submit(inner)

    def result(self) -> bytes:
        """What came. USBError with the errno of what went wrong, USBTimeoutError, NotImplementedError."""
        if not self.done:
            raise RuntimeError("the transfer is not done")
        if self._fault is not None:
            _raise(self._fault)
            return b""
        assert self._inner is not None
        if self._inner.error:
            raise failed(self._inner.error)
        return bytes(self._inner.data)

    def close(self) -> None:
        """Cancel it if need be and free it; safe twice."""
        self._bus.transfers.discard(self)
        if self._inner is not None and isinstance(self._inner.owner, Handle):
            self._inner.owner.device.cancel(self._inner)


class SimBackend(usb.backend.IBackend):  # type: ignore[misc]  # pyusb has no types
    """Thread-safe as far as libusb is: the devices may be fed, plugged and pulled from any other thread."""

    def __init__(self, bus: UsbBus, plan: FaultPlan | None = None) -> None:
        super().__init__()
        self.bus = bus
        self.plan = plan or FaultPlan()
        self._ended: deque[InTransfer] = deque()
        self._signal = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._signal_lock = threading.Lock()

    def _finalize_object(self) -> None:
        with self._signal_lock:
            if self._signal >= 0:
                os.close(self._signal)
                self._signal = -1

    # Waiting without blocking

    def pollfds(self) -> list[tuple[int, int]]:
        return [(self._signal, select.POLLIN)]

    def submit_in(self, handle: Handle, endpoint: int, interrupt: bool, size: int) -> InTransfer:  # noqa: ARG002 - the shape of a pollable back end; here the descriptor tells the kind
        self._called("submit_in")
        fault = self.plan.pop("in")
        transfer = InTransfer(self.bus, fault)
        if fault is not None:
            self._note(transfer)
            return transfer
        inner = Transfer(endpoint, lambda _: self._note(transfer), size=size, owner=handle)
        try:
            with _as_libusb():
                transfer.start(handle, inner)
        except USBError:
            transfer.close()
            raise
        return transfer

    def handle_events(self) -> None:
        self.bus.calls["handle_events"] += 1
        with suppress(BlockingIOError):
            os.eventfd_read(self._signal)
        while self._ended:
            self._ended.popleft().done = True

    def _note(self, transfer: InTransfer) -> None:
        self._ended.append(transfer)
        with self._signal_lock:
            if self._signal >= 0:
                os.eventfd_write(self._signal, 1)

    # Finding

    def enumerate_devices(self) -> Iterator[Found]:
        self._called("enumerate_devices")
        return iter([Found(d, d.attachment, _described(d)) for d in self.bus])

    def get_parent(self, dev: Found) -> None:
        """No hub is simulated."""

    def get_device_descriptor(self, dev: Found) -> SimpleNamespace:
        return dev.descriptor

    def get_configuration_descriptor(self, dev: Found, config: int) -> SimpleNamespace:
        found = dev.device.configurations[config]
        return SimpleNamespace(**CONFIGURATION_SHAPE.fields(found.encode()), extra_descriptors=b"")

    def get_interface_descriptor(self, dev: Found, intf: int, alt: int, config: int) -> SimpleNamespace:
        found = _interface(dev, intf, alt, config)
        return SimpleNamespace(**INTERFACE_SHAPE.fields(found.encode()), extra_descriptors=list(found.extra))

    def get_endpoint_descriptor(
        self, dev: Found, ep: int, intf: int, alt: int, config: int
    ) -> SimpleNamespace:
        found = _interface(dev, intf, alt, config).endpoints[ep]
        return SimpleNamespace(
            **ENDPOINT_SHAPE.fields(found.encode()), bRefresh=0, bSynchAddress=0, extra_descriptors=[]
        )

    # Opening and claiming

    def open_device(self, dev: Found) -> Handle:
        self._called("open_device")
        with _as_libusb():
            if dev.alive().denied:
                raise refused(errno.EACCES)
        handle = Handle(dev)
        self.bus.handles.add(handle)
        return handle

    def close_device(self, dev_handle: Handle) -> None:
        self.bus.calls["close_device"] += 1
        self.bus.handles.discard(dev_handle)
        dev_handle.device.let_go(dev_handle)

    def set_configuration(self, dev_handle: Handle, config_value: int) -> None:
        self._called("set_configuration")
        with _as_libusb():
            dev_handle.alive().configure(config_value)

    def get_configuration(self, dev_handle: Handle) -> int:
        self._called("get_configuration")
        with _as_libusb():
            return dev_handle.alive().configuration

    def set_interface_altsetting(self, dev_handle: Handle, intf: int, altsetting: int) -> None:
        self._called("set_interface_altsetting")
        with _as_libusb():
            dev_handle.alive().set_alternate(intf, altsetting)

    def claim_interface(self, dev_handle: Handle, intf: int) -> None:
        self._called("claim_interface")
        with _as_libusb():
            dev_handle.alive().claim(intf, dev_handle)

    def release_interface(self, dev_handle: Handle, intf: int) -> None:
        self._called("release_interface")
        with _as_libusb():
            dev_handle.alive().release(intf, dev_handle)

    def is_kernel_driver_active(self, dev_handle: Handle, intf: int) -> bool:
        self._called("is_kernel_driver_active")
        with _as_libusb():
            return dev_handle.alive().driver_of(intf) is not None

    def detach_kernel_driver(self, dev_handle: Handle, intf: int) -> None:
        self._called("detach_kernel_driver")
        with _as_libusb():
            dev_handle.alive().detach(intf)

    def attach_kernel_driver(self, dev_handle: Handle, intf: int) -> None:
        self._called("attach_kernel_driver")
        with _as_libusb():
            if not dev_handle.alive().attach(intf):
                raise refused(errno.ENOENT)

    def clear_halt(self, dev_handle: Handle, ep: int) -> None:
        self._called("clear_halt")
        with _as_libusb():
            dev_handle.alive().clear_halt(ep)

    def reset_device(self, dev_handle: Handle) -> None:
        self._called("reset_device")
        with _as_libusb():
            dev_handle.alive().reset()

    # Transfers that wait, milliseconds; 0 waits for ever

    def bulk_write(self, dev_handle: Handle, ep: int, intf: int, data: array[int], timeout: int) -> int:  # noqa: ARG002 - pyusb's shape
        return self._write("bulk_write", dev_handle, ep, data, timeout)

    def intr_write(self, dev_handle: Handle, ep: int, intf: int, data: array[int], timeout: int) -> int:  # noqa: ARG002 - pyusb's shape
        return self._write("intr_write", dev_handle, ep, data, timeout)

    def bulk_read(self, dev_handle: Handle, ep: int, intf: int, buff: array[int], timeout: int) -> int:  # noqa: ARG002 - pyusb's shape
        return self._read("bulk_read", dev_handle, ep, buff, timeout)

    def intr_read(self, dev_handle: Handle, ep: int, intf: int, buff: array[int], timeout: int) -> int:  # noqa: ARG002 - pyusb's shape
        return self._read("intr_read", dev_handle, ep, buff, timeout)

    def ctrl_transfer(  # noqa: PLR0917 - pyusb's shape
        self,
        dev_handle: Handle,
        bmRequestType: int,  # noqa: N803 - pyusb's names
        bRequest: int,  # noqa: N803
        wValue: int,  # noqa: N803
        wIndex: int,  # noqa: N803
        data: array[int],
        timeout: int,  # noqa: ARG002 - a simulated control request is answered at once
    ) -> int:
        self._called("ctrl_transfer")
        reads = bool(bmRequestType & 0x80)
        with _as_libusb():
            answer = dev_handle.alive().control(
                bmRequestType, bRequest, wValue, wIndex, len(data) if reads else data.tobytes()
            )
        if not reads:
            return len(data)
        data[: len(answer)] = array("B", answer)
        return len(answer)

    def _write(self, call: str, handle: Handle, endpoint: int, data: array[int], timeout: int) -> int:
        fault = self._called(call)
        content = data.tobytes()[: fault.number if fault else None]
        return self._blocking(handle, timeout, endpoint, data=content).actual

    def _read(self, call: str, handle: Handle, endpoint: int, buffer: array[int], timeout: int) -> int:
        self._called(call)
        if (fault := self.plan.pop("in")) is not None:
            _raise(fault)
            return 0
        transfer = self._blocking(handle, timeout, endpoint, size=len(buffer))
        buffer[: transfer.actual] = array("B", transfer.data)
        return transfer.actual

    def _blocking(
        self, handle: Handle, timeout: int, endpoint: int, *, data: bytes = b"", size: int = 0
    ) -> Transfer:
        ended = threading.Event()
        transfer = Transfer(endpoint, lambda _: ended.set(), data=data, size=size, owner=handle)
        with _as_libusb():
            handle.alive().submit(transfer)
        if not ended.wait(timeout / 1000 if timeout else None) and handle.device.cancel(transfer):
            if not transfer.actual:
                raise USBTimeoutError(_TIMED_OUT[1], _TIMED_OUT[0], errno.ETIMEDOUT)
            return transfer
        if transfer.error:
            raise failed(transfer.error)
        return transfer

    def _called(self, call: str) -> Fault | None:
        """Count a call and let the planned fault strike; a short write is left to the caller."""
        self.bus.calls[call] += 1
        fault = self.plan.pop(call)
        if fault is not None:
            _raise(fault)
        return fault


@contextmanager
def _as_libusb() -> Iterator[None]:
    """The device's refusals as pyusb tells them."""
    try:
        yield
    except Stalled as stalled:
        raise failed(errno.EPIPE) from stalled
    except OSError as error:
        raise failed(error.errno) from error


def _described(device: UsbDevice) -> SimpleNamespace:
    return SimpleNamespace(
        **DEVICE_SHAPE.fields(device.descriptor()),
        bus=device.bus,
        address=device.address,
        port_number=device.port,
        port_numbers=(device.port,),
        speed=_SPEEDS[device.speed],
    )


def _interface(found: Found, index: int, alternate: int, configuration: int) -> Interface:
    """By logical indices; IndexError when there is none, as pyusb wants it."""
    chosen = found.device.configurations[configuration]
    return chosen.settings(chosen.numbers[index])[alternate]
