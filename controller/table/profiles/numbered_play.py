"""R-31 to R-41: what goes wrong in a round, and wagers that hold the machines back, in our own words."""

from __future__ import annotations

from controller.table.profiles.rule import CHECK, Rule, Switch, Tag

V, P, A, R = Tag.VERBATIM, Tag.PARTIAL, Tag.ANALOGUE, Tag.RECALLED
T = "controller.table."

PLAY: tuple[Rule, ...] = (
    Rule(
        "R-31",
        V,
        "a card found face up is not used: discard rack, or the segregated area of a double shoe",
        clause="13:69F-2.15(a)",
        code=(
            T + "shoe_events:_card",
            T + "round:FACE_UP",
            T + "state:Place",
        ),
        journal=("card_drawn",),
    ),
    Rule(
        "R-32",
        V,
        "a card drawn in error and not exposed is the next card",
        clause="13:69F-2.15(b)",
        code=(
            T + "shoe_events:next_place",
            T + "evolve:_bets_closed",
            T + "irregular:_judge_drawn_in_error",
        ),
        journal=(
            "card_drawn",
            "fault_latched: card_out_of_turn",
            "drawn_in_error",
        ),
    ),
    Rule(
        "R-33",
        A,
        "drawn in error and exposed: the next hand's card, or burned (New Jersey: recalled)",
        clause="SD 20:18:15:28",
        code=(
            T + "irregular:_judge_drawn_in_error",
            T + "irregular:_after_drawn_in_error",
        ),
        journal=(
            "drawn_in_error",
            "exposed",
        ),
        left_out="in part: who refused a card and draws no more is not entered in this version",
    ),
    Rule(
        "R-34",
        A,
        "a dealer who skipped a card of the own hand takes it later; cards that lie are not shifted (New "
        "Jersey: recalled)",
        clause="SD 20:18:15:28",
        code=(
            T + "irregular:_judge_dealer_skipped",
            T + "irregular:_reordered",
            T + "irregular:_judge_drawn_in_error",
        ),
        journal=(
            "dealer_skipped",
            "drawn_in_error",
        ),
    ),
    Rule(
        "R-35",
        A,
        "a shoe that runs dry in a round: the rack is shuffled and cut, the round goes on, the "
        "alternation stays (New Jersey: recalled)",
        clause="SD 20:18:15:28",
        code=(
            T + "shoe_events:_judge_empty",
            T + "dry_shoe:_by_hand_in_round",
            T + "dry_shoe:judge_cut",
            T + "dry_shoe:judge_load",
            T + "draft:GUARDS",
        ),
        journal=(
            "shoe_empty",
            "fault_latched: shoe_dry",
            "reshuffle_by_hand",
            "cut",
            "load_shoe",
        ),
        switch=Switch("rules.burn_after_dry", ("true: a card is burned then", "false: none is")),
    ),
    Rule(
        "R-36",
        A,
        "a box without a card is out for the round; one with a single card gets its second after all others",
        clause="SD 20:18:15:28",
        code=(
            T + "irregular:_judge_box_skipped",
            T + "irregular:_reordered",
        ),
        journal=("box_skipped",),
        left_out="in part: a missed draw made good, and hands called dead at the player's wish, are not "
        "entered in this version",
    ),
    Rule(
        "R-36a",
        R,
        "a reader used with two to nine up, or one that fails",
        clause="13:69F-2.15(j)-(k)",
        code=(
            T + "reader:_looked",
            T + "reader:_misused",
            T + "reader:failed",
            T + "reader:procedure",
            T + "reader:_judge_no_reader",
            T + "irregular:_judge_void",
        ),
        journal=(
            "hole_card_checked",
            "fault_latched: reader_misuse",
            "fault_latched: reader_failed",
            "no_reader",
            "void_round",
        ),
    ),
    Rule(
        "R-36b",
        A,
        "a jam, an open door or an incomplete cycle voids the shuffle, no partial credit; out of service "
        "only with a look that it is empty",
        clause="La. 42:III-3106",
        code=(
            T + "shuffler_events:_void",
            T + "out_of_service:_judge_out",
            T + "closing:_judge_confirm",
        ),
        journal=(
            "batch_voided",
            "fault_latched: shuffle_void",
            "out_of_service",
            "confirm_empty",
            "fault_latched: cards_inside",
        ),
    ),
    Rule(
        "R-37",
        V,
        "side wagers are settled after the second cards and before any further card or look of the reader",
        clause="13:69F-2.23(e)",
        code=(
            T + "phases:TRANSITIONS",
            T + "shoe_events:next_place",
            T + "reader:not_due",
            T + "locks:keep",
        ),
        journal=(
            "side_wagers_settled",
            "command_issued",
            "fault_latched: shoe_not_locked",
            "fault_latched: card_out_of_turn",
            "fault_latched: reader_misuse",
        ),
    ),
    Rule(
        "R-38",
        V,
        "what each matching card pays at the least, by number of decks and suit",
        clause="13:69F-2.23(f)",
        code=(
            T + "eligibility:MATCH_ODDS",
            "controller.config_wagers:match",
            T + "side_wagers:pays",
            T + "side_wagers:matched",
        ),
        journal=("side_wagers_settled",),
    ),
    Rule(
        "R-39",
        V,
        "match-the-dealer not beside the optional bonus and the in-between wager; a basic wager comes "
        "first, and all of them before the first card",
        clause="13:69F-2.23(c), (g)",
        code=(T + "eligibility:exclusions", T + "side_wagers:judge_match", T + "side_wagers:_judge_cash"),
        journal=(CHECK, "bets_closed", "cash_wager"),
    ),
    Rule(
        "R-40",
        V,
        "one of over/under-13, same-suit and seven, and none beside the progressive; losers are "
        "collected before any more cards",
        clause="13:69F-2.17(a), (d)",
        code=(T + "eligibility:exclusions", T + "eligibility:WAGERS", T + "side_wagers:over_under"),
        journal=(CHECK, "side_wagers_settled"),
        left_out="in part: the texts at hand do not say what wins at same-suit, nor what the three pay",
    ),
    Rule(
        "R-41",
        P,
        "the progressive, bonus and other wagers: deck floors and what excludes what",
        clause="13:69F-2.19, 2.20, 2.24 to 2.26",
        code=(T + "eligibility:WAGERS", T + "eligibility:exclusions"),
        journal=(CHECK,),
    ),
)
