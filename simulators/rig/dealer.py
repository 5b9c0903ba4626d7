"""The simulated dealer: a step machine over the facts that carries out the script of his table's mode.

Lock-step: the next act comes only when every fact of the last one is journaled and no command is pending.
People do not forget when the daemon restarts: a tap in flight is sent again under the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simulators.rig.acts import SETTLE_S, TRIES, Acts
from simulators.rig.dealer_continuous import Continuous
from simulators.rig.dealer_one_batch import OneBatch
from simulators.rig.dealer_poker import DeckPerRound
from simulators.rig.dealer_two_batch import TwoBatches
from simulators.rig.felt import Felt
from simulators.rig.referee import custody_of
from simulators.rig.steps import Count, Pause, Script, Step, Stuck, Tap, Until, args_of
from simulators.rig.view import View

SCRIPTS: dict[str, type[Acts]] = {
    "two-batch-shoe": TwoBatches,
    "hand-dealt": TwoBatches,
    "manual-shoe": OneBatch,
    "continuous": Continuous,
    "deck-per-round": DeckPerRound,
}
"""Who plays a table of each mode."""
_RETRY = frozenset({"device_absent", "shuffler_busy", "shoe_busy", "stopping", "stopped"})
"""Refusals that only mean: not yet, or not with this daemon."""
_FIRST = {"fault_latched": "clear", "inspection_due": "inspect", "reader_first": "peek"}
"""Refusals that name what mends them: the event among `expected` that comes first."""


class Dealer:
    """Plays `shoes` shoes. `made` are decisions that are taken whatever the cards say.

    `unhurried` false saves time by resting once a round instead of after each card. `refused` is the answer
    to the last tap that was refused and should not have been; `sent` is the last tap, `heard` its answer.
    """

    def __init__(
        self,
        felt: Felt,
        view: View,
        seed: object,
        shoes: int,
        *,
        made: Sequence[bool] | None = None,
        unhurried: bool = False,
    ) -> None:
        self.felt, self.view = felt, view
        self.acts = SCRIPTS[felt.rules.mode](felt, view, seed, shoes, made)
        self.done = False
        self._seed = seed
        self._unhurried = unhurried
        self._owed = 0.0
        self._taps = 0
        self._sent_at = 0
        self._unsettled_at: int | None = None
        self._in_flight: dict[str, Any] | None = None
        self._queued: list[Tap] = []
        self._retry: tuple[int, Tap] | None = None
        self._tries = 0
        self._step: Step = None
        self._wake: float | None = None
        self._script = self.acts.play()
        self.refused: Mapping[str, Any] | None = None
        self.sent: Mapping[str, Any] = {}
        self.heard: Mapping[str, Any] = {}
        self._slip = False

    def wrap(self, around: Callable[[Script], Script]) -> None:
        """From here on play by what `around` makes of the script."""
        self._script = around(self._script)

    def take_over(self, script: Script) -> None:
        """From here on play by this script; what was about to be tapped or awaited is forgotten."""
        self._unsettled_at = None
        self._script, self._step, self._wake, self._owed = script, None, None, 0.0
        self._queued, self._retry, self.refused = [], None, None

    @property
    def quiet(self) -> bool:
        """Everything that happened is journaled: simulated time may pass."""
        return self._in_flight is None and self._retry is None and self.settled()

    @property
    def wake(self) -> float | None:
        """When the dealer goes on by himself."""
        return self._wake

    def settled(self) -> bool:
        """Every event of the machines is a fact, and no command is pending. Only a fact can settle it."""
        view, felt = self.view, self.felt
        if view.seq == self._unsettled_at:
            return False
        settled = not view.pending and len(view.up) == len(felt.wires) and view.seen == felt.newest()
        self._unsettled_at = None if settled else view.seq
        return settled

    def turn(self, now: float) -> list[dict[str, Any]]:
        """Go on as far as the facts allow; requests to send, each with its key."""
        requests: list[dict[str, Any]] = []
        while not self.done and not requests and self._may_go_on(now):
            self._wake = None
            if self._queued:
                requests.append(self._request(self._queued.pop(0)))
                continue
            try:
                self._step = next(self._script)
            except StopIteration:
                self.done = True
                break
            if isinstance(self._step, Tap):
                self._tries = 0
                requests.append(self._request(self._step))
            elif isinstance(self._step, Count):
                self._in_flight = {"get": "status"}
                requests.append(self._in_flight)
            elif isinstance(self._step, Pause):
                self._owed += self._step.seconds
                if self._owed and (self._unhurried or self._step.seconds >= SETTLE_S):
                    self._wake, self._owed = now + self._owed, 0.0
        return requests

    def answered(self, answer: Mapping[str, Any]) -> None:
        """The daemon answered the tap in flight. Raises Stuck for a refusal that no patience mends."""
        request, self._in_flight = self._in_flight, None
        if request is None or answer.get("id") != request.get("id"):
            raise Stuck(f"an answer nobody waited for: {answer}")
        if "get" in request:
            self.felt.referee.check(custody_of(answer["status"]))
            return
        self.heard = answer
        if answer["ok"] or self._slip:
            return
        tap = Tap(request["do"], args_of(request), request.get("by", ""))
        self.refused = answer
        self._tries += 1
        mends = _FIRST.get(answer["refused"])
        first = [Tap.of(text) for text in answer.get("expected", ()) if text.split()[0] == mends]
        if self._tries > TRIES:
            raise Stuck(f"{tap.event} was refused {TRIES} times: {answer}")
        if first:
            self._queued = [*first, tap]
        elif answer["refused"] in _RETRY:
            self._retry = (self._sent_at, tap)
        else:
            raise Stuck(f"{tap.event} {dict(tap.args)} was refused: {answer}")

    def reconnected(self) -> dict[str, Any] | None:
        """The tap in flight when the daemon went away, to be sent again under its key."""
        return self._in_flight

    def _request(self, tap: Tap) -> dict[str, Any]:
        self._taps += 1
        by = {"by": tap.by} if tap.by else {}
        key = tap.id or f"{self._seed}/{self._taps}"
        self._in_flight = self.sent = {"do": tap.event, "id": key, **by, **tap.args}
        self._slip = tap.slip
        self._sent_at = self.view.seq
        return self._in_flight

    def _may_go_on(self, now: float) -> bool:
        if self._in_flight is not None:
            return False
        if self._retry is not None:
            since, tap = self._retry
            if self.view.seq <= since or not self.settled():
                return False
            self._retry, self._queued = None, [tap]
        if not self.settled():
            return False
        if isinstance(self._step, Until) and not self._step.ready():
            return False
        return self._wake is None or now >= self._wake

    @property
    def doing(self) -> str:
        """What is waited for, for people."""
        if self._in_flight is not None:
            return f"an answer to {self._in_flight}"
        if not self.settled():
            missing = {k: v for k, v in self.felt.newest().items() if self.view.seen.get(k) != v}
            return f"facts of {missing or self.view.pending or 'devices that are not up'}"
        return self._step.what if isinstance(self._step, Until) else "the next act"
