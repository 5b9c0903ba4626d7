"""The pcapng file format (draft-ietf-opsawg-pcapng): blocks of bytes in and out; it knows no wire.

Reading holds one block at a time and believes no length before it has looked at it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

BLOCK_LIMIT = 1 << 24
"""Bytes of the largest block that is read; a packet of ours has less than 70 KiB."""
INTERFACE_LIMIT = 256
OPTION_LIMIT = 1024
"""Options of one block."""
INBOUND, OUTBOUND = 1, 2
"""Bits 0-1 of epb_flags: from the device, to the device."""
LAST_NS = 253_402_300_800 * 10**9
"""The year 10000, in nanoseconds since 1970; no time of a packet reaches it."""

_START = b"\n\r\r\n"
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_PACKETS_WITHOUT_TIME = {2, 3}
"""The obsolete Packet Block, and the Simple Packet Block."""
_ORDER_MAGIC = 0x1A2B3C4D
_COMMENT, _IF_NAME, _IF_DESCRIPTION, _IF_TSRESOL, _IF_TSOFFSET, _EPB_FLAGS, _USERAPPL = 1, 2, 3, 9, 14, 2, 4
_NANOSECONDS = 9
_TEXT_LIMIT = 0xFFFF
_OTHERS = {
    b"\x1f\x8b": "compressed with gzip: unpack it first (gunzip)",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: unpack it first (unzstd)",
    b"\x04\x22\x4d\x18": "compressed with lz4: unpack it first (unlz4)",
    **dict.fromkeys(
        (b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1"),
        "a classic pcap file: make it a pcapng with `editcap -F pcapng IN OUT`",
    ),
}
"""What is often given by mistake, by its first bytes."""


class CaptureError(ValueError):
    """A file that is no capture we can read: one sentence, and what to do about it."""


def section(program: str) -> bytes:
    """The first block of a file, little-endian, of unknown length."""
    body = struct.pack("<IHHq", _ORDER_MAGIC, 1, 0, -1)
    return _block(_SECTION, body + _options([(_USERAPPL, _text(program))]))


def interface(link: int, name: str, description: str) -> bytes:
    """The wire that all packets behind it are from; their times are nanoseconds."""
    options = [
        (_IF_NAME, _text(name)),
        (_IF_DESCRIPTION, _text(description)),
        (_IF_TSRESOL, bytes((_NANOSECONDS,))),
    ]
    return _block(_INTERFACE, struct.pack("<HHI", link, 0, 0) + _options(options))


def packet(at: int, flags: int, data: bytes, comment: str = "") -> bytes:
    """One packet of the only interface; `at` is nanoseconds since 1970."""
    head = struct.pack("<IIIII", 0, at >> 32, at & 0xFFFF_FFFF, len(data), len(data))
    options = [(_COMMENT, _text(comment))] if comment else []
    return _block(
        _PACKET, head + _padded(data) + _options([*options, (_EPB_FLAGS, struct.pack("<I", flags))])
    )


def _block(kind: int, body: bytes) -> bytes:
    size = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + size + body + size


def _options(options: list[tuple[int, bytes]]) -> bytes:
    return b"".join(struct.pack("<HH", code, len(value)) + _padded(value) for code, value in options) + bytes(
        4
    )


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _text(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")[:_TEXT_LIMIT]


@dataclass(frozen=True, slots=True)
class Interface:
    """Where packets are from. One unit of time is 1/`per_second` s, counted from `offset` s after 1970."""

    link: int
    name: str
    per_second: int
    offset: int


@dataclass(frozen=True, slots=True)
class Packet:
    """`at`: nanoseconds since 1970; `missing`: bytes that were on the wire and are not in the file."""

    interface: Interface
    number: int
    """Of the interface in its section."""
    at: int
    flags: int
    data: bytes
    missing: int
    order: str
    """Byte order of the section, `<` or `>`: that of headers which were the recording machine's."""


def packets(source: BinaryIO, name: str, note: Callable[[str], None]) -> Iterator[Packet]:
    """All packets of a file, one at a time. Raises CaptureError with a sentence that begins with `name`.

    A file that ends in the middle of a block, as after a crash or a power cut, gives what is before it; it
    is told to `note`. Unknown blocks and options are passed over.
    """
    order, interfaces, timeless = "", list[Interface](), False
    for at, kind, order, body in _blocks(source, name, note):
        try:
            if kind == _SECTION:
                interfaces = []
            elif kind == _INTERFACE:
                interfaces.append(_interface(body, order))
            elif kind == _PACKET:
                yield _packet(body, order, interfaces)
            elif kind in _PACKETS_WITHOUT_TIME and not timeless:
                timeless = True
                note(f"{name} holds packets without a time of their own, which are left out")
        except (struct.error, IndexError) as error:
            raise _damaged(name, at, "is too short for what it is") from error
        except CaptureError as error:
            raise _damaged(name, at, str(error)) from None
        if len(interfaces) > INTERFACE_LIMIT:
            raise CaptureError(
                f"{name} names more than {INTERFACE_LIMIT} interfaces: it is no capture of wires"
            )


def _blocks(
    source: BinaryIO, name: str, note: Callable[[str], None]
) -> Iterator[tuple[int, int, str, bytes]]:
    """Each block as its place in the file, kind, byte order and body."""
    at, order = 0, "<"
    while head := source.read(8):
        if at == 0:
            _check_start(head, name)
        if head[:4] == _START and len(head) == 8:
            head += source.read(4)
            order = _order(head[8:], name) if len(head) == 12 else order
        short = f"{name} is cut short at byte {at}, in the middle of a block; all before it is read"
        if len(head) < (12 if head[:4] == _START else 8):
            return note(short) if at else _too_short(name)
        kind, size = struct.unpack(order + "II", head[:8])
        if kind == size == 0:
            return note(
                f"{name} ends in zeros from byte {at} on, as after a power cut; all before it is read"
            )
        if size < 12 or size % 4 or size > BLOCK_LIMIT or (kind == _SECTION and size < 28):
            raise _damaged(name, at, f"claims {size} bytes, which cannot be")
        body = head[8:] + source.read(size - len(head))
        if len(body) < size - 8:
            return note(short) if at else _too_short(name)
        if (tail := struct.unpack(order + "I", body[-4:])[0]) != size:
            raise _damaged(name, at, f"claims {size} bytes at its start and {tail} at its end")
        yield at, kind, order, body[:-4]
        at += size
    return None if at else _too_short(name)


def _check_start(head: bytes, name: str) -> None:
    if head[:4] == _START[: len(head)]:
        return
    other = next((what for start, what in _OTHERS.items() if head.startswith(start)), None)
    raise CaptureError(f"{name} is {other or 'no pcapng file: was it recorded by `cutcard capture`?'}")


def _too_short(name: str) -> None:
    raise CaptureError(f"{name} ends before a capture begins: nothing was recorded, or the copy was cut off")


def _order(magic: bytes, name: str) -> str:
    for order in "<>":
        if struct.unpack(order + "I", magic)[0] == _ORDER_MAGIC:
            return order
    raise CaptureError(f"{name} is damaged: its section header has no byte order; fetch the file anew")


def _damaged(name: str, at: int, what: str) -> CaptureError:
    remedy = f"; `head -c {at}` keeps what is before it" if at else "; fetch the file anew"
    return CaptureError(f"{name} is damaged at byte {at}: a block there {what}{remedy}")


def _interface(body: bytes, order: str) -> Interface:
    (link,) = struct.unpack(order + "H", body[:2])
    options = _found(body[8:], order)
    resolution = options.get(_IF_TSRESOL, b"\x06")[0]
    per_second = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    (offset,) = struct.unpack(order + "q", options.get(_IF_TSOFFSET, bytes(8)))
    return Interface(link, options.get(_IF_NAME, b"").decode("utf-8", "replace"), per_second, offset)


def _packet(body: bytes, order: str, interfaces: list[Interface]) -> Packet:
    number, high, low, size, original = struct.unpack(order + "IIIII", body[:20])
    if number >= len(interfaces):
        raise CaptureError(f"names interface {number}, and the file has {len(interfaces)}")
    if size > len(body) - 20:
        raise CaptureError(f"claims a packet of {size} bytes in {len(body) - 20}")
    whence = interfaces[number]
    at = (high << 32 | low) * 10**9 // whence.per_second + whence.offset * 10**9
    if not 0 <= at < LAST_NS:
        raise CaptureError("has a time that no calendar knows")
    flags = _found(body[20 + size + -size % 4 :], order).get(_EPB_FLAGS, b"")
    (bits,) = struct.unpack(order + "I", flags) if len(flags) == 4 else (0,)
    data = body[20 : 20 + size]
    return Packet(whence, number, at, bits, data, max(0, original - size), order)


def _found(options: bytes, order: str) -> dict[int, bytes]:
    """Options by code, the first of each; what is broken among them ends the list.

    Raises CaptureError when there are too many: what is beyond could change how all else is read.
    """
    found: dict[int, bytes] = {}
    at = 0
    for _ in range(OPTION_LIMIT + 1):
        if at + 4 > len(options):
            return found
        code, size = struct.unpack_from(order + "HH", options, at)
        at += 4
        if code == 0 or size > len(options) - at:
            return found
        found.setdefault(code, options[at : at + size])
        at += size + -size % 4
    raise CaptureError(f"has more than {OPTION_LIMIT} options, as no recorder writes")
