"""USB devices that are there, and the one a URI means. Nothing is claimed, configured or written here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import usb.core
import usb.util

from firmware_bridge.errors import Absent, Denied, WrongDevice
from firmware_bridge.transports import UsbName


@dataclass(frozen=True, slots=True)
class Found:
    """One device. `serial` is None when it tells none or may not be asked; then `trouble` says why."""

    device: Any
    vid: int
    pid: int
    bus: int
    address: int
    place: str
    """Bus and ports as the kernel writes them, e.g. 1-2.4: it stays while the plug stays."""
    serial: str | None
    product: str | None
    manufacturer: str | None
    trouble: str | None

    @property
    def node(self) -> str:
        return node(self.bus, self.address)


def node(bus: int, address: int) -> str:
    """The device file of usbfs."""
    return f"/dev/bus/usb/{bus:03d}/{address:03d}"


def present(backend: Any, vid: int | None = None, pid: int | None = None) -> Iterator[Found]:
    """All devices, or those of one kind. A device that may not be asked hides no other one (I-44)."""
    match = {} if vid is None else {"idVendor": vid, "idProduct": pid}
    for device in usb.core.find(find_all=True, backend=backend, **match):
        try:
            yield _found(device)
        finally:
            usb.util.dispose_resources(device)


def the_one(backend: Any, name: UsbName) -> Any:
    """The device that `name` means. Raises Absent, Denied, or WrongDevice when it could be several (F-04)."""
    all_of_kind = list(present(backend, name.vid, name.pid))
    kind = f"{name.vid:04x}:{name.pid:04x}"
    fitting = [f for f in all_of_kind if name.serial in {None, f.serial}]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        places = " and ".join(f"at {f.place}" for f in fitting)
        if name.serial is None:
            serials = ", ".join(str(f.serial or "without a serial number") for f in fitting)
            raise WrongDevice(
                f"{len(fitting)} devices {kind} are there ({serials}): "
                f"name one by its serial number, as {kind}:SERIAL"
            )
        raise WrongDevice(
            f"{len(fitting)} devices {kind} say they are {name.serial!r} ({places}): nobody can tell them "
            "apart, so none is used; unplug the one that is not meant, and have its serial number changed"
        )
    for other in all_of_kind:
        if other.trouble is None:
            continue
        if os.access(other.node, os.R_OK | os.W_OK):
            raise Absent(
                f"a device {kind} is there (at {other.place}) but does not tell its serial number "
                f"({other.trouble}): unplug it and plug it in again"
            )
        raise Denied(
            f"a device {kind} is there (at {other.place}) but this user may not read its serial number "
            f"({other.trouble}): {rights_hint(other.node)}"
        )
    others = ", ".join(f"{f.serial or 'one without a serial number'} at {f.place}" for f in all_of_kind)
    if others:
        raise Absent(
            f"{kind} with serial number {name.serial!r} is not there, but {others} is: "
            "connect the right device, or correct the port"
        )
    raise Absent(f"no USB device {name} is there: check the device, its cable and its power")


def rights_hint(path: str) -> str:
    return (
        f"give the user's group read and write rights on {path} by a udev rule "
        "(deploy/60-cutcard.rules is one) and plug the device in again"
    )


def _found(device: Any) -> Found:
    trouble = None
    texts: dict[str, str | None] = {}
    for name, index in (
        ("serial", device.iSerialNumber),
        ("product", device.iProduct),
        ("manufacturer", device.iManufacturer),
    ):
        texts[name] = None
        if not index or trouble is not None:
            continue
        try:
            texts[name] = usb.util.get_string(device, index)
        except (OSError, ValueError, NotImplementedError) as error:  # no rights looks like "no langid" (I-44)
            trouble = getattr(error, "strerror", None) or str(error) or type(error).__name__
    ports = ".".join(str(number) for number in device.port_numbers or ())
    return Found(
        device,
        device.idVendor,
        device.idProduct,
        device.bus or 0,
        device.address or 0,
        f"{device.bus}-{ports}" if ports else f"{device.bus}:{device.address}",
        texts["serial"],
        texts["product"],
        texts["manufacturer"],
        trouble,
    )
