"""Driver of the Angel Eye II-EX card-reading shoe (baccarat): telegrams to device events, and its commands.

Frames have confidence A, session rules B; nothing was checked on real hardware (its protocol page).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from devices.base import CommandSpec, Counters, DriverOutput, DriverSpec, Maker, Setup, choice
from devices.events import (
    AlignmentRequired,
    CardDrawn,
    CardReassigned,
    CommandDone,
    CommandRefused,
    CommandSeen,
    Conflict,
    CutCard,
    DeviceEvent,
    FrameRejected,
    GameResult,
    GapPossible,
    Sense,
    SessionStarted,
)
from devices.shoes.angel_eye_payload import BadPayload, nak_name, parse
from devices.shoes.angel_eye_rules import PROFILES, Hand, Repeats
from devices.shoes.angel_eye_rules import Sequence as SequenceRule
from devices.talker import Line
from firmware_bridge import link
from firmware_bridge.framing import Garbage, GarbageRun
from firmware_bridge.framing.angel_eye import Ack, Command, Decoder, Frame, Nak, encode_command
from firmware_bridge.link import Complete, Done, NotSent, Refused, Send

ANSWER_TIMEOUT = 3.0
"""Seconds a command waits for ACK or NAK, and a line stays closed after one that never came."""
SILENCE = 0.5
"""Seconds without a byte after which an unfinished frame is given up and rejected bytes are told."""
CUT_OFF = 0.05
"""Seconds without a byte (24 byte times) after which a frame under way does not hold up a command."""
TOO_SOON = 0.018
"""Seconds in which nothing can answer a command: its ten bytes alone take 21 ms at 4800 bit/s."""

COMMANDS = (
    CommandSpec("lock", "lock the shoe: no card comes out"),
    CommandSpec("unlock", "unlock the shoe"),
    CommandSpec("clear-fault", "cancel error NN (00..99)", args=("nn",)),
    CommandSpec("confirm", "confirm the game process"),
)
_WORDS = {"lock": ("LK", 2), "unlock": ("LK", 1), "confirm": ("GP", 0)}
_SEEN = {words: name for name, words in _WORDS.items()}
_BCC = "02"
UNASKED = "answer to no command"
"""Reason of rejected bytes that are answers and nothing else."""
R_READINGS = ("next_round", "redeal")
BCC_RANGES = ("auto", "true", "false")
OPTIONS = {
    "seq_profile": f"sequence alphabet: {', '.join(PROFILES)} (default learn)",
    "r_reading": "what telegram R means: next_round (default) or redeal",
    "bcc_includes_stx": "check bytes of commands: true, false or auto (default: switch once on NAK 02)",
}


class AngelEye:
    """The receive-only form. `live` false is the pure decoder of a capture: it has no link to report."""

    def __init__(self, setup: Setup, *, live: bool = True) -> None:
        self.device = setup.device
        self.counters = Counters()
        self._event = Maker(setup)
        self._line = Line(setup, self._event, live=live)
        self._decoder = Decoder()
        self._host = Decoder()  # of what the host sent, where a capture tells it apart
        self._repeats = Repeats()
        self._sequence = SequenceRule(choice(setup, "seq_profile", PROFILES))
        self._hand = Hand(redeal=choice(setup, "r_reading", R_READINGS) == "redeal")
        self._bcc = choice(setup, "bcc_includes_stx", BCC_RANGES)
        self._stray = GarbageRun()
        self._seen_until: float | None = None
        self._settle_at: float | None = None

    def start(self, now: float) -> Sequence[DriverOutput]:
        out = self._line.opened(now)
        return [*out, *([self._event(AlignmentRequired, now)] if len(out) > 1 else [])]

    def feed(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        out: list[DriverOutput] = []
        if self._settle_at is not None:
            out += self._settle(now) if now >= self._settle_at else []
        if self._seen_until is not None and now > self._seen_until:
            self._seen_until = None
        self._decoder.awaiting_answer = self._awaiting()
        for item in self._decoder.feed(data):
            out += self._item(item, now)
        self._settle_at = now + SILENCE if self._decoder.pending or self._stray else None
        return out

    def feed_host(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        """In a capture: commands. An answer of the shoe that follows in time answers the last of them."""
        out: list[DriverOutput] = []
        for item in self._host.feed(data):
            if isinstance(item, Command):
                self.counters.frames += 1
                out.append(self._command_seen(item, now))
            else:
                out += self._garbage([item], now) if isinstance(item, Garbage) else self._noise(item.raw)
        return out

    def tick(self, now: float) -> Sequence[DriverOutput]:
        if self._settle_at is None or now < self._settle_at:
            return []
        return self._settle(now)

    def lost(self, reason: str, now: float) -> Sequence[DriverOutput]:
        out = self._settle(now)
        out += self._garbage([item for item in self._host.flush() if isinstance(item, Garbage)], now)
        self._decoder, self._host = Decoder(), Decoder()
        self._sequence.forget()
        self._hand.lost()
        self._seen_until = None
        return [*out, *self._line.lost(reason, now)]

    def ack(self, n: int, now: float) -> Sequence[DriverOutput]:
        """Nothing to do: the shoe keeps no events, so none can be asked for again."""
        del n, now
        return []

    def deadline(self) -> float | None:
        return self._settle_at

    def _awaiting(self) -> bool:
        """Whether ACK or NAK would answer something."""
        return self._seen_until is not None

    def _item(self, item: Frame | Garbage, now: float) -> list[DriverOutput]:
        if isinstance(item, Garbage):
            return self._garbage([item], now)
        if isinstance(item, Ack | Nak):
            return self._answer(item, now)
        self.counters.frames += 1
        before = self._garbage([], now)
        if isinstance(item, Command):
            return [*before, self._command_seen(item, now)]
        return [*before, *self._telegram(item.seq, item.code, item.data, item.raw, now)]

    def _telegram(self, seq: str, code: str, data: bytes, raw: bytes, now: float) -> list[DriverOutput]:
        if self._repeats.is_copy(seq, code, data, now):
            self.counters.repeats += 1
            return []
        try:
            payload = parse(code, data)
        except BadPayload as error:
            # The number was used, its content was not: a good telegram may still come with it.
            gap = self._gap(seq, now, rejected=True)
            return [
                *gap,
                self._event(FrameRejected, now, seq=seq, raw=raw, reason=str(error), bytes=len(raw)),
            ]
        rival = self._repeats.accept(seq, code, data, raw, now)
        out = self._gap(seq, now, start=code == "S", conflict=rival is not None)
        diag, aligned, after = payload.diag, True, list[tuple[type[DeviceEvent], dict[str, Any]]]()
        if rival is not None:
            after.append((Conflict, {"what": f"sequence {seq}", "other": rival}))
        fields = payload.fields
        if payload.event is SessionStarted:
            diag += self._hand.started()
        elif payload.event is CutCard:
            diag += self._hand.cut_card()
        elif payload.event is CardReassigned:
            self._hand.reassigned(fields["position"], fields["index"], fields["card"], raw)
        elif payload.event is CardDrawn and fields.get("position") in {"player", "banker"}:
            other = self._hand.card(fields["position"], fields["index"], fields["card"], raw)
            if other is not None and other != rival:
                after.append((Conflict, {"what": f"{fields['position']} {fields['index']}", "other": other}))
        elif payload.event is GameResult:
            result = self._hand.result(fields["outcome"])
            aligned = result.aligned
            if result.missing:
                after.append((AlignmentRequired, {"missing": result.missing}))
        out.append(self._event(payload.event, now, seq=seq, raw=raw, diag=diag, aligned=aligned, **fields))
        return [*out, *(self._event(kind, now, seq=seq, raw=raw, **more) for kind, more in after)]

    def _gap(
        self, seq: str, now: float, *, start: bool = False, rejected: bool = False, conflict: bool = False
    ) -> list[DriverOutput]:
        gap = self._sequence.judge(seq, start=start, rejected=rejected, conflict=conflict)
        return [] if gap is None else [self._event(GapPossible, now, seq=seq, missing=gap.missing)]

    def _command_seen(self, item: Command, now: float) -> DeviceEvent:
        self._seen_until = now + ANSWER_TIMEOUT
        number = f"{item.number:02d}"
        name = _SEEN.get((item.type, item.number))
        command = name or ("clear-fault" if item.type == "EC" else item.type)
        args = () if name else (number,)
        diag = ("bcc_includes_stx" if item.bcc_includes_stx else "bcc_excludes_stx",)
        return self._event(CommandSeen, now, raw=item.raw, command=command, args=args, diag=diag)

    def _answer(self, item: Ack | Nak, now: float) -> list[DriverOutput]:
        """ACK or NAK in a stream answers the command seen before it. A lone NAK is a refusal by itself."""
        if isinstance(item, Ack) and not self._awaiting():
            return self._noise(item.raw)
        self.counters.frames += 1
        self._seen_until = None
        before = self._garbage([], now)
        if isinstance(item, Ack):
            return [*before, self._event(CommandDone, now, raw=item.raw)]
        code = f"{item.code:02X}"
        return [*before, self._event(CommandRefused, now, raw=item.raw, code=code, name=nak_name(code))]

    def _noise(self, raw: bytes) -> list[DriverOutput]:
        """An answer to no question: part of the garbage run around it."""
        self.counters.unasked += 1
        self._stray.add(raw, UNASKED)
        return []

    def _garbage(self, runs: Iterable[Garbage], now: float) -> list[DriverOutput]:
        """Tell rejected bytes, stray answers before them included."""
        for run in runs:
            self._stray.join(run)
        return [
            self._event(FrameRejected, now, raw=run.data, reason=run.reason, bytes=run.count)
            for run in self._stray.take()
        ]

    def _settle(self, now: float) -> list[DriverOutput]:
        """The line fell silent or is gone: nothing begun will be finished."""
        self._settle_at = None
        self._decoder.awaiting_answer = self._awaiting()
        out: list[DriverOutput] = []
        for item in self._decoder.flush():
            out += self._item(item, now)
        return [*out, *self._garbage([], now)]


@dataclass(frozen=True, slots=True)
class _Call:
    word: str
    number: int
    includes_stx: bool
    again: bool = False


class AngelEyeControlled(AngelEye):
    """The command form: one command at a time, answered by a bare ACK or NAK within three seconds."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._auto = self._bcc == "auto"
        self._includes_stx = self._bcc != "false"
        self._proven = not self._auto
        self._link = link.Link(window=1)
        self._deaf = False  # what is read before the next bytes was on the line before our last command
        self._heard_at = self._sent_at = -TOO_SOON
        self._calls: dict[str, _Call] = {}

    def command(self, call_id: str, name: str, args: Mapping[str, Any], now: float) -> Sequence[DriverOutput]:
        if call_id in self._calls:
            return []  # the same command again: it ends once
        try:
            words = _words(name, args)
        except ValueError as error:
            return [Complete(call_id, NotSent(str(error)))]
        if not self._line.up:
            return [Complete(call_id, NotSent("the shoe's port is not open"))]
        return self._submit(call_id, _Call(*words, self._includes_stx), now)

    def feed(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        self._deaf, self._heard_at = now < self._sent_at + TOO_SOON, now
        return super().feed(data, now)

    def tick(self, now: float) -> Sequence[DriverOutput]:
        return [*super().tick(now), *self._step(link.Tick(), now)]

    def lost(self, reason: str, now: float) -> Sequence[DriverOutput]:
        return [*self._step(link.Lost(reason), now), *super().lost(reason, now)]

    def deadline(self) -> float | None:
        times = [t for t in (super().deadline(), self._link.deadline()) if t is not None]
        return min(times, default=None)

    def _awaiting(self) -> bool:
        return bool(self._link.pending) and not self._deaf

    def _answer(self, item: Ack | Nak, now: float) -> list[DriverOutput]:
        if not self._awaiting():
            if self._link.pending:
                return self._noise(item.raw)
            # Late: the line need not be held closed any longer.
            return [*self._noise(item.raw), *self._step(link.Received(_KEY, Done()), now)]
        self.counters.frames += 1
        before = self._garbage([], now)
        if isinstance(item, Ack):
            return [*before, *self._step(link.Received(_KEY, Done()), now)]
        code = f"{item.code:02X}"
        return [*before, *self._step(link.Received(_KEY, Refused(code, nak_name(code))), now)]

    def _submit(self, call_id: str, call: _Call, now: float) -> list[DriverOutput]:
        self._calls[call_id] = call
        data = encode_command(call.word, call.number, call.includes_stx)
        return self._step(link.Submit(call_id, data, _KEY, ANSWER_TIMEOUT, hold=ANSWER_TIMEOUT), now)

    def _step(self, event: link.Input, now: float) -> list[DriverOutput]:
        self._link, outputs = link.step(self._link, event, now)
        out: list[DriverOutput] = []
        for output in outputs:
            if isinstance(output, Send):
                self._deaf, self._sent_at = True, now
                out += self._clear(now)
                out.append(output)
            elif isinstance(output, Complete):
                out += self._ended(output, now)
        self._decoder.awaiting_answer = self._awaiting()
        return out

    def _clear(self, now: float) -> list[DriverOutput]:
        """Before a command: half an answer, and what was cut off on the line, must not swallow its answer."""
        if self._decoder.nak_open or now - self._heard_at >= CUT_OFF:
            return self._settle(now)
        return []

    def _ended(self, end: Complete, now: float) -> list[DriverOutput]:
        """NAK 02 may mean the other range of check bytes: nothing happened, so the command goes once more."""
        call = self._calls.pop(end.call_id)
        if isinstance(end.outcome, Refused) and end.outcome.code == _BCC and self._auto and not call.again:
            other = self._includes_stx if self._proven else not call.includes_stx
            if other != call.includes_stx:
                return self._submit(end.call_id, replace(call, includes_stx=other, again=True), now)
        if not isinstance(end.outcome, Done):
            return [end]
        self._includes_stx, self._proven = call.includes_stx, True
        answer = {"locked": call.number == 2} if call.word == "LK" else {}
        return [Complete(end.call_id, Done(answer))]


_KEY = "command"
"""Answers carry no number: every command waits for the same one."""


def _words(name: str, args: Mapping[str, Any]) -> tuple[str, int]:
    """A command's type and number. Raises ValueError with a text for people."""
    known = next((c for c in COMMANDS if c.name == name), None)
    if known is None:
        raise ValueError(f"the shoe has no command {name!r}: it knows {', '.join(c.name for c in COMMANDS)}")
    if set(args) != set(known.args):
        raise ValueError(f"{name} takes {', '.join(known.args) or 'no arguments'}")
    if name in _WORDS:
        return _WORDS[name]
    text = str(args["nn"])
    if not (text.isascii() and text.isdigit() and int(text) <= 99):
        raise ValueError(f"clear-fault takes an error number from 00 to 99, not {text!r}")
    return "EC", int(text)


SPEC = DriverSpec(
    name="angel-eye",
    role="shoe",
    games=frozenset({"baccarat"}),
    baud=4800,
    polled=False,
    commands=COMMANDS,
    reader=AngelEye,
    controlled=AngelEyeControlled,
    decoder=partial(AngelEye, live=False),
    options=OPTIONS,
    check=_words,
    senses=frozenset({Sense.CUT_CARD}),
)
