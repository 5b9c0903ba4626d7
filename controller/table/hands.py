"""Hands followed one by one: hit, stand, double, split, insurance, surrender, and what each wins (R-30).

All of it is optional: two taps a round suffice. From the first of these taps on, each card goes to the hand
that called for it, and to the dealer once every hand is over. Nothing is guessed: a card that no tap called
for ends it for the round. Nothing here depends on a card that players may not see, not even a refusal
(law 7): a hand with such a card has no total.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from controller.table import blackjack as bj
from controller.table import reader
from controller.table.args import Apply, Args, Judge, Judged
from controller.table.blackjack import Terms, Why
from controller.table.cards import VALUED
from controller.table.inputs import OperatorEvent, Refusal
from controller.table.profiles import TableRules
from controller.table.round import BURNED, DEALER, PLAY, STRAY, box
from controller.table.state import Dealt, Hand, Round, TableState
from firmware_bridge.frozen import replace

Data = Mapping[str, Any]
TAPS = ("hit", "stand", "double", "split", "surrender", "insurance")
STOOD, DOUBLED, SURRENDERED, ONE_CARD = "stood", "doubled", "surrendered", "one card"
"""How a hand ends before it counts 21."""
ANY_PLAY = ("5S", "5H", *("2S",) * 20)
"""Stands for cards that are not known: on the first two of these every play is open, as far as cards go."""


def terms(rules: TableRules) -> Terms:
    """What this table pays and permits."""
    return bj.casino_night(rules.ties) if rules.night else bj.CASINO


# --- whose cards, whose turn ---


def of(round_: Round) -> tuple[Hand, ...]:
    """The players' hands in the order of play: from the dealer's left, a player's farthest right first."""
    dealt = (n for n in sorted(round_.boxes) if box(n) in round_.order)
    return round_.hands or tuple(Hand(box(number), number) for number in dealt)


def held(round_: Round, hand: Hand) -> list[Dealt]:
    return [card for card in round_.cards if card.to == hand.place]


def shown(cards: Sequence[Dealt]) -> list[str] | None:
    """The faces, or None while one of them may not be seen, was not read, or counts nothing here."""
    faces = [card.card for card in cards if card.seen and card.card in VALUED]
    return faces if len(faces) == len(cards) else None


def is_over(round_: Round, hand: Hand) -> bool:
    """Whether the hand takes no further card; with 21 or more it has no choice."""
    cards = held(round_, hand)
    if len(cards) < hand.wants:
        return False
    faces = shown(cards)
    return bool(hand.end) or (faces is not None and bj.score(faces) >= bj.MOST)


def turn(round_: Round) -> Hand | None:
    """The hand that plays now; None when it is the dealer's turn."""
    return next((hand for hand in of(round_) if not is_over(round_, hand)), None)


def next_place(state: TableState) -> str:
    """Where the next card of a round in play goes: to nobody in particular while no tap calls for one."""
    round_ = _round(state)
    if not round_.hands or lost_track(state):
        return PLAY
    hand = turn(round_)
    if hand is None:
        return DEALER
    return hand.place if len(held(round_, hand)) < hand.wants else PLAY


def called_for(state: TableState) -> str | None:
    """The player's hand that waits for a card: it hit, doubled or was split."""
    place = PLAY if state.round is None else next_place(state)
    return None if place in (PLAY, DEALER) else place


def lost_track(state: TableState) -> str | None:
    """Why nobody can tell which card belongs to which hand."""
    cards, owed = (state.round.cards, state.round.owed) if state.round else ((), False)
    if state.uncertain:
        return "cards may have come out unseen"
    if owed:
        return "the dealer's second card was left out"
    if any(card.foreign and card.to != BURNED for card in cards):
        return "a card of another batch is among them"
    if any(card.to in (PLAY, STRAY) for card in cards):
        return "a card came out that no tap called for"
    return None


# --- the taps ---


def _not_followed(rules: TableRules, state: TableState) -> Refusal | None:
    if rules.game != "blackjack":
        return Refusal("not_this_game", f"no hand is played card by card in {rules.game}")
    if rules.by_eye:
        return Refusal("no_cards_known", "no device tells which cards come out: hands are not followed here")
    if why := lost_track(state):
        why = f"{why}: hands are followed again from the next round on; this one needs no further tap of them"
        return Refusal("hands_not_followed", why)
    if _round(state).natural:
        return Refusal("dealer_has_natural", "the dealer has a natural: no hand is played", reader.LOOK)
    return None


def _named(rules: TableRules, state: TableState, args: Args) -> Hand | Refusal:
    """The hand that a tap names, without a name the one whose turn it is."""
    round_ = _round(state)
    if "box" not in args:
        return turn(round_) or Refusal("no_hand_plays", "every hand is over: the next card is the dealer's")
    text = str(args["box"]).removeprefix("box ")
    number, of_split, _ = text.partition("/")
    if not (number.isascii() and number.isdigit()) or not 1 <= int(number) <= rules.boxes:
        raise ValueError(f"box={args['box']} is neither a box from 1 to {rules.boxes} nor a hand such as 2/1")
    hands = [hand for hand in of(round_) if hand.box == int(number)]
    hands = [hand for hand in hands if not of_split or hand.place == f"box {text}"]
    if not hands:
        return Refusal("no_wager_there", f"there is no hand on box {text} in this round")
    return next((hand for hand in hands if not is_over(round_, hand)), hands[-1])


def _to_play(rules: TableRules, state: TableState, tap: OperatorEvent) -> Hand | Refusal:
    """The hand that a play is for, if it is its turn to choose."""
    if refused := _not_followed(rules, state):
        return refused
    if waits := reader.first(rules, state, "any further card"):
        return waits
    round_, hand = _round(state), _named(rules, state, tap.args)
    if isinstance(hand, Refusal):
        return hand
    if is_over(round_, hand):
        return _over(rules, round_, hand)
    first = turn(round_)
    if first is not None and hand != first:
        clause = terms(rules).clause("13:69F-2.6", "13:47-20.22(g)5ii")
        return Refusal("not_its_turn", f"{first.place} is played to its end first", clause)
    if len(held(round_, hand)) < hand.wants:
        return Refusal("card_due", f"the next card is for {hand.place}: draw it first")
    return hand


def _over(rules: TableRules, round_: Round, hand: Hand) -> Refusal:
    faces = shown(held(round_, hand))
    why = None if faces is None else bj.no_card(faces, terms(rules))
    if why is not None and not hand.end:
        return _refusal("hand_is_over", why)
    words = {STOOD: "it stands", DOUBLED: "it was doubled", ONE_CARD: "a split ace takes one card"}
    return Refusal("hand_is_over", f"{hand.place} is over: {words.get(hand.end, hand.end)}")


def _refusal(code: str, why: Why) -> Refusal:
    return Refusal(code, why.why, why.clause)


def _open(no: Callable[..., Why | None], rules: TableRules, round_: Round, hand: Hand) -> Why | None:
    """Why a play is not open; of cards that only the player sees, it is the player who knows."""
    cards = held(round_, hand)
    return no(shown(cards) or ANY_PLAY[: len(cards)], terms(rules), split=hand.split)


def _judge_hit(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    hand = _to_play(rules, state, tap)
    if isinstance(hand, Refusal):
        return hand
    return {"hand": hand.place, "wants": hand.wants + 1}


def _judge_stand(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    hand = _to_play(rules, state, tap)
    return hand if isinstance(hand, Refusal) else {"hand": hand.place, "end": STOOD}


def _judge_double(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    hand = _to_play(rules, state, tap)
    if isinstance(hand, Refusal):
        return hand
    if why := _open(bj.no_double, rules, _round(state), hand):
        return _refusal("no_double", why)
    return {"hand": hand.place, "wants": hand.wants + 1, "end": DOUBLED}


def _judge_split(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    round_, hand = _round(state), _to_play(rules, state, tap)
    if isinstance(hand, Refusal):
        return hand
    if why := _open(bj.no_split, rules, round_, hand):
        return _refusal("no_split", why)
    same = sum(other.box == hand.box for other in of(round_))
    into = [hand.place if hand.split else f"{hand.place}/1", f"{box(hand.box)}/{same + 1}"]
    faces = shown(held(round_, hand))
    one = faces is not None and bj.takes_one_card(faces, terms(rules))
    return {"hand": hand.place, "into": into, "end": ONE_CARD if one else ""}


def _judge_surrender(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if refused := _not_followed(rules, state):
        return refused
    round_, hand = _round(state), _named(rules, state, tap.args)
    if isinstance(hand, Refusal):
        return hand
    if why := _open(bj.no_surrender, rules, round_, hand):
        return _refusal("no_surrender", why)
    if is_over(round_, hand):
        return _over(rules, round_, hand)
    if len(held(round_, hand)) < hand.wants:
        return Refusal("card_due", f"the next card is for {hand.place}: it plays already", "13:69F-2.8(a)")
    return {"hand": hand.place, "end": SURRENDERED}


def _judge_insurance(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    round_, night = _round(state), rules.night
    if refused := _not_followed(rules, state):
        return refused
    if "box" not in tap.args:
        raise ValueError("box=NUMBER is missing")
    hand = _named(rules, state, tap.args)
    if isinstance(hand, Refusal):
        return hand
    up = reader.up_card(round_)
    if up is not None and (why := bj.no_insurance(up, terms(rules))):
        return _refusal("no_insurance", why)
    clause = terms(rules).clause("13:69F-2.9(a)", "13:47-20.22(g)4")
    asked = any(pending.device == rules.reader for pending in state.pending.values())
    if round_.natural is not None or asked:  # a misuse takes no right from a player
        return Refusal("too_late", "insurance is taken before the hole card is looked at", clause)
    if any(map(_has_played if night else _has_drawn, round_.hands)):
        return Refusal("too_late", "insurance is taken before any hand plays", clause)
    if hand.box in round_.insured:
        return Refusal("already_insured", f"box {hand.box} is insured", clause)
    return {"box": hand.box}


def _has_played(hand: Hand) -> bool:
    return _has_drawn(hand) or bool(hand.end)


def _has_drawn(hand: Hand) -> bool:
    return hand.split or hand.wants > 2


# --- what the facts of the taps do ---


def _round(state: TableState) -> Round:
    assert state.round is not None
    return state.round


def _played(state: TableState, data: Data) -> TableState:
    """The hand wants a card more, or is at its end."""
    changes = {name: data[name] for name in ("wants", "end") if name in data}
    hands = (replace(h, **changes) if h.place == data["hand"] else h for h in of(_round(state)))
    return replace(state, round=replace(_round(state), hands=tuple(hands)))


def _split(state: TableState, data: Data) -> TableState:
    """The first card stays with the hand that is played first; the new one comes after it."""
    round_, hands = _round(state), list(of(_round(state)))
    index = next(i for i, hand in enumerate(hands) if hand.place == data["hand"])
    first, second = data["into"]
    seqs = [card.seq for card in held(round_, hands[index])]
    to = dict(zip(seqs, (first, second), strict=True))
    number, end = hands[index].box, data["end"]
    hands[index : index + 1] = [Hand(place, number, end=end, split=True) for place in (first, second)]
    cards = (replace(card, to=to.get(card.seq, card.to)) for card in round_.cards)
    return replace(state, round=replace(round_, cards=tuple(cards), hands=tuple(hands)))


def _insured(state: TableState, data: Data) -> TableState:
    round_ = _round(state)
    return replace(state, round=replace(round_, hands=of(round_), insured=(*round_.insured, data["box"])))


def _told(state: TableState, data: Data) -> TableState:
    return replace(state, settlement={name: value for name, value in data.items() if name != "device"})


def burned(round_: Round, place: str) -> Round:
    """A card of this hand is burned. Whether it wants another is told anew: only a double has one due."""
    hands = (
        replace(h, wants=h.wants - 1) if h.place == place and h.wants > 2 and h.end != DOUBLED else h
        for h in round_.hands
    )
    return replace(round_, hands=tuple(hands))


# --- what is shown, and expected ---


def view(round_: Round) -> list[dict[str, Any]]:
    """The hands that are followed: total, how each stands, and whose turn it is."""
    return [_view(round_, hand) for hand in round_.hands]


def _view(round_: Round, hand: Hand) -> dict[str, Any]:
    faces = shown(held(round_, hand))
    stands = hand.end if is_over(round_, hand) else "plays" if hand == turn(round_) else "waits"
    return {
        "hand": hand.place,
        "total": None if faces is None else bj.score(faces),
        "soft": faces is not None and bj.is_soft(faces),
        "state": stands or "over",
        "insured": hand.box in round_.insured,
    }


def examples(state: TableState, event: str) -> list[tuple[str, Args]]:
    """The taps of the hand whose turn it is; insurance for any box."""
    round_ = _round(state)
    if event == "insurance":
        free = [hand.box for hand in of(round_) if hand.box not in round_.insured]
        return [("box=NUMBER", {"box": free[0]})] if free else []
    hand = turn(round_)
    name = "" if hand is None else hand.place.removeprefix("box ")
    return [] if hand is None else [(f"box={name}", {"box": name})]


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {
    "hit": (_judge_hit, ("box",)),
    "stand": (_judge_stand, ("box",)),
    "double": (_judge_double, ("box",)),
    "split": (_judge_split, ("box",)),
    "surrender": (_judge_surrender, ("box",)),
    "insurance": (_judge_insurance, ("box",)),
}
APPLY: dict[str, Apply] = {
    **dict.fromkeys(("hit", "stand", "double", "surrender"), _played),
    "split": _split,
    "insurance": _insured,
    "settlement": _told,
}
