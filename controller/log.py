"""structlog, configured here and only called from entry points (law 2).

One JSON object a line on stderr for journald, coloured text when stderr is a terminal. A log call never
raises: a closed stderr loses lines, never the daemon. No line may hold a card (law 7): callers log kinds
and counters, frames only at debug level and masked.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Mapping, MutableMapping
from typing import Any, TextIO

import structlog

LEVELS = ("debug", "info", "warning", "error", "critical")

Log = structlog.typing.FilteringBoundLogger


class _SafeLogger:
    """Writes whole lines; a reader that went away costs the lines, not the caller."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def msg(self, message: str) -> None:
        try:
            with self._lock:
                self._stream.write(message + "\n")
                self._stream.flush()
        except (OSError, ValueError):  # closed by its reader, or closed here at interpreter exit
            return

    debug = info = warning = error = critical = exception = log = fatal = warn = msg


def configure(level: str = "info", stream: TextIO | None = None, *, console: bool | None = None) -> None:
    """Configure logging for this process; entry points only. `console` None: as the stream is a terminal."""
    out = sys.stderr if stream is None else stream
    if console is None:
        console = out.isatty()
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if console else structlog.processors.JSONRenderer()
    )
    structlog.configure(  # noqa: TID251 - the one place, called from entry points (law 2)
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _plain,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=lambda *_: _SafeLogger(out),
        cache_logger_on_first_use=True,
    )


def _plain(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Bytes as hex: JSON would show them as the text "b'..'"."""
    for key, value in event.items():
        if isinstance(value, bytes):
            event[key] = value.hex()
    return event


def where(error: BaseException) -> str:
    """The class of an error and the lines it came through; not its message, which may name a card (law 7)."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    steps = " < ".join(
        f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in reversed(frames)
    )
    return f"{type(error).__name__} at {steps}" if steps else type(error).__name__


def get() -> Log:
    """The process's logger; bind table, boot and device before handing it on (threads lose context, I-71)."""
    logger: Log = structlog.get_logger()
    return logger.bind()
