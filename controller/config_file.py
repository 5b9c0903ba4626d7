"""The shape of a table.toml: its keys, their types, and the nearest right name for a wrong one."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from controller.table import eligibility, modes
from controller.table.blackjack import Ties
from controller.table.eligibility import DeckFloor, Problem
from controller.table.profiles import Burn, CardDown, CutPolicy, Discretionary, FirstCardPolicy
from controller.table.round import DEALER


class Section(BaseModel):
    """Every value may be missing here, so that one mistake hides no other; `config` says what is needed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Table(Section):
    id: str | None = None
    profile: str = "nj-casino"
    game: str = modes.BLACKJACK
    boxes: int = eligibility.MOST_BOXES
    mode: str = "two-batch-shoe"
    wagers: list[str] = []
    first_card: str = FirstCardPolicy.PLAY_ONE_ROUND.value
    cutting_card_tolerance: int = 0
    burn_on_dealer_change: bool = True
    dealer_hands: int = 1
    ties: str = Ties.PUSH.value
    player_card_down: str = CardDown.NONE.value


class Rules(Section):
    """Switches where the rules have two readings, and limits that they leave to the house."""

    cut: str = CutPolicy.ALWAYS.value
    last_cutter: str = DEALER
    deck_floor: str = DeckFloor.BATCH.value
    discretionary: str = Discretionary.SWAP.value
    burn_after_dry: bool = True
    burn: str = Burn.EACH_ROUND.value
    hand_backs_differ: bool = True
    continuous_batches: int = 1
    deck_age_h: int | None = None
    least_cycle_s: int = 0
    day_starts: str = "06:00"


class Batch(Section):
    id: str | None = None
    back: str | None = None
    decks: int | None = None
    cutting_card: str | None = None


class Cards(Section):
    decks_per_batch: int | None = None
    cutting_card: str | None = None
    edge: str = "white"
    batch: list[Batch] = []


class Allowed(Section):
    """One approved device, as `cutcard identify --enrol` prints it."""

    vendor: str | None = None
    product: str | None = None
    serial: str | None = None
    firmware: str | None = None
    hash: str | None = None


class Device(Section):
    """Keys beside these are the driver's options; the driver knows which it has.

    `sides` is a shoe's, `discloses` a hole-card reader's.
    """

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    driver: str | None = None
    port: str | None = None
    allowed: list[Allowed] | None = None
    sides: int | None = None
    discloses: bool | None = None


class Wager(Section):
    """What is posted of a wager: limits in whole units of money, and the odds to one of a matching card."""

    minimum: int | None = None
    maximum: int | None = None
    other_suit: int | None = None
    same_suit: int | None = None


class Service(Section):
    socket: str | None = None


class JournalSection(Section):
    path: str | None = None
    key: str = "/etc/cutcard/seal.key"


class Panel(Section):
    listen: str | None = None


class Uplink(Section):
    mqtt: str | None = None


class File(Section):
    table: Table = Table()
    rules: Rules = Rules()
    wagers: dict[str, Wager] = {}
    cards: Cards = Cards()
    devices: dict[str, Device] = {}
    service: Service = Service()
    journal: JournalSection = JournalSection()
    panel: Panel = Panel()
    uplink: Uplink = Uplink()


_WANTED = {
    "string_type": "a text in quotes",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list in brackets",
    "dict_type": "a section with keys of its own",
    "model_type": "a section with keys of its own",
    "model_attributes_type": "a section with keys of its own",
}


def read(plain: Mapping[str, Any]) -> tuple[File, list[Problem]]:
    """The file's values as far as they have the right names and types, and what has not.

    What is wrong is told and taken out, then the rest is read again, until all of it is well-formed.
    """
    tree: dict[str, Any] = _copy(plain)
    problems: list[Problem] = []
    while True:
        try:
            return File.model_validate(tree), problems
        except ValidationError as error:
            faults = error.errors(include_url=False)
            problems += [_shape_problem(fault["type"], fault["loc"], fault["input"]) for fault in faults]
            for fault in sorted(faults, key=lambda fault: str(fault["loc"]), reverse=True):
                _take_out(tree, fault["loc"])


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _take_out(tree: Any, loc: tuple[int | str, ...]) -> None:
    for step in loc[:-1]:
        tree = tree[step]
    del tree[loc[-1]]


def _shape_problem(kind: str, loc: tuple[int | str, ...], value: Any) -> Problem:
    key = _dotted(loc)
    if kind != "extra_forbidden":
        return Problem(f"must be {_WANTED.get(kind, 'of another type')}, not {_shown(value)}", key=key)
    name = str(loc[-1])
    siblings = list(_model_at(loc[:-1]).model_fields)
    near = difflib.get_close_matches(name, siblings, n=1, cutoff=0.5)
    if near:
        return Problem(f"there is no such key; did you mean {near[0]}?", key=key)
    everywhere = {path.rpartition(".")[2]: path for path in reversed([*keys()])}
    if far := difflib.get_close_matches(name, everywhere, n=1, cutoff=0.75):
        return Problem(f"there is no such key here; did you mean {everywhere[far[0]]}?", key=key)
    return Problem(f"there is no such key; known are {', '.join(siblings)}", key=key)


def _model_at(loc: tuple[int | str, ...]) -> type[BaseModel]:
    model: type[BaseModel] = File
    for step in loc:
        if isinstance(step, str) and step in model.model_fields:
            model = _inner(model.model_fields[step].annotation) or model
    return model


def _inner(annotation: Any) -> type[BaseModel] | None:
    """The section class that an annotation holds: itself, a list's or a dict's."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _inner(inner))), None)


def keys() -> Iterator[str]:
    """Every key that may stand in a table.toml, as `section.key`."""
    for section, info in File.model_fields.items():
        yield from _keys(section, _inner(info.annotation) or Section)


def _keys(prefix: str, model: type[BaseModel]) -> Iterator[str]:
    for name, info in model.model_fields.items():
        if inner := _inner(info.annotation):
            yield from _keys(f"{prefix}.{name}", inner)
        else:
            yield f"{prefix}.{name}"


def _dotted(loc: tuple[int | str, ...]) -> str:
    text = ""
    for step in loc:
        text += f"[{step + 1}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
