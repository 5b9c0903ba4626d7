"""Where the next card of a punto banco round goes, and who won: what a baccarat shoe works out for itself."""

from __future__ import annotations

from dataclasses import dataclass

_POINTS = {rank: points % 10 for points, rank in enumerate("A23456789T", 1)} | dict.fromkeys("JQK", 0)


@dataclass(frozen=True, slots=True)
class Seat:
    """`place` is first_card, burn_count, player or banker; `index` counts from 1 (first_card: 0)."""

    place: str
    index: int


@dataclass(frozen=True, slots=True)
class Result:
    """`winner` is player, banker or tie."""

    winner: str
    player_pair: bool
    banker_pair: bool


class Baccarat:
    """Takes the cards of one shoe in order. The first tells how many to burn, then rounds follow."""

    def __init__(self) -> None:
        self._burn: int | None = None
        self._burned = 0
        self._player: list[str] = []
        self._banker: list[str] = []

    @property
    def between_rounds(self) -> bool:
        return not self._player

    @property
    def next_seat(self) -> Seat:
        if self._burn is None:
            return Seat("first_card", 0)
        if self._burned < self._burn:
            return Seat("burn_count", self._burned + 1)
        player, banker = len(self._player), len(self._banker)
        if player + banker < 4:
            return Seat("player", player + 1) if player == banker else Seat("banker", banker + 1)
        return Seat("player", 3) if player == 2 and self._points(self._player) <= 5 else Seat("banker", 3)

    def take(self, rank: str) -> tuple[Seat, Result | None]:
        """The next card is a `rank`: where it goes, and the result if it ends the round."""
        seat = self.next_seat
        if seat.place == "first_card":
            self._burn = _POINTS[rank] or 10
        elif seat.place == "burn_count":
            self._burned += 1
        else:
            (self._player if seat.place == "player" else self._banker).append(rank)
        return seat, self._end() if self._over() else None

    def _over(self) -> bool:
        if len(self._player) < 2 or len(self._banker) < 2:
            return False
        player, banker = self._points(self._player[:2]), self._points(self._banker[:2])
        if max(player, banker) >= 8 or len(self._banker) == 3:
            return True
        if len(self._player) == 2:
            return player > 5 and banker > 5
        third = _POINTS[self._player[2]]
        draws = (
            banker <= 2
            or (banker == 3 and third != 8)
            or (banker == 4 and 2 <= third <= 7)
            or (banker == 5 and 4 <= third <= 7)
            or (banker == 6 and 6 <= third <= 7)
        )
        return not draws

    def _end(self) -> Result:
        player, banker = self._points(self._player), self._points(self._banker)
        winner = "tie" if player == banker else "player" if player > banker else "banker"
        result = Result(winner, self._player[0] == self._player[1], self._banker[0] == self._banker[1])
        self._player, self._banker = [], []
        return result

    @staticmethod
    def _points(ranks: list[str]) -> int:
        return sum(_POINTS[rank] for rank in ranks) % 10
