"""Our codecs against the simulators' own, written apart from the same pages, and the public `smp` package.

Where two of them read the same bytes differently the difference is named here, and nothing else may differ.
"""

from __future__ import annotations

import binascii
import math
from random import Random
from typing import Any

import cbor2
import pytest

from firmware_bridge import smp
from firmware_bridge.framing import angel_eye, smp_console, smp_packets
from simulators.models.shoe import Shoe
from simulators.wire import angel_eye as shoe_side
from simulators.wire import cbor, console
from simulators.wire.angel_eye import AngelEye
from simulators.wire.framings import PACKETS as PACKETS_ON_USB
from simulators.wire.managed_shoe import ManagedShoe
from tests.support.streams import CODECS, COMMANDS, PACKETS, damaged, hostile

LONG = [packet for packet in PACKETS if len(packet) > smp_console.RAW_PER_LINE]
MARKS = (smp_console.FIRST, smp_console.NEXT)


def ours(data: bytes) -> list[bytes]:
    return [item.data for item in smp_console.Decoder().feed(data) if isinstance(item, smp_console.Packet)]


def theirs(data: bytes) -> list[bytes]:
    return console.ConsoleReader().feed(data)


# Console lines


def test_both_console_readers_find_the_same_packets_in_junk():
    found = 0
    for chunks, _ in hostile(CODECS[1], Random("differential"), 200_000):
        reader, decoder = console.ConsoleReader(), smp_console.Decoder()
        one = [p.data for c in chunks for p in decoder.feed(c) if isinstance(p, smp_console.Packet)]
        assert one == [packet for chunk in chunks for packet in reader.feed(chunk)]
        found += len(one)
    assert found > 300


def tokens(packet: bytes, random: Random) -> list[bytes]:
    """The lines of a packet, each as mark, two pieces of text and line end."""
    out = []
    for line in smp_console.encode(packet).splitlines(keepends=True):
        at = random.randrange(2, len(line))
        out += [line[:2], line[2:at], line[at:-1], b"\n"]
    return out


def explained(data: bytes) -> bool:
    """A carriage return, or two marks in one line: see the test below."""
    return b"\r" in data or any(sum(map(line.count, MARKS)) > 1 for line in data.split(b"\n"))


def test_lines_put_together_wrongly_are_read_the_same_but_for_two_explained_cases():
    random, differ, same = Random("tokens"), 0, 0
    pieces = [*MARKS, b"\n", b"\r", b"\x06", b"\x04", b"text", b"\x00", b"AAAA", b"=", b"A" * 130]
    for _ in range(8000):
        parts = [token for packet in random.choices(LONG, k=2) for token in tokens(packet, random)]
        for _ in range(random.randrange(1, 4)):
            at, how = random.randrange(len(parts)), random.randrange(3)
            if how == 0:
                del parts[at]
            else:
                parts.insert(at, random.choice(pieces if how == 1 else parts))
        data = b"".join(parts)
        if explained(data):
            differ += 1
        else:
            same += 1
            assert ours(data) == theirs(data), data
    assert same > 4000
    assert differ > 500


def test_the_explained_differences_of_the_console():
    """We take any line end; a mark inside a line tells us that the line before it lost its end."""
    first, rest = smp_console.encode(LONG[0]).split(b"\n", 1)
    windows = smp_console.encode(LONG[0]).replace(b"\n", b"\r\n")
    assert (ours(windows), theirs(windows)) == ([LONG[0]], [])
    doubled = first + b"\n" + b"\x04\x14" + rest
    assert (ours(doubled), theirs(doubled)) == ([], [LONG[0]])
    abandoned = first + b"\n\x06\x09" + rest  # the page: a new first line abandons an unfinished packet
    assert (ours(abandoned), theirs(abandoned)) == ([], [LONG[0]])
    one_byte = b"\x00\x03a" + binascii.crc_hqx(b"a", 0).to_bytes(2, "big")  # no packet: it has no header
    short = b"\x06\x09" + binascii.b2a_base64(one_byte)
    assert (ours(short), theirs(short)) == ([], [b"a"])


# Transfers


def test_a_device_takes_the_same_transfers_for_requests_as_our_decoder():
    device = ManagedShoe(Shoe(Random(1)), framing=PACKETS_ON_USB)
    taken = glued = 0
    for chunks, _ in hostile(CODECS[2], Random("transfers"), 300_000):
        for chunk in chunks:
            before = device.requests
            device.receive(chunk, 0.0)
            items = smp_packets.Decoder().feed(chunk)
            asked = [i.data for i in items if isinstance(i, smp_packets.Packet) and i.data[0] & 7 in {0, 2}]
            if len(chunk) > len(asked[0] if asked else chunk):
                glued += 1  # we forgive a device its missing zero-length packet; it need not forgive us
                assert device.requests == before
            else:
                taken += len(asked)
                assert device.requests - before == len(asked), chunk
    assert taken > 200
    assert glued > 10


# CBOR bodies


def plain(value: Any) -> Any:
    """What the simulator's reader makes of the same item: it has no tags, and nothing apart from null."""
    if isinstance(value, cbor2.CBORTag):
        return plain(value.value)
    if value is cbor2.undefined:
        return None
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    return value


def alike(one: Any, other: Any) -> bool:
    """Equal in value and type; not-a-number equals itself."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other


WE_TAKE = {
    "a map key is no text, number or bytes, or comes twice": "we drop every key that is no text",
    "a simple value that has no meaning here": "it stays in a key that nobody knows",
    "an indefinite length or a reserved head": "tolerant reading: any well-formed CBOR",
}
SHARED = (b"\xd8\x19", b"\xd8\x1c", b"\xd8\x1d", b"\xd9\x01\x00")


def refused(reason: str, body: bytes) -> bool:
    """The page: a tag is no error in an unknown key only, and shared values are one anywhere."""
    return reason == "the body is no map but CBORTag" or any(tag in body for tag in SHARED)


def test_both_readers_of_cbor_understand_the_same_bodies():
    random, read = Random("cbor"), 0
    for _ in range(10_000):
        body = damaged(random.choice(PACKETS)[8:], random)
        head = bytes([8, 0]) + len(body).to_bytes(2, "big") + bytes([0, 65, 1, 0])
        message = smp.decode(head + body)
        try:
            value, error = cbor.decode(body), ""
        except cbor.CborError as wrong:
            value, error = None, str(wrong)
        if isinstance(message, smp.Malformed):
            assert not isinstance(value, dict) or refused(message.reason, body), (body, message)
        elif error:
            assert error in WE_TAKE, (body, message, error)
        else:
            read += 1
            mine = plain(dict(message.body))
            known = {key: item for key, item in value.items() if isinstance(key, str)}
            if known.keys() > mine.keys() and any(0xC0 <= byte <= 0xDB for byte in body):
                known = {key: known[key] for key in mine}  # a tag made a key no text for us
            assert alike(mine, known), body
    assert read > 2500


@pytest.mark.parametrize(
    ("body", "we", "simulator"),
    [
        ("bf626f6b01ff", {"ok": 1}, None),  # indefinite length
        ("a1f601", {}, None),  # a key that is null
        ("a16178e9", {"x": cbor2.CBORSimpleValue(9)}, None),
        ("a16178f7", {"x": cbor2.undefined}, {"x": None}),
        ("a16178c601", {"x": cbor2.CBORTag(6, 1)}, {"x": 1}),
        ("c6a0", None, {}),  # a tag around the whole body
        ("a2616101616102", None, None),  # a key twice
    ],
)
def test_the_explained_differences_of_cbor(body: str, we: Any, simulator: Any):
    raw = bytes.fromhex(body)
    message = smp.decode(bytes([8, 0]) + len(raw).to_bytes(2, "big") + bytes([0, 65, 1, 0]) + raw)
    assert (None if isinstance(message, smp.Malformed) else message.body) == we
    try:
        value = cbor.decode(raw)
    except cbor.CborError:
        value = None
    assert value == simulator


# Angel Eye


def shoe(*, includes_stx: bool) -> AngelEye:
    quiet = Shoe(Random(1))
    device = AngelEye(quiet, bcc_includes_stx=includes_stx)
    device.transmit(10.0)  # its greeting
    return device


def test_every_telegram_a_shoe_can_send_is_read_as_it_was_meant():
    lengths = angel_eye.DATA_LENGTH
    for code, length in lengths.items():
        for sequence in shoe_side.SEQUENCES["free"]:
            data = bytes(0x80 | (7 * at + ord(sequence)) & 0x7F for at in range(length))
            if code == "M":
                data = b"120001"
            raw = shoe_side.telegram(sequence, code, data)
            assert angel_eye.Decoder().feed(raw) == [angel_eye.Telegram(raw, sequence, code, data)]


@pytest.mark.parametrize("includes_stx", [True, False])
def test_a_shoe_obeys_exactly_the_commands_that_our_decoder_sees(includes_stx: bool):
    """Every golden command with every byte changed to every value."""
    device, now, obeyed = shoe(includes_stx=includes_stx), 10.0, 0
    for frame in COMMANDS[:6]:
        for at in range(1, len(frame)):
            for value in range(256):
                raw = frame[:at] + bytes([value]) + frame[at + 1 :]
                now += 1.0
                device.receive(raw, now)
                answer = device.transmit(now + 0.5)
                device.receive(b"\x02" + b"\x00" * 16, now + 0.6)  # whatever began is given up
                device.transmit(now + 0.9)
                device._command.clear()
                seen = [i for i in angel_eye.Decoder().feed(raw) if isinstance(i, angel_eye.Command)]
                fits = [c for c in seen if c.bcc_includes_stx is includes_stx]
                known = any(
                    c.type in {"EC", "GP"} or (c.type, c.number) in {("LK", 1), ("LK", 2)} for c in fits
                )
                assert (answer[:1] == b"\x06") is known, (raw, answer, seen)
                obeyed += known
    assert obeyed >= 3


def test_commands_of_ours_are_obeyed_and_answers_of_theirs_are_read():
    for includes_stx in (True, False):
        device, now = shoe(includes_stx=includes_stx), 20.0
        for kind, number in (("LK", 2), ("LK", 1), ("EC", 7), ("GP", 0)):
            device.receive(angel_eye.encode_command(kind, number, includes_stx), now)
            assert angel_eye.Decoder().feed(device.transmit(now + 1)) == [angel_eye.Ack()]
            device.receive(angel_eye.encode_command(kind, number, not includes_stx), now + 2)
            assert angel_eye.Decoder().feed(device.transmit(now + 3)) == [angel_eye.Nak(b"\x15\x02", 2)]
            now += 4


# The public package


def test_the_public_package_reads_our_lines_and_we_read_its_lines_of_any_length():
    packet = pytest.importorskip("smp.packet")
    random = Random("oracle")
    for size in (*range(8, 200), 500, 1031, 1032):
        raw = random.randbytes(size)
        for length in (8, 12, 40, 127):
            assert ours(b"".join(packet.encode(raw, line_length=length))) == [raw]
        reader, got = packet.decode(), None
        next(reader)
        for line in smp_console.encode(raw).splitlines(keepends=True):
            try:
                reader.send(line)
            except StopIteration as end:
                got = bytes(end.value)
        assert got == raw


def test_the_public_package_sees_the_same_headers():
    header = pytest.importorskip("smp.header")
    for raw in PACKETS:
        message = smp.decode(raw)
        assert isinstance(message, smp.Message)
        seen = header.Header.loads(raw[:8])
        assert (seen.op, seen.version, seen.length) == (message.op, message.version, len(raw) - 8)
        assert (seen.group_id, seen.sequence, seen.command_id) == (
            message.group, message.sequence, message.command,
        )  # fmt: skip


def test_the_public_package_makes_the_echo_that_we_make_one_packet_a_transfer():
    management = pytest.importorskip("smp.os_management")
    request = management.EchoWriteRequest(sequence=66, d="0011223aabbccdd0")
    mine = smp.encode(smp.Message(smp.Op.WRITE, 0, 66, 0, {"d": "0011223aabbccdd0"}))
    assert smp_packets.encode(mine) == bytes(request.BYTES)
    (item,) = smp_packets.Decoder().feed(bytes(request.BYTES))
    assert smp.decode(item.data) == smp.Message(smp.Op.WRITE, 0, 66, 0, {"d": "0011223aabbccdd0"})
    answer = smp.encode(smp.Message(smp.Op.WRITE_ANSWER, 0, 66, 0, {"r": "x"}))
    assert management.EchoWriteResponse.loads(answer).r == "x"
