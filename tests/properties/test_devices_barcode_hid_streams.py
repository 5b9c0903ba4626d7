"""Whatever reports are lost, doubled or spoilt: no wrong card, and each lost one is told as possibly lost."""

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from devices.base import Setup
from devices.events import CardDrawn, DeviceEvent, FrameRejected, GapPossible
from devices.readers.barcode_hid import SPEC
from simulators.models.cards import Stack, make_batch
from simulators.models.shoe import Shoe
from simulators.wire.barcode_hid import BarcodeReader

PAUSE_S = 0.3
"""Longer than a code may pause; two codes nearer to each other are told apart by their Enter alone."""

Timed = list[tuple[float, bytes]]


def codes(seed: int, cards: int, **switches: Any) -> tuple[list[str], list[Timed]]:
    """The faces of a shoe's cards, and the reports of each with the seconds since the first."""
    random = Random(seed)
    shoe = Shoe(random)
    pile = make_batch("red", 1)
    random.shuffle(pile)
    shoe.open_lid()
    shoe.load(Stack(pile[:cards]))
    shoe.close_lid()
    device = BarcodeReader(shoe, **switches)
    out: list[Timed] = []
    now = 0.0
    while not shoe.empty:
        shoe.draw()
        reports, start = [], now
        while (due := device.deadline()) is not None or not reports:
            now = max(now, due or now)
            reports += [(now - start, report) for report in device.packets(now)]
        out.append(reports)
    return [h.data["face"] for h in shoe.happenings if h.kind == "drawn"], out


def read(timed: Timed, **options: Any) -> list[DeviceEvent]:
    driver = SPEC.decoder(Setup("reader", Random(1), options=options, packets=True))
    events: list[Any] = []
    for at, report in timed:
        while (due := driver.deadline()) is not None and due < at:
            events += driver.tick(due)
        events += driver.feed(report, at)
    return [*events, *driver.lost("end of input", timed[-1][0] if timed else 0.0)]


def placed(codes_: list[Timed], pauses: list[float]) -> Timed:
    out: Timed = []
    now = 0.0
    for code, pause in zip(codes_, pauses, strict=False):
        out += [(now + at, report) for at, report in code]
        now = (out[-1][0] if out else now) + pause
    return out


def is_subsequence(some: list[str], whole: list[str]) -> bool:
    rest = iter(whole)
    return all(face in rest for face in some)


damages = st.lists(
    st.tuples(
        st.integers(0, 10_000),
        st.sampled_from(
            ["lose", "lose", "burst", "double", "modifier", "foreign", "cut", "longer", "rollover"]
        ),
        st.integers(0, 2**16),
    ),
    max_size=12,
)


def damaged(timed: Timed, plan: list[tuple[int, str, int]]) -> Timed:
    out: list[tuple[float, bytes] | None] = list(timed)
    for at, how, value in plan:
        place = at % len(out)
        found = out[place]
        if found is None:
            continue
        when, report = found
        match how:
            case "lose":
                out[place] = None
            case "burst":
                for n in range(place, min(len(out), place + value % 8)):
                    out[n] = None
            case "double":
                out[place] = None
                out[place:place] = [(when, report), (when, report)]
            case "modifier":
                out[place] = (when, bytes([1 << value % 8]) + report[1:])
            case "foreign":
                out[place] = (when, report[:2] + bytes([4 + value % 26]) + report[3:])
            case "cut":
                out[place] = (when, report[: value % 8])
            case "longer":
                out[place] = (when, report + bytes(1 + value % 4))
            case "rollover":
                out[place] = (when, report[:2] + b"\x01" * 6)
    return [found for found in out if found is not None and found[1]]


@settings(max_examples=150)
@given(st.integers(0, 2**20), st.integers(1, 8), damages, st.booleans(), st.integers(0, 2))
def test_damaged_reports_make_no_wrong_card_and_hide_no_lost_one(seed, cards, plan, rollover, repeats):
    truth, reports = codes(seed, cards, rollover=rollover, repeats=repeats)
    whole = placed(reports, [PAUSE_S] * cards)
    assert [e.card for e in read(whole) if isinstance(e, CardDrawn)] == truth
    events = read(damaged(whole, plan)) if plan else read(whole)
    told = [e.card for e in events if isinstance(e, CardDrawn)]
    assert is_subsequence(told, truth), "each told card left the shoe, in this order"
    gaps = [e for e in events if isinstance(e, GapPossible)]
    assert len(gaps) == len([e for e in events if isinstance(e, FrameRejected)])
    silent = sum(1 for code in placed_codes(whole, damaged(whole, plan), reports) if not code)
    assert len(told) + len(gaps) + silent >= len(truth), (
        "a card of which anything came is told or may be missing"
    )


def placed_codes(whole: Timed, left: Timed, reports: list[Timed]) -> list[Timed]:
    """Of each code, what came of its presses."""
    out, at = [], 0
    for code in reports:
        first, last = whole[at][0], whole[at + len(code) - 1][0]
        out.append([found for found in left if first <= found[0] <= last and any(found[1])])
        at += len(code)
    return out


@settings(max_examples=60)
@given(st.integers(0, 2**20), st.lists(st.floats(0.0, 0.5), min_size=2, max_size=12), st.booleans())
def test_no_time_keeps_a_second_card_away(seed, pauses, rollover):
    truth, reports = codes(seed, len(pauses), rollover=rollover)
    events = read(placed(reports, pauses))
    assert [e.card for e in events] == truth


@settings(max_examples=60)
@given(st.integers(0, 2**20), st.integers(1, 6), st.lists(st.integers(1, 40), min_size=1, max_size=40))
def test_any_pieces_of_a_stream_of_reports_give_the_same(seed, cards, sizes):
    _, reports = codes(seed, cards)
    stream = b"".join(report for code in reports for _, report in code)
    driver = SPEC.decoder(Setup("reader", Random(1)))
    whole = [*driver.feed(stream, 0.0), *driver.lost("end of input", 0.0)]
    pieces, at = [], 0
    for size in sizes * len(stream):
        if at >= len(stream):
            break
        pieces.append(stream[at : at + size])
        at += size
    driver = SPEC.decoder(Setup("reader", Random(1)))
    again = [e for piece in pieces for e in driver.feed(piece, 0.0)] + list(driver.lost("end of input", 0.0))
    assert again == whole
    assert len(whole) == cards


@settings(max_examples=100)
@given(st.lists(st.binary(max_size=12), max_size=60))
def test_any_reports_at_all_are_survived_and_bounded(reports):
    driver = SPEC.decoder(Setup("reader", Random(1), packets=True))
    for at, report in enumerate(reports):
        events = driver.feed(report, at * 0.01) if report else ()
        assert all(len(e.raw) <= 64 for e in events if isinstance(e, FrameRejected))
    assert len(driver._raw) <= 512
