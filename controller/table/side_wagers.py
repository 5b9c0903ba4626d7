"""Wagers on the first cards: match-the-dealer (R-38, 13:69F-2.23) and over/under-13 (R-09).

They are settled after the players' second cards and have no bearing on any other wager. What each ends as is
told only of wagers that were entered, and only by cards that everybody sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.table import args
from controller.table.args import Apply, Args, Judge, Judged
from controller.table.cards import VALUED, over_under_value
from controller.table.inputs import OperatorEvent, Refusal, Role
from controller.table.phases import Phase
from controller.table.profiles import MatchTerms, TableRules
from controller.table.round import DEALER, box
from controller.table.state import Cash, Round, TableState
from firmware_bridge.frozen import replace

MATCH, OVER_UNDER = "match-the-dealer", "over-under-13"
BY_A_PLAYER_WITH_A_BASIC_WAGER, BY_WORD = "13:69F-2.23(c)", "13:69F-2.23(d)"
CONFIRM = (Role.DEALER, Role.SUPERVISOR)
"""Who confirms a wager by word with cash, in any order."""
LOST, WON, UNKNOWN = "lost", "won", "unknown"
"""How a wager ends; unknown where people must look at the cards, in the order in which the dealer goes."""
Row = dict[str, Any]


# --- the cards ---


def pays(card: str, dealers: str, terms: MatchTerms) -> int | None:
    """The odds to one at which `card` matches the dealer's first one; ten-values match their own rank."""
    if card[0] != dealers[0]:
        return None
    return terms.same_suit if card[1] == dealers[1] else terms.other_suit


def over_under(cards: tuple[str, str]) -> str | None:
    """Which of the two a player's first cards win: "over" or "under", and at thirteen neither (R-40)."""
    total = sum(map(over_under_value, cards))
    return None if total == 13 else "over" if total > 13 else "under"


def first_cards(state: TableState, round_: Round, place: str, count: int) -> tuple[str, ...] | None:
    """The first cards of a place; None where one is missing, not read, unseen, or counts nothing here."""
    cards = [dealt for dealt in round_.cards if dealt.to == place][:count]
    faces = tuple(dealt.card for dealt in cards if dealt.card in VALUED and dealt.seen and not dealt.foreign)
    return faces if len(faces) == count and not state.uncertain else None


def matched(rules: TableRules, state: TableState) -> list[Row]:
    """How each match-the-dealer wager ends: the losers, which are collected first, then the winners."""
    round_ = state.round
    if rules.match is None or round_ is None:
        return []
    dealers = first_cards(state, round_, DEALER, 1)
    rows: list[Row] = []
    for number in sorted({*round_.match, *(cash.box for cash in round_.cash if cash.accepted)}):
        own = first_cards(state, round_, box(number), 2)
        if own is None or dealers is None:
            rows.append({"box": number, "outcome": UNKNOWN})
            continue
        odds = [paid for card in own if (paid := pays(card, dealers[0], rules.match)) is not None]
        how = {"outcome": WON, "pays": odds} if odds else {"outcome": LOST}
        rows.append({"box": number, **how})
    return sorted(rows, key=lambda row: (LOST, UNKNOWN, WON).index(row["outcome"]))


def thirteens(rules: TableRules, state: TableState) -> list[Row]:
    """What the first cards of each box win at over/under-13, whoever wagered."""
    round_ = state.round
    if OVER_UNDER not in rules.wagers or round_ is None:
        return []
    known = ((number, first_cards(state, round_, box(number), 2)) for number in round_.boxes)
    return [{"box": n, "wins": over_under((own[0], own[1]))} for n, own in known if own is not None]


def outcome(rules: TableRules, state: TableState) -> dict[str, list[Row]]:
    """How the wagers on the first cards end, as soon as they lie there; empty where nothing is to be told."""
    if state.phase is not Phase.SIDE_WAGERS:
        return {}
    told = {"match": matched(rules, state), "over_under_13": thirteens(rules, state)}
    return {name: rows for name, rows in told.items() if rows}


def posted(rules: TableRules) -> dict[str, int | None] | None:
    """What is posted of match-the-dealer: limits, and the odds to one of each matching card."""
    terms = rules.match
    if terms is None:
        return None
    odds = {"other_suit": terms.other_suit, "same_suit": terms.same_suit}
    return {"minimum": terms.minimum, "maximum": terms.maximum, **odds}


# --- the taps ---


def judge_match(rules: TableRules, boxes: tuple[int, ...], given: Args) -> dict[str, Any] | Refusal:
    """`match=1,3` of `bets_closed`: the boxes with such a wager, by chips, plaques or a coupon."""
    if "match" not in given:
        return {}
    if rules.match is None:
        return _not_offered()
    try:
        wagered = args.boxes(rules, given, "match")
    except ValueError as error:
        return Refusal("bad_argument", f"bets_closed: {error}", BY_A_PLAYER_WITH_A_BASIC_WAGER)
    if without := [number for number in wagered if number not in boxes]:
        return _no_basic_wager(without[0])
    return {"match": list(wagered)}


def _not_offered() -> Refusal:
    return Refusal("not_offered", "match-the-dealer is not offered at this table", "13:69F-2.23(a)")


def _no_basic_wager(number: int) -> Refusal:
    why = f"there is no basic wager on box {number}, and without one no match-the-dealer wager"
    return Refusal("no_basic_wager", why, BY_A_PLAYER_WITH_A_BASIC_WAGER)


def _judge_cash(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    if rules.match is None:
        return _not_offered()
    number, amount = args.whole(tap.args, "box"), args.whole(tap.args, "amount")
    round_ = state.round
    assert round_ is not None
    if round_.cards:
        why = "the first card is dealt: the cash goes back, or stays for the next round"
        return Refusal("cards_dealt", why, BY_WORD)
    if number not in round_.boxes:
        return _no_basic_wager(number)
    least, most = rules.match.minimum or 1, rules.match.maximum
    if amount < least or (most is not None and amount > most):
        limits = f"at least {least}" if most is None else f"{least} to {most}"
        why = f"{amount} is not within the posted limits: {limits}"
        return Refusal("outside_limits", why, BY_A_PLAYER_WITH_A_BASIC_WAGER)
    return _confirmed(_cash(round_, number) or Cash(number, amount), amount, tap)


def _confirmed(known: Cash, amount: int, tap: OperatorEvent) -> Judged:
    first = known.dealer or known.supervisor
    missing = [role for role in CONFIRM if not getattr(known, role.value)]
    if not missing:
        return Refusal("confirmed_already", f"both confirmed the wager on box {known.box}", BY_WORD)
    if amount != known.amount:
        why = f"{first} confirmed {known.amount} on box {known.box}, not {amount}"
        return Refusal("amount_differs", why, BY_WORD)
    role = next((role for role in reversed(missing) if role in tap.roles), None)  # who may be both supervises
    if role is None:
        why = f"the {missing[0].value} has to confirm the wager on box {known.box} too"
        return Refusal("not_allowed", why, BY_WORD)
    if first and not args.other_person(tap, first):
        why = f"{first} confirmed the wager on box {known.box}: another person confirms it too"
        return Refusal("same_person", why, BY_WORD)
    return {"box": known.box, "amount": known.amount, "as": role.value}


def _judge_converted(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    number, round_ = args.whole(tap.args, "box"), state.round
    assert round_ is not None
    cash = _cash(round_, number)
    if cash is None or not cash.accepted:
        return Refusal("no_cash_wager", f"no wager by word was accepted on box {number}", BY_WORD)
    if cash.converted:
        return Refusal("converted_already", f"the cash on box {number} is chips already", BY_WORD)
    return {"box": number}


def _judge_settled(rules: TableRules, state: TableState, tap: OperatorEvent) -> Judged:
    """Everything is told with the tap: what was collected, what was paid, and cash that was no wager."""
    cash = state.round.cash if state.round else ()
    if left := [c.box for c in cash if c.accepted and not c.converted]:
        why = f"the cash on box {left[0]} is not converted into chips or plaques yet"
        return Refusal("cash_not_converted", why, BY_WORD, (f"cash_converted box={left[0]}",))
    back = [c.box for c in cash if not c.accepted]
    return {**outcome(rules, state), **({"cash_back": back} if back else {})}


def examples(rules: TableRules, state: TableState, event: str) -> list[tuple[str, Args]]:
    """Wagers by word that another person has to confirm, and cash that is to be converted."""
    round_ = state.round
    if rules.match is None or round_ is None:
        return []
    if event == "cash_converted":
        waiting = [c.box for c in round_.cash if c.accepted and not c.converted]
        return [(f"box={number}", {"box": number}) for number in waiting]
    half = [c for c in round_.cash if not c.accepted]
    return [(f"box={c.box} amount={c.amount}", {"box": c.box, "amount": c.amount}) for c in half]


# --- facts ---


def _cash(round_: Round, number: int) -> Cash | None:
    return next((cash for cash in round_.cash if cash.box == number), None)


def _with_cash(state: TableState, changed: Cash) -> TableState:
    assert state.round is not None
    others = [cash for cash in state.round.cash if cash.box != changed.box]
    return replace(state, round=replace(state.round, cash=(*others, changed)))


def _apply_cash(state: TableState, data: Mapping[str, Any]) -> TableState:
    assert state.round is not None
    known = _cash(state.round, data["box"]) or Cash(data["box"], data["amount"])
    who = data.get("who") or "somebody"
    by_dealer = data["as"] == Role.DEALER
    return _with_cash(state, replace(known, dealer=who) if by_dealer else replace(known, supervisor=who))


def _apply_converted(state: TableState, data: Mapping[str, Any]) -> TableState:
    assert state.round is not None
    known = _cash(state.round, data["box"])
    assert known is not None
    return _with_cash(state, replace(known, converted=True))


JUDGES: dict[str, tuple[Judge, tuple[str, ...]]] = {
    "side_wagers_settled": (_judge_settled, ()),
    "cash_wager": (_judge_cash, ("box", "amount")),
    "cash_converted": (_judge_converted, ("box",)),
}
APPLY: dict[str, Apply] = {"cash_wager": _apply_cash, "cash_converted": _apply_converted}
