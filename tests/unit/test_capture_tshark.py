"""Wireshark opens what we record, and shows who said what to whom, and when."""

import shutil
import subprocess

import pytest

from firmware_bridge.errors import LinkLost
from tests.support.captures import HID, SERIAL, START_NS, USB, Bench

TSHARK = shutil.which("tshark")
pytestmark = pytest.mark.skipif(TSHARK is None, reason="needs the Debian package tshark (make system-deps)")


def shown(file, *fields):
    """One list of texts for each packet."""
    done = subprocess.run(
        [TSHARK, "-r", str(file), "-T", "fields", *(word for field in fields for word in ("-e", field))],
        capture_output=True, text=True, check=True, timeout=50,
    )  # fmt: skip
    return [line.split("\t") for line in done.stdout.splitlines()]


def seconds(nanoseconds):
    return f"{(START_NS + nanoseconds) // 10**9}.{(START_NS + nanoseconds) % 10**9:09}"


def conversation(file, uri):
    """A question, an answer 123.456789 ms later, and a write that fails after a second."""
    bench = Bench(file, uri)
    bench.over.write(b"\x02OPLK0203\x03")
    bench.clock.advance(0.123456789)
    bench.came(b"\x06")
    bench.clock.advance(1.0)
    bench.end.dead = True
    with pytest.raises(LinkLost):
        bench.over.write(b"\x02")
    bench.over.dispose()


def test_a_serial_line(tmp_path):
    conversation(tmp_path / "f", SERIAL)
    rows = shown(
        tmp_path / "f", "frame.time_epoch", "frame.packet_flags_direction", "frame.interface_name",
        "_ws.col.Protocol", "rtacser.eventtype", "rtacser.timestamp", "data.data",
    )  # fmt: skip
    told = [(int(row[1], 16), row[4], row[6]) for row in rows]
    assert told == [
        (0, "0x00", ""), (2, "0x01", "024f504c4b3032303303"), (1, "0x02", "06"), (2, "0x01", "02"),
    ]  # fmt: skip
    assert [row[0] for row in rows] == [seconds(n) for n in (0, 0, 123_456_789, 1_123_456_789)]
    assert [row[5] for row in rows[2:]] == [seconds(n) for n in (123_456_000, 1_123_456_000)]
    assert {(row[2], row[3]) for row in rows} == {(SERIAL, "RTAC Serial")}


def test_usb_transfers(tmp_path):
    conversation(tmp_path / "f", USB)
    rows = shown(
        tmp_path / "f", "usb.urb_type", "usb.transfer_type", "usb.src", "usb.dst", "usb.endpoint_address",
        "usb.bus_id", "usb.device_address", "usb.urb_status", "usb.capdata", "usb.urb_id", "frame.time_epoch",
    )  # fmt: skip
    into, out, host = ("1.5.1", "0x81"), ("1.5.2", "0x02"), "host"
    assert [tuple(row[i] for i in (0, 2, 3, 4, 7, 8)) for row in rows] == [
        ("'S'", host, *into, "-115", ""),
        ("'S'", host, *out, "-115", "024f504c4b3032303303"),
        ("'C'", out[0], host, out[1], "0", ""),
        ("'C'", into[0], host, into[1], "0", "06"),
        ("'S'", host, *into, "-115", ""),
        ("'S'", host, *out, "-115", "02"),
        ("'C'", out[0], host, out[1], "-5", ""),
        ("'C'", into[0], host, into[1], "-2", ""),
    ]
    assert {(row[1], row[5], row[6]) for row in rows} == {("0x03", "1", "5")}
    first, *_ = numbers = [row[9] for row in rows]
    assert numbers.index(first, 1) == 3
    assert rows[3][10] == seconds(123_456_789)


def test_a_report_by_control_and_a_stall_that_was_cleared(tmp_path):
    bench = Bench(tmp_path / "f", HID)
    bench.wire.ends.out, bench.wire.ends.interface = None, 3
    bench.over.write(b"lamp")
    bench.recorder.empty(0x81, -32)
    bench.over.dispose()
    rows = shown(
        tmp_path / "f", "usb.urb_type", "usb.transfer_type", "usb.dst", "usb.urb_status",
        "usb.bmRequestType", "usb.setup.bRequest", "usb.setup.wValue", "usb.setup.wIndex",
        "usb.setup.wLength", "usb.data_fragment",
    )  # fmt: skip
    wait = ["'S'", "0x01", "1.5.1", "-115"]
    assert [[word for word in row if word] for row in rows] == [
        wait,
        ["'S'", "0x02", "1.5.0", "-115", "0x21", "9", "0x0200", "3", "4", b"lamp".hex()],
        ["'C'", "0x02", "host", "0"],
        ["'C'", "0x01", "host", "-32"],
        wait,
        ["'C'", "0x01", "host", "-2"],
    ]
