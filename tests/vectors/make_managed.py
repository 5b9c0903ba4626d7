"""Prints the golden vectors of docs/protocols/managed.md, section 6, from the page alone.

Imports neither side of the protocol, not even a CBOR or CRC library: both are written out below.
"""

import base64
import json
import sys
from hashlib import sha256


def head(major: int, value: int) -> bytes:
    if value < 24:
        return bytes([major << 5 | value])
    for extra, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if value < 1 << 8 * width:
            return bytes([major << 5 | extra]) + value.to_bytes(width, "big")
    raise ValueError(value)


def cbor(value: object) -> bytes:
    if value is None:
        return b"\xf6"
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(cbor(v) for v in value)
    if isinstance(value, dict):
        pairs = sorted((cbor(k), cbor(v)) for k, v in value.items())
        return head(5, len(pairs)) + b"".join(k + v for k, v in pairs)
    raise TypeError(type(value))


def crc16_xmodem(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def crc32_iso_hdlc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0xEDB88320 if crc & 1 else crc >> 1
    return crc ^ 0xFFFFFFFF


def packet(op: int, group: int, sequence: int, command: int, body: object, version: int = 1) -> bytes:
    encoded = cbor(body)
    return (
        bytes([version << 3 | op, 0])
        + len(encoded).to_bytes(2, "big")
        + group.to_bytes(2, "big")
        + bytes([sequence, command])
        + encoded
    )


def console(data: bytes) -> list[bytes]:
    raw = (len(data) + 2).to_bytes(2, "big") + data + crc16_xmodem(data).to_bytes(2, "big")
    parts = [raw[i : i + 93] for i in range(0, len(raw), 93)]
    return [(b"\x06\x09" if i == 0 else b"\x04\x14") + base64.b64encode(p) for i, p in enumerate(parts)]


TOKEN = bytes(range(16))
SETTINGS = {"decks": 6, "cards_per_deck": 52, "mode": "shuffle", "recognition": True}
EVENTS = [
    {"n": 41, "t": 1000, "k": "card", "c": "8S", "b": "red"},
    {"n": 42, "t": 1310, "k": "cut"},
    {"n": 43, "t": 1650, "k": "card", "c": None, "b": "red"},
]
PEEKS = [
    {"n": 1, "t": 900, "k": "peek", "result": "not natural"},
    {"n": 2, "t": 61900, "k": "peek", "result": "natural"},
]

CONTINUOUS = [
    {"n": 7, "t": 132600, "k": "start", "cycle": 1057, "token": TOKEN},
    {"n": 8, "t": 134000, "k": "card", "c": "8S", "b": "red"},
    {"n": 9, "t": 135000, "k": "returned", "count": 22, "inside": 290},
]
STACK = [
    {"n": 5, "t": 9000, "k": "card", "c": "8S", "b": "red"},
    {"n": 6, "t": 9200, "k": "card", "c": "XJ", "b": "red"},
    {"n": 7, "t": 9400, "k": "jam", "place": "exit", "attempt": 1},
]


def image(product: str, version: tuple[int, int, int], body: bytes) -> bytes:
    """An image file (section 4.6): header, body, the protected product, the hash."""
    name = product.encode()
    protected = bytes.fromhex("0869") + (8 + len(name)).to_bytes(2, "little")
    protected += bytes.fromhex("a000") + len(name).to_bytes(2, "little") + name
    header = bytes.fromhex("3db8f396") + bytes(4) + (32).to_bytes(2, "little")
    header += len(protected).to_bytes(2, "little") + len(body).to_bytes(4, "little") + bytes(4)
    header += bytes(version[:2]) + version[2].to_bytes(2, "little") + bytes(8)
    digest = sha256(header + body + protected).digest()
    return header + body + protected + bytes.fromhex("0769280010002000") + digest


IMAGE = image("SIM-SHOE", (1, 2, 0), bytes(range(16)))
IMAGE_HASH = IMAGE[-32:]
ONE_DECK = {rank + suit: 1 for suit in "CDHS" for rank in "A23456789TJQK"}

VECTORS: list[tuple[str, int, int, int, int, object]] = [
    ("echo", 2, 0, 66, 0, {"d": "00112233aabbccdd"}),
    ("echo answer", 3, 0, 66, 0, {"r": "00112233aabbccdd"}),
    ("identity", 0, 64, 67, 0, {}),
    (
        "identity answer",
        1, 64, 67, 0,
        {"vendor": "Cutcard", "product": "SIM-SHOE", "serial": "SH0001", "firmware": "1.0.0", "boot": 7,
         "protocol": 1, "class": "shoe"},
    ),
    ("settings answer", 1, 64, 68, 1, {"settings": SETTINGS, "crc": crc32_iso_hdlc(cbor(SETTINGS))}),
    ("events since 41", 0, 65, 69, 0, {"since": 41, "wait": 200}),
    ("events answer", 1, 65, 69, 0, {"boot": 7, "oldest": 1, "next": 44, "events": EVENTS}),
    ("start", 2, 66, 70, 1, {"token": TOKEN}),
    ("start answer", 3, 66, 70, 1, {"cycle": 1057}),
    ("start refused, door open", 3, 66, 70, 1, {"err": {"group": 66, "rc": 6}}),
    ("release answer", 3, 66, 71, 3, {"count": 312, "inside": 0}),
    (
        "report answer, one deck",
        1, 66, 72, 4,
        {"cycle": 1057, "token": TOKEN, "count": 52, "mode": "shuffle", "composition": ONE_DECK,
         "backs": {"blue": 52}, "unread": 0},
    ),
    ("shoe status answer", 1, 67, 73, 0, {"locked": False, "lid": False, "empty": False, "drawn": 3}),
    ("lock", 2, 67, 74, 1, {}),
    ("error of version 0", 3, 67, 74, 1, {"rc": 1}),
    ("peek", 0, 68, 75, 0, {}),
    ("peek answer, natural", 1, 68, 75, 0, {"result": "natural"}),
    ("peek answer, not natural", 1, 68, 76, 0, {"result": "not natural"}),
    ("peek answer, error", 1, 68, 77, 0, {"result": "error"}),
    ("events answer of a reader", 1, 65, 78, 0, {"boot": 7, "oldest": 1, "next": 3, "events": PEEKS}),
    ("parameters answer", 1, 0, 79, 6, {"buf_size": 1036, "buf_count": 4}),
    (
        "upload of a whole image",
        2, 1, 80, 1,
        {"image": 0, "len": len(IMAGE), "off": 0, "sha": sha256(IMAGE).digest(), "data": IMAGE},
    ),
    ("upload answer", 3, 1, 80, 1, {"off": len(IMAGE), "match": True}),
    ("upload refused, no free slot", 3, 1, 81, 1, {"err": {"group": 1, "rc": 9}}),
    ("images", 0, 1, 82, 0, {}),
    ("try at the next restart", 2, 1, 83, 0, {"hash": IMAGE_HASH, "confirm": False}),
    ("make what runs stay", 2, 1, 84, 0, {"hash": IMAGE_HASH, "confirm": True}),
    ("group missing", 1, 1, 85, 0, {"rc": 8}),
    (
        "identity answer of a continuous shuffler",
        1, 64, 96, 0,
        {"vendor": "Cutcard", "product": "SIM-CONTINUOUS", "serial": "CS0001", "firmware": "1.0.0", "boot": 7,
         "protocol": 1, "class": "continuous"},
    ),
    ("continuous status", 0, 66, 97, 0, {}),
    (
        "continuous status answer",
        1, 66, 97, 0,
        {"state": "dealing", "inside": 290, "door": False, "cycle": 1057, "token": TOKEN, "mode": "shuffle",
         "locked": False, "empty": False, "drawn": 44},
    ),
    ("release refused, a continuous shuffler has none", 3, 66, 98, 3, {"err": {"group": 66, "rc": 1}}),
    (
        "events answer of a continuous shuffler",
        1, 65, 99, 0,
        {"boot": 7, "oldest": 1, "next": 10, "events": CONTINUOUS},
    ),
    (
        "stack shoe status answer",
        1, 67, 112, 0,
        {"locked": False, "lid": False, "empty": False, "drawn": 9, "dispensing": False},
    ),
    ("dispense", 2, 67, 113, 3, {"count": 3, "drawn": 9}),
    ("dispense answer", 3, 67, 113, 3, {"count": 3}),
    ("dispense refused, it counts otherwise", 3, 67, 114, 3, {"err": {"group": 67, "rc": 3}}),
    ("events answer of a stack shoe", 1, 65, 115, 0, {"boot": 7, "oldest": 1, "next": 8, "events": STACK}),
]  # fmt: skip


def vectors() -> list[dict[str, object]]:
    out: list[dict[str, object]] = []
    for name, op, group, sequence, command, body in VECTORS:
        data = packet(op, group, sequence, command, body, version=0 if "version 0" in name else 1)
        out.append({"name": name, "packet": data.hex(), "lines": [line.hex() for line in console(data)]})
    return out


if __name__ == "__main__":
    if "--json" in sys.argv:
        print(json.dumps(vectors(), indent=1))
    else:
        for vector in vectors():
            print(f"### {vector['name']}\n\n    packet  {vector['packet']}")
            for line in vector["lines"]:  # type: ignore[attr-defined]
                data = bytes.fromhex(line)
                print(f"    line    {data[:2].hex(' ')} {data[2:].decode()}")
            print()
