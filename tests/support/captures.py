"""A recorded wire under a clock of its own, and what is in its file."""

import io
import struct
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from firmware_bridge.capture import Recorder, read_capture, recorded
from firmware_bridge.clock import VirtualClock
from firmware_bridge.transports.mem import MemTransport

SERIAL, USB, HID = "serial:/dev/ttyUSB0?baud=4800", "usb:1209:0001:SH0001", "usbhid:1209:0002"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
START_NS = int(EPOCH.timestamp()) * 10**9


class End:
    """The device's end of a `mem:` wire."""

    def __init__(self):
        self.heard, self.says, self.dead = b"", [], False

    def write(self, data):
        if self.dead:
            raise OSError(5, "Input/output error")
        self.heard += data

    def read(self):
        if self.dead:
            raise OSError(19, "No such device")
        return self.says.pop(0) if self.says else b""


class Bench:
    """A recorded wire under a clock of its own."""

    def __init__(self, file, uri=SERIAL, form=MemTransport, **more):
        self.end, self.clock, self.told = End(), VirtualClock(100.0, EPOCH - timedelta(seconds=100)), []
        self.wire = form(self.end, uri)
        if uri.startswith("usb"):
            self.wire.ends = SimpleNamespace(
                bus=1, address=5, interface=0, into=0x81, out=0x02, interrupt=uri == HID
            )
        self.file = file
        self.recorder = Recorder(file, self.wire, self.clock, told=self.told.append, **more)
        self.over = recorded(self.wire, self.recorder)
        self.over.open()

    def came(self, data):
        self.end.says.append(data)
        return self.over.read(0)

    def records(self):
        return read(self.file)


def read(file):
    return list(read_capture(io.BytesIO(file.read_bytes()), file.name, pytest.fail))


def transfers(file):
    """Event, endpoint, transfer number and status of each USB record, by their places in the blocks."""
    return [
        (chr(event), endpoint, number, struct.unpack_from("<i", packet, 28)[0])
        for packet in usb_headers(file)
        for number, event, _, endpoint in [struct.unpack_from("<QBBB", packet)]
    ]


def usb_headers(file):
    """The first 64 bytes of each packet."""
    raw, at, found = file.read_bytes(), 0, []
    while at < len(raw):
        kind, size = struct.unpack_from("<II", raw, at)
        if kind == 6:
            found.append(raw[at + 28 : at + 92])
        at += size
    return found
