"""R-01 to R-30: cards, shuffle and cut, the deal (13:69F), in our own words."""

from __future__ import annotations

from controller.table.profiles.rule import CHECK, Rule, Switch, Tag

V, P, A, R = Tag.VERBATIM, Tag.PARTIAL, Tag.ANALOGUE, Tag.RECALLED
T = "controller.table."

CARDS: tuple[Rule, ...] = (
    Rule(
        "R-01",
        V,
        "one deck at least; the cards of a table are alike but for the backs of the two batches",
        clause="13:69F-2.2(a)",
        code=(T + "modes:MODES",),
        journal=(CHECK, "open"),
    ),
    Rule(
        "R-02",
        V,
        "one cutting card in use (two from the hand), its colour unlike every back and the edges; never "
        "counted as a card",
        clause="13:69F-2.2(a)",
        code=(
            T + "eligibility:cutting_cards",
            T + "shoe_events:_cutting_card",
            T + "swap:_judge_insert",
        ),
        journal=(CHECK, "insert_cutting_card", "cut_card", "fault_latched: extra_cutting_card"),
    ),
    Rule(
        "R-03",
        V,
        "deck floors by wager; match-the-dealer and the optional bonus take six or eight decks exactly",
        clause="13:69F-2.2(a)1-4",
        code=(T + "eligibility:floors", T + "eligibility:WAGERS"),
        journal=(CHECK,),
        switch=Switch(
            "rules.deck_floor",
            ("batch: decks of each batch in play", "total: decks of both batches together"),
        ),
    ),
    Rule(
        "R-04",
        V,
        "dealt from the hand there must be a shuffler, and one or two decks a set; the sets alternate",
        clause="13:69F-2.2(c)",
        code=(T + "modes:MODES", T + "swap:_judge_take_in_hand", T + "swap:_judge_load"),
        journal=(CHECK, "take_in_hand", "cutting_card_at", "collect_rack"),
        switch=Switch(
            "rules.hand_backs_differ",
            ("true: two one-deck sets have different backs", "false: they may be alike"),
        ),
    ),
    Rule(
        "R-05",
        V,
        "two batches, equal decks, different backs; the shoe, where it sees backs, and the shuffler's "
        "report prove it again",
        clause="13:69F-2.2(d)1-2",
        code=(T + "eligibility:batches", T + "shoe_events:_judge_card", T + "shuffler_events:_verdict"),
        journal=(
            "open",
            "card_drawn",
            "fault_latched: wrong_back",
            "fault_latched: wrong_back_in_shuffler",
            "fault_latched: wrong_batch",
            "fault_latched: batches_exchanged",
        ),
    ),
    Rule(
        "R-06",
        V,
        "a shoe starts only while the other batch is shuffled and stored; a batch is in one place and no "
        "place holds both",
        clause="13:69F-2.2(d)3",
        code=(
            T + "swap:_judge_load",
            T + "swap:_judge_load_shuffler",
            T + "state:Batch",
            T + "out_of_service:judge_mode",
        ),
        journal=(
            "open",
            "load_shuffler",
            "cycle_started",
            "load_shoe",
        ),
    ),
    Rule(
        "R-07",
        V,
        "strict alternation shoe by shoe, also across restarts",
        clause="13:69F-2.2(d)4",
        code=(T + "swap:_alternation", T + "swap:_judge_load", T + "state:Shoe"),
        journal=("load_shoe",),
    ),
    Rule(
        "R-08",
        V,
        "the rack holds one batch; it is empty before the next batch's burn card",
        clause="13:69F-2.2(d)5",
        code=(
            T + "judges:_judge_collect",
            T + "rules:_after_collect",
            T + "swap:_load_shuffler",
            T + "by_hand:shuffled",
        ),
        journal=("collect_rack", "load_shuffler", "fault_latched: rack_wrong_back"),
    ),
    Rule(
        "R-09",
        V,
        "card values; an ace is one for the over/under-13 wager",
        clause="13:69F-2.2(b)",
        code=(T + "cards:values", T + "cards:over_under_value", T + "blackjack:score"),
        journal=("card_drawn", "settlement"),
    ),
    Rule(
        "R-10",
        V,
        "Bart Carter shuffle: about a deck of the rack is shuffled and goes back into the shoe in stacks",
        clause="13:69F-2B.1; 13:69F-2.1",
        code=(
            T + "by_hand:judge_bart_carter",
            T + "by_hand:bart_carter",
        ),
        journal=("bart_carter",),
    ),
    Rule(
        "R-11",
        P,
        "a continuous shuffler in place of the procedures of 2.5 and 2.6, when approved",
        clause="13:69F-2.21",
        code=(T + "modes:MODES", T + "modes:readings", T + "continuous:REPLACED", T + "draft:GUARDS"),
        journal=(CHECK, "batch_proved", "ready_to_deal"),
        switch=Switch("rules.continuous_batches", ("1: one batch", "2: two batches also there")),
        left_out="in part: that device and procedures are approved is noted by `check`, for the regulator",
    ),
    Rule(
        "R-12",
        P,
        "cards are inspected at the table or come pre-shuffled; how is kept for each batch",
        clause="13:69F-2.4(a)",
        code=(
            T + "opening:not_prepared",
            T + "state:Prep",
            T + "certificates:_certificate",
        ),
        journal=(
            "inspect",
            "wash",
            "certificate",
        ),
    ),
    Rule(
        "R-13",
        A,
        "inspected, verified by a second person, spread, shown to a player, washed, then shuffled: each "
        "batch apart (New Jersey: recalled)",
        clause="58 Pa. Code 639a.4; 13:69F-2.4(b)-(e)",
        code=(
            T + "opening:STEPS",
            T + "opening:step",
            T + "opening:not_prepared",
            T + "args:other_person",
        ),
        journal=("inspect", "verify", "spread", "player_inspected", "wash"),
    ),
    Rule(
        "R-14",
        V,
        "shuffle at the opening, after each shoe, and between rounds as the house decides; asked for in "
        "a round it waits for the round's end",
        clause="13:69F-2.5(a)",
        code=(
            T + "judges:_judge_shuffle_now",
            T + "swap:_judge_load",
            T + "by_hand:same_again",
        ),
        journal=("shuffle_now", "start_shuffle", "batch_proved"),
        switch=Switch(
            "rules.discretionary",
            ("swap: the other batch is next (S5)", "same-batch: the same one once more"),
        ),
    ),
    Rule(
        "R-15",
        V,
        "the cut leaves ten cards or more on either side",
        clause="13:69F-2.5(b)-(c)",
        code=(T + "swap:_judge_cut", T + "draft:no_cut"),
        journal=("cut",),
        switch=Switch("rules.cut", ("always", "hand-shuffled")),
    ),
    Rule(
        "R-16",
        V,
        "cut, front to the back, cutting card about a quarter from the back, then the shoe: in this order",
        clause="13:69F-2.5(d)",
        code=(T + "phases:TRANSITIONS", T + "swap:_judge_insert"),
        journal=("cut", "insert_cutting_card", "load_shoe"),
        switch=Switch(
            "table.cutting_card_tolerance",
            ("0 cards: a quarter or more", "up to 26 cards, or half a quarter, short of it: about a quarter"),
        ),
        left_out="in part: the mark on the shoe's side is compared by people; the machines' counts and "
        "the rack's gauge prove completeness",
    ),
    Rule(
        "R-17",
        V,
        "who cuts: the first to arrive, the box where the cutting card appeared, or the player farthest "
        "to the dealer's right",
        clause="13:69F-2.5(e)",
        code=(T + "round:cutters", T + "swap:_judge_offer_cut", T + "judges:_judge_cutting_card_at"),
        journal=("cutting_card_at", "offer_cut", "cut"),
    ),
    Rule(
        "R-18",
        P,
        "a refused cut goes on clockwise; when nobody accepts, the dealer cuts (recalled)",
        clause="13:69F-2.5(f)",
        code=(T + "round:cutters", T + "swap:_judge_offer_cut"),
        journal=("offer_cut", "cut"),
        switch=Switch("rules.last_cutter", ("dealer", "supervisor")),
    ),
    Rule(
        "R-19",
        R,
        "an idle table: cards lie spread and are mixed and shuffled when a player comes; analogues were read",
        clause="13:69F-2.5(g); 58 Pa. Code 633a.5(g)",
        code=(
            T + "closing:_judge_idle",
            T + "closing:_judge_resume",
            T + "opening:_idle_step",
            T + "by_hand:judge_bart_carter",
        ),
        journal=(
            "idle",
            "spread",
            "resume",
            "bart_carter",
        ),
    ),
    Rule(
        "R-20",
        A,
        "a supervisor may order another cut before the cards are in the shoe",
        clause="58 Pa. Code 633a.5; 13:69F-14.5(c) for poker",
        code=(T + "swap:_judge_recut", "controller.access:SUPERVISION"),
        journal=("recut",),
    ),
    Rule(
        "R-21",
        A,
        "an idle table with a shuffler: the spread batch goes in, the one inside comes out and is used; "
        "who comes may have it inspected",
        clause="58 Pa. Code 633a.5(g)(2)",
        code=(
            T + "closing:_judge_resume",
            T + "opening:_idle_step",
            T + "certificates:_lay_stored",
        ),
        journal=(
            "idle",
            "spread",
            "player_inspected",
            "resume",
            "shuffle_demanded",
        ),
        left_out="in part: that the machine stores a batch securely is a matter of its approval (R-64)",
    ),
    Rule(
        "R-22",
        P,
        "every card in play comes from the shoe and belongs to the batch that is in it",
        clause="13:69F-2.6(a)",
        code=(T + "shoe_events:_judge_card",),
        journal=(
            "fault_latched: stray_card",
            "fault_latched: too_many_cards",
            "fault_latched: too_many_copies",
        ),
    ),
    Rule(
        "R-23",
        A,
        "a burn card after each load, and one for each new dealer (New Jersey: recalled)",
        clause="58 Pa. Code 685a.7(c)",
        code=(T + "shoe_events:next_place", T + "draft:GUARDS"),
        journal=("card_drawn", "dealer_change"),
        switch=Switch(
            "table.burn_on_dealer_change", ("true: also for each new dealer", "false: after each load alone")
        ),
    ),
    Rule(
        "R-24",
        A,
        "clockwise from the dealer's left: a card to each box, one to the dealer, a second to each box, "
        "the hole card (New Jersey: recalled)",
        clause="58 Pa. Code 685a.7(e)",
        code=(T + "round:deal_order", T + "shoe_events:next_place"),
        journal=("bets_closed", "card_drawn"),
    ),
    Rule(
        "R-25",
        P,
        "the reader is used only with an ace or ten-value up, and after the side wagers; then before any "
        "further card",
        clause="13:69F-2.7(a)",
        code=(
            T + "reader:not_due",
            T + "reader:_judge_peek",
            T + "reader:card_drawn",
            T + "reader:forgotten",
        ),
        journal=(
            "peek",
            "hole_card_checked",
            "fault_latched: reader_misuse",
            "fault_latched: reader_skipped",
            "fault_latched: card_out_of_turn",
        ),
    ),
    Rule(
        "R-26",
        A,
        "cutting card: the round is finished, the rest of the shoe goes to the rack, which proves that "
        "none is missing (New Jersey: recalled)",
        clause="58 Pa. Code 685a.7(d)",
        code=(T + "cutting_card:came_out", T + "judges:_judge_collect", T + "rules:_after_collect"),
        journal=("cut_card", "cutting_card_at", "collect_rack", "fault_latched: cards_missing"),
    ),
    Rule(
        "R-27",
        A,
        "the cutting card before a round's first card: one round more, or shuffle at once",
        clause="58 Pa. Code 685a.7(d); NZ Gazette 1999/9",
        code=(T + "cutting_card:came_out",),
        journal=("cut_card",),
        switch=Switch("table.first_card", ("play-one-round", "reshuffle-now")),
    ),
    Rule(
        "R-28",
        P,
        "from the hand: the deck out of the shuffler, a marker and a card that covers the last one",
        clause="13:69F-2.6A(b)",
        code=(T + "swap:_judge_take_in_hand", T + "by_eye:settled", T + "cutting_card:came_out"),
        journal=("take_in_hand", "burn", "round_settled", "cutting_card_at"),
        left_out="in part: how the dealer holds the cards people see",
    ),
    Rule(
        "R-29",
        P,
        "multiple action: a round ends with all hands of the dealer",
        clause="13:69F-2.18",
        code=(T + "multiple_action:hinders_the_end", T + "irregular:not_countable"),
        journal=("dealer_hand_settled",),
    ),
    Rule(
        "R-30",
        P,
        "players draw, double, split and surrender: no fixed number of cards a round",
        clause="13:69F-2.8 to 2.14",
        code=(
            T + "shoe_events:next_place",
            T + "judges:_judge_round_settled",
            T + "hands:TAPS",
            T + "blackjack:Terms",
            T + "settlement:settle",
        ),
        journal=("card_drawn", "hit", "stand", "double", "split", "surrender", "insurance", "settlement"),
        left_out="in part: outcomes and odds, where single hands are followed; no amounts are entered",
    ),
)
