"""Peers on simulated USB devices, with the words of the other wires' peers."""

import queue

from simulators.hosts.usb_backend import SimBackend
from simulators.hosts.usb_bus import UsbBus
from simulators.hosts.usb_descriptors import Configuration, Endpoint, hid
from simulators.hosts.usb_device import UsbDevice
from simulators.hosts.usb_faults import FaultPlan

REPORT = bytes.fromhex("0600ff0901a10115002500750895400901810209019102c0")
"""A HID report descriptor: 64 vendor-defined bytes each way."""
HID = Configuration((hid(REPORT, Endpoint(0x81, kind="interrupt"), Endpoint(0x01, kind="interrupt")),))


class SimUsbPeer:
    """A vendor bulk device, alone on a bus; `backend()` makes what a transport opens it with."""

    scheme = "usb"
    configurations = (Configuration(),)

    def __init__(self, device=None, plan=None):
        self.device = device or UsbDevice(configurations=self.configurations)
        self.bus = UsbBus(self.device)
        self.plan = plan or FaultPlan()
        self.uri = self.device.uri

    def backend(self):
        return SimBackend(self.bus, self.plan)

    def send(self, data):
        self.device.send(data)

    def heard(self, timeout=2):
        """The next whole OUT transfer. queue.Empty when none comes."""
        return self.device.received.get(timeout=timeout)[1]

    def receive(self, size):
        """`size` bytes of whole OUT transfers, fewer when no more come."""
        out = b""
        while len(out) < size:
            try:
                out += self.heard()
            except queue.Empty:
                break
        return out

    def cut(self):
        self.bus.unplug(self.device)

    def close(self):
        """Unplugs it; fails when somebody has not let go of it."""
        self.cut()
        assert self.bus.left() == {}


class SimHidPeer(SimUsbPeer):
    """The same with 64-byte interrupt reports on a HID interface."""

    scheme = "usbhid"
    configurations = (HID,)
