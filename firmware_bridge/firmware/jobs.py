"""What a technician asks of a device's firmware. Success is what the device says of itself afterwards."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from firmware_bridge import smp
from firmware_bridge.firmware.host import Ask, Got, Job, JobMaker, Progress, Rejoin, Say, Session, Step
from firmware_bridge.firmware.image import Image
from firmware_bridge.firmware.messages import (
    ECHO,
    RESET,
    STATE,
    UPLOAD,
    Nonsense,
    Slot,
    offset,
    running,
    slots,
)
from firmware_bridge.link import Done, NotSent, Outcome, Refused, Unknown

ERASE_S = 30.0
"""A device may erase for so long before it answers the first packet; three times that at most."""
PACKET_S = 3.0
BACK_S = 60.0
"""How long a device that restarts may stay away, seconds."""
STALLS = 5
"""How often in a row a packet may bring nothing forward."""
REJOINS = 8
"""How often in a row a device may vanish without one packet in between."""
_NAMES = ("vendor", "product", "serial", "firmware", "boot", "class", "protocol")


def identify(session: Session, _args: Mapping[str, Any]) -> Job:
    """Who is there: what the device says of itself, and the hash of the image it runs."""
    told = session.identity
    if told is None:
        return Refused("8", "the device has no identity of ours (group 64)")
    listed = yield Ask(smp.Op.READ, STATE, check=slots)
    if isinstance(listed.failure, Unknown):
        return listed.failure
    image = None if listed.value is None else running(listed.value)
    answer = {name: told[name] for name in _NAMES if name in told}
    return Done({**answer, "hash": None if image is None else image.hash})


def list_images(_session: Session, _args: Mapping[str, Any]) -> Job:
    listed = yield Ask(smp.Op.READ, STATE, check=slots)
    return listed.failure or Done({"images": [_shown(slot) for slot in listed.value]})


def echo(_session: Session, args: Mapping[str, Any]) -> Job:
    text = args["text"]
    got = yield Ask(smp.Op.WRITE, ECHO, {"d": text}, check=_text)
    if got.failure is not None:
        return got.failure
    if got.value != text:
        return Refused("echo", "the device gave back another text")
    return Done({"text": got.value})


def confirm(_session: Session, args: Mapping[str, Any]) -> Job:
    """Make the running image stay, or with a hash that image, whatever runs."""
    body: dict[str, Any] = {"confirm": True}
    if args.get("hash"):
        body["hash"] = bytes.fromhex(args["hash"])
    got = yield Ask(smp.Op.WRITE, STATE, body, timeout=PACKET_S, check=slots)
    if got.failure is not None:
        return got.failure
    stays = [slot for slot in got.value if slot.confirmed or slot.permanent]
    wanted = args.get("hash") or next((slot.hash for slot in got.value if slot.active), None)
    if wanted not in [slot.hash for slot in stays]:
        return Refused("not_confirmed", "the device said yes and lists no such image as confirmed")
    return Done({"images": [_shown(slot) for slot in got.value]})


def reset(session: Session, _args: Mapping[str, Any]) -> Job:
    """Restart the device and see what runs then; Refused when that is not what was to run."""
    before = yield Ask(smp.Op.READ, STATE, check=slots)
    if isinstance(before.failure, Unknown):
        return before.failure
    expected = None if before.value is None else _next(before.value)
    asked = yield Ask(smp.Op.WRITE, RESET, attempts=1)
    if isinstance(asked.failure, Refused):
        return asked.failure
    back = yield Rejoin(BACK_S, lambda found: _restarted(session, found))
    if back.failure is not None:
        return back.failure
    after = yield Ask(smp.Op.READ, STATE, check=slots)
    if isinstance(after.failure, Unknown):
        return after.failure
    answer = {
        "boot": (back.value.identity or {}).get("boot"),
        "firmware": (back.value.identity or {}).get("firmware"),
    }
    now = None if after.value is None else running(after.value)
    answer["hash"] = None if now is None else now.hash
    if expected is not None and (now is None or now.hash != expected.hash):
        shown = "none is listed" if now is None else f"{now.version} ({now.hash})"
        return Refused("old_image", f"{expected.version} ({expected.hash}) was to run; what runs: {shown}")
    return Done(answer)


def upload(session: Session, args: Mapping[str, Any]) -> Job:
    """Send an image, see that the device lists it, and mark it to be tried at the next restart."""
    image: Image = args["image"]
    listed = yield Ask(smp.Op.READ, STATE, check=slots)
    if listed.failure is not None:
        return listed.failure
    now = running(listed.value)
    if now is not None and now.hash == image.hash:
        return Done({"version": image.version, "hash": image.hash, "sent": 0, "state": "running already"})
    if (reason := _foreign(session, image)) is not None:
        return NotSent(reason)
    if _held(listed.value, image) is None:
        ended = yield from _transfer(session, image)
        if ended is not None:
            return ended
        listed = yield Ask(smp.Op.READ, STATE, check=slots)
        if listed.failure is not None:
            return listed.failure
        if _held(listed.value, image) is None:
            return Unknown("the device took every byte and does not list the image: nothing of it is used")
    marked = yield Ask(
        smp.Op.WRITE, STATE, {"hash": bytes.fromhex(image.hash), "confirm": False}, PACKET_S, check=slots
    )
    if marked.failure is not None:
        return marked.failure
    held = _held(marked.value, image)
    if held is None or not held.pending:
        return Refused("not_pending", "the device has the image and does not mark it for the next restart")
    return Done({"version": image.version, "hash": image.hash, "sent": len(image.data), "state": "pending"})


def _transfer(session: Session, image: Image) -> Generator[Step, Got, Outcome | None]:
    """All bytes, from where the device is; None when they are there."""
    total = len(image.data)
    at = stalls = rejoins = 0
    while at < total:
        first = at == 0
        body: dict[str, Any] = {"image": 0, "len": total, "sha": image.session} if first else {}
        body |= {"off": at, "data": b""}
        room = session.buffer - len(smp.encode(smp.Message(smp.Op.WRITE, *_ids(UPLOAD), body))) - 2
        body["data"] = image.data[at : at + room]
        got = yield Ask(smp.Op.WRITE, UPLOAD, body, ERASE_S if first else PACKET_S, check=_accepted(total))
        if isinstance(got.failure, Refused):
            return got.failure
        if got.failure is not None:
            rejoins += 1
            if rejoins > REJOINS:
                return got.failure
            back = yield Rejoin(BACK_S)
            if back.failure is not None:
                return back.failure
            if _serial(back.value) != _serial(session):
                return Unknown("another device answers now: the image on the first one is not whole")
            session, at = back.value, 0  # the first packet names the upload; the device tells where it is
            continue
        taken, match = got.value
        stalls = stalls + 1 if taken <= at else 0
        if stalls > STALLS:
            return Unknown(f"the device stays at byte {taken} of {total}")
        if taken > at:
            rejoins = 0
        at = taken
        yield Say(Progress(at, total))
        if at == total and match is False:
            return Refused("damaged", "the device says that the image did not arrive whole")
    return None


def _ids(what: tuple[int, int]) -> tuple[int, int, int]:
    """Group, a sequence number, command: for measuring a packet."""
    return what[0], 0, what[1]


def _accepted(total: int) -> Any:
    def check(body: Mapping[str, Any]) -> tuple[int, bool | None]:
        taken = offset(body)
        if taken > total:
            raise Nonsense(f"it has {taken} of {total} bytes")
        match = body.get("match")
        return taken, match if isinstance(match, bool) else None

    return check


def _foreign(session: Session, image: Image) -> str | None:
    """Why the image is not for this device; None when it is, or nobody can tell."""
    product = None if session.identity is None else session.identity.get("product")
    if product is None and image.product is None:
        return None
    if product == image.product:
        return None
    if image.product is None:
        return f"the image does not say for which product it is, the device is a {product}: nothing was sent"
    if product is None:
        return f"the image is for a {image.product}, the device does not say what it is: nothing was sent"
    return f"the image is for a {image.product}, the device is a {product}: nothing was sent"


def _held(found: tuple[Slot, ...], image: Image) -> Slot | None:
    return next((slot for slot in found if slot.hash == image.hash), None)


def _next(found: tuple[Slot, ...]) -> Slot | None:
    """What is to run after a restart: what is pending, else what is confirmed (a test that is over)."""
    pending = next((slot for slot in found if slot.pending), None)
    confirmed = next((slot for slot in found if slot.confirmed), None)
    return pending or confirmed or running(found)


def _restarted(before: Session, found: Session) -> bool:
    """A device that counts its starts must have counted one; of others any answer will do."""
    old, new = before.identity, found.identity
    return old is None or (new is not None and new.get("boot") != old.get("boot"))


def _serial(session: Session) -> Any:
    return None if session.identity is None else session.identity.get("serial")


def _shown(slot: Slot) -> dict[str, Any]:
    return {
        "image": slot.image,
        "slot": slot.slot,
        "version": slot.version,
        "hash": slot.hash,
        "flags": slot.flags,
    }


def _text(body: Mapping[str, Any]) -> str:
    text = body.get("r")
    if not isinstance(text, str):
        raise Nonsense("an echo without a text")
    return text


JOBS: dict[str, JobMaker] = {
    "identify": identify,
    "list": list_images,
    "echo": echo,
    "confirm": confirm,
    "reset": reset,
    "upload": upload,
}
