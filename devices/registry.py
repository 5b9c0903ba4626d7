"""Drivers by name, from the entry-point group `cutcard.drivers`; a driver's module loads when asked for.

A third party adds a driver with one entry point that names its `DriverSpec`.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from devices.base import DriverSpec

GROUP = "cutcard.drivers"


class DriverError(Exception):
    """Base of the registry's errors; the text is for people."""


class UnknownDriver(DriverError):
    """Nobody offers a driver of this name: a configuration error."""


class DuplicateDriver(DriverError):
    """Two packages offer the same name: nobody may guess which one is meant."""


class BrokenDriver(DriverError):
    """The entry point exists but does not lead to a usable `DriverSpec`."""


def index(found: Iterable[EntryPoint]) -> dict[str, EntryPoint]:
    """Entry points by name. Raises DuplicateDriver."""
    by_name: dict[str, EntryPoint] = {}
    for point in found:
        other = by_name.setdefault(point.name, point)
        if other.value != point.value:
            raise DuplicateDriver(
                f"two installed packages offer a driver named '{point.name}' ({other.value} "
                f"and {point.value}): uninstall one of them"
            )
    return dict(sorted(by_name.items()))


@cache
def _installed() -> dict[str, EntryPoint]:
    return index(entry_points(group=GROUP))


def names() -> tuple[str, ...]:
    """Every driver name, sorted. Raises DuplicateDriver."""
    return tuple(_installed())


def load(name: str) -> DriverSpec:
    """The driver called `name`. Raises UnknownDriver (naming the nearest), DuplicateDriver, BrokenDriver."""
    installed = _installed()
    if name not in installed:
        near = get_close_matches(name, installed, n=1, cutoff=0.4)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise UnknownDriver(
            f"there is no driver named '{name}': {hint}known drivers: {', '.join(installed) or 'none'}"
        )
    try:
        spec = installed[name].load()
    except (ImportError, AttributeError) as error:
        raise BrokenDriver(
            f"driver '{name}' cannot be loaded ({error}): reinstall the package it comes from"
        ) from error
    if not isinstance(spec, DriverSpec) or spec.name != name:
        raise BrokenDriver(
            f"driver '{name}': its entry point {installed[name].value} names no DriverSpec of that name"
        )
    return spec
