"""Goal 9: whole six-deck shoes a second, played by two processes side by side as a campaign does.

The floor is the pure rules alone, told the same by the same two processes at the same time.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO

from controller.service import Reply
from controller.table.draft import Decision
from controller.table.inputs import Input
from controller.table.profiles import BatchRules, TableRules
from controller.table.rules import decide
from controller.table.state import TableState
from simulators.rig import child
from simulators.rig.bench_rows import NOW, Row
from simulators.rig.campaign.journals import journals
from simulators.rig.campaign.plan import Plan
from simulators.rig.campaign.run import play
from simulators.rig.stepped import Stepped

WORKERS = 2
PER_S = 6
"""Shoes a second, of all workers together: a worker has a third of a second for each."""
ROUNDS = 5
"""The floor and the shoes take turns, for the pace of a machine changes; the best of each counts."""
SHOES = 2
"""Of one table, in each round."""
DECKS = 6
AGAIN = 4
"""How often a round's floor is run through: it is short."""
SHARE = 0.05
"""The whole stack may cost twenty times what the rules do."""
PLAY, FLOOR = "play", "floor"
CHILD = child.code("simulators.rig.bench_campaign", "main", child.KILLED)


@dataclass(frozen=True, slots=True)
class Pace:
    """What one worker did since it was told to, and the processor time that it took (s)."""

    shoes: int
    events: int
    cpu: float = 0.0


def rates(decks: int = DECKS, shoes: int = SHOES, rounds: int = ROUNDS) -> Iterator[Row]:
    """Shoes and events a second of all workers together."""
    with ExitStack() as stack:
        workers = [stack.enter_context(_worker(decks, shoes)) for _ in range(WORKERS)]
        _together(workers, PLAY)  # until all is loaded, nothing is timed
        told = [(_together(workers, FLOOR), _together(workers, PLAY)) for _ in range(rounds)]
    yield from rows([floor for floor, _ in told], [played for _, played in told])


Told = tuple[float, Sequence[Pace]]


def rows(floors: Sequence[Told], rounds: Sequence[Told]) -> Iterator[Row]:
    """The rows of what the workers did, each round with its seconds."""

    def best(told: Sequence[Told], what: Callable[[Pace], int]) -> float:
        return max(sum(map(what, paces)) / seconds for seconds, paces in told)

    shoes = best(rounds, lambda pace: pace.shoes)
    name = f"six-deck shoes a second, {WORKERS} workers"
    yield Row(9, name, shoes, "/s", None, PER_S, at_least=True)
    cpu = min(pace.cpu / pace.shoes for _, paces in rounds for pace in paces)
    yield Row(9, "processor time of a six-deck shoe", cpu, "s", None, round(WORKERS / PER_S, 3))
    events, floor = (best(told, lambda pace: pace.events) for told in (rounds, floors))
    name = "simulated events a second (floor: the rules alone)"
    yield Row(9, name, events, "/s", floor, SHARE, at_least=True)


def _together(workers: Sequence[subprocess.Popen[str]], what: str) -> Told:
    """Tell all workers the same, and wait for the last of them."""
    start = NOW()
    for worker in workers:
        print(what, file=_of(worker.stdin), flush=True)
    answers = [_of(worker.stdout).readline() for worker in workers]
    seconds = NOW() - start
    if not all(answers):
        raise RuntimeError("a worker ended by itself; what it says of that is above")
    return seconds, [Pace(**json.loads(answer)) for answer in answers]


def _worker(decks: int, shoes: int) -> subprocess.Popen[str]:
    """It ends when its input does."""
    pipe, command = subprocess.PIPE, [sys.executable, "-P", "-c", CHILD, str(decks), str(shoes)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


def _of(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


# --- a worker ---


def table(decks: int) -> TableRules:
    return TableRules("BENCH-1", 7, decks, (BatchRules("A", "red"), BatchRules("B", "blue")))


def whole(rules: TableRules, shoes: int, directory: Path) -> Pace:
    """Play a table of the campaign, with nothing going wrong. Raises RuntimeError when something does."""
    outcome = play(Plan("two-batch-shoe", rules, seed="bench", shoes=shoes), directory)
    if outcome.failures or outcome.played != shoes:
        raise RuntimeError(f"a table that is measured did not play well: {outcome}")
    return Pace(outcome.played, outcome.events)


@dataclass(frozen=True, slots=True)
class Shoes:
    """What the rules of a table were told from `state` on, and how many shoes that were."""

    rules: TableRules
    state: TableState
    told: Sequence[Input]
    shoes: int

    def decide(self) -> Pace:
        """The rules once more, and nothing else. Raises RuntimeError when they decide otherwise."""
        state = self.state
        for item in self.told:
            decision = decide(self.rules, state, item)
            if not isinstance(decision, Decision):
                raise RuntimeError(f"the rules refuse what they took before: {decision}")  # noqa: TRY004
            if decision.states:
                state = decision.states[-1]
        return Pace(self.shoes, state.seq - self.state.seq)


def noted(rules: TableRules, shoes: int) -> Shoes:
    """Play once, and note all that the rules are told."""
    world, told = Stepped(rules, "bench", shoes), list[Input]()
    state, handle = world.service.state, world.service.handle

    def noting(inputs: Sequence[Input]) -> list[Reply]:
        told.extend(inputs)
        return handle(inputs)

    world.service.handle = noting  # type: ignore[method-assign]
    world.run()
    return Shoes(rules, state, told, shoes)


def floor(shoes: Shoes, times: int) -> Pace:
    paces = [shoes.decide() for _ in range(times)]
    return Pace(sum(pace.shoes for pace in paces), sum(pace.events for pace in paces))


def main() -> None:
    """Do what each line of the input says, and write a line of JSON. Arguments: decks, shoes of a round."""
    decks, shoes = map(int, sys.argv[1:])
    rules = table(decks)
    with journals() as directory:
        acts: dict[str, Callable[[], Pace]] = {
            PLAY: partial(whole, rules, shoes, directory),
            FLOOR: partial(floor, noted(rules, 1), AGAIN),
        }
        gc.freeze()
        gc.disable()  # as a worker of the campaign
        for line in sys.stdin:
            start = time.process_time()
            pace = acts[line.strip()]()
            print(json.dumps(asdict(replace(pace, cpu=time.process_time() - start))), flush=True)
            gc.collect()


GOALS = (("goal 9, whole shoes in two processes", rates),)
