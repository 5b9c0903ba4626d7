"""What a technician asks of a device's firmware. Success is what the device says of itself afterwards.

No write of the image group is repeated before the device has said again who it is: a restart makes it
forget what it answered. Uploads are in upload.py.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

from firmware_bridge import smp
from firmware_bridge.firmware.host import Ask, Got, Job, Rejoin, Session, Step
from firmware_bridge.firmware.messages import (
    ECHO,
    RESET,
    STATE,
    Nonsense,
    Slot,
    running,
    slots,
)
from firmware_bridge.link import Done, Refused, Unknown

PACKET_S = 3.0
"""For an answer that takes writing to the flash."""
BACK_S = 120.0
"""How long a device that restarts may stay away, seconds: a bootloader swaps images meanwhile."""
RESET_S = 1.0
"""After this time a device that was told to restart has begun to."""
_NAMES = ("vendor", "product", "serial", "firmware", "boot", "class", "protocol")
IN_BOOTLOADER = "its bootloader answers, and no image runs"

Answers = Generator[Step, Got, tuple[Slot, ...] | Refused | Unknown]


def identify(session: Session) -> Job:
    """Who is there: what the device says of itself, and the hash of the image that it lists as running."""
    listed = yield listing()
    if isinstance(listed.failure, Unknown):
        return listed.failure
    told = session.identity or {}
    image = None if listed.value is None else running(listed.value)
    hashed = told.get("hash")
    return Done(
        {
            **{name: _plain(told.get(name)) for name in _NAMES},
            "hash": hashed.hex() if isinstance(hashed, bytes) else None,
            "running": None if image is None else image.hash,
            "bootloader": session.bootloader,
        }
    )


def list_images(_session: Session) -> Job:
    listed = yield listing()
    return listed.failure or Done({"images": [_shown(slot) for slot in listed.value]})


def echo(_session: Session, text: str) -> Job:
    got = yield Ask(smp.Op.WRITE, ECHO, {"d": text}, check=_text)
    if got.failure is not None:
        return got.failure
    if got.value != text:
        return Refused("echo", "the device gave back another text")
    return Done({"text": got.value})


def confirm(session: Session, wanted: str | None = None) -> Job:
    """Make the image that runs stay. `wanted` is how its hash must begin: no other image is confirmed."""
    listed = yield listing()
    if listed.failure is not None:
        return listed.failure
    now = running(listed.value)
    if now is None:
        return Refused("nothing_runs", f"{IN_BOOTLOADER}: there is nothing to confirm")
    if wanted is not None and not (now.hash or "").startswith(wanted):
        text = f"what runs is {now}: only an image that runs can be confirmed, and `firmware reset` tries one"
        return Refused("not_running", text)
    found = listed.value
    if not now.confirmed:
        body = {"confirm": True} if now.hash is None else {"confirm": True, "hash": bytes.fromhex(now.hash)}
        asked = yield Ask(smp.Op.WRITE, STATE, body, PACKET_S, 1)
        if isinstance(asked.failure, Refused):
            return asked.failure
        found = yield from held_images(session)
        if not isinstance(found, tuple):
            return found
    after = running(found)
    if after is None or after.hash != now.hash or not after.confirmed:
        return Refused("not_confirmed", f"{now} is not confirmed; what runs: {after or 'none is listed'}")
    return Done({"images": [_shown(slot) for slot in found]})


def reset(session: Session) -> Job:
    """Restart the device and see what runs then; Refused when that is not what was to run."""
    before = yield listing()
    if isinstance(before.failure, Unknown):
        return before.failure
    expected = None if before.value is None else _next(before.value)
    asked = yield Ask(smp.Op.WRITE, RESET, attempts=1)
    if isinstance(asked.failure, Refused):
        return asked.failure
    back = yield Rejoin(BACK_S, _restarted(session), after=RESET_S)
    if back.failure is not None:
        return back.failure
    told = back.value.identity or {}
    listed = yield from held_images(back.value)
    if isinstance(listed, Unknown):
        return listed
    now = None if isinstance(listed, Refused) else running(listed)
    if expected is not None and (now is None or now.hash != expected.hash):
        return Refused("other_image", f"{expected} was to run; what runs: {now or 'none is listed'}")
    return Done(
        {
            "boot": _plain(told.get("boot")),
            "firmware": _plain(told.get("firmware")),
            "version": None if now is None else now.version,
            "hash": None if now is None else now.hash,
            "confirmed": None if now is None else now.confirmed,
            "restarted": None if session.identity is None else True,
        }
    )


def listing() -> Ask:
    return Ask(smp.Op.READ, STATE, check=slots)


def held_images(session: Session) -> Answers:
    """The list, also over one restart of the device."""
    listed = yield listing()
    if isinstance(listed.failure, Unknown):
        back = yield Rejoin(BACK_S, same_device(session))
        if back.failure is not None:
            return back.failure
        listed = yield listing()
    found: tuple[Slot, ...] | Refused | Unknown = listed.failure or listed.value
    return found


def _next(found: tuple[Slot, ...]) -> Slot | None:
    """What is to run after a restart: what is pending, else what is confirmed (a trial is over then)."""
    own = [slot for slot in found if slot.image == 0]
    for flag in ("pending", "confirmed", "active"):
        chosen = next((slot for slot in own if getattr(slot, flag)), None)
        if chosen is not None:
            return chosen
    return next(iter(own), None)


def same_device(before: Session) -> Callable[[Session], str | None]:
    """The device of an earlier session, in the same mode."""

    def unfit(found: Session) -> str | None:
        if before.identity is None:
            return None
        if not before.bootloader and (found.identity is None or found.bootloader):
            return IN_BOOTLOADER
        if found.serial != before.serial:
            return f"another device answers there, with serial number {found.serial}"
        return None

    return unfit


def _restarted(before: Session) -> Callable[[Session], str | None]:
    """The same device runs an image, and counted a start; of one that counts none any answer will do."""
    same = same_device(before)

    def unfit(found: Session) -> str | None:
        if before.identity is None:
            return IN_BOOTLOADER if found.bootloader else None
        if found.identity is None or found.bootloader:
            return IN_BOOTLOADER
        if (why := same(found)) is not None:
            return why
        same_boot = found.identity.get("boot") == before.identity.get("boot")
        return "it answers and has not restarted" if same_boot else None

    return unfit


def _shown(slot: Slot) -> dict[str, Any]:
    return {
        "image": slot.image,
        "slot": slot.slot,
        "version": slot.version,
        "hash": slot.hash,
        "flags": slot.flags,
    }


def _plain(value: Any) -> str | int | None:
    """What a device says may be anything; what is told of it is a word or a number."""
    return value if isinstance(value, str | int | None) else str(value)


def _text(body: Mapping[str, Any]) -> str:
    text = body.get("r")
    if not isinstance(text, str):
        raise Nonsense("an echo without a text")
    return text
