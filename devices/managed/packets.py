"""How packets travel, and what comes between them as events (docs/protocols/managed.md, sections 2 and 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from devices.base import Maker, Setup
from devices.events import RAW_LIMIT, Chatter, DeviceEvent, FrameRejected
from firmware_bridge.framing import Garbage, smp_console, smp_packets


@dataclass(frozen=True, slots=True)
class Framing:
    """How packets travel: `encode` one, and a fresh decoder for one session."""

    encode: Callable[[bytes], bytes]
    decoder: Callable[[], smp_console.Decoder | smp_packets.Decoder]


def framing(setup: Setup) -> Framing:
    """One transfer a packet on USB, console lines elsewhere (docs/protocols/managed.md, sections 2 and 3)."""
    if setup.packets:
        return Framing(smp_packets.encode, smp_packets.Decoder)
    return Framing(smp_console.encode, smp_console.Decoder)


def rejected(packet: bytes, reason: str, event: Maker, now: float) -> DeviceEvent:
    """A packet whose check bytes fit and whose content makes no sense."""
    return event(FrameRejected, now, raw=packet[:RAW_LIMIT], reason=reason, bytes=len(packet))


def noise(items: Iterable[smp_console.Frame | Garbage], event: Maker, now: float) -> Iterable[DeviceEvent]:
    """Text and rejected bytes between packets as events."""
    for item in items:
        if isinstance(item, Garbage):
            yield event(FrameRejected, now, raw=item.data, reason=item.reason, bytes=item.count)
        elif isinstance(item, smp_console.Text):
            yield event(Chatter, now, raw=item.data, text=item.data.decode("utf-8", "replace"))
