"""A USB keyboard as the kernel sees it: boot interface, an interrupt endpoint, usbhid's (HID 1.11)."""

from __future__ import annotations

from simulators.hosts.usb_descriptors import HID_CLASS, Configuration, Endpoint, Interface
from simulators.hosts.usb_device import UsbDevice

REPORT_DESCRIPTOR = bytes.fromhex(
    "05010906a101"  # a keyboard
    "050719e029e71500250175019508 8102"  # eight modifiers
    "950175088101"  # a reserved byte
    "95057501050819012905 9102 95017503 9101"  # five lamps
    "950675081500256505071900296581 00c0"  # six slots
)
CONFIGURATION = Configuration(
    (
        Interface(
            (Endpoint(0x81, packet=8, kind="interrupt", interval=8),),
            klass=HID_CLASS,
            subclass=1,
            protocol=1,
            report=REPORT_DESCRIPTOR,
        ),
    )
)


def keyboard(vendor: int, product: int, *, name: str, serial: str | None) -> UsbDevice:
    """Not plugged in yet."""
    made = UsbDevice(vendor, product, name=name, serial=serial, configurations=(CONFIGURATION,))
    made.drivers = {0: "usbhid"}
    return made
