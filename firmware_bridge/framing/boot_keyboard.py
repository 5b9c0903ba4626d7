"""Reports of a USB keyboard in its boot layout: a modifier byte, a reserved byte, six key slots.

Source: HID 1.11, appendices B.1 and C (confidence A). A report tells which keys are down, so a press is a
usage that is down in more slots than it was before; how long it stays down means nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

SIZE = 8
_ERRORS = frozenset({1, 2, 3})
"""Usages that stand in the slots instead of keys: more keys are down than fit, or the keyboard is faulty."""

WRONG_SIZE = "report of another size"
RESERVED = "reserved byte not zero"
ROLLOVER = "keys that do not fit into a report"


@dataclass(frozen=True, slots=True)
class Report:
    """`pressed`: the usages that went down with it. `wrong`: why it says nothing of keys, or None."""

    raw: bytes
    modifiers: int = 0
    pressed: tuple[int, ...] = ()
    wrong: str | None = None


class Decoder:
    """Each `feed` is one report, or with `packets` False any piece of reports one behind the other."""

    def __init__(self, *, packets: bool, any_reserved: bool = False) -> None:
        self._packets = packets
        self._any_reserved = any_reserved
        self._part = b""
        self._down: Counter[int] = Counter()

    def feed(self, data: bytes) -> list[Report]:
        if self._packets:
            return [self._read(data)]
        whole = self._part + data
        end = len(whole) - len(whole) % SIZE
        self._part = whole[end:]
        return [self._read(whole[at : at + SIZE]) for at in range(0, end, SIZE)]

    def flush(self) -> list[Report]:
        """The end of the input: what is left of it is no report. No key is down any more."""
        rest, self._part = self._part, b""
        self._down.clear()
        return [Report(rest, wrong=WRONG_SIZE)] if rest else []

    def _read(self, raw: bytes) -> Report:
        if len(raw) != SIZE:
            return Report(raw, wrong=WRONG_SIZE)
        if raw[1] and not self._any_reserved:
            return Report(raw, wrong=RESERVED)
        slots = raw[2:]
        if not _ERRORS.isdisjoint(slots):
            return Report(raw, wrong=ROLLOVER)
        before, self._down = self._down, Counter(usage for usage in slots if usage)
        return Report(raw, raw[0], tuple((self._down - before).elements()))
