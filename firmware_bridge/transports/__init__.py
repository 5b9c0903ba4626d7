"""Transport URIs: `serial:PATH?baud=N`, `socket:HOST:PORT`, `mem:NAME`.

The scheme's module is imported when a transport is made, so that a socket-only site never loads pyserial.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from firmware_bridge.errors import BadUri
from firmware_bridge.transport import Receiver, Transport

DEFAULT_BAUD = 115200
OPTIONS = {"serial": ("baud",), "socket": (), "mem": ()}
"""The schemes of this version and the keys each understands."""

_FORMS = "serial:PATH?baud=N, socket:HOST:PORT or mem:NAME"


@dataclass(frozen=True, slots=True)
class Uri:
    """A checked URI. `target` is path, host or name; `port` belongs to socket, `baud` to serial (bit/s)."""

    text: str
    scheme: str
    target: str
    port: int = 0
    baud: int | None = None
    options: dict[str, str] = field(default_factory=dict)


def parse_uri(text: str) -> Uri:
    """Check a URI without touching any device. Raises BadUri naming the nearest right word."""
    scheme, colon, rest = text.partition(":")
    if not colon:
        hint = f"; did you mean serial:{text}?" if text.startswith("/") else ""
        raise BadUri(f"{text!r} is no port: write {_FORMS}{hint}")
    if scheme not in OPTIONS:
        raise BadUri(f"{text!r}: unknown kind of port {scheme!r}{_nearest(scheme, OPTIONS)}; write {_FORMS}")
    target, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    for key in options:
        if key not in OPTIONS[scheme]:
            near = _nearest(key, OPTIONS[scheme]) or f"; {scheme}: has no such setting"
            raise BadUri(f"{text!r}: unknown setting {key!r}{near}")
    if not target:
        raise BadUri(f"{text!r} names no port: write {_FORMS}")
    if scheme == "serial":
        return Uri(text, scheme, target, baud=_baud(text, options), options=options)
    if scheme == "socket":
        host, _, port = target.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not host or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
            raise BadUri(
                f"{text!r}: write socket:HOST:PORT with a port of 1..65535, e.g. socket:10.0.0.7:4001"
            )
        return Uri(text, scheme, host, port=int(port), options=options)
    return Uri(text, scheme, target, options=options)


def open_transport(uri: str, baud: int = DEFAULT_BAUD) -> Transport:
    """A transport that may write; its `open` touches the port, this call doesn't.

    `baud` is the driver's line rate, used when the URI gives none. Raises BadUri.
    """
    parsed = parse_uri(uri)
    if parsed.scheme == "serial":
        from firmware_bridge.transports.serial import SerialTransport

        return SerialTransport(uri, parsed.target, parsed.baud or baud)
    if parsed.scheme == "socket":
        from firmware_bridge.transports.socket import SocketTransport

        return SocketTransport(uri, parsed.target, parsed.port)
    from firmware_bridge.transports.mem import MemTransport

    return MemTransport.plugged(uri, parsed.target)


def open_receiver(uri: str, baud: int = DEFAULT_BAUD) -> Receiver:
    """The receive-only form: the object has no `write` (law 10). Raises BadUri."""
    parsed = parse_uri(uri)
    if parsed.scheme == "serial":
        from firmware_bridge.transports.serial import SerialReceiver

        return SerialReceiver(uri, parsed.target, parsed.baud or baud)
    if parsed.scheme == "socket":
        from firmware_bridge.transports.socket import SocketReceiver

        return SocketReceiver(uri, parsed.target, parsed.port)
    from firmware_bridge.transports.mem import MemReceiver

    return MemReceiver.plugged(uri, parsed.target)


def _baud(text: str, options: dict[str, str]) -> int | None:
    value = options.get("baud")
    if value is None:
        return None
    if not re.fullmatch("[0-9]{2,7}", value) or not 50 <= int(value) <= 4_000_000:
        raise BadUri(f"{text!r}: baud is a number of bit/s, 50..4000000, not {value!r}")
    return int(value)


def _nearest(word: str, right: Iterable[str]) -> str:
    near = difflib.get_close_matches(word.lower(), list(right), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
