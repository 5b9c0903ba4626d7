"""One query at a time over one line, on top of `link`."""

from __future__ import annotations

from collections.abc import Hashable

from firmware_bridge import link
from firmware_bridge.framing.gat import IACR, Frame
from firmware_bridge.gat.messages import Part, read
from firmware_bridge.gat.queries import Ask, Pause, Query, Reply
from firmware_bridge.link import Complete, Done, Send, Unknown

ANSWER_S = 1.0
"""For each attempt: 0.2 s until the device answers, 0.27 s for its longest frame, and slow serial servers."""
REST_S = 0.01
"""The line rests so long after a frame."""
LATE_S = 3.0
"""An answer that comes later than that after its request is to somebody else's."""


class Talk:
    """Runs one query at a time over one line; its end is a Complete with the query's name.

    Most answers carry no number, so they are counted against the requests: `foreign` are those to somebody
    else's, and requests that are not ours; `repeats` are copies of an answer.
    """

    def __init__(self) -> None:
        self.foreign = self.repeats = self.retries = 0
        self._link = link.Link(window=1)
        self._name: str | None = None
        self._query: Query | None = None
        self._next: Ask | None = None
        self._at = 0.0
        """When `_next` may be sent, or the Pause is over."""
        self._rest_until = 0.0
        self._owed: dict[int, list[float]] = {}
        """Times of requests without their answer, by the answer's code."""
        self._sent = b""
        self._heard: dict[int, bytes] = {}
        """The last answer of each code."""

    @property
    def busy(self) -> bool:
        return self._query is not None

    def begin(self, name: str, query: Query, now: float) -> list[Send | Complete]:
        self._name, self._query = name, query
        return self._go(Reply(None, now), first=True)

    def received(self, frame: Frame, now: float) -> list[Send | Complete]:
        self._rest_until = now + REST_S
        message = read(frame)
        if message is None:
            self.foreign += frame.raw != self._sent  # some adapters give back what they send
            return []
        self._count(frame, now)
        key: Hashable = frame.code
        if isinstance(message, Part):
            key = (frame.code, message.number)
            wanted = self._link.pending[0].submit.key if self._link.pending else None
            if message.error and isinstance(wanted, tuple):
                key = wanted  # it may come without the number
        return self._step(link.Received(key, Done({"message": message})), now)

    def _count(self, frame: Frame, now: float) -> None:
        """Whose answer it is. A second IACR is no mere copy: somebody may have started something else."""
        owed = [at for at in self._owed.get(frame.code, []) if now - at <= LATE_S]
        self._owed[frame.code] = owed[1:]
        before, self._heard[frame.code] = self._heard.get(frame.code), frame.raw
        if not owed:
            copy = frame.raw == before and frame.code != IACR
            self.repeats += copy
            self.foreign += not copy

    def tick(self, now: float) -> list[Send | Complete]:
        out = self._step(link.Tick(), now)
        if self._query is not None and not self._link.pending and not self._link.queue and now >= self._at:
            out += self._ask(now) if self._next is not None else self._go(Reply(None, now))
        return out

    def lost(self, reason: str) -> list[Complete]:
        """The handle died: what is under way ends Unknown."""
        name, self._name, self._query, self._next = self._name, None, None, None
        self._link, self._owed = link.Link(window=1), {}
        return [] if name is None else [Complete(name, Unknown(reason))]

    def deadline(self) -> float | None:
        if self._query is None:
            return None
        due = self._link.deadline()
        return self._at if due is None and not self._link.queue else due

    def _go(self, reply: Reply, *, first: bool = False) -> list[Send | Complete]:
        assert self._query is not None
        try:
            item = next(self._query) if first else self._query.send(reply)
        except StopIteration as end:
            name, self._name, self._query, self._next = self._name, None, None, None
            assert name is not None
            return [Complete(name, end.value)]
        if isinstance(item, Pause):
            self._next, self._at = None, reply.now + item.seconds
            return []
        self._next, self._at = item, max(reply.now, self._rest_until)
        return self._ask(reply.now) if reply.now >= self._at else []

    def _ask(self, now: float) -> list[Send | Complete]:
        ask, self._next = self._next, None
        assert ask is not None
        return self._step(link.Submit("ask", ask.data, ask.key, ANSWER_S, ask.attempts, hold=ANSWER_S), now)

    def _step(self, event: link.Input, now: float) -> list[Send | Complete]:
        self._link, outputs = link.step(self._link, event, now)
        out: list[Send | Complete] = []
        for output in outputs:
            if isinstance(output, Send):
                self.retries += isinstance(event, link.Tick)
                self._sent = output.data
                self._owed.setdefault(output.data[0] | 0x80, []).append(now)
                out.append(output)
            elif isinstance(output, Complete):
                out += self._go(Reply(output.outcome, now))
        return out
