"""What a simulated USB device answers on endpoint 0: who it is, its strings, its vendor's own requests."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from simulators.hosts import usb_descriptors as d

Vendor = Callable[[int, int, int, int, bytes], bytes]


class Stalled(Exception):
    """The device answers a control request with STALL."""


def refused(number: int) -> OSError:
    """What the kernel says instead of doing it."""
    return OSError(number, os.strerror(number))


class UsbIdentity:
    """`vendor(kind, request, value, index, data)` answers vendor requests or raises Stalled.

    Without it they stall. With empty `languages` it has no strings.
    """

    def __init__(
        self,
        vendor_id: int,
        product_id: int,
        strings: tuple[str | None, str | None, str | None],
        configurations: tuple[d.Configuration, ...],
    ) -> None:
        self.vendor_id = vendor_id
        self.product_id = product_id
        self.maker, self.name, self.serial = self.strings = strings
        self.configurations = configurations
        self.languages: tuple[int, ...] = (d.ENGLISH,)
        self.vendor: Vendor | None = None
        self.configuration = configurations[0].value
        self.alternates: dict[int, int] = {}
        self.halted: set[int] = set()

    @property
    def uri(self) -> str:
        """Under which a controller finds it."""
        interfaces = self.configurations[0].interfaces
        scheme = "usbhid" if all(interface.report for interface in interfaces) else "usb"
        serial = "" if self.serial is None else f":{self.serial}"
        return f"{scheme}:{self.vendor_id:04x}:{self.product_id:04x}{serial}"

    @property
    def active(self) -> d.Configuration | None:
        return next((c for c in self.configurations if c.value == self.configuration), None)

    def find(self, address: int) -> tuple[d.Interface, d.Endpoint]:
        """The endpoint as the device is set now. OSError ENOENT when there is none."""
        for interface in self._interfaces():
            for endpoint in interface.endpoints:
                if endpoint.address == address:
                    return interface, endpoint
        raise refused(errno.ENOENT)

    def first_in(self) -> d.Endpoint:
        """The first IN endpoint. OSError ENOENT when there is none."""
        for interface in self._interfaces():
            for endpoint in interface.endpoints:
                if endpoint.is_in:
                    return endpoint
        raise refused(errno.ENOENT)

    def descriptor(self) -> bytes:
        """The 18 bytes of the device descriptor."""
        indices = [0 if text is None else index for index, text in enumerate(self.strings, 1)]
        ids = (self.vendor_id, self.product_id, 0x0100)
        return d.DEVICE_SHAPE.encode(0x0200, 0, 0, 0, 64, *ids, *indices, len(self.configurations))

    def answer(self, kind: int, request: int, value: int, index: int, data: bytes) -> bytes:
        """What a control request reads. Stalled when it is none of ours."""
        if kind & 0x60 == 0x40 and self.vendor is not None:
            return self.vendor(kind, request, value, index, data)
        match kind, request:
            case (0x80, 6):
                return self._descriptor_of(value >> 8, value & 0xFF)
            case (0x81, 6):
                return self._hid_descriptor_of(value >> 8, index)
            case (0x80, 8):
                return bytes([self.configuration])
            case (0x82, 0):
                return bytes([index in self.halted, 0])
        raise Stalled

    def _interfaces(self) -> list[d.Interface]:
        active = self.active
        every = active.interfaces if active else ()
        return [i for i in every if i.alternate == self.alternates.get(i.number, 0)]

    def _descriptor_of(self, kind: int, index: int) -> bytes:
        if kind == d.DEVICE:
            return self.descriptor()
        if kind == d.CONFIGURATION and index < len(self.configurations):
            return self.configurations[index].encode()
        if kind == d.STRING and index == 0:
            return d.language_list(self.languages)
        if kind == d.STRING and self.languages and index <= len(self.strings):
            text = self.strings[index - 1]
            if text is not None:
                return d.string(text)
        raise Stalled

    def _hid_descriptor_of(self, kind: int, number: int) -> bytes:
        for interface in self._interfaces():
            if interface.number == number and interface.report and kind in (d.HID, d.REPORT):
                return interface.report if kind == d.REPORT else interface.extra
        raise Stalled
