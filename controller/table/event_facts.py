"""A device event as a fact: what is open, and what is sealed while a card may not be seen (law 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.table.draft import Draft
from devices import events as ev

_AS_IT_IS = frozenset({str, int, bool, bytes, type(None)})


def plain(event: ev.DeviceEvent) -> dict[str, Any]:
    """The event as open fact data, without the texts that may name a card and without `raw`."""
    data: dict[str, Any] = {"n": event.n, "seq": event.seq}
    if event.mono is not None:
        data["mono_us"] = round(event.mono * 1e6)
    if event.token is not None:
        data["token"] = event.token
    if event.diag:
        data["diag"] = list(event.diag)
    if not event.aligned:
        data["aligned"] = False
    hidden = (*event.secret, "text")
    data.update({k: plain_value(v) for k, v in event.own_fields().items() if k not in hidden})
    return data


def secrets(event: ev.DeviceEvent) -> dict[str, Any]:
    """What `plain` leaves out: sealed as long as the card may not be seen (law 7)."""
    hidden = {k: plain_value(getattr(event, k)) for k in (*event.secret, "text") if hasattr(event, k)}
    return {**hidden, "raw": plain_value(event.raw)}


def record(
    draft: Draft, event: ev.DeviceEvent, extra: dict[str, Any] | None = None, *, unjudged: bool = False
) -> None:
    """Journal the event; whatever may name a card is sealed. `unjudged` ones change nothing but the count."""
    kind = f"unjudged_{event.kind}" if unjudged else event.kind
    data = {**plain(event), **(extra or {})}
    if ev.carries_card(event):
        draft.add(kind, data, secrets(event))
    else:
        draft.add(kind, {**data, "raw": plain_value(event.raw)})


def plain_value(value: Any) -> Any:
    """The value as a fact may hold it. What has no such form is told as text: a fact is never refused."""
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if isinstance(value, Mapping):
        return {str(k): plain_value(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain_value(v) for v in value]
    return bytes(value) if isinstance(value, bytearray | memoryview) else str(value)
