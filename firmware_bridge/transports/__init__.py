"""Transport URIs: which port, and how. `serial:` `socket:` `usb:` `usbhid:` `mem:`.

The scheme's module is imported when a transport is made: a socket-only site never loads pyserial, a
serial-only site never loads pyusb.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote

from firmware_bridge.errors import BadUri
from firmware_bridge.transport import Receiver, Transport

DEFAULT_BAUD = 115200
OPTIONS = {
    "serial": ("baud", "dtr", "rts"),
    "socket": (),
    "usb": ("detach",),
    "usbhid": (),
    "mem": (),
}
"""The schemes and the keys each understands."""

_FORMS = (
    "serial:PATH?baud=N, serial:VID:PID:SERIAL, socket:HOST:PORT, usb:VID:PID:SERIAL or usbhid:VID:PID:SERIAL"
)
_USB_NAME = re.compile(r"([0-9a-fA-F]{4}):([0-9a-fA-F]{4})(?::(.*))?")
_SWITCH = {"on": True, "off": False}


@dataclass(frozen=True, slots=True)
class UsbName:
    """A device by what it says of itself, wherever it is plugged in; without `serial` any one of its kind."""

    vid: int
    pid: int
    serial: str | None = None

    def __str__(self) -> str:
        tail = "" if self.serial is None else f":{quote(self.serial, safe='')}"
        return f"{self.vid:04x}:{self.pid:04x}{tail}"


@dataclass(frozen=True, slots=True)
class Uri:
    """A checked URI. `target` is path, host or name; `port` belongs to socket, `baud` (bit/s) to serial.

    `usb` is the name of a USB device, also of a serial adapter that is named so.
    """

    text: str
    scheme: str
    target: str
    port: int = 0
    baud: int | None = None
    usb: UsbName | None = None
    options: dict[str, str] = field(default_factory=dict)

    @property
    def packets(self) -> bool:
        """Whether a read gives one transfer and a write sends one; elsewhere bytes are a stream."""
        return self.scheme in {"usb", "usbhid"}

    def switch(self, key: str) -> bool:
        """An on/off setting; off when it is not given."""
        return _SWITCH[self.options.get(key, "off")]


def parse_uri(text: str) -> Uri:
    """Check a URI without touching any device. Raises BadUri naming the nearest right word."""
    scheme, colon, rest = text.partition(":")
    if not colon:
        hint = f"; did you mean serial:{text}?" if text.startswith("/") else ""
        raise BadUri(f"{text!r} is no port: write {_FORMS}{hint}")
    if scheme not in OPTIONS:
        raise BadUri(f"{text!r}: unknown kind of port {scheme!r}{_nearest(scheme, OPTIONS)}; write {_FORMS}")
    target, _, query = rest.partition("?")
    options: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key in options:
            raise BadUri(f"{text!r}: {key} is given twice; give it once")
        if key not in OPTIONS[scheme]:
            near = _nearest(key, OPTIONS[scheme]) or f"; {scheme}: has no such setting"
            raise BadUri(f"{text!r}: unknown setting {key!r}{near}")
        if key != "baud" and value not in _SWITCH:
            raise BadUri(f"{text!r}: {key} is on or off, not {value!r}")
        options[key] = value
    if not target:
        raise BadUri(f"{text!r} names no port: write {_FORMS}")
    if scheme in {"usb", "usbhid"}:
        return Uri(text, scheme, target, usb=_usb_name(text, scheme, target), options=options)
    if scheme == "serial":
        named = None if target.startswith(("/", ".")) else _USB_NAME.fullmatch(target)
        misnamed = ":" in target and "/" not in target
        usb = _usb_name(text, scheme, target) if named or misnamed else None
        return Uri(text, scheme, target, baud=_baud(text, options), usb=usb, options=options)
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

        return SerialTransport(parsed, baud)
    if parsed.scheme == "socket":
        from firmware_bridge.transports.socket import SocketTransport

        return SocketTransport(uri, parsed.target, parsed.port)
    if parsed.usb is not None:
        from firmware_bridge.transports.usb import UsbTransport

        return UsbTransport(parsed, parsed.usb)
    from firmware_bridge.transports.mem import MemTransport

    return MemTransport.plugged(uri, parsed.target)


def open_receiver(uri: str, baud: int = DEFAULT_BAUD) -> Receiver:
    """The receive-only form: the object has no `write` (law 10). Raises BadUri."""
    parsed = parse_uri(uri)
    if parsed.scheme == "serial":
        from firmware_bridge.transports.serial import SerialReceiver

        return SerialReceiver(parsed, baud)
    if parsed.scheme == "socket":
        from firmware_bridge.transports.socket import SocketReceiver

        return SocketReceiver(uri, parsed.target, parsed.port)
    if parsed.usb is not None:
        from firmware_bridge.transports.usb import UsbReceiver

        return UsbReceiver(parsed, parsed.usb)
    from firmware_bridge.transports.mem import MemReceiver

    return MemReceiver.plugged(uri, parsed.target)


def _baud(text: str, options: dict[str, str]) -> int | None:
    value = options.get("baud")
    if value is None:
        return None
    if not re.fullmatch("[0-9]{2,7}", value) or not 50 <= int(value) <= 4_000_000:
        raise BadUri(f"{text!r}: baud is a number of bit/s, 50..4000000, not {value!r}")
    return int(value)


def _usb_name(text: str, scheme: str, target: str) -> UsbName:
    found = _USB_NAME.fullmatch(target)
    if found is None or found[3] == "":
        raise BadUri(
            f"{text!r}: write {scheme}:VID:PID or {scheme}:VID:PID:SERIAL with four hex digits each, "
            f"e.g. {scheme}:1209:0001:SH0001 (`cutcard ports` lists what is there)"
        )
    return UsbName(int(found[1], 16), int(found[2], 16), None if found[3] is None else unquote(found[3]))


def _nearest(word: str, right: Iterable[str]) -> str:
    near = difflib.get_close_matches(word.lower(), list(right), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
