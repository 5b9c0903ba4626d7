"""The one place where foreign errors become ours (pyserial leaks four unrelated families)."""

from __future__ import annotations

import errno
import os
import termios
from types import TracebackType

from firmware_bridge.errors import Absent, BridgeError, Busy, Denied, LinkLost, Unsupported

FOREIGN = (OSError, termios.error, TypeError, ValueError, NotImplementedError)
"""SerialException and SerialTimeoutException are OSErrors; termios.error is not."""

_OPENING: dict[int, type[BridgeError]] = {
    errno.EACCES: Denied,
    errno.EPERM: Denied,
    errno.EBUSY: Busy,
    errno.EAGAIN: Busy,
    errno.ENOTTY: Unsupported,
    errno.EINVAL: Unsupported,
    errno.EISDIR: Unsupported,
}


class translated:  # noqa: N801 - read as a word: `with translated(...)`
    """Let nothing but BridgeErrors out of a block. `port` is for people, `check` what they should look at.

    While opening, errors tell what stands in the way, and `unfit` what to do about a port that exists and
    cannot be used; afterwards each of them means that the handle is dead.
    """

    __slots__ = ("_check", "_opening", "_port", "_unfit")

    def __init__(
        self,
        port: str,
        check: str = "the device, its cable and its power",
        *,
        opening: bool = False,
        unfit: str = "`cutcard ports` tells what it can be used as",
    ) -> None:
        self._port = port
        self._check = check
        self._opening = opening
        self._unfit = unfit

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, BridgeError) or not isinstance(error, FOREIGN):
            return
        raise (self._not_opened(error) if self._opening else self._died(error)) from error

    def _not_opened(self, error: BaseException) -> BridgeError:
        number = _errno(error)
        if isinstance(error, OSError | termios.error):
            cause = _OPENING.get(number or 0, Absent)
        else:
            cause = Unsupported
        if cause is Denied:
            return Denied(f"{self._port} exists but this user may not open it ({words(error)})")
        if cause is Busy:
            return Busy(f"{self._port} is held by another program: stop that program, or wait")
        if cause is Unsupported:
            return Unsupported(f"{self._port} cannot be used like this ({words(error)}): {self._unfit}")
        return Absent(f"{self._port} is not there ({words(error)}): check {self._check}")

    def _died(self, error: BaseException) -> BridgeError:
        if isinstance(error, NotImplementedError):
            return Unsupported(f"{self._port} cannot do this ({words(error)})")
        return LinkLost(f"{self._port} was lost ({words(error)}): check {self._check}")


def _errno(error: BaseException) -> int | None:
    """The error number, also where pyserial hides it in the error before, or in termios.error's arguments."""
    number = getattr(error, "errno", None)
    if number is None and isinstance(error, termios.error) and error.args:
        number = error.args[0]
    if number is None and error.__context__ is not None:
        return _errno(error.__context__)
    return number if isinstance(number, int) else None


def words(error: BaseException) -> str:
    """What an error says, for a sentence: the system's words for its number, where it has one."""
    number = _errno(error)
    if number is not None and number > 0:
        return os.strerror(number)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
