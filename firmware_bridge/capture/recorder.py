"""Recording: a wrapper around any transport that writes what goes over it to a file."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firmware_bridge.capture import links, pcapng
from firmware_bridge.capture.links import Pipe
from firmware_bridge.clock import Clock
from firmware_bridge.errors import BridgeError, Stalled
from firmware_bridge.transport import Receiver, Transport

if TYPE_CHECKING:
    from firmware_bridge.transports.usb import Ends

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ENOENT, _EPIPE, _ESHUTDOWN = -2, -32, -108
"""How Linux ends a transfer that was given up, one at a halted endpoint, and one whose device is gone."""


class Recorder:
    """One capture file of one wire. Times are the wall clock at the start plus monotonic intervals.

    Each block is written at once and whole, so that a crash leaves a file that can be read. Recording never
    troubles the wire: when the file takes no more, or `forbidden` gives a reason, it stops for good and says
    so once to `told`. A file whose port was never opened is removed at the end; one that is to be
    overwritten stays as it is until then.
    """

    def __init__(
        self,
        file: Path,
        wire: Receiver,
        clock: Clock,
        *,
        told: Callable[[str], None],
        forbidden: Callable[[], str | None] = lambda: None,
        force: bool = False,
    ) -> None:
        """Make the file, mode 600. Raises OSError with its name; FileExistsError unless `force` is given."""
        self.file = file
        self.stopped: str | None = None
        """Why recording ended before its time."""
        self.records = self.bytes_in = self.bytes_out = 0
        self._told = told
        self._forbidden = forbidden
        self._clock = clock
        self._wall = (clock.wall() - _EPOCH) // timedelta(microseconds=1) * 1000
        self._since = clock.now()
        self._size = 0
        self._opened = self._regular = False
        self._wire = wire
        self._usb = wire.uri.startswith(("usb:", "usbhid:"))
        self._transfer = 0
        self._into: tuple[int, Pipe] | None = None  # the IN transfer that waits for data
        self._emptied = False
        self._fd, self._made = -1, file
        try:
            self._make(force=force)
            link = links.USB_LINUX_MMAPPED if self._usb else links.RTAC_SERIAL
            self._write(pcapng.section(f"cutcard {metadata.version('cutcard')}"))
            self._write(pcapng.interface(link, wire.uri, wire.describe()))
        except OSError as error:
            self.close()
            error.filename = str(file)  # a failed write has none, and what lies beside was never heard of
            raise
        except BaseException:
            self.close()
            raise

    def _make(self, *, force: bool) -> None:
        """Open the file, or one beside it that takes its place when the port was opened."""
        if not force:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._fd = os.open(self.file, flags, 0o600)
        elif self.file.exists() and not self.file.is_file():  # a pipe, a terminal, a directory
            self._fd = os.open(self.file, os.O_WRONLY | os.O_CLOEXEC)
        else:
            number, name = tempfile.mkstemp(prefix=".capture-", dir=self.file.resolve().parent)
            self._fd, self._made = number, Path(name)
        self._regular = stat.S_ISREG(os.fstat(self._fd).st_mode)
        if self._regular:
            os.fchmod(self._fd, 0o600)

    def check(self) -> bool:
        """Whether recording goes on; it stops here when it is forbidden by now."""
        if self.stopped is None and (reason := self._forbidden()) is not None:
            self._stop(reason)
        return self.stopped is None

    def opened(self) -> None:
        """The port was opened: on a serial line that is a record without data."""
        if self._usb:
            self._submit()
        else:
            self._serial(links.STATUS_CHANGE, b"", f"opened: {self._wire.describe()}")
        if not self._opened and self.stopped is None:
            self._keep()

    def _keep(self) -> None:
        """From now on the file is worth keeping, more than what stood in its place."""
        try:
            if self._made != self.file:
                self._made.replace(self.file.resolve())
        except OSError as error:
            self.records = 0
            self._stop(f"{self.file} cannot be overwritten ({error.strerror}): nothing is recorded")
        else:
            self._opened = True

    def came(self, data: bytes) -> None:
        """Bytes were read."""
        self.bytes_in += len(data)
        if self._usb:
            self._complete(data, 0)
            self._submit()
        else:
            self._serial(links.RX_START, data)

    def sent(self, data: bytes, error: BridgeError | None = None) -> None:
        """Bytes were written; with an `error` nobody knows how many of them left."""
        self.bytes_out += len(data)
        comment = "" if error is None else f"this write failed: {error}"
        if not self._usb:
            self._serial(links.TX_START, data, comment)
        elif (ends := self._ends()) is not None:  # else nothing was open, and nothing left us
            kind = links.CONTROL if ends.out is None else self._kind(ends)
            pipe = Pipe(ends.bus, ends.address, ends.out or 0, kind)
            setup = links.set_report(ends.interface, len(data)) if ends.out is None else b""
            self._out(pipe, data, _status(error), comment, setup)
            if self._emptied:
                self._out(pipe, b"", 0)
        self._emptied = False

    def empty(self, endpoint: int, status: int) -> None:
        """A USB transfer ended that no read or write shows: an empty packet (0), or a stall (-EPIPE).

        One to the device ends the packet that is being written.
        """
        if not endpoint & 0x80:
            self._emptied = True
        elif self._into is not None:
            self._complete(b"", status)
            self._submit()

    def lost(self, error: BridgeError) -> None:
        """A read failed: the port is of no use any more."""
        if self._usb:
            self._complete(b"", _status(error), str(error))
        else:
            self._serial(links.STATUS_CHANGE, b"", f"lost: {error}")

    def closed(self) -> None:
        """The port was closed: nobody waits for a transfer any more."""
        self._complete(b"", _ENOENT)

    def close(self) -> None:
        """End the file; safe to call twice."""
        descriptor, self._fd = self._fd, -1
        if descriptor < 0:
            return
        with suppress(OSError):
            os.close(descriptor)
        if self._regular and not self._opened:
            self._made.unlink(missing_ok=True)

    def _now(self) -> int:
        """Nanoseconds since 1970, never going back."""
        return self._wall + max(0, round((self._clock.now() - self._since) * 1e9))

    def _serial(self, event: int, data: bytes, comment: str = "") -> None:
        at = self._now()
        flags = {links.RX_START: pcapng.INBOUND, links.TX_START: pcapng.OUTBOUND}.get(event, 0)
        self._record(pcapng.packet(at, flags, links.serial(at, event, data), comment))

    def _submit(self) -> None:
        if (ends := self._ends()) is None:
            return
        self._transfer += 1
        self._into = self._transfer, Pipe(ends.bus, ends.address, ends.into, self._kind(ends))
        self._urb(*self._into, b"")

    def _complete(self, data: bytes, status: int, comment: str = "") -> None:
        if self._into is not None:
            self._urb(*self._into, data, status=status, comment=comment)
        self._into = None

    def _out(self, pipe: Pipe, data: bytes, status: int, comment: str = "", setup: bytes = b"") -> None:
        self._transfer += 1
        self._urb(self._transfer, pipe, data, comment=comment, setup=setup)
        self._urb(self._transfer, pipe, b"", status=status, size=len(data))

    def _urb(self, number: int, pipe: Pipe, data: bytes, *, comment: str = "", **more: Any) -> None:
        """One record; `more` is what `links.urb` knows beside the bytes."""
        at = self._now()
        flags = pcapng.INBOUND if pipe.endpoint & 0x80 else pcapng.OUTBOUND
        self._record(pcapng.packet(at, flags, links.urb(at, number, pipe, data, **more), comment))

    def _ends(self) -> Ends | None:
        """Where bytes go, as the open transport knows it."""
        return getattr(self._wire, "ends", None)

    @staticmethod
    def _kind(ends: Ends) -> int:
        return links.INTERRUPT if ends.interrupt else links.BULK

    def _record(self, block: bytes) -> None:
        if not self.check():
            return
        try:
            self._write(block)
        except OSError as error:
            with suppress(OSError):
                if self._regular:
                    os.ftruncate(self._fd, self._size)  # half a block must not stand at the end
            why = error.strerror or type(error).__name__
            self._stop(f"{self.file} takes no more ({why}): the recording ends there")
            return
        self.records += 1

    def _write(self, block: bytes) -> None:
        left = memoryview(block)
        while left:
            left = left[os.write(self._fd, left) :]
        self._size += len(block)

    def _stop(self, reason: str) -> None:
        self.stopped = reason
        self.close()
        self._told(reason)


def _status(error: BridgeError | None) -> int:
    if error is None:
        return 0
    number = getattr(error.__cause__, "errno", None)
    if isinstance(number, int) and number > 0:
        return -number
    return _EPIPE if isinstance(error, Stalled) else _ESHUTDOWN


class Recorded:
    """A receiver that is recorded; everything it does not know is the wire's own."""

    def __init__(self, wire: Receiver, recorder: Recorder) -> None:
        self._wire = wire
        self._recorder = recorder
        if hasattr(wire, "observer"):
            wire.observer = recorder.empty

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)

    @property
    def uri(self) -> str:
        return self._wire.uri

    def open(self) -> None:
        self._wire.open()
        self._recorder.opened()

    def read(self, timeout: float) -> bytes:
        try:
            data = self._wire.read(timeout)
        except BridgeError as error:
            self._recorder.lost(error)
            raise
        if data:
            self._recorder.came(data)
        return data

    def wake(self) -> None:
        self._wire.wake()

    def stop(self) -> None:
        self._wire.stop()

    def close(self) -> None:
        self._wire.close()
        self._recorder.closed()

    def dispose(self) -> None:
        """The wire's, and the end of its recording."""
        try:
            self._wire.dispose()
        finally:
            self._recorder.closed()
            self._recorder.close()

    def describe(self) -> str:
        return self._wire.describe()


class RecordedTransport(Recorded):
    """The command form."""

    _wire: Transport

    def __init__(self, wire: Transport, recorder: Recorder) -> None:
        super().__init__(wire, recorder)

    def write(self, data: bytes, timeout: float = 0.5) -> None:
        try:
            self._wire.write(data, timeout)
        except BridgeError as error:
            self._recorder.sent(data, error)
            raise
        self._recorder.sent(data)


def recorded(wire: Receiver, recorder: Recorder) -> Receiver:
    """The wire, recorded until it is disposed of; a receive-only one stays one (law 10)."""
    return RecordedTransport(wire, recorder) if hasattr(wire, "write") else Recorded(wire, recorder)  # type: ignore[arg-type]  # it has `write`
