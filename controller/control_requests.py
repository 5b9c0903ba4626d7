"""Requests and answers of the control socket as text, and the socket file itself."""

from __future__ import annotations

import errno
import grp
import json
import os
import socket
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from controller.access import SOCKET_GROUP
from controller.table.inputs import Refusal
from firmware_bridge.errors import Busy

LINE_LIMIT = 64 * 1024
"""Bytes of one request."""
VIEWS = ("status", "alarms", "faults", "expected")
TOO_LONG = f"a request may have {LINE_LIMIT} bytes; this one is longer"

Line = dict[str, Any]


class SocketUnusable(Exception):
    """The control socket cannot be made where the configuration says."""


class Misunderstood(Exception):
    """A request that cannot be understood; the text is the answer."""


def error_line(text: str) -> Line:
    return {"ok": False, "error": text}


def refused_line(refusal: Refusal) -> Line:
    return {
        "ok": False,
        "refused": refusal.code,
        "why": refusal.why,
        "clause": refusal.clause,
        "expected": list(refusal.expected),
    }


def parse(line: bytes) -> Line:
    try:
        request = json.loads(line)
        json.dumps(request, ensure_ascii=False).encode()  # half a surrogate pair cannot be journaled
    except (ValueError, RecursionError):
        raise Misunderstood('a request is one JSON object on a line, e.g. {"get": "status"}') from None
    if not isinstance(request, dict):
        raise Misunderstood('a request is a JSON object, e.g. {"get": "status"}')
    verbs = [verb for verb in ("do", "get", "follow") if verb in request]
    if len(verbs) != 1:
        raise Misunderstood('a request has exactly one of "do", "get" and "follow"')
    return request


def view_of(request: Mapping[str, Any]) -> str:
    what = request["get"]
    if not isinstance(what, str) or what not in VIEWS:
        raise Misunderstood(f'"get" takes one of {", ".join(VIEWS)}')
    if len(request) > 1:
        raise Misunderstood('"get" stands alone in its request')
    return what


def value_of(name: str, value: Any) -> str | int | bool:
    """An argument of an event: text, whole number or flag; a list of numbers becomes "1,2,5"."""
    if isinstance(value, str | int):
        return value
    if isinstance(value, list) and all(type(item) is int for item in value):
        return ",".join(str(item) for item in value)
    raise Misunderstood(f"{name} takes a text, a whole number, true, false or a list of whole numbers")


# --- the socket file ---


def listen(path: Path) -> socket.socket:
    """A listening socket at `path`, mode 660, group `cutcard` where it exists.

    A name left by a dead daemon is removed, but only when nobody answers there. Raises Busy when a daemon
    does, SocketUnusable when the path cannot be used.
    """
    _remove_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        with suppress(KeyError, PermissionError):
            os.chown(path, -1, grp.getgrnam(SOCKET_GROUP).gr_gid)
        path.chmod(0o660)  # nobody can connect before `listen`
        listener.listen(16)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise SocketUnusable(f"the control socket {path} cannot be made: {error.strerror}") from error
    return listener


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SocketUnusable(f"{path} exists and is no socket: choose another name for the control socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError as error:
            if error.errno != errno.ECONNREFUSED:
                raise SocketUnusable(
                    f"the control socket {path} cannot be tried: {error.strerror}"
                ) from error
            path.unlink()
            return
    raise Busy(f"another daemon answers on {path}: stop it first, or give this table another socket")
