"""GAT frames against the vectors of the documents: length and check bytes, and nothing by silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firmware_bridge.framing import Garbage
from firmware_bridge.framing.gat import IACQ, LARR, Decoder, Frame, encode
from firmware_bridge.gat import messages as gat
from simulators.wire import gat as device

GOLDEN = json.loads((Path(__file__).parents[1] / "vectors" / "gat.json").read_text())
VECTORS = GOLDEN["vectors"]
GOOD = [v for v in VECTORS if v["good"]]


def decode(*chunks):
    decoder = Decoder()
    return [item for chunk in chunks for item in decoder.feed(chunk)] + decoder.flush()


@pytest.mark.rule("R-73")
@pytest.mark.parametrize("vector", GOOD, ids=lambda v: v["meaning"])
def test_good_vectors_both_ways_whole_and_byte_by_byte(vector):
    raw = bytes.fromhex(vector["hex"])
    frame = Frame(raw, raw[0], raw[2:-2])
    assert decode(raw) == [frame]
    assert decode(*[bytes([b]) for b in raw]) == [frame]
    assert encode(raw[0], raw[2:-2]) == raw
    assert device.frame(raw[0], raw[2:-2]) == raw, "the simulator's own code agrees"
    assert (gat.read(frame) is None) is vector.get("request", False)


@pytest.mark.rule("R-73")
@pytest.mark.parametrize("vector", [v for v in VECTORS if not v["good"]], ids=lambda v: v["meaning"])
def test_bad_vectors_are_no_frame_and_say_why(vector):
    raw = bytes.fromhex(vector["hex"])
    (run,) = decode(raw)
    assert (run.reason, run.data, run.count) == (vector["reason"], raw, len(raw))


def test_the_check_value_of_the_catalogue():
    assert device.check(bytes.fromhex(GOLDEN["check"]["of"])).hex() == GOLDEN["check"]["value"]


@pytest.mark.parametrize("vector", [v for v in GOOD if "state" in v], ids=lambda v: v["meaning"])
def test_states_as_the_device_means_them(vector):
    (frame,) = decode(bytes.fromhex(vector["hex"]))
    status = gat.read(frame)
    assert (status.version, status.state, status.results) == ("3.50", vector["state"], vector["results"])
    assert status.formats == (gat.Format.TEXT, gat.Format.XML)


@pytest.mark.parametrize(
    ("flags", "state", "results"),
    [(0x00, "requested", False), (0x05, "calculating", False), (0x07, "calculating", True),
     (0x02, "requested", True), (0x0E, "error", True), (0xF6, "finished", True)],
)  # fmt: skip
def test_odd_states_are_never_taken_for_finished(flags, state, results):
    status = gat.read(Frame(b"", 0x81, bytes((0x02, 0x00, flags, 0x00))))
    assert (status.version, status.state, status.results, status.formats) == ("2.00", state, results, ())
    assert status.best is gat.Format.TEXT


def test_seconds_have_no_sign():
    assert gat.read(Frame(b"", 0x82, bytes.fromhex("01fffffffe"))) == gat.Last(1, 2**32 - 2)


@pytest.mark.rule("R-73")
def test_the_longest_frame_and_one_more_byte():
    assert len(encode(LARR, bytes(251))) == 255
    assert decode(encode(LARR, bytes(251)))[0].data == bytes(251)
    for code, data in ((LARR, bytes(252)), (IACQ, b""), (0x85, b"x"), (0x81, b"12345")):
        with pytest.raises(ValueError, match="bytes, not"):
            encode(code, data)


def test_a_false_start_hides_the_frames_behind_it_only_until_silence():
    status = bytes.fromhex("8108035004035fbd")
    decoder = Decoder()
    assert decoder.feed(b"\x83\xff" + status + status) == []
    assert decoder.pending
    assert decoder.flush() == [
        Garbage("incomplete frame", b"\x83\xff", 2), *[Frame(status, 0x81, status[2:-2])] * 2,
    ]  # fmt: skip
    assert not decoder.pending


def test_a_frame_inside_the_data_of_another_is_data():
    inner = bytes.fromhex("8108035004035fbd")
    outer = encode(LARR, b"\x02\x00\x01" + inner)
    assert [item.code for item in decode(outer, inner)] == [LARR, 0x81]


@pytest.mark.parametrize(
    ("report", "text"),
    [(b"<a/>", "<a/>"), ("é".encode(), "é"), (b"\xe9\xff", "éÿ"), ("<é/>".encode("utf-16"), "<é/>"),
     ("<é/>".encode("utf-16-le"), "<é/>"), ("<é/>".encode("utf-16-be"), "<é/>"), (b"", ""), (b"x", "x"),
     (b"\xef\xbb\xbfx", "x"), (b"\xff\xfex", "�")],
)  # fmt: skip
def test_reports_in_any_encoding_become_text(report, text):
    assert gat.text_of(report) == text
