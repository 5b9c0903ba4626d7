"""One slip of people at a table, and the words in which the rows are written (slips.py).

Each is refused or latched, never believed silently.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from simulators.rig.felt import Felt
from simulators.rig.steps import Script, Step, Tap
from simulators.rig.view import View

if TYPE_CHECKING:
    from simulators.rig.dealer import Dealer

REFUSED = "refused"
"""What must become of a slip, where it is no fault that must be latched."""


class Scene:
    """What a slip has in hand: the felt, the dealer, and what was just to be done (`step`)."""

    def __init__(self, felt: Felt, view: View, dealer: Dealer, random: Random) -> None:
        self.felt, self.view, self.dealer, self.random = felt, view, dealer, random
        self.rules = felt.rules
        self.step: Step = None

    @property
    def event(self) -> str:
        """The tap that comes next, if one does."""
        return self.step.event if isinstance(self.step, Tap) else ""

    def try_(self, event: str, by: str = "", **args: object) -> Tap:
        return Tap(event, args, by, slip=True)


Occasion = Callable[[Scene], bool]


@dataclass(frozen=True, slots=True)
class Slip:
    """`becomes` is `REFUSED` or the faults of which one must be latched, () where nothing can show it.

    `after`: the occasion is behind a step that was done, not before one that is to be done. `over`: what was
    in progress is over with it, and whoever goes on looks at the table first. `instead`: the step itself is
    done otherwise, and not once more. It `hides` cards until they are counted.
    """

    help: str
    occasion: Occasion
    act: Callable[[Scene], Script]
    becomes: str | Collection[str] = REFUSED
    after: bool = False
    over: bool = False
    instead: bool = False
    hides: bool = False


def during(*phases: str) -> Occasion:
    return lambda at: at.view.phase in phases


def before(*events: str) -> Occasion:
    return lambda at: at.event in events


def shoe_counts(at: Scene) -> bool:
    return not at.rules.by_eye and not at.rules.stacks
