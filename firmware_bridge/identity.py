"""Who is there: what a device says of itself against the list of those that are approved.

A device that was changed can say what it likes, so a fitting answer is necessary and never sufficient
(R-72): the best verdict is `ATTESTED_UNTRUSTED`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """What the comparison proves."""

    UNCHECKED = "UNCHECKED"
    """There is no list: nobody compared."""
    ATTESTED_UNTRUSTED = "ATTESTED_UNTRUSTED"
    """All it says of itself is on the list."""
    CHANGED = "CHANGED"
    """A listed device by its serial number, with other firmware or under another name."""
    UNLISTED = "UNLISTED"
    """No such device is on the list."""

    @property
    def fits(self) -> bool:
        """Whether cards may be moved as far as this goes."""
        return self in {Verdict.UNCHECKED, Verdict.ATTESTED_UNTRUSTED}


@dataclass(frozen=True, slots=True)
class Identity:
    """`hash` is the running image's, lower-case hex; None where the device has no list of images."""

    vendor: str
    product: str
    serial: str
    firmware: str
    hash: str | None = None

    @classmethod
    def told(cls, answer: Mapping[str, Any]) -> Identity:
        """From what a device told; what is missing is the empty text."""
        known = {name: answer.get(name) for name in _NAMES}
        image = known.pop("hash")
        texts = {name: value if isinstance(value, str) else "" for name, value in known.items()}
        return cls(**texts, hash=image.lower() if isinstance(image, str) else None)

    def differences(self, other: Identity) -> list[str]:
        """Where `self`, as told, is not `other`, as listed: one text a key."""
        pairs = [(name, getattr(self, name), getattr(other, name)) for name in _NAMES]
        return [
            f"{name} is {_shown(mine)}, the list says {_shown(listed)}"
            for name, mine, listed in pairs
            if mine != listed
        ]


_NAMES = tuple(field.name for field in fields(Identity))


def judge(found: Identity, allowed: Sequence[Identity] | None) -> tuple[Verdict, str]:
    """The verdict and what it rests on, for people. `allowed` None: there is no list."""
    who = f"{found.vendor} {found.product} {found.serial}".strip()
    if allowed is None:
        return Verdict.UNCHECKED, f"no list of approved devices was given to compare {who} with"
    if found in allowed:
        return Verdict.ATTESTED_UNTRUSTED, f"all that {who} says of itself is on the list; it proves no more"
    same = [listed for listed in allowed if listed.serial == found.serial]
    if same:
        nearest = min((found.differences(listed) for listed in same), key=len)
        return Verdict.CHANGED, f"{who} is on the list, but " + " and ".join(nearest)
    return Verdict.UNLISTED, f"{who} with firmware {found.firmware} is not on the list of approved devices"


def _shown(value: str | None) -> str:
    return "not told" if value is None else value or "empty"
