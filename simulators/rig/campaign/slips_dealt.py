"""What people do wrongly with cards while they deal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulators.models.cards import Card, CuttingCard
from simulators.rig.campaign.remedies import ROUND
from simulators.rig.campaign.slip import Scene, Slip, before, shoe_counts
from simulators.rig.steps import Script, Tap


def _early_card(at: Scene) -> Script:
    """R-32: it is used as the next card."""
    at.felt.draw_early()
    yield None


def _extra_card_drawn(at: Scene) -> Script:
    """R-33: nobody called for it; it is burned."""
    item = at.felt.draw("dealer")
    yield None
    if isinstance(item, CuttingCard):
        yield from at.dealer.acts.say_where("dealer")
        return
    if item is not None and not at.felt.face_up:
        yield Tap("drawn_in_error", {"exposed": at.random.random() < 0.5, "burned": True})
        at.felt.burn_last("dealer")


def _next_is_up(at: Scene) -> Script:
    at.felt.shoe.turn_face_up(0)
    yield None


def _card_is_next(at: Scene) -> bool:
    return isinstance(next(iter(at.felt.shoe.contents()), None), Card)


def _may_turn(at: Scene) -> bool:
    dealt = at.view.phase in ("dealing", "playing", "hole_card")
    return dealt and _card_is_next(at) and not at.rules.continuous and not at.rules.stacks


def _misdeal(at: Scene) -> Script:
    yield Tap("void_round", {"reason": "misdeal"}, "supervisor")
    at.felt.pick_up()


def _skips(at: Scene) -> bool:
    """Whether the first two cards of nobody are out yet, and one may be left out."""
    blackjack = at.rules.one_deck is None and shoe_counts(at)
    told = at.event == "bets_closed" and at.view.phase == "dealing"
    return blackjack and told and at.felt.laid() == 0 and not at.felt.early


def _begun(at: Scene) -> list[int]:
    """The boxes of the round whose bets were just closed."""
    assert isinstance(at.step, Tap)
    at.dealer.acts.last_boxes = [int(box) for box in at.step.args["boxes"].split(",")]
    at.felt.referee.round_begins()
    return at.dealer.acts.last_boxes


def _dealt_to(at: Scene, places: Sequence[str]) -> Script:
    for place in places:
        if at.view.phase in ("dealing", "hole_card", "playing"):
            yield from at.dealer.acts.draw(place)


def _skipped_first(at: Scene) -> Script:
    """The dealer leaves out his first card, tells it, and takes it after all others (R-34)."""
    boxes = [f"box {n}" for n in _begun(at)]
    yield from _dealt_to(at, [*boxes, *boxes])
    if at.view.phase in ROUND:
        yield Tap("dealer_skipped", {"card": "first"})
        yield from _dealt_to(at, ["dealer"])


def _skipped_second(_: Scene) -> Script:
    yield Tap("dealer_skipped", {"card": "second"})


def _skipped_box(at: Scene) -> Script:
    """A box gets no card, and its hand is dead (R-36)."""
    out, *boxes = _begun(at)
    places = [f"box {n}" for n in boxes]
    yield from _dealt_to(at, [*places, "dealer", *places])
    if at.view.phase in ROUND:
        yield Tap("box_skipped", {"box": out, "cards": 0})


DEALT: Mapping[str, Slip] = {
    "drawn_too_early": Slip(
        "a card is drawn before the bets are closed",
        lambda at: at.event == "bets_closed" and shoe_counts(at) and _card_is_next(at),
        _early_card, ("card_out_of_turn",),
    ),
    "extra_card_drawn": Slip(
        "a card is drawn that nobody called for",
        lambda at: (
            at.event == "round_settled" and shoe_counts(at) and at.rules.one_deck is None
            and not at.felt.shoe.empty and not at.rules.night
        ),
        _extra_card_drawn, (),
    ),
    "card_face_up": Slip("a card lies face up in the shoe", _may_turn, _next_is_up, ()),
    "misdeal": Slip("the round cannot stand", before("round_settled"), _misdeal, (), over=True),
    "skipped_dealer_card": Slip(
        "the dealer leaves out his first card", _skips, _skipped_first, (), after=True, over=True
    ),
    "skipped_hole_card": Slip(
        "the dealer leaves out his second card",
        lambda at: at.view.phase == "hole_card" and at.rules.one_deck is None and shoe_counts(at),
        _skipped_second, (), over=True,
    ),
    "skipped_box": Slip(
        "a box is left out of the deal",
        lambda at: _skips(at) and "," in at.dealer.sent["boxes"],
        _skipped_box, (), after=True, over=True,
    ),
}  # fmt: skip
