"""A program that uses USB, told on stdin what to do: umockdev's preload must be there when a program starts.

Started as `usb_child.py system|package` (whose libusb). Each line in is a JSON list, a name and its
arguments; each line out is {"value"} or {"error", "errno", "text"}, with the "seconds" and processor
time ("cpu") that it took.
"""

import json
import os
import sys
import threading
import time
from queue import SimpleQueue

import usb.core
import usb.util
from serial.tools.list_ports import comports
from usb.backend import libusb1

from firmware_bridge import transports
from firmware_bridge.transports import libusb


class Pyusb:
    """The real pyusb on the real libusb."""

    def __init__(self):
        self.backend = libusb1.get_backend(find_library=libusb._where)
        self.device = None

    def renew(self):
        """A new context, which looks at the bus anew."""
        self.device = None
        libusb1._lib_object = None
        self.backend.finalize()
        self.backend = libusb1._LibUSB(self.backend.lib)

    def library(self):
        return self.backend.lib._name

    def find(self, vid=0x1209):
        self.device = usb.core.find(idVendor=vid, backend=self.backend)
        return None if self.device is None else [self.device.bus, self.device.address]

    def all(self):
        every = usb.core.find(find_all=True, backend=self.backend)
        return sorted([f"{d.idVendor:04x}:{d.idProduct:04x}", *d.port_numbers] for d in every)

    def strings(self):
        return [self.device.manufacturer, self.device.product, self.device.serial_number, self.device.speed]

    def configuration(self):
        return self.device.get_active_configuration().bConfigurationValue

    def endpoints(self):
        config = self.device.get_active_configuration()
        return [[i.bInterfaceNumber, *(e.bEndpointAddress for e in i)] for i in config]

    def write(self, endpoint, data, timeout=1000):
        return self.device.write(endpoint, bytes.fromhex(data), timeout)

    def read(self, endpoint, size, timeout=1000):
        return self.device.read(endpoint, size, timeout).tobytes().hex()

    def control(self, kind, request, value, index, data):
        answer = self.device.ctrl_transfer(
            kind, request, value, index, bytes.fromhex(data) if isinstance(data, str) else data
        )
        return answer if isinstance(answer, int) else answer.tobytes().hex()

    def claim(self, interface):
        usb.util.claim_interface(self.device, interface)

    def release(self, interface):
        usb.util.release_interface(self.device, interface)

    def dispose(self):
        usb.util.dispose_resources(self.device)

    def __getattr__(self, name):
        """is_kernel_driver_active, detach_kernel_driver, set_configuration, clear_halt, reset …"""
        return getattr(self.device, name)


class Ports:
    """What pyserial finds."""

    def all(self):
        keys = ("device", "vid", "pid", "serial_number", "location", "manufacturer", "product")
        return [{key: getattr(port, key) for key in keys} for port in comports() if port.vid is not None]

    def real(self, path):
        return os.path.realpath(path)


class Wire:
    """A transport of the product."""

    def __init__(self):
        self.transport = None

    def make(self, uri, maker):
        self.transport = getattr(transports, maker)(uri)

    def read(self, timeout):
        return self.transport.read(timeout).hex()

    def write(self, data, timeout=0.5):
        self.transport.write(bytes.fromhex(data), timeout)

    def __getattr__(self, name):
        return getattr(self.transport, name)


def answer(act, arguments):
    start, cpu = time.monotonic(), time.process_time()
    try:
        out = {"value": act(*arguments)}
    except Exception as error:
        out = {"error": type(error).__name__, "errno": getattr(error, "errno", None), "text": str(error)}
    return out | {"seconds": time.monotonic() - start, "cpu": time.process_time() - cpu}


def main():
    if sys.argv[1] == "package":
        libusb.SYSTEM = "none"
    todo = SimpleQueue()
    sides = {"usb": Pyusb(), "ports": Ports(), "wire": Wire()}

    def listen():
        for line in sys.stdin:
            call = json.loads(line)
            if call[0] == "wire.wake":
                sides["wire"].wake()
            else:
                todo.put(call)
        todo.put(None)

    threading.Thread(target=listen, daemon=True).start()
    print(json.dumps({"value": "ready"}), flush=True)
    while (call := todo.get()) is not None:
        side, _, name = call[0].partition(".")
        print(json.dumps(answer(getattr(sides[side], name), call[1:])), flush=True)


main()
