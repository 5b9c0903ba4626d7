"""`cutcard campaign`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated

import typer

from controller.cli.exits import DEVICE, FINE, FOUND, CommandError

if TYPE_CHECKING:
    from simulators.rig.campaign.result import Summary
    from simulators.rig.campaign.run import Campaign

INTERRUPTED = 130
SHOES = 100
MOST_SHOES, MOST_WORKERS, LONGEST_SEED = 1_000_000, 256, 100
TELL_AFTER_S, TELL_EVERY_S = 2.0, 1.0


class _Lost(CommandError):
    """What plays failed, not the table: nothing is known of it."""

    code = DEVICE


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
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="leave what a replay wrote in this directory")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object instead of text")] = False,
) -> None:
    """Play shoes under seeded faults and judge the table by where the cards really are."""
    from firmware_bridge.clock import SystemClock
    from simulators.rig.campaign import kept, plan, run
    from simulators.rig.campaign.journals import MachineFailed, journals
    from simulators.rig.campaign.workers import play
    from simulators.rig.live import ended_by_signals

    count = SHOES if shoes is None else _number("--shoes", shoes, MOST_SHOES)
    processes = _cores() if workers is None else _number("--workers", workers, MOST_WORKERS)
    try:
        chosen = plan.chosen(faults)
    except plan.UnknownFault as error:
        raise CommandError(str(error)) from error
    shoe = None
    if keep is not None and replay is None:
        raise CommandError("--keep goes with --replay SEED:SHOE: a campaign leaves no journals")
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
    if keep is not None:
        _make_empty(keep)
    wanted = run.Campaign(_seed(seed), count, chosen)
    clock = SystemClock()
    begun, progress = clock.now(), _Progress(clock.now, wanted)
    try:
        with ended_by_signals():
            if shoe is None:
                summary = play(wanted, processes, progress)
            else:
                with journals() as directory:
                    summary = run.block(wanted, *wanted.block_of(shoe), directory, keep)
            run.shrink(wanted, summary, progress.tell)
            progress.end()
    except MachineFailed as error:
        progress.end()
        raise _Lost(str(error)) from error
    except KeyboardInterrupt:
        progress.end()
        left = "nothing is left behind" if keep is None else f"what is there of it is in {keep}"
        print(f"cutcard: stopped; {left}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    with suppress(BrokenPipeError):  # the verdict is the same when nobody reads it
        if as_json:
            print(json.dumps(summary.as_json(wanted.seed, chosen)), flush=True)
        else:
            look = [] if keep is None else [kept.as_text(keep)]
            print("\n\n".join([summary.as_text(wanted.seed, clock.now() - begun, chosen), *look]), flush=True)
    raise typer.Exit(FINE if summary.clean else FOUND)


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


def _seed(text: str) -> str:
    """Any printable text, so that it can be typed again."""
    if not (0 < len(text) <= LONGEST_SEED and text.isprintable() and text.strip() == text):
        raise CommandError(f"--seed {text[:LONGEST_SEED]!r}: write 1 to {LONGEST_SEED} printable characters")
    return text


def _shoe_of(replay: str) -> tuple[str, int]:
    """SEED:SHOE; a seed may hold colons itself."""
    seed, colon, shoe = replay.rpartition(":")
    if not colon:
        raise CommandError(f"--replay {replay[:LONGEST_SEED]!r}: write SEED:SHOE, as the campaign told it")
    return _seed(seed), _number("--replay SEED:SHOE: SHOE", shoe, MOST_SHOES)


class _Progress:
    """What changed, at most once a second, on stderr; the first line after two seconds."""

    def __init__(self, now: Callable[[], float], campaign: Campaign) -> None:
        self._now, self._campaign = now, campaign
        self._next = now() + TELL_AFTER_S
        self._told = ""

    def __call__(self, so_far: Summary) -> None:
        if self._now() < self._next:
            return
        self._next = self._now() + TELL_EVERY_S
        failures = f"{len(so_far.failures)} failure{'s' * (len(so_far.failures) != 1)}"
        self.tell(
            f"{so_far.shoes} of {self._campaign.shoes} shoes: {failures}, "
            f"{len(so_far.faults)} kinds of fault, {so_far.restarts} restarts"
        )

    def tell(self, text: str) -> None:
        from simulators.rig.demo import tell_stderr

        if text != self._told:
            tell_stderr(text)
        self._told = text

    def end(self) -> None:
        if self._told and sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
