"""The index of 13:69F, a row for each of its paragraphs, in our own words.

Each paragraph is the beginning of a section, mostly without a number: the numbers are told by the place in
the list and by what other sections cite. Sections without a safe number are named by their subject.
"""

from __future__ import annotations

from controller.table.profiles.rule import Rule, Tag

P = Tag.PARTIAL
CARDS = "controller.table.blackjack:"
CRAPS = "out of scope: no cards handled / no device; a shaker of dice is no card shuffler"
HANDS = "controller.table.hands:"
WAGER = "in part: the deck floor and what excludes it; what it wins and pays was not at hand"
POKER_PLAY = "out of scope: wagers and payments of another game; no card moves and no device"

INDEX: tuple[Rule, ...] = (
    Rule("13:69F automated craps, wagers", P, "how wagers at automated craps are made", left_out=CRAPS),
    Rule(
        "13:69F automated craps, inspection",
        P,
        "the dice shaker is inspected and tried before the table opens",
        left_out=CRAPS + "; daily inspection of card devices is R-42",
    ),
    Rule("13:69F automated craps, odds", P, "how payout odds are printed", left_out=CRAPS),
    Rule("13:69F automated craps, shooter", P, "who operates the dice shaker next", left_out=CRAPS),
    Rule(
        "13:69F automated craps, invalid roll",
        P,
        "rolls that do not count, and a shaker that fails",
        left_out=CRAPS,
    ),
    Rule(
        "13:69F-2.1",
        P,
        "words: among them the Bart Carter shuffle, the card reader device, the hole card",
        by=("R-10", "R-25"),
    ),
    Rule(
        "13:69F-2.10",
        P,
        "doubling down",
        by=("R-30",),
        code=(CARDS + "no_double", HANDS + "_judge_double"),
        journal=("double", "refused"),
        left_out="in part: what becomes of a doubled wager when the dealer has a natural was not at hand: "
        "such a round is not settled",
    ),
    Rule(
        "13:69F-2.11",
        P,
        "splitting pairs",
        by=("R-30",),
        code=(CARDS + "no_split", HANDS + "_judge_split"),
        journal=("split", "refused"),
        left_out="in part: (b) on was not at hand: only the first two cards are split, and split aces "
        "draw like other hands; against a natural of the dealer they are not settled",
    ),
    Rule(
        "13:69F-2.12",
        P,
        "drawing more cards",
        by=("R-30",),
        code=(CARDS + "no_card", HANDS + "_judge_hit", CARDS + "dealer_draws"),
        journal=("hit", "stand", "refused"),
        left_out="in part: (a)3 on was not at hand, nor the dealer's drawing: that goes by R-34, a "
        "soft 17 counts 17",
    ),
    Rule("13:69F-2.13", P, "one to three players on one box", by=("R-30",)),
    Rule("13:69F-2.14", P, "one player on several boxes, where the house permits it", by=("R-30",)),
    Rule(
        "13:69F-2.15(a)",
        Tag.VERBATIM,
        "a card found face up in the shoe is not used: to the rack, or a double shoe's segregated area",
        by=("R-31",),
    ),
    Rule(
        "13:69F-2.15(b)", Tag.VERBATIM, "a card drawn in error and not exposed is the next card", by=("R-32",)
    ),
    Rule(
        "13:69F-2.16",
        P,
        "21 in five cards is paid 2 to 1, unless the dealer has blackjack or 21",
        code=(CARDS + "settle",),
        journal=("settlement",),
        left_out="in part: (b) was not at hand: against blackjack it is not settled; against 21 it is a tie, "
        "as other hands",
    ),
    Rule(
        "13:69F-2.17", P, "one of three additional wagers, where the progressive is not offered", by=("R-40",)
    ),
    Rule(
        "13:69F-2.18", P, "multiple action: one hand against two or three hands of the dealer", by=("R-29",)
    ),
    Rule("13:69F-2.19", P, "the progressive wager, on tables with its equipment", by=("R-41",)),
    Rule("13:69F-2.20", P, "the bonus wager, on tables with its equipment", by=("R-41",)),
    Rule(
        "13:69F-2.21",
        P,
        "a device that reshuffles by itself instead of the procedures of 2.5 and 2.6, when approved",
        by=("R-11",),
    ),
    Rule(
        "13:69F-2.22",
        P,
        "a wager to win two to five times, on tables with its equipment (the rest is cut off)",
        left_out="not built yet: this wager is not among those `check` knows; its decks and times were "
        "not at hand",
    ),
    Rule("13:69F-2.24", P, "the 20 point bonus wager", by=("R-41",), left_out=WAGER),
    Rule(
        "13:69F-2.25",
        P,
        "the optional bonus wager: the dealer's third card busts the dealer",
        by=("R-41",),
        left_out=WAGER,
    ),
    Rule(
        "13:69F-2.26",
        P,
        "the in-between wager: the dealer's first card ranks between the player's two",
        by=("R-41",),
        left_out=WAGER,
    ),
    Rule(
        "13:69F-2.27 bet behind",
        P,
        "wagers over the Internet on a seated player's hand",
        left_out="out of scope: no cards handled / no device; these wagers reach no table's shoe or shuffler",
    ),
    Rule(
        "13:69F-2.3",
        P,
        "each player wagers before the first card of a round",
        by=("R-24",),
        code=("controller.table.judges:_judge_bets_closed", CARDS + "settle"),
        journal=("bets_closed", "settlement"),
        left_out="in part: of ties nothing was at hand; they are a push, and blackjack beats any other 21 "
        "(recalled)",
    ),
    Rule(
        "13:69F-2.4",
        P,
        "decks received are inspected at the table, or arrive pre-shuffled",
        by=("R-12", "R-13"),
    ),
    Rule(
        "13:69F-2.5",
        P,
        "shuffle before play unless pre-shuffled, after any round as the house decides, and after each shoe",
        by=("R-14", "R-15", "R-16", "R-17", "R-18", "R-19"),
    ),
    Rule(
        "13:69F-2.6",
        P,
        "cards come from a dealing shoe made for it, unless dealt from the hand",
        by=("R-22", "R-23", "R-24", "R-26", "R-27"),
    ),
    Rule(
        "13:69F-2.6A",
        P,
        "dealing from the hand: the dealer takes the shuffled deck out of the shuffler",
        by=("R-28",),
    ),
    Rule(
        "13:69F-2.7",
        P,
        "with two to nine up, blackjacks are paid at once; the reader has no part in it",
        by=("R-25",),
    ),
    Rule(
        "13:69F-2.8",
        P,
        "surrender after the first two cards",
        by=("R-30",),
        code=(CARDS + "no_surrender", HANDS + "_judge_surrender", CARDS + "settle"),
        journal=("surrender", "settlement"),
        left_out="in part: whether a natural of the dealer takes the whole wager was not at hand: such a "
        "round is not settled",
    ),
    Rule(
        "13:69F-2.9",
        P,
        "insurance while the dealer shows an ace",
        by=("R-30",),
        code=(CARDS + "no_insurance", HANDS + "_judge_insurance", CARDS + "settle_insurance"),
        journal=("insurance", "settlement"),
        left_out="in part: its stake and odds were not at hand: half the wager at 2 to 1, as everywhere",
    ),
    Rule("13:69F-20.1", P, "words of three-card poker", left_out=POKER_PLAY),
    Rule("13:69F-20.10", P, "players look at their cards themselves and alone", left_out=POKER_PLAY),
    Rule("13:69F-20.11", P, "payouts of three-card poker", left_out=POKER_PLAY),
    Rule(
        "13:69F-20.12",
        P,
        "a card found face up is not used; a second one voids all hands",
        by=("R-31",),
        code=("controller.table.irregular:all_void",),
        journal=("card_drawn", "void_round"),
    ),
    Rule("13:69F-20.13", P, "the six-card bonus wager", left_out=POKER_PLAY),
    Rule(
        "13:69F-20.2",
        P,
        "one deck of one back, one cover card; with exceptions",
        by=("R-52",),
        code=("controller.table.modes:MODES",),
    ),
    Rule("13:69F-20.3", P, "the order of ranks", left_out=POKER_PLAY),
    Rule("13:69F-20.4", P, "the deck received is inspected, or arrives pre-shuffled", by=("R-12", "R-13")),
    Rule(
        "13:69F-20.5",
        P,
        "shuffled before play unless pre-shuffled, and after each round, by hand or by a shuffler",
        by=("R-52", "R-56"),
    ),
    Rule("13:69F-20.6", P, "the wagers of three-card poker", left_out=POKER_PLAY),
    Rule(
        "13:69F-20.7",
        P,
        "dealing from a manual shoe",
        code=("controller.table.games:Game", "controller.table.shoe_events:next_place"),
        journal=("card_drawn",),
    ),
    Rule(
        "13:69F-20.8",
        P,
        "dealing from the hand",
        code=("controller.table.by_eye:round_cards",),
        journal=("take_in_hand", "round_settled"),
    ),
    Rule("13:69F-20.9", P, "an automated shoe that gives stacks of three", by=("R-53",)),
    Rule(
        "13:69F community-card game, words",
        P,
        "words of a game with five cards in the centre of the table",
        left_out=POKER_PLAY,
    ),
)
