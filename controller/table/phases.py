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
    ROUND_BURN = "round_burn"
    DEALING = "dealing"
    SIDE_WAGERS = "side_wagers"
    HOLE_CARD = "hole_card"
    PLAYING = "playing"
    SHOE_END = "shoe_end"
    RACK_FULL = "rack_full"
    RESHUFFLE_CUT = "reshuffle_cut"
    RESHUFFLE_LOAD = "reshuffle_load"
    RESHUFFLE_BURN = "reshuffle_burn"
    IDLE = "idle"
    CLOSING = "closing"


IN_ROUND = (Phase.ROUND_BURN, Phase.DEALING, Phase.SIDE_WAGERS, Phase.HOLE_CARD, Phase.PLAYING)
RESHUFFLING = (Phase.RESHUFFLE_CUT, Phase.RESHUFFLE_LOAD, Phase.RESHUFFLE_BURN)
"""The shoe ran out in mid-round: the rack is shuffled by hand and the same round goes on (R-35)."""
OUT_OF_SHOE = (Phase.RESHUFFLE_CUT, Phase.RESHUFFLE_LOAD)
"""Those of them in which the cards are in hand."""
SHOE_IN_USE = (Phase.BURN_DUE, Phase.BETWEEN_ROUNDS, *IN_ROUND, Phase.SHOE_END)
"""Phases in which a batch is in the shoe."""


@dataclass(frozen=True, slots=True)
class Transition:
    """`guard` names a predicate of `draft.GUARDS`; the first transition whose guard holds is taken.

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
_BEFORE_SHOE = (P.CUT_DUE, P.CUT_DONE, P.CUTTING_CARD_IN)
_NO_SHOE = (
    P.OPENING,
    P.FIRST_LOADED,
    P.FIRST_SHUFFLING,
    P.BATCH_TAKEN,
    P.OTHER_LOADED,
    *_BEFORE_SHOE,
    P.RACK_FULL,
)
PREPARING = (*_NO_SHOE, P.BURN_DUE, P.BETWEEN_ROUNDS, P.SHOE_END, P.IDLE)
"""Phases in which a batch that is in hand may be inspected, spread and washed: never in a round."""

TRANSITIONS: tuple[Transition, ...] = (
    # opening (S1): the first batch is shuffled, then alternates as at every later swap; a batch with a
    # certificate may go straight to its cut while the other is stored (S1b)
    Transition("open", (P.CLOSED,), P.OPENING),
    Transition("inspect", _EVERYWHERE, None),
    Transition("verify", PREPARING, None),
    Transition("spread", PREPARING, None),
    Transition("player_inspected", PREPARING, None),
    Transition("wash", PREPARING, None),
    # of one batch alone there is no other one to be stored first
    Transition("certificate", (P.OPENING, P.RACK_FULL), P.CUT_DUE, "alone"),
    Transition("certificate", PREPARING, None),
    Transition("shuffle_demanded", PREPARING, None),
    Transition("load_shuffler", (P.OPENING, P.RACK_FULL), P.OTHER_LOADED, "shuffled_in_hand"),
    # the batch to be cut was demanded, has a dead card or was replaced: the other one is taken out first
    Transition("proof_lost", (P.BATCH_TAKEN,), P.OPENING, tap=False),
    Transition("proof_lost", (P.OTHER_LOADED,), P.FIRST_LOADED, tap=False),
    Transition("proof_lost", _BEFORE_SHOE, P.RACK_FULL, tap=False),
    Transition("load_shuffler", (P.OPENING,), P.FIRST_LOADED),
    Transition("load_shuffler", (P.RACK_FULL,), P.FIRST_LOADED, "alone"),
    Transition("load_shuffler", (P.RACK_FULL,), P.FIRST_LOADED, "continuous"),
    Transition("cycle_started", (P.FIRST_LOADED,), P.FIRST_SHUFFLING, tap=False),
    Transition("cycle_void", (P.FIRST_SHUFFLING,), P.FIRST_LOADED, tap=False),
    Transition("lifted_out", (P.FIRST_LOADED, P.FIRST_SHUFFLING), P.OPENING, tap=False),
    # a continuous shuffler deals the batch from where it lies
    Transition("ready_to_deal", (P.FIRST_SHUFFLING,), P.BETWEEN_ROUNDS, "continuous", tap=False),
    # the shuffled batch comes out, the other one goes in (S4); no way on before its cycle is seen to start
    # what is out of play may come out in any case, and goes nowhere but off the table
    Transition("take_from_shuffler", (P.FIRST_SHUFFLING, P.RACK_FULL, P.CLOSING), None),
    Transition("take_from_shuffler", (P.FIRST_LOADED, P.OTHER_LOADED), None),
    Transition("batch_taken", (P.FIRST_SHUFFLING, P.RACK_FULL), P.CUTTING_CARD_IN, "alone_ready", tap=False),
    Transition("batch_taken", (P.FIRST_SHUFFLING, P.RACK_FULL), P.CUT_DONE, "alone_no_cut", tap=False),
    Transition("batch_taken", (P.FIRST_SHUFFLING, P.RACK_FULL), P.CUT_DUE, "alone", tap=False),
    Transition("batch_taken", (P.FIRST_SHUFFLING, P.RACK_FULL), P.OPENING, "not_its_turn", tap=False),
    Transition("batch_taken", (P.FIRST_SHUFFLING, P.RACK_FULL), P.BATCH_TAKEN, tap=False),
    Transition("load_shuffler", (P.BATCH_TAKEN,), P.OTHER_LOADED),
    Transition("cycle_started", (P.OTHER_LOADED,), P.CUTTING_CARD_IN, "ready", tap=False),
    Transition("cycle_started", (P.OTHER_LOADED,), P.CUT_DONE, "no_cut", tap=False),
    Transition("cycle_started", (P.OTHER_LOADED,), P.CUT_DUE, tap=False),
    Transition("lifted_out", (P.OTHER_LOADED,), P.BATCH_TAKEN, tap=False),
    # a cycle may be started, or started again after a void, wherever an unproven batch lies in the shuffler
    Transition("start_shuffle", (P.FIRST_LOADED, P.OTHER_LOADED), None),
    Transition("load_shuffler", (P.CUT_DUE, P.CUT_DONE, P.CUTTING_CARD_IN, *SHOE_IN_USE, P.RACK_FULL), None),
    Transition("start_shuffle", (P.CUT_DUE, P.CUT_DONE, P.CUTTING_CARD_IN, *SHOE_IN_USE, P.RACK_FULL), None),
    # cut, cutting card, shoe, burn
    Transition("offer_cut", (P.CUT_DUE,), None),
    Transition("cut", (P.CUT_DUE,), P.CUTTING_CARD_IN, "no_cutting_card"),
    Transition("cut", (P.CUT_DUE,), P.CUT_DONE),
    # another cut takes the cutting card out again
    Transition("recut", (P.CUT_DONE, P.CUTTING_CARD_IN), P.CUT_DUE),
    Transition("card_strayed", (P.CUT_DONE, P.CUTTING_CARD_IN), P.CUT_DUE, tap=False),
    Transition("insert_cutting_card", (P.CUT_DONE,), P.CUTTING_CARD_IN),
    *(
        row
        for load in ("load_shoe", "take_in_hand")
        for row in (
            Transition(load, (P.CUTTING_CARD_IN,), P.BURN_DUE, "burns_each_load"),
            Transition(load, (P.CUTTING_CARD_IN,), P.BETWEEN_ROUNDS),
        )
    ),
    # where no device counts, the dealer's tap says that the card is burned
    Transition("burn", (P.BURN_DUE,), P.BETWEEN_ROUNDS, "by_eye"),
    Transition("burn", (P.ROUND_BURN,), P.PLAYING, "by_eye"),
    Transition("burn", (P.BURN_DUE, P.ROUND_BURN), None),
    Transition("burned", (P.BURN_DUE,), P.BETWEEN_ROUNDS, tap=False),
    Transition("burned", (P.ROUND_BURN,), P.DEALING, tap=False),
    Transition("dealer_change", (P.BETWEEN_ROUNDS,), P.BURN_DUE, "burn_on_dealer_change"),
    Transition("dealer_change", (P.BETWEEN_ROUNDS,), None),
    # the round (S2, R-24); a game without a hole card is dealt at once
    Transition("bets_closed", (P.BETWEEN_ROUNDS,), P.ROUND_BURN, "burns_each_round"),
    Transition("bets_closed", (P.BETWEEN_ROUNDS,), P.SIDE_WAGERS, "by_eye_settle_first"),
    Transition("bets_closed", (P.BETWEEN_ROUNDS,), P.PLAYING, "by_eye"),
    Transition("bets_closed", (P.BETWEEN_ROUNDS,), P.DEALING),
    # a shoe that deals in stacks lets one out for each position, and at last the stub
    Transition("dispense", (P.DEALING, P.PLAYING, P.SHOE_END), None),
    Transition("dealt", (P.DEALING,), P.PLAYING, "no_hole_card", tap=False),
    Transition("dealt", (P.DEALING,), P.SIDE_WAGERS, "settle_first", tap=False),
    Transition("dealt", (P.DEALING,), P.HOLE_CARD, tap=False),
    Transition("deal_goes_on", (P.SIDE_WAGERS,), P.DEALING, tap=False),
    # a wager by word is confirmed before the first card, and its cash is chips before it is settled
    Transition("cash_wager", (P.DEALING,), None),
    Transition("cash_converted", (P.DEALING, P.SIDE_WAGERS), None),
    Transition("side_wagers_settled", (P.SIDE_WAGERS,), P.PLAYING, "hole_card_is_out"),
    Transition("side_wagers_settled", (P.SIDE_WAGERS,), P.HOLE_CARD),
    Transition("hole_dealt", (P.HOLE_CARD,), P.PLAYING, tap=False),
    # what is left of the deck, counted before the hands are settled
    Transition("count_stub", (P.PLAYING,), None),
    # outside a round only where the shoe does not sense the cutting card; told late, the shoe ends
    Transition("cutting_card_at", (P.BURN_DUE, P.BETWEEN_ROUNDS, *IN_ROUND), None),
    Transition("cutting_card_late", (P.BURN_DUE, P.BETWEEN_ROUNDS), P.SHOE_END, tap=False),
    # hands may be followed one by one: their taps are optional, and tell each card its hand
    *(Transition(play, (P.PLAYING,), None) for play in ("hit", "stand", "double", "split")),
    *(Transition(play, (P.PLAYING,), None) for play in ("surrender", "insurance")),
    # of several hands of the dealer the last one ends with the round (2.18)
    Transition("dealer_hand_settled", (P.PLAYING,), None),
    # short of PLAYING a round is settled only when cards may have come out unseen
    Transition("round_settled", (P.DEALING, P.HOLE_CARD, P.PLAYING), P.SHOE_END, "last_round"),
    Transition("round_settled", (P.DEALING, P.HOLE_CARD, P.PLAYING), P.BETWEEN_ROUNDS),
    # irregularities (R-31 to R-36a)
    Transition("card_face_up", IN_ROUND, None),
    Transition("drawn_in_error", IN_ROUND, None),
    Transition("dealer_skipped", IN_ROUND, None),
    Transition("box_skipped", IN_ROUND, None),
    Transition("void_round", (*IN_ROUND, *RESHUFFLING), P.SHOE_END, "last_round"),
    Transition("void_round", (*IN_ROUND, *RESHUFFLING), P.BETWEEN_ROUNDS),
    Transition("peek", IN_ROUND, None),
    Transition("no_reader", _EVERYWHERE, None),
    Transition("dead_card", _EVERYWHERE, None),
    Transition("replace_batch", _EVERYWHERE, None),
    # the shoe ran out in mid-round: the rack is shuffled by hand, cut, loaded, and the round goes on
    Transition("reshuffle_by_hand", IN_ROUND, P.RESHUFFLE_CUT),
    Transition("cut", (P.RESHUFFLE_CUT,), P.RESHUFFLE_LOAD),
    *(
        row
        for load in ("load_shoe", "take_in_hand")
        for row in (
            Transition(load, (P.RESHUFFLE_LOAD,), P.RESHUFFLE_BURN, "burn_after_dry"),
            *(Transition(load, (P.RESHUFFLE_LOAD,), phase, f"dry_in_{phase}") for phase in IN_ROUND),
        )
    ),
    *(Transition("burn", (P.RESHUFFLE_BURN,), phase, f"dry_in_{phase}") for phase in IN_ROUND),
    *(Transition("burned", (P.RESHUFFLE_BURN,), phase, f"dry_in_{phase}", tap=False) for phase in IN_ROUND),
    # about one deck of the rack goes back into the shoe in stacks
    Transition("bart_carter", (P.BETWEEN_ROUNDS,), None),
    # without a shuffler (`manual-shoe`), or the same batch once more where a switch says so (S5)
    Transition("reshuffle_by_hand", (P.OPENING, P.RACK_FULL), P.CUT_DUE),
    # the end of a shoe (S3, S4, S5)
    Transition("shuffle_now", (P.BURN_DUE, P.BETWEEN_ROUNDS), P.SHOE_END),
    Transition("shuffle_now", IN_ROUND, None),
    Transition(
        "cutting_card_first",
        (P.BURN_DUE, P.BETWEEN_ROUNDS, P.ROUND_BURN, P.DEALING),
        P.SHOE_END,
        tap=False,
    ),
    Transition("collect_rack", (P.SHOE_END,), P.IDLE, "going_idle"),
    Transition("collect_rack", (P.SHOE_END,), P.CLOSING, "going_to_close"),
    Transition("collect_rack", (P.SHOE_END,), P.RACK_FULL),
    # nobody plays (S8)
    Transition("idle", (P.BURN_DUE, P.BETWEEN_ROUNDS), P.SHOE_END),
    Transition("idle", (P.RACK_FULL,), P.IDLE),
    Transition("resume", (P.IDLE,), P.CUT_DUE, "alone_certified"),
    Transition("resume", (P.IDLE,), P.RACK_FULL),
    # closing (S10): every device empty, each batch counted
    Transition("close", (P.BURN_DUE, P.BETWEEN_ROUNDS), P.SHOE_END),
    Transition("close", (P.SHOE_END,), None),
    Transition("close", (P.IDLE, *_NO_SHOE), P.CLOSING),
    Transition("close", (P.CLOSING,), P.CLOSED),
    Transition("count_batch", (P.CLOSING,), None),
    # devices and people
    Transition("confirm_empty", _EVERYWHERE, None),
    Transition("out_of_service", _EVERYWHERE, None),
    Transition("in_service", _EVERYWHERE, None),
    Transition("acknowledge", _EVERYWHERE, None),
    Transition("clear", _EVERYWHERE, None),
)

TAPS: tuple[str, ...] = tuple(dict.fromkeys(t.trigger for t in TRANSITIONS if t.tap))
"""Every operator event that is built, in the order of play."""
TAPPED_IN: dict[str, frozenset[Phase]] = {
    event: frozenset(phase for t in TRANSITIONS if t.tap and t.trigger == event for phase in t.sources)
    for event in TAPS
}
"""The phases in which each may be tapped."""
