"""Captures of others and hostile ones: blocks are put together here, not by the code that writes ours."""

import io
import struct
import tracemalloc
from contextlib import suppress
from itertools import accumulate
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge.capture import CaptureError, Record, read_capture
from firmware_bridge.capture.pcapng import BLOCK_LIMIT, OPTION_LIMIT

SERIAL, USB, USB_OLD = 250, 220, 189
IN, OUT = 1, 2


class Build:
    """Blocks of one byte order."""

    def __init__(self, order="<"):
        self.order = order

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def block(self, kind, body):
        body += bytes(-len(body) % 4)
        size = self.pack("I", len(body) + 12)
        return self.pack("I", kind) + size + body + size

    def option(self, code, value):
        return self.pack("HH", code, len(value)) + value + bytes(-len(value) % 4)

    def section(self):
        return self.block(0x0A0D0D0A, self.pack("IHHq", 0x1A2B3C4D, 1, 0, -1))

    def interface(self, link=SERIAL, name=b"", **options):
        body = self.pack("HHI", link, 0, options.pop("snaplen", 0)) + self.option(2, name)
        for code, value in options.items():
            body += self.option(int(code[1:]), value)
        return self.block(1, body)

    def packet(self, data, at=0, flags=None, interface=0, original=None, more=b""):
        head = self.pack("IIIII", interface, at >> 32, at & 0xFFFFFFFF, len(data), original or len(data))
        tail = more + (b"" if flags is None else self.option(2, self.pack("I", flags)))
        return self.block(6, head + data + bytes(-len(data) % 4) + tail)

    def usb(self, event, kind, endpoint, data, *, device=5, bus=1, flag=0, size=64, length=None):
        length = len(data) if length is None else length
        head = self.pack(
            "QBBBBHBBqiiII8s", 1, ord(event), kind, endpoint, device, bus, ord("-"), flag, 0, 0, 0, length,
            len(data), bytes(8),
        )  # fmt: skip
        return head + bytes(size - 48) + data


LITTLE, BIG = Build("<"), Build(">")
START = LITTLE.section() + LITTLE.interface()


def serial(data, event=2):
    return struct.pack(">IIBBH", 0, 0, event, 0, 0) + data


def read(data, notes=None):
    return list(read_capture(io.BytesIO(data), "f", (notes if notes is not None else []).append))


BLOCKS = [LITTLE.section(), LITTLE.interface()] + [
    LITTLE.packet(serial(bytes([n]) * n), at=n, flags=IN) for n in range(1, 6)
]
GOOD = b"".join(BLOCKS)


@pytest.mark.parametrize("made", [LITTLE, BIG], ids=["little-endian", "big-endian"])
def test_either_byte_order_and_what_is_unknown_in_it_is_passed_over(made):
    data = (
        made.section()
        + made.block(0x0BAD, b"what is this")
        + made.interface(name=b"COM3", _60000=b"unknown", _11=b"\0tcp")
        + made.packet(serial(b"abc"), at=1_500_000, flags=IN, more=made.option(32767, b"xyz"))
        + made.block(5, bytes(12))
        + made.packet(serial(b"d", event=1), at=2_500_000, flags=OUT)
    )
    assert read(data) == [
        Record(1_500_000_000, inbound=True, data=b"abc", packets=False),
        Record(2_500_000_000, inbound=False, data=b"d", packets=False),
    ]


@pytest.mark.parametrize(
    ("options", "at", "nanoseconds"),
    [
        ({}, 5, 5_000),
        ({"_9": b"\x09"}, 1_700_000_000_123_456_789, 1_700_000_000_123_456_789),
        ({"_9": b"\x00"}, 7, 7_000_000_000),
        ({"_9": b"\x0c"}, 7_999, 7),
        ({"_9": b"\x8a"}, 1536, 1_500_000_000),
        ({"_9": b"\x09", "_14": struct.pack("<q", 1_700_000_000)}, 3, 1_700_000_000_000_000_003),
    ],
    ids=["microseconds", "nanoseconds", "seconds", "picoseconds", "1/1024 s", "with an offset"],
)
def test_times_of_any_resolution(options, at, nanoseconds):
    data = LITTLE.section() + LITTLE.interface(**options) + LITTLE.packet(serial(b"a"), at=at)
    assert [r.at for r in read(data)] == [nanoseconds]


def test_the_direction_is_the_flag_s_and_else_the_event_s():
    told = [(1, None), (2, None), (3, None), (4, None), (1, IN), (2, OUT), (2, 0)]
    data = START + b"".join(LITTLE.packet(serial(b"a", event), flags=flags) for event, flags in told)
    assert [r.inbound for r in read(data)] == [False, True, False, True, True, False, True]


def test_records_without_data_of_the_wire_are_left_out():
    other = [serial(b"", 2), serial(b"", 0), serial(b"x", 0), serial(b"x", 7), serial(b"x", 10)]
    assert read(START + b"".join(map(LITTLE.packet, other))) == []


@pytest.mark.parametrize("made", [LITTLE, BIG], ids=["little-endian", "big-endian"])
@pytest.mark.parametrize(("link", "size"), [(USB, 64), (USB_OLD, 48)])
def test_of_usb_what_bulk_and_interrupt_transfers_carried(made, link, size):
    def usb(*args, **more):
        return made.packet(made.usb(*args, size=size, **more), at=1)

    data = made.section() + made.interface(link, b"usbmon1") + b"".join([
        usb("S", 3, 0x81, b"", flag=ord("<")),
        usb("C", 3, 0x81, b"answer"),
        usb("C", 3, 0x81, b""),
        usb("S", 3, 0x02, b"question"),
        usb("C", 3, 0x02, b"", flag=ord(">"), length=0),
        usb("C", 1, 0x83, b"report"),
        usb("C", 2, 0x80, b"descriptor", device=1),
        usb("C", 0, 0x84, b"sound", device=9),
    ])  # fmt: skip
    told = [(True, b"answer"), (False, b"question"), (True, b"report")]
    assert [(r.inbound, r.data) for r in read(data)] == told
    assert all(r.packets for r in read(data))


def test_in_a_capture_of_ours_a_device_under_a_new_number_is_the_same_wire():
    two = LITTLE.packet(LITTLE.usb("C", 3, 0x81, b"a", device=5)) + LITTLE.packet(
        LITTLE.usb("C", 3, 0x81, b"b", device=6)
    )
    head = LITTLE.section()
    assert [r.data for r in read(head + LITTLE.interface(USB, b"usb:1209:0001:SH0001") + two)] == [b"a", b"b"]
    with pytest.raises(CaptureError, match=r"more than one wire \(device 1\.5 and device 1\.6\)"):
        read(head + LITTLE.interface(USB, b"usbmon1") + two)


def test_captures_put_together_are_one_when_they_are_of_one_port():
    one = LITTLE.section() + LITTLE.interface(name=b"COM3") + LITTLE.packet(serial(b"a"), at=1)
    other = BIG.section() + BIG.interface(name=b"COM3") + BIG.packet(serial(b"b"), at=2)
    assert [r.data for r in read(one + other)] == [b"a", b"b"]
    third = LITTLE.section() + LITTLE.interface(name=b"COM4") + LITTLE.packet(serial(b"c"))
    with pytest.raises(CaptureError, match=r"more than one wire \('COM3' and 'COM4'\)"):
        read(one + third)


def test_cut_short_anywhere_all_before_it_is_read_and_one_note_tells_it():
    whole, edges = read(GOOD), list(accumulate(map(len, BLOCKS)))
    for cut in range(edges[0], len(GOOD) + 1):
        notes = []
        found = read(GOOD[:cut], notes)
        assert found == whole[: max(0, sum(edge <= cut for edge in edges) - 2)]
        assert len(notes) == (cut not in edges), cut
        assert all("cut short at byte" in note for note in notes)


def test_a_tail_of_zeros_is_what_a_power_cut_leaves():
    notes = []
    assert read(GOOD + bytes(5000), notes) == read(GOOD)
    assert notes == [f"f ends in zeros from byte {len(GOOD)} on, as after a power cut; all before it is read"]


def test_packets_without_a_time_are_told_and_left_out():
    notes = []
    assert len(read(GOOD + LITTLE.block(3, struct.pack("<I", 1) + b"a") * 2, notes)) == 5
    assert notes == ["f holds packets without a time of their own, which are left out"]


def size_of(block, at_start=None, at_end=None):
    """The block with other lengths than its own."""
    start = block[4:8] if at_start is None else struct.pack("<I", at_start)
    end = block[-4:] if at_end is None else struct.pack("<I", at_end)
    return block[:4] + start + block[8:-4] + end


PACKET = LITTLE.packet(serial(b"abc"), flags=IN)
MANY = LITTLE.option(1000, b"") * (1 << 19)
"""2 MiB of options."""
NAMED = LITTLE.interface(name="\u00e9\x01".encode() * 21_000)
HOSTILE = {
    "empty": (b"", "ends before a capture begins"),
    "cut off in its header": (START[:20], "ends before a capture begins"),
    "cut off in its first word": (START[:3], "ends before a capture begins"),
    "text": (b"Dear reader, this is no capture.", "no pcapng file"),
    "gzip": (b"\x1f\x8b\x08\x00" + bytes(40), "gunzip"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(40), "unzstd"),
    "classic pcap": (struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 250), "editcap -F pcapng"),
    "classic pcap of the other order": (b"\xa1\xb2\xc3\xd4" + bytes(20), "editcap -F pcapng"),
    "classic pcap of nanoseconds": (b"\x4d\x3c\xb2\xa1" + bytes(20), "editcap -F pcapng"),
    "no byte order": (LITTLE.block(0x0A0D0D0A, b"abcdefghijklmnop"), "no byte order"),
    "no interface": (LITTLE.section() + PACKET, "names interface 0, and the file has 0"),
    "an interface that is not there": (START + LITTLE.packet(serial(b"a"), interface=7), "names interface 7"),
    "a block without a body": (START + size_of(PACKET, 8, 8), "claims 8 bytes"),
    "a crooked block": (START + size_of(PACKET, 45), "claims 45 bytes"),
    "an oversized block": (START + size_of(PACKET, BLOCK_LIMIT + 4), "which cannot be"),
    "the largest length there is": (START + size_of(PACKET, 0xFFFFFFFC), "claims 4294967292 bytes"),
    "two lengths": (START + size_of(PACKET, None, 64), "at its start and 64 at its end"),
    "a packet beyond its block": (
        START + LITTLE.block(6, struct.pack("<IIIII", 0, 0, 0, 0xFFFFFFFF, 4) + b"abcd"),
        "claims a packet of 4294967295 bytes in 4",
    ),
    "a packet block too short": (START + LITTLE.block(6, b"abcd"), "too short"),
    "an interface block too short": (LITTLE.section() + LITTLE.block(1, b""), "too short"),
    "a resolution without a value": (LITTLE.section() + LITTLE.interface(_9=b""), "too short"),
    "an offset of three bytes": (LITTLE.section() + LITTLE.interface(_14=b"abc"), "too short"),
    "a time after all calendars": (
        LITTLE.section() + LITTLE.interface(_9=b"\x00") + LITTLE.packet(serial(b"a"), at=1 << 63),
        "no calendar",
    ),
    "a time before 1970": (
        LITTLE.section() + LITTLE.interface(_14=struct.pack("<q", -5)) + LITTLE.packet(serial(b"a"), at=9),
        "no calendar",
    ),
    "a network": (LITTLE.section() + LITTLE.interface(1) + LITTLE.packet(bytes(60)), "link type 1:"),
    "half a serial header": (START + LITTLE.packet(b"\x00" * 11), "shorter than its header"),
    "half a usb header": (
        LITTLE.section() + LITTLE.interface(USB) + LITTLE.packet(bytes(63)),
        "shorter than its header",
    ),
    "the beginnings of packets": (START + LITTLE.packet(serial(b"ab"), original=300), "snap length"),
    "the beginnings of transfers": (
        LITTLE.section() + LITTLE.interface(USB) + LITTLE.packet(LITTLE.usb("C", 3, 0x81, b"a", length=9)),
        "snap length",
    ),
    "interfaces without end": (LITTLE.section() + LITTLE.interface() * 300, "more than 256 interfaces"),
    "options of a packet without end": (START + LITTLE.packet(serial(b"a"), more=MANY), "1024 options"),
    "options of an interface without end": (
        LITTLE.section() + LITTLE.block(1, struct.pack("<HHI", SERIAL, 0, 0) + MANY), "1024 options",
    ),
    "a name of 63 KB": (
        LITTLE.section() + NAMED + LITTLE.interface() + PACKET + LITTLE.packet(serial(b"a"), interface=1),
        "more than one wire",
    ),
    "serial and usb": (
        LITTLE.section() + LITTLE.interface(name=b"a") + LITTLE.interface(USB, b"usbmon1")
        + PACKET + LITTLE.packet(LITTLE.usb("C", 3, 0x81, b"a"), interface=1),
        "more than one wire",
    ),
    "a name with commands for terminals": (
        LITTLE.section() + LITTLE.interface(name=b"\x1b[2J") + LITTLE.interface(name=b"b")
        + PACKET + LITTLE.packet(serial(b"a"), interface=1),
        r"\\x1b\[2J",
    ),
}  # fmt: skip


COST_S = 3.0
"""More than a few MiB of anything take; what grows with the square of a length takes far more."""


@pytest.mark.parametrize(("data", "says"), HOSTILE.values(), ids=HOSTILE)
def test_what_cannot_be_read_is_one_clear_sentence(data, says):
    since = process_time()
    with pytest.raises(CaptureError, match=says) as caught:
        read(data)
    assert process_time() - since < COST_S
    text = str(caught.value)
    assert text.startswith("f ")
    assert text.isprintable()
    assert len(text) < 300


def test_what_is_before_the_damage_is_given_and_the_remedy_keeps_it():
    damaged = GOOD + size_of(PACKET, None, 64) + PACKET
    records = read_capture(io.BytesIO(damaged), "f", pytest.fail)
    assert [next(records) for _ in range(5)] == read(GOOD)
    with pytest.raises(CaptureError, match=rf"at byte {len(GOOD)}: .* `head -c {len(GOOD)}` keeps"):
        next(records)


@pytest.mark.parametrize(
    ("data", "records"),
    [
        (START + LITTLE.packet(serial(b"a"), more=LITTLE.option(1000, b"") * OPTION_LIMIT) * 50, 50),
        (LITTLE.section() + NAMED + PACKET * 20_000, 20_000),
        (START + LITTLE.block(0x0BAD, b"") * 100_000 + PACKET, 1),
        (START * 20_000 + PACKET, 1),
        ((LITTLE.section() + LITTLE.interface() * 250) * 150 + PACKET, 1),
        (
            LITTLE.section() + LITTLE.interface(_9=b"\x7f") + LITTLE.packet(serial(b"a"), at=1) * 20_000,
            20_000,
        ),
    ],
    ids=["options", "a long name", "tiny blocks", "sections", "interfaces", "a resolution of 10**-127 s"],
)
def test_a_byte_costs_the_same_in_a_file_of_nothing_but_ballast(data, records):
    since = process_time()
    assert len(read(data)) == records
    assert process_time() - since < COST_S


def test_a_huge_snap_length_and_broken_options_change_nothing():
    data = LITTLE.section() + LITTLE.interface(snaplen=0xFFFFFFFF)
    data += LITTLE.packet(serial(b"abc"), at=1, more=b"\x02\x00\xff\xff")
    assert read(data) == [Record(1000, inbound=True, data=b"abc", packets=False)]


@settings(max_examples=150)
@given(st.data())
def test_any_damage_gives_records_or_one_sentence(data):
    damaged = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(GOOD) - 1))] = data.draw(st.integers(0, 255))
    damaged += data.draw(st.binary(max_size=40))
    with suppress(CaptureError):
        assert len(read(bytes(damaged))) <= 7


class Endless(io.RawIOBase):
    """A capture of 64 MiB that is in no memory."""

    def __init__(self):
        self._left, self._rest = 1 << 26, START
        self._block = LITTLE.packet(serial(bytes(60_000)), flags=IN)

    def read(self, size=-1):
        while len(self._rest) < size and self._left > 0:
            self._rest += self._block
            self._left -= len(self._block)
        found, self._rest = self._rest[:size], self._rest[size:]
        return found


def test_memory_is_bounded_whatever_the_length():
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_capture(Endless(), "f", pytest.fail))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count > 1000
    assert peak < 2 << 20
