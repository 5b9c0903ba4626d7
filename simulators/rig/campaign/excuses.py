"""What the judge of a table may excuse, and why; and the facts and faults by which the controller owns up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Excuse:
    """What is excused once one of `faults` struck, until each batch was counted again.

    One of `codes` must be latched for it, where there are any: at once, or when one of the facts `by` has
    come for each batch.
    """

    kinds: tuple[str, ...]
    faults: tuple[str, ...]
    codes: tuple[str, ...]
    why: str
    by: frozenset[str] = frozenset()


COUNTED = frozenset({"collect_rack", "count_batch", "batch_proved"})
"""Facts with which a whole batch was counted: what was hidden until then must be known now."""
BACKS_SEEN = frozenset({"collect_rack", "batch_proved"})
"""Those with which all its backs were told, too: who counts by hand tells a number."""
READ = frozenset({"batch_proved"})
"""Those with which all its cards were read."""
STRANGER = ("mixed batches", "unshuffled", "uncut")
TABLE = "table"
"""Under this device are counted the faults of the daemon and of the power."""
EXCUSES = (
    Excuse(
        STRANGER,
        ("wrong_back_card",),
        ("wrong_back", "wrong_back_in_shuffler", "rack_wrong_back"),
        "a card that somebody slipped in is known by its back, when that is seen",
        by=BACKS_SEEN,
    ),
    Excuse(
        STRANGER,
        ("extra",),
        (
            *("too_many_copies", "too_many_cards", "rack_gauge", "rack_wrong_back"),
            *("wrong_count", "wrong_composition", "wrong_back", "wrong_back_in_shuffler", "count_drift"),
        ),
        "a strange card of the right back is known by the number of cards",
        by=COUNTED,
    ),
    Excuse(
        STRANGER,
        ("duplicate_card", "joker"),
        ("too_many_copies", "wrong_composition"),
        "a strange card in place of another is known where cards are read, at the latest by a shuffler",
        by=READ,
    ),
    Excuse(
        STRANGER,
        ("stuck", "leave_inside", "double_feed", "power_cut_out", "miscount_out", "miscount"),
        ("wrong_count", "wrong_composition", "cards_inside", "rack_gauge", "count_drift", "cards_missing"),
        "cards of an earlier batch that lie where no sensor is come along when they come free",
        by=COUNTED,
    ),
    Excuse(
        (*STRANGER, "repeated batch", "burn missed", "swapped in a round", "round after the cutting card"),
        ("unshuffled_loaded",),
        ("stray_card",),
        "cards that nobody loaded through the table are known when the first comes out (INC-1)",
    ),
    Excuse(
        (*STRANGER, "repeated batch"),
        ("wrong_batch_loaded",),
        ("wrong_batch", "wrong_back", "wrong_back_in_shuffler", "rack_wrong_back"),
        "another batch than was told is known by its backs, when a machine or a look at the rack sees them",
        by=COUNTED,
    ),
    Excuse(
        ("round after the cutting card",),
        ("cut_unseen",),
        (),
        "the shoe did not tell of the cutting card: only who dealt it saw it",
    ),
    Excuse(
        ("leak",),
        (
            *("wrong_face", "read_twice", "unseen", "double_feed", "power_cut_at_card", "face_up"),
            *("overdraw", "power_dip"),
        ),
        (),
        "a card more or less than was told, or another one: which is the dealer's second nobody can know",
    ),
    Excuse(
        ("side wagers",),
        ("wrong_face", "read_twice", "unseen", "double_feed", "power_cut_at_card", "overdraw", "power_dip"),
        (),
        "a card that was read as another one, or goes to another box than was told, matches otherwise",
    ),
    Excuse(
        ("leak",),
        ("skipped_box", "skipped_dealer_card", "skipped_hole_card"),
        (),
        "until the dealer tells what he left out, his second card is taken for another one",
    ),
)
COUNTED_WRONG = frozenset(
    (
        *("taken_without_proof", "cards_inside", "wrong_batch", "wrong_count", "wrong_composition"),
        *("wrong_back_in_shuffler", "wrong_back", "too_many_copies", "too_many_cards", "cards_missing"),
        *("rack_gauge", "rack_wrong_back", "wrong_stub", "stray_card", "cards_in_shoe"),
        *("shoe_rebooted", "events_lost", "returned_twice", "count_drift", "card_out_of_turn"),
        "dead_card",
    )
)
"""Latched faults by which the controller itself says that its counts are not to be believed."""
GAPS = frozenset({"gap_possible", "unjudged_gap_possible"})
ADMITS_LOSS = frozenset({"events_lost", "shoe_rebooted", "stray_card", "cards_in_shoe"})
"""Facts and faults by which the controller says that it may have missed cards."""
LOOK_AHEAD = 8
"""So many cards in a row may be missing and the next one is still known for what it is."""
NEVER = frozenset({"crashed", "machine_disagrees"})
"""Faults of the controller itself: no simulated device may bring them about."""
