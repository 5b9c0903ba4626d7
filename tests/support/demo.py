"""A demo's world for tests: a daemon as its own process on real ptys, killed where a test wants it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from controller.cli.client import ask
from controller.factlog import Verdict
from controller.journal import JournalReader, verify
from controller.render import entry_json
from controller.table.evolve import evolve
from controller.table.state import TableState, initial
from controller.table.view import snapshot
from simulators.rig.demo import Place, on_ptys, set_up
from simulators.rig.live import Live


@contextmanager
def small_demo(
    seed: object, shoes: int, decks: int = 6, speed: float | None = None
) -> Iterator[tuple[Place, Live]]:
    table = TABLE.replace("decks_per_batch = 6", f"decks_per_batch = {decks}")
    with set_up(table) as place, on_ptys(place, seed, shoes, speed) as live:
        yield place, live


TABLE = """\
[table]
id = "KILL-1"
boxes = 7
[cards]
decks_per_batch = 6
cutting_card = "yellow"
batch = [{ id = "A", back = "red" }, { id = "B", back = "blue" }]
[devices.shoe]
driver = "managed-shoe"
port = "serial:/dev/null"
[devices.shuffler]
driver = "managed-shuffler"
port = "serial:/dev/zero"
"""


def journal_facts(place: Place) -> dict[int, dict[str, object]]:
    """Every fact of the journal as the follow stream shows it live."""
    with JournalReader(place.journal, place.key) as reader:
        return {entry.seq: entry_json(entry, masked=True) for entry in reader.entries()}


def state_of(place: Place, since: int) -> TableState:
    """The state folded from all facts of the journal up to `since`, by a reader of its own."""
    state = initial(place.rules, seq=1)
    with JournalReader(place.journal, place.key) as reader:
        for entry in reader.entries(1):
            if entry.seq <= since:
                state = evolve(state, entry.fact)
    return state


def killed_again_and_again(seed: object, kills: int, *, shoes: int, decks: int) -> Verdict:
    """Play a demo whose daemon is killed `kills` times at random; everything a kill may break is asserted."""
    random = Random(f"{seed}/kills")
    with small_demo(seed, shoes, decks) as (place, live):
        live.start()
        gap = decks * 52 * shoes * 13 // 10 // kills
        for _ in range(kills):
            point = live.view.seq + random.randint(max(1, gap // 2), gap)
            live.run(lambda point=point: live.view.seq >= point)
            for _ in range(
                random.randint(0, 6)
            ):  # somewhere inside a turn of the daemon, not only after a fact
                if not live.dealer.done:
                    live.turn()
            if live.dealer.done:
                break
            killed_once(place, live)
        live.run(lambda: False)
        assert live.view.starts == kills + 1
        assert live.stop() == 0
        referee = live.felt.referee
        referee.check()
        assert referee.violations == []
        assert (
            live.view.batches
            == referee.shoes
            == [b for b, _ in zip("AB" * shoes, range(shoes), strict=False)]
        )
        assert live.view.cards == referee.cards == decks * 52 * shoes
        assert set(live.view.faults.values()) <= {"start_unknown"}
        assert journal_facts(place).items() >= live.acknowledged.items()
        return verify(place.journal, place.key)


def untimed(value: Any) -> Any:
    """A part of a status without the clock times that the service adds."""
    if isinstance(value, dict):
        return {name: untimed(v) for name, v in value.items() if not name.endswith(("since_at", "gone_at"))}
    return [untimed(v) for v in value] if isinstance(value, list) else value


def killed_once(place: Place, live: Live) -> None:
    live.kill()
    known = dict(live.acknowledged)
    journaled = journal_facts(place)
    assert journaled.items() >= known.items(), "an acknowledged fact is gone"
    before = state_of(place, max(journaled))
    live.start()
    live.run(lambda: live.view.seq > max(journaled))
    after = journal_facts(place)
    booted = after[max(journaled) + 1]
    assert booted["kind"] == "booted", "the first fact of a new daemon comes right after the last one"
    again = state_of(place, max(journaled) + 1)
    for name in ("phase", "round", "rounds", "shoe", "batches", "faults"):
        assert getattr(again, name) == getattr(before, name), f"{name} changed by the restart itself"
    status = ask(place.control, {"get": "status"})["status"]
    folded = snapshot(place.rules, state_of(place, status["fact"]))
    told = {name: untimed(status[name]) for name in folded}
    assert told == folded, "the daemon believes what its journal says"
    assert status["shoe"]["batch"] in (None, *live.felt.referee.shoes[-1:])
