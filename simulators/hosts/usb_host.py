"""A wire device that sends packets on a simulated USB device: one packet a transfer, both ways."""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from typing import Protocol

from simulators.hosts.cable import join
from simulators.hosts.usb_bus import UsbBus
from simulators.hosts.usb_device import UsbDevice
from simulators.hosts.usb_keyboard import keyboard
from simulators.wire.device import WireDevice

VENDOR_ID = 0x1209
PRODUCTS = {
    "shuffler": (0x0001, "Cutcard Shuffler"),
    "shoe": (0x0002, "Cutcard Shoe"),
    "reader": (0x0003, "Cutcard Reader"),
    "barcode-reader": (0x0004, "Cutcard Barcode Reader"),
    "stack-shoe": (0x0007, "Cutcard Stack Shoe"),
    "continuous": (0x0006, "Cutcard Continuous Shuffler"),
}
"""Product id and name by the class that the device tells in its identity."""
BOOTLOADER = (0x000F, "Cutcard Bootloader")
"""What appears instead while the bootloader of a device answers."""
KEYBOARDS = {"barcode-reader"}
"""What appears as a keyboard instead of a vendor's interface."""
NEIGHBOURS = {"other": (0x0005, "Cutcard Keyboard"), "same": PRODUCTS["barcode-reader"]}
"""A second keyboard that a device may bring along (`neighbour`): another one, or a twin."""


class PacketDevice(WireDevice, Protocol):
    """A wire device that sends packets: `kind` and `serial` are those of its identity."""

    kind: str
    serial: str

    def packets(self, now: float) -> list[bytes]:
        """As `transmit`, packet by packet."""


class UsbHost:
    """Plugs `usb` into `bus`, and out of it while the machine has no power: a restart is a new address.

    What the host of the bus sends waits until the next pump; `usb` itself may be used from any thread.
    `neighbour` is the second keyboard, if any; whoever mixes the two up reads every key twice.
    """

    CAN = frozenset({"unplug", "other_node", "busy", "denied", "stall", "halt", "overflow"})

    def __init__(self, device: PacketDevice, bus: UsbBus | None = None) -> None:
        self.device = device
        join(device, self)
        self.bus = bus or UsbBus()
        product, name = PRODUCTS[device.kind]
        make = keyboard if device.kind in KEYBOARDS else UsbDevice
        self.usb = make(VENDOR_ID, product, name=name, serial=device.serial)
        self.usb.heard = self._heard
        self._plugged = True
        self._boot = device.machine.boot
        self._inbox: deque[bytes] = deque()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.bus.plug(self.usb)
        self.neighbour: UsbDevice | None = None
        self._bring_neighbour()

    @property
    def can(self) -> frozenset[str]:
        return self.CAN - {"stall"} if self.device.kind in KEYBOARDS else self.CAN

    @property
    def uri(self) -> str:
        return self.usb.uri

    def filenos(self) -> list[int]:
        return [] if self._wake < 0 else [self._wake]

    def writers(self) -> list[int]:
        return []

    def deadline(self) -> float | None:
        return self.device.deadline()

    def pump(self, now: float) -> None:
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        self.device.advance(now)
        self._follow_power()
        self._bring_neighbour()
        while self._inbox:
            self.device.receive(self._inbox.popleft(), now)
        for packet in self.device.packets(now):
            self.usb.send(packet)
            if self.neighbour is not None:
                self.neighbour.send(packet)
        self._follow_power()

    def unplug(self) -> None:
        """Pull the plug; what is on the wire is lost."""
        self._plugged = False
        self._follow_power()

    def replug(self) -> None:
        """Out, if it is in, and in again: a new address."""
        self.unplug()
        self._plugged = True
        self._follow_power()

    def other_node(self) -> None:
        self.replug()

    def busy(self) -> None:
        """Out and in again, and another program has claimed it."""
        self.replug()
        with self.usb.lock:
            self.usb.bound.clear()
            self.usb.claims[0] = self

    def denied(self) -> None:
        """Out and in again, and nobody may open it."""
        self.replug()
        self.usb.denied = True

    def free(self) -> None:
        self.usb.denied = False
        self.usb.let_go(self)

    def stall(self) -> None:
        """It takes no bytes any more: NAK to whatever is sent."""
        self.usb.accept(0)

    def flow(self) -> None:
        self.usb.accept(None)

    def halt(self) -> None:
        """Its input stalls until the host clears the halt."""
        self.usb.halt(self.usb.first_in().address)

    def overflow(self) -> None:
        """It sends more than was asked for."""
        self.usb.babble()

    def close(self) -> None:
        self.unplug()
        if self.neighbour is not None:
            self.bus.unplug(self.neighbour)
        if self._wake >= 0:
            os.close(self._wake)
            self._wake = -1

    def _bring_neighbour(self) -> None:
        """Plug the second keyboard in, once the device has one."""
        if self.neighbour is None and (which := getattr(self.device, "neighbour", None)):
            product, name = NEIGHBOURS[which]
            self.neighbour = keyboard(VENDOR_ID, product, name=name, serial="KB0001")
            self.bus.plug(self.neighbour)

    def _heard(self, _endpoint: int, data: bytes) -> None:
        self._inbox.append(data)
        os.eventfd_write(self._wake, 1)

    def _follow_power(self) -> None:
        machine = self.device.machine
        if not (self._plugged and machine.powered) or machine.boot != self._boot:
            self._boot = machine.boot
            self.bus.unplug(self.usb)
            self._inbox.clear()
        if self._plugged and machine.powered and self.usb.gone:
            in_bootloader = getattr(self.device, "in_bootloader", False)
            product, name = BOOTLOADER if in_bootloader else PRODUCTS[self.device.kind]
            self.usb.product_id, self.usb.strings = product, (self.usb.maker, name, self.usb.serial)
            self.bus.plug(self.usb)
