"""What befalls a whole table and is no device's and no person's doing: its daemon and its power."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DAEMON, POWER, DEALER = "daemon", "power", "dealer"
"""Whom a script of a whole table names as the device of a step, beside its devices."""


@dataclass(frozen=True, slots=True)
class Blow:
    """`device` is whom a script names for it; `occasion` what its N counts, "" where it counts nothing."""

    device: str
    help: str
    occasion: str = ""


BLOWS: Mapping[str, Blow] = {
    "crash": Blow(DAEMON, "the daemon dies and is started again", "commit"),
    "crash_before_commit": Blow(DAEMON, "the daemon dies before a commit", "commit"),
    "crash_after_commit": Blow(DAEMON, "the daemon dies after a commit, with nothing sent yet", "commit"),
    "crash_before_send": Blow(DAEMON, "the daemon dies before it sends a command", "command"),
    "crash_after_send": Blow(DAEMON, "the daemon dies after it sent a command", "command"),
    "disk_full": Blow(DAEMON, "a commit finds no room: a safe stop, then a start", "commit"),
    "clock_jump": Blow(DAEMON, "the wall clock jumps by VALUE (7200) s"),
    "power_cut": Blow(
        POWER, "daemon and machines are off for VALUE (0.1 to 20) s; the journal's tail is torn", "commit"
    ),
    "power_dip": Blow(POWER, "the machines alone are off for VALUE (0.1 to 20) s"),
}
"""Blows by name, in the style of the fault menu."""
