"""The Transport protocol: bytes in and out of one handle, owned by one thread.

A transport object outlives its handle: it may be opened again after `LinkLost`. Only the owner thread
calls `open`, `read`, `write` and `close`; `wake` and `stop` may be called from any thread.
"""

from __future__ import annotations

from typing import Protocol


class Receiver(Protocol):
    """The receive-only form (law 10): there is no way to write."""

    @property
    def uri(self) -> str:
        """The URI this transport was made from."""

    def open(self) -> None:
        """Open the handle and drain stale input. Raises Absent, Busy, Denied, WrongDevice or Unsupported."""

    def read(self, timeout: float) -> bytes:
        """Wait up to `timeout` seconds and return 1..n bytes; b"" when none came or `wake` was called.

        Raises LinkLost when the handle is dead. Blocks in the kernel; never polls.
        """

    def wake(self) -> None:
        """Make a `read` in progress, or the next one, return at once. Thread-safe."""

    def stop(self) -> None:
        """Let neither an `open` nor a `read`, in progress or later, wait any more. Thread-safe."""

    def close(self) -> None:
        """Close the handle; safe to call twice and after an error."""

    def dispose(self) -> None:
        """Close the handle and free what outlives it (the wake pipe). The object is then unusable."""

    def describe(self) -> str:
        """One line for people: which port, which settings."""


class Transport(Receiver, Protocol):
    """The command form."""

    def write(self, data: bytes, timeout: float = 0.5) -> None:
        """Write all of `data` or raise LinkLost: after a partial write nobody may try the rest (I-08)."""
