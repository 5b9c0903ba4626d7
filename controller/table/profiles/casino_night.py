"""13:47-20.22, blackjack of casino nights, a row for each sub-paragraph, in our own words.

A regime of its own, never merged with 13:69F.
"""

from __future__ import annotations

from controller.table.profiles.rule import CHECK, Rule, Tag

V = Tag.VERBATIM
SECTION = "13:47-20.22"
T = "controller.table."
MODES = T + "modes:MODES"
CARDS = T + "blackjack:"
MONEY = "in part: told as outcome and odds; what lies on the layout is a person's matter"


def _row(
    paragraph: str,
    asks: str,
    code: tuple[str, ...] = (),
    journal: tuple[str, ...] = (),
    *,
    by: tuple[str, ...] = (),
    left_out: str = "",
) -> Rule:
    """`by` names other sub-paragraphs by their letters, or numbered rules."""
    others = tuple(name if name.startswith("R-") else f"{SECTION}{name}" for name in by)
    return Rule(f"{SECTION}{paragraph}", V, asks, by=others, code=code, journal=journal, left_out=left_out)


SETTLED = ("settlement",)
CASINO_NIGHT: tuple[Rule, ...] = (
    _row("(a)", "what the words mean", by=("(a) blackjack", "(a) bust", "(a) double down", "(a) stand")),
    _row(
        "(a) blackjack",
        "a natural: an ace and a ten-value as the first two cards",
        (CARDS + "is_natural",),
        SETTLED,
    ),
    _row("(a) bust", "a hand over 21", (CARDS + "is_bust",), SETTLED),
    _row(
        "(a) double down",
        "a doubled wager and one more card, on 10 or 11 alone",
        (CARDS + "no_double",),
        ("double",),
    ),
    _row(
        "(a) hole card", "the dealer's card that lies face down", (T + "round:deal_order",), ("card_drawn",)
    ),
    _row(
        "(a) insurance betting",
        "a wager against the dealer's natural, while an ace is up",
        (CARDS + "no_insurance",),
        ("insurance",),
    ),
    _row("(a) splitting pairs", "a pair played as two hands", (CARDS + "no_split",), ("split",)),
    _row("(a) stand", "no more cards", (T + "hands:JUDGES",), ("stand",)),
    _row("(b)", "what the game needs", by=("(b)1", "(b)2")),
    _row(
        "(b)1",
        "a layout with seven positions and every wager on it",
        (MODES,),
        (CHECK,),
        left_out="in part: how many positions there are; what is printed on them people see",
    ),
    _row("(b)2", "one to four decks used as one", (MODES,), (CHECK, "open")),
    _row("(b)2i", "backs of one colour and design: one batch, no alternation", (MODES,), (CHECK, "open")),
    _row("(b)2ii", "what each card counts", by=("(b)2ii(1)", "(b)2ii(2)", "(b)2ii(3)")),
    _row("(b)2ii(1)", "two to nine count their face", (T + "cards:values",), SETTLED),
    _row("(b)2ii(2)", "ten, jack, queen and king count ten", (T + "cards:values",), SETTLED),
    _row("(b)2ii(3)", "an ace counts one or eleven", (CARDS + "score",), SETTLED),
    _row("(c)", "what the game may have", by=("R-79",)),
    _row("(c)1", "a dealing shoe is optional", by=("R-79",)),
    _row("(c)2", "a shuffler is optional", by=("R-79",)),
    _row("(d)", "what the dealer does", by=("R-79",)),
    _row(
        "(d)1",
        "shuffle, cut and deal by 20.18 and (g)",
        by=("R-79",),
        left_out="in part: 20.18 was not at hand, so no number of cards is asked of the cut",
    ),
    _row(
        "(d)2",
        "the dealer is responsible for the game",
        left_out="out of scope: a person's duty, nothing to check",
    ),
    _row(
        "(d)3",
        "the dealer stands opposite the players",
        left_out="out of scope: a person's place, no device sees it",
    ),
    _row("(d)4", "collect losing wagers and pay winning ones", by=("(h)1", "(h)2", "(h)3"), left_out=MONEY),
    _row(
        "(e)",
        "a card nobody asked for and the player refuses is burned",
        (T + "irregular:_judge_drawn_in_error",),
        ("drawn_in_error",),
    ),
    _row(
        "(f)",
        "seven players at most, each on as many positions as are free",
        (MODES, T + "judges:_judge_bets_closed"),
        ("bets_closed",),
        left_out="in part: positions, not the players behind them",
    ),
    _row("(g)", "how the game is played", by=("(g)1", "(g)2", "(g)3", "(g)5ii", "(g)8i", "(g)10i", "R-79")),
    _row("(g)1", "pairs, and any two ten-values, may be split", (CARDS + "no_split",), ("split",)),
    _row(
        "(g)2",
        "how split hands are played: again, one card on aces, no natural, no double",
        (CARDS + "no_split", CARDS + "takes_one_card", CARDS + "no_double", CARDS + "settle"),
        ("split", "settlement"),
    ),
    _row("(g)3", "a double on 10 or 11, with one more card", (CARDS + "no_double",), ("double",)),
    _row(
        "(g)4",
        "insurance at half the wager, asked for before the dealer looks at the hole card; it pays 2 to 1",
        (CARDS + "no_insurance", CARDS + "settle_insurance"),
        ("insurance", "settlement"),
    ),
    _row("(g)5", "when wagers are placed", by=("(g)5i", "(g)5ii")),
    _row(
        "(g)5i",
        "before the deal, in view of the dealer",
        (T + "judges:_judge_bets_closed",),
        ("bets_closed",),
    ),
    _row(
        "(g)5ii",
        "several hands: the one farthest to the right is finished first",
        (T + "hands:turn",),
        ("hit", "stand"),
    ),
    _row(
        "(g)6",
        "the burn after the bets; discards rest until the shoe or deck is dealt out; the order of the deal; "
        "a player's card may lie face down",
        (T + "round:deal_order",),
        by=("R-79",),
    ),
    _row("(g)7", "ties: one of three options, posted at the table", by=("(g)7i", "(g)7ii", "(g)7iii")),
    _row("(g)7i", "every tie is a push", (CARDS + "Ties", CARDS + "settle"), SETTLED),
    _row("(g)7ii", "a push between naturals alone", (CARDS + "Ties", CARDS + "settle"), SETTLED),
    _row("(g)7iii", "the house wins ties", (CARDS + "Ties", CARDS + "settle"), SETTLED),
    _row("(g)8", "a natural of the dealer", by=("(g)8i",)),
    _row(
        "(g)8i",
        "with a ten-value or an ace up the dealer looks at the hole card; a natural ends the round",
        (CARDS + "settle",),
        SETTLED,
        left_out="in part: the dealer looks by eye, no device takes part; what follows is settled",
    ),
    _row("(g)9", "a natural of a player", by=("(g)9i",)),
    _row(
        "(g)9i",
        "paid 2 to 1 or 3 to 2 by the tie option; its cards are discarded",
        (CARDS + "casino_night", CARDS + "settle"),
        SETTLED,
    ),
    _row("(g)10", "play when nobody has 21", by=("(g)10i", "(g)10ii", "(g)10iii", "(g)10iv")),
    _row(
        "(g)10i", "below 21 the player chooses", (CARDS + "no_card", CARDS + "no_surrender"), ("hit", "stand")
    ),
    _row("(g)10i(1)", "to stay", (T + "hands:JUDGES",), ("stand",)),
    _row("(g)10i(2)", "or to take a card", (T + "hands:JUDGES",), ("hit",)),
    _row(
        "(g)10ii",
        "as many cards as wanted; over 21 wager and cards are taken, the cards to the discards",
        (CARDS + "no_card", CARDS + "settle", T + "dry_shoe:_discards"),
        ("hit", "settlement", "reshuffle_by_hand"),
    ),
    _row("(g)10iii", "play goes on clockwise", (T + "hands:turn",), ("hit", "stand")),
    _row(
        "(g)10iv",
        "all bust: the dealer's cards are discarded unplayed",
        (T + "settlement:unplayed",),
        SETTLED,
    ),
    _row("(g)10v", "otherwise the dealer plays", by=("(g)10v(1)", "(g)10v(2)", "(g)10v(3)")),
    _row("(g)10v(1)", "the hole card is turned up", (T + "irregular:shown_at_the_end",), ("exposed",)),
    _row("(g)10v(2)", "the dealer stays on 17 to 20", (CARDS + "dealer_draws",), SETTLED),
    _row(
        "(g)10v(3)",
        "the dealer draws to 16 and stays on every 17, also a soft one",
        (CARDS + "dealer_draws",),
        SETTLED,
    ),
    _row("(h)", "what winning wagers are paid", by=("(h)1", "(h)2", "(h)3")),
    _row("(h)1", "settled from the dealer's right, even money", (T + "settlement:settle",), SETTLED),
    _row("(h)2", "the dealer busts: every hand left is paid", (CARDS + "settle",), SETTLED),
    _row("(h)3", "equal counts go by the tie option of (g)7", (CARDS + "settle",), SETTLED),
)
