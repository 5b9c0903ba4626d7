"""The catalogue of latched faults (law 6): what each means, what it blocks, what mends it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from controller.table.profiles import TableRules


class Blocks(StrEnum):
    """What a latched fault stops: everything now, the next round, or the next swap of batches.

    What stops nothing is an alarm: it goes with its cause and is kept until it was acknowledged.
    """

    NOW = "now"
    ROUND = "round"
    SWAP = "swap"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class FaultKind:
    """`gone` names the case of `judges.cause_gone` that must hold before anyone may clear the fault.

    `unfit` faults take the batch out of play until it is replaced: reshuffling never clears them (R-55).
    What a supervisor has to decide (`decided`), no technician clears.
    """

    blocks: Blocks
    text: str
    remedy: str
    gone: str
    unfit: bool = False
    decided: bool = False


_REPLACE = (
    "end the shoe if it is in play (`shuffle_now`), take the batch off the table; it stays out until it is "
    "replaced (`replace_batch`)"
)


def _unfit(blocks: Blocks, text: str) -> FaultKind:
    return FaultKind(blocks, text, _REPLACE, "batch_replaced", unfit=True)


FAULTS: dict[str, FaultKind] = {
    # the shuffler
    "taken_without_proof": FaultKind(
        Blocks.SWAP,
        "a batch left the shuffler without a completed shuffle",
        "load it into the shuffler again, run a full cycle, then have a supervisor clear this",
        "proved_or_replaced",
    ),
    "cards_inside": FaultKind(
        Blocks.SWAP,
        "cards stayed inside the shuffler",
        "open the machine, take out every card, load the batch again and run a full cycle",
        "shuffler_accounted",
    ),
    "settings_mismatch": FaultKind(
        Blocks.SWAP,
        "the shuffler's settings are not those of this table",
        "set decks, cards per deck, shuffle mode and card recognition, then start the cycle again",
        "cycle_running_or_proved",
    ),
    "shuffle_void": FaultKind(
        Blocks.SWAP,
        "the shuffle did not complete and counts for nothing",
        "run a full cycle on the batch in the shuffler",
        "proved_or_replaced",
    ),
    "foreign_cycle": FaultKind(
        Blocks.SWAP,
        "the shuffler ran a cycle that this table did not start, or its cycle counter is wrong",
        "find out who started it; run a full cycle from here",
        "proved_or_replaced",
    ),
    "wrong_mode": FaultKind(
        Blocks.SWAP,
        "the shuffler completed a cycle that was no shuffle",
        "set the machine to shuffle and run a full cycle",
        "proved_or_replaced",
    ),
    "report_incomplete": FaultKind(
        Blocks.SWAP,
        "the shuffler's report leaves cards out",
        "check card recognition and run a full cycle",
        "proved_or_replaced",
    ),
    "wrong_batch": FaultKind(
        Blocks.SWAP,
        "the shuffler holds the other batch",
        "take the cards out and load the right batch",
        "proved_or_replaced",
    ),
    "batches_exchanged": FaultKind(
        Blocks.ROUND,
        "the shuffler holds the batch that was to be dealt: the cards that are dealt may not be shuffled",
        "end the shoe if it is in play (`shuffle_now`), look at the backs, put each batch where it belongs; "
        "only a batch with a proved shuffle and a cut may be loaded",
        "shoe_unused",
        decided=True,
    ),
    "wrong_count": _unfit(Blocks.SWAP, "a wrong number of cards was counted"),
    "wrong_composition": _unfit(Blocks.SWAP, "the shuffler found cards missing or too many of a kind"),
    "wrong_back_in_shuffler": _unfit(Blocks.SWAP, "the shuffler found a card of another back colour"),
    "start_unknown": FaultKind(
        Blocks.SWAP,
        "nobody can tell whether the shuffler started",
        "check the shuffler's link; the table asks the machine as soon as it answers",
        "start_reconciled",
    ),
    # the shoe
    "wrong_back": _unfit(Blocks.ROUND, "a card of another back colour came out of the shoe"),
    "too_many_copies": _unfit(
        Blocks.ROUND, "one card came out of the shoe more often than the batch holds it"
    ),
    "too_many_cards": _unfit(Blocks.ROUND, "more cards came out of the shoe than the batch holds"),
    "cards_missing": _unfit(Blocks.SWAP, "the shoe was empty before every card of the batch had come out"),
    "rack_gauge": _unfit(Blocks.SWAP, "the discard rack is not as high as a whole batch"),
    "rack_wrong_back": _unfit(Blocks.SWAP, "the discard rack holds a card of another back colour"),
    "wrong_stub": _unfit(Blocks.SWAP, "a wrong number of cards was left of the deck after the deal"),
    "card_out_of_turn": FaultKind(
        Blocks.ROUND,
        "a card left the shoe when none was due",
        "a supervisor decides what becomes of the card, then clears this",
        "always",
        decided=True,
    ),
    "stray_card": FaultKind(
        Blocks.NOW,
        "a card left the shoe although no batch was put into it through this table",
        "take every card out of the shoe, until it says that it is empty if it can tell; only a batch with a "
        "proved shuffle and a cut may be loaded",
        "shoe_emptied",
    ),
    "cards_in_shoe": FaultKind(
        Blocks.NOW,
        "cards lie in the shoe although no batch was put into it through this table",
        "take every card out of the shoe; it must say that it is empty",
        "shoe_told_empty",
    ),
    "extra_cutting_card": FaultKind(
        Blocks.ROUND,
        "a cutting card came out of the shoe that was not put in, or came out before",
        "finish the round, end the shoe, and find out where it came from",
        "shoe_unused",
    ),
    "shoe_rebooted": FaultKind(
        Blocks.ROUND,
        "the shoe started again while it held cards: cards may have left it unseen",
        "compare its counter with the cards drawn, or end the shoe and gauge the rack",
        "shoe_accounted",
    ),
    "events_lost": FaultKind(
        Blocks.ROUND,
        "the device reported events that no longer can be read",
        "end the shoe and gauge the rack",
        "shoe_unused",
    ),
    "order_pattern": FaultKind(
        Blocks.ROUND,
        "the cards come out of the shoe in an order that no shuffle gives",
        "end the shoe; find out how this batch was shuffled",
        "shoe_unused",
    ),
    # a continuous shuffler
    "returned_early": FaultKind(
        Blocks.ROUND,
        "used cards went back into the continuous shuffler before the next round was dealt",
        "a supervisor decides what becomes of a dispute about that round, then clears this",
        "always",
        decided=True,
    ),
    "returned_twice": FaultKind(
        Blocks.ROUND,
        "more cards went into the continuous shuffler than lay in the rack",
        "end the shoe (`idle` or `close`), deal every card out and count them",
        "shoe_unused",
    ),
    "count_drift": FaultKind(
        Blocks.ROUND,
        "the continuous shuffler holds another number of cards than this table knows of",
        "end the shoe (`idle` or `close`), deal every card out, look into the machine and count them",
        "shoe_unused",
    ),
    # a batch
    "dead_card": _unfit(Blocks.ROUND, "a card of the batch is damaged, marked or missing"),
    "deck_too_old": _unfit(Blocks.SWAP, "the batch is older than this table allows"),
    "cycle_too_short": FaultKind(
        Blocks.SWAP,
        "the shuffler completed a cycle faster than it can shuffle",
        "have the machine checked, and run a full cycle",
        "proved_or_replaced",
    ),
    # the hole-card reader (R-36a)
    "reader_misuse": FaultKind(
        Blocks.ROUND,
        "the hole-card reader was used when it may not be",
        "a supervisor decides whether the round stands, then clears this",
        "not_in_round",
        decided=True,
    ),
    "reader_skipped": FaultKind(
        Blocks.ROUND,
        "a further card came out before the hole card was checked with the reader",
        "check the hole card now (`peek`) if it still lies unturned; a supervisor decides whether the round "
        "stands, then clears this",
        "not_in_round",
        decided=True,
    ),
    "reader_failed": FaultKind(
        Blocks.ROUND,
        "the hole-card reader does not work",
        "have it mended and inspected, or deal without it: a supervisor says so (`no_reader`)",
        "reader_settled",
    ),
    # alarms: they stop nothing by themselves
    "device_down": FaultKind(
        Blocks.NOTHING, "a device does not answer", "check its cable and power", "by_itself"
    ),
    "shoe_opened": FaultKind(
        Blocks.NOTHING,
        "the shoe was opened with cards in play",
        "close it; the rack is gauged when the shoe ends",
        "by_itself",
    ),
    "shoe_jam": FaultKind(
        Blocks.NOTHING,
        "cards are stuck in the shoe",
        "free them; the next card ends the alarm, and `dispense` goes on with the rest of the stack",
        "by_itself",
    ),
    "shoe_not_locked": FaultKind(
        Blocks.NOTHING,
        "the shoe is not locked though side wagers are to be settled",
        "draw no card before they are settled; the table asks the shoe again as soon as its link comes back",
        "by_itself",
    ),
    "shoe_stays_locked": FaultKind(
        Blocks.NOTHING,
        "the shoe stays locked though the side wagers are settled",
        "unlock it with its key, or unplug it and plug it in: the table asks it again as soon as it answers",
        "by_itself",
    ),
    "shoe_dry": FaultKind(
        Blocks.NOTHING,
        "the shoe ran out in the middle of a round",
        "shuffle the cards of the rack by hand (`reshuffle_by_hand`), or settle if no card is needed",
        "by_itself",
    ),
    "inspection_due": FaultKind(
        Blocks.NOTHING,
        "a device waits for its inspection",
        "a supervisor inspects it (`inspect device=NAME`)",
        "by_itself",
    ),
    "deck_over_a_day": FaultKind(
        Blocks.NOTHING,
        "a batch has been at this table for more than 24 hours",
        "report it with the day's reconciliation, or replace it",
        "by_itself",
    ),
    # who is there, and the service itself
    "wrong_device": FaultKind(
        Blocks.NOW,
        "another device, or another firmware, answers than the one this table was opened with",
        "put the known device back; if its new firmware is approved, put that on the list in table.toml "
        "(see `cutcard identify --enrol`) and start the daemon again; another device needs a new journal",
        "known_device",
    ),
    "key_missing": FaultKind(
        Blocks.NOW,
        "the key that seals unseen cards in the journal is missing",
        "put the key file back and start the daemon again; a new key is never made for an old journal",
        "restarted",
    ),
    "crashed": FaultKind(
        Blocks.NOW,
        "a part of the controller stopped with an error",
        "save the log, then start the daemon again",
        "restarted",
    ),
    "machine_disagrees": FaultKind(
        Blocks.NOW,
        "the two judges of the rules do not agree",
        "stop the table and save the journal for the maker",
        "restarted",
    ),
}


def blocks(code: str, said: str) -> Blocks:
    """What a fault of the journal blocks: a kind that was a fault when it was latched may be an alarm now."""
    kind = FAULTS.get(code)
    return Blocks.NOTHING if kind is not None and kind.blocks is Blocks.NOTHING else Blocks(said)


STOPS = {
    Blocks.NOW: "nothing goes on until this is cleared",
    Blocks.ROUND: "no new round begins until this is cleared",
    Blocks.SWAP: "the batches are not swapped until this is cleared",
    Blocks.NOTHING: "stops nothing by itself",
}
NEXT_SHOE = "no new shoe or deck begins until this is cleared"
"""What stops the swap where one batch is shuffled and dealt again and again."""
_BY_HAND = FAULTS["shoe_dry"].remedy
_INSTEAD = {
    "continuous": {
        "`shuffle_now`": "`idle` or `close`",
        _BY_HAND: "settle the round if it needs no card, or a supervisor voids it (`void_round`)",
    },
    "deck-per-round": {_BY_HAND: "a supervisor voids the round (`void_round reason=misdeal`)"},
}
"""By mode: what mends a fault elsewhere, and what does here."""


def remedy(rules: TableRules, code: str) -> str:
    """What mends a fault, in taps that this table takes."""
    text = FAULTS[code].remedy
    for elsewhere, here in _INSTEAD.get(rules.mode, {}).items():
        text = text.replace(elsewhere, here)
    return text


def stops(rules: TableRules, code: str, said: Blocks, batch: str | None) -> str:
    """What a fault means for this table; a batch that is out of play stops no round of the other one."""
    if said is Blocks.SWAP and rules.continuous:
        said = Blocks.ROUND  # it swaps by itself
    if said is Blocks.ROUND and FAULTS[code].unfit and batch:
        return f"no new round begins with batch {batch} until it is replaced"
    return NEXT_SHOE if said is Blocks.SWAP and rules.alone else STOPS[said]
