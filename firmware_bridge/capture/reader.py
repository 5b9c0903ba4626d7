"""Reading: what a capture holds of one wire, ours or recorded by another program."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from firmware_bridge.capture import links, pcapng
from firmware_bridge.capture.pcapng import CaptureError

NAME_SHOWN = 80
"""Characters of an interface's name in a sentence; it may have 65535."""

_Wire = str | int | tuple[int, int]
"""What packets of one wire have in common: a name, an interface's number, or a USB bus and device."""


@dataclass(frozen=True, slots=True)
class Record:
    """Bytes that went over the wire in one piece. `at`: nanoseconds since 1970, as the file has them.

    `inbound` means from the device; `packets` that each record is one USB transfer.
    """

    at: int
    inbound: bool
    data: bytes
    packets: bool


def read_capture(source: BinaryIO, name: str, note: Callable[[str], None]) -> Iterator[Record]:
    """What went over the one wire of a pcapng file; `name` is the file's for people.

    Raises CaptureError, also when the file holds more than one wire: nobody can tell which one is meant.
    What does no harm (a last block that was cut short) is told to `note` in a sentence.
    """
    first: tuple[_Wire, bool] | None = None
    for packet in pcapng.packets(source, name, note):
        try:
            found = _bytes(packet)
        except struct.error:
            raise CaptureError(f"{name} holds a packet that is shorter than its header") from None
        except CaptureError as error:
            raise CaptureError(f"{name} {error}") from None
        if found is None:
            continue
        wire, record = found
        first = first or (wire, record.packets)
        if (wire, record.packets) != first:
            raise CaptureError(
                f"{name} holds more than one wire ({_shown(first[0])} and {_shown(wire)}): keep the one that "
                "is meant, e.g. with `tshark -r IN -w OUT -Y FILTER`, where FILTER is like "
                "usb.device_address==5 or frame.interface_id==0"
            )
        yield record


def _shown(wire: _Wire) -> str:
    """The wire's name for people."""
    match wire:
        case str():
            name = repr(wire)
            return name if len(name) <= NAME_SHOWN else name[:NAME_SHOWN] + "..."
        case int():
            return f"interface {wire}"
        case bus, device:
            return f"device {bus}.{device}"


def _bytes(packet: pcapng.Packet) -> tuple[_Wire, Record] | None:
    """The wire and what went over it; None for a packet without bytes of a device."""
    link, whence, missing = packet.interface.link, packet.interface.name, packet.missing
    if link == links.RTAC_SERIAL:
        serial = links.read_serial(packet.data)
        if serial is None:
            return None
        inbound, data = serial
        if direction := packet.flags & 3:
            inbound = direction == pcapng.INBOUND
        wire: _Wire = whence or packet.number
        record = Record(packet.at, inbound, data, packets=False)
    elif link in (links.USB_LINUX, links.USB_LINUX_MMAPPED):
        urb = links.read_urb(link, packet.order, packet.data)
        if urb is None:
            return None
        pipe, data, cut = urb
        missing += cut
        # In a capture of ours a device that came back under another number is the same wire.
        ours = whence.startswith(("usb:", "usbhid:"))
        wire = whence if ours else (pipe.bus, pipe.device)
        record = Record(packet.at, bool(pipe.endpoint & 0x80), data, packets=True)
    else:
        raise CaptureError(
            f"has packets of link type {link}: only those of serial lines (250) and of USB as Linux records "
            "it (220, 189) can be read"
        )
    if missing:
        raise CaptureError(
            "holds only the beginnings of its packets: record anew without a limit on their length "
            "(snap length)"
        )
    return wire, record
