"""Processes of our own that end with their parent, however it ends (prctl PR_SET_PDEATHSIG)."""

from __future__ import annotations

import signal

KILLED, ENDED = signal.SIGKILL, signal.SIGTERM


def code(module: str, function: str, by: signal.Signals) -> str:
    """For `python -c`: call the function; when the parent dies the process gets the signal `by`."""
    return (
        f"import ctypes; ctypes.CDLL(None).prctl(1, {int(by)}); from {module} import {function}; {function}()"
    )
