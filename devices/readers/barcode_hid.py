"""Driver of a barcode reader that appears as a USB keyboard: it types four digits and Enter for each card.

Confidence B, nothing was checked on real hardware (its protocol page). Only an exact code is a card: nothing
is searched for, completed or left out, and no time keeps a second card away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from devices.base import Counters, DriverOutput, DriverSpec, Maker, OptionError, Setup, choice
from devices.events import RANKS, RAW_LIMIT, CardDrawn, FrameRejected, GapPossible
from devices.talker import Line, TakesNoCommand
from firmware_bridge.framing.boot_keyboard import SIZE, Decoder, Report

_SUITS = {"1": "S", "2": "H", "3": "C", "4": "D"}
CARDS: Mapping[str, str] = {
    f"{digit}{10 * number:03d}": rank + suit
    for digit, suit in _SUITS.items()
    for number, rank in enumerate(RANKS, start=1)
}
"""All 52 codes: a digit for the suit, then ten times the rank in three digits."""
LONGEST = 64 * SIZE
"""Bytes of reports that one code may take."""

_ROW = {0x1E + n: str((n + 1) % 10) for n in range(10)}
_KEYPAD = {0x59 + n: str((n + 1) % 10) for n in range(10)}
DIGITS = {"row": _ROW, "keypad": _KEYPAD, "any": _ROW | _KEYPAD}
ENTERS = {"enter": {0x28}, "keypad_enter": {0x58}, "any": {0x28, 0x58}}
GAP_MS = 200
"""A reader types a code within a tenth of a second; two cards are farther apart."""

MODIFIER = "modifier key"
TWO_KEYS = "two keys in one report"
FOREIGN_KEY = "key that is no digit"
NOT_FOUR = "not four digits"
NO_CARD = "not the code of a card"
TOO_LONG = "too long"
UNFINISHED = "code without its end"

OPTIONS = {
    "terminator": "key that ends a code: enter (default), keypad_enter or any",
    "digits": "keys that are digits: row (default), keypad or any",
    "reserved": "second byte of a report: zero (default) or any",
    "gap_ms": "longest pause within one code, 20..2000 milliseconds (default 200)",
}


class BarcodeHid:
    """The receive-only form. `live` false is the pure decoder of a capture: it has no link to report."""

    def __init__(self, setup: Setup, *, live: bool = True) -> None:
        self.device = setup.device
        self.counters = Counters()
        self._event = Maker(setup)
        self._line = Line(setup, self._event, live=live)
        self._digits = DIGITS[choice(setup, "digits", tuple(DIGITS))]
        self._enters = ENTERS[choice(setup, "terminator", tuple(ENTERS))]
        self._gap = _gap(setup)
        any_reserved = choice(setup, "reserved", ("zero", "any")) == "any"
        self._decoder = Decoder(packets=setup.packets, any_reserved=any_reserved)
        self._begin()

    def start(self, now: float) -> Sequence[DriverOutput]:
        return self._line.opened(now)

    def feed(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        out = list(self.tick(now))
        for report in self._decoder.feed(data):
            out += self._report(report, now)
        return out

    def tick(self, now: float) -> Sequence[DriverOutput]:
        if self._given_up_at is None or now < self._given_up_at:
            return []
        return self._reject(UNFINISHED, now)

    def lost(self, reason: str, now: float) -> Sequence[DriverOutput]:
        out: list[DriverOutput] = []
        for report in self._decoder.flush():
            out += self._report(report, now)
        if self._size:
            out += self._reject(UNFINISHED, now)
        return [*out, *self._line.lost(reason, now)]

    def ack(self, n: int, now: float) -> Sequence[DriverOutput]:
        """Nothing to do: the reader keeps no codes, so none can be asked for again."""
        del n, now
        return []

    def deadline(self) -> float | None:
        return self._given_up_at

    def _begin(self) -> None:
        """No code is under way."""
        self._text = ""
        self._wrong: str | None = None
        self._raw = b""
        self._size = 0
        self._given_up_at: float | None = None

    def _report(self, report: Report, now: float) -> list[DriverOutput]:
        spoilt = report.wrong or (MODIFIER if report.modifiers else None)
        if not (report.pressed or spoilt or self._size):
            return []  # keys of the code before go up
        if report.pressed or spoilt:  # a key that only stays down renews nothing
            self._given_up_at = now + self._gap
        self._size += len(report.raw)
        self._raw = (self._raw + report.raw)[:LONGEST]
        if self._size > LONGEST:
            spoilt = spoilt or TOO_LONG
        if len(report.pressed) > 1:
            spoilt = spoilt or TWO_KEYS
        ended = False
        for usage in report.pressed:
            if usage in self._enters:
                ended = True
            elif usage in self._digits:
                self._text = (self._text + self._digits[usage])[:5]
            else:
                spoilt = spoilt or FOREIGN_KEY
        self._wrong = self._wrong or spoilt
        return self._end(now) if ended else []

    def _end(self, now: float) -> list[DriverOutput]:
        card = CARDS.get(self._text)
        if self._wrong is not None or card is None:
            return self._reject(NO_CARD if len(self._text) == 4 else NOT_FOUR, now)
        self.counters.frames += 1
        raw = self._raw
        self._begin()
        return [self._event(CardDrawn, now, raw=raw, card=card)]

    def _reject(self, reason: str, now: float) -> list[DriverOutput]:
        """What is under way is no card, and may have been one: the reader has no counter that would tell."""
        raw, size, reason = self._raw[:RAW_LIMIT], self._size, self._wrong or reason
        self._begin()
        return [
            self._event(FrameRejected, now, raw=raw, reason=reason, bytes=size),
            self._event(GapPossible, now),
        ]


class BarcodeHidControlled(TakesNoCommand, BarcodeHid):
    """The command form of a reader that takes none."""


def _gap(setup: Setup) -> float:
    value = setup.options.get("gap_ms", GAP_MS)
    if isinstance(value, bool) or not isinstance(value, int) or not 20 <= value <= 2000:
        raise OptionError(f"gap_ms is a number from 20 to 2000, not {value!r}")
    return value / 1000


SPEC = DriverSpec(
    name="barcode-hid",
    role="reader",
    games=frozenset(),
    unfit="it reads faces without knowing whose card it is, so nobody could tell which of them may be seen",
    baud=10_000,
    polled=False,
    commands=(),
    reader=BarcodeHid,
    controlled=BarcodeHidControlled,
    decoder=partial(BarcodeHid, live=False),
    options=OPTIONS,
    usb=frozenset({(0x1209, 0x0004)}),
)
