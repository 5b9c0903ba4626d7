"""The clause each operator event goes by; casino nights are a regime of their own, and so is each game."""

from __future__ import annotations

from controller.table.profiles import TableRules

CLAUSES = {
    "open": "13:69F-2.4(a)",
    **dict.fromkeys(("inspect", "verify", "spread", "player_inspected", "wash"), "13:69F-2.4(b)-(e)"),
    "certificate": "13:69E-1.18A(b)4",
    "shuffle_demanded": "13:69E-1.18A",
    "load_shuffler": "13:69F-2.2(d)3",
    "start_shuffle": "13:69F-2.5(a)",
    "take_from_shuffler": "13:69F-2.2(d)3",
    "offer_cut": "13:69F-2.5(e)",
    "cut": "13:69F-2.5(c)",
    "recut": "58 Pa. Code 633a.5",
    "insert_cutting_card": "13:69F-2.5(d)",
    "load_shoe": "13:69F-2.5(d)",
    "take_in_hand": "13:69F-2.6A(b)",
    **dict.fromkeys(("burn", "dealer_change"), "58 Pa. Code 685a.7(c)"),
    "bets_closed": "13:69F-2.6",
    "dispense": "13:69F-20.9",
    "count_stub": "13:69F-35.9(e)",
    "side_wagers_settled": "13:69F-2.23(e)",
    **dict.fromkeys(("cash_wager", "cash_converted"), "13:69F-2.23(d)"),
    "dealer_hand_settled": "13:69F-2.18(a)",
    "surrender": "13:69F-2.8",
    "insurance": "13:69F-2.9",
    "double": "13:69F-2.10",
    "split": "13:69F-2.11",
    **dict.fromkeys(("hit", "stand"), "13:69F-2.12"),
    "cutting_card_at": "13:69F-2.5(e)",
    "round_settled": "13:69F-2.6",
    "card_face_up": "13:69F-2.15(a)",
    "drawn_in_error": "13:69F-2.15(b)-(c)",
    "dealer_skipped": "13:69F-2.15(d)-(e)",
    "reshuffle_by_hand": "13:69F-2.15(f)",
    "box_skipped": "13:69F-2.15(g)-(h)",
    **dict.fromkeys(("void_round", "no_reader"), "13:69F-2.15(j)-(k)"),
    "peek": "13:69F-2.7(a)",
    "dead_card": "9 NYCRR 5322.15(c)",
    "replace_batch": "COMAR 36.05.03.27 C",
    "bart_carter": "13:69F-2.5(g)",
    "shuffle_now": "13:69F-2.5(a)",
    "collect_rack": "13:69F-2.2(d)5",
    **dict.fromkeys(("idle", "resume"), "58 Pa. Code 633a.5(g)"),
    **dict.fromkeys(("close", "count_batch"), "13:69E-1.18(a)-(b)"),
    **dict.fromkeys(("confirm_empty", "out_of_service", "in_service"), "La. 42:III-3106"),
    **dict.fromkeys(("acknowledge", "clear"), "ANSI/ISA-18.2"),
}
"""What each event goes by: a refusal without a nearer clause carries it."""

HAND_CLAUSES = dict.fromkeys(("13:69F-2.2(d)3", "13:69F-2.2(d)4"), "13:69F-2.2(c)")
"""What is stored meanwhile, and that the sets alternate, is said of hand-dealt tables elsewhere."""

NIGHT = "13:47-20.22"
NIGHT_CLAUSES = {
    **dict.fromkeys(("load_shoe", "take_in_hand"), f"{NIGHT}(c)1"),
    **dict.fromkeys(("load_shuffler", "start_shuffle", "take_from_shuffler"), f"{NIGHT}(c)2"),
    **dict.fromkeys(("offer_cut", "cut", "recut", "insert_cutting_card", "cutting_card_at"), f"{NIGHT}(d)1"),
    "drawn_in_error": f"{NIGHT}(e)",
    "split": f"{NIGHT}(g)2",
    "double": f"{NIGHT}(g)3",
    "insurance": f"{NIGHT}(g)4",
    **dict.fromkeys(("hit", "stand", "surrender"), f"{NIGHT}(g)10i"),
    "bets_closed": f"{NIGHT}(g)5i",
    **dict.fromkeys(("burn", "shuffle_now", "bart_carter"), f"{NIGHT}(g)6"),
    **dict.fromkeys(("collect_rack", "reshuffle_by_hand"), f"{NIGHT}(g)6"),
}
"""Casino nights are a regime of their own: there no refusal cites a clause of the casinos."""

BLACKJACK = "13:69F-2."
ONE_DECK = "13:69F-20.5"
ONE_DECK_CLAUSES = {
    **dict.fromkeys(("open", "inspect", "verify", "spread", "player_inspected", "wash"), "13:69F-20.4"),
    **dict.fromkeys(("load_shuffler", "take_from_shuffler", "collect_rack"), "13:69F-23.2(b)"),
    "load_shoe": "13:69F-20.7",
    "take_in_hand": "13:69F-20.8",
    **dict.fromkeys(("card_face_up", "drawn_in_error", "dealer_skipped", "box_skipped"), "13:69F-20.12"),
    "void_round": "13:69F-20.12",
}
"""Three-card poker is the one of the one-deck games whose sections are known by number."""

PLAYED = (
    *("bets_closed", "round_settled", "hit", "stand", "double", "split", "surrender", "insurance"),
    *("peek", "no_reader", "side_wagers_settled", "cash_wager", "cash_converted", "dealer_hand_settled"),
)
"""What is refused there by how the game is dealt: it has no such step, or not now."""


def clause(rules: TableRules, event: str, nearer: str | None = None) -> str | None:
    """What a refusal of the event goes by: the nearer clause, if its judge named one."""
    if not rules.night:
        found = nearer or CLAUSES.get(event)
        if event == "side_wagers_settled" and nearer is None and rules.one_deck is None:
            return rules.settle_clause
        if rules.hand_dealt:
            return HAND_CLAUSES.get(found or "", found)
        if rules.one_deck is not None and event == "dispense":
            return rules.one_deck.clause
        if rules.one_deck is None or found is None or not found.startswith(BLACKJACK):
            return found
        return rules.deal_clause if event in PLAYED else ONE_DECK_CLAUSES.get(event, ONE_DECK)
    found = nearer or CLAUSES.get(event, NIGHT)
    ours = found.startswith((NIGHT, "ANSI"))
    return found if ours else NIGHT_CLAUSES.get(event, NIGHT)
