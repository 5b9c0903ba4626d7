"""Events on a bad wire: lost, doubled, late or swapped, every card that left the shoe counts once."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from devices.base import Resume
from devices.events import DeviceEvent
from simulators.models.shoe import Shoe
from simulators.wire.ring import Ring
from tests.support.line import (
    ALPHABETS,
    Line,
    Pieces,
    angel_eye_line,
    drawn,
    message_of,
    packets_of,
    shoe_line,
)


def told(line: Line) -> list[str | None]:
    return [e.card for e in line.of("card_drawn")]


# I-32: doubled, late and swapped


def mangled(random: Random, *, lose: float, double: float, latest: float) -> object:
    """A wire that loses, doubles and delays frames, each for itself, so that they overtake each other."""

    def meddle(frame: bytes) -> Pieces:
        if random.random() < lose:
            return []
        copies = 1 + (random.random() < double)
        return [(latest * random.random() ** 4, frame) for _ in range(copies)]

    return meddle


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("waits", [True, False])
def test_i32_lost_doubled_late_and_swapped_answers_leave_the_count_right(seed: int, waits: bool) -> None:
    random = Random(f"i32/{seed}")
    line, shoe = shoe_line(decks=2, seed=seed, wait_ms=200 if waits else 0)
    line.wire.up = mangled(random, lose=0.05, double=0.3, latest=0.6)
    line.wire.down = mangled(random, lose=0.05, double=0.3, latest=0.6)
    while shoe.draw() is not None:
        line.run(random.choice((0.0, 0.01, 0.3, 2.0)))
    line.run(60.0)
    assert told(line) == drawn(shoe)
    assert len(drawn(shoe)) == shoe.drawn == 104
    assert line.kinds.count("shoe_empty") == 1
    assert not line.of("gap_possible")
    assert line.driver.counters.unasked > 20


@pytest.mark.parametrize("seed", range(4))
def test_i32_what_was_told_and_not_journaled_is_told_again_to_the_next_host_and_counts_once(
    seed: int,
) -> None:
    """Our ack is the commit: a host that dies before it asks again from the last journaled event."""
    random = Random(f"ack/{seed}")
    line, shoe = shoe_line(seed=seed)
    line.acks = False
    journal: list[DeviceEvent] = []
    while True:
        line.run(0.2)
        fresh = [e for e in line.events if not journal or e.n > journal[-1].n]
        line.log.clear()
        if random.random() < 0.3:  # it dies between reading and commit
            last = next((e for e in reversed(journal) if e.seq is not None), None)
            line.unplug()
            line.replug()
            line.start(Resume(journal[-1].n, 1, last.seq, "SH0001") if last is not None else Resume())
            continue
        journal += fresh
        if fresh:
            line.port.ack(journal[-1].n)
        if shoe.empty and not fresh:
            break
        if journal and random.random() < 0.8:
            shoe.draw()
    assert [e.card for e in journal if e.kind == "card_drawn"] == drawn(shoe)
    assert len(drawn(shoe)) == 52
    assert [e.n for e in journal] == list(range(1, len(journal) + 1))
    assert line.starts > 5


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_i32_an_angel_eyes_copies_lost_doubled_late_and_swapped_count_once(alphabet: str, seed: int) -> None:
    """Of three copies one comes at least; the wire may lose two, double the rest and let them overtake."""
    random = Random(f"i32/{alphabet}/{seed}")
    line, shoe = angel_eye_line(form="reader", sim_sequence=alphabet, seq_profile="free")
    copies: Counter[bytes] = Counter()

    def meddle(frame: bytes) -> Pieces:
        copies[frame] += 1
        last = copies[frame] % 3 == 0
        if not last and random.random() < 0.5:
            return []
        return [(0.25 * random.random(), frame) for _ in range(random.randrange(1, 3))]

    line.wire.up = meddle
    for _ in range(52):
        shoe.draw()
        line.run(random.choice((0.15, 0.5, 1.5)))
    line.run(5.0)
    assert Counter(told(line)) == Counter(drawn(shoe))
    assert len(told(line)) == 52
    assert all(e.what.startswith(("player", "banker")) for e in line.of("conflict")), "a result overtaken"


# I-33: numbers go round


def numbered_from(number: int) -> tuple[Line, Shoe]:
    """A known shoe whose next event has that number."""
    line, shoe = shoe_line()
    line.unplug()
    line.run(0.5)
    line.device._ring = Ring(512, number)
    line.log.clear()
    line.replug()
    line.start(Resume(n=10, boot=1, seq=number - 1, serial="SH0001"))
    return line.up(), shoe


@pytest.mark.parametrize("first", [1, 2**16, 2**31, 2**32, 2**53, 2**63])
def test_i33_event_numbers_cross_every_width_of_a_counter(first: int) -> None:
    line, shoe = numbered_from(max(1, first - 3))
    for _ in range(8):
        shoe.draw()
        line.run(0.3)
    assert told(line) == drawn(shoe)
    numbers = [e.seq for e in line.of("card_drawn")]
    assert numbers == list(range(max(1, first - 3), max(1, first - 3) + 8))
    assert not line.of("gap_possible")


def test_i33_a_counter_that_wraps_without_a_restart_is_told_and_no_card_counts_twice() -> None:
    line, shoe = numbered_from(2**32 - 1)
    shoe.draw()
    line.run(1.0)
    line.device._ring = Ring(512)  # as a counter of 32 bits that leaves out 0
    shoe.draw()
    line.run(20.0)
    assert told(line) == drawn(shoe)[:1]
    assert any("went back without a restart" in e.reason for e in line.of("link_down"))
    assert len(line.of("link_down")) <= 10
    line.device.machine.power_cut()
    shoe.draw()
    line.run(20.0)
    assert told(line) == [drawn(shoe)[0], drawn(shoe)[2]]
    assert line.kinds[-3:] == ["link_up", "rebooted", "card_drawn"]


@pytest.mark.parametrize("s_advances", [True, False])
@pytest.mark.parametrize("alphabet", ["digits19", "digits09", "hex"])
@pytest.mark.parametrize("profile", ["learn", "its own"])
def test_i33_angel_eye_characters_go_round_and_s_numbers_anew(
    alphabet: str, s_advances: bool, profile: str
) -> None:
    line, shoe = angel_eye_line(
        form="reader",
        sim_sequence=alphabet,
        sim_s_advances=s_advances,
        seq_profile=alphabet if profile == "its own" else "learn",
    )
    for number in range(52):
        shoe.draw()
        line.run(0.5)
        if number % 20 == 19:
            shoe.press_new_shoe()
            line.run(1.0)
    assert told(line) == drawn(shoe)
    assert len(line.of("session_started")) == 3
    assert not line.of("gap_possible")
    assert not line.of("conflict")
    seen = {e.seq for e in line.events if e.seq is not None}
    assert len(seen) == {"digits19": 9, "digits09": 10, "hex": 16}[alphabet]


# I-07 and N-01 on a line


@pytest.mark.parametrize("pause", [0.01, 0.3, 0.45, 5.0])
@pytest.mark.parametrize("part", [1, 2, 40, -2, -1])
def test_i07_half_an_answer_is_none_until_its_rest_is_there(part: int, pause: float) -> None:
    line, shoe = shoe_line()
    cut_at: list[float] = []

    def halved(frame: bytes) -> Pieces:
        if cut_at or not message_of(frame).body.get("events"):
            return [(0.0, frame)]
        cut_at.append(line.clock.now())
        return [(0.0, frame[:part]), (pause, frame[part:])]

    line.wire.up = halved
    shoe.draw()
    line.run(pause * 0.9, lambda: bool(line.of("card_drawn")))
    assert (told(line) == []) is (pause < 5)  # by then it was asked again, and answered whole
    line.run(10.0)
    assert told(line) == drawn(shoe)
    assert len(line.of("link_up")) == 1


@pytest.mark.parametrize("pause", [0.1, 0.45, 0.7])
@pytest.mark.parametrize("part", range(1, 8))
def test_i07_half_a_telegram_is_none_and_is_given_up_after_half_a_second(part: int, pause: float) -> None:
    line, shoe = angel_eye_line(form="reader")
    line.run(1.0)
    copies: list[bytes] = []

    def halved(frame: bytes) -> Pieces:
        copies.append(frame)
        if len(copies) > 1:
            return []  # the other two copies are lost
        return [(0.0, frame[:part]), (pause, frame[part:])]

    line.wire.up = halved
    shoe.draw()
    line.run(pause - 0.01)
    assert told(line) == []
    line.run(5.0)
    assert told(line) == (drawn(shoe) if pause < 0.5 else [])
    assert bool(line.of("frame_rejected")) is (pause > 0.5)


def test_n01_a_stale_frame_and_the_good_one_in_one_read_cost_nothing() -> None:
    line, shoe = shoe_line()
    stale: list[bytes] = []

    def joined(frame: bytes) -> Pieces:
        out = [(0.0, b"".join(stale) + frame)]
        stale.append(frame)
        return out

    line.wire.up = joined
    while shoe.draw() is not None and len(drawn(shoe)) < 20:
        line.run(0.3)
    line.run(1.0)
    assert told(line) == drawn(shoe)
    assert line.kinds.count("link_up") == 1
    assert line.driver.counters.unasked > 100
    assert line.driver.counters.retries == 0
    assert all(packets_of(frame) == [frame] for frame in stale)


def test_numbers_that_go_back_without_a_restart_are_a_gap_told_once() -> None:
    line, shoe = numbered_from(20)
    shoe.draw()
    line.run(1.0)
    line.device._ring = Ring(512)
    line.run(20.0)
    assert [(e.missing, e.seq) for e in line.of("gap_possible")] == [(None, None)]
    for _ in range(30):
        shoe.draw()
    line.run(20.0)
    assert len(line.of("gap_possible")) == 1
    line.device.machine.power_cut()
    shoe.draw()
    line.run(5.0)
    assert line.kinds[-2:] == ["rebooted", "card_drawn"]


def test_a_line_that_talks_another_language_is_not_called_silent() -> None:
    line, _shoe = shoe_line()
    line.wire.up = lambda frame: [(0.0, b"\x05\x34\x44\xd1\xb7\x03")]
    line.run(15.0)
    reasons = [e.reason for e in line.of("link_down")]
    assert any("none of them is of the managed protocol" in reason for reason in reasons), reasons
