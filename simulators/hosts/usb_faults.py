"""What goes wrong on a simulated USB device, and when: popped call by call."""

from __future__ import annotations

import errno
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal


@dataclass(frozen=True, slots=True)
class Fault:
    """`error` or `timeout` with an errno, `unimplemented`, or `short`: only `number` bytes pass."""

    kind: Literal["error", "timeout", "unimplemented", "short"]
    number: int | None = None


STALL = Fault("error", errno.EPIPE)
OVERFLOW = Fault("error", errno.EOVERFLOW)
GONE = Fault("error", errno.ENODEV)
BUSY = Fault("error", errno.EBUSY)
DENIED = Fault("error", errno.EACCES)
IO = Fault("error", errno.EIO)
NAMELESS = Fault("error", None)
UNIMPLEMENTED = Fault("unimplemented")
TIMEOUTS = tuple(Fault("timeout", number) for number in (110, 60, 10060, None))
"""One error, four numbers: Linux, macOS, Windows, and back ends that give none."""
EMPTY = Fault("short", 0)
"""For "in": a zero-length packet that nobody asked for."""

Step = Fault | Callable[[], object] | None

WIRE: dict[str, tuple[Fault, ...]] = {
    "bulk_write": (STALL, IO, *TIMEOUTS, Fault("short", 1)),
    "in": (STALL, OVERFLOW, IO, *TIMEOUTS, EMPTY),
    "ctrl_transfer": (STALL, IO, *TIMEOUTS),
}
"""What a seeded plan draws from."""


class FaultPlan:
    """Steps by the name of a back end's method, or "in" for how an IN transfer ends; None lets a call pass.

    A callable step is called first and the call goes on, so a test can pull the plug at exactly that moment.
    When nothing is planned, `random` (if given) strikes `rate` of the calls that WIRE names. "short" is for
    writes and, with 0 bytes, for "in".
    """

    def __init__(self, random: Random | None = None, rate: float = 0.0) -> None:
        self.struck: list[tuple[str, Fault]] = []
        self._random = random
        self._rate = rate
        self._steps: defaultdict[str, deque[Step]] = defaultdict(deque)

    def add(self, call: str, *steps: Step) -> None:
        self._steps[call].extend(steps)

    def pop(self, call: str) -> Fault | None:
        """The fault for this call."""
        steps = self._steps[call]
        step: Step = None
        if steps:
            step = steps.popleft()
        elif self._random is not None and call in WIRE and self._random.random() < self._rate:
            step = self._random.choice(WIRE[call])
        if callable(step):
            step()
            return None
        if step is not None:
            self.struck.append((call, step))
        return step
