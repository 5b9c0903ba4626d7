"""What goes into the table core and what comes out: inputs, facts, effects, refusals. All plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from devices.events import DeviceEvent
from firmware_bridge.frozen import value
from firmware_bridge.link import Outcome

OPERATOR = "operator"
SERVICE = "service"
"""Sources of facts beside the device ids of the table's configuration."""


class Role(StrEnum):
    DEALER = "dealer"
    SUPERVISOR = "supervisor"
    TECHNICIAN = "technician"
    SURVEILLANCE = "surveillance"


@value
class OperatorEvent:
    """A tap: may be refused. `key` makes it idempotent; `who` is the caller's name."""

    event: str
    args: Mapping[str, str | int | bool] = field(default_factory=dict)
    who: str = ""
    roles: frozenset[Role] = frozenset()
    key: str | None = None


@value
class Observed:
    """A device event: a physical fact, never refused."""

    event: DeviceEvent


@dataclass(frozen=True, slots=True)
class Ended:
    """The one end of the command `call_id` that an effect sent to `device`."""

    device: str
    call_id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Booted:
    """The daemon started (again): commands issued without an end are Unknown from here on."""

    boot_id: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """The service itself found something wrong (a thread died, the key is missing): latched.

    `device_down` is an alarm like one that the device's own link raises; nothing is raised twice.
    """

    code: str
    detail: str
    device: str | None = None


@dataclass(frozen=True, slots=True)
class Hour:
    """A new hour of wall time began, counted from the epoch; `day` names the gaming day it lies in.

    `local` is what the wall's clock showed then, as `2026-01-31T14:00`; empty where it is not told.
    The edge says so at the start and at each full hour: the core has no clock.
    """

    hour: int
    day: str
    local: str = ""


Input = OperatorEvent | Observed | Ended | Booted | Trouble | Hour


@value
class Fact:
    """Something that has happened. `data` is open; `sealed` names cards nobody may see yet (law 7).

    Values are plain: None, bool, int, str, bytes, list, dict with text keys. No floats, so that the
    deterministic encoding has one form. `source` is the origin: operator, service or a device id.
    """

    kind: str
    source: str
    data: Mapping[str, Any] = field(default_factory=dict)
    sealed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def whole(self) -> dict[str, Any]:
        """Open and sealed values together; for the core alone."""
        return {**self.data, **self.sealed}


@dataclass(frozen=True, slots=True)
class Command:
    """An effect: send this to a device once its facts are committed."""

    device: str
    call_id: str
    name: str
    args: Mapping[str, Any] = field(default_factory=dict)


@value
class Refusal:
    """Why an operator event was not accepted, the clause, and what is expected instead."""

    code: str
    why: str
    clause: str | None = None
    expected: tuple[str, ...] = ()
