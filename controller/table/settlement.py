"""What each hand wins, told when a round is settled whose hands were followed (R-30), or why nobody can tell.

By then all cards that count lie open; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from controller.table import args, hands
from controller.table import blackjack as bj
from controller.table.args import Args
from controller.table.draft import Draft
from controller.table.profiles import TableRules
from controller.table.round import DEALER, HOLE
from controller.table.state import Dealt, Hand, Round, TableState

CUT_OFF = (
    "what a natural of the dealer means to a split, doubled or surrendered hand, or to 21 in five cards, was "
    "not among the texts at hand"
)


def unplayed(rules: TableRules, round_: Round) -> bool:
    """Whether the dealer's cards go to the discards unturned: all hands bust, 13:47-20.22(g)10iv.

    Asked when the round is settled: then the players' cards lie open, also those that lay face down.
    """
    if not (rules.night and round_.hands):
        return False
    cards = [hands.held(round_, hand) for hand in round_.hands]
    faces = [[card.card for card in hand if card.card] for hand in cards]
    return all(len(read) == len(hand) and bj.is_bust(read) for read, hand in zip(faces, cards, strict=True))


def goes_unturned(rules: TableRules, round_: Round, given: Args) -> bool:
    """The same as it is told: by the hands that are followed, or else by the dealer (`unplayed=true`)."""
    said = args.flag(given, "unplayed")
    if said and (not rules.night or rules.by_eye or round_.hands):
        raise ValueError(
            "unplayed=true is for a casino night with a shoe, in a round of which no hand is followed"
        )
    return said or unplayed(rules, round_)


def settle(draft: Draft, before: TableState) -> None:
    """What each hand of the round wins, or why that cannot be told.

    Only if hands were followed, or the reader told of a natural: then there was nothing to tap.
    """
    round_ = before.round
    if round_ is None or draft.rules.by_eye or not (round_.hands or round_.natural):
        return
    try:
        data = _settlement(draft.rules, before, round_)
    except CannotTell as why:
        data = {"round": round_.number, "why": str(why)}
    draft.add("settlement", data)


class CannotTell(Exception):
    """The cards and taps of the round do not tell how it ended."""


def _settlement(rules: TableRules, before: TableState, round_: Round) -> dict[str, Any]:
    """All cards that count are turned up by now. The order is that of the settling: from the right."""
    if why := hands.lost_track(before):
        raise CannotTell(why)
    if rules.dealer_hands > 1:
        raise CannotTell("each hand met several of the dealer's, and no tap tells their cards apart")
    house = [] if unplayed(rules, round_) else _faces([c for c in round_.cards if c.to in (DEALER, HOLE)])
    played = [(hand, _faces(hands.held(round_, hand))) for hand in reversed(hands.of(round_))]
    if why := _irregular(rules, round_, played, house):
        raise CannotTell(why)
    return {
        "round": round_.number,
        "dealer": {"total": bj.score(house), "natural": bj.is_natural(house)} if house else None,
        "hands": [_settled(rules, hand, faces, house) for hand, faces in played],
        "insurance": [{"box": n, **_words(bj.settle_insurance(house))} for n in reversed(round_.insured)],
    }


def _faces(cards: Sequence[Dealt]) -> list[str]:
    """The faces of cards that lie open now, whoever saw them before."""
    if any(card.card is None for card in cards):
        raise CannotTell("a card was not read")
    return [card.card or "" for card in cards]


def _irregular(
    rules: TableRules, round_: Round, played: Sequence[tuple[Hand, list[str]]], house: list[str]
) -> str | None:
    """Why the round did not go as it must for its end to be told."""
    natural, drawn = bj.is_natural(house), round_.placed > len(round_.order)
    if round_.natural is not None and round_.natural is not natural:
        return "the reader said otherwise of the hole card"
    if natural and drawn and rules.night:
        return "cards were drawn against a natural of the dealer"
    if natural and any(_cut_off(hand, faces) for hand, faces in played):
        return CUT_OFF
    if why := _not_open(rules, round_, played):
        return why
    for hand, faces in played:
        over = len(faces) >= hand.wants and (bool(hand.end) or bj.score(faces) >= bj.MOST)
        if not over and (drawn or not natural):
            return f"{hand.place} was not played to its end"
    plays = any(_against_dealer(hand, faces) for hand, faces in played)
    if plays and not natural and not bj.dealer_is_done(house):
        return "the dealer's hand was not played by the rule"
    return None


def _not_open(rules: TableRules, round_: Round, played: Sequence[tuple[Hand, list[str]]]) -> str | None:
    """A play that its cards did not allow. While one of them lay face down, only the player knew."""
    terms = hands.terms(rules)
    for hand, faces in played:
        if why := next(filter(None, (bj.no_card(faces[:n], terms) for n in range(2, len(faces)))), None):
            return f"{hand.place} took a card too many: {why.why} [{why.clause}]"
        if hand.end == hands.DOUBLED and (why := bj.no_double(faces[:-1], terms, split=hand.split)):
            return f"{hand.place} was doubled: {why.why} [{why.clause}]"
    for number in round_.boxes:
        of_box = [faces for hand, faces in played if hand.box == number and hand.split]
        if why := _no_splits(of_box, terms):
            return f"box {number} was split: {why.why} [{why.clause}]"
    return None


def _no_splits(split: Sequence[list[str]], terms: bj.Terms) -> bj.Why | None:
    """Why these hands of one box, each with its first card, cannot have come of splits that are open."""
    firsts = [faces[0] for faces in split if faces]
    if why := next(filter(None, (bj.no_split([firsts[0], card], terms) for card in firsts[1:])), None):
        return why
    again = len(split) > 2 or any(len(faces) > 2 for faces in split)
    return bj.no_split(firsts[:2], terms, split=True) if firsts and again and terms.aces_take_one else None


def _cut_off(hand: Hand, faces: list[str]) -> bool:
    """Hands of which 13:69F does not tell here what a natural of the dealer means to them."""
    five = len(faces) == 5 and bj.score(faces) == bj.MOST
    return five or hand.split or hand.end in (hands.DOUBLED, hands.SURRENDERED)


def _against_dealer(hand: Hand, faces: list[str]) -> bool:
    """Whether the dealer has to draw for this hand."""
    natural = bj.is_natural(faces) and not hand.split
    return not (natural or hand.end == hands.SURRENDERED or bj.is_bust(faces))


def _settled(rules: TableRules, hand: Hand, faces: list[str], house: list[str]) -> dict[str, Any]:
    gone = hand.end == hands.SURRENDERED
    ends = bj.settle(faces, house, hands.terms(rules), split=hand.split, surrendered=gone)
    doubled = hand.end == hands.DOUBLED
    return {"hand": hand.place, "total": bj.score(faces), "doubled": doubled, **_words(ends)}


def _words(settled: bj.Settled) -> dict[str, Any]:
    odds = bj.odds(settled.gain) if settled.outcome is bj.Outcome.WIN else None
    return {"outcome": settled.outcome.value, "odds": odds}
