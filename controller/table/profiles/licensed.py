"""13:69F-2.2 and 2.23, a row for each sub-paragraph, in our own words."""

from __future__ import annotations

from controller.table.profiles.rule import CHECK, Rule, Tag

V = Tag.VERBATIM

LICENSED: tuple[Rule, ...] = (
    Rule(
        "13:69F-2.2(a)",
        V,
        "one deck at least, all alike; one cutting card, two from the hand, of a colour of its own",
        by=("R-01", "R-02", "R-03"),
    ),
    Rule(
        "13:69F-2.2(a)1",
        V,
        "dealt from the hand: one deck or two",
        by=("R-03", "R-04"),
        code=("controller.table.modes:MODES",),
    ),
    Rule(
        "13:69F-2.2(a)2",
        V,
        "two decks at least with the 20 point bonus or the in-between wager",
        by=("R-03",),
        code=("controller.table.eligibility:WAGERS",),
    ),
    Rule(
        "13:69F-2.2(a)3",
        V,
        "four decks at least with the additional wager of 2.17(a)3 or the progressive",
        by=("R-03",),
        code=("controller.table.eligibility:WAGERS",),
    ),
    Rule(
        "13:69F-2.2(a)4",
        V,
        "six or eight decks, not seven, with match-the-dealer or the optional bonus",
        by=("R-03",),
        code=("controller.table.eligibility:WAGERS",),
    ),
    Rule("13:69F-2.2(b)", V, "what each card counts", by=("R-09",)),
    Rule("13:69F-2.2(b)1", V, "two to ten count their face", by=("R-09",)),
    Rule("13:69F-2.2(b)2", V, "jack, queen and king count ten", by=("R-09",)),
    Rule("13:69F-2.2(b)3", V, "the ace has two values", by=("R-09",)),
    Rule("13:69F-2.2(b)3i", V, "an ace counts eleven, or one where eleven would go over 21", by=("R-09",)),
    Rule(
        "13:69F-2.2(b)3ii",
        V,
        "an ace among a player's first two counts one for the over/under-13 wager, and for nothing else",
        by=("R-09",),
        code=("controller.table.cards:over_under_value",),
    ),
    Rule(
        "13:69F-2.2(c)",
        V,
        "hand-dealt: a shuffler shuffles and stores one set while the other is played; they change "
        "when the round in which the cutting card was reached ends",
        by=("R-04",),
    ),
    Rule(
        "13:69F-2.2(d)",
        V,
        "a shuffler and two decks or more: the five rules that follow",
        by=("R-05", "R-06", "R-07", "R-08"),
    ),
    Rule(
        "13:69F-2.2(d)1",
        V,
        "two batches with equally many decks",
        by=("R-05",),
        code=("controller.table.eligibility:batches", "controller.table.shuffler_events:_verdict"),
        journal=("open", "cycle_completed", "fault_latched: wrong_count"),
    ),
    Rule(
        "13:69F-2.2(d)2",
        V,
        "alike within a batch, another back colour in each",
        by=("R-05",),
        journal=("open", "card_drawn", "fault_latched: wrong_back", "fault_latched: wrong_back_in_shuffler"),
    ),
    Rule(
        "13:69F-2.2(d)3",
        V,
        "one batch is shuffled and stored in the shuffler while the other is in play",
        by=("R-06",),
    ),
    Rule("13:69F-2.2(d)4", V, "the batches alternate, each serves every other shoe", by=("R-07",)),
    Rule("13:69F-2.2(d)5", V, "the discard rack holds cards of one batch only", by=("R-08",)),
    Rule(
        "13:69F-2.23(a)",
        V,
        "wins when one of a player's first two cards matches the dealer's first; ten-values by rank alone",
        by=("R-38",),
    ),
    Rule("13:69F-2.23(a)1", V, "a winner is paid by (f)", by=("R-38",)),
    Rule("13:69F-2.23(a)2", V, "two matching cards are paid each", by=("R-38",)),
    Rule(
        "13:69F-2.23(b)",
        V,
        "it changes no other wager",
        by=("R-38",),
    ),
    Rule(
        "13:69F-2.23(c)",
        V,
        "placed before the first card, by a player with a basic wager; limits are posted",
        by=("R-39",),
        code=(
            "controller.table.side_wagers:judge_match",
            "controller.table.side_wagers:posted",
            "controller.config_wagers:match",
        ),
        journal=("bets_closed",),
        left_out="in part: amounts are entered of wagers by word alone; the dealer sees those of chips",
    ),
    Rule(
        "13:69F-2.23(d)",
        V,
        "made with chips, plaques or a coupon, or by word with cash that two people confirm in time",
        by=("R-39",),
        code=(
            "controller.table.side_wagers:_judge_cash",
            "controller.table.side_wagers:_judge_converted",
            "controller.table.side_wagers:_judge_settled",
        ),
        journal=("cash_wager", "cash_converted"),
    ),
    Rule(
        "13:69F-2.23(e)",
        V,
        "settled right after the second cards, losers first, before any further card and before the reader",
        by=("R-37",),
    ),
    Rule("13:69F-2.23(f)", V, "least odds for each matching card, by number of decks and suit", by=("R-38",)),
    Rule(
        "13:69F-2.23(g)",
        V,
        "not at a table with the optional bonus or the in-between wager",
        by=("R-39",),
        journal=(CHECK,),
    ),
)
