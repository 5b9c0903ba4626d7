"""Sending an image: nothing is erased before the image is known to be whole and for this device.

Wherever it is interrupted, the device and this end agree on what is there: the device tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

from firmware_bridge import smp
from firmware_bridge.firmware.host import Ask, Got, Job, Progress, Rejoin, Say, Session, Step, Told
from firmware_bridge.firmware.image import LEAST_HEADER, Image
from firmware_bridge.firmware.jobs import BACK_S, PACKET_S, held_images, listing, same_device
from firmware_bridge.firmware.messages import NOT_SUPPORTED, STATE, UPLOAD, Nonsense, Slot, offset, running
from firmware_bridge.link import Done, Outcome, Refused, Unknown

ERASE_S = 30.0
"""For the answer to the opening packet; a device that erases longer is found again when it is done."""
SETBACKS = 5
"""How often in a row an upload may bring nothing new into the device."""
ALIGNED = 16
"""Bytes that flash is written in, at most: pieces end there."""


def upload(session: Session, image: Image, product: str | None = None) -> Job:
    """Send an image, see that the device lists it, and mark it to be tried at the next restart.

    `product` is what the device is, where it cannot say so itself.
    """
    listed = yield listing()
    if listed.failure is not None:
        return listed.failure
    now = running(listed.value)
    if now is not None and now.hash == image.hash:
        return _uploaded(image, "running", 0)
    if (foreign := _foreign(session, image, product)) is not None:
        return Refused("foreign", f"{foreign}: nothing was sent")
    if now is not None and not now.confirmed and any(slot.confirmed for slot in listed.value):
        text = (
            f"{now} runs on trial, and an upload would erase what the device goes back to: confirm it, or "
            "reset the device, before"
        )
        return Refused("on_trial", text)
    sent = 0
    if _find(listed.value, image) is None:
        failed = yield from _transfer(session, image)
        if failed is not None:
            return failed
        sent = len(image.data)
    return (yield from _mark(session, image, sent))


def _mark(session: Session, image: Image, sent: int) -> Job:
    """Have it tried at the next restart. A restart in between may have tried it already."""
    failure: Refused | Unknown | None = None
    for _ in range(SETBACKS):
        listed = yield from held_images(session)
        if not isinstance(listed, tuple):
            return listed
        now, held = running(listed), _find(listed, image)
        if held is None:
            text = "the device took every byte and does not list the image: it is damaged or not for it"
            return Refused("not_listed", text)
        if held is now:
            return _uploaded(image, "running", sent)
        if held.pending:
            return _uploaded(image, "pending", sent)
        if isinstance(failure, Refused):
            return failure
        body = {"hash": bytes.fromhex(image.hash), "confirm": False}
        marked = yield Ask(smp.Op.WRITE, STATE, body, PACKET_S, 1)
        failure = marked.failure or Refused("not_pending", "the device said yes, and does not list it so")
        if isinstance(failure, Unknown):
            back = yield Rejoin(BACK_S, same_device(session))
            if back.failure is not None:
                return back.failure
        elif now is None and failure.code == str(NOT_SUPPORTED):
            return _uploaded(image, "stored", sent)  # a bootloader starts what it holds
    assert failure is not None
    return failure


def _transfer(session: Session, image: Image) -> Generator[Step, Got, Outcome | None]:
    """All bytes, from where the device is; None when they are there.

    What a packet brings into the device is its word alone. After a break the upload is opened again, and
    the device tells how much of it is there.
    """
    total = len(image.data)
    at = best = setbacks = 0
    while at < total:
        piece = _piece(session.room, image, at)
        if piece is None:
            text = f"it takes {session.room} bytes at once, too few for the head of an image"
            return Refused("small_buffer", text)
        body, end = piece
        got = yield _asked(body, total, end)
        if isinstance(got.failure, Refused):
            return got.failure
        taken, match = (0, None) if got.failure is not None else got.value
        if at == 0 and taken > end:
            yield Say(Told(f"the device has {taken} bytes of this image already: the upload goes on there"))
        elif at == 0 and best > end >= taken > 0:
            yield Say(Told("the device has nothing of this image any more: the upload starts again at zero"))
        if taken > best:
            best, setbacks = taken, 0
        elif taken <= at:
            setbacks += 1
        if setbacks > SETBACKS:
            return got.failure or Unknown(f"the device stays at {best} of {total} bytes, whatever is sent")
        if got.failure is not None or taken < at:
            why = got.failure.reason if got.failure else f"the device is back at byte {taken} of the upload"
            yield Say(Told(f"{why}; asking who is there"))
            back = yield Rejoin(BACK_S, same_device(session))
            if back.failure is not None:
                return back.failure
            session, at = back.value, 0
            listed = yield from held_images(session)
            if isinstance(listed, tuple) and _find(listed, image) is not None:
                return None  # the upload is over, only its last answer was lost
            continue
        at = taken
        yield Say(Progress(at, total))
        if at == total and match is False:
            return Refused("damaged", "the device says that the image did not arrive whole")
    return None


def _asked(body: dict[str, Any], total: int, end: int) -> Ask:
    """One packet, sent once: before a repeat the device says who it is.

    An opening one with the image's hash may be answered with what is there from before. Without the hash a
    repeat would erase again, so its answer is awaited as long as a device may be away.
    """
    if body["off"]:
        return Ask(smp.Op.WRITE, UPLOAD, body, PACKET_S, 1, _accepted(end))
    if "sha" in body:
        return Ask(smp.Op.WRITE, UPLOAD, body, ERASE_S, 1, _accepted(total))
    return Ask(smp.Op.WRITE, UPLOAD, body, ERASE_S + BACK_S, 1, _accepted(end))


def _piece(room: int, image: Image, at: int) -> tuple[dict[str, Any], int] | None:
    """The largest packet from there on, and where it ends; None when not even the header fits."""
    bodies: list[dict[str, Any]] = [{"off": at}]
    if at == 0:
        opening = {"image": 0, "len": len(image.data), "off": 0}
        bodies = [{**opening, "sha": image.session}, opening]
    for body in bodies:
        packet = smp.Message(smp.Op.WRITE, UPLOAD[0], 0, UPLOAD[1], {**body, "data": b""})
        free = room - len(smp.encode(packet)) - 2  # of the length of the data, which is in its front
        size = min(free // ALIGNED * ALIGNED, len(image.data) - at)
        if size >= (LEAST_HEADER if at == 0 else 1):
            return {**body, "data": image.data[at : at + size]}, at + size
    return None


def _accepted(most: int) -> Callable[[Mapping[str, Any]], tuple[int, bool | None]]:
    def check(body: Mapping[str, Any]) -> tuple[int, bool | None]:
        taken = offset(body)
        if taken > most:
            raise Nonsense(f"it has {taken} bytes and got {most} at most")
        match = body.get("match")
        return taken, match if isinstance(match, bool) else None

    return check


def _foreign(session: Session, image: Image, product: str | None) -> str | None:
    """Why the image is not for this device; None when it is, or when neither says anything."""
    told = None if session.identity is None else session.identity.get("product")
    if told is not None and product is not None and told != product:
        return f"the device says it is a {told}, not a {product}"
    device = product if told is None else told
    if device == image.product:
        return None
    if image.product is None:
        return f"the image does not say for which product it is, the device is a {device}"
    if device is None:
        return f"the image is for a {image.product}, and the device does not say what it is (see --product)"
    return f"the image is for a {image.product}, the device is a {device}"


def _uploaded(image: Image, state: str, sent: int) -> Done:
    return Done({"version": image.version, "hash": image.hash, "sent": sent, "state": state})


def _find(found: tuple[Slot, ...], image: Image) -> Slot | None:
    return next((slot for slot in found if slot.hash == image.hash), None)
