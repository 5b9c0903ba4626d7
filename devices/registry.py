"""Drivers by name, from the entry-point group `cutcard.drivers`; a driver's module loads when asked for.

A third party adds a driver with one entry point that names its `DriverSpec`.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

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


def index(found: Iterable[EntryPoint]) -> dict[str, list[EntryPoint]]:
    """Who claims each name; one package that is found twice on the path claims it once."""
    claims: dict[str, dict[tuple[str, str], EntryPoint]] = {}
    for point in found:
        claims.setdefault(point.name, {}).setdefault((point.value, _package(point)), point)
    return {name: list(points.values()) for name, points in sorted(claims.items())}


def fetch(claims: list[EntryPoint], what: str) -> Any:
    """What the one claim of a name leads to. Raises DuplicateDriver, or BrokenDriver however it fails."""
    point, *others = claims
    if others:
        raise DuplicateDriver(
            f"two installed packages offer a {what} named '{point.name}' ({_origin(point)} "
            f"and {_origin(others[0])}): uninstall one of them"
        )
    try:
        return point.load()
    except Exception as error:  # a stranger's module, perhaps made for another version of us
        why = next(iter(str(error).splitlines()), "")
        raise BrokenDriver(
            f"{what} '{point.name}' cannot be loaded ({type(error).__name__}: {why}): install a version of "
            f"{_package(point) or 'its package'} that fits this cutcard, or uninstall it"
        ) from error


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else ""


def _origin(point: EntryPoint) -> str:
    return f"{point.value} of {_package(point)}" if _package(point) else point.value


@cache
def _installed() -> dict[str, list[EntryPoint]]:
    return index(entry_points(group=GROUP))


def names() -> tuple[str, ...]:
    """Every driver name, sorted."""
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
    spec = fetch(installed[name], "driver")
    if not isinstance(spec, DriverSpec) or spec.name != name:
        raise BrokenDriver(
            f"driver '{name}': its entry point {_origin(installed[name][0])} names no DriverSpec of that name"
        )
    return spec
