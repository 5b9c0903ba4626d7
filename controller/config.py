"""table.toml: what a table is made of, read with every problem told at once.

A key that nothing reads is an error with the nearest right name (law 9). What the rules forbid is judged by
`controller.table.eligibility`. `[panel]` and `[uplink]` are the contract's keys of a later version: their
values are checked and noted, and nothing acts on them.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import time
from pathlib import Path
from random import Random
from typing import Any

from controller.config_file import GAME, Batch, Cards, Device, File, Rules, Table, read
from controller.table import eligibility
from controller.table.eligibility import DeckFloor, Problem
from controller.table.inputs import OPERATOR, SERVICE
from controller.table.profiles import BatchRules, CutPolicy, Discretionary, FirstCardPolicy, TableRules
from controller.table.round import LAST_CUTTERS
from devices.base import DriverSpec, OptionError, Setup
from firmware_bridge.identity import Identity

RUNTIME_DIR = Path("/run/cutcard")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """One `[devices.ID]`: `spec` is its driver, `port` a transport URI."""

    id: str
    spec: DriverSpec
    port: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Config:
    """A valid table. `notes` are sentences about accepted keys that nothing in this version acts on.

    `day_starts` is the local time at which the gaming day begins (R-42).
    """

    rules: TableRules
    devices: tuple[DeviceConfig, ...]
    socket: Path
    journal: Path
    key: Path
    day_starts: time = time(6)
    notes: tuple[str, ...] = ()


class ConfigInvalid(Exception):
    """The table may not run: every problem, in the order of the file's sections."""

    def __init__(self, path: Path | str, problems: list[Problem]) -> None:
        super().__init__("\n".join(f"{path}: {problem}" for problem in problems))
        self.problems = problems


def load(path: Path) -> Config:
    """Read and judge a table.toml. Raises ConfigInvalid, or OSError when the file cannot be read."""
    config, problems = examine(path.read_bytes())
    if config is None:
        raise ConfigInvalid(path, problems)
    return config


def examine(data: bytes) -> tuple[Config | None, list[Problem]]:
    """The configuration, or None with every problem found."""
    try:
        plain = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        return None, [Problem(f"not UTF-8 text (byte {error.start}): save the file as UTF-8")]
    except tomllib.TOMLDecodeError as error:
        return None, [Problem(f"not valid TOML: {error}")]
    file, problems = read(plain)
    config, more = _judge(file)
    problems += more
    return (None, problems) if problems else (config, [])


def _socket(file: File) -> Path | None:
    if file.service.socket is not None:
        return Path(file.service.socket)
    return None if file.table.id is None else RUNTIME_DIR / f"{file.table.id}.sock"


# --- meaning -----------------------------------------------------------------------------------------


def _judge(file: File) -> tuple[Config | None, list[Problem]]:
    """The configuration if the rules allow it; the Config is None only together with problems."""
    counts = [file.cards.decks_per_batch if b.decks is None else b.decks for b in file.cards.batch]
    floor = next((floor for floor in DeckFloor if floor == file.rules.deck_floor), None)
    specs, device_problems = _devices(file.devices)
    problems = [
        *_table(file.table),
        *_rules(file.rules),
        *_cards(file.cards, double_shoe=_double_shoe(file.devices, specs)),
        *eligibility.decks(counts or [file.cards.decks_per_batch], file.table.wagers, floor),
        *eligibility.exclusions(file.table.wagers),
        *_mode(file, counts, [spec.role for spec in specs.values() if spec is not None]),
        *device_problems,
        *_own_keys(file.devices, specs),
        *_serves(file.table.game, specs),
        *_paths(file),
        *_later(file),
    ]
    table, switches, first = file.table, file.rules, counts[0] if counts else None
    batches = [
        BatchRules(b.id, b.back, b.cutting_card or file.cards.cutting_card or "")
        for b in file.cards.batch
        if b.id is not None and b.back is not None
    ]
    socket = _socket(file)
    if problems or table.id is None or first is None or len(batches) != 2 or socket is None:
        return None, problems
    devices = tuple(
        DeviceConfig(name, spec, device.port, device.model_extra or {})
        for name, device in file.devices.items()
        if (spec := specs[name]) is not None and device.port is not None
    )
    by_role = {device.spec.role: device.id for device in devices}
    reader = by_role.get("reader")
    rules = TableRules(
        table=table.id,
        boxes=table.boxes,
        decks=first,
        batches=(batches[0], batches[1]),
        profile=table.profile,
        mode=table.mode,
        wagers=tuple(table.wagers),
        settle_first=any(eligibility.WAGERS[name].settled_first for name in table.wagers),
        first_card=FirstCardPolicy(table.first_card),
        cutting_card_tolerance=table.cutting_card_tolerance,
        burn_on_dealer_change=table.burn_on_dealer_change,
        cut=CutPolicy(switches.cut),
        last_cutter=switches.last_cutter,
        discretionary=Discretionary(switches.discretionary),
        burn_after_dry=switches.burn_after_dry,
        deck_age_h=switches.deck_age_h,
        least_cycle_s=switches.least_cycle_s,
        double_shoe=file.devices[by_role["shoe"]].sides == 2,
        reader=reader,
        reader_discloses=reader is not None and bool(file.devices[reader].discloses),
        shoe=by_role["shoe"],
        shoe_senses=next(device.spec.senses for device in devices if device.spec.role == "shoe"),
        shuffler=by_role["shuffler"],
        allowed={
            name: tuple(Identity.told(entry.model_dump()) for entry in device.allowed)
            for name, device in file.devices.items()
            if device.allowed is not None
        },
    )
    journal = Path(file.journal.path or f"/var/lib/cutcard/{table.id}.db")
    day_starts, key = _clock(switches.day_starts) or time(), Path(file.journal.key)
    return Config(rules, devices, socket, journal, key, day_starts, tuple(_notes(file))), []


def _one_of(
    key: str, value: str, known: Iterator[str] | tuple[str, ...] | list[str], what: str
) -> list[Problem]:
    names = list(known)
    if value in names:
        return []
    near = difflib.get_close_matches(value, names, n=1, cutoff=0.55)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
    return [Problem(f"there is no {what} {value!r}; {hint}", key=key)]


def _named(key: str, value: str | None, what: str) -> list[Problem]:
    if value is None:
        return [Problem(f"is missing: {what}", key=key)]
    if not _NAME.fullmatch(value):
        return [Problem(f"{value!r} is no name: use up to 32 letters, digits, '.', '_' or '-'", key=key)]
    return []


def _at(key: str, problems: list[Problem]) -> list[Problem]:
    return [Problem(p.text, p.clause, key) for p in problems]


def _table(table: Table) -> Iterator[Problem]:
    yield from _named("table.id", table.id, 'the name of the table, e.g. "BJ-07"')
    yield from _one_of("table.profile", table.profile, eligibility.PROFILES, "profile")
    if table.profile in eligibility.PROFILES and table.profile not in eligibility.BUILT_PROFILES:
        yield Problem(f"profile {table.profile} is not built yet", key="table.profile")
    yield from _one_of("table.game", table.game, (GAME,), "game")
    yield from _at("table.boxes", eligibility.boxes(table.boxes))
    for name in dict.fromkeys(table.wagers):
        yield from _one_of("table.wagers", name, list(eligibility.WAGERS), "wager")
        if table.wagers.count(name) > 1:
            yield Problem(f"{name} is listed {table.wagers.count(name)} times", key="table.wagers")
    yield from _one_of("table.first_card", table.first_card, [p.value for p in FirstCardPolicy], "policy")
    if not 0 <= table.cutting_card_tolerance <= 26:
        text = f'{table.cutting_card_tolerance} cards: "approximately one quarter" leaves 0 to 26'
        yield Problem(text, "13:69F-2.5(d)", "table.cutting_card_tolerance")


def _rules(rules: Rules) -> Iterator[Problem]:
    yield from _one_of("rules.cut", rules.cut, [p.value for p in CutPolicy], "policy")
    yield from _one_of("rules.last_cutter", rules.last_cutter, LAST_CUTTERS, "last cutter")
    yield from _one_of("rules.deck_floor", rules.deck_floor, [p.value for p in DeckFloor], "reading")
    policies = [p.value for p in Discretionary]
    yield from _one_of("rules.discretionary", rules.discretionary, policies, "policy")
    if rules.deck_age_h is not None and rules.deck_age_h < 1:
        yield Problem(f"{rules.deck_age_h} hours: no batch could be used", key="rules.deck_age_h")
    if rules.least_cycle_s < 0:
        yield Problem(f"{rules.least_cycle_s} seconds: 0 judges no cycle", key="rules.least_cycle_s")
    if _clock(rules.day_starts) is None:
        text = f'{rules.day_starts!r} is no time of day such as "06:00"'
        yield Problem(text, key="rules.day_starts")


def _clock(text: str) -> time | None:
    """HH:MM, or None where the text is something else."""
    if not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", text):
        return None
    return time.fromisoformat(text)


def _double_shoe(devices: Mapping[str, Device], specs: Mapping[str, DriverSpec | None]) -> bool:
    """Whether the shoe has two sides; a device whose driver is unknown may be the shoe."""
    roles = {name: "shoe" if spec is None else spec.role for name, spec in specs.items()}
    return any(device.sides == 2 and roles[name] == "shoe" for name, device in devices.items())


def _cards(cards: Cards, *, double_shoe: bool) -> Iterator[Problem]:
    if cards.decks_per_batch is None and any(b.decks is None for b in cards.batch or [Batch()]):
        yield Problem("is missing: the number of decks in each batch", key="cards.decks_per_batch")
    if cards.cutting_card is None and not double_shoe:
        yield Problem("is missing: the colour of the cutting card", "13:69F-2.2(a)", "cards.cutting_card")
    for index, batch in enumerate(cards.batch):
        yield from _named(f"cards.batch[{index + 1}].id", batch.id, 'the name of the batch, e.g. "A"')
        if batch.back is None:
            yield Problem("is missing: the colour of the backs", key=f"cards.batch[{index + 1}].back")
    ids = [batch.id for batch in cards.batch if batch.id is not None]
    if len(set(ids)) < len(ids):
        yield Problem("two batches have the same id", key="cards.batch")
    backs = [batch.back for batch in cards.batch]
    own = [batch.cutting_card for batch in cards.batch]
    yield from eligibility.cutting_cards(cards.cutting_card, own, backs, cards.edge, double_shoe=double_shoe)


def _mode(file: File, counts: list[int | None], roles: list[str]) -> Iterator[Problem]:
    mode, key = file.table.mode, "table.mode"
    yield from _one_of(key, mode, eligibility.MODES, "mode")
    if mode in eligibility.MODES and mode not in eligibility.BUILT_MODES:
        yield Problem(
            f"mode {mode} is not built yet; this version runs {eligibility.BUILT_MODES[0]}", key=key
        )
    backs = [batch.back for batch in file.cards.batch]
    if mode == "two-batch-shoe":
        yield from _at("cards.batch", eligibility.batches(backs, counts))
        yield from _needs("shoe", roles, "13:69F-2.6(a)", file)
        yield from _needs("shuffler", roles, "13:69F-2.2(d)", file)
    elif mode == "hand-dealt":
        sizes = counts or [file.cards.decks_per_batch]
        yield from _at(key, eligibility.hand_dealt(sizes, shuffler="shuffler" in roles))
    if mode != "two-batch-shoe" and any(device.sides == 2 for device in file.devices.values()):
        yield from _at("cards.batch", eligibility.double_shoe(backs, counts))


def _own_keys(devices: Mapping[str, Device], specs: Mapping[str, DriverSpec | None]) -> Iterator[Problem]:
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
    readers = [name for name, spec in specs.items() if spec is not None and spec.role == "reader"]
    if len(readers) > 1:
        yield Problem(f"{len(readers)} devices are a reader: a table has one at most", key="devices")


def _needs(role: str, roles: list[str], clause: str, file: File) -> Iterator[Problem]:
    """Exactly one device of this role; silent when a driver is unknown, since that may be the one."""
    if roles.count(role) > 1:
        yield Problem(f"{roles.count(role)} devices are a {role}: a table has one", key="devices")
    elif role not in roles and len(roles) == len(file.devices):
        yield Problem(f"this mode needs a {role}: no device here is one", clause, "devices")


def _devices(devices: Mapping[str, Device]) -> tuple[dict[str, DriverSpec | None], list[Problem]]:
    """The driver of each device, None where it is unknown."""
    from devices import registry
    from firmware_bridge import errors, transports

    specs: dict[str, DriverSpec | None] = {}
    problems: list[Problem] = []
    ports: dict[str, str] = {}
    for name, device in devices.items():
        key = f"devices.{name}"
        specs[name] = None
        problems += _named(key, name, "")
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


def _serves(game: str, specs: Mapping[str, DriverSpec | None]) -> Iterator[Problem]:
    for name, spec in specs.items():
        if spec is not None and game not in spec.games:
            text = f"{spec.name} serves {', '.join(sorted(spec.games))}, not {game}"
            if not spec.games:
                text = f"{spec.name} serves no table: {spec.unfit or 'it is for diagnostics alone'}"
            yield Problem(text, key=f"devices.{name}.driver")


def _paths(file: File) -> Iterator[Problem]:
    for key, text in (("service.socket", file.service.socket), ("journal.path", file.journal.path)):
        if text == "":
            yield Problem("is empty: give a file name", key=key)
    if not file.journal.key:
        yield Problem("is empty: give a file name", key="journal.key")
    socket = _socket(file)
    if socket is not None and len(str(socket).encode()) > 107:
        yield Problem("is longer than the 107 bytes a socket's name may have", key="service.socket")


def _later(file: File) -> Iterator[Problem]:
    """The shape of values that a later version acts on."""
    listen, mqtt = file.panel.listen, file.uplink.mqtt
    if listen is not None and not re.fullmatch(r"(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}", listen):
        yield Problem(f"{listen!r} is no HOST:PORT", key="panel.listen")
    if mqtt is not None and not re.fullmatch(r"mqtts?://[^\s/]+(/\S*)?", mqtt):
        yield Problem(f"{mqtt!r} is no mqtt:// or mqtts:// address", key="uplink.mqtt")


def _notes(file: File) -> Iterator[str]:
    if file.panel.listen is not None:
        yield f"panel.listen: the panel is not built yet, nothing listens on {file.panel.listen}"
    if file.uplink.mqtt is not None:
        yield f"uplink.mqtt: the uplink is not built yet, nothing is sent to {file.uplink.mqtt}"
