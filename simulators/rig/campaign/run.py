"""The shoes of a campaign, in blocks of three: the unit of work and of replay.

In a block tables are opened one after another. Each gets the plan of its first shoe and plays to the block's
end; where one stops early, another is opened with the next shoe.
"""

from __future__ import annotations

import re
import shutil
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import simulators
from simulators.rig.campaign import plan as plans
from simulators.rig.campaign.journals import MachineFailed, journals
from simulators.rig.campaign.kept import Kept
from simulators.rig.campaign.listening import Listening
from simulators.rig.campaign.plan import Plan
from simulators.rig.campaign.result import Failure, Found, Outcome, Summary, replay_command
from simulators.rig.campaign.scripted import text_of, with_script
from simulators.rig.campaign.shrink import shortest
from simulators.rig.campaign.table import Table

BLOCK = 3
ROOM = 1 << 20
"""Bytes that must still be free where a table failed."""
LEAST = "least.yaml"
"""What the shortest script is called in the command that plays it."""
MOST_SHRUNK = 3
"""Kinds of failure for which the shortest script is looked for: the first ones."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """`shoes` are played from `seed`; `faults` are names or layers, None for all and () for none."""

    seed: str
    shoes: int
    faults: tuple[str, ...] | None = None

    def blocks(self) -> Iterator[tuple[int, int]]:
        """First and last shoe of each."""
        for first in range(1, self.shoes + 1, BLOCK):
            yield first, min(first + BLOCK - 1, self.shoes)

    def block_of(self, shoe: int) -> tuple[int, int]:
        last = end_of_block(shoe)
        return last - BLOCK + 1, min(last, self.shoes)

    def plan(self, first: int, last: int) -> Plan:
        """The table that is opened with shoe `first`."""
        whole = plans.draw(self.seed, first, end_of_block(first) - first + 1, self.faults)
        return replace(whole, shoes=last - first + 1)

    def options(self, last: int) -> Sequence[str]:
        """What a replay of the block that ends with `last` must be told beside its seed and shoe."""
        names = () if self.faults is None else ("--faults", ",".join(self.faults) or "none")
        return (*names, *(() if last % BLOCK == 0 else ("--shoes", str(last))))


def end_of_block(shoe: int) -> int:
    """The last shoe of a whole block with this one."""
    return shoe + -shoe % BLOCK


def block(campaign: Campaign, first: int, last: int, directory: Path, keep: Path | None = None) -> Summary:
    """Play shoes `first` to `last`; the files of each table stay in `keep`, if they are to."""
    summary, shoe = Summary(), first
    while shoe <= last:
        outcome = play(campaign.plan(shoe, last), directory, keep)
        again = [
            replay_command(campaign.seed, min(failure.shoe, last), *campaign.options(last))
            for failure in outcome.failures
        ]
        told = _told(outcome, shoe, last, again)
        summary.add(told)
        shoe += told.shoes
    return summary


def table(seed: str, plan: Plan, file: str, directory: Path, keep: Path | None = None) -> Summary:
    """Play one table alone, whose faults are those of the script `file`."""
    outcome = play(plan, directory, keep)
    again = replay_command(seed, plan.first, *_scripted(plan, file))
    return _told(outcome, plan.first, plan.first + plan.shoes - 1, [again] * len(outcome.failures))


def _scripted(plan: Plan, file: str) -> Sequence[str]:
    """What plays this table with a script, beside its seed and first shoe."""
    last = plan.first + plan.shoes - 1
    return (*(() if last % BLOCK == 0 else ("--shoes", str(last))), "--script", file)


def _told(outcome: Outcome, first: int, last: int, again: Sequence[str]) -> Summary:
    """What one table adds, that was opened with shoe `first`; `again`: how to see each of its failures.

    A shoe that is replaced early makes one more of the table's own: beyond `last` it counts as that.
    """
    return Summary(
        shoes=min(max(outcome.shoes, 1), last - first + 1),
        played=outcome.played,
        tables=1,
        rounds=outcome.rounds,
        cards=outcome.cards,
        events=outcome.events,
        simulated_s=outcome.simulated_s,
        restarts=outcome.restarts,
        faults=+outcome.struck,
        stopped=Counter([outcome.stopped] if outcome.stopped else []),
        counters=outcome.counters,
        failures=[
            Found(min(failure.shoe, last), first, failure.what, command)
            for failure, command in zip(outcome.failures, again, strict=True)
        ],
    )


def play(plan: Plan, directory: Path, keep: Path | None = None) -> Outcome:
    """One table, whose files go afterwards, or stay in `keep`. An error that nobody caught is a failure, too.

    Raises MachineFailed when journals find no room any more: no table is to blame for that.
    """
    home = directory / str(plan.first)
    try:
        home.mkdir()
        try:
            outcome = _opened(plan, home, keep).play()
        except MachineFailed:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is: the campaign goes on, and tells it
            outcome = Outcome(1, failures=[Failure(plan.first, _crash(error, home))])
        if outcome.failures:
            (home / "room").write_bytes(bytes(ROOM))
    except OSError as error:
        raise MachineFailed(
            f"no room for journals in {directory.parent} ({error.strerror}): free some, and play it again"
        ) from error
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return outcome


def _opened(plan: Plan, home: Path, keep: Path | None) -> Listening | Table:
    if plan.rules is None:
        return Listening(plan)
    return Table(plan, home) if keep is None else Kept(plan, home, keep / f"shoe-{plan.first}")


def _crash(error: Exception, home: Path) -> str:
    """What an exception is called, and the newest place of ours in it."""
    house = Path(simulators.__file__).parents[1]
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if house in Path(frame.filename).parents and frame.line]
    where = ""
    if ours:
        where = f" in {Path(ours[-1].filename).relative_to(house)}, line {ours[-1].lineno}"
    return f"{type(error).__name__}{where}: {str(error).replace(str(home), 'its journal')}"


def shrink(campaign: Campaign, summary: Summary, tell: Callable[[str], None]) -> None:
    """Put the shortest script to the first failures of each kind."""
    known: set[str] = set()
    with journals() as directory:
        for found in summary.failures:
            kind = kind_of(found.what)
            if kind in known or len(known) == MOST_SHRUNK:
                continue
            known.add(kind)
            tell(f"looking for the least that makes shoe {found.shoe} fail")
            plan = campaign.plan(found.opened, campaign.block_of(found.opened)[1])
            least = _least(plan, found.shoe, kind, directory)
            if least is not None:
                found.table, found.script = least.table, text_of(least.steps)
                found.scripted = replay_command(campaign.seed, least.first, *_scripted(least, LEAST))


def _least(plan: Plan, shoe: int, kind: str, directory: Path) -> Plan | None:
    """The plan with as few shoes and steps as still give this kind of failure; None: it came once only.

    The last thing tried is the script as it will be printed.
    """

    def fails(tried: Plan) -> bool:
        return any(kind_of(failure.what) == kind for failure in play(tried, directory).failures)

    until = replace(plan, shoes=shoe - plan.first + 1)
    if fails(until):
        plan = until
    elif not fails(plan):
        return None
    steps = shortest(plan.steps, lambda steps: fails(replace(plan, steps=steps)))
    least = replace(plan, steps=steps)
    fewer = (replace(least, shoes=shoes) for shoes in range(1, least.shoes))
    least = next((tried for tried in fewer if fails(tried)), least)
    return least if fails(with_script(least, text_of(least.steps))) else None


def kind_of(what: str) -> str:
    """What two failures have in common: the words up to a colon, whatever the numbers and cards."""
    return re.sub(r"\b[A2-9TJQK][CDHS]\b|\d+(\.\d+)?", "#", what.partition(":")[0])
