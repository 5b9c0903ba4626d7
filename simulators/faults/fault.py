"""One row of the menu, and the words in which the catalogue is written: `trap`, `setting`, `act`.

A row names its *bearer*, what on a device has this fault (UnfitFault where nothing has), and how VALUE is
read (ValueError where it cannot be).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from simulators.models.continuous import ContinuousShuffler
from simulators.models.dealing_machine import DealingMachine
from simulators.models.machine import Traps
from simulators.models.reader import HoleCardReader
from simulators.models.shoe import Shoe
from simulators.models.shuffler import BatchShuffler
from simulators.models.stack_shoe import StackShoe
from simulators.models.verifier import Verifier
from simulators.wire.angel_eye import AngelEye
from simulators.wire.barcode_hid import BarcodeReader
from simulators.wire.bee_tek import BeeTek
from simulators.wire.device import WireDevice
from simulators.wire.gat import GatDevice
from simulators.wire.managed import ManagedDevice
from simulators.wire.reshuffled import ReShuffled

Bearer = Callable[[WireDevice], Any]
Reads = Callable[[str | None], Any]
Strike = Callable[[Any, Any], object]

_A: dict[type, str] = {
    Shoe: "a shoe",
    StackShoe: "a shoe that dispenses stacks",
    BatchShuffler: "a shuffler",
    ContinuousShuffler: "a continuous shuffler",
    DealingMachine: "a dealing machine",
    HoleCardReader: "a hole-card reader",
    Verifier: "a GAT device",
    ManagedDevice: "a managed device",
    AngelEye: "an angel-eye",
    BeeTek: "a bee-tek",
    ReShuffled: "a reshuffled",
    GatDevice: "a GAT device",
    BarcodeReader: "a barcode reader",
}


class UnfitFault(ValueError):
    """The fault is unknown, or this device cannot have it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`occasion` says what N counts; `hides`: afterwards the machine does not know where a card is.

    A trap lies under `trap` among the traps of its bearer (or is the bearer's own); everything else is done
    by `strike(bearer, value)`. `valued`: who takes a VALUE, where not all do. `cable`: what the host must be
    able to do (hosts/cable.py). `name` and `layer` come from the menu.
    """

    kind: Literal["trap", "setting", "act"]
    help: str
    occasion: str
    bearer: Bearer
    value: Reads
    strike: Strike | None = None
    trap: str = ""
    hides: bool = False
    valued: Bearer | None = None
    cable: str = ""
    name: str = field(default="", compare=False)
    layer: str = ""

    def traps(self, device: WireDevice) -> Traps:
        """Where a trap is laid. Raises UnfitFault."""
        bearer = self.bearer(device)
        traps: Traps = bearer if isinstance(bearer, Traps) else bearer.traps
        return traps


# How VALUE is read

LONGEST_S = 86_400.0
"""Seconds that a fault lasts or waits at most: a day."""
MOST = 9_999
"""Cards, bytes or bits at most."""
MOST_TOLD = 15
"""Words that a sentence counts up."""


def nothing(text: str | None) -> None:
    """No VALUE is taken."""
    if text is not None:
        raise UnfitFault("it takes no VALUE")


def seconds(text: str | None) -> float | None:
    """Seconds of a day, 0 or more; None without VALUE."""
    if text is None:
        return None
    value = float(text)
    if value > LONGEST_S:
        raise UnfitFault(f"a day, {LONGEST_S:.0f} s, is the most, not {text[:20]}")
    if not value >= 0:
        raise ValueError(text)
    return value


def seconds_or(default: float) -> Reads:
    return lambda text: default if text is None else seconds(text)


def number(default: float, least: float, most: float) -> Reads:
    """A number from `least` to `most`."""

    def read(text: str | None) -> float:
        value = default if text is None else float(text)
        if not least <= value <= most:
            raise UnfitFault(f"its VALUE is a number from {least:g} to {most:g}, not {value:g}")
        return value

    return read


def whole(default: int | None, least: int = 1) -> Reads:
    """A whole number from `least` to MOST."""

    def read(text: str | None) -> int | None:
        value = default if text is None else int(text)
        if value is not None and value > MOST:
            raise UnfitFault(f"{MOST} is the most, not {value if value < 10**18 else 'so many'}")
        if value is not None and value < least:
            raise ValueError(text)
        return value

    return read


def words(text: str | None) -> str | None:
    """Any text."""
    return text


def one_of(*allowed: str, default: str | None = None) -> Reads:
    """A word of these; without a `default` it must be there."""

    def read(text: str | None) -> str | None:
        if text is None and default is not None:
            return default
        if text not in allowed:
            raise UnfitFault(f"its VALUE is {_one_of(allowed)}")
        return text

    return read


def _one_of(allowed: tuple[str, ...]) -> str:
    if len(allowed) > MOST_TOLD:
        return f"one of {len(allowed)} words, as {', '.join(allowed[:3])} ... {allowed[-1]}"
    return either(allowed)


def either(words: Iterable[str]) -> str:
    """Words as a sentence has them: a, b or c."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def one_or_none(*allowed: str) -> Reads:
    """A word of these, or no VALUE."""
    return lambda text: None if text is None else one_of(*allowed)(text)


def hex_bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


# Who can have it


def machine(*kinds: type, but: tuple[type, ...] | type = ()) -> Bearer:
    """The machine itself, if it is one of these, `but` not one of those."""

    def bearer(device: WireDevice) -> Any:
        if not isinstance(device.machine, kinds) or isinstance(device.machine, but):
            raise UnfitFault(f"only {_list(kinds)} can have this fault")
        return device.machine

    return bearer


def wire(*kinds: type) -> Bearer:
    """The device's end of the wire, if it is one of these."""

    def bearer(device: WireDevice) -> Any:
        if not isinstance(device, kinds):
            raise UnfitFault(f"only {_list(kinds)} can have this fault")
        return device

    return bearer


def _list(kinds: tuple[type, ...]) -> str:
    return either(_A.get(kind, kind.__name__) for kind in kinds)


# The rows


def trap(
    text: str,
    occasion: str,
    bearer: Bearer,
    value: Reads = nothing,
    *,
    at: str = "",
    hides: bool = False,
    valued: Bearer | None = None,
    cable: str = "",
) -> Fault:
    """It springs at its N-th `occasion`, or at each; `at`: the trap's name where it has another."""
    return Fault("trap", text, occasion, bearer, value, trap=at, hides=hides, valued=valued, cable=cable)


def setting(text: str, bearer: Bearer, strike: Strike, value: Reads = nothing, *, cable: str = "") -> Fault:
    """It is there from then on."""
    return Fault("setting", text, "", bearer, value, strike, cable=cable)


def act(
    text: str,
    bearer: Bearer,
    strike: Strike,
    value: Reads = nothing,
    *,
    occasion: str = "",
    hides: bool = False,
    cable: str = "",
) -> Fault:
    """It happens once; where it has an `occasion`, also at its N-th."""
    return Fault("act", text, occasion, bearer, value, strike, hides=hides, cable=cable)


def put(**attributes: object) -> Strike:
    """Set these attributes of the bearer; `...` stands for VALUE."""

    def strike(bearer: Any, value: Any) -> None:
        for name, what in attributes.items():
            setattr(bearer, name, value if what is ... else what)

    return strike
