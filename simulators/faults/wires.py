"""Faults of what the firmware of a managed device does, and those that other firmwares share with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulators.faults.fault import (
    UnfitFault,
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
from simulators.models.firmware import Flash
from simulators.wire.angel_eye import AngelEye
from simulators.wire.bee_tek import BeeTek
from simulators.wire.device import WireDevice
from simulators.wire.gat import GatDevice
from simulators.wire.images import Images
from simulators.wire.managed import ManagedDevice
from simulators.wire.managed_ills import IDENTITY, Ills
from simulators.wire.reshuffled import ReShuffled

MANAGED = wire(ManagedDevice)
ANSWERS = wire(ManagedDevice, AngelEye, ReShuffled, GatDevice)


def _images(device: WireDevice) -> Images:
    images: Images | None = MANAGED(device).images
    if images is None:
        raise UnfitFault("a device without images cannot have this fault")
    return images


def _flash(device: WireDevice) -> Flash:
    return _images(device).flash


def _ills(device: WireDevice) -> Ills:
    ills: Ills = MANAGED(device).ills
    return ills


def _banner(device: ManagedDevice, text: str) -> None:
    device.banner = text + "\r\n"


def _text_or(default: str) -> Callable[[str | None], Any]:
    return lambda text: text or default


WIRES = {
    "silent": trap("nothing is answered any more, or for VALUE s", "request", ANSWERS, seconds),
    "duplicate_answer": trap("an answer comes twice", "answer", ANSWERS),
    "late_answer": trap("an answer comes VALUE (3) s late", "answer", ANSWERS, seconds),
    "chatter": trap(
        "a line of text, or stray bytes, before an answer",
        "answer or message",
        wire(ManagedDevice, AngelEye, ReShuffled, GatDevice, BeeTek),
    ),
    "refuse": trap(
        "the answer is error VALUE (1 to 9)",
        "request",
        wire(ManagedDevice, ReShuffled),
        one_or_none(*"123456789"),
    ),
    "busy_answers": trap(
        "every answer is that it is busy, for VALUE s or for good", "request", MANAGED, seconds
    ),
    "brown_out": trap(
        "the power dips VALUE (after, before) a request is carried out",
        "request",
        MANAGED,
        one_of("after", "before", default="after"),
    ),
    "wrong_sequence": trap("an answer has the number of the next request", "answer", MANAGED),
    "stale_answer": trap("an answer says what the one before said", "answer", MANAGED),
    "wrong_identity": trap(
        "it is another one by its VALUE (serial, product, vendor, class or protocol)",
        "identity answer",
        MANAGED,
        one_of(*IDENTITY, default="serial"),
    ),
    "old_firmware": setting("it tells firmware VALUE (0.1.0)", _ills, put(firmware=...), _text_or("0.1.0")),
    "settings_differ": trap(
        "its settings are other ones by VALUE (crc, or a setting: decks, mode ...)",
        "settings answer",
        MANAGED,
        one_of("crc", "decks", "cards_per_deck", "mode", "recognition", default="crc"),
    ),
    "small_ring": setting("it keeps VALUE (4) events", MANAGED, put(ring_size=...), whole(4)),
    "overrun": trap(
        "its ring runs over: the event, and all that nobody read yet, is overwritten",
        "event",
        MANAGED,
        hides=True,
    ),
    "keep_old": trap("a new image is not started", "restart with it", _flash),
    "spoil": trap("an uploaded image is damaged in the flash", "upload", _flash),
    "stay_in_bootloader": trap("no image starts, for VALUE s or for good", "restart", _flash, seconds),
    "quiet_bootloader": setting("its bootloader does not say who it is", MANAGED, put(tells=False)),
    "upload_reboot": trap(
        "it restarts, VALUE before (or after) it has it",
        "upload packet",
        MANAGED,
        one_of("before", "after", default="before"),
    ),
    "upload_refused": trap("the flash is not written", "upload packet", MANAGED),
    "remembers_upload": setting("an upload goes on after a restart", _flash, put(remembers=True)),
    "erase_first": setting("it erases before it looks at an image", _images, put(erase_first=True)),
    "slow_erase": setting("erasing takes VALUE (65) s", _flash, put(erase_s=...), seconds_or(65.0)),
    "watchdog": trap("it restarts when erasing takes longer than VALUE (5) s", "erase", MANAGED, seconds),
    "small_buffer": setting("it takes packets of VALUE (128) bytes", MANAGED, put(buffer=...), whole(128)),
    "no_parameters": setting("it does not tell its buffer (384 bytes)", MANAGED, put(buffer=None)),
    "no_images": setting("it has no list of images", MANAGED, put(images=None)),
    "old_errors": setting("its errors have the form of SMP version 0", MANAGED, put(old_errors=True)),
    "banner": setting(
        "it prints VALUE at each start", MANAGED, _banner, _text_or("*** Booting Zephyr OS build v4.1.0 ***")
    ),
}
