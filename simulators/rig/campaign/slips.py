"""What people do wrong at a table: one row a slip, each refused or latched, never believed silently."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from controller.table.phases import TAPPED_IN, Phase
from devices.events import Sense
from simulators.models.cards import Card, CuttingCard
from simulators.rig.acts import PREPARE_S
from simulators.rig.campaign.remedies import ROUND
from simulators.rig.felt import Felt
from simulators.rig.steps import Pause, Script, Step, Tap
from simulators.rig.view import View

if TYPE_CHECKING:
    from simulators.rig.dealer import Dealer

ONCE = ("open", "load_shuffler", "cut", "insert_cutting_card", "load_shoe", "bets_closed", "round_settled")
"""Taps that cannot be meant twice in a row."""
LOOKS_BACK = 40
"""The cards of a round are among so many things that happened to the shoe."""
DONE_AGAIN = ("shuffle_void", "foreign_cycle", "taken_without_proof", "start_unknown")
"""Latched faults after which the batch in the shuffler is shuffled again, whatever was wrong with it."""
REFUSED = "refused"
"""What must become of a slip, where it is no fault that must be latched."""


class Slips:
    """What a slip has in hand: the felt, the dealer, and what was just to be done (`step`)."""

    def __init__(self, felt: Felt, view: View, dealer: Dealer, random: Random) -> None:
        self.felt, self.view, self.dealer, self.random = felt, view, dealer, random
        self.rules = felt.rules
        self.step: Step = None

    @property
    def event(self) -> str:
        """The tap that comes next, if one does."""
        return self.step.event if isinstance(self.step, Tap) else ""

    def try_(self, event: str, by: str = "", **args: object) -> Tap:
        return Tap(event, args, by, slip=True)


Occasion = Callable[[Slips], bool]


@dataclass(frozen=True, slots=True)
class Slip:
    """`becomes` is `REFUSED` or the faults of which one must be latched, () where nothing can show it.

    `after`: the occasion is behind a step that was done, not before one that is to be done. `over`: what was
    in progress is over with it, and whoever goes on looks at the table first. `instead`: the step itself is
    done otherwise, and not once more. It `hides` cards until they are counted.
    """

    help: str
    occasion: Occasion
    act: Callable[[Slips], Script]
    becomes: str | Collection[str] = REFUSED
    after: bool = False
    over: bool = False
    instead: bool = False
    hides: bool = False


def _in(*phases: str) -> Occasion:
    return lambda at: at.view.phase in phases


def _before(*events: str) -> Occasion:
    return lambda at: at.event in events


def _shoe_counts(at: Slips) -> bool:
    return not at.rules.by_eye and not at.rules.stacks


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


# Taps


def _wrong_tap(at: Slips) -> Script:
    phase = Phase(at.view.phase)
    events = [event for event, phases in TAPPED_IN.items() if phase not in phases]
    yield at.try_(at.random.choice(events))


def _double_tap(at: Slips) -> Script:
    args = {k: v for k, v in at.dealer.sent.items() if k not in ("do", "id", "by")}
    yield Tap(at.dealer.sent["do"], args, slip=True)


def _lost_answer(at: Slips) -> Script:
    sent = at.dealer.sent
    args = {k: v for k, v in sent.items() if k not in ("do", "id", "by")}
    before = at.view.seq
    yield Tap(sent["do"], args, sent.get("by", ""), id=sent["id"], slip=True)
    if not at.dealer.heard.get("ok") or any(f["fact"] > before for f in at.dealer.heard["facts"]):
        at.felt.referee.violation("double tap", f"{sent['do']} sent again under its id: {at.dealer.heard}")


def _used_id(at: Slips) -> Script:
    yield Tap("dealer_change", {}, id=at.dealer.sent["id"], slip=True)


def _forgotten_burn(at: Slips) -> Script:
    yield at.try_("bets_closed", boxes="1")


def _wrong_box_told(at: Slips) -> Script:
    played = at.dealer.acts.last_boxes
    others = [n for n in range(1, at.rules.boxes + 1) if n not in played]
    yield at.try_("cutting_card_at", box=at.random.choice(others or [at.rules.boxes + 1]))


def _bribed_clear(at: Slips) -> Script:
    yield at.try_("clear", "dealer", fault=next(iter(at.view.faults)))


def _peek_early(at: Slips) -> Script:
    yield at.try_("peek")


def _may_look_again(at: Slips) -> bool:
    """Whether the table was told an up card that asks for no look."""
    up = next(iter(at.felt.layout.places["dealer"]), None)
    told = [h.data["face"] for h in at.felt.shoe.happenings[-LOOKS_BACK:] if h.kind == "drawn"]
    return (
        at.event == "round_settled"
        and at.rules.reader in at.view.up
        and bool(at.rules.shoe_senses)
        and not at.view.faults
        and at.felt.laid() <= len(told)
        and None not in told
        and isinstance(up, Card)
        and up.face in told
        and up.rank not in "ATJQK"
    )


def _look_again(at: Slips) -> Script:
    up, hole = (item for item in at.felt.layout.places["dealer"][:2] if isinstance(item, Card))
    at.felt.reader.slide_in(up, hole)
    at.felt.reader.take_out()
    yield None


def _swap_in_round(at: Slips) -> Script:
    backs = {} if Sense.BACK in at.rules.shoe_senses else {"other_backs": 0}
    yield Tap("collect_rack", {"gauge": "full", **backs}, slip=True)


def _thin_cut(at: Slips) -> Script:
    yield at.try_("cut", position=at.random.choice((at.rules.least_cut - 1, at.rules.batch_size)))


def _verified_alone(at: Slips) -> Script:
    assert isinstance(at.step, Tap)
    yield Tap("inspect", at.step.args, "dealer")
    yield Tap("verify", at.step.args, "dealer", slip=True)


def _told_otherwise(**other: object) -> Callable[[Slips], Script]:
    """The tap is made, with something else said."""

    def act(at: Slips) -> Script:
        assert isinstance(at.step, Tap)
        yield Tap(at.step.event, {**at.step.args, **other}, at.step.by)

    return act


def _wrong_count_told(at: Slips) -> Script:
    assert isinstance(at.step, Tap)
    yield Tap(at.step.event, {**at.step.args, "cards": at.rules.batch_size - 1}, at.step.by)


def _torn_card(at: Slips) -> Script:
    batch = at.view.batches[-1]
    yield Tap("dead_card", {"batch": batch, "reason": at.random.choice(("damaged", "marked", "missing"))})


# Cards


def _early_card(at: Slips) -> Script:
    """R-32: it is used as the next card."""
    item = at.felt.draw_early()
    yield None
    if isinstance(item, CuttingCard):
        yield from at.dealer.acts.say_where("dealer")


def _extra_card_drawn(at: Slips) -> Script:
    """R-33: nobody called for it; it is burned."""
    item = at.felt.draw("dealer")
    yield None
    if isinstance(item, CuttingCard):
        yield from at.dealer.acts.say_where("dealer")
        return
    if item is not None and not at.felt.face_up:
        yield Tap("drawn_in_error", {"exposed": at.random.random() < 0.5, "burned": True})
        at.felt.burn_last("dealer")


def _next_is_up(at: Slips) -> Script:
    at.felt.shoe.turn_face_up(0)
    yield None


def _may_turn(at: Slips) -> bool:
    first = next(iter(at.felt.shoe.contents()), None)
    dealt = at.view.phase in ("dealing", "playing", "hole_card")
    return dealt and isinstance(first, Card) and not at.rules.continuous and not at.rules.stacks


def _misdeal(at: Slips) -> Script:
    yield Tap("void_round", {"reason": "misdeal"}, "supervisor")
    at.felt.pick_up()


def _skips(at: Slips) -> bool:
    """Whether the first two cards of nobody are out yet, and one may be left out."""
    blackjack = at.rules.one_deck is None and _shoe_counts(at)
    told = at.event == "bets_closed" and at.view.phase == "dealing"
    return blackjack and told and at.felt.laid() == 0 and not at.felt.early


def _begun(at: Slips) -> list[int]:
    """The boxes of the round whose bets were just closed."""
    assert isinstance(at.step, Tap)
    at.dealer.acts.last_boxes = [int(box) for box in at.step.args["boxes"].split(",")]
    at.felt.referee.round_begins()
    return at.dealer.acts.last_boxes


def _dealt_to(at: Slips, places: Sequence[str]) -> Script:
    for place in places:
        if at.view.phase in ("dealing", "hole_card", "playing"):
            yield from at.dealer.acts.draw(place)


def _skipped_first(at: Slips) -> Script:
    """The dealer leaves out his first card, tells it, and takes it after all others (R-34)."""
    boxes = [f"box {n}" for n in _begun(at)]
    yield from _dealt_to(at, [*boxes, *boxes])
    if at.view.phase in ROUND:
        yield Tap("dealer_skipped", {"card": "first"})
        yield from _dealt_to(at, ["dealer"])


def _skipped_second(_: Slips) -> Script:
    yield Tap("dealer_skipped", {"card": "second"})


def _skipped_box(at: Slips) -> Script:
    """A box gets no card, and its hand is dead (R-36)."""
    out, *boxes = _begun(at)
    places = [f"box {n}" for n in boxes]
    yield from _dealt_to(at, [*places, "dealer", *places])
    if at.view.phase in ROUND:
        yield Tap("box_skipped", {"box": out, "cards": 0})


# Batches and machines


def _wrong_batch(at: Slips) -> Script:
    one, other = (batch.id for batch in at.rules.batches)
    at.felt.piles[one], at.felt.piles[other] = at.felt.piles[other], at.felt.piles[one]
    yield None


def _last_batch(at: Slips) -> Script:
    """The shuffled batch is lifted out, and the last shoe's goes in: it would be the next one again."""
    at.felt.empty_shuffler(at.view.shuffler_batch or at.rules.batches[0].id)
    yield None
    yield at.try_("load_shuffler", batch=at.view.batches[-1])


def _may_repeat(at: Slips) -> bool:
    pile = at.felt.piles.get(at.view.batches[-1]) if at.view.batches else None
    swap = at.event == "take_from_shuffler" and at.view.phase == "rack_full"
    return swap and len(at.rules.batches) == 2 and pile is not None and len(pile) == at.rules.batch_size


def _both_in_hand(at: Slips) -> bool:
    whole = [len(pile) == at.rules.batch_size for pile in at.felt.piles.values()]
    return at.event == "load_shuffler" and len(whole) == 2 and all(whole)


def _unshuffled(at: Slips) -> Script:
    """INC-1: the cards of the last shoe are dealt once more, and nobody shuffled them."""
    batch = at.view.batches[-1]
    at.felt.load_shoe(batch)
    at.felt.draw("box 1")
    yield None


def _lies_collected(at: Slips) -> bool:
    collected = at.view.phase == "rack_full" and _shoe_counts(at) and not at.rules.continuous
    pile = at.felt.piles.get(at.view.batches[-1]) if at.view.batches else None
    return collected and pile is not None and len(pile) == at.rules.batch_size


def _taken_by_hand(at: Slips) -> Script:
    at.felt.empty_shuffler(at.view.shuffler_batch or at.rules.batches[0].id)
    yield None


def _door_opened(at: Slips) -> Script:
    at.felt.shuffler.open_door()
    yield None
    at.felt.shuffler.close_door()
    yield Pause(PREPARE_S)


def _started_at_panel(at: Slips) -> Script:
    at.felt.shuffler.start(f"panel {at.felt.shuffler.cycle}".encode().ljust(16))
    yield None


def _shoe_opened(at: Slips) -> Script:
    at.felt.shoe.open_lid()
    yield None
    at.felt.shoe.close_lid()
    yield None


SLIPS: Mapping[str, Slip] = {
    "wrong_tap": Slip("a tap that is not expected now", lambda _: True, _wrong_tap),
    "double_tap": Slip("the same tap once more", _before(*ONCE), _double_tap, after=True),
    "lost_answer": Slip(
        "a tap is sent again under its id", lambda at: bool(at.event), _lost_answer, (), after=True
    ),
    "used_id": Slip("another tap under a used id", lambda at: bool(at.event), _used_id, after=True),
    "no_more_bets_twice": Slip("bets are closed twice", _before("bets_closed"), _double_tap, after=True),
    "forgotten_burn": Slip("bets are closed before the burn", _in("burn_due"), _forgotten_burn),
    "wrong_box_told": Slip("the cutting card came out where nobody plays", _in("playing"), _wrong_box_told),
    "bribed_clear": Slip("a dealer clears a fault", lambda at: bool(at.view.faults), _bribed_clear),
    "peek_early": Slip("the reader is asked before its time", _in("dealing", "between_rounds"), _peek_early),
    "looked_out_of_turn": Slip(
        "the dealer's cards go into the reader when no look is due",
        _may_look_again, _look_again, ("reader_misuse", "reader_failed"), over=True,
    ),
    "swap_in_round": Slip("the rack is collected in a round", _in(*ROUND), _swap_in_round),
    "thin_cut": Slip("the cut is too near an end", _before("cut"), _thin_cut),
    "verified_alone": Slip(
        "who inspected a batch verifies it",
        lambda at: isinstance(at.step, Tap) and at.step.event == "inspect" and "batch" in at.step.args,
        _verified_alone, instead=True,
    ),
    "wrong_gauge": Slip(
        "the rack is told to be short",
        _before("collect_rack"), _told_otherwise(gauge="short"), ("rack_gauge",), instead=True,
    ),
    "wrong_count_told": Slip(
        "a card too few is told at the closing",
        _before("count_batch"), _wrong_count_told, ("wrong_count",), instead=True,
    ),
    "torn_card": Slip(
        "a card of the batch in the shoe is torn", _before("round_settled"), _torn_card, ("dead_card",)
    ),
    "drawn_too_early": Slip(
        "a card is drawn before the bets are closed",
        lambda at: at.event == "bets_closed" and _shoe_counts(at) and not at.felt.shoe.empty,
        _early_card, ("card_out_of_turn",),
    ),
    "extra_card_drawn": Slip(
        "a card is drawn that nobody called for",
        lambda at: (
            at.event == "round_settled" and _shoe_counts(at) and at.rules.one_deck is None
            and not at.felt.shoe.empty and not at.rules.night
        ),
        _extra_card_drawn, (),
    ),
    "card_face_up": Slip("a card lies face up in the shoe", _may_turn, _next_is_up, ()),
    "misdeal": Slip("the round cannot stand", _before("round_settled"), _misdeal, (), over=True),
    "skipped_dealer_card": Slip(
        "the dealer leaves out his first card", _skips, _skipped_first, (), after=True, over=True
    ),
    "skipped_hole_card": Slip(
        "the dealer leaves out his second card",
        lambda at: at.view.phase == "hole_card" and at.rules.one_deck is None and _shoe_counts(at),
        _skipped_second, (), over=True,
    ),
    "skipped_box": Slip(
        "a box is left out of the deal",
        lambda at: _skips(at) and "," in at.dealer.sent["boxes"],
        _skipped_box, (), after=True, over=True,
    ),
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
        lambda at: at.view.phase in ("between_rounds", "playing") and _shoe_counts(at),
        _shoe_opened, (),
    ),
}  # fmt: skip
"""Slips by name, in the style of the fault menu."""
