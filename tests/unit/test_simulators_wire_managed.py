"""The managed devices' side of the wire, against the golden vectors and an oracle host on cbor2."""

from __future__ import annotations

import base64
import binascii
import json
import struct
from pathlib import Path
from random import Random
from typing import Any

import cbor2
import pytest

from simulators import faults
from simulators.models.cards import Card, CuttingCard, Stack, make_batch
from simulators.models.shoe import Shoe
from simulators.models.shuffler import BatchShuffler
from simulators.wire import cbor, console
from simulators.wire.managed_shoe import ManagedShoe
from simulators.wire.managed_shuffler import ManagedShuffler

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "managed.json").read_text())
PACKETS = {vector["name"]: bytes.fromhex(vector["packet"]) for vector in VECTORS}
TOKEN, OTHER = bytes(range(16)), bytes(16)
READ, WRITE = 0, 2


def framed(packet: bytes) -> bytes:
    """Console lines by hand, apart from the code under test."""
    raw = struct.pack("!H", len(packet) + 2) + packet + struct.pack("!H", binascii.crc_hqx(packet, 0))
    chunks = [raw[i : i + 93] for i in range(0, len(raw), 93)]
    marks = [b"\x06\x09"] + [b"\x04\x14"] * len(chunks)
    return b"".join(
        mark + base64.b64encode(chunk) + b"\n" for mark, chunk in zip(marks, chunks, strict=False)
    )


class Host:
    """Asks a device and understands its answers, with cbor2."""

    def __init__(self, device) -> None:
        self.device = device
        self.now = 0.0
        self.sequence = 200
        self._reader = console.ConsoleReader()

    def send(self, op: int, group: int, command: int, body: Any = None, *, sequence=None, version=1) -> int:
        if sequence is None:
            self.sequence = sequence = (self.sequence + 1) % 256
        raw = cbor2.dumps(body or {})
        packet = struct.pack("!BBHHBB", version << 3 | op, 0, len(raw), group, sequence, command) + raw
        self.device.receive(framed(packet), self.now)
        return sequence

    def answers(self) -> list[tuple[int, Any]]:
        """Sequence and body of all answers sent up to now."""
        packets = self._reader.feed(self.device.transmit(self.now))
        return [(packet[6], cbor2.loads(packet[8:])) for packet in packets]

    def ask(self, op: int, group: int, command: int, body: Any = None, **how) -> Any:
        sequence = self.send(op, group, command, body, **how)
        ((answered, answer),) = self.answers()
        assert answered == sequence
        return answer

    def events(self, since: int = 1, **keys) -> Any:
        return self.ask(READ, 65, 0, {"since": since, **keys})


def shoe_host(*items, **options) -> Host:
    shoe = Shoe(Random(1))
    shoe.open_lid()
    shoe.load(Stack(items or make_batch("red", 1)))
    shoe.close_lid()
    shoe.happenings.clear()
    return Host(ManagedShoe(shoe, **options))


def shuffler_host(**options) -> Host:
    shuffler = BatchShuffler(Random(1), **options)
    shuffler.load(Stack(make_batch("blue", 1)))
    return Host(ManagedShuffler(shuffler))


# Codec


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_golden_vectors_both_ways(vector):
    packet = bytes.fromhex(vector["packet"])
    wire = b"".join(bytes.fromhex(line) + b"\n" for line in vector["lines"])
    assert console.lines(packet) == wire
    assert console.ConsoleReader().feed(wire) == [packet]
    byte_by_byte = console.ConsoleReader()
    assert [p for byte in wire for p in byte_by_byte.feed(bytes((byte,)))] == [packet]
    assert cbor.encode(cbor.decode(packet[8:])) == packet[8:]


@pytest.mark.parametrize(
    "text",
    [
        "", "18", "1900", "5f", "9f", "a1", "a10102ff", "8181818181818181818100", "61ff", "f8", "f97e",
        "fc", "1c", "3b", "9bffffffffffffffff", "a2616101616102", "a1f600", "0000", "a180f6",
    ],
)  # fmt: skip
def test_malformed_cbor_is_refused(text):
    with pytest.raises(cbor.CborError):
        cbor.decode(bytes.fromhex(text))


def test_a_reader_survives_noise_and_stays_small():
    reader = console.ConsoleReader()
    noise = Random(3).randbytes(100_000)
    packets = reader.feed(noise) + [p for i in range(0, 100_000, 7) for p in reader.feed(noise[i : i + 7])]
    assert packets == []
    assert len(reader._line) <= console.MAX_LINE
    assert reader.feed(b"\n" + console.lines(PACKETS["start"])) == [PACKETS["start"]]


def test_a_new_first_line_abandons_an_unfinished_packet():
    reader = console.ConsoleReader()
    first, _ = console.lines(PACKETS["identity answer"]).splitlines(keepends=True)
    assert reader.feed(first + console.lines(PACKETS["lock"])) == [PACKETS["lock"]]
    assert reader.feed(first[:40] + console.lines(PACKETS["lock"])) == [PACKETS["lock"]], "a host that died"
    assert reader.bad == 1


@pytest.mark.parametrize("place", [2, 10, 20, 35, 46])
def test_a_damaged_character_costs_the_packet(place):
    whole = console.lines(PACKETS["start"])
    other = b"B" if whole[place : place + 1] != b"B" else b"C"
    reader = console.ConsoleReader()
    damaged = whole[:place] + other + whole[place + 1 :]
    assert reader.feed(damaged + console.lines(PACKETS["lock"])) == [PACKETS["lock"]]
    assert reader.bad == 1


# The documents' exchanges, byte by byte


def test_the_golden_exchanges_of_a_shoe():
    host = shoe_host(
        Card(1, "8", "S", "red"), CuttingCard(), *make_batch("red", 1), serial="SH0001", flash=False
    )
    shoe, device = host.device.shoe, host.device
    shoe.boot = 7

    def exchange(request: str) -> bytes:
        device.receive(console.lines(PACKETS[request]), 0.0)
        (packet,) = console.ConsoleReader().feed(device.transmit(0.0))
        return packet

    assert exchange("echo") == PACKETS["echo answer"]
    assert exchange("identity") == PACKETS["identity answer"]
    assert cbor.decode(exchange("lock")[8:]) == {"locked": True}
    assert shoe.locked


def test_the_golden_events():
    host = shoe_host(Card(1, "8", "S", "red"), CuttingCard(), Card(2, "9", "H", "red"), *make_batch("red", 1))
    shoe, device = host.device.shoe, host.device
    shoe.traps.set("misread", 2)
    shoe.boot = 7
    device._ring.next = 41
    for at in (1.0, 1.31, 1.65):
        shoe.advance(at)
        shoe.draw()
    device.receive(console.lines(PACKETS["events since 41"]), 1.7)
    (packet,) = console.ConsoleReader().feed(device.transmit(1.7))
    answer, golden = cbor.decode(packet[8:]), cbor.decode(PACKETS["events answer"][8:])
    assert packet[:2] + packet[4:8] == PACKETS["events answer"][:2] + PACKETS["events answer"][4:8]
    assert [event["t"] for event in answer["events"]] == [1000, 1310, 1650]
    assert answer["events"] == golden["events"]
    assert (answer["boot"], answer["next"]) == (golden["boot"], golden["next"])


def test_the_golden_exchanges_of_a_shuffler():
    host = shuffler_host(cycle=1056)
    device = host.device
    request = console.lines(PACKETS["start"])
    device.shuffler.open_door()
    device.receive(request, 0.0)
    assert console.ConsoleReader().feed(device.transmit(0.0)) == [PACKETS["start refused, door open"]]
    device.shuffler.close_door()
    device._start()  # a refusal is kept like any answer
    device.receive(request, 0.0)
    assert console.ConsoleReader().feed(device.transmit(0.0)) == [PACKETS["start answer"]]
    host.now = 30.0
    host.send(READ, 66, 4, sequence=0x48)
    assert console.ConsoleReader().feed(device.transmit(30.0)) == [PACKETS["report answer, one deck"]]


def test_settings_are_echoed_with_the_golden_check():
    host = shuffler_host()
    host.send(READ, 64, 1, sequence=0x44)
    assert console.ConsoleReader().feed(host.device.transmit(0.0)) == [PACKETS["settings answer"]]
    answer = host.ask(WRITE, 64, 1, {"settings": {"decks": 8, "colour": "mauve"}})
    assert answer["settings"] == {"decks": 8, "cards_per_deck": 52, "mode": "shuffle", "recognition": True}
    assert answer["crc"] == binascii.crc32(cbor2.dumps(answer["settings"], canonical=True))
    assert answer["crc"] != 0x1AEAB292
    for wrong in ({"decks": 0}, {"decks": True}, {"mode": "deal"}, {"recognition": 1}):
        assert host.ask(WRITE, 64, 1, {"settings": wrong}) == {"err": {"group": 64, "rc": 8}}
    assert host.device.shuffler.settings["decks"] == 8
    shoe = shoe_host()
    for wrong in ({"decks": 0}, {"recognition": 1.5}):
        assert shoe.ask(WRITE, 64, 1, {"settings": wrong}) == {"err": {"group": 64, "rc": 8}}


# Requests


@pytest.mark.parametrize(
    ("op", "group", "command", "body", "rc"),
    [
        (READ, 67, 0, {}, 8),  # a shuffler has no group 67
        (READ, 66, 9, {}, 1),
        (WRITE, 66, 0, {}, 1),
        (WRITE, 66, 1, {}, 2),
        (WRITE, 66, 1, {"token": b"short"}, 2),
        (WRITE, 66, 1, {"token": "x" * 16}, 2),
        (READ, 65, 0, {}, 2),
        (READ, 65, 0, {"since": -1}, 2),
        (READ, 65, 0, {"since": True}, 2),
        (READ, 66, 4, {}, 3),
        (WRITE, 66, 2, {}, 3),
        (WRITE, 66, 3, {"token": TOKEN}, 3),
        (WRITE, 64, 1, {"settings": 3}, 2),
        (WRITE, 1, 0, {"hash": 5}, 24),
        (WRITE, 1, 0, {"hash": [1] * 32}, 24),
        (WRITE, 1, 0, {"hash": b"short", "confirm": True}, 24),
        (READ, 64, 0, [], 2),
        (READ, 0, 77, {}, 8),
        (WRITE, 0, 0, {"d": 1}, 3),
    ],
)
def test_refusals_carry_the_code_of_the_document(op, group, command, body, rc):
    host = shuffler_host()
    raw = cbor2.dumps(body)
    general = group in {0, 67}  # MCUmgr's own codes have the old form in either version
    new = {"rc": rc} if general else {"err": {"group": group, "rc": rc}}
    old = 3 if group == 1 else rc  # where the image group has general codes alone
    for version, error in ((1, new), (0, {"rc": old})):
        packet = struct.pack("!BBHHBB", version << 3 | op, 0, len(raw), group, version, command) + raw
        host.device.receive(framed(packet), 0.0)
        assert host.answers() == [(version, error)]


def test_a_body_that_is_no_cbor_is_bad_and_a_wrong_length_is_no_packet():
    host = shuffler_host()
    host.device.receive(framed(struct.pack("!BBHHBB", 8, 0, 1, 66, 1, 0) + b"\xff"), 0.0)
    assert host.answers() == [(1, {"err": {"group": 66, "rc": 2}})]
    host.device.receive(framed(struct.pack("!BBHHBB", 8, 0, 2, 66, 1, 0) + b"\xa0"), 0.0)
    host.device.receive(framed(struct.pack("!BBHHBB", 9, 0, 1, 66, 1, 0) + b"\xa0"), 0.0)
    host.device.receive(framed(b"\x08\x00"), 0.0)
    assert host.answers() == []


def test_a_whole_cycle_over_the_wire():
    host = shuffler_host()
    assert host.ask(READ, 66, 0)["state"] == "loaded"
    assert host.ask(WRITE, 66, 1, {"token": TOKEN}) == {"cycle": 1}
    assert host.ask(READ, 66, 0) == {
        "state": "shuffling", "inside": 52, "door": False, "cycle": 1, "token": TOKEN, "mode": "shuffle",
    }  # fmt: skip
    assert host.ask(WRITE, 66, 1, {"token": OTHER}) == {"err": {"group": 66, "rc": 4}}
    assert host.ask(WRITE, 64, 1, {"settings": {"mode": "sort"}}) == {"err": {"group": 64, "rc": 4}}
    host.now = 22.0
    done = host.events()["events"]
    assert [event["k"] for event in done] == ["start", "done"]
    assert done[0] == {"n": 1, "t": 0, "k": "start", "cycle": 1, "token": TOKEN}
    assert {key: done[1][key] for key in ("cycle", "token", "count", "mode", "backs", "unread")} == {
        "cycle": 1, "token": TOKEN, "count": 52, "mode": "shuffle", "backs": {"blue": 52}, "unread": 0,
    }  # fmt: skip
    assert host.ask(WRITE, 66, 3, {"token": OTHER}) == {"err": {"group": 66, "rc": 5}}
    assert host.ask(WRITE, 66, 3, {"token": TOKEN}) == {"count": 52, "inside": 0}
    assert host.events(3)["events"] == [
        {"n": 3, "t": 22000, "k": "out", "count": 52, "inside": 0, "token": TOKEN}
    ]
    assert host.ask(WRITE, 66, 1, {"token": TOKEN}) == {"err": {"group": 66, "rc": 5}}


def test_abort_over_the_wire():
    host = shuffler_host()
    host.ask(WRITE, 66, 1, {"token": TOKEN})
    assert host.ask(WRITE, 66, 2) == {}
    assert host.events(2)["events"] == [{"n": 2, "t": 0, "k": "abort", "cycle": 1, "cause": "host"}]


def test_the_same_write_again_moves_once():
    host = shuffler_host()
    host.ask(WRITE, 66, 1, {"token": TOKEN})
    host.now = 22.0
    sequence = host.send(WRITE, 66, 3, {"token": TOKEN})
    first = host.answers()
    host.send(WRITE, 66, 3, {"token": TOKEN}, sequence=sequence)
    assert host.answers() == first == [(sequence, {"count": 52, "inside": 0})]
    assert host.ask(WRITE, 66, 3, {"token": TOKEN}) == {"err": {"group": 66, "rc": 5}}, "a new sequence acts"
    assert [h.kind for h in host.device.shuffler.happenings].count("let_out") == 1


def test_the_last_four_write_answers_are_kept_and_reads_never():
    host = shoe_host()
    shoe = host.device.shoe
    host.ask(WRITE, 67, 1, sequence=1)
    shoe.set_lock(locked=False, by="key")
    for sequence in (2, 3, 4):
        host.ask(WRITE, 0, 0, {"d": "x"}, sequence=sequence)
    assert host.ask(WRITE, 67, 1, sequence=1) == {"locked": True}
    assert not shoe.locked, "answered from the cache"
    host.ask(WRITE, 0, 0, {"d": "x"}, sequence=5)
    host.ask(WRITE, 67, 1, sequence=1)
    assert shoe.locked, "no longer kept, so it acts"
    assert host.ask(READ, 67, 0, sequence=9)["locked"]
    shoe.set_lock(locked=False)
    assert not host.ask(READ, 67, 0, sequence=9)["locked"]


def test_a_kept_answer_ends_before_the_sequence_comes_round():
    host = shoe_host()
    host.ask(WRITE, 67, 1, sequence=1)
    host.device.shoe.set_lock(locked=False, by="key")
    for sequence in range(2, 257):
        host.ask(READ, 67, 0, sequence=sequence % 256)
    host.ask(WRITE, 67, 1, sequence=1)
    assert host.device.shoe.locked


# The ring


def test_reading_never_consumes():
    host = shoe_host()
    for _ in range(12):
        host.device.shoe.draw()
    first = host.events()
    assert [event["n"] for event in first["events"]] == list(range(1, 9))
    assert (first["oldest"], first["next"]) == (1, 13)
    assert host.events() == first
    assert [event["n"] for event in host.events(9)["events"]] == [9, 10, 11, 12]
    assert [event["n"] for event in host.events(9, max=2)["events"]] == [9, 10]
    assert host.events(13)["events"] == []
    assert host.events() == first


def test_an_empty_ring_tells_next_as_oldest():
    assert shoe_host().events() == {"boot": 1, "oldest": 1, "next": 1, "events": []}


def test_a_full_ring_tells_how_much_is_lost():
    host = shoe_host(*make_batch("red", 12), ring=512)
    for _ in range(600):
        host.device.shoe.draw()
    answer = host.events(1)
    assert (answer["oldest"], answer["next"]) == (89, 601)
    assert answer["events"][0]["n"] == 89


def test_no_answer_passes_the_body_limit():
    host = shuffler_host()
    for number in range(4):
        host.device.shuffler.start(number.to_bytes(16))
        host.now += 22.0
        host.device.advance(host.now)
    host.send(READ, 65, 0, {"since": 1})
    (packet,) = console.ConsoleReader().feed(host.device.transmit(host.now))
    assert len(packet) <= 1024 + 8
    events = cbor2.loads(packet[8:])["events"]
    assert 2 <= len(events) < 8
    assert host.events(events[-1]["n"] + 1)["events"][0]["n"] == events[-1]["n"] + 1


def test_a_parked_read_waits_while_other_requests_are_answered():
    host = shoe_host()
    parked = host.send(READ, 65, 0, {"since": 1, "wait": 800})
    assert host.answers() == []
    assert host.device.deadline() == pytest.approx(0.8)
    host.now = 0.5
    assert host.ask(READ, 67, 0)["drawn"] == 0
    host.device.shoe.advance(0.5)
    host.device.shoe.draw()
    ((sequence, answer),) = host.answers()
    assert sequence == parked
    assert [event["k"] for event in answer["events"]] == ["card"]
    assert host.device.deadline() is None
    parked = host.send(READ, 65, 0, {"since": 2, "wait": 60_000})
    host.now = 1.49
    assert host.answers() == []
    host.now = 1.5
    assert host.answers() == [(parked, {"boot": 1, "oldest": 1, "next": 2, "events": []})]


def test_a_read_beyond_the_ring_is_answered_at_once():
    """Only a reboot makes that possible, so the host must learn the boot counter now."""
    host = shoe_host()
    assert host.events(400, wait=1000) == {"boot": 1, "oldest": 1, "next": 1, "events": []}


def test_a_device_that_cannot_wait_ignores_the_key():
    host = shoe_host(waits=False)
    assert host.events(1, wait=1000)["events"] == []


def test_a_reboot_loses_ring_cache_parked_reads_and_output():
    host = shuffler_host()
    host.ask(WRITE, 66, 1, {"token": TOKEN}, sequence=1)
    host.send(READ, 65, 0, {"since": 2, "wait": 1000})
    host.send(READ, 66, 0)
    host.device.machine.power_cut(0.3)
    host.now = 0.1
    host.send(READ, 66, 0)
    assert host.answers() == []
    host.now = 0.4
    assert host.answers() == []
    assert host.events() == {"boot": 2, "oldest": 1, "next": 1, "events": []}
    host.now = 100.0
    status = host.ask(READ, 66, 0)
    assert (status["state"], status["cycle"], status["token"]) == ("loaded", 1, None)
    assert host.ask(READ, 66, 4) == {"err": {"group": 66, "rc": 3}}
    assert host.ask(WRITE, 66, 1, {"token": TOKEN}, sequence=1) == {"cycle": 2}, "not from the cache"
    assert host.events()["events"][0]["t"] == 99_700


def test_reset_answers_before_it_acts():
    host = shoe_host()
    assert host.ask(WRITE, 0, 5) == {}
    host.now = host.device.deadline()
    assert host.answers() == []
    assert not host.device.shoe.powered
    host.now += 1
    assert host.ask(READ, 64, 0)["boot"] == 2


def test_parameters_tell_the_packet_limit():
    assert shoe_host().ask(READ, 0, 6) == {"buf_size": 1036, "buf_count": 4}


def test_shoe_events_carry_what_the_document_says():
    host = shoe_host(Card(1, "T", "H", "blue"), Card(2, "A", "C", "red"), CuttingCard())
    shoe = host.device.shoe
    shoe.turn_face_up(1)
    shoe.set_lock(locked=True, by="key")
    shoe.set_lock(locked=False)
    for _ in range(3):
        shoe.draw()
    shoe.open_lid()
    assert host.events()["events"] == [
        {"n": 1, "t": 0, "k": "lock", "locked": True},
        {"n": 2, "t": 0, "k": "lock", "locked": False},
        {"n": 3, "t": 0, "k": "card", "c": "TH", "b": "blue"},
        {"n": 4, "t": 0, "k": "card", "c": "AC", "b": "red", "up": True},
        {"n": 5, "t": 0, "k": "cut"},
        {"n": 6, "t": 0, "k": "empty"},
        {"n": 7, "t": 0, "k": "lid", "open": True},
    ]
    assert host.ask(READ, 67, 0) == {"locked": False, "lid": True, "empty": True, "drawn": 2}


# Faults by name


def test_every_fault_of_a_managed_device_can_be_prepared_on_one():
    unfit = {}
    for kind, device in (("shoe", shoe_host().device), ("shuffler", shuffler_host().device)):
        unfit[kind] = set()
        for name in faults.FAULTS:
            try:
                faults.apply(device, name)
            except faults.UnfitFault:
                unfit[kind].add(name)
    assert unfit["shoe"] - unfit["shuffler"] >= {"leave_inside", "sort_mode", "no_start", "jam"}
    assert unfit["shuffler"] - unfit["shoe"] >= {"misread", "cut_unseen", "sticks"}
    assert not {"silent", "late_answer", "small_ring"} & (unfit["shoe"] | unfit["shuffler"])


@pytest.mark.parametrize(
    "text", ["", "meteor", "jam@0", "jam@x", "late_answer:soon", "sort_mode@2", "leave_inside:@1"]
)
def test_a_wrong_fault_text_is_one_clear_error(text):
    with pytest.raises(faults.UnfitFault):
        faults.apply(shuffler_host().device, text)


def test_duplicate_late_silent_and_chatter():
    host = shoe_host()
    faults.apply(host.device, "duplicate_answer@2")
    faults.apply(host.device, "late_answer:1.5@3")
    faults.apply(host.device, "silent:10@4")
    faults.apply(host.device, "chatter@1")
    host.send(READ, 64, 0, sequence=1)
    out = host.device.transmit(0.0)
    assert out.startswith(b"[0.000] <inf>")
    assert out.count(b"\n") == 3
    host.send(READ, 67, 0, sequence=2)
    assert [sequence for sequence, _ in host.answers()] == [2, 2]
    host.send(READ, 67, 0, sequence=3)
    assert host.answers() == []
    assert host.device.deadline() == 1.5
    host.now = 1.5
    assert [sequence for sequence, _ in host.answers()] == [3]
    for host.now in (2.0, 5.0, 11.9):
        host.send(READ, 67, 0, sequence=4)
        assert host.answers() == []
    host.now = 12.0
    assert host.ask(READ, 67, 0)["drawn"] == 0


# A device that is not well


@pytest.mark.parametrize(
    ("text", "key", "told"),
    [
        ("wrong_identity", "serial", "XX9999"),
        ("wrong_identity:product", "product", "SIM-OTHER"),
        ("wrong_identity:vendor", "vendor", "Elsewhere"),
        ("wrong_identity:class", "class", "toaster"),
        ("wrong_identity:protocol", "protocol", 9),
        ("old_firmware", "firmware", "0.1.0"),
        ("old_firmware:0.9.7", "firmware", "0.9.7"),
    ],
)
def test_it_says_it_is_another_one(text, key, told):
    usual, host = shoe_host().ask(READ, 64, 0), shoe_host()
    faults.apply(host.device, text)
    assert host.ask(READ, 64, 0) == usual | {key: told}


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("crc", {}),
        ("decks", {"decks": 7}),
        ("mode", {"mode": "sort"}),
        ("recognition", {"recognition": False}),
    ],
)
def test_its_settings_differ_once(text, change):
    host = shuffler_host()
    usual = host.ask(READ, 64, 1)
    faults.apply(host.device, f"settings_differ:{text}@1")
    told = host.ask(READ, 64, 1)
    assert told["settings"] == usual["settings"] | change
    assert (told["crc"] == usual["crc"]) == bool(change)
    assert host.ask(READ, 64, 1) == usual


def test_it_refuses_and_is_busy_for_a_while():
    host = shoe_host()
    faults.apply(host.device, "refuse:9@1")
    faults.apply(host.device, "busy_answers:2@2")
    assert host.ask(WRITE, 67, 1) == {"err": {"group": 67, "rc": 9}}
    for host.now in (1.0, 2.9):
        assert host.ask(WRITE, 67, 1) == {"err": {"group": 67, "rc": 4}}
    assert not host.device.shoe.locked, "what is refused is not done"
    host.now = 3.0
    assert host.ask(WRITE, 67, 1) == {"locked": True}


@pytest.mark.parametrize(("when", "done"), [("before", False), ("after", True)])
def test_the_power_dips_over_a_request(when, done):
    host = shoe_host()
    faults.apply(host.device, f"brown_out:{when}@1")
    host.send(WRITE, 67, 1)
    host.now = 1.0
    assert host.answers() == []
    assert host.ask(READ, 64, 0)["boot"] == 2
    assert host.device.shoe.locked is done


def test_an_answer_has_a_wrong_number_or_says_what_the_last_one_said():
    host = shoe_host()
    faults.apply(host.device, "wrong_sequence@2")
    faults.apply(host.device, "stale_answer@4")
    usual = host.ask(READ, 67, 0, sequence=7)
    host.send(READ, 67, 0, sequence=8)
    assert host.answers() == [(9, usual)]
    lock = host.ask(WRITE, 67, 1, sequence=10)
    host.send(READ, 67, 0, sequence=11)
    assert host.answers() == [(11, lock)]
    assert host.ask(READ, 67, 0) == usual | {"locked": True}


def test_a_small_ring_forgets_and_says_so():
    host = shoe_host()
    faults.apply(host.device, "small_ring:3")
    for _ in range(5):
        host.device.shoe.draw()
    told = host.events(1)
    assert (told["oldest"], told["next"], [event["n"] for event in told["events"]]) == (3, 6, [3, 4, 5])
    host.device.machine.power_cut()
    for _ in range(5):
        host.device.shoe.draw()
    assert host.events(1)["oldest"] == 3, "also after a restart"


def test_a_cycle_has_the_number_of_the_last_and_a_token_is_forgotten():
    host = shuffler_host()
    faults.apply(host.device, "same_cycle@2")
    faults.apply(host.device, "forget_token@2")
    assert host.ask(WRITE, 66, 1, {"token": TOKEN}) == {"cycle": 1}
    host.now = 30.0
    assert host.ask(READ, 66, 0)["token"] == TOKEN
    assert host.ask(WRITE, 66, 1, {"token": OTHER}) == {"cycle": 1}
    host.now = 60.0
    assert host.ask(READ, 66, 4)["token"] == OTHER
    assert host.ask(READ, 66, 0) == {
        "state": "loaded", "inside": 52, "door": False, "cycle": 1, "token": None, "mode": "shuffle",
    }  # fmt: skip
    assert host.ask(WRITE, 66, 3, {"token": OTHER}) == {"err": {"group": 66, "rc": 5}}


def test_leave_inside_and_reboot_by_name():
    host = shuffler_host()
    faults.apply(host.device, "leave_inside:16@1")
    faults.apply(host.device, "reboot_mid_cycle:0.2@2")
    host.ask(WRITE, 66, 1, {"token": TOKEN})
    host.now = 22.0
    assert host.events(2)["events"][0]["count"] == 36
    assert host.ask(READ, 66, 0)["inside"] == 52
    assert host.ask(WRITE, 66, 3, {"token": TOKEN}) == {"count": 36, "inside": 16}
    assert host.ask(WRITE, 66, 1, {"token": OTHER}) == {"cycle": 2}
    host.now = 100.0
    assert host.ask(READ, 64, 0)["boot"] == 2
    assert host.ask(READ, 66, 0)["state"] == "loaded"
