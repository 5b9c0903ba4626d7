"""One port, read-only, until something ends it: what `monitor` and `capture` have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from controller.cli.exits import DEVICE, CommandError

if TYPE_CHECKING:
    from devices.base import Counters, DriverSpec
    from devices.events import DeviceEvent
    from firmware_bridge.transport import Receiver

FOREVER_S = 3600.0


class PortError(CommandError):
    """The port is absent, busy, denied or lost."""

    code = DEVICE


class Listener:
    """Hands on what a driver tells of one port; `note` gets what is said beside the events."""

    def __init__(
        self,
        spec: DriverSpec,
        wire: Receiver,
        event: Callable[[DeviceEvent], None],
        note: Callable[[str], None],
    ) -> None:
        from random import SystemRandom

        from devices.base import Setup
        from firmware_bridge.clock import SystemClock
        from firmware_bridge.port import Port
        from firmware_bridge.transports import parse_uri

        setup = Setup(spec.name, SystemRandom(), packets=parse_uri(wire.uri).packets)
        # The form that decodes captures: what a line tells, told the same way as by `decode`.
        driver = spec.reader(setup) if spec.polled else spec.decoder(setup)
        self.counters: Counters = driver.counters
        self.heard = False
        """Whether a single byte came."""
        self._clock = SystemClock()
        self._port = Port(spec.name, wire, driver, self._clock, self._take)
        self._wire = wire
        self._event = event
        self._note = note
        self._trouble: str | None = None
        self._told = 0
        self._closing = False

    def run(self, seconds: float | None, done: Callable[[], bool], turn: float = FOREVER_S) -> float:
        """Listen for `seconds`, until `done`, asked at least each `turn` seconds, or until a signal ends it.

        Gives the seconds it took; raises PortError when the port could not be had, or was lost. The wire is
        disposed of at the end.
        """
        from controller.cli.event_lines import printable
        from controller.cli.signals import ended_by_signals

        since, acked, hint = self._clock.now(), 0, None
        end = None if seconds is None else since + seconds
        with ended_by_signals(self._wire.stop) as ending:
            try:
                while ending.by is None and not done() and self._trouble is None:
                    self._port.step(turn if end is None else min(turn, max(0.0, end - self._clock.now())))
                    if self._told > acked:
                        acked = self._told
                        self._port.ack(acked)
                    if hint is None and (hint := self._port.health().hint) is not None:
                        self._note(hint)
                    if end is not None and self._clock.now() >= end:
                        break
            finally:
                self.heard = self._port.health().heard
                self._closing = True
                self._port.close()
        if self._trouble is not None and not done():
            raise PortError(printable(self._trouble))
        return self._clock.now() - since

    def _take(self, name: str, outputs: Sequence[object]) -> None:
        """The port's `deliver`."""
        del name
        from devices.events import DeviceEvent, LinkDown
        from devices.managed.session import RESTARTED
        from firmware_bridge.port import Crashed, Opened, Unavailable

        for output in outputs:
            if isinstance(output, LinkDown) and self._closing:
                continue
            if isinstance(output, DeviceEvent):
                self._told = output.n
                self._event(output)
                if isinstance(output, LinkDown) and output.reason != RESTARTED:
                    self._trouble = self._trouble or output.reason
            elif isinstance(output, Opened):
                self._note(f"listening on {output.port}")
            elif isinstance(output, Unavailable) and self._trouble is None:
                self._trouble = output.text
            elif isinstance(output, Crashed):
                self._note(f"{output.error} at {output.where}")
