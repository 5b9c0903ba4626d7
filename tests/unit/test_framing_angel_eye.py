"""The Angel Eye decoder against the golden vectors, and against everything that may go wrong on the line."""

import json
from pathlib import Path
from random import Random

import pytest

from firmware_bridge.framing import Garbage
from firmware_bridge.framing.angel_eye import (
    Ack,
    Answer,
    Command,
    Decoder,
    Nak,
    Telegram,
    bcc,
    encode_command,
)

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "angel_eye.json").read_text())
ALL = VECTORS["vectors"]
CARD = bytes.fromhex("05314481b8033446")


def decode(*chunks):
    decoder = Decoder()
    out = [item for chunk in chunks for item in decoder.feed(chunk)]
    return out + decoder.flush()


def telegram(seq, code, data=b""):
    body = seq.encode() + code.encode() + data + b"\x03"
    return b"\x05" + body + bcc(body)


@pytest.mark.parametrize("vector", ALL, ids=[v["meaning"] for v in ALL])
def test_every_vector_is_one_frame_or_one_garbage_run(vector):
    raw = bytes.fromhex(vector["hex"])
    (item,) = decode(raw)
    if vector.get("layer") == "frame":
        assert item == Garbage(item.reason, raw, len(raw))
    else:
        assert item.raw == raw
        assert isinstance(item, Command if raw[0] == 2 else Telegram)


@pytest.mark.parametrize("vector", [v for v in ALL if v["hex"].startswith("02")], ids=lambda v: v["meaning"])
def test_commands_are_encoded_as_the_vectors_say(vector):
    raw = bytes.fromhex(vector["hex"])
    (seen,) = decode(raw)
    assert encode_command(seen.type, seen.number, seen.bcc_includes_stx) == raw
    assert seen.bcc_includes_stx is ("STX counted" in vector["meaning"])


def test_the_round_trip_stream_in_one_piece_and_byte_by_byte():
    frames = [bytes.fromhex(v["hex"]) for v in VECTORS["round_trip"]]
    stream = b"".join(frames)
    whole = decode(stream)
    assert [item.raw for item in whole] == frames
    assert [item.seq for item in whole] == [v["seq"] for v in VECTORS["round_trip"]]
    assert decode(*[bytes([b]) for b in stream]) == whole


def test_negative_streams():
    results = [decode(*map(bytes.fromhex, s["chunks"])) for s in VECTORS["streams"]]
    assert results[0] == [
        Garbage("ENQ inside a frame", CARD[:5], 5),
        Telegram(b"\x052C\x0372", "2", "C", b""),
    ]
    assert results[1] == [Nak(b"\x15\x02", 2)]
    assert [item.raw for item in results[2]] == [CARD, bytes.fromhex("05324791034537")]
    assert results[3] == [Garbage("noise", b"\x00\xff\x06", 3), Telegram(CARD, "1", "D", b"\x81\xb8")]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (CARD[:-1] + b"E", "bad BCC"),
        (CARD[:-1] + b"f", "lower-case BCC"),
        (CARD[:5] + b"\x04" + CARD[6:], "missing ETX"),
        (CARD[:-1], "incomplete frame"),
        (b"\x15", "NAK without a code"),
        (b"\x02OPlk02\x03", "bad command format"),
        (b"\x02OPLK02\x0400", "missing ETX"),
        (b"\x02OPLK02\x0300", "bad BCC"),
        (b"\x02OPLK01\x031a", "lower-case BCC"),
        (b"hello", "noise"),
    ],
)
def test_reasons(raw, reason):
    assert decode(raw) == [Garbage(reason, raw, len(raw))]


def test_data_bytes_with_bit_7_clear_may_equal_etx_and_enq():
    raised = telegram("4", "E", b"\x03")
    assert decode(raised) == [Telegram(raised, "4", "E", b"\x03")]
    cancelled = telegram("5", "e", b"\x05")
    assert [item.raw for item in decode(cancelled + CARD)] == [cancelled, CARD]
    card = telegram("1", "D", b"\x03\x03")
    assert decode(*[bytes([b]) for b in card]) == [Telegram(card, "1", "D", b"\x03\x03")]


def test_a_frame_cut_off_before_the_next_enq_does_not_eat_the_next_frame():
    for cut in range(1, len(CARD)):
        out = decode(CARD[:cut] + telegram("2", "C"))
        assert out[-1].raw == telegram("2", "C")
        assert out[0].count == cut


def test_unknown_code_ends_at_its_first_etx_and_is_bounded():
    frame = telegram("1", "Z", b"\x81\x82\x83")
    assert decode(frame) == [Telegram(frame, "1", "Z", b"\x81\x82\x83")]
    (run,) = decode(b"\x051Z" + b"\x81" * 40)
    assert run == Garbage("missing ETX", b"\x051Z" + b"\x81" * 40, 43)


def test_an_stx_answer_is_read_like_a_telegram():
    frame = b"\x02" + telegram("7", "L", b"\x81")[1:]
    assert decode(frame) == [Answer(frame, "7", "L", b"\x81")]


def test_ack_and_nak():
    command = encode_command("LK", 2, bcc_includes_stx=True)
    assert decode(command + b"\x06" + command + b"\x15\x21" + CARD)[1::2] == [Ack(), Nak(b"\x15\x21", 0x21)]
    assert decode(b"\x15", b"\x06") == [Nak(b"\x15\x06", 6)]
    out = decode(b"\x15" + CARD)
    assert out == [Garbage("NAK without a code", b"\x15", 1), Telegram(CARD, "1", "D", b"\x81\xb8")]


def test_an_ack_inside_noise_counts_only_while_an_answer_is_awaited():
    decoder = Decoder()
    assert decoder.feed(b"\x00\x06") == []
    decoder.awaiting_answer = True
    assert decoder.feed(b"\xff\x06") == [Garbage("noise", b"\x00\x06\xff", 3), Ack()]
    assert decoder.awaiting_answer is False


@pytest.mark.parametrize("begun", [b"x", b"\x15", b"\x05", b"\x02O", CARD[:5], CARD[:-1]])
def test_rejected_and_unfinished_bytes_wait_for_the_flush(begun):
    decoder = Decoder()
    assert decoder.feed(begun) == []
    assert decoder.pending
    assert decoder.flush() == [Garbage(decode(begun)[0].reason, begun, len(begun))]
    assert not decoder.pending
    assert [item.raw for item in decoder.feed(CARD)] == [CARD]


HALF_M = b"\x051M"
CUT = telegram("2", "C")


def test_enq_inside_the_text_of_m_is_a_new_frame_at_once():
    assert Decoder().feed(HALF_M + CUT) == [
        Garbage("ENQ inside a frame", HALF_M, 3), Telegram(CUT, "2", "C", b""),
    ]  # fmt: skip


@pytest.mark.parametrize("half", [b"\x021M12", b"\x051D", b"\x051Z", b"\x05", b"\x02", b"\x02OPL"])
def test_a_flush_gives_up_the_start_and_finds_what_stands_behind_it(half):
    """The frame behind is a host's command or an answer: neither has an ENQ that would end the half frame."""
    command = encode_command("LK", 2, bcc_includes_stx=True)
    for rest in (command, b"\x02" + CUT[1:]):
        decoder = Decoder()
        out = [*decoder.feed(half + rest), *decoder.flush()]
        assert out[-1].raw == rest
        assert sum(i.count for i in out[:-1]) == len(half)


def test_an_ack_behind_a_half_frame_is_found_when_one_is_awaited():
    decoder = Decoder()
    decoder.awaiting_answer = True
    assert decoder.feed(CARD[:3] + b"\x06") == []
    assert decoder.flush() == [Garbage("incomplete frame", CARD[:3], 3), Ack()]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("02 4F 50 47 50 30 44 05 05", "bad command format"),
        ("02 4F 50 47 05 30 44 03 30 39", "ENQ inside a frame"),
        ("02 4F 50 47 50 30 30 05 30 39", "ENQ inside a frame"),
        ("02 4F 50 47 50 30 30 04 05 39", "missing ETX"),
        ("02 4F 50 47 50 30 30 03 30 05", "ENQ inside a frame"),
    ],
)
def test_the_first_offending_byte_gives_the_reason_in_any_split(text, reason):
    raw = bytes.fromhex(text)
    whole = decode(raw)
    assert whole[0].reason == reason
    assert decode(*[bytes([b]) for b in raw]) == whole


@pytest.mark.parametrize("vector", [v for v in ALL if v.get("layer") != "frame"], ids=lambda v: v["meaning"])
def test_after_any_flipped_bit_the_next_frame_is_found(vector):
    raw = bytes.fromhex(vector["hex"])
    for bit in range(len(raw) * 8):
        broken = bytearray(raw)
        broken[bit // 8] ^= 1 << bit % 8
        out = decode(bytes(broken) + CARD)
        assert out[-1].raw == CARD
        assert all(getattr(item, "raw", b"") != raw for item in out[:-1])
        assert not any(isinstance(item, Telegram) for item in out[:-1]), out


def test_100_kb_of_noise_is_one_run_and_the_buffer_stays_small():
    noise = Random(7).randbytes(100_000)
    decoder = Decoder()
    out = []
    for at in range(0, len(noise), 1000):
        out += decoder.feed(noise[at : at + 1000])
        assert len(decoder._buffer) < 16
    out += decoder.feed(b"\x00" + CARD)
    runs, frames = [i for i in out if isinstance(i, Garbage)], [i for i in out if not isinstance(i, Garbage)]
    assert frames[-1].raw == CARD
    assert sum(len(f.raw) for f in frames) + sum(r.count for r in runs) == len(noise) + 1 + len(CARD)
    assert len(runs) <= 2
    assert all(len(r.data) <= 64 for r in runs)


def test_commands_out_of_range_are_refused():
    with pytest.raises(ValueError, match=r"0\.\.99"):
        encode_command("LK", 100, bcc_includes_stx=True)
    with pytest.raises(ValueError, match="two capital letters"):
        encode_command("lk", 1, bcc_includes_stx=True)
