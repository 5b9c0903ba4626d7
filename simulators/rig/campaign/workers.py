"""Processes that play blocks side by side. They end with their parent, and leave nothing behind.

A worker reads the first and last shoe of a block as a line, and writes the block's summary as one.
"""

from __future__ import annotations

import gc
import json
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO

from simulators.rig import child
from simulators.rig.campaign.journals import MachineFailed, journals
from simulators.rig.campaign.result import Summary, replay_command
from simulators.rig.campaign.run import Campaign, block

CHILD = child.code("simulators.rig.campaign.workers", "work", child.KILLED)
TELL_S = 1.0
FAILED = "failed"
"""Key of a worker's last line, when its machine failed it."""


class WorkerLost(MachineFailed):
    """A worker ended by itself; the text says how to play what it was playing."""


class Worker:
    """One process, which plays one block at a time."""

    def __init__(self, campaign: Campaign, directory: Path) -> None:
        """Start it in a session of its own: Ctrl-C reaches the parent alone, and that ends it."""
        self.block = (0, 0)
        self._campaign = campaign
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", CHILD, json.dumps(asdict(campaign)), str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def begin(self, block: tuple[int, int]) -> None:
        self.block = block
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(b"%d %d\n" % block)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._lost() from None

    def ended(self) -> Summary:
        """What it played. Blocks until it is told; raises MachineFailed."""
        line = self.output.readline()
        if not line.endswith(b"\n"):
            raise self._lost()
        told = json.loads(line)
        if FAILED in told:
            raise MachineFailed(told[FAILED])
        return Summary.of(told)

    def _lost(self) -> WorkerLost:
        first, last = self.block
        again = replay_command(self._campaign.seed, first, *self._campaign.options(last))
        return WorkerLost(
            f"the process that played shoes {first} to {last} ended by itself, with {self._process.wait()}; "
            f"see whether it does so again: {again}"
        )

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def _started(campaign: Campaign, directory: Path, count: int) -> Iterator[list[Worker]]:
    with ExitStack() as stack:
        workers = []
        for _ in range(count):
            workers.append(Worker(campaign, directory))
            stack.callback(workers[-1].close)
        yield workers


def play(campaign: Campaign, count: int, tell: Callable[[Summary], None]) -> Summary:
    """All blocks, played by `count` processes; `tell` hears what is played so far. Raises MachineFailed."""
    blocks = list(campaign.blocks())
    coming, done, so_far = iter(blocks), dict[tuple[int, int], Summary](), Summary()
    with (
        journals() as directory,
        _started(campaign, directory, min(count, len(blocks))) as workers,
        selectors.DefaultSelector() as busy,
    ):
        for worker in workers:
            busy.register(worker.output, selectors.EVENT_READ, worker)
            worker.begin(next(coming))
        while busy.get_map():
            for key, _ in busy.select(TELL_S):
                worker = key.data
                summary = done[worker.block] = worker.ended()
                so_far.add(summary)
                if (block := next(coming, None)) is not None:
                    worker.begin(block)
                else:
                    busy.unregister(worker.output)
            tell(so_far)
    total = Summary()
    for block in blocks:
        total.add(done[block])
    return total


def work() -> None:
    """The life of a worker."""
    sheet = json.loads(sys.argv[1])
    faults = sheet.pop("faults")
    campaign = Campaign(**sheet, faults=None if faults is None else tuple(faults))
    directory, answers = Path(sys.argv[2]), sys.stdout
    sys.stdout = sys.stderr  # what anything prints must not be taken for an answer
    gc.freeze()
    gc.disable()  # what a block leaves is collected after it
    for line in sys.stdin:
        first, last = map(int, line.split())
        try:
            told = block(campaign, first, last, directory).plain()
        except MachineFailed as error:
            told = {FAILED: str(error)}
        print(json.dumps(told), file=answers, flush=True)
        gc.collect()
