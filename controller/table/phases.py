"""The phases of a table and every way from one to the next: one flat list (law 8).

`rules.decide` chooses from this list, `machine` builds the `transitions` machine from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    CLOSED = "closed"
    OPENING = "opening"
    FIRST_LOADED = "first_loaded"
    FIRST_SHUFFLING = "first_shuffling"
    BATCH_TAKEN = "batch_taken"
    OTHER_LOADED = "other_loaded"
    CUT_DUE = "cut_due"
    CUT_DONE = "cut_done"
    CUTTING_CARD_IN = "cutting_card_in"
    BURN_DUE = "burn_due"
    BETWEEN_ROUNDS = "between_rounds"
    DEALING = "dealing"
    SIDE_WAGERS = "side_wagers"
    HOLE_CARD = "hole_card"
    PLAYING = "playing"
    SHOE_END = "shoe_end"
    RACK_FULL = "rack_full"


IN_ROUND = (Phase.DEALING, Phase.SIDE_WAGERS, Phase.HOLE_CARD, Phase.PLAYING)
SHOE_IN_USE = (Phase.BURN_DUE, Phase.BETWEEN_ROUNDS, *IN_ROUND, Phase.SHOE_END)
"""Phases in which a batch is in the shoe."""


@dataclass(frozen=True, slots=True)
class Transition:
    """`guard` names a predicate of `rules.GUARDS`; the first transition whose guard holds is taken.

    A trigger is an operator event, or a happening that a device proves (`tap` false). `dest` None means
    that the event is accepted and the phase stays.
    """

    trigger: str
    sources: tuple[Phase, ...]
    dest: Phase | None
    guard: str = "always"
    tap: bool = True


P = Phase
_EVERYWHERE = tuple(Phase)

TRANSITIONS: tuple[Transition, ...] = (
    # opening (S1): the first batch is shuffled, then alternates as at every later swap
    Transition("open", (P.CLOSED,), P.OPENING),
    Transition("inspect", (P.OPENING,), None),
    Transition("spread", (P.OPENING,), None),
    Transition("player_inspected", (P.OPENING,), None),
    Transition("wash", (P.OPENING,), None),
    Transition("load_shuffler", (P.OPENING,), P.FIRST_LOADED),
    Transition("cycle_started", (P.FIRST_LOADED,), P.FIRST_SHUFFLING, tap=False),
    Transition("cycle_void", (P.FIRST_SHUFFLING,), P.FIRST_LOADED, tap=False),
    Transition("lifted_out", (P.FIRST_LOADED, P.FIRST_SHUFFLING), P.OPENING, tap=False),
    # the shuffled batch comes out, the other one goes in (S4); no way on before its cycle is seen to start
    Transition("take_from_shuffler", (P.FIRST_SHUFFLING, P.RACK_FULL), None),
    Transition("batch_taken", (P.FIRST_SHUFFLING, P.RACK_FULL), P.BATCH_TAKEN, tap=False),
    Transition("load_shuffler", (P.BATCH_TAKEN,), P.OTHER_LOADED),
    Transition("cycle_started", (P.OTHER_LOADED,), P.CUT_DUE, tap=False),
    Transition("lifted_out", (P.OTHER_LOADED,), P.BATCH_TAKEN, tap=False),
    # a cycle may be started, or started again after a void, wherever an unproven batch lies in the shuffler
    Transition("start_shuffle", (P.FIRST_LOADED, P.OTHER_LOADED), None),
    Transition("load_shuffler", (P.CUT_DUE, P.CUT_DONE, P.CUTTING_CARD_IN, *SHOE_IN_USE, P.RACK_FULL), None),
    Transition("start_shuffle", (P.CUT_DUE, P.CUT_DONE, P.CUTTING_CARD_IN, *SHOE_IN_USE, P.RACK_FULL), None),
    # cut, cutting card, shoe, burn
    Transition("offer_cut", (P.CUT_DUE,), None),
    Transition("cut", (P.CUT_DUE,), P.CUT_DONE),
    Transition("recut", (P.CUT_DONE,), P.CUT_DUE),
    Transition("card_strayed", (P.CUT_DONE, P.CUTTING_CARD_IN), P.CUT_DUE, tap=False),
    Transition("insert_cutting_card", (P.CUT_DONE,), P.CUTTING_CARD_IN),
    Transition("load_shoe", (P.CUTTING_CARD_IN,), P.BURN_DUE),
    Transition("burn", (P.BURN_DUE,), None),
    Transition("burned", (P.BURN_DUE,), P.BETWEEN_ROUNDS, tap=False),
    Transition("dealer_change", (P.BETWEEN_ROUNDS,), P.BURN_DUE, "burn_on_dealer_change"),
    Transition("dealer_change", (P.BETWEEN_ROUNDS,), None),
    # the round (S2, R-24)
    Transition("bets_closed", (P.BETWEEN_ROUNDS,), P.DEALING),
    Transition("dealt", (P.DEALING,), P.SIDE_WAGERS, "settle_first", tap=False),
    Transition("dealt", (P.DEALING,), P.HOLE_CARD, tap=False),
    Transition("side_wagers_settled", (P.SIDE_WAGERS,), P.PLAYING, "hole_card_is_out"),
    Transition("side_wagers_settled", (P.SIDE_WAGERS,), P.HOLE_CARD),
    Transition("hole_dealt", (P.HOLE_CARD,), P.PLAYING, tap=False),
    # outside a round only where the shoe does not sense the cutting card; told late, the shoe ends
    Transition("cutting_card_at", (P.BURN_DUE, P.BETWEEN_ROUNDS, *IN_ROUND), None),
    Transition("cutting_card_late", (P.BURN_DUE, P.BETWEEN_ROUNDS), P.SHOE_END, tap=False),
    # short of PLAYING a round is settled only when cards may have come out unseen
    Transition("round_settled", (P.DEALING, P.HOLE_CARD, P.PLAYING), P.SHOE_END, "last_round"),
    Transition("round_settled", (P.DEALING, P.HOLE_CARD, P.PLAYING), P.BETWEEN_ROUNDS),
    # the end of a shoe (S3, S4, S5)
    Transition("shuffle_now", (P.BURN_DUE, P.BETWEEN_ROUNDS), P.SHOE_END),
    Transition("shuffle_now", IN_ROUND, None),
    Transition("cutting_card_first", (P.BURN_DUE, P.BETWEEN_ROUNDS, P.DEALING), P.SHOE_END, tap=False),
    Transition("collect_rack", (P.SHOE_END,), P.RACK_FULL),
    Transition("clear", _EVERYWHERE, None),
)

TAPS: tuple[str, ...] = tuple(dict.fromkeys(t.trigger for t in TRANSITIONS if t.tap))
"""Every operator event that is built, in the order of play."""
