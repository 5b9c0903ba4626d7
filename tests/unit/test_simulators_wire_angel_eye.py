"""The Angel Eye simulator against the document's vectors, its sequences, commands and self-play."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from simulators import faults
from simulators.models.cards import Card, CuttingCard, Stack, make_batch
from simulators.models.selfplay import SelfPlay
from simulators.models.shoe import Shoe
from simulators.wire.angel_eye import AngelEye, Step, card_byte, parse_script, telegram

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "angel_eye.json").read_text())
COMMANDS = [vector for vector in VECTORS["vectors"] if vector["hex"].startswith("02")]
TELEGRAMS = [vector for vector in VECTORS["vectors"] if vector["hex"].startswith("05")]


def loaded(*items) -> Shoe:
    shoe = Shoe(Random(1))
    shoe.open_lid()
    shoe.load(Stack(items))
    shoe.close_lid()
    return shoe


def hand(cards: str) -> list[Card]:
    return [Card(n, face[0], face[1], "red") for n, face in enumerate(cards.split(), 1)]


def telegrams(device: AngelEye, now: float = 1000.0) -> list[bytes]:
    """All telegrams up to `now`, in order; each must have come three times."""
    return list(_once(device.transmit(now)))


def _once(stream: bytes) -> Iterator[bytes]:
    while stream:
        length = stream.index(3) + 3
        frame = stream[:length]
        assert stream.startswith(frame * 3), "three equal copies in a row"
        stream = stream[3 * length :]
        yield frame


def meanings(device: AngelEye, now: float = 1000.0) -> list[str]:
    return [(frame[2:3] + frame[3:-3].hex().encode()).decode() for frame in telegrams(device, now)]


@pytest.mark.parametrize("vector", [v for v in TELEGRAMS if v["good"]], ids=lambda v: v["hex"])
def test_telegrams_are_the_documents(vector):
    raw = bytes.fromhex(vector["hex"])
    assert telegram(chr(raw[1]), chr(raw[2]), raw[3:-3]) == raw


def test_the_golden_round_trip_is_what_the_model_plays():
    """Only cards and rules go in: burn count, seats, third cards and results must come out by themselves."""
    first = hand("3S QH AC TD 4S 5C 5D 2H 2H KS 2C 3D 8H")
    device = AngelEye(loaded(*first, CuttingCard(), *make_batch("red", 1)))
    for _ in range(14):
        device.shoe.draw()
    assert [frame.hex() for frame in telegrams(device)] == [v["hex"] for v in VECTORS["round_trip"]]


def test_each_telegram_comes_three_times_50_ms_apart():
    device = AngelEye(loaded(*make_batch("red", 1)))
    out = []
    while (due := device.deadline()) is not None:
        out.append((round(due, 4), device.transmit(due)))
    start, ready = bytes.fromhex("053153033631"), bytes.fromhex("053250033631")
    times = [0.0125, 0.0625, 0.1125, 0.1625, 0.2125, 0.2625]
    assert out == list(zip(times, [start] * 3 + [ready] * 3, strict=True))


@pytest.mark.parametrize(
    ("alphabet", "expected"),
    [("digits19", "123456789123"), ("digits09", "123456789012"), ("hex", "123456789ABCDEF012"),
     ("free", "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ012")],
)  # fmt: skip
def test_sequence_alphabets_go_round(alphabet, expected):
    device = AngelEye(loaded(), sequence=alphabet)
    for _ in expected:
        device.change_preset(12, 1)
    assert "".join(chr(frame[1]) for frame in telegrams(device))[: len(expected)] == expected


def test_s_may_keep_its_sequence_for_the_next_telegram():
    device = AngelEye(loaded(), s_advances=False)
    assert [(chr(f[1]), chr(f[2])) for f in telegrams(device)] == [("1", "S"), ("1", "P")]


def answer(device: AngelEye, command: bytes) -> bytes:
    telegrams(device)
    device.receive(command, 1000.0)
    return device.transmit(1000.1)


@pytest.mark.parametrize("vector", COMMANDS, ids=lambda v: v["meaning"])
def test_commands_are_judged_by_the_range_of_their_check(vector):
    command = bytes.fromhex(vector["hex"])
    counted = vector["meaning"].endswith("STX counted")
    counted = counted and not vector["meaning"].endswith("STX not counted")
    for range_ in (True, False):
        device = AngelEye(loaded(), bcc_includes_stx=range_)
        locked_before = device.shoe.locked
        reply = answer(device, command)
        assert reply == (b"\x06" if counted is range_ else b"\x15\x02")
        if counted is not range_:
            assert device.shoe.locked == locked_before
        elif vector["meaning"].startswith("lock on"):
            assert device.shoe.locked


def _command(text: bytes, *, etx: bytes = b"\x03") -> bytes:
    inner = b"\x02" + text + etx
    check = 0
    for byte in inner:
        check ^= byte
    return inner + b"%02X" % check


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        (_command(b"OPLK03"), "1511"),
        (_command(b"OPLKxx"), "1511"),
        (_command(b"OPLK2"), "1511"),
        (_command(b"XXLK02"), "1513"),
        (_command(b"OPZZ02"), "1514"),
        (b"\x02OPLK02" + b"9" * 20, "1503"),
        (_command(b"OPLK02")[:-2] + b"1b", "1502"),
        (b"\x02OPL" + _command(b"OPLK02"), "06"),
        (b"\xff\x00noise" + _command(b"OPGP00"), "06"),
        (_command(b"OPLK02") * 2, "0606"),
    ],
)
def test_commands_that_are_wrong_get_the_code_of_the_document(command, reply):
    for chunk in (1, len(command)):
        device = AngelEye(loaded())
        telegrams(device)
        for start in range(0, len(command), chunk):
            device.receive(command[start : start + chunk], 1000.0)
        assert device.transmit(1000.1).hex() == reply


def test_busy_and_a_nak_in_two_pieces():
    device = AngelEye(loaded(), nak_gap=0.12)
    device.busy = True
    telegrams(device)
    device.receive(_command(b"OPLK02"), 1000.0)
    assert device.transmit(1000.05) == b"\x15"
    assert device.transmit(1000.16) == b""
    assert device.transmit(1000.17) == b"\x21"
    assert not device.shoe.locked


def test_only_the_key_reports_the_lock():
    device = AngelEye(loaded())
    assert answer(device, _command(b"OPLK02")) == b"\x06"
    assert device.shoe.locked
    device.shoe.set_lock(locked=False, by="key")
    assert meanings(device, 2000.0) == ["L80"]


def test_errors_and_cards_outside_a_game():
    device = AngelEye(loaded(*hand("AS 2D 8S 5C 9D 9H")))
    device.shoe.traps.set("misread", 4)
    for _ in range(5):
        device.shoe.draw()
    assert meanings(device)[2:] == ["Dc0b1", "Dd192", "D81b8", "Ec1", "d9199"]
    assert answer(device, _command(b"OPEC02")) == b"\x06"
    assert device.error == 1, "another error's number cancels nothing"
    device.receive(_command(b"OPEC01"), 2000.0)
    assert device.transmit(2000.05) == b"\x06"
    device.shoe.draw()
    assert meanings(device, 2001.0) == ["e81", "D91c9"]


def test_data_bytes_always_have_bit_7():
    for face in (rank + suit for rank in "A23456789TJQK" for suit in "CDHS"):
        assert card_byte(face) & 0x80


def test_power_loss_begins_a_new_session():
    device = AngelEye(loaded(*make_batch("red", 1)))
    device.shoe.draw()
    telegrams(device)
    device.machine.power_cut(2.0)
    device.receive(_command(b"OPLK02"), 1001.0)
    assert device.transmit(1001.0) == b""
    assert [chr(f[1]) + chr(f[2]) for f in telegrams(device, 1003.0)] == ["1S", "2P"]


def test_copies_may_mix_when_telegrams_follow_at_once():
    device = AngelEye(loaded(), spacing=0.0)
    start, ready = bytes.fromhex("053153033631"), bytes.fromhex("053250033631")
    assert device.transmit(1.0) == (start + ready) * 3


def test_a_script_is_sent_as_written():
    script = parse_script("# a hand\n0.5 S\n1 D 81 B8\n0.25 raw 00 FF 06  # noise\n")
    assert script == [Step(0.5, "S"), Step(1.0, "D", b"\x81\xb8"), Step(0.25, "", b"\x00\xff\x06")]
    device = AngelEye(loaded(), script=script)
    assert device.transmit(0.4) == b""
    assert device.transmit(0.7) == telegram("1", "S") * 3
    assert device.transmit(1.52) == telegram("2", "D", b"\x81\xb8")
    assert device.transmit(9.0) == telegram("2", "D", b"\x81\xb8") * 2 + b"\x00\xff\x06"
    assert device.deadline() is None


@pytest.mark.parametrize("line", ["S", "x S", "1 Q", "1 D zz", "1 raw 0"])
def test_a_wrong_script_names_its_line(line):
    with pytest.raises(ValueError, match="line 2"):
        parse_script("1 S\n" + line)


def test_self_play_tells_a_whole_shoe_and_the_next_one():
    shoe = loaded(*make_batch("red", 8), CuttingCard(), *hand("AS 2S 3S 4S 5S 6S 7S 8S 9S TS JS QS KS AS"))
    device = AngelEye(shoe)
    SelfPlay(shoe, Random(5), pace=1.0)
    seen = "".join(frame[2:3].decode() for frame in telegrams(device, 1500.0))
    assert seen.startswith("SPD")
    shoe_one, shoe_two = seen.split("S")[1:3]
    assert shoe_one.count("C") == 1
    assert shoe_one.endswith("G")
    assert shoe_one.count("G") > 60
    assert shoe_two.startswith("PD")


def test_a_joker_is_a_card_that_cannot_be_read_and_the_play_goes_on():
    device = AngelEye(loaded(*hand("AS"), Card(2, "X", "X", "red"), *hand("3D 4C 5H 6S")))
    SelfPlay(device.shoe, Random(5), pace=1.0)
    assert meanings(device, 4.9) == ["S", "P", "Dc0b1", "Ec1", "d9193", "d91a4"]


def test_faults_by_name():
    device = AngelEye(loaded())
    faults.apply(device, "silent:0.5@2")
    faults.apply(device, "duplicate_answer@2")
    assert answer(device, _command(b"OPGP00")) == b"\x06"
    assert answer(device, _command(b"OPGP00")) == b""
    device.receive(_command(b"OPGP00"), 1001.0)
    assert device.transmit(1001.1) == b"\x06\x06"
