"""What anybody on the control socket can know: the table folded from the masked facts it follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Line = Mapping[str, Any]

_CYCLE = {
    "start_shuffle": "checking",
    "shuffler_checked": "starting",
    "start_failed": "none",
    "batch_proved": "proved",
    "batch_voided": "none",
    "batch_released": "none",
}


@dataclass
class View:
    """Take every fact once, in order. `seen` maps a device to its boot counter and newest event number.

    A device that counts neither has None and the number of its cards. `batches` has the batch of each shoe,
    and of each rack that was shuffled in a round to be dealt to its end.
    """

    seq: int = 0
    phase: str = "closed"
    cycle: str = "none"
    shuffler_batch: str | None = None
    taken: str | None = None
    rounds: int = 0
    cards: int = 0
    goes_on: bool = False
    cut_at: str | None = None
    matched: Sequence[Line] = ()
    faults_latched: int = 0
    starts: int = 0
    batches: list[str] = field(default_factory=list)
    pending: dict[str, str] = field(default_factory=dict)
    seen: dict[str, tuple[int | None, int]] = field(default_factory=dict)
    up: set[str] = field(default_factory=set)
    faults: dict[str, str] = field(default_factory=dict)
    alarms: dict[str, str] = field(default_factory=dict)

    def take(self, fact: Line) -> None:
        """Fold one more fact. Facts already known (after a reconnect) change nothing."""
        if fact["fact"] <= self.seq:
            return
        self.seq = fact["fact"]
        kind, source = fact["kind"], fact["source"]
        self.cycle = _CYCLE.get(kind, self.cycle)
        if source in self.seen and isinstance(fact.get("seq"), int):
            self.seen[source] = (self.seen[source][0], fact["seq"])
        match kind:
            case "booted":
                self.starts += 1
                self.up.clear()
            case "link_up":
                self.up.add(source)
                known = self.seen.get(source, (None, 0))
                self.seen[source] = known if fact["boot"] is None else (fact["boot"], fact["seq"])
            case "link_down":
                self.up.discard(source)
            case "command_issued":
                self.pending[fact["call"]] = fact["command"]
            case "command_ended":
                self.pending.pop(fact["call"], None)
            case "cycle_started" if fact["ours"]:
                self.cycle = "running"
            case "load_shuffler":
                self.shuffler_batch = fact["batch"]
            case "batch_released":
                self.taken, self.shuffler_batch = fact["batch"], None
            case "reshuffle_by_hand":
                self.goes_on = fact.get("goes_on", False)
            case "load_shoe" | "take_in_hand" if self.phase != "reshuffle_load" or self.goes_on:
                self.batches.append(fact["batch"])
                self.taken, self.cut_at = None, None
            case "ready_to_deal":
                self.batches.append(fact["batch"])
            case "card_drawn":
                self.cards += 1
                boot, count = self.seen.get(source, (None, 0))
                if boot is None:
                    self.seen[source] = (None, count + 1)
            case "cut_card":
                self.cut_at = fact["at_"]
            case "cutting_card_at":
                self.cut_at = fact["at_"]
            case "side_wagers_settled":
                self.matched = fact.get("match", ())
            case "round_settled":
                self.rounds += 1
            case "fault_latched" if fact["blocks"] == "nothing":
                self.alarms[fact["fault"]] = fact["code"]
            case "fault_latched":
                self.faults_latched += 1
                self.faults[fact["fault"]] = fact["code"]
            case "alarm_gone":
                self.alarms.pop(fact["fault"], None)
            case "clear":
                self.faults.pop(fact["fault"], None)
            case _:
                pass
        if "moves" in fact:
            self.phase = fact["moves"][1]
