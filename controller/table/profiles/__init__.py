"""A table's rules as plain data: the profile, its switches, and the batches in play.

A switch exists only where the texts have two readings (docs/regulation.md); everything else is hard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from controller.table.blackjack import Ties
from controller.table.games import GAMES, Game
from controller.table.round import DEALER
from devices.events import DECK, Sense
from firmware_bridge.identity import Identity


class FirstCardPolicy(StrEnum):
    """What follows when the cutting card comes out before the first card of a round (R-27)."""

    PLAY_ONE_ROUND = "play-one-round"
    RESHUFFLE_NOW = "reshuffle-now"


class CutPolicy(StrEnum):
    """Which batches are cut before they go into the shoe (R-15; the second reading is R-52's)."""

    ALWAYS = "always"
    HAND_SHUFFLED = "hand-shuffled"


class Burn(StrEnum):
    """When a card is burned (R-23, R-79): after each load, before the first card of each round, or never."""

    EACH_LOAD = "each-load"
    EACH_ROUND = "each-round"
    NEVER = "never"


class CardDown(StrEnum):
    """Which of a player's first two cards lies face down: an option of casino nights, 13:47-20.22(g)6."""

    NONE = "none"
    FIRST = "first"
    SECOND = "second"


class Discretionary(StrEnum):
    """What a shuffle at the licensee's choice does with the batch (S5, two readings)."""

    SWAP = "swap"
    SAME_BATCH = "same-batch"


@dataclass(frozen=True, slots=True)
class BatchRules:
    """`cutting_card` is the colour of the one that goes into this batch: a double shoe has one a side."""

    id: str
    back: str
    cutting_card: str = ""


@dataclass(frozen=True, slots=True)
class MatchTerms:
    """Match-the-dealer as it is posted at this table, 13:69F-2.23(c) and (f).

    The odds to one of a matching card, by its suit; the limits in whole units of money, None for none.
    """

    other_suit: int
    same_suit: int
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class TableRules:
    """What `decide` judges by. `boxes` is the number of betting areas, box 1 at the dealer's left.

    `settle_first` is true when a wager offered here is settled before the dealer's second card
    (13:69F-2.17, 2.23(e)). `cutting_card_tolerance` is in cards: 2.5(d) says "approximately" one quarter.
    What the shoe does not sense by itself (`shoe_senses`), the dealer's taps supply; no rule gets softer.
    `deck` and `min_cut` are no settings: the exhaustive exploration derives a table of fewer cards from this.
    """

    min_cut: ClassVar[int] = 10
    """Cards that must lie on either side of a cut, 13:69F-2.5(c)."""

    table: str
    boxes: int
    decks: int
    batches: tuple[BatchRules, ...]
    profile: str = "nj-casino"
    mode: str = "two-batch-shoe"
    game: str = "blackjack"
    wagers: tuple[str, ...] = ()
    settle_first: bool = False
    match: MatchTerms | None = None
    """Where match-the-dealer is offered."""
    dealer_hands: int = 1
    """How many hands of the dealer a player's hand meets: two or three are multiple action, 13:69F-2.18."""
    first_card: FirstCardPolicy = FirstCardPolicy.PLAY_ONE_ROUND
    cutting_card_tolerance: int = 0
    burn_on_dealer_change: bool = True
    burn: Burn = Burn.EACH_LOAD
    ties: Ties = Ties.PUSH
    """What becomes of a tie: at casino nights posted at the table (13:47-20.22(g)7), else a push."""
    cutting_card: bool = True
    """Whether a cutting card is in use: at casino nights it is optional (R-79)."""
    player_card_down: CardDown = CardDown.NONE
    cut: CutPolicy = CutPolicy.ALWAYS
    last_cutter: str = DEALER
    """Who cuts when nobody accepts, 13:69F-2.5(f): the dealer, or "supervisor" (R-18, two readings)."""
    discretionary: Discretionary = Discretionary.SWAP
    burn_after_dry: bool = True
    """Whether a card is burned when the rack was shuffled in mid-round (R-35, two readings)."""
    deck_age_h: int | None = None
    """Hours after which a batch leaves the table (R-45): New Jersey sets none, Pennsylvania 24."""
    least_cycle_s: int = 0
    """Seconds that a full cycle of this shuffler takes at the least (R-75); 0 judges none."""
    double_shoe: bool = False
    """The shoe has two sides and a segregated area, where a card found face up goes (R-31, R-51)."""
    reader: str | None = None
    """Device id of the hole-card reader, if there is one."""
    reader_discloses: bool = False
    """Whether that reader could have shown a value to a player: a misuse then voids the round (R-36a)."""
    shoe: str | None = "shoe"
    """Device id of the shoe; None where nobody but the dealer counts: from the hand, or a plain shoe."""
    shoe_senses: frozenset[Sense] = frozenset(Sense)
    stacks: bool = False
    """That shoe lets cards out in stacks, asked to, and no other way (R-53)."""
    shoe_locks: bool = False
    """Whether that shoe takes the commands to lock and unlock it (R-37)."""
    shoe_answers: bool = False
    """Whether that shoe, asked for its status, tells whether it is empty."""
    shuffler: str | None = "shuffler"
    """Device id of the shuffler; a continuous one is the shoe as well. None: shuffled by hand."""
    allowed: Mapping[str, tuple[Identity, ...]] = field(default_factory=dict)
    """The approved devices by device id; a device that is not in it is not compared."""

    @property
    def devices(self) -> tuple[str, ...]:
        """The table's devices by id: each can hold cards, and is inspected each gaming day (R-42)."""
        named = (self.shoe, self.shuffler, self.reader)
        return tuple(dict.fromkeys(device for device in named if device is not None))

    @property
    def played(self) -> str:
        """What is played here, in words: the game, the profile, the mode."""
        return f"{self.game} of {self.profile} in mode {self.mode}"

    @property
    def night(self) -> bool:
        """A casino night of 13:47-20.22: a regime of its own."""
        return self.profile == "nj-casino-night"

    @property
    def continuous(self) -> bool:
        """One device shuffles and deals: no cut, no cutting card, no end of the shoe (R-11)."""
        return self.mode == "continuous"

    @property
    def per_round(self) -> bool:
        """One deck a round, the decks alternate every other round (R-52): each shoe lasts one round."""
        return self.mode == "deck-per-round"

    @property
    def one_deck(self) -> Game | None:
        """The game, where it is one of those of one deck a round: no card is seen before it is settled."""
        return GAMES.get(self.game)

    @property
    def deal_clause(self) -> str | None:
        """What the deal of a one-deck game goes by, as this table deals it."""
        game = self.one_deck
        if game is None:
            return None
        own = "" if self.stacks else game.in_hand if self.by_eye else game.manual
        return own or game.clause

    @property
    def settle_clause(self) -> str:
        """What asks that side wagers are settled before any further card: 2.17 alone, or match-the-dealer."""
        small = self.wagers and "match-the-dealer" not in self.wagers
        return "13:69F-2.17(d)" if small else "13:69F-2.23(e)"

    @property
    def deck(self) -> tuple[str, ...]:
        """The cards of one deck."""
        return DECK if self.one_deck is None else self.one_deck.deck

    @property
    def marked(self) -> bool:
        """Whether a cutting card goes in among the cards. A cover card (R-56) lies below all of them."""
        return self.cutting_card and not self.per_round

    @property
    def hand_dealt(self) -> bool:
        """Dealt from the hand, with a shuffler that stores the other set (13:69F-2.2(c))."""
        return self.mode == "hand-dealt"

    @property
    def by_eye(self) -> bool:
        """No device tells which cards come out: the dealer's taps alone carry the round."""
        return self.shoe is None

    @property
    def alone(self) -> bool:
        """There is one batch: nothing alternates."""
        return len(self.batches) == 1

    @property
    def batch_size(self) -> int:
        """Cards in a whole batch."""
        return self.decks * len(self.deck)

    @property
    def least_cut(self) -> int:
        """Cards that must lie on either side of a cut; casino nights go by 20.18, not at hand (R-79)."""
        return 1 if self.night else self.min_cut

    @property
    def cutting_cards(self) -> int:
        """How many are in use: from the hand two, the second one below the last card (13:69F-2.2(a))."""
        return (2 if self.hand_dealt else 1) if self.cutting_card else 0

    @property
    def least_behind_cutting_card(self) -> int:
        """Cards that must lie behind the cutting card, 13:69F-2.5(d); no figure for casino nights (R-79)."""
        return 0 if self.night else max(1, -(-self.batch_size // 4) - self.cutting_card_tolerance)

    def other(self, batch: str) -> str | None:
        """The id of the batch that alternates with `batch`, if there are two."""
        return next((b.id for b in self.batches if b.id != batch), None)

    def back(self, batch: str) -> str:
        """The back colour of `batch`."""
        return self.batch(batch).back

    def batch(self, batch: str) -> BatchRules:
        """The batch with that id."""
        return next(b for b in self.batches if b.id == batch)
