"""The Acme shoe's driver against its document, and against a simulator that shares nothing with it."""

from random import Random

import pytest
from acme_shoe.driver import SILENCE, SPEC
from acme_shoe.simulator import SimulatedAcmeShoe

from devices.base import Resume, Setup
from devices.events import DECK

# Each with its origin: DOC stands in the document, CALC was built by hand from it; none is from a real shoe.
GOOD = {
    b"$001C8S*19\r\n": ("card_drawn", "8S"),  # DOC
    b"$002C??*71\r\n": ("card_drawn", None),  # DOC: not read
    b"$003X*6B\r\n": ("cut_card", None),  # DOC
    b"$004E*71\r\n": ("shoe_empty", None),  # CALC
}
BAD = [b"$001C8S*18\r\n", b"$001C8S*19\n", b"$01C8S*29\r\n", b"$001c8S*39\r\n", b"C8S", b"\xff"]


def told(*pieces: bytes, pause: float = 0.0, last: int | None = None, **options: str) -> list[tuple]:
    """Kind and card of what a decoder tells of pieces `pause` s apart; line `last` is in the journal."""
    driver = SPEC.decoder(Setup("shoe", Random(1), Resume(seq=last), options))
    events = [e for n, piece in enumerate(pieces) for e in driver.feed(piece, n * pause)]
    events += driver.lost("end of input", len(pieces) * pause)
    return [(e.kind, getattr(e, "card", None)) for e in events]


def test_the_documents_lines_under_every_split():
    stream = b"".join(GOOD)
    for cut in range(len(stream)):
        assert told(stream[:cut], stream[cut:]) == list(GOOD.values())
    assert told(*(bytes((byte,)) for byte in stream)) == list(GOOD.values())


@pytest.mark.parametrize("bad", BAD)
def test_a_damaged_line_is_no_card_and_the_next_one_is(bad):
    assert told(bad + b"$002C??*71\r\n") == [("frame_rejected", None), ("card_drawn", None)]


def test_each_flipped_bit_costs_its_own_line_and_shows():
    before, line, after = list(GOOD)[:3]
    for bit in range(8 * len(line)):
        broken = bytearray(line)
        broken[bit // 8] ^= 1 << bit % 8
        between = [("frame_rejected", None), ("gap_possible", None)]
        assert told(before + broken + after) == [GOOD[before], *between, GOOD[after]]


def test_a_lost_line_shows_in_the_numbers_also_across_a_restart():
    assert told(b"$001C8S*19\r\n", b"$003X*6B\r\n")[1] == ("gap_possible", None)
    assert told(b"$003X*6B\r\n", last=1)[0] == ("gap_possible", None)
    assert told(b"$003X*6B\r\n", last=2) == [("cut_card", None)]
    assert told(b"$000X*68\r\n", last=999) == [("cut_card", None)]


def test_halves_that_are_too_far_apart_do_not_make_a_card():
    halves = b"$001C8", b"S*19\r\n"
    assert told(*halves, pause=SILENCE * 0.9) == [("card_drawn", "8S")]
    assert told(*halves, pause=SILENCE) == [("frame_rejected", None)] * 2


@pytest.mark.parametrize(("covers", "first"), [("text", 1), ("dollar", 0)])
def test_a_whole_shoe_is_told_as_it_was_dealt(covers, first):
    device, said = SimulatedAcmeShoe("test", first), []
    for _ in range(300):
        said.append(device.transmit(device.deadline()))
    dealt = [h.data["face"] for h in device.machine.happenings if h.kind == "drawn"]
    cards = [card for kind, card in told(*said, check_covers=covers) if kind == "card_drawn"]
    assert cards == dealt
    assert set(cards) <= set(DECK)
    assert len(cards) > 200
