"""A barcode reader in front of a shoe: a USB keyboard that types the code of every card that leaves it.

Written from docs/protocols/barcode-hid.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simulators.models.machine import Traps
from simulators.models.shoe import Shoe
from simulators.wire.device import Outbox, earliest

REPORT_S = 0.008
"""One report a poll of the host."""
OFF_S = 1.0
_SUIT = {"S": 1, "H": 2, "C": 3, "D": 4}
_RANK = {rank: 10 * number for number, rank in enumerate("A23456789TJQK", 1)}
_DIGITS = {"row": 0x1E, "keypad": 0x59}
"""The key of digit 1; 0 comes behind 9."""
_ENTERS = {"enter": 0x28, "keypad_enter": 0x58}


def code_of(face: str) -> str:
    """The four digits under the barcode of a card."""
    return f"{_SUIT[face[1]]}{_RANK[face[0]]:03d}"


def down(*usages: int, reserved: int = 0) -> bytes:
    """A report while these keys are down."""
    return bytes((0, reserved, *usages)).ljust(8, b"\0")


class BarcodeReader:
    """It types with `digits` row | keypad and `enter` enter | keypad_enter; `reserved` is its second byte.

    With `rollover` the next key goes down before the last one is up; a key that stays down is told `repeats`
    times more. `neighbour`: another keyboard is on the bus ("other"), or a twin of this one ("same").
    Traps, counted per card that is read: lost_key_up (value which one, 1), lost_enter, modifier (value its
    byte, 4), short_report, unplug (value s, 1: in the middle of a code).
    """

    kind = "barcode-reader"

    def __init__(
        self,
        shoe: Shoe,
        *,
        serial: str = "BC0001",
        digits: str = "row",
        enter: str = "enter",
        reserved: int = 0,
        rollover: bool = False,
        repeats: int = 0,
    ) -> None:
        self.machine = shoe
        self.serial = serial
        self.neighbour: str | None = None
        self.traps = Traps()
        self.digits = digits
        self.enter = enter
        self.reserved = reserved
        self.rollover = rollover
        self.repeats = repeats
        self._seen = len(shoe.happenings)
        self._out = Outbox()
        self._free_at = shoe.now
        self._cuts: list[tuple[float, float]] = []

    def receive(self, data: bytes, now: float) -> None:
        """A keyboard is told its lamps at most."""

    def packets(self, now: float) -> list[bytes]:
        self.advance(now)
        return self._out.pieces(now)

    def transmit(self, now: float) -> bytes:
        return b"".join(self.packets(now))

    def advance(self, now: float) -> None:
        while self._cuts and self._cuts[0][0] <= now:
            at, off = self._cuts.pop(0)
            self._move(at)
            self.machine.power_cut(off)
            self._out.clear()
        self._move(now)

    def deadline(self) -> float | None:
        return earliest(
            self.machine.deadline(), self._out.deadline(), self._cuts[0][0] if self._cuts else None
        )

    def _move(self, now: float) -> None:
        self.machine.advance(now)
        happenings = self.machine.happenings
        while self._seen < len(happenings):
            self._seen += 1
            happening = happenings[self._seen - 1]
            if happening.kind == "booted":
                self._free_at = happening.at
            # Neither has a joker a code, nor a card that is not read.
            if happening.kind == "drawn" and (happening.data["face"] or "?")[0] in _RANK:
                self._type(code_of(happening.data["face"]), happening.at)

    def _type(self, code: str, at: float) -> None:
        start = at = max(at, self._free_at)
        enter = _ENTERS[self.enter]
        keys = [*(_DIGITS[self.digits] + (int(digit) + 9) % 10 for digit in code), enter]
        reports = list(self._reports(keys))
        if self.traps.sprung("lost_enter"):
            reports = [report for report in reports if enter not in report[2:]]
        if trap := self.traps.sprung("lost_key_up"):
            ups = [place for place, report in enumerate(reports) if not any(report[2:])]
            del reports[ups[min(trap.count(), len(ups)) - 1]]
        if trap := self.traps.sprung("modifier"):
            reports[2] = bytes((trap.count(4),)) + reports[2][1:]
        if self.traps.sprung("short_report"):
            reports[2] = reports[2][:7]
        for report in reports:
            self._out.put(at, report)
            at += REPORT_S
        self._free_at = at
        if trap := self.traps.sprung("unplug"):
            self._cuts.append(((start + at) / 2, trap.seconds(OFF_S)))

    def _reports(self, keys: Sequence[int]) -> Iterator[bytes]:
        for key, following in zip(keys, [*keys[1:], 0], strict=True):
            for _ in range(1 + self.repeats):
                yield down(key, reserved=self.reserved)
            if self.rollover and following not in (0, key):
                yield down(key, following, reserved=self.reserved)
            else:
                yield down(reserved=self.reserved)
