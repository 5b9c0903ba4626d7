"""A device behind a line that can be bad; any host can serve it."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from simulators.faults import menu
from simulators.faults.fault import Fault, UnfitFault
from simulators.faults.line import HOLDS, IN, OUT, Pieces
from simulators.faults.script import ANY, Director, Step, near, quoted
from simulators.hosts.cable import Cable
from simulators.models.machine import Machine, Trap, Traps
from simulators.wire.device import Outbox, WireDevice, earliest
from simulators.wire.uart import misheard

LEAVING = frozenset({"drawn", "dealt"})
"""The happenings by which a machine gives a card out."""
RATE = 1000
_A = {"trap": "a trap", "setting": "a setting", "act": "an act"}


class Line:
    """Carries bytes between `device` and its host, and does what its steps say. `cable` comes from the host.

    `struck` counts by fault what really happened. UnfitFault at once for steps that are unknown, or that this
    device or its port cannot have. With nothing to do it changes nothing.
    """

    def __init__(
        self, device: WireDevice, random: Random, steps: Sequence[Step] = (), name: str = ""
    ) -> None:
        self.device = device
        self.name = name
        self.traps = Traps()
        self.director = Director(self._strike)
        self.latency = 0.0
        self.local_echo = False
        self.baud = 1.0
        self._random = random
        self._base = 0
        self._sources: dict[str, Random] = {}
        self._packets: Callable[[float], list[bytes]] | None = getattr(device, "packets", None)
        self._cable: Cable | None = None
        self._faults: list[Fault] = []
        self._struck: Counter[str] = Counter()
        self._trapped = [self.traps]
        self._acts: list[tuple[Trap, Fault, Any]] = []
        self._hearing = False
        self._after: list[tuple[Fault, Any]] = []  # acts that wait until the device is through
        self._out = Outbox()
        self._free_at = 0.0
        self._held: tuple[str, bytes] | None = None
        self._deaf_until = self._mute_until = self._stolen_until = -math.inf
        self._timers: list[tuple[float, int, Callable[[], object]]] = []
        self._order = 0
        self._now = device.machine.now
        self._seen = len(device.machine.happenings)
        for step in steps:
            self.add(step)

    @property
    def machine(self) -> Machine:
        return self.device.machine

    @property
    def struck(self) -> Counter[str]:
        return sum((traps.struck for traps in self._trapped), self._struck)

    @property
    def wanted(self) -> list[str]:
        """The faults that were laid on it, each once."""
        return list(dict.fromkeys(fault.name for fault in self._faults))

    @property
    def cable(self) -> Cable | None:
        return self._cable

    @cable.setter
    def cable(self, cable: Cable | None) -> None:
        for fault in self._faults:
            _check_cable(fault, cable)
        self._cable = cable

    def __getattr__(self, name: str) -> Any:
        """What a host asks a device of its own kind."""
        if name.startswith("_") or name == "device":
            raise AttributeError(name)
        return getattr(self.device, name)

    # Steps

    def add(self, step: Step) -> None:
        """One more fault. Raises UnfitFault."""
        self._look()
        fault, value = self._found(step)
        self._check(fault, step)
        _check_cable(fault, self._cable)
        self._faults.append(fault)
        if step.card is not None and self._is_of_that_card(fault):
            self._lay(fault, value, step.card - self.director.cards)
        elif step.waits:
            self.director.add(step)
        elif fault.kind == "trap":
            self._lay(fault, value, step.nth, step.chance)
        elif step.nth is not None or step.chance is not None:
            trap = Trap(step.nth, value, fault.name, step.chance, self._source(fault, step.chance))
            self._acts.append((trap, fault, value))
        elif fault.kind == "setting":
            self._do(fault, value)
        else:
            self._after.append((fault, value))

    def later(self, seconds: float, action: Callable[[], object]) -> None:
        self._order += 1
        heapq.heappush(self._timers, (self._now + seconds, self._order, action))

    def steal(self, seconds: float) -> None:
        """Another program reads too and gets each byte as often as the host does."""
        self._stolen_until = self._now + seconds

    def cut(self) -> None:
        """What is on the line is lost."""
        self._out.clear()
        self._held = None

    def mend(self) -> None:
        """A technician was here: nothing laid on port, line or device goes wrong any more.

        What the device is set to stays, and so does what waits for its moment.
        """
        self.traps.mend()
        self._acts.clear()
        self._deaf_until = self._mute_until = self._stolen_until = -math.inf
        self.baud, self.local_echo, self.latency = 1.0, False, 0.0
        for undo in ("replug", "free", "flow"):
            getattr(self._cable, undo, lambda: None)()
        for bearer in (self.device, self.machine):
            if (traps := getattr(bearer, "traps", None)) is not None:
                traps.mend()

    def _found(self, step: Step) -> tuple[Fault, Any]:
        fault = menu.find(step.fault)
        return fault, menu.value_of(fault, self._target(fault), step.value)

    def _target(self, fault: Fault) -> WireDevice:
        return self if fault.layer in ("line", "cable") else self.device

    def _check(self, fault: Fault, step: Step) -> None:
        alone = step.command is None and step.nth is not None
        if (alone or step.chance is not None) and not fault.occasion:
            raise UnfitFault(
                f"{fault.name} has no occasions, so no nth (@N) and no chance: it is {_A[fault.kind]}"
            )
        if step.card is not None and not self._gives_cards:
            raise UnfitFault(f"{fault.name} at a card: no cards come out of this device")
        if step.card is not None and step.card <= self.director.cards:
            raise UnfitFault(f"{fault.name} at card {step.card}: {self.director.cards} have left already")
        if step.command is not None:
            known = getattr(self.device, "commands", ())
            if not known:
                raise UnfitFault(f"{fault.name} at a command: this device hears none")
            if step.command != ANY and step.command not in known:
                raise UnfitFault(
                    f"there is no command {quoted(step.command)}{near(step.command, known)} (there are "
                    f"{', '.join(known)} and {ANY})"
                )
            self.device.heard = self._hear  # type: ignore[attr-defined]

    @property
    def _gives_cards(self) -> bool:
        return hasattr(self.machine, "draw") or hasattr(self.machine, "deal") or self._feeds

    @property
    def _feeds(self) -> bool:
        """A shuffler gives out nothing by itself; its cards are counted as it feeds them."""
        return hasattr(self.machine, "fed_at")

    def _is_of_that_card(self, fault: Fault) -> bool:
        return fault.kind == "trap" and fault.occasion.startswith("card") and not self._feeds

    def _strike(self, step: Step) -> None:
        fault, value = self._found(step)
        if fault.kind == "trap":
            self._lay(fault, value, 1)
        elif fault.kind == "act" and self._hearing:
            self._after.append((fault, value))
        else:
            self._do(fault, value)

    def _hear(self, command: str) -> None:
        self._hearing = True
        self.director.command(command)
        self._hearing = False

    def _lay(self, fault: Fault, value: Any, at: int | None, chance: float | None = None) -> None:
        source = self._source(fault, chance)
        traps = menu.lay(fault, self._target(fault), value, at, chance=chance, random=source)
        if traps is not None and not any(traps is other for other in self._trapped):
            self._trapped.append(traps)

    def _do(self, fault: Fault, value: Any) -> None:
        if fault.layer == "cable" and self._cable is None:
            raise UnfitFault(f"{fault.name}: the line is at no port")
        menu.lay(fault, self._target(fault), value)
        self._struck[fault.name] += 1

    def _source(self, fault: Fault, chance: float | None) -> Random | None:
        """Each step with a chance draws from its own, so that one more step moves none of other faults."""
        if chance is None:
            return None
        before = sum(name.startswith(f"{fault.name} ") for name in self._sources)
        return self._drawing(f"{fault.name} {before + 1}")

    def _drawing(self, name: str) -> Random:
        if name not in self._sources:
            self._base = self._base or self._random.getrandbits(64)
            self._sources[name] = Random(f"{self._base}/{name}")
        return self._sources[name]

    # Time

    def advance(self, now: float) -> None:
        while self._faults and (due := self._next()) is not None and due <= now:
            self._move(max(due, self._now))
            while self._timers and self._timers[0][0] <= due:
                heapq.heappop(self._timers)[2]()
            self.director.advance(due)
            for step in self._fed(due):
                self.director.go(step)
        self._move(now)

    def deadline(self) -> float | None:
        if not self._faults:
            return self.device.deadline()
        soon = self._now if self._after else None
        return earliest(self.device.deadline(), self._out.deadline(), self._next(), soon)

    def _move(self, now: float) -> None:
        self.device.advance(now)
        self._now = now
        self._settle()

    def _next(self) -> float | None:
        if not self._timers and not self.director:
            return None
        fed = (at for step in self._waiting_to_be_fed() if (at := self._fed_at(step)) is not None)
        return earliest(self._timers[0][0] if self._timers else None, self.director.deadline(), *fed)

    def _fed(self, due: float) -> list[Step]:
        return [s for s in self._waiting_to_be_fed() if (at := self._fed_at(s)) is not None and at <= due]

    def _waiting_to_be_fed(self) -> list[Step]:
        return self.director.waiting("card") if self._feeds else []

    def _fed_at(self, step: Step) -> float | None:
        at: float | None = self.machine.fed_at(step.card)  # type: ignore[attr-defined]
        return at

    def _settle(self) -> None:
        """After the device did anything."""
        if self._faults:
            self._look()
        after, self._after = self._after, []
        for fault, value in after:
            self._do(fault, value)

    def _look(self) -> None:
        """Count the cards that have left."""
        happenings = self.machine.happenings
        while self._seen < len(happenings):
            self._seen += 1
            if happenings[self._seen - 1].kind in LEAVING:
                self.director.card()

    # To the device

    def receive(self, data: bytes, now: float) -> None:
        if not self._faults:
            self.device.receive(data, now)
            return
        self.advance(now)
        if self.local_echo:
            self._put([(0.0, data)])
        if trap := self.traps.sprung("deaf"):
            self._deaf_until = now + trap.seconds(math.inf)
        if now < self._deaf_until:
            return
        for _, piece in self._bent(IN, data):
            self.device.receive(self._misheard(piece, self.baud, 1.0), now)
        self._settle()

    # From the device

    def transmit(self, now: float) -> bytes:
        return b"".join(self.packets(now))

    def packets(self, now: float) -> list[bytes]:
        """As `transmit`, piece by piece."""
        if self._faults:
            self.advance(now)
        self._now = now
        if self._packets is not None:
            pieces = self._packets(now)
        else:
            pieces = [said] if (said := self.device.transmit(now)) else []
        if not self._faults:
            return pieces
        self._settle()
        for piece in pieces:
            self._carry(piece)
        return self._out.pieces(now)

    def _carry(self, piece: bytes) -> None:
        for act, fault, value in self._acts:
            if act.springs():
                self._do(fault, value)
        if trap := self.traps.sprung("mute"):
            self._mute_until = self._now + trap.seconds(math.inf)
        if self._now < self._mute_until:
            return
        how, before = self._held or ("", b"")
        self._held = None
        if how == "merge":
            piece = before + piece
        pieces = self._bent(OUT, piece)
        for name in HOLDS:
            if (trap := self.traps.sprung(name)) and pieces:
                self._hold(name, b"".join(part for _, part in pieces), trap.value)
                pieces = []
        self._put(pieces)
        if how == "reorder":
            self._put([(0.0, before)])
        if again := self.traps.sprung("duplicate"):
            self._put(pieces) if not again.value else self.later(again.value, lambda: self._put(pieces))

    def _hold(self, name: str, data: bytes, seconds: float) -> None:
        self._held = held = (name, data)

        def release() -> None:
            if self._held is held:
                self._held = None
                self._put([(0.0, data)])

        self.later(seconds, release)

    def _bent(self, bends: Any, piece: bytes) -> Pieces:
        pieces = [(0.0, piece)]
        for name, bend in bends.items():
            if trap := self.traps.sprung(name):
                pieces = [
                    (delay + more, part)
                    for delay, data in pieces
                    for more, part in bend(data, trap.value, self._drawing(name))
                ]
        return pieces

    def _put(self, pieces: Pieces) -> None:
        """Send these off, behind all that is on its way."""
        start = max(self._now, self._free_at)
        for delay, data in pieces:
            if self._now < self._stolen_until:
                toss = self._drawing("second_reader")
                data = bytes(byte for byte in data if toss.random() < 0.5)
            at = start + delay
            if self.latency:
                at = math.ceil(at / self.latency) * self.latency
            self._free_at = max(self._free_at, at)
            if data:
                self._out.put(at, self._misheard(data, 1.0, self.baud))

    def _misheard(self, data: bytes, sent: float, read: float) -> bytes:
        return data if self.baud == 1.0 else misheard(data, round(sent * RATE), round(read * RATE))


def _check_cable(fault: Fault, cable: Cable | None) -> None:
    if fault.cable and cable is not None and fault.cable not in cable.can:
        raise UnfitFault(f"{fault.name}: this kind of port cannot have this fault")
