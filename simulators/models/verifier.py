"""A machine that calculates signatures of its own programs when it is asked to, and takes its time."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha1
from random import Random

from simulators.models.machine import CannotDo, Machine

IDLE, REQUESTED, CALCULATING, FINISHED, ERROR = "idle", "requested", "calculating", "finished", "error"
SLOW_S = 20 * 60.0 - 30.0
REQUESTED_S = 0.3


@dataclass(frozen=True, slots=True)
class Task:
    """What was asked for. Without `component` a list of what can be asked for; `salt` as it was written."""

    component: str | None = None
    salt: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished task at time `at` (s); `digest` in upper-case hex."""

    task: Task
    digest: str | None
    at: float


def programs(random: Random) -> dict[str, bytes]:
    """The programs of a shuffler, as images of random bytes."""
    names = ("SimShuffler_UI_2.0.254", "SimShuffler_CardRec_5.0.023", "SimShuffler_Games_1.0.095")
    return {name: random.randbytes(4096) for name in names}


class Verifier(Machine):
    """Holds `components`, program images by name, and one outcome at a time.

    A task lies for `pickup` s before it is begun: so long the state before it is told. It takes `duration` s.
    Traps, counted per task: slow (value s, default just under 20 minutes), error.
    """

    def __init__(
        self,
        components: Mapping[str, bytes],
        *,
        duration: float = 2.0,
        pickup: float = 0.0,
        now: float = 0.0,
    ) -> None:
        super().__init__(now=now)
        self.components = components
        self.duration = duration
        self.pickup = pickup
        self.state = IDLE
        self.outcome: Outcome | None = None
        self._task = Task()
        self._takes = 0.0
        self._due: float | None = None
        self._lying = False

    def begin(self, task: Task) -> None:
        """CannotDo `busy` during another task, `unknown` for a component that is not there."""
        if self._due is not None:
            raise CannotDo("busy", "another calculation is under way")
        if task.component is not None and task.component not in self.components:
            raise CannotDo("unknown", f"there is no component {task.component!r}")
        slow = self.traps.sprung("slow")
        self._takes = self.duration if slow is None else float(slow.value or SLOW_S)
        self._task, self._lying = task, True
        self._due = self.now + self.pickup
        if not self.pickup:
            self._happen_by_itself()

    def _next_by_itself(self) -> float | None:
        return self._due

    def _happen_by_itself(self) -> None:
        if self._lying:
            self._lying, self.outcome, self.state = False, None, REQUESTED
            self._due = self.now + min(REQUESTED_S, self._takes / 2)
        elif self.state == REQUESTED:
            self.state = CALCULATING
            self._due = self.now + self._takes - min(REQUESTED_S, self._takes / 2)
        else:
            self._due = None
            self.state = ERROR if self.traps.sprung("error") else FINISHED
            if self.state == FINISHED:
                self.outcome = Outcome(self._task, self._digest(self._task), self.now)
            self._happen("calculated", component=self._task.component, state=self.state)

    def _digest(self, task: Task) -> str | None:
        """HMAC-SHA1 with the salt's bytes as key, plain SHA-1 without one."""
        if task.component is None:
            return None
        image = self.components[task.component]
        if task.salt is None:
            return sha1(image, usedforsecurity=False).hexdigest().upper()
        return (
            hmac.new(bytes.fromhex(task.salt.lower().removeprefix("0x")), image, "sha1").hexdigest().upper()
        )

    def _forget(self) -> None:
        self.state, self.outcome, self._due = IDLE, None, None
