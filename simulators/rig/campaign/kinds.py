"""The kinds of tables that a campaign plays at: every mode, profile and game, most of them quick to play."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from controller import config
from controller.table.profiles import TableRules
from simulators.models.shoe import Shoe
from simulators.rig.felt import BEE_TEK, CONTINUOUS, MANAGED_SHOE, READER, SHUFFLER, STACK_SHOE
from simulators.rig.toml import to_toml
from simulators.wire.angel_eye import AngelEye
from simulators.wire.bee_tek import BeeTek

ANGEL_EYE = "angel-eye"
_SHOE, _SHUFFLER, _READER = {"shoe": MANAGED_SHOE}, {"shuffler": SHUFFLER}, {"reader": READER}
_BOTH = _SHOE | _SHUFFLER


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of table: `weight` is its share of the shoes; `table` and `rules` are keys of its table.toml."""

    weight: int
    decks: int
    devices: Mapping[str, str] = field(default_factory=lambda: _BOTH)
    mode: str = "two-batch-shoe"
    batches: int = 2
    cutting_card: bool = True
    table: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cards(self) -> int:
        """Cards of one batch."""
        return 52 * self.decks

    @property
    def seconds(self) -> float:
        """What a shoe takes, about."""
        return 100.0 + 120.0 * self.decks


def _night(weight: int, decks: int, devices: Mapping[str, str], **keys: Any) -> Kind:
    profile = {"profile": "nj-casino-night", **keys.pop("table", {})}
    return Kind(weight, decks, devices, "manual-shoe", 1, keys.pop("cutting_card", False), profile, keys)


def _poker(weight: int, game: str, devices: Mapping[str, str], batches: int, **rules: Any) -> Kind:
    boxes = 7 if game == "three-card-poker" else 6
    return Kind(
        weight, 1, devices, "deck-per-round", batches, table={"game": game, "boxes": boxes}, rules=rules
    )


KINDS: Mapping[str, Kind] = {
    "two-batch-shoe-1": Kind(10, 1),
    "two-batch-shoe-1-reader": Kind(8, 1, _BOTH | _READER),
    "two-batch-shoe-1-bee-tek": Kind(8, 1, {"shoe": BEE_TEK} | _SHUFFLER),
    "two-batch-shoe-2": Kind(10, 2, table={"wagers": ["twenty-point"]}),
    "two-batch-shoe-2-reader": Kind(8, 2, _BOTH | _READER, table={"wagers": ["over-under-13"]}),
    "two-batch-shoe-2-bee-tek": Kind(5, 2, {"shoe": BEE_TEK} | _SHUFFLER | _READER),
    "two-batch-shoe-4": Kind(4, 4, table={"wagers": ["progressive"], "dealer_hands": 3}),
    "two-batch-shoe-6": Kind(3, 6, _BOTH | _READER, table={"wagers": ["match-the-dealer"]}),
    "two-batch-shoe-8": Kind(1, 8, table={"wagers": ["optional-bonus"]}),
    "hand-dealt-1": Kind(4, 1, _SHUFFLER, "hand-dealt"),
    "hand-dealt-2": Kind(4, 2, _SHUFFLER, "hand-dealt", table={"wagers": ["twenty-point"]}),
    "manual-shoe-1": Kind(5, 1, _SHOE, "manual-shoe", 1),
    "manual-shoe-2-reader": Kind(4, 2, _SHOE | _READER, "manual-shoe", 1),
    "continuous-1": Kind(4, 1, {"shoe": CONTINUOUS}, "continuous", 1, cutting_card=False),
    "continuous-2-reader": Kind(3, 2, {"shoe": CONTINUOUS} | _READER, "continuous", 1, cutting_card=False),
    "casino-night-hand": _night(2, 2, {}, table={"ties": "push"}),
    "casino-night-shoe": _night(3, 1, _SHOE, table={"ties": "naturals-push"}, cutting_card=True),
    "casino-night-shuffler": _night(3, 1, _SHUFFLER, table={"player_card_down": "second"}),
    "casino-night-both": _night(3, 1, _BOTH, burn="each-load"),
    "asia-poker": _poker(3, "asia-poker", _SHOE, 1),
    "mississippi-stud": _poker(3, "mississippi-stud", _SHUFFLER, 2, cut="hand-shuffled"),
    "three-card-poker": _poker(4, "three-card-poker", {"shoe": STACK_SHOE} | _SHUFFLER, 2),
}

LISTENED: Mapping[str, Kind] = {
    "angel-eye": Kind(3, 1, {"shoe": ANGEL_EYE}, "listening", 0),
    "bee-tek": Kind(2, 1, {"shoe": BEE_TEK}, "listening", 0),
}
"""Shoes without a table behind them (campaign/listening.py)."""


def wire_of(driver: str, shoe: Shoe) -> AngelEye | BeeTek:
    """The device's side for a driver that listens."""
    return AngelEye(shoe) if driver == ANGEL_EYE else BeeTek(shoe)


def text_of(name: str) -> str:
    """The table.toml of one kind."""
    kind = KINDS[name]
    backs = (("A", "red"), ("B", "blue"))[: kind.batches]
    cards: dict[str, Any] = {"decks_per_batch": kind.decks}
    if kind.cutting_card:
        cards["cutting_card"] = "yellow"
    tree = {
        "table": {"id": "CAMPAIGN", "mode": kind.mode, **kind.table},
        "rules": kind.rules,
        "cards": {**cards, "batch": [{"id": batch, "back": back} for batch, back in backs]},
        "devices": {role: {"driver": driver, "port": f"mem:{role}"} for role, driver in kind.devices.items()},
    }
    return to_toml(tree)


@cache
def rules_of(name: str) -> TableRules:
    """The rules of one kind, judged as any table.toml is."""
    made, problems = config.examine(text_of(name).encode())
    if made is None:
        raise config.ConfigInvalid(name, problems)
    return made.rules
