"""What the registry holds of every managed device, made from its dialect."""

from __future__ import annotations

from functools import partial

from devices.base import DriverSpec
from devices.events import Sense
from devices.managed.capture import ManagedDecoder
from devices.managed.control import ManagedControlled
from devices.managed.dialect import Dialect
from devices.managed.ring import OPTIONS
from devices.managed.session import Managed

VENDOR = 0x1209
BAUD = 115200


def managed_spec(
    dialect: Dialect,
    *,
    name: str,
    role: str,
    games: frozenset[str],
    product: int,
    senses: frozenset[Sense] = frozenset(),
) -> DriverSpec:
    """The driver of a device that speaks `dialect`; `product` is its USB product id."""
    return DriverSpec(
        name=name,
        role=role,
        games=games,
        baud=BAUD,
        polled=True,
        commands=tuple(command.spec for command in dialect.commands),
        reader=partial(Managed, dialect=dialect),
        controlled=partial(ManagedControlled, dialect=dialect),
        decoder=partial(ManagedDecoder, dialect=dialect),
        options=OPTIONS,
        identifies=True,
        check=dialect.body,
        usb=frozenset({(VENDOR, product)}),
        senses=senses,
    )
