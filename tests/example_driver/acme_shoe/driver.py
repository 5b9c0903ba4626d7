"""Driver of the Acme shoe, an invented device: a numbered line of text for all that leaves the shoe."""

import re
from collections.abc import Iterator
from functools import partial, reduce
from operator import xor

from devices import events as ev
from devices.base import DriverOutput, DriverSpec, Setup, choice
from devices.talker import TakesNoCommand, Talker
from firmware_bridge.framing.patterns import Decoder, Match

LINE = re.compile(rb"\$([0-9]{3})([A-Z])([0-9A-Z?]{0,2})\*([0-9A-F]{2})\r\n")
LONGEST = 12
SILENCE = 0.1  # seconds without a byte after which half a line is given up; a whole one takes 12 ms
COVERS = {"text": 1, "dollar": 0}


class AcmeShoe(Talker[Match]):
    def __init__(self, setup: Setup, *, live: bool = True) -> None:
        covered = slice(COVERS[choice(setup, "check_covers", tuple(COVERS))], -5)
        lines = Decoder(LINE, LONGEST, lambda line: reduce(xor, line[0][covered]) == int(line[4], 16))
        super().__init__(setup, lines, SILENCE, live=live, numbered=True)
        self._last = setup.resume.seq

    def told(self, line: Match, now: float) -> Iterator[DriverOutput]:
        number, kind, text = int(line[1]), line[2].decode(), line[3].decode()
        if self._last is not None and number != (self._last + 1) % 1000:
            yield self.event(ev.GapPossible, now)
        self._last = number
        if kind == "C":
            card = text if text in ev.DECK else None
            yield self.event(ev.CardDrawn, now, seq=number, raw=line[0], card=card)
        elif (kind, text) in {("X", ""), ("E", "")}:
            yield self.event(ev.CutCard if kind == "X" else ev.ShoeEmpty, now, seq=number, raw=line[0])
        else:
            yield self.event(ev.FrameRejected, now, raw=line[0], reason="unknown line", bytes=len(line[0]))
            yield self.event(ev.GapPossible, now)


class AcmeShoeControlled(TakesNoCommand, AcmeShoe): ...


SPEC = DriverSpec(
    name="acme-shoe",
    role="shoe",
    games=frozenset({"baccarat", "blackjack"}),
    baud=9600,
    polled=False,
    commands=(),
    reader=AcmeShoe,
    controlled=AcmeShoeControlled,
    decoder=partial(AcmeShoe, live=False),
    options={"check_covers": "what the check byte covers: text (default) or dollar, the $ too"},
    usb=frozenset({(0x1209, 0x000A)}),
    senses=frozenset({ev.Sense.CUT_CARD, ev.Sense.EMPTY}),
)
