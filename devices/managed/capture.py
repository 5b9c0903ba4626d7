"""The pure decoder of a managed device's wire: a dump or capture in, device events out, nothing asked."""

from __future__ import annotations

from collections.abc import Sequence

from devices.base import Counters, DriverOutput, Setup
from devices.events import (
    CommandDone,
    CommandRefused,
    CommandSeen,
    DeviceEvent,
    GapPossible,
    Rebooted,
)
from devices.managed.dialect import Dialect, translated
from devices.managed.fields import Malformed, plain
from devices.managed.messages import (
    DEVICE,
    EVENTS,
    IDENTITY,
    OS,
    READ_EVENTS,
    Ring,
    check_identity,
    check_ring,
    error_name,
)
from devices.managed.packets import framing, noise, rejected
from firmware_bridge import smp
from firmware_bridge.framing import smp_console, smp_packets


class ManagedDecoder:
    """Takes answers and requests of any number of sessions; an event read twice is told once."""

    def __init__(self, setup: Setup, dialect: Dialect) -> None:
        self.device = setup.device
        self.counters = Counters()
        self._dialect = dialect
        self._event = dialect.maker(setup)
        self._decoder = framing(setup).decoder()
        self._host = framing(setup).decoder()
        self._boot: int | None = None
        self._since: int | None = None
        self._asked = 0
        """The event from which the host read last: those before it left out on purpose are no gap."""
        self._serial: str | None = None

    def start(self, now: float) -> Sequence[DriverOutput]:
        del now
        return []

    def feed(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        return self._feed(self._decoder, data, now)

    def feed_host(self, data: bytes, now: float) -> Sequence[DriverOutput]:
        return self._feed(self._host, data, now)

    def tick(self, now: float) -> Sequence[DriverOutput]:
        del now
        return []

    def lost(self, reason: str, now: float) -> Sequence[DriverOutput]:
        """The end of the input: what is left of it is told."""
        del reason
        rest = [*self._decoder.flush(), *self._host.flush()]
        return [*noise(rest, self._event, now)]

    def ack(self, n: int, now: float) -> Sequence[DriverOutput]:
        del n, now
        return []

    def deadline(self) -> float | None:
        return None

    def _feed(
        self, decoder: smp_console.Decoder | smp_packets.Decoder, data: bytes, now: float
    ) -> list[DriverOutput]:
        out: list[DriverOutput] = []
        for item in decoder.feed(data):
            if isinstance(item, smp_console.Packet):
                out += self._packet(item.data, now)
            else:
                out += noise([item], self._event, now)
        return out

    def _packet(self, packet: bytes, now: float) -> list[DeviceEvent]:
        message = smp.decode(packet)
        try:
            if isinstance(message, smp.Malformed):
                raise Malformed(message.reason)
            out = self._message(message, packet, now)
        except Malformed as wrong:
            return [rejected(packet, str(wrong), self._event, now)]
        self.counters.frames += 1
        return out

    def _message(self, message: smp.Message, packet: bytes, now: float) -> list[DeviceEvent]:
        what, failure = (message.group, message.command), smp.failure(message)
        if message.op is smp.Op.WRITE:
            return self._seen(message, packet, now)
        if message.op is smp.Op.READ:
            since = message.body.get("since")
            if what == READ_EVENTS and isinstance(since, int):
                self._asked = since
            return []
        if failure is not None and message.group != OS:
            code, name = str(failure.rc), error_name(failure.group, failure.rc)
            return [self._event(CommandRefused, now, raw=packet, code=code, name=name)]
        if failure is not None:
            return []
        if message.op is smp.Op.WRITE_ANSWER:
            return [] if message.group == OS else [self._event(CommandDone, now, raw=packet)]
        if what == IDENTITY:
            found = check_identity(message.body)
            if self._serial not in {None, found["serial"]}:
                self._boot = self._since = None  # another device, with numbers of its own
            self._serial = found["serial"]
            return self._restarted(found["boot"], now)
        if what == READ_EVENTS:
            return self._ring(check_ring(message.body), now)
        return []

    def _seen(self, message: smp.Message, packet: bytes, now: float) -> list[DeviceEvent]:
        """A host's write; its echo of a session is none."""
        if message.group in {OS, EVENTS}:
            return []
        known = (
            c.spec.name
            for c in self._dialect.commands
            if (c.group, c.command) == (message.group, message.command)
        )
        name = next(known, f"{message.group}/{message.command}") if message.group != DEVICE else "settings"
        args = tuple(f"{key}={plain(value)}" for key, value in message.body.items())
        return [self._event(CommandSeen, now, raw=packet, command=name, args=args)]

    def _restarted(self, boot: int, now: float) -> list[DeviceEvent]:
        before, self._boot = self._boot, boot
        if before in {None, boot}:
            return []
        self._since, self._asked = 1, 0
        return [self._event(Rebooted, now, boot=boot)]

    def _ring(self, ring: Ring, now: float) -> list[DeviceEvent]:
        out = self._restarted(ring.boot, now)
        for entry in ring.entries:
            since = entry.n if self._since is None else self._since
            if entry.n < since:
                self.counters.repeats += 1
                continue
            if entry.n > (wanted := max(since, self._asked)):
                out.append(self._event(GapPossible, now, missing=entry.n - wanted))
            out += translated(self._dialect, entry, self._event, now)
            self._since = entry.n + 1
        return out
