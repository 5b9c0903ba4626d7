"""13:47-20.22, blackjack of casino nights, a row for each sub-paragraph, in our own words.

A regime of its own, never merged with 13:69F: `check` refuses its profile in this version.
"""

from __future__ import annotations

from controller.table.profiles.rule import Rule, Tag

V = Tag.VERBATIM
LATER = "not built yet: `check` refuses the profile nj-casino-night"
WORD = "out of scope: a word's meaning; " + LATER
MONEY = "out of scope: a wager or a payment, no card moves and no device"
CHOICE = LATER + "; a player's choice, no device takes part"


def _row(paragraph: str, asks: str, left_out: str, *by: str) -> Rule:
    return Rule(f"13:47-20.22{paragraph}", V, asks, by=by, left_out=left_out)


CASINO_NIGHT: tuple[Rule, ...] = (
    _row("(a)", "what the words mean", WORD),
    _row("(a) blackjack", "a natural: an ace and a ten-value as the first two cards", WORD),
    _row("(a) bust", "a hand over 21", WORD),
    _row("(a) double down", "a doubled wager and one more card, on 10 or 11 alone", WORD),
    _row("(a) hole card", "the dealer's card that lies face down", WORD),
    _row("(a) insurance betting", "a wager against the dealer's natural, while an ace is up", WORD),
    _row("(a) splitting pairs", "a pair played as two hands", WORD),
    _row("(a) stand", "no more cards", WORD),
    _row("(b)", "what the game needs", LATER),
    _row("(b)1", "a layout with seven positions and every wager on it", LATER),
    _row("(b)2", "one to four decks used as one", LATER),
    _row("(b)2i", "backs of one colour and design: one batch, no alternation", LATER),
    _row("(b)2ii", "what each card counts", LATER),
    _row("(b)2ii(1)", "two to nine count their face", LATER),
    _row("(b)2ii(2)", "ten, jack, queen and king count ten", LATER),
    _row("(b)2ii(3)", "an ace counts one or eleven", LATER),
    _row("(c)", "what the game may have", LATER),
    _row("(c)1", "a dealing shoe is optional", LATER, "R-79"),
    _row("(c)2", "a shuffler is optional", LATER, "R-79"),
    _row("(d)", "what the dealer does", LATER),
    _row("(d)1", "shuffle, cut and deal by 20.18 and (g)", LATER + "; 20.18 was not at hand", "R-79"),
    _row(
        "(d)2", "the dealer is responsible for the game", "out of scope: a duty of a person, nothing to check"
    ),
    _row(
        "(d)3", "the dealer stands opposite the players", "out of scope: a person's place, no device sees it"
    ),
    _row("(d)4", "collect losing wagers and pay winning ones", MONEY),
    _row("(e)", "a card nobody asked for and the player refuses is burned", LATER),
    _row("(f)", "seven players at most, each on as many positions as are free", LATER),
    _row("(g)", "how the game is played", LATER),
    _row("(g)1", "pairs, and any two ten-values, may be split", CHOICE),
    _row("(g)2", "how split hands are played: again, one card on aces, no natural, no double", CHOICE),
    _row("(g)3", "a double on 10 or 11, with one more card", CHOICE),
    _row("(g)4", "insurance at half the wager, asked for before the dealer looks at the hole card", LATER),
    _row("(g)5", "when wagers are placed", LATER),
    _row("(g)5i", "before the deal, in view of the dealer", LATER),
    _row("(g)5ii", "several hands: the one farthest to the right is finished first", CHOICE),
    _row(
        "(g)6",
        "the burn after the bets; discards rest until the shoe or deck is dealt out; the order of the deal",
        LATER,
        "R-79",
    ),
    _row("(g)7", "ties: one of three options, posted at the table", MONEY),
    _row("(g)7i", "every tie is a push", MONEY),
    _row("(g)7ii", "a push between naturals alone", MONEY),
    _row("(g)7iii", "the house wins ties", MONEY),
    _row("(g)8", "a natural of the dealer", LATER),
    _row(
        "(g)8i",
        "with a ten-value or an ace up the dealer looks at the hole card; a natural ends the round",
        LATER,
    ),
    _row("(g)9", "a natural of a player", MONEY),
    _row("(g)9i", "paid 2 to 1 or 3 to 2 by the tie option; its cards are discarded", MONEY),
    _row("(g)10", "play when nobody has 21", LATER),
    _row("(g)10i", "below 21 the player chooses", CHOICE),
    _row("(g)10i(1)", "to stay", CHOICE),
    _row("(g)10i(2)", "or to take a card", CHOICE),
    _row("(g)10ii", "as many cards as wanted; over 21 wager and cards are taken", LATER),
    _row("(g)10iii", "play goes on clockwise", LATER),
    _row("(g)10iv", "all bust: the dealer's cards are discarded unplayed", LATER),
    _row("(g)10v", "otherwise the dealer plays", LATER),
    _row("(g)10v(1)", "the hole card is turned up", LATER),
    _row("(g)10v(2)", "the dealer stays on 17 to 20", LATER),
    _row("(g)10v(3)", "the dealer draws to 16 and stays on every 17, also a soft one", LATER),
    _row("(h)", "what winning wagers are paid", MONEY),
    _row("(h)1", "settled from the dealer's right, even money", MONEY),
    _row("(h)2", "the dealer busts: every hand left is paid", MONEY),
    _row("(h)3", "equal counts go by the tie option of (g)7", MONEY),
)
