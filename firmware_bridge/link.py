"""Placeholder until the link machine is written: the outcome types are final."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Done:
    """The device did it and said so."""

    answer: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refused:
    """The device said no: nothing happened. `code` is the device's own, `name` its meaning."""

    code: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class NotSent:
    """No byte left this machine."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Sent without proof: it may have happened. Never resend what moves a card (law 5)."""

    reason: str


Outcome = Done | Refused | NotSent | Unknown


@dataclass(frozen=True, slots=True)
class Send:
    """Bytes for the wire, whole or not at all."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Complete:
    """The one end of the command `call_id`."""

    call_id: str
    outcome: Outcome
