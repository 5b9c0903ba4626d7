"""What a simulated USB device says it is: configurations, interfaces, endpoints, as bytes (USB 2.0, 9.6)."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack
from typing import Literal

DEVICE, CONFIGURATION, STRING, INTERFACE, ENDPOINT = 1, 2, 3, 4, 5
HID, REPORT = 0x21, 0x22
VENDOR_CLASS, HID_CLASS = 0xFF, 0x03
IN = 0x80
ENGLISH = 0x0409


class Shape:
    """A descriptor's fixed head: the type byte, and its fields by the names of the standard."""

    def __init__(self, kind: int, layout: str, names: str) -> None:
        self._layout = Struct("<BB" + layout)
        self._kind = kind
        self._names = ("bLength", "bDescriptorType", *names.split())

    def encode(self, *values: int) -> bytes:
        return self._layout.pack(self._layout.size, self._kind, *values)

    def fields(self, data: bytes) -> dict[str, int]:
        return dict(zip(self._names, self._layout.unpack_from(data), strict=True))


DEVICE_SHAPE = Shape(
    DEVICE,
    "HBBBBHHHBBBB",
    "bcdUSB bDeviceClass bDeviceSubClass bDeviceProtocol bMaxPacketSize0 idVendor idProduct bcdDevice"
    " iManufacturer iProduct iSerialNumber bNumConfigurations",
)
CONFIGURATION_SHAPE = Shape(
    CONFIGURATION,
    "HBBBBB",
    "wTotalLength bNumInterfaces bConfigurationValue iConfiguration bmAttributes bMaxPower",
)
INTERFACE_SHAPE = Shape(
    INTERFACE,
    "BBBBBBB",
    "bInterfaceNumber bAlternateSetting bNumEndpoints bInterfaceClass bInterfaceSubClass bInterfaceProtocol"
    " iInterface",
)
ENDPOINT_SHAPE = Shape(ENDPOINT, "BBHB", "bEndpointAddress bmAttributes wMaxPacketSize bInterval")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`packet` is wMaxPacketSize in bytes; `interval` is bInterval, ms at full speed."""

    address: int
    packet: int = 64
    kind: Literal["bulk", "interrupt"] = "bulk"
    interval: int = 0

    @property
    def attributes(self) -> int:
        return 2 if self.kind == "bulk" else 3

    @property
    def is_in(self) -> bool:
        return bool(self.address & IN)

    def encode(self) -> bytes:
        return ENDPOINT_SHAPE.encode(self.address, self.attributes, self.packet, self.interval)


@dataclass(frozen=True, slots=True)
class Interface:
    """One alternate setting of an interface. A `report` descriptor makes it a HID interface."""

    endpoints: tuple[Endpoint, ...] = (Endpoint(0x01), Endpoint(0x81))
    number: int = 0
    alternate: int = 0
    klass: int = VENDOR_CLASS
    subclass: int = 0
    protocol: int = 0
    report: bytes = b""

    @property
    def extra(self) -> bytes:
        """The HID descriptor (HID 1.11, 6.2.1), where there is one."""
        return pack("<BBHBBBH", 9, HID, 0x0111, 0, 1, REPORT, len(self.report)) if self.report else b""

    def encode(self) -> bytes:
        kind = (self.klass, self.subclass, self.protocol)
        head = INTERFACE_SHAPE.encode(self.number, self.alternate, len(self.endpoints), *kind, 0)
        return head + self.extra + b"".join(endpoint.encode() for endpoint in self.endpoints)


@dataclass(frozen=True, slots=True)
class Configuration:
    """`value` is bConfigurationValue. Alternate settings of one interface stand next to each other."""

    interfaces: tuple[Interface, ...] = (Interface(),)
    value: int = 1

    @property
    def numbers(self) -> list[int]:
        return sorted({interface.number for interface in self.interfaces})

    def settings(self, number: int) -> list[Interface]:
        """All alternate settings of one interface."""
        return [interface for interface in self.interfaces if interface.number == number]

    def encode(self) -> bytes:
        body = b"".join(interface.encode() for interface in self.interfaces)
        return CONFIGURATION_SHAPE.encode(9 + len(body), len(self.numbers), self.value, 0, 0xC0, 50) + body


def hid(report: bytes, *endpoints: Endpoint, number: int = 0) -> Interface:
    """A HID interface without a boot protocol."""
    return Interface(endpoints, number, klass=HID_CLASS, report=report)


def string(text: str) -> bytes:
    """A string descriptor; USB allows 126 UTF-16 units."""
    encoded = text.encode("utf-16-le")
    return bytes([len(encoded) + 2, STRING]) + encoded


def language_list(languages: tuple[int, ...]) -> bytes:
    return pack(f"<BB{len(languages)}H", 2 + 2 * len(languages), STRING, *languages)
