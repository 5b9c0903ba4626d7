"""R-42 to R-61: equipment, the life of a batch, other games and places, in our own words."""

from __future__ import annotations

from controller.table.profiles.rule import Rule, Switch, Tag

V, P, A, R = Tag.VERBATIM, Tag.PARTIAL, Tag.ANALOGUE, Tag.RECALLED
T = "controller.table."
ELSEWHERE = "out of scope: another jurisdiction's rule"

MACHINES: tuple[Rule, ...] = (
    Rule(
        "R-42",
        A,
        "devices are inspected at the start of each gaming day, and locked out until then (New Jersey: "
        "recalled)",
        clause="58 Pa. Code 633a.2, 673a.2(d); 13:69E-1.10",
        code=(
            T + "daily:uninspected",
            T + "daily:locked_out",
            T + "daily:_inspect_device",
        ),
        journal=(
            "hour",
            "inspect",
            "fault_latched: inspection_due",
        ),
    ),
    Rule(
        "R-43",
        V,
        "the discard rack is as high as the decks in use: a gauge that proves completeness",
        clause="13:69E-1.10C(e)",
        code=(T + "judges:_judge_collect", T + "rules:_after_collect"),
        journal=("collect_rack", "fault_latched: rack_gauge"),
    ),
    Rule(
        "R-44",
        A,
        "52 cards in 4 suits, all alike: what a batch must be made of",
        clause="58 Pa. Code 603a.15; COMAR 36.05.02.15; 13:69E-1.17 not read",
        code=("devices.events:DECK", T + "cards:difference", T + "shuffler_events:_verdict"),
        journal=("cycle_completed", "fault_latched: wrong_composition"),
    ),
    Rule(
        "R-45",
        V,
        "who received, moved and returned which decks; decks on a table for more than 24 hours are reported",
        clause="13:69E-1.18(a)-(b); 58 Pa. Code 633a.3(d)",
        code=(
            T + "daily:after_hour",
            T + "closing:_after_close",
        ),
        journal=(
            "fault_latched: deck_over_a_day",
            "fault_latched: deck_too_old",
            "replace_batch",
            "deck_log",
        ),
        switch=Switch(
            "rules.deck_age_h",
            ("none: over 24 hours it is told, and stays", "24, say: the batch leaves the table"),
        ),
        left_out="in part: receipt by two people, storage and the quarterly inventory are away from the "
        "table",
    ),
    Rule(
        "R-46",
        A,
        "an unsuitable card goes to the supervisor, and the deck is replaced",
        clause="9 NYCRR 5322.15(c); 13:69E-1.18(e)1",
        code=(
            T + "opening:step",
            T + "opening:_dead_card",
            T + "opening:_replace",
        ),
        journal=(
            "dead_card",
            "fault_latched: dead_card",
            "replace_batch",
        ),
        left_out="in part: the sealed container is people's work",
    ),
    Rule(
        "R-47",
        V,
        "pre-shuffled in house on a closed table under surveillance, or bought; batch by batch",
        clause="13:69E-1.18A(a)-(b)",
        left_out="out of scope: done away from the table; what reaches the table is the certificate (R-48)",
    ),
    Rule(
        "R-48",
        V,
        "a pre-shuffled batch comes with the inspection machine's certificate",
        clause="13:69E-1.18A(b)4; WAC 230-16-158",
        code=(
            T + "certificates:_certificate",
            T + "opening:not_prepared",
        ),
        journal=("certificate",),
    ),
    Rule(
        "R-49",
        P,
        "any patron may demand a shuffle of a pre-shuffled batch",
        clause="13:69E-1.18A, a law firm's note",
        code=(
            T + "certificates:_demanded",
            T + "opening:give_up",
        ),
        journal=(
            "shuffle_demanded",
            "proof_given_up",
        ),
    ),
    Rule(
        "R-50",
        A,
        "how a manual shoe is built: base plate, stop, mark",
        clause="58 Pa. Code 603a.17; COMAR 36.05.02.17; 13:69E-1.19 recalled",
        left_out="out of scope: the build of a shoe, nothing that it reports; which shoe it is stands in "
        "the list of approved devices (R-64)",
    ),
    Rule(
        "R-51",
        A,
        "a double shoe: two sides, two backs, a cutting card each, a segregated area",
        clause="58 Pa. Code 633a.3(c); 13:69F-2.15(a)",
        code=(
            T + "modes:MODES",
            T + "eligibility:cutting_cards",
            T + "swap:_judge_insert",
            T + "shoe_events:_card",
        ),
        journal=(
            "insert_cutting_card",
            "card_drawn",
            "collect_rack",
        ),
        left_out="in part: cutting cards and segregated area; a table with both sides loaded is not built",
    ),
    Rule(
        "R-52",
        V,
        "one-deck games: the decks alternate round by round; machine-shuffled cards need no cut in Maryland",
        clause="13:69F-23.2(b); COMAR 36.05.03.27",
        code=(T + "modes:MODES", T + "draft:last_round", T + "swap:_judge_load"),
        journal=("load_shoe", "take_in_hand", "collect_rack"),
        left_out="in part: the second reading of the cut is the switch of R-15",
    ),
    Rule(
        "R-53",
        V,
        "automated shoes that give stacks, after no more bets",
        clause="13:69F-20.9; 13:69F-31.8; 13:69F-31.10; 13:69F-35.9",
        code=(T + "games:GAMES", T + "stacks:JUDGES", T + "judges:_judge_bets_closed"),
        journal=("bets_closed", "dispense", "collect_rack"),
    ),
    Rule(
        "R-54",
        V,
        "the stub is counted every five rounds unless the machine counts",
        clause="13:69F-35.9(e), 31.8(d)",
        code=(T + "stub:due", T + "stub:judge", T + "stub:after_collect"),
        journal=("collect_rack", "fault_latched: wrong_stub"),
    ),
    Rule(
        "R-55",
        V,
        "a wrong count takes the batch off the table; reshuffling never clears it",
        clause="COMAR 36.05.03.27 C",
        code=(
            T + "shuffler_events:_verdict",
            T + "faults:FAULTS",
            T + "opening:_replace",
            T + "closing:_after_count",
            T + "stub:after_collect",
        ),
        journal=(
            "cycle_completed",
            "fault_latched: wrong_count",
            "fault_latched: wrong_stub",
            "replace_batch",
            "count_batch",
        ),
    ),
    Rule(
        "R-56",
        V,
        "poker: shuffled every round, cut onto the cover card",
        clause="13:69F-14.5(a)-(b)",
        code=(T + "swap:ROUND_CUT", T + "swap:_judge_cut"),
        journal=("cut",),
    ),
    Rule(
        "R-57",
        R,
        "baccarat: one more round after the cutting card, the burn counts by its first card",
        clause="no clause found",
        left_out="out of scope: a baccarat shoe is read and refused at a blackjack table",
    ),
    Rule(
        "R-58",
        V,
        "fund-raising blackjack: four decks, players neither shuffle nor cut",
        clause="WAC 230-09-130",
        left_out=ELSEWHERE,
    ),
    Rule(
        "R-59",
        V,
        "two sets of six to eight decks; shuffle at once when the cutting card is a round's first card",
        clause="NZ Gazette 1999/9",
        left_out=ELSEWHERE + "; it is the second reading of R-27 and of R-18",
    ),
    Rule(
        "R-60",
        V,
        "batch machine with an exit tray; a continuous shuffler holds a round's cards back for one round",
        clause="arrete of 14 May 2007, art. 40-1",
        code=(T + "continuous:may_return", T + "continuous:_returned", T + "modes:MODES"),
        journal=("cards_returned", "fault_latched: returned_early", "bets_closed"),
        left_out="in part: the continuous shuffler's hold of one round; batch machines with an exit "
        "tray and five burned cards are another place's",
    ),
    Rule(
        "R-61",
        V,
        "a cut five cards from the ends",
        clause="SD 20:18:15",
        left_out=ELSEWHERE + "; ten cards stand here (R-15)",
    ),
)
