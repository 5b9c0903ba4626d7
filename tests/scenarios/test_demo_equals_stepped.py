"""The stepped world is the same world: its facts equal those of a run on real ptys, source by source."""

from __future__ import annotations

import threading

import pytest

from controller.journal import JournalReader
from simulators.rig.stepped import Stepped
from tests.support.demo import small_demo
from tests.support.facts import comparable

SOURCES = ("operator", "shoe", "shuffler")


@pytest.mark.parametrize(("seed", "shoes", "decks"), [("small", 3, 1), ("whole", 1, 6)])
def test_stepped_facts_equal_those_on_ptys(seed: str, shoes: int, decks: int) -> None:
    with small_demo(seed, shoes, decks) as (place, live):
        live.start()
        live.run(lambda: False)
        assert live.stop() == 0
        with JournalReader(place.journal, place.key) as reader:
            on_ptys = comparable(reader.entries(), SOURCES)
        rules = place.rules
    threads = threading.active_count()
    stepped = Stepped(rules, seed, shoes)
    stepped.run()
    stepped.close()
    assert threading.active_count() == threads
    by_hand = comparable(stepped.journal.entries(), SOURCES)
    for source in SOURCES:
        assert by_hand[source] == on_ptys[source]
    assert len(by_hand["shoe"]) > shoes * decks * 52
