"""When somebody opens a pseudo-terminal or reads from it: told by the kernel (inotify), never polled for."""

from __future__ import annotations

import ctypes
import os
import struct

_ACCESS, _OPEN = 0x01, 0x20
_EVENT = struct.Struct("iIII")
_ROOM = 4096


class PtyWatch:
    """Watches the terminal at `path`; `fileno` is readable after each open and read by anyone."""

    def __init__(self, path: str) -> None:
        self.opened = False
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0 or libc.inotify_add_watch(self._fd, os.fsencode(path), _ACCESS | _OPEN) < 0:
            number = ctypes.get_errno()
            self.close()
            raise OSError(number, os.strerror(number), path)

    def fileno(self) -> int:
        return self._fd

    def look(self) -> None:
        """Take in what happened; `opened` is true from the first open on."""
        try:
            found = os.read(self._fd, _ROOM)
        except BlockingIOError:
            return
        at = 0
        while at < len(found):
            _, mask, _, size = _EVENT.unpack_from(found, at)
            self.opened |= bool(mask & _OPEN)
            at += _EVENT.size + size

    def close(self) -> None:
        descriptor, self._fd = self._fd, -1
        if descriptor >= 0:
            os.close(descriptor)
