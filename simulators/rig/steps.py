"""What the simulated dealer can do next, and how his scripts are written: a generator of steps."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Tap:
    """`by` is the role of somebody else than the dealer; without it he taps with every role.

    `id` is that of an earlier tap which is sent once more. A `slip` may be refused: it goes on all the same.
    """

    event: str
    args: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""
    id: str = ""
    slip: bool = False

    @classmethod
    def of(cls, text: str) -> Tap:
        """A tap as `expected` and `cutcard do` write it."""
        event, *pairs = text.split()
        return cls(event, dict(pair.split("=", 1) for pair in pairs))


def args_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """What a request of a tap says beside its event, its id and whose it is."""
    return {name: value for name, value in request.items() if name not in ("do", "id", "by")}


@dataclass(frozen=True, slots=True)
class Until:
    """Wait for what no tap can bring."""

    ready: Callable[[], bool]
    what: str


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Count:
    """A quiet point: the controller's custody must equal the cards on the felt."""


Step = Tap | Until | Pause | Count | None
"""None only waits until everything is journaled."""
Script = Generator[Step, None, None]


class Stuck(Exception):
    """The dealer cannot go on; the text says where and why."""
