"""Driver of the ReShuffled machine, a school-built shuffler and dealer: commands, and what its wire says.

Confidence B, nothing was checked on real hardware (its protocol page). An answer carries no number and the
machine keeps none: whatever moves a card goes out once, and `OK` means accepted, never done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from devices.base import CommandSpec, Counters, DriverOutput, DriverSpec, Maker, Setup, choice
from devices.events import (
    Chatter,
    CommandDone,
    CommandRefused,
    CommandSeen,
    FrameRejected,
)
from devices.talker import Line
from firmware_bridge import link
from firmware_bridge.framing import Garbage
from firmware_bridge.framing.reshuffled import ENDS, Decoder, Frame, Item, Style, encode
from firmware_bridge.link import Complete, Done, NotSent, Refused, Send, Unknown

ANSWER_TIMEOUT = 1.0
"""Seconds a command waits, as the published host does."""
HOLD = 3.0
"""Seconds a line stays closed after a command without an answer: a late `OK` must not meet the next one."""
SILENCE = 0.2
"""Seconds without a byte after which an unfinished line is given up and rejected bytes are told."""
TOO_SOON = 0.002
"""Seconds in which nothing can answer a command: its 13 bytes alone take 2.3 ms at 57600 bit/s."""
SOONEST = 0.004
"""Seconds before which no answer can be whole: with its 12 bytes or more both take 4.3 ms."""
FIRMWARE_FRAME = 13
"""Bytes of the only frames that the firmware takes."""
MOST_CARDS = 99

COMMANDS = (
    CommandSpec("init", "bring the machine into its initial state"),
    CommandSpec("shuffle", "shuffle", moves_cards=True),
    CommandSpec(
        "deal", "deal N cards (1..9 for the firmware, 1..99 by the document)", ("n",), moves_cards=True
    ),
    CommandSpec("deal-each", "deal N cards to each player", ("n",), moves_cards=True),
    CommandSpec("off", "shut the machine down"),
)
_WORDS = {"init": "IN", "shuffle": "SH", "deal": "D", "deal-each": "A", "off": "XX"}
_NAMES = {word: name for name, word in _WORDS.items()}
REPEATABLE = frozenset({"init", "off"})
"""They set a state and move no card: doing them twice is doing them once. Anything else is never repeated."""
ERROR = "error without a published meaning"
UNASKED = "answer to no command"
ACCEPTED: Mapping[str, Any] = {"accepted": True, "done": None}
"""All that `OK` proves. The machine never tells when it is done."""
PROFILES = ("tolerant", "strict")
OPTIONS = {
    "profile": "tolerant (default: the firmware as it is, 13-byte frames only) or strict (the document)",
    "crc_includes_hash": "whether the check covers the # behind the data: false (default) or true",
    "frame_end": "what ends a frame: lf (default) or semicolon",
}


class ReShuffled:
    """The receive-only form. `live` false is the pure decoder of a capture: it has no link to report."""

    def __init__(self, setup: Setup, *, live: bool = True) -> None:
        self.device = setup.device
        self.counters = Counters()
        self._event = Maker(setup)
        self._line = Line(setup, self._event, live=live)
        self._style = Style(
            strict=choice(setup, "profile", PROFILES) == "strict",
            crc_includes_hash=choice(setup, "crc_includes_hash", ("false", "true")) == "true",
            end=ENDS[choice(setup, "frame_end", tuple(ENDS))],
        )
        self._decoder = Decoder(self._style)
        self._host = Decoder(self._style)  # of what the host sent, where a capture tells it apart
        self._settle_at: float | None = None

    def start(self, now: float) -> Sequence[DriverOutput]:
        return self._line.opened(now)

    def feed(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        out = self._settle(now) if self._settle_at is not None and now >= self._settle_at else []
        out += self._items(self._decoder.feed(data), now)
        self._settle_at = now + SILENCE if self._decoder.pending else None
        return out

    def feed_host(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        return self._items(self._host.feed(data), now)

    def tick(self, now: float) -> Sequence[DriverOutput]:
        return self._settle(now) if self._settle_at is not None and now >= self._settle_at else []

    def lost(self, reason: str, now: float) -> Sequence[DriverOutput]:
        out = [*self._settle(now), *self._items(self._host.flush(), now)]
        return [*out, *self._line.lost(reason, now)]

    def ack(self, n: int, now: float) -> Sequence[DriverOutput]:
        """Nothing to do: the machine has no events, so none can be asked for again."""
        del n, now
        return []

    def deadline(self) -> float | None:
        return self._settle_at

    def _settle(self, now: float) -> list[DriverOutput]:
        """The line fell silent or is gone: nothing begun will be finished."""
        self._settle_at = None
        return self._items(self._decoder.flush(), now)

    def _items(self, items: Iterable[Item], now: float) -> list[DriverOutput]:
        out: list[DriverOutput] = []
        for item in items:
            match item:
                case Garbage():
                    fields = {"reason": item.reason, "bytes": item.count}
                    out.append(self._event(FrameRejected, now, raw=item.data, **fields))
                case Frame():
                    self.counters.frames += 1
                    out += self._seen(item, now) if item.request else self._answer(item, now)
                case text:
                    out.append(self._event(Chatter, now, raw=text.data, text=text.data.decode("ascii")))
        return out

    def _answer(self, frame: Frame, now: float) -> list[DriverOutput]:
        """Read along: nobody here asked, so it is told as it stands."""
        if frame.data == "OK":
            return [self._event(CommandDone, now, raw=frame.raw, diag=("accepted", *frame.diag))]
        fields = {"code": frame.data, "name": ERROR}
        return [self._event(CommandRefused, now, raw=frame.raw, diag=frame.diag, **fields)]

    def _seen(self, frame: Frame, now: float) -> list[DriverOutput]:
        """A request on the wire: a host's, or the machine's echo of it."""
        word = frame.data if frame.data in _NAMES else frame.data[0]
        fields = {
            "command": _NAMES[word],
            "args": (frame.data[1:],) if word in {"D", "A"} else (),
        }
        return [self._event(CommandSeen, now, raw=frame.raw, diag=frame.diag, **fields)]


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    frame: bytes
    again: bool = False


class ReShuffledControlled(ReShuffled):
    """The command form: one command at a time, answered within a second or not at all."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._link = link.Link(window=1)
        self._calls: dict[str, _Call] = {}
        self._deaf = False  # what is read now was on the line before our last command
        self._sent_at = -TOO_SOON

    def command(self, call_id: str, name: str, args: Mapping[str, Any], now: float) -> Sequence[DriverOutput]:
        if call_id in self._calls:
            return []  # the same command again: it ends once
        try:
            frame = encode(_word(name, args), self._style)
        except ValueError as error:
            return [Complete(call_id, NotSent(str(error)))]
        if not self._style.strict and len(frame) != FIRMWARE_FRAME:
            why = (
                f"the machine's firmware takes frames of {FIRMWARE_FRAME} bytes only, and {name} {args['n']} "
                f"makes one of {len(frame)}: ask for 1 to 9 cards at a time"
            )
            return [Complete(call_id, NotSent(why))]
        if not self._line.up:
            return [Complete(call_id, NotSent("the machine's port is not open"))]
        return self._submit(call_id, _Call(name, frame), now)

    def feed(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        was_deaf, self._deaf = self._deaf, now < self._sent_at + TOO_SOON
        # Of an answer that was half in before the command, the rest must not answer it.
        cut_off = self._settle(now) if was_deaf and not self._deaf else []
        return [*cut_off, *super().feed(data, now)]

    def tick(self, now: float) -> Sequence[DriverOutput]:
        return [*super().tick(now), *self._step(link.Tick(), now)]

    def lost(self, reason: str, now: float) -> Sequence[DriverOutput]:
        return [*self._step(link.Lost(reason), now), *super().lost(reason, now)]

    def deadline(self) -> float | None:
        times = [t for t in (super().deadline(), self._link.deadline()) if t is not None]
        return min(times, default=None)

    def _answer(self, frame: Frame, now: float) -> list[DriverOutput]:
        outcome = Done(ACCEPTED) if frame.data == "OK" else Refused(frame.data, ERROR)
        if self._link.pending and not self._deaf and now >= self._sent_at + SOONEST:
            return self._step(link.Received(_KEY, outcome), now)
        self.counters.unasked += 1
        told = self._event(FrameRejected, now, raw=frame.raw, reason=UNASKED, bytes=len(frame.raw))
        # A late one: the line need not be held closed any longer.
        late = [] if self._link.pending else self._step(link.Received(_KEY, outcome), now)
        return [told, *late]

    def _submit(self, call_id: str, call: _Call, now: float) -> list[DriverOutput]:
        self._calls[call_id] = call
        return self._step(link.Submit(call_id, call.frame, _KEY, ANSWER_TIMEOUT, hold=HOLD), now)

    def _step(self, event: link.Input, now: float) -> list[DriverOutput]:
        self._link, outputs = link.step(self._link, event, now)
        out: list[DriverOutput] = []
        for output in outputs:
            match output:
                case Send():
                    self._deaf, self._sent_at = True, now
                    out.append(output)
                case Complete():
                    end = self._ended(output, now, lost=isinstance(event, link.Lost))
                    out += [] if end is None else [end]
        return out

    def _ended(self, end: Complete, now: float, *, lost: bool) -> DriverOutput | None:
        """None: it goes out once more, once nothing that is still under way can be taken for its answer."""
        call = self._calls.pop(end.call_id)
        if call.again and isinstance(end.outcome, Refused):
            why = f"no answer within {ANSWER_TIMEOUT:g} s, and its repeat was refused ({end.outcome.code})"
            return Complete(end.call_id, Unknown(why))
        again = isinstance(end.outcome, Unknown) and call.name in REPEATABLE and not call.again
        if lost or not again or not self._link.idle:
            return end
        self.counters.retries += 1
        self._submit(end.call_id, replace(call, again=True), now)  # held: nothing is sent yet
        return None


_KEY = "command"
"""Answers carry no number: every command waits for the same one."""


def _word(name: str, args: Mapping[str, Any]) -> str:
    """A command as the data of its frame. Raises ValueError with a text for people."""
    known = next((c for c in COMMANDS if c.name == name), None)
    if known is None:
        names = ", ".join(c.name for c in COMMANDS)
        raise ValueError(f"the machine has no command {name!r}: it knows {names}")
    if set(args) != set(known.args):
        raise ValueError(f"{name} takes {', '.join(known.args) or 'no arguments'}")
    if not known.args:
        return _WORDS[name]
    text = str(args["n"])
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= MOST_CARDS):
        raise ValueError(f"{name} takes a number of cards from 1 to {MOST_CARDS}, not {text!r}")
    return f"{_WORDS[name]}{int(text)}"


SPEC = DriverSpec(
    name="reshuffled",
    role="shuffler",
    games=frozenset(),
    unfit="it proves no shuffle by a token, counts no cards and numbers no events",
    baud=57600,
    polled=False,
    commands=COMMANDS,
    reader=ReShuffled,
    controlled=ReShuffledControlled,
    decoder=partial(ReShuffled, live=False),
    options=OPTIONS,
    check=_word,
)
