"""What every simulated machine has: time, power, a boot counter, and a list of what happened to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from simulators.models.cards import Stack


@dataclass(frozen=True, slots=True)
class Happening:
    """A physical fact at time `at` (s), as the machine's own sensors saw it."""

    at: float
    kind: str
    data: Mapping[str, Any]


class CannotDo(Exception):
    """The machine or the world does not let this happen; `why` is one word of the model's own."""

    def __init__(self, why: str, message: str) -> None:
        super().__init__(message)
        self.why = why


@dataclass(slots=True)
class Trap:
    """A prepared fault: springs at the `at`-th occasion, with `chance` at each, or with neither at each."""

    at: int | None
    value: Any
    label: str
    chance: float | None = None
    random: Random | None = None
    occasions: int = 0

    def seconds(self, usual: float) -> float:
        """Its value in seconds, or what is usual."""
        return usual if self.value is None else float(self.value)

    def count(self, usual: int = 1) -> int:
        """Its value as a number of things, or what is usual."""
        return usual if self.value is None else int(self.value)

    def springs(self) -> bool:
        self.occasions += 1
        if self.chance is not None and self.random is not None:
            return self.random.random() < self.chance
        return self.at is None or self.occasions == self.at


class Traps:
    """Prepared faults by name; `struck` counts by label (the name, where it has none) which really sprang."""

    def __init__(self) -> None:
        self.struck: Counter[str] = Counter()
        self._traps: dict[str, list[Trap]] = {}

    def set(
        self,
        name: str,
        at: int | None = None,
        value: Any = None,
        *,
        label: str = "",
        chance: float | None = None,
        random: Random | None = None,
    ) -> None:
        self._traps.setdefault(name, []).append(Trap(at, value, label or name, chance, random))

    def clear(self, name: str) -> None:
        """Mend it: nothing under this name springs any more."""
        self._traps.pop(name, None)

    def mend(self) -> None:
        """Mend everything; what struck stays counted."""
        self._traps.clear()

    def __contains__(self, name: str) -> bool:
        return name in self._traps

    def __bool__(self) -> bool:
        return bool(self._traps)

    def sprung(self, name: str) -> Trap | None:
        """Count one occasion for `name` and return the trap that springs at it."""
        if name not in self._traps:
            return None
        sprung = [trap for trap in self._traps[name] if trap.springs()]
        if not sprung:
            return None
        self.struck[sprung[0].label] += 1
        return sprung[0]


class Machine:
    """Base of the powered models. Acts happen at `self.now`: call `advance(now)` before an act.

    `happenings` only grows. A machine without power sees nothing. `sleeve` holds cards that a prepared
    fault took off the table, so that a count of all cards still comes out right.
    """

    def __init__(self, *, now: float = 0.0) -> None:
        self.now = now
        self.boot = 1
        self.booted_at = now
        self.powered = True
        self.happenings: list[Happening] = []
        self.traps = Traps()
        self.sleeve = Stack()
        self._power_back: float | None = None

    def advance(self, now: float) -> None:
        """Let everything happen that is due up to `now`, each at its own time."""
        while (due := self.deadline()) is not None and due <= now:
            self.now = max(self.now, due)
            if due == self._power_back:
                self._power_on()
            else:
                self._happen_by_itself()
        self.now = max(self.now, now)

    def deadline(self) -> float | None:
        """When something next happens by itself."""
        if not self.powered:
            return self._power_back
        return self._next_by_itself()

    def power_cut(self, off_s: float = 0.0) -> None:
        """Cut the power; it comes back by itself after `off_s` seconds."""
        if self.powered:
            self.powered = False
            self._forget()
        self._power_back = self.now + off_s
        if off_s <= 0:
            self._power_on()

    def _power_on(self) -> None:
        self._power_back = None
        self.powered = True
        self.boot += 1
        self.booted_at = self.now
        self._happen("booted", boot=self.boot)

    def _happen(self, kind: str, **data: Any) -> None:
        if self.powered:
            self.happenings.append(Happening(self.now, kind, data))

    def _next_by_itself(self) -> float | None:
        return None

    def _happen_by_itself(self) -> None:
        raise NotImplementedError

    def _forget(self) -> None:
        """Lose what a machine loses without power."""
