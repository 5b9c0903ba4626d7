"""The order of a blackjack deal (R-24) and who cuts (R-17). Box 1 is at the dealer's left."""

from __future__ import annotations

from collections.abc import Sequence

DEALER = "dealer"
HOLE = "hole"
COMMUNITY = "community"
STUB = "stub"
PLAY = "play"
STRAY = "stray"
FACE_UP = "face_up"
BURNED = "burned"
NO_HAND = ("burn", STUB, FACE_UP)
"""Where a card from the shoe goes that is no part of a round; one burned out of a round is `BURNED`."""
SUPERVISOR = "supervisor"
LAST_CUTTERS = (DEALER, SUPERVISOR)
"""Who cuts when nobody accepts (R-18, two readings)."""


def box(number: int) -> str:
    """The name of a betting area as events carry it."""
    return f"box {number}"


def deal_order(boxes: Sequence[int]) -> tuple[str, ...]:
    """Where the cards of the initial deal go, clockwise from the dealer's left, hole card last (S2)."""
    players = tuple(box(n) for n in sorted(boxes))
    return (*players, DEALER, *players, HOLE)


def lies_down(order: Sequence[str], index: int, down: str) -> bool:
    """Whether the card at this place of the order lies face down: the hole card, and one of each player's."""
    place = order[index]
    if place == HOLE or not place.startswith("box"):
        return place == HOLE
    return down == ("second" if place in order[:index] else "first")


def cutters(
    *,
    new_game: bool,
    boxes: int,
    appeared_at: str | None,
    last_boxes: Sequence[int],
    last_cutter: str = DEALER,
) -> tuple[str, ...]:
    """Who is offered the cut, first to last, 13:69F-2.5(e): the first of these who accepts cuts.

    New game, or no round since: the first player to arrive, so any box. The cutting card at a box: that
    box. At the dealer's hand, or nowhere (a discretionary shuffle): the player farthest to the dealer's
    right. Then clockwise (2.5(f)), at last the dealer, or a supervisor where a switch says so (R-18).
    """
    if new_game or not last_boxes:
        return (*(box(n) for n in range(1, boxes + 1)), last_cutter)
    seats = sorted(last_boxes)
    first = seats[-1]
    if appeared_at is not None and appeared_at != DEALER:
        number = int(appeared_at.split()[1])
        first = number if number in seats else first
    turn = seats.index(first)
    return (*(box(n) for n in seats[turn:] + seats[:turn]), last_cutter)
