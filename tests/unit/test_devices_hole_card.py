"""The hole-card reader: natural or not, and nothing that tells the card, on the wire or in what we say."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from devices.base import Setup
from devices.events import DeviceEvent, to_json
from devices.registry import load
from firmware_bridge.framing import smp_console
from firmware_bridge.link import Done, Unknown
from simulators import faults
from simulators.models.cards import RANKS, Card
from simulators.models.reader import HoleCardReader
from simulators.wire.managed_reader import ManagedReader
from tests.support.line import Line, message_of
from tests.unit.test_devices_managed import Bench, frame

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "managed.json").read_text())
GOLDEN = {v["name"]: b"".join(bytes.fromhex(line) + b"\n" for line in v["lines"]) for v in VECTORS}
DRIVER = "hole-card-reader"
PEEK = (68, 0)


def card(rank: str, suit: str = "S", serial: int = 1) -> Card:
    return Card(serial, rank, suit, "red")


def reader_line(up: str | None = "A", hole: str = "K", **more: Any) -> tuple[Line, HoleCardReader]:
    """A reader on its line, with a pair slid in before the session."""
    machine = HoleCardReader()
    if up is not None:
        machine.slide_in(card(up), card(hole))
    return Line(DRIVER, ManagedReader(machine), **more).up(), machine


def reader_bench(form: str = "controlled", **more: Any) -> Bench:
    """A scripted device that says it is a reader, and `more` of itself."""
    bench = Bench(DRIVER, form=form)
    who = bench.answers[64, 0]
    bench.answers[64, 0] = lambda m: {**who(m), "class": "reader", **more}
    return bench


def natural(up: str, hole: str) -> bool:
    return (up == "A" and hole in "TJQK") or (up in "TJQK" and hole == "A")


# What it tells


def test_a_peek_tells_the_truth_for_every_pair_of_ranks() -> None:
    line, machine = reader_line(up=None)
    for number, (up, hole) in enumerate(product(RANKS, RANKS)):
        machine.up, machine.hole = card(up), card(hole)
        line.command(f"c{number}", "peek")
        wanted = "natural" if natural(up, hole) else "not_natural"
        assert line.end_of(f"c{number}") == Done({"result": wanted}), (up, hole)
    line.run(1.0)
    told = [e.result for e in line.of("hole_card_checked")]
    assert told == ["natural" if natural(*pair) else "not_natural" for pair in product(RANKS, RANKS)]


def test_a_look_by_hand_is_an_event_too_and_needs_no_command() -> None:
    line, machine = reader_line(up=None, form="reader")
    machine.slide_in(card("A"), card("Q"))
    line.run(1.0)
    machine.slide_in(card("A"), card("9"))
    line.run(1.0)
    machine.take_out()
    assert [e.result for e in line.of("hole_card_checked")] == ["natural", "not_natural"]
    assert not line.asked(*PEEK)


def test_without_cards_or_when_it_cannot_read_it_is_an_error_and_neither_of_the_two() -> None:
    line, machine = reader_line(up=None)
    line.command("none", "peek")
    assert line.end_of("none") == Done({"result": "error"})
    machine.up, machine.hole = card("A"), card("K")
    faults.apply(line.device, "error@2")
    line.command("good", "peek")
    line.end_of("good")
    line.command("bad", "peek")
    assert [line.end_of("good"), line.end_of("bad")] == [Done({"result": r}) for r in ("natural", "error")]


@pytest.mark.parametrize(
    ("fault", "hole", "says"),
    [("misread", "A", "not_natural"), ("misread", "9", "natural"), ("misread:5", "A", "not_natural")],
)
def test_what_a_reader_takes_for_another_card_it_tells_wrong(fault: str, hole: str, says: str) -> None:
    """Nobody downstream can notice this: the device is as good as its reading."""
    line, _ = reader_line(up="K", hole=hole)
    faults.apply(line.device, fault)
    line.command("a", "peek")
    assert line.end_of("a") == Done({"result": says})


def test_a_silent_reader_leaves_the_result_unknown_and_never_a_no() -> None:
    line, _ = reader_line()
    faults.apply(line.device, "silent")
    line.command("a", "peek")
    assert isinstance(line.end_of("a"), Unknown)
    assert line.kinds[-1] == "link_down"
    assert not line.of("hole_card_checked")


def test_a_lost_answer_is_another_look_and_both_looks_are_told() -> None:
    line, machine = reader_line()
    lost: list[bytes] = []

    def lose_one(frame: bytes) -> Any:
        if (message_of(frame).group, message_of(frame).command) == PEEK and not lost:
            lost.append(frame)
            return []
        return [(0.0, frame)]

    line.wire.up = lose_one
    line.command("a", "peek")
    assert line.end_of("a") == Done({"result": "natural"})
    line.run(1.0)
    assert [e.result for e in line.of("hole_card_checked")] == ["natural"] * 2
    assert [h.kind for h in machine.happenings] == ["looked"] * 3


def test_the_session_asks_for_no_status_and_stands() -> None:
    line, _ = reader_line()
    (up,) = line.of("link_up")
    assert (up.status, up.identity["class"], up.identity["serial"]) == ({}, "reader", "HR0001")
    assert not line.asked(*PEEK)


@pytest.mark.parametrize(
    ("entry", "kind", "fields"),
    [
        ({"k": "peek", "result": "natural"}, "hole_card_checked", {"result": "natural"}),
        ({"k": "peek", "result": "not natural"}, "hole_card_checked", {"result": "not_natural"}),
        ({"k": "peek", "result": "error"}, "hole_card_checked", {"result": "error"}),
        ({"k": "peek", "result": "KH"}, "warning", {"code": "malformed_event"}),
        ({"k": "peek"}, "warning", {"code": "malformed_event"}),
        ({"k": "card", "c": "KH"}, "warning", {"code": "unknown_event"}),
        ({"k": "fault", "code": 2, "name": "lamp", "on": True}, "fault_raised", {"code": "2"}),
    ],
)  # fmt: skip
def test_events_of_a_reader(entry: dict[str, Any], kind: str, fields: dict[str, Any]) -> None:
    bench = reader_bench()
    bench.ring = [{"n": 1, "t": 5, **entry}]
    bench.start()
    event = next(e for e in bench.events if e.kind == kind)
    assert (event.seq, event.raw) == (1, None)
    assert {name: getattr(event, name) for name in fields} == fields
    assert ("gap_possible" in bench.kinds) == (fields.get("code") == "malformed_event")


@pytest.mark.parametrize("said", ["natural", "not natural", "error"])
def test_golden_answers_of_a_peek(said: str) -> None:
    bench = reader_bench().start()
    golden = message_of(GOLDEN[f"peek answer, {said}"])
    bench.answers[PEEK] = golden.body
    bench.command("a", "peek")
    assert bench.ends["a"] == Done({"result": said.replace(" ", "_")})
    (asked,) = bench.asked(PEEK)
    assert (asked.op, asked.body) == (message_of(GOLDEN["peek"]).op, message_of(GOLDEN["peek"]).body)


def test_golden_events_of_a_reader() -> None:
    driver = load(DRIVER).decoder(Setup("dev", Random(1)))
    told = list(driver.feed(GOLDEN["events answer of a reader"], 0.0))
    assert [(e.kind, e.result, e.seq, e.raw) for e in told] == [
        ("hole_card_checked", "not_natural", 1, None), ("hole_card_checked", "natural", 2, None),
    ]  # fmt: skip


def test_another_class_on_the_port_is_the_wrong_device() -> None:
    bench = Bench(DRIVER).start()
    assert "expected a reader, found" in bench.events[-1].reason


# Never the value


def wire_of(pairs: list[tuple[Card, Card]], ask: bool) -> tuple[bytes, list[str]]:
    """Everything a reader sent, and everything our driver said of it, for these pairs."""
    line, machine = reader_line(up=None, seed="same")
    heard: list[bytes] = []

    def tap(frame: bytes) -> Any:
        heard.append(frame)
        return [(0.0, frame)]

    line.wire.up = tap
    for number, pair in enumerate(pairs):
        machine.slide_in(*pair)
        line.run(1.0)
        if ask:
            line.command(f"c{number}", "peek")
            line.end_of(f"c{number}")
    told = [json.dumps(to_json(e, at=None, masked=False)) for e in line.events]
    return b"".join(heard), told + [str(end) for end in line.ends.values()]


@pytest.mark.parametrize("ask", [True, False])
def test_pairs_with_the_same_result_give_the_same_bytes_and_the_same_words(ask: bool) -> None:
    random = Random("pairs")
    cards = [card(rank, suit, n) for n, (rank, suit) in enumerate(product(RANKS, "CDHS"))]
    for _ in range(4):
        pairs = [(card(up), random.choice(cards)) for up in random.choices("ATJQK", k=6)]
        others = []
        for up, hole in pairs:
            same = [c for c in cards if natural(up.rank, c.rank) == natural(up.rank, hole.rank)]
            others.append((up, random.choice(same)))
        assert wire_of(pairs, ask) == wire_of(others, ask)


LEAKS = {"card": "8S", "rank": "8", "hole": ["8S"], "picture": b"8S8S", "8S": True}
RESULTS: list[Any] = ["natural", "8S", None, {"8S": 1}, ["8S"], b"8S"]
NOISE = [b"hole card 8S\n", smp_console.encode(bytes([9, 0, 0, 2, 0, 68, 1, 0]) + b"8S"), b"8S" * 40 + b"\n"]
"""Text, a packet whose body makes no sense, and more text."""

each_result = pytest.mark.parametrize("result", RESULTS, ids=lambda r: type(r).__name__ + str(r)[:3])


def ring_of(result: Any) -> list[dict[str, Any]]:
    kinds = [("peek", result), ("8S", result), ("peek", "natural")]
    return [{"n": n, "t": 5, "k": k, "result": r, **LEAKS} for n, (k, r) in enumerate(kinds, 1)]


def everything(outputs: Any) -> str:
    """All that a driver said, as text and as hex."""
    told = [to_json(o, at=None, masked=False) for o in outputs if isinstance(o, DeviceEvent)]
    return json.dumps(told) + repr(outputs)


def assert_discreet(outputs: Any) -> None:
    text = everything(outputs)
    assert "hole_card_checked" in text
    assert "chatter" in text
    assert "8S" not in text
    assert "3853" not in text


@each_result
@pytest.mark.parametrize("form", ["controlled", "reader"])
def test_a_device_that_tells_the_card_is_not_passed_on(form: str, result: Any) -> None:
    """In keys of its own, in the answer, in events, in packets that make no sense, and in text between."""
    bench = reader_bench(form, **LEAKS)
    bench.answers[PEEK] = {"result": result, **LEAKS}
    bench.answers[64, 1] = {"settings": dict(LEAKS), "crc": 1, **LEAKS}
    bench.ring = ring_of(result)
    bench.start()
    if form == "controlled":
        bench.command("a", "peek")
        bench.run(5.0)
        end = bench.ends["a"]
        assert end == Done({"result": "natural"}) if result == "natural" else isinstance(end, Unknown)
    bench.start()
    for piece in NOISE:
        bench.act(bench.driver.feed(piece, bench.now))
    bench.act(bench.driver.lost("unplugged", bench.now))
    assert_discreet(bench.log)


@each_result
def test_nor_does_a_capture_of_it_tell_the_card(result: Any) -> None:
    who = reader_bench(**LEAKS).answers[64, 0](None)
    ring = {"boot": 7, "oldest": 1, "next": 4, "events": ring_of(result), **LEAKS}
    peek = {"result": result, **LEAKS}
    wire = [frame(1, (64, 0), 1, who), frame(1, (65, 0), 2, ring), frame(1, PEEK, 3, peek)]
    driver = load(DRIVER).decoder(Setup("dev", Random(1)))
    said = [o for piece in [*NOISE, *wire, *NOISE] for o in driver.feed(piece, 0.0)]
    assert_discreet(said + list(driver.lost("end", 0.0)))
