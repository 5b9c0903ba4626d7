"""What is plugged in, for people: serial ports and USB devices under names that last. Nothing is claimed.

Where USB cannot be looked at, the serial ports are told all the same (I-40); so are all other devices when
one of them may not be asked or says nonsense (I-44).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from firmware_bridge.errors import BridgeError
from firmware_bridge.transports import UsbName, locks, serial_find
from firmware_bridge.transports.errors import FOREIGN, words
from firmware_bridge.transports.serial import rights_hint

_HUB = 9
_AGAIN = "unplug it and plug it in again"
_CLASSES = {1: "audio", 2: "communication", 7: "printer", 8: "storage", 14: "camera", 0xE0: "radio"}
"""USB-IF's numbers of what people plug in and what is no port of ours."""


@dataclass(frozen=True, slots=True)
class Plugged:
    """One port, or a USB device that is none (`kind` other)."""

    uri: str | None
    """The most lasting name that is right now."""
    kind: str
    """serial, usb, usbhid, or other."""
    description: str
    usb: UsbName | None = None
    place: str | None = None
    """On USB, the bus and ports as the kernel writes them, e.g. 1-2.4."""
    held_by: str | None = None
    trouble: str | None = None
    """Why it cannot be used like this, and what to do."""
    links: tuple[str, ...] = ()
    """Its paths: the device file, and the names that udev gave it."""


def look() -> tuple[list[Plugged], dict[str, str]]:
    """All there is, serial ports first; and why "serial" or "usb" could not be looked at, as sentences."""
    adapters: list[serial_find.Adapter] = []
    failed = {}
    try:
        adapters = serial_find.present()
    except BridgeError as error:
        failed["serial"] = str(error)
    found = [_serial(adapter, adapters) for adapter in adapters]
    try:
        found += _usb(adapters)
    except (BridgeError, ImportError, *FOREIGN) as error:
        failed["usb"] = f"USB devices are not listed: {error}"
    return found, failed


def _serial(adapter: serial_find.Adapter, adapters: list[serial_find.Adapter]) -> Plugged:
    device = os.path.realpath(adapter.device)
    links = serial_find.links(device)
    name, trouble = None, []
    path = adapter.device
    if adapter.vid is not None and adapter.pid is not None:
        name = UsbName(adapter.vid, adapter.pid, adapter.serial)
        fitting = [a for a in adapters if a.is_a(name)]
        if len(fitting) == 1:
            path = str(name)
        elif len({a.place for a in fitting}) == 1:
            path = next(iter(links), path)
        else:
            # The link by identity leads to one of them only, whichever came last.
            path = next((link for link in links if link.startswith(f"{serial_find.BY_PATH}/")), path)
            trouble.append(serial_find.several(name, fitting))
    if not os.access(device, os.R_OK | os.W_OK):
        trouble.append(f"this user may not open it: {rights_hint(device)}")
    holder = locks.held_by(device)
    return Plugged(
        f"serial:{path}",
        "serial",
        adapter.description,
        name,
        adapter.place,
        str(holder) if holder else None,
        "; ".join(trouble) or None,
        tuple(dict.fromkeys((adapter.device, *links))),
    )


def _usb(adapters: list[serial_find.Adapter]) -> list[Plugged]:
    from firmware_bridge.transports import libusb

    backend = libusb.make_backend()
    try:
        found = _usb_devices(backend, adapters)
    finally:
        backend.finalize()
    return [_checked(one, found) for one in sorted(found, key=_order)]


def _order(one: Plugged) -> tuple[bool, list[int]]:
    """By socket; what is no port comes last."""
    return one.uri is None, [int(number) for number in re.findall("[0-9]+", one.place or "")]


def _usb_devices(backend: Any, adapters: list[serial_find.Adapter]) -> list[Plugged]:
    """Nothing of a device may outlive this call: the backend is freed after it."""
    from firmware_bridge.transports import usb_find

    as_serial = {a.place for a in adapters if a.place}
    interfaces = {a.interface for a in adapters}
    out = []
    for found in usb_find.present(backend):
        if found.device.bDeviceClass == _HUB:
            continue
        kinds, classes, unread = _kinds(found, interfaces)
        name = UsbName(found.vid, found.pid, found.serial)
        holder = locks.opened_by(found.node)
        one = Plugged(
            None,
            "other",
            found.product or found.manufacturer or "USB device",
            name,
            found.place,
            str(holder) if holder else None,
            unread,
            (found.node,),
        )
        if kinds:
            one = replace(one, trouble="; ".join(filter(None, (unread, _no_access(found)))) or None)
            out += [replace(one, uri=f"{kind}:{name}", kind=kind) for kind in kinds]
        elif found.place not in as_serial:
            out.append(replace(one, description=", ".join([one.description, *classes])))
    return out


def _no_access(found: Any) -> str | None:
    from firmware_bridge.transports import usb_find

    remedy = usb_find.rights_hint(found.node)
    if not os.access(found.node, os.R_OK | os.W_OK):
        if Path(found.node).exists():
            return f"this user may not open it: {remedy}"
    else:
        remedy = _AGAIN
    return f"it does not tell its names ({found.trouble}): {remedy}" if found.trouble else None


def _kinds(found: Any, taken: set[str | None]) -> tuple[list[str], list[str], str | None]:
    """The schemes that can open it, in words what else it is, and the trouble when it says nonsense.

    `taken` interfaces are serial ports.
    """
    kinds: set[str] = set()
    classes: set[str] = set()
    trouble = None
    try:
        for configuration in found.device:
            for interface in configuration:
                number = f"{found.place}:{configuration.bConfigurationValue}.{interface.bInterfaceNumber}"
                if number not in taken:
                    _add_kind(interface, kinds, classes)
    except FOREIGN as error:
        trouble = (
            f"its description cannot be read in full ({words(error)}): {_AGAIN}; if that does not help, the "
            "device is faulty"
        )
    return sorted(kinds), sorted(classes), trouble


def _add_kind(interface: Any, kinds: set[str], classes: set[str]) -> None:
    import usb.util

    ends = {
        (usb.util.endpoint_type(end.bmAttributes), usb.util.endpoint_direction(end.bEndpointAddress))
        for end in interface
    }
    bulk, interrupt = usb.util.ENDPOINT_TYPE_BULK, usb.util.ENDPOINT_TYPE_INTR
    into, out = usb.util.ENDPOINT_IN, usb.util.ENDPOINT_OUT
    if interface.bInterfaceClass == 0xFF and {(bulk, into), (bulk, out)} <= ends:
        kinds.add("usb")
    elif interface.bInterfaceClass == 3 and (interrupt, into) in ends:
        kinds.add("usbhid")
    elif interface.bInterfaceClass in _CLASSES:
        classes.add(_CLASSES[interface.bInterfaceClass])


def _checked(one: Plugged, found: list[Plugged]) -> Plugged:
    """With the warning that its name is another one's too (F-04)."""
    name = one.usb
    if one.uri is None or name is None:
        return one
    same = [
        str(other.place)
        for other in found
        if other.usb and other.kind == one.kind and (other.usb.vid, other.usb.pid) == (name.vid, name.pid)
        if name.serial in {None, other.usb.serial}
    ]
    if len(same) == 1:
        return one
    text = (
        f"{len(same)} devices go by the name {name} (at {' and at '.join(same)}), so none is used: "
        "unplug the one that is not meant"
    )
    return replace(one, trouble=f"{text}; {one.trouble}" if one.trouble else text)
