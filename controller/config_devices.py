"""The `[devices.ID]` sections of a table.toml: drivers, ports, their own keys, approved devices."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from controller.config_file import Device
from controller.table.eligibility import Problem
from controller.table.inputs import OPERATOR, SERVICE
from devices.base import DriverSpec, OptionError, Setup

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


def named(key: str, value: str | None, what: str) -> list[Problem]:
    if value is None:
        return [Problem(f"is missing: {what}", key=key)]
    if not _NAME.fullmatch(value):
        return [Problem(f"{value!r} is no name: use up to 32 letters, digits, '.', '_' or '-'", key=key)]
    return []


def of(devices: Mapping[str, Device]) -> tuple[dict[str, DriverSpec | None], list[Problem]]:
    """The driver of each device, None where it is unknown."""
    from devices import registry
    from firmware_bridge import errors, transports

    specs: dict[str, DriverSpec | None] = {}
    problems: list[Problem] = []
    ports: dict[str, str] = {}
    for name, device in devices.items():
        key = f"devices.{name}"
        specs[name] = None
        problems += named(key, name, "")
        if name in {OPERATOR, SERVICE}:
            problems.append(Problem(f"{name} is a name of the controller's own: take another", key=key))
        if device.driver is None:
            text = f"is missing: one of {', '.join(registry.names())}"
            problems.append(Problem(text, key=f"{key}.driver"))
        else:
            try:
                spec = specs[name] = registry.load(device.driver)
                problems += _options(name, spec, device.model_extra or {})
            except registry.DriverError as error:
                problems.append(Problem(str(error), key=f"{key}.driver"))
        problems += _allowed(name, specs[name], device)
        if device.port is None:
            problems.append(Problem("is missing: a transport URI", key=f"{key}.port"))
            continue
        try:
            transports.parse_uri(device.port)
        except errors.BadUri as error:
            problems.append(Problem(str(error), key=f"{key}.port"))
        if device.port in ports:
            problems.append(Problem(f"devices.{ports[device.port]} has the same port", key=f"{key}.port"))
        ports[device.port] = name
    return specs, problems


def _allowed(name: str, spec: DriverSpec | None, device: Device) -> Iterator[Problem]:
    """The list of approved devices: whole hashes, and only where the device says who it is."""
    key = f"devices.{name}.allowed"
    if device.allowed is None:
        return
    if spec is not None and not spec.identifies:
        yield Problem(
            f"a {spec.name} does not say who it is: there is nothing to compare with a list", key=key
        )
    for entry in device.allowed:
        for part in ("vendor", "product", "serial", "firmware"):
            if getattr(entry, part) is None:
                yield Problem("is missing: `cutcard identify --enrol` prints it", key=f"{key}.{part}")
        if entry.hash is not None and not re.fullmatch("[0-9a-f]{64}", entry.hash):
            text = f"{entry.hash!r} is no SHA-256: 64 hex digits, as `cutcard identify --enrol` prints it"
            yield Problem(text, key=f"{key}.hash")


def _options(name: str, spec: DriverSpec, options: Mapping[str, Any]) -> Iterator[Problem]:
    """Keys the driver does not read, and values it cannot take."""
    known = [*Device.model_fields, *spec.options]
    unknown = [key for key in options if key not in spec.options]
    for key in unknown:
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        yield Problem(f"the driver {spec.name} has no such key; {hint}", key=f"devices.{name}.{key}")
    if not unknown:
        try:
            spec.reader(Setup(name, Random(0), options=options))
        except OptionError as error:
            yield Problem(str(error), key=f"devices.{name}")


def serves(game: str, specs: Mapping[str, DriverSpec | None]) -> Iterator[Problem]:
    for name, spec in specs.items():
        if spec is not None and game not in spec.games:
            text = f"{spec.name} serves {', '.join(sorted(spec.games))}, not {game}"
            if not spec.games:
                text = f"{spec.name} serves no table: {spec.unfit or 'it is for diagnostics alone'}"
            yield Problem(text, key=f"devices.{name}.driver")


def own_keys(devices: Mapping[str, Device], specs: Mapping[str, DriverSpec | None]) -> Iterator[Problem]:
    """Keys that only one kind of device has; silent when its driver is unknown."""
    for name, device in devices.items():
        spec = specs[name]
        if spec is None:
            continue
        if device.sides is not None and spec.role != "shoe":
            yield Problem(f"only a shoe has sides: {spec.name} is a {spec.role}", key=f"devices.{name}.sides")
        elif device.sides not in (None, 1, 2):
            yield Problem(
                f"a shoe has one side or two, not {device.sides}",
                "58 Pa. Code 633a.3(c)",
                f"devices.{name}.sides",
            )
        if device.discloses is not None and spec.role != "reader":
            text = f"only a hole-card reader discloses: {spec.name} is a {spec.role}"
            yield Problem(text, key=f"devices.{name}.discloses")
