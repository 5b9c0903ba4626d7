"""table.toml: what a table is made of, read with every problem told at once.

A key that nothing reads is an error with the nearest right name (law 9). What the rules forbid is judged by
`controller.table.modes`. `[panel]` and `[uplink]` are the contract's keys of a later version: their
values are checked and noted, and nothing acts on them.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import time
from pathlib import Path
from typing import Any

from controller import config_devices, config_wagers
from controller.config_devices import named
from controller.config_file import Batch, Cards, Device, File, Rules, Section, Table, read
from controller.table import eligibility, modes
from controller.table.blackjack import Ties
from controller.table.eligibility import MOST_DECKS, DeckFloor, Problem
from controller.table.modes import Asked, Mode
from controller.table.profiles import (
    BatchRules,
    Burn,
    CardDown,
    CutPolicy,
    Discretionary,
    FirstCardPolicy,
    TableRules,
)
from controller.table.round import LAST_CUTTERS
from devices.base import DriverSpec
from devices.events import DECK, Sense
from firmware_bridge.identity import Identity

RUNTIME_DIR = Path("/run/cutcard")


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """One `[devices.ID]`: `spec` is its driver, `port` a transport URI."""

    id: str
    spec: DriverSpec
    port: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Config:
    """A valid table.

    `notes` are sentences for people: readings of the rules that the regulator should confirm, and accepted
    keys that nothing in this version acts on. `day_starts` is the local time at which the gaming day begins
    (R-42).
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
    told = {problem.key for problem in problems}  # what was taken out for its type is not missing, too
    problems += [problem for problem in more if not problem.key or problem.key not in told]
    return (None, problems) if problems else (config, [])


def _socket(file: File) -> Path | None:
    if file.service.socket is not None:
        return Path(file.service.socket)
    return None if file.table.id is None else RUNTIME_DIR / f"{file.table.id}.sock"


def _journal(file: File) -> Path:
    return Path(file.journal.path or f"/var/lib/cutcard/{file.table.id}.db")


# --- meaning -----------------------------------------------------------------------------------------


def _judge(file: File) -> tuple[Config | None, list[Problem]]:
    """The configuration if the rules allow it; the Config is None only together with problems."""
    counts = [file.cards.decks_per_batch if b.decks is None else b.decks for b in file.cards.batch]
    specs, device_problems = config_devices.of(file.devices)
    asked = _asked(file, counts, specs)
    mode = modes.MODES.get((file.table.profile, file.table.mode), modes.Mode())
    terms, wager_problems = config_wagers.match(file.wagers, file.table.wagers, counts, file.rules.deck_floor)
    problems = [
        *_table(file.table, next((n for n in counts if n and n > 0), MOST_DECKS)),
        *wager_problems,
        *_rules(file.rules),
        *_cards(file.cards, mode, double_shoe=asked.double),
        *modes.judge(asked),
        *device_problems,
        *config_devices.own_keys(file.devices, specs),
        *config_devices.serves(file.table.game, specs),
        *_paths(file),
        *_later(file),
    ]
    table, first, socket = file.table, counts[0] if counts else None, _socket(file)
    if problems or table.id is None or first is None or not _batches(file.cards) or socket is None:
        return None, problems
    devices = tuple(
        DeviceConfig(name, spec, device.port, device.model_extra or {})
        for name, device in file.devices.items()
        if (spec := specs[name]) is not None and device.port is not None
    )
    rules = replace(_table_rules(file, devices, table.id, first), match=terms)
    day_starts, key = _clock(file.rules.day_starts) or time(), Path(file.journal.key)
    notes = (*modes.readings(asked), *_notes(file))
    return Config(rules, devices, socket, _journal(file), key, day_starts, notes), []


def _batches(cards: Cards) -> tuple[BatchRules, ...]:
    return tuple(
        BatchRules(b.id, b.back, b.cutting_card or cards.cutting_card or "")
        for b in cards.batch
        if b.id is not None and b.back is not None
    )


def _table_rules(file: File, devices: Sequence[DeviceConfig], name: str, decks: int) -> TableRules:
    """What the core judges by, of a file without a problem."""
    table, switches, here = file.table, file.rules, (file.table.profile, file.table.mode)
    by_role = {device.spec.role: device for device in devices}
    shoe, reader = by_role.get("shoe"), by_role.get("reader")
    shuffler = by_role.get("shoe" if table.mode == "continuous" else "shuffler")
    batches = _batches(file.cards)
    senses = frozenset[Sense]() if shoe is None else shoe.spec.senses

    def takes(*commands: str) -> bool:
        return shoe is not None and all(shoe.spec.takes(command) for command in commands)

    return TableRules(
        table=name,
        boxes=table.boxes,
        decks=decks,
        batches=batches,
        profile=table.profile,
        mode=table.mode,
        game=table.game,
        wagers=tuple(table.wagers),
        dealer_hands=table.dealer_hands,
        settle_first=any(eligibility.WAGERS[wager].settled_first for wager in table.wagers),
        first_card=FirstCardPolicy(table.first_card),
        cutting_card_tolerance=table.cutting_card_tolerance,
        burn_on_dealer_change=table.burn_on_dealer_change
        and modes.reads(here, "table.burn_on_dealer_change"),
        burn=Burn(switches.burn) if modes.reads(here, "rules.burn") else modes.MODES[here].burn,
        ties=Ties(table.ties),
        player_card_down=CardDown(table.player_card_down),
        cutting_card=any(batch.cutting_card for batch in batches),
        cut=CutPolicy(switches.cut),
        last_cutter=switches.last_cutter,
        discretionary=Discretionary(switches.discretionary),
        burn_after_dry=switches.burn_after_dry,
        deck_age_h=switches.deck_age_h,
        least_cycle_s=switches.least_cycle_s,
        double_shoe=any(device.sides == 2 for device in file.devices.values()),
        reader=None if reader is None else reader.id,
        reader_discloses=reader is not None and bool(file.devices[reader.id].discloses),
        shoe=None if shoe is None else shoe.id,
        shoe_senses=senses,
        stacks=takes("dispense"),
        shoe_answers=takes("status") and Sense.EMPTY in senses,
        shoe_locks=takes("lock", "unlock"),
        shuffler=None if shuffler is None else shuffler.id,
        allowed={
            key: tuple(Identity.told(entry.model_dump()) for entry in device.allowed)
            for key, device in file.devices.items()
            if device.allowed is not None
        },
    )


def _one_of(
    key: str, value: str, known: Iterator[str] | tuple[str, ...] | list[str], what: str
) -> list[Problem]:
    names = list(known)
    if value in names:
        return []
    near = difflib.get_close_matches(value, names, n=1, cutoff=0.55)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
    return [Problem(f"there is no {what} {value!r}; {hint}", key=key)]


def _table(table: Table, decks: int) -> Iterator[Problem]:
    yield from named("table.id", table.id, 'the name of the table, e.g. "BJ-07"')
    yield from _one_of("table.profile", table.profile, modes.PROFILES, "profile")
    yield from _one_of("table.mode", table.mode, modes.NAMES, "mode")
    yield from _one_of("table.game", table.game, modes.GAMES, "game")
    for name in dict.fromkeys(table.wagers):
        yield from _one_of("table.wagers", name, list(eligibility.WAGERS), "wager")
        if table.wagers.count(name) > 1:
            yield Problem(f"{name} is listed {table.wagers.count(name)} times", key="table.wagers")
    if table.dealer_hands not in (1, 2, 3):
        text = f"{table.dealer_hands} hands of the dealer: 1, or 2 or 3 where multiple action is offered"
        yield Problem(text, "13:69F-2.18(a)", "table.dealer_hands")
    yield from _one_of("table.first_card", table.first_card, [p.value for p in FirstCardPolicy], "policy")
    yield from _one_of("table.ties", table.ties, [option.value for option in Ties], "tie option")
    cards_down = [card.value for card in CardDown]
    yield from _one_of("table.player_card_down", table.player_card_down, cards_down, "card")
    size = decks * len(DECK)
    most = min(26, size // 8)
    if not 0 <= table.cutting_card_tolerance <= most:
        told = f'{table.cutting_card_tolerance} cards: "approximately one quarter" of {size}'
        text = f"{told} leaves 0 to {most}"
        yield Problem(text, "13:69F-2.5(d)", "table.cutting_card_tolerance")


def _rules(rules: Rules) -> Iterator[Problem]:
    yield from _one_of("rules.cut", rules.cut, [p.value for p in CutPolicy], "policy")
    yield from _one_of("rules.last_cutter", rules.last_cutter, LAST_CUTTERS, "last cutter")
    yield from _one_of("rules.deck_floor", rules.deck_floor, [p.value for p in DeckFloor], "reading")
    policies = [p.value for p in Discretionary]
    yield from _one_of("rules.discretionary", rules.discretionary, policies, "policy")
    yield from _one_of("rules.burn", rules.burn, [Burn.EACH_ROUND.value, Burn.EACH_LOAD.value], "burn")
    if rules.continuous_batches not in (1, 2):
        text = f"{rules.continuous_batches} batches: 1, or 2 where the batch rule holds for the machine too"
        yield Problem(text, "13:69F-2.2(d)1", "rules.continuous_batches")
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


def _cards(cards: Cards, mode: Mode, *, double_shoe: bool) -> Iterator[Problem]:
    if cards.decks_per_batch is None and any(b.decks is None for b in cards.batch or [Batch()]):
        yield Problem("is missing: the number of decks in each batch", key="cards.decks_per_batch")
    for index, batch in enumerate(cards.batch):
        yield from named(f"cards.batch[{index + 1}].id", batch.id, 'the name of the batch, e.g. "A"')
        if batch.back is None:
            yield Problem("is missing: the colour of the backs", key=f"cards.batch[{index + 1}].back")
    ids = [batch.id for batch in cards.batch if batch.id is not None]
    if len(set(ids)) < len(ids):
        yield Problem("two batches have the same id", key="cards.batch")
    backs = [batch.back for batch in cards.batch]
    own = [batch.cutting_card for batch in cards.batch]
    yield from eligibility.cutting_cards(
        cards.cutting_card,
        own,
        backs,
        cards.edge,
        double_shoe=double_shoe,
        clause=mode.clauses.get("cutting_card"),
    )


def _asked(file: File, counts: list[int | None], specs: Mapping[str, DriverSpec | None]) -> Asked:
    """What the mode's row of the rule table judges."""
    table, switches, known = file.table, file.rules, [spec for spec in specs.values() if spec is not None]
    sections: tuple[tuple[str, Section], ...] = (("table", table), ("rules", switches))
    return Asked(
        profile=table.profile,
        mode=table.mode,
        game=table.game,
        boxes=table.boxes,
        wagers=table.wagers,
        counts=counts or [file.cards.decks_per_batch],
        backs=[batch.back for batch in file.cards.batch],
        cutting_card=file.cards.cutting_card,
        roles=[spec.role for spec in known],
        known=len(known) == len(specs),
        shuffles=any(spec.role == "shoe" and spec.takes("start") for spec in known),
        double=_double_shoe(file.devices, specs),
        floor=next((floor for floor in DeckFloor if floor == switches.deck_floor), None),
        hand_backs_differ=switches.hand_backs_differ,
        continuous_batches=switches.continuous_batches,
        given=frozenset(f"{name}.{key}" for name, section in sections for key in section.model_fields_set),
        other=frozenset(
            f"{name}.{key}"
            for name, section in sections
            for key, field in type(section).model_fields.items()
            if getattr(section, key) != field.default
        ),
    )


def _paths(file: File) -> Iterator[Problem]:
    """Names of files: none is empty, and no two are of the same file, by whatever way they lead there."""
    known: dict[str, str] = {}
    for key, given, path in (
        ("service.socket", file.service.socket, _socket(file)),
        ("journal.path", file.journal.path, _journal(file)),
        ("journal.key", file.journal.key, Path(file.journal.key)),
    ):
        if given == "":
            yield Problem("is empty: give a file name", key=key)
        elif "\0" in str(path):
            yield Problem("holds a character that no file name may have", key=key)
        elif path is not None:
            same = known.setdefault(os.path.realpath(path), key)
            if same != key:
                yield Problem(f"names the same file as {same}: give each a file of its own", key=key)
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
