"""One firmware job over one port: its progress, what the device prints beside it, and its end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from controller.cli.event_lines import note
from controller.cli.send import End

if TYPE_CHECKING:
    from firmware_bridge.firmware.host import JobMaker, Progress
    from firmware_bridge.link import Outcome

SESSION_S = 10.0
"""Seconds that a device may take until its first session stands."""
TURN_S = 0.5
PROGRESS_S = (2.0, 5.0)
"""Seconds until the first line of progress, and between the next ones."""
LOOK_S = 1.0
"""Seconds between looks for a device that went away, under another name."""
READS = frozenset({"list", "echo", "identify"})
AFTER = {
    "upload": (
        "the device keeps what it runs; `firmware list` shows what it holds, and the same upload goes on, or "
        "starts again where the device has forgotten it"
    ),
    "confirm": "`firmware list` shows whether the image is confirmed",
    "reset": "`identify` and `firmware list` show what it runs",
}
"""What to do when nobody knows what became of a job."""


def carried_out(uri: str, name: str, job: JobMaker) -> End:
    """The end of the job `name`, told in words. Raises BadUri and what `wires.record` raises."""
    return _Talk(uri, name, job).run()


class _Talk:
    """A session over a port. A device that comes back under another name is found by its serial number."""

    def __init__(self, uri: str, name: str, job: JobMaker) -> None:
        from random import SystemRandom

        from controller.cli.wires import captured
        from firmware_bridge.clock import SystemClock
        from firmware_bridge.firmware.host import FirmwareHost
        from firmware_bridge.port import Port
        from firmware_bridge.transports import open_transport, parse_uri

        parsed = parse_uri(uri)
        self._name = name
        self._uri = uri
        self._clock = SystemClock()
        self._host = FirmwareHost(job, SystemRandom(), packets=parsed.packets, writes=name not in READS)
        self._wire = captured(open_transport(uri))
        self._port = Port("the device", self._wire, self._host, self._clock, self._take)
        self._serial = parsed.usb.serial if parsed.usb else None
        self._greeted = False
        self._trouble: tuple[str, str] | None = None
        self._outcome: Outcome | None = None
        self._done: Progress | None = None
        self._since = self._clock.now()
        self._line_due = self._since + PROGRESS_S[0]
        self._look_due = 0.0

    def run(self) -> End:
        from controller.cli.signals import ended_by_signals

        with ended_by_signals(self._stop) as ending:
            try:
                while ending.by is None and not self._over:
                    self._port.step(TURN_S)
                    self._turn(self._clock.now())
                hint = self._port.health().hint
            finally:
                self._port.close()
        if self._outcome is not None:
            return self._ended(self._outcome)
        code, why = self._trouble or ("", "")
        if ending.by is not None:
            code, why = "interrupted", f"{ending.by} came first"
        if not self._greeted:
            text = why if hint is None else f"{why}; {hint}"
            return End("not_sent", f"{self._name} was not begun: {text}", code)
        return self._unknown(self._so_far(why))

    @property
    def _over(self) -> bool:
        """Trouble ends it only before the job began: later the device may come back."""
        return self._outcome is not None or (self._trouble is not None and not self._greeted)

    def _stop(self) -> None:
        self._wire.stop()

    def _turn(self, now: float) -> None:
        """What no byte of the device brings about."""
        due = self._host.deadline()
        is_open = self._port.health().state == "open"
        if not is_open and due is not None and now >= due:  # the port ticks it only while it is open
            self._take("", self._host.tick(now))
        if not self._greeted and now >= self._since + SESSION_S:
            self._trouble = self._trouble or ("silent", f"the device gave no session within {SESSION_S:g} s")
        if self._host.away and not is_open and now >= self._look_due:
            self._look_due = now + LOOK_S
            self._look_elsewhere()
        if now >= self._line_due and self._outcome is None:
            self._line_due = now + PROGRESS_S[1]
            note(f"{self._name}: {self._progress(now)}")

    def _progress(self, now: float) -> str:
        seconds = now - self._since
        if not self._greeted or self._host.away:
            return f"waiting for the device, {seconds:.0f} s"
        if self._done is None:
            return f"the device is at work, {seconds:.0f} s"
        done, total = self._done.done, self._done.total
        rate = done / seconds / 1000
        return f"{done} of {total} bytes, {100 * done // total} %, {rate:.1f} kB/s"

    def _look_elsewhere(self) -> None:
        """A bootloader may be another USB device, and a serial port may come back under another path."""
        from firmware_bridge.transports import discover

        scheme = self._uri.partition(":")[0]
        found = [
            one.uri
            for one in discover.look()[0]
            if one.usb is not None and one.usb.serial is not None and one.usb.serial == self._serial
            if one.uri is not None and one.trouble is None and one.kind in {"serial", "usb"}
        ]
        found.sort(key=lambda uri: uri.partition(":")[0] != scheme)
        if found and self._uri not in found:
            self._move(found[0])

    def _move(self, uri: str) -> None:
        from firmware_bridge.port import Port
        from firmware_bridge.transports import open_transport, parse_uri

        note(f"the device {self._serial} is at {uri} now")
        self._port.close()
        self._uri, self._host.packets = uri, parse_uri(uri).packets
        self._wire = open_transport(uri)
        self._port = Port("the device", self._wire, self._host, self._clock, self._take)

    def _take(self, name: str, outputs: Sequence[object]) -> None:
        """The port's `deliver`."""
        del name
        from firmware_bridge.firmware.host import Ended, Greeted, Printed, Progress, Told
        from firmware_bridge.port import Crashed, Opened, Unavailable

        for output in outputs:
            match output:
                case Greeted(session):
                    if not self._greeted and isinstance(session.serial, str):
                        self._serial = session.serial
                    self._greeted = True
                case Progress():
                    self._done = output
                case Told(text):
                    note(f"{self._name}: {text}")
                case Printed(text):
                    note(f"the device prints: {text}")
                case Ended(outcome):
                    self._outcome = outcome
                case Opened():
                    self._trouble = None
                case Unavailable(kind, text):
                    self._trouble = kind.lower(), text
                case Crashed(error, where):
                    print(f"{error} at {where}", file=sys.stderr, flush=True)

    def _ended(self, outcome: Outcome) -> End:
        from firmware_bridge.link import Done, NotSent, Refused

        match outcome:
            case Done(answer):
                return End("done", answer=answer)
            case Refused(code, name):
                text = (
                    f"the device refused {self._name} ({name}, its code {code})" if code.isdigit() else name
                )
                return End("refused", text, code)
            case NotSent(reason):
                return End("not_sent", f"{self._name} was not sent: {reason}")
        why = self._so_far(outcome.reason)
        return self._unknown(why if self._trouble is None else f"{why}; {self._trouble[1]}")

    def _so_far(self, why: str) -> str:
        if self._done is None:
            return why
        return f"{why}; {self._done.done} of {self._done.total} bytes were in the device"

    def _unknown(self, why: str) -> End:
        if self._name in READS:
            return End("unknown", f"{self._name} was not answered ({why}): it only asks, so ask again")
        return End("unknown", f"nobody knows what became of {self._name} ({why}): {AFTER[self._name]}")
