"""sd_notify: readiness, status and watchdog for systemd, or nothing at all without it."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress


class Notifier:
    """Sends to `$NOTIFY_SOCKET`. `watchdog_s` is half of systemd's deadline in seconds, None without one."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        self.watchdog_s: float | None = None
        if environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid()):
            with suppress(ValueError):
                self.watchdog_s = int(environ.get("WATCHDOG_USEC", "")) / 2e6

    def tell(self, *lines: str) -> None:
        """Send `READY=1`, `STATUS=...` and the like; a systemd that does not listen is no fault of ours."""
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock,
            suppress(OSError),
        ):
            sock.setblocking(False)
            sock.sendto("\n".join(lines).encode(), address)
