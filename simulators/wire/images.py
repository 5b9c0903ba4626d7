"""MCUmgr's image group (1) on a simulated flash: list, set state, upload, with Zephyr's rules.

Zephyr documentation, "Application/software image management group".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulators.models.firmware import HEADER, MAGIC, SLOT_SIZE, Flash, Image
from simulators.models.machine import Traps
from simulators.wire.device import Refused, Silent

IMAGE = 1
HASH = 32
NO_HASH, NO_SLOT, NOT_WRITTEN, NO_OFFSET, NO_LENGTH, NO_HEADER, BAD_MAGIC = 8, 9, 12, 20, 21, 22, 23
BAD_HASH, PENDING_ALREADY, TOO_LARGE, OVERRUN, TEST_OF_RUNNING = 24, 28, 30, 31, 33
_INVALID, _UNKNOWN, _NO_ENTRY, _NO_MEMORY, _BAD_STATE = 3, 1, 5, 2, 6
_IN_VERSION_0 = {
    **dict.fromkeys((3, 4), _NO_ENTRY),
    **dict.fromkeys((NO_SLOT, 27, PENDING_ALREADY), _BAD_STATE),
    **dict.fromkeys((14, 19, NO_OFFSET, NO_LENGTH, NO_HEADER, BAD_HASH, 25), _INVALID),
    15: _NO_MEMORY,
}

Body = Mapping[str, Any]


def in_version_0(rc: int) -> int:
    """The general code that stands for one of this group in the old form of errors."""
    return _IN_VERSION_0.get(rc, _UNKNOWN)


class Images:
    """The group's commands. `busy` is for how many seconds the last one kept the device from answering.

    Traps, counted per upload packet: upload_reboot (value `before` or `after` it is in the flash),
    upload_refused. `erase_first`: the slot is erased before anything of an upload is checked.
    """

    def __init__(self, flash: Flash, traps: Traps) -> None:
        self.flash = flash
        self.erase_first = False
        self.busy = 0.0
        self._traps = traps

    def state(self, _: Body) -> Body:
        flash = self.flash
        found = []
        if flash.running is not None:
            runs = not flash.bootloader
            found.append(_shown(0, flash.running, active=runs, confirmed=runs and not flash.trial))
        if flash.other is not None:
            pending = flash.pending is not None
            permanent = flash.pending == "permanent"
            found.append(_shown(1, flash.other, pending=pending, confirmed=flash.trial, permanent=permanent))
        return {"images": found, "splitStatus": 0}

    def set_state(self, body: Body) -> Body:
        wanted, confirm = body.get("hash"), bool(body.get("confirm", False))
        if not (confirm if wanted is None else isinstance(wanted, bytes) and len(wanted) == HASH):
            raise Refused(BAD_HASH)
        flash = self.flash
        held = {image.hash: image is flash.running for image in (flash.other, flash.running) if image}
        if wanted is not None and wanted not in held:
            raise Refused(NO_HASH)
        self._choose(confirm=confirm, runs=wanted is None or held[wanted])
        return self.state(body)

    def _choose(self, *, confirm: bool, runs: bool) -> None:
        flash = self.flash
        asked = "permanent" if confirm else "test"
        if runs and not confirm:
            raise Refused(TEST_OF_RUNNING)
        if flash.trial:
            if not confirm:
                raise Refused(PENDING_ALREADY)
            flash.trial = not runs
        elif flash.pending is not None:
            if runs or flash.pending != asked:
                raise Refused(PENDING_ALREADY)
        elif not runs:
            flash.pending = asked

    def upload(self, body: Body) -> Body:
        self.busy = 0.0
        if self._traps.sprung("upload_refused"):
            raise Refused(NOT_WRITTEN)
        trap = self._traps.sprung("upload_reboot")
        if trap is not None and trap.value == "before":
            raise Silent
        answer = self._upload(body)
        if trap is not None:
            raise Silent
        return answer

    def _upload(self, body: Body) -> Body:
        flash, offset, data = self.flash, body.get("off"), body.get("data")
        if not isinstance(offset, int):
            raise Refused(NO_OFFSET)
        if not isinstance(data, bytes):
            raise Refused(_INVALID, general=True)
        if offset == 0:
            return self._first(body, data)
        if offset != flash.received:
            return {"off": flash.received}
        if offset + len(data) > flash.length:
            raise Refused(OVERRUN)
        return self._taken(data)

    def _first(self, body: Body, data: bytes) -> Body:
        flash, length, session = self.flash, body.get("len"), body.get("sha")
        if self.erase_first and not flash.continues(session):
            self._erase()
        if len(data) < HEADER:
            raise Refused(NO_HEADER)
        if not isinstance(length, int):
            raise Refused(NO_LENGTH)
        if int.from_bytes(data[:4], "little") != MAGIC:
            raise Refused(BAD_MAGIC)
        if flash.continues(session):
            return {"off": flash.received}
        if not flash.free:
            raise Refused(NO_SLOT)
        if length > SLOT_SIZE:
            raise Refused(TOO_LARGE)
        if not self.erase_first:
            self._erase()
        flash.begin(length, session if isinstance(session, bytes) else None)
        return self._taken(data)

    def _erase(self) -> None:
        self.flash.erase()
        self.busy = self.flash.erase_s

    def _taken(self, data: bytes) -> Body:
        offset = self.flash.received + len(data)
        match = self.flash.write(data)
        return {"off": offset} if match is None else {"off": offset, "match": match}


def _shown(number: int, image: Image, **flags: bool) -> Body:
    return {
        "image": 0,
        "slot": number,
        "version": image.version,
        "hash": image.hash,
        **{name: True for name, on in flags.items() if on},
        "bootable": True,
    }
