"""MCUmgr's image group (1) on a simulated flash: list, set state, upload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from simulators.models.firmware import MAGIC, Flash, Slot

IMAGE = 1
INVALID_VALUE, BAD_STATE, NO_HASH, INVALID_LENGTH, BAD_HEADER, BAD_OFFSET = 3, 6, 8, 22, 23, 20

Body = Mapping[str, Any]


class Images:
    """Answers of the group; `refuse` is called with an error's code and does not return."""

    def __init__(self, flash: Flash, refuse: Callable[[int], Exception]) -> None:
        self.flash = flash
        self._refuse = refuse

    def state(self, _: Body) -> Body:
        return {"images": [self._shown(number, slot) for number, slot in self.flash.slots], "splitStatus": 0}

    def set_state(self, body: Body) -> Body:
        flash, wanted, confirm = self.flash, body.get("hash"), body.get("confirm", False)
        if wanted is None and not confirm:
            raise self._refuse(INVALID_VALUE)
        chosen = (
            flash.running if wanted is None else next((s for _, s in flash.slots if s.hash == wanted), None)
        )
        if chosen is None:
            raise self._refuse(NO_HASH)
        if chosen is flash.running:
            if not confirm:
                raise self._refuse(BAD_STATE)
            chosen.confirmed = True
        else:
            chosen.pending, chosen.permanent = True, bool(confirm)
        return self.state(body)

    def upload(self, body: Body) -> tuple[Body, float]:
        """The answer, and how long the flash is busy before it, seconds."""
        flash, offset, data = self.flash, body.get("off"), body.get("data")
        if not isinstance(offset, int) or not isinstance(data, bytes):
            raise self._refuse(INVALID_VALUE)
        if offset == 0:
            return self._first(body, data)
        if not flash.uploading or offset != flash.received:
            return {"off": flash.received}, 0.0
        return self._taken(offset, data), 0.0

    def _first(self, body: Body, data: bytes) -> tuple[Body, float]:
        flash, length = self.flash, body.get("len")
        if not isinstance(length, int) or length <= 32:
            raise self._refuse(INVALID_LENGTH)
        if int.from_bytes(data[:4], "little") != MAGIC:
            raise self._refuse(BAD_HEADER)
        erased = flash.erased
        session = body.get("sha")
        there = flash.begin(length, session if isinstance(session, bytes) else None)
        if there:
            return {"off": there}, 0.0
        busy = flash.erase_s if flash.erased > erased else 0.0
        return self._taken(0, data), busy

    def _taken(self, offset: int, data: bytes) -> Body:
        match = self.flash.write(data)
        answer: dict[str, Any] = {"off": offset + len(data)}
        return answer if match is None else {**answer, "match": match}

    def _shown(self, number: int, slot: Slot) -> Body:
        return {
            "image": 0,
            "slot": number,
            "version": slot.version,
            "hash": slot.hash,
            "bootable": True,
            "pending": slot.pending,
            "confirmed": slot.confirmed,
            "active": number == 0,
            "permanent": slot.permanent,
        }
