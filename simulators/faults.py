"""Faults by name, for `cutcard sim --fault NAME[:VALUE][@N]` and for scenarios.

`N` counts occasions of the fault's own kind, from 1: shuffle cycles, loads, cards or requests; without `@N`
the fault is there at each occasion. Back doors of the models and wires; nothing of the protocol under test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from simulators.models.cards import RANKS
from simulators.models.continuous import ContinuousShuffler
from simulators.models.dealing_machine import DealingMachine
from simulators.models.firmware import Flash
from simulators.models.machine import Traps
from simulators.models.reader import HoleCardReader
from simulators.models.shoe import Shoe
from simulators.models.shuffler import ShelfShuffler
from simulators.models.stack_shoe import StackShoe
from simulators.models.verifier import Verifier
from simulators.wire.angel_eye import AngelEye
from simulators.wire.barcode_hid import BarcodeReader
from simulators.wire.bee_tek import MODES, SEPARATORS, UNREAD, BeeTek
from simulators.wire.device import WireDevice
from simulators.wire.gat import TEXT, GatDevice
from simulators.wire.images import Images
from simulators.wire.reshuffled import ReShuffled
from simulators.wire.smp import ManagedDevice


@dataclass(frozen=True, slots=True)
class Fault:
    """`prepare(device, value, at)` sets it up; `occasion` says what `at` counts."""

    help: str
    occasion: str
    prepare: Callable[[WireDevice, str | None, int | None], None]


class UnfitFault(ValueError):
    """The fault is unknown, or this device cannot have it."""


def _seconds(value: str | None) -> float | None:
    return None if value is None else float(value)


def _shuffler(device: WireDevice) -> ShelfShuffler:
    if not isinstance(device.machine, ShelfShuffler):
        raise UnfitFault("only a shuffler can have this fault")
    return device.machine


def _starter(device: WireDevice) -> ShelfShuffler | ContinuousShuffler | DealingMachine:
    return device.machine if isinstance(device.machine, ContinuousShuffler) else _worker(device)


def _continuous(name: str) -> Callable[[WireDevice, str | None, int | None], None]:
    def prepare(device: WireDevice, value: str | None, at: int | None) -> None:
        if not isinstance(device.machine, ContinuousShuffler):
            raise UnfitFault("only a continuous shuffler can have this fault")
        device.machine.traps.set(name, at, int(value or 1))

    return prepare


def _worker(device: WireDevice) -> ShelfShuffler | DealingMachine:
    if not isinstance(device.machine, ShelfShuffler | DealingMachine):
        raise UnfitFault("only a shuffler or a dealing machine can have this fault")
    return device.machine


def _wire(device: WireDevice) -> Traps:
    if not isinstance(device, ManagedDevice | AngelEye | ReShuffled | GatDevice):
        raise UnfitFault("this device's wire cannot have this fault")
    return device.traps


def _leave_inside(device: WireDevice, value: str | None, at: int | None) -> None:
    _shuffler(device).traps.set("leave_inside", at, int(value or 16))


def _sort_mode(device: WireDevice, value: str | None, at: int | None) -> None:
    if value is not None or at is not None:
        raise UnfitFault("sort_mode takes neither :VALUE nor @N; it is a setting")
    machine = device.machine if isinstance(device.machine, ContinuousShuffler) else _shuffler(device)
    machine.settings["mode"] = "sort"


def _no_start(device: WireDevice, _: str | None, at: int | None) -> None:
    _starter(device).traps.set("no_start", at)


def _jam(device: WireDevice, value: str | None, at: int | None) -> None:
    machine = device.machine if isinstance(device.machine, StackShoe) else _worker(device)
    machine.traps.set("jam", at, value)


def _extra_card(device: WireDevice, value: str | None, at: int | None) -> None:
    if value is not None or not isinstance(device.machine, StackShoe):
        raise UnfitFault("only a shoe that dispenses stacks can have this fault, and it takes no VALUE")
    device.machine.traps.set("extra_card", at)


def _reboot_mid_cycle(device: WireDevice, value: str | None, at: int | None) -> None:
    _shuffler(device).traps.set("power_cut", at, _seconds(value))


def _wrong_back_card(device: WireDevice, value: str | None, at: int | None) -> None:
    if not isinstance(device.machine, Shoe | ShelfShuffler):
        raise UnfitFault("only a shoe or a shuffler can have this fault")
    device.machine.traps.set("wrong_back", at, value)


def _misread(device: WireDevice, value: str | None, at: int | None) -> None:
    if not isinstance(device.machine, Shoe | HoleCardReader):
        raise UnfitFault("only a shoe or a hole-card reader can have this fault")
    if value is not None and (value not in tuple(RANKS) or isinstance(device.machine, Shoe)):
        raise UnfitFault(f"misread takes a VALUE on a hole-card reader alone, one of {RANKS}")
    device.machine.traps.set("misread", at, value)


def _error(device: WireDevice, _: str | None, at: int | None) -> None:
    if not isinstance(device.machine, HoleCardReader | Verifier):
        raise UnfitFault("only a hole-card reader or a GAT device can have this fault")
    device.machine.traps.set("error", at)


def _gat(device: WireDevice) -> GatDevice:
    if not isinstance(device, GatDevice):
        raise UnfitFault("only a GAT device can have this fault")
    return device


def _gat_trap(name: str) -> Callable[[WireDevice, str | None, int | None], None]:
    def prepare(device: WireDevice, value: str | None, at: int | None) -> None:
        if value is not None:
            raise UnfitFault(f"{name} takes no VALUE")
        _gat(device).traps.set(name, at)

    return prepare


def _slow_calculation(device: WireDevice, value: str | None, at: int | None) -> None:
    _gat(device).verifier.traps.set("slow", at, _seconds(value))


def _old_version(device: WireDevice, *_: object) -> None:
    _gat(device).version = 0x0200


def _text_only(device: WireDevice, *_: object) -> None:
    _gat(device).formats = TEXT


def _silent(device: WireDevice, value: str | None, at: int | None) -> None:
    _wire(device).set("silent", at, _seconds(value))


def _duplicate_answer(device: WireDevice, _: str | None, at: int | None) -> None:
    _wire(device).set("duplicate_answer", at)


def _late_answer(device: WireDevice, value: str | None, at: int | None) -> None:
    _wire(device).set("late_answer", at, _seconds(value))


def _chatter(device: WireDevice, _: str | None, at: int | None) -> None:
    traps = device.traps if isinstance(device, BeeTek) else _wire(device)
    traps.set("chatter", at)


def _bee_tek(device: WireDevice) -> BeeTek:
    if not isinstance(device, BeeTek):
        raise UnfitFault("only a bee-tek can have this fault")
    return device


def _alarm(device: WireDevice, value: str | None, at: int | None) -> None:
    _bee_tek(device).traps.set("alarm", at, value)


def _warning(device: WireDevice, value: str | None, at: int | None) -> None:
    if value is not None and not re.fullmatch("[0-9A-F]{1,4}", value):
        raise ValueError(value)
    _bee_tek(device).traps.set("warning", at, value)


def _damage(device: WireDevice, value: str | None, at: int | None) -> None:
    _bee_tek(device).traps.set("damage", at, None if value is None else int(value))


def _line_cut(device: WireDevice, value: str | None, at: int | None) -> None:
    _bee_tek(device).traps.set("line_cut", at, _seconds(value))


def _says(name: str, words: Iterable[str]) -> Callable[[WireDevice, str | None, int | None], None]:
    """A setting with a word of `words` for its value."""
    allowed = tuple(words)

    def prepare(device: WireDevice, value: str | None, at: int | None) -> None:
        if at is not None or value not in allowed:
            raise UnfitFault(f"write {name}:{' or '.join(allowed)}; it is a setting")
        setattr(_bee_tek(device), name, value)

    return prepare


def _switched(name: str) -> Callable[[WireDevice, str | None, int | None], None]:
    """A setting that is off without the fault."""

    def prepare(device: WireDevice, value: str | None, at: int | None) -> None:
        if value is not None or at is not None:
            raise UnfitFault(f"{name} takes neither :VALUE nor @N; it is a setting")
        setattr(_bee_tek(device), name, True)

    return prepare


def _dealer(device: WireDevice) -> ReShuffled:
    if not isinstance(device, ReShuffled):
        raise UnfitFault("only a reshuffled can have this fault")
    return device


def _stray_bytes(device: WireDevice, value: str | None, at: int | None) -> None:
    _dealer(device).traps.set("stray_bytes", at, None if value is None else bytes.fromhex(value))


def _text_inside(device: WireDevice, _: str | None, at: int | None) -> None:
    _dealer(device).traps.set("text_inside", at)


def _refuse(device: WireDevice, value: str | None, at: int | None) -> None:
    if value is not None and value not in tuple("123456789"):
        raise ValueError(value)
    _dealer(device).traps.set("refuse", at, value)


def _scanner(device: WireDevice) -> BarcodeReader:
    if not isinstance(device, BarcodeReader):
        raise UnfitFault("only a barcode reader can have this fault")
    return device


def _lost_key_up(device: WireDevice, value: str | None, at: int | None) -> None:
    if value is not None and value not in tuple("12345"):
        raise ValueError(value)
    _scanner(device).traps.set("lost_key_up", at, value)


def _lost_enter(device: WireDevice, _: str | None, at: int | None) -> None:
    _scanner(device).traps.set("lost_enter", at)


def _modifier(device: WireDevice, value: str | None, at: int | None) -> None:
    _scanner(device).traps.set("modifier", at, None if value is None else bytes.fromhex(value)[0])


def _short_report(device: WireDevice, _: str | None, at: int | None) -> None:
    _scanner(device).traps.set("short_report", at)


def _unplug(device: WireDevice, value: str | None, at: int | None) -> None:
    _scanner(device).traps.set("unplug", at, _seconds(value))


def _second_keyboard(device: WireDevice, value: str | None, at: int | None) -> None:
    if at is not None or value not in {None, "other", "same"}:
        raise UnfitFault("write second_keyboard, or second_keyboard:same for a twin; it is a setting")
    _scanner(device).neighbour = value or "other"


def _set_to(
    of: Callable[[WireDevice], object], **settings: object
) -> Callable[[WireDevice, str | None, int | None], None]:
    """Another reading of the documents."""

    def prepare(device: WireDevice, value: str | None, at: int | None) -> None:
        if value is not None or at is not None:
            raise UnfitFault("it takes neither :VALUE nor @N; it is a setting")
        for name, setting in settings.items():
            setattr(of(device), name, setting)

    return prepare


def _managed(device: WireDevice) -> ManagedDevice:
    if not isinstance(device, ManagedDevice):
        raise UnfitFault("only a managed device can have this fault")
    return device


def _images(device: WireDevice) -> Images:
    if (images := _managed(device).images) is None:
        raise UnfitFault("a device without images cannot have this fault")
    return images


def _flash(device: WireDevice) -> Flash:
    return _images(device).flash


def _flash_trap(name: str) -> Callable[[WireDevice, str | None, int | None], None]:
    def prepare(device: WireDevice, value: str | None, at: int | None) -> None:
        if value is not None:
            raise UnfitFault(f"{name} takes no VALUE")
        _flash(device).traps.set(name, at)

    return prepare


def _stay_in_bootloader(device: WireDevice, value: str | None, at: int | None) -> None:
    _flash(device).traps.set("stay_in_bootloader", at, _seconds(value))


def _upload_reboot(device: WireDevice, value: str | None, at: int | None) -> None:
    if value not in {None, "before", "after"}:
        raise UnfitFault("write upload_reboot:before or upload_reboot:after (the packet is in the flash)")
    _managed(device).traps.set("upload_reboot", at, value or "before")


def _upload_refused(device: WireDevice, _: str | None, at: int | None) -> None:
    _managed(device).traps.set("upload_refused", at)


def _watchdog(device: WireDevice, value: str | None, at: int | None) -> None:
    _managed(device).traps.set("watchdog", at, _seconds(value))


def _slow_erase(device: WireDevice, value: str | None, _: int | None) -> None:
    _flash(device).erase_s = float(value or 65)


def _small_buffer(device: WireDevice, value: str | None, _: int | None) -> None:
    _managed(device).buffer = int(value or 128)


def _banner(device: WireDevice, value: str | None, _: int | None) -> None:
    _managed(device).banner = (value or "*** Booting Zephyr OS build v4.1.0 ***") + "\r\n"


FAULTS: Mapping[str, Fault] = {
    "leave_inside": Fault("VALUE (16) cards never leave the input", "cycle", _leave_inside),
    "sort_mode": Fault("the machine sorts instead of shuffling", "", _sort_mode),
    "no_start": Fault("start is answered, but no cycle ever starts", "start", _no_start),
    "jam": Fault("cards jam at place VALUE in mid-cycle", "cycle or stack", _jam),
    "extra_card": Fault("one card more leaves than was asked for", "stack", _extra_card),
    "reboot_mid_cycle": Fault("power is lost for VALUE (0.2) s in mid-cycle", "cycle", _reboot_mid_cycle),
    "wrong_back_card": Fault("a card has a back of colour VALUE", "card or load", _wrong_back_card),
    "stuck": Fault("VALUE (1) of the cards that go back stick on their way", "return", _continuous("stuck")),
    "counted_twice": Fault(
        "VALUE (1) of the cards that go back are counted twice", "return", _continuous("counted_twice")
    ),
    "misread": Fault("a card's face is not read; a reader takes it for VALUE", "card or look", _misread),
    "error": Fault("it ends in an error", "look or calculation", _error),
    "slow_calculation": Fault("it takes VALUE s (just under 20 min)", "calculation", _slow_calculation),
    "level_error": Fault("the level of a calculation is refused", "calculation", _gat_trap("level_error")),
    "nak": Fault("a calculation is not acknowledged", "calculation", _gat_trap("nak")),
    "bad_crc": Fault("an answer has wrong check bytes", "request", _gat_trap("bad_crc")),
    "wrong_frame": Fault("a frame of a report has another number", "frame", _gat_trap("wrong_frame")),
    "two_masters": Fault("another host is served before us", "request", _gat_trap("two_masters")),
    "old_version": Fault("it speaks GAT 2.00", "", _old_version),
    "text_only": Fault("it has its reports as text alone", "", _text_only),
    "silent": Fault("nothing is answered any more, or for VALUE s", "request", _silent),
    "duplicate_answer": Fault("an answer comes twice", "answer", _duplicate_answer),
    "late_answer": Fault("an answer comes VALUE (3) s late", "answer", _late_answer),
    "chatter": Fault("a line of text, or stray bytes, before an answer", "answer or message", _chatter),
    "keep_old": Fault("a new image is not started", "restart with it", _flash_trap("keep_old")),
    "spoil": Fault("an uploaded image is damaged in the flash", "upload", _flash_trap("spoil")),
    "stay_in_bootloader": Fault("no image starts, for VALUE s or for good", "restart", _stay_in_bootloader),
    "quiet_bootloader": Fault("its bootloader does not say who it is", "", _set_to(_managed, tells=False)),
    "upload_reboot": Fault("it restarts, VALUE before (or after) it has it", "upload packet", _upload_reboot),
    "upload_refused": Fault("the flash is not written", "upload packet", _upload_refused),
    "remembers_upload": Fault("an upload goes on after a restart", "", _set_to(_flash, remembers=True)),
    "erase_first": Fault("it erases before it looks at an image", "", _set_to(_images, erase_first=True)),
    "slow_erase": Fault("erasing takes VALUE (65) s", "", _slow_erase),
    "watchdog": Fault("it restarts when erasing takes longer than VALUE (5) s", "erase", _watchdog),
    "small_buffer": Fault("it takes packets of VALUE (128) bytes", "", _small_buffer),
    "no_parameters": Fault("it does not tell its buffer (384 bytes)", "", _set_to(_managed, buffer=None)),
    "no_images": Fault("it has no list of images", "", _set_to(_managed, images=None)),
    "old_errors": Fault("its errors have the form of SMP version 0", "", _set_to(_managed, old_errors=True)),
    "banner": Fault("it prints VALUE at each start", "", _banner),
    "alarm": Fault("an alarm of text VALUE (E3 Card Not Read) comes before a card", "card", _alarm),
    "warning": Fault("a warning of hex code VALUE (01) comes before a card", "card", _warning),
    "damage": Fault("byte VALUE (the middle one) of a message is changed", "message", _damage),
    "line_cut": Fault("half a message comes, then nothing for VALUE (0.3) s", "message", _line_cut),
    "separator": Fault("what stands between messages", "", _says("separator", SEPARATORS)),
    "mode": Fault("the mode in which cards come", "", _says("mode", MODES)),
    "unread": Fault("how an unread card is told", "", _says("unread", UNREAD)),
    "echo": Fault("a card's characters come once more behind it", "", _switched("echo")),
    "ten": Fault("a ten is sent as 10", "", _switched("ten")),
    "suit_first": Fault("the suit comes before the rank", "", _switched("suit_first")),
    "stray_bytes": Fault(
        "bytes VALUE (hex, 01fe) behind OK, and the check covers them", "answer", _stray_bytes
    ),
    "text_inside": Fault("Error is printed in the middle of an answer", "answer", _text_inside),
    "refuse": Fault("the answer is error VALUE (1)", "request", _refuse),
    "document": Fault("a reshuffled keeps to its document", "", _set_to(_dealer, firmware=False)),
    "crc_includes_hash": Fault("its check covers the # too", "", _set_to(_dealer, crc_includes_hash=True)),
    "semicolon": Fault("its frames end with a semicolon", "", _set_to(_dealer, end=b";")),
    "request_echo": Fault("each request is printed first", "", _set_to(_dealer, echo=True)),
    "lost_key_up": Fault("key-up VALUE (1) of a code is lost", "card", _lost_key_up),
    "lost_enter": Fault("the Enter behind a code is lost", "card", _lost_enter),
    "modifier": Fault("a digit comes with modifier byte VALUE (04)", "card", _modifier),
    "short_report": Fault("a report of a code has seven bytes", "card", _short_report),
    "unplug": Fault("the reader is gone for VALUE (1) s in the middle of a code", "card", _unplug),
    "second_keyboard": Fault("another keyboard, or with VALUE same a twin, is there", "", _second_keyboard),
    "keypad_digits": Fault("codes are typed on the keypad", "", _set_to(_scanner, digits="keypad")),
    "keypad_enter": Fault("codes end with the keypad's Enter", "", _set_to(_scanner, enter="keypad_enter")),
    "rollover": Fault("the next key goes down before the last is up", "", _set_to(_scanner, rollover=True)),
    "reserved": Fault("the second byte of a report is 5A", "", _set_to(_scanner, reserved=0x5A)),
}

_TEXT = re.compile(r"(?P<name>[a-z_]+)(:(?P<value>[^@]+))?(@(?P<at>[1-9][0-9]*))?")


def apply(device: WireDevice, text: str) -> None:
    """Prepare the fault `NAME[:VALUE][@N]`. Raises UnfitFault with a sentence for people."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise UnfitFault(f"{text!r} is no fault; write NAME[:VALUE][@N], N from 1")
    fault = FAULTS.get(match["name"])
    if fault is None:
        raise UnfitFault(f"there is no fault {match['name']!r}; there are {', '.join(FAULTS)}")
    try:
        fault.prepare(device, match["value"], int(match["at"]) if match["at"] else None)
    except UnfitFault:
        raise
    except ValueError:
        raise UnfitFault(f"{match['value']!r} is no value for {match['name']}: {fault.help}") from None
