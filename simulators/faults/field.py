"""Faults of the other wires: angel-eye, bee-tek, reshuffled, GAT and barcode readers."""

from __future__ import annotations

import re

from simulators.faults.fault import (
    hex_bytes,
    one_of,
    one_or_none,
    put,
    seconds,
    seconds_or,
    setting,
    trap,
    whole,
    wire,
)
from simulators.wire.angel_eye import NAK_GAP_S, SEQUENCES, STARTS, AngelEye
from simulators.wire.barcode_hid import BarcodeReader
from simulators.wire.bee_tek import MODES, SEPARATORS, UNREAD, BeeTek
from simulators.wire.gat import TEXT, GatDevice
from simulators.wire.managed import ManagedDevice
from simulators.wire.reshuffled import ReShuffled

_ANGEL_EYE = wire(AngelEye)
_GAT = wire(GatDevice)
_BEE_TEK = wire(BeeTek)
_RESHUFFLED = wire(ReShuffled)
_BARCODE = wire(BarcodeReader)

Paced = ManagedDevice | AngelEye | BeeTek | ReShuffled | GatDevice


def _code(text: str | None) -> str | None:
    if text is not None and not re.fullmatch("[0-9A-F]{1,4}", text):
        raise ValueError(text)
    return text


def _copies(text: str | None) -> str | None:
    if text is not None and not re.fullmatch("1?2?3?", text):
        raise ValueError(text)
    return text


def _pace(device: Paced, value: str) -> None:
    if isinstance(device, ManagedDevice):
        device.pace(real=value == "real")
    else:
        device.uart.paced = value == "real"


def _ascii(text: str | None) -> str | None:
    if text is not None and not text.isascii():
        raise ValueError(text)
    return text


def _byte(text: str | None) -> int | None:
    if text is None:
        return None
    (byte,) = bytes.fromhex(text)
    return byte


FIELD = {
    "pace": setting(
        "bytes and answers take their real time, or none",
        wire(ManagedDevice, AngelEye, BeeTek, ReShuffled, GatDevice),
        _pace,
        one_of("real", "none"),
    ),
    "drop_copy": trap(
        "copies VALUE (1; also 23, 123, ...) of a telegram never come", "telegram", _ANGEL_EYE, _copies
    ),
    "top_bit_clear": trap("data bytes come without their top bit", "telegram with data", _ANGEL_EYE),
    "lost_etx": trap("the ETX of a copy is lost", "copy", _ANGEL_EYE),
    "sequence": setting(
        "the alphabet of sequence characters",
        _ANGEL_EYE,
        lambda shoe, word: shoe.set_up(sequence=word),
        one_of(*SEQUENCES),
    ),
    "start_keeps_sequence": setting(
        "the telegram after S has the same sequence",
        _ANGEL_EYE,
        lambda shoe, _: shoe.set_up(s_advances=False),
    ),
    "start_again": trap(
        "before a card comes S alone (without a cutting card), twice, or behind the cut card's telegram",
        "card",
        _ANGEL_EYE,
        one_of(*STARTS, default="alone"),
    ),
    "reboot_mid_round": trap(
        "power is lost for VALUE (0.2) s once a card was told", "card", _ANGEL_EYE, seconds, at="reboot"
    ),
    "early_card": trap(
        "the next card comes too early (overdraw, then R); the button cancels it after VALUE s, else a host",
        "round",
        _ANGEL_EYE,
        seconds,
    ),
    "bcc_without_stx": setting(
        "check bytes of commands leave STX out", _ANGEL_EYE, put(bcc_includes_stx=False)
    ),
    "nak_apart": setting(
        "the code of a NAK comes VALUE (0.12) s after it", _ANGEL_EYE, put(nak_gap=...), seconds_or(NAK_GAP_S)
    ),
    "level_error": trap("the level of a calculation is refused", "calculation", _GAT),
    "nak": trap(
        "a calculation or command is refused, by an angel-eye with code VALUE (21: busy)",
        "calculation or command",
        wire(GatDevice, AngelEye),
        one_or_none("01", "02", "03", "11", "12", "13", "14", "21", "22", "FF"),
        valued=_ANGEL_EYE,
    ),
    "bad_crc": trap("an answer has wrong check bytes", "request", _GAT),
    "wrong_frame": trap("a frame of a report has another number", "frame", _GAT),
    "two_masters": trap("another host is served before us", "request", _GAT),
    "old_version": setting("it speaks GAT 2.00", _GAT, put(version=0x0200)),
    "text_only": setting("it has its reports as text alone", _GAT, put(formats=TEXT)),
    "alarm": trap("an alarm of text VALUE (E3 Card Not Read) comes before a card", "card", _BEE_TEK, _ascii),
    "warning": trap("a warning of hex code VALUE (01) comes before a card", "card", _BEE_TEK, _code),
    "damage": trap(
        "byte VALUE (the middle one) of a message is changed",
        "message or copy",
        wire(BeeTek, AngelEye),
        whole(None, 0),
    ),
    "line_cut": trap("half a message comes, then nothing for VALUE (0.3) s", "message", _BEE_TEK, seconds),
    "separator": setting("what stands between messages", _BEE_TEK, put(separator=...), one_of(*SEPARATORS)),
    "mode": setting("the mode in which cards come", _BEE_TEK, put(mode=...), one_of(*MODES)),
    "unread": setting("how an unread card is told", _BEE_TEK, put(unread=...), one_of(*UNREAD)),
    "echo": setting("a card's characters come once more behind it", _BEE_TEK, put(echo=True)),
    "ten": setting("a ten is sent as 10", _BEE_TEK, put(ten=True)),
    "suit_first": setting("the suit comes before the rank", _BEE_TEK, put(suit_first=True)),
    "stray_bytes": trap(
        "bytes VALUE (hex, 01fe) behind OK, and the check covers them", "answer", _RESHUFFLED, hex_bytes
    ),
    "text_inside": trap("Error is printed in the middle of an answer", "answer", _RESHUFFLED),
    "document": setting("a reshuffled keeps to its document", _RESHUFFLED, put(firmware=False)),
    "crc_includes_hash": setting("its check covers the # too", _RESHUFFLED, put(crc_includes_hash=True)),
    "semicolon": setting("its frames end with a semicolon", _RESHUFFLED, put(end=b";")),
    "request_echo": setting("each request is printed first", _RESHUFFLED, put(echo=True)),
    "lost_key_up": trap("key-up VALUE (1) of a code is lost", "card", _BARCODE, one_or_none(*"12345")),
    "lost_enter": trap("the Enter behind a code is lost", "card", _BARCODE),
    "modifier": trap("a digit comes with modifier byte VALUE (04)", "card", _BARCODE, _byte),
    "short_report": trap("a report of a code has seven bytes", "card", _BARCODE),
    "unplug_mid_code": trap(
        "the reader is gone for VALUE (1) s in the middle of a code", "card", _BARCODE, seconds, at="unplug"
    ),
    "second_keyboard": setting(
        "another keyboard, or with VALUE same a twin, is there",
        _BARCODE,
        put(neighbour=...),
        one_of("other", "same", default="other"),
    ),
    "keypad_digits": setting("codes are typed on the keypad", _BARCODE, put(digits="keypad")),
    "keypad_enter": setting("codes end with the keypad's Enter", _BARCODE, put(enter="keypad_enter")),
    "rollover": setting("the next key goes down before the last is up", _BARCODE, put(rollover=True)),
    "reserved": setting("the second byte of a report is 5A", _BARCODE, put(reserved=0x5A)),
}
