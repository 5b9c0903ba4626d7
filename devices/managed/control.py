"""Commands of a managed device, beside the parked read of its events."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from devices.base import DriverOutput, Setup
from devices.managed.dialect import CommandDef, Dialect
from devices.managed.fields import Body, Malformed
from devices.managed.messages import IDENTITY, Ring, check_identity
from devices.managed.ring import PLAY_POLL
from devices.managed.session import RESTARTED, SWAPPED, Exchange, Managed, Phase, exchange
from firmware_bridge import link
from firmware_bridge.link import Complete, Done, NotSent, Unknown
from firmware_bridge.smp import Op

_COMMAND, _PROOF = "command", "proof"
_CACHED = 4
"""Write answers a device keeps."""


class ManagedControlled(Managed):
    """The command form: one command on the wire at a time, in order."""

    echoes = _CACHED
    """They push an earlier host's writes out of the cache: no answer of theirs can meet our commands."""

    def __init__(self, setup: Setup, dialect: Dialect) -> None:
        self._waiting: deque[tuple[str, CommandDef, Body]] = deque()
        self._running: str | None = None
        super().__init__(setup, dialect)

    def command(self, call_id: str, name: str, args: Mapping[str, Any], now: float) -> Sequence[DriverOutput]:
        if call_id == self._running or any(call_id == waiting for waiting, _, _ in self._waiting):
            return []
        try:
            wanted = self._dialect.find(name)
            body = wanted.body(args)
        except Malformed as wrong:
            return [Complete(call_id, NotSent(str(wrong)))]
        if self._phase is not Phase.READY:
            return [Complete(call_id, NotSent("there is no session with the device"))]
        if self._foreign:
            text = "another device than the known one is on the port: connect the right one"
            return [Complete(call_id, NotSent(text))]
        self._ring.in_play(now)
        self._waiting.append((call_id, wanted, body))
        return self._next(now)

    def _next(self, now: float) -> list[DriverOutput]:
        if self._running is not None or not self._waiting:
            return []
        call_id, wanted, body = self._waiting.popleft()
        self._running = call_id
        guarded = wanted.op is Op.WRITE
        return self._ask(replace(exchange(_COMMAND, wanted, body), guarded=guarded), now)

    def _told(self, ring: Ring, now: float, asked_at: float) -> list[DriverOutput]:
        out = super()._told(ring, now, asked_at)
        if self._running is not None:  # after 128 requests its answer would leave the device's cache
            self._ring.due = max(self._ring.due, now + PLAY_POLL)
        return out

    def _overdue(self, now: float) -> list[DriverOutput]:
        """A restart empties the device's answer cache, a repeat would act again: first ask who is there."""
        if _PROOF in self._asked or self._phase is not Phase.READY:
            return []  # an open one, for a command before this one, serves as well
        return self._ask(Exchange(_PROOF, Op.READ, IDENTITY, {}, check_identity), now)

    def _proved(self, outcome: link.Outcome, now: float) -> list[DriverOutput]:
        if not isinstance(outcome, Done):
            return self._fail(self._silent(outcome), now)
        if outcome.answer["serial"] != self._session["identity"]["serial"]:
            return self._restart(SWAPPED, now)
        if outcome.answer["boot"] != self._ring.boot:
            return self._restart(RESTARTED, now)
        return self._step(link.Again(_COMMAND), now)

    def _ended(self, call: str, outcome: link.Outcome, now: float) -> list[DriverOutput]:
        if call == _PROOF:
            self._asked.pop(call)
            return self._proved(outcome, now) if self._phase is Phase.READY else []
        if call != _COMMAND:
            return super()._ended(call, outcome, now)
        self._asked.pop(call)
        call_id, self._running = self._running, None
        assert call_id is not None
        out: list[DriverOutput] = [Complete(call_id, outcome)]
        if isinstance(outcome, Unknown):
            return [*out, *self._fail(outcome.reason, now)]
        return [*out, *self._next(now)]

    def _drop(self, reason: str, now: float) -> list[DriverOutput]:
        waiting, self._waiting = self._waiting, deque()
        return [
            *(Complete(call_id, NotSent(reason)) for call_id, _, _ in waiting),
            *super()._drop(reason, now),
        ]
