"""How far a long run is: a line on stderr now and then; on a terminal each takes the place of the last."""

from __future__ import annotations

import sys
from collections.abc import Callable

AFTER_S, EVERY_S = 2.0, 1.0
"""Seconds until the first line, and between two."""


class Progress:
    """`now` is the time in seconds from the start; `tell` prints a line."""

    def __init__(self, now: Callable[[], float], tell: Callable[[str], None] | None = None) -> None:
        self._now, self._print = now, tell or _on_stderr
        self._next = now() + AFTER_S
        self._told = ""

    def __call__(self, words: Callable[[], str]) -> None:
        """Tell these words if it is time, and they are not those of the last time."""
        if self._now() >= self._next:
            self._next = self._now() + EVERY_S
            self.tell(words())

    def tell(self, text: str) -> None:
        if text != self._told:
            self._print(text)
        self._told = text

    def end(self) -> None:
        """Clear the line, where there is one."""
        if self._told and sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _on_stderr(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)
