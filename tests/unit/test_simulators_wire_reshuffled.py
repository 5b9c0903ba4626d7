"""The simulated ReShuffled: its frames are the documents', its bugs are the firmware's, cards are counted."""

import json
from pathlib import Path
from random import Random
from zlib import crc32

import pytest

from simulators.models.cards import Stack, make_batch
from simulators.models.dealing_machine import CARD_S, SHUFFLE_S, DealingMachine
from simulators.models.machine import CannotDo
from simulators.wire.reshuffled import ReShuffled

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "reshuffled.json").read_text())["vectors"]
GOOD = {v["meaning"]: bytes.fromhex(v["hex"]) for v in VECTORS if v["good"]}
OK, E1, E2 = GOOD["accepted"], GOOD["error 1"], GOOD["error 2; its check begins with a zero"]
INIT, SHUFFLE, OFF = GOOD["init"], GOOD["shuffle"], GOOD["shut down"]
DEAL_1, EACH_5 = GOOD["deal one card"], GOOD["deal five cards to each player"]
DEAL_12 = GOOD["deal twelve cards: 14 bytes, which the firmware refuses"]


def device(**switches) -> ReShuffled:
    machine = DealingMachine(Random("dealer"))
    machine.load(Stack(make_batch("red", 1)))
    return ReShuffled(machine, **switches)


def exchange(made: ReShuffled, request: bytes, now: float = 0.0, wait: float = 0.1) -> bytes:
    made.receive(request, now)
    return made.transmit(now + wait)


def faces(made: ReShuffled) -> list[str]:
    return [h.data["face"] for h in made.machine.happenings if h.kind == "dealt"]


@pytest.mark.parametrize("firmware", [True, False])
def test_every_request_of_the_document_is_answered_as_in_the_document(firmware):
    for request in (INIT, SHUFFLE, OFF, DEAL_1, EACH_5):
        assert exchange(device(firmware=firmware), request) == OK


def test_accepted_is_not_done_cards_come_later_and_one_by_one():
    made = device()
    assert exchange(made, GOOD["deal five cards to each player"]) == OK
    assert faces(made) == []
    made.advance(20 * CARD_S + 0.1)
    assert [made.machine.dealt(f"player {n}") for n in range(1, 5)] == [5, 5, 5, 5]
    assert faces(made) == [card.face for card in make_batch("red", 1)[:20]]
    assert made.machine.inside == 32


def test_a_shuffle_keeps_every_card_and_changes_their_order():
    made = device()
    before = [card.face for card in make_batch("red", 1)]
    exchange(made, SHUFFLE)
    made.advance(SHUFFLE_S + 1)
    after = [item.face for item in made.machine.contents()]
    assert after != before
    assert sorted(after) == sorted(before)


def test_a_busy_machine_and_an_empty_one_refuse():
    made = device()
    assert exchange(made, SHUFFLE) == OK
    assert exchange(made, DEAL_1, 1.0) == E1
    assert exchange(device(), GOOD["deal one card"].replace(b"D1", b"D9")) == OK, "no check is looked at"
    empty = device()
    empty.machine._cards.clear()
    assert exchange(empty, DEAL_1) == GOOD["error 2 as the firmware prints it: seven digits"]


def test_the_document_prints_eight_digits_and_takes_longer_frames_and_checks_them():
    made = device(firmware=False)
    assert exchange(made, DEAL_12) == OK
    made.advance(100.0)
    assert len(faces(made)) == 12
    made.machine._cards.clear()
    assert exchange(made, DEAL_1, 200.0) == E2
    damaged = DEAL_1.replace(b"D1", b"D2")
    assert exchange(made, damaged, 300.0).startswith(b":E3#")


def test_the_firmware_complains_in_words_about_other_frames_and_other_bytes():
    made = device()
    assert exchange(made, DEAL_12) == b"Fehler: 1\r\nError"
    assert exchange(made, b"\x00\xff", 1.0) == b"Error", "once a turn of its timer"
    assert exchange(made, b":IN" + INIT, 2.0) in (b"Error" + OK, OK + b"Error")
    assert exchange(made, b":" + b"A" * 40, 3.0) == b"Error"
    assert exchange(made, INIT, 4.0).endswith(OK), "a colon starts anew"
    assert faces(made) == []


def test_an_older_firmware_prints_what_it_got():
    assert exchange(device(echo=True), INIT) == b"Received a request: " + INIT + OK


def test_a_check_over_the_hash_and_another_end():
    made = device(firmware=False, crc_includes_hash=True, end=b";")
    request = b":IN#%08X;" % crc32(b"IN#")
    assert exchange(made, request) == b":OK#356DF453;"


def test_stray_bytes_are_inside_the_check_and_text_inside_breaks_it():
    made = device()
    made.traps.set("stray_bytes", 1)
    made.traps.set("text_inside", 2)
    assert exchange(made, INIT) == GOOD["accepted, two stray bytes behind OK, and the check covers them"]
    assert exchange(made, INIT, 1.0) == b":OK#D7" + b"Error" + b"36D92D\n"


def test_answers_that_are_late_doubled_refused_or_missing():
    made = device()
    for name, at, value in (
        ("duplicate_answer", 1, None), ("late_answer", 2, 0.5), ("refuse", 3, 7), ("chatter", 4, b"hum "),
        ("silent", 5, 10.0),
    ):  # fmt: skip
        made.traps.set(name, at, value)
    assert exchange(made, INIT) == OK + OK
    assert exchange(made, INIT, 1.0) == b""
    assert made.transmit(1.6) == OK
    assert exchange(made, INIT, 2.0).startswith(b":E7#")
    assert exchange(made, INIT, 3.0) == b"hum " + OK
    assert exchange(made, INIT, 4.0) == b""
    assert exchange(made, INIT, 15.0) == OK


def test_without_power_or_switched_off_it_hears_nothing():
    made = device()
    assert exchange(made, OFF) == OK
    assert exchange(made, INIT, 1.0) == b""
    made.machine.power_cut(0.5)
    assert exchange(made, INIT, 1.2) == b""
    assert exchange(made, INIT, 2.0) == OK
    assert made.machine.boot == 2


def test_a_dip_of_no_time_costs_half_a_request():
    made = device()
    made.receive(INIT[:4], 0.0)
    made.advance(0.1)
    made.machine.power_cut()
    assert exchange(made, INIT, 1.0) == OK


def test_a_jam_stops_half_way_and_work_that_never_starts_deals_nothing():
    machine = DealingMachine(Random(1))
    machine.load(Stack(make_batch("red", 1)))
    machine.traps.set("jam", 1)
    machine.traps.set("no_start", 2)
    machine.deal(4)
    machine.advance(100.0)
    assert [h.kind for h in machine.happenings] == ["dealt", "dealt", "jam"]
    machine.deal(4)
    machine.advance(200.0)
    assert (machine.inside, machine.state) == (50, "loaded")
    with pytest.raises(CannotDo, match="53 cards are asked for"):
        machine.deal(53)
    machine.load(machine.take())
    assert machine.inside == 52
