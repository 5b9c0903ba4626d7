"""Logging: JSON lines, no error out of a log call, cheap when filtered, never an error's own text."""

from __future__ import annotations

import io
import json
import os
import threading
import timeit

import pytest

from controller import log


def lines(out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_json_lines_with_context_and_bytes_as_hex() -> None:
    out = io.StringIO()
    log.configure("info", out)
    logger = log.get().bind(table="T1", boot="00", device="shoe")
    logger.info("fact", fact=7, token=b"\x01\xff")
    logger.debug("frame", raw=b"secret")
    (line,) = lines(out)
    assert line.pop("timestamp")
    context = {"table": "T1", "boot": "00", "device": "shoe"}
    assert line == {**context, "fact": 7, "token": "01ff", "event": "fact", "level": "info"}


def test_a_terminal_gets_readable_text() -> None:
    out = io.StringIO()
    log.configure("info", out, console=True)
    log.get().info("ready", socket="/run/x")
    assert "ready" in out.getvalue()
    assert not out.getvalue().startswith("{")


def test_a_reader_that_left_costs_lines_and_nothing_else() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    pipe = os.fdopen(writing, "w")
    log.configure("info", pipe)
    for _ in range(3):
        log.get().info("fact")
    with pytest.raises(BrokenPipeError):
        pipe.close()
    log.get().info("after the stream was closed")


def test_lines_of_many_threads_stay_whole() -> None:
    out = io.StringIO()
    log.configure("info", out)
    logger = log.get()

    def write(name: str) -> None:
        for number in range(50):
            logger.info("fact", thread=name, number=number)

    threads = [threading.Thread(target=write, args=(f"t{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(out)) == 200


def test_a_filtered_call_costs_two_microseconds_at_most() -> None:
    log.configure("info", io.StringIO())
    logger = log.get().bind(table="T1")
    best = min(timeit.repeat(lambda: logger.debug("frame", device="shoe", n=1), number=2000, repeat=7)) / 2000
    assert best <= 2e-6


def test_where_tells_the_place_and_not_the_words() -> None:
    try:
        raise ValueError("the unseen card is 8S")
    except ValueError as error:
        told = log.where(error)
    assert told.startswith("ValueError at test_log_lines.py:")
    assert told.endswith(" test_where_tells_the_place_and_not_the_words")
    assert "8S" not in told
    assert log.where(KeyError("8S")) == "KeyError"
