"""The benchmark's rows of the drivers: what they are fed, what there is, what bounds it. Nothing is timed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from devices.events import FrameRejected, GapPossible
from devices.registry import load
from devices.shufflers.reshuffled import TOO_SOON
from simulators.rig import bench, bench_drivers
from simulators.rig.bench_drivers import ASKED, FED, STREAM, Asked, Fed, decoders, exchanges
from simulators.rig.bench_exchanges import driver_exchanges, simulator


@pytest.mark.parametrize("fed", FED, ids=lambda fed: fed.name)
def test_a_driver_is_fed_what_it_understands(fed: Fed) -> None:
    stream, driver = fed.stream(), fed.decoder()
    size = fed.piece
    events = [e for at in range(0, len(stream), size) for e in driver.feed(stream[at : at + size], 0.0)]
    assert len(stream) >= STREAM
    assert driver.counters.frames >= STREAM // 100
    assert not [e for e in events if isinstance(e, FrameRejected | GapPossible)]


@pytest.mark.parametrize("fed", FED, ids=lambda fed: fed.name)
def test_what_is_begun_again_and_again_is_never_whole(fed: Fed) -> None:
    driver = fed.decoder()
    for _ in range(200):
        driver.feed(fed.begun, 0.0)
    assert driver.counters.frames == 0


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.name)
def test_what_is_asked_is_a_command_of_its_driver(asked: Asked) -> None:
    assert asked.command in {c.name for c in load(asked.name).commands if not c.moves_cards}


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.name)
def test_what_is_asked_is_answered_at_once(asked: Asked) -> None:
    with simulator(1, asked.name) as (_, (path,)):
        times = driver_exchanges(path, 3, asked.name, asked.command, rest_s=asked.rest_s)
    assert len(times) == 3


def test_a_question_that_is_asked_again_is_no_measure() -> None:
    asked = next(asked for asked in ASKED if asked.name == "reshuffled")
    with simulator(1, asked.name) as (_, (path,)), pytest.raises(RuntimeError, match="ask 'init' again"):
        driver_exchanges(path, 3, asked.name, asked.command, rest_s=TOO_SOON)


def test_each_driver_has_its_rows_and_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def no_simulator(count: int, device: str) -> Iterator[tuple[None, list[Path]]]:
        yield None, [Path(device)] * count

    monkeypatch.setattr(bench_drivers, "simulator", no_simulator)
    monkeypatch.setattr(bench_drivers, "seconds", lambda fed, stream: len(stream) / load(fed.name).baud)
    monkeypatch.setattr(bench_drivers, "grown", lambda *_: 16 * 1024 + 1)
    monkeypatch.setattr(bench_drivers, "raw_exchanges", lambda *_: [1e-3])
    monkeypatch.setattr(bench_drivers, "driver_exchanges", lambda *_, **__: [5.5e-3])
    rows = {row.name: row for row in (*decoders(), *exchanges())}
    told = {
        name: (row.goal, row.ratio and round(row.ratio, 1), row.goal_text, row.ok)
        for name, row in rows.items()
    }
    assert told == {
        **{
            f"{name} driver, 1 {piece} a call": (1, 10.0, ">= 50x", False)
            for name, piece in (
                ("bee-tek", "byte"), ("reshuffled", "byte"), ("gat", "byte"), ("barcode-hid", "report"),
            )
        },
        **{
            f"{name} driver, memory in 128 KiB of junk": (1, None, "<= 16 KiB", False)
            for name in ("bee-tek", "reshuffled", "gat", "barcode-hid")
        },
        **{
            f"{name} exchange over a pty, {which}": (2, 5.5, limit, ok)
            for name in ("reshuffled", "gat", "hole-card-reader")
            for which, limit, ok in (("p50", "<= 5x", False), ("p99", "<= 6x", True))
        },
    }  # fmt: skip
    assert set(bench_drivers.GOALS) <= set(bench.GOALS)
