"""What the firmware of a managed device can do wrong with a request."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from simulators.models.machine import Traps

DEFAULT, BUSY = 3, 4
"""Codes of docs/protocols/managed.md: the state does not allow it, and the device is busy."""
SEQUENCE = 6
"""Where a packet has its sequence number."""
IDENTITY: Mapping[str, Any] = {
    "serial": "XX9999",
    "product": "SIM-OTHER",
    "vendor": "Elsewhere",
    "class": "toaster",
    "protocol": 9,
}
"""What it says it is when it is another one."""


class Ills:
    """The traps of a device that is not well; `firmware` is the version it tells instead of its own.

    Per request: refuse (value the code, 3), busy_answers (busy for value s, else until it is mended),
    brown_out (value: before or after it is carried out). Per answer: wrong_sequence, stale_answer (what the
    answer before said, under the new number). Per identity: wrong_identity (value the key). Per settings:
    settings_differ (value crc, or a setting).
    """

    def __init__(self, traps: Traps) -> None:
        self.firmware: str | None = None
        self._traps = traps
        self._busy_until = 0.0
        self._last = b""

    def refusal(self, now: float) -> int | None:
        """The code with which this request is refused."""
        if not self._traps:
            return None
        if trap := self._traps.sprung("busy_answers"):
            self._busy_until = now + trap.seconds(inf)
        if now < self._busy_until and "busy_answers" in self._traps:
            return BUSY
        trap = self._traps.sprung("refuse")
        return None if trap is None else trap.count(DEFAULT)

    def dips(self) -> str | None:
        """Whether, `before` or `after` it is carried out, the power goes over a request."""
        trap = self._traps.sprung("brown_out")
        return None if trap is None else trap.value or "after"

    def identity(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.firmware is not None:
            body = {**body, "firmware": self.firmware}
        if trap := self._traps.sprung("wrong_identity"):
            key = trap.value or "serial"
            body = {**body, key: IDENTITY[key]}
        return body

    def settings(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        trap = self._traps.sprung("settings_differ")
        if trap is None:
            return body
        held = dict(body["settings"])
        if trap.value in (None, "crc") or trap.value not in held:
            return {**body, "crc": body["crc"] ^ 1}
        old = held[trap.value]
        held[trap.value] = "sort" if isinstance(old, str) else not old if isinstance(old, bool) else old + 1
        return {**body, "settings": held}

    def packet(self, packet: bytes) -> bytes:
        """The answer as it leaves."""
        last, self._last = self._last, packet
        if not self._traps:
            return packet
        number = packet[SEQUENCE]
        if self._traps.sprung("stale_answer") and last:
            packet = _numbered(last, number)
        if self._traps.sprung("wrong_sequence"):
            packet = _numbered(packet, number + 1 & 0xFF)
        return packet


def _numbered(packet: bytes, number: int) -> bytes:
    return packet[:SEQUENCE] + bytes((number,)) + packet[SEQUENCE + 1 :]
