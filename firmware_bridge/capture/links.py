"""What stands before the bytes of a packet: the header of a serial line's record and of a USB transfer's.

LINKTYPE_RTAC_SERIAL (250) is big-endian by its description at tcpdump.org; the usbmon header (189, and 220
with 64 bytes) has the byte order of the machine that recorded it (Linux, Documentation/usb/usbmon.rst).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

RTAC_SERIAL, USB_LINUX, USB_LINUX_MMAPPED = 250, 189, 220

STATUS_CHANGE, TX_START, RX_START, TX_END, RX_END = range(5)
"""Event types of a serial record; the others tell of errors and carry no data of ours."""
_SERIAL = struct.Struct(">IIBBH")

INTERRUPT, CONTROL, BULK = 1, 2, 3
IN_PROGRESS = -115
"""Status of every submission: -EINPROGRESS of Linux."""
_HEADER = "QBBBBHBBqiiII8s"
_MORE = "iiII"
_SIZES = {USB_LINUX: 48, USB_LINUX_MMAPPED: 64}
_SETUP, _NO_SETUP = 0, ord("-")
_REQUEST = struct.Struct("<BBHHH")
_SET_REPORT = 0x21, 9
_OUTPUT_REPORT = 0x0200
_PRESENT, _DATA_LATER, _DATA_BEFORE = 0, ord("<"), ord(">")
_IN = 0x80
_DIR_IN = 0x200
"""Transfer flag of an IN transfer (URB_DIR_IN)."""


def serial(at: int, event: int, data: bytes) -> bytes:
    """A serial record at `at` (ns since 1970). The states of the control lines are not known: all 0."""
    seconds, rest = divmod(at, 10**9)
    return _SERIAL.pack(seconds & 0xFFFF_FFFF, rest // 1000, event, 0, 0) + data


def read_serial(packet: bytes) -> tuple[bool, bytes] | None:
    """Whether the bytes came from the device, and the bytes; None for a record without any.

    Raises struct.error when the header is cut off.
    """
    *_, event, _, _ = _SERIAL.unpack_from(packet)
    data = packet[_SERIAL.size :]
    if not data or not STATUS_CHANGE < event <= RX_END:
        return None
    return event in {RX_START, RX_END}, data


@dataclass(frozen=True, slots=True)
class Pipe:
    """One endpoint of one device; `endpoint` is its address with the direction in bit 7."""

    bus: int
    device: int
    endpoint: int
    kind: int


def set_report(interface: int, size: int) -> bytes:
    """The setup bytes of an output report of `size` bytes to an interface that has no OUT endpoint.

    HID class specification 1.11, 7.2.2; the report has no number of its own.
    """
    return _REQUEST.pack(*_SET_REPORT, _OUTPUT_REPORT, interface, size)


def urb(
    at: int,
    number: int,
    pipe: Pipe,
    data: bytes,
    *,
    status: int | None = None,
    size: int = 0,
    setup: bytes = b"",
) -> bytes:
    """One record of the transfer `number`: its submission, or with a `status` (0 or -errno) its completion.

    Bytes stand where they become known: in an OUT's submission and in an IN's completion. `size` is the
    length that the other record tells; `setup` are the eight bytes that a control transfer begins with.
    """
    into = bool(pipe.endpoint & _IN)
    submitted = status is None
    shown = data if into != submitted else b""
    flag = _PRESENT if into != submitted else _DATA_LATER if into else _DATA_BEFORE
    seconds, rest = divmod(at, 10**9)
    return (
        struct.pack(
            "<" + _HEADER + _MORE,
            number,
            ord("S" if submitted else "C"),
            pipe.kind,
            pipe.endpoint,
            pipe.device & 0xFF,
            pipe.bus & 0xFFFF,
            _SETUP if setup else _NO_SETUP,
            flag,
            seconds,
            rest // 1000,
            IN_PROGRESS if status is None else status,
            len(shown) or size,
            len(shown),
            setup or bytes(8),
            0,
            0,
            _DIR_IN if into else 0,
            0,
        )
        + shown
    )


def read_urb(link: int, order: str, packet: bytes) -> tuple[Pipe, bytes, int] | None:
    """The pipe of a transfer, the bytes it carried, and how many more were not recorded.

    None for what carries no bytes of an application: all but bulk, interrupt, and reports sent by control.

    Raises struct.error when the header is cut off.
    """
    size = _SIZES[link]
    if len(packet) < size:
        raise struct.error("header cut off")
    _, event, kind, endpoint, device, bus, begins, flag, _, _, _, whole, length, setup = struct.unpack_from(
        order + _HEADER, packet
    )
    report = kind == CONTROL and begins == _SETUP and setup.startswith(bytes(_SET_REPORT))
    wanted = b"C" if endpoint & _IN else b"S"
    data = packet[size : size + length]
    if not (report or kind in {INTERRUPT, BULK}) or event != wanted[0] or flag != _PRESENT or not data:
        return None
    return Pipe(bus, device, endpoint, kind), data, max(0, whole - len(data))
