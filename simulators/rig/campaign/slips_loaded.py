"""What people do wrongly with whole batches, and at the machines."""

from __future__ import annotations

from collections.abc import Mapping

from simulators.rig.acts import PREPARE_S
from simulators.rig.campaign.remedies import ROUND
from simulators.rig.campaign.slip import Occasion, Scene, Slip, shoe_counts
from simulators.rig.steps import Pause, Script

DONE_AGAIN = ("shuffle_void", "foreign_cycle", "taken_without_proof", "start_unknown")
"""Latched faults after which the batch in the shuffler is shuffled again, whatever was wrong with it."""


def _shuffler_has(state: str, cycle: str) -> Occasion:
    """The machine and the table agree about its cycle, and its batch is not out of play already."""
    return lambda at: (
        at.rules.shuffler is not None
        and not at.rules.continuous
        and (at.felt.shuffler.state, at.view.cycle) == (state, cycle)
        and set(at.view.faults.values()) <= {"shuffle_void"}
        and at.view.phase not in (*ROUND, "closing", "closed")
        and at.event not in ("start_shuffle", "take_from_shuffler")
    )


def _wrong_batch(at: Scene) -> Script:
    one, other = (batch.id for batch in at.rules.batches)
    at.felt.piles[one], at.felt.piles[other] = at.felt.piles[other], at.felt.piles[one]
    yield None


def _last_batch(at: Scene) -> Script:
    """The shuffled batch is lifted out, and the last shoe's goes in: it would be the next one again."""
    yield from _taken_by_hand(at)
    yield at.try_("load_shuffler", batch=at.view.batches[-1])


def _may_repeat(at: Scene) -> bool:
    swap = at.event == "take_from_shuffler" and at.view.phase == "rack_full"
    return swap and len(at.rules.batches) == 2 and _last_is_whole(at)


def _both_in_hand(at: Scene) -> bool:
    whole = [len(pile) == at.rules.batch_size for pile in at.felt.piles.values()]
    return at.event == "load_shuffler" and len(whole) == 2 and all(whole)


def _unshuffled(at: Scene) -> Script:
    """INC-1: the cards of the last shoe are dealt once more, and nobody shuffled them."""
    batch = at.view.batches[-1]
    at.felt.load_shoe(batch)
    at.felt.draw("box 1")
    yield None


def _lies_collected(at: Scene) -> bool:
    collected = at.view.phase == "rack_full" and shoe_counts(at) and not at.rules.continuous
    return collected and _last_is_whole(at)


def _last_is_whole(at: Scene) -> bool:
    """Whether the batch of the last shoe is in hand, every card of it."""
    pile = at.felt.piles.get(at.view.batches[-1]) if at.view.batches else None
    return pile is not None and len(pile) == at.rules.batch_size


def _taken_by_hand(at: Scene) -> Script:
    at.felt.empty_shuffler(at.view.shuffler_batch or at.rules.batches[0].id)
    yield None


def _door_opened(at: Scene) -> Script:
    at.felt.shuffler.open_door()
    yield None
    at.felt.shuffler.close_door()
    yield Pause(PREPARE_S)


def _started_at_panel(at: Scene) -> Script:
    at.felt.shuffler.start(f"panel {at.felt.shuffler.cycle}".encode().ljust(16))
    yield None


def _shoe_opened(at: Scene) -> Script:
    at.felt.shoe.open_lid()
    yield None
    at.felt.shoe.close_lid()
    yield None


LOADED: Mapping[str, Slip] = {
    "wrong_batch_loaded": Slip(
        "the other batch is loaded than is told",
        _both_in_hand, _wrong_batch, ("wrong_batch", "wrong_back", *DONE_AGAIN), hides=True,
    ),
    "last_batch_again": Slip(
        "the last shoe's batch is loaded again", _may_repeat, _last_batch, over=True
    ),
    "unshuffled_loaded": Slip(
        "unshuffled cards are loaded into the shoe and dealt (INC-1)",
        _lies_collected, _unshuffled, ("stray_card",), over=True, hides=True,
    ),
    "taken_by_hand": Slip(
        "a batch is lifted out of the shuffler",
        _shuffler_has("done", "proved"), _taken_by_hand, ("taken_without_proof", "shuffle_void"), over=True,
    ),
    "door_opened_mid_cycle": Slip(
        "the shuffler is opened while it works",
        _shuffler_has("shuffling", "running"), _door_opened, DONE_AGAIN,
    ),
    "started_at_panel": Slip(
        "somebody starts a cycle at the shuffler's panel",
        _shuffler_has("done", "proved"), _started_at_panel, ("foreign_cycle",),
    ),
    "shoe_opened": Slip(
        "the shoe is opened in play",
        lambda at: at.view.phase in ("between_rounds", "playing") and shoe_counts(at),
        _shoe_opened, (),
    ),
}  # fmt: skip
