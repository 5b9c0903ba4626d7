"""What each mode of play needs, for each profile: the rule table that `check` judges by.

A mode is a row of facts with the clauses they go by, never a machine of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from controller.table.eligibility import (
    BATCH_CLAUSES,
    DOUBLE_SHOE,
    MOST_BOXES,
    MOST_DECKS,
    WAGERS,
    DeckFloor,
    Problem,
    batches,
    exclusions,
    floors,
)
from controller.table.games import GAMES as ONE_DECK
from controller.table.profiles import Burn

CASINO, NIGHT = PROFILES = ("nj-casino", "nj-casino-night")
BLACKJACK = "blackjack"
GAMES = (BLACKJACK, *ONE_DECK)


class Need(Enum):
    """Whether a device, or the cutting card, is needed."""

    YES = "is needed"
    MAY = "may be there"
    NO = "is not used"


@dataclass(frozen=True, slots=True)
class Mode:
    """One mode at a table of one profile.

    `decks` are those of one batch, `batches` how many batches there may be. `clauses` says what
    each of these fields goes by.
    """

    games: tuple[str, ...] = (BLACKJACK,)
    boxes: Sequence[int] = range(1, MOST_BOXES + 1)
    decks: Sequence[int] = range(1, MOST_DECKS + 1)
    batches: tuple[int, ...] = (2,)
    shoe: Need = Need.YES
    shuffler: Need = Need.YES
    reader: Need = Need.MAY
    cutting_card: Need = Need.YES
    burn: Burn = Burn.EACH_LOAD
    wagers: bool = True
    clauses: Mapping[str, str] = field(default_factory=dict)


TWO_BATCH, MANUAL = (CASINO, "two-batch-shoe"), (CASINO, "manual-shoe")
HAND, CONTINUOUS, PER_ROUND = (CASINO, "hand-dealt"), (CASINO, "continuous"), (CASINO, "deck-per-round")
CASINO_NIGHT = (NIGHT, "manual-shoe")
_LICENSED = {
    "decks": "13:69F-2.2(a)",
    **BATCH_CLAUSES,
    "shoe": "13:69F-2.6(a)",
    "shuffler": "13:69F-2.2(d)",
    "cutting_card": "13:69F-2.2(a)",
}

MODES: Mapping[tuple[str, str], Mode] = {
    TWO_BATCH: Mode(clauses=_LICENSED),
    MANUAL: Mode(batches=(1,), shuffler=Need.NO, clauses=_LICENSED | {"batches": "13:69F-2.2(a)"}),
    HAND: Mode(
        decks=(1, 2),
        shoe=Need.NO,
        clauses=_LICENSED
        | {
            "decks": "13:69F-2.2(a)1",
            "batches": "13:69F-2.2(c)",
            "shoe": "13:69F-2.6A(b)",
            "shuffler": "13:69F-2.2(c)",
        },
    ),
    CONTINUOUS: Mode(
        batches=(1,),
        shuffler=Need.NO,
        cutting_card=Need.NO,
        burn=Burn.NEVER,
        clauses=_LICENSED
        | {"batches": "13:69F-2.2(a)"}
        | dict.fromkeys(("shoe", "shuffler", "cutting_card"), "13:69F-2.21"),
    ),
    PER_ROUND: Mode(
        games=tuple(ONE_DECK),
        decks=(1,),
        batches=(1, 2),
        shoe=Need.MAY,
        shuffler=Need.MAY,
        burn=Burn.NEVER,
        wagers=False,
        clauses={
            **dict.fromkeys(("decks", "batches", "backs", "shuffler"), "13:69F-23.2(b)"),
            "cutting_card": "13:69F-20.2",
        },
    ),
    CASINO_NIGHT: Mode(
        boxes=(7,),
        decks=range(1, 5),
        batches=(1,),
        shoe=Need.MAY,
        shuffler=Need.MAY,
        reader=Need.NO,
        cutting_card=Need.MAY,
        burn=Burn.EACH_ROUND,
        wagers=False,
        clauses={
            "boxes": "13:47-20.22(b)1",
            "decks": "13:47-20.22(b)2",
            "batches": "13:47-20.22(b)2i",
            "reader": "13:47-20.22(c)",
            "wagers": "13:47-20.22(g)",
        },
    ),
}
_SHOES = (TWO_BATCH, MANUAL, HAND)
READ_BY: Mapping[str, tuple[tuple[str, str], ...]] = {
    "table.first_card": (*_SHOES, CASINO_NIGHT),
    "table.cutting_card_tolerance": _SHOES,
    "table.burn_on_dealer_change": _SHOES,
    "table.dealer_hands": (*_SHOES, CONTINUOUS),
    "rules.cut": (TWO_BATCH, HAND, PER_ROUND),
    "rules.last_cutter": (*_SHOES, CASINO_NIGHT),
    "rules.deck_floor": (TWO_BATCH, HAND),
    "rules.discretionary": (TWO_BATCH,),
    "rules.burn_after_dry": _SHOES,
    "rules.burn": (CASINO_NIGHT,),
    "table.ties": (CASINO_NIGHT,),
    "table.player_card_down": (CASINO_NIGHT,),
    "rules.hand_backs_differ": (HAND,),
    "rules.continuous_batches": (CONTINUOUS,),
}
"""Keys of table.toml that mean nothing elsewhere."""
SECOND_READINGS: Mapping[str, str] = {
    "table.first_card": (
        "what follows a cutting card before a round's first card is in no text of New Jersey at hand; "
        "read here as in New Zealand: shuffled before that round (R-27)"
    ),
    "table.cutting_card_tolerance": (
        '13:69F-2.5(d) says "approximately one quarter" and not how near; read here as less than a '
        "quarter, too (R-16)"
    ),
    "table.burn_on_dealer_change": (
        "the burn of each new dealer was read in Pennsylvania's text, New Jersey's was not at hand; "
        "read here as none (R-23)"
    ),
    "rules.cut": (
        "no text of New Jersey at hand exempts shuffled cards from the cut (13:69F-2.5(b)-(c)); read "
        "here as in Maryland: what a machine shuffled is not cut (R-15, R-52)"
    ),
    "rules.last_cutter": (
        "who cuts when nobody accepts was not at hand; read here as in New Zealand: a supervisor (R-18)"
    ),
    "rules.deck_floor": (
        "13:69F-2.2(a) does not say whose decks its floors count; read here as those of both batches (R-03)"
    ),
    "rules.discretionary": (
        "13:69F-2.5(a) does not say whether a shuffle at the house's choice takes the batch's turn; "
        "read here as not: the same batch once more (S5)"
    ),
    "rules.burn_after_dry": (
        "the burn after a shuffle in mid-round is recalled, 13:69F-2.15(f) was not at hand; read here "
        "as none (R-35)"
    ),
    "rules.burn": "13:47-20.22(g)6 burns after the bets; read here as once a shoe or deck (R-79)",
    "rules.hand_backs_differ": (
        "13:69F-2.2(d) asks for different backs from two decks on; read here set by set (R-04)"
    ),
    "rules.deck_age_h": (
        "no text of New Jersey limits how long a batch is played; read here as in Pennsylvania: it "
        "leaves the table (R-45)"
    ),
}
"""What a switch that is not at its default stands on; `continuous_batches` is told whatever it is."""
NAMES = tuple(dict.fromkeys(mode for _, mode in MODES))
_ELSEWHERE = {
    (NIGHT, "two-batch-shoe"): ("the cards of a casino night are one batch", "13:47-20.22(b)2i"),
    (NIGHT, "hand-dealt"): (
        "a casino night dealt from the hand is mode manual-shoe without a shoe",
        "13:47-20.22(c)1",
    ),
    (NIGHT, "continuous"): ("discards rest until the shoe or deck is dealt out", "13:47-20.22(g)6"),
    (NIGHT, "deck-per-round"): ("20.22 is blackjack, the mode is for one-deck games", "13:47-20.22(b)2"),
}
"""Modes that a profile does not have, and why."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a table.toml asks for. `roles` are the devices', one a device; `known`: every driver is known.

    `shuffles`: the shoe is a continuous shuffler. `double`: it has two sides. `given` are the keys that stand
    in the file, `other` the keys whose value is not the default.
    """

    profile: str
    mode: str
    game: str
    boxes: int
    wagers: Sequence[str]
    counts: Sequence[int | None]
    backs: Sequence[str | None]
    cutting_card: str | None
    roles: Sequence[str]
    known: bool = True
    shuffles: bool = False
    double: bool = False
    floor: DeckFloor | None = DeckFloor.BATCH
    hand_backs_differ: bool = True
    continuous_batches: int = 1
    given: frozenset[str] = frozenset()
    other: frozenset[str] = frozenset()


def reads(row: tuple[str, str], key: str) -> bool:
    """Whether a table of this profile and mode reads the key of table.toml."""
    return row in READ_BY.get(key, MODES)


def judge(asked: Asked) -> Iterator[Problem]:
    """Everything about this table that its mode forbids."""
    mode = MODES.get((asked.profile, asked.mode))
    if mode is None:
        if (asked.profile, asked.mode) in _ELSEWHERE:
            text, clause = _ELSEWHERE[asked.profile, asked.mode]
            yield Problem(f"there is no mode {asked.mode} at {asked.profile}: {text}", clause, "table.mode")
        return
    if asked.mode == "continuous" and asked.continuous_batches == 2:
        mode = replace(mode, batches=(2,), clauses={**mode.clauses, **BATCH_CLAUSES})
    if asked.mode == "hand-dealt" and not asked.hand_backs_differ:
        if set(asked.counts) <= {1, None}:
            mode = replace(mode, clauses={k: v for k, v in mode.clauses.items() if k != "backs"})
        else:
            text = "sets of two decks have different backs: this is for sets of one"
            yield Problem(text, mode.clauses["backs"], "rules.hand_backs_differ")
    yield from _game(mode, asked)
    yield from _cards(mode, asked)
    yield from _machines(mode, asked)
    yield from _keys(asked)


def readings(asked: Asked) -> Iterator[str]:
    """What the regulator should confirm: readings that this table stands on and the texts leave open."""
    row = (asked.profile, asked.mode)
    if row == CONTINUOUS:
        yield (
            "table.mode: 13:69F-2.21 lets an approved device and its procedures stand for 2.5 and 2.6; "
            "its end was not at hand (R-11)"
        )
        batches = "one batch is" if asked.continuous_batches == 1 else "two batches are"
        yield (
            f"rules.continuous_batches: whether the batches of 13:69F-2.2(d) are asked of such a device is "
            f"open (R-11); {batches} used"
        )
    for key, text in SECOND_READINGS.items():
        if key in asked.other and reads(row, key):
            yield f"{key}: {text}"


def _keys(asked: Asked) -> Iterator[Problem]:
    for key in READ_BY:
        if key in asked.given and not reads((asked.profile, asked.mode), key):
            yield Problem(f"nothing reads this in mode {asked.mode} of {asked.profile}: take it out", key=key)
    cycles = "shuffler" in asked.roles or asked.mode == "continuous" or not asked.known
    if "rules.least_cycle_s" in asked.given and not cycles:
        yield Problem("nothing reads this without a shuffler: take it out", key="rules.least_cycle_s")
    marked = asked.cutting_card is not None or (asked.profile, asked.mode) != CASINO_NIGHT
    if "table.first_card" in asked.given and not marked:
        yield Problem("nothing reads this without a cutting card: take it out", key="table.first_card")


def _game(mode: Mode, asked: Asked) -> Iterator[Problem]:
    if asked.game in GAMES and asked.game not in mode.games:
        one_deck = "13:69F-23.2(b)"
        clause = one_deck if asked.profile == CASINO else "13:47-20.22(b)2"
        text = f"mode {asked.mode} of {asked.profile} is for {', '.join(mode.games)}, not {asked.game}"
        yield Problem(text, clause, "table.game")
    if asked.boxes not in mode.boxes:
        least, most = mode.boxes[0], mode.boxes[-1]
        told = f"{least} to {most}" if most > least else f"exactly {least}"
        text = f"the layout has {told} boxes, not {asked.boxes}"
        yield Problem(text, mode.clauses.get("boxes"), "table.boxes")
    elif asked.game in mode.games and asked.game in ONE_DECK:
        game = ONE_DECK[asked.game]
        if (most := game.most(asked.boxes)) < asked.boxes:
            text = f"{asked.game} has {most} boxes at most, not {asked.boxes}: its stacks are {game.stacks}"
            yield Problem(text, game.clause, "table.boxes")
    if not mode.wagers and asked.wagers:
        for wager in (name for name in dict.fromkeys(asked.wagers) if name in WAGERS):
            text = f"{wager} is a wager of blackjack in a casino"
            yield Problem(text, mode.clauses.get("wagers", WAGERS[wager].section), "table.wagers")
    elif mode.wagers:
        yield from floors(asked.counts, asked.wagers, asked.floor)
        yield from exclusions(asked.wagers)


def _cards(mode: Mode, asked: Asked) -> Iterator[Problem]:
    for count in sorted({c for c in asked.counts if c is not None and c not in mode.decks}):
        text, clause = f"{count} decks a batch: ", mode.clauses["decks"]
        if count < 1:
            yield Problem(f"{text}at least one is needed", clause, "cards.decks_per_batch")
        elif mode.decks[-1] == MOST_DECKS:
            yield Problem(f"{text}Cutcard handles at most {MOST_DECKS}", None, "cards.decks_per_batch")
        else:
            allowed = " or ".join(str(n) for n in mode.decks)
            text += f"{asked.mode} of {asked.profile} is played with {allowed}"
            yield Problem(text, clause, "cards.decks_per_batch")
    yield from batches(asked.backs, asked.counts, mode.batches, mode.clauses)
    if mode.cutting_card is Need.YES and asked.cutting_card is None and not asked.double:
        text = "is missing: the colour of the cutting card"
        yield Problem(text, mode.clauses["cutting_card"], "cards.cutting_card")
    if mode.cutting_card is Need.NO and asked.cutting_card is not None:
        text = f"no cutting card is in use in mode {asked.mode}: take it out"
        yield Problem(text, mode.clauses["cutting_card"], "cards.cutting_card")


def _machines(mode: Mode, asked: Asked) -> Iterator[Problem]:
    for role, need in (("shoe", mode.shoe), ("shuffler", mode.shuffler), ("reader", mode.reader)):
        count, clause = asked.roles.count(role), mode.clauses.get(role)
        if count > 1:
            yield Problem(f"{count} devices are a {role}: a table has one at most", key="devices")
        elif need is Need.YES and not count and asked.known:
            yield Problem(f"this mode needs a {role}: no device here is one", clause, "devices")
        elif need is Need.NO and count:
            text = f"{asked.mode} of {asked.profile} has no {role}: take it out, or name another mode"
            yield Problem(text, clause, "devices")
    if "shoe" in asked.roles and asked.known and asked.shuffles != (asked.mode == "continuous"):
        text = "this mode needs a shoe that shuffles by itself"
        if asked.shuffles:
            text = "a shoe that shuffles by itself is for mode continuous"
        yield Problem(text, "13:69F-2.21" if asked.profile == CASINO else "13:47-20.22(g)6", "devices")
    if asked.double and (asked.profile, asked.mode) != TWO_BATCH:
        yield Problem("a double shoe is for mode two-batch-shoe", DOUBLE_SHOE, "devices")
    if len(asked.backs) == 2 and mode.shuffler is Need.MAY and "shuffler" not in asked.roles and asked.known:
        text = "two decks alternate only with a shuffler: no device here is one"
        yield Problem(text, mode.clauses["batches"], "devices")
