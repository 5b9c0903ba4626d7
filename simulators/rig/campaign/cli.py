"""`cutcard campaign`."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated

import typer

from controller.cli.exits import FINE, FOUND, CommandError
from simulators.rig.cli import INTERRUPTED, Json, MachineError

if TYPE_CHECKING:
    from simulators.rig.campaign.result import Summary

SHOES = 100
MOST_SHOES, MOST_WORKERS, LONGEST_SEED = 1_000_000, 256, 100


def campaign(
    *,
    shoes: Annotated[
        str | None, typer.Option(metavar="N", help=f"shoes to play [default: {SHOES}]", show_default=False)
    ] = None,
    seed: Annotated[
        str | None, typer.Option(metavar="S", help="the same seed plays the same [default: a new one]")
    ] = None,
    faults: Annotated[
        str, typer.Option(metavar="all|none|NAME,...", help="what goes wrong: faults, or layers of them")
    ] = "all",
    workers: Annotated[
        str | None, typer.Option(metavar="N", help="processes that play [default: one a core]")
    ] = None,
    replay: Annotated[
        str | None, typer.Option(metavar="SEED:SHOE", help="play the three shoes around this one again")
    ] = None,
    script: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            readable=False,
            help="with --replay: these faults instead of the drawn ones, at the table that SHOE opens",
        ),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="leave what a replay wrote in this directory")
    ] = None,
    as_json: Json = False,
) -> None:
    """Play shoes under seeded faults and judge the table by where the cards really are."""
    from firmware_bridge.clock import SystemClock
    from simulators.faults.script import ScriptError
    from simulators.rig.campaign import kept, plan, run
    from simulators.rig.campaign.journals import MachineFailed, journals
    from simulators.rig.campaign.scripted import with_script
    from simulators.rig.campaign.workers import play
    from simulators.rig.progress import Progress
    from simulators.rig.signals import ended_by_signals
    from simulators.rig.sim import Misused, script_in

    count = SHOES if shoes is None else _number("--shoes", shoes, MOST_SHOES)
    processes = _cores() if workers is None else _number("--workers", workers, MOST_WORKERS)
    try:
        chosen = plan.chosen(faults)
    except plan.UnknownFault as error:
        raise CommandError(str(error)) from error
    shoe = None
    if keep is not None and replay is None:
        raise CommandError("--keep goes with --replay SEED:SHOE: a campaign leaves no journals")
    if script is not None and (replay is None or faults != "all"):
        raise CommandError("--script goes with --replay SEED:SHOE alone: it takes the place of all faults")
    if replay is not None:
        if workers is not None:
            raise CommandError("--replay plays in one process: no --workers")
        named, shoe = _shoe_of(replay)
        if seed not in (None, named):
            raise CommandError(f"--replay {replay}: its seed is {named!r}, not {seed[:LONGEST_SEED]!r}")
        seed = named
        count = run.end_of_block(shoe) if shoes is None else count
        if shoe > count:
            raise CommandError(f"--replay {replay}: the campaign had {count} shoes")
    elif seed is None:
        seed = str(SystemRandom().randrange(10**9))
        print(f"cutcard: seed {seed}", file=sys.stderr, flush=True)
    wanted, scripted = run.Campaign(_seed(seed), count, chosen), None
    if script is not None and shoe is not None:
        try:
            scripted = with_script(wanted.plan(shoe, wanted.block_of(shoe)[1]), script_in(script))
        except Misused as error:
            raise CommandError(str(error)) from error
        except ScriptError as error:
            raise CommandError(f"--script {script}: {error}") from error
    if keep is not None:
        _make_empty(keep)
    clock = SystemClock()
    begun, progress = clock.now(), Progress(clock.now)
    summary, interrupted = None, False
    try:
        with ended_by_signals():
            if shoe is None:
                summary = play(
                    wanted, processes, lambda so_far: progress(lambda: _so_far(so_far, wanted.shoes))
                )
            else:
                with journals() as directory:
                    if scripted is not None:
                        summary = run.table(wanted.seed, scripted, str(script), directory, keep)
                    else:
                        summary = run.block(wanted, *wanted.block_of(shoe), directory, keep)
            if scripted is None:
                run.shrink(wanted, summary, progress.tell)
    except MachineFailed as error:
        raise MachineError(str(error)) from error
    except KeyboardInterrupt:
        interrupted = True
    finally:
        progress.end()
    if summary is not None:  # what was found is told, even when the least of it was still looked for
        look = [] if keep is None else [kept.as_text(keep)]
        text = "\n\n".join([summary.as_text(wanted.seed, clock.now() - begun, chosen), *look])
        _print(json.dumps(summary.as_json(wanted.seed, chosen)) if as_json else text)
    if summary is None or interrupted:
        left = "nothing is left behind" if keep is None else f"what is there of it is in {keep}"
        print(f"cutcard: stopped; {left}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(FINE if summary.clean else FOUND)


def _print(text: str) -> None:
    """On stdout; the verdict is the same when nobody reads it. Raises MachineError when it has no room."""
    try:
        with suppress(BrokenPipeError):
            print(text, flush=True)
    except OSError as error:
        raise MachineError(f"what was found cannot be written: {error.strerror}") from error


def _make_empty(keep: Path) -> None:
    """A new directory, or one that is empty."""
    try:
        keep.mkdir(parents=True, exist_ok=True)
        left = next(keep.iterdir(), None)
    except OSError as error:
        raise CommandError(f"--keep {keep}: {error.strerror}") from error
    if left is not None:
        raise CommandError(f"--keep {keep}: {left.name} is in it; name a new or an empty directory")


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _number(option: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= most):
        raise CommandError(f"{option} {text[:LONGEST_SEED]!r}: write a whole number from 1 to {most}")
    return int(text)


def _seed(text: str, option: str = "--seed") -> str:
    """Any printable text, so that it can be typed again."""
    if not (0 < len(text) <= LONGEST_SEED and text.isprintable() and text.strip() == text):
        raise CommandError(
            f"{option} {text[:LONGEST_SEED]!r}: write 1 to {LONGEST_SEED} printable characters"
        )
    return text


def _shoe_of(replay: str) -> tuple[str, int]:
    """SEED:SHOE; a seed may hold colons itself."""
    seed, colon, shoe = replay.rpartition(":")
    if not colon:
        raise CommandError(f"--replay {replay[:LONGEST_SEED]!r}: write SEED:SHOE, as the campaign told it")
    return _seed(seed, "--replay SEED:SHOE: SEED"), _number("--replay SEED:SHOE: SHOE", shoe, MOST_SHOES)


def _so_far(summary: Summary, shoes: int) -> str:
    failures = f"{len(summary.failures)} failure{'s' * (len(summary.failures) != 1)}"
    kinds = f"{len(summary.faults)} kinds of fault"
    return f"{summary.shoes} of {shoes} shoes: {failures}, {kinds}, {summary.restarts} restarts"
